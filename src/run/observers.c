/* SPDX-License-Identifier: Apache-2.0 */

/* Joins the observers of a running job; each has its calls here, in the order of a run. */

#include "run/state.h"
#include "run/watch_processes.h"

int observers_prepare(_unused_ Run *run, _unused_ Error *e)
{
        return 0;
}

int observers_attach(Run *run, Error *e)
{
        return processes_attach(run, e);
}

void observers_trace(_unused_ Run *run, _unused_ const TraceEvent *event) {}

void observers_look(Run *run)
{
        processes_look(run);
}

void observers_finish(Run *run)
{
        processes_finish(run);
}

void observers_clear(Run *run)
{
        processes_clear(run);
}
