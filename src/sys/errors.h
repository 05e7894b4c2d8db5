/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Counts, in the kernel, the system calls of one control group that fail with a given error: the only counter
 * there is for limits that make a call fail instead of killing (open files, file size, a full file system).
 * By perf_event_open(2) on the tracepoint raw_syscalls:sys_exit. */

#include "base/error.h"

typedef struct ErrorCounter ErrorCounter;

#define ERROR_COUNTER_MAX 4

/* errors: positive errno values. From here on they are counted. A negative errno: this kernel or this
 * container does not allow it, which is a blind spot and no failure. */
int error_counter_open(int cgroup_fd, const int *errors, size_t n_errors, ErrorCounter **ret);
/* How many system calls returned errors[index] so far; UNKNOWN when it cannot be read. */
uint64_t error_counter_read(const ErrorCounter *counter, size_t index);
ErrorCounter *error_counter_free(ErrorCounter *counter);
DEFINE_CLEANUP(ErrorCounter *, error_counter_free)
