/* SPDX-License-Identifier: Apache-2.0 */
/* What was done is read from the workspace, never from memory: so the same code finishes and takes back what
 * a killed apply left. */
#include "run/apply_parts.h"

#include <signal.h>

#include "sys/kept.h"

#define SYNC_EACH_MAX 32u /* more than these are synchronised with all else on the file system */

/* --- staging --- */

static int stage_one(Apply *apply, size_t index, bool sync, Error *e)
{
        const ApplyChange *change = &apply->plan->items[index],
                          *first = apply_first_link(apply->plan, change);
        _cleanup_close_ int fd = -EBADF;
        bool had_file = change->before.exists && change->before.type == FILE_REGULAR;
        int r;

        if (change->after.type == FILE_SYMLINK)
                r = workplace_stage_link(apply->place, index, change->after.target);
        else if (first && apply->checks[first - apply->plan->items].found == FOUND_TODO)
                r = workplace_stage_name(apply->place, index, (size_t) (first - apply->plan->items));
        else {
                r = kept_open_content(apply->layer_fd, change->after.sha256, &fd);
                if (r == 0)
                        r = workplace_stage_file(apply->place, index, fd, &change->after, apply_mode(change),
                                        had_file ? change->path : NULL, sync);
        }
        if (r == -EBADMSG || r == -ENOENT)
                return error_set(e, r, "%s: what was kept of it is damaged", change->path);
        return r < 0 ? error_errno(e, r, "%s", change->path) : 0;
}

static bool is_staged_kind(const ApplyStep *step)
{
        return step->kind == STEP_PUT || step->kind == STEP_EXCHANGE;
}

static size_t count_staged(const ApplyPlan *plan)
{
        size_t n = 0;

        for (size_t i = 0; i < plan->n_steps; i++)
                n += is_staged_kind(&plan->steps[i]);
        return n;
}

static int pending_signal(void)
{
        sigset_t set;

        if (sigpending(&set) < 0)
                return 0;
        for (int number = 1; number < NSIG; number++)
                if ((number == SIGINT || number == SIGTERM || number == SIGHUP) &&
                                sigismember(&set, number) == 1)
                        return -EINTR;
        return 0;
}

int apply_stage_all(Apply *apply, Error *e)
{
        const ApplyPlan *plan = apply->plan;
        bool sync_each = count_staged(plan) <= SYNC_EACH_MAX;
        int r = workplace_stage_begin(apply->place, e);

        for (size_t i = 0; r == 0 && i < plan->n_steps; i++) {
                if (is_staged_kind(&plan->steps[i]) &&
                                apply->checks[plan->steps[i].change].found == FOUND_TODO)
                        r = stage_one(apply, plan->steps[i].change, sync_each, e);
                if (r == 0)
                        r = pending_signal();
        }
        if (r == 0 && !sync_each) {
                r = workplace_sync(apply->place);
                if (r < 0)
                        error_errno(e, r, "the workspace cannot be synchronised");
        }
        return r;
}

/* What is still to be put must be there as it was staged; of a power loss nobody knows. */
int apply_stage_missing(Apply *apply, Error *e)
{
        const ApplyPlan *plan = apply->plan;
        int r = workplace_stage_open(apply->place);

        if (r == -ENOENT)
                r = workplace_stage_begin(apply->place, e);
        for (size_t i = 0; r == 0 && i < plan->n_steps; i++) {
                const ApplyChange *change = &plan->items[plan->steps[i].change];
                const char *unused;
                WorkLook staged;
                bool good;

                if (!is_staged_kind(&plan->steps[i]) ||
                                apply->checks[plan->steps[i].change].found != FOUND_TODO)
                        continue;
                r = workplace_look_staged(apply->place, plan->steps[i].change, &change->after, NULL, &staged);
                good = r == 0 && apply_matches(&staged.node, &change->after, apply_mode(change), &unused);
                work_look_clear(&staged);
                if (good)
                        continue;
                if (r == 0)
                        r = workplace_unstage(apply->place, plan->steps[i].change);
                if (r == 0)
                        r = stage_one(apply, plan->steps[i].change, true, e);
        }
        return r;
}

/* Names that were changed are on the disk before what they replaced is given up. */
int apply_sync_names(Apply *apply)
{
        const ApplyPlan *plan = apply->plan;
        int r = 0;

        if (plan->n_steps > SYNC_EACH_MAX)
                return workplace_sync(apply->place);
        for (size_t i = 0; r == 0 && i < plan->n_steps; i++)
                r = workplace_sync_above(apply->place, plan->items[plan->steps[i].change].path);
        return r;
}

/* --- the steps --- */

static int collide(const ApplyChange *change, Error *e)
{
        return error_set(e, -ESTALE, "%s: changed at the last moment", change->path);
}

/* What came out must be what was looked at; otherwise it goes back. */
static int verify_taken(Apply *apply, const ApplyStep *step, Error *e)
{
        const ApplyChange *change = &apply->plan->items[step->change];
        WorkAction back = step->kind == STEP_EXCHANGE ? WORK_EXCHANGE : WORK_GIVE;
        int r;

        if (workplace_is_staged(apply->place, step->change, &apply->looks[step->change]))
                return 0;
        r = workplace_do(apply->place, back, change->path, step->change, 0);
        return r < 0 ? error_errno(e, r, "%s: changed at the last moment, and cannot be put back",
                                       change->path)
                     : collide(change, e);
}

/* What was looked at a moment ago is not there any more, or something else is. */
static bool is_collision(int r)
{
        static const int codes[] = { -EEXIST, -ENOTEMPTY, -ESTALE, -ELOOP, -ENOENT, -ENOTDIR, -EXDEV };

        for (size_t i = 0; i < ELEMENTSOF(codes); i++)
                if (r == codes[i])
                        return true;
        return false;
}

static int do_step(Apply *apply, const ApplyStep *step, Error *e)
{
        const ApplyChange *change = &apply->plan->items[step->change];
        Workplace *place = apply->place;
        size_t n = step->change;
        int r = 0;

        switch (step->kind) {
        case STEP_OPEN:
                r = workplace_do(place, WORK_CHMOD, change->path, n, change->before.mode | 0700);
                break;
        case STEP_REMOVE:
                r = workplace_do(place, WORK_TAKE, change->path, n, 0);
                if (r == 0)
                        return verify_taken(apply, step, e);
                break;
        case STEP_RMDIR:
                r = workplace_do(place, WORK_RMDIR, change->path, n, 0);
                break;
        case STEP_MKDIR:
                r = workplace_do(place, WORK_MKDIR, change->path, n, apply_mode(change) | 0700);
                break;
        case STEP_PUT:
                r = workplace_do(place, WORK_GIVE, change->path, n, 0);
                break;
        case STEP_EXCHANGE:
                r = workplace_do(place, WORK_EXCHANGE, change->path, n, 0);
                if (r == 0)
                        return verify_taken(apply, step, e);
                break;
        case STEP_MODE:
                r = workplace_do(place, WORK_CHMOD, change->path, n, apply_mode(change));
                break;
        case _STEP_MAX:
                break;
        }
        return is_collision(r) ? collide(change, e) : r < 0 ? error_errno(e, r, "%s", change->path) : 0;
}

/* By an apply that was interrupted. */
static bool is_done(const Apply *apply, const ApplyStep *step)
{
        const ApplyNode *found = &apply->looks[step->change].node;

        switch (step->kind) {
        case STEP_REMOVE:
                return !found->exists || apply_is_directory(found);
        case STEP_RMDIR:
                return !apply_is_directory(found);
        case STEP_MKDIR:
                return apply_is_directory(found);
        case STEP_PUT:
        case STEP_EXCHANGE:
                return apply->checks[step->change].found == FOUND_DONE;
        default:
                return false; /* to be done twice does no harm */
        }
}

/* *ret_done: the steps before the one that failed. */
int apply_do_all(Apply *apply, size_t *ret_done, Error *e)
{
        const ApplyPlan *plan = apply->plan;
        int r = 0;

        for (*ret_done = 0; *ret_done < plan->n_steps; (*ret_done)++) {
                const ApplyStep *step = &plan->steps[*ret_done];

                r = pending_signal();
                if (r == 0 && !is_done(apply, step))
                        r = do_step(apply, step, e);
                if (r < 0)
                        break;
        }
        return r;
}

/* --- back --- */

static int undo_swap(Apply *apply, size_t n, const ApplyChange *change, bool there)
{
        const char *unused;
        WorkLook staged;
        bool backed;
        int r = workplace_look_staged(apply->place, n, &change->before, NULL, &staged);

        backed = r == 0 && apply_matches(&staged.node, &change->before, change->before.mode, &unused);
        work_look_clear(&staged);
        if (!backed)
                return -ESTALE;
        return workplace_do(apply->place, there ? WORK_EXCHANGE : WORK_GIVE, change->path, n, 0);
}

static int undo_put(Apply *apply, size_t n, const ApplyChange *change)
{
        int r = workplace_unstage(apply->place, n);

        return r < 0 ? r : workplace_do(apply->place, WORK_TAKE, change->path, n, 0);
}

/* What the workspace says was done is undone; what it says was not is left; and what is neither is nobody's
 * but the user's: -ESTALE. */
static int undo_step(Apply *apply, const ApplyStep *step)
{
        const ApplyChange *change = &apply->plan->items[step->change];
        const ApplyNode *before = &change->before, *after = &change->after;
        const char *unused;
        size_t n = step->change;
        bool is_before, is_after, is_kept;
        WorkLook look;
        int r = workplace_look(apply->place, change->path, before, after, &look);

        if (r < 0)
                return r == -ELOOP || r == -EXDEV ? -ESTALE : r;
        is_before = apply_matches(&look.node, before, before->mode, &unused);
        is_after = apply_matches(&look.node, after, apply_mode(change), &unused);
        is_kept = apply_is_directory(before) && apply_is_directory(&look.node); /* was to go, and did not */
        if (apply_is_directory(&look.node))
                is_before = is_after = false; /* its mode says nothing while it is going on */
        switch (step->kind) {
        case STEP_REMOVE:
                r = is_before ? 0 : look.node.exists ? -ESTALE : undo_swap(apply, n, change, false);
                break;
        case STEP_RMDIR:
                r = look.node.exists ? (look.node.type == FILE_DIRECTORY ? 0 : -ESTALE)
                                     : workplace_do(apply->place, WORK_MKDIR, change->path, n,
                                                       before->mode | 0700);
                break;
        case STEP_MKDIR:
                r = look.node.exists && look.node.type == FILE_DIRECTORY
                                    ? workplace_do(apply->place, WORK_RMDIR, change->path, n, 0)
                                    : 0;
                break;
        case STEP_PUT:
                r = is_after ? undo_put(apply, n, change) : !look.node.exists || is_kept ? 0 : -ESTALE;
                break;
        case STEP_EXCHANGE:
                r = is_before ? 0 : is_after ? undo_swap(apply, n, change, true) : -ESTALE;
                break;
        case STEP_OPEN:
                if (apply_is_directory(&look.node))
                        r = workplace_do(apply->place, WORK_CHMOD, change->path, n, before->mode);
                break;
        case STEP_MODE: /* a directory stays open until all in it is taken back */
                if (apply_is_directory(&look.node) && apply_is_directory(after))
                        r = workplace_do(
                                        apply->place, WORK_CHMOD, change->path, n, apply_mode(change) | 0700);
                else if (is_after)
                        r = workplace_do(apply->place, WORK_CHMOD, change->path, n, before->mode);
                break;
        case _STEP_MAX:
                break;
        }
        work_look_clear(&look);
        return is_collision(r) ? -ESTALE : r;
}

/* Directories that were opened for the undoing get their modes back last. */
static void close_directories(Apply *apply)
{
        for (size_t i = apply->plan->n; i-- > 0;) {
                const ApplyChange *change = &apply->plan->items[i];

                if (change->state == APPLY_SELECTED && change->before.exists &&
                                change->before.type == FILE_DIRECTORY)
                        (void) workplace_do(apply->place, WORK_CHMOD, change->path, i, change->before.mode);
        }
}

/* The first n steps. */
int apply_undo_all(Apply *apply, size_t n, Error *e)
{
        const ApplyPlan *plan = apply->plan;
        size_t conflicts = 0;
        const char *first = NULL;

        for (size_t i = n; i-- > 0;) {
                int r = undo_step(apply, &plan->steps[i]);

                if (r == -ESTALE) {
                        first = first ? first : plan->items[plan->steps[i].change].path;
                        conflicts++;
                } else if (r < 0) {
                        return error_errno(e, r, "%s: cannot be taken back",
                                        plan->items[plan->steps[i].change].path);
                }
        }
        close_directories(apply);
        if (conflicts > 0)
                return error_set(e, -ESTALE,
                                "%zu of the changes could not be taken back, because the files have been changed since "
                                "(%s first); what they were before is in " APPLY_STAGING
                                "%s in the workspace",
                                conflicts, first, plan->run_id);
        return 0;
}
