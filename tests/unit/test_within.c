/* SPDX-License-Identifier: Apache-2.0 */
/* A job can never get more than its policy gives: for each key of a policy a job that asks for more, and then
 * many random ones. */

#include "within.h"

#include "test.h"

static char *caller_env[] = { (char *) "HOME=/root", (char *) "API_TOKEN=t", (char *) "SSH_AUTH_SOCK=/s",
        NULL };
static const PlanContext caller = { .run_id = "00112233445566778899aabbccddeeff",
        .cwd = "/srv/caller",
        .env = caller_env,
        .runtime_dir = "/run/qscope",
        .stage_path = "/usr/lib/qscope/qscope-stage" };

/* policy, job: members beside the name and the argv. code: the refusal; NULL: it gets less, which `check`
 * sees. */
static const struct {
        const char *policy, *job, *code;
} cases[] = {
        { "\"deny_argv0\": [\"true\"]", "", "denied_argv0" },
        { "\"deny_argv0\": [\"TR*\"]", "", "denied_argv0" },
        { "\"posture\": [\"bounded\"], \"network\": [\"host\"], \"deny_exec\": [\"curl\"]",
                        ", \"posture\": \"bounded\", \"limits\": {\"disk\": null, \"inodes\": null}",
                        "not_supported" },
        { "\"posture\": [\"bounded\"], \"network\": [\"host\"], \"allow_exec\": [\"ls\"]",
                        ", \"posture\": \"bounded\", \"limits\": {\"disk\": null, \"inodes\": null}",
                        "not_supported" },
        { "\"max\": {\"timeout_sec\": 5}", ", \"timeout_sec\": 5.000001", "over_ceiling" },
        { "\"max\": {\"timeout_sec\": 5}", "", NULL },
        { "\"max\": {\"limits\": {\"memory\": \"64M\"}}", ", \"limits\": {\"memory\": 67108865}",
                        "over_ceiling" },
        { "\"max\": {\"limits\": {\"memory\": \"64M\"}}", ", \"limits\": {\"memory\": null}",
                        "over_ceiling" },
        { "\"max\": {\"limits\": {\"swap\": 0}}", ", \"limits\": {\"swap\": 1}", "over_ceiling" },
        { "\"max\": {\"limits\": {\"cpu\": \"100%\"}}", ", \"limits\": {\"cpu\": \"100.01%\"}",
                        "over_ceiling" },
        { "\"max\": {\"limits\": {\"tasks\": 8}}", ", \"limits\": {\"tasks\": 9}", "over_ceiling" },
        { "\"max\": {\"limits\": {\"cpu_time_sec\": 8}}", ", \"limits\": {\"cpu_time_sec\": 8.5}",
                        "over_ceiling" },
        { "\"max\": {\"limits\": {\"file_size\": 8}}", ", \"limits\": {\"file_size\": 9}", "over_ceiling" },
        { "\"max\": {\"limits\": {\"open_files\": 20}}", ", \"limits\": {\"open_files\": 21}",
                        "over_ceiling" },
        { "\"max\": {\"limits\": {\"disk\": \"1M\"}}", ", \"limits\": {\"disk\": \"2M\"}", "over_ceiling" },
        { "\"max\": {\"limits\": {\"inodes\": 20}}", ", \"limits\": {\"inodes\": 21}", "over_ceiling" },
        { "\"max\": {\"limits\": {\"output\": 20}}", ", \"limits\": {\"output\": 21}", "over_ceiling" },
        { "\"max\": {\"limits\": {\"output\": 20, \"cpu\": \"50%\", \"memory\": \"64M\"}}", "", NULL },
        { "\"env\": {\"deny\": [\"*TOKEN\"]}", ", \"env_allowlist\": [\"API_TOKEN\", \"SSH_AUTH_SOCK\"]",
                        NULL },
        { "\"env\": {\"allow\": []}", "", NULL },
        { "\"env\": {\"set\": {\"HOME\": \"/x\"}}", ", \"env_allowlist\": [\"HOME\"]", NULL },
        { "\"env\": {\"set\": {\"HOME\": \"/x\"}}", ", \"env\": {\"HOME\": \"/y\"}", "env_refused" },
        { "\"network\": [\"none\"]", ", \"network\": \"host\"", "network_refused" },
        { "\"posture\": [\"isolated\"]", ", \"posture\": \"bounded\"", "posture_refused" },
        { "\"posture\": [\"bounded\"]", "", "posture_refused" },
        { "\"workspace_roots\": [\"/srv/a\"]", ", \"cwd\": \"/srv/ab\"", "workspace_refused" },
        { "\"workspace_roots\": []", ", \"cwd\": \"/srv/a\"", "workspace_refused" },
        { "\"hidden_paths\": [\"/srv/a\"]", ", \"cwd\": \"/srv/a/b\"", "workspace_refused" },
        { "\"root\": \"/srv/other\"", ", \"cwd\": \"/usr/local/src\"", "workspace_refused" },
        { "\"posture\": [\"bounded\"], \"network\": [\"host\"], \"hidden_paths\": [\"/srv/a\"]",
                        ", \"posture\": \"bounded\", \"limits\": {\"disk\": null, \"inodes\": null}",
                        "not_supported" },
        { "\"posture\": [\"bounded\"], \"network\": [\"host\"], \"root\": \"/srv/a\"",
                        ", \"posture\": \"bounded\", \"limits\": {\"disk\": null, \"inodes\": null}",
                        "not_supported" },
        { "\"posture\": [\"bounded\"], \"network\": [\"host\"], \"properties\": {\"NoNewPrivileges\": true}",
                        ", \"posture\": \"bounded\", \"limits\": {\"disk\": null, \"inodes\": null}",
                        "not_supported" },
        { "\"properties\": {\"NoNewPrivileges\": true, \"SystemCallFilter\": [\"@system-service\"]}", "",
                        NULL },
};

TEST(more_than_the_policy_gives)
{
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                bool has_default = strstr(cases[i].policy, "\"default\"");
                _cleanup_free_ char *
                                policy_text = text_printf("{\"name\": \"p\", %s%s}", cases[i].policy,
                                               has_default ? ""
                                                           : ", \"default\": {\"limits\": {\"disk\": \"1M\", "
                                                             "\"inodes\": 16}}"),
                               *job_text = text_printf("{\"argv\": [\"true\"]%s}", cases[i].job);
                const PolicyText text = { .name = "p", .text = policy_text, .size = strlen(policy_text) };
                _cleanup_(policy_freep) Policy *policy = NULL;
                _cleanup_(job_freep) Job *job = NULL;
                _cleanup_(plan_freep) Plan *plan = NULL;
                Error e = ERROR_INIT;

                CHECK_EQ(policy_parse(&text, 1, &policy, &e), 0);
                CHECK_EQ(job_parse(job_text, strlen(job_text), "job", &job, &e), 0);
                CHECK_STR(e.text, "");
                REQUIRE(policy && job && plan_make(job, policy, &caller, &plan, &e) == 0);
                if (cases[i].code)
                        (void) test_check(reason_has(&plan->refusals, cases[i].code), __FILE__, __LINE__,
                                        "%s%s: not %s", policy_text, job_text, cases[i].code);
                else
                        (void) test_check(plan->refusals.n == 0, __FILE__, __LINE__, "%s%s: %s", policy_text,
                                        job_text, plan->refusals.n ? plan->refusals.items[0].message : "");
                CHECK_STR(plan_excess(plan, caller_env), NULL);
        }
}

/* The check itself can fail. */
TEST(an_excess_is_seen)
{
        static const char policy_text[] =
                        "{\"name\": \"p\", \"max\": {\"timeout_sec\": 5, \"limits\": {\"tasks\": 8}}, "
                        "\"default\": {\"limits\": {\"disk\": \"1M\", \"inodes\": 16}}}";
        const PolicyText text = { .name = "p", .text = policy_text, .size = strlen(policy_text) };
        static const char job_text[] = "{\"argv\": [\"x\"]}";
        _cleanup_(policy_freep) Policy *policy = NULL;
        _cleanup_(job_freep) Job *job = NULL;
        _cleanup_(plan_freep) Plan *plan = NULL;
        Error e = ERROR_INIT;

        REQUIRE(policy_parse(&text, 1, &policy, &e) == 0);
        REQUIRE(job_parse(job_text, strlen(job_text), "job", &job, &e) == 0);
        REQUIRE(plan_make(job, policy, &caller, &plan, &e) == 0);
        CHECK_STR(plan_excess(plan, caller_env), NULL);
        plan->limits.value[LIMIT_TASKS] = 9;
        CHECK_STR(plan_excess(plan, caller_env), "tasks");
        plan->limits.value[LIMIT_TASKS] = 7; /* another value than systemd is asked for */
        CHECK_STR(plan_excess(plan, caller_env), "TasksMax");
        plan->limits.value[LIMIT_TASKS] = 8;
        plan->network = NETWORK_HOST;
        CHECK_STR(plan_excess(plan, caller_env), "network");
}

/* A fixed sequence, so that a failure comes again. */
TEST(random_plans)
{
        uint64_t state = UINT64_C(0x9e3779b97f4a7c15);
        unsigned refused = 0, n = 5000;

        for (unsigned i = 0; i < n; i++) {
                uint8_t bytes[160];
                bool was = false;

                for (size_t j = 0; j < sizeof(bytes); j++) {
                        state ^= state << 13, state ^= state >> 7, state ^= state << 17; /* xorshift64 */
                        bytes[j] = (uint8_t) (state >> 32);
                }
                CHECK_STR(check_random_plan(bytes, sizeof(bytes), &was), NULL);
                refused += was;
        }
        CHECK(refused > n / 10 && refused < n);
}

TEST_MAIN
