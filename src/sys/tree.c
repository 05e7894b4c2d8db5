/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/tree.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <sys/xattr.h>

#include "base/path.h"
#include "sys/tree_names.h"
#include "sys/tree_node.h"
#include "sys/tree_walk.h"

#define LEVEL_NAMES_MIN KIB(32) /* of memory for names, however deep */
#define ORIGIN_MAX      4096u   /* longer ones are not remembered */

/* One directory in its three views; -EBADF: it is not there. */
typedef struct Views {
        int upper, lower, merged;
        bool full;          /* the upper layer alone does not tell what is hidden: compare all names */
        const char *origin; /* where the lower content that is seen here lies; NULL: here; "": not known */
} Views;

static int path_push(TreeWalk *walk, const char *name)
{
        size_t length = strlen(name), needed = walk->path_length + length + 2;

        if (needed > walk->path_room) {
                char *larger = realloc(walk->path, needed * 2);

                if (!larger)
                        return -ENOMEM;
                walk->path = larger;
                walk->path_room = needed * 2;
        }
        if (walk->path_length > 0)
                walk->path[walk->path_length++] = '/';
        memcpy(walk->path + walk->path_length, name, length + 1);
        walk->path_length += length;
        return 0;
}

static void path_pop(TreeWalk *walk, size_t length)
{
        walk->path_length = length;
        if (walk->path)
                walk->path[length] = '\0';
}

/* --- one entry --- */

static int emit_one_side(TreeWalk *walk, ChangeKind kind, int dir, const char *name, const struct stat *st,
                uint64_t inode)
{
        FileChange change = { .kind = kind };
        FileNode *node = kind == CHANGE_ADDED ? &change.after : &change.before;
        bool listed = walk_lists(walk, kind, node_type(st->st_mode));
        int r;

        /* Only as long as it is what we made: a directory. */
        if (S_ISDIR(st->st_mode) && strv_contains(walk->made, walk->path))
                return 0;
        r = node_read(dir, name, st, listed, node);
        if (r == 0 && listed)
                r = node_hash(dir, name, st, &walk->read_budget, node);
        if (r == 0 && listed && !*node->xattrs_sha256)
                r = walk_lose(walk, "its extended attributes could not be read");
        if (r < 0) {
                file_change_clear(&change);
                return r;
        }
        node->inode = inode;
        return walk_emit(walk, &change);
}

/* Contents that were found to be the same are read once. */
static int hash_sides(TreeWalk *walk, const Views *v, const char *name, const struct stat *before,
                const struct stat *after, FileChange *change)
{
        int r = node_hash(v->merged, name, after, &walk->read_budget, &change->after);

        if (r < 0 || (change->what & (CHANGED_CONTENT | CHANGED_TYPE)))
                return r < 0 ? r : node_hash(v->lower, name, before, &walk->read_budget, &change->before);
        memcpy(change->before.sha256, change->after.sha256, sizeof(change->before.sha256));
        memcpy(change->before.sparse_sha256, change->after.sparse_sha256,
                        sizeof(change->before.sparse_sha256));
        return 0;
}

/* Both have been read. */
static int compare_sides(TreeWalk *walk, const Views *v, const char *name, const struct stat *before,
                const struct stat *after, FileChange *change)
{
        int r = node_compare(v->lower, before, &change->before, v->merged, after, &change->after, name,
                        &walk->read_budget, &change->what);

        if (r == -EFBIG)
                r = walk_lose(walk, "too large to be compared");
        else if (r == -ENODATA)
                r = walk_lose(walk, "its extended attributes could not be read");
        if (r < 0 || change->what == 0 || !walk_lists(walk, CHANGE_CHANGED, change->after.type))
                return r;
        return hash_sides(walk, v, name, before, after, change);
}

/* Emits a change when both differ in anything: that an entry is in the upper layer says nothing. */
static int emit_if_changed(TreeWalk *walk, const Views *v, const char *name, const struct stat *before,
                const struct stat *after)
{
        FileChange change = { .kind = CHANGE_CHANGED };
        int r;

        r = node_read(v->lower, name, before, true, &change.before);
        if (r == 0)
                r = node_read(v->merged, name, after, true, &change.after);
        if (r == 0)
                r = compare_sides(walk, v, name, before, after, &change);
        if (r < 0 || change.what == 0) {
                file_change_clear(&change);
                return r;
        }
        return walk_emit(walk, &change);
}

/* 1: it is there, 0: it is not. Any other failure hides something. */
static int look(int dir, const char *name, struct stat *ret)
{
        if (dir < 0)
                return 0;
        if (fstatat(dir, name, ret, AT_SYMLINK_NOFOLLOW) >= 0)
                return 1;
        return errno == ENOENT ? 0 : -errno;
}

/* A file that was copied up keeps, in the merged view, the inode number it had below (overlayfs.rst, "Inode
 * properties"); one that was made new has that of the upper layer. So a file that was moved is known again.
 */
static uint64_t origin_inode(
                const TreeWalk *walk, const Views *v, const char *name, const struct stat *merged)
{
        struct stat upper;
        int copied;

        if (!walk->inodes_known || !S_ISREG(merged->st_mode) || !walk_lists(walk, CHANGE_ADDED, FILE_REGULAR))
                return 0;
        copied = look(v->upper, name, &upper);
        if (copied <= 0) /* it came with its directory */
                return copied == 0 && merged->st_nlink == 1 ? merged->st_ino : 0;
        return upper.st_ino != merged->st_ino ? merged->st_ino : 0;
}

static uint64_t own_inode(const TreeWalk *walk, const struct stat *lower)
{
        return walk->inodes_known && S_ISREG(lower->st_mode) && lower->st_nlink == 1 ? lower->st_ino : 0;
}

/* --- directories --- */

static int compare_directory(TreeWalk *walk, const Views *v, unsigned depth);

/* -EBADF: there is no such directory. Any other failure hides something, and is an error. */
static int open_sub(int dir, const char *name)
{
        int fd;

        if (dir < 0)
                return -EBADF;
        fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd >= 0)
                return fd;
        return errno == ENOENT || errno == ENOTDIR || errno == ELOOP ? -EBADF : -errno;
}

/* A directory that was made anew hides what was below it. */
static bool is_opaque(int upper)
{
        return fgetxattr(upper, "trusted.overlay.opaque", NULL, 0) > 0;
}

/* The origin of the directory at walk->path by the redirect of overlayfs ("/from/the/top" or a name beside
 * it), or as part of a directory that was moved. *ret: NULL, "" or a path. *ret_moved: it was moved itself.
 */
static int find_origin(const TreeWalk *walk, const Views *v, const char *name, int upper, char **ret,
                bool *ret_moved)
{
        _cleanup_free_ char *implied = NULL, *origin = NULL;
        char value[ORIGIN_MAX];
        ssize_t n = upper >= 0 ? fgetxattr(upper, "trusted.overlay.redirect", value, sizeof(value) - 1) : -1;

        *ret_moved = false;
        if (upper >= 0 && is_opaque(upper)) {
                *ret = strdup("");
                return *ret ? 0 : -ENOMEM;
        }
        if (n <= 0 && !v->origin)
                return 0;
        if (v->origin && (!*v->origin || strlen(v->origin) > ORIGIN_MAX)) {
                *ret = strdup("");
                return *ret ? 0 : -ENOMEM;
        }
        implied = v->origin ? path_join(v->origin, name) : strdup(walk->path);
        if (!implied)
                return -ENOMEM;
        value[MAX(n, (ssize_t) 0)] = '\0';
        if (n <= 0)
                origin = strdup(implied);
        else if (*value == '/')
                origin = text_printf("%s%s", walk->prefix, value);
        else
                origin = text_printf("%.*s/%s", (int) (strrchr(implied, '/') - implied), implied, value);
        if (!origin)
                return -ENOMEM;
        *ret_moved = !streq(origin, implied) && !streq(origin, walk->path);
        if (!streq(origin, walk->path))
                *ret = TAKE_PTR(origin);
        return 0;
}

static bool is_directory(const struct stat *st)
{
        return st && S_ISDIR(st->st_mode);
}

static int descend(TreeWalk *walk, const Views *v, const char *name, const struct stat *before,
                const struct stat *after, unsigned depth)
{
        _cleanup_close_ int lower = is_directory(before) ? open_sub(v->lower, name) : -EBADF;
        _cleanup_close_ int merged = is_directory(after) ? open_sub(v->merged, name) : -EBADF;
        _cleanup_close_ int upper = is_directory(after) ? open_sub(v->upper, name) : -EBADF;
        _cleanup_free_ char *origin = NULL;
        Views sub = { .upper = upper, .lower = lower, .merged = merged };
        bool moved = false;
        int r = 0;

        if ((is_directory(before) && lower < 0) || (is_directory(after) && merged < 0))
                return lower < 0 && lower != -EBADF     ? lower
                       : merged < 0 && merged != -EBADF ? merged
                                                        : -ESTALE;
        if (upper < 0 && upper != -EBADF)
                return upper;
        if (lower < 0 && merged < 0)
                return 0;
        if (merged >= 0)
                r = find_origin(walk, v, name, upper, &origin, &moved);
        if (r == 0 && moved)
                r = walk_moved(walk, origin);
        if (r < 0)
                return r;
        sub.origin = origin;
        sub.full = v->full || lower < 0 || merged < 0 || upper < 0 || origin;
        return compare_directory(walk, &sub, depth + 1);
}

static int compare_entry(TreeWalk *walk, const Views *v, const char *name, unsigned depth)
{
        struct stat before, after;
        int was = look(v->lower, name, &before), is = look(v->merged, name, &after), r = 0;

        if (was < 0 || is < 0)
                return was < 0 ? was : is;
        if (is)
                r = walk_note(walk, &after);
        if (r == 0 && was && is)
                r = emit_if_changed(walk, v, name, &before, &after);
        else if (r == 0 && is)
                r = emit_one_side(walk, CHANGE_ADDED, v->merged, name, &after,
                                origin_inode(walk, v, name, &after));
        else if (r == 0 && was)
                r = emit_one_side(walk, CHANGE_REMOVED, v->lower, name, &before, own_inode(walk, &before));
        if (r == 0)
                r = descend(walk, v, name, was ? &before : NULL, is ? &after : NULL, depth);
        return r;
}

/* The names that have been read. One entry that cannot be looked at does not hide the others. */
static int compare_names(TreeWalk *walk, const Views *v, const NameList *names, unsigned depth)
{
        size_t length = walk->path_length;
        int r = 0;

        for (size_t i = 0; r == 0 && i < names->n; i++) {
                walk->depth = depth + 1;
                r = path_push(walk, name_list_get(names, i));
                if (r == 0)
                        r = compare_entry(walk, v, name_list_get(names, i), depth);
                if (r < 0 && r != -ENOMEM)
                        r = walk_lose(walk, "cannot be compared: %s", strerror(-r));
                path_pop(walk, length);
        }
        return r;
}

/* However deep and wide a tree is, the names of all directories that are being read have to share. */
static size_t names_allowed(const TreeWalk *walk)
{
        return walk->names_held < TREE_NAMES_MAX
                               ? MAX((TREE_NAMES_MAX - walk->names_held) / 2, (size_t) LEVEL_NAMES_MIN)
                               : (size_t) LEVEL_NAMES_MIN;
}

static int compare_directory(TreeWalk *walk, const Views *v, unsigned depth)
{
        _cleanup_(name_list_freep) NameList *names = NULL;
        size_t held;
        int r;

        if (depth > TREE_DEPTH_MAX)
                return walk_lose(walk, "deeper than can be followed");
        names = name_list_new(names_allowed(walk));
        if (!names)
                return -ENOMEM;
        do {
                r = v->full ? name_list_read(names, v->lower, v->merged)
                            : name_list_read(names, v->upper, -EBADF);
                held = name_list_size(names);
                walk->names_held += held;
                if (r == 0)
                        r = compare_names(walk, v, names, depth);
                walk->names_held -= held;
        } while (r == 0 && names->more);
        return r;
}

/* --- trees --- */

static int start(TreeWalk *walk, const char *prefix, bool scratch, char *const *made)
{
        walk->prefix = prefix;
        walk->scratch = scratch;
        walk->made = made;
        walk->depth = 0;
        walk->inodes_known = false;
        path_pop(walk, 0);
        return path_push(walk, prefix);
}

/* The workspace's own directory: its mode, owner and attributes. */
static int compare_top(TreeWalk *walk, const Views *views)
{
        struct stat before, after;

        if (fstat(views->lower, &before) < 0 || fstat(views->merged, &after) < 0)
                return -errno;
        return emit_if_changed(walk, views, ".", &before, &after);
}

int tree_compare(TreeWalk *walk, int upper_fd, int lower_fd, int merged_fd, const char *prefix)
{
        Views views = {
                .upper = upper_fd, .lower = lower_fd, .merged = merged_fd, .full = is_opaque(upper_fd)
        };
        struct statfs fs;
        int r = start(walk, prefix, false, NULL);

        if (r < 0)
                return r;
        walk->inodes_known = fstatfs(lower_fd, &fs) >= 0 && fs.f_type != OVERLAYFS_SUPER_MAGIC;
        r = compare_top(walk, &views);
        if (r == 0)
                r = compare_directory(walk, &views, 0);
        return r < 0 && r != -ENOMEM ? walk_lose(walk, "cannot be compared: %s", strerror(-r)) : r;
}

int tree_scratch(TreeWalk *walk, int dir_fd, const char *prefix, char *const *made)
{
        Views views = { .upper = -EBADF, .lower = -EBADF, .merged = dir_fd, .full = true };
        int r = start(walk, prefix, true, made);

        if (r == 0)
                r = compare_directory(walk, &views, 0);
        return r < 0 && r != -ENOMEM ? walk_lose(walk, "cannot be listed: %s", strerror(-r)) : r;
}

/* --- single files --- */

int tree_file(int dir_fd, const char *path, bool *ret_exists, char sha256[static HASH_HEX_MAX])
{
        _cleanup_free_ char *copy = strdup(path);
        _cleanup_close_ int at = fcntl(dir_fd, F_DUPFD_CLOEXEC, 0), fd = -EBADF;
        struct stat st;
        char *name, *rest;
        int r;

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
        if (!S_ISREG(st.st_mode) || (uint64_t) st.st_size > TREE_HASH_MAX)
                return 0;
        r = node_open(at, name, &fd);
        return r < 0 ? r : content_hash(fd, sha256);
}
