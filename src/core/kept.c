/* SPDX-License-Identifier: Apache-2.0 */
#include "core/kept.h"

#include "base/number.h"
#include "core/plan.h"
#include "core/reader.h"

#define LAYER_SCHEMA "qscope.layer/v1"

const char *const kept_state_names[_KEPT_STATE_MAX] = {
        [KEPT_NOTHING] = "nothing",
        [KEPT_YES] = "yes",
        [KEPT_OFF] = "off",
        [KEPT_TOO_LARGE] = "too_large",
        [KEPT_INCOMPLETE] = "incomplete",
        [KEPT_FAILED] = "failed",
};

const char *kept_state_sentence(const char *state)
{
        static const char *const sentences[_KEPT_STATE_MAX] = {
                [KEPT_NOTHING] = "the job changed nothing in its workspace",
                [KEPT_YES] = "it was kept, and has been applied, discarded or aged since, or lies below another "
                             "--state-dir",
                [KEPT_OFF] = "nothing was to be kept; run it with --keep (a batch keeps nothing without that, eval "
                             "never does)",
                [KEPT_TOO_LARGE] =
                                "its changes were more than is kept of one run (layers.each in " KEPT_CONFIG
                                ")",
                [KEPT_INCOMPLETE] = "not every change is listed: nobody could say what would be applied",
                [KEPT_FAILED] = "the host could not keep its changes: no space, no right, or " KEPT_CONFIG
                                " does not read (qscope clean --dry-run says so)",
        };

        for (KeptState i = 0; state && i < _KEPT_STATE_MAX; i++)
                if (streq(kept_state_names[i], state))
                        return sentences[i];
        return "only runs as root, of jobs in a copy-on-write workspace that were begun and not interrupted, keep "
               "something";
}

const KeepRules keep_rules_default = {
        .layers = true,
        .each = MIB(256),
        .count = 200,
        .total = MIB(2048),
        .age = 7 * 24 * 3600 * USEC_PER_SEC,
        .receipt_total = UNKNOWN,
        .receipt_age = UNKNOWN,
};

/* --- layer.json --- */

void kept_info_clear(KeptInfo *info)
{
        free(info->run_id);
        free(info->job_id);
        free(info->verdict);
        free(info->workspace);
        free(info->receipt_sha256);
        *info = (KeptInfo){ 0 };
}

char *kept_info_print(const KeptInfo *info)
{
        _cleanup_(cJSON_Deletep) cJSON *object = cJSON_CreateObject();
        _cleanup_free_ char *workspace = base64_encode(info->workspace, strlen(info->workspace));

        if (!object || !workspace || json_add_text(object, "schema", LAYER_SCHEMA) < 0 ||
                        json_add_text(object, "run_id", info->run_id) < 0 ||
                        json_add_text(object, "job_id", info->job_id) < 0 ||
                        json_add_text(object, "verdict", info->verdict) < 0 ||
                        json_add_text(object, "workspace", info->workspace) < 0 ||
                        json_add_text(object, "workspace_base64", workspace) < 0 ||
                        json_add_text(object, "receipt_sha256", info->receipt_sha256) < 0 ||
                        json_add_u64(object, "files", info->files) < 0 ||
                        json_add_u64(object, "bytes", info->bytes) < 0 ||
                        json_add_u64(object, "kept_usec", info->kept_usec) < 0)
                return NULL;
        return json_print(object, true);
}

static int read_count(const Reader *r, const JsonPath *at, const cJSON *value, void *target)
{
        return read_integer(r, at, value, 0, UINT64_C(1) << 53, target);
}

static int read_base64(const Reader *r, const JsonPath *at, const cJSON *value, void *target)
{
        uint8_t *data;
        size_t size;
        int k;

        if (!cJSON_IsString(value))
                return read_fail_type(r, at, "a string", value);
        k = base64_decode(value->valuestring, &data, &size);
        if (k == 0 && memchr(data, '\0', size)) {
                free(data);
                k = -EINVAL;
        }
        if (k < 0)
                return k == -ENOMEM ? k : read_fail(r, at, "must be base64");
        free(*(char **) target);
        *(char **) target = (char *) data;
        return 0;
}

static int pass_over(_unused_ const Reader *r, _unused_ const JsonPath *at, _unused_ const cJSON *value,
                _unused_ void *target)
{
        return 1;
}

int kept_info_parse(const char *text, size_t size, const char *name, KeptInfo *ret, Error *e)
{
        static const ReadRow rows[] = {
                { "run_id", read_word, offsetof(KeptInfo, run_id) },
                { "job_id", read_word, offsetof(KeptInfo, job_id) },
                { "verdict", read_word, offsetof(KeptInfo, verdict) },
                { "workspace_base64", read_base64, offsetof(KeptInfo, workspace) },
                { "receipt_sha256", read_sha256, offsetof(KeptInfo, receipt_sha256) },
                { "files", read_count, offsetof(KeptInfo, files) },
                { "bytes", read_count, offsetof(KeptInfo, bytes) },
                { "kept_usec", read_count, offsetof(KeptInfo, kept_usec) },
        };
        const Reader reader = { .file = name, .root = "layer", .text = text, .size = size, .e = e };
        _cleanup_(cJSON_Deletep) cJSON *object = NULL;
        _cleanup_(kept_info_clear) KeptInfo info = { 0 };
        int r = json_parse(text, size, JSON_STRICT, name, &object, e);

        if (r < 0)
                return r;
        r = read_object(&reader, NULL, object, rows, ELEMENTSOF(rows), pass_over, &info);
        if (r < 0)
                return r;
        if (!info.run_id || !info.job_id || !info.verdict || !info.workspace || *info.workspace != '/' ||
                        !info.receipt_sha256)
                return error_set(e, -EINVAL, "%s: a key is missing", name);
        *ret = info;
        info = (KeptInfo){ 0 };
        return 0;
}

/* --- the configuration --- */

static int read_bytes(const Reader *r, const JsonPath *at, const cJSON *value, void *target)
{
        if (cJSON_IsNull(value)) {
                *(uint64_t *) target = UNKNOWN;
                return 0;
        }
        if (cJSON_IsNumber(value))
                return read_count(r, at, value, target);
        if (!cJSON_IsString(value) || parse_size(value->valuestring, target) < 0)
                return read_fail(r, at, "must be bytes, such as \"2G\", or null");
        return 0;
}

static int read_number(const Reader *r, const JsonPath *at, const cJSON *value, void *target)
{
        if (cJSON_IsNull(value)) {
                *(uint64_t *) target = UNKNOWN;
                return 0;
        }
        return read_count(r, at, value, target);
}

static int read_age(const Reader *r, const JsonPath *at, const cJSON *value, void *target)
{
        if (cJSON_IsNull(value)) {
                *(uint64_t *) target = UNKNOWN;
                return 0;
        }
        if (!cJSON_IsString(value) || parse_age(value->valuestring, target) < 0)
                return read_fail(r, at, "must be an age, such as \"7d\" or \"12h\", or null");
        return 0;
}

static int read_layers(const Reader *r, const JsonPath *at, const cJSON *value, void *target)
{
        static const ReadRow rows[] = {
                { "keep", read_bool, offsetof(KeepRules, layers) },
                { "each", read_bytes, offsetof(KeepRules, each) },
                { "count", read_number, offsetof(KeepRules, count) },
                { "total", read_bytes, offsetof(KeepRules, total) },
                { "age", read_age, offsetof(KeepRules, age) },
        };

        return read_object(r, at, value, rows, ELEMENTSOF(rows), NULL, target);
}

static int read_receipts(const Reader *r, const JsonPath *at, const cJSON *value, void *target)
{
        static const ReadRow rows[] = {
                { "total", read_bytes, offsetof(KeepRules, receipt_total) },
                { "age", read_age, offsetof(KeepRules, receipt_age) },
        };

        return read_object(r, at, value, rows, ELEMENTSOF(rows), NULL, target);
}

int keep_rules_parse(const char *text, size_t size, const char *name, KeepRules *rules, Error *e)
{
        static const ReadRow rows[] = { { "layers", read_layers, 0 }, { "receipts", read_receipts, 0 } };
        const Reader reader = { .file = name, .root = "keep", .text = text, .size = size, .e = e };
        const JsonPath document = { .up = NULL };
        _cleanup_(cJSON_Deletep) cJSON *object = NULL;
        KeepRules read = *rules;
        int r = json_parse(text, size, JSON_COMMENTS, name, &object, e);

        if (r == 0)
                r = read_object(&reader, &document, object, rows, ELEMENTSOF(rows), NULL, &read);
        if (r == 0)
                *rules = read;
        return r;
}

/* --- what goes --- */

static int compare_items(const void *a, const void *b)
{
        const KeptItem *x = a, *y = b;

        return x->usec < y->usec ? -1 : x->usec > y->usec;
}

void keep_choose(KeptItem *items, size_t n, uint64_t now_usec, uint64_t count, uint64_t total, uint64_t age)
{
        uint64_t left = 0, bytes = 0;

        if (n > 0)
                qsort(items, n, sizeof(*items), compare_items);
        for (size_t i = 0; i < n; i++) {
                if (items[i].in_use)
                        continue;
                left++;
                bytes = items[i].bytes > UNKNOWN - 1 - bytes ? UNKNOWN - 1 : bytes + items[i].bytes;
        }
        for (size_t i = 0; i < n; i++) {
                uint64_t old = items[i].usec < now_usec ? now_usec - items[i].usec : 0;

                items[i].remove = !items[i].in_use &&
                                  ((age != UNKNOWN && old > age) || (count != UNKNOWN && left > count) ||
                                                  (total != UNKNOWN && bytes > total));
                if (!items[i].remove)
                        continue;
                left--;
                bytes -= MIN(bytes, items[i].bytes);
        }
}
