/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The judgement of each kind of evidence, a file each. Only verdict.c calls them. Each appends its reasons; 0
 * or -ENOMEM. */

#include "core/outcome.h"
#include "core/plan.h"
#include "core/reason.h"

/* judge_processes.c: evidence of programs and processes that is known to be incomplete. */
int processes_judge(const Plan *plan, const Outcome *o, ReasonList *reasons);
/* judge_sockets.c: what listens that was not agreed (expect.allow_listen). */
int sockets_judge(const Plan *plan, const Outcome *o, ReasonList *reasons);
/* judge_egress.c: attempts to leave that were not agreed (expect.allow_egress). */
int egress_judge(const Plan *plan, const Outcome *o, ReasonList *reasons);
