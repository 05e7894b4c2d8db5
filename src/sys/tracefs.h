/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The kernel's tracepoints as tracefs describes them (Documentation/trace/events.rst): their numbers, and
 * where their fields lie, which differs between kernels. */

#include "base/error.h"

/* The host's, or where it has none mounted one of our own, attached nowhere. */
int tracefs_open(int *ret_fd);

/* event: "system/name". Its number for perf_event_open(2). */
int tracefs_id(int fd, const char *event, uint64_t *ret);

typedef struct TraceField {
        uint32_t offset, size; /* in the raw data of a sample */
} TraceField;

/* All named fields, in the order of names (ended by NULL). -ENODATA: there is no such field. */
int tracefs_fields(int fd, const char *event, const char *const names[], TraceField ret[]);
