/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The receipt, qscope.receipt/v1, and the one-line result for scripts. Pure. */

#include "core/verdict.h"

/* The whole receipt. NULL when out of memory. */
cJSON *receipt_build(const Plan *plan, const Outcome *outcome, const Judgement *judgement);

/* {"job_id":…,"run_id":…,"verdict":…,"match_expected":…,"exit_code":…,"receipt":…}; receipt_path may be NULL.
 */
cJSON *receipt_summary(const Plan *plan, const Judgement *judgement, const char *receipt_path);
