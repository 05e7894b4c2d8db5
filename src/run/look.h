/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Whether a command would be found and executed, told beforehand from the host's files and the plan: where
 * each path of the job's root comes from. Starts, mounts and writes nothing. What only a run can know
 * (another system in an image, what the caller may not read) is not told. */

#include "core/outcome.h"
#include "core/plan.h"

/* As the stage would report it: error 0 and the resolved path; a positive errno with what explains it; -1:
 * cannot be told. Clear it with look_clear(). 0 or -ENOMEM. */
int look_command(const Plan *plan, ExecRecord *ret);
void look_clear(ExecRecord *record);

/* PATH of the job, or what is searched without one. */
const char *look_search_path(const Plan *plan);
