/* SPDX-License-Identifier: Apache-2.0 */

/* Joins the observers of a running job; each has its calls here, in the order of a run. */

#include "run/state.h"
#include "run/watch_network.h"
#include "run/watch_processes.h"

int observers_prepare(Run *run, Error *e)
{
        return network_prepare(run, e);
}

int observers_attach(Run *run, Error *e)
{
        int r = network_attach(run, e);

        return r < 0 ? r : processes_attach(run, e);
}

void observers_trace(Run *run, const TraceEvent *event)
{
        network_trace(run, event);
}

void observers_look(Run *run)
{
        processes_look(run);
}

/* The packets after the processes: who sent them is known then. */
void observers_finish(Run *run)
{
        processes_finish(run);
        network_finish(run);
}

void observers_clear(Run *run)
{
        network_clear(run);
        processes_clear(run);
}
