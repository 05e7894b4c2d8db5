/* SPDX-License-Identifier: Apache-2.0 */
#include "core/policy.h"

#include "alloc.h"
#include "corpus.h"
#include "files.h"
#include "test.h"

static int read_policy(const char *text, size_t size, const char *name, Error *e)
{
        const PolicyText one = { .name = name, .text = text, .size = size };
        _cleanup_(policy_freep) Policy *policy = NULL;
        int r = policy_parse(&one, 1, &policy, e);

        assert((r == 0) == (policy != NULL));
        return r;
}

/* The first text and one drop-in, which may be NULL. */
static Policy *parse(const char *text, const char *drop_in, Error *e)
{
        const PolicyText texts[] = { { "p.json", text, strlen(text) },
                { "p.json.d/10-x.json", drop_in, drop_in ? strlen(drop_in) : 0 } };
        Policy *policy = NULL;

        (void) policy_parse(texts, drop_in ? 2 : 1, &policy, e);
        return policy;
}

TEST(every_rule_has_its_sentence)
{
        unsigned failures;

        CHECK(corpus_replay_bad("corpus/policy/bad", read_policy, &failures) >= 40);
        CHECK_EQ(failures, 0);
}

TEST(good_policies)
{
        unsigned failures;

        CHECK(corpus_replay_good("corpus/policy/good", read_policy, &failures) >= 2);
        CHECK_EQ(failures, 0);
}

TEST(smallest)
{
        static const char *const usual[] = { "PATH", "HOME", "LANG", "LC_ALL", "TERM" };
        _cleanup_(policy_freep) Policy *policy = parse("{\"name\": \"p\"}", NULL, NULL);

        REQUIRE(policy);
        CHECK_STR(policy->name, "p");
        CHECK_EQ(strlen(policy->sha256), 64);
        CHECK_EQ(policy->networks, 1u << NETWORK_NONE);
        CHECK_EQ(policy->postures, 1u << POSTURE_ISOLATED);
        CHECK_EQ(policy->scratch_writes, SCRATCH_REPORT);
        CHECK(policy->default_timeout_usec == UNKNOWN && policy->max_timeout_usec == UNKNOWN);
        CHECK(!policy->workspace_roots && !policy->deny_argv0 && policy->properties.n == 0);
        REQUIRE(strv_length(policy->env_allow) == ELEMENTSOF(usual));
        for (size_t i = 0; i < ELEMENTSOF(usual); i++)
                CHECK_STR(policy->env_allow[i], usual[i]);
        for (size_t i = 0; i < _LIMIT_MAX; i++)
                CHECK(policy->default_limits.value[i] == LIMIT_UNSET &&
                                policy->max_limits.value[i] == LIMIT_UNSET);
}

TEST(everything)
{
        size_t size = 0;
        _cleanup_free_ char *text = read_test_file(test_path("corpus/policy/good/everything.json"), &size);
        _cleanup_(policy_freep) Policy *policy = text ? parse(text, NULL, NULL) : NULL;

        REQUIRE(policy);
        CHECK_EQ(policy->default_timeout_usec, 5 * USEC_PER_SEC);
        CHECK_EQ(policy->max_timeout_usec, 60500000);
        CHECK_EQ(policy->default_limits.value[LIMIT_MEMORY], 64 << 20);
        CHECK(policy->default_limits.value[LIMIT_CPU] == LIMIT_UNLIMITED);
        CHECK(policy->default_limits.value[LIMIT_DISK] == LIMIT_UNSET);
        CHECK(policy->max_limits.value[LIMIT_TASKS] == LIMIT_UNLIMITED);
        CHECK(policy->default_allow_changes && !policy->default_allow_changes[0]);
        CHECK(policy->env_allow && !policy->env_allow[0]);
        CHECK_STR(policy->env_set[0], "LANG=C.UTF-8");
        CHECK_EQ(policy->networks, 1u << NETWORK_NONE | 1u << NETWORK_HOST);
        CHECK_EQ(policy->postures, 1u << POSTURE_ISOLATED | 1u << POSTURE_BOUNDED);
        CHECK_STR(policy->workspace_roots[0], "/srv");
        CHECK_EQ(policy->scratch_writes, SCRATCH_FAIL);
        CHECK_EQ(policy->properties.n, 3);
}

TEST(drop_ins_merge_key_by_key)
{
        static const char main_text[] =
                        "{\"name\": \"p\", \"deny_argv0\": [\"a\", \"b\"], \"max\": {\"timeout_sec\": 10, "
                        "\"limits\": {\"memory\": \"1G\", \"tasks\": 5}}, "
                        "\"properties\": {\"Nice\": 1, \"PrivateUsers\": true}}";
        static const char drop_in[] =
                        "// more memory\n{\"deny_argv0\": [\"c\"], "
                        "\"max\": {\"limits\": {\"memory\": \"2G\"}}, \"properties\": {\"Nice\": 5}}";
        _cleanup_(policy_freep) Policy *policy = parse(main_text, drop_in, NULL);

        REQUIRE(policy);
        CHECK_EQ(policy->max_limits.value[LIMIT_MEMORY], UINT64_C(2) << 30);
        CHECK_EQ(policy->max_limits.value[LIMIT_TASKS], 5);
        CHECK_EQ(policy->max_timeout_usec, 10 * USEC_PER_SEC);
        CHECK_EQ(strv_length(policy->deny_argv0), 1);
        CHECK_STR(policy->deny_argv0[0], "c");
        REQUIRE(policy->properties.n == 2);
        CHECK_EQ(property_list_find(&policy->properties, "Nice")->number, 5);
        CHECK(property_list_find(&policy->properties, "PrivateUsers")->boolean);
}

TEST(a_bad_drop_in_is_named)
{
        Error e = ERROR_INIT;
        _cleanup_(policy_freep) Policy *policy = parse("{\"name\": \"p\"}", "{\n\n\"max\": {\"x\": 1}}", &e);

        CHECK(!policy);
        CHECK_HAS(e.text, "p.json.d/10-x.json: line 3: policy.max.x: unknown key");
}

TEST(digest_is_of_the_merged_meaning)
{
        _cleanup_(policy_freep)
                        Policy *a = parse("{\"name\": \"p\", \"max\": {\"timeout_sec\": 5}}", NULL, NULL),
                               *b = parse("// x\n{\"max\":{\"timeout_sec\":5.0},\"name\":\"p\"}", NULL, NULL),
                               *c = parse("{\"name\": \"p\"}", "{\"max\": {\"timeout_sec\": 5}}", NULL),
                               *d = parse("{\"name\": \"p\", \"max\": {\"timeout_sec\": 6}}", NULL, NULL);

        REQUIRE(a && b && c && d);
        CHECK_STR(a->sha256, b->sha256);
        CHECK_STR(a->sha256, c->sha256);
        CHECK(!streq(a->sha256, d->sha256));
}

/* The policy that is installed: read as it is, and its sandbox has what the design asks of it. */
TEST(the_default_policy)
{
        static const char *const demanded[] = { "PrivateUsers", "PrivateDevices", "PrivateTmp", "PrivateIPC",
                "NoNewPrivileges", "CapabilityBoundingSet", "AmbientCapabilities", "ProtectSystem",
                "ProtectHome", "ProtectProc", "RestrictNamespaces", "RestrictAddressFamilies",
                "SystemCallFilter", "SystemCallErrorNumber", "SystemCallArchitectures", "KeyringMode",
                "DevicePolicy", "RestrictSUIDSGID", "RestrictRealtime", "ProtectControlGroups" };
        _cleanup_free_ char *path = text_printf("%s/policies/default.json", getenv("QSCOPE_SOURCE")),
                            *text = NULL;
        _cleanup_(policy_freep) Policy *policy = NULL;
        Error e = ERROR_INIT;
        size_t size = 0;

        text = read_test_file(path, &size);
        REQUIRE(text);
        policy = parse(text, NULL, &e);
        CHECK_STR(e.text, "");
        REQUIRE(policy);
        CHECK_STR(policy->name, "default");
        for (size_t i = 0; i < ELEMENTSOF(demanded); i++)
                CHECK(property_list_find(&policy->properties, demanded[i]) != NULL);
        CHECK(!property_list_find(&policy->properties, "MemoryDenyWriteExecute"));
        CHECK_EQ(policy->networks, 1u << NETWORK_NONE);
        for (size_t i = 0; i < _LIMIT_MAX; i++)
                CHECK(policy->default_limits.value[i] == LIMIT_UNSET ||
                                policy->default_limits.value[i] <= policy->max_limits.value[i]);
}

TEST(names)
{
        CHECK(policy_name_is_valid("default") && policy_name_is_valid("0_a-B"));
        CHECK(!policy_name_is_valid("") && !policy_name_is_valid("-a") && !policy_name_is_valid("a/b") &&
                        !policy_name_is_valid("..") && !policy_name_is_valid("a.json"));
        CHECK(!policy_name_is_valid("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"));
}

static int attempt(void *context)
{
        const PolicyText texts[] = { { "p", context, strlen(context) },
                { "d", "{\"max\": {\"limits\": {\"swap\": 0}}}", 32 } };
        _cleanup_(policy_freep) Policy *policy = NULL;

        return policy_parse(texts, 2, &policy, NULL);
}

TEST(out_of_memory)
{
        size_t size = 0;
        _cleanup_free_ char *text = read_test_file(test_path("corpus/policy/good/everything.json"), &size);

        REQUIRE(text);
        CHECK(alloc_fail_each(attempt, text) > 0);
}

TEST_MAIN
