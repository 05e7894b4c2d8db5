/* SPDX-License-Identifier: Apache-2.0 */
/* Lexical work on paths: no descriptor, no link, no current directory. */

#include "base/path.h"

#include <limits.h>

#include "base/text.h"

int path_normalise(const char *path, char **ret)
{
        _cleanup_free_ char *out = NULL;
        size_t length, used = 0;

        if (!*path)
                return -EINVAL;
        if (strlen(path) >= PATH_MAX)
                return -ENAMETOOLONG;
        out = malloc(strlen(path) + 2);
        if (!out)
                return -ENOMEM;
        if (*path == '/')
                out[used++] = '/';
        for (const char *p = path; *p; p += length) {
                p += strspn(p, "/");
                length = strcspn(p, "/");
                if (length > NAME_MAX)
                        return -ENAMETOOLONG;
                if (length == 2 && p[0] == '.' && p[1] == '.')
                        return -EINVAL;
                if (length == 0 || (length == 1 && p[0] == '.'))
                        continue;
                if (used > 0 && out[used - 1] != '/')
                        out[used++] = '/';
                memcpy(out + used, p, length);
                used += length;
        }
        if (used == 0)
                out[used++] = '.';
        out[used] = '\0';
        *ret = TAKE_PTR(out);
        return 0;
}

const char *path_below(const char *path, const char *directory)
{
        const char *rest = startswith(path, directory);

        if (!rest)
                return NULL;
        if (!*rest || streq(directory, "/"))
                return rest;
        return *rest == '/' ? rest + 1 : NULL;
}

bool path_is_within(const char *path, const char *directory)
{
        return path_below(path, directory) != NULL;
}

char *path_join(const char *directory, const char *name)
{
        if (*name == '/')
                return strdup(name);
        return text_printf("%s%s%s", directory, streq(directory, "/") ? "" : "/", name);
}

int path_compare(const char *a, const char *b)
{
        while (*a && *a == *b)
                a++, b++;
        if (*a == *b)
                return 0;
        /* The end comes before the slash, the slash before every other byte. */
        if (!*a || !*b)
                return *a ? 1 : -1;
        if (*a == '/' || *b == '/')
                return *a == '/' ? -1 : 1;
        return (uint8_t) *a < (uint8_t) *b ? -1 : 1;
}
