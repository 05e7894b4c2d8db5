/* SPDX-License-Identifier: Apache-2.0 */
#include "core/isolation.h"

#include "sample.h"
#include "test.h"

static int check(Sample *s, Error *e)
{
        *e = ERROR_INIT;
        return isolation_check(&s->plan, s->outcome, e);
}

TEST(what_was_asked_for_must_hold)
{
        Error e = ERROR_INIT;
        Sample s;

        sample_init(&s);
        CHECK_EQ(check(&s, &e), 0);
        CHECK_EQ(outcome_add_fact(s.outcome, "namespace.net", false, "its own", "the host's"), 0);
        property_list_clear(&s.plan.service_properties);
        CHECK_EQ(check(&s, &e), 0); /* nobody asked for it */
        CHECK_EQ(property_add_bool(&s.plan.service_properties, "PrivateNetwork", true), 0);
        CHECK_EQ(check(&s, &e), -EPERM);
        CHECK_STR(e.text, "namespace.net is \"the host's\" where \"its own\" was asked for");
        property_list_clear(&s.plan.service_properties);
        sample_done(&s);
}

TEST(what_nobody_can_switch_off)
{
        static const char *const always[] = { "namespace.mnt", "root", "uid", "limit.memory", "mount:/tmp",
                "hidden:/srv/secret" };

        for (size_t i = 0; i < ELEMENTSOF(always); i++) {
                Error e = ERROR_INIT;
                Sample s;

                sample_init(&s);
                property_list_clear(&s.plan.service_properties);
                CHECK_EQ(outcome_add_fact(s.outcome, always[i], false, "a", "b"), 0);
                CHECK_EQ(check(&s, &e), -EPERM);
                sample_done(&s);
        }
}

TEST(require)
{
        char *require[] = { (char *) "seccomp", (char *) "limit.swap", NULL };
        Error e = ERROR_INIT;
        Sample s;

        sample_init(&s);
        property_list_clear(&s.plan.service_properties);
        s.policy.require = require;
        CHECK_EQ(outcome_add_fact(s.outcome, "seccomp", false, "2", "0"), 0);
        CHECK_EQ(check(&s, &e), -EPERM);
        CHECK_HAS(e.text, "seccomp is \"0\" where the policy default requires \"2\"");
        s.policy.require = require + 1;
        CHECK_EQ(check(&s, &e), -EPERM);
        CHECK_HAS(e.text, "limit.swap is required by the policy default and was not observed");
        CHECK_EQ(outcome_add_fact(s.outcome, "limit.swap", true, "0", "0"), 0);
        CHECK_EQ(check(&s, &e), 0);
        s.policy.require = NULL;
        sample_done(&s);
}

TEST(names)
{
        size_t n = 0;

        while (isolation_name(n)) {
                CHECK(isolation_is_known(isolation_name(n)));
                n++;
        }
        CHECK(n > 20);
        CHECK(!isolation_is_known("secomp") && !isolation_is_known(""));
}

TEST_MAIN
