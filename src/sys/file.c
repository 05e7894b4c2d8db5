/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/text.h"

#define READ_CHUNK KIB(64)

static int read_whole(int fd, size_t max, char **ret, size_t *ret_size)
{
        _cleanup_free_ char *data = NULL;
        size_t size = 0, room = 0;

        for (;;) {
                ssize_t n;

                if (room - size < READ_CHUNK + 1) {
                        char *larger = realloc(data, size + READ_CHUNK * 4);

                        if (!larger)
                                return -ENOMEM;
                        data = larger;
                        room = size + READ_CHUNK * 4;
                }
                n = read(fd, data + size, READ_CHUNK);
                if (n < 0) {
                        if (errno == EINTR)
                                continue;
                        return -errno;
                }
                if (n == 0)
                        break;
                size += (size_t) n;
                if (size > max)
                        return -EFBIG;
        }
        data[size] = '\0';
        *ret = TAKE_PTR(data);
        *ret_size = size;
        return 0;
}

static int open_regular(const char *path, Error *e)
{
        _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        struct stat st;

        if (fd < 0)
                return error_errno(e, -errno, "%s: cannot be opened", path);
        if (fstat(fd, &st) < 0)
                return error_errno(e, -errno, "%s", path);
        if (S_ISDIR(st.st_mode))
                return error_set(e, -EISDIR, "%s: is a directory, a file is wanted", path);
        if (!S_ISREG(st.st_mode))
                return error_set(e, -EINVAL,
                                "%s: is not a regular file (for a pipe, pass \"-\" and redirect it)", path);
        return TAKE_FD(fd);
}

int file_read_fd(int fd, size_t max, char **ret, size_t *ret_size)
{
        struct stat st;

        if (fstat(fd, &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode))
                return S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL;
        return (uint64_t) st.st_size > max ? -EFBIG : read_whole(fd, max, ret, ret_size);
}

/* A pipe is nobody's. */
static bool is_own(int fd)
{
        struct stat st;

        return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (st.st_uid == 0 || st.st_uid == geteuid()) &&
               (st.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

int file_read(const char *path, size_t max, char **ret, size_t *ret_size, Error *e)
{
        return file_read_own(path, max, ret, ret_size, NULL, e);
}

int file_read_own(const char *path, size_t max, char **ret, size_t *ret_size, bool *ret_own, Error *e)
{
        _cleanup_close_ int opened = -EBADF;
        int fd = STDIN_FILENO, r;

        if (!streq(path, "-")) {
                fd = opened = open_regular(path, e);
                if (fd < 0)
                        return fd;
        }
        if (ret_own)
                *ret_own = is_own(fd);
        r = read_whole(fd, max, ret, ret_size);
        if (r == -EFBIG)
                return error_set(e, r, "%s: is larger than %zu KiB, the most that is read", path, max / 1024);
        if (r < 0)
                return error_errno(e, r, "%s: cannot be read", path);
        return 0;
}

int file_read_at(int dir_fd, const char *path, char *buffer, size_t size)
{
        _cleanup_close_ int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
        size_t used = 0;

        if (fd < 0)
                return -errno;
        while (used < size) {
                ssize_t n = read(fd, buffer + used, size - used);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                if (n == 0)
                        break;
                used += (size_t) n;
        }
        if (used == size)
                return -EMSGSIZE;
        if (used > 0 && buffer[used - 1] == '\n')
                used--;
        buffer[used] = '\0';
        return 0;
}

int file_hash(int fd, uint64_t size, char sha256[static HASH_HEX_MAX])
{
        _cleanup_free_ uint8_t *buffer = malloc(READ_CHUNK);
        Hash hash;

        if (!buffer)
                return -ENOMEM;
        hash_init(&hash);
        /* Never more than was asked for: the file may be growing. */
        while (size > 0) {
                ssize_t n = read(fd, buffer, MIN(size, (uint64_t) READ_CHUNK));

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return n < 0 ? -errno : -EPIPE;
                hash_update(&hash, buffer, (size_t) n);
                size -= (uint64_t) n;
        }
        hash_finish(&hash, sha256);
        return 0;
}

int write_all(int fd, const void *data, size_t size)
{
        const char *p = data;

        while (size > 0) {
                ssize_t n = write(fd, p, size);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                p += n;
                size -= (size_t) n;
        }
        return 0;
}

int file_write_at(int dir_fd, const char *path, const char *text)
{
        _cleanup_close_ int fd = openat(dir_fd, path, O_WRONLY | O_CLOEXEC | O_NOCTTY);

        if (fd < 0)
                return -errno;
        return write_all(fd, text, strlen(text));
}

int file_create_at(int dir_fd, const char *path, const void *data, size_t size, unsigned mode)
{
        _cleanup_close_ int fd =
                        openat(dir_fd, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
        int r;

        if (fd < 0)
                return -errno;
        if (fchmod(fd, mode) < 0)
                return -errno;
        r = write_all(fd, data, size);
        if (r < 0)
                (void) unlinkat(dir_fd, path, 0);
        return r;
}

int file_replace_at(int dir_fd, const char *name, const void *data, size_t size)
{
        _cleanup_free_ char *hidden = text_printf(".%s.new", name);
        _cleanup_close_ int fd = -EBADF;
        int r;

        if (!hidden)
                return -ENOMEM;
        fd = openat(dir_fd, hidden, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0)
                return -errno;
        r = write_all(fd, data, size);
        if (r == 0 && (fsync(fd) < 0 || renameat(dir_fd, hidden, dir_fd, name) < 0))
                r = -errno;
        if (r < 0)
                (void) unlinkat(dir_fd, hidden, 0);
        return r == 0 && fsync(dir_fd) < 0 ? -errno : r;
}

int mkdir_parents_at(int dir_fd, const char *path, unsigned mode, uid_t uid, gid_t gid, char ***made)
{
        _cleanup_free_ char *copy = strdup(path);
        int r;

        if (!copy)
                return -ENOMEM;
        for (char *p = copy;; p++) {
                char saved;

                p += strspn(p, "/");
                if (*p == '\0')
                        return 0;
                p += strcspn(p, "/");
                saved = *p;
                *p = '\0';
                if (mkdirat(dir_fd, copy, mode) >= 0) {
                        if (fchownat(dir_fd, copy, uid, gid, AT_SYMLINK_NOFOLLOW) < 0 ||
                                        fchmodat(dir_fd, copy, mode, 0) < 0)
                                return -errno;
                        if (made) {
                                r = strv_extend(made, copy);
                                if (r < 0)
                                        return r;
                        }
                } else if (errno != EEXIST) {
                        return -errno;
                }
                *p = saved;
                if (saved == '\0')
                        return 0;
        }
}

/* Depth is bounded by what qscope itself made there; a job's own files lie in the layer, which goes away with
 * its mount. */
static int remove_entries(int fd, dev_t dev)
{
        _cleanup_close_ int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
        struct dirent *entry;
        DIR *dir;
        int r = 0;

        if (copy < 0)
                return -errno;
        dir = fdopendir(copy);
        if (!dir)
                return -errno;
        TAKE_FD(copy);
        while (r == 0 && (entry = readdir(dir))) {
                struct stat st;

                if (streq(entry->d_name, ".") || streq(entry->d_name, ".."))
                        continue;
                if (fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                        r = -errno;
                else if (st.st_dev != dev)
                        r = -EBUSY;
                else if (S_ISDIR(st.st_mode))
                        r = remove_tree_at(fd, entry->d_name);
                else if (unlinkat(fd, entry->d_name, 0) < 0)
                        r = -errno;
        }
        (void) closedir(dir);
        return r;
}

int remove_tree_at(int dir_fd, const char *name)
{
        _cleanup_close_ int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        struct stat st;
        int r;

        if (fd < 0)
                return errno == ENOENT ? 0 : -errno;
        if (fstat(fd, &st) < 0)
                return -errno;
        r = remove_entries(fd, st.st_dev);
        if (r < 0)
                return r;
        if (unlinkat(dir_fd, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
                return -errno;
        return 0;
}
