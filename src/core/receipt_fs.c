/* SPDX-License-Identifier: Apache-2.0 */
/* What the job changed: added, removed and changed entries, those that were not allowed, and totals over all
 * of them, also where the lists had to end early. */
#include "core/receipt_parts.h"

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

static int add_node(cJSON *object, const FileNode *node)
{
        char mode[16];

        (void) snprintf(mode, sizeof(mode), "%04o", node->mode & 07777u);
        if (json_add_text(object, "type", file_type_names[node->type]) < 0 ||
                        json_add_text(object, "mode", mode) < 0 ||
                        json_add_u64(object, "uid", node->uid) < 0 ||
                        json_add_u64(object, "gid", node->gid) < 0)
                return -ENOMEM;
        if (node->type == FILE_REGULAR)
                return json_add_u64(object, "size", node->size) < 0 ||
                                                       json_add_text(object, "sha256",
                                                                       *node->sha256 ? node->sha256 : NULL) <
                                                                       0
                                       ? -ENOMEM
                                       : 0;
        return node->type == FILE_SYMLINK ? receipt_add_raw(object, "target", node->target) : 0;
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

/* null when there was no allow_changes to judge by: an empty list would say that nothing was unexpected. */
static int add_unexpected(cJSON *fs, const Plan *plan, const FileChanges *changes, const Judgement *judgement)
{
        cJSON *list;

        if (!plan->allow_changes)
                return json_add_null(fs, "unexpected");
        list = json_add_array(fs, "unexpected");
        if (!list)
                return -ENOMEM;
        for (size_t i = 0; i < judgement->n_unexpected; i++) {
                int r = json_add_text(
                                list, NULL, shown_path(plan, changes->items[judgement->unexpected[i]].path));

                if (r < 0)
                        return r;
        }
        return 0;
}

int receipt_add_fs(cJSON *receipt, const ReceiptSource *s)
{
        const Plan *plan = s->plan;
        const Outcome *o = s->outcome;
        const FileChanges *changes = &o->changes;
        cJSON *fs, *totals;

        if (plan->posture == POSTURE_BOUNDED) /* nobody looked */
                return json_add_null(receipt, "fs");
        fs = json_add_object(receipt, "fs");
        if (!fs || add_lists(fs, plan, changes) < 0 || add_unexpected(fs, plan, changes, s->judgement) < 0)
                return -ENOMEM;
        totals = json_add_object(fs, "totals");
        for (size_t kind = 0; kind < _CHANGE_MAX; kind++)
                if (!totals || json_add_u64(totals, kind_names[kind], changes->total[kind]) < 0)
                        return -ENOMEM;
        if (json_add_bool(fs, "truncated", changes->truncated) < 0 ||
                        json_add_text(fs, "sha256", *changes->sha256 ? changes->sha256 : NULL) < 0 ||
                        json_add_text(fs, "workspace", workspace_to_string(plan->workspace)) < 0 ||
                        json_add_text(fs, "method", o->workspace_method) < 0 ||
                        json_add_text(fs, "layer", o->layer) < 0)
                return -ENOMEM;
        return 0;
}
