/* SPDX-License-Identifier: Apache-2.0 */
/* What was removed and what was added, put together where they are the same thing. Each way to tell is a
 * comparison: both sides are sorted by it and joined, and what is left goes on to the next, weaker one. */
#include "core/changes.h"

#include "base/path.h"

typedef int (*Compare)(const void *a, const void *b);

/* Items of one kind that have no partner yet. */
typedef struct Side {
        const FileChange **items;
        size_t n;
} Side;

static const FileNode *node_of(const FileChange *change)
{
        return change->kind == CHANGE_ADDED ? &change->after : &change->before;
}

static const char *base_name(const FileChange *change)
{
        const char *slash = strrchr(change->path, '/');

        return slash ? slash + 1 : change->path;
}

static int compare_inode(const void *a, const void *b)
{
        uint64_t x = node_of(*(const FileChange *const *) a)->inode,
                 y = node_of(*(const FileChange *const *) b)->inode;

        return x < y ? -1 : x > y;
}

/* The full digest or that of a sparse file; "" is no content to go by, and neither is an empty file. */
static const char *content_of(const FileChange *change)
{
        const FileNode *node = node_of(change);

        if (node->size == 0 || node->size == UNKNOWN)
                return "";
        return *node->sha256 ? node->sha256 : node->sparse_sha256;
}

static int compare_content(const void *a, const void *b)
{
        return strcmp(content_of(*(const FileChange *const *) a), content_of(*(const FileChange *const *) b));
}

static int compare_content_and_name(const void *a, const void *b)
{
        int r = compare_content(a, b);

        return r != 0 ? r
                      : strcmp(base_name(*(const FileChange *const *) a),
                                        base_name(*(const FileChange *const *) b));
}

static bool has_inode(const FileChange *change)
{
        return node_of(change)->inode != 0;
}

static bool has_content(const FileChange *change)
{
        return *content_of(change);
}

static const struct {
        RenameHow how;
        bool (*usable)(const FileChange *change);
        Compare compare;
} ways[] = {
        { RENAME_INODE, has_inode, compare_inode },
        { RENAME_CONTENT, has_content, compare_content_and_name },
        { RENAME_CONTENT, has_content, compare_content },
};

static int collect(const FileChanges *changes, ChangeKind kind, Side *ret)
{
        ret->items = calloc(changes->n + 1, sizeof(*ret->items));
        if (!ret->items)
                return -ENOMEM;
        for (size_t i = 0; i < changes->n; i++)
                if (changes->items[i].kind == kind && node_of(&changes->items[i])->type == FILE_REGULAR)
                        ret->items[ret->n++] = &changes->items[i];
        return 0;
}

/* Whether the move of a directory says it already. */
static bool is_implied(const FileChanges *changes, size_t n_directories, const char *from, const char *to)
{
        for (size_t i = 0; i < n_directories; i++) {
                const char *below_from = path_below(from, changes->renames[i].from),
                           *below_to = path_below(to, changes->renames[i].to);

                if (below_from && below_to && streq(below_from, below_to))
                        return true;
        }
        return false;
}

static int add_rename(FileChanges *changes, const char *from, const char *to, RenameHow how)
{
        FileRename *larger = reallocarray(changes->renames, changes->n_renames + 1, sizeof(*larger)), *one;

        if (!larger)
                return -ENOMEM;
        changes->renames = larger;
        one = &changes->renames[changes->n_renames];
        *one = (FileRename){ .from = strdup(from), .to = strdup(to), .how = how };
        changes->n_renames++;
        return one->from && one->to ? 0 : -ENOMEM;
}

/* Joins both sides by one way; those that found a partner are dropped from them. */
static int join(FileChanges *changes, size_t n_directories, Side *removed, Side *added, size_t way)
{
        size_t i = 0, j = 0, left = 0, right = 0;
        int r = 0;

        qsort(removed->items, removed->n, sizeof(*removed->items), ways[way].compare);
        qsort(added->items, added->n, sizeof(*added->items), ways[way].compare);
        while (r == 0 && i < removed->n && j < added->n) {
                const FileChange *from = removed->items[i], *to = added->items[j];
                int order = !ways[way].usable(from) ? -1
                            : !ways[way].usable(to) ? 1
                                                    : ways[way].compare(&from, &to);

                if (order < 0)
                        removed->items[left++] = removed->items[i++];
                else if (order > 0)
                        added->items[right++] = added->items[j++];
                else {
                        if (!is_implied(changes, n_directories, from->path, to->path))
                                r = add_rename(changes, from->path, to->path, ways[way].how);
                        i++, j++;
                }
        }
        while (i < removed->n)
                removed->items[left++] = removed->items[i++];
        while (j < added->n)
                added->items[right++] = added->items[j++];
        removed->n = left;
        added->n = right;
        return r;
}

static int compare_renames(const void *a, const void *b)
{
        return path_compare(((const FileRename *) a)->to, ((const FileRename *) b)->to);
}

int changes_find_renames(FileChanges *changes)
{
        size_t n_directories = changes->n_renames;
        Side removed = { 0 }, added = { 0 };
        int r = collect(changes, CHANGE_REMOVED, &removed);

        if (r == 0)
                r = collect(changes, CHANGE_ADDED, &added);
        for (size_t way = 0; r == 0 && way < ELEMENTSOF(ways); way++)
                r = join(changes, n_directories, &removed, &added, way);
        /* The directories keep their place at the front: what follows is below or beside them. */
        if (r == 0 && changes->n_renames > n_directories)
                qsort(changes->renames + n_directories, changes->n_renames - n_directories,
                                sizeof(*changes->renames), compare_renames);
        free(removed.items);
        free(added.items);
        return r;
}
