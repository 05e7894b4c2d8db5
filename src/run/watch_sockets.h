/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The sockets of a job: those that close while it runs, and those that are there when it is frozen. */

#include "run/watch_open.h"

int watch_sockets_attach(Run *run, Error *e);
/* A socket that listens for a moment only is seen by the trace. */
void watch_sockets_trace(Run *run, const TraceEvent *event);
void watch_sockets_look(Run *run, SocketHolders *holders);
void watch_sockets_finish(Run *run);
void watch_sockets_clear(Run *run);
