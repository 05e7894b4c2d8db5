/* SPDX-License-Identifier: Apache-2.0 */
#include "core/packet.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "files.h"
#include "test.h"

typedef struct Shape {
        char *data;
        size_t size;
        int r;
        Packet packet;
} Shape;

static Shape read_shape(const char *name)
{
        char path[128];
        Shape s = { .r = -ENOENT };

        (void) snprintf(path, sizeof(path), "corpus/packet/shapes/%s", name);
        s.data = read_test_file(test_path(path), &s.size);
        if (s.data)
                s.r = packet_parse(s.data, s.size, &s.packet);
        return s;
}

static void shape_done(Shape *s)
{
        free(s->data);
}

#define _shape_ __attribute__((cleanup(shape_done)))

/* The Internet checksum over what has a right one is 0. */
static unsigned sum(const uint8_t *p, size_t size, unsigned total)
{
        for (size_t i = 0; i < size; i++)
                total += i % 2 ? p[i] : (unsigned) p[i] << 8;
        while (total >> 16)
                total = (total & 0xffff) + (total >> 16);
        return total;
}

static void check_checksums(const Packet *p)
{
        bool v4 = p->source.family == AF_INET;
        unsigned pseudo = (unsigned) p->transport_size + p->protocol;

        if (v4)
                CHECK_EQ(sum(p->data, 20, 0), 0xffff);
        if (p->protocol != IPPROTO_ICMP) {
                pseudo = sum(p->source.address, 16, pseudo);
                pseudo = sum(p->remote.address, 16, pseudo);
                CHECK_EQ(sum(p->transport, p->transport_size, pseudo), 0xffff);
        } else {
                CHECK_EQ(sum(p->transport, p->transport_size, 0), 0xffff);
        }
}

static bool same_host(const Endpoint *a, const Endpoint *b)
{
        return a->family == b->family && a->port == b->port && memcmp(a->address, b->address, 16) == 0;
}

TEST(shapes_that_are_packets)
{
        static const struct {
                const char *name;
                unsigned char protocol;
                const char *remote;
        } table[] = {
                { "tcp4-syn", IPPROTO_TCP, "1.1.1.1:443" },
                { "tcp6-syn", IPPROTO_TCP, "[2606:4700::1111]:443" },
                { "udp4", IPPROTO_UDP, "8.8.8.8:123" },
                { "udp4-empty", IPPROTO_UDP, "1.1.1.1:9" },
                { "icmp4-echo", IPPROTO_ICMP, "1.1.1.1" },
                { "icmp6-echo", IPPROTO_ICMPV6, "2606:4700::1111" },
                { "icmp6-mld2", IPPROTO_ICMPV6, "ff02::16" },
                { "igmp", IPPROTO_IGMP, "224.0.0.22" },
                { "sctp", IPPROTO_SCTP, "1.1.1.1:38412" },
                { "udplite", IPPROTO_UDPLITE, "1.1.1.1:7" },
                { "ip4-unknown", 253, "1.1.1.1" },
                { "ip4-options", IPPROTO_TCP, "1.1.1.1:443" },
                { "ip4-fragment-first", IPPROTO_UDP, "1.1.1.1:9" },
                { "ip4-fragment-later", IPPROTO_UDP, "1.1.1.1" },
                { "ip6-fragment-first", IPPROTO_UDP, "[2606:4700::1111]:9" },
                { "ip6-fragment-later", IPPROTO_UDP, "2606:4700::1111" },
                { "ip6-extensions", IPPROTO_TCP, "[2606:4700::1111]:443" },
                { "ip6-none", IPPROTO_NONE, "2606:4700::1111" },
        };
        char text[ENDPOINT_TEXT_MAX];

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                _shape_ Shape s = read_shape(table[i].name);

                test_check(s.r == 0, __FILE__, __LINE__, "%s: %d", table[i].name, s.r);
                CHECK_EQ(s.packet.protocol, table[i].protocol);
                CHECK_STR(endpoint_format(&s.packet.remote, text), table[i].remote);
        }
}

TEST(shapes_that_are_none)
{
        static const char *const table[] = { "ip4-header-short", "ip4-header-length-small", "ip4-total-large",
                "ip4-total-small", "tcp4-short", "udp4-short", "icmp4-short", "ip6-extensions-endless",
                "ip6-extension-length", "ip6-extension-short", "ip6-fragment-short", "ip6-payload-large",
                "ip6-header-short", "version-0", "empty" };

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                _shape_ Shape s = read_shape(table[i]);

                test_check(s.r == -EBADMSG, __FILE__, __LINE__, "%s: %d", table[i], s.r);
        }
}

TEST(connections_are_reset)
{
        static const char *const table[] = { "tcp4-syn", "tcp6-syn", "tcp4-syn-data", "ip6-extensions" };

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                _shape_ Shape s = read_shape(table[i]);
                uint8_t answer[PACKET_ANSWER_MAX];
                size_t size = packet_refuse(&s.packet, answer);
                unsigned acknowledged = streq(table[i], "tcp4-syn-data") ? 1006 : 1001;
                Packet p;

                CHECK_EQ(packet_parse(answer, size, &p), 0);
                CHECK_EQ(p.size, size);
                CHECK_EQ(p.tcp_flags, TH_RST | TH_ACK);
                CHECK_EQ(p.transport[8] << 24 | p.transport[9] << 16 | p.transport[10] << 8 | p.transport[11],
                                acknowledged);
                CHECK(same_host(&p.source, &s.packet.remote) && same_host(&p.remote, &s.packet.source));
                check_checksums(&p);
        }
}

TEST(reset_of_an_acknowledgement)
{
        _shape_ Shape s = read_shape("tcp4-ack");
        uint8_t answer[PACKET_ANSWER_MAX];
        Packet p;

        CHECK_EQ(packet_parse(answer, packet_refuse(&s.packet, answer), &p), 0);
        CHECK_EQ(p.tcp_flags, TH_RST);
        CHECK_EQ(p.tcp_sequence, 77);
        check_checksums(&p);
}

TEST(the_rest_is_unreachable)
{
        static const struct {
                const char *name;
                uint8_t type, code;
        } table[] = {
                { "udp4", 3, 3 },
                { "udp4-large", 3, 3 },
                { "udp6", 1, 4 },
                { "icmp4-echo", 3, 13 },
                { "icmp6-echo", 1, 1 },
                { "sctp", 3, 2 },
                { "ip6-none", 1, 1 },
                { "ip4-fragment-first", 3, 3 },
        };

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                _shape_ Shape s = read_shape(table[i].name);
                uint8_t answer[PACKET_ANSWER_MAX];
                size_t size = packet_refuse(&s.packet, answer);
                Packet p;

                CHECK_EQ(packet_parse(answer, size, &p), 0);
                CHECK_EQ(p.size, size);
                CHECK_EQ(p.icmp_type, table[i].type);
                CHECK_EQ(p.transport[1], table[i].code);
                CHECK_EQ(memcmp(p.transport + 8, s.data, MIN(p.transport_size - 8, s.size)), 0);
                check_checksums(&p);
        }
}

TEST(never_answered)
{
        static const char *const table[] = { "tcp4-rst", "udp4-broadcast", "udp4-multicast", "udp6-multicast",
                "icmp4-unreachable", "icmp6-router-solicitation", "icmp6-mld2", "igmp", "ip4-fragment-later",
                "ip6-fragment-later" };

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                _shape_ Shape s = read_shape(table[i]);
                uint8_t answer[PACKET_ANSWER_MAX];

                CHECK_EQ(s.r, 0);
                test_check(packet_refuse(&s.packet, answer) == 0, __FILE__, __LINE__, "%s", table[i]);
        }
}

TEST(of_the_kernel)
{
        static const struct {
                const char *name;
                bool kernels;
        } table[] = {
                { "tcp4-rst", true },
                { "icmp4-unreachable", true },
                { "icmp6-router-solicitation", true },
                { "icmp6-mld2", false }, /* because a program joined a group */
                { "icmp4-echo", false },
                { "icmp6-echo", false },
                { "tcp4-syn", false },
                { "udp4", false },
        };

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                _shape_ Shape s = read_shape(table[i].name);

                test_check(packet_is_kernels(&s.packet) == table[i].kernels, __FILE__, __LINE__, "%s",
                                table[i].name);
        }
}

TEST(reply)
{
        static const char *const table[] = { "udp4", "udp6" };
        uint8_t answer[PACKET_ANSWER_MAX], large[PACKET_ANSWER_MAX] = { 0 };

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                _shape_ Shape s = read_shape(table[i]);
                Packet p;

                CHECK_EQ(packet_parse(answer, packet_reply(&s.packet, "12345", 5, answer), &p), 0);
                CHECK_EQ(p.payload_size, 5);
                CHECK_EQ(memcmp(p.payload, "12345", 5), 0);
                CHECK(same_host(&p.source, &s.packet.remote) && same_host(&p.remote, &s.packet.source));
                check_checksums(&p);
                CHECK_EQ(packet_reply(&s.packet, large, sizeof(large), answer), 0);
        }
}

TEST_MAIN
