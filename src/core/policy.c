/* SPDX-License-Identifier: Apache-2.0 */
/* The policy's files. Each text is first checked by itself, so that sentences have its name and line; then
 * the merged document is read. Opens no file; compares no job. */

#include "core/policy.h"

#include "base/hash.h"
#include "core/isolation.h"
#include "core/policy_merge.h"
#include "core/reader.h"

/* --- single keys --- */

static int read_name(const Reader *r, const JsonPath *at, const cJSON *value, void *target)
{
        int k = read_text(r, at, value, target);

        if (k >= 0 && !policy_name_is_valid(value->valuestring))
                return read_fail(r, at, "must be 1 to 64 letters, digits, _ or -, is \"%.80s\"",
                                value->valuestring);
        return k;
}

/* A list of words into a bit each. */
static int read_bits(const Reader *r, const JsonPath *at, const cJSON *value, const char *const *names,
                size_t n, uint32_t *ret)
{
        JsonPath below = { .up = at };
        const cJSON *item;

        if (!cJSON_IsArray(value))
                return read_fail_type(r, at, "a list", value);
        if (!value->child)
                return read_fail(r, at, "must not be empty: no job could run");
        *ret = 0;
        cJSON_ArrayForEach(item, value)
        {
                int k = read_choice(r, &below, item, names, n);

                if (k < 0)
                        return k;
                *ret |= 1u << k;
                below.index++;
        }
        return 0;
}

/* "host", or the absolute path of a directory or an image: which of them is seen when it is opened. */
static int read_root(const Reader *r, const JsonPath *at, const cJSON *value, void *target)
{
        char **root = target;
        int k;

        if (!cJSON_IsString(value))
                return read_fail_type(r, at, "\"host\" or the path of a directory or an image", value);
        if (streq(value->valuestring, "host"))
                return 0;
        if (value->valuestring[0] != '/')
                return read_fail(r, at,
                                "must be \"host\", or an absolute path of a directory or an image; is "
                                "\"%.80s\"",
                                value->valuestring);
        k = read_path(r, at, value, root);
        if (k >= 0 && streq(*root, "/"))
                return read_fail(r, at, "must not be /: write \"host\"");
        return k;
}

static int read_extends(const Reader *r, const JsonPath *at, const cJSON *value, _unused_ void *target)
{
        _cleanup_free_ char *name = NULL;

        return read_name(r, at, value, &name);
}

static int read_throttling(const Reader *r, const JsonPath *at, const cJSON *value, void *target)
{
        static const char *const words[] = { "report", "fail" };
        int k = read_choice(r, at, value, words, ELEMENTSOF(words));

        *(bool *) target = k == 1;
        return MIN(k, 0);
}

static int read_places(const Reader *r, const JsonPath *at, const cJSON *value, void *target)
{
        char ***list = target;
        int k = read_absolutes(r, at, value, target);

        if (k < 0)
                return k;
        if (strv_length(*list) > POLICY_PATHS_MAX)
                return read_fail(r, at, "has %zu paths, at most %u are allowed", strv_length(*list),
                                POLICY_PATHS_MAX);
        if (strv_contains(*list, "/"))
                return read_fail(r, at, "must not have /: no job could run");
        return 0;
}

static int read_fact(const Reader *r, const JsonPath *at, const cJSON *value, char **ret)
{
        char known[1024] = "";
        size_t used = 0;

        if (!cJSON_IsString(value))
                return read_fail_type(r, at, "the name of an isolation fact", value);
        if (isolation_is_known(value->valuestring)) {
                *ret = strdup(value->valuestring);
                return *ret ? 0 : -ENOMEM;
        }
        for (size_t i = 0; isolation_name(i) && used < sizeof(known); i++)
                used += (size_t) snprintf(known + used, sizeof(known) - used, " %s", isolation_name(i));
        return read_fail(r, at, "\"%.60s\" is not a fact that can be observed; known are:%s",
                        value->valuestring, known);
}

static int read_require(const Reader *r, const JsonPath *at, const cJSON *value, void *target)
{
        return read_list(r, at, value, "a list of isolation facts", read_fact, target);
}

static int read_networks(const Reader *r, const JsonPath *at, const cJSON *value, void *target)
{
        return read_bits(r, at, value, network_names, _NETWORK_MAX, target);
}

static int read_postures(const Reader *r, const JsonPath *at, const cJSON *value, void *target)
{
        return read_bits(r, at, value, posture_names, _POSTURE_MAX, target);
}

/* A key of the job, read as a job's own would be and kept for those that lack it. */
static int read_job_key(const Reader *r, const JsonPath *at, const cJSON *value, void *target)
{
        _cleanup_(job_freep) Job *job = job_new();
        Policy *policy = target;
        int k = job ? job_read_default(r, at, value, job) : -ENOMEM;

        if (k >= 0 && !policy->job_defaults) {
                policy->job_defaults = cJSON_CreateObject();
                k = policy->job_defaults ? 0 : -ENOMEM;
        }
        return k < 0 ? k : json_add(policy->job_defaults, at->key, cJSON_Duplicate(value, true));
}

static int read_scratch_writes(const Reader *r, const JsonPath *at, const cJSON *value, void *target)
{
        int k = read_choice(r, at, value, scratch_writes_names, _SCRATCH_WRITES_MAX);

        if (k >= 0)
                *(ScratchWrites *) target = (ScratchWrites) k;
        return k < 0 ? k : 0;
}

static int read_default(const Reader *r, const JsonPath *at, const cJSON *value, void *target)
{
        static const ReadRow rows[] = {
                { "timeout_sec", read_duration, offsetof(Policy, default_timeout_usec) },
                { "limits", read_limits, offsetof(Policy, default_limits) },
                { "allow_changes", read_change_paths, offsetof(Policy, default_allow_changes) },
                { "cwd", read_job_key, 0 },
                { "workspace", read_job_key, 0 },
                { "expected_exit", read_job_key, 0 },
                { "env_allowlist", read_job_key, 0 },
                { "env", read_job_key, 0 },
                { "network", read_job_key, 0 },
                { "posture", read_job_key, 0 },
                { "expect", read_job_key, 0 },
        };

        return read_object(r, at, value, rows, ELEMENTSOF(rows), NULL, target);
}

static int read_max(const Reader *r, const JsonPath *at, const cJSON *value, void *target)
{
        static const ReadRow rows[] = {
                { "timeout_sec", read_duration, offsetof(Policy, max_timeout_usec) },
                { "limits", read_limits, offsetof(Policy, max_limits) },
        };

        return read_object(r, at, value, rows, ELEMENTSOF(rows), NULL, target);
}

static int read_env(const Reader *r, const JsonPath *at, const cJSON *value, void *target)
{
        static const ReadRow rows[] = {
                { "allow", read_env_names, offsetof(Policy, env_allow) },
                { "deny", read_words, offsetof(Policy, env_deny) },
                { "set", read_env_values, offsetof(Policy, env_set) },
        };

        return read_object(r, at, value, rows, ELEMENTSOF(rows), NULL, target);
}

/* Set by the plan itself from the job, the limits and what a run needs; a policy has its own keys for them.
 */
static const char *const owned_properties[] = {
        "BindReadOnlyPaths",
        "CPUAccounting",
        "CPUQuota",
        "CollectMode",
        "Description",
        "DynamicUser",
        "ExitType",
        "FinalKillSignal",
        "IOAccounting",
        "IgnoreSIGPIPE",
        "KillMode",
        "KillSignal",
        "LimitCORE",
        "LimitCPU",
        "LimitFSIZE",
        "LimitNOFILE",
        "MemoryAccounting",
        "MemoryMax",
        "MemorySwapMax",
        "MountAPIVFS",
        "OOMPolicy",
        "PrivateNetwork",
        "RemainAfterExit",
        "RootDirectory",
        "RuntimeMaxSec",
        "SendSIGHUP",
        "SendSIGKILL",
        "Slice",
        "StandardError",
        "StandardInput",
        "StandardOutput",
        "TasksAccounting",
        "TasksMax",
        "TimeoutStartSec",
        "TimeoutStopSec",
        "Type",
};

static int read_property(const Reader *r, const JsonPath *at, const cJSON *value, PropertyList *list)
{
        Error reason = ERROR_INIT;
        int k;

        for (size_t i = 0; i < ELEMENTSOF(owned_properties); i++)
                if (streq(owned_properties[i], at->key))
                        return read_fail(r, at,
                                        "is set by qscope itself: use the policy's own keys (default, max, "
                                        "network, read_only_paths), or remove it");
        if (cJSON_IsNull(value) && property_find(at->key))
                return 0; /* takes away what an earlier file has set */
        k = property_add_json(list, at->key, value, &reason);
        return k == -EINVAL ? read_fail(r, at, "%s", reason.text) : k;
}

static int read_properties(const Reader *r, const JsonPath *at, const cJSON *value, void *target)
{
        PropertyList *list = target;
        const cJSON *member;

        if (!cJSON_IsObject(value))
                return read_fail_type(r, at, "an object of systemd properties", value);
        cJSON_ArrayForEach(member, value)
        {
                JsonPath below = { .up = at, .key = member->string };
                int k = read_property(r, &below, member, list);

                if (k < 0)
                        return k;
        }
        return 0;
}

static const ReadRow policy_rows[] = {
        { "name", read_name, offsetof(Policy, name) },
        { "description", read_text, offsetof(Policy, description) },
        { "extends", read_extends, 0 },
        { "deny_argv0", read_words, offsetof(Policy, deny_argv0) },
        { "deny_exec", exec_rules_read, offsetof(Policy, exec.deny) },
        { "allow_exec", exec_rules_read, offsetof(Policy, exec.allow) },
        { "default", read_default, 0 },
        { "max", read_max, 0 },
        { "env", read_env, 0 },
        { "network", read_networks, offsetof(Policy, networks) },
        { "posture", read_postures, offsetof(Policy, postures) },
        { "workspace_roots", read_absolutes, offsetof(Policy, workspace_roots) },
        { "root", read_root, offsetof(Policy, root) },
        { "read_only_paths", read_places, offsetof(Policy, read_only_paths) },
        { "hidden_paths", read_places, offsetof(Policy, hidden_paths) },
        { "scratch_writes", read_scratch_writes, offsetof(Policy, scratch_writes) },
        { "require", read_require, offsetof(Policy, require) },
        { "throttling", read_throttling, offsetof(Policy, throttling_fails) },
        { "properties", read_properties, offsetof(Policy, properties) },
};

/* --- whole documents --- */

static Policy *policy_new(void)
{
        Policy *policy = calloc(1, sizeof(Policy));

        if (!policy)
                return NULL;
        policy->default_timeout_usec = policy->max_timeout_usec = UNKNOWN;
        policy->default_limits = policy->max_limits = LIMITS_UNSET;
        policy->networks = 1u << NETWORK_NONE;
        policy->postures = 1u << POSTURE_ISOLATED;
        return policy;
}

static int read_policy(const Reader *r, const cJSON *document, Policy **ret)
{
        _cleanup_(policy_freep) Policy *policy = policy_new();
        const JsonPath root = { .up = NULL };
        int k;

        if (!policy)
                return -ENOMEM;
        k = read_object(r, &root, document, policy_rows, ELEMENTSOF(policy_rows), NULL, policy);
        if (k >= 0)
                *ret = TAKE_PTR(policy);
        return k;
}

static int check_name(const Reader *r, const PolicyText *text, const Policy *policy)
{
        const JsonPath root = { .up = NULL }, at = { .up = &root, .key = "name" };

        if (!text->policy || !policy->name || streq(text->policy, policy->name))
                return 0;
        return read_fail(r, &at, "\"%s\" is not the name that the file has: rename one of them (\"%s\")",
                        policy->name, text->policy);
}

/* Parses and checks one text. */
static int read_text_alone(const PolicyText *text, cJSON **ret, Error *e)
{
        const Reader r = {
                .file = text->name, .root = "policy", .text = text->text, .size = text->size, .e = e
        };
        _cleanup_(cJSON_Deletep) cJSON *document = NULL;
        _cleanup_(policy_freep) Policy *checked = NULL;
        int k;

        if (text->size > POLICY_FILE_MAX)
                return error_set(e, -EINVAL, "%s: is larger than %u bytes (1 MiB)", text->name,
                                (unsigned) POLICY_FILE_MAX);
        k = json_parse(text->text, text->size, JSON_COMMENTS, text->name, &document, e);
        if (k >= 0)
                k = read_policy(&r, document, &checked);
        if (k >= 0)
                k = check_name(&r, text, checked);
        if (k >= 0)
                *ret = TAKE_PTR(document);
        return k;
}

/* A file without a name has that of its policy, and not that of the one it extends. */
static bool lacks_name(const PolicyText *text, const cJSON *document, const cJSON *merged)
{
        const cJSON *before = json_get(merged, "name");

        return text->policy && !json_get(document, "name") &&
               !(before && streq(before->valuestring, text->policy));
}

static int add_text(const PolicyText *text, Policy *into, Error *e)
{
        _cleanup_(cJSON_Deletep) cJSON *document = NULL;
        int k = read_text_alone(text, &document, e);

        if (k < 0)
                return k;
        cJSON_DeleteItemFromObjectCaseSensitive(document, "extends");
        if (lacks_name(text, document, into->document))
                k = json_add_text(document, "name", text->policy);
        return k < 0 ? k : policy_merge(into->document, into->sources, document, text->name);
}

/* A default that the policy itself would refuse. */
static int check_default_word(const Reader *r, const Policy *policy, const char *key,
                const char *const *names, size_t n, uint32_t permitted)
{
        const JsonPath root = { .up = NULL }, group = { .up = &root, .key = "default" },
                       at = { .up = &group, .key = key };
        const cJSON *value = json_get(policy->job_defaults, key);
        int k = value ? read_choice(r, &at, value, names, n) : 0;

        if (!value || k < 0 || (permitted & (1u << k)))
                return MIN(k, 0);
        return read_fail(r, &at, "\"%s\" is not in policy.%s: no job could run", value->valuestring, key);
}

/* What holds for the whole only. */
static int finish(const Reader *r, Policy *policy)
{
        static const char *const usual[] = { "PATH", "HOME", "LANG", "LC_ALL", "TERM" };
        const JsonPath root = { .up = NULL };
        _cleanup_free_ char *text = NULL;
        int k;

        if (!policy->name)
                return read_fail(r, &root, "name is missing");
        k = check_default_word(r, policy, "network", network_names, _NETWORK_MAX, policy->networks);
        if (k >= 0)
                k = check_default_word(r, policy, "posture", posture_names, _POSTURE_MAX, policy->postures);
        if (k < 0)
                return k;
        for (size_t i = 0; !json_get(json_get(policy->document, "env"), "allow") && i < ELEMENTSOF(usual);
                        i++)
                if (strv_extend(&policy->env_allow, usual[i]) < 0)
                        return -ENOMEM;
        text = json_print_canonical(policy->document);
        if (!text)
                return -ENOMEM;
        hash_data(text, strlen(text), policy->sha256);
        return 0;
}

static int merge_texts(const PolicyText *texts, size_t n_texts, const Reader *r, Policy **ret)
{
        _cleanup_(policy_freep) Policy *merged = policy_new(), *policy = NULL;
        int k = merged ? 0 : -ENOMEM;

        if (k >= 0) {
                merged->document = cJSON_CreateObject();
                merged->sources = cJSON_CreateObject();
                k = merged->document && merged->sources ? 0 : -ENOMEM;
        }
        for (size_t i = 0; i < n_texts && k >= 0; i++)
                k = add_text(&texts[i], merged, r->e);
        if (k >= 0)
                k = read_policy(r, merged->document, &policy);
        if (k < 0)
                return k;
        policy->document = TAKE_PTR(merged->document);
        policy->sources = TAKE_PTR(merged->sources);
        k = finish(r, policy);
        if (k >= 0)
                *ret = TAKE_PTR(policy);
        return k;
}

int policy_parse(const PolicyText *texts, size_t n_texts, Policy **ret, Error *e)
{
        const Reader r = {
                .file = n_texts > 0 ? texts[n_texts - 1].name : "policy", .root = "policy", .e = e
        };
        int k = merge_texts(texts, n_texts, &r, ret);

        return k == -ENOMEM ? error_set(e, k, "%s: out of memory", r.file) : MIN(k, 0);
}

int policy_check_text(const PolicyText *text, Error *e)
{
        _cleanup_(cJSON_Deletep) cJSON *document = NULL;
        int k = read_text_alone(text, &document, e);

        return k == -ENOMEM ? error_set(e, k, "%s: out of memory", text->name) : MIN(k, 0);
}

int policy_extends(const PolicyText *texts, size_t n_texts, char **ret, Error *e)
{
        _cleanup_free_ char *base = NULL;

        for (size_t i = 0; i < n_texts; i++) {
                _cleanup_(cJSON_Deletep) cJSON *document = NULL;
                const cJSON *value;
                int k = read_text_alone(&texts[i], &document, e);

                if (k < 0)
                        return k == -ENOMEM ? error_set(e, k, "%s: out of memory", texts[i].name) : k;
                value = json_get(document, "extends");
                if (!value)
                        continue;
                free(base);
                base = strdup(value->valuestring);
                if (!base)
                        return error_set(e, -ENOMEM, "%s: out of memory", texts[i].name);
        }
        *ret = TAKE_PTR(base);
        return 0;
}

Policy *policy_free(Policy *policy)
{
        if (!policy)
                return NULL;
        free(policy->name);
        free(policy->description);
        strv_free(policy->deny_argv0);
        strv_free(policy->exec.deny);
        strv_free(policy->exec.allow);
        cJSON_Delete(policy->job_defaults);
        free(policy->root);
        strv_free(policy->require);
        cJSON_Delete(policy->document);
        cJSON_Delete(policy->sources);
        strv_free(policy->default_allow_changes);
        strv_free(policy->env_allow);
        strv_free(policy->env_deny);
        strv_free(policy->env_set);
        strv_free(policy->workspace_roots);
        strv_free(policy->hidden_paths);
        strv_free(policy->read_only_paths);
        property_list_clear(&policy->properties);
        free(policy);
        return NULL;
}
