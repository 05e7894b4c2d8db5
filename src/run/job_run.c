/* SPDX-License-Identifier: Apache-2.0 */
#include "run/job_run.h"

#include <fcntl.h>

#include "run/audit.h"
#include "run/planning.h"
#include "sys/file.h"
#include "sys/host.h"

void job_run_result_clear(JobRunResult *result)
{
        cJSON_Delete(result->receipt);
        cJSON_Delete(result->summary);
        free(result->text);
        free(result->receipt_path);
        *result = (JobRunResult){ 0 };
}

/* The state directory and its receipts/, private to their owner. */
static int make_state_dir(const char *given, bool wanted, char **ret, Error *e)
{
        _cleanup_free_ char *dir = NULL, *receipts = NULL;
        const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
        int r;

        if (given)
                dir = strdup(given);
        else if (geteuid() == 0)
                dir = strdup(STATE_DIR);
        else if (state && *state == '/')
                dir = text_printf("%s/qscope", state);
        else if (home && *home == '/')
                dir = text_printf("%s/.local/state/qscope", home);
        else
                return error_set(e, -ENOENT, "no place for receipts: set HOME or pass --state-dir");
        receipts = dir ? text_printf("%s/receipts", dir) : NULL;
        if (!receipts)
                return -ENOMEM;
        /* Only root keeps more there than receipts. */
        if (!wanted && geteuid() != 0) {
                *ret = TAKE_PTR(dir);
                return 0;
        }
        r = mkdir_parents_at(AT_FDCWD, receipts, 0700, geteuid(), getegid(), NULL);
        if (r < 0)
                return error_errno(e, r, "%s cannot be made; pass another --state-dir", receipts);
        *ret = TAKE_PTR(dir);
        return 0;
}

typedef struct Context {
        const JobRunOptions *options;
        Planning planning;
        const Plan *plan; /* of the planning */
        Outcome *outcome;
        PendingFile *pending;
        char *state_dir;
        bool started;          /* so says the journal, which does not say yet how it ended */
        uint64_t judging_usec; /* CLOCK_MONOTONIC when the run was over */
} Context;

static void context_clear(Context *c)
{
        pending_file_free(c->pending);
        outcome_free(c->outcome);
        planning_clear(&c->planning);
        free(c->state_dir);
}

/* Before anything is started: a run whose receipt could not be written must not be. */
static int open_receipt(Context *c, Error *e)
{
        _cleanup_free_ char *path = NULL;

        if (c->options->receipt_path && streq(c->options->receipt_path, "-"))
                return 0;
        if (c->options->receipt_path)
                return pending_file_open(c->options->receipt_path, &c->pending, e);
        path = text_printf("%s/receipts/%s.json", c->state_dir, c->plan->job_id);
        return path ? pending_file_open(path, &c->pending, e) : -ENOMEM;
}

static int check_terminal(const Plan *plan, Error *e)
{
        if (plan->posture != POSTURE_BOUNDED)
                return error_set(e, -EINVAL, "--tty: only a job in the posture bounded can have a terminal");
        if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
                return error_set(e, -EINVAL, "--tty: standard input and output must be a terminal");
        return 0;
}

static int execute(Context *c, Error *e)
{
        RunOptions options = { .state_dir = c->state_dir,
                .job_dir = c->options->job_dir,
                .trusted = c->options->trusted,
                .tty = c->options->tty };
        int r;

        c->outcome = outcome_new();
        if (!c->outcome)
                return -ENOMEM;
        if (c->plan->refusals.n > 0) {
                c->outcome->started_realtime_usec = c->outcome->finished_realtime_usec = now_realtime();
                return host_read(&c->outcome->host);
        }
        r = audit_started(c->plan);
        if (r < 0)
                r = outcome_blind_spot(c->outcome, "audit: this run is not recorded in the journal: %s",
                                strerror(-r));
        if (r < 0)
                return r;
        c->started = true;
        r = run_execute(c->plan, &options, c->outcome);
        return r < 0 ? error_errno(e, r, "the run") : 0;
}

static int write_receipt(Context *c, const Judgement *judgement, JobRunResult *ret)
{
        int r;

        /* What comes after this cannot be in the text any more. */
        c->outcome->phase_usec[PHASE_WRITE] = now_monotonic() - c->judging_usec;
        ret->receipt = receipt_build(c->plan, c->outcome, judgement);
        ret->text = ret->receipt ? json_print(ret->receipt, true) : NULL;
        if (!ret->text)
                return -ENOMEM;
        ret->exit_status = verdict_exit_status(judgement, c->outcome);
        if (c->pending) {
                r = pending_file_commit(c->pending, ret->text, strlen(ret->text),
                                c->options->receipt_path != NULL, &ret->receipt_path, &ret->error);
                if (r < 0) {
                        /* What cannot be shown afterwards did not happen as agreed. */
                        error_prefix(&ret->error, r, "the receipt is lost");
                        ret->exit_status = 4;
                }
        }
        audit_ended(c->plan, c->outcome, judgement, ret->receipt_path, ret->text,
                        c->pending && !ret->receipt_path);
        c->started = false;
        ret->summary = receipt_summary(c->plan, judgement, ret->receipt_path);
        return ret->summary ? 0 : -ENOMEM;
}

int job_run(Job *job, const JobRunOptions *options, JobRunResult *ret, Error *e)
{
        _cleanup_(context_clear) Context c = { .options = options };
        _cleanup_(judgement_freep) Judgement *judgement = NULL;
        int r;

        *ret = (JobRunResult){ 0 };
        /* From here on there will be a receipt, whoever interrupts: the run looks at what is pending. */
        r = run_block_signals();
        if (r == 0)
                r = planning_make(job, options->policy, &c.planning, e);
        c.plan = c.planning.plan;
        if (r == 0 && options->tty)
                r = check_terminal(c.plan, e);
        if (r == 0)
                r = make_state_dir(options->state_dir, !options->receipt_path, &c.state_dir, e);
        if (r == 0)
                r = open_receipt(&c, e);
        if (r == 0)
                r = execute(&c, e);
        c.judging_usec = now_monotonic();
        if (r == 0)
                r = judge(c.plan, c.outcome, &judgement);
        if (r == 0)
                r = write_receipt(&c, judgement, ret);
        if (r < 0 && e->text[0] == '\0')
                error_errno(e, r, "the run");
        if (r < 0 && c.started)
                audit_broken(c.plan, e->text);
        return r;
}
