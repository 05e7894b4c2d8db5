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
        CHECK_EQ(strv_length(policy->exec.deny), 3);
        CHECK_STR(policy->exec.deny[2],
                        "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        CHECK_STR(policy->exec.allow[0], "python3*");
        CHECK(policy->throttling_fails && !policy->root);
        CHECK_STR(policy->require[1], "namespace.net");
        CHECK_EQ(cJSON_GetArraySize(policy->job_defaults), 8);
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
        CHECK_EQ(strv_length(policy->deny_argv0), 3);
        CHECK_STR(policy->deny_argv0[2], "c");
        REQUIRE(policy->properties.n == 2);
        CHECK_EQ(property_list_find(&policy->properties, "Nice")->number, 5);
        CHECK(property_list_find(&policy->properties, "PrivateUsers")->boolean);
}

/* One row for each key: what the main file and the drop-in say, and what comes of it. */
TEST(one_rule_for_each_key)
{
        static const struct {
                const char *key, *first, *second, *merged;
        } cases[] = {
                { "description", "\"a\"", "\"b\"", "\"b\"" },
                { "deny_argv0", "[\"a\",\"b\"]", "[\"b\",\"c\"]", "[\"a\",\"b\",\"c\"]" },
                { "deny_argv0", "[\"a\"]", "[]", "[]" },
                { "deny_exec", "[\"a\"]", "[\"/b\"]", "[\"a\",\"/b\"]" },
                { "allow_exec", "[\"a\"]", "[\"b\"]", "[\"b\"]" },
                { "default", "{\"timeout_sec\":5,\"limits\":{\"tasks\":9,\"swap\":0}}",
                                "{\"limits\":{\"tasks\":8}}",
                                "{\"limits\":{\"swap\":0,\"tasks\":8},\"timeout_sec\":5}" },
                { "default", "{\"allow_changes\":[\"a\"]}", "{\"allow_changes\":[\"b\"]}",
                                "{\"allow_changes\":[\"b\"]}" },
                { "default", "{\"env\":{\"A\":\"1\"}}", "{\"env\":{\"B\":\"2\"}}",
                                "{\"env\":{\"A\":\"1\",\"B\":\"2\"}}" },
                { "max", "{\"timeout_sec\":5}", "{\"limits\":{\"tasks\":null}}",
                                "{\"limits\":{\"tasks\":null},\"timeout_sec\":5}" },
                { "env", "{\"allow\":[\"A\"],\"deny\":[\"x\"],\"set\":{\"A\":\"1\",\"B\":\"1\"}}",
                                "{\"allow\":[\"B\"],\"deny\":[\"y\"],\"set\":{\"B\":\"2\"}}",
                                "{\"allow\":[\"B\"],\"deny\":[\"x\",\"y\"],\"set\":{\"A\":\"1\",\"B\":\"2\"}}" },
                { "network", "[\"none\",\"host\"]", "[\"none\"]", "[\"none\"]" },
                { "posture", "[\"isolated\"]", "[\"bounded\"]", "[\"bounded\"]" },
                { "workspace_roots", "[\"/a\"]", "[\"/b\"]", "[\"/b\"]" },
                { "root", "\"/srv/x\"", "\"host\"", "\"host\"" },
                { "read_only_paths", "[\"/a\"]", "[\"/b\"]", "[\"/b\"]" },
                { "hidden_paths", "[\"/a\"]", "[\"/b\"]", "[\"/a\",\"/b\"]" },
                { "require", "[\"root\"]", "[\"uid\"]", "[\"root\",\"uid\"]" },
                { "throttling", "\"fail\"", "\"report\"", "\"report\"" },
                { "scratch_writes", "\"fail\"", "\"allow\"", "\"allow\"" },
                { "properties", "{\"Nice\":1,\"PrivateIPC\":true}", "{\"Nice\":null}",
                                "{\"PrivateIPC\":true}" },
                { "properties", "{\"SystemCallFilter\":[\"@a\"]}", "{\"SystemCallFilter\":[\"@b\"]}",
                                "{\"SystemCallFilter\":[\"@b\"]}" },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_free_ char *first = text_printf("{\"name\": \"p\", \"%s\": %s}", cases[i].key,
                                                    cases[i].first),
                                    *second = text_printf("{\"%s\": %s}", cases[i].key, cases[i].second),
                                    *merged = NULL;
                Error e = ERROR_INIT;
                _cleanup_(policy_freep) Policy *policy = parse(first, second, &e);

                CHECK_STR(e.text, "");
                REQUIRE(policy);
                merged = json_print_canonical(json_get(policy->document, cases[i].key));
                CHECK_STR(merged, cases[i].merged);
        }
}

TEST(what_is_extended_gives_way)
{
        const PolicyText texts[] = {
                { "b.json",
                                "{\"name\": \"b\", \"root\": \"/srv/x\", \"deny_argv0\": [\"a\"], \"max\": "
                                "{\"timeout_sec\": 5}}",
                                0, "b" },
                { "p.json", "{\"extends\": \"b\", \"deny_argv0\": [\"c\"], \"max\": {\"timeout_sec\": 9}}", 0,
                                "p" },
                { "p.json.d/1.json", "{\"description\": \"d\"}", 0, "p" },
        };
        PolicyText sized[ELEMENTSOF(texts)];
        _cleanup_(policy_freep) Policy *policy = NULL;
        _cleanup_free_ char *base = NULL, *shown = NULL;
        Error e = ERROR_INIT;

        for (size_t i = 0; i < ELEMENTSOF(texts); i++) {
                sized[i] = texts[i];
                sized[i].size = strlen(texts[i].text);
        }
        CHECK_EQ(policy_extends(sized + 1, 2, &base, &e), 0);
        CHECK_STR(base, "b");
        CHECK_EQ(policy_parse(sized, 3, &policy, &e), 0);
        REQUIRE(policy);
        CHECK_STR(policy->name, "p");
        CHECK_STR(policy->root, "/srv/x");
        CHECK_EQ(policy->max_timeout_usec, 9 * USEC_PER_SEC); /* a ceiling binds jobs, not policies */
        CHECK(!json_get(policy->document, "extends"));
        shown = policy_show(policy);
        CHECK_HAS(shown, "\"name\": \"p\", // p.json\n");
        CHECK_HAS(shown, "\"root\": \"/srv/x\", // b.json\n");
        CHECK_HAS(shown, "\"a\", // b.json\n    \"c\" // p.json\n  ],");
        CHECK_HAS(shown, "\"timeout_sec\": 9 // p.json\n");
        CHECK_HAS(shown, "\"description\": \"d\" // p.json.d/1.json\n}");
}

/* What show prints is a policy again, and means the same. */
TEST(shown_policies_read_back)
{
        size_t size = 0;
        _cleanup_free_ char *text = read_test_file(test_path("corpus/policy/good/everything.json"), &size),
                            *shown = NULL;
        _cleanup_(policy_freep) Policy *policy = text ? parse(text, NULL, NULL) : NULL, *again = NULL;

        REQUIRE(policy);
        shown = policy_show(policy);
        REQUIRE(shown);
        again = parse(shown, NULL, NULL);
        REQUIRE(again);
        CHECK_STR(policy->sha256, again->sha256);
}

TEST(a_file_has_the_name_of_its_policy)
{
        const PolicyText text = { "q.json", "{\"name\": \"p\"}", 13, "q" };
        Error e = ERROR_INIT;

        CHECK_EQ(policy_check_text(&text, &e), -EINVAL);
        CHECK_HAS(e.text, "q.json: line 1: policy.name: \"p\" is not the name that the file has");
}

TEST(lint)
{
        static const struct {
                const char *members, *sentence; /* NULL: nothing of the sort */
        } cases[] = {
                { "\"max\": {\"timeout_sec\": 5}, \"default\": {\"timeout_sec\": 6}",
                                "policy.default.timeout_sec is over policy.max.timeout_sec" },
                { "\"max\": {\"limits\": {\"memory\": \"1G\"}}, \"default\": {\"limits\": {\"memory\": \"2G\"}}",
                                "policy.default.limits.memory is over" },
                { "\"max\": {\"limits\": {\"memory\": \"1M\"}}", "less than a run itself needs" },
                { "\"description\": \"\"", "policy.max.limits.memory is missing" },
                { "\"description\": \"\"", "policy.max.timeout_sec is missing" },
                { "\"description\": \"\"", "policy.properties.SystemCallFilter is missing" },
                { "\"allow_exec\": []", "policy.allow_exec is empty" },
                { "\"workspace_roots\": [\"/srv/a\"], \"hidden_paths\": [\"/srv\"]",
                                "/srv/a lies in the hidden /srv" },
                { "\"read_only_paths\": [\"/srv/a\"], \"hidden_paths\": [\"/srv\"]",
                                "policy.read_only_paths: /srv/a lies in the hidden /srv" },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_free_ char *text = text_printf("{\"name\": \"p\", %s}", cases[i].members);
                _cleanup_(policy_freep) Policy *policy = parse(text, NULL, NULL);
                _cleanup_strv_ char **found = NULL;
                bool said = false;

                REQUIRE(policy);
                CHECK_EQ(policy_lint(policy, &found), 0);
                for (size_t j = 0; found && found[j]; j++)
                        said = said || strstr(found[j], cases[i].sentence);
                (void) test_check(said, __FILE__, __LINE__, "nobody says \"%s\"", cases[i].sentence);
        }
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
