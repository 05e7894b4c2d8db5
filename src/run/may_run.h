/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Whether a program may run: the policy's deny_exec and allow_exec, asked while its execve(2) waits. */

#include "run/state.h"

/* Without an observer that can refuse, nothing must run under a policy that has rules. */
bool may_run_is_asked(const Run *run);

/* fd: the file; part: another file of the same execve(2) came before it. What is refused goes into the
 * outcome. */
bool may_run(Run *run, const ProgramStart *start, bool part, int fd);
