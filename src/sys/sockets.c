/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/sockets.h"

#include <libmnl/libmnl.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <poll.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "sys/namespace.h"
#include "sys/sockets_parts.h"

/* An event takes about 1 KiB of the kernel's memory while it waits: room for some ten thousand. */
#define CLOSED_BUFFER    ((int) MIB(16))
#define MESSAGE_MAX      KIB(8)
#define READ_MAX         256u /* messages read at once, so that other events have their turn */
#define ANSWER_TIMEOUT   2    /* seconds; the kernel answers at once */
#define FENCE_WAIT_MSEC  2000
#define FLOOD            1000u /* so many are no ordinary job's */
#define QUIET_MSEC       5
#define QUIET_FLOOD_MSEC 100
#define SETTLE_ROUNDS    100000u

Sockets *sockets_free(Sockets *sockets)
{
        if (!sockets)
                return NULL;
        safe_close(sockets->dump_fd);
        safe_close(sockets->closed_fd);
        safe_close(sockets->fence_fd);
        free(sockets);
        return NULL;
}

static int open_diag(int flags, int *ret_fd)
{
        int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | flags, NETLINK_SOCK_DIAG);

        if (fd < 0)
                return -errno;
        *ret_fd = fd;
        return 0;
}

static int join_groups(int fd)
{
        static const int groups[] = {
                SKNLGRP_INET_TCP_DESTROY,
                SKNLGRP_INET_UDP_DESTROY,
                SKNLGRP_INET6_TCP_DESTROY,
                SKNLGRP_INET6_UDP_DESTROY,
        };
        /* Without a port of its own it counts as the kernel's, and gets nothing. */
        struct sockaddr_nl any = { .nl_family = AF_NETLINK };
        int size = CLOSED_BUFFER, one = 1;

        /* What is lost is counted by the socket itself (SO_MEMINFO), exactly; ENOBUFS would only say that
         * something was. */
        if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)) < 0 ||
                        setsockopt(fd, SOL_NETLINK, NETLINK_NO_ENOBUFS, &one, sizeof(one)) < 0 ||
                        bind(fd, (struct sockaddr *) &any, sizeof(any)) < 0)
                return -errno;
        for (size_t i = 0; i < ELEMENTSOF(groups); i++)
                if (setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &groups[i], sizeof(groups[i])) < 0)
                        return -errno;
        return 0;
}

static int open_fence(Sockets *sockets)
{
        socklen_t length = sizeof(sockets->fence_cookie);

        sockets->fence_fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        if (sockets->fence_fd < 0)
                return -errno;
        return getsockopt(sockets->fence_fd, SOL_SOCKET, SO_COOKIE, &sockets->fence_cookie, &length) < 0
                               ? -errno
                               : 0;
}

/* In the namespace. */
static int open_all(void *userdata)
{
        Sockets *sockets = userdata;
        struct timeval timeout = { .tv_sec = ANSWER_TIMEOUT };
        int r = open_diag(0, &sockets->dump_fd);

        if (r == 0 && setsockopt(sockets->dump_fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)) < 0)
                r = -errno;
        if (r == 0 && sockets->cgroup_id == 0) {
                r = open_diag(SOCK_NONBLOCK, &sockets->closed_fd);
                if (r == 0)
                        r = join_groups(sockets->closed_fd);
                if (r == 0)
                        r = open_fence(sockets);
        }
        return r;
}

int sockets_open(int netns_fd, uint64_t cgroup_id, Sockets **ret)
{
        _cleanup_(sockets_freep) Sockets *sockets = calloc(1, sizeof(*sockets));
        int r;

        if (!sockets)
                return -ENOMEM;
        *sockets = (Sockets){
                .dump_fd = -EBADF, .closed_fd = -EBADF, .fence_fd = -EBADF, .cgroup_id = cgroup_id
        };
        r = namespace_call(netns_fd, open_all, sockets);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(sockets);
        return 0;
}

int sockets_closed_fd(const Sockets *sockets)
{
        return sockets->closed_fd;
}

/* A socket that is not bound, or without a peer, has no address there; not the address 0. */
static void drop_unset(Endpoint *endpoint)
{
        if (endpoint->port == 0 && memcmp(endpoint->address, (uint8_t[16]){ 0 }, 16) == 0)
                endpoint->family = 0;
}

void sockets_read_inet(const struct inet_diag_msg *message, SocketRecord *ret)
{
        const struct inet_diag_sockid *id = &message->id;
        size_t size = message->idiag_family == AF_INET ? 4 : 16;

        *ret = (SocketRecord){
                .family = message->idiag_family,
                .local = { .family = message->idiag_family, .port = ntohs(id->idiag_sport) },
                .remote = { .family = message->idiag_family, .port = ntohs(id->idiag_dport) },
                .state = message->idiag_state,
                .inode = message->idiag_inode,
        };
        memcpy(ret->local.address, id->idiag_src, size);
        memcpy(ret->remote.address, id->idiag_dst, size);
        drop_unset(&ret->local);
        drop_unset(&ret->remote);
}

int sockets_read_protocol(const struct nlattr *attr, void *protocol)
{
        if (mnl_attr_get_type(attr) == INET_DIAG_PROTOCOL && mnl_attr_get_payload_len(attr) >= 1)
                *(int *) protocol = mnl_attr_get_u8(attr);
        return MNL_CB_OK;
}

typedef struct ClosedReader {
        SocketList *list;
        uint64_t fence_cookie;
        bool fence_seen;
} ClosedReader;

static int on_closed(const struct nlmsghdr *header, void *userdata)
{
        ClosedReader *reader = userdata;
        const struct inet_diag_msg *message = mnl_nlmsg_get_payload(header);
        SocketRecord record;

        if (header->nlmsg_type != SOCK_DIAG_BY_FAMILY || mnl_nlmsg_get_payload_len(header) < sizeof(*message))
                return MNL_CB_OK;
        if ((message->id.idiag_cookie[0] | (uint64_t) message->id.idiag_cookie[1] << 32) ==
                        reader->fence_cookie) {
                reader->fence_seen = true;
                return MNL_CB_OK;
        }
        sockets_read_inet(message, &record);
        record.inode = 0; /* it is nobody's any more */
        (void) mnl_attr_parse(header, sizeof(*message), sockets_read_protocol, &record.protocol);
        record.type = record.protocol == IPPROTO_TCP ? SOCK_STREAM : SOCK_DGRAM;
        return socket_list_add(reader->list, &record) < 0 ? -ENOMEM : MNL_CB_OK;
}

/* 1: there was a message, 0: none. */
static int read_message(Sockets *sockets, ClosedReader *reader)
{
        char buffer[MESSAGE_MAX] __attribute__((aligned(NLMSG_ALIGNTO)));
        struct sockaddr_nl from = { 0 };
        socklen_t length = sizeof(from);
        ssize_t n = recvfrom(
                        sockets->closed_fd, buffer, sizeof(buffer), 0, (struct sockaddr *) &from, &length);

        if (n < 0)
                return errno == EINTR ? 1 : errno == EAGAIN ? 0 : -errno;
        /* Whoever shares the namespace may send netlink messages; only the kernel has port 0. */
        if (from.nl_pid != 0)
                return 1;
        return mnl_cb_run(buffer, (size_t) n, 0, 0, on_closed, reader) == -ENOMEM ? -ENOMEM : 1;
}

static uint64_t count_lost(const Sockets *sockets)
{
        uint32_t info[SK_MEMINFO_VARS] = { 0 };
        socklen_t length = sizeof(info);

        if (getsockopt(sockets->closed_fd, SOL_SOCKET, SO_MEMINFO, info, &length) < 0)
                return 0;
        return info[SK_MEMINFO_DROPS];
}

static int read_closed(Sockets *sockets, ClosedReader *reader, uint64_t *lost)
{
        int r = 1;

        for (unsigned i = 0; r == 1 && i < READ_MAX; i++)
                r = read_message(sockets, reader);
        *lost = count_lost(sockets);
        return r;
}

int sockets_read_closed(Sockets *sockets, SocketList *list, uint64_t *lost)
{
        ClosedReader reader = { .list = list };

        return sockets->closed_fd < 0 ? 0 : read_closed(sockets, &reader, lost);
}

/* How long nothing must come until there is nothing more: the kernel tells from a queue of each CPU, and the
 * longer they are, the further apart they may be. */
static int quiet_msec(const SocketList *list)
{
        if (list->total == 0)
                return 0;
        return list->total < FLOOD ? QUIET_MSEC : QUIET_FLOOD_MSEC;
}

/* A socket of our own is closed: when the kernel tells of that one, its queues have had their turn. */
int sockets_settle(Sockets *sockets, SocketList *list, uint64_t *lost)
{
        ClosedReader reader = { .list = list, .fence_cookie = sockets->fence_cookie };
        struct pollfd p = { .fd = sockets->closed_fd, .events = POLLIN };
        int r = 0;

        if (sockets->closed_fd < 0)
                return 0;
        sockets->fence_fd = safe_close(sockets->fence_fd);
        for (unsigned i = 0; r >= 0 && i < SETTLE_ROUNDS; i++) {
                if (poll(&p, 1, reader.fence_seen ? quiet_msec(list) : FENCE_WAIT_MSEC) <= 0)
                        break;
                r = read_closed(sockets, &reader, lost);
        }
        /* Something is missing then, and it is not known how much. */
        if (!reader.fence_seen || r == 1)
                *lost += *lost == 0;
        sockets->closed_fd = safe_close(sockets->closed_fd);
        return r < 0 ? r : 0;
}
