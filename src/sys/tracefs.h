/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The kernel's tracepoints as tracefs describes them (Documentation/trace/events.rst): their numbers, and
 * where their fields lie, which differs between kernels. */

#include "base/error.h"

typedef struct Tracefs Tracefs;

/* Read once and remembered. keep: what has been asked for stays switched on as long as this lives. The first
 * user of a tracepoint and the last make the kernel change its own code on all CPUs, which costs more than
 * anything else about it. */
int tracefs_new(bool keep, Tracefs **ret);
/* NULL is fine. */
Tracefs *tracefs_free(Tracefs *tracefs);
DEFINE_CLEANUP(Tracefs *, tracefs_free)

typedef struct TraceField {
        uint32_t offset, size; /* in the raw data of a sample */
} TraceField;

/* event: "system/name", a literal. Its number for perf_event_open(2), and the named fields in the order of
 * names (NULL, or ended by NULL). -ENODATA: there is no such field. */
int tracefs_find(Tracefs *tracefs, const char *event, const char *const names[], uint64_t *ret_id,
                TraceField ret[]);
