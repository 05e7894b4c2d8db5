/* SPDX-License-Identifier: Apache-2.0 */
/* What reads well and is likely not meant. Each is a sentence for the administrator; none stops a job. */

#include "core/policy.h"

#include "base/path.h"

/* Settings without which a job is less confined than one would expect. */
static const char *const expected_properties[] = { "PrivateUsers", "NoNewPrivileges", "CapabilityBoundingSet",
        "PrivateDevices", "PrivateIPC", "ProtectProc", "RestrictNamespaces", "RestrictAddressFamilies",
        "SystemCallFilter", "KeyringMode" };

/* CPU time by the timeout and cpu, the largest file by disk. */
static bool is_bounded_by_others(LimitKind kind)
{
        return kind == LIMIT_CPU_TIME || kind == LIMIT_FILE_SIZE;
}

static int lint_limits(const Policy *policy, char ***ret)
{
        int r = 0;

        for (size_t i = 0; i < _LIMIT_MAX && r == 0; i++) {
                const char *key = limit_table[i].key;
                uint64_t given = policy->default_limits.value[i], most = policy->max_limits.value[i];

                if (most == LIMIT_UNSET && !is_bounded_by_others((LimitKind) i))
                        r = strv_extendf(ret, "policy.max.limits.%s is missing: a job may ask for any value",
                                        key);
                else if (most != LIMIT_UNSET && given != LIMIT_UNSET && given > most)
                        r = strv_extendf(ret,
                                        "policy.default.limits.%s is over policy.max.limits.%s: jobs get the "
                                        "ceiling",
                                        key, key);
                if (r == 0 && most != LIMIT_UNSET && most < limit_table[i].floor)
                        r = strv_extendf(ret,
                                        "policy.max.limits.%s is less than a run itself needs: no job can be "
                                        "started",
                                        key);
        }
        if (r == 0 && policy->max_timeout_usec == UNKNOWN)
                r = strv_extend(ret, "policy.max.timeout_sec is missing: a job may ask for a week");
        else if (r == 0 && policy->default_timeout_usec != UNKNOWN &&
                        policy->default_timeout_usec > policy->max_timeout_usec)
                r = strv_extend(ret,
                                "policy.default.timeout_sec is over policy.max.timeout_sec: jobs get the "
                                "ceiling");
        return r;
}

static int lint_paths(const Policy *policy, char ***ret)
{
        char **roots = policy->workspace_roots, **hidden = policy->hidden_paths,
             **shown = policy->read_only_paths;
        int r = 0;

        for (size_t i = 0; hidden && hidden[i] && r == 0; i++) {
                for (size_t j = 0; roots && roots[j] && r == 0; j++)
                        if (path_is_within(roots[j], hidden[i]))
                                r = strv_extendf(ret,
                                                "policy.workspace_roots: %s lies in the hidden %s: no job "
                                                "can work there",
                                                roots[j], hidden[i]);
                for (size_t j = 0; shown && shown[j] && r == 0; j++)
                        if (path_is_within(shown[j], hidden[i]))
                                r = strv_extendf(ret, "policy.read_only_paths: %s lies in the hidden %s",
                                                shown[j], hidden[i]);
        }
        return r;
}

/* What is compared with them has no slash. */
static int lint_names(const Policy *policy, char ***ret)
{
        int r = 0;

        for (size_t i = 0; policy->deny_argv0 && policy->deny_argv0[i] && r == 0; i++)
                if (strchr(policy->deny_argv0[i], '/'))
                        r = strv_extendf(ret, "policy.deny_argv0: %s denies nothing: it has base names",
                                        policy->deny_argv0[i]);
        return r;
}

static int lint_sandbox(const Policy *policy, char ***ret)
{
        bool isolated = policy->postures & (1u << POSTURE_ISOLATED);
        int r = 0;

        for (size_t i = 0; i < ELEMENTSOF(expected_properties) && isolated && r == 0; i++)
                if (!property_list_find(&policy->properties, expected_properties[i]))
                        r = strv_extendf(ret,
                                        "policy.properties.%s is missing: \"extends\": \"default\" has it",
                                        expected_properties[i]);
        if (r == 0 && policy->exec.allow && !policy->exec.allow[0])
                r = strv_extend(ret, "policy.allow_exec is empty: no program can be started");
        return r;
}

int policy_lint(const Policy *policy, char ***ret)
{
        int r = lint_limits(policy, ret);

        if (r == 0)
                r = lint_paths(policy, ret);
        if (r == 0)
                r = lint_names(policy, ret);
        return r < 0 ? r : lint_sandbox(policy, ret);
}
