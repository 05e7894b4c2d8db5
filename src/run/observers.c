/* SPDX-License-Identifier: Apache-2.0 */

/* Joins the observers of a running job; each has its calls here, in the order of a run. */

#include "run/state.h"

int observers_prepare(Run *run, Error *e)
{
        return network_prepare(run, e);
}

int observers_attach(Run *run, Error *e)
{
        return network_attach(run, e);
}

void observers_look(_unused_ Run *run) {}

void observers_finish(Run *run)
{
        network_finish(run);
}

void observers_clear(Run *run)
{
        network_clear(run);
}
