/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/tree_node.h"

#include <endian.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sys/xattr.h>

#define CAPABILITY_XATTR "security.capability"
#define XATTR_NAMES_MAX  KIB(64) /* the kernel's own bounds, XATTR_LIST_MAX and XATTR_SIZE_MAX */
#define XATTR_VALUE_MAX  KIB(64)

FileType node_type(mode_t mode)
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

int node_open(int dir_fd, const char *name, int *ret_fd)
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

/* --- attributes --- */

/* The attributes that a job can set, or make a file lose. */
static bool is_observed(const char *name)
{
        return startswith(name, "user.") || streq(name, CAPABILITY_XATTR) ||
               startswith(name, "system.posix_acl_");
}

/* The permitted set, in hex as in proc_pid_status(5). */
static void show_capabilities(const void *value, size_t size, char text[static CAPABILITIES_MAX])
{
        struct vfs_ns_cap_data data = { 0 };

        memcpy(&data, value, MIN(size, sizeof(data)));
        (void) snprintf(text, CAPABILITIES_MAX, "%08x%08x", le32toh(data.data[1].permitted),
                        le32toh(data.data[0].permitted));
}

typedef struct XattrBuffers {
        char names[XATTR_NAMES_MAX];
        char value[XATTR_VALUE_MAX];
} XattrBuffers;

static int add_xattr(int fd, const char *name, XattrBuffers *buffers, Hash *h, FileNode *node)
{
        ssize_t size = fgetxattr(fd, name, buffers->value, sizeof(buffers->value));
        FileXattr *one;

        if (size < 0)
                return -errno;
        hash_update(h, name, strlen(name) + 1);
        hash_update(h, &size, sizeof(size));
        hash_update(h, buffers->value, (size_t) size);
        node->xattrs_total++;
        if (streq(name, CAPABILITY_XATTR))
                show_capabilities(buffers->value, (size_t) size, node->capabilities);
        if (node->n_xattrs == XATTRS_LISTED_MAX)
                return 0;
        one = &node->xattrs[node->n_xattrs];
        *one = (FileXattr){ .name = strdup(name), .size = (uint64_t) size };
        if (!one->name)
                return -ENOMEM;
        hash_data(buffers->value, (size_t) size, one->sha256);
        node->n_xattrs++;
        return 0;
}

static int read_sorted(int fd, const char **sorted, size_t n, XattrBuffers *buffers, FileNode *node)
{
        Hash h;
        int r = 0;

        qsort(sorted, n, sizeof(*sorted), strv_compare);
        hash_init(&h);
        for (size_t i = 0; r == 0 && i < n; i++)
                r = add_xattr(fd, sorted[i], buffers, &h, node);
        hash_finish(&h, node->xattrs_sha256);
        if (r < 0)
                node->xattrs_sha256[0] = '\0';
        return r;
}

static int read_xattrs(int fd, FileNode *node)
{
        _cleanup_free_ const char **sorted = NULL;
        _cleanup_free_ XattrBuffers *buffers = NULL;
        ssize_t size = flistxattr(fd, NULL, 0);
        size_t n = 0;

        if (size == 0 || (size < 0 && errno == EOPNOTSUPP)) {
                hash_data("", 0, node->xattrs_sha256);
                return 0;
        }
        buffers = malloc(sizeof(*buffers));
        if (!buffers)
                return -ENOMEM;
        size = flistxattr(fd, buffers->names, sizeof(buffers->names));
        if (size < 0)
                return -errno;
        for (const char *name = buffers->names; name < buffers->names + size; name += strlen(name) + 1)
                n += is_observed(name);
        sorted = calloc(MAX(n, (size_t) 1), sizeof(*sorted));
        if (n > 0)
                node->xattrs = calloc(MIN(n, (size_t) XATTRS_LISTED_MAX), sizeof(*node->xattrs));
        if (!sorted || (n > 0 && !node->xattrs))
                return -ENOMEM;
        n = 0;
        for (const char *name = buffers->names; name < buffers->names + size; name += strlen(name) + 1)
                if (is_observed(name))
                        sorted[n++] = name;
        return read_sorted(fd, sorted, n, buffers, node);
}

static int open_for_attributes(int dir_fd, const char *name, FileType type, int *ret_fd)
{
        if (type == FILE_REGULAR)
                return node_open(dir_fd, name, ret_fd);
        *ret_fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        return *ret_fd < 0 ? -errno : 0;
}

/* Links, FIFOs, sockets and devices have no attributes that a job could set (xattr(7)). */
static int read_attributes(int dir_fd, const char *name, FileNode *node)
{
        _cleanup_close_ int fd = -EBADF;
        int r;

        if (node->type != FILE_REGULAR && node->type != FILE_DIRECTORY) {
                hash_data("", 0, node->xattrs_sha256);
                return 0;
        }
        r = open_for_attributes(dir_fd, name, node->type, &fd);
        if (r < 0)
                return r;
        r = read_xattrs(fd, node);
        return r == -ENOMEM ? r : 0;
}

/* --- one entry --- */

int node_read(int dir_fd, const char *name, const struct stat *st, bool attributes, FileNode *ret)
{
        bool regular = S_ISREG(st->st_mode);
        int r = 0;

        *ret = (FileNode){
                .type = node_type(st->st_mode),
                .mode = st->st_mode & 07777,
                .uid = st->st_uid,
                .gid = st->st_gid,
                .size = regular ? (uint64_t) st->st_size : UNKNOWN,
                .allocated = regular ? (uint64_t) st->st_blocks * 512 : UNKNOWN,
                .links = S_ISDIR(st->st_mode) ? 0 : st->st_nlink,
                .device = S_ISCHR(st->st_mode) || S_ISBLK(st->st_mode) ? st->st_rdev : 0,
        };
        if (ret->type == FILE_SYMLINK)
                r = read_target(dir_fd, name, &ret->target);
        if (r == 0 && attributes)
                r = read_attributes(dir_fd, name, ret);
        return r;
}

int node_hash(int dir_fd, const char *name, const struct stat *st, uint64_t *budget, FileNode *node)
{
        _cleanup_close_ int fd = -EBADF;
        ContentWay way;
        int r;

        if (!S_ISREG(st->st_mode))
                return 0;
        way = content_choose(st, NULL, budget);
        if (way == CONTENT_UNREAD)
                return 0;
        r = node_open(dir_fd, name, &fd);
        if (r < 0)
                return r;
        return way == CONTENT_WHOLE ? content_hash(fd, node->sha256)
                                    : content_hash_sparse(fd, node->sparse_sha256);
}

static int compare_regular(int before_dir, const struct stat *before, int after_dir, const struct stat *after,
                const char *name, uint64_t *budget, unsigned *what)
{
        _cleanup_close_ int before_fd = -EBADF, after_fd = -EBADF;
        bool equal = false;
        ContentWay way;
        int r = 0;

        if (before->st_size == after->st_size) {
                way = content_choose(before, after, budget);
                if (way == CONTENT_UNREAD)
                        return -EFBIG;
                r = node_open(before_dir, name, &before_fd);
                if (r == 0)
                        r = node_open(after_dir, name, &after_fd);
                if (r == 0)
                        r = content_equal(before_fd, after_fd, way, &equal);
        }
        if (!equal)
                *what |= CHANGED_CONTENT;
        return r;
}

int node_compare(int before_dir, const struct stat *before_st, const FileNode *before, int after_dir,
                const struct stat *after_st, const FileNode *after, const char *name, uint64_t *budget,
                unsigned *ret_what)
{
        unsigned what = 0;
        int r = 0;

        if (before->mode != after->mode && after->type != FILE_SYMLINK)
                what |= CHANGED_MODE;
        if (before->uid != after->uid || before->gid != after->gid)
                what |= CHANGED_OWNER;
        if (!streq(before->xattrs_sha256, after->xattrs_sha256))
                what |= CHANGED_XATTR;
        if (before->type != after->type)
                what |= CHANGED_TYPE;
        else if (after->type == FILE_REGULAR)
                r = compare_regular(before_dir, before_st, after_dir, after_st, name, budget, &what);
        else if (!streq_ptr(before->target, after->target) || before->device != after->device)
                what |= CHANGED_CONTENT;
        *ret_what = what;
        return r < 0 ? r : !*before->xattrs_sha256 || !*after->xattrs_sha256 ? -ENODATA : 0;
}
