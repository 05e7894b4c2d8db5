/* SPDX-License-Identifier: Apache-2.0 */
#include "within.h"

#include <fnmatch.h>
#include <stdarg.h>

#include "base/path.h"

/* --- random texts --- */

static size_t choose(Choices *c, size_t n)
{
        return c->used < c->size ? c->data[c->used++] % n : 0;
}

#define PICK(c, list) ((list)[choose((c), ELEMENTSOF(list))])

static const char *const sizes[] = { "null", "0", "16777216", "\"64M\"", "\"1G\"", "\"8388607T\"",
        "1048576" };
static const char *const counts[] = { "null", "4", "16", "1000", "65536", "9007199254740992" };
static const char *const rates[] = { "null", "\"1%\"", "\"100%\"", "\"12.5%\"", "\"6400%\"" };
static const char *const seconds[] = { "1", "0.5", "30", "3600", "604800", "0.000001" };
static const char *const paths[] = { "/srv/w", "/srv/w/a", "/srv", "/home/u", "/opt/x", "/usr/local/src",
        "/tmp/x", "/etc", "/", "/root", "/srv/w2", "/var/lib/qscope/x", "/srv/secret/deep" };
static const char *const names[] = { "PATH", "HOME", "API_TOKEN", "SSH_AUTH_SOCK", "LANG", "A",
        "LD_PRELOAD" };
static const char *const programs[] = { "true", "sudo", "/usr/bin/Curl", "./x", "mkfs.ext4", "python3" };

static const char *limit_value(Choices *c, LimitKind kind)
{
        switch (limit_table[kind].unit) {
        case LIMIT_UNIT_BYTES:
                return PICK(c, sizes);
        case LIMIT_UNIT_COUNT:
                return PICK(c, counts);
        case LIMIT_UNIT_CPU_RATE:
                return PICK(c, rates);
        case LIMIT_UNIT_SECONDS:
                return PICK(c, seconds);
        }
        abort();
}

/* Members of an object, each there or not. */
static void put_limits(FILE *out, Choices *c)
{
        const char *comma = "";

        (void) fputs("\"limits\": {", out);
        for (int kind = 0; kind < _LIMIT_MAX; kind++)
                if (choose(c, 3) == 1) {
                        (void) fprintf(out, "%s\"%s\": %s", comma, limit_table[kind].key,
                                        limit_value(c, (LimitKind) kind));
                        comma = ", ";
                }
        (void) fputc('}', out);
}

static void put_list(FILE *out, Choices *c, const char *key, const char *const *from, size_t n)
{
        size_t count = choose(c, 4);

        if (count == 3)
                return; /* not given */
        (void) fprintf(out, ", \"%s\": [", key);
        for (size_t i = 0; i < count; i++)
                (void) fprintf(out, "%s\"%s\"", i > 0 ? ", " : "", from[choose(c, n)]);
        (void) fputc(']', out);
}

#define PUT_LIST(out, c, key, list) put_list(out, c, key, list, ELEMENTSOF(list))

/* Never "/" in hidden_paths: no policy may have it. */
static void put_hidden(FILE *out, Choices *c)
{
        static const char *const hidden[] = { "/srv/secret", "/srv/w/a", "/usr/share/doc", "/home" };

        PUT_LIST(out, c, "hidden_paths", hidden);
}

static void put_env(FILE *out, Choices *c, const char *key)
{
        (void) fprintf(out, "\"%s\": {", key);
        for (size_t i = 0; i < ELEMENTSOF(names); i++)
                if (choose(c, 4) == 1)
                        (void) fprintf(out, "\"%s\": \"%zu\", ", names[i], choose(c, 2));
        (void) fputs("\"Z\": \"\"}", out);
}

char *make_policy_text(Choices *c)
{
        static const char *const networks[] = { "[\"none\"]", "[\"host\"]", "[\"none\", \"host\"]" };
        static const char *const postures[] = { "[\"isolated\"]", "[\"bounded\"]",
                "[\"isolated\", \"bounded\"]" };
        static const char *const denied[] = { "sudo", "curl", "mkfs.*", "*" };
        static const char *const patterns[] = { "*TOKEN*", "LD_*", "H*" };
        static const char *const roots[] = { "/srv", "/home/u", "/tmp" };
        char *text = NULL;
        size_t size = 0;
        FILE *out = open_memstream(&text, &size);

        assert(out);
        (void) fputs("{\"name\": \"p\", \"default\": {", out);
        put_limits(out, c);
        if (choose(c, 2))
                (void) fprintf(out, ", \"timeout_sec\": %s", PICK(c, seconds));
        if (choose(c, 4) == 1) {
                (void) fputs(", ", out);
                put_env(out, c, "env");
        }
        if (choose(c, 4) == 1)
                (void) fprintf(out, ", \"cwd\": \"%s\"", PICK(c, paths));
        (void) fputs("}, \"max\": {", out);
        put_limits(out, c);
        if (choose(c, 2))
                (void) fprintf(out, ", \"timeout_sec\": %s", PICK(c, seconds));
        (void) fputs("}, \"env\": {", out);
        put_env(out, c, "set");
        PUT_LIST(out, c, "allow", names);
        PUT_LIST(out, c, "deny", patterns);
        (void) fputs("}", out);
        if (choose(c, 2))
                (void) fprintf(out, ", \"network\": %s, \"posture\": %s", PICK(c, networks),
                                PICK(c, postures));
        PUT_LIST(out, c, "deny_argv0", denied);
        PUT_LIST(out, c, "deny_exec", denied);
        PUT_LIST(out, c, "workspace_roots", roots);
        put_hidden(out, c);
        if (choose(c, 4) == 1)
                (void) fputs(", \"root\": \"/srv/system\"", out);
        if (choose(c, 2))
                (void) fputs(", \"properties\": {\"NoNewPrivileges\": true, \"CPUWeight\": 5, \"SystemCallFilter\": "
                             "[[\"@system-service\"], [\"~@mount\"]]}",
                                out);
        (void) fputs("}", out);
        (void) fclose(out);
        return text;
}

char *make_job_text(Choices *c)
{
        static const char *const words[] = { "\"network\": \"host\"", "\"network\": \"none\"",
                "\"posture\": \"bounded\"", "\"posture\": \"isolated\"", "\"workspace\": \"fresh\"",
                "\"workspace\": \"overlay\"", "\"allow_changes\": [\"a\", \"/tmp\"]",
                "\"files\": [{\"path\": \"f\", \"content\": \"\"}]" };
        char *text = NULL;
        size_t size = 0;
        FILE *out = open_memstream(&text, &size);

        assert(out);
        (void) fprintf(out, "{\"argv\": [\"%s\", \"sudo\"], ", PICK(c, programs));
        put_limits(out, c);
        if (choose(c, 2))
                (void) fprintf(out, ", \"timeout_sec\": %s", PICK(c, seconds));
        if (choose(c, 2))
                (void) fprintf(out, ", \"cwd\": \"%s\"", PICK(c, paths));
        PUT_LIST(out, c, "env_allowlist", names);
        if (choose(c, 2)) {
                (void) fputs(", ", out);
                put_env(out, c, "env");
        }
        for (size_t i = 0; i < ELEMENTSOF(words); i += 2) {
                size_t which = choose(c, 3);

                if (which > 0)
                        (void) fprintf(out, ", %s", words[i + which - 1]);
        }
        (void) fputs("}", out);
        (void) fclose(out);
        return text;
}

/* --- what a plan may give --- */

static bool env_is_denied(const Policy *policy, const char *name)
{
        bool denied = streq(name, "SSH_AUTH_SOCK");

        for (size_t i = 0; policy->env_deny && policy->env_deny[i]; i++)
                denied = denied || fnmatch(policy->env_deny[i], name, 0) == 0;
        return denied;
}

static const char *env_excess(const Plan *plan, char *const *caller_env)
{
        const Job *job = plan->job;
        char **listed = job->env_allowlist ? job->env_allowlist : plan->policy->env_allow;

        for (size_t i = 0; plan->env[i]; i++) {
                _cleanup_free_ char *name = strndup(plan->env[i], strcspn(plan->env[i], "="));
                bool caller = strv_contains(caller_env, plan->env[i]);

                assert(name);
                if (streq(plan->env_source[i], "caller") &&
                                (env_is_denied(plan->policy, name) || !strv_contains(listed, name) ||
                                                !caller))
                        return "a variable of the caller";
                if (streq(plan->env_source[i], "job") && !strv_contains(job->env, plan->env[i]))
                        return "a variable that the job did not set";
        }
        for (size_t i = 0; plan->policy->env_set && plan->policy->env_set[i]; i++)
                if (!strv_contains(plan->env, plan->policy->env_set[i]))
                        return "another value than the policy's in the environment";
        return NULL;
}

static const char *limit_excess(const Plan *plan)
{
        for (size_t i = 0; i < _LIMIT_MAX; i++)
                if (plan->policy->max_limits.value[i] != LIMIT_UNSET &&
                                plan->limits.value[i] > plan->policy->max_limits.value[i])
                        return limit_table[i].key;
        if (plan->timeout_usec > plan->policy->max_timeout_usec || plan->timeout_usec > JOB_TIMEOUT_MAX)
                return "timeout_sec";
        return NULL;
}

/* What was planned is what is asked of systemd. */
static const char *unit_excess(const Plan *plan)
{
        static const LimitKind kinds[] = { LIMIT_MEMORY, LIMIT_SWAP, LIMIT_CPU, LIMIT_TASKS };
        const PropertyList *asked = &plan->policy->properties;

        for (size_t i = 0; i < ELEMENTSOF(kinds); i++) {
                const PropertyValue *value =
                                property_list_find(&plan->slice_properties, limit_table[kinds[i]].property);

                if (plan->limits.value[kinds[i]] != LIMIT_UNLIMITED &&
                                (!value || value->number != plan->limits.value[kinds[i]]))
                        return limit_table[kinds[i]].property;
        }
        for (size_t i = 0; i < asked->n; i++)
                if (!property_list_find(&plan->service_properties, asked->items[i].info->name))
                        return asked->items[i].info->name;
        if (plan->posture == POSTURE_ISOLATED && plan->network == NETWORK_NONE &&
                        !property_list_find(&plan->service_properties, "PrivateNetwork"))
                return "PrivateNetwork";
        if (plan->posture == POSTURE_ISOLATED &&
                        (!property_list_find(&plan->service_properties, "DynamicUser") ||
                                        !property_list_find(&plan->service_properties, "RootDirectory")))
                return "DynamicUser or RootDirectory";
        return NULL;
}

static const char *place_excess(const Plan *plan)
{
        char **roots = plan->policy->workspace_roots, **hidden = plan->policy->hidden_paths;
        bool inside = !roots || plan->workspace == WORKSPACE_FRESH;
        Error e = ERROR_INIT;

        for (size_t i = 0; roots && roots[i]; i++)
                inside = inside || path_is_within(plan->cwd, roots[i]);
        if (!inside)
                return "a workspace outside workspace_roots";
        for (size_t i = 0; hidden && hidden[i]; i++)
                if (path_is_within(plan->cwd, hidden[i]) || plan->posture == POSTURE_BOUNDED)
                        return "hidden_paths";
        if (plan->posture == POSTURE_ISOLATED && plan->workspace == WORKSPACE_OVERLAY &&
                        workspace_path_check(plan->policy, plan->cwd, &e) < 0)
                return "a directory of the system";
        if (plan->posture == POSTURE_BOUNDED && plan->policy->root)
                return "the host's root";
        return NULL;
}

const char *plan_excess(const Plan *plan, char *const *caller_env)
{
        const char *slash = strrchr(plan->argv[0], '/'), *base = slash ? slash + 1 : plan->argv[0], *excess;
        char **deny = plan->policy->deny_argv0;

        if (plan->refusals.n > 0)
                return NULL;
        for (size_t i = 0; deny && deny[i]; i++)
                if (fnmatch(deny[i], base, FNM_CASEFOLD) == 0)
                        return "a denied program";
        if (!exec_rules_are_empty(&plan->policy->exec) && plan->posture == POSTURE_BOUNDED)
                return "programs that nobody can refuse";
        if (!(plan->policy->networks & (1u << plan->network)))
                return "network";
        if (!(plan->policy->postures & (1u << plan->posture)))
                return "posture";
        excess = limit_excess(plan);
        if (!excess)
                excess = env_excess(plan, caller_env);
        if (!excess)
                excess = unit_excess(plan);
        return excess ? excess : place_excess(plan);
}

const char *check_random_plan(const uint8_t *data, size_t size, bool *ret_refused)
{
        static char *caller_env[] = { (char *) "PATH=/bin", (char *) "HOME=/root", (char *) "API_TOKEN=t",
                (char *) "SSH_AUTH_SOCK=/s", (char *) "LANG=C", (char *) "LD_PRELOAD=x", NULL };
        const PlanContext context = { .run_id = "00112233445566778899aabbccddeeff",
                .cwd = "/srv/w",
                .env = caller_env,
                .runtime_dir = "/run/qscope",
                .stage_path = "/usr/lib/qscope/qscope-stage" };
        Choices choices = { data, size, 0 };
        _cleanup_free_ char *policy_text = make_policy_text(&choices), *job_text = make_job_text(&choices);
        const PolicyText text = { .name = "policy", .text = policy_text, .size = strlen(policy_text) };
        _cleanup_(policy_freep) Policy *policy = NULL;
        _cleanup_(job_freep) Job *job = NULL;
        _cleanup_(plan_freep) Plan *plan = NULL;
        Error e = ERROR_INIT;

        if (policy_parse(&text, 1, &policy, &e) < 0 ||
                        job_parse(job_text, strlen(job_text), "job", &job, &e) < 0 ||
                        job_take_defaults(job, policy->job_defaults) < 0 ||
                        plan_make(job, policy, &context, &plan, &e) < 0) {
                (void) fprintf(stderr, "%s\n%s\n%s\n", e.text, policy_text, job_text);
                return "what was made does not read";
        }
        if (ret_refused)
                *ret_refused = plan->refusals.n > 0;
        if (plan_excess(plan, caller_env))
                (void) fprintf(stderr, "%s\n%s\n", policy_text, job_text);
        return plan_excess(plan, caller_env);
}
