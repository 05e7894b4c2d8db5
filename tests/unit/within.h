/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Random policies and jobs, and whether a plan keeps to its policy. For the fuzz target and its unit test. */

#include "core/plan.h"

/* Choices are drawn from these bytes; when they are used up, the first of each is taken. */
typedef struct Choices {
        const uint8_t *data;
        size_t size, used;
} Choices;

/* Texts that read: a policy that grants some of everything, and a job that asks for some of everything. */
char *make_policy_text(Choices *c);
char *make_job_text(Choices *c);

/* NULL: the plan gives the job no more than its policy, or refuses it; else what it gives too much, as a
 * static text. */
const char *plan_excess(const Plan *plan, char *const *caller_env);

/* Makes a policy, a job and its plan of the bytes and checks them: NULL or what is wrong. *ret_refused (may
 * be NULL) tells whether the plan has refusals. */
const char *check_random_plan(const uint8_t *data, size_t size, bool *ret_refused);
