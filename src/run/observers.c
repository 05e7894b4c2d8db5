/* SPDX-License-Identifier: Apache-2.0 */

/* Joins the observers of a running job; each has its calls here, in the order of a run. */

#include "run/state.h"
#include "run/watch_network.h"
#include "run/watch_processes.h"

#include "run/watch_open.h"
#include "run/watch_sockets.h"

int observers_prepare(Run *run, Error *e)
{
        return network_prepare(run, e);
}

int observers_attach(Run *run, Error *e)
{
        int r = network_attach(run, e);

        if (r >= 0)
                r = processes_attach(run, e);
        if (r >= 0)
                r = watch_sockets_attach(run, e);
        return r < 0 ? r : watch_open_attach(run, e);
}

void observers_trace(Run *run, const TraceEvent *event)
{
        if (event->kind == TRACE_LISTEN)
                watch_sockets_listen(run, event, processes_program(run, event->pid));
        network_trace(run, event);
}

void observers_look(Run *run)
{
        _cleanup_(socket_holders_clear) SocketHolders holders = { 0 };

        processes_look(run);
        watch_open_look(run, &holders);
        watch_sockets_look(run, &holders);
}

/* The packets after the processes: who sent them is known then. */
void observers_finish(Run *run)
{
        watch_sockets_finish(run);
        watch_open_finish(run);
        processes_finish(run);
        network_finish(run);
}

void observers_clear(Run *run)
{
        watch_sockets_clear(run);
        watch_open_clear(run);
        network_clear(run);
        processes_clear(run);
}
