/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What differs between two receipts, qscope.diff/v1. Both may come from anybody: a member of a type that was
 * not expected counts as not there. Pure.
 *
 *   { same, total, truncated, differences [{area, name, a, b, matters, diff}…] }
 *
 * a and b are text for people, null where there is none; diff (output only) is a unified diff. What does not
 * matter is what was asked rather than what happened (argv, policy, host) and what could not be seen; same is
 * about the rest. Numbers of use count when they differ by more than repeated runs do. */

#include "core/receipt_view.h"

#define COMPARE_LISTED_MAX 2000u /* differences; all are counted */

/* NULL when out of memory. */
cJSON *receipt_compare(const cJSON *a, const cJSON *b);

/* As lines for people. NULL when out of memory. */
char *comparison_text(const cJSON *comparison, bool colour);
