/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The service manager, over D-Bus (org.freedesktop.systemd1(5)). The only place that knows sd-bus. It is told
 * properties and names; it never sees a job or a policy. Calls made while a job runs are asynchronous, so
 * that a slow manager never stops the reading of a job's output. */

#include <systemd/sd-event.h>

#include "base/error.h"
#include "core/property.h"

/* The oldest systemd with all that is asked for (ExitType=cgroup is from 250). */
#define MANAGER_VERSION_MIN 250

typedef struct Manager Manager;

/* Connects to the system bus and subscribes to the manager's signals. -EHOSTDOWN when there is no systemd,
 * -ENOTCONN when the bus cannot be reached, each with a sentence. event may be NULL for synchronous use.
 * When the bus goes away, all that waits for it is told so; the next call connects anew. Any number of calls
 * may be under way. */
int manager_connect(sd_event *event, Manager **ret, Error *e);
Manager *manager_free(Manager *m);
DEFINE_CLEANUP(Manager *, manager_free)

/* "252.38-1~deb12u1"; NULL when it did not say. Borrowed. */
const char *manager_version(const Manager *m);
/* Its leading number, 0 when unknown. */
unsigned manager_version_number(const Manager *m);

/* A service, or a scope around a process that is there already, with a slice of its own; made by one call. */
typedef struct UnitRequest {
        const char *service, *slice;
        const PropertyList *service_properties, *slice_properties;
        const char *program;           /* ExecStart=, a path inside the unit's root; NULL: a scope */
        const char *network_namespace; /* NetworkNamespacePath=; NULL: none */
        int stdin_fd;                  /* StandardInputFileDescriptor=; stays the caller's */
        pid_t pid;                     /* of a scope: the caller's own child, not waited for */
} UnitRequest;

/* r: 0 or a negative errno with a sentence in e (never NULL). Called once. */
typedef void (*ManagerHandler)(void *userdata, int r, const Error *e);

/* Asks for the units; the handler is called when the start job is done: 0: the program was executed. */
int manager_start(Manager *m, const UnitRequest *request, ManagerHandler handler, void *userdata, Error *e);

typedef struct ServiceStatus {
        int code;              /* CLD_EXITED, CLD_KILLED, CLD_DUMPED; 0: the main process has not ended yet */
        int status;            /* exit status or signal number */
        uint64_t exit_usec;    /* CLOCK_MONOTONIC of its end; 0: unknown */
        char result[32];       /* "success", "timeout", "oom-kill", "exit-code" … */
        char active_state[32]; /* "active", "failed" … */
        char invocation_id[33]; /* hex, "" unknown */
} ServiceStatus;

typedef void (*StatusHandler)(void *userdata, int r, const ServiceStatus *status);
int manager_status(Manager *m, const char *service, StatusHandler handler, void *userdata);

/* Stops a slice with all that is in it; the handler is called when that is done. -EHOSTUNREACH: systemd is
 * not on the bus, as while it executes itself anew; to be asked again. */
int manager_stop(Manager *m, const char *unit, ManagerHandler handler, void *userdata, Error *e);

/* A started service is kept for its status, also when it has ended, until it is stopped and this is called.
 */
void manager_forget(Manager *m, const char *service);

/* Waits for it: for cleaning. 0 also when there is no such unit. */
int manager_stop_wait(Manager *m, const char *unit, uint64_t timeout_usec, Error *e);

/* Forgets the handlers of the calls under way that have this userdata. */
void manager_cancel(Manager *m, const void *userdata);
