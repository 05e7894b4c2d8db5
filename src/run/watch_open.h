/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the processes that are left hold open, and what is shared between processes. */

#include "run/state.h"

/* Who holds which socket. */
typedef struct SocketHolder {
        uint64_t inode;
        pid_t pid;
        bool own;   /* the pid is qscope's, which has sockets in the job's network */
        bool known; /* the kernel has told what kind of socket it is */
} SocketHolder;

typedef struct SocketHolders {
        SocketHolder *items; /* by inode, once all are there */
        size_t n, room;
} SocketHolders;

void socket_holders_clear(SocketHolders *holders);
/* NULL: nobody whose descriptors were looked at. */
SocketHolder *socket_holders_find(const SocketHolders *holders, uint64_t inode);

int watch_open_attach(Run *run, Error *e);
/* Everything is frozen: lists descriptors and locks, and fills holders. */
void watch_open_look(Run *run, SocketHolders *holders);
/* The last process is gone: lists what it shared. */
void watch_open_finish(Run *run);
void watch_open_clear(Run *run);
