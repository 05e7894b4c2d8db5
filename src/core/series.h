/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a job used over time, in a room that does not grow: SERIES_MAX intervals of equal length, and when
 * they are full, half as many of twice the length. Pure. */

#include "base/macro.h"

#define SERIES_MAX      120u
#define SERIES_INTERVAL (50 * USEC_PER_MSEC) /* of the first intervals */

/* Zero is an empty one. Of each interval the largest value that was seen in it, or UNKNOWN. */
typedef struct Series {
        uint64_t interval_usec;
        size_t n;
        uint64_t memory_bytes[SERIES_MAX];
        uint64_t cpu_usec[SERIES_MAX]; /* CPU time since the start, so at the interval's end */
} Series;

/* What was seen usec after the start; UNKNOWN where it could not be. */
void series_add(Series *series, uint64_t usec, uint64_t memory_bytes, uint64_t cpu_usec);

/* How long from usec until the middle of the next interval: one look in each is enough. */
uint64_t series_wait(const Series *series, uint64_t usec);

/* Values as a line of at most columns characters, each the largest of its part; UNKNOWN is a dot. "" for
 * none, or where all are 0. columns * 3 + 1 bytes of buffer. */
void series_line(const uint64_t *values, size_t n, size_t columns, char *buffer);
