/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Points in time as a person writes them, a part of systemd.time(7): "2026-09-03", "2026-09-03 08:01:02",
 * "2026-09-03T08:01:02.5Z", "@1788422462", "now", "today", "yesterday", "-90s", "-2h", "-7d". Local time
 * unless there is a Z. */

#include "base/error.h"

/* now: CLOCK_REALTIME. *ret: microseconds since the epoch. 0, or -EINVAL with a sentence. */
int log_time_parse(const char *text, uint64_t now_usec, uint64_t *ret_usec, Error *e);
