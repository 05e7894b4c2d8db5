/* SPDX-License-Identifier: Apache-2.0 */
#include "run/engine.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

#include "run/state.h"
#include "sys/mount.h"

/* Deep trees are walked with a few descriptors for each level, each job is watched with a dozen for each CPU,
 * and images are larger than a caller's ulimit. */
const __rlimit_resource_t engine_raised_limits[ENGINE_RAISED_LIMITS] = { RLIMIT_NOFILE, RLIMIT_FSIZE };
#define OPEN_FILES_WANTED 524288u /* systemd's own hard limit for services */

static const int abort_signals[ENGINE_SIGNALS] = { SIGINT, SIGTERM, SIGHUP };

static void raise_own_limits(Engine *engine)
{
        for (size_t i = 0; i < ENGINE_RAISED_LIMITS; i++) {
                struct rlimit limit;

                if (getrlimit(engine_raised_limits[i], &limit) < 0)
                        continue;
                engine->caller_limits[i] = limit;
                if (engine_raised_limits[i] == RLIMIT_NOFILE && limit.rlim_max < OPEN_FILES_WANTED)
                        (void) setrlimit(
                                        RLIMIT_NOFILE, &(struct rlimit){ limit.rlim_cur, OPEN_FILES_WANTED });
                if (getrlimit(engine_raised_limits[i], &limit) < 0)
                        continue;
                limit.rlim_cur = limit.rlim_max;
                (void) setrlimit(engine_raised_limits[i], &limit);
        }
}

static int on_signal(_unused_ sd_event_source *source, const struct signalfd_siginfo *info, void *userdata)
{
        Engine *engine = userdata;

        if (engine->signal == 0)
                engine->signal = (int) info->ssi_signo;
        if (engine->turns != SIZE_MAX)
                engine_dismiss_ahead(engine);
        for (Run *run = engine->runs; run; run = run->next)
                if (!run->dismissed)
                        run_abort(run, (int) info->ssi_signo);
        return 0;
}

static int add_signals(Engine *engine)
{
        sigset_t set;
        int r = 0;

        (void) sigemptyset(&set);
        for (size_t i = 0; i < ENGINE_SIGNALS; i++)
                (void) sigaddset(&set, abort_signals[i]);
        if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
                return -errno;
        for (size_t i = 0; r >= 0 && i < ENGINE_SIGNALS; i++)
                r = sd_event_add_signal(
                                engine->event, &engine->signals[i], abort_signals[i], on_signal, engine);
        for (size_t i = 0; r >= 0 && i < ENGINE_SIGNALS; i++)
                r = sd_event_source_set_priority(engine->signals[i], RUN_PRIORITY_TIME);
        return r;
}

/* --- turns --- */

static bool is_ahead(const Run *run)
{
        return !run->has_turn && !run->dismissed && run->state <= RUN_HELD;
}

/* The list has the youngest first. */
static Run *oldest_ahead(const Engine *engine)
{
        Run *oldest = NULL;

        for (Run *run = engine->runs; run; run = run->next)
                if (is_ahead(run))
                        oldest = run;
        return oldest;
}

static void look_for_next(Engine *engine)
{
        (void) sd_event_source_set_enabled(engine->turn_source, SD_EVENT_ONESHOT);
}

/* In the order in which they were begun: who is ready sooner waits for who was there before. */
bool engine_take_turn(Run *run)
{
        Engine *engine = run->engine;

        if (engine->turns == SIZE_MAX)
                return true;
        if (!run->has_turn && engine->turns_taken < engine->turns && oldest_ahead(engine) == run) {
                engine->turns_taken++;
                run->has_turn = true;
                look_for_next(engine);
        }
        return run->has_turn;
}

void engine_end_turn(Run *run)
{
        if (run->turn_ended)
                return;
        run->turn_ended = true;
        if (run->has_turn)
                run->engine->turns_taken--;
        look_for_next(run->engine);
}

static int on_turn(_unused_ sd_event_source *source, void *userdata)
{
        Engine *engine = userdata;
        Run *run;

        while ((run = oldest_ahead(engine)) && run->state == RUN_HELD && engine_take_turn(run))
                (void) run_release(run);
        return 0;
}

void engine_set_turns(Engine *engine, size_t turns)
{
        engine->turns = turns;
}

size_t engine_ahead(const Engine *engine)
{
        size_t n = 0;

        for (const Run *run = engine->runs; run; run = run->next)
                n += is_ahead(run);
        return n;
}

uint64_t engine_longest_usec(const Engine *engine)
{
        uint64_t longest = 0;

        for (const Run *run = engine->runs; run; run = run->next)
                longest = MAX(longest, run->plan->timeout_usec);
        return longest;
}

void engine_dismiss_ahead(Engine *engine)
{
        for (Run *run = engine->runs; run; run = run->next) {
                if (!is_ahead(run))
                        continue;
                run->dismissed = true;
                (void) (run->units_asked ? run_kill(run) : run_stop(run));
        }
}

int engine_new(Engine **ret)
{
        _cleanup_(engine_freep) Engine *engine = calloc(1, sizeof(*engine));
        int r;

        if (!engine)
                return -ENOMEM;
        *engine = (Engine){
                .guard = GUARD_INIT, .mntns_fd = -EBADF, .left_behind = ERROR_INIT, .turns = SIZE_MAX
        };
        engine->caller_umask = umask(0022); /* whatever the caller's is: a job's root must be readable */
        raise_own_limits(engine);
        r = sd_event_new(&engine->event);
        if (r >= 0)
                r = sd_event_add_defer(engine->event, &engine->turn_source, on_turn, engine);
        if (r >= 0)
                r = sd_event_source_set_enabled(engine->turn_source, SD_EVENT_OFF);
        if (r >= 0)
                r = add_signals(engine);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(engine);
        return 0;
}

Engine *engine_free(Engine *engine)
{
        if (!engine)
                return NULL;
        /* Without a word of farewell the guard kills what is left. */
        if (!engine->runs)
                guard_dismiss(&engine->guard);
        engine->guard.fd = safe_close(engine->guard.fd);
        while (engine->runs)
                run_free(engine->runs);
        for (size_t i = 0; i < ENGINE_SIGNALS; i++)
                sd_event_source_disable_unref(engine->signals[i]);
        sd_event_source_disable_unref(engine->turn_source);
        manager_free(engine->manager);
        sd_event_unref(engine->event);
        tracefs_free(engine->tracefs);
        safe_close(engine->mntns_fd);
        free(engine);
        return NULL;
}

int engine_step(Engine *engine)
{
        int r = sd_event_run(engine->event, UINT64_MAX);

        return r < 0 ? r : 0;
}

int engine_signal(const Engine *engine)
{
        return engine->signal;
}

unsigned engine_caller_umask(const Engine *engine)
{
        return engine->caller_umask;
}

/* --- what the first run needs --- */

/* Each step with the reason code of its failure and what a person can do about it. */
static int fail(Outcome *o, const char *code, const char *remedy, const Error *e)
{
        outcome_host_error(o, code, remedy, "%s", e->text);
        return -EHOSTDOWN;
}

/* The guard first: it stays in the caller's mount namespace. */
static int leave_host(Engine *engine, Error *e)
{
        int r;

        if (engine->guard.fd < 0) {
                r = guard_start(&engine->guard);
                if (r < 0)
                        return error_errno(e, r, "the guard process cannot be started");
        }
        if (engine->mntns_fd >= 0)
                return 0;
        engine->mntns_fd = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
        r = engine->mntns_fd < 0 ? -errno : mount_namespace_own();
        if (r < 0)
                engine->mntns_fd = safe_close(engine->mntns_fd);
        return r < 0 ? error_errno(e, r, "a mount namespace of its own") : 0;
}

static int connect_manager(Engine *engine, Outcome *o)
{
        Error e = ERROR_INIT;
        int r = manager_connect(engine->event, &engine->manager, &e);

        if (r == -EHOSTDOWN)
                return fail(o, "no_systemd", "run qscope on a host that systemd booted, or in tools/bed", &e);
        if (r < 0)
                return fail(o, "bus_unavailable", "start it: systemctl start dbus.socket", &e);
        if (rundir_clean(engine->manager, &e) < 0)
                engine->left_behind = e;
        return 0;
}

int engine_open(Engine *engine, Outcome *o)
{
        Error e = ERROR_INIT;
        int r;

        if (geteuid() != 0) {
                error_set(&e, -EPERM, "qscope must be root to ask systemd for an isolated unit");
                return fail(o, "not_root", "run it as root (sudo qscope …)", &e);
        }
        r = leave_host(engine, &e);
        /* Where many runs follow each other, each would switch the tracepoints on and off. */
        if (r == 0 && !engine->tracefs)
                r = tracefs_new(engine->turns != SIZE_MAX, &engine->tracefs);
        if (r < 0)
                return fail(o, "internal", NULL, &e);
        r = engine->manager ? 0 : connect_manager(engine, o);
        if (r < 0)
                return r;
        o->host.systemd = strdup(manager_version(engine->manager));
        if (engine->left_behind.text[0])
                (void) outcome_blind_spot(o, "what an earlier run left could not be removed: %s",
                                engine->left_behind.text);
        if (manager_version_number(engine->manager) >= MANAGER_VERSION_MIN)
                return 0;
        error_set(&e, -EOPNOTSUPP, "systemd %s is too old: ExitType=cgroup and more came with %d",
                        manager_version(engine->manager), MANAGER_VERSION_MIN);
        return fail(o, "systemd_too_old", "upgrade systemd", &e);
}
