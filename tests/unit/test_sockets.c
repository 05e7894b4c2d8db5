/* SPDX-License-Identifier: Apache-2.0 */
#include "core/sockets.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "test.h"

static SocketRecord inet(uint16_t port, pid_t pid, bool left)
{
        return (SocketRecord){
                .family = AF_INET,
                .type = SOCK_STREAM,
                .protocol = IPPROTO_TCP,
                .local = { .family = AF_INET, .address = { 127, 0, 0, 1 }, .port = port },
                .state = TCP_LISTEN,
                .pid = pid,
                .left = left,
        };
}

static void listen_at(SocketList *list, uint16_t port, pid_t pid, bool left)
{
        SocketRecord record = inet(port, pid, left);

        CHECK(socket_listening_add(list, &record) == 0);
}

static void clear(SocketList *list)
{
        SocketEvidence evidence = { .listening = *list };

        socket_evidence_clear(&evidence);
        *list = (SocketList){ 0 };
}

TEST(one_for_each_place)
{
        SocketList list = { 0 };
        SocketRecord multipath = inet(80, 6, false);

        listen_at(&list, 80, 4, false);
        listen_at(&list, 80, 5, true);
        listen_at(&list, 80, 7, false);
        multipath.protocol = IPPROTO_MPTCP;
        CHECK(socket_listening_add(&list, &multipath) == 0);
        CHECK_EQ(list.n, 1);
        CHECK_EQ(list.total, 1);
        CHECK(list.items[0].left && list.items[0].pid == 5);
        listen_at(&list, 81, 5, true);
        CHECK_EQ(list.n, 2);
        clear(&list);
}

/* A thousand listeners that came and went do not hide the one that stayed. */
TEST(flood)
{
        SocketList list = { 0 };

        for (unsigned port = 1; port <= 3 * SOCKETS_MAX; port++)
                listen_at(&list, (uint16_t) port, 1, false);
        CHECK_EQ(list.n, SOCKETS_MAX);
        CHECK_EQ(list.total, 3 * SOCKETS_MAX);
        listen_at(&list, 9999, 2, true);
        CHECK_EQ(list.n, SOCKETS_MAX);
        CHECK(list.items[SOCKETS_MAX - 1].local.port == 9999);
        for (unsigned port = 10000; port < 10000 + 2 * SOCKETS_MAX; port++)
                listen_at(&list, (uint16_t) port, 2, true);
        CHECK_EQ(list.n, SOCKETS_MAX);
        for (size_t i = 0; i < list.n; i++)
                CHECK(list.items[i].left);
        CHECK_EQ(list.total, 5 * SOCKETS_MAX + 1);
        clear(&list);
}

TEST(what_listens)
{
        SocketRecord tcp = inet(80, 1, true), udp = inet(80, 1, true);

        CHECK(socket_is_listening(&tcp));
        tcp.state = TCP_ESTABLISHED;
        CHECK(!socket_is_listening(&tcp));
        udp.protocol = IPPROTO_UDP;
        udp.state = TCP_CLOSE;
        CHECK(socket_is_listening(&udp));
        udp.remote = (Endpoint){ .family = AF_INET, .port = 53 };
        CHECK(!socket_is_listening(&udp));
        udp.remote = (Endpoint){ 0 };
        udp.local.port = 0;
        CHECK(!socket_is_listening(&udp));
}

TEST(texts)
{
        SocketRecord tcp = inet(80, 1, true), nameless = { .family = AF_UNIX }, odd = { .family = 99 };
        char text[SOCKET_TEXT_MAX];

        CHECK_STR(socket_format(&tcp, text), "tcp 127.0.0.1:80");
        CHECK_STR(socket_format(&nameless, text), "unix without a name");
        CHECK_STR(socket_format(&odd, text), "? without a name");
        CHECK_STR(socket_state_name(&tcp), "listen");
        CHECK(!socket_family_name(99));
}

TEST_MAIN
