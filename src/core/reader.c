/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of keys, single values and their sentences. Knows neither jobs nor policies. */

#include "core/reader.h"

#include <math.h>
#include <stdarg.h>

#include "base/number.h"
#include "base/path.h"

#define DURATION_MAX_SEC  1e12
#define NAME_COMPARED_MAX 64u

int read_fail(const Reader *r, const JsonPath *at, const char *format, ...)
{
        char what[ERROR_TEXT_MAX], where[JSON_PATH_MAX], place[32] = "";
        unsigned line;
        va_list ap;

        va_start(ap, format);
        (void) vsnprintf(what, sizeof(what), format, ap);
        va_end(ap);
        json_path_format(at, where);
        line = r->text ? json_locate(r->text, r->size, where) : 0;
        if (line > 0)
                (void) snprintf(place, sizeof(place), "line %u: ", line);
        return error_set(r->e, -EINVAL, "%s: %s%s%s%.200s: %s", r->file, place, r->root,
                        where[0] && where[0] != '[' ? "." : "", where, what);
}

int read_fail_type(const Reader *r, const JsonPath *at, const char *expected, const cJSON *value)
{
        return read_fail(r, at, "must be %s, is %s", expected, json_type_name(value));
}

/* Edits (insert, delete, replace, swap neighbours) from a to b; case counts as no edit. */
static size_t distance(const char *a, const char *b)
{
        size_t rows[3][NAME_COMPARED_MAX + 1], n = strlen(b);

        for (size_t j = 0; j <= n; j++)
                rows[0][j] = j;
        for (size_t i = 1; a[i - 1]; i++) {
                size_t *now = rows[i % 3], *last = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];

                now[0] = i;
                for (size_t j = 1; j <= n; j++) {
                        bool same = (a[i - 1] | 0x20) == (b[j - 1] | 0x20);

                        now[j] = MIN(last[j] + 1, now[j - 1] + 1);
                        now[j] = MIN(now[j], last[j - 1] + (same ? 0u : 1u));
                        if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                                now[j] = MIN(now[j], before[j - 2] + 1);
                }
        }
        return rows[strlen(a) % 3][n];
}

const char *read_nearest(const char *text, const char *const *names, size_t n)
{
        size_t best = 0, length = strlen(text);
        const char *nearest = NULL;

        if (length == 0 || length > NAME_COMPARED_MAX)
                return NULL;
        for (size_t i = 0; i < n; i++) {
                size_t d = distance(text, names[i]);

                /* "timeout" for "timeout_sec": the beginning of a name counts as near. */
                if (length >= 3 && (startswith(names[i], text) || startswith(text, names[i])))
                        d = MIN(d, (size_t) 1);
                if (d <= length / 3 + 1 && d < strlen(names[i]) && (!nearest || d < best))
                        nearest = names[i], best = d;
        }
        return nearest;
}

int read_fail_unknown(const Reader *r, const JsonPath *at, const ReadRow *rows, size_t n_rows)
{
        const char *names[64], *nearest;
        char list[512] = "";
        size_t used = 0;

        n_rows = MIN(n_rows, ELEMENTSOF(names));
        for (size_t i = 0; i < n_rows; i++) {
                names[i] = rows[i].key;
                if (used < sizeof(list))
                        used += (size_t) snprintf(list + used, sizeof(list) - used, "%s%s", i > 0 ? " " : "",
                                        rows[i].key);
        }
        nearest = read_nearest(at->key, names, n_rows);
        if (nearest)
                return read_fail(r, at, "unknown key (did you mean \"%s\"?)", nearest);
        return read_fail(r, at, "unknown key; known here: %s", list);
}

int read_object(const Reader *r, const JsonPath *at, const cJSON *value, const ReadRow *rows, size_t n_rows,
                ReadFunction other, void *target)
{
        const cJSON *member;

        if (!cJSON_IsObject(value))
                return read_fail_type(r, at, "an object", value);
        cJSON_ArrayForEach(member, value)
        {
                JsonPath below = { .up = at, .key = member->string };
                size_t i = 0;
                int k;

                while (i < n_rows && !streq(rows[i].key, member->string))
                        i++;
                if (i < n_rows)
                        k = rows[i].read(r, &below, member, (char *) target + rows[i].offset);
                else
                        k = other ? other(r, &below, member, target) : 0;
                if (k < 0)
                        return k;
                if (i == n_rows && k == 0)
                        return read_fail_unknown(r, &below, rows, n_rows);
        }
        return 0;
}

static int copy_string(const char *text, char **ret)
{
        char *copy = strdup(text);

        if (!copy)
                return -ENOMEM;
        free(*ret);
        *ret = copy;
        return 0;
}

int read_text(const Reader *r, const JsonPath *at, const cJSON *value, void *target)
{
        if (!cJSON_IsString(value))
                return read_fail_type(r, at, "a string", value);
        return copy_string(value->valuestring, target);
}

static int read_word_into(const Reader *r, const JsonPath *at, const cJSON *value, char **ret)
{
        if (!cJSON_IsString(value))
                return read_fail_type(r, at, "a string", value);
        if (!*value->valuestring)
                return read_fail(r, at, "must not be an empty string");
        return copy_string(value->valuestring, ret);
}

int read_word(const Reader *r, const JsonPath *at, const cJSON *value, void *target)
{
        return read_word_into(r, at, value, target);
}

int read_bool(const Reader *r, const JsonPath *at, const cJSON *value, void *target)
{
        if (!cJSON_IsBool(value))
                return read_fail_type(r, at, "true or false", value);
        *(bool *) target = cJSON_IsTrue(value);
        return 0;
}

int read_integer(const Reader *r, const JsonPath *at, const cJSON *value, uint64_t minimum, uint64_t maximum,
                uint64_t *ret)
{
        double d;

        if (!cJSON_IsNumber(value))
                return read_fail_type(r, at, "an integer", value);
        d = value->valuedouble;
        if (d != trunc(d))
                return read_fail(r, at, "must be an integer, is %g", d);
        if (d < (double) minimum || d > (double) maximum)
                return read_fail(r, at, "must be from %llu to %llu, is %.0f", (unsigned long long) minimum,
                                (unsigned long long) maximum, d);
        *ret = (uint64_t) d;
        return 0;
}

int read_choice(const Reader *r, const JsonPath *at, const cJSON *value, const char *const *names, size_t n)
{
        char list[256] = "";
        size_t used = 0;

        for (size_t i = 0; i < n; i++) {
                if (cJSON_IsString(value) && streq(value->valuestring, names[i]))
                        return (int) i;
                if (used < sizeof(list))
                        used += (size_t) snprintf(list + used, sizeof(list) - used, "%s\"%s\"",
                                        i > 0 ? " or " : "", names[i]);
        }
        if (!cJSON_IsString(value))
                return read_fail_type(r, at, list, value);
        return read_fail(r, at, "must be %s, is \"%.80s\"", list, value->valuestring);
}

int read_duration(const Reader *r, const JsonPath *at, const cJSON *value, void *target)
{
        double d;

        if (!cJSON_IsNumber(value))
                return read_fail_type(r, at, "a number above 0 (seconds)", value);
        d = value->valuedouble;
        if (!(d > 0) || d > DURATION_MAX_SEC)
                return read_fail(r, at, "must be a number above 0 (seconds), is %g", d);
        *(uint64_t *) target = MAX((uint64_t) llround(d * (double) USEC_PER_SEC), UINT64_C(1));
        return 0;
}

/* --- limits --- */

static int read_size(const Reader *r, const JsonPath *at, const cJSON *value, uint64_t *ret)
{
        int k;

        if (cJSON_IsNumber(value))
                return read_integer(r, at, value, 0, UINT64_C(1) << 53, ret);
        if (!cJSON_IsString(value))
                return read_fail_type(r, at, "bytes, such as 65536 or \"512M\", or null for no limit", value);
        k = parse_size(value->valuestring, ret);
        if (k == -ERANGE || (k == 0 && *ret > INT64_MAX))
                return read_fail(r, at, "\"%.40s\" is too large", value->valuestring);
        if (k < 0)
                return read_fail(r, at,
                                "\"%.40s\" is not a size: write bytes, or a whole number with K, M, G or T",
                                value->valuestring);
        return 0;
}

static int read_cpu(const Reader *r, const JsonPath *at, const cJSON *value, uint64_t *ret)
{
        if (!cJSON_IsString(value))
                return read_fail_type(r, at, "per cent of one CPU as a string, such as \"150%\"", value);
        if (parse_cpu_percent(value->valuestring, ret) < 0)
                return read_fail(r, at, "\"%.40s\" is not a share of CPU: write it as \"150%%\", above 0",
                                value->valuestring);
        return 0;
}

static int read_limit(const Reader *r, const JsonPath *at, const cJSON *value, LimitUnit unit, uint64_t *ret)
{
        if (cJSON_IsNull(value)) {
                *ret = LIMIT_UNLIMITED;
                return 0;
        }
        switch (unit) {
        case LIMIT_UNIT_BYTES:
                return read_size(r, at, value, ret);
        case LIMIT_UNIT_COUNT:
                return read_integer(r, at, value, 0, UINT64_C(1) << 53, ret);
        case LIMIT_UNIT_CPU_RATE:
                return read_cpu(r, at, value, ret);
        case LIMIT_UNIT_SECONDS:
                return read_duration(r, at, value, ret);
        }
        assert(false);
        return -EINVAL;
}

int read_limits(const Reader *r, const JsonPath *at, const cJSON *value, void *target)
{
        ReadRow rows[_LIMIT_MAX];
        Limits *limits = target;
        const cJSON *member;

        if (!cJSON_IsObject(value))
                return read_fail_type(r, at, "an object such as {\"memory\": \"512M\"}", value);
        for (size_t i = 0; i < _LIMIT_MAX; i++)
                rows[i] = (ReadRow){ .key = limit_table[i].key };
        cJSON_ArrayForEach(member, value)
        {
                JsonPath below = { .up = at, .key = member->string };
                LimitKind kind = limit_from_key(member->string);
                int k;

                if (kind < 0)
                        return read_fail_unknown(r, &below, rows, ELEMENTSOF(rows));
                k = read_limit(r, &below, member, limit_table[kind].unit, &limits->value[kind]);
                if (k < 0)
                        return k;
        }
        return 0;
}

/* --- lists of strings --- */

int read_list(const Reader *r, const JsonPath *at, const cJSON *value, const char *expected,
                ReadElement element, char ***ret)
{
        _cleanup_strv_ char **list = NULL;
        JsonPath below = { .up = at };
        const cJSON *item;

        if (!cJSON_IsArray(value))
                return read_fail_type(r, at, expected, value);
        list = strv_new((size_t) cJSON_GetArraySize(value));
        if (!list)
                return -ENOMEM;
        cJSON_ArrayForEach(item, value)
        {
                int k = element(r, &below, item, &list[below.index]);

                if (k < 0)
                        return k;
                below.index++;
        }
        strv_free(*ret);
        *ret = TAKE_PTR(list);
        return 0;
}

int read_words(const Reader *r, const JsonPath *at, const cJSON *value, void *target)
{
        return read_list(r, at, value, "a list of strings", read_word_into, target);
}

bool env_name_is_valid(const char *name)
{
        static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";
        size_t first = strspn(name, letters);

        return first > 0 &&
               name[first + strspn(name + first, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_"
                                                 "0123456789")] == '\0';
}

static int fail_env_name(const Reader *r, const JsonPath *at, const char *name)
{
        return read_fail(r, at,
                        "\"%.80s\" is not the name of an environment variable: letters, digits and _, "
                        "no digit first",
                        name);
}

static int read_env_name(const Reader *r, const JsonPath *at, const cJSON *value, char **ret)
{
        if (!cJSON_IsString(value))
                return read_fail_type(r, at, "a string", value);
        if (!env_name_is_valid(value->valuestring))
                return fail_env_name(r, at, value->valuestring);
        return copy_string(value->valuestring, ret);
}

int read_env_names(const Reader *r, const JsonPath *at, const cJSON *value, void *target)
{
        return read_list(r, at, value, "a list of names such as [\"PATH\", \"HOME\"]", read_env_name, target);
}

int read_env_values(const Reader *r, const JsonPath *at, const cJSON *value, void *target)
{
        _cleanup_strv_ char **list = NULL;
        char ***ret = target;
        const cJSON *member;
        size_t n = 0;

        if (!cJSON_IsObject(value))
                return read_fail_type(r, at, "an object of strings", value);
        list = strv_new((size_t) cJSON_GetArraySize(value));
        if (!list)
                return -ENOMEM;
        cJSON_ArrayForEach(member, value)
        {
                JsonPath below = { .up = at, .key = member->string };

                if (!env_name_is_valid(member->string))
                        return fail_env_name(r, &below, member->string);
                if (!cJSON_IsString(member))
                        return read_fail_type(r, &below, "a string", member);
                list[n] = text_printf("%s=%s", member->string, member->valuestring);
                if (!list[n++])
                        return -ENOMEM;
        }
        strv_free(*ret);
        *ret = TAKE_PTR(list);
        return 0;
}

/* --- paths --- */

int read_path(const Reader *r, const JsonPath *at, const cJSON *value, char **ret)
{
        char *path = NULL;
        int k;

        if (!cJSON_IsString(value))
                return read_fail_type(r, at, "a path (a string)", value);
        k = path_normalise(value->valuestring, &path);
        if (k == -EINVAL)
                return read_fail(r, at,
                                *value->valuestring ? "must not contain \"..\": write the path without it"
                                                    : "must not be an empty string");
        if (k == -ENAMETOOLONG)
                return read_fail(r, at, "is longer than a path or a file name can be (4095 and 255 bytes)");
        if (k < 0)
                return k;
        free(*ret);
        *ret = path;
        return 0;
}

int read_absolute(const Reader *r, const JsonPath *at, const cJSON *value, void *target)
{
        if (!cJSON_IsString(value))
                return read_fail_type(r, at, "an absolute path (a string)", value);
        if (value->valuestring[0] != '/')
                return read_fail(r, at, "must be an absolute path (begin with /), is \"%.80s\"",
                                value->valuestring);
        return copy_string(value->valuestring, target);
}

static int read_absolute_normalised(const Reader *r, const JsonPath *at, const cJSON *value, char **ret)
{
        int k = read_path(r, at, value, ret);

        if (k >= 0 && **ret != '/')
                return read_fail(r, at, "must be an absolute path (begin with /), is \"%.80s\"", *ret);
        return k;
}

int read_absolutes(const Reader *r, const JsonPath *at, const cJSON *value, void *target)
{
        return read_list(r, at, value, "a list of absolute paths", read_absolute_normalised, target);
}

int read_change_paths(const Reader *r, const JsonPath *at, const cJSON *value, void *target)
{
        return read_list(r, at, value, "a list of paths", read_path, target);
}

int read_sha256(const Reader *r, const JsonPath *at, const cJSON *value, void *target)
{
        char *text;
        int k;

        if (!cJSON_IsString(value) || strlen(value->valuestring) != 64 ||
                        value->valuestring[strspn(value->valuestring, "0123456789abcdefABCDEF")] != '\0')
                return read_fail(r, at, "must be a SHA-256 digest: 64 hexadecimal digits");
        k = copy_string(value->valuestring, target);
        if (k < 0)
                return k;
        for (text = *(char **) target; *text; text++)
                if (*text >= 'A' && *text <= 'F')
                        *text = (char) (*text | 0x20);
        return 0;
}
