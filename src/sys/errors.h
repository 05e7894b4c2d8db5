/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Counts, in the kernel, the system calls of one control group that fail with a given error: the only counter
 * there is for limits that make a call fail instead of killing (open files, file size, a full file system).
 * By perf_event_open(2) on the tracepoint raw_syscalls:sys_exit. */

#include "base/error.h"
#include "sys/closing.h"

typedef struct ErrorCounter ErrorCounter;

typedef enum CountedError {
        COUNTED_EMFILE,      /* no more descriptors */
        COUNTED_ENOSPC,      /* a full file system */
        COUNTED_EFBIG,       /* a file over its limit */
        COUNTED_FORK_EAGAIN, /* no more processes or threads */
        _COUNTED_ERROR_MAX,
} CountedError;

/* From here on they are counted. A negative errno: this kernel or this container does not allow it, which is
 * a blind spot and no failure. */
int error_counter_open(int cgroup_fd, ErrorCounter **ret);
/* How many system calls failed so until now; UNKNOWN when it cannot be read. */
uint64_t error_counter_read(const ErrorCounter *counter, CountedError error);
/* Gives its descriptors away before it is freed. */
void error_counter_give(ErrorCounter *counter, Closing *closing);
ErrorCounter *error_counter_free(ErrorCounter *counter);
DEFINE_CLEANUP(ErrorCounter *, error_counter_free)
