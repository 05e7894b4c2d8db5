/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The plan for people, and the nearest thing to it that can be typed. Pure. */

#include "core/plan.h"

/* The arguments of a systemd-run(1) that does by hand what comes nearest: the same sandbox and limits, the
 * workspace read-only in place of a layer over it, no receipt. Variables by name only. 0 or -ENOMEM. */
int plan_systemd_run(const Plan *plan, char ***ret);

/* All of it as text; nothing in it can steer a terminal. NULL when out of memory. */
char *plan_to_text(const Plan *plan);

/* Words as a shell takes them, with a line break before each option beyond the width of a line. NULL when out
 * of memory. */
char *plan_shell_line(char *const *words);
