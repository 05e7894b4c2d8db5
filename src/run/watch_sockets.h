/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The sockets of a job: those that close while it runs, and those that are there when it is frozen. */

#include "run/watch_open.h"

int watch_sockets_attach(Run *run, Error *e);
/* A socket began to listen (TRACE_LISTEN). program may be NULL; copied. */
void watch_sockets_listen(Run *run, const TraceEvent *event, const char *program);
void watch_sockets_look(Run *run, SocketHolders *holders);
void watch_sockets_finish(Run *run);
void watch_sockets_clear(Run *run);
