/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Closing what takes long to close: for perf events and fanotify marks the kernel waits until no CPU can
 * still be using them, some ten milliseconds for each kind. Nobody needs to wait for that. */

#include "base/error.h"

typedef struct Closing {
        int *fds;
        size_t n;
} Closing;

/* Takes over descriptors (those that are none are left out) and leaves -EBADF. */
void closing_take(Closing *closing, int *fds, size_t n);

/* Closes them here, and last in a process of its own that ends then; if there can be none, at once. */
void closing_finish(Closing *closing);
