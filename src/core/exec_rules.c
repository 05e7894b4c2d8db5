/* SPDX-License-Identifier: Apache-2.0 */
#include "core/exec_rules.h"

#include <fnmatch.h>

#define DIGEST        "sha256:"
#define DIGEST_DIGITS 64u

/* A directory at the top that is a link to the one of that name in /usr (file-hierarchy(7)). */
static bool is_merged(const char *rule)
{
        return startswith(rule, "/bin/") || startswith(rule, "/sbin/") || startswith(rule, "/lib");
}

static bool matches_path(const char *rule, const char *path)
{
        const char *below = startswith(path, "/usr");

        return fnmatch(rule, path, FNM_PATHNAME) == 0 ||
               (below && is_merged(rule) && fnmatch(rule, below, FNM_PATHNAME) == 0);
}

static bool matches_name(const char *rule, const char *path)
{
        const char *slash = strrchr(path, '/');

        return fnmatch(rule, slash ? slash + 1 : path, 0) == 0;
}

static bool rule_matches(const char *rule, const char *path, const char *sha256)
{
        const char *digest = startswith(rule, DIGEST);

        if (digest)
                return sha256 && streq(digest, sha256);
        return path && (*rule == '/' ? matches_path(rule, path) : matches_name(rule, path));
}

static const char *find(char *const *rules, const char *path, const char *sha256)
{
        for (size_t i = 0; rules && rules[i]; i++)
                if (rule_matches(rules[i], path, sha256))
                        return rules[i];
        return NULL;
}

static bool has_digest(char *const *rules)
{
        for (size_t i = 0; rules && rules[i]; i++)
                if (startswith(rules[i], DIGEST))
                        return true;
        return false;
}

ExecAnswer exec_rules_match(const ExecRules *rules, const ExecAsked *asked, const char **ret_rule)
{
        *ret_rule = find(rules->deny, asked->path, asked->sha256);
        if (!*ret_rule)
                *ret_rule = find(rules->deny, asked->called, NULL);
        if (*ret_rule)
                return EXEC_DENIED;
        if (!asked->sha256 && has_digest(rules->deny))
                return EXEC_NEEDS_HASH;
        if (!rules->allow)
                return EXEC_ALLOWED;
        *ret_rule = find(rules->allow, asked->path, asked->sha256);
        if (*ret_rule)
                return EXEC_ALLOWED;
        return !asked->sha256 && has_digest(rules->allow) ? EXEC_NEEDS_HASH : EXEC_DENIED;
}

bool exec_rules_are_empty(const ExecRules *rules)
{
        return !rules->allow && (!rules->deny || !rules->deny[0]);
}

/* --- reading --- */

static int read_digest(const Reader *r, const JsonPath *at, const char *text, char **ret)
{
        const char *digits = text + STRLEN(DIGEST);

        if (strlen(digits) != DIGEST_DIGITS || strspn(digits, "0123456789abcdefABCDEF") != DIGEST_DIGITS)
                return read_fail(r, at, "\"%.90s\": " DIGEST " is followed by 64 hexadecimal digits", text);
        *ret = strdup(text);
        if (!*ret)
                return -ENOMEM;
        for (char *p = *ret + STRLEN(DIGEST); *p; p++)
                if (*p >= 'A' && *p <= 'F')
                        *p = (char) (*p | 0x20);
        return 0;
}

static int read_rule(const Reader *r, const JsonPath *at, const cJSON *value, char **ret)
{
        const char *text = value->valuestring;

        if (!cJSON_IsString(value))
                return read_fail_type(r, at, "a name, an absolute path or \"" DIGEST "…\"", value);
        if (startswith(text, DIGEST))
                return read_digest(r, at, text, ret);
        if (*text == '/')
                return read_path(r, at, value, ret);
        if (!*text || strchr(text, '/') || startswith(text, "sha256"))
                return read_fail(r, at,
                                "\"%.80s\" is neither a base name, nor an absolute path, nor " DIGEST
                                " and 64 hexadecimal digits",
                                text);
        *ret = strdup(text);
        return *ret ? 0 : -ENOMEM;
}

int exec_rules_read(const Reader *r, const JsonPath *at, const cJSON *value, void *target)
{
        if (cJSON_IsArray(value) && cJSON_GetArraySize(value) > (int) EXEC_RULES_MAX)
                return read_fail(r, at, "has %d rules, at most %u are allowed", cJSON_GetArraySize(value),
                                EXEC_RULES_MAX);
        return read_list(r, at, value, "a list of names, absolute paths and digests", read_rule, target);
}
