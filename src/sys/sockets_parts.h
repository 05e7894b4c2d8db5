/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the two files of this module share. */

#include <libmnl/libmnl.h>
#include <linux/inet_diag.h>

#include "sys/sockets.h"

struct Sockets {
        int dump_fd, closed_fd, fence_fd;
        uint64_t cgroup_id;
        uint32_t sequence;
        uint64_t fence_cookie;
};

/* What inet_diag says of one, without its protocol and type. */
void sockets_read_inet(const struct inet_diag_msg *message, SocketRecord *ret);

/* For mnl_attr_parse(): INET_DIAG_PROTOCOL into an int. */
int sockets_read_protocol(const struct nlattr *attr, void *protocol);
