/* SPDX-License-Identifier: Apache-2.0 */
#include "run/watch_processes.h"

#include <signal.h>
#include <sys/epoll.h>

#include "core/process_tree.h"
#include "run/may_run.h"
#include "sys/host.h"
#include "sys/proc.h"
#include "sys/programs.h"
#include "sys/trace.h"

struct ProcessWatch {
        Trace *trace;
        Programs *programs;
        TreeBuilder *tree;
        sd_event_source *trace_source, *programs_source;
        bool broken; /* no longer complete, for a reason that was told */
};

static void broken(Run *run, const char *what, int r)
{
        run->processes->broken = true;
        run_lose_evidence(run, "%s: %s", what, strerror(-r));
}

/* A kill from outside the job is not seen to be sent; this one was ours. */
static void complete_event(const Run *run, TraceEvent *event)
{
        if (event->kind == TRACE_SIGNAL && event->value == 0 && run->killed_usec != 0 &&
                        event->usec >= run->killed_usec)
                event->value = SIGKILL;
}

static int on_event(void *userdata, const TraceEvent *event)
{
        Run *run = userdata;
        TraceEvent complete = *event;

        complete_event(run, &complete);
        observers_trace(run, &complete);
        return tree_builder_trace(run->processes->tree, &complete);
}

void processes_sync(Run *run)
{
        ProcessWatch *watch = run->processes;
        int r;

        if (!watch || !watch->trace)
                return;
        r = trace_read(watch->trace, on_event, run);
        if (r < 0)
                broken(run, "the trace of processes could not be read", r);
}

static bool on_start(void *userdata, const ProgramStart *start, int fd)
{
        Run *run = userdata;
        bool part = false;
        int r = 0;

        /* Whose number this is now: its fork, and the end of who had it before. */
        processes_sync(run);
        if (start->call != 0) {
                part = tree_builder_knows(run->processes->tree, start);
                r = tree_builder_start(run->processes->tree, start);
        }
        if (r < 0)
                broken(run, "the start of a program could not be recorded", r);
        return may_run(run, start, part, fd);
}

void processes_serve(Run *run)
{
        ProcessWatch *watch = run->processes;
        int r;

        if (!watch || !watch->programs)
                return;
        r = programs_answer(watch->programs, on_start, run);
        if (r == 0)
                return;
        broken(run, "the starts of programs could not be read", r);
        /* From here on everything is let through: nothing must be left that could start it. */
        if (may_run_is_asked(run))
                (void) run_kill(run);
        /* Nobody must wait for an answer that does not come. */
        watch->programs_source = sd_event_source_disable_unref(watch->programs_source);
        watch->programs = programs_free(watch->programs);
}

int processes_fd(const Run *run)
{
        return run->processes && run->processes->programs ? programs_fd(run->processes->programs) : -EBADF;
}

static int on_programs(
                _unused_ sd_event_source *source, _unused_ int fd, _unused_ uint32_t revents, void *userdata)
{
        processes_serve(userdata);
        return 0;
}

static int on_trace(
                _unused_ sd_event_source *source, _unused_ int fd, _unused_ uint32_t revents, void *userdata)
{
        processes_sync(userdata);
        return 0;
}

static bool find_program(_unused_ void *userdata, pid_t pid, char **ret_path, char ***ret_argv)
{
        return proc_program(pid, ret_path, ret_argv) == 0;
}

static int watch_source(Run *run, int fd, sd_event_io_handler_t handler, sd_event_source **ret)
{
        int r = sd_event_add_io(run->engine->event, ret, fd, EPOLLIN, handler, run);

        if (r >= 0)
                r = sd_event_source_set_priority(*ret, RUN_PRIORITY_EVIDENCE);
        return r < 0 ? r : 0;
}

static int open_trace(Run *run, ProcessWatch *watch)
{
        int r = trace_open(run->engine->tracefs, run->slice_fd, NULL, &watch->trace);

        if (r < 0)
                return run_not_observed(run, r,
                                "processes.tree: processes that execute nothing, and how processes end, are not "
                                "seen (perf_event_open: %s)",
                                strerror(-r));
        return watch_source(run, trace_fd(watch->trace), on_trace, &watch->trace_source);
}

static int open_programs(Run *run, ProcessWatch *watch, Error *e)
{
        Error reason = ERROR_INIT;
        /* In the posture bounded, too, the mounts are not the host's but those of a namespace of the job's
         * own: nobody else is held up. */
        int r = programs_open(run->proc_fd, &watch->programs, &reason);

        if (r == 0 && programs_unwatched(watch->programs) && may_run_is_asked(run))
                r = error_set(&reason, -EOPNOTSUPP, "fanotify cannot watch %s",
                                programs_unwatched(watch->programs));
        if (r < 0 && may_run_is_asked(run))
                return error_set(e, -EOPNOTSUPP,
                                "the policy %s decides which programs may run, and this host cannot refuse them: %s",
                                run->plan->policy->name, reason.text);
        if (r < 0)
                return run_not_observed(run, r,
                                "processes.tree: programs and their arguments are looked up after their start, "
                                "and may be missed (%s)",
                                reason.text);
        if (programs_unwatched(watch->programs))
                r = outcome_blind_spot(run->outcome,
                                "processes.tree: fanotify cannot watch %s: programs and their arguments are looked "
                                "up after their start there, and may be missed",
                                programs_unwatched(watch->programs));
        return r < 0 ? r
                     : watch_source(run, programs_fd(watch->programs), on_programs, &watch->programs_source);
}

int processes_attach(Run *run, Error *e)
{
        ProcessWatch *watch = calloc(1, sizeof(*watch));
        int r;

        if (!watch)
                return error_errno(e, -ENOMEM, "the processes of the job cannot be watched");
        run->processes = watch;
        r = open_trace(run, watch);
        if (r >= 0)
                r = open_programs(run, watch, e);
        if (r >= 0)
                r = tree_builder_new(&tree_bounds_default, watch->trace != NULL, run->pid, &watch->tree);
        if (r < 0)
                return e->text[0] ? r : error_errno(e, r, "the processes of the job cannot be watched");
        tree_builder_set_finder(watch->tree, find_program, NULL);
        return 0;
}

bool processes_traced(const Run *run)
{
        return run->processes && run->processes->trace;
}

const char *processes_program(const Run *run, pid_t pid)
{
        return run->processes && run->processes->tree ? tree_builder_program(run->processes->tree, pid)
                                                      : NULL;
}

/* What they are called by themselves may be anything. */
void processes_look(Run *run)
{
        ProcessList *list = &run->outcome->leftovers;

        processes_sync(run);
        for (size_t i = 0; i < list->n; i++) {
                const char *program = processes_program(run, list->items[i].pid);

                free(list->items[i].program);
                list->items[i].program = program ? strdup(program) : NULL;
        }
}

void processes_finish(Run *run)
{
        ProcessWatch *watch = run->processes;
        ProcessTree *tree = &run->outcome->processes;

        if (!watch || !watch->tree || !run->outcome->released)
                return;
        processes_serve(run);
        processes_sync(run);
        process_tree_clear(tree);
        tree_builder_finish(watch->tree, run->released_usec, tree);
        if (watch->trace)
                tree->lost += trace_lost(watch->trace);
        if (watch->programs)
                tree->lost += programs_lost(watch->programs);
        /* It ran, and nothing of that was seen: whatever the cause, the observers are blind. */
        if ((watch->trace || watch->programs) && tree->programs == 0 && run->outcome->exited &&
                        run->outcome->exec.error == 0)
                tree->lost++;
        tree->complete = watch->programs && !programs_unwatched(watch->programs) && !watch->broken;
}

void processes_clear(Run *run)
{
        ProcessWatch *watch = run->processes;

        if (!watch)
                return;
        sd_event_source_disable_unref(watch->trace_source);
        sd_event_source_disable_unref(watch->programs_source);
        trace_give(watch->trace, &run->closing);
        programs_give(watch->programs, &run->closing);
        trace_free(watch->trace);
        programs_free(watch->programs);
        tree_builder_free(watch->tree);
        free(watch);
        run->processes = NULL;
}
