/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/tree_node.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/xattr.h>

#include "sys/tree.h"

#define XATTR_NAMES_MAX KIB(64)
#define XATTR_VALUE_MAX KIB(64)

int name_list_read(NameList *list, int dir_fd)
{
        int copy = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        struct dirent *entry;
        DIR *dir = copy < 0 ? NULL : fdopendir(copy);
        int r = 0;

        if (!dir)
                return -errno;
        while (r == 0 && (errno = 0, entry = readdir(dir))) {
                if (streq(entry->d_name, ".") || streq(entry->d_name, ".."))
                        continue;
                if (list->n == list->room) {
                        size_t room = list->room ? list->room * 2 : 32;
                        char **larger = reallocarray(list->items, room, sizeof(char *));

                        if (!larger) {
                                r = -ENOMEM;
                                break;
                        }
                        list->items = larger;
                        list->room = room;
                }
                list->items[list->n] = strdup(entry->d_name);
                if (!list->items[list->n])
                        r = -ENOMEM;
                else
                        list->n++;
        }
        if (r == 0 && errno != 0)
                r = -errno;
        (void) closedir(dir);
        return r;
}

static int compare_names(const void *a, const void *b)
{
        return strcmp(*(char *const *) a, *(char *const *) b);
}

void name_list_sort(NameList *list)
{
        size_t kept = 0;

        if (list->n == 0)
                return;
        qsort(list->items, list->n, sizeof(char *), compare_names);
        for (size_t i = 1; i < list->n; i++) {
                if (streq(list->items[kept], list->items[i]))
                        free(list->items[i]);
                else
                        list->items[++kept] = list->items[i];
        }
        list->n = kept + 1;
}

void name_list_clear(NameList *list)
{
        for (size_t i = 0; i < list->n; i++)
                free(list->items[i]);
        free(list->items);
        *list = (NameList){ 0 };
}

static FileType type_of(mode_t mode)
{
        switch (mode & S_IFMT) {
        case S_IFDIR:
                return FILE_DIRECTORY;
        case S_IFLNK:
                return FILE_SYMLINK;
        case S_IFIFO:
                return FILE_FIFO;
        case S_IFSOCK:
                return FILE_SOCKET;
        case S_IFCHR:
                return FILE_CHAR;
        case S_IFBLK:
                return FILE_BLOCK;
        default:
                return FILE_REGULAR;
        }
}

static int read_target(int dir_fd, const char *name, char **ret)
{
        char target[4096];
        ssize_t n = readlinkat(dir_fd, name, target, sizeof(target) - 1);

        if (n < 0)
                return -errno;
        target[n] = '\0';
        *ret = strdup(target);
        return *ret ? 0 : -ENOMEM;
}

/* What is named is opened only if it is a regular file, and looked at again once it is open. */
static int open_regular(int dir_fd, const char *name, int *ret_fd)
{
        _cleanup_close_ int fd =
                        openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        struct stat st;

        if (fd < 0 || fstat(fd, &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode))
                return -ESTALE;
        *ret_fd = TAKE_FD(fd);
        return 0;
}

static int hash_open_file(int fd, char sha256[static HASH_HEX_MAX])
{
        uint8_t buffer[KIB(64)];
        Hash h;

        hash_init(&h);
        for (;;) {
                ssize_t n = read(fd, buffer, sizeof(buffer));

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                if (n == 0)
                        break;
                hash_update(&h, buffer, (size_t) n);
        }
        hash_finish(&h, sha256);
        return 0;
}

int node_hash(int dir_fd, const char *name, char sha256[static HASH_HEX_MAX])
{
        _cleanup_close_ int fd = -EBADF;
        int r = open_regular(dir_fd, name, &fd);

        return r < 0 ? r : hash_open_file(fd, sha256);
}

int node_read(int dir_fd, const char *name, const struct stat *st, bool hash, FileNode *ret)
{
        *ret = (FileNode){
                .type = type_of(st->st_mode),
                .mode = st->st_mode & 07777,
                .uid = st->st_uid,
                .gid = st->st_gid,
                .size = S_ISREG(st->st_mode) ? (uint64_t) st->st_size : UNKNOWN,
        };
        if (ret->type == FILE_SYMLINK)
                return read_target(dir_fd, name, &ret->target);
        if (ret->type == FILE_REGULAR && hash)
                return node_hash(dir_fd, name, ret->sha256);
        return 0;
}

/* Digest of the attributes a job can set or lose: user.*, file capabilities, access lists. */
static int xattr_digest(int fd, char digest[static HASH_HEX_MAX])
{
        _cleanup_(name_list_clear) NameList list = { 0 };
        _cleanup_free_ char *names = malloc(XATTR_NAMES_MAX), *value = malloc(XATTR_VALUE_MAX);
        ssize_t n;
        Hash h;

        if (!names || !value)
                return -ENOMEM;
        hash_init(&h);
        n = flistxattr(fd, names, XATTR_NAMES_MAX);
        if (n < 0 && errno != EOPNOTSUPP)
                return -errno;
        list.items = n > 0 ? calloc((size_t) n, sizeof(char *)) : NULL;
        if (n > 0 && !list.items)
                return -ENOMEM;
        for (const char *name = names; n > 0 && list.items && name < names + n; name += strlen(name) + 1) {
                if (!startswith(name, "user.") && !streq(name, "security.capability") &&
                                !startswith(name, "system.posix_acl_"))
                        continue;
                list.items[list.n] = strdup(name);
                if (!list.items[list.n])
                        return -ENOMEM;
                list.n++;
        }
        name_list_sort(&list);
        for (size_t i = 0; i < list.n; i++) {
                ssize_t size = fgetxattr(fd, list.items[i], value, XATTR_VALUE_MAX);

                hash_update(&h, list.items[i], strlen(list.items[i]) + 1);
                if (size < 0)
                        return -errno;
                hash_update(&h, value, (size_t) size);
        }
        hash_finish(&h, digest);
        return 0;
}

static int compare_xattrs(int before_fd, int after_fd, unsigned *what)
{
        char before[HASH_HEX_MAX], after[HASH_HEX_MAX];
        int r = xattr_digest(before_fd, before);

        if (r == 0)
                r = xattr_digest(after_fd, after);
        if (r == 0 && !streq(before, after))
                *what |= CHANGED_XATTR;
        return r;
}

/* Same size is not same content, whatever the times say. */
static int compare_content(int before_fd, int after_fd, const struct stat *before, const struct stat *after,
                unsigned *what)
{
        uint8_t a[KIB(64)], b[KIB(64)];

        if (before->st_size != after->st_size) {
                *what |= CHANGED_CONTENT;
                return 0;
        }
        for (off_t at = 0; at < before->st_size;) {
                size_t want = (size_t) MIN((off_t) sizeof(a), before->st_size - at);
                ssize_t n = pread(before_fd, a, want, at), m = pread(after_fd, b, want, at);

                if (n < 0 || m < 0)
                        return -errno;
                if (n != m || memcmp(a, b, (size_t) n) != 0) {
                        *what |= CHANGED_CONTENT;
                        return 0;
                }
                if (n == 0)
                        return 0;
                at += n;
        }
        return 0;
}

static int compare_regular(int before_dir, int after_dir, const char *name, const struct stat *before,
                const struct stat *after, unsigned *what)
{
        _cleanup_close_ int before_fd = -EBADF, after_fd = -EBADF;
        int r = open_regular(before_dir, name, &before_fd);

        if (r == 0)
                r = open_regular(after_dir, name, &after_fd);
        if (r == 0)
                r = compare_xattrs(before_fd, after_fd, what);
        return r < 0 ? r : compare_content(before_fd, after_fd, before, after, what);
}

static int compare_directories(int before_dir, int after_dir, const char *name, unsigned *what)
{
        _cleanup_close_ int before_fd = openat(before_dir, name,
                                            O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC),
                            after_fd = openat(
                                            after_dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

        if (before_fd < 0 || after_fd < 0)
                return -errno;
        return compare_xattrs(before_fd, after_fd, what);
}

static int compare_targets(int before_dir, int after_dir, const char *name, unsigned *what)
{
        _cleanup_free_ char *before = NULL, *after = NULL;
        int r = read_target(before_dir, name, &before);

        if (r == 0)
                r = read_target(after_dir, name, &after);
        if (r == 0 && !streq_ptr(before, after))
                *what |= CHANGED_CONTENT;
        return r;
}

int node_compare(int before_dir, int after_dir, const char *name, const struct stat *before,
                const struct stat *after, unsigned *ret_what)
{
        unsigned what = 0;
        int r = 0;

        if ((before->st_mode & 07777) != (after->st_mode & 07777) && !S_ISLNK(after->st_mode))
                what |= CHANGED_MODE;
        if (before->st_uid != after->st_uid || before->st_gid != after->st_gid)
                what |= CHANGED_OWNER;
        if ((before->st_mode & S_IFMT) != (after->st_mode & S_IFMT))
                what |= CHANGED_TYPE;
        else if (S_ISREG(after->st_mode))
                r = compare_regular(before_dir, after_dir, name, before, after, &what);
        else if (S_ISDIR(after->st_mode))
                r = compare_directories(before_dir, after_dir, name, &what);
        else if (S_ISLNK(after->st_mode))
                r = compare_targets(before_dir, after_dir, name, &what);
        else if ((S_ISCHR(after->st_mode) || S_ISBLK(after->st_mode)) && before->st_rdev != after->st_rdev)
                what |= CHANGED_CONTENT;
        *ret_what = what;
        return r;
}

int tree_file(int dir_fd, const char *path, bool *ret_exists, char sha256[static HASH_HEX_MAX])
{
        _cleanup_free_ char *copy = strdup(path);
        _cleanup_close_ int at = fcntl(dir_fd, F_DUPFD_CLOEXEC, 0);
        struct stat st;
        char *name, *rest;

        *ret_exists = false;
        sha256[0] = '\0';
        if (!copy || at < 0)
                return copy ? -errno : -ENOMEM;
        /* Component by component: no link is followed, whatever the job put there. */
        for (name = copy; (rest = strchr(name, '/')); name = rest + 1) {
                int next;

                *rest = '\0';
                if (*name == '\0' || streq(name, "."))
                        continue;
                next = streq(name, "..") ? -1
                                         : openat(at, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
                if (next < 0)
                        return 0;
                safe_close(at);
                at = next;
        }
        if (fstatat(at, *name ? name : ".", &st, AT_SYMLINK_NOFOLLOW) < 0)
                return 0;
        *ret_exists = true;
        return S_ISREG(st.st_mode) && (uint64_t) st.st_size <= TREE_HASH_MAX ? node_hash(at, name, sha256)
                                                                             : 0;
}
