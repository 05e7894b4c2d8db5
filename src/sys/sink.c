/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/sink.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <libmnl/libmnl.h>
#include <linux/filter.h>
#include <linux/if_addr.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/if_tun.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>

#include "sys/file.h"
#include "sys/mount.h"

#define TUN_MAJOR 10
#define TUN_MINOR 200
/* Packets that wait to be read. They are no longer charged to whoever sent them, so all of them together must
 * be little: some 10 MB. */
#define QUEUE_LENGTH 4096
#define LOOPBACK     1u /* every namespace has it first */
#define REQUEST_MAX  1024
#define ANSWER_MAX   16384

struct Sink {
        int fds[_SINK_WAY_MAX];
        uint64_t loopback_lost;
        struct mnl_socket *netlink;
        unsigned index, sequence;
};

Sink *sink_free(Sink *sink)
{
        if (!sink)
                return NULL;
        for (SinkWay way = 0; way < _SINK_WAY_MAX; way++)
                safe_close(sink->fds[way]);
        if (sink->netlink)
                (void) mnl_socket_close(sink->netlink);
        free(sink);
        return NULL;
}

int sink_fd(const Sink *sink, SinkWay way)
{
        return sink->fds[way];
}

/* --- the device --- */

/* Where /dev lacks the node (a container's), one of our own in a file system that nobody else sees. */
static int open_own_node(void)
{
        MountOption none[] = { { 0 } };
        _cleanup_close_ int dir = -EBADF;
        int fd, r = mount_new("tmpfs", none, 0, &dir, NULL);

        if (r < 0)
                return r;
        if (mknodat(dir, "tun", S_IFCHR | 0600, makedev(TUN_MAJOR, TUN_MINOR)) < 0)
                return -errno;
        fd = openat(dir, "tun", O_RDWR | O_CLOEXEC | O_NONBLOCK);
        return fd < 0 ? -errno : fd;
}

static int open_node(void)
{
        int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC | O_NONBLOCK);

        return fd >= 0 ? fd : open_own_node();
}

/* if_nametoindex(3) forgets why it could not ask. */
static int find_index(unsigned *ret)
{
        _cleanup_close_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        struct ifreq request = { .ifr_name = SINK_DEVICE };

        if (fd < 0 || ioctl(fd, SIOCGIFINDEX, &request) < 0)
                return -errno;
        *ret = (unsigned) request.ifr_ifindex;
        return 0;
}

/* Owned by root, so that nobody in the namespace can attach to it. Persistent: to take it away with its
 * descriptor costs the one who closes that tens of milliseconds; the namespace's end, which is in the
 * background, takes it along. */
static int make_device(Sink *sink)
{
        struct ifreq request = { .ifr_name = SINK_DEVICE, .ifr_flags = IFF_TUN | IFF_NO_PI };
        int fd = open_node();

        if (fd < 0)
                return fd;
        sink->fds[SINK_OUT] = fd;
        if (ioctl(fd, TUNSETIFF, &request) < 0 || ioctl(fd, TUNSETOWNER, 0) < 0 ||
                        ioctl(fd, TUNSETPERSIST, 1) < 0)
                return -errno;
        return find_index(&sink->index);
}

/* --- loopback --- */

/* What is sent and is neither for 127.0.0.0/8, nor for the namespace's other address, nor for many. */
static int filter_loopback(int fd, const char *address4)
{
        struct in_addr own;
        struct sock_filter program[] = {
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t) (SKF_AD_OFF + SKF_AD_PROTOCOL)),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETH_P_IP, 0, 8),
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t) (SKF_AD_OFF + SKF_AD_PKTTYPE)),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PACKET_OUTGOING, 0, 6),
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 16), /* the destination (RFC 791) */
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 4, 0),
                BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0xe0000000, 3, 0),
                BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xff000000),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x7f000000, 1, 0),
                BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
                BPF_STMT(BPF_RET | BPF_K, 0),
        };
        struct sock_fprog filter = { ELEMENTSOF(program), program };

        if (inet_pton(AF_INET, address4, &own) != 1)
                return -EINVAL;
        program[5].k = ntohl(own.s_addr);
        return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)) < 0 ? -errno : 0;
}

/* Bound, and so receiving, only when it has its filter. What is sent comes to those who want all protocols.
 */
static int watch_loopback(Sink *sink, const char *address4)
{
        struct sockaddr_ll address = {
                .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = LOOPBACK
        };
        int fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), r;

        if (fd < 0)
                return -errno;
        sink->fds[SINK_LOOPBACK] = fd;
        r = filter_loopback(fd, address4);
        if (r < 0)
                return r;
        return bind(fd, (const struct sockaddr *) &address, sizeof(address)) < 0 ? -errno : 0;
}

/* --- settings --- */

/* The kernel shall say nothing of its own; the programs' echo requests shall need no capability; loopback
 * takes an answer from elsewhere. Without IPv6 half of them are missing. */
static void set_sysctls(void)
{
        static const char *const table[][2] = {
                { "ipv4/ping_group_range", "0 2147483647" },
                { "ipv4/conf/all/rp_filter", "0" },
                { "ipv4/conf/lo/rp_filter", "0" },
                { "ipv4/conf/lo/route_localnet", "1" },
                { "ipv4/conf/" SINK_DEVICE "/rp_filter", "0" },
                { "ipv6/conf/all/disable_ipv6", "0" },
                { "ipv6/conf/lo/disable_ipv6", "0" },
                { "ipv6/conf/" SINK_DEVICE "/disable_ipv6", "0" },
                { "ipv6/conf/" SINK_DEVICE "/accept_dad", "0" },
                { "ipv6/conf/" SINK_DEVICE "/accept_ra", "0" },
                { "ipv6/conf/" SINK_DEVICE "/router_solicitations", "0" },
                { "ipv6/conf/" SINK_DEVICE "/addr_gen_mode", "1" },
        };
        _cleanup_close_ int dir = open("/proc/sys/net", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        for (size_t i = 0; dir >= 0 && i < ELEMENTSOF(table); i++)
                (void) file_write_at(dir, table[i][0], table[i][1]);
}

/* --- rtnetlink(7) --- */

static struct nlmsghdr *new_request(
                Sink *sink, char buffer[static REQUEST_MAX], unsigned type, unsigned flags)
{
        struct nlmsghdr *message = mnl_nlmsg_put_header(buffer);

        message->nlmsg_type = (uint16_t) type;
        message->nlmsg_flags = (uint16_t) (NLM_F_REQUEST | NLM_F_ACK | flags);
        message->nlmsg_seq = ++sink->sequence;
        return message;
}

/* Sends it and reads until it is acknowledged. */
static int ask(Sink *sink, const struct nlmsghdr *message, mnl_cb_t callback, void *userdata)
{
        unsigned port = mnl_socket_get_portid(sink->netlink);
        char answer[ANSWER_MAX];
        int r = 1;

        if (mnl_socket_sendto(sink->netlink, message, message->nlmsg_len) < 0)
                return -errno;
        while (r > 0) {
                ssize_t n = mnl_socket_recvfrom(sink->netlink, answer, sizeof(answer));

                if (n < 0)
                        return -errno;
                r = mnl_cb_run(answer, (size_t) n, message->nlmsg_seq, port, callback, userdata);
        }
        return r < 0 ? -errno : 0;
}

static int set_link_up(Sink *sink)
{
        char buffer[REQUEST_MAX];
        struct nlmsghdr *message = new_request(sink, buffer, RTM_NEWLINK, 0);
        struct ifinfomsg *info = mnl_nlmsg_put_extra_header(message, sizeof(*info));

        info->ifi_index = (int) sink->index;
        info->ifi_flags = info->ifi_change = IFF_UP;
        mnl_attr_put_u32(message, IFLA_TXQLEN, QUEUE_LENGTH);
        mnl_attr_put_u32(message, IFLA_MTU, SINK_PACKET_MAX);
        return ask(sink, message, NULL, NULL);
}

/* What is sent goes to the device at once and in its order, whatever the host's default is. */
static int set_no_queue(Sink *sink)
{
        char buffer[REQUEST_MAX];
        struct nlmsghdr *message = new_request(sink, buffer, RTM_NEWQDISC, NLM_F_CREATE | NLM_F_REPLACE);
        struct tcmsg *info = mnl_nlmsg_put_extra_header(message, sizeof(*info));

        info->tcm_ifindex = (int) sink->index;
        info->tcm_parent = TC_H_ROOT;
        mnl_attr_put_strz(message, TCA_KIND, "noqueue");
        return ask(sink, message, NULL, NULL);
}

static int add_address(Sink *sink, int family, const char *text)
{
        bool v4 = family == AF_INET;
        char buffer[REQUEST_MAX];
        struct nlmsghdr *message = new_request(sink, buffer, RTM_NEWADDR, NLM_F_CREATE);
        struct ifaddrmsg *info = mnl_nlmsg_put_extra_header(message, sizeof(*info));
        struct in6_addr address;

        if (inet_pton(family, text, &address) != 1)
                return -EINVAL;
        info->ifa_family = (uint8_t) family;
        info->ifa_prefixlen = v4 ? 32 : 128;
        info->ifa_flags = IFA_F_NODAD;
        info->ifa_index = sink->index;
        mnl_attr_put(message, IFA_LOCAL, v4 ? sizeof(struct in_addr) : sizeof(address), &address);
        return ask(sink, message, NULL, NULL);
}

static int add_route(Sink *sink, int family)
{
        char buffer[REQUEST_MAX];
        struct nlmsghdr *message = new_request(sink, buffer, RTM_NEWROUTE, NLM_F_CREATE);
        struct rtmsg *info = mnl_nlmsg_put_extra_header(message, sizeof(*info));

        info->rtm_family = (uint8_t) family;
        info->rtm_table = RT_TABLE_MAIN;
        info->rtm_protocol = RTPROT_STATIC;
        info->rtm_scope = RT_SCOPE_UNIVERSE;
        info->rtm_type = RTN_UNICAST;
        mnl_attr_put_u32(message, RTA_OIF, sink->index);
        return ask(sink, message, NULL, NULL);
}

static int open_netlink(Sink *sink)
{
        sink->netlink = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC);
        if (!sink->netlink || mnl_socket_bind(sink->netlink, 0, MNL_SOCKET_AUTOPID) < 0)
                return -errno;
        sink->sequence = (unsigned) time(NULL);
        return 0;
}

/* A kernel without IPv6 has no way out for it either. */
static int configure(Sink *sink, const char *address4, const char *address6)
{
        bool v6 = access("/proc/sys/net/ipv6", F_OK) == 0;
        int r = open_netlink(sink);

        set_sysctls();
        if (r == 0)
                r = set_link_up(sink);
        if (r == 0)
                r = set_no_queue(sink);
        if (r == 0)
                r = add_address(sink, AF_INET, address4);
        if (r == 0)
                r = add_route(sink, AF_INET);
        if (r == 0 && v6)
                r = add_address(sink, AF_INET6, address6);
        if (r == 0 && v6)
                r = add_route(sink, AF_INET6);
        return r;
}

int sink_new(const char *address4, const char *address6, Sink **ret, Error *e)
{
        _cleanup_(sink_freep) Sink *sink = calloc(1, sizeof(*sink));
        int r;

        if (!sink)
                return -ENOMEM;
        for (SinkWay way = 0; way < _SINK_WAY_MAX; way++)
                sink->fds[way] = -EBADF;
        r = make_device(sink);
        if (r < 0)
                return error_errno(e, r, "the device (TUN) that packets go to");
        r = watch_loopback(sink, address4);
        if (r < 0)
                return error_errno(e, r, "what loopback is asked to send elsewhere");
        r = configure(sink, address4, address6);
        if (r < 0)
                return error_errno(e, r, "the addresses and routes of the device that packets go to");
        *ret = TAKE_PTR(sink);
        return 0;
}

/* --- packets --- */

ssize_t sink_read(Sink *sink, SinkWay way, uint8_t *packet, size_t size)
{
        ssize_t n = read(sink->fds[way], packet, size);

        return n < 0 ? -errno : n;
}

void sink_write(Sink *sink, SinkWay way, const void *packet, size_t size)
{
        struct sockaddr_ll address = { .sll_family = AF_PACKET,
                .sll_protocol = htons(ETH_P_IP),
                .sll_ifindex = LOOPBACK,
                .sll_halen = ETH_ALEN };

        if (way == SINK_LOOPBACK)
                (void) sendto(sink->fds[way], packet, size, 0, (const struct sockaddr *) &address,
                                sizeof(address));
        else
                (void) !write(sink->fds[way], packet, size);
}

static int read_dropped(const struct nlmsghdr *message, void *userdata)
{
        const struct nlattr *attribute;
        struct rtnl_link_stats64 stats = { 0 };

        for (attribute = mnl_nlmsg_get_payload_offset(message, sizeof(struct ifinfomsg));
                        mnl_attr_ok(attribute, (int) ((const char *) mnl_nlmsg_get_payload_tail(message) -
                                                               (const char *) attribute));
                        attribute = mnl_attr_next(attribute)) {
                size_t size = mnl_attr_get_payload_len(attribute);

                if (mnl_attr_get_type(attribute) != IFLA_STATS64)
                        continue;
                memcpy(&stats, mnl_attr_get_payload(attribute), MIN(size, sizeof(stats)));
                *(uint64_t *) userdata = stats.tx_dropped;
        }
        return MNL_CB_OK;
}

/* The kernel counts from the last time it was asked (packet(7)). */
static int count_loopback(Sink *sink)
{
        struct tpacket_stats stats;
        socklen_t size = sizeof(stats);

        if (getsockopt(sink->fds[SINK_LOOPBACK], SOL_PACKET, PACKET_STATISTICS, &stats, &size) < 0)
                return -errno;
        sink->loopback_lost += stats.tp_drops;
        return 0;
}

uint64_t sink_lost(Sink *sink)
{
        char buffer[REQUEST_MAX];
        struct nlmsghdr *message = new_request(sink, buffer, RTM_GETLINK, 0);
        struct ifinfomsg *info = mnl_nlmsg_put_extra_header(message, sizeof(*info));
        uint64_t dropped = UNKNOWN;

        info->ifi_index = (int) sink->index;
        if (ask(sink, message, read_dropped, &dropped) < 0 || dropped == UNKNOWN || count_loopback(sink) < 0)
                return UNKNOWN;
        return dropped + sink->loopback_lost;
}
