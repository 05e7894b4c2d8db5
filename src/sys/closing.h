/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Closing what takes long to close: for perf events and fanotify marks the kernel waits until no CPU can
 * still be using them, some ten milliseconds for each kind. Nobody needs to wait for that. */

#include "base/error.h"

/* Closes them here, and at last in a process of its own that ends then. Falls back to closing them at once.
 */
void close_later(int *fds, size_t n);
