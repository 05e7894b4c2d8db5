/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The isolation facts by name, and which of them must hold before a command is let go. Pure. */

#include "core/outcome.h"
#include "core/plan.h"

/* Whether a policy's "require" may name it. */
bool isolation_is_known(const char *fact);

/* The i-th known name, NULL past the end. */
const char *isolation_name(size_t i);

/* The first fact that does not hold although the plan asked systemd for what is behind it, or that the policy
 * requires: 0, or -EPERM with a sentence. A required fact that nobody observed does not hold either. */
int isolation_check(const Plan *plan, const Outcome *outcome, Error *e);
