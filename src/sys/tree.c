/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "sys/tree_node.h"

struct TreeWalk {
        TreeOwner owner;
        uint64_t file_limit;
        char *const *made;
        FileChanges changes;
        size_t room;
        uint64_t listed_bytes;
        uint64_t read_budget; /* bytes of files that may still be read */
        bool over_budget;
        Hash digest;
        bool scratch;
        char *path; /* of the entry at hand, absolute */
        size_t path_length, path_room;
        uint32_t depth; /* 0: the tree's own directory */
        char *file_at_limit;
        const char *lost;
};

/* One directory in its three views; -EBADF: it is not there (or, for upper, is not needed). */
typedef struct Views {
        int upper, lower, merged;
        bool full; /* the upper layer alone does not tell what is hidden: compare all names */
} Views;

int tree_walk_new(const TreeOwner *owner, uint64_t file_limit, uint64_t read_budget, TreeWalk **ret)
{
        TreeWalk *walk = calloc(1, sizeof(*walk));

        if (!walk)
                return -ENOMEM;
        walk->owner = *owner;
        walk->file_limit = file_limit;
        walk->read_budget = read_budget;
        hash_init(&walk->digest);
        *ret = walk;
        return 0;
}

TreeWalk *tree_walk_free(TreeWalk *walk)
{
        if (!walk)
                return NULL;
        for (size_t i = 0; i < walk->changes.n; i++)
                file_change_clear(&walk->changes.items[i]);
        free(walk->changes.items);
        free(walk->path);
        free(walk->file_at_limit);
        free(walk);
        return NULL;
}

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

/* Name and depth: with the order of the walk they say what the path says, and a deep tree stays cheap. */
static void digest_name(TreeWalk *walk)
{
        const char *slash = strrchr(walk->path, '/');
        const char *name = walk->depth > 0 && slash ? slash + 1 : walk->path;

        hash_update(&walk->digest, &walk->depth, sizeof(walk->depth));
        hash_update(&walk->digest, name, strlen(name) + 1);
}

static void digest_node(TreeWalk *walk, const FileNode *node)
{
        char text[160];
        int n = snprintf(text, sizeof(text), "%d %o %u %u %llu %s", (int) node->type, node->mode, node->uid,
                        node->gid, (unsigned long long) node->size, node->sha256);

        hash_update(&walk->digest, text, (size_t) n + 1);
        if (node->target)
                hash_update(&walk->digest, node->target, strlen(node->target) + 1);
}

static void show_owner(const TreeWalk *walk, FileNode *node)
{
        if (node->uid == walk->owner.job_uid)
                node->uid = walk->owner.owner_uid;
        if (node->gid == walk->owner.job_gid)
                node->gid = walk->owner.owner_gid;
}

static bool is_full(const TreeWalk *walk)
{
        return walk->changes.n >= TREE_CHANGES_MAX || walk->listed_bytes >= TREE_PATHS_MAX;
}

/* Takes the change, whether it is listed or only counted. */
static int emit(TreeWalk *walk, FileChange *change)
{
        char kind = (char) ('0' + change->kind);

        show_owner(walk, &change->before);
        show_owner(walk, &change->after);
        hash_update(&walk->digest, &kind, 1);
        digest_name(walk);
        digest_node(walk, &change->before);
        digest_node(walk, &change->after);
        walk->changes.total[change->kind]++;
        if (is_full(walk)) {
                walk->changes.truncated = true;
                file_change_clear(change);
                return 0;
        }
        if (walk->changes.n == walk->room) {
                size_t room = walk->room ? walk->room * 2 : 64;
                FileChange *larger = reallocarray(walk->changes.items, room, sizeof(*larger));

                if (!larger) {
                        file_change_clear(change);
                        return -ENOMEM;
                }
                walk->changes.items = larger;
                walk->room = room;
        }
        change->path = strdup(walk->path);
        walk->listed_bytes += walk->path_length;
        change->scratch = walk->scratch;
        walk->changes.items[walk->changes.n++] = *change;
        return change->path ? 0 : -ENOMEM;
}

static bool was_made(const TreeWalk *walk)
{
        return strv_contains(walk->made, walk->path);
}

static int note_limit(TreeWalk *walk, const struct stat *st)
{
        if (walk->file_at_limit || !S_ISREG(st->st_mode) || (uint64_t) st->st_size != walk->file_limit)
                return 0;
        walk->file_at_limit = strdup(walk->path);
        return walk->file_at_limit ? 0 : -ENOMEM;
}

/* A job can make files that are large and cost it nothing. What is read of them in all is bounded. */
static bool spend(TreeWalk *walk, const struct stat *st)
{
        uint64_t size = (uint64_t) st->st_size;

        if (size > walk->read_budget) {
                walk->over_budget = true;
                return false;
        }
        walk->read_budget -= size;
        return true;
}

static bool hash_wanted(TreeWalk *walk, const struct stat *st)
{
        return S_ISREG(st->st_mode) && !is_full(walk) && spend(walk, st);
}

static int emit_one_side(TreeWalk *walk, ChangeKind kind, int dir, const char *name, const struct stat *st)
{
        FileChange change = { .kind = kind };
        FileNode *node = kind == CHANGE_ADDED ? &change.after : &change.before;
        int r;

        /* Only as long as it is what we made: a directory. */
        if (S_ISDIR(st->st_mode) && was_made(walk))
                return 0;
        r = node_read(dir, name, st, hash_wanted(walk, st), node);
        if (r < 0) {
                file_change_clear(&change);
                return r;
        }
        return emit(walk, &change);
}

/* Both are there. Emits a change when they differ in anything. */
static int emit_if_changed(TreeWalk *walk, const Views *v, const char *name, const struct stat *before,
                const struct stat *after)
{
        FileChange change = { .kind = CHANGE_CHANGED };
        int r;

        r = node_read(v->lower, name, before, false, &change.before);
        if (r == 0)
                r = node_read(v->merged, name, after, false, &change.after);
        if (r == 0 && S_ISREG(before->st_mode) && S_ISREG(after->st_mode) &&
                        before->st_size == after->st_size && !spend(walk, after))
                walk->lost = "files too large to be compared";
        else if (r == 0)
                r = node_compare(v->lower, v->merged, name, before, after, &change.what);
        if (r == 0 && (change.what & (CHANGED_CONTENT | CHANGED_TYPE))) {
                if (hash_wanted(walk, before))
                        r = node_hash(v->lower, name, change.before.sha256);
                if (r == 0 && hash_wanted(walk, after))
                        r = node_hash(v->merged, name, change.after.sha256);
        }
        if (r < 0 || change.what == 0) {
                file_change_clear(&change);
                return r;
        }
        return emit(walk, &change);
}

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

/* A directory that was made anew hides what was below it; one that was renamed shows another one's content
 * (overlayfs: trusted.overlay.opaque, trusted.overlay.redirect). Then the upper layer alone does not tell. */
static bool hides_lower(int upper)
{
        return fgetxattr(upper, "trusted.overlay.opaque", NULL, 0) > 0 ||
               fgetxattr(upper, "trusted.overlay.redirect", NULL, 0) > 0;
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
        _cleanup_close_ int upper = v->full ? -EBADF : open_sub(v->upper, name);
        Views sub = { .upper = upper, .lower = lower, .merged = merged };

        if ((is_directory(before) && lower < 0) || (is_directory(after) && merged < 0))
                return lower < 0 && lower != -EBADF     ? lower
                       : merged < 0 && merged != -EBADF ? merged
                                                        : -ESTALE;
        if (upper < 0 && upper != -EBADF)
                return upper;
        if (lower < 0 && merged < 0)
                return 0;
        sub.full = v->full || lower < 0 || merged < 0 || upper < 0 || hides_lower(upper);
        return compare_directory(walk, &sub, depth + 1);
}

static int compare_entry(TreeWalk *walk, const Views *v, const char *name, unsigned depth)
{
        struct stat before, after;
        bool was = v->lower >= 0 && fstatat(v->lower, name, &before, AT_SYMLINK_NOFOLLOW) >= 0;
        bool is = v->merged >= 0 && fstatat(v->merged, name, &after, AT_SYMLINK_NOFOLLOW) >= 0;
        int r = 0;

        if (is)
                r = note_limit(walk, &after);
        if (r == 0 && was && is)
                r = emit_if_changed(walk, v, name, &before, &after);
        else if (r == 0 && is)
                r = emit_one_side(walk, CHANGE_ADDED, v->merged, name, &after);
        else if (r == 0 && was)
                r = emit_one_side(walk, CHANGE_REMOVED, v->lower, name, &before);
        if (r == 0)
                r = descend(walk, v, name, was ? &before : NULL, is ? &after : NULL, depth);
        return r;
}

static int compare_directory(TreeWalk *walk, const Views *v, unsigned depth)
{
        _cleanup_(name_list_clear) NameList names = { 0 };
        size_t length = walk->path_length;
        int r = 0;

        if (depth > TREE_DEPTH_MAX) {
                walk->lost = "a directory tree deeper than can be followed";
                return 0;
        }
        if (!v->full) {
                r = name_list_read(&names, v->upper);
        } else {
                if (v->lower >= 0)
                        r = name_list_read(&names, v->lower);
                if (r == 0 && v->merged >= 0)
                        r = name_list_read(&names, v->merged);
        }
        name_list_sort(&names);
        for (size_t i = 0; r == 0 && i < names.n; i++) {
                walk->depth = depth + 1;
                r = path_push(walk, names.items[i]);
                if (r == 0)
                        r = compare_entry(walk, v, names.items[i], depth);
                path_pop(walk, length);
        }
        return r;
}

static int start(TreeWalk *walk, const char *prefix, Error *e)
{
        path_pop(walk, 0);
        return path_push(walk, prefix) < 0 ? error_errno(e, -ENOMEM, "the comparison of %s", prefix) : 0;
}

int tree_compare(TreeWalk *walk, int upper_fd, int lower_fd, int merged_fd, const char *prefix, Error *e)
{
        Views views = {
                .upper = upper_fd, .lower = lower_fd, .merged = merged_fd, .full = hides_lower(upper_fd)
        };
        FileChange change = { .kind = CHANGE_CHANGED };
        struct stat before, after;
        int r = start(walk, prefix, e);

        if (r < 0)
                return r;
        walk->scratch = false;
        walk->made = NULL;
        walk->depth = 0;
        /* The workspace's own directory: its mode and owner. */
        if (fstat(lower_fd, &before) < 0 || fstat(merged_fd, &after) < 0)
                return error_errno(e, -errno, "%s", prefix);
        r = node_read(lower_fd, ".", &before, false, &change.before);
        if (r == 0)
                r = node_read(merged_fd, ".", &after, false, &change.after);
        if (r == 0)
                r = node_compare(lower_fd, merged_fd, ".", &before, &after, &change.what);
        if (r == 0 && change.what != 0)
                r = emit(walk, &change);
        if (r == 0)
                r = compare_directory(walk, &views, 0);
        return r < 0 ? error_errno(e, r, "%s cannot be compared", walk->path) : 0;
}

int tree_scratch(TreeWalk *walk, int dir_fd, const char *prefix, char *const *made, Error *e)
{
        Views views = { .upper = -EBADF, .lower = -EBADF, .merged = dir_fd, .full = true };
        int r = start(walk, prefix, e);

        if (r < 0)
                return r;
        walk->scratch = true;
        walk->made = made;
        r = compare_directory(walk, &views, 0);
        return r < 0 ? error_errno(e, r, "%s cannot be listed", walk->path) : 0;
}

int tree_walk_finish(TreeWalk *walk, FileChanges *ret, char **ret_file_at_limit, bool *ret_over_budget,
                const char **ret_lost)
{
        hash_finish(&walk->digest, walk->changes.sha256);
        *ret = walk->changes;
        walk->changes = (FileChanges){ 0 };
        *ret_file_at_limit = TAKE_PTR(walk->file_at_limit);
        *ret_over_budget = walk->over_budget;
        *ret_lost = walk->lost;
        return 0;
}
