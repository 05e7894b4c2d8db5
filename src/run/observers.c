/* SPDX-License-Identifier: Apache-2.0 */

/* Joins the observers of a running job; each has its calls here, in the order of a run. */

#include "run/state.h"
#include "run/watch_network.h"
#include "run/watch_open.h"
#include "run/watch_processes.h"
#include "run/watch_sockets.h"

int observers_prepare(Run *run, Error *e)
{
        return network_prepare(run, e);
}

int observers_listen(Run *run, Error *e)
{
        int r = network_listen(run);

        return r < 0 ? error_errno(e, r, "the job's network") : 0;
}

int observers_attach(Run *run, Error *e)
{
        static int (*const attach[])(Run * run, Error * e) = {
                network_attach,
                processes_attach,
                watch_sockets_attach,
                watch_open_attach,
        };
        int r = 0;

        for (size_t i = 0; r >= 0 && i < ELEMENTSOF(attach); i++)
                r = attach[i](run, e);
        return r;
}

void observers_trace(Run *run, const TraceEvent *event)
{
        watch_sockets_trace(run, event);
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
        processes_finish(run);
        watch_sockets_finish(run);
        watch_open_finish(run);
        network_finish(run);
}

void observers_clear(Run *run)
{
        watch_sockets_clear(run);
        watch_open_clear(run);
        network_clear(run);
        processes_clear(run);
}
