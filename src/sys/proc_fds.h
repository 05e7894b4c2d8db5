/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The descriptors of a frozen process, as /proc/PID/fd shows them (proc_pid_fd(5)). What they lead to is
 * looked at and never opened, and no file system is asked that might not answer. */

#include "core/evidence.h"

/* One descriptor. The handler takes the record's target; locked: a file lock is held by it (flock(2),
 * fcntl(2)). */
typedef struct ProcFd {
        FdRecord record;
        uint64_t inode; /* of a socket; else 0 */
        bool locked;
} ProcFd;

typedef int (*ProcFdHandler)(void *userdata, ProcFd *fd);

/* How much may be looked at, of all processes together; counted down. */
typedef struct ProcFdBudget {
        unsigned fds, locks;
        bool exceeded;
} ProcFdBudget;

/* Hands over each. 0, what the handler returned when negative, or what /proc said: -ENOENT, -ESRCH when the
 * process had ended before it was frozen. */
int proc_fds(pid_t pid, ProcFdBudget *budget, ProcFdHandler handler, void *userdata);
