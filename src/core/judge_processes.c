/* SPDX-License-Identifier: Apache-2.0 */
#include "core/judges.h"

#include <inttypes.h>

/* It did not run, but the job tried to start it. */
static int judge_denied(const Plan *plan, const DeniedList *denied, ReasonList *reasons)
{
        const DeniedProgram *first = denied->items;

        if (denied->total == 0)
                return 0;
        if (denied->n == 0)
                return reason_add(reasons, "denied_exec", "%" PRIu64 " starts of programs were refused",
                                denied->total);
        return reason_add(reasons, "denied_exec",
                        "%.200s was refused by the policy %s (%s%.100s), tried by %.200s%s",
                        first->path ? first->path : "a program", plan->policy->name,
                        first->rule                ? "deny_exec: "
                        : plan->policy->exec.allow ? "not in allow_exec"
                                                   : "too large for its digest to be compared",
                        first->rule ? first->rule : "", first->by ? first->by : "a process",
                        denied->total > 1 ? "; and more, see processes.denied" : "");
}

int processes_judge(const Plan *plan, const Outcome *o, ReasonList *reasons)
{
        const ProcessTree *tree = &o->processes;

        if (judge_denied(plan, &o->denied, reasons) < 0)
                return -ENOMEM;
        /* The command itself is always there, unless we killed what was about to become it: an observer that
         * does not have it has seen nothing. */
        if ((tree->observed || tree->complete) && tree->total == 0 && o->released && o->exec.error <= 0 &&
                        !o->timed_out && o->abort_signal == 0)
                return reason_add(reasons, "evidence_lost",
                                "not even the command itself is among the processes that were seen");
        if (tree->lost == 0)
                return 0;
        return reason_add(reasons, "evidence_lost",
                        "%" PRIu64 " event%s of processes %s missed: what the job started is not known whole",
                        tree->lost, tree->lost == 1 ? "" : "s", tree->lost == 1 ? "was" : "were");
}
