/* SPDX-License-Identifier: Apache-2.0 */

/* What sock_diag is asked for, and its answers, for each family. */

#include "sys/sockets_parts.h"

#include <libmnl/libmnl.h>
#include <linux/netlink_diag.h>
#include <linux/packet_diag.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <linux/vm_sockets_diag.h>
#include <netinet/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#define ANSWER_MAX KIB(32)
#define STATES_ALL UINT32_MAX
#define LISTEN     (1u << TCP_LISTEN)
/* What is in TIME-WAIT is closed; the kernel only remembers it. */
#define OTHERS (STATES_ALL & ~(LISTEN | 1u << TCP_TIME_WAIT))

/* Multipath TCP before TCP: the TCP socket below one that listens has no holder. */
static const SocketQuestion questions[] = {
        { AF_INET, IPPROTO_MPTCP, LISTEN, "MPTCP", "mptcp" },
        { AF_INET, IPPROTO_TCP, LISTEN, "TCP", "tcp" },
        { AF_INET6, IPPROTO_MPTCP, LISTEN, "MPTCPv6", "mptcp" },
        { AF_INET6, IPPROTO_TCP, LISTEN, "TCPv6", "tcp" },
        { AF_INET, IPPROTO_SCTP, LISTEN, "SCTP", "sctp" },
        { AF_INET6, IPPROTO_SCTP, LISTEN, "SCTPv6", "sctp" },
        { AF_UNIX, 0, LISTEN, "UNIX", "unix" },
        { AF_VSOCK, 0, LISTEN, "AF_VSOCK", "vsock" },
        { AF_INET, IPPROTO_UDP, STATES_ALL, "UDP", "udp" },
        { AF_INET6, IPPROTO_UDP, STATES_ALL, "UDPv6", "udp" },
        { AF_INET, IPPROTO_UDPLITE, STATES_ALL, "UDP-Lite", "udplite" },
        { AF_INET6, IPPROTO_UDPLITE, STATES_ALL, "UDPLITEv6", "udplite" },
        { AF_INET, IPPROTO_MPTCP, OTHERS, "MPTCP", "mptcp" },
        { AF_INET, IPPROTO_TCP, OTHERS, "TCP", "tcp" },
        { AF_INET6, IPPROTO_MPTCP, OTHERS, "MPTCPv6", "mptcp" },
        { AF_INET6, IPPROTO_TCP, OTHERS, "TCPv6", "tcp" },
        { AF_INET, IPPROTO_SCTP, OTHERS, "SCTP", "sctp" },
        { AF_INET6, IPPROTO_SCTP, OTHERS, "SCTPv6", "sctp" },
        { AF_INET, IPPROTO_RAW, STATES_ALL, "RAW", "raw" },
        { AF_INET6, IPPROTO_RAW, STATES_ALL, "RAWv6", "raw" },
        { AF_PACKET, 0, 0, "PACKET", "packet" },
        { AF_NETLINK, 0, 0, "NETLINK", "netlink" },
        { AF_UNIX, 0, OTHERS, "UNIX", "unix" },
        { AF_VSOCK, 0, OTHERS, "AF_VSOCK", "vsock" },
};

const SocketQuestion *sockets_question(size_t i)
{
        return i < ELEMENTSOF(questions) ? &questions[i] : NULL;
}

/* --- questions --- */

/* One command and its argument: take it if it was made in the control group, else jump past the end. */
static void put_cgroup_filter(struct nlmsghdr *header, uint64_t cgroup_id)
{
        struct {
                struct inet_diag_bc_op op;
                uint32_t cgroup_id[2];
        } code = {
                .op = { .code = INET_DIAG_BC_CGROUP_COND, .yes = sizeof(code), .no = sizeof(code) + 4 },
        };

        memcpy(code.cgroup_id, &cgroup_id, sizeof(cgroup_id));
        mnl_attr_put(header, INET_DIAG_REQ_BYTECODE, sizeof(code), &code);
}

static void put_inet(struct nlmsghdr *header, const SocketQuestion *q, uint64_t cgroup_id)
{
        struct inet_diag_req_v2 *request = mnl_nlmsg_put_extra_header(header, sizeof(*request));

        request->sdiag_family = (uint8_t) q->family;
        request->sdiag_protocol = (uint8_t) q->protocol;
        request->idiag_states = q->states;
        if (q->protocol > UINT8_MAX)
                mnl_attr_put_u32(header, INET_DIAG_REQ_PROTOCOL, (uint32_t) q->protocol);
        if (cgroup_id != 0)
                put_cgroup_filter(header, cgroup_id);
}

static void put_unix(struct nlmsghdr *header, const SocketQuestion *q)
{
        struct unix_diag_req *request = mnl_nlmsg_put_extra_header(header, sizeof(*request));

        request->sdiag_family = AF_UNIX;
        request->udiag_states = q->states;
        request->udiag_show = UDIAG_SHOW_NAME | UDIAG_SHOW_PEER;
}

static void put_packet(struct nlmsghdr *header)
{
        struct packet_diag_req *request = mnl_nlmsg_put_extra_header(header, sizeof(*request));

        request->sdiag_family = AF_PACKET;
}

static void put_netlink(struct nlmsghdr *header)
{
        struct netlink_diag_req *request = mnl_nlmsg_put_extra_header(header, sizeof(*request));

        request->sdiag_family = AF_NETLINK;
        request->sdiag_protocol = NDIAG_PROTO_ALL;
}

static void put_vsock(struct nlmsghdr *header, const SocketQuestion *q)
{
        struct vsock_diag_req *request = mnl_nlmsg_put_extra_header(header, sizeof(*request));

        request->sdiag_family = AF_VSOCK;
        request->vdiag_states = q->states;
}

static int ask(Sockets *sockets, const SocketQuestion *q)
{
        char buffer[256] __attribute__((aligned(NLMSG_ALIGNTO))) = { 0 };
        struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
        struct nlmsghdr *header = mnl_nlmsg_put_header(buffer);
        ssize_t n;

        header->nlmsg_type = SOCK_DIAG_BY_FAMILY;
        header->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
        header->nlmsg_seq = ++sockets->sequence;
        switch (q->family) {
        case AF_UNIX:
                put_unix(header, q);
                break;
        case AF_PACKET:
                put_packet(header);
                break;
        case AF_NETLINK:
                put_netlink(header);
                break;
        case AF_VSOCK:
                put_vsock(header, q);
                break;
        default:
                put_inet(header, q, sockets->cgroup_id);
        }
        n = sendto(sockets->dump_fd, header, header->nlmsg_len, 0, (struct sockaddr *) &kernel,
                        sizeof(kernel));
        return n < 0 ? -errno : 0;
}

/* --- answers --- */

typedef struct DumpReader {
        const SocketQuestion *question;
        SocketHandler handler;
        void *userdata;
        int result; /* of the handler, or of the kernel */
} DumpReader;

static bool read_inet(const struct nlmsghdr *header, const SocketQuestion *q, SocketRecord *ret)
{
        const struct inet_diag_msg *message = mnl_nlmsg_get_payload(header);

        if (mnl_nlmsg_get_payload_len(header) < sizeof(*message))
                return false;
        sockets_read_inet(message, ret);
        ret->protocol = q->protocol;
        ret->type = q->protocol == IPPROTO_RAW ? SOCK_RAW : SOCK_DGRAM;
        if (q->protocol == IPPROTO_TCP || q->protocol == IPPROTO_MPTCP || q->protocol == IPPROTO_SCTP)
                ret->type = SOCK_STREAM;
        /* A raw socket's own protocol. */
        if (q->protocol == IPPROTO_RAW)
                (void) mnl_attr_parse(header, sizeof(*message), sockets_read_protocol, &ret->protocol);
        return true;
}

/* An abstract name begins with NUL and may hold more of them; a path ends with one. */
static int read_unix_name(const struct nlattr *attr, SocketRecord *ret)
{
        const char *name = mnl_attr_get_payload(attr);
        size_t size = mnl_attr_get_payload_len(attr);

        if (size == 0 || ret->name)
                return 0;
        ret->abstract = *name == '\0';
        if (ret->abstract) {
                name++;
                size--;
        } else {
                size = strnlen(name, size);
        }
        ret->name = calloc(1, size + 1);
        if (!ret->name)
                return -ENOMEM;
        memcpy(ret->name, name, size);
        ret->name_size = size;
        return 0;
}

static int on_unix_attr(const struct nlattr *attr, void *userdata)
{
        SocketRecord *record = userdata;

        if (mnl_attr_get_type(attr) == UNIX_DIAG_NAME && read_unix_name(attr, record) < 0)
                return MNL_CB_ERROR;
        if (mnl_attr_get_type(attr) == UNIX_DIAG_PEER && mnl_attr_get_payload_len(attr) >= 4)
                record->peer_inode = mnl_attr_get_u32(attr);
        return MNL_CB_OK;
}

static int read_unix(const struct nlmsghdr *header, SocketRecord *ret)
{
        const struct unix_diag_msg *message = mnl_nlmsg_get_payload(header);

        if (mnl_nlmsg_get_payload_len(header) < sizeof(*message))
                return 0;
        *ret = (SocketRecord){
                .family = AF_UNIX,
                .type = message->udiag_type,
                .state = message->udiag_state,
                .inode = message->udiag_ino,
        };
        if (mnl_attr_parse(header, sizeof(*message), on_unix_attr, ret) != MNL_CB_ERROR)
                return 1;
        socket_record_clear(ret);
        return -ENOMEM;
}

static bool read_packet(const struct nlmsghdr *header, SocketRecord *ret)
{
        const struct packet_diag_msg *message = mnl_nlmsg_get_payload(header);

        if (mnl_nlmsg_get_payload_len(header) < sizeof(*message))
                return false;
        *ret = (SocketRecord){
                .family = AF_PACKET,
                .type = message->pdiag_type,
                .protocol = message->pdiag_num,
                .inode = message->pdiag_ino,
        };
        return true;
}

static bool read_netlink(const struct nlmsghdr *header, SocketRecord *ret)
{
        const struct netlink_diag_msg *message = mnl_nlmsg_get_payload(header);

        if (mnl_nlmsg_get_payload_len(header) < sizeof(*message))
                return false;
        *ret = (SocketRecord){
                .family = AF_NETLINK,
                .type = message->ndiag_type,
                .protocol = message->ndiag_protocol,
                .inode = message->ndiag_ino,
        };
        return message->ndiag_portid != 0; /* else it is the kernel's end */
}

/* Its addresses have 32 bits of port; the name says them as "CID:PORT". */
static int read_vsock(const struct nlmsghdr *header, SocketRecord *ret)
{
        const struct vsock_diag_msg *message = mnl_nlmsg_get_payload(header);
        char name[32];

        if (mnl_nlmsg_get_payload_len(header) < sizeof(*message))
                return 0;
        *ret = (SocketRecord){
                .family = AF_VSOCK,
                .type = message->vdiag_type,
                .state = message->vdiag_state,
                .inode = message->vdiag_ino,
        };
        (void) snprintf(name, sizeof(name), "%u:%u", message->vdiag_src_cid, message->vdiag_src_port);
        ret->name = strdup(name);
        if (!ret->name)
                return -ENOMEM;
        ret->name_size = strlen(name);
        return 1;
}

/* 1: a socket, 0: none, or -ENOMEM. */
static int read_answer(const struct nlmsghdr *header, const SocketQuestion *q, SocketRecord *ret)
{
        switch (q->family) {
        case AF_UNIX:
                return read_unix(header, ret);
        case AF_PACKET:
                return read_packet(header, ret);
        case AF_NETLINK:
                return read_netlink(header, ret);
        case AF_VSOCK:
                return read_vsock(header, ret);
        default:
                return read_inet(header, q, ret);
        }
}

static int on_answer(const struct nlmsghdr *header, void *userdata)
{
        DumpReader *reader = userdata;
        SocketRecord record = { 0 };
        int r;

        if (header->nlmsg_type != SOCK_DIAG_BY_FAMILY || reader->result < 0)
                return MNL_CB_OK;
        r = read_answer(header, reader->question, &record);
        if (r == 1)
                r = reader->handler(reader->userdata, &record);
        socket_record_clear(&record);
        if (r < 0)
                reader->result = r;
        return MNL_CB_OK;
}

/* A dump that fails ends like one that succeeds, with its error as the payload. */
static int on_done(const struct nlmsghdr *header, void *userdata)
{
        DumpReader *reader = userdata;
        const int *error = mnl_nlmsg_get_payload(header);

        if (mnl_nlmsg_get_payload_len(header) >= sizeof(*error) && *error < 0 && reader->result == 0)
                reader->result = *error;
        return MNL_CB_STOP;
}

static int on_error(const struct nlmsghdr *header, void *userdata)
{
        DumpReader *reader = userdata;
        const struct nlmsgerr *error = mnl_nlmsg_get_payload(header);

        if (reader->result == 0)
                reader->result = mnl_nlmsg_get_payload_len(header) >= sizeof(*error) && error->error < 0
                                                 ? error->error
                                                 : -EBADMSG;
        return MNL_CB_STOP;
}

static int receive(Sockets *sockets, DumpReader *reader)
{
        mnl_cb_t control[] = { [NLMSG_ERROR] = on_error, [NLMSG_DONE] = on_done };
        _cleanup_free_ char *buffer = malloc(ANSWER_MAX);
        int r = MNL_CB_OK;

        if (!buffer)
                return -ENOMEM;
        while (r > MNL_CB_STOP) {
                struct sockaddr_nl from = { 0 };
                socklen_t length = sizeof(from);
                ssize_t n = recvfrom(
                                sockets->dump_fd, buffer, ANSWER_MAX, 0, (struct sockaddr *) &from, &length);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return errno == EAGAIN ? -ETIMEDOUT : -errno;
                if (from.nl_pid != 0)
                        continue;
                r = mnl_cb_run2(buffer, (size_t) n, sockets->sequence, 0, on_answer, reader, control,
                                ELEMENTSOF(control));
                /* What is left of an earlier answer. */
                if (r < 0 && errno == EPROTO)
                        r = MNL_CB_OK;
        }
        return r < 0 ? -errno : 0;
}

/* Sockets of a kind that is not registered cannot be. */
static bool is_registered(const char *name)
{
        _cleanup_free_ char *line = NULL;
        FILE *f = fopen("/proc/net/protocols", "re");
        size_t size = 0, length = strlen(name);
        bool found = !f; /* not known: it may be */

        while (f && !found && getline(&line, &size, f) > 0)
                found = strncmp(line, name, length) == 0 && line[length] == ' ';
        if (f)
                (void) fclose(f);
        return found;
}

int sockets_dump(Sockets *sockets, const SocketQuestion *question, SocketHandler handler, void *userdata)
{
        DumpReader reader = { .question = question, .handler = handler, .userdata = userdata };
        int r = ask(sockets, question);

        if (r == 0)
                r = receive(sockets, &reader);
        if (r == 0)
                r = reader.result;
        return r == -ENOENT && !is_registered(question->protos) ? 0 : r;
}
