/* SPDX-License-Identifier: Apache-2.0 */
#include "core/policy_merge.h"

static const char *const added_lists[] = { "deny_argv0", "deny_exec", "env.deny", "hidden_paths", "require" };

static bool is_added(const JsonPath *at)
{
        char path[JSON_PATH_MAX];

        json_path_format(at, path);
        for (size_t i = 0; i < ELEMENTSOF(added_lists); i++)
                if (streq(added_lists[i], path))
                        return true;
        return false;
}

static bool is_removal(const JsonPath *at, const cJSON *value)
{
        return cJSON_IsNull(value) && at->up && at->up->key && !at->up->up->key &&
               streq(at->up->key, "properties");
}

/* Keeps the place of a key that is there already. */
static int put(cJSON *object, const char *key, cJSON *item)
{
        if (!item)
                return -ENOMEM;
        if (!cJSON_GetObjectItemCaseSensitive(object, key))
                return json_add(object, key, item);
        if (cJSON_ReplaceItemInObjectCaseSensitive(object, key, item))
                return 0;
        cJSON_Delete(item);
        return -ENOMEM;
}

static bool list_has(const cJSON *list, const cJSON *wanted)
{
        const cJSON *item;

        cJSON_ArrayForEach(item, list) if (cJSON_Compare(item, wanted, true)) return true;
        return false;
}

static int add_elements(cJSON *into, cJSON *sources, const JsonPath *at, const cJSON *from, const char *file)
{
        cJSON *list = cJSON_GetObjectItemCaseSensitive(into, at->key),
              *files = cJSON_GetObjectItemCaseSensitive(sources, at->key);
        const cJSON *item;
        int r = 0;

        if (!list || !from->child) {
                r = put(into, at->key, cJSON_CreateArray());
                if (r == 0)
                        r = put(sources, at->key, cJSON_CreateArray());
                list = cJSON_GetObjectItemCaseSensitive(into, at->key);
                files = cJSON_GetObjectItemCaseSensitive(sources, at->key);
        }
        cJSON_ArrayForEach(item, from)
        {
                if (r == 0 && !list_has(list, item)) {
                        r = json_add(list, NULL, cJSON_Duplicate(item, true));
                        if (r == 0)
                                r = json_add_text(files, NULL, file);
                }
        }
        return r;
}

static int merge_object(cJSON *into, cJSON *sources, const cJSON *from, const JsonPath *up, const char *file);

static int merge_member(cJSON *into, cJSON *sources, const JsonPath *at, const cJSON *value, const char *file)
{
        int r = 0;

        if (is_removal(at, value)) {
                cJSON_DeleteItemFromObjectCaseSensitive(into, at->key);
                cJSON_DeleteItemFromObjectCaseSensitive(sources, at->key);
                return 0;
        }
        if (is_added(at))
                return add_elements(into, sources, at, value, file);
        if (!cJSON_IsObject(value)) {
                r = put(into, at->key, cJSON_Duplicate(value, true));
                return r < 0 ? r : put(sources, at->key, cJSON_CreateString(file));
        }
        if (!cJSON_IsObject(cJSON_GetObjectItemCaseSensitive(into, at->key))) {
                r = put(into, at->key, cJSON_CreateObject());
                if (r == 0)
                        r = put(sources, at->key, cJSON_CreateObject());
        }
        return r < 0 ? r
                     : merge_object(cJSON_GetObjectItemCaseSensitive(into, at->key),
                                       cJSON_GetObjectItemCaseSensitive(sources, at->key), value, at, file);
}

static int merge_object(cJSON *into, cJSON *sources, const cJSON *from, const JsonPath *up, const char *file)
{
        const cJSON *member;

        cJSON_ArrayForEach(member, from)
        {
                JsonPath at = { .up = up, .key = member->string };
                int r = merge_member(into, sources, &at, member, file);

                if (r < 0)
                        return r;
        }
        return 0;
}

int policy_merge(cJSON *into, cJSON *sources, const cJSON *from, const char *file)
{
        const JsonPath root = { .up = NULL };

        return merge_object(into, sources, from, &root, file);
}
