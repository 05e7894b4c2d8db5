/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A process that outlives qscope for a moment: when qscope is gone without having said so, its jobs are
 * killed and removed at once. (Should somebody kill both, RuntimeMaxSec= ends the job and the next run
 * removes it.) */

#include <sys/types.h>

#include "base/error.h"

typedef struct Guard {
        int fd; /* closed by qscope's end, however it comes */
        pid_t pid;
} Guard;

#define GUARD_INIT ((Guard){ .fd = -EBADF })

/* To be called before any descriptor is open that must not outlive qscope, above all a run's lock. slice: the
 * job's, killed first. */
int guard_start(const char *slice, Guard *ret);

/* All is in order: the guard ends without doing anything. */
void guard_dismiss(Guard *guard);
