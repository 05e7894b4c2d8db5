/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Processes as /proc shows them (proc(5)). A pid is only looked at while its process is held: stopped at the
 * gate, or frozen; then it cannot be anybody else. */

#include "core/outcome.h"

/* Opens a pidfd. 0 or a negative errno. */
int proc_open(pid_t pid, int *ret_pidfd);
bool proc_has_ended(int pidfd);

/* Opens /proc/PID, so that files below it are those of one process. */
int proc_open_dir(pid_t pid, int *ret_fd);

/* Compares the held stage with what the isolated posture must give: every namespace but the pid and cgroup
 * ones differs from qscope's own, no capability, no new privileges, a filter, not root, another root
 * directory. netns_fd: the network namespace it must be in; < 0: the host's. Appends a fact for each. 0 or
 * -ENOMEM or what /proc said. */
int proc_isolation_facts(int proc_fd, int netns_fd, uid_t uid, Outcome *outcome);

/* The program of a process that started it just now, and its arguments; both as the process is at this
 * moment, if it still is. */
int proc_program(pid_t pid, char **ret_path, char ***ret_argv);

/* Describes a frozen process. release_usec: CLOCK_BOOTTIME at the release, to count its start from. */
int proc_describe(pid_t pid, uint64_t release_boottime_usec, ProcessRecord *ret);
