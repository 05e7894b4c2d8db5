/* SPDX-License-Identifier: Apache-2.0 */
#include "core/judges.h"

#include <inttypes.h>

int processes_judge(_unused_ const Plan *plan, const Outcome *o, ReasonList *reasons)
{
        const ProcessTree *tree = &o->processes;

        if (tree->lost == 0)
                return 0;
        return reason_add(reasons, "evidence_lost",
                        "%" PRIu64 " event%s of processes %s missed: what the job started is not known whole",
                        tree->lost, tree->lost == 1 ? "" : "s", tree->lost == 1 ? "was" : "were");
}
