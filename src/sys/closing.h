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

/* Closes them here, and last by whoever is at the other end of the socket (closing_receive()); if nobody is,
 * or it has not kept up, here. */
void closing_finish(Closing *closing, int socket_fd);

/* At the other end: closes what comes, until there is a message of somebody else's, of at most size bytes.
 * Returns its size, 0 at the end of the socket, or a negative errno. */
ssize_t closing_receive(int socket_fd, void *data, size_t size);
