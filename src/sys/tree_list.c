/* SPDX-License-Identifier: Apache-2.0 */
/* What a walk found: everything is counted and goes into one digest; what is listed is bounded. */
#include "sys/tree_walk.h"

#include <stdarg.h>

#include "base/array.h"
#include "base/path.h"

int tree_walk_new(const TreeOwner *owner, const ChangeRules *rules, uint64_t file_limit, uint64_t read_budget,
                TreeWalk **ret)
{
        TreeWalk *walk = calloc(1, sizeof(*walk));

        if (!walk)
                return -ENOMEM;
        walk->owner = *owner;
        walk->rules = rules;
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
        file_changes_clear(&walk->changes);
        for (size_t i = 0; i < walk->n_seen; i++)
                free(walk->seen[i].path);
        free(walk->seen);
        free(walk->path);
        free(walk->result.file_at_limit);
        free(walk->result.lost);
        free(walk);
        return NULL;
}

int walk_lose(TreeWalk *walk, const char *format, ...)
{
        char path[256];
        _cleanup_free_ char *why = NULL;
        va_list ap;

        if (walk->result.lost)
                return 0;
        va_start(ap, format);
        why = text_vprintf(format, ap);
        va_end(ap);
        text_excerpt(walk->path, strlen(walk->path), path, sizeof(path));
        walk->result.lost = why ? text_printf("%s: %s", path, why) : NULL;
        return walk->result.lost ? 0 : -ENOMEM;
}

/* --- the digest --- */

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
        char text[320];
        int n = snprintf(text, sizeof(text), "%d %o %u %u %llu %llu %s %s %s", (int) node->type, node->mode,
                        node->uid, node->gid, (unsigned long long) node->size,
                        (unsigned long long) node->device, node->sha256, node->sparse_sha256,
                        node->xattrs_sha256);

        hash_update(&walk->digest, text, (size_t) n + 1);
        if (node->target)
                hash_update(&walk->digest, node->target, strlen(node->target) + 1);
}

/* --- the list --- */

static bool is_unexpected(const TreeWalk *walk, ChangeKind kind, FileType type)
{
        return change_is_unexpected(walk->rules, kind, type, walk->path, walk->scratch);
}

/* What was not agreed has room of its own: it must not get lost behind thousands of changes that were. */
static bool has_room(const TreeWalk *walk, bool unexpected)
{
        size_t items = TREE_CHANGES_MAX + (unexpected ? TREE_UNEXPECTED_MAX : 0);
        uint64_t bytes = TREE_TEXT_MAX + (unexpected ? TREE_TEXT_MAX / 4 : 0);

        return walk->changes.n < items && walk->listed_bytes < bytes;
}

static bool is_silent(const TreeWalk *walk)
{
        return walk->scratch && walk->rules->scratch == SCRATCH_ALLOW;
}

bool walk_lists(const TreeWalk *walk, ChangeKind kind, FileType type)
{
        return !is_silent(walk) && has_room(walk, is_unexpected(walk, kind, type));
}

static uint64_t text_size(const FileNode *node)
{
        uint64_t size = node->target ? strlen(node->target) : 0;

        for (size_t i = 0; i < node->n_xattrs; i++)
                size += strlen(node->xattrs[i].name) + HASH_HEX_MAX;
        return size;
}

static int list_change(TreeWalk *walk, FileChange *change)
{
        FileChange *items = array_grow(walk->changes.items, walk->changes.n, &walk->room, sizeof(FileChange));

        if (!items) {
                file_change_clear(change);
                return -ENOMEM;
        }
        walk->changes.items = items;
        change->path = strdup(walk->path);
        change->scratch = walk->scratch;
        walk->listed_bytes += walk->path_length + text_size(&change->before) + text_size(&change->after);
        walk->changes.items[walk->changes.n++] = *change;
        return change->path ? 0 : -ENOMEM;
}

static void show_owner(const TreeWalk *walk, FileNode *node)
{
        if (node->uid == walk->owner.job_uid)
                node->uid = walk->owner.owner_uid;
        if (node->gid == walk->owner.job_gid)
                node->gid = walk->owner.owner_gid;
}

static void note_unread(TreeWalk *walk, const FileNode *node)
{
        if (node->type == FILE_REGULAR && !*node->sha256 && !*node->sparse_sha256)
                walk->result.unread = true;
}

int walk_emit(TreeWalk *walk, FileChange *change)
{
        FileType type = change->kind == CHANGE_REMOVED ? change->before.type : change->after.type;
        bool unexpected = is_unexpected(walk, change->kind, type);
        char kind = (char) ('0' + change->kind);

        show_owner(walk, &change->before);
        show_owner(walk, &change->after);
        hash_update(&walk->digest, &kind, 1);
        digest_name(walk);
        digest_node(walk, &change->before);
        digest_node(walk, &change->after);
        walk->changes.total[change->kind]++;
        walk->changes.scratch += walk->scratch;
        if (!is_silent(walk) && has_room(walk, unexpected)) {
                if (change->kind != CHANGE_REMOVED)
                        note_unread(walk, &change->after);
                if (change->kind != CHANGE_ADDED)
                        note_unread(walk, &change->before);
                return list_change(walk, change);
        }
        walk->changes.truncated |= !is_silent(walk);
        walk->changes.unlisted_unexpected[walk->scratch] += unexpected;
        file_change_clear(change);
        return 0;
}

/* --- renames and hard links --- */

int walk_moved(TreeWalk *walk, const char *from)
{
        FileChanges *changes = &walk->changes;
        FileRename *larger, *one;

        if (changes->n_renames == TREE_RENAMES_MAX || walk->listed_bytes >= TREE_TEXT_MAX)
                return 0;
        larger = reallocarray(changes->renames, changes->n_renames + 1, sizeof(*larger));
        if (!larger)
                return -ENOMEM;
        changes->renames = larger;
        one = &changes->renames[changes->n_renames++];
        *one = (FileRename){ .from = strdup(from), .to = strdup(walk->path), .how = RENAME_DIRECTORY };
        walk->listed_bytes += walk->path_length + strlen(from);
        return one->from && one->to ? 0 : -ENOMEM;
}

static int note_link(TreeWalk *walk, const struct stat *st)
{
        SeenLink *one, *seen;

        if (walk->n_seen == TREE_LINKS_MAX || walk->listed_bytes >= TREE_TEXT_MAX)
                return 0;
        seen = array_grow(walk->seen, walk->n_seen, &walk->seen_room, sizeof(SeenLink));
        if (!seen)
                return -ENOMEM;
        walk->seen = seen;
        one = &walk->seen[walk->n_seen];
        *one = (SeenLink){ st->st_dev, st->st_ino, st->st_nlink, strdup(walk->path) };
        if (!one->path)
                return -ENOMEM;
        walk->n_seen++;
        walk->listed_bytes += walk->path_length;
        return 0;
}

int walk_note(TreeWalk *walk, const struct stat *st)
{
        if (!walk->result.file_at_limit && S_ISREG(st->st_mode) &&
                        (uint64_t) st->st_size == walk->file_limit) {
                walk->result.file_at_limit = strdup(walk->path);
                if (!walk->result.file_at_limit)
                        return -ENOMEM;
        }
        return !S_ISDIR(st->st_mode) && st->st_nlink > 1 && !is_silent(walk) ? note_link(walk, st) : 0;
}

static int compare_seen(const void *a, const void *b)
{
        const SeenLink *x = a, *y = b;

        if (x->device != y->device)
                return x->device < y->device ? -1 : 1;
        if (x->inode != y->inode)
                return x->inode < y->inode ? -1 : 1;
        return path_compare(x->path, y->path);
}

static int compare_hard_links(const void *a, const void *b)
{
        return path_compare(((const HardLinks *) a)->paths[0], ((const HardLinks *) b)->paths[0]);
}

/* Moves the n names of one file into a group. */
static int add_group(FileChanges *changes, SeenLink *names, size_t n)
{
        HardLinks *group = &changes->hard_links[changes->n_hard_links];

        group->paths = strv_new(n);
        if (!group->paths)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++)
                group->paths[i] = TAKE_PTR(names[i].path);
        group->links = names[0].links;
        changes->n_hard_links++;
        return 0;
}

/* A file of which only one name was come across tells nothing: the others lie where nothing was touched. */
static int group_links(TreeWalk *walk)
{
        size_t end;
        int r = 0;

        if (walk->n_seen == 0)
                return 0;
        walk->changes.hard_links = calloc(walk->n_seen / 2 + 1, sizeof(HardLinks));
        if (!walk->changes.hard_links)
                return -ENOMEM;
        qsort(walk->seen, walk->n_seen, sizeof(*walk->seen), compare_seen);
        for (size_t i = 0; r == 0 && i < walk->n_seen; i = end) {
                for (end = i + 1; end < walk->n_seen && walk->seen[end].device == walk->seen[i].device &&
                                  walk->seen[end].inode == walk->seen[i].inode;)
                        end++;
                if (end - i > 1)
                        r = add_group(&walk->changes, &walk->seen[i], end - i);
        }
        qsort(walk->changes.hard_links, walk->changes.n_hard_links, sizeof(HardLinks), compare_hard_links);
        return r;
}

int tree_walk_finish(TreeWalk *walk, FileChanges *ret, TreeResult *ret_result)
{
        int r = group_links(walk);

        if (r == 0)
                r = changes_find_renames(&walk->changes);
        if (r < 0)
                return r;
        walk->changes.complete = !walk->result.lost;
        if (walk->changes.complete)
                hash_finish(&walk->digest, walk->changes.sha256);
        *ret = walk->changes;
        walk->changes = (FileChanges){ 0 };
        *ret_result = walk->result;
        walk->result = (TreeResult){ 0 };
        return 0;
}
