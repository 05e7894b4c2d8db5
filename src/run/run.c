/* SPDX-License-Identifier: Apache-2.0 */
#include "run/run.h"

#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "run/state.h"
#include "sys/cgroup.h"
#include "sys/gate.h"
#include "sys/host.h"
#include "sys/mount.h"

#define STOP_TIMEOUT (30 * USEC_PER_SEC)

void run_phase(Run *run, Phase ended)
{
        uint64_t now = now_monotonic();

        run->outcome->phase_usec[ended] = now - run->phase_start_usec;
        run->phase_start_usec = now;
}

int run_timer(Run *run, RunTimer timer, uint64_t usec, sd_event_time_handler_t handler)
{
        int r;

        run_timer_off(run, timer);
        /* From now, not from when the event loop last woke up: a deadline must not come early. */
        r = sd_event_add_time(run->event, &run->timers[timer], CLOCK_MONOTONIC, now_monotonic() + usec, 1000,
                        handler, run);
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

static int done(Run *run)
{
        run->state = RUN_DONE;
        return sd_event_exit(run->event, 0);
}

static void on_stopped(void *userdata, int r, _unused_ const Error *e)
{
        Run *run = userdata;

        run->stop_failed = r < 0 && r != -ENOENT;
        (void) done(run);
}

static int on_stop_timeout(_unused_ sd_event_source *source, _unused_ uint64_t usec, void *userdata)
{
        Run *run = userdata;

        run->stop_failed = true;
        return done(run);
}

/* A bus that went away in the meantime is tried once more. */
static int ask_stop(Run *run)
{
        Manager *again;
        int r = manager_stop(run->manager, run->plan->slice, on_stopped, run, NULL);

        if (r >= 0)
                return r;
        r = manager_connect(run->event, &again, NULL);
        if (r < 0)
                return r;
        manager_free(run->manager);
        run->manager = again;
        return manager_stop(run->manager, run->plan->slice, on_stopped, run, NULL);
}

int run_stop(Run *run)
{
        if (run->state >= RUN_STOPPING)
                return 0;
        run->state = RUN_STOPPING;
        for (RunTimer timer = 0; timer < _RUN_TIMER_MAX; timer++)
                run_timer_off(run, timer);
        run->events_source = sd_event_source_disable_unref(run->events_source);
        if (!run->units_asked)
                return done(run);
        manager_cancel(run->manager);
        (void) run_timer(run, TIMER_WATCHDOG, STOP_TIMEOUT, on_stop_timeout);
        if (ask_stop(run) < 0) {
                run->stop_failed = true;
                return done(run);
        }
        return 0;
}

static int on_signal(_unused_ sd_event_source *source, const struct signalfd_siginfo *info, void *userdata)
{
        Run *run = userdata;

        if (run->outcome->abort_signal == 0 && run->state < RUN_STOPPING)
                run->outcome->abort_signal = (int) info->ssi_signo;
        return run->units_asked ? run_kill(run) : run_stop(run);
}

static bool wants_whole(const ExpectStream *expect)
{
        return expect->equals || expect->contains || expect->matches || expect->json;
}

/* What the job file names is opened with no more rights than the workspace's owner has. */
static InputScope input_scope(const Run *run)
{
        InputScope scope = {
                .cwd = run->plan->workspace == WORKSPACE_OVERLAY ? run->plan->cwd : NULL,
                .job_dir = run->options->job_dir,
                .trusted = run->options->trusted,
        };

        if (run->fs) {
                jobfs_owner(run->fs, &scope.owner_uid, &scope.owner_gid);
        } else {
                scope.owner_uid = geteuid();
                scope.owner_gid = getegid();
        }
        return scope;
}

static int open_source(void *userdata, const char *path, int *ret_fd, Error *e)
{
        InputScope scope = input_scope(userdata);

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
        InputScope scope = input_scope(run);
        int r;

        keep = keep == LIMIT_UNLIMITED ? CAPTURE_WHOLE_MAX : MIN(keep, CAPTURE_WHOLE_MAX);
        r = capture_new(keep, wants_whole(&job->expect.out), &run->captures[0], &run->output_fds[0]);
        if (r == 0)
                r = capture_new(keep, wants_whole(&job->expect.err), &run->captures[1], &run->output_fds[1]);
        if (r == 0)
                r = gate_open(&run->gate_fd, &run->stage_fd);
        if (r < 0)
                return error_errno(e, r, "pipes and sockets");
        return run->options->tty ? take_terminal(run, e) : input_stdin(&scope, job, &run->stdin_fd, e);
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

static int check_controllers(const Plan *plan, const char **ret_code, Error *e)
{
        unsigned controllers = 0;
        int r = cgroup_host(&controllers, e);

        *ret_code = "cgroup_v1";
        if (r < 0)
                return r;
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

static int connect_host(Run *run)
{
        const char *code;
        Error e = ERROR_INIT;
        int r;

        if (geteuid() != 0) {
                error_set(&e, -EPERM, "qscope must be root to ask systemd for an isolated unit");
                return fail(run, "not_root", "run it as root (sudo qscope …)", &e);
        }
        r = guard_start(run->plan->slice, &run->guard);
        if (r < 0) {
                error_errno(&e, r, "the guard process cannot be started");
                return fail(run, "internal", NULL, &e);
        }
        r = manager_connect(run->event, &run->manager, &e);
        if (r < 0)
                return r == -EHOSTDOWN ? fail(run, "no_systemd",
                                                         "run qscope on a host that systemd booted, or in tools/bed",
                                                         &e)
                                       : fail(run, "bus_unavailable", "start it: systemctl start dbus.socket",
                                                         &e);
        run->outcome->host.systemd = strdup(manager_version(run->manager));
        if (manager_version_number(run->manager) < MANAGER_VERSION_MIN) {
                error_set(&e, -EOPNOTSUPP, "systemd %s is too old: ExitType=cgroup and more came with %d",
                                manager_version(run->manager), MANAGER_VERSION_MIN);
                return fail(run, "systemd_too_old", "upgrade systemd", &e);
        }
        if (check_properties(run->plan, manager_version_number(run->manager), &e) < 0)
                return fail(run, "systemd_too_old",
                                "upgrade systemd, or leave the property out of the policy", &e);
        if (rundir_clean(run->manager, &e) < 0)
                (void) outcome_blind_spot(
                                run->outcome, "what an earlier run left could not be removed: %s", e.text);
        e = ERROR_INIT;
        if (check_controllers(run->plan, &code, &e) < 0)
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
        int r = jobfs_new(run->plan, rundir_root_fd(run->dir), run->options->state_dir,
                        run->outcome->host.hostname, &run->fs, &e);

        if (r < 0)
                return is_bad_cwd(run, r) ? r : fail(run, "workspace_failed", NULL, &e);
        r = jobfs_open_sources(run->fs, open_source, run, &e);
        return r < 0 ? fail(run, "files_failed", NULL, &e) : 0;
}

static int prepare(Run *run)
{
        Error e = ERROR_INIT;
        int r = mount_namespace_own();

        if (r < 0) {
                error_errno(&e, r, "a mount namespace of its own");
                return fail(run, "internal", NULL, &e);
        }
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

static const int abort_signals[] = { SIGINT, SIGTERM, SIGHUP };

int run_block_signals(void)
{
        sigset_t set;

        (void) sigemptyset(&set);
        for (size_t i = 0; i < ELEMENTSOF(abort_signals); i++)
                (void) sigaddset(&set, abort_signals[i]);
        return sigprocmask(SIG_BLOCK, &set, NULL) < 0 ? -errno : 0;
}

static int add_signals(Run *run)
{
        int r = run_block_signals();

        for (size_t i = 0; r >= 0 && i < ELEMENTSOF(abort_signals); i++)
                r = sd_event_add_signal(run->event, &run->signals[i], abort_signals[i], on_signal, run);
        for (size_t i = 0; r >= 0 && i < ELEMENTSOF(abort_signals); i++)
                r = sd_event_source_set_priority(run->signals[i], RUN_PRIORITY_TIME);
        return r < 0 ? r : 0;
}

/* Deep trees are walked with a few descriptors for each level, and images are larger than a caller's ulimit.
 */
const __rlimit_resource_t run_raised_limits[RUN_RAISED_LIMITS] = { RLIMIT_NOFILE, RLIMIT_FSIZE };

static void raise_own_limits(Run *run)
{
        for (size_t i = 0; i < ELEMENTSOF(run_raised_limits); i++) {
                struct rlimit limit;

                if (getrlimit(run_raised_limits[i], &limit) < 0)
                        continue;
                run->caller_limits[i] = limit;
                limit.rlim_cur = limit.rlim_max;
                (void) setrlimit(run_raised_limits[i], &limit);
        }
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

static void clear(Run *run)
{
        sd_event_source **sources[] = {
                &run->gate_source,
                &run->life_source,
                &run->exit_source,
                &run->events_source,
                &run->tasks_source,
                &run->output_sources[0],
                &run->output_sources[1],
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
        for (size_t i = 0; i < ELEMENTSOF(run->signals); i++)
                run->signals[i] = sd_event_source_disable_unref(run->signals[i]);
        for (RunTimer timer = 0; timer < _RUN_TIMER_MAX; timer++)
                run_timer_off(run, timer);
        for (size_t i = 0; i < ELEMENTSOF(fds); i++)
                *fds[i] = safe_close(*fds[i]);
        for (size_t i = 0; i < 2; i++)
                run->captures[i] = capture_free(run->captures[i]);
        error_counter_give(run->errors, &run->closing);
        run->errors = error_counter_free(run->errors);
        observers_clear(run);
        closing_finish(&run->closing);
        bounded_reap(run);
        run->fs = jobfs_free(run->fs);
        run->dir = run->stop_failed ? rundir_abandon(run->dir) : rundir_free(run->dir);
        run->manager = manager_free(run->manager);
        run->event = sd_event_unref(run->event);
        guard_dismiss(&run->guard);
}

static int loop(Run *run)
{
        Error e = ERROR_INIT;
        int r;

        if (connect_host(run) < 0 || prepare(run) < 0)
                return 0;
        r = run_start(run, &e);
        if (r < 0) {
                (void) fail(run, "start_refused", NULL, &e);
                return 0;
        }
        r = run->fs ? jobfs_make_layer(run->fs, &e) : 0;
        if (r < 0)
                (void) run_host_error(run, "layer_failed", NULL, &e);
        r = sd_event_loop(run->event);
        return r < 0 ? r : 0;
}

int run_execute(const Plan *plan, const RunOptions *options, Outcome *outcome)
{
        Run run = {
                .plan = plan,
                .options = options,
                .outcome = outcome,
                .guard = GUARD_INIT,
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
        int r;

        outcome->started_realtime_usec = now_realtime();
        (void) umask(0022); /* whatever the caller's is: the job's root must be readable */
        raise_own_limits(&run);
        r = host_read(&outcome->host);
        if (r == 0)
                r = outcome_blind_spot(
                                outcome, "usage.memory_peak_bytes includes systemd's own start of the unit");
        if (r == 0)
                r = sd_event_new(&run.event);
        if (r >= 0)
                r = add_signals(&run);
        if (r >= 0)
                r = loop(&run);
        collect_streams(&run);
        outcome->finished_realtime_usec = now_realtime();
        clear(&run);
        return r;
}
