/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The job's network namespace, and what the job sends out of it: each packet is looked at, answered, and put
 * down to the process that sent it. */

#include "run/state.h"

typedef struct NetworkWatch NetworkWatch;

int network_prepare(Run *run, Error *e);
int network_listen(Run *run);
int network_attach(Run *run, Error *e);
/* An event of the trace of processes. */
void network_trace(Run *run, const TraceEvent *event);
/* The tree of processes is in the outcome. */
void network_finish(Run *run);
void network_clear(Run *run);
