/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The filters of system calls that a held process really has (ptrace(2), PTRACE_SECCOMP_GET_FILTER), and what
 * they say. A mode and a number of filters would not tell one that has lost its list from one that has it. */

#include <sys/types.h>

#include "core/outcome.h"

/* "seccomp.filters": it has some that systemd itself has not (a container may have given those to all).
 * listed: "seccomp.list", that a call which no list of ours allows is refused by one of them. A blind spot
 * where this kernel does not show filters. proc_fd: its /proc directory. 0, -ENOMEM, or another negative
 * errno when the process cannot be held. */
int filter_facts(int proc_fd, pid_t pid, bool listed, Outcome *o);
