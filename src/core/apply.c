/* SPDX-License-Identifier: Apache-2.0 */
#include "core/apply.h"

#include <limits.h>

#include "base/array.h"
#include "base/path.h"
#include "core/kept.h"

ApplyPlan *apply_plan_free(ApplyPlan *plan)
{
        if (!plan)
                return NULL;
        for (size_t i = 0; i < plan->n; i++) {
                free(plan->items[i].path);
                free(plan->items[i].before.target);
                free(plan->items[i].after.target);
        }
        for (size_t i = 0; plan->links && plan->links[i]; i++)
                strv_free(plan->links[i]);
        free(plan->links);
        free(plan->unexpected);
        free(plan->items);
        free(plan->steps);
        free(plan->run_id);
        free(plan->job_id);
        free(plan->verdict);
        free(plan);
        return NULL;
}

/* --- reading --- */

/* KEY, or KEY_base64 where the bytes are not UTF-8. */
static int read_raw(const cJSON *object, const char *key, char **ret)
{
        const char *text = view_text(object, key), *encoded;
        char key_base64[32];
        uint8_t *data;
        size_t size;
        int r;

        (void) snprintf(key_base64, sizeof(key_base64), "%s_base64", key);
        encoded = view_text(object, key_base64);
        if (!encoded) {
                *ret = text ? strdup(text) : NULL;
                return *ret ? 0 : text ? -ENOMEM : -EINVAL;
        }
        r = base64_decode(encoded, &data, &size);
        if (r == 0 && memchr(data, '\0', size)) {
                free(data);
                r = -EINVAL;
        }
        if (r == 0)
                *ret = (char *) data;
        return r;
}

static bool is_sha256(const char *text)
{
        return strlen(text) == HASH_HEX_MAX - 1 && strspn(text, "0123456789abcdef") == HASH_HEX_MAX - 1;
}

static int read_mode(const cJSON *object, unsigned *ret)
{
        const char *text = view_text(object, "mode");
        char *end;

        if (!text || strlen(text) != 4 || strspn(text, "01234567") != 4)
                return -EINVAL;
        *ret = (unsigned) strtoul(text, &end, 8);
        return 0;
}

static int read_type(const cJSON *object, FileType *ret)
{
        const char *text = view_text(object, "type");

        for (FileType type = 0; text && type < _FILE_TYPE_MAX; type++)
                if (streq(text, file_type_names[type])) {
                        *ret = type;
                        return 0;
                }
        return -EINVAL;
}

static int read_node(const cJSON *object, ApplyNode *ret)
{
        const char *sha256 = view_text(object, "sha256");
        int r = read_type(object, &ret->type);

        if (r == 0)
                r = read_mode(object, &ret->mode);
        if (r < 0)
                return r;
        ret->exists = true;
        ret->uid = view_number(object, "uid");
        ret->gid = view_number(object, "gid");
        ret->size = view_number(object, "size");
        if (ret->type == FILE_SYMLINK) {
                r = read_raw(object, "target", &ret->target);
                if (r == 0 && (!*ret->target || strlen(ret->target) >= PATH_MAX))
                        r = -EINVAL;
        }
        if (r < 0 || ret->type != FILE_REGULAR)
                return r;
        if (ret->size == UNKNOWN || (sha256 && !is_sha256(sha256)))
                return -EINVAL;
        if (sha256)
                memcpy(ret->sha256, sha256, HASH_HEX_MAX);
        return 0;
}

static bool has_what(const cJSON *what, const char *name)
{
        const cJSON *item;

        cJSON_ArrayForEach(item, what)
        {
                if (cJSON_IsString(item) && streq(item->valuestring, name))
                        return true;
        }
        return false;
}

static int read_sides(const cJSON *object, ApplyChange *change)
{
        const cJSON *what = view_get(object, "what");
        int r = 0;

        switch (change->kind) {
        case CHANGE_ADDED:
                change->content = true;
                return read_node(object, &change->after);
        case CHANGE_REMOVED:
                return read_node(object, &change->before);
        default:
                if (!cJSON_IsArray(what))
                        return -EINVAL;
                change->content = has_what(what, "content") || has_what(what, "type");
                r = read_node(view_get(object, "before"), &change->before);
                return r < 0 ? r : read_node(view_get(object, "after"), &change->after);
        }
}

/* 1: not one of the workspace's. */
static int read_path(const cJSON *object, char **ret)
{
        _cleanup_free_ char *raw = NULL, *normal = NULL;
        int r = read_raw(object, "path", &raw);

        if (r < 0 || !raw)
                return r < 0 ? r : -EINVAL;
        if (*raw == '/')
                return 1;
        r = path_normalise(raw, &normal);
        if (r < 0)
                return r == -ENOMEM ? r : -EINVAL;
        if (!streq(raw, normal))
                return -EINVAL;
        *ret = TAKE_PTR(raw);
        return 0;
}

/* 1: passed over. */
static int read_change(const cJSON *object, ChangeKind kind, ApplyChange *ret)
{
        ApplyChange change = { .kind = kind };
        int r = cJSON_IsObject(object) ? read_path(object, &change.path) : -EINVAL;

        if (r == 0)
                r = read_sides(object, &change);
        if (r != 0) {
                free(change.path);
                free(change.before.target);
                free(change.after.target);
                return r;
        }
        *ret = change;
        return 0;
}

static int read_list(
                ApplyPlan *plan, size_t *room, const cJSON *fs, const char *key, ChangeKind kind, Error *e)
{
        const cJSON *list = view_get(fs, key), *item;
        size_t index = 0;

        if (list && !cJSON_IsArray(list))
                return error_set(e, -EINVAL, "receipt.fs.%s: must be a list", key);
        cJSON_ArrayForEach(item, list)
        {
                ApplyChange *items = array_grow(plan->items, plan->n, room, sizeof(*items));
                int r;

                if (!items)
                        return -ENOMEM;
                plan->items = items;
                r = plan->n < APPLY_CHANGES_MAX ? read_change(item, kind, &items[plan->n]) : -E2BIG;
                if (r == -E2BIG)
                        return error_set(e, r, "receipt.fs: has more than %u changes", APPLY_CHANGES_MAX);
                if (r == -EINVAL)
                        return error_set(e, r, "receipt.fs.%s[%zu]: is no change of a file in the workspace",
                                        key, index);
                if (r < 0)
                        return r;
                plan->n += r == 0;
                index++;
        }
        return 0;
}

static int compare_changes(const void *a, const void *b)
{
        const ApplyChange *x = a, *y = b;

        return path_compare(x->path, y->path);
}

/* Sorted, no path twice, and nothing below what is no directory. */
static int check_tree(const ApplyPlan *plan, Error *e)
{
        const ApplyChange *above = NULL; /* the last one that ends as something else than a directory */

        for (size_t i = 0; i < plan->n; i++) {
                const ApplyChange *change = &plan->items[i];

                if (i > 0 && streq(plan->items[i - 1].path, change->path))
                        return error_set(e, -EINVAL, "receipt.fs: %s stands there twice", change->path);
                if (above && !path_is_within(change->path, above->path))
                        above = NULL;
                if (above && change->after.exists)
                        return error_set(e, -EINVAL, "receipt.fs: %s lies in %s, which is no directory",
                                        change->path, above->path);
                if (!above && !(change->after.exists && change->after.type == FILE_DIRECTORY))
                        above = change;
        }
        return 0;
}

static int read_link_group(ApplyPlan *plan, const cJSON *group, size_t n)
{
        const char *encoded_key = view_get(group, "paths_base64") ? "paths_base64" : "paths";
        const cJSON *item;

        cJSON_ArrayForEach(item, view_get(group, encoded_key))
        {
                uint8_t *data = NULL;
                size_t size;
                int r = 0;

                if (!cJSON_IsString(item))
                        return -EINVAL;
                if (streq(encoded_key, "paths_base64"))
                        r = base64_decode(item->valuestring, &data, &size);
                if (r == 0)
                        r = strv_consume(&plan->links[n], data ? (char *) data : strdup(item->valuestring));
                if (r < 0)
                        return r;
        }
        return 0;
}

/* Only among files that are added: a hard link to what was there before could not be told from a copy. */
static int read_links(ApplyPlan *plan, const cJSON *fs, Error *e)
{
        const cJSON *list = view_get(fs, "hard_links"), *group;
        size_t n = 0;

        plan->links = calloc(view_length(list) + 1, sizeof(*plan->links));
        if (!plan->links)
                return -ENOMEM;
        cJSON_ArrayForEach(group, list)
        {
                int r = read_link_group(plan, group, n);

                if (r < 0)
                        return r == -ENOMEM ? r
                                            : error_set(e, -EINVAL,
                                                              "receipt.fs.hard_links: must be lists of paths");
                n += plan->links[n] != NULL;
        }
        return 0;
}

static int read_unexpected(ApplyPlan *plan, const cJSON *fs, Error *e)
{
        bool encoded = view_get(fs, "unexpected_base64") != NULL;
        const cJSON *list = view_get(fs, encoded ? "unexpected_base64" : "unexpected"), *item;

        if (!list)
                return 0;
        plan->unexpected = calloc(plan->n + 1, sizeof(*plan->unexpected));
        if (!plan->unexpected)
                return -ENOMEM;
        cJSON_ArrayForEach(item, list)
        {
                _cleanup_free_ uint8_t *data = NULL;
                const ApplyChange *change;
                size_t size;
                int r = cJSON_IsString(item) ? 0 : -EINVAL;

                if (r == 0 && encoded)
                        r = base64_decode(item->valuestring, &data, &size);
                if (r < 0)
                        return r == -ENOMEM ? r
                                            : error_set(e, -EINVAL,
                                                              "receipt.fs.unexpected: must be a list of paths");
                change = apply_find(plan, data ? (const char *) data : item->valuestring);
                if (change)
                        plan->unexpected[change - plan->items] = true;
        }
        return 0;
}

static int copy_words(const cJSON *receipt, ApplyPlan *plan)
{
        const char *run_id = view_text(receipt, "run_id"), *job_id = view_text(receipt, "job_id");

        plan->run_id = strdup(run_id ? run_id : "");
        plan->job_id = strdup(job_id ? job_id : "");
        plan->verdict = strdup(view_text(receipt, "verdict"));
        plan->no_layer = kept_state_sentence(view_text(view_get(receipt, "kept"), "state"));
        return plan->run_id && plan->job_id && plan->verdict ? 0 : -ENOMEM;
}

int apply_plan_read(const cJSON *receipt, ApplyPlan **ret, Error *e)
{
        static const char *const keys[_CHANGE_MAX] = { "added", "removed", "changed" };
        _cleanup_(apply_plan_freep) ApplyPlan *plan = calloc(1, sizeof(*plan));
        const cJSON *fs = view_get(receipt, "fs");
        size_t room = 0;
        int r;

        if (!plan)
                return -ENOMEM;
        if (fs && (view_true(fs, "truncated") || !view_true(fs, "complete")))
                return error_set(e, -EINVAL,
                                "the receipt does not list every change, so nothing can be applied");
        r = copy_words(receipt, plan);
        for (ChangeKind kind = 0; r == 0 && kind < _CHANGE_MAX; kind++)
                r = read_list(plan, &room, fs, keys[kind], kind, e);
        if (r == 0)
                r = read_links(plan, fs, e);
        if (r < 0)
                return r;
        if (plan->n > 0)
                qsort(plan->items, plan->n, sizeof(*plan->items), compare_changes);
        r = check_tree(plan, e);
        if (r == 0)
                r = read_unexpected(plan, fs, e);
        if (r < 0)
                return r;
        for (size_t i = 0; i < plan->n; i++)
                plan->items[i].state = APPLY_UNSELECTED;
        *ret = TAKE_PTR(plan);
        return 0;
}

ApplyChange *apply_find(const ApplyPlan *plan, const char *path)
{
        ApplyChange key = { .path = (char *) path };

        return plan->n > 0 ? bsearch(&key, plan->items, plan->n, sizeof(key), compare_changes) : NULL;
}
