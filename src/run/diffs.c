/* SPDX-License-Identifier: Apache-2.0 */
#include "run/diffs.h"

#include "base/text.h"
#include "core/receipt_view.h"
#include "run/apply.h"

typedef struct Diffs {
        const Apply *apply;
        DiffRoom *page;
        cJSON *files; /* of the document */
        size_t shown; /* room of this receipt */
        uint64_t n, left_out;
} Diffs;

/* The beginning of it, up to the end of a character. */
static bool cut(char *text, size_t most)
{
        if (strlen(text) <= most)
                return false;
        while (most > 0 && ((unsigned char) text[most] & 0xc0u) == 0x80u)
                most--;
        text[most] = '\0';
        return true;
}

static bool has_room(const Diffs *d, const ApplyChange *change)
{
        uint64_t bytes = change->before.size;

        return d->shown > 0 && d->page->shown > 0 && d->n < DIFFS_COUNT_MAX &&
               !__builtin_add_overflow(bytes, change->after.size, &bytes) && bytes <= d->page->read;
}

static int add(Diffs *d, const ApplyChange *change, ApplyDiff *diff)
{
        size_t room = MIN(d->shown, d->page->shown), most = MIN(room, (size_t) DIFF_BYTES_MAX);
        bool is_cut = diff->text && cut(diff->text, most);
        size_t length = diff->text ? strlen(diff->text) : 0;
        cJSON *file = json_add_object(d->files, NULL);

        d->n++;
        d->shown -= length;
        d->page->shown -= length;
        if (!file || json_add_text(file, "path", change->path) < 0 ||
                        json_add_text(file, diff->text ? "text" : "why",
                                        diff->text ? diff->text : diff->why) < 0 ||
                        json_add_bool(file, "cut", is_cut) < 0)
                return -ENOMEM;
        return 0;
}

/* A name that is no text would be shown with the diff of another. */
static int add_change(Diffs *d, const ApplyChange *change)
{
        _cleanup_(apply_diff_clear) ApplyDiff diff = { 0 };
        int r;

        if (!apply_has_diff(change))
                return 0;
        if (!has_room(d, change) || !utf8_is_valid(change->path, strlen(change->path))) {
                d->left_out++;
                return 0;
        }
        if (change->before.size <= DIFFS_PAGE_READ && change->after.size <= DIFFS_PAGE_READ)
                d->page->read -= (size_t) (change->before.size + change->after.size);
        r = apply_diff(d->apply, change, false, &diff);
        return r < 0 ? r : add(d, change, &diff);
}

static int add_all(const Apply *apply, DiffRoom *page, cJSON *document)
{
        const ApplyPlan *plan = apply_plan(apply);
        Diffs d = { .apply = apply, .page = page, .shown = DIFFS_BYTES_MAX };
        int r = 0;

        d.files = json_add_array(document, "files");
        if (!d.files)
                return -ENOMEM;
        for (size_t i = 0; r == 0 && i < plan->n; i++)
                r = add_change(&d, &plan->items[i]);
        return r < 0 ? r : json_add_u64(document, "left_out", d.left_out);
}

static bool changed_something(const cJSON *receipt)
{
        static const char *const lists[] = { "added", "removed", "changed" };
        const cJSON *fs = view_get(receipt, "fs");
        size_t n = 0;

        for (size_t i = 0; i < ELEMENTSOF(lists); i++)
                n += view_length(view_get(fs, lists[i]));
        return n > 0;
}

int diffs_make(const cJSON *receipt, const char *text, size_t size, const char *state_dir, DiffRoom *room,
                cJSON **ret)
{
        _cleanup_(cJSON_Deletep) cJSON *document = NULL;
        _cleanup_(apply_freep) Apply *apply = NULL;
        Error e = ERROR_INIT;
        int r;

        *ret = NULL;
        if (!changed_something(receipt))
                return 0;
        document = cJSON_CreateObject();
        r = document ? apply_look(receipt, text, size, state_dir, &apply, &e) : -ENOMEM;
        if (r == -ENOMEM)
                return r;
        r = apply ? add_all(apply, room, document)
                  : json_add_text(document, "note",
                                    r == -EACCES ? "what is kept of a run is root's: only root can show it"
                                                 : e.text);
        if (r == 0)
                *ret = TAKE_PTR(document);
        return r;
}
