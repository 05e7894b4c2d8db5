/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/manager.h"

#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <systemd/sd-bus.h>

#include "base/text.h"
#include "sys/manager_property.h"

#define DESTINATION    "org.freedesktop.systemd1"
#define OBJECT         "/org/freedesktop/systemd1"
#define INTERFACE      "org.freedesktop.systemd1.Manager"
#define CALL_TIMEOUT   (25 * USEC_PER_SEC)
#define PIDFDS_VERSION 254 /* PIDFDs of a transient scope */

/* What waits for one start or stop job. */
typedef struct PendingJob {
        bool used;
        char *path; /* of the job object; NULL until the call has been answered */
        char *unit;
        ManagerHandler handler;
        void *userdata;
        sd_bus_slot *slot;
        struct Manager *manager;
} PendingJob;

typedef struct PendingStatus {
        StatusHandler handler;
        void *userdata;
        sd_bus_slot *slot;
} PendingStatus;

#define JOBS_MAX 2

struct Manager {
        sd_bus *bus;
        char *version;
        sd_bus_slot *removed_slot;
        PendingJob jobs[JOBS_MAX]; /* one start and one stop at a time */
        PendingStatus status;
};

static void pending_job_clear(PendingJob *job)
{
        sd_bus_slot_unref(job->slot);
        free(job->path);
        free(job->unit);
        *job = (PendingJob){ 0 };
}

static void pending_job_finish(PendingJob *job, int r, const Error *e)
{
        ManagerHandler handler = job->handler;
        void *userdata = job->userdata;

        /* Cleared first: the handler may well start the next one. */
        pending_job_clear(job);
        if (handler)
                handler(userdata, r, e);
}

void manager_cancel(Manager *m)
{
        for (size_t i = 0; i < JOBS_MAX; i++)
                pending_job_clear(&m->jobs[i]);
        sd_bus_slot_unref(m->status.slot);
        m->status = (PendingStatus){ 0 };
}

Manager *manager_free(Manager *m)
{
        if (!m)
                return NULL;
        manager_cancel(m);
        sd_bus_slot_unref(m->removed_slot);
        sd_bus_flush_close_unref(m->bus);
        free(m->version);
        free(m);
        return NULL;
}

const char *manager_version(const Manager *m)
{
        return m->version;
}

unsigned manager_version_number(const Manager *m)
{
        return m->version ? (unsigned) strtoul(m->version, NULL, 10) : 0;
}

static PendingJob *find_job(Manager *m, const char *path)
{
        for (size_t i = 0; i < JOBS_MAX; i++)
                if (m->jobs[i].used && streq_ptr(m->jobs[i].path, path))
                        return &m->jobs[i];
        return NULL;
}

/* JobRemoved(u id, o job, s unit, s result) */
static int on_job_removed(sd_bus_message *message, void *userdata, _unused_ sd_bus_error *error)
{
        Manager *m = userdata;
        const char *path, *unit, *result;
        Error e = ERROR_INIT;
        PendingJob *job;
        uint32_t id;

        if (sd_bus_message_read(message, "uoss", &id, &path, &unit, &result) < 0)
                return 0;
        job = find_job(m, path);
        if (!job)
                return 0;
        if (streq(result, "done"))
                pending_job_finish(job, 0, &e);
        else
                pending_job_finish(job,
                                error_set(&e, -EIO, "systemd's job for %s ended with \"%s\"", unit, result),
                                &e);
        return 0;
}

static int subscribe(Manager *m, Error *e)
{
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        int r;

        r = sd_bus_match_signal_async(m->bus, &m->removed_slot, DESTINATION, OBJECT, INTERFACE, "JobRemoved",
                        on_job_removed, NULL, m);
        if (r < 0)
                return error_errno(e, r, "systemd's signals cannot be matched");
        r = sd_bus_call_method_async(
                        m->bus, NULL, DESTINATION, OBJECT, INTERFACE, "Subscribe", NULL, NULL, NULL);
        if (r < 0)
                return error_errno(e, r, "systemd's signals cannot be subscribed to");
        r = sd_bus_get_property_string(
                        m->bus, DESTINATION, OBJECT, INTERFACE, "Version", &error, &m->version);
        if (r < 0)
                return error_set(e, -ENOTCONN, "systemd does not answer on the system bus: %s",
                                error.message ? error.message : strerror(-r));
        return 0;
}

int manager_connect(sd_event *event, Manager **ret, Error *e)
{
        _cleanup_(manager_freep) Manager *m = calloc(1, sizeof(*m));
        int r;

        if (!m)
                return -ENOMEM;
        /* sd_booted(3): the manager made this directory. */
        if (access("/run/systemd/system/", F_OK) < 0)
                return error_set(e, -EHOSTDOWN,
                                "this host was not booted with systemd (no /run/systemd/system)");
        r = sd_bus_open_system(&m->bus);
        if (r < 0)
                return error_errno(e, -ENOTCONN, "the D-Bus system bus cannot be reached");
        r = sd_bus_set_method_call_timeout(m->bus, CALL_TIMEOUT);
        if (r >= 0 && event)
                r = sd_bus_attach_event(m->bus, event, SD_EVENT_PRIORITY_NORMAL);
        if (r < 0)
                return error_errno(e, r, "the D-Bus connection cannot be set up");
        r = subscribe(m, e);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(m);
        return 0;
}

static PendingJob *new_job(Manager *m, const char *unit, ManagerHandler handler, void *userdata)
{
        for (size_t i = 0; i < JOBS_MAX; i++) {
                if (m->jobs[i].used)
                        continue;
                m->jobs[i] = (PendingJob){
                        .used = true,
                        .unit = strdup(unit),
                        .handler = handler,
                        .userdata = userdata,
                        .manager = m,
                };
                return m->jobs[i].unit ? &m->jobs[i] : NULL;
        }
        return NULL;
}

static int on_job_reply(sd_bus_message *reply, void *userdata, _unused_ sd_bus_error *ret_error)
{
        PendingJob *job = userdata;
        const sd_bus_error *error = sd_bus_message_get_error(reply);
        const char *path;
        Error e = ERROR_INIT;
        int r;

        if (error) {
                r = -sd_bus_message_get_errno(reply);
                r = sd_bus_error_has_name(error, "org.freedesktop.systemd1.NoSuchUnit") ? -ENOENT : r;
                pending_job_finish(job,
                                error_set(&e, r < 0 ? r : -EIO, "systemd refused %s: %s (%s)", job->unit,
                                                error->message, error->name),
                                &e);
                return 0;
        }
        r = sd_bus_message_read(reply, "o", &path);
        if (r >= 0) {
                job->path = strdup(path);
                r = job->path ? 0 : -ENOMEM;
        }
        if (r < 0)
                pending_job_finish(job,
                                error_errno(&e, r, "systemd's answer for %s cannot be read", job->unit), &e);
        return 0;
}

/* What came later than the oldest systemd we know: by descriptor (254), and that the end of one process by
 * the kernel is not the end of the scope (253; before, it never was). */
static int append_scope(const Manager *m, sd_bus_message *call, pid_t pid)
{
        unsigned version = manager_version_number(m);
        _cleanup_close_ int pidfd = -EBADF;
        int r = 0;

        if (version >= 253)
                r = sd_bus_message_append(call, "(sv)", "OOMPolicy", "s", "continue");
        if (r < 0 || version < PIDFDS_VERSION)
                return r < 0 ? r : sd_bus_message_append(call, "(sv)", "PIDs", "au", 1, (uint32_t) pid);
        pidfd = (int) syscall(SYS_pidfd_open, pid, 0);
        return pidfd < 0 ? -errno : sd_bus_message_append(call, "(sv)", "PIDFDs", "ah", 1, pidfd);
}

/* a(sv) of one unit, with what only a service or a scope has. */
static int append_properties(
                const Manager *m, sd_bus_message *call, const PropertyList *list, const UnitRequest *unit)
{
        int r = sd_bus_message_open_container(call, 'a', "(sv)");

        for (size_t i = 0; r >= 0 && i < list->n; i++)
                r = manager_append_property(call, &list->items[i]);
        if (r >= 0 && unit)
                r = unit->program ? manager_append_service(call, unit->program, unit->network_namespace,
                                                    unit->stdin_fd)
                                  : append_scope(m, call, unit->pid);
        return r < 0 ? r : sd_bus_message_close_container(call);
}

/* StartTransientUnit(s name, s mode, a(sv) properties, a(sa(sv)) aux): one call for both units. */
static int build_start(Manager *m, const UnitRequest *request, sd_bus_message **ret)
{
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *call = NULL;
        int r;

        r = sd_bus_message_new_method_call(
                        m->bus, &call, DESTINATION, OBJECT, INTERFACE, "StartTransientUnit");
        if (r >= 0)
                r = sd_bus_message_append(call, "ss", request->service, "fail");
        if (r >= 0)
                r = append_properties(m, call, request->service_properties, request);
        if (r >= 0)
                r = sd_bus_message_open_container(call, 'a', "(sa(sv))");
        if (r >= 0)
                r = sd_bus_message_open_container(call, 'r', "sa(sv)");
        if (r >= 0)
                r = sd_bus_message_append(call, "s", request->slice);
        if (r >= 0)
                r = append_properties(m, call, request->slice_properties, NULL);
        if (r >= 0)
                r = sd_bus_message_close_container(call);
        if (r >= 0)
                r = sd_bus_message_close_container(call);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(call);
        return 0;
}

int manager_start(Manager *m, const UnitRequest *request, ManagerHandler handler, void *userdata, Error *e)
{
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *call = NULL;
        PendingJob *job = new_job(m, request->service, handler, userdata);
        int r;

        if (!job)
                return error_errno(e, -ENOMEM, "%s cannot be started", request->service);
        r = build_start(m, request, &call);
        if (r >= 0)
                r = sd_bus_call_async(m->bus, &job->slot, call, on_job_reply, job, 0);
        if (r < 0) {
                pending_job_clear(job);
                return error_errno(e, r, "%s cannot be asked for", request->service);
        }
        return 0;
}

int manager_stop(Manager *m, const char *unit, ManagerHandler handler, void *userdata, Error *e)
{
        PendingJob *job = new_job(m, unit, handler, userdata);
        int r;

        if (!job)
                return error_errno(e, -ENOMEM, "%s cannot be stopped", unit);
        r = sd_bus_call_method_async(m->bus, &job->slot, DESTINATION, OBJECT, INTERFACE, "StopUnit",
                        on_job_reply, job, "ss", unit, "replace");
        if (r < 0) {
                pending_job_clear(job);
                return error_errno(e, r, "%s cannot be stopped", unit);
        }
        return 0;
}

typedef struct StopWait {
        bool done;
        int r;
        Error *e;
} StopWait;

static void on_stop_wait(void *userdata, int r, const Error *e)
{
        StopWait *wait = userdata;

        wait->done = true;
        wait->r = r;
        if (wait->e)
                *wait->e = *e;
}

int manager_stop_wait(Manager *m, const char *unit, uint64_t timeout_usec, Error *e)
{
        StopWait wait = { .e = e };
        uint64_t rounds = timeout_usec / (100 * USEC_PER_MSEC) + 1;
        int r = manager_stop(m, unit, on_stop_wait, &wait, e);

        while (r >= 0 && !wait.done && rounds > 0) {
                r = sd_bus_process(m->bus, NULL);
                if (r == 0) {
                        r = sd_bus_wait(m->bus, 100 * USEC_PER_MSEC);
                        rounds--;
                }
        }
        if (!wait.done)
                manager_cancel(m);
        if (r < 0)
                return error_errno(e, r, "%s cannot be stopped", unit);
        if (!wait.done)
                return error_set(e, -ETIMEDOUT, "systemd did not stop %s in time", unit);
        return wait.r == -ENOENT ? 0 : wait.r;
}

static int read_string(sd_bus_message *m, char *buffer, size_t size)
{
        const char *text;
        int r = sd_bus_message_read(m, "v", "s", &text);

        if (r < 0)
                return r;
        (void) snprintf(buffer, size, "%s", text);
        return 0;
}

static int read_status_property(sd_bus_message *m, const char *name, ServiceStatus *status)
{
        if (streq(name, "ExecMainCode"))
                return sd_bus_message_read(m, "v", "i", &status->code);
        if (streq(name, "ExecMainStatus"))
                return sd_bus_message_read(m, "v", "i", &status->status);
        if (streq(name, "ExecMainExitTimestampMonotonic"))
                return sd_bus_message_read(m, "v", "t", &status->exit_usec);
        if (streq(name, "Result"))
                return read_string(m, status->result, sizeof(status->result));
        if (streq(name, "ActiveState"))
                return read_string(m, status->active_state, sizeof(status->active_state));
        if (streq(name, "InvocationID")) {
                const void *id;
                size_t size;
                int r = sd_bus_message_enter_container(m, 'v', "ay");

                if (r >= 0)
                        r = sd_bus_message_read_array(m, 'y', &id, &size);
                for (size_t i = 0; r >= 0 && size == 16 && i < size; i++)
                        (void) snprintf(status->invocation_id + 2 * i, 3, "%02x", ((const uint8_t *) id)[i]);
                return r < 0 ? r : sd_bus_message_exit_container(m);
        }
        return sd_bus_message_skip(m, "v");
}

static int parse_status(sd_bus_message *reply, ServiceStatus *status)
{
        int r = sd_bus_message_enter_container(reply, 'a', "{sv}");

        while (r >= 0 && (r = sd_bus_message_enter_container(reply, 'e', "sv")) > 0) {
                const char *name;

                r = sd_bus_message_read(reply, "s", &name);
                if (r >= 0)
                        r = read_status_property(reply, name, status);
                if (r >= 0)
                        r = sd_bus_message_exit_container(reply);
        }
        return r < 0 ? r : 0;
}

static int on_status_reply(sd_bus_message *reply, void *userdata, _unused_ sd_bus_error *ret_error)
{
        Manager *m = userdata;
        PendingStatus pending = m->status;
        ServiceStatus status = { 0 };
        int r;

        m->status = (PendingStatus){ 0 };
        if (sd_bus_message_is_method_error(reply, NULL)) {
                r = -sd_bus_message_get_errno(reply);
                r = r < 0 ? r : -EIO;
        } else {
                r = parse_status(reply, &status);
        }
        if (pending.handler)
                pending.handler(pending.userdata, r, &status);
        sd_bus_slot_unref(pending.slot);
        return 0;
}

int manager_status(Manager *m, const char *service, StatusHandler handler, void *userdata)
{
        _cleanup_free_ char *path = NULL;
        int r = sd_bus_path_encode(OBJECT "/unit", service, &path);

        if (r < 0)
                return r;
        sd_bus_slot_unref(m->status.slot);
        m->status = (PendingStatus){ .handler = handler, .userdata = userdata };
        /* The empty interface name means the properties of all interfaces: the unit's and the service's. */
        return sd_bus_call_method_async(m->bus, &m->status.slot, DESTINATION, path,
                        "org.freedesktop.DBus.Properties", "GetAll", on_status_reply, m, "s", "");
}
