/* SPDX-License-Identifier: Apache-2.0 */
/* "expect" of a job file, read. It does not judge. */

#include "core/expect.h"

#include <arpa/inet.h>

#include "base/number.h"
#include "base/path.h"
#include "base/pattern.h"

#define HOST_NAME_LENGTH_MAX 253u
#define DURATION_MAX_MS      (JOB_TIMEOUT_MAX / USEC_PER_MSEC)

_Static_assert(JOB_PATTERN_MAX == PATTERN_MAX, "one limit for patterns");

/* --- streams --- */

static int read_pattern(const Reader *r, const JsonPath *at, const cJSON *value, void *target)
{
        Error reason = ERROR_INIT;
        int k = read_word(r, at, value, target);

        if (k < 0)
                return k;
        k = pattern_check(*(char **) target, &reason);
        return k == -EINVAL || k == -E2BIG ? read_fail(r, at, "%s", reason.text) : k;
}

static int read_json(_unused_ const Reader *r, _unused_ const JsonPath *at, const cJSON *value, void *target)
{
        cJSON **ret = target;

        *ret = cJSON_Duplicate(value, true);
        return *ret ? 0 : -ENOMEM;
}

static int read_stream(const Reader *r, const JsonPath *at, const cJSON *value, void *target)
{
        static const ReadRow rows[] = {
                { "equals", read_text, offsetof(ExpectStream, equals) },
                { "contains", read_word, offsetof(ExpectStream, contains) },
                { "matches", read_pattern, offsetof(ExpectStream, matches) },
                { "json", read_json, offsetof(ExpectStream, json) },
                { "sha256", read_sha256, offsetof(ExpectStream, sha256) },
        };

        if (cJSON_IsObject(value) && !value->child)
                return read_fail(r, at, "asks nothing: give equals, contains, matches, json or sha256");
        return read_object(r, at, value, rows, ELEMENTSOF(rows), NULL, target);
}

/* --- files --- */

static int read_exists(const Reader *r, const JsonPath *at, const cJSON *value, void *target)
{
        bool exists = false;
        int k = read_bool(r, at, value, &exists);

        *(int *) target = exists;
        return k;
}

static int read_file(const Reader *r, const JsonPath *at, const cJSON *value, ExpectFile *file)
{
        static const ReadRow rows[] = {
                { "exists", read_exists, offsetof(ExpectFile, exists) },
                { "equals", read_text, offsetof(ExpectFile, equals) },
                { "sha256", read_sha256, offsetof(ExpectFile, sha256) },
        };
        int k;

        *file = (ExpectFile){ .exists = -1 };
        k = path_normalise(at->key, &file->path);
        if (k == -ENOMEM)
                return k;
        if (k < 0 || streq(file->path, ".") || streq(file->path, "/"))
                return read_fail(r, at, "the key must be the path of a file, without \"..\"");
        k = read_object(r, at, value, rows, ELEMENTSOF(rows), NULL, file);
        if (k < 0)
                return k;
        if (file->exists < 0 && !file->equals && !file->sha256)
                return read_fail(r, at, "asks nothing: give exists, equals or sha256");
        if (file->exists == 0 && (file->equals || file->sha256))
                return read_fail(r, at, "a file that must not exist cannot have a content");
        return 0;
}

static int read_files(const Reader *r, const JsonPath *at, const cJSON *value, void *target)
{
        Expect *expect = target;
        const cJSON *member;

        if (!cJSON_IsObject(value))
                return read_fail_type(r, at, "an object such as {\"out.txt\": {\"exists\": true}}", value);
        expect->files = calloc((size_t) cJSON_GetArraySize(value) + 1, sizeof(ExpectFile));
        if (!expect->files)
                return -ENOMEM;
        cJSON_ArrayForEach(member, value)
        {
                JsonPath below = { .up = at, .key = member->string };
                int k = read_file(r, &below, member, &expect->files[expect->n_files++]);

                if (k < 0)
                        return k;
        }
        return 0;
}

/* --- sockets --- */

static int read_listen(const Reader *r, const JsonPath *at, const cJSON *value, void *target)
{
        JsonPath below = { .up = at };
        Expect *expect = target;
        const cJSON *item;

        if (!cJSON_IsArray(value))
                return read_fail_type(r, at, "a list of ports", value);
        expect->allow_listen = calloc((size_t) cJSON_GetArraySize(value) + 1, sizeof(uint16_t));
        if (!expect->allow_listen)
                return -ENOMEM;
        cJSON_ArrayForEach(item, value)
        {
                uint64_t port;
                int k = read_integer(r, &below, item, 1, UINT16_MAX, &port);

                if (k < 0)
                        return k;
                expect->allow_listen[expect->n_allow_listen++] = (uint16_t) port;
                below.index++;
        }
        return 0;
}

static bool network_is_valid(char *host)
{
        static const char name_characters[] =
                        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-_";
        char *slash = strchr(host, '/');
        struct in6_addr address;
        uint64_t prefix;
        int family;

        if (slash)
                *slash = '\0';
        family = inet_pton(AF_INET, host, &address) == 1    ? AF_INET
                 : inet_pton(AF_INET6, host, &address) == 1 ? AF_INET6
                                                            : AF_UNSPEC;
        if (slash)
                return family != AF_UNSPEC && parse_u64(slash + 1, &prefix) == 0 &&
                       prefix <= (family == AF_INET ? 32u : 128u);
        return family != AF_UNSPEC || (host[0] != '-' && strspn(host, name_characters) == strlen(host));
}

/* "host:port", "10.0.0.0/8:443", "[2001:db8::1]:443", "[2001:db8::/32]:443". */
static bool egress_is_valid(const char *text)
{
        const char *colon = strrchr(text, ':');
        char host[HOST_NAME_LENGTH_MAX + 1];
        uint64_t port;
        size_t length;

        if (!colon || parse_u64(colon + 1, &port) < 0 || port < 1 || port > UINT16_MAX)
                return false;
        length = (size_t) (colon - text);
        if (length >= 2 && text[0] == '[' && text[length - 1] == ']')
                text++, length -= 2;
        else if (memchr(text, ':', length))
                return false; /* IPv6 without brackets: where would the port begin? */
        if (length == 0 || length > HOST_NAME_LENGTH_MAX)
                return false;
        memcpy(host, text, length);
        host[length] = '\0';
        return network_is_valid(host);
}

static int read_egress_one(const Reader *r, const JsonPath *at, const cJSON *value, char **ret)
{
        int k = read_word(r, at, value, ret);

        if (k >= 0 && !egress_is_valid(*ret))
                return read_fail(r, at,
                                "\"%.80s\" is not \"host:port\": write \"example.org:443\", "
                                "\"10.0.0.0/8:53\" or \"[2001:db8::1]:443\"",
                                *ret);
        return k;
}

static int read_egress(const Reader *r, const JsonPath *at, const cJSON *value, void *target)
{
        return read_list(r, at, value, "a list of \"host-or-network:port\"", read_egress_one, target);
}

static int read_max_duration(const Reader *r, const JsonPath *at, const cJSON *value, void *target)
{
        uint64_t milliseconds = 0;
        int k = read_integer(r, at, value, 1, DURATION_MAX_MS, &milliseconds);

        *(uint64_t *) target = milliseconds * USEC_PER_MSEC;
        return k;
}

int expect_read(const Reader *r, const JsonPath *at, const cJSON *value, void *target)
{
        static const ReadRow rows[] = {
                { "stdout", read_stream, offsetof(Expect, out) },
                { "stderr", read_stream, offsetof(Expect, err) },
                { "files", read_files, 0 },
                { "max_duration_ms", read_max_duration, offsetof(Expect, max_duration_usec) },
                { "allow_leftovers", read_bool, offsetof(Expect, allow_leftovers) },
                { "allow_listen", read_listen, 0 },
                { "allow_egress", read_egress, offsetof(Expect, allow_egress) },
        };

        return read_object(r, at, value, rows, ELEMENTSOF(rows), NULL, target);
}

static void clear_stream(ExpectStream *stream)
{
        free(stream->equals);
        free(stream->contains);
        free(stream->matches);
        free(stream->sha256);
        cJSON_Delete(stream->json);
}

void expect_clear(Expect *expect)
{
        clear_stream(&expect->out);
        clear_stream(&expect->err);
        for (size_t i = 0; i < expect->n_files; i++) {
                free(expect->files[i].path);
                free(expect->files[i].equals);
                free(expect->files[i].sha256);
        }
        free(expect->files);
        free(expect->allow_listen);
        strv_free(expect->allow_egress);
        *expect = (Expect){ .max_duration_usec = UNKNOWN };
}
