/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Numbers with units, read and written. */

#include "base/macro.h"

/* "65536", "64K", "512M", "2G", "1T" (factors of 1024, as systemd.syntax(7)) to bytes. -EINVAL: not such a
 * text; -ERANGE: does not fit below UNKNOWN-1. */
int parse_size(const char *text, uint64_t *ret_bytes);

/* "150%" or "12.5%" to microseconds of CPU time a second, as CPUQuota= of systemd.resource-control(5). */
int parse_cpu_percent(const char *text, uint64_t *ret_usec_per_sec);

/* "90s", "15min", "12h", "7d", "4w" to microseconds. -EINVAL: not such a text; -ERANGE: tens of thousands of
 * years. */
int parse_age(const char *text, uint64_t *ret_usec);

/* Unsigned decimal digits only: no sign, space or other base (strtoul takes all of them). */
int parse_u64(const char *text, uint64_t *ret);

#define FORMAT_MAX 64

/* "512M" when exact, else "1.5G", "17B"; "unknown" for UNKNOWN. Returns buffer. */
char *format_bytes(uint64_t bytes, char buffer[static FORMAT_MAX]);

/* "3 ms", "1.25 s", "2 min 3 s". Returns buffer. */
char *format_usec(uint64_t usec, char buffer[static FORMAT_MAX]);

/* RFC 3339 in UTC with microseconds: 2026-09-03T08:01:02.000003Z. Returns buffer. */
char *format_timestamp(uint64_t realtime_usec, char buffer[static FORMAT_MAX]);
