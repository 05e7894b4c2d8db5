/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The parts of plan_make(), in the order in which they run. Only for plan*.c. Each fills in its members of
 * the plan and adds refusals; 0 or a negative errno (with a sentence when -EINVAL). */

#include "core/plan.h"

#define PLAN_FRESH_CWD    "/workspace"
#define PLAN_SCRATCH_HOME "/home/job"

/* plan_limits.c: limits, layer, timeout_usec */
int plan_limits(Plan *plan);
/* plan_path.c: workspace, cwd, allow_changes; then, with env at hand, home and passwd_home */
int plan_workspace(Plan *plan, const PlanContext *context);
int plan_home(Plan *plan, const PlanContext *context);
/* plan_env.c: env, env_source */
int plan_env(Plan *plan, const PlanContext *context);
/* plan_properties.c: slice_properties, service_properties */
int plan_properties(Plan *plan, const PlanContext *context);

/* "512M", "30 s", "150%", "null (no limit)": a limit's value as a job writes it. Returns buffer. */
char *plan_format_limit(LimitKind kind, uint64_t value, char *buffer, size_t size);

/* plan_json.c: adds "mounts", what is attached while the command is held. 0 or -ENOMEM. */
int plan_add_mounts(cJSON *object, const Plan *plan);
