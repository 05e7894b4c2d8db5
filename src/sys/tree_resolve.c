/* SPDX-License-Identifier: Apache-2.0 */
/* Where a path leads, link by link. The kernel cannot be asked: a link that leads out of the workspace means
 * a place in the job's root, not in this process's, and what it means is text. */
#include "sys/tree.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/path.h"

#define LINKS_FOLLOWED_MAX 40 /* as the kernel, path_resolution(7) */

typedef struct Resolver {
        int top_fd;
        const char *prefix, *alias;
        char done[PATH_MAX]; /* absolute, has no link left; "" is "/" */
        char rest[PATH_MAX]; /* still to be followed */
        unsigned links;
} Resolver;

/* A link's target at done, or a negative errno. */
static ssize_t read_link(const Resolver *r, char *target, size_t size)
{
        const struct open_how how = {
                .flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
                .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS,
        };
        const char *below = path_below(r->done, r->prefix);
        _cleanup_close_ int fd = -EBADF;
        ssize_t n;

        if (!below || !*below)
                return -EINVAL;
        fd = (int) syscall(SYS_openat2, r->top_fd, below, &how, sizeof(how));
        if (fd < 0)
                return -errno;
        n = readlinkat(fd, "", target, size - 1);
        if (n <= 0)
                return n < 0 ? -errno : -EINVAL;
        target[n] = '\0';
        return n;
}

/* Copies text into one of the resolver's buffers. */
static int put(char buffer[static PATH_MAX], char *text)
{
        size_t size = text ? strlen(text) + 1 : 0;
        int r = !text ? -ENOMEM : size > PATH_MAX ? -ENAMETOOLONG : 0;

        if (r == 0)
                memcpy(buffer, text, size);
        free(text);
        return r;
}

/* Another way to the top is the top. */
static int unalias(Resolver *r)
{
        const char *below = r->alias ? path_below(r->done, r->alias) : NULL;

        return below ? put(r->done, text_printf("%s%s%s", r->prefix, *below ? "/" : "", below)) : 0;
}

/* 1: there is a new name at the end of done. */
static int add_name(Resolver *r, const char *name, size_t length)
{
        int k;

        if (length == 0 || (length == 1 && name[0] == '.'))
                return 0;
        if (length == 2 && name[0] == '.' && name[1] == '.') {
                char *slash = strrchr(r->done, '/');

                if (slash)
                        *slash = '\0';
                return 0;
        }
        k = put(r->done, text_printf("%s/%.*s", r->done, (int) length, name));
        if (k == 0)
                k = unalias(r);
        return k < 0 ? k : 1;
}

/* Goes on at the target of the link at done. */
static int follow(Resolver *r, const char *target)
{
        if (++r->links > LINKS_FOLLOWED_MAX)
                return -ELOOP;
        if (*target == '/')
                r->done[0] = '\0';
        else
                *strrchr(r->done, '/') = '\0';
        return put(r->rest, text_printf("%s/%s", target, r->rest));
}

static int step(Resolver *r)
{
        size_t length = strcspn(r->rest, "/");
        const char *next = r->rest + length + (r->rest[length] == '/');
        char target[PATH_MAX] = "";
        int k = add_name(r, r->rest, length);

        memmove(r->rest, next, strlen(next) + 1);
        if (k <= 0)
                return k;
        return read_link(r, target, sizeof(target)) > 0 ? follow(r, target) : 0;
}

int tree_resolve(int top_fd, const char *prefix, const char *alias, const char *path, char **ret)
{
        _cleanup_free_ Resolver *r = calloc(1, sizeof(*r));
        int k = 0;

        *ret = NULL;
        if (!r)
                return -ENOMEM;
        r->top_fd = top_fd;
        r->prefix = prefix;
        r->alias = alias;
        if (strlen(path) >= sizeof(r->rest))
                return 0;
        memcpy(r->rest, path, strlen(path) + 1);
        while (k == 0 && *r->rest)
                k = step(r);
        if (k == -ENOMEM)
                return k;
        if (k < 0 || streq(*r->done ? r->done : "/", path))
                return 0;
        *ret = strdup(*r->done ? r->done : "/");
        return *ret ? 0 : -ENOMEM;
}
