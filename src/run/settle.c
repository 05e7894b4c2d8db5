/* SPDX-License-Identifier: Apache-2.0 */

/* From the end of the main process to the end of the last one: grace, freeze, list, kill, wait until it is
 * empty; then observe. Never waits for the end of the output: a process somewhere may hold it open for ever.
 */

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include "run/keep.h"
#include "run/state.h"
#include "run/watch_processes.h"
#include "sys/cgroup.h"
#include "sys/host.h"
#include "sys/proc.h"

#define FREEZE_TIMEOUT   (500 * USEC_PER_MSEC)
#define KILL_TIMEOUT     (20 * USEC_PER_SEC)
#define STATUS_TRIES     60u
#define STATUS_DELAY     (2 * USEC_PER_MSEC)
#define STATUS_DELAY_MAX (250 * USEC_PER_MSEC)
#define LEFTOVERS_MAX    256u

static void read_output(Run *run, size_t i)
{
        int r = capture_read(run->captures[i], run->main_ended);

        if (r >= 0)
                return;
        run->output_sources[i] = sd_event_source_disable_unref(run->output_sources[i]);
        if (r != -EPIPE)
                run_lose_evidence(run, "the job's output could not be read");
}

int on_output(sd_event_source *source, _unused_ int fd, _unused_ uint32_t revents, void *userdata)
{
        Run *run = userdata;

        read_output(run, source == run->output_sources[0] ? 0 : 1);
        return 0;
}

/* Nobody can write any more: what is in the pipes is all there will be. */
static void drain_output(Run *run)
{
        for (size_t i = 0; i < 2; i++) {
                while (run->output_sources[i] && capture_read(run->captures[i], run->main_ended) == 1)
                        ;
                run->output_sources[i] = sd_event_source_disable_unref(run->output_sources[i]);
        }
}

static int on_status_timer(sd_event_source *source, uint64_t usec, void *userdata);

static void record_status(Run *run, const ServiceStatus *status)
{
        Outcome *o = run->outcome;

        run->status_known = true;
        if (status->invocation_id[0] && !o->invocation_id)
                o->invocation_id = strdup(status->invocation_id);
        /* It stays active until we ask for its end: somebody else did. */
        o->outside.stopped = run->state < RUN_KILLING && !streq(status->result, "timeout") &&
                             (streq(status->active_state, "deactivating") ||
                                             streq(status->active_state, "inactive") ||
                                             streq(status->active_state, "failed"));
        /* qscope may have been busy with other jobs when it ended, or stopped at the deadline, and the job
         * gone on: systemd saw its end, too. */
        if (run->main_ended && status->exit_usec > run->released_usec)
                o->duration_usec = MIN(o->duration_usec, status->exit_usec - run->released_usec);
        if (run->main_ended && o->duration_usec != UNKNOWN && o->duration_usec > run->plan->timeout_usec)
                o->timed_out = true;
        /* What our own SIGKILL did to it is not the job's end. */
        if (o->timed_out || o->abort_signal != 0)
                return;
        o->exited = true;
        if (status->code == CLD_EXITED) {
                o->exit_status = status->status;
        } else {
                o->exit_signal = status->status;
                o->core_dumped = status->code == CLD_DUMPED;
        }
}

/* The manager may be busy, or start anew (daemon-reexec), or the bus: it is asked again. */
static void on_status(void *userdata, int r, const ServiceStatus *status)
{
        Run *run = userdata;
        unsigned doubled = MIN(run->status_tries, 10u);
        uint64_t delay = MIN(STATUS_DELAY << doubled, STATUS_DELAY_MAX);

        if (run->status_known || run->state >= RUN_STOPPING)
                return;
        if (r >= 0 && status->code != 0) {
                record_status(run, status);
                (void) run_advance(run);
                return;
        }
        if (run->status_tries++ >= STATUS_TRIES) {
                run_lose_evidence(run, "systemd did not say how the main process ended");
                run->status_known = true;
                (void) run_advance(run);
                return;
        }
        (void) run_timer(run, TIMER_STATUS, delay, on_status_timer);
}

static void ask_status(Run *run)
{
        ServiceStatus none = { 0 };
        int r;

        if (run->status_known)
                return;
        if (is_bounded(run)) {
                if (bounded_status(run, &none))
                        record_status(run, &none);
                return;
        }
        r = manager_status(run->engine->manager, run->plan->service, on_status, run);
        if (r < 0)
                on_status(run, r, &none);
}

static int on_status_timer(_unused_ sd_event_source *source, _unused_ uint64_t usec, void *userdata)
{
        ask_status(userdata);
        return 0;
}

/* Everything that is frozen in the service's group, by pid: none of them can end or become another. */
static int list_leftovers(Run *run)
{
        ProcessList *list = &run->outcome->leftovers;
        _cleanup_free_ pid_t *pids = NULL;
        size_t n;
        int r = cgroup_pids(run->service_fd, LEFTOVERS_MAX, &pids, &n, &list->total);

        if (r < 0)
                return r;
        list->items = calloc(MAX(n, (size_t) 1), sizeof(*list->items));
        if (!list->items)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                r = proc_describe(pids[i], run->released_boottime_usec, &list->items[list->n]);
                list->n++;
                /* A frozen process that had ended already is a zombie with no arguments, and still one. */
                if (r == -ENOMEM)
                        return r;
        }
        return 0;
}

/* Frozen, nothing moves while it is looked at. Who waits in execve(2) for our answer cannot be. */
static void freeze(Run *run)
{
        uint64_t until = now_monotonic() + FREEZE_TIMEOUT;

        if (cgroup_freeze(run->slice_fd) < 0) {
                run_lose_evidence(run, "what was left running could not be frozen");
                return;
        }
        while (!cgroup_is_frozen(run->slice_fd) && now_monotonic() < until) {
                struct pollfd fds[] = {
                        { .fd = run->events_fd, .events = POLLPRI },
                        { .fd = processes_fd(run), .events = POLLIN },
                };

                (void) poll(fds, ELEMENTSOF(fds), 10);
                /* Nor must other jobs wait for it. */
                for (Run *any = run->engine->runs; any; any = any->next)
                        processes_serve(any);
        }
}

int run_deadline(Run *run)
{
        run->outcome->timed_out = true;
        freeze(run);
        observers_look(run);
        return run_kill(run);
}

static int on_grace_over(_unused_ sd_event_source *source, _unused_ uint64_t usec, void *userdata)
{
        Run *run = userdata;

        if (run->state != RUN_DRAINING)
                return 0;
        /* Nothing is left; only systemd has not said yet how it ended. */
        if (cgroup_is_populated(run->slice_fd) == 0)
                return run_advance(run);
        run_phase(run, PHASE_DRAIN);
        freeze(run);
        if (list_leftovers(run) < 0)
                run_lose_evidence(run, "what was left running could not be listed");
        observers_look(run);
        return run_kill(run);
}

static int on_kill_timeout(_unused_ sd_event_source *source, _unused_ uint64_t usec, void *userdata)
{
        Run *run = userdata;
        Error e = ERROR_INIT;

        error_set(&e, -EBUSY, "processes of the job survive SIGKILL (uninterruptible sleep?)");
        outcome_host_error(
                        run->outcome, "internal", "look at the processes of its control group", "%s", e.text);
        run->main_ended = run->status_known = true;
        return run_stop(run);
}

int run_kill(Run *run)
{
        if (run->state >= RUN_KILLING)
                return 0;
        run_timer_off(run, TIMER_DEADLINE);
        run_timer_off(run, TIMER_CPU);
        run_timer_off(run, TIMER_SAMPLE);
        run_timer_off(run, TIMER_LAYER);
        if (run->state == RUN_RUNNING) {
                run->outcome->duration_usec = now_monotonic() - run->released_usec;
                run_phase(run, PHASE_RUN);
        }
        run->state = RUN_KILLING;
        run->killed_usec = now_monotonic();
        if (run->slice_fd < 0) {
                (void) cgroup_kill_slice(run->plan->slice);
                return run_stop(run);
        }
        if (cgroup_kill(run->slice_fd) < 0)
                run_lose_evidence(run, "the job's control group could not be killed");
        (void) run_timer(run, TIMER_WATCHDOG, KILL_TIMEOUT, on_kill_timeout);
        return run_advance(run);
}

/* pids.events counts in the group that forks, which is the service's in kernels before 6.11, and systemd
 * removes that group as soon as it is empty. So it is read whenever it changes, and once more when the main
 * process ends. */
static void read_tasks_events(Run *run)
{
        uint64_t *most = &run->outcome->events.pids_max;
        uint64_t value = cgroup_value(run->service_fd, "pids.events", "max");

        if (value != UNKNOWN && (*most == UNKNOWN || value > *most))
                *most = value;
}

int on_tasks_events(_unused_ sd_event_source *source, int fd, _unused_ uint32_t revents, void *userdata)
{
        char text[256];

        read_tasks_events(userdata);
        /* The group is gone: there is nothing to be told of any more. */
        if (pread(fd, text, sizeof(text), 0) < 0) {
                Run *run = userdata;

                run->tasks_source = sd_event_source_disable_unref(run->tasks_source);
        }
        return 0;
}

int run_main_ended(Run *run)
{
        /* What it printed before its end is in the pipes now, and one read takes a full pipe. */
        for (size_t i = 0; i < 2; i++)
                if (run->output_sources[i])
                        read_output(run, i);
        run->main_ended = true;
        read_tasks_events(run);
        run_settle_exec(run);
        if (run->state == RUN_RUNNING) {
                run->outcome->duration_usec = now_monotonic() - run->released_usec;
                run_phase(run, PHASE_RUN);
                run_timer_off(run, TIMER_DEADLINE);
                run_timer_off(run, TIMER_CPU);
                run_timer_off(run, TIMER_SAMPLE);
                run->state = RUN_DRAINING;
                (void) run_timer(run, TIMER_WATCHDOG, run->plan->grace_usec, on_grace_over);
        }
        ask_status(run);
        return run_advance(run);
}

int on_cgroup_events(_unused_ sd_event_source *source, int fd, _unused_ uint32_t revents, void *userdata)
{
        char text[256];

        /* Reading is what makes the kernel tell of the next change. */
        (void) !pread(fd, text, sizeof(text), 0);
        return run_advance(userdata);
}

static uint64_t since(uint64_t now, uint64_t before)
{
        return now == UNKNOWN || before == UNKNOWN ? now : now >= before ? now - before : 0;
}

/* What others did: each unknown one stays so, and is not held against anybody. */
static void read_interference(Run *run)
{
        Interference *outside = &run->outcome->outside;
        uint64_t slice = cgroup_oomd_kills(run->slice_fd), service = cgroup_oomd_kills(run->service_fd);

        outside->outer_oom = since(cgroup_outer_oom(run->slice_fd), run->outer_oom_base);
        /* oomd kills a leaf, or a whole slice. The leaf may be gone already. */
        outside->oomd_kills = service == UNKNOWN ? slice : slice == UNKNOWN ? service : slice + service;
        if (run->errors) {
                outside->sent_kill = error_counter_read(run->errors, COUNTED_SENT_KILL);
                outside->sent_term = error_counter_read(run->errors, COUNTED_SENT_TERM);
                outside->senders = error_counter_read(run->errors, COUNTED_SENDER);
                outside->signal_fds = error_counter_read(run->errors, COUNTED_SIGNAL_FD);
        }
}

/* Whether a limit killed something is part of the verdict: a counter that cannot be read any more is not 0.
 */
static void require_counters(Run *run)
{
        const struct {
                LimitKind limit;
                uint64_t count;
                const char *name;
        } counters[] = {
                { LIMIT_MEMORY, run->outcome->events.oom_kill, "memory.events" },
                { LIMIT_TASKS, run->outcome->events.pids_max, "pids.events" },
        };

        for (size_t i = 0; i < ELEMENTSOF(counters); i++)
                if (run->plan->limits.value[counters[i].limit] != LIMIT_UNLIMITED &&
                                counters[i].count == UNKNOWN)
                        run_lose_evidence(run, "%s of the job's control group could not be read",
                                        counters[i].name);
}

/* What the slice used until the gate was opened was systemd's and the stage's. Peaks cannot be subtracted. */
static void read_counters(Run *run)
{
        Outcome *o = run->outcome;
        Usage *u = &o->usage;
        const Usage *base = &run->base;

        cgroup_read_usage(run->slice_fd, u);
        cgroup_read_events(run->slice_fd, &o->events);
        if (!o->released)
                return;
        u->cpu_usec = since(u->cpu_usec, base->cpu_usec);
        u->user_usec = since(u->user_usec, base->user_usec);
        u->system_usec = since(u->system_usec, base->system_usec);
        u->io_read_bytes = since(u->io_read_bytes, base->io_read_bytes);
        u->io_write_bytes = since(u->io_write_bytes, base->io_write_bytes);
        u->throttled_usec = since(u->throttled_usec, base->throttled_usec);
        u->nr_throttled = since(u->nr_throttled, base->nr_throttled);
        u->cpu_pressure_usec = since(u->cpu_pressure_usec, base->cpu_pressure_usec);
        u->memory_pressure_usec = since(u->memory_pressure_usec, base->memory_pressure_usec);
        u->io_pressure_usec = since(u->io_pressure_usec, base->io_pressure_usec);
        if (run->errors) {
                uint64_t forks = error_counter_read(run->errors, COUNTED_FORK_EAGAIN);

                o->events.emfile = error_counter_read(run->errors, COUNTED_EMFILE);
                o->events.enospc = error_counter_read(run->errors, COUNTED_ENOSPC);
                o->events.efbig = error_counter_read(run->errors, COUNTED_EFBIG);
                /* With a limit on tasks there is no other reason for a fork to be refused so. */
                if (forks != UNKNOWN && run->plan->limits.value[LIMIT_TASKS] != LIMIT_UNLIMITED &&
                                (o->events.pids_max == UNKNOWN || forks > o->events.pids_max))
                        o->events.pids_max = forks;
        }
        require_counters(run);
}

static int observe(Run *run)
{
        Error e = ERROR_INIT;
        int r;

        if (!run->outcome->released)
                return 0;
        r = run->fs ? jobfs_observe(run->fs, run->outcome, &e) : bounded_observe(run, &e);
        if (r < 0)
                run_lose_evidence(run, "%s", e.text[0] ? e.text : strerror(-r));
        if (run->fs)
                keep_take(run->options.keep, run->fs, run->outcome);
        run_phase(run, PHASE_DIFF);
        return 0;
}

/* Called after each event that may have been the last one waited for. */
int run_advance(Run *run)
{
        int populated, r;

        if (run->state != RUN_DRAINING && run->state != RUN_KILLING)
                return 0;
        populated = cgroup_is_populated(run->slice_fd);
        if (populated > 0)
                return 0;
        if (populated < 0)
                run_lose_evidence(run, "the job's control group cannot be read");
        if (run->outcome->released && (!run->main_ended || !run->status_known))
                return 0;
        drain_output(run);
        run_phase(run, run->state == RUN_DRAINING ? PHASE_DRAIN : PHASE_SETTLE);
        read_counters(run);
        read_interference(run);
        observers_finish(run);
        /* The manager takes the units down while the layer is looked at. */
        r = run_stop(run);
        (void) observe(run);
        return r;
}
