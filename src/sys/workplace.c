/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/workplace.h"

#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/openat2.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>

#include "sys/copy.h"
#include "sys/file.h"

#define COPY_SIZE   KIB(64)
#define ACL_XATTR   "system.posix_acl_access"
#define NAME_DIGITS 32

struct Workplace {
        int top_fd, staging_fd;
        uid_t uid;
        gid_t gid;
        char staging[NAME_MAX + 1];
};

/* setfsuid(2) takes the capabilities that override permissions with it. For root nothing changes. */
static void as_owner(const Workplace *place)
{
        (void) setfsgid(place->gid);
        (void) setfsuid(place->uid);
}

static int as_root(int r)
{
        int saved = errno;

        (void) setfsuid(geteuid());
        (void) setfsgid(getegid());
        errno = saved;
        return r;
}

static int open_beneath(int dir_fd, const char *path, int flags)
{
        const struct open_how how = {
                .flags = (uint64_t) (unsigned) flags | O_NOFOLLOW | O_CLOEXEC,
                .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV,
        };
        int fd = (int) syscall(SYS_openat2, dir_fd, path, &how, sizeof(how));

        return fd < 0 ? -errno : fd;
}

/* --- opening --- */

Workplace *workplace_free(Workplace *place)
{
        if (!place)
                return NULL;
        safe_close(place->staging_fd);
        safe_close(place->top_fd);
        free(place);
        return NULL;
}

int workplace_open(const char *path, const char *run_id, Workplace **ret, Error *e)
{
        const struct open_how how = {
                .flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
                .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
        };
        _cleanup_(workplace_freep) Workplace *place = calloc(1, sizeof(*place));
        struct stat st;

        if (!place)
                return -ENOMEM;
        place->staging_fd = -EBADF;
        (void) snprintf(place->staging, sizeof(place->staging), APPLY_STAGING "%.40s", run_id);
        place->top_fd = (int) syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
        if (place->top_fd < 0)
                return errno == ELOOP ? error_set(e, -ELOOP, "%s: has become a link, or lies behind one",
                                                        path)
                                      : error_errno(e, -errno, "the workspace %s", path);
        if (fstat(place->top_fd, &st) < 0)
                return error_errno(e, -errno, "%s", path);
        place->uid = st.st_uid;
        place->gid = st.st_gid;
        /* Root's further groups would remain when its rights are laid down. */
        if (place->uid != 0 && setgroups(0, NULL) < 0)
                return error_errno(e, -errno, "setgroups");
        *ret = TAKE_PTR(place);
        return 0;
}

int workplace_sync(const Workplace *place)
{
        return syncfs(place->top_fd) < 0 ? -errno : 0;
}

/* The directory in which path lies. *ret_name: its last component. */
static int open_parent(const Workplace *place, const char *path, const char **ret_name)
{
        const char *slash = strrchr(path, '/');
        char parent[PATH_MAX];

        *ret_name = slash ? slash + 1 : path;
        if (strlen(path) >= sizeof(parent) || !**ret_name || streq(*ret_name, ".") || streq(*ret_name, ".."))
                return -EINVAL;
        (void) snprintf(parent, sizeof(parent), "%.*s", slash ? (int) (slash - path) : 1, slash ? path : ".");
        return open_beneath(place->top_fd, parent, O_PATH | O_DIRECTORY);
}

int workplace_sync_above(const Workplace *place, const char *path)
{
        _cleanup_close_ int fd = -EBADF, dir_fd = -EBADF;
        const char *name;

        dir_fd = open_parent(place, path, &name);
        if (dir_fd < 0) /* gone with what was in it */
                return dir_fd == -ENOENT || dir_fd == -ENOTDIR ? 0 : dir_fd;
        fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return fd < 0 || fsync(fd) < 0 ? -errno : 0;
}

/* --- looking --- */

void work_look_clear(WorkLook *look)
{
        free(look->node.target);
        *look = (WorkLook){ 0 };
}

static int node_type_of(mode_t mode, FileType *ret)
{
        static const struct {
                mode_t mode;
                FileType type;
        } types[] = {
                { S_IFREG, FILE_REGULAR },
                { S_IFDIR, FILE_DIRECTORY },
                { S_IFLNK, FILE_SYMLINK },
                { S_IFIFO, FILE_FIFO },
                { S_IFSOCK, FILE_SOCKET },
                { S_IFCHR, FILE_CHAR },
                { S_IFBLK, FILE_BLOCK },
        };

        for (size_t i = 0; i < ELEMENTSOF(types); i++)
                if ((mode & S_IFMT) == types[i].mode) {
                        *ret = types[i].type;
                        return 0;
                }
        return -EINVAL;
}

static bool same_file(const struct stat *a, const struct stat *b)
{
        return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
               (a->st_mode & S_IFMT) == (b->st_mode & S_IFMT) && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
               a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* A regular file's content; never of anything else. */
static int read_digest(int dir_fd, const char *name, const struct stat *st, char sha256[static HASH_HEX_MAX])
{
        _cleanup_close_ int fd =
                        openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        struct stat opened;
        int r;

        if (fd < 0 || fstat(fd, &opened) < 0)
                return -errno;
        if (!S_ISREG(opened.st_mode) || !same_file(st, &opened))
                return -ESTALE;
        r = file_hash(fd, (uint64_t) st->st_size, sha256);
        if (r < 0 || fstat(fd, &opened) < 0)
                return r < 0 ? r : -errno;
        return same_file(st, &opened) ? 0 : -ESTALE;
}

static int read_target(int dir_fd, const char *name, char **ret)
{
        char target[PATH_MAX];
        ssize_t n = readlinkat(dir_fd, name, target, sizeof(target) - 1);

        if (n < 0)
                return -errno;
        target[n] = '\0';
        *ret = strdup(target);
        return *ret ? 0 : -ENOMEM;
}

static bool is_as_large(const ApplyNode *wanted, const struct stat *st)
{
        return wanted && wanted->exists && wanted->type == FILE_REGULAR && *wanted->sha256 &&
               wanted->size == (uint64_t) st->st_size;
}

static int look_at(int dir_fd, const char *name, const ApplyNode *wanted, const ApplyNode *or_wanted,
                WorkLook *ret)
{
        struct stat st;
        int r;

        if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return errno == ENOENT ? 0 : -errno;
        ret->device = st.st_dev;
        ret->inode = st.st_ino;
        ret->modified = st.st_mtim;
        ret->node = (ApplyNode){
                .exists = true,
                .mode = st.st_mode & 07777,
                .uid = st.st_uid,
                .gid = st.st_gid,
                .size = S_ISREG(st.st_mode) ? (uint64_t) st.st_size : UNKNOWN,
        };
        r = node_type_of(st.st_mode, &ret->node.type);
        if (r == 0 && S_ISLNK(st.st_mode))
                r = read_target(dir_fd, name, &ret->node.target);
        if (r == 0 && S_ISREG(st.st_mode) && (is_as_large(wanted, &st) || is_as_large(or_wanted, &st)))
                r = read_digest(dir_fd, name, &st, ret->node.sha256);
        return r;
}

int workplace_look(const Workplace *place, const char *path, const ApplyNode *wanted,
                const ApplyNode *or_wanted, WorkLook *ret)
{
        _cleanup_close_ int dir_fd = -EBADF;
        const char *name;

        *ret = (WorkLook){ 0 };
        dir_fd = open_parent(place, path, &name);
        if (dir_fd == -ENOENT || dir_fd == -ENOTDIR)
                return 0;
        if (dir_fd < 0)
                return dir_fd;
        ret->above = true;
        return look_at(dir_fd, name, wanted, or_wanted, ret);
}

static const char *staged_name(size_t number, char name[static NAME_DIGITS])
{
        (void) snprintf(name, NAME_DIGITS, "%zu", number);
        return name;
}

int workplace_look_staged(const Workplace *place, size_t number, const ApplyNode *wanted,
                const ApplyNode *or_wanted, WorkLook *ret)
{
        char name[NAME_DIGITS];

        *ret = (WorkLook){ .above = place->staging_fd >= 0 };
        return ret->above ? look_at(place->staging_fd, staged_name(number, name), wanted, or_wanted, ret) : 0;
}

bool workplace_is_staged(const Workplace *place, size_t number, const WorkLook *look)
{
        WorkLook staged;
        bool same = workplace_look_staged(place, number, NULL, NULL, &staged) == 0 && staged.node.exists &&
                    staged.node.type == look->node.type && staged.device == look->device &&
                    staged.inode == look->inode && staged.node.size == look->node.size &&
                    staged.modified.tv_sec == look->modified.tv_sec &&
                    staged.modified.tv_nsec == look->modified.tv_nsec;

        work_look_clear(&staged);
        return same;
}

int workplace_list(const Workplace *place, const char *path, char ***ret)
{
        int fd = open_beneath(place->top_fd, path, O_RDONLY | O_DIRECTORY), r = 0;
        struct dirent *entry;
        DIR *dir;

        if (fd < 0)
                return fd;
        dir = fdopendir(fd);
        if (!dir) {
                safe_close(fd);
                return -errno;
        }
        while (r == 0 && (entry = readdir(dir)))
                if (!streq(entry->d_name, ".") && !streq(entry->d_name, ".."))
                        r = strv_extend(ret, entry->d_name);
        (void) closedir(dir);
        return r;
}

int workplace_read(const Workplace *place, const char *path, size_t max, char **ret, size_t *ret_size)
{
        _cleanup_close_ int fd = open_beneath(place->top_fd, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);

        return fd < 0 ? fd : file_read_fd(fd, max, ret, ret_size);
}

/* --- staging --- */

static int open_staging(Workplace *place)
{
        place->staging_fd = safe_close(place->staging_fd);
        place->staging_fd = open_beneath(place->top_fd, place->staging, O_RDONLY | O_DIRECTORY);
        return place->staging_fd < 0 ? place->staging_fd : 0;
}

/* NFS and FAT cannot. */
static int try_exchange(const Workplace *place)
{
        int r = file_create_at(place->staging_fd, "a", "", 0, 0600);

        if (r == 0)
                r = file_create_at(place->staging_fd, "b", "", 0, 0600);
        if (r == 0 && renameat2(place->staging_fd, "a", place->staging_fd, "b", RENAME_EXCHANGE) < 0)
                r = -errno;
        (void) unlinkat(place->staging_fd, "a", 0);
        (void) unlinkat(place->staging_fd, "b", 0);
        return r;
}

int workplace_stage_begin(Workplace *place, Error *e)
{
        int r;

        as_owner(place);
        r = as_root(mkdirat(place->top_fd, place->staging, 0700) < 0 ? -errno : 0);
        if (r == -EEXIST)
                return error_set(e, r, "%s is there already in the workspace and is not qscope's: remove it",
                                place->staging);
        if (r == -EACCES)
                return error_set(e, r, "the workspace's owner may not write to it");
        if (r == 0)
                r = open_staging(place);
        if (r < 0)
                return error_errno(e, r, "%s in the workspace", place->staging);
        as_owner(place);
        r = as_root(try_exchange(place));
        if (r == -EINVAL)
                return error_set(e, r,
                                "the workspace's file system cannot exchange two files in one step (renameat2(2)), so a "
                                "crash could lose one");
        return r < 0 ? error_errno(e, r, "the workspace") : 0;
}

int workplace_stage_open(Workplace *place)
{
        return open_staging(place);
}

int workplace_stage_end(Workplace *place)
{
        int r;

        place->staging_fd = safe_close(place->staging_fd);
        as_owner(place);
        r = remove_tree_at(place->top_fd, place->staging);
        return as_root(r);
}

static int copy_verified(int from, int to, const ApplyNode *node)
{
        _cleanup_free_ uint8_t *buffer = malloc(COPY_SIZE);
        char sha256[HASH_HEX_MAX];
        Hash hash;

        if (!buffer)
                return -ENOMEM;
        hash_init(&hash);
        for (;;) {
                ssize_t n = read(from, buffer, COPY_SIZE);
                int r;

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0) {
                        hash_finish(&hash, sha256);
                        return n < 0 ? -errno : streq(sha256, node->sha256) ? 0 : -EBADMSG;
                }
                hash_update(&hash, buffer, (size_t) n);
                r = write_all(to, buffer, (size_t) n);
                if (r < 0)
                        return r;
        }
}

/* user.* and the access list stay with the path. Where they cannot be carried the file is none the worse. */
static int carry_attributes(int old_fd, int fd)
{
        char value[KIB(4)];
        ssize_t n = fgetxattr(old_fd, ACL_XATTR, value, sizeof(value));

        if (n > 0)
                (void) fsetxattr(fd, ACL_XATTR, value, (size_t) n, 0);
        return copy_xattrs(old_fd, fd);
}

int workplace_stage_file(Workplace *place, size_t number, int content_fd, const ApplyNode *node,
                unsigned mode, const char *old, bool sync)
{
        _cleanup_close_ int fd = -EBADF, old_fd = -EBADF;
        char name[NAME_DIGITS];
        int r;

        if (old)
                old_fd = open_beneath(place->top_fd, old, O_RDONLY | O_NONBLOCK | O_NOCTTY);
        as_owner(place);
        fd = as_root(openat(place->staging_fd, staged_name(number, name),
                        O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
        if (fd < 0)
                return -errno;
        r = copy_verified(content_fd, fd, node);
        if (r == 0 && old_fd >= 0)
                r = carry_attributes(old_fd, fd);
        as_owner(place);
        if (r == 0 && fchmod(fd, mode) < 0)
                r = -errno;
        (void) as_root(0);
        return r == 0 && sync && fsync(fd) < 0 ? -errno : r;
}

int workplace_stage_link(Workplace *place, size_t number, const char *target)
{
        char name[NAME_DIGITS];

        as_owner(place);
        return as_root(symlinkat(target, place->staging_fd, staged_name(number, name)) < 0 ? -errno : 0);
}

int workplace_stage_name(Workplace *place, size_t number, size_t first)
{
        char name[NAME_DIGITS], first_name[NAME_DIGITS];

        as_owner(place);
        return as_root(linkat(place->staging_fd, staged_name(first, first_name), place->staging_fd,
                                       staged_name(number, name), 0) < 0
                                        ? -errno
                                        : 0);
}

int workplace_unstage(Workplace *place, size_t number)
{
        char name[NAME_DIGITS];

        as_owner(place);
        return as_root(unlinkat(place->staging_fd, staged_name(number, name), 0) < 0 && errno != ENOENT
                                        ? -errno
                                        : 0);
}

/* --- changing --- */

static int change_mode(int dir_fd, const char *name, unsigned mode)
{
        _cleanup_close_ int fd = openat(dir_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        char path[64];
        struct stat st;

        if (fd < 0 || fstat(fd, &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
                return -ESTALE;
        (void) snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        return chmod(path, mode) < 0 ? -errno : 0;
}

/* mkdir(2) knows the sticky bit at most. */
static int make_directory(int dir_fd, const char *name, unsigned mode)
{
        int r = mkdirat(dir_fd, name, mode) < 0 ? -errno : change_mode(dir_fd, name, mode);

        return r;
}

static int act(Workplace *place, WorkAction action, int dir_fd, const char *name, size_t number,
                unsigned mode)
{
        char staged[NAME_DIGITS];
        int stage = place->staging_fd, r = -EINVAL;

        (void) staged_name(number, staged);
        switch (action) {
        case WORK_TAKE:
                r = renameat2(dir_fd, name, stage, staged, RENAME_NOREPLACE);
                break;
        case WORK_GIVE:
                r = renameat2(stage, staged, dir_fd, name, RENAME_NOREPLACE);
                break;
        case WORK_EXCHANGE:
                r = renameat2(stage, staged, dir_fd, name, RENAME_EXCHANGE);
                break;
        case WORK_MKDIR:
                return make_directory(dir_fd, name, mode);
        case WORK_RMDIR:
                r = unlinkat(dir_fd, name, AT_REMOVEDIR);
                break;
        case WORK_CHMOD:
                return change_mode(dir_fd, name, mode);
        }
        return r < 0 ? -errno : 0;
}

int workplace_do(Workplace *place, WorkAction action, const char *path, size_t number, unsigned mode)
{
        _cleanup_close_ int dir_fd = -EBADF;
        const char *name;

        as_owner(place);
        dir_fd = open_parent(place, path, &name);
        return as_root(dir_fd < 0 ? dir_fd : act(place, action, dir_fd, name, number, mode));
}
