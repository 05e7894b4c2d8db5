/* SPDX-License-Identifier: Apache-2.0 */
#include "core/judges.h"

#include <inttypes.h>

int processes_judge(_unused_ const Plan *plan, const Outcome *o, ReasonList *reasons)
{
        const ProcessTree *tree = &o->processes;

        /* The command itself is always there: an observer that does not have it has seen nothing. */
        if ((tree->observed || tree->complete) && tree->total == 0 && o->released && o->exec.error <= 0)
                return reason_add(reasons, "evidence_lost",
                                "not even the command itself is among the processes that were seen");
        if (tree->lost == 0)
                return 0;
        return reason_add(reasons, "evidence_lost",
                        "%" PRIu64 " event%s of processes %s missed: what the job started is not known whole",
                        tree->lost, tree->lost == 1 ? "" : "s", tree->lost == 1 ? "was" : "were");
}
