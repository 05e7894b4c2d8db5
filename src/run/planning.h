/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* From a job to its plan: the policy is found, gives the job what it does not say itself, and the paths are
 * judged as they really lead. Starts nothing; works for anybody. */

#include "core/plan.h"

typedef struct Planning {
        Policy *policy;
        Plan *plan;
        char *cwd; /* the caller's directory */
        char run_id[RUN_ID_MAX];
} Planning;

/* wait_usec: how long its stage may have to wait for its turn. policy: a name that overrides the job's; NULL:
 * the job's, else "default". The job gets the policy's defaults. 0 (look at plan->refusals), or a negative
 * errno with a sentence when there can be no plan. */
int planning_make(Job *job, const char *policy, uint64_t wait_usec, Planning *ret, Error *e);
void planning_clear(Planning *planning);

/* The directory of the job's file: what lies there may be its input. NULL: it came through a pipe. */
char *planning_job_directory(const char *job_path);
