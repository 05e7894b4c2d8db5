/* SPDX-License-Identifier: Apache-2.0 */
#include "run/apply.h"

#include <fcntl.h>

#include "core/autorun.h"
#include "core/plan.h"
#include "core/verdict.h"
#include "run/apply_parts.h"
#include "run/load.h"
#include "sys/file.h"
#include "sys/kept.h"

#define ATTRIBUTES_MAX KIB(256) /* of a .gitattributes that is looked into */

Apply *apply_free(Apply *apply)
{
        if (!apply)
                return NULL;
        for (size_t i = 0; apply->looks && i < apply->plan->n; i++)
                work_look_clear(&apply->looks[i]);
        free(apply->looks);
        free(apply->checks);
        free(apply->receipt);
        workplace_free(apply->place);
        safe_close(apply->layer_fd);
        safe_close(apply->all_fd);
        kept_info_clear(&apply->info);
        apply_plan_free(apply->plan);
        free(apply);
        return NULL;
}

const ApplyPlan *apply_plan(const Apply *apply)
{
        return apply->plan;
}

const KeptInfo *apply_info(const Apply *apply)
{
        return &apply->info;
}

const ApplyCheck *apply_check(const Apply *apply, size_t index)
{
        return &apply->checks[index];
}

bool apply_is_resumed(const Apply *apply)
{
        return apply->phase == JOURNAL_COMMIT || apply->phase == JOURNAL_UNDO || apply->phase == JOURNAL_DONE;
}

bool apply_is_undone(const Apply *apply)
{
        return apply->phase == JOURNAL_UNDO;
}

size_t apply_count(const Apply *apply, ApplyFound found)
{
        size_t n = 0;

        for (size_t i = 0; i < apply->plan->n; i++)
                n += (apply->plan->items[i].state == APPLY_SELECTED || found == FOUND_DONE) &&
                     apply->checks[i].found == found;
        return n;
}

bool apply_is_held(const Apply *apply, size_t index)
{
        ApplyState state = apply->plan->items[index].state;

        return state != APPLY_SELECTED && state != APPLY_UNSELECTED &&
               apply->checks[index].found != FOUND_DONE;
}

size_t apply_count_held(const Apply *apply)
{
        size_t n = 0;

        for (size_t i = 0; i < apply->plan->n; i++)
                n += apply_is_held(apply, i);
        return n;
}

int apply_recorded(const Apply *apply)
{
        return apply->recorded;
}

/* --- the receipt and its layer --- */

/* The receipt says which run it is of; everything else about where and what is believed only because its
 * digest is the one that was written beside the layer. */
static int find_layer(Apply *apply, const char *state_dir, const char *text, size_t size, bool look, Error *e)
{
        const char *run_id = apply->plan->run_id;
        char sha256[HASH_HEX_MAX];
        int r;

        if (!state_dir)
                state_dir = STATE_DIR;
        r = kept_open_all(state_dir, &apply->all_fd);
        if (r == 0)
                r = look ? kept_peek(apply->all_fd, run_id, &apply->layer_fd)
                         : kept_open(apply->all_fd, run_id, &apply->layer_fd);
        if (r == -ENOENT)
                return error_set(e, r, "nothing is kept of this run: %s", apply->plan->no_layer);
        if (r == -EBUSY)
                return error_set(e, r, "another qscope is working with the layer of this run");
        if (r < 0)
                return error_errno(e, r, "%s/" KEPT_DIR, state_dir);
        r = kept_read_info(apply->layer_fd, run_id, &apply->info, e);
        if (r < 0)
                return r;
        hash_data(text, size, sha256);
        if (!streq(sha256, apply->info.receipt_sha256))
                return error_set(e, -EBADMSG,
                                "it is not what was written when the run ended (its SHA-256 is another): nothing of it is "
                                "believed");
        return 0;
}

static int read_receipt(Apply *apply, const char *path, char **ret_text, size_t *ret_size, Error *e)
{
        _cleanup_(cJSON_Deletep) cJSON *receipt = NULL;
        int r = load_receipt_text(path, ret_text, ret_size, &receipt, e);

        return r < 0 ? r : apply_plan_read(receipt, &apply->plan, e);
}

static int check_verdict(const Apply *apply, bool force, Error *e)
{
        if (force || streq(apply->info.verdict, verdict_names[VERDICT_PASS]))
                return 0;
        return error_set(e, -EPERM,
                        "the verdict is \"%s\": only a pass is applied (qscope explain says why; --force applies what "
                        "was agreed all the same, --dry-run --force shows it)",
                        apply->info.verdict);
}

/* --- opening --- */

static int look_into_attributes(Apply *apply, ApplyChange *change)
{
        _cleanup_free_ char *data = NULL;
        size_t size;
        int r;

        if (change->state != APPLY_SELECTED || !change->after.exists || change->after.type != FILE_REGULAR ||
                        !change->content || !autorun_by_content(change->path))
                return 0;
        r = apply_read_after(apply, change, ATTRIBUTES_MAX, &data, &size);
        if (r == -ENOMEM)
                return r;
        if (r < 0 || autorun_content(data, size))
                apply_hold_content(change, "git would take the name of a filter from it");
        return 0;
}

static int select_changes(Apply *apply, const ApplyOptions *options, const char *cwd, Error *e)
{
        int r;

        if (apply_is_resumed(apply)) {
                if (options->select)
                        return error_set(e, -EALREADY,
                                        "an apply of this receipt was interrupted: finish it without --select, or take it "
                                        "back with --rollback");
                return 0;
        }
        r = apply_plan_select(apply->plan, options->select, cwd, e);
        for (size_t i = 0; r == 0 && i < apply->plan->n; i++)
                r = look_into_attributes(apply, &apply->plan->items[i]);
        return r;
}

static int exit_status(int r)
{
        switch (r) {
        case -EINVAL:
        case -E2BIG:
        case -EISDIR:
        case -EFBIG:
                return 2;
        case -ENOENT:
        case -EBUSY:
        case -EBADMSG:
        case -EPERM:
        case -ELOOP:
        case -EALREADY:
                return 3;
        default:
                return 4;
        }
}

static Apply *apply_new(void)
{
        Apply *apply = calloc(1, sizeof(*apply));

        if (apply) {
                apply->all_fd = apply->layer_fd = -EBADF;
                apply->recorded = 1;
        }
        return apply;
}

int apply_open(const ApplyOptions *options, Apply **ret, int *ret_status, Error *e)
{
        _cleanup_(apply_freep) Apply *apply = apply_new();
        _cleanup_free_ char *text = NULL;
        size_t size = 0;
        int r;

        *ret_status = 4;
        if (!apply)
                return -ENOMEM;
        apply->receipt = realpath(options->receipt_path, NULL);
        r = read_receipt(apply, options->receipt_path, &text, &size, e);
        if (r < 0) {
                *ret_status = r == -ENOMEM ? 4 : 2;
                return r;
        }
        apply->checks = calloc(apply->plan->n + 1, sizeof(*apply->checks));
        apply->looks = calloc(apply->plan->n + 1, sizeof(*apply->looks));
        if (!apply->checks || !apply->looks)
                return -ENOMEM;
        r = find_layer(apply, options->state_dir, text, size, false, e);
        if (r < 0)
                error_prefix(e, r, "%s", options->receipt_path);
        if (r == 0)
                r = check_verdict(apply, options->force || options->rollback, e);
        if (r == 0)
                r = apply_journal_read(apply, e);
        if (r == 0)
                r = workplace_open(apply->info.workspace, apply->plan->run_id, &apply->place, e);
        if (r == 0)
                r = select_changes(apply, options, apply->info.workspace, e);
        if (r == 0)
                r = apply_check_all(apply, e);
        if (r < 0) {
                *ret_status = exit_status(r);
                return r;
        }
        *ret = TAKE_PTR(apply);
        return 0;
}

int apply_look(const cJSON *receipt, const char *text, size_t size, const char *state_dir, Apply **ret,
                Error *e)
{
        _cleanup_(apply_freep) Apply *apply = apply_new();
        int r = apply ? apply_plan_read(receipt, &apply->plan, e) : -ENOMEM;

        if (r == 0)
                r = find_layer(apply, state_dir, text, size, true, e);
        if (r < 0)
                return r;
        r = workplace_open(apply->info.workspace, apply->plan->run_id, &apply->place, NULL);
        if (r == -ENOMEM)
                return r;
        *ret = TAKE_PTR(apply);
        return 0;
}

const char *apply_workspace(const Apply *apply)
{
        return apply->info.workspace;
}

int apply_read_after(const Apply *apply, const ApplyChange *change, size_t max, char **ret, size_t *ret_size)
{
        _cleanup_close_ int fd = -EBADF;
        int r = kept_open_content(apply->layer_fd, change->after.sha256, &fd);

        return r < 0 ? r : file_read_fd(fd, max, ret, ret_size);
}

int apply_finish(Apply *apply, bool *ret_removed, Error *e)
{
        int r;

        *ret_removed = false;
        for (size_t i = 0; i < apply->plan->n; i++) {
                const ApplyChange *change = &apply->plan->items[i];

                if (!apply->checks[i].looked && change->state != APPLY_UNABLE &&
                                !apply_is_there(apply, change))
                        return 0;
        }
        r = kept_remove(apply->all_fd, apply->plan->run_id);
        *ret_removed = r == 0;
        return r < 0 ? error_errno(e, r, "the layer cannot be removed") : 0;
}
