/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The filters of system calls that a held process really has (ptrace(2), PTRACE_SECCOMP_GET_FILTER), and what
 * they say. A mode and a number of filters would not tell one that has lost its list from one that has it. */

#include <sys/types.h>

#include "core/outcome.h"

/* "seccomp.list": a call that no list of ours allows is refused. A blind spot where this kernel does not show
 * filters. 0, -ENOMEM, or another negative errno when the process cannot be held. */
int filter_facts(pid_t pid, Outcome *o);
