/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/copy.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "sys/file.h"

#define NAMES_MAX KIB(64)
#define VALUE_MAX KIB(64)

int copy_data(int src_fd, int dst_fd)
{
        char buffer[KIB(64)];

        for (;;) {
                ssize_t n = copy_file_range(src_fd, NULL, dst_fd, NULL, (size_t) MIB(64), 0);

                if (n == 0)
                        break; /* also what /proc files say: read on below until they end */
                if (n < 0)
                        break;
        }
        for (;;) {
                ssize_t n = read(src_fd, buffer, sizeof(buffer));
                int r;

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return n < 0 ? -errno : 0;
                r = write_all(dst_fd, buffer, (size_t) n);
                if (r < 0)
                        return r;
        }
}

/* Attributes of the user name space only; the destination may not have them. */
int copy_xattrs(int src_fd, int dst_fd)
{
        _cleanup_free_ char *names = malloc(NAMES_MAX), *value = malloc(VALUE_MAX);
        ssize_t n;

        if (!names || !value)
                return -ENOMEM;
        n = flistxattr(src_fd, names, NAMES_MAX);
        if (n < 0)
                return errno == EOPNOTSUPP ? 0 : -errno;
        for (const char *name = names; name < names + n; name += strlen(name) + 1) {
                ssize_t size;

                if (!startswith(name, "user."))
                        continue;
                size = fgetxattr(src_fd, name, value, VALUE_MAX);
                if (size >= 0 && fsetxattr(dst_fd, name, value, (size_t) size, 0) < 0 && errno != EOPNOTSUPP)
                        return -errno;
        }
        return 0;
}

static int set_owner(int dir_fd, const char *name, const struct stat *st, const CopyOwner *owner)
{
        uid_t uid = st->st_uid == owner->from_uid ? owner->to_uid : st->st_uid;
        gid_t gid = st->st_gid == owner->from_gid ? owner->to_gid : st->st_gid;

        return fchownat(dir_fd, name, uid, gid, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

static int set_times(int dir_fd, const char *name, const struct stat *st)
{
        struct timespec times[2] = { st->st_atim, st->st_mtim };

        return utimensat(dir_fd, name, times, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

static int copy_regular(int src_dir, int dst_dir, const char *name, const struct stat *st)
{
        _cleanup_close_ int src = openat(src_dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC),
                            dst = -EBADF;
        struct stat opened;
        int r;

        if (src < 0 || fstat(src, &opened) < 0)
                return -errno;
        if (!S_ISREG(opened.st_mode))
                return -ESTALE; /* changed under our hands */
        dst = openat(dst_dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (dst < 0)
                return -errno;
        r = copy_data(src, dst);
        if (r == 0)
                r = copy_xattrs(src, dst);
        if (r == 0 && fchmod(dst, st->st_mode & 07777) < 0)
                r = -errno;
        return r;
}

static int copy_symlink(int src_dir, int dst_dir, const char *name)
{
        char target[4096];
        ssize_t n = readlinkat(src_dir, name, target, sizeof(target) - 1);

        if (n < 0)
                return -errno;
        target[n] = '\0';
        return symlinkat(target, dst_dir, name) < 0 ? -errno : 0;
}

static int copy_directory(int src_dir, int dst_dir, const CopyOwner *owner, unsigned depth, Error *e);

static int copy_subdirectory(int src_dir, int dst_dir, const char *name, const struct stat *st,
                const CopyOwner *owner, unsigned depth, Error *e)
{
        _cleanup_close_ int src = openat(src_dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC),
                            dst = -EBADF;
        int r;

        if (src < 0 || mkdirat(dst_dir, name, 0700) < 0)
                return -errno;
        dst = openat(dst_dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (dst < 0)
                return -errno;
        r = copy_directory(src, dst, owner, depth + 1, e);
        if (r == 0)
                r = copy_xattrs(src, dst);
        if (r == 0 && fchmod(dst, st->st_mode & 07777) < 0)
                r = -errno;
        return r;
}

static int copy_entry(
                int src_dir, int dst_dir, const char *name, const CopyOwner *owner, unsigned depth, Error *e)
{
        struct stat st;
        int r = 0;

        if (fstatat(src_dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return -errno;
        if (S_ISREG(st.st_mode))
                r = copy_regular(src_dir, dst_dir, name, &st);
        else if (S_ISDIR(st.st_mode))
                r = copy_subdirectory(src_dir, dst_dir, name, &st, owner, depth, e);
        else if (S_ISLNK(st.st_mode))
                r = copy_symlink(src_dir, dst_dir, name);
        else if (mknodat(dst_dir, name, st.st_mode, st.st_rdev) < 0)
                r = -errno;
        /* The owner last: chown(2) clears setuid, and what is not ours could not be written any more. */
        if (r == 0)
                r = set_owner(dst_dir, name, &st, owner);
        if (r == 0 && !S_ISLNK(st.st_mode) && fchmodat(dst_dir, name, st.st_mode & 07777, 0) < 0)
                r = -errno;
        if (r == 0)
                r = set_times(dst_dir, name, &st);
        return r;
}

static int copy_directory(int src_dir, int dst_dir, const CopyOwner *owner, unsigned depth, Error *e)
{
        int copy = fcntl(src_dir, F_DUPFD_CLOEXEC, 0), r = 0;
        struct dirent *entry;
        DIR *dir;

        if (depth > COPY_DEPTH_MAX)
                r = -ELOOP;
        dir = copy < 0 ? NULL : fdopendir(copy);
        if (!dir)
                return -errno;
        while (r == 0 && (errno = 0, entry = readdir(dir))) {
                if (streq(entry->d_name, ".") || streq(entry->d_name, ".."))
                        continue;
                r = copy_entry(src_dir, dst_dir, entry->d_name, owner, depth, e);
                if (r == -ENOENT)
                        r = 0; /* removed between the listing and the copy */
                else if (r < 0 && e && e->text[0])
                        error_prefix(e, r, "%s", entry->d_name);
                else if (r < 0)
                        error_errno(e, r, "%s", entry->d_name);
        }
        if (r == 0 && errno != 0)
                r = -errno;
        (void) closedir(dir);
        return r;
}

int copy_tree(int src_fd, int dst_fd, const CopyOwner *owner, Error *e)
{
        return copy_directory(src_fd, dst_fd, owner, 0, e);
}
