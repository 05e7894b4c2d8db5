/* SPDX-License-Identifier: Apache-2.0 */
#include "run/job_run.h"

#include <fcntl.h>
#include <sys/stat.h>

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
        Engine *engine;
        JobRunOptions options;
        JobRunHandler handler;
        void *userdata;
        Planning planning;
        const Plan *plan; /* of the planning */
        Outcome *outcome;
        PendingFile *pending;
        Keep *keep;
        char *state_dir;
        bool started; /* so says the journal, which does not say yet how it ended */
} Context;

static Context *context_free(Context *c)
{
        if (!c)
                return NULL;
        pending_file_free(c->pending);
        keep_free(c->keep);
        outcome_free(c->outcome);
        planning_clear(&c->planning);
        free(c->state_dir);
        free(c);
        return NULL;
}

DEFINE_CLEANUP(Context *, context_free)

/* Before anything is started: a run whose receipt could not be written must not be. */
static int open_receipt(Context *c, Error *e)
{
        const char *given = c->options.receipt_path;
        _cleanup_free_ char *path = NULL;
        mode_t own;
        int r;

        if (given && streq(given, "-"))
                return 0;
        if (given)
                path = strdup(given);
        else if (c->options.receipts_dir)
                path = text_printf("%s/%s.json", c->options.receipts_dir, c->plan->job_id);
        else
                path = text_printf("%s/receipts/%s.json", c->state_dir, c->plan->job_id);
        if (!path)
                return -ENOMEM;
        own = umask((mode_t) engine_caller_umask(c->engine));
        r = pending_file_open(path, &c->pending, e);
        (void) umask(own);
        return r;
}

static int check_terminal(const Plan *plan, Error *e)
{
        if (plan->posture != POSTURE_BOUNDED)
                return error_set(e, -EINVAL, "--tty: only a job in the posture bounded can have a terminal");
        if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
                return error_set(e, -EINVAL, "--tty: standard input and output must be a terminal");
        return 0;
}

static int build_receipt(Context *c, const Judgement *judgement, JobRunResult *ret)
{
        cJSON_Delete(ret->receipt);
        free(ret->text);
        ret->receipt = receipt_build(c->plan, c->outcome, judgement);
        ret->text = ret->receipt ? json_print(ret->receipt, true) : NULL;
        return ret->text ? 0 : -ENOMEM;
}

/* What cannot be shown afterwards did not happen as agreed: whoever is told of this run is told of an error.
 */
static int lose_receipt(Context *c, Judgement *judgement, JobRunResult *ret)
{
        int r = reason_add(&judgement->reasons, "receipt_failed", "%s", ret->error.text);

        judgement->verdict = VERDICT_ERROR;
        ret->exit_status = 4;
        return r < 0 ? r : build_receipt(c, judgement, ret);
}

static int write_receipt(Context *c, Judgement *judgement, uint64_t judging_usec, JobRunResult *ret)
{
        bool lost = false;
        int r;

        /* What comes after this cannot be in the text any more. */
        c->outcome->phase_usec[PHASE_WRITE] = now_monotonic() - judging_usec;
        r = build_receipt(c, judgement, ret);
        if (r < 0)
                return r;
        ret->exit_status = verdict_exit_status(judgement, c->outcome);
        if (c->pending) {
                r = pending_file_commit(c->pending, ret->text, strlen(ret->text),
                                c->options.receipt_path != NULL, &ret->receipt_path, &ret->error);
                lost = r < 0;
                if (lost)
                        error_prefix(&ret->error, r, "the receipt is lost");
        }
        /* Without the receipt nobody could apply it. */
        if (!c->pending || ret->receipt_path)
                (void) keep_commit(c->keep, c->plan, judgement, ret->text, &ret->error);
        audit_ended(c->plan, c->outcome, judgement, ret->receipt_path, ret->text, lost);
        c->started = false;
        r = lost ? lose_receipt(c, judgement, ret) : 0;
        if (r < 0)
                return r;
        ret->summary = receipt_summary(c->plan, judgement, ret->receipt_path);
        return ret->summary ? 0 : -ENOMEM;
}

static void on_ended(void *userdata, bool dismissed)
{
        _cleanup_(context_freep) Context *c = userdata;
        _cleanup_(judgement_freep) Judgement *judgement = NULL;
        _cleanup_(job_run_result_clear) JobRunResult result = { 0 };
        uint64_t judging_usec = now_monotonic();
        Error e = ERROR_INIT;
        int r = dismissed ? error_set(&e, -ECANCELED, "dismissed before its turn: nothing of it was executed")
                          : judge(c->plan, c->outcome, &judgement);

        if (r == 0)
                r = write_receipt(c, judgement, judging_usec, &result);
        if (r < 0 && !dismissed)
                error_errno(&e, r, "the run");
        if (r < 0 && c->started && dismissed)
                audit_dismissed(c->plan);
        else if (r < 0 && c->started)
                audit_broken(c->plan, e.text);
        c->handler(c->userdata, r, &result, &e);
}

static int begin(Context *c, Error *e)
{
        RunOptions options = { .state_dir = c->state_dir,
                .job_dir = c->options.job_dir,
                .trusted = c->options.trusted,
                .tty = c->options.tty };
        int r;

        c->outcome = outcome_new();
        if (!c->outcome)
                return -ENOMEM;
        r = keep_new(c->plan, c->state_dir, c->options.keep, &c->keep);
        if (r < 0)
                return r;
        options.keep = c->keep;
        if (c->plan->refusals.n == 0) {
                r = audit_started(c->plan);
                if (r < 0)
                        r = outcome_blind_spot(c->outcome,
                                        "audit: this run is not recorded in the journal: %s", strerror(-r));
                if (r < 0)
                        return r;
                c->started = true;
        }
        r = run_begin(c->engine, c->plan, &options, c->outcome, on_ended, c);
        if (r < 0)
                error_errno(e, r, "the run");
        if (r < 0 && c->started)
                audit_broken(c->plan, e->text);
        return r;
}

int job_start(Engine *engine, Job *job, const JobRunOptions *options, JobRunHandler handler, void *userdata,
                Error *e)
{
        _cleanup_(context_freep) Context *c = calloc(1, sizeof(*c));
        int r;

        if (!c)
                return error_errno(e, -ENOMEM, "the run");
        *c = (Context){ .engine = engine, .options = *options, .handler = handler, .userdata = userdata };
        r = planning_make(job, options->policy, options->wait_usec, &c->planning, e);
        c->plan = c->planning.plan;
        if (r == 0 && options->tty)
                r = check_terminal(c->plan, e);
        if (r == 0)
                r = make_state_dir(options->state_dir, !options->receipt_path, &c->state_dir, e);
        if (r == 0)
                r = open_receipt(c, e);
        if (r == 0)
                r = begin(c, e);
        if (r < 0 && e->text[0] == '\0')
                error_errno(e, r, "the run");
        if (r < 0)
                return r;
        TAKE_PTR(c);
        return 0;
}

/* --- one alone --- */

typedef struct Alone {
        JobRunResult *result;
        Error *e;
        bool ended;
        int r;
} Alone;

static void on_alone_ended(void *userdata, int r, JobRunResult *result, const Error *e)
{
        Alone *alone = userdata;

        alone->ended = true;
        alone->r = r;
        *alone->e = *e;
        *alone->result = *result;
        *result = (JobRunResult){ 0 };
}

int job_run(Job *job, const JobRunOptions *options, JobRunResult *ret, Error *e)
{
        _cleanup_(engine_freep) Engine *engine = NULL;
        Alone alone = { .result = ret, .e = e };
        int r;

        *ret = (JobRunResult){ 0 };
        /* From here on there will be a receipt, whoever interrupts: the run looks at what is pending. */
        r = engine_new(&engine);
        if (r < 0)
                return error_errno(e, r, "the event loop");
        r = job_start(engine, job, options, on_alone_ended, &alone, e);
        while (r == 0 && !alone.ended)
                r = engine_step(engine);
        if (r < 0 && e->text[0] == '\0')
                error_errno(e, r, "the event loop");
        return r < 0 ? r : alone.r;
}
