/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The sockets of one network namespace, by sock_diag(7) over libmnl: those that are there, and those of TCP
 * and UDP that closed since. Who holds one is for the caller to find out, by its inode. */

#include "core/sockets.h"

typedef struct Sockets Sockets;

/* From here on, sockets that close are kept to be read. cgroup_id: 0 for all of the namespace; otherwise only
 * Internet sockets made in that control group are dumped, and none that closed is told of, since the kernel
 * does not say whose it was. A negative errno: it cannot be asked here, which is a blind spot. */
int sockets_open(int netns_fd, uint64_t cgroup_id, Sockets **ret);

/* Becomes readable when sockets have closed; owned by Sockets; < 0: they are not told of. */
int sockets_closed_fd(const Sockets *sockets);

/* Appends those that closed since the last call; reads at most a bounded number of them and then returns 1:
 * there may be more. 0, or -ENOMEM. Counts in *lost how many the kernel had no room for, from the beginning.
 */
int sockets_read_closed(Sockets *sockets, SocketList *list, uint64_t *lost);

/* The kernel tells of a closed socket a moment after. Waits, for a bounded time, until all that closed before
 * this call has been read, and ends the telling. 0 or -ENOMEM. */
int sockets_settle(Sockets *sockets, SocketList *list, uint64_t *lost);

/* One row for each kind of socket that the kernel is asked for. */
typedef struct SocketQuestion {
        int family, protocol;
        unsigned states;    /* bits 1 << TCP_LISTEN …; 0: it has none */
        const char *protos; /* its name in /proc/net/protocols */
        const char *name;   /* for sentences */
} SocketQuestion;

/* The i-th question, those for listening sockets first; NULL past the end. */
const SocketQuestion *sockets_question(size_t i);

typedef int (*SocketHandler)(void *userdata, SocketRecord *record);

/* Hands over each socket of a kind, which the handler takes. The caller's own are among them. 0;
 * what the handler returned when negative; -ENOENT: this kernel has no module to ask, and there can be such
 * sockets; another negative errno when asking failed. */
int sockets_dump(Sockets *sockets, const SocketQuestion *question, SocketHandler handler, void *userdata);

Sockets *sockets_free(Sockets *sockets);
DEFINE_CLEANUP(Sockets *, sockets_free)
