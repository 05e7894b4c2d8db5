/* SPDX-License-Identifier: Apache-2.0 */
/* What the job changed:
 *
 *   fs = { added [entry…], removed [entry…], changed [{path, what, before {…}, after {…}}…],
 *     renames [{from, to, how}…], hard_links [{links, paths}…], unexpected [path…],
 *     totals {added, removed, changed, scratch, unexpected}, truncated, complete, sha256, scratch_writes,
 *     workspace, method, layer }
 *   entry = { path, type, mode, uid, gid, … }, and depending on what it is: setuid, setgid; size, sha256,
 *     allocated and sparse_sha256 where it has holes; links where it has more names than one; target; device;
 *     xattrs [{name, size, sha256}…], capabilities
 *
 *   kept = { state, files, bytes }: whether `qscope apply` can take the changes over, see core/kept.h
 *
 * A path is relative to the workspace, absolute elsewhere; one that is not UTF-8 is also given in base64.
 * renames tell what among added and removed is the same. Totals count what the lists had to leave out.
 * unexpected is null when nothing was agreed to judge by. sha256 is over all changes. */
#include "core/receipt_parts.h"

#include <sys/sysmacros.h>

#include "base/path.h"

static const char *const kind_names[_CHANGE_MAX] = {
        [CHANGE_ADDED] = "added",
        [CHANGE_REMOVED] = "removed",
        [CHANGE_CHANGED] = "changed",
};

static const struct {
        unsigned bit;
        const char *name;
} what_names[] = {
        { CHANGED_CONTENT, "content" },
        { CHANGED_MODE, "mode" },
        { CHANGED_OWNER, "owner" },
        { CHANGED_TYPE, "type" },
        { CHANGED_XATTR, "xattr" },
};

/* Relative to the workspace, "." for itself; absolute elsewhere. */
static const char *shown_path(const Plan *plan, const char *path)
{
        const char *below = path_below(path, plan->cwd);

        if (!below)
                return path;
        return *below ? below : ".";
}

static int add_xattrs(cJSON *object, const FileNode *node)
{
        cJSON *list;

        if (node->xattrs_total == 0)
                return 0;
        list = json_add_array(object, "xattrs");
        for (size_t i = 0; i < node->n_xattrs; i++) {
                cJSON *item = json_add_object(list, NULL);

                if (!item || receipt_add_raw(item, "name", node->xattrs[i].name) < 0 ||
                                json_add_u64(item, "size", node->xattrs[i].size) < 0 ||
                                json_add_text(item, "sha256", node->xattrs[i].sha256) < 0)
                        return -ENOMEM;
        }
        if (node->xattrs_total > node->n_xattrs &&
                        json_add_u64(object, "xattrs_total", node->xattrs_total) < 0)
                return -ENOMEM;
        return *node->capabilities ? json_add_text(object, "capabilities", node->capabilities)
               : list              ? 0
                                   : -ENOMEM;
}

static const char *known(const char *digest)
{
        return *digest ? digest : NULL;
}

static int add_content(cJSON *object, const FileNode *node)
{
        bool sparse = node->size != UNKNOWN && node->size / 4096 > (node->allocated + 4095) / 4096;

        if (json_add_u64(object, "size", node->size) < 0 ||
                        (sparse && json_add_u64(object, "allocated", node->allocated) < 0) ||
                        json_add_text(object, "sha256", known(node->sha256)) < 0)
                return -ENOMEM;
        return *node->sparse_sha256 ? json_add_text(object, "sparse_sha256", node->sparse_sha256) : 0;
}

static int add_type(cJSON *object, const FileNode *node)
{
        char device[32];

        switch (node->type) {
        case FILE_REGULAR:
                return add_content(object, node);
        case FILE_SYMLINK:
                return receipt_add_raw(object, "target", node->target);
        case FILE_CHAR:
        case FILE_BLOCK:
                (void) snprintf(device, sizeof(device), "%u:%u", major(node->device), minor(node->device));
                return json_add_text(object, "device", device);
        default:
                return 0;
        }
}

static int add_node(cJSON *object, const FileNode *node)
{
        char mode[16];

        (void) snprintf(mode, sizeof(mode), "%04o", node->mode & 07777u);
        if (json_add_text(object, "type", file_type_names[node->type]) < 0 ||
                        json_add_text(object, "mode", mode) < 0 ||
                        ((node->mode & 04000u) && json_add_bool(object, "setuid", true) < 0) ||
                        ((node->mode & 02000u) && json_add_bool(object, "setgid", true) < 0) ||
                        json_add_u64(object, "uid", node->uid) < 0 ||
                        json_add_u64(object, "gid", node->gid) < 0 || add_type(object, node) < 0)
                return -ENOMEM;
        if (node->links > 1 && json_add_u64(object, "links", node->links) < 0)
                return -ENOMEM;
        return add_xattrs(object, node);
}

static int add_sides(cJSON *object, const FileChange *change)
{
        cJSON *what = json_add_array(object, "what"), *before, *after;

        if (!what)
                return -ENOMEM;
        for (size_t i = 0; i < ELEMENTSOF(what_names); i++)
                if ((change->what & what_names[i].bit) && json_add_text(what, NULL, what_names[i].name) < 0)
                        return -ENOMEM;
        before = json_add_object(object, "before");
        if (!before || add_node(before, &change->before) < 0)
                return -ENOMEM;
        after = json_add_object(object, "after");
        return after ? add_node(after, &change->after) : -ENOMEM;
}

static int add_change(cJSON *list, const Plan *plan, const FileChange *change)
{
        cJSON *object = json_add_object(list, NULL);

        if (!object || receipt_add_raw(object, "path", shown_path(plan, change->path)) < 0)
                return -ENOMEM;
        switch (change->kind) {
        case CHANGE_ADDED:
                return add_node(object, &change->after);
        case CHANGE_REMOVED:
                return add_node(object, &change->before);
        default:
                return add_sides(object, change);
        }
}

static int add_lists(cJSON *fs, const Plan *plan, const FileChanges *changes)
{
        cJSON *lists[_CHANGE_MAX];

        for (size_t kind = 0; kind < _CHANGE_MAX; kind++) {
                lists[kind] = json_add_array(fs, kind_names[kind]);
                if (!lists[kind])
                        return -ENOMEM;
        }
        for (size_t i = 0; i < changes->n; i++) {
                int r = add_change(lists[changes->items[i].kind], plan, &changes->items[i]);

                if (r < 0)
                        return r;
        }
        return 0;
}

static int add_renames(cJSON *fs, const Plan *plan, const FileChanges *changes)
{
        cJSON *list = json_add_array(fs, "renames");

        for (size_t i = 0; list && i < changes->n_renames; i++) {
                const FileRename *rename = &changes->renames[i];
                cJSON *item = json_add_object(list, NULL);

                if (!item || receipt_add_raw(item, "from", shown_path(plan, rename->from)) < 0 ||
                                receipt_add_raw(item, "to", shown_path(plan, rename->to)) < 0 ||
                                json_add_text(item, "how", rename_how_names[rename->how]) < 0)
                        return -ENOMEM;
        }
        return list ? 0 : -ENOMEM;
}

/* Paths as text, and all of them in base64 too if one is not, so that nothing is lost. */
static int add_paths(cJSON *object, const char *key, const Plan *plan, char *const *paths)
{
        _cleanup_free_ char *key_base64 = text_printf("%s_base64", key);
        cJSON *list = json_add_array(object, key);
        bool exact = true;

        if (!list || !key_base64)
                return -ENOMEM;
        for (size_t i = 0; paths && paths[i]; i++) {
                exact = exact && utf8_is_valid(paths[i], strlen(paths[i]));
                if (json_add_text(list, NULL, shown_path(plan, paths[i])) < 0)
                        return -ENOMEM;
        }
        if (exact)
                return 0;
        list = json_add_array(object, key_base64);
        for (size_t i = 0; list && paths[i]; i++) {
                const char *path = shown_path(plan, paths[i]);
                _cleanup_free_ char *text = base64_encode(path, strlen(path));

                if (!text || json_add_text(list, NULL, text) < 0)
                        return -ENOMEM;
        }
        return list ? 0 : -ENOMEM;
}

static int add_hard_links(cJSON *fs, const Plan *plan, const FileChanges *changes)
{
        cJSON *list = json_add_array(fs, "hard_links");

        for (size_t i = 0; list && i < changes->n_hard_links; i++) {
                cJSON *item = json_add_object(list, NULL);

                if (!item || json_add_u64(item, "links", changes->hard_links[i].links) < 0 ||
                                add_paths(item, "paths", plan, changes->hard_links[i].paths) < 0)
                        return -ENOMEM;
        }
        return list ? 0 : -ENOMEM;
}

static bool is_judged(const Plan *plan)
{
        return plan->allow_changes || plan->policy->scratch_writes == SCRATCH_FAIL;
}

/* null when there was nothing to judge by: an empty list would say that nothing was unexpected. */
static int add_unexpected(cJSON *fs, const Plan *plan, const FileChanges *changes, const Judgement *judgement)
{
        _cleanup_free_ char **paths = NULL;

        if (!is_judged(plan))
                return json_add_null(fs, "unexpected");
        paths = calloc(judgement->n_unexpected + 1, sizeof(char *)); /* borrowed */
        if (!paths)
                return -ENOMEM;
        for (size_t i = 0; i < judgement->n_unexpected; i++)
                paths[i] = changes->items[judgement->unexpected[i]].path;
        return add_paths(fs, "unexpected", plan, paths);
}

/* When nothing ran, nothing changed; when something did and nobody looked, that is not known. */
static int add_total(cJSON *totals, const Outcome *o, const char *key, uint64_t value)
{
        return json_add_u64(totals, key, o->released ? value : 0);
}

static int add_totals(cJSON *fs, const ReceiptSource *s)
{
        const FileChanges *changes = &s->outcome->changes;
        uint64_t unexpected = s->judgement->n_unexpected + changes->unlisted_unexpected[false] +
                              changes->unlisted_unexpected[true];
        cJSON *totals = json_add_object(fs, "totals");

        for (size_t kind = 0; kind < _CHANGE_MAX; kind++)
                if (!totals || add_total(totals, s->outcome, kind_names[kind], changes->total[kind]) < 0)
                        return -ENOMEM;
        if (add_total(totals, s->outcome, "scratch", changes->scratch) < 0)
                return -ENOMEM;
        return json_add_u64(totals, "unexpected", is_judged(s->plan) ? unexpected : UNKNOWN);
}

int receipt_add_fs(cJSON *receipt, const ReceiptSource *s)
{
        const Plan *plan = s->plan;
        const Outcome *o = s->outcome;
        const FileChanges *changes = &o->changes;
        cJSON *fs;

        if (plan->posture == POSTURE_BOUNDED) /* nobody looked */
                return json_add_null(receipt, "fs");
        fs = json_add_object(receipt, "fs");
        if (!fs || add_lists(fs, plan, changes) < 0 || add_renames(fs, plan, changes) < 0 ||
                        add_hard_links(fs, plan, changes) < 0 ||
                        add_unexpected(fs, plan, changes, s->judgement) < 0 || add_totals(fs, s) < 0)
                return -ENOMEM;
        if (json_add_bool(fs, "truncated", changes->truncated) < 0 ||
                        json_add_bool(fs, "complete", changes->complete || !o->released) < 0 ||
                        json_add_text(fs, "sha256", known(changes->sha256)) < 0 ||
                        json_add_text(fs, "scratch_writes",
                                        scratch_writes_names[plan->policy->scratch_writes]) < 0 ||
                        json_add_text(fs, "workspace", workspace_to_string(plan->workspace)) < 0 ||
                        json_add_text(fs, "method", o->workspace_method) < 0 ||
                        json_add_text(fs, "layer", o->layer) < 0)
                return -ENOMEM;
        return 0;
}

int receipt_add_kept(cJSON *receipt, const ReceiptSource *s)
{
        const KeptRecord *record = &s->outcome->kept;
        cJSON *kept = json_add_object(receipt, "kept");

        if (!kept || json_add_text(kept, "state", kept_state_names[record->state]) < 0 ||
                        json_add_u64(kept, "files", record->files) < 0 ||
                        json_add_u64(kept, "bytes", record->bytes) < 0)
                return -ENOMEM;
        return 0;
}
