/* SPDX-License-Identifier: Apache-2.0 */
#include "run/run.h"

#include <fcntl.h>
#include <stdarg.h>

#include "run/state.h"
#include "sys/cgroup.h"
#include "sys/gate.h"
#include "sys/host.h"

#define STOP_TIMEOUT (30 * USEC_PER_SEC)
#define STOP_AGAIN   (100 * USEC_PER_MSEC)

void run_phase(Run *run, Phase ended)
{
        uint64_t now = now_monotonic();

        uint64_t *phase = &run->outcome->phase_usec[ended];

        *phase = (*phase == UNKNOWN ? 0 : *phase) + now - run->phase_start_usec;
        run->phase_start_usec = now;
}

int run_timer(Run *run, RunTimer timer, uint64_t usec, sd_event_time_handler_t handler)
{
        int r;

        run_timer_off(run, timer);
        /* From now, not from when the event loop last woke up: a deadline must not come early. */
        r = sd_event_add_time(run->engine->event, &run->timers[timer], CLOCK_MONOTONIC,
                        now_monotonic() + usec, 1000, handler, run);
        return r < 0 ? r : sd_event_source_set_priority(run->timers[timer], RUN_PRIORITY_TIME);
}

void run_timer_off(Run *run, RunTimer timer)
{
        run->timers[timer] = sd_event_source_disable_unref(run->timers[timer]);
}

int run_host_error(Run *run, const char *code, const char *remedy, const Error *e)
{
        outcome_host_error(run->outcome, code, remedy, "%s", e->text);
        return run->units_asked ? run_kill(run) : run_stop(run);
}

void run_lose_evidence(Run *run, const char *format, ...)
{
        va_list ap;

        if (run->outcome->evidence_lost)
                return;
        run->outcome->evidence_lost = true;
        va_start(ap, format);
        run->outcome->evidence_message = text_vprintf(format, ap);
        va_end(ap);
}

int run_not_observed(Run *run, int r, const char *format, ...)
{
        bool shortage = r == -EMFILE || r == -ENFILE || r == -ENOMEM || r == -ENOBUFS;
        _cleanup_free_ char *text = NULL;
        va_list ap;

        va_start(ap, format);
        text = text_vprintf(format, ap);
        va_end(ap);
        if (!text)
                return -ENOMEM;
        if (!shortage)
                return outcome_blind_spot(run->outcome, "%s", text);
        run_lose_evidence(run, "%s", text);
        return 0;
}

/* The rest comes when nothing of this run is on the stack any more. */
static int done(Run *run)
{
        run->state = RUN_DONE;
        return sd_event_source_set_enabled(run->done_source, SD_EVENT_ONESHOT);
}

static void on_stopped(void *userdata, int r, const Error *e);

static int ask_stop(Run *run)
{
        return manager_stop(run->engine->manager, run->plan->slice, on_stopped, run, NULL);
}

static int on_stop_again(_unused_ sd_event_source *source, _unused_ uint64_t usec, void *userdata)
{
        Run *run = userdata;

        if (ask_stop(run) >= 0)
                return 0;
        run->stop_failed = true;
        return done(run);
}

static void on_stopped(void *userdata, int r, _unused_ const Error *e)
{
        Run *run = userdata;

        /* Until the watchdog's patience ends. */
        if (r == -EHOSTUNREACH && run_timer(run, TIMER_STATUS, STOP_AGAIN, on_stop_again) >= 0)
                return;
        /* A bus that went away in the meantime is tried once more. */
        if (r == -ENOTCONN && !run->stop_retried) {
                run->stop_retried = true;
                if (ask_stop(run) >= 0)
                        return;
        }
        run->stop_failed = r < 0 && r != -ENOENT;
        (void) done(run);
}

static int on_stop_timeout(_unused_ sd_event_source *source, _unused_ uint64_t usec, void *userdata)
{
        Run *run = userdata;

        run->stop_failed = true;
        return done(run);
}

int run_stop(Run *run)
{
        if (run->state >= RUN_STOPPING)
                return 0;
        run->state = RUN_STOPPING;
        engine_end_turn(run);
        for (RunTimer timer = 0; timer < _RUN_TIMER_MAX; timer++)
                run_timer_off(run, timer);
        run->events_source = sd_event_source_disable_unref(run->events_source);
        if (!run->units_asked)
                return done(run);
        manager_cancel(run->engine->manager, run);
        (void) run_timer(run, TIMER_WATCHDOG, STOP_TIMEOUT, on_stop_timeout);
        if (ask_stop(run) < 0) {
                run->stop_failed = true;
                return done(run);
        }
        return 0;
}

void run_abort(Run *run, int signal)
{
        if (run->outcome->abort_signal == 0 && run->state < RUN_STOPPING)
                run->outcome->abort_signal = signal;
        (void) (run->units_asked ? run_kill(run) : run_stop(run));
}

static bool wants_whole(const ExpectStream *expect)
{
        return expect->equals || expect->contains || expect->matches || expect->json;
}

/* What the job file names is opened with no more rights than the workspace's owner has. */
static InputScope scope_of(const Run *run)
{
        InputScope scope = input_scope(run->plan, run->options.job_dir, run->options.trusted);

        if (run->fs)
                jobfs_owner(run->fs, &scope.owner_uid, &scope.owner_gid);
        return scope;
}

static int open_source(void *userdata, const char *path, int *ret_fd, Error *e)
{
        InputScope scope = scope_of(userdata);

        return input_open(&scope, path, ret_fd, e);
}

/* The job gets our own standard streams; nothing will come through the pipes. */
static int take_terminal(Run *run, Error *e)
{
        run->stdin_fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
        for (int i = 0; i < 2; i++) {
                safe_close(run->output_fds[i]);
                run->output_fds[i] = fcntl(STDOUT_FILENO + i, F_DUPFD_CLOEXEC, 3);
        }
        return run->stdin_fd < 0 || run->output_fds[0] < 0 || run->output_fds[1] < 0
                               ? error_errno(e, -errno, "the terminal")
                               : 0;
}

static int open_streams(Run *run, Error *e)
{
        const Job *job = run->plan->job;
        uint64_t keep = run->plan->limits.value[LIMIT_OUTPUT];
        InputScope scope = scope_of(run);
        int r;

        keep = keep == LIMIT_UNLIMITED ? CAPTURE_WHOLE_MAX : MIN(keep, CAPTURE_WHOLE_MAX);
        r = capture_new(keep, wants_whole(&job->expect.out), &run->captures[0], &run->output_fds[0]);
        if (r == 0)
                r = capture_new(keep, wants_whole(&job->expect.err), &run->captures[1], &run->output_fds[1]);
        if (r == 0)
                r = gate_open(&run->gate_fd, &run->stage_fd);
        if (r < 0)
                return error_errno(e, r, "pipes and sockets");
        return run->options.tty ? take_terminal(run, e) : input_stdin(&scope, job, &run->stdin_fd, e);
}

/* Which controller each limit needs. */
static const struct {
        LimitKind limit;
        Controller controller;
} limit_controllers[] = {
        { LIMIT_MEMORY, CONTROLLER_MEMORY },
        { LIMIT_SWAP, CONTROLLER_MEMORY },
        { LIMIT_TASKS, CONTROLLER_PIDS },
        { LIMIT_CPU, CONTROLLER_CPU },
};

static int check_controllers(Engine *engine, const Plan *plan, const char **ret_code, Error *e)
{
        unsigned controllers = engine->controllers;
        int r = engine->controllers_known ? 0 : cgroup_host(&controllers, e);

        *ret_code = "cgroup_v1";
        if (r < 0)
                return r;
        engine->controllers = controllers;
        engine->controllers_known = true;
        *ret_code = "controller_missing";
        for (size_t i = 0; i < ELEMENTSOF(limit_controllers); i++) {
                if (plan->limits.value[limit_controllers[i].limit] == LIMIT_UNLIMITED ||
                                (controllers & limit_controllers[i].controller))
                        continue;
                return error_set(e, -EOPNOTSUPP,
                                "limits.%s cannot be kept: the control group controller \"%s\" is missing",
                                limit_table[limit_controllers[i].limit].key,
                                controller_name(limit_controllers[i].controller));
        }
        return 0;
}

/* systemd passes over nothing in silence here: what it does not know yet is named, with when it came. */
static int check_properties(const Plan *plan, unsigned version, Error *e)
{
        const PropertyList *lists[] = { &plan->service_properties, &plan->slice_properties };

        for (size_t i = 0; i < ELEMENTSOF(lists); i++)
                for (size_t k = 0; k < lists[i]->n; k++) {
                        const PropertyInfo *info = lists[i]->items[k].info;

                        if (info->since > version)
                                return error_set(e, -EOPNOTSUPP,
                                                "the policy asks for %s=, which came with systemd %u; this is "
                                                "systemd %u",
                                                info->name, info->since, version);
                }
        return 0;
}

/* Each step with the reason code of its failure and what a person can do about it. */
static int fail(Run *run, const char *code, const char *remedy, const Error *e)
{
        outcome_host_error(run->outcome, code, remedy, "%s", e->text);
        return -EHOSTDOWN;
}

static int check_host(Run *run)
{
        unsigned version = manager_version_number(run->engine->manager);
        const char *code;
        Error e = ERROR_INIT;

        if (check_properties(run->plan, version, &e) < 0)
                return fail(run, "systemd_too_old",
                                "upgrade systemd, or leave the property out of the policy", &e);
        if (check_controllers(run->engine, run->plan, &code, &e) < 0)
                return fail(run, code,
                                "boot with the unified hierarchy (systemd.unified_cgroup_hierarchy=1), or set the limit to null in the policy",
                                &e);
        return 0;
}

/* The working directory is part of what was proposed: that it is missing is the job's failure, as if chdir(2)
 * had failed in it. */
static bool is_bad_cwd(Run *run, int r)
{
        ExecRecord *exec = &run->outcome->exec;

        if (r != -ENOENT && r != -ENOTDIR && r != -EACCES && r != -ELOOP && r != -ENAMETOOLONG)
                return false;
        exec->error = -r;
        exec->step = strdup("chdir");
        exec->resolved = strdup(run->plan->cwd);
        return true;
}

static int prepare_files(Run *run)
{
        Error e = ERROR_INIT;
        int r = jobfs_new(run->plan, rundir_root_fd(run->dir), run->options.state_dir, &run->fs, &e);

        if (r < 0)
                return is_bad_cwd(run, r) ? r : fail(run, "workspace_failed", NULL, &e);
        r = jobfs_open_sources(run->fs, open_source, run, &e);
        return r < 0 ? fail(run, "files_failed", NULL, &e) : 0;
}

static int prepare(Run *run)
{
        Error e = ERROR_INIT;
        int r = guard_toggle(&run->engine->guard, run->plan->run_id);

        if (r < 0) {
                error_errno(&e, r, "the guard process");
                return fail(run, "internal", NULL, &e);
        }
        run->guarded = true;
        r = rundir_new(run->plan->run_id, &run->dir, &e);
        if (r < 0)
                return fail(run, "internal", NULL, &e);
        r = observers_prepare(run, &e);
        if (r < 0)
                return fail(run, "observers_failed", NULL, &e);
        r = is_bounded(run) ? 0 : prepare_files(run);
        if (r < 0)
                return r;
        r = open_streams(run, &e);
        if (r < 0)
                return fail(run, "stdin_failed", NULL, &e);
        return 0;
}

static void collect_streams(Run *run)
{
        StreamRecord *records[] = { &run->outcome->out, &run->outcome->err };

        for (size_t i = 0; i < 2; i++) {
                if (run->captures[i] && capture_finish(run->captures[i], records[i]) == 0)
                        continue;
                *records[i] = (StreamRecord){ .utf8 = true };
                hash_data("", 0, records[i]->sha256);
        }
}

static void release(Run *run)
{
        sd_event_source **sources[] = {
                &run->gate_source,
                &run->life_source,
                &run->exit_source,
                &run->events_source,
                &run->tasks_source,
                &run->output_sources[0],
                &run->output_sources[1],
                &run->done_source,
        };
        int *fds[] = {
                &run->gate_fd,
                &run->stage_fd,
                &run->life_fd,
                &run->pidfd,
                &run->proc_fd,
                &run->slice_fd,
                &run->service_fd,
                &run->events_fd,
                &run->tasks_fd,
                &run->stdin_fd,
                &run->output_fds[0],
                &run->output_fds[1],
        };

        for (size_t i = 0; i < ELEMENTSOF(sources); i++)
                *sources[i] = sd_event_source_disable_unref(*sources[i]);
        for (RunTimer timer = 0; timer < _RUN_TIMER_MAX; timer++)
                run_timer_off(run, timer);
        for (size_t i = 0; i < ELEMENTSOF(fds); i++)
                *fds[i] = safe_close(*fds[i]);
        for (size_t i = 0; i < 2; i++)
                run->captures[i] = capture_free(run->captures[i]);
        error_counter_give(run->errors, &run->closing);
        run->errors = error_counter_free(run->errors);
        observers_clear(run);
        closing_finish(&run->closing, run->engine->guard.fd);
        bounded_reap(run);
        run->fs = jobfs_free(run->fs);
        run->dir = run->stop_failed ? rundir_abandon(run->dir) : rundir_free(run->dir);
        if (run->engine->manager)
                manager_cancel(run->engine->manager, run);
        if (run->units_asked && !is_bounded(run))
                manager_forget(run->engine->manager, run->plan->service);
        /* Whose units could not be stopped stays the guard's. */
        if (run->guarded && !run->stop_failed)
                (void) guard_toggle(&run->engine->guard, run->plan->run_id);
}

Run *run_free(Run *run)
{
        Run **p = &run->engine->runs;

        while (*p && *p != run)
                p = &(*p)->next;
        if (*p)
                *p = run->next;
        engine_end_turn(run);
        release(run);
        free(run);
        return NULL;
}

static int on_done(_unused_ sd_event_source *source, void *userdata)
{
        Run *run = userdata;
        RunHandler handler = run->handler;
        void *handler_data = run->userdata;
        bool dismissed = run->dismissed;

        collect_streams(run);
        run->outcome->finished_realtime_usec = now_realtime();
        run_free(run);
        handler(handler_data, dismissed);
        return 0;
}

static void start(Run *run)
{
        Error e = ERROR_INIT;
        int r;

        if (run->plan->refusals.n > 0 || engine_open(run->engine, run->outcome) < 0 || check_host(run) < 0 ||
                        prepare(run) < 0) {
                (void) done(run);
                return;
        }
        r = run_start(run, &e);
        if (r < 0) {
                (void) fail(run, "start_refused", NULL, &e);
                (void) done(run);
                return;
        }
        /* While systemd makes the sandbox. */
        r = run->fs ? jobfs_prepare(run->fs, run->outcome->host.hostname, &e) : 0;
        if (r < 0) {
                (void) run_host_error(run, "layer_failed", NULL, &e);
                return;
        }
        r = observers_listen(run, &e);
        if (r < 0)
                (void) run_host_error(run, "observers_failed", NULL, &e);
}

static Run *new_run(Engine *engine)
{
        Run *run = calloc(1, sizeof(*run));

        if (!run)
                return NULL;
        *run = (Run){
                .engine = engine,
                .next = engine->runs,
                .gate_fd = -EBADF,
                .stage_fd = -EBADF,
                .life_fd = -EBADF,
                .netns_fd = -EBADF,
                .pidfd = -EBADF,
                .proc_fd = -EBADF,
                .slice_fd = -EBADF,
                .service_fd = -EBADF,
                .events_fd = -EBADF,
                .tasks_fd = -EBADF,
                .ipcns_fd = -EBADF,
                .stdin_fd = -EBADF,
                .output_fds = { -EBADF, -EBADF },
                .phase_start_usec = now_monotonic(),
        };
        engine->runs = run;
        return run;
}

int run_begin(Engine *engine, const Plan *plan, const RunOptions *options, Outcome *outcome,
                RunHandler handler, void *userdata)
{
        Run *run = new_run(engine);
        int r;

        if (!run)
                return -ENOMEM;
        run->plan = plan;
        run->options = *options;
        run->outcome = outcome;
        run->handler = handler;
        run->userdata = userdata;
        outcome->started_realtime_usec = now_realtime();
        r = host_read(&outcome->host);
        if (r == 0 && plan->refusals.n == 0)
                r = outcome_blind_spot(
                                outcome, "usage.memory_peak_bytes includes systemd's own start of the unit");
        if (r == 0)
                r = sd_event_add_defer(engine->event, &run->done_source, on_done, run);
        if (r >= 0)
                r = sd_event_source_set_enabled(run->done_source, SD_EVENT_OFF);
        if (r < 0) {
                run_free(run);
                return r;
        }
        start(run);
        return 0;
}
