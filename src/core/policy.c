/* SPDX-License-Identifier: Apache-2.0 */
/* The policy file and its drop-ins. Each text is first checked by itself, so that sentences have its name and
 * line; then the merged document is read. Opens no file; compares no job. */

#include "core/policy.h"

#include "base/hash.h"
#include "core/reader.h"

/* --- keys that are refused rather than ignored: what a policy demands must hold --- */

static int refuse_unsupported(
                const Reader *r, const JsonPath *at, _unused_ const cJSON *value, _unused_ void *target)
{
        return read_fail(r, at,
                        "is not supported by this version of qscope: remove it, or use a version that does");
}

static int read_root(const Reader *r, const JsonPath *at, const cJSON *value, void *target)
{
        if (!cJSON_IsString(value))
                return read_fail_type(r, at, "a string", value);
        return streq(value->valuestring, "host") ? 0 : refuse_unsupported(r, at, value, target);
}

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

static int read_networks(const Reader *r, const JsonPath *at, const cJSON *value, void *target)
{
        return read_bits(r, at, value, network_names, _NETWORK_MAX, target);
}

static int read_postures(const Reader *r, const JsonPath *at, const cJSON *value, void *target)
{
        return read_bits(r, at, value, posture_names, _POSTURE_MAX, target);
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
                { "workspace", refuse_unsupported, 0 },
                { "expected_exit", refuse_unsupported, 0 },
                { "env_allowlist", refuse_unsupported, 0 },
                { "env", refuse_unsupported, 0 },
                { "network", refuse_unsupported, 0 },
                { "posture", refuse_unsupported, 0 },
                { "expect", refuse_unsupported, 0 },
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
        { "extends", refuse_unsupported, 0 },
        { "deny_argv0", read_words, offsetof(Policy, deny_argv0) },
        { "deny_exec", refuse_unsupported, 0 },
        { "allow_exec", refuse_unsupported, 0 },
        { "default", read_default, 0 },
        { "max", read_max, 0 },
        { "env", read_env, 0 },
        { "network", read_networks, offsetof(Policy, networks) },
        { "posture", read_postures, offsetof(Policy, postures) },
        { "workspace_roots", read_absolutes, offsetof(Policy, workspace_roots) },
        { "root", read_root, 0 },
        { "read_only_paths", read_absolutes, offsetof(Policy, read_only_paths) },
        { "hidden_paths", read_absolutes, offsetof(Policy, hidden_paths) },
        { "scratch_writes", read_scratch_writes, offsetof(Policy, scratch_writes) },
        { "require", refuse_unsupported, 0 },
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

/* Objects merge key by key, anything else replaces. */
static int merge(cJSON *into, const cJSON *from)
{
        const cJSON *member;

        cJSON_ArrayForEach(member, from)
        {
                cJSON *old = cJSON_GetObjectItemCaseSensitive(into, member->string);
                int r;

                if (cJSON_IsObject(old) && cJSON_IsObject(member)) {
                        r = merge(old, member);
                } else {
                        cJSON_DeleteItemFromObjectCaseSensitive(into, member->string);
                        r = json_add(into, member->string, cJSON_Duplicate(member, true));
                }
                if (r < 0)
                        return r;
        }
        return 0;
}

/* Parses and checks one text, and merges it into *document. */
static int add_text(const PolicyText *text, cJSON *document, Error *e)
{
        const Reader r = {
                .file = text->name, .root = "policy", .text = text->text, .size = text->size, .e = e
        };
        _cleanup_(cJSON_Deletep) cJSON *one = NULL;
        _cleanup_(policy_freep) Policy *checked = NULL;
        int k;

        if (text->size > POLICY_FILE_MAX)
                return error_set(e, -EINVAL, "%s: is larger than %u bytes (1 MiB)", text->name,
                                (unsigned) POLICY_FILE_MAX);
        k = json_parse(text->text, text->size, JSON_COMMENTS, text->name, &one, e);
        if (k < 0)
                return k;
        k = read_policy(&r, one, &checked);
        return k < 0 ? k : merge(document, one);
}

/* What holds for the whole only. */
static int finish(const Reader *r, const cJSON *document, Policy *policy)
{
        static const char *const usual[] = { "PATH", "HOME", "LANG", "LC_ALL", "TERM" };
        const JsonPath root = { .up = NULL };
        _cleanup_free_ char *text = NULL;

        if (!policy->name)
                return read_fail(r, &root, "name is missing");
        for (size_t i = 0; !json_get(json_get(document, "env"), "allow") && i < ELEMENTSOF(usual); i++)
                if (strv_extend(&policy->env_allow, usual[i]) < 0)
                        return -ENOMEM;
        text = json_print_canonical(document);
        if (!text)
                return -ENOMEM;
        hash_data(text, strlen(text), policy->sha256);
        return 0;
}

int policy_parse(const PolicyText *texts, size_t n_texts, Policy **ret, Error *e)
{
        const Reader r = { .file = n_texts > 0 ? texts[0].name : "policy", .root = "policy", .e = e };
        _cleanup_(cJSON_Deletep) cJSON *document = cJSON_CreateObject();
        _cleanup_(policy_freep) Policy *policy = NULL;
        int k = document ? 0 : -ENOMEM;

        for (size_t i = 0; i < n_texts && k >= 0; i++)
                k = add_text(&texts[i], document, e);
        if (k >= 0)
                k = read_policy(&r, document, &policy);
        if (k >= 0)
                k = finish(&r, document, policy);
        if (k == -ENOMEM)
                return error_set(e, k, "%s: out of memory", r.file);
        if (k < 0)
                return k;
        *ret = TAKE_PTR(policy);
        return 0;
}

Policy *policy_free(Policy *policy)
{
        if (!policy)
                return NULL;
        free(policy->name);
        free(policy->description);
        strv_free(policy->deny_argv0);
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
