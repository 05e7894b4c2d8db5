/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Events of the processes of one control group, by perf_event_open(2): the kernel filters by the group, so a
 * busy host costs nothing, and numbers come as the caller's pid namespace counts them. */

#include "core/evidence.h"
#include "sys/closing.h"
#include "sys/tracefs.h"

typedef struct Trace Trace;

/* From here on events are kept in buffers of the kernel, one for each CPU. device: NULL: the events are those
 * of processes; else only TRACE_SEND, of this network device: apart, so that a flood of packets pushes out
 * nothing else. A negative errno: this kernel or container does not allow it,
 * which is a blind spot and no failure. */
int trace_open(Tracefs *tracefs, int cgroup_fd, const char *device, Trace **ret);
/* Becomes readable when there are events; owned by the trace. */
int trace_fd(const Trace *trace);

/* A negative errno ends the reading; the event counts as handled. */
typedef int (*TraceHandler)(void *userdata, const TraceEvent *event);

/* Hands over all events until now, of all CPUs, in the order of their time. Bounded by the size of the
 * buffers, however fast the job makes new ones. */
int trace_read(Trace *trace, TraceHandler handler, void *userdata);
/* Events that the kernel had no room for, or that could not be understood, until now. */
uint64_t trace_lost(const Trace *trace);
/* Gives its descriptors away before it is freed. */
void trace_give(Trace *trace, Closing *closing);
Trace *trace_free(Trace *trace);
DEFINE_CLEANUP(Trace *, trace_free)
