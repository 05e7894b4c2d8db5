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

/* What waits for an answer, and of a start or stop for the end of systemd's job after it. */
typedef struct Call {
        struct Manager *manager;
        struct Call *next;
        char *unit;
        char *path; /* of the job object; NULL until the call has been answered */
        ManagerHandler handler;
        StatusHandler status; /* the one or the other */
        void *userdata;
        sd_bus_slot *slot;
} Call;

struct Manager {
        sd_event *event; /* NULL: synchronous use */
        sd_bus *bus;
        char *version;
        sd_bus_slot *removed_slot, *lost_slot;
        Call *calls;
};

static Call *call_free(Call *call)
{
        Call **p = &call->manager->calls;

        while (*p && *p != call)
                p = &(*p)->next;
        if (*p)
                *p = call->next;
        sd_bus_slot_unref(call->slot);
        free(call->path);
        free(call->unit);
        free(call);
        return NULL;
}

static void call_finish(Call *call, int r, const Error *e)
{
        ManagerHandler handler = call->handler;
        void *userdata = call->userdata;

        /* Freed first: the handler may well cancel all that is under way. */
        call_free(call);
        handler(userdata, r, e);
}

void manager_cancel(Manager *m, const void *userdata)
{
        for (Call *call = m->calls, *next; call; call = next) {
                next = call->next;
                if (call->userdata == userdata)
                        call_free(call);
        }
}

static void close_bus(Manager *m)
{
        m->removed_slot = sd_bus_slot_unref(m->removed_slot);
        m->lost_slot = sd_bus_slot_unref(m->lost_slot);
        m->bus = sd_bus_flush_close_unref(m->bus);
}

Manager *manager_free(Manager *m)
{
        if (!m)
                return NULL;
        while (m->calls)
                call_free(m->calls);
        close_bus(m);
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

/* JobRemoved(u id, o job, s unit, s result) */
static int on_job_removed(sd_bus_message *message, void *userdata, _unused_ sd_bus_error *error)
{
        Manager *m = userdata;
        const char *path, *unit, *result;
        Error e = ERROR_INIT;
        uint32_t id;
        Call *call;

        if (sd_bus_message_read(message, "uoss", &id, &path, &unit, &result) < 0)
                return 0;
        for (call = m->calls; call && !streq_ptr(call->path, path); call = call->next)
                ;
        if (call && streq(result, "done"))
                call_finish(call, 0, &e);
        else if (call)
                call_finish(call, error_set(&e, -EIO, "systemd's job for %s ended with \"%s\"", unit, result),
                                &e);
        return 0;
}

/* Calls without an answer have been failed by sd-bus itself; for the others nothing will come any more. */
static int on_lost(_unused_ sd_bus_message *message, void *userdata, _unused_ sd_bus_error *error)
{
        Manager *m = userdata;
        Error e = ERROR_INIT;
        Call *call;

        error_set(&e, -ENOTCONN, "the D-Bus connection to systemd was lost");
        do {
                for (call = m->calls; call && !call->path; call = call->next)
                        ;
                if (call)
                        call_finish(call, -ENOTCONN, &e);
        } while (call);
        return 0;
}

static int subscribe(Manager *m, Error *e)
{
        int r;

        r = sd_bus_match_signal_async(m->bus, &m->removed_slot, DESTINATION, OBJECT, INTERFACE, "JobRemoved",
                        on_job_removed, NULL, m);
        /* sd-bus itself tells of this one. */
        if (r >= 0)
                r = sd_bus_match_signal(m->bus, &m->lost_slot, NULL, "/org/freedesktop/DBus/Local",
                                "org.freedesktop.DBus.Local", "Disconnected", on_lost, m);
        if (r < 0)
                return error_errno(e, r, "systemd's signals cannot be matched");
        r = sd_bus_call_method_async(
                        m->bus, NULL, DESTINATION, OBJECT, INTERFACE, "Subscribe", NULL, NULL, NULL);
        return r < 0 ? error_errno(e, r, "systemd's signals cannot be subscribed to") : 0;
}

/* Opens the bus, or opens it again where it went away in the meantime. */
static int open_bus(Manager *m, Error *e)
{
        int r;

        if (m->bus && sd_bus_is_open(m->bus) > 0)
                return 0;
        close_bus(m);
        r = sd_bus_open_system(&m->bus);
        if (r < 0)
                return error_errno(e, -ENOTCONN, "the D-Bus system bus cannot be reached");
        r = sd_bus_set_method_call_timeout(m->bus, CALL_TIMEOUT);
        if (r >= 0 && m->event)
                r = sd_bus_attach_event(m->bus, m->event, SD_EVENT_PRIORITY_NORMAL);
        if (r < 0)
                return error_errno(e, r, "the D-Bus connection cannot be set up");
        return subscribe(m, e);
}

int manager_connect(sd_event *event, Manager **ret, Error *e)
{
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        _cleanup_(manager_freep) Manager *m = calloc(1, sizeof(*m));
        int r;

        if (!m)
                return -ENOMEM;
        m->event = event;
        /* sd_booted(3): the manager made this directory. */
        if (access("/run/systemd/system/", F_OK) < 0)
                return error_set(e, -EHOSTDOWN,
                                "this host was not booted with systemd (no /run/systemd/system)");
        r = open_bus(m, e);
        if (r < 0)
                return r;
        r = sd_bus_get_property_string(
                        m->bus, DESTINATION, OBJECT, INTERFACE, "Version", &error, &m->version);
        if (r < 0)
                return error_set(e, -ENOTCONN, "systemd does not answer on the system bus: %s",
                                error.message ? error.message : strerror(-r));
        *ret = TAKE_PTR(m);
        return 0;
}

static Call *new_call(Manager *m, const char *unit, void *userdata)
{
        Call *call = calloc(1, sizeof(*call));

        if (!call)
                return NULL;
        *call = (Call){ .manager = m, .next = m->calls, .unit = strdup(unit), .userdata = userdata };
        m->calls = call;
        return call->unit ? call : call_free(call);
}

/* systemd's answer, or the bus's own, which says that systemd is not there: it executes itself anew. */
static int errno_of(sd_bus_message *reply)
{
        const char *sender = sd_bus_message_get_sender(reply);
        int r = -sd_bus_message_get_errno(reply);

        if (sd_bus_error_has_name(sd_bus_message_get_error(reply), "org.freedesktop.systemd1.NoSuchUnit"))
                return -ENOENT;
        return streq_ptr(sender, "org.freedesktop.DBus") ? -EHOSTUNREACH : r < 0 ? r : -EIO;
}

static int on_job_reply(sd_bus_message *reply, void *userdata, _unused_ sd_bus_error *ret_error)
{
        Call *call = userdata;
        const sd_bus_error *error = sd_bus_message_get_error(reply);
        const char *path, *what;
        Error e = ERROR_INIT;
        int r;

        if (error) {
                r = errno_of(reply);
                what = r == -EHOSTUNREACH ? "was not there (does it execute itself anew?) for" : "refused";
                error_set(&e, r, "systemd %s %s: %s (%s)", what, call->unit, error->message, error->name);
                call_finish(call, r, &e);
                return 0;
        }
        r = sd_bus_message_read(reply, "o", &path);
        if (r >= 0) {
                call->path = strdup(path);
                r = call->path ? 0 : -ENOMEM;
        }
        if (r < 0)
                call_finish(call, error_errno(&e, r, "systemd's answer for %s cannot be read", call->unit),
                                &e);
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
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *message = NULL;
        int r = open_bus(m, e);
        Call *call;

        if (r < 0)
                return r;
        call = new_call(m, request->service, userdata);
        if (!call)
                return error_errno(e, -ENOMEM, "%s cannot be started", request->service);
        call->handler = handler;
        r = build_start(m, request, &message);
        if (r >= 0)
                r = sd_bus_call_async(m->bus, &call->slot, message, on_job_reply, call, 0);
        if (r < 0) {
                call_free(call);
                return error_errno(e, r, "%s cannot be asked for", request->service);
        }
        return 0;
}

int manager_stop(Manager *m, const char *unit, ManagerHandler handler, void *userdata, Error *e)
{
        int r = open_bus(m, e);
        Call *call;

        if (r < 0)
                return r;
        call = new_call(m, unit, userdata);
        if (!call)
                return error_errno(e, -ENOMEM, "%s cannot be stopped", unit);
        call->handler = handler;
        r = sd_bus_call_method_async(m->bus, &call->slot, DESTINATION, OBJECT, INTERFACE, "StopUnit",
                        on_job_reply, call, "ss", unit, "replace");
        if (r < 0) {
                call_free(call);
                return error_errno(e, r, "%s cannot be stopped", unit);
        }
        return 0;
}

void manager_forget(Manager *m, const char *service)
{
        if (m->bus && sd_bus_is_open(m->bus) > 0)
                (void) sd_bus_call_method_async(m->bus, NULL, DESTINATION, OBJECT, INTERFACE, "UnrefUnit",
                                NULL, NULL, "s", service);
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
                manager_cancel(m, &wait);
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
        Call *call = userdata;
        StatusHandler handler = call->status;
        void *handler_data = call->userdata;
        ServiceStatus status = { 0 };
        int r;

        if (sd_bus_message_is_method_error(reply, NULL)) {
                r = -sd_bus_message_get_errno(reply);
                r = r < 0 ? r : -EIO;
        } else {
                r = parse_status(reply, &status);
        }
        call_free(call);
        handler(handler_data, r, &status);
        return 0;
}

int manager_status(Manager *m, const char *service, StatusHandler handler, void *userdata)
{
        _cleanup_free_ char *path = NULL;
        int r = sd_bus_path_encode(OBJECT "/unit", service, &path);
        Call *call;

        if (r >= 0)
                r = open_bus(m, NULL);
        if (r < 0)
                return r;
        call = new_call(m, service, userdata);
        if (!call)
                return -ENOMEM;
        call->status = handler;
        /* The empty interface name means the properties of all interfaces: the unit's and the service's. */
        r = sd_bus_call_method_async(m->bus, &call->slot, DESTINATION, path,
                        "org.freedesktop.DBus.Properties", "GetAll", on_status_reply, call, "s", "");
        if (r < 0)
                call_free(call);
        return r;
}
