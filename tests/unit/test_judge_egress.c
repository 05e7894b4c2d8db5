/* SPDX-License-Identifier: Apache-2.0 */
#include "core/judges.h"

#include "sample.h"
#include "test.h"

static void allow(Sample *s, const char *entry)
{
        sample_list(&s->job.expect.allow_egress, (const char *const[]){ entry, NULL });
}

static void done(Sample *s)
{
        strv_free(s->job.expect.allow_egress);
        s->job.expect.allow_egress = NULL;
        sample_done(s);
}

static const char *message(const Judgement *j, const char *code)
{
        for (size_t i = 0; i < j->reasons.n; i++)
                if (streq(j->reasons.items[i].code, code))
                        return j->reasons.items[i].message;
        return NULL;
}

TEST(nothing_tried)
{
        _sample_ Sample s;
        _cleanup_(judgement_freep) Judgement *j = NULL;

        sample_init(&s);
        s.outcome->egress.observed = true;
        j = sample_judge(&s);
        CHECK_EQ(j->verdict, VERDICT_PASS);
}

TEST(allowed)
{
        static const struct {
                EgressProtocol protocol;
                const char *address;
                uint16_t port;
                const char *name, *entry;
                bool passes;
        } table[] = {
                { EGRESS_TCP, "192.0.2.1", 443, NULL, "192.0.2.1:443", true },
                { EGRESS_UDP, "192.0.2.1", 443, NULL, "192.0.2.1:443", true },
                { EGRESS_TCP, "192.0.2.1", 80, NULL, "192.0.2.1:443", false },
                { EGRESS_TCP, "192.0.2.2", 443, NULL, "192.0.2.1:443", false },
                { EGRESS_TCP, "10.1.2.3", 53, NULL, "10.0.0.0/8:53", true },
                { EGRESS_TCP, "11.1.2.3", 53, NULL, "10.0.0.0/8:53", false },
                { EGRESS_TCP, "10.1.2.127", 53, NULL, "10.1.2.96/27:53", true },
                { EGRESS_TCP, "10.1.2.128", 53, NULL, "10.1.2.96/27:53", false },
                { EGRESS_TCP, "1.2.3.4", 53, NULL, "0.0.0.0/0:53", true },
                { EGRESS_TCP, "2001:db8::1", 443, NULL, "[2001:db8::1]:443", true },
                { EGRESS_TCP, "2001:db8::2", 443, NULL, "[2001:db8::1]:443", false },
                { EGRESS_TCP, "2001:db8:ffff::2", 443, NULL, "[2001:db8::/32]:443", true },
                { EGRESS_TCP, "2001:db9::2", 443, NULL, "[2001:db8::/32]:443", false },
                { EGRESS_TCP, "2001:db8::1", 443, NULL, "0.0.0.0/0:443", false },
                { EGRESS_TCP, "0.0.0.1", 443, NULL, "[::/0]:443", false },
                { EGRESS_TCP, "198.18.1.0", 443, "example.org", "Example.ORG:443", true },
                { EGRESS_TCP, "198.18.1.0", 443, "example.org", "example.org.:443", true },
                { EGRESS_TCP, "198.18.1.0", 80, "example.org", "example.org:443", false },
                { EGRESS_TCP, "198.18.1.0", 443, "www.example.org", "example.org:443", false },
                { EGRESS_TCP, "198.18.1.0", 443, NULL, "example.org:443", false },
                { EGRESS_DNS, "198.18.0.53", 53, "example.org", "example.org:443", true },
                { EGRESS_DNS, "198.18.0.53", 53, "secret.example.org", "example.org:443", false },
                { EGRESS_DNS, "198.18.0.53", 53, "example.org", "198.18.0.53:53", false },
                { EGRESS_DNS, "8.8.8.8", 53, "example.org", "example.org:443", false },
                { EGRESS_DNS, "8.8.8.8", 53, "example.org", "example.org:53", false },
                { EGRESS_DNS, "8.8.8.8", 53, "example.org", "8.8.8.8:53", true },
                { EGRESS_ICMP, "8.8.8.8", 0, NULL, "8.8.8.8:1", false },
                { EGRESS_OTHER, "8.8.8.8", 0, NULL, "0.0.0.0/0:1", false },
        };

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                Sample s;
                Judgement *j;

                sample_init(&s);
                sample_egress(&s, table[i].protocol, table[i].address, table[i].port, table[i].name, 1, "/x");
                allow(&s, table[i].entry);
                j = sample_judge(&s);
                test_check((j->verdict == VERDICT_PASS) == table[i].passes &&
                                                reason_has(&j->reasons, "egress") != table[i].passes,
                                __FILE__, __LINE__, "%s %s:%u (%s) against %s",
                                table[i].passes ? "refused" : "allowed", table[i].address, table[i].port,
                                table[i].name ? table[i].name : "-", table[i].entry);
                judgement_free(j);
                done(&s);
        }
}

TEST(destinations_are_named)
{
        _sample_ Sample s;
        _cleanup_(judgement_freep) Judgement *j = NULL;

        sample_init(&s);
        sample_egress(&s, EGRESS_DNS, "198.18.0.53", 53, "example.org", 12, "/usr/bin/git")->count = 2;
        sample_egress(&s, EGRESS_TCP, "198.18.1.0", 443, "example.org", 12, "\x1b[31m");
        sample_egress(&s, EGRESS_ICMP, "2001:db8::1", 0, NULL, 0, NULL);
        sample_egress(&s, EGRESS_UDP, "2001:db8::1", 123, NULL, 3, NULL);
        s.outcome->egress.total = 5;
        j = sample_judge(&s);
        CHECK_EQ(j->verdict, VERDICT_FAIL);
        CHECK_STR(message(j, "egress"), "5 attempts to leave: dns example.org (/usr/bin/git, pid 12), "
                                        "tcp example.org:443 (\\x1b[31m, pid 12), icmp 2001:db8::1, ...");
}

TEST(more_than_are_listed)
{
        _sample_ Sample s;
        _cleanup_(judgement_freep) Judgement *one = NULL, *two = NULL;

        sample_init(&s);
        sample_egress(&s, EGRESS_UDP, "2001:db8::1", 123, NULL, 3, NULL);
        s.outcome->egress.total = 9;
        one = sample_judge(&s);
        CHECK_EQ(one->verdict, VERDICT_FAIL);
        CHECK_HAS(message(one, "egress"), "at least 1 attempt to leave: udp [2001:db8::1]:123 (pid 3)");
        /* The others could be anything. */
        allow(&s, "[2001:db8::1]:123");
        two = sample_judge(&s);
        CHECK_EQ(two->verdict, VERDICT_ERROR);
        CHECK_HAS(message(two, "evidence_lost"), "more destinations than the 1 listed");
        strv_free(s.job.expect.allow_egress);
        s.job.expect.allow_egress = NULL;
}

TEST(lost)
{
        _sample_ Sample s;
        _cleanup_(judgement_freep) Judgement *j = NULL;

        sample_init(&s);
        s.outcome->egress.observed = true;
        s.outcome->egress.lost = 2;
        j = sample_judge(&s);
        CHECK_EQ(j->verdict, VERDICT_ERROR);
        CHECK_HAS(message(j, "evidence_lost"), "2 packets that the job sent were lost");
}

TEST_MAIN
