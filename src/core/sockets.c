/* SPDX-License-Identifier: Apache-2.0 */
#include "core/sockets.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "base/text.h"

typedef struct NumberName {
        int number;
        const char *name;
} NumberName;

static const NumberName families[] = {
        { AF_INET, "inet" },
        { AF_INET6, "inet6" },
        { AF_UNIX, "unix" },
        { AF_PACKET, "packet" },
        { AF_NETLINK, "netlink" },
        { AF_VSOCK, "vsock" },
};

static const NumberName types[] = {
        { SOCK_STREAM, "stream" },
        { SOCK_DGRAM, "dgram" },
        { SOCK_RAW, "raw" },
        { SOCK_SEQPACKET, "seqpacket" },
        { SOCK_PACKET, "packet" },
};

static const NumberName protocols[] = {
        { IPPROTO_TCP, "tcp" },
        { IPPROTO_UDP, "udp" },
        { IPPROTO_UDPLITE, "udplite" },
        { IPPROTO_ICMP, "icmp" },
        { IPPROTO_ICMPV6, "icmpv6" },
        { IPPROTO_SCTP, "sctp" },
        { IPPROTO_RAW, "raw" },
        { IPPROTO_MPTCP, "mptcp" },
};

static const NumberName states[] = {
        { TCP_ESTABLISHED, "established" },
        { TCP_SYN_SENT, "syn_sent" },
        { TCP_SYN_RECV, "syn_recv" },
        { TCP_FIN_WAIT1, "fin_wait1" },
        { TCP_FIN_WAIT2, "fin_wait2" },
        { TCP_TIME_WAIT, "time_wait" },
        { TCP_CLOSE, "closed" },
        { TCP_CLOSE_WAIT, "close_wait" },
        { TCP_LAST_ACK, "last_ack" },
        { TCP_LISTEN, "listen" },
        { TCP_CLOSING, "closing" },
};

static const char *find_name(const NumberName *table, size_t n, int number)
{
        for (size_t i = 0; i < n; i++)
                if (table[i].number == number)
                        return table[i].name;
        return NULL;
}

const char *socket_family_name(int family)
{
        return find_name(families, ELEMENTSOF(families), family);
}

const char *socket_type_name(int type)
{
        return find_name(types, ELEMENTSOF(types), type);
}

const char *socket_protocol_name(int protocol)
{
        return find_name(protocols, ELEMENTSOF(protocols), protocol);
}

const char *socket_state_name(const SocketRecord *record)
{
        if (record->state == TCP_CLOSE && record->protocol != IPPROTO_TCP)
                return "unconnected";
        return find_name(states, ELEMENTSOF(states), record->state);
}

static bool is_inet(const SocketRecord *record)
{
        return record->family == AF_INET || record->family == AF_INET6;
}

char *socket_format(const SocketRecord *record, char buffer[static SOCKET_TEXT_MAX])
{
        const char *family = socket_family_name(record->family);
        const char *protocol = socket_protocol_name(record->protocol);
        char text[SOCKET_TEXT_MAX - 32] = "without a name";

        if (is_inet(record))
                endpoint_format(&record->local, text);
        else if (record->name)
                text_excerpt(record->name, record->name_size, text, sizeof(text));
        (void) snprintf(buffer, SOCKET_TEXT_MAX, "%s %s%s",
                        is_inet(record) && protocol ? protocol
                        : family                    ? family
                                                    : "?",
                        record->abstract ? "@" : "", text);
        return buffer;
}

bool socket_is_listening(const SocketRecord *record)
{
        if (record->state == TCP_LISTEN)
                return true;
        return is_inet(record) && (record->protocol == IPPROTO_UDP || record->protocol == IPPROTO_UDPLITE) &&
               record->local.port != 0 && record->remote.family == 0;
}

static int append(SocketList *list, SocketRecord *record)
{
        SocketRecord *larger = reallocarray(list->items, list->n + 1, sizeof(*larger));

        if (!larger) {
                socket_record_clear(record);
                return -ENOMEM;
        }
        list->items = larger;
        list->items[list->n++] = *record;
        *record = (SocketRecord){ 0 };
        return 0;
}

int socket_list_add(SocketList *list, SocketRecord *record)
{
        list->total++;
        if (list->n < SOCKETS_MAX)
                return append(list, record);
        socket_record_clear(record);
        return 0;
}

/* MPTCP listens by a TCP socket of its own. */
static int transport(const SocketRecord *record)
{
        return record->protocol == IPPROTO_MPTCP ? IPPROTO_TCP : record->protocol;
}

static bool same_place(const SocketRecord *a, const SocketRecord *b)
{
        if (a->local.port != b->local.port || a->family != b->family || transport(a) != transport(b))
                return false;
        if (is_inet(a))
                return memcmp(a->local.address, b->local.address, sizeof(a->local.address)) == 0;
        if (!a->name || !b->name)
                return a->inode == b->inode;
        return a->abstract == b->abstract && a->name_size == b->name_size &&
               memcmp(a->name, b->name, a->name_size) == 0;
}

/* Keeps what is known of both; who has it in the end, rather than who made it. */
static void merge(SocketRecord *into, SocketRecord *from)
{
        if (from->pid > 0 && (from->left || into->pid == 0)) {
                into->pid = from->pid;
                free(into->program);
                into->program = TAKE_PTR(from->program);
        }
        if (into->inode == 0)
                into->inode = from->inode;
        into->left = into->left || from->left;
        socket_record_clear(from);
}

int socket_listening_add(SocketList *list, SocketRecord *record)
{
        for (size_t i = 0; i < list->n; i++) {
                if (!same_place(&list->items[i], record))
                        continue;
                merge(&list->items[i], record);
                return 0;
        }
        if (list->n < SOCKETS_MAX || !record->left)
                return socket_list_add(list, record);
        list->total++;
        for (size_t i = list->n; i > 0; i--) {
                if (list->items[i - 1].left)
                        continue;
                socket_record_clear(&list->items[i - 1]);
                list->items[i - 1] = *record;
                *record = (SocketRecord){ 0 };
                return 0;
        }
        socket_record_clear(record);
        return 0;
}
