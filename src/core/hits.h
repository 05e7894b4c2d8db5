/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Which limits fired, from the kernel's counters and the main process's end. Pure. */

#include "base/number.h"
#include "core/verdict.h"

/* Adds to judgement->hits at most one row for each limit, the best evidence for it, and a reason for each
 * that killed something or made a call fail. 0 or -ENOMEM. */
int hits_collect(const Plan *plan, const Outcome *outcome, Judgement *judgement);

/* A limit's value for people: "512M", "150%", "10 s", "64"; "none" when there is none. Returns buffer. */
char *limit_format(LimitKind kind, uint64_t value, char buffer[static FORMAT_MAX]);
