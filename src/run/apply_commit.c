/* SPDX-License-Identifier: Apache-2.0 */
#include "run/apply_parts.h"

#include <signal.h>
#include <sys/stat.h>

#include "core/verdict.h"
#include "run/audit.h"

/* From "done" on there is no way back: what was before is removed. */
static int leave(Apply *apply, Error *e)
{
        int r = apply_sync_names(apply);

        if (r == 0 && apply->phase == JOURNAL_COMMIT)
                r = apply_journal_write(apply, JOURNAL_DONE);
        if (r == 0)
                r = workplace_stage_end(apply->place);
        if (r == 0)
                r = apply_journal_drop(apply);
        return r < 0 ? error_errno(e, r, "what was staged in the workspace cannot be removed") : 0;
}

/* The first sentence stays: it says why. */
static int take_back(Apply *apply, size_t done, int why, Error *e)
{
        Error second = ERROR_INIT;
        int r = apply_journal_write(apply, JOURNAL_UNDO);

        if (r == 0)
                r = apply_undo_all(apply, done, &second);
        if (r == 0)
                r = leave(apply, &second);
        if (r < 0)
                return error_prefix(e, why,
                                "the workspace is half changed (%s); apply it again, or with --rollback; the cause was",
                                second.text[0] ? second.text : strerror(-r));
        return why == -EINTR ? error_set(e, why, "interrupted: the workspace is as it was")
                             : error_prefix(e, why, "the workspace is as it was");
}

static int give_up_staging(Apply *apply, int why, Error *e)
{
        int r = workplace_stage_end(apply->place);

        if (r == 0)
                r = apply_journal_drop(apply);
        if (why == -EINTR)
                return error_set(e, why, "interrupted: the workspace is as it was");
        return error_prefix(e, why, "nothing was changed");
}

static int stage_fresh(Apply *apply, Error *e)
{
        int r;

        /* What an apply left that did not get beyond staging. */
        if (apply->phase == JOURNAL_STAGE && workplace_stage_end(apply->place) < 0)
                return error_set(e, -EIO, "what an interrupted apply staged cannot be removed");
        /* Those that are in place already have no step. */
        for (size_t i = 0; i < apply->plan->n; i++)
                if (apply->plan->items[i].state == APPLY_SELECTED && apply->checks[i].found == FOUND_DONE)
                        apply->plan->items[i].state = APPLY_UNSELECTED;
        r = apply_plan_steps(apply->plan);
        if (r == 0)
                r = apply_journal_write(apply, JOURNAL_STAGE);
        if (r < 0)
                return error_errno(e, r, "the journal");
        r = apply_stage_all(apply, e);
        if (r < 0)
                return give_up_staging(apply, r, e);
        r = apply_journal_write(apply, JOURNAL_COMMIT);
        if (r < 0) {
                error_errno(e, r, "the journal");
                return give_up_staging(apply, r, e);
        }
        return 0;
}

static void block_signals(void)
{
        sigset_t set;

        (void) sigemptyset(&set);
        (void) sigaddset(&set, SIGINT);
        (void) sigaddset(&set, SIGTERM);
        (void) sigaddset(&set, SIGHUP);
        (void) sigprocmask(SIG_BLOCK, &set, NULL);
}

/* --- in the audit trail --- */

/* As it stands before anything is done: of an interrupted apply also what is there already is of its doing.
 */
static AuditApply describe(const Apply *apply, bool undo)
{
        const KeptInfo *info = &apply->info;
        bool forced = !streq(info->verdict, verdict_names[VERDICT_PASS]);
        AuditApply audit = {
                .run_id = apply->plan->run_id,
                .job_id = info->job_id,
                .verdict = info->verdict,
                .workspace = info->workspace,
                .receipt_sha256 = info->receipt_sha256,
                .receipt = apply->receipt,
                .held = apply_is_resumed(apply) ? UNKNOWN : apply_count_held(apply),
                .undo = undo,
        };

        for (size_t i = 0; !undo && i < apply->plan->n; i++) {
                const ApplyChange *change = &apply->plan->items[i];

                if (change->state != APPLY_SELECTED ||
                                (apply->checks[i].found == FOUND_DONE && !apply_is_resumed(apply)))
                        continue;
                audit.changes++;
                audit.forced += forced || change->forced;
        }
        return audit;
}

static void record(Apply *apply, const AuditApply *audit, AuditResult result)
{
        int r = audit_apply(audit, result);

        if (apply->recorded >= 0)
                apply->recorded = r;
}

/* What came of it is what the journal beside the layer says: without one the workspace is whole, and from
 * "done" on all of it is there. */
static AuditResult result_of(const Apply *apply, const AuditApply *audit, int r)
{
        if (r < 0 && apply->phase != JOURNAL_DONE)
                return apply->phase == JOURNAL_NONE ? AUDIT_RESULT_TAKEN_BACK : AUDIT_RESULT_HALF;
        return audit->undo ? AUDIT_RESULT_ROLLED_BACK : AUDIT_RESULT_APPLIED;
}

static int recorded(Apply *apply, bool undo, int (*act)(Apply *apply, Error *e), Error *e)
{
        AuditApply audit = describe(apply, undo);
        int r;

        record(apply, &audit, _AUDIT_RESULT_MAX);
        r = act(apply, e);
        record(apply, &audit, result_of(apply, &audit, r));
        return r;
}

/* --- */

static int go_on(Apply *apply, Error *e)
{
        size_t done;
        int r;

        if (apply->phase == JOURNAL_DONE)
                return leave(apply, e);
        if (apply->phase == JOURNAL_COMMIT) {
                r = apply_plan_steps(apply->plan);
                if (r == 0)
                        r = apply_stage_missing(apply, e);
                if (r < 0)
                        return error_prefix(e, r,
                                        "the interrupted apply cannot go on (--rollback takes it back)");
        } else {
                r = stage_fresh(apply, e);
                if (r < 0)
                        return r;
        }
        r = apply_do_all(apply, &done, e);
        return r < 0 ? take_back(apply, done, r, e) : leave(apply, e);
}

int apply_commit(Apply *apply, Error *e)
{
        if (apply->phase == JOURNAL_UNDO)
                return apply_rollback(apply, e);
        (void) umask(0);
        block_signals();
        return recorded(apply, false, go_on, e);
}

static int go_back(Apply *apply, Error *e)
{
        int r;

        if (apply->phase == JOURNAL_STAGE) {
                r = workplace_stage_end(apply->place);
                if (r == 0)
                        r = apply_journal_drop(apply);
                return r < 0 ? error_errno(e, r, "what was staged cannot be removed") : 0;
        }
        r = apply_plan_steps(apply->plan);
        if (r == 0)
                r = workplace_stage_open(apply->place);
        if (r == -ENOENT)
                r = 0;
        if (r == 0)
                r = apply_journal_write(apply, JOURNAL_UNDO);
        if (r < 0)
                return error_errno(e, r, "the interrupted apply");
        r = apply_undo_all(apply, apply->plan->n_steps, e);
        return r < 0 ? r : leave(apply, e);
}

int apply_rollback(Apply *apply, Error *e)
{
        (void) umask(0);
        block_signals();
        if (apply->phase == JOURNAL_NONE)
                return error_set(e, -EALREADY,
                                "no apply of this receipt was interrupted: there is nothing to take back");
        if (apply->phase == JOURNAL_DONE)
                return error_set(e, -EALREADY, "the apply was complete: there is nothing to take back");
        return recorded(apply, true, go_back, e);
}
