/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The state of one run, shared by the files of run/ that make up its machine. */

#include <sys/resource.h>
#include <systemd/sd-event.h>

#include "run/engine.h"
#include "run/guard.h"
#include "run/input.h"
#include "run/jobfs.h"
#include "run/run.h"
#include "run/rundir.h"
#include "sys/capture.h"
#include "sys/closing.h"
#include "sys/errors.h"
#include "sys/manager.h"
#include "sys/sockets.h"

typedef enum RunState {
        RUN_STARTING, /* the manager has been asked; the stage is not at the gate yet */
        RUN_HELD,     /* it is at the gate, and waits for its turn */
        RUN_RUNNING,  /* the gate is open */
        RUN_DRAINING, /* the main process has ended; what is left has the grace */
        RUN_KILLING,  /* everything has been killed; not everything is gone */
        RUN_STOPPING, /* nothing lives any more; the units are being stopped */
        RUN_DONE,
} RunState;

typedef enum RunTimer {
        TIMER_WATCHDOG,
        TIMER_DEADLINE,
        TIMER_CPU,
        TIMER_STATUS,
        TIMER_LAYER,
        TIMER_SAMPLE,
        _RUN_TIMER_MAX
} RunTimer;

/* In the event loop, what runs out comes first: no flood of events may keep a job alive beyond its time. What
 * a job says and does comes next, in turns; then what the manager says. */
#define RUN_PRIORITY_TIME     (SD_EVENT_PRIORITY_IMPORTANT - 10)
#define RUN_PRIORITY_EVIDENCE SD_EVENT_PRIORITY_IMPORTANT

#define ENGINE_RAISED_LIMITS 2
#define ENGINE_SIGNALS       3
extern const __rlimit_resource_t engine_raised_limits[ENGINE_RAISED_LIMITS];

struct Engine {
        sd_event *event;
        Manager *manager; /* NULL: not connected yet */
        Guard guard;
        int mntns_fd; /* the caller's mount namespace; -EBADF: this is still in it */
        sd_event_source *signals[ENGINE_SIGNALS];
        int signal;
        struct rlimit caller_limits[ENGINE_RAISED_LIMITS];
        mode_t caller_umask;
        unsigned controllers; /* of the host's control groups: asked once */
        bool controllers_known;
        Tracefs *tracefs;
        Error left_behind; /* why what dead runs left could not be removed */
        struct Run *runs;  /* the youngest first */
        size_t turns, turns_taken;
        sd_event_source *turn_source; /* a turn has ended */
};

typedef struct Run {
        Engine *engine;
        struct Run *next; /* of the engine's */
        const Plan *plan;
        RunOptions options;
        Outcome *outcome;
        RunHandler handler;
        void *userdata;
        RunState state;

        RunDir *dir;
        JobFs *fs;

        int gate_fd, stage_fd, life_fd;
        int netns_fd; /* the job's network namespace; -EBADF: the host's */
        struct NetworkWatch *network;
        int pidfd, proc_fd, slice_fd, service_fd, events_fd, tasks_fd;
        int stdin_fd, output_fds[2]; /* the job's ends, closed here once they are handed over */
        Capture *captures[2];
        ErrorCounter *errors;
        struct ProcessWatch *processes; /* watch_processes.h */
        Sockets *sockets;               /* NULL: they are not observed */
        int ipcns_fd;                   /* the job's own IPC namespace; < 0: it has none */
        uint64_t keys_before;           /* of the job's uid, at the gate */
        Closing closing;
        Usage base; /* what the slice had used when the gate was opened */
        uint64_t outer_oom_base;

        sd_event_source *gate_source, *life_source, *exit_source, *events_source, *tasks_source,
                        *sockets_source, *output_sources[2], *done_source;
        sd_event_source *timers[_RUN_TIMER_MAX];

        pid_t child; /* bounded: the stage, started by us and not waited for yet; 0: none */
        bool scope_made;

        pid_t pid;
        uid_t uid;
        gid_t gid;
        bool dismissed, has_turn, turn_ended, guarded, units_asked, ready, exec_settled, main_ended,
                        status_known, stop_failed, stop_retried;
        unsigned status_tries;
        uint64_t released_usec; /* CLOCK_MONOTONIC */
        uint64_t released_boottime_usec;
        uint64_t killed_usec; /* when all that was left was killed; 0: not yet */
        uint64_t phase_start_usec;
} Run;

/* Gives up all that a run has and takes it out of its engine. What it started must be gone. */
Run *run_free(Run *run);
/* qscope has been told to stop. */
void run_abort(Run *run, int signal);

/* Ends the phase that has been going on since the last call. */
void run_phase(Run *run, Phase ended);

/* The host's fault: the run ends as an error. Kills what has been started. Returns 0, for event handlers. */
int run_host_error(Run *run, const char *code, const char *remedy, const Error *e);

/* Arms or re-arms a timer, usec from now. */
int run_timer(Run *run, RunTimer timer, uint64_t usec, sd_event_time_handler_t handler);
void run_timer_off(Run *run, RunTimer timer);

/* Stops the units, after the last process is gone or because none ever came. */
int run_stop(Run *run);

/* --- engine.c: whose turn it is --- */
bool engine_take_turn(Run *run);
/* Nothing of it lives any more. Without a turn it does nothing. */
void engine_end_turn(Run *run);

/* --- start.c: until the stage is at the gate --- */

/* Asks the manager for the units; what follows comes as events. */
int run_start(Run *run, Error *e);

/* Whether the command was executed: everything the stage had to say has been read then. */
void run_settle_exec(Run *run);
int on_life(sd_event_source *source, int fd, uint32_t revents, void *userdata);

/* --- hold.c: the stage is at the gate --- */

/* All that can be done before it is its turn; and then the rest, if it is. */
int run_hold(Run *run);
/* It is its turn: looks whether the isolation is there, and opens the gate. */
int run_release(Run *run);

/* --- observers.c: what the job starts, opens and tries to reach. A kind of evidence that this host cannot
 * give is a blind spot and no error. --- */

/* Before the unit is asked for: what has to be there when the sandbox is made. */
int observers_prepare(Run *run, Error *e);
/* While systemd makes it. */
int observers_listen(Run *run, Error *e);
/* The stage is at the gate: from here on nothing of the job is missed. */
int observers_attach(Run *run, Error *e);
/* The main process has ended, or is over its time, and all that is left is frozen. */
void observers_look(Run *run);
/* The last process is gone. */
void observers_finish(Run *run);
void observers_clear(Run *run);
/* An event of the trace, in the order of their time. */
void observers_trace(Run *run, const TraceEvent *event);

/* What was to be seen and was missed. */
void run_lose_evidence(Run *run, const char *format, ...) _printf_(2, 3);
/* What is not observed since a call failed with r: a blind spot where this host cannot do it; lost evidence
 * where it lacked something at this moment, a descriptor or memory. 0 or -ENOMEM. */
int run_not_observed(Run *run, int r, const char *format, ...) _printf_(3, 4);

/* --- bounded.c: a scope instead of a service --- */
static inline bool is_bounded(const Run *run)
{
        return run->plan->posture == POSTURE_BOUNDED;
}

/* Starts the stage, held at the gate. */
int bounded_fork(Run *run, Error *e);
/* It is in its scope: what systemd does for a service only. */
int bounded_hold(Run *run, Error *e);
/* Whether it has ended, and how. */
bool bounded_status(Run *run, ServiceStatus *ret);
/* Nothing of it is left behind. */
void bounded_reap(Run *run);
int bounded_observe(Run *run, Error *e);

/* --- settle.c: from the end of the main process to the last one's --- */
int run_kill(Run *run);
/* The time is over: look, then kill. */
int run_deadline(Run *run);
int run_main_ended(Run *run);
int run_advance(Run *run);
int on_cgroup_events(sd_event_source *source, int fd, uint32_t revents, void *userdata);
int on_tasks_events(sd_event_source *source, int fd, uint32_t revents, void *userdata);
int on_output(sd_event_source *source, int fd, uint32_t revents, void *userdata);
