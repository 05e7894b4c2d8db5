/* SPDX-License-Identifier: Apache-2.0 */

/* While the stage is held: look at it from outside, give it its files, refuse to let it go if the isolation
 * that was asked for is not there, then open the gate. */

#include "run/state.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sys/epoll.h>

#include "base/number.h"
#include "core/isolation.h"
#include "run/look.h"
#include "sys/cgroup.h"
#include "sys/file.h"
#include "sys/filter.h"
#include "sys/gate.h"
#include "sys/host.h"
#include "sys/inside.h"
#include "sys/proc.h"

#define UMASK_DEFAULT   0022u
#define CPU_POLL_USEC   (100 * USEC_PER_MSEC)
#define LAYER_LOOK_USEC (50 * USEC_PER_MSEC)

/* Limits as the kernel has them, from the slice. */
static const struct {
        LimitKind limit;
        const char *fact, *file;
} limit_facts[] = {
        { LIMIT_MEMORY, "limit.memory", "memory.max" },
        { LIMIT_SWAP, "limit.swap", "memory.swap.max" },
        { LIMIT_TASKS, "limit.tasks", "pids.max" },
};

static int add_number_fact(Run *run, const char *name, uint64_t expected, uint64_t observed)
{
        char a[32], b[32] = "unlimited or not there";

        (void) snprintf(a, sizeof(a), "%" PRIu64, expected);
        if (observed != UNKNOWN)
                (void) snprintf(b, sizeof(b), "%" PRIu64, observed);
        return outcome_add_fact(run->outcome, name, observed <= expected, a, b);
}

static int add_limit_facts(Run *run)
{
        const Limits *limits = &run->plan->limits;
        uint64_t quota;
        char text[64];
        int r = 0;

        for (size_t i = 0; r == 0 && i < ELEMENTSOF(limit_facts); i++) {
                uint64_t value = limits->value[limit_facts[i].limit];

                if (value != LIMIT_UNLIMITED)
                        r = add_number_fact(run, limit_facts[i].fact, value,
                                        cgroup_value(run->slice_fd, limit_facts[i].file, NULL));
        }
        if (r < 0 || limits->value[LIMIT_CPU] == LIMIT_UNLIMITED)
                return r;
        /* cpu.max: "quota period", both in microseconds; or "max period". */
        quota = UNKNOWN;
        if (file_read_at(run->slice_fd, "cpu.max", text, sizeof(text)) == 0) {
                char *space = strchr(text, ' ');
                uint64_t value, period;

                if (space)
                        *space = '\0';
                if (space && parse_u64(text, &value) == 0 && parse_u64(space + 1, &period) == 0 && period > 0)
                        quota = value * USEC_PER_SEC / period;
        }
        return add_number_fact(run, "limit.cpu", limits->value[LIMIT_CPU], quota);
}

/* What only a service gives; a scope runs in the caller's own files. */
static int add_sandbox_facts(Run *run)
{
        const Plan *plan = run->plan;
        const PropertyValue *filter;
        int r = proc_isolation_facts(run->proc_fd, run->netns_fd, run->uid, run->outcome);

        if (r == 0)
                r = inside_process_facts(run->proc_fd, run->gid, &plan->service_properties, run->outcome);
        /* A list of what is refused cannot be told from none in this way. */
        filter = property_list_find(&plan->service_properties, "SystemCallFilter");
        if (r == 0 && filter)
                r = filter_facts(run->proc_fd, run->pid, filter->boolean, run->outcome);
        if (r == 0)
                r = inside_device_facts(run->proc_fd, run->outcome);
        return r;
}

static int observe(Run *run, Error *e)
{
        int r = add_limit_facts(run);

        if (r == 0 && !is_bounded(run))
                r = add_sandbox_facts(run);
        if (r == 0 && run->fs)
                r = jobfs_facts(run->fs, run->proc_fd, run->outcome);
        if (r < 0)
                return error_errno(e, r, "the job's isolation cannot be observed");
        return isolation_check(run->plan, run->outcome, e);
}

static int open_held(Run *run, Error *e)
{
        int r = proc_open(run->pid, &run->pidfd);

        if (r == 0)
                r = proc_open_dir(run->pid, &run->proc_fd);
        if (r == 0)
                r = cgroup_open_job(run->pid, run->plan->slice, run->plan->service, &run->slice_fd,
                                &run->service_fd);
        if (r == 0) {
                run->events_fd = cgroup_open_events(run->slice_fd);
                r = run->events_fd < 0 ? run->events_fd : 0;
        }
        /* Missing where there is no controller for it. */
        if (r == 0) {
                run->tasks_fd = openat(run->service_fd, "pids.events", O_RDONLY | O_CLOEXEC);
                if (run->tasks_fd >= 0)
                        r = sd_event_add_io(run->engine->event, &run->tasks_source, run->tasks_fd, EPOLLPRI,
                                        on_tasks_events, run);
        }
        /* Watched from here on: a held stage may have to be killed, too. */
        if (r >= 0)
                r = sd_event_add_io(run->engine->event, &run->events_source, run->events_fd, EPOLLPRI,
                                on_cgroup_events, run);
        return r < 0 ? error_errno(e, r, "the held process %d cannot be reached", (int) run->pid) : 0;
}

static void count_errors(Run *run)
{
        int r = error_counter_open(run->engine->tracefs, run->slice_fd, &run->errors);

        if (r < 0)
                (void) run_not_observed(run, r,
                                "limits: calls that failed for open_files, file_size or disk are not counted "
                                "(perf_event_open: %s)",
                                strerror(-r));
}

static int on_cpu_poll(_unused_ sd_event_source *source, _unused_ uint64_t usec, void *userdata)
{
        Run *run = userdata;
        uint64_t limit = run->plan->limits.value[LIMIT_CPU_TIME];
        uint64_t used = cgroup_value(run->slice_fd, "cpu.stat", "usage_usec");

        if (used != UNKNOWN && run->base.cpu_usec != UNKNOWN && used - run->base.cpu_usec > limit) {
                run->outcome->events.cpu_time_exceeded = 1;
                return run_kill(run);
        }
        return run_timer(run, TIMER_CPU, CPU_POLL_USEC, on_cpu_poll);
}

/* Two small files of the control group; ever more seldom as the run goes on. */
static int on_sample(_unused_ sd_event_source *source, _unused_ uint64_t usec, void *userdata)
{
        Run *run = userdata;
        Series *samples = &run->outcome->samples;
        uint64_t since = now_monotonic() - run->released_usec;
        uint64_t cpu = cgroup_value(run->slice_fd, "cpu.stat", "usage_usec");

        if (cpu != UNKNOWN && run->base.cpu_usec != UNKNOWN)
                cpu -= MIN(cpu, run->base.cpu_usec);
        series_add(samples, since, cgroup_value(run->slice_fd, "memory.current", NULL), cpu);
        return run_timer(run, TIMER_SAMPLE, series_wait(samples, since), on_sample);
}

/* A full layer may be emptied again before the end; whoever looks only then sees nothing of it. */
static int on_layer_look(_unused_ sd_event_source *source, _unused_ uint64_t usec, void *userdata)
{
        Run *run = userdata;

        jobfs_look(run->fs, run->outcome);
        return run_timer(run, TIMER_LAYER, LAYER_LOOK_USEC, on_layer_look);
}

static int on_main_exit(
                _unused_ sd_event_source *source, _unused_ int fd, _unused_ uint32_t revents, void *userdata)
{
        Run *run = userdata;

        sd_event_source_disable_unref(run->exit_source);
        run->exit_source = NULL;
        return run_main_ended(run);
}

static int on_deadline(_unused_ sd_event_source *source, _unused_ uint64_t usec, void *userdata)
{
        Run *run = userdata;

        if (run->state != RUN_RUNNING)
                return 0;
        /* It may have ended in time, and that waits for its turn behind what other jobs do. */
        return proc_has_ended(run->pidfd) ? on_main_exit(NULL, run->pidfd, 0, run) : run_deadline(run);
}

/* The same priority for all that the job does, so that the event loop takes them in turn: endless output must
 * not keep the end from being seen. */
static int watch(Run *run)
{
        int r = sd_event_add_io(
                        run->engine->event, &run->exit_source, run->pidfd, EPOLLIN, on_main_exit, run);
        if (r >= 0)
                r = sd_event_source_set_priority(run->exit_source, RUN_PRIORITY_EVIDENCE);

        for (size_t i = 0; r >= 0 && i < 2; i++)
                r = sd_event_add_io(run->engine->event, &run->output_sources[i], capture_fd(run->captures[i]),
                                EPOLLIN, on_output, run);
        if (r >= 0)
                r = sd_event_add_io(
                                run->engine->event, &run->life_source, run->life_fd, EPOLLIN, on_life, run);
        for (size_t i = 0; r >= 0 && i < 2; i++)
                r = sd_event_source_set_priority(run->output_sources[i], RUN_PRIORITY_EVIDENCE);
        if (r >= 0 && run->fs)
                r = run_timer(run, TIMER_LAYER, LAYER_LOOK_USEC, on_layer_look);
        if (r >= 0 && run->plan->limits.value[LIMIT_CPU_TIME] != LIMIT_UNLIMITED)
                r = run_timer(run, TIMER_CPU, CPU_POLL_USEC, on_cpu_poll);
        if (r >= 0)
                r = run_timer(run, TIMER_SAMPLE, series_wait(&run->outcome->samples, 0), on_sample);
        return r < 0 ? r : 0;
}

/* The stage sets it anew, whatever it has from systemd: only what the policy says counts. */
static unsigned job_umask(const Plan *plan)
{
        const PropertyValue *value = property_list_find(&plan->service_properties, "UMask");

        return value ? (unsigned) value->number : UMASK_DEFAULT;
}

static int open_gate(Run *run, Error *e)
{
        _cleanup_close_ int command_fd = -EBADF, life_fd = -EBADF;
        int streams[3] = { run->stdin_fd, run->output_fds[0], run->output_fds[1] },
            pair[2] = { -EBADF, -EBADF }, r = 0;

        for (size_t i = 0; r == 0 && i < 2; i++)
                r = capture_give(run->captures[i], run->uid, run->gid);
        if (r == 0)
                r = gate_command(run->plan->cwd, look_search_path(run->plan), run->plan->argv, run->plan->env,
                                job_umask(run->plan), &command_fd);
        if (r == 0 && pipe2(pair, O_CLOEXEC) < 0)
                r = -errno;
        if (r < 0)
                return error_errno(e, r, "the command cannot be handed over");
        run->life_fd = pair[0];
        life_fd = pair[1];
        r = watch(run);
        if (r < 0)
                return error_errno(e, r, "the job cannot be watched");
        cgroup_read_usage(run->slice_fd, &run->base);
        run->outer_oom_base = cgroup_outer_oom(run->slice_fd);
        run_phase(run, PHASE_GATE);
        run->released_usec = now_monotonic();
        run->released_boottime_usec = now_boottime();
        r = gate_release(run->gate_fd, command_fd, streams, life_fd);
        if (r < 0)
                return error_errno(e, r, "the gate cannot be opened");
        run->outcome->released = true;
        run->state = RUN_RUNNING;
        r = run_timer(run, TIMER_DEADLINE, run->plan->timeout_usec, on_deadline);
        if (r < 0)
                return error_errno(e, r, "the deadline cannot be set");
        for (size_t i = 0; i < 2; i++)
                run->output_fds[i] = safe_close(run->output_fds[i]);
        run->stdin_fd = safe_close(run->stdin_fd);
        return 0;
}

int run_release(Run *run)
{
        Error e = ERROR_INIT;
        int r;

        run_phase(run, PHASE_HELD);
        r = observe(run, &e);
        if (r < 0)
                return run_host_error(run, "isolation_missing",
                                "systemd leaves out some settings without a word where the kernel or a container "
                                "cannot give them; run qscope where it can, or ask for less in the policy",
                                &e);
        r = open_gate(run, &e);
        return r < 0 ? run_host_error(run, "stage_failed", NULL, &e) : 0;
}

int run_hold(Run *run)
{
        Error e = ERROR_INIT;
        int r;

        run_phase(run, PHASE_START);
        r = open_held(run, &e);
        if (r < 0)
                return run_host_error(run, "stage_failed", NULL, &e);
        r = is_bounded(run) ? bounded_hold(run, &e)
                            : jobfs_attach(run->fs, run->proc_fd, run->service_fd, run->uid, run->gid, &e);
        if (r < 0)
                return run_host_error(run, "workspace_failed", NULL, &e);
        count_errors(run);
        r = observers_attach(run, &e);
        if (r < 0)
                return run_host_error(run, "observers_failed", NULL, &e);
        run_phase(run, PHASE_GATE);
        run->state = RUN_HELD;
        return engine_take_turn(run) ? run_release(run) : 0;
}
