/* SPDX-License-Identifier: Apache-2.0 */
#include "run/apply_parts.h"

#include <fcntl.h>

#include "run/keep.h"
#include "sys/file.h"

#define JOURNAL_SCHEMA "qscope.apply/v1"
#define JOURNAL_MAX    MIB(4)

static const char *const phases[_JOURNAL_MAX] = {
        [JOURNAL_NONE] = "none",
        [JOURNAL_STAGE] = "stage",
        [JOURNAL_COMMIT] = "commit",
        [JOURNAL_UNDO] = "undo",
        [JOURNAL_DONE] = "done",
};

int apply_journal_write(Apply *apply, JournalPhase phase)
{
        _cleanup_(cJSON_Deletep) cJSON *journal = cJSON_CreateObject();
        _cleanup_free_ char *text = NULL;
        cJSON *items = NULL;
        int r = -ENOMEM;

        if (journal && json_add_text(journal, "schema", JOURNAL_SCHEMA) == 0 &&
                        json_add_text(journal, "phase", phases[phase]) == 0)
                items = json_add_array(journal, "items");
        for (size_t i = 0; items && i < apply->plan->n; i++) {
                const ApplyChange *change = &apply->plan->items[i];
                cJSON *item = change->state == APPLY_SELECTED ? json_add_object(items, NULL) : items;

                if (!item || (item != items && (json_add_u64(item, "index", i) < 0 ||
                                                               json_add_bool(item, "exact", change->exact) <
                                                                               0 ||
                                                               json_add_bool(item, "forced", change->forced) <
                                                                               0)))
                        return -ENOMEM;
        }
        text = items ? json_print(journal, true) : NULL;
        if (text)
                r = file_replace_at(apply->layer_fd, KEEP_JOURNAL, text, strlen(text));
        if (r == 0)
                apply->phase = phase;
        return r;
}

int apply_journal_drop(Apply *apply)
{
        if (unlinkat(apply->layer_fd, KEEP_JOURNAL, 0) < 0 && errno != ENOENT)
                return -errno;
        apply->phase = JOURNAL_NONE;
        return fsync(apply->layer_fd) < 0 ? -errno : 0;
}

static int take_journal(Apply *apply, const cJSON *journal)
{
        const char *phase = view_text(journal, "phase");
        const cJSON *item;

        if (!streq_ptr(view_text(journal, "schema"), JOURNAL_SCHEMA) || !phase)
                return -EINVAL;
        for (JournalPhase p = JOURNAL_STAGE; p < _JOURNAL_MAX; p++)
                if (streq(phase, phases[p]))
                        apply->phase = p;
        if (apply->phase == JOURNAL_NONE)
                return -EINVAL;
        if (apply->phase == JOURNAL_STAGE)
                return 0;
        cJSON_ArrayForEach(item, view_get(journal, "items"))
        {
                uint64_t index = view_number(item, "index");

                if (index >= apply->plan->n)
                        return -EINVAL;
                apply->plan->items[index].state = APPLY_SELECTED;
                apply->plan->items[index].exact = view_true(item, "exact");
                apply->plan->items[index].forced = view_true(item, "forced");
        }
        return 0;
}

int apply_journal_read(Apply *apply, Error *e)
{
        _cleanup_(cJSON_Deletep) cJSON *journal = NULL;
        _cleanup_free_ char *text = NULL;
        _cleanup_close_ int fd = openat(apply->layer_fd, KEEP_JOURNAL, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        size_t size;
        int r;

        if (fd < 0)
                return errno == ENOENT ? 0 : error_errno(e, -errno, KEEP_JOURNAL);
        r = file_read_fd(fd, JOURNAL_MAX, &text, &size);
        if (r == 0)
                r = json_parse(text, size, JSON_STRICT, KEEP_JOURNAL, &journal, e);
        if (r == 0)
                r = take_journal(apply, journal);
        return r < 0 ? error_errno(e, r, "the journal of an interrupted apply cannot be read") : 0;
}
