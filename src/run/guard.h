/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A process that outlives qscope for a moment: when qscope is gone without having said so, its jobs are
 * killed and removed at once. (Should somebody kill both, RuntimeMaxSec= ends the jobs and the next run
 * removes them.) And it closes what takes long to close (sys/closing.h). */

#include "base/error.h"

typedef struct Guard {
        int fd; /* closed by qscope's end, however it comes */
} Guard;

#define GUARD_INIT ((Guard){ .fd = -EBADF })

int guard_start(Guard *ret);

/* From here on the guard answers for this run, until it is told so a second time. A negative errno: there is
 * no guard any more. */
int guard_toggle(Guard *guard, const char *run_id);

/* All is in order: the guard ends without doing anything. */
void guard_dismiss(Guard *guard);
