/* SPDX-License-Identifier: Apache-2.0 */
/* Golden plans: tests/golden/plan/NAME.job.json, with NAME.policy.json or else base.policy.json, gives
 * NAME.plan.json. QSCOPE_REGENERATE=1 in the environment writes them anew; read the difference before you
 * commit it. */

#include "core/plan.h"

#include <inttypes.h>
#include <limits.h>

#include "alloc.h"
#include "base/text.h"
#include "core/plan_text.h"
#include "files.h"
#include "test.h"

static char *const caller_env[] = { (char *) "HOME=/home/caller", (char *) "PATH=/usr/bin:/bin",
        (char *) "EMPTY=", (char *) "LANG=C.UTF-8", (char *) "db_token=x",
        (char *) "SSH_AUTH_SOCK=/tmp/agent", (char *) "API_TOKEN=hunter2", (char *) "EXTRA=from caller",
        (char *) "PATHX=no", NULL };
static const PlanContext caller = { .run_id = "00112233445566778899aabbccddeeff",
        .cwd = "/srv/caller",
        .env = caller_env,
        .runtime_dir = "/run/qscope",
        .stage_path = "/usr/lib/qscope/qscope-stage" };

typedef struct Case {
        Job *job;
        Policy *policy;
        Plan *plan;
        Error e;
} Case;

static void case_clear(Case *c)
{
        plan_free(c->plan);
        job_free(c->job);
        policy_free(c->policy);
}

#define _cleanup_case_ _cleanup_(case_clear)

/* 0 with a plan, or what the first of the three steps said. */
static int case_make(Case *c, const char *job, const char *policy, const PlanContext *context)
{
        const PolicyText text = { .name = "policy.json", .text = policy, .size = strlen(policy) };
        int r;

        *c = (Case){ .e = ERROR_INIT };
        r = job_parse(job, strlen(job), "job.json", &c->job, &c->e);
        if (r >= 0)
                r = policy_parse(&text, 1, &c->policy, &c->e);
        if (r >= 0)
                r = job_take_defaults(c->job, c->policy->job_defaults);
        if (r >= 0)
                r = plan_make(c->job, c->policy, context, &c->plan, &c->e);
        return r;
}

static const char policy_text[] =
                "{\"name\": \"p\", \"default\": {\"limits\": {\"disk\": \"64M\", \"inodes\": 1000}}}";

/* members: what the job has beside its argv. */
static int plan_job(Case *c, const char *members)
{
        _cleanup_free_ char *text = text_printf("{\"argv\": [\"true\"]%s%s}", *members ? ", " : "", members);

        return case_make(c, text, policy_text, &caller);
}

static const char *refusal(const Case *c, const char *code)
{
        for (size_t i = 0; c->plan && i < c->plan->refusals.n; i++)
                if (streq(c->plan->refusals.items[i].code, code))
                        return c->plan->refusals.items[i].message;
        return NULL;
}

/* --- golden plans --- */

static char *golden_path(const char *name, const char *kind)
{
        return text_printf("%s/%s.%s.json", test_path("golden/plan"), name, kind);
}

static void check_golden(const char *name)
{
        _cleanup_free_ char *job_path = golden_path(name, "job"), *policy_path = golden_path(name, "policy"),
                            *plan_path = golden_path(name, "plan"),
                            *base_path = golden_path("base", "policy");
        _cleanup_free_ char *job = NULL, *policy = NULL, *expected = NULL, *got = NULL;
        _cleanup_(cJSON_Deletep) cJSON *json = NULL;
        _cleanup_case_ Case c = { 0 };
        size_t size;

        job = read_test_file(job_path, &size);
        policy = read_test_file(access(policy_path, R_OK) == 0 ? policy_path : base_path, &size);
        REQUIRE(job && policy);
        CHECK_EQ(case_make(&c, job, policy, &caller), 0);
        CHECK_STR(c.e.text, "");
        REQUIRE(c.plan);
        json = plan_to_json(c.plan);
        got = json_print(json, true);
        REQUIRE(got);
        if (getenv("QSCOPE_REGENERATE"))
                CHECK_EQ(write_test_file(plan_path, got), 0);
        expected = read_test_file(plan_path, &size);
        if (!test_check(streq_ptr(expected, got), __FILE__, __LINE__,
                            "%s differs; it would now be:", plan_path))
                (void) fputs(got, stdout);
        CHECK(!strstr(got, "hunter2") && !strstr(got, "secret value")); /* values never appear */
}

TEST(golden)
{
        _cleanup_strv_ char **names = list_test_files(test_path("golden/plan"), ".job.json");

        CHECK(strv_length(names) >= 8);
        for (size_t i = 0; names[i]; i++) {
                names[i][strlen(names[i]) - STRLEN(".job.json")] = '\0';
                check_golden(names[i]);
        }
}

/* --- the policies that are installed --- */

static Policy *read_shipped(const char *name)
{
        PolicyText texts[2] = { 0 };
        char *owned[2] = { NULL, NULL }, *base = NULL;
        Policy *policy = NULL;
        Error e = ERROR_INIT;
        size_t n = 0;

        /* What is extended comes first; the ones of ours go one step deep. */
        for (const char *next = name; next && n < 2; next = base) {
                _cleanup_free_ char *path = text_printf("%s/policies/%s.json", getenv("QSCOPE_SOURCE"), next);

                texts[1] = texts[0];
                owned[n] = read_test_file(path, &texts[0].size);
                assert(owned[n]);
                texts[0].name = texts[0].policy = n == 0 ? name : "default";
                texts[0].text = owned[n];
                n++;
                free(base);
                base = NULL;
                CHECK_EQ(policy_extends(texts, 1, &base, &e), 0);
        }
        CHECK(!base);
        free(base);
        (void) policy_parse(texts, n, &policy, &e);
        CHECK_STR(e.text, "");
        free(owned[0]);
        free(owned[1]);
        return policy;
}

TEST(shipped_policies)
{
        static const char *const names[] = { "build", "default", "eval", "strict", "trusted" };
        static const char job[] = "{\"argv\": [\"python3\", \"-V\"], \"cwd\": \"/srv/w\"}";

        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                _cleanup_free_ char *name = text_printf("shipped-%s", names[i]),
                                    *path = golden_path(name, "plan"), *got = NULL, *expected = NULL;
                _cleanup_(cJSON_Deletep) cJSON *json = NULL;
                _cleanup_strv_ char **findings = NULL;
                _cleanup_case_ Case c = { 0 };
                size_t size;

                REQUIRE(job_parse(job, strlen(job), "job.json", &c.job, &c.e) == 0);
                c.policy = read_shipped(names[i]);
                REQUIRE(c.policy);
                CHECK_STR(c.policy->name, names[i]);
                CHECK_EQ(policy_lint(c.policy, &findings), 0);
                CHECK_STR(findings ? findings[0] : NULL, NULL);
                CHECK_EQ(job_take_defaults(c.job, c.policy->job_defaults), 0);
                CHECK_EQ(plan_make(c.job, c.policy, &caller, &c.plan, &c.e), 0);
                REQUIRE(c.plan);
                CHECK_EQ(c.plan->refusals.n, 0);
                json = plan_to_json(c.plan);
                got = json_print(json, true);
                if (getenv("QSCOPE_REGENERATE"))
                        CHECK_EQ(write_test_file(path, got), 0);
                expected = read_test_file(path, &size);
                (void) test_check(streq_ptr(expected, got), __FILE__, __LINE__, "%s differs", path);
        }
}

/* --- refusals --- */

TEST(refusals)
{
        static const struct {
                const char *members, *code, *message;
        } cases[] = {
                { "\"cwd\": \"/\"", "workspace_refused", "job.cwd: / itself" },
                { "\"cwd\": \"//./\"", "workspace_refused", "job.cwd: / itself" },
                { "\"cwd\": \"/etc\"", "workspace_refused", "(/etc)" },
                { "\"cwd\": \"/etc/x\"", "workspace_refused", "(/etc)" },
                { "\"cwd\": \"/proc/self\"", "workspace_refused", "(/proc)" },
                { "\"cwd\": \"/dev/shm/x\"", "workspace_refused", "(/dev)" },
                { "\"cwd\": \"/run/user/0\"", "workspace_refused", "(/run)" },
                { "\"cwd\": \"/lib64\"", "workspace_refused", "(/lib64)" },
                { "\"cwd\": \"/usr\"", "workspace_refused", "/usr itself" },
                { "\"cwd\": \"/usr/bin\"", "workspace_refused", "(/usr/bin)" },
                { "\"cwd\": \"/usr/lib/x\"", "workspace_refused", "(/usr/lib)" },
                { "\"cwd\": \"/home\"", "workspace_refused", "/home itself" },
                { "\"cwd\": \"/var/\"", "workspace_refused", "/var itself" },
                { "\"cwd\": \"/var/lib/qscope/receipts\"", "workspace_refused", "(/var/lib/qscope)" },
                { "\"cwd\": \"/srv/../etc\"", "workspace_refused", "contains \"..\"" },
                { "\"cwd\": \"/usr/local/x\", \"workspace\": \"fresh\"", "workspace_refused", "below /usr" },
                { "\"network\": \"host\"", "network_refused", "\"host\" is not allowed by the policy p" },
                { "\"posture\": \"bounded\"", "posture_refused",
                                "\"bounded\" is not allowed by the policy p" },
                { "\"limits\": {\"memory\": \"1M\"}", "limit_floor",
                                "job.limits.memory: 1M is too little for the run itself: give at "
                                "least 16M" },
                { "\"limits\": {\"tasks\": 1}", "limit_floor", "job.limits.tasks: 1 is" },
                { "\"limits\": {\"open_files\": 3}", "limit_floor", "job.limits.open_files" },
                { "\"limits\": {\"disk\": 1}", "limit_floor", "job.limits.disk: 1B" },
                { "\"limits\": {\"inodes\": 1}", "limit_floor", "job.limits.inodes" },
                { "\"limits\": {\"cpu\": \"0.5%\"}", "limit_floor", "job.limits.cpu: 0.5% is" },
                { "\"limits\": {\"cpu_time_sec\": 0.01}", "limit_floor",
                                "job.limits.cpu_time_sec: 0.01 s is" },
                { "\"limits\": {\"disk\": null}", "not_supported", "limits.disk: null (no limit)" },
                { "\"limits\": {\"inodes\": null}", "not_supported", "limits.inodes: null (no limit)" },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_case_ Case c = { 0 };

                CHECK_EQ(plan_job(&c, cases[i].members), 0);
                CHECK_HAS(refusal(&c, cases[i].code), cases[i].message);
                CHECK_EQ(c.plan ? c.plan->refusals.n : 0, 1);
        }
}

/* The value of a limit as a job would write it. */
static char *limit_member(LimitKind kind, uint64_t value)
{
        const char *key = limit_table[kind].key;

        switch (limit_table[kind].unit) {
        case LIMIT_UNIT_CPU_RATE:
                return text_printf("\"limits\": {\"%s\": \"%.2f%%\"}", key, (double) value / 10000);
        case LIMIT_UNIT_SECONDS:
                return text_printf("\"limits\": {\"%s\": %.6f}", key, (double) value / USEC_PER_SEC);
        default:
                return text_printf("\"limits\": {\"%s\": %" PRIu64 "}", key, value);
        }
}

/* Each limit at its floor can be started with; one less is refused, and the sentence has both. */
TEST(every_floor)
{
        for (LimitKind kind = 0; kind < _LIMIT_MAX; kind++) {
                uint64_t floor = limit_table[kind].floor;
                _cleanup_free_ char *enough = limit_member(kind, floor), *less = NULL;
                _cleanup_case_ Case good = { 0 }, bad = { 0 };

                CHECK_EQ(plan_job(&good, enough), 0);
                CHECK(refusal(&good, "limit_floor") == NULL);
                if (floor == 0)
                        continue;
                less = limit_member(kind, floor - (limit_table[kind].unit == LIMIT_UNIT_CPU_RATE ? 100 : 1));
                CHECK_EQ(plan_job(&bad, less), 0);
                CHECK_HAS(refusal(&bad, "limit_floor"), limit_table[kind].key);
                CHECK_HAS(refusal(&bad, "limit_floor"), "give at least");
        }
}

TEST(workspaces_that_are_allowed)
{
        static const char *const good[] = { "/srv/x", "/usr/local/src/x", "/home/u", "/root/x", "/tmp/x",
                "/var/tmp/x", "/etcetera", "/library", "/var/lib/qscopex", "/opt", "/media/usb" };

        for (size_t i = 0; i < ELEMENTSOF(good); i++) {
                _cleanup_free_ char *members = text_printf("\"cwd\": \"%s\"", good[i]);
                _cleanup_case_ Case c = { 0 };

                CHECK_EQ(plan_job(&c, members), 0);
                REQUIRE(c.plan);
                CHECK_EQ(c.plan->refusals.n, 0);
                CHECK_STR(c.plan->cwd, good[i]);
        }
}

TEST(denied_names)
{
        static const char policy[] = "{\"name\": \"p\", \"deny_argv0\": [\"sudo\", \"mkfs.*\"], "
                                     "\"default\": {\"limits\": {\"disk\": \"64M\", \"inodes\": 1000}}}";
        static const struct {
                const char *argv0;
                bool denied;
        } cases[] = { { "sudo", true }, { "SUDO", true }, { "/usr/bin/Sudo", true }, { "./mkfs.ext4", true },
                { "mkfs", false }, { "sudoku", false }, { "sudo/x", false } };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_free_ char *job = text_printf("{\"argv\": [\"%s\", \"sudo\"]}", cases[i].argv0);
                _cleanup_case_ Case c = { 0 };

                CHECK_EQ(case_make(&c, job, policy, &caller), 0);
                CHECK((refusal(&c, "denied_argv0") != NULL) == cases[i].denied);
        }
}

/* --- limits --- */

static const char ceilings[] = "{\"name\": \"p\", \"default\": {\"timeout_sec\": 50, \"limits\": "
                               "{\"memory\": \"1G\", \"tasks\": 10, "
                               "\"disk\": \"64M\", \"inodes\": 1000}}, \"max\": {\"timeout_sec\": 20, "
                               "\"limits\": {\"memory\": \"512M\", "
                               "\"cpu\": \"200%\", \"tasks\": 100, \"swap\": 0}}}";

TEST(ceilings)
{
        static const struct {
                const char *members, *message;
        } cases[] = {
                { "\"limits\": {\"memory\": \"2T\"}", "job.limits.memory: 2T is over the policy's 512M" },
                { "\"limits\": {\"memory\": null}",
                                "job.limits.memory: null (no limit) is over the policy's 512M" },
                { "\"limits\": {\"cpu\": \"200.01%\"}", "job.limits.cpu: 200.01% is over the policy's 200%" },
                { "\"limits\": {\"tasks\": 101}", "job.limits.tasks: 101 is over the policy's 100" },
                { "\"limits\": {\"swap\": 1}", "job.limits.swap: 1B is over the policy's 0B" },
                { "\"timeout_sec\": 20.5", "job.timeout_sec: 20.5 s is over the policy's 20 s" },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_free_ char *job = text_printf("{\"argv\": [\"x\"], %s}", cases[i].members);
                _cleanup_case_ Case c = { 0 };

                CHECK_EQ(case_make(&c, job, ceilings, &caller), 0);
                CHECK_HAS(refusal(&c, "over_ceiling"), cases[i].message);
        }
}

TEST(defaults_are_clipped_to_ceilings)
{
        _cleanup_case_ Case c = { 0 };

        CHECK_EQ(case_make(&c, "{\"argv\": [\"x\"]}", ceilings, &caller), 0);
        REQUIRE(c.plan);
        CHECK_EQ(c.plan->refusals.n, 0);
        CHECK_EQ(c.plan->limits.value[LIMIT_MEMORY], 512 << 20);
        CHECK_EQ(c.plan->limits.value[LIMIT_CPU], 2000000); /* no default, but a ceiling */
        CHECK_EQ(c.plan->limits.value[LIMIT_TASKS], 10);
        CHECK_EQ(c.plan->limits.value[LIMIT_SWAP], 0);
        CHECK(c.plan->limits.value[LIMIT_FILE_SIZE] == LIMIT_UNLIMITED);
        CHECK_EQ(c.plan->timeout_usec, 20 * USEC_PER_SEC);
}

TEST(layers)
{
        static const struct {
                const char *limits;
                Layer layer;
        } cases[] = {
                { "{\"memory\": \"1G\", \"disk\": \"256M\", \"inodes\": 65536}", LAYER_TMPFS },
                { "{\"memory\": \"1G\", \"disk\": \"512M\", \"inodes\": 65536}", LAYER_IMAGE },
                { "{\"memory\": \"1G\", \"disk\": \"512M\", \"inodes\": 16}", LAYER_IMAGE },
                { "{\"memory\": \"1G\", \"disk\": \"1M\", \"inodes\": 9007199254740992}", LAYER_IMAGE },
                { "{\"memory\": \"1G\", \"disk\": \"8388607T\", \"inodes\": 9007199254740992}", LAYER_IMAGE },
                { "{\"memory\": null, \"disk\": \"256M\"}", LAYER_TMPFS },
                { "{\"memory\": null, \"disk\": \"257M\"}", LAYER_IMAGE },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_free_ char *members = text_printf("\"limits\": %s", cases[i].limits);
                _cleanup_case_ Case c = { 0 };

                CHECK_EQ(plan_job(&c, members), 0);
                REQUIRE(c.plan);
                CHECK_EQ(c.plan->layer, cases[i].layer);
                CHECK_EQ(c.plan->refusals.n, 0);
        }
        CHECK_STR(layer_to_string(LAYER_IMAGE), "image");
}

/* --- environment and home --- */

TEST(environment)
{
        static const char policy[] =
                        "{\"name\": \"p\", \"env\": {\"allow\": [\"PATH\", \"LANG\"], \"deny\": "
                        "[\"*TOKEN*\"], "
                        "\"set\": {\"LANG\": \"policy\", \"P\": \"job\", \"SET_TOKEN\": \"x\"}}, "
                        "\"default\": {\"limits\": {\"disk\": \"64M\", \"inodes\": 1000}}}";
        static const char job[] =
                        "{\"argv\": [\"x\"], \"env_allowlist\": [\"PATH\", \"PATH\", \"EMPTY\", \"UNSET\", "
                        "\"SSH_AUTH_SOCK\", \"API_TOKEN\", \"db_token\", \"EXTRA\"], "
                        "\"env\": {\"P\": \"job\", \"EXTRA\": \"\", \"MY_TOKEN\": \"own\", \"PAT\": \"1\"}}";
        static const char *const expected[] = { "EXTRA=", "LANG=policy", "MY_TOKEN=own", "P=job", "PAT=1",
                "PATH=/usr/bin:/bin", "SET_TOKEN=x" };
        static const char *const sources[] = { "job", "policy", "job", "policy", "job", "caller", "policy" };
        _cleanup_case_ Case c = { 0 }, d = { 0 };

        CHECK_EQ(case_make(&c, job, policy, &caller), 0);
        REQUIRE(c.plan && strv_length(c.plan->env) == ELEMENTSOF(expected));
        CHECK(!refusal(&c, "env_refused")); /* the same value */
        CHECK_EQ(strv_length(c.plan->env_source), ELEMENTSOF(expected));
        for (size_t i = 0; i < ELEMENTSOF(expected); i++) {
                CHECK_STR(c.plan->env[i], expected[i]);
                CHECK_STR(c.plan->env_source[i], sources[i]);
        }
        CHECK_EQ(case_make(&d, "{\"argv\": [\"x\"], \"env_allowlist\": []}", policy_text, &caller), 0);
        REQUIRE(d.plan);
        CHECK(d.plan->env && !d.plan->env[0]);
}

TEST(homes)
{
        static const struct {
                const char *home, *cwd; /* home NULL: not in the environment */
                const char *mounted, *in_passwd;
        } cases[] = {
                { "/home/u", "/srv/w", "/home/u", "/home/u" },
                { "/home/u/", "/home/u", NULL, "/home/u" },       /* the workspace serves */
                { "/srv/w/h", "/srv/w", NULL, "/srv/w/h" },       /* in the workspace */
                { "/home/u", "/home/u/w", "/home/u", "/home/u" }, /* the workspace is mounted below */
                { "/root", "/srv/w", "/root", "/root" },
                { NULL, "/srv/w", "/home/job", "/home/job" },
                { NULL, "/home/job", NULL, "/home/job" },
                { "relative", "/srv/w", "/home/job", "/home/job" },
                { "/", "/srv/w", "/home/job", "/home/job" },
                { "/home", "/srv/w", "/home/job", "/home/job" },
                { "/usr/sbin", "/srv/w", "/home/job", "/home/job" },
                { "/usr/games", "/srv/w", "/home/job", "/home/job" },
                { "/etc/x", "/srv/w", "/home/job", "/home/job" },
                { "/a/../b", "/srv/w", "/home/job", "/home/job" },
                { "/tmp", "/srv/w", NULL, "/tmp" },
                { "/nonexistent", "/srv/w", "/nonexistent", "/nonexistent" },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_free_ char *members =
                                cases[i].home ? text_printf("\"cwd\": \"%s\", \"env\": {\"HOME\": \"%s\"}",
                                                                cases[i].cwd, cases[i].home)
                                              : text_printf("\"cwd\": \"%s\", \"env_allowlist\": []",
                                                                cases[i].cwd);
                _cleanup_case_ Case c = { 0 };

                CHECK_EQ(plan_job(&c, members), 0);
                REQUIRE(c.plan);
                CHECK_EQ(c.plan->refusals.n, 0);
                CHECK_STR(c.plan->home, cases[i].mounted);
                CHECK_STR(c.plan->passwd_home, cases[i].in_passwd);
        }
}

TEST(fixed_variables)
{
        static const char policy[] = "{\"name\": \"p\", \"env\": {\"set\": {\"HOME\": \"/x\"}}, "
                                     "\"default\": {\"limits\": {\"disk\": \"64M\", \"inodes\": 1000}}}";
        _cleanup_case_ Case own = { 0 }, passed = { 0 };

        CHECK_EQ(case_make(&own, "{\"argv\": [\"x\"], \"env\": {\"HOME\": \"secret value\"}}", policy,
                                 &caller),
                        0);
        CHECK_STR(refusal(&own, "env_refused"), "job.env.HOME: the policy p sets this variable itself");
        CHECK_EQ(case_make(&passed, "{\"argv\": [\"x\"], \"env_allowlist\": [\"HOME\"]}", policy, &caller),
                        0);
        REQUIRE(passed.plan);
        CHECK_EQ(passed.plan->refusals.n, 0);
        CHECK_STR(passed.plan->env[0], "HOME=/x");
}

/* --- the policy's defaults for a job's keys --- */

TEST(defaults_of_job_keys)
{
        static const char policy[] =
                        "{\"name\": \"p\", \"network\": [\"none\", \"host\"], \"default\": {\"cwd\": \"/srv/d\", "
                        "\"workspace\": \"fresh\", \"expected_exit\": [0, 3], \"env_allowlist\": [\"EXTRA\"], "
                        "\"env\": {\"CI\": \"1\"}, \"network\": \"host\", \"posture\": \"isolated\", "
                        "\"expect\": {\"stdout\": {\"equals\": \"x\"}}, "
                        "\"limits\": {\"disk\": \"64M\", \"inodes\": 1000}}}";
        static const char own[] =
                        "{\"argv\": [\"x\"], \"cwd\": \"/srv/j\", \"workspace\": \"overlay\", "
                        "\"expected_exit\": 1, \"env_allowlist\": [], \"env\": {}, \"network\": \"none\", "
                        "\"expect\": {}}";
        _cleanup_case_ Case c = { 0 }, d = { 0 };

        CHECK_EQ(case_make(&c, "{\"argv\": [\"x\"]}", policy, &caller), 0);
        CHECK_EQ(case_make(&d, own, policy, &caller), 0);
        REQUIRE(c.plan && d.plan);
        CHECK_EQ(c.plan->refusals.n + d.plan->refusals.n, 0);
        CHECK_STR(c.plan->cwd, "/srv/d");
        CHECK_STR(d.plan->cwd, "/srv/j");
        CHECK(c.plan->workspace == WORKSPACE_FRESH && d.plan->workspace == WORKSPACE_OVERLAY);
        CHECK(c.plan->network == NETWORK_HOST && d.plan->network == NETWORK_NONE);
        CHECK(exit_set_contains(&c.job->exits, 3) && !exit_set_contains(&d.job->exits, 3));
        CHECK_STR(c.job->expect.out.equals, "x");
        CHECK(!d.job->expect.out.equals);
        REQUIRE(strv_length(c.plan->env) == 2 && !d.plan->env[0]);
        CHECK_STR(c.plan->env[0], "CI=1");
        CHECK_STR(c.plan->env_source[0], "policy");
        CHECK_STR(c.plan->env[1], "EXTRA=from caller");
        /* Once more changes nothing. */
        CHECK_EQ(job_take_defaults(c.job, c.policy->job_defaults), 0);
        CHECK_EQ(strv_length(c.job->defaulted), 8);
}

/* --- workspace --- */

TEST(hidden_workspaces)
{
        static const char policy[] = "{\"name\": \"p\", \"hidden_paths\": [\"/srv/s\"], "
                                     "\"default\": {\"limits\": {\"disk\": \"64M\", \"inodes\": 1000}}}";
        _cleanup_case_ Case in = { 0 }, above = { 0 };
        Error e = ERROR_INIT;

        CHECK_EQ(case_make(&in, "{\"argv\": [\"x\"], \"cwd\": \"/srv/s/w\"}", policy, &caller), 0);
        CHECK_HAS(refusal(&in, "workspace_refused"), "/srv/s/w lies in /srv/s, which the policy p hides");
        CHECK_EQ(case_make(&above, "{\"argv\": [\"x\"], \"cwd\": \"/srv\"}", policy, &caller), 0);
        CHECK(!refusal(&above, "workspace_refused"));
        CHECK_EQ(workspace_path_check(above.policy, "/srv/s", &e), -EPERM);
        CHECK_HAS(e.text, "which the policy hides");
}

TEST(programs_that_nobody_could_refuse)
{
        static const char *const members[] = { "\"deny_exec\": [\"curl\"]", "\"allow_exec\": []" };

        for (size_t i = 0; i < ELEMENTSOF(members); i++) {
                _cleanup_free_ char *policy = text_printf(
                                "{\"name\": \"p\", %s, \"posture\": [\"isolated\", \"bounded\"], \"network\": [\"none\", "
                                "\"host\"], \"default\": {\"limits\": {\"disk\": \"64M\", \"inodes\": 1000}}}",
                                members[i]);
                _cleanup_case_ Case isolated = { 0 }, bounded = { 0 };

                CHECK_EQ(case_make(&isolated, "{\"argv\": [\"x\"]}", policy, &caller), 0);
                CHECK(!refusal(&isolated, "not_supported"));
                CHECK_EQ(case_make(&bounded,
                                         "{\"argv\": [\"x\"], \"posture\": \"bounded\", \"limits\": {\"disk\": "
                                         "null, \"inodes\": null}}",
                                         policy, &caller),
                                0);
                CHECK_HAS(refusal(&bounded, "not_supported"),
                                i == 0 ? "policy.deny_exec" : "policy.allow_exec");
        }
}

/* --- for people --- */

TEST(shell_lines)
{
        char *words[] = { (char *) "a", (char *) "", (char *) "x y", (char *) "it's", (char *) "$HOME",
                (char *) "\033[31m\n", NULL };
        _cleanup_free_ char *line = plan_shell_line(words);

        CHECK_STR(line, "a '' 'x y' 'it'\\''s' '$HOME' $'\\033[31m\\012'\n");
}

TEST(texts)
{
        _cleanup_case_ Case c = { 0 };
        _cleanup_free_ char *text = NULL;

        CHECK_EQ(case_make(&c, "{\"argv\": [\"sudo\", \"$HOME\\u001b[1m\"], \"env\": {\"A\": \"hunter2\"}}",
                                 "{\"name\": \"p\", \"deny_argv0\": [\"sudo\"], \"hidden_paths\": [\"/srv/s\"], "
                                 "\"default\": {\"limits\": {\"disk\": \"64M\", \"inodes\": 1000}}}",
                                 &caller),
                        0);
        text = c.plan ? plan_to_text(c.plan) : NULL;
        REQUIRE(text);
        CHECK_HAS(text, "\n  DynamicUser=yes\n");
        CHECK_HAS(text, "A (job)");
        CHECK_HAS(text, "\n  /srv/s  hidden\n");
        CHECK_HAS(text, "denied_argv0: job.argv[0]: \"sudo\" is denied");
        CHECK_HAS(text, "--setenv=A ");
        CHECK_HAS(text, "-- sudo $'$$HOME\\033[1m'\n"); /* systemd itself expands $NAME */
        CHECK(!strchr(text, '\033') && !strstr(text, "hunter2"));
}

TEST(workspaces)
{
        static const struct {
                const char *members, *cwd;
                Workspace workspace;
        } cases[] = {
                { "", "/srv/caller", WORKSPACE_OVERLAY },
                { "\"cwd\": \"/srv//w/./\"", "/srv/w", WORKSPACE_OVERLAY },
                { "\"workspace\": \"fresh\"", "/workspace", WORKSPACE_FRESH },
                { "\"workspace\": \"fresh\", \"cwd\": \"/x\"", "/x", WORKSPACE_FRESH },
                { "\"files\": [{\"path\": \"a\", \"content\": \"\"}]", "/workspace", WORKSPACE_FRESH },
                { "\"files\": [{\"path\": \"a\", \"content\": \"\"}], \"cwd\": \"/x\"", "/x",
                                WORKSPACE_OVERLAY },
                { "\"files\": [{\"path\": \"a\", \"content\": \"\"}], \"workspace\": \"overlay\"",
                                "/srv/caller", WORKSPACE_OVERLAY },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_case_ Case c = { 0 };

                CHECK_EQ(plan_job(&c, cases[i].members), 0);
                REQUIRE(c.plan);
                CHECK_STR(c.plan->cwd, cases[i].cwd);
                CHECK_EQ(c.plan->workspace, cases[i].workspace);
        }
}

TEST(allowed_changes_are_absolute)
{
        _cleanup_case_ Case c = { 0 }, none = { 0 }, empty = { 0 };

        CHECK_EQ(plan_job(&c, "\"cwd\": \"/w\", \"allow_changes\": [\"out\", \".\", \"/tmp/x/\"]"), 0);
        CHECK_EQ(plan_job(&none, ""), 0);
        CHECK_EQ(plan_job(&empty, "\"allow_changes\": []"), 0);
        REQUIRE(c.plan && none.plan && empty.plan);
        REQUIRE(strv_length(c.plan->allow_changes) == 3);
        CHECK_STR(c.plan->allow_changes[0], "/w/out");
        CHECK_STR(c.plan->allow_changes[1], "/w");
        CHECK_STR(c.plan->allow_changes[2], "/tmp/x");
        CHECK(!none.plan->allow_changes);
        CHECK(empty.plan->allow_changes && !empty.plan->allow_changes[0]);
}

TEST(roots)
{
        static const char policy[] = "{\"name\": \"p\", \"workspace_roots\": [\"/srv\"], "
                                     "\"default\": {\"limits\": {\"disk\": \"64M\", \"inodes\": 1000}}}";
        _cleanup_case_ Case in = { 0 }, out = { 0 }, fresh = { 0 };

        CHECK_EQ(case_make(&in, "{\"argv\": [\"x\"], \"cwd\": \"/srv/w\"}", policy, &caller), 0);
        CHECK_EQ(case_make(&out, "{\"argv\": [\"x\"], \"cwd\": \"/srvx\"}", policy, &caller), 0);
        CHECK_EQ(case_make(&fresh, "{\"argv\": [\"x\"], \"workspace\": \"fresh\"}", policy, &caller), 0);
        CHECK(!refusal(&in, "workspace_refused") && !refusal(&fresh, "workspace_refused"));
        CHECK_HAS(refusal(&out, "workspace_refused"),
                        "/srvx does not lie below any of the policy's workspace_roots");
}

/* The second look, at the path that the links really lead to. */
TEST(resolved_workspaces)
{
        static const char policy[] = "{\"name\": \"p\", \"workspace_roots\": [\"/srv\"]}";
        _cleanup_case_ Case any = { 0 }, roots = { 0 };
        Error e = ERROR_INIT;

        CHECK_EQ(plan_job(&any, ""), 0);
        CHECK_EQ(case_make(&roots, "{\"argv\": [\"x\"]}", policy, &caller), 0);
        REQUIRE(any.policy && roots.policy);
        CHECK_EQ(workspace_path_check(any.policy, "/home/u", &e), 0);
        CHECK_EQ(workspace_path_check(any.policy, "/etc/x", &e), -EPERM);
        CHECK_HAS(e.text, "job.cwd leads to /etc/x, which belongs to the system");
        CHECK_EQ(workspace_path_check(any.policy, "/", &e), -EPERM);
        CHECK_EQ(workspace_path_check(roots.policy, "/srv/w", &e), 0);
        CHECK_EQ(workspace_path_check(roots.policy, "/home/u", &e), -EPERM);
        CHECK_HAS(e.text, "outside the policy's workspace_roots");
}

TEST(bounded)
{
        static const char policy[] =
                        "{\"name\": \"p\", \"posture\": [\"isolated\", \"bounded\"], \"network\": [\"host\"], "
                        "\"properties\": {\"IOWeight\": 10}}";
        static const char sandbox[] =
                        "{\"name\": \"s\", \"posture\": [\"bounded\"], \"network\": [\"host\"], "
                        "\"default\": {\"limits\": {\"disk\": \"64M\"}}, "
                        "\"properties\": {\"NoNewPrivileges\": true}}";
        _cleanup_case_ Case c = { 0 }, d = { 0 }, e = { 0 }, f = { 0 };

        CHECK_EQ(case_make(&c, "{\"argv\": [\"x\"], \"posture\": \"bounded\"}", policy, &caller), 0);
        CHECK_EQ(c.plan->refusals.n, 0);
        CHECK_EQ(c.plan->network, NETWORK_HOST);
        CHECK_STR(strrchr(c.plan->service, '.'), ".scope");
        CHECK(!property_list_find(&c.plan->service_properties, "ExitType"));
        CHECK(property_list_find(&c.plan->service_properties, "IOWeight"));
        CHECK_EQ(case_make(&d, "{\"argv\": [\"x\"]}", policy, &caller), 0);
        CHECK_HAS(refusal(&d, "network_refused"), "\"none\" is not allowed");
        CHECK(d.plan && property_list_find(&d.plan->service_properties, "PrivateNetwork"));
        /* What cannot be kept is refused, never left out. */
        CHECK_EQ(case_make(&e, "{\"argv\": [\"x\"], \"posture\": \"bounded\"}", sandbox, &caller), 0);
        CHECK_EQ(e.plan->refusals.n, 2);
        CHECK_HAS(e.plan->refusals.items[0].message, "limits.disk cannot be kept in the posture bounded");
        CHECK_HAS(e.plan->refusals.items[1].message, "asks for NoNewPrivileges");
        CHECK_EQ(case_make(&f,
                                 "{\"argv\": [\"x\"], \"posture\": \"bounded\", \"network\": \"none\", "
                                 "\"allow_changes\": [], \"files\": [{\"path\": \"a\", \"content\": \"\"}]}",
                                 policy, &caller),
                        0);
        CHECK_EQ(f.plan->refusals.n, 4);
}

/* What only a job or a caller put together by hand can get wrong. */
TEST(impossible_input)
{
        char *empty[] = { (char *) "", NULL }, *argv[] = { (char *) "x", NULL };
        _cleanup_case_ Case c = { 0 };
        PlanContext context = caller;
        Plan *plan = NULL;
        Job job;

        REQUIRE(plan_job(&c, "") == 0);
        job = *c.job;
        job.argv = NULL;
        CHECK_EQ(plan_make(&job, c.policy, &caller, &plan, &c.e), -EINVAL);
        CHECK_HAS(c.e.text, "job.argv is missing");
        job.argv = empty;
        CHECK_EQ(plan_make(&job, c.policy, &caller, &plan, &c.e), -EINVAL);
        job.argv = argv;
        job.job_id = (char *) "../x";
        CHECK_EQ(plan_make(&job, c.policy, &caller, &plan, &c.e), -EINVAL);
        CHECK_HAS(c.e.text, "is not a job id");
        job.job_id = NULL;
        job.cwd = (char *) "rel";
        CHECK_EQ(plan_make(&job, c.policy, &caller, &plan, &c.e), -EINVAL);
        job.cwd = NULL;
        context.run_id = "short";
        CHECK_EQ(plan_make(&job, c.policy, &context, &plan, &c.e), -EINVAL);
        context = caller;
        context.cwd = "rel";
        CHECK_EQ(plan_make(&job, c.policy, &context, &plan, &c.e), -EINVAL);
        CHECK(!plan);
}

static int attempt(void *context)
{
        const Case *c = context;
        _cleanup_(plan_freep) Plan *plan = NULL;
        _cleanup_(cJSON_Deletep) cJSON *json = NULL;
        int r = plan_make(c->job, c->policy, &caller, &plan, NULL);

        _cleanup_free_ char *text = NULL;

        if (r < 0)
                return r;
        json = plan_to_json(plan);
        text = plan_to_text(plan);
        return json && text ? 0 : -ENOMEM;
}

TEST(out_of_memory)
{
        size_t size;
        _cleanup_free_ char *job = read_test_file(test_path("corpus/job/good/everything.json"), &size),
                            *policy = read_test_file(test_path("corpus/policy/good/everything.json"), &size);
        _cleanup_case_ Case c = { 0 };

        REQUIRE(job && policy);
        REQUIRE(case_make(&c, job, policy, &caller) == 0);
        CHECK(alloc_fail_each(attempt, &c) > 0);
}

TEST_MAIN
