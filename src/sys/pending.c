/* SPDX-License-Identifier: Apache-2.0 */

/* The file that appears only when complete: an unnamed file (O_TMPFILE, open(2)) where the file system has
 * them, so that a killed qscope leaves nothing; else a hidden name. */

#include "sys/file.h"

#include <fcntl.h>
#include <libgen.h>
#include <sys/stat.h>

#include "base/text.h"

#define NAMES_MAX 100000u

struct PendingFile {
        char *directory, *name;
        char *temporary; /* the hidden name; NULL: the file has none */
        int dir_fd, fd;
};

PendingFile *pending_file_free(PendingFile *file)
{
        if (!file)
                return NULL;
        if (file->temporary)
                (void) unlinkat(file->dir_fd, file->temporary, 0);
        safe_close(file->fd);
        safe_close(file->dir_fd);
        free(file->directory);
        free(file->name);
        free(file->temporary);
        free(file);
        return NULL;
}

static int split(const char *path, PendingFile *file)
{
        _cleanup_free_ char *a = strdup(path), *b = strdup(path);

        if (!a || !b)
                return -ENOMEM;
        file->directory = strdup(dirname(a));
        file->name = strdup(basename(b));
        if (!file->directory || !file->name)
                return -ENOMEM;
        if (*path == '\0' || path[strlen(path) - 1] == '/' || streq(file->name, ".") ||
                        streq(file->name, ".."))
                return -EISDIR;
        return 0;
}

static int open_temporary(PendingFile *file)
{
        file->fd = openat(file->dir_fd, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0644);
        if (file->fd >= 0)
                return 0;
        if (!(errno == EOPNOTSUPP || errno == EISDIR || errno == ENOENT || errno == EINVAL))
                return -errno;
        file->temporary = text_printf(".%.200s.%ld.partial", file->name, (long) getpid());
        if (!file->temporary)
                return -ENOMEM;
        file->fd = openat(file->dir_fd, file->temporary, O_CREAT | O_EXCL | O_NOFOLLOW | O_WRONLY | O_CLOEXEC,
                        0644);
        if (file->fd < 0) {
                int r = -errno;

                free(TAKE_PTR(file->temporary));
                return r;
        }
        return 0;
}

int pending_file_open(const char *path, PendingFile **ret, Error *e)
{
        _cleanup_(pending_file_freep) PendingFile *file = calloc(1, sizeof(*file));
        struct stat st;
        int r;

        if (!file)
                return -ENOMEM;
        file->fd = file->dir_fd = -EBADF;
        r = split(path, file);
        if (r < 0)
                return error_errno(e, r, "%s: a file's name is wanted", path);
        file->dir_fd = open(file->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (file->dir_fd < 0)
                return error_errno(e, -errno, "%s: its directory %s cannot be opened", path, file->directory);
        r = fstatat(file->dir_fd, file->name, &st, AT_SYMLINK_NOFOLLOW);
        if (r < 0 && errno != ENOENT)
                return error_errno(e, -errno, "%s", path);
        if (r >= 0 && !S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode))
                return error_set(e, -EEXIST,
                                "%s: exists and is not a regular file; give another name, or \"-\"", path);
        r = open_temporary(file);
        if (r < 0)
                return error_errno(e, r, "%s: no file can be made in %s", path, file->directory);
        *ret = TAKE_PTR(file);
        return 0;
}

/* Gives the file a name that no file has. -EEXIST when one has it. */
static int give_name(PendingFile *file, const char *name)
{
        char link[sizeof("/proc/self/fd/") + 16];

        if (file->temporary) {
                if (renameat2(file->dir_fd, file->temporary, file->dir_fd, name, RENAME_NOREPLACE) >= 0) {
                        free(TAKE_PTR(file->temporary));
                        return 0;
                }
                /* File systems without RENAME_NOREPLACE: link(2) refuses an existing name as well. */
                if (errno != EINVAL || linkat(file->dir_fd, file->temporary, file->dir_fd, name, 0) < 0)
                        return -errno;
                return 0;
        }
        (void) snprintf(link, sizeof(link), "/proc/self/fd/%d", file->fd);
        return linkat(AT_FDCWD, link, file->dir_fd, name, AT_SYMLINK_FOLLOW) < 0 ? -errno : 0;
}

/* NAME, then NAME.2, NAME.3 … with the number before ".json". */
static char *numbered(const char *name, unsigned n)
{
        if (n < 2)
                return strdup(name);
        if (!has_suffix(name, ".json"))
                return text_printf("%s.%u", name, n);
        return text_printf("%.*s.%u.json", (int) (strlen(name) - STRLEN(".json")), name, n);
}

/* Moves what has the name aside, to the first free NAME.~N~ (the numbered backups of cp(1) and mv(1)). */
static int keep_older(PendingFile *file)
{
        for (unsigned n = 1; n < NAMES_MAX; n++) {
                _cleanup_free_ char *aside = text_printf("%s.~%u~", file->name, n);

                if (!aside)
                        return -ENOMEM;
                if (renameat2(file->dir_fd, file->name, file->dir_fd, aside, RENAME_NOREPLACE) >= 0)
                        return 0;
                if (errno == ENOENT)
                        return 0;
                if (errno != EEXIST)
                        return -errno;
        }
        return -EEXIST;
}

static int name_kept(PendingFile *file, char **ret_name)
{
        int r;

        *ret_name = strdup(file->name);
        if (!*ret_name)
                return -ENOMEM;
        do {
                r = give_name(file, file->name);
                if (r == -EEXIST) {
                        r = keep_older(file);
                        if (r == 0)
                                r = -EAGAIN;
                }
        } while (r == -EAGAIN);
        return r;
}

static int name_numbered(PendingFile *file, char **ret_name)
{
        for (unsigned n = 1; n < NAMES_MAX; n++) {
                _cleanup_free_ char *name = numbered(file->name, n);
                int r;

                if (!name)
                        return -ENOMEM;
                r = give_name(file, name);
                if (r == -EEXIST)
                        continue;
                if (r == 0)
                        *ret_name = TAKE_PTR(name);
                return r;
        }
        return -EEXIST;
}

int pending_file_commit(
                PendingFile *file, const void *data, size_t size, bool keep, char **ret_path, Error *e)
{
        _cleanup_free_ char *name = NULL;
        int r = write_all(file->fd, data, size);

        if (r == 0 && fsync(file->fd) < 0)
                r = -errno;
        if (r == 0)
                r = keep ? name_kept(file, &name) : name_numbered(file, &name);
        if (r < 0)
                return error_errno(e, r, "%s/%s: cannot be written", file->directory, file->name);
        (void) fsync(file->dir_fd);
        *ret_path = streq(file->directory, ".") ? TAKE_PTR(name)
                                                : text_printf("%s/%s", file->directory, name);
        return *ret_path ? 0 : -ENOMEM;
}
