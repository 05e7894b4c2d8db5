/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* qscope's end of the gate at which the stage is held (stage/protocol.h). */

#include <sys/types.h>

#include "base/error.h"
#include "stage/protocol.h"

/* Makes the socket pair. *ret_fd: qscope's end, which does not block and whose messages carry the sender's
 * credentials; *ret_stage_fd: the stage's, to be its standard input. 0 or a negative errno. */
int gate_open(int *ret_fd, int *ret_stage_fd);

typedef struct GatePeer {
        pid_t pid; /* 0: the kernel sent no credentials */
        uid_t uid;
        gid_t gid;
} GatePeer;

/* The next message. 1: there was one, 0: none is waiting, -EPIPE: the other end is closed, -EBADMSG: not a
 * message of the stage (it is then ended by NUL and within bounds all the same). */
int gate_receive(int fd, struct GateMessage *ret, GatePeer *ret_peer);

/* Packs the command into a sealed memfd (memfd_create(2)). -E2BIG when larger than GATE_STRINGS_MAX. */
int gate_command(const char *cwd, const char *path, char *const *argv, char *const *env, unsigned mask,
                int *ret_fd);

/* Opens the gate. life_fd is closed by the stage's exec; the caller closes its own copy. */
int gate_release(int fd, int command_fd, const int streams[static 3], int life_fd);
