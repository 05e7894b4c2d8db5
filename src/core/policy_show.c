/* SPDX-License-Identifier: Apache-2.0 */
/* The merged policy as a person reads it: a policy file again, with the origin of each value as a comment. */

#include "core/policy.h"

#include "base/text.h"

static int put_json(FILE *out, const cJSON *item)
{
        _cleanup_free_ char *text = item ? json_print_canonical(item) : NULL;

        return text && fputs(text, out) >= 0 ? 0 : -ENOMEM;
}

static int put_key(FILE *out, const char *key, unsigned depth)
{
        _cleanup_(cJSON_Deletep) cJSON *text = cJSON_CreateString(key);

        (void) fprintf(out, "%*s", (int) (2 * depth), "");
        if (put_json(out, text) < 0)
                return -ENOMEM;
        (void) fputs(": ", out);
        return 0;
}

static void put_origin(FILE *out, const cJSON *source, bool last)
{
        char name[512];

        text_escape(source->valuestring, strlen(source->valuestring), name, sizeof(name));
        (void) fprintf(out, "%s // %s\n", last ? "" : ",", name);
}

static int put_list(FILE *out, const cJSON *list, const cJSON *sources, bool last, unsigned depth)
{
        const cJSON *item, *source = sources->child;

        if (!list->child) {
                (void) fprintf(out, "[]%s\n", last ? "" : ",");
                return 0;
        }
        (void) fputs("[\n", out);
        for (item = list->child; item && source; item = item->next, source = source->next) {
                (void) fprintf(out, "%*s", (int) (2 * depth + 2), "");
                if (put_json(out, item) < 0)
                        return -ENOMEM;
                put_origin(out, source, !item->next);
        }
        (void) fprintf(out, "%*s]%s\n", (int) (2 * depth), "", last ? "" : ",");
        return 0;
}

/* As deep as a document may be: JSON_DEPTH_MAX. */
static int put_object(FILE *out, const cJSON *object, const cJSON *sources, bool last, unsigned depth)
{
        const cJSON *member;

        (void) fputs("{\n", out);
        cJSON_ArrayForEach(member, object)
        {
                const cJSON *source = json_get(sources, member->string);
                int r = put_key(out, member->string, depth + 1);

                if (r == 0 && cJSON_IsObject(source)) {
                        r = put_object(out, member, source, !member->next, depth + 1);
                } else if (r == 0 && cJSON_IsArray(source)) {
                        r = put_list(out, member, source, !member->next, depth + 1);
                } else if (r == 0) {
                        r = put_json(out, member);
                        put_origin(out, source, !member->next);
                }
                if (r < 0)
                        return r;
        }
        (void) fprintf(out, "%*s}%s\n", (int) (2 * depth), "", last ? "" : ",");
        return 0;
}

char *policy_show(const Policy *policy)
{
        TextStream stream;
        FILE *out = text_stream_open(&stream);

        if (!out)
                return NULL;
        (void) fprintf(out, "// policy %s, sha256 %s\n", policy->name, policy->sha256);
        return text_stream_close(&stream, put_object(out, policy->document, policy->sources, true, 0));
}
