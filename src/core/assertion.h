/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The job's assertions beyond its exit code: stdout, stderr, files, duration. Pure. */

#include "core/outcome.h"
#include "core/plan.h"
#include "core/reason.h"

/* Adds a reason for each assertion that does not hold. 0 or -ENOMEM. */
int assertions_judge(const Expect *expect, const Outcome *outcome, ReasonList *reasons);
