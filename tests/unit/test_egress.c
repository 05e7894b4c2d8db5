/* SPDX-License-Identifier: Apache-2.0 */
#include "core/egress.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "base/text.h"
#include "core/dns.h"
#include "files.h"
#include "test.h"

typedef struct Shape {
        char *data;
        size_t size;
        Packet packet;
} Shape;

static Shape read_shape(const char *name)
{
        char path[128];
        Shape s = { 0 };

        (void) snprintf(path, sizeof(path), "corpus/packet/shapes/%s", name);
        s.data = read_test_file(test_path(path), &s.size);
        CHECK(s.data && packet_parse(s.data, s.size, &s.packet) == 0);
        return s;
}

static void shape_done(Shape *s)
{
        free(s->data);
}

#define _shape_ __attribute__((cleanup(shape_done)))

static int parse_question(const char *name, DnsQuestion *ret)
{
        _shape_ Shape s = read_shape(name);

        return dns_parse(s.packet.payload, s.packet.payload_size, ret);
}

TEST(questions)
{
        static const struct {
                const char *shape, *name;
                unsigned type;
        } table[] = {
                { "dns-a", "example.org", DNS_A },
                { "dns-aaaa", "example.org", DNS_AAAA },
                { "dns-edns", "example.org", DNS_A },
                { "dns-ptr", "1.1.1.1.in-addr.arpa", DNS_PTR },
                { "dns-root", ".", 2 },
                { "dns-strange", "a\\046b\\010\\027\\255.org", DNS_A },
        };

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                DnsQuestion question;

                CHECK_EQ(parse_question(table[i].shape, &question), 0);
                CHECK_STR(question.name, table[i].name);
                CHECK_EQ(question.type, table[i].type);
        }
}

TEST(longest_question)
{
        DnsQuestion question;

        CHECK_EQ(parse_question("dns-longest", &question), 0);
        CHECK_EQ(strlen(question.name), 250 * 4 + 3);
}

TEST(no_questions)
{
        static const char *const table[] = { "dns-too-long", "dns-label-64", "dns-pointer", "dns-no-end",
                "dns-response", "dns-two-questions", "dns-chaos", "udp4", "udp4-empty" };
        DnsQuestion question;

        for (size_t i = 0; i < ELEMENTSOF(table); i++)
                test_check(parse_question(table[i], &question) == -EBADMSG, __FILE__, __LINE__, "%s",
                                table[i]);
}

/* What a resolver would read. */
typedef struct DnsReply {
        unsigned id, result, n_answers;
        uint32_t address;
} DnsReply;

static DnsReply read_reply(const EgressReply *reply)
{
        DnsReply r = { 0 };
        Packet p;

        CHECK_EQ(packet_parse(reply->data, reply->size, &p), 0);
        CHECK_EQ(p.source.port, 53);
        CHECK_EQ(p.payload[2] & 0x80, 0x80);
        r.id = (unsigned) p.payload[0] << 8 | p.payload[1];
        r.result = p.payload[3] & 0x0f;
        r.n_answers = p.payload[7];
        if (r.n_answers > 0) {
                memcpy(&r.address, p.payload + p.payload_size - 4, 4);
                r.address = ntohl(r.address);
        }
        return r;
}

TEST(names_get_addresses)
{
        static const struct {
                const char *shape;
                unsigned result, n_answers;
                uint32_t address;
        } table[] = {
                { "dns-a", 0, 1, 0xc6120100 },
                { "dns-edns", 0, 1, 0xc6120100 },
                { "dns-strange", 0, 1, 0xc6120101 },
                { "dns-v6", 0, 1, 0xc6120100 },
                { "dns-aaaa", 0, 0, 0 },
                { "dns-root", 0, 0, 0 },
                { "dns-ptr", 3, 0, 0 },
        };
        _cleanup_(egress_freep) Egress *egress = egress_new();

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                _shape_ Shape s = read_shape(table[i].shape);
                EgressReply reply;
                DnsReply r;

                CHECK_EQ(egress_packet(egress, &s.packet, 7, 0, &reply), 0);
                r = read_reply(&reply);
                CHECK_EQ(r.id, 0x1234);
                CHECK_EQ(r.result, table[i].result);
                CHECK_EQ(r.n_answers, table[i].n_answers);
                CHECK_EQ(r.address, table[i].address);
        }
}

/* The attempt that follows the question tells which name it was for. */
TEST(names_of_addresses)
{
        _cleanup_(egress_freep) Egress *egress = egress_new();
        _shape_ Shape question = read_shape("dns-a"), syn = read_shape("tcp4-syn");
        EgressEvidence evidence = { 0 };
        EgressReply reply;

        (void) inet_pton(AF_INET, "198.18.1.0", syn.packet.remote.address);
        CHECK_EQ(egress_packet(egress, &syn.packet, 1, 0, &reply), 0);
        CHECK(reply.fresh && !reply.fresh->name); /* nobody asked yet */
        CHECK_EQ(egress_packet(egress, &question.packet, 1, 0, &reply), 0);
        CHECK_EQ(egress_packet(egress, &syn.packet, 1, 0, &reply), 0);
        REQUIRE(reply.fresh);
        CHECK_STR(reply.fresh->name, "example.org");
        CHECK_EQ(reply.fresh->remote.port, 443);
        egress_collect(egress, &evidence);
        CHECK_EQ(evidence.n, 3);
        CHECK_EQ(evidence.items[1].protocol, EGRESS_DNS);
        egress_evidence_clear(&evidence);
}

TEST(the_same_again_only_counts)
{
        _cleanup_(egress_freep) Egress *egress = egress_new();
        _shape_ Shape udp = read_shape("udp4"), echo = read_shape("icmp4-echo"), other = read_shape("sctp");
        const struct {
                const Packet *packet;
                pid_t pid;
                bool fresh;
        } table[] = {
                { &udp.packet, 1, true },
                { &udp.packet, 1, false },
                { &udp.packet, 2, true },
                { &udp.packet, 0, true },
                { &echo.packet, 1, true },
                { &other.packet, 1, true },
                { &udp.packet, 1, false },
        };
        EgressEvidence evidence = { 0 };

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                EgressReply reply;

                CHECK_EQ(egress_packet(egress, table[i].packet, table[i].pid, 10 * i, &reply), 0);
                CHECK_EQ(reply.fresh != NULL, table[i].fresh);
        }
        egress_collect(egress, &evidence);
        CHECK_EQ(evidence.total, ELEMENTSOF(table));
        CHECK_EQ(evidence.n, 5);
        CHECK_EQ(evidence.items[0].count, 3);
        CHECK_EQ(evidence.items[0].first_usec, 0);
        CHECK_EQ(evidence.items[1].pid, 2);
        CHECK_EQ(evidence.items[4].ip_protocol, IPPROTO_SCTP);
        egress_evidence_clear(&evidence);
}

TEST(connections_that_are_tried_again)
{
        _cleanup_(egress_freep) Egress *egress = egress_new();
        _shape_ Shape syn = read_shape("tcp4-syn"), later = read_shape("ip4-fragment-later");

        CHECK(!egress_ignores(egress, &syn.packet));
        CHECK(egress_ignores(egress, &syn.packet));
        syn.packet.tcp_sequence++;
        CHECK(!egress_ignores(egress, &syn.packet));
        syn.packet.source.port++;
        CHECK(!egress_ignores(egress, &syn.packet));
        syn.packet.remote.port++;
        CHECK(!egress_ignores(egress, &syn.packet));
        CHECK(egress_ignores(egress, &later.packet));
}

TEST(records_are_bounded)
{
        _cleanup_(egress_freep) Egress *egress = egress_new();
        _shape_ Shape udp = read_shape("udp4");
        EgressEvidence evidence = { 0 };
        EgressReply reply;

        for (uint32_t i = 0; i < 3 * EGRESS_RECORDS_MAX; i++) {
                uint32_t address = htonl(0x0a000000 + i);

                memcpy(udp.packet.remote.address, &address, 4);
                CHECK_EQ(egress_packet(egress, &udp.packet, 1, 0, &reply), 0);
                CHECK_EQ(reply.fresh != NULL, i < EGRESS_RECORDS_MAX);
                CHECK(reply.size > 0);
        }
        egress_collect(egress, &evidence);
        CHECK_EQ(evidence.n, EGRESS_RECORDS_MAX);
        CHECK_EQ(evidence.total, 3 * EGRESS_RECORDS_MAX);
        egress_evidence_clear(&evidence);
}

TEST(names_are_bounded)
{
        _cleanup_(egress_freep) Egress *egress = egress_new();
        _shape_ Shape s = read_shape("dns-a");
        uint8_t *label = (uint8_t *) s.packet.payload + 13; /* of "Example" */
        EgressReply reply;

        for (uint32_t i = 0; i < EGRESS_NAMES_MAX + 10; i++) {
                DnsReply r;

                label[0] = (uint8_t) ('a' + i % 16);
                label[1] = (uint8_t) ('a' + i / 16 % 16);
                label[2] = (uint8_t) ('a' + i / 256);
                CHECK_EQ(egress_packet(egress, &s.packet, 1, 0, &reply), 0);
                r = read_reply(&reply);
                CHECK_EQ(r.result, i < EGRESS_NAMES_MAX ? 0 : 3);
                CHECK_EQ(r.address, i < EGRESS_NAMES_MAX ? 0xc6120100 + i : 0);
        }
}

static void send_packet(SenderQueue *queue, pid_t pid, int size, uint64_t usec)
{
        TraceEvent event = { .kind = TRACE_SEND, .pid = pid, .value = size, .usec = usec };

        senders_add(queue, &event);
}

static pid_t take(SenderQueue *queue, int size)
{
        Sender sender = { 0 };

        return senders_take(queue, size, &sender) ? sender.pid : 0;
}

TEST(senders_in_order)
{
        static SenderQueue queue;

        send_packet(&queue, 1, 60, 1000);
        send_packet(&queue, 2, 80, 2000);
        send_packet(&queue, 3, 60, 3000);
        CHECK_EQ(take(&queue, 60), 1);
        CHECK_EQ(take(&queue, 60), 3); /* what process 2 sent was pushed out */
        CHECK_EQ(take(&queue, 80), 0);
        send_packet(&queue, 4, 60, 4000);
        CHECK_EQ(take(&queue, 61), 0);
        CHECK_EQ(take(&queue, 60), 4);
        CHECK_EQ(take(&queue, 60), 0);
}

/* Which of two is which is not known when they were sent at the same time; one process is one process. */
TEST(senders_at_the_same_time)
{
        static SenderQueue queue;

        send_packet(&queue, 1, 60, 1000);
        send_packet(&queue, 2, 60, 1010);
        send_packet(&queue, 3, 60, 2000);
        send_packet(&queue, 3, 60, 2010);
        CHECK_EQ(take(&queue, 60), 0);
        CHECK_EQ(take(&queue, 60), 0);
        CHECK_EQ(take(&queue, 60), 3);
        CHECK_EQ(take(&queue, 60), 3);
}

TEST(senders_whose_packets_were_dropped)
{
        static SenderQueue queue;

        send_packet(&queue, 1, 60, 1000000);
        send_packet(&queue, 2, 60, 2000000);
        senders_settle(&queue, 1500000);
        CHECK_EQ(take(&queue, 60), 2);
        send_packet(&queue, 3, 60, 3000000);
        senders_settle(&queue, 3000001); /* it may be on its way */
        CHECK_EQ(take(&queue, 60), 3);
}

/* Nobody is named until the device was empty and all senders are accounted for. */
TEST(senders_in_doubt)
{
        static SenderQueue queue;

        for (unsigned i = 0; i <= SENDERS_MAX; i++)
                send_packet(&queue, (pid_t) (i + 1), 60, 1000000 + i * 1000);
        CHECK_EQ(queue.n, SENDERS_MAX);
        CHECK_EQ(take(&queue, 60), 0);
        senders_settle(&queue, 2000000);
        CHECK_EQ(take(&queue, 60), 0);
        senders_settle(&queue, 9000000);
        send_packet(&queue, 7, 60, 9000001);
        CHECK_EQ(take(&queue, 60), 7);
        senders_doubt(&queue);
        send_packet(&queue, 8, 60, 9000002);
        CHECK_EQ(take(&queue, 60), 0);
        senders_settle(&queue, 9000003);
        send_packet(&queue, 9, 60, 9000004);
        CHECK_EQ(take(&queue, 60), 0); /* the last one is too near */
        send_packet(&queue, 9, 60, 9001000);
        CHECK_EQ(take(&queue, 60), 9);
}

TEST(refused)
{
        _cleanup_(egress_freep) Egress *egress = egress_new();
        EgressEvidence evidence = { 0 };

        for (unsigned i = 0; i < 2 * EGRESS_REFUSED_MAX; i++)
                egress_refused(egress, REFUSED_RAW, (pid_t) (i / 2 + 1), i);
        for (unsigned i = 0; i < 2 * EGRESS_REFUSED_MAX; i++)
                egress_refused(egress, REFUSED_FAMILY, (pid_t) (i + 1), i);
        egress_collect(egress, &evidence);
        CHECK_EQ(evidence.n_refused, EGRESS_REFUSED_MAX);
        CHECK_EQ(evidence.refused[1].pid, 2);
        CHECK_EQ(evidence.refused[1].count, 2);
        CHECK_EQ(evidence.refused[1].first_usec, 2);
        CHECK_EQ(evidence.refused_total[REFUSED_RAW], 2 * EGRESS_REFUSED_MAX);
        CHECK_EQ(evidence.refused_total[REFUSED_FAMILY], 2 * EGRESS_REFUSED_MAX);
        CHECK_EQ(evidence.refused_total[REFUSED_IO_URING], 0);
        egress_evidence_clear(&evidence);
}

TEST(programs_of_that_time)
{
        ProgramRun shell[] = { { .path = (char *) "/bin/sh", .usec = 0 },
                { .path = (char *) "/bin/nc", .usec = 500 } },
                   later = { .path = (char *) "/bin/true", .usec = 950 };
        ProcessNode nodes[] = {
                { .pid = 10, .ppid = 1, .runs = shell, .n_runs = 2, .start_usec = 0, .end_usec = 900 },
                { .pid = 11, .ppid = 10, .start_usec = 100, .end_usec = 200 }, /* a copy of the shell */
                { .pid = 11,
                                .ppid = 10,
                                .runs = &later,
                                .n_runs = 1,
                                .start_usec = 940,
                                .end_usec = UNKNOWN },
        };
        const ProcessTree tree = { .items = nodes, .n = ELEMENTSOF(nodes) };
        static const struct {
                pid_t pid;
                uint64_t usec;
                const char *program;
        } table[] = {
                { 10, 100, "/bin/sh" },
                { 10, 600, "/bin/nc" },
                { 10, 950, "before" }, /* it had ended: what was known stays */
                { 11, 150, "/bin/sh" },
                { 11, 300, "before" },
                { 11, 960, "/bin/true" },
                { 12, 100, "before" },
                { 0, 100, "before" },
        };

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                EgressRecord record = {
                        .pid = table[i].pid, .program = strdup("before"), .first_usec = table[i].usec
                };
                EgressEvidence egress = { .items = &record, .n = 1 };

                egress_name_programs(&egress, &tree);
                CHECK_STR(record.program, table[i].program);
                free(record.program);
        }
}

TEST_MAIN
