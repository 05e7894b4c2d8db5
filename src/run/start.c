/* SPDX-License-Identifier: Apache-2.0 */

/* From the request to the manager to the stage at the gate, and what the stage says there. A start that fails
 * is told with systemd's own step. */

#include "run/state.h"

#include <signal.h>
#include <sys/epoll.h>

#include "sys/gate.h"
#include "sys/host.h"
#include "sys/netns.h"

#define START_TIMEOUT (45 * USEC_PER_SEC)
#define LOOK_DELAY    (50 * USEC_PER_MSEC)

static const char *const step_names[_GATE_STEP_MAX] = {
        [GATE_STEP_NONE] = "none",
        [GATE_STEP_PREPARE] = "prepare",
        [GATE_STEP_CHDIR] = "chdir",
        [GATE_STEP_EXEC] = "exec",
};

static void record_exec(Run *run, const struct GateMessage *message)
{
        ExecRecord *exec = &run->outcome->exec;

        if (message->kind == GATE_TRYING || message->kind == GATE_FAILED) {
                free(exec->resolved);
                exec->resolved = message->path[0] ? strdup(message->path) : NULL;
        }
        if (message->kind != GATE_FAILED)
                return;
        exec->error = message->error > 0 ? message->error : EIO;
        free(exec->step);
        exec->step = strdup(step_names[message->step]);
        exec->head_size = MIN((size_t) message->head_size, sizeof(exec->head));
        memcpy(exec->head, message->head, exec->head_size);
        exec->file_mode = message->mode;
}

void run_settle_exec(Run *run)
{
        struct GateMessage message;
        GatePeer peer;

        if (run->exec_settled)
                return;
        run->exec_settled = true;
        run->life_source = sd_event_source_disable_unref(run->life_source);
        run->gate_source = sd_event_source_disable_unref(run->gate_source);
        run->outcome->exec.error = 0;
        while (gate_receive(run->gate_fd, &message, &peer) == 1)
                if (peer.pid == run->pid)
                        record_exec(run, &message);
        run->gate_fd = safe_close(run->gate_fd);
}

int on_life(_unused_ sd_event_source *source, _unused_ int fd, _unused_ uint32_t revents, void *userdata)
{
        run_settle_exec(userdata);
        return 0;
}

/* In a sandbox it is never root; without one it is the very process that we started. */
static bool is_stage(const Run *run, const GatePeer *peer)
{
        return is_bounded(run) ? peer->pid == run->child : peer->pid > 0 && peer->uid != 0;
}

/* A scope has to be there, too, before anything is let go. */
static int hold(Run *run)
{
        if (!run->ready || (is_bounded(run) && !run->scope_made))
                return 0;
        run_timer_off(run, TIMER_WATCHDOG);
        run_timer_off(run, TIMER_STATUS);
        return run_hold(run);
}

static int on_gate(
                _unused_ sd_event_source *source, _unused_ int fd, _unused_ uint32_t revents, void *userdata)
{
        Run *run = userdata;
        struct GateMessage message;
        Error e = ERROR_INIT;
        GatePeer peer;
        int r;

        /* After the release everything is read at once, when the exec is settled. */
        if (run->state != RUN_STARTING || run->ready) {
                run->gate_source = sd_event_source_disable_unref(run->gate_source);
                return 0;
        }
        r = gate_receive(run->gate_fd, &message, &peer);
        if (r == 0)
                return 0;
        /* systemd gave up, and will say why. */
        if (r == -EPIPE && !is_bounded(run)) {
                run->gate_source = sd_event_source_disable_unref(run->gate_source);
                return 0;
        }
        if (r < 0 || message.kind != GATE_READY || !is_stage(run, &peer)) {
                run->gate_source = sd_event_source_disable_unref(run->gate_source);
                error_set(&e, -EBADMSG, "the stage did not say that it is ready");
                return run_host_error(run, "stage_failed", NULL, &e);
        }
        run->ready = true;
        run->pid = peer.pid;
        run->uid = peer.uid;
        run->gid = peer.gid;
        return hold(run);
}

/* Exit statuses of systemd's own steps between fork and exec (systemd.exec(5), "Process Exit Codes"). */
static const struct {
        int status;
        const char *name;
} step_statuses[] = {
        { 200, "CHDIR" },
        { 203, "EXEC" },
        { 205, "LIMITS" },
        { 208, "STDIN" },
        { 209, "STDOUT" },
        { 210, "CHROOT" },
        { 213, "SECUREBITS" },
        { 216, "GROUP" },
        { 217, "USER" },
        { 218, "CAPABILITIES" },
        { 219, "CGROUP" },
        { 225, "NETWORK" },
        { 226, "NAMESPACE" },
        { 227, "NO_NEW_PRIVILEGES" },
        { 228, "SECCOMP" },
        { 232, "ADDRESS_FAMILIES" },
        { 233, "RUNTIME_DIRECTORY" },
        { 237, "KEYRING" },
};

static int on_look_again(sd_event_source *source, uint64_t usec, void *userdata);

/* A step that failed counts as success like every other end of the main process, so the start job says "done"
 * all the same; only the status tells. */
static void on_start_status(void *userdata, int r, const ServiceStatus *status)
{
        Run *run = userdata;
        const char *step = NULL;
        Error e = ERROR_INIT;

        if (run->state != RUN_STARTING || run->ready)
                return;
        if (r < 0 || (status->code == 0 && streq(status->result, "success"))) {
                (void) run_timer(run, TIMER_STATUS, LOOK_DELAY, on_look_again);
                return;
        }
        for (size_t i = 0; i < ELEMENTSOF(step_statuses); i++)
                if (status->code == CLD_EXITED && status->status == step_statuses[i].status)
                        step = step_statuses[i].name;
        if (step)
                error_set(&e, -EIO, "systemd could not set up the sandbox: step %s failed (status %d)", step,
                                status->status);
        else
                error_set(&e, -EIO,
                                "the unit ended before its command could be started (result \"%s\", status %d)",
                                status->result, status->status);
        (void) run_host_error(run, step ? "sandbox_failed" : "start_failed",
                        "journalctl -b -u 'qscope-*' says more", &e);
}

static int on_look_again(_unused_ sd_event_source *source, _unused_ uint64_t usec, void *userdata)
{
        Run *run = userdata;

        if (run->state != RUN_STARTING || run->ready)
                return 0;
        return manager_status(run->engine->manager, run->plan->service, on_start_status, run) < 0
                               ? run_timer(run, TIMER_STATUS, LOOK_DELAY, on_look_again)
                               : 0;
}

static void on_started(void *userdata, int r, const Error *e)
{
        Run *run = userdata;
        Error copy = *e;

        if (run->state != RUN_STARTING || (run->ready && !is_bounded(run)))
                return;
        if (is_bounded(run)) {
                run->scope_made = r >= 0;
                (void) (r < 0 ? run_host_error(run, "start_refused", NULL, &copy) : hold(run));
                return;
        }
        /* Refused at once; or a start job that ended, and then the unit knows how. */
        if (r < 0 && !strstr(e->text, "systemd's job for"))
                (void) run_host_error(run, "start_refused", NULL, &copy);
        else
                (void) run_timer(run, TIMER_STATUS, LOOK_DELAY, on_look_again);
}

static int on_start_timeout(_unused_ sd_event_source *source, _unused_ uint64_t usec, void *userdata)
{
        Error e = ERROR_INIT;

        error_set(&e, -ETIMEDOUT, "systemd did not start the unit within %u s",
                        (unsigned) (START_TIMEOUT / USEC_PER_SEC));
        return run_host_error(userdata, "start_timeout", "look at systemctl list-jobs", &e);
}

int run_start(Run *run, Error *e)
{
        _cleanup_free_ char *network = run->netns_fd >= 0 ? netns_path(run->netns_fd) : NULL;
        UnitRequest request = {
                .service = run->plan->service,
                .slice = run->plan->slice,
                .service_properties = &run->plan->service_properties,
                .slice_properties = &run->plan->slice_properties,
                .program = is_bounded(run) ? NULL : STAGE_TARGET,
                .network_namespace = network,
                .stdin_fd = run->stage_fd,
        };
        int r = is_bounded(run) ? bounded_fork(run, e) : 0;

        if (r < 0)
                return r;
        request.pid = run->child;
        r = run->netns_fd >= 0 && !network ? -ENOMEM : 0;
        if (r >= 0)
                r = sd_event_add_io(
                                run->engine->event, &run->gate_source, run->gate_fd, EPOLLIN, on_gate, run);
        if (r >= 0)
                r = run_timer(run, TIMER_WATCHDOG, START_TIMEOUT, on_start_timeout);
        if (r < 0)
                return error_errno(e, r, "the event loop");
        run_phase(run, PHASE_PREPARE);
        r = manager_start(run->engine->manager, &request, on_started, run, e);
        if (r < 0)
                return r;
        run->units_asked = true;
        run->stage_fd = safe_close(run->stage_fd);
        return 0;
}
