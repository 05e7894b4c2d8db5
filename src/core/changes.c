/* SPDX-License-Identifier: Apache-2.0 */
#include "core/changes.h"

#include "base/path.h"

const char *const file_type_names[_FILE_TYPE_MAX] = {
        [FILE_REGULAR] = "file",
        [FILE_DIRECTORY] = "directory",
        [FILE_SYMLINK] = "symlink",
        [FILE_FIFO] = "fifo",
        [FILE_SOCKET] = "socket",
        [FILE_CHAR] = "char",
        [FILE_BLOCK] = "block",
};

const char *const rename_how_names[_RENAME_MAX] = {
        [RENAME_DIRECTORY] = "directory",
        [RENAME_INODE] = "inode",
        [RENAME_CONTENT] = "content",
};

const char *const scratch_writes_names[_SCRATCH_WRITES_MAX] = {
        [SCRATCH_REPORT] = "report",
        [SCRATCH_ALLOW] = "allow",
        [SCRATCH_FAIL] = "fail",
};

void file_node_clear(FileNode *node)
{
        for (size_t i = 0; i < node->n_xattrs; i++)
                free(node->xattrs[i].name);
        free(node->xattrs);
        free(node->target);
        *node = (FileNode){ 0 };
}

void file_change_clear(FileChange *change)
{
        free(change->path);
        file_node_clear(&change->before);
        file_node_clear(&change->after);
        *change = (FileChange){ 0 };
}

void file_changes_clear(FileChanges *changes)
{
        for (size_t i = 0; i < changes->n; i++)
                file_change_clear(&changes->items[i]);
        free(changes->items);
        for (size_t i = 0; i < changes->n_renames; i++) {
                free(changes->renames[i].from);
                free(changes->renames[i].to);
        }
        free(changes->renames);
        for (size_t i = 0; i < changes->n_hard_links; i++)
                strv_free(changes->hard_links[i].paths);
        free(changes->hard_links);
        strv_free(changes->resolved);
        *changes = (FileChanges){ 0 };
}

/* --- what was agreed --- */

static int compare_paths(const void *a, const void *b)
{
        return path_compare(*(char *const *) a, *(char *const *) b);
}

/* What lies below an entry follows it directly, and adds nothing. */
static void drop_covered(char **list, size_t n)
{
        size_t kept = 0;

        for (size_t i = 0; i < n; i++) {
                if (kept > 0 && path_is_within(list[i], list[kept - 1]))
                        free(list[i]);
                else
                        list[kept++] = list[i];
        }
        list[kept] = NULL;
}

int change_rules_make(
                char *const *allow_changes, char *const *resolved, ScratchWrites scratch, ChangeRules *ret)
{
        size_t n = strv_length(allow_changes), more = strv_length(resolved);
        _cleanup_strv_ char **allowed = NULL;

        *ret = (ChangeRules){ .scratch = scratch };
        if (!allow_changes)
                return 0;
        allowed = strv_new(n + more);
        if (!allowed)
                return -ENOMEM;
        for (size_t i = 0; i < n + more; i++) {
                allowed[i] = strdup(i < n ? allow_changes[i] : resolved[i - n]);
                if (!allowed[i])
                        return -ENOMEM;
        }
        qsort(allowed, n + more, sizeof(char *), compare_paths);
        drop_covered(allowed, n + more);
        ret->allowed = TAKE_PTR(allowed);
        return 0;
}

void change_rules_clear(ChangeRules *rules)
{
        rules->allowed = strv_free(rules->allowed);
}

/* The number of entries that do not come after path. Of those only the last one can be above it. */
static size_t count_not_after(char *const *list, const char *path)
{
        size_t low = 0, high = strv_length(list);

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (path_compare(list[middle], path) <= 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

/* An allowed path may need directories that were not there: a new one above it is not a surprise. */
static bool is_allowed(char *const *allowed, ChangeKind kind, FileType type, const char *path)
{
        size_t at = count_not_after(allowed, path);

        if (at > 0 && path_is_within(path, allowed[at - 1]))
                return true;
        return kind == CHANGE_ADDED && type == FILE_DIRECTORY && allowed[at] &&
               path_is_within(allowed[at], path);
}

bool change_is_unexpected(
                const ChangeRules *rules, ChangeKind kind, FileType type, const char *path, bool scratch)
{
        if (scratch && rules->scratch != SCRATCH_FAIL)
                return false;
        if (!rules->allowed)
                return scratch;
        return !is_allowed(rules->allowed, kind, type, path);
}
