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

/* judge_outside.c: what others did to the job. */
int outside_judge(const Outcome *o, ReasonList *reasons);
/* Whether it was that which ended the main process: then the signal is no cause of its own. */
bool outside_ended(const Outcome *o);
/* Whether a reason of that kind stands for a run that was disturbed. */
bool outside_is_reason(const char *code);
