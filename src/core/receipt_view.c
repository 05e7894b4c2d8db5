/* SPDX-License-Identifier: Apache-2.0 */
#include "core/receipt_view.h"

#include "base/text.h"
#include "core/verdict.h"

#define EXACT_MAX 9007199254740992.0 /* 2^53: beyond it a double is no counter any more */

const cJSON *view_get(const cJSON *object, const char *key)
{
        const cJSON *item = object ? json_get(object, key) : NULL;

        return cJSON_IsNull(item) ? NULL : item;
}

const char *view_text(const cJSON *object, const char *key)
{
        return cJSON_GetStringValue(view_get(object, key));
}

uint64_t view_number(const cJSON *object, const char *key)
{
        const cJSON *item = view_get(object, key);

        if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0) || item->valuedouble > EXACT_MAX)
                return UNKNOWN;
        return (uint64_t) item->valuedouble;
}

bool view_true(const cJSON *object, const char *key)
{
        return cJSON_IsTrue(view_get(object, key));
}

size_t view_length(const cJSON *list)
{
        return cJSON_IsArray(list) ? (size_t) cJSON_GetArraySize(list) : 0;
}

/* What was never released has no duration. */
const char *view_no_end(const cJSON *receipt)
{
        if (!view_get(receipt, "duration_ms"))
                return "it was not started";
        return streq_ptr(view_text(receipt, "verdict"), "aborted") ? "interrupted (aborted)"
                                                                   : "how it ended is not known";
}

/* What readers rely on. Null is always allowed: unknown. */
static const struct {
        const char *key, *expected;
        int types; /* of cJSON */
        bool required;
} form[] = {
        { "schema", "a string", cJSON_String, true },
        { "verdict", "a string", cJSON_String, true },
        { "reasons", "a list", cJSON_Array, true },
        { "run_id", "a string", cJSON_String, false },
        { "job_id", "a string", cJSON_String, false },
        { "argv", "a list", cJSON_Array, false },
        { "cwd", "a string", cJSON_String, false },
        { "timeout_sec", "a number", cJSON_Number, false },
        { "exit_code", "a number", cJSON_Number, false },
        { "timed_out", "true or false", cJSON_True | cJSON_False, false },
        { "stdout", "a string", cJSON_String, false },
        { "stderr", "a string", cJSON_String, false },
        { "duration_ms", "a number", cJSON_Number, false },
        { "match_expected", "true or false", cJSON_True | cJSON_False, false },
        { "signal", "a string", cJSON_String, false },
        { "exec", "an object", cJSON_Object, false },
        { "limits", "an object", cJSON_Object, false },
        { "usage", "an object", cJSON_Object, false },
        { "isolation", "an object", cJSON_Object, false },
        { "fs", "an object", cJSON_Object, false },
        { "processes", "an object", cJSON_Object, false },
        { "sockets", "an object", cJSON_Object, false },
        { "egress", "a list", cJSON_Array, false },
        { "fds", "a list", cJSON_Array, false },
        { "ipc", "a list", cJSON_Array, false },
        { "blind_spots", "a list", cJSON_Array, false },
};

static int check_form(const cJSON *receipt, const char *name, Error *e)
{
        for (size_t i = 0; i < ELEMENTSOF(form); i++) {
                const cJSON *item = json_get(receipt, form[i].key);

                if (!item && form[i].required)
                        return error_set(e, -EINVAL, "%s: receipt.%s: is missing%s", name, form[i].key,
                                        i == 0 ? ": this is no receipt" : "");
                if (!item || (cJSON_IsNull(item) && !form[i].required) || (item->type & 0xff & form[i].types))
                        continue;
                return error_set(e, -EINVAL, "%s: receipt.%s: must be %s, is %s", name, form[i].key,
                                form[i].expected, json_type_name(item));
        }
        return 0;
}

static bool is_verdict(const char *text)
{
        for (size_t i = 0; i < _VERDICT_MAX; i++)
                if (streq(verdict_names[i], text))
                        return true;
        return false;
}

static int check_words(const cJSON *receipt, const char *name, Error *e)
{
        const char *schema = view_text(receipt, "schema"), *verdict = view_text(receipt, "verdict");
        const cJSON *reason;
        size_t i = 0;

        if (!streq(schema, RECEIPT_SCHEMA))
                return error_set(e, -EINVAL,
                                "%s: receipt.schema: is \"%.80s\", must be \"" RECEIPT_SCHEMA "\"", name,
                                schema);
        if (!is_verdict(verdict))
                return error_set(e, -EINVAL, "%s: receipt.verdict: \"%.80s\" is no verdict", name, verdict);
        cJSON_ArrayForEach(reason, view_get(receipt, "reasons"))
        {
                if (!view_text(reason, "code"))
                        return error_set(e, -EINVAL, "%s: receipt.reasons[%zu].code: must be a string", name,
                                        i);
                i++;
        }
        if (i > 0 && streq(verdict, "pass"))
                return error_set(e, -EINVAL, "%s: receipt.reasons: has %zu, and the verdict is \"pass\"",
                                name, i);
        if (i == 0 && !streq(verdict, "pass"))
                return error_set(e, -EINVAL, "%s: receipt.reasons: is empty, and the verdict is \"%s\"", name,
                                verdict);
        return 0;
}

int receipt_parse(const char *text, size_t size, const char *name, cJSON **ret, Error *e)
{
        _cleanup_(cJSON_Deletep) cJSON *receipt = NULL;
        int r = json_parse(text, size, JSON_STRICT, name, &receipt, e);

        if (r < 0)
                return r;
        if (!cJSON_IsObject(receipt))
                return error_set(e, -EINVAL, "%s: a receipt must be an object, is %s", name,
                                json_type_name(receipt));
        r = check_form(receipt, name, e);
        if (r == 0)
                r = check_words(receipt, name, e);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(receipt);
        return 0;
}
