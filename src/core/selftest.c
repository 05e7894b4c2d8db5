/* SPDX-License-Identifier: Apache-2.0 */
#include "core/selftest.h"

#include <fnmatch.h>

#include "base/text.h"

#define SUITE_NAME "the suite"
#define AT_MAX     256u

const char *const selftest_result_names[_SELFTEST_RESULT_MAX] = {
        [SELFTEST_SEEN] = "seen",
        [SELFTEST_CLEAN] = "clean",
        [SELFTEST_BLIND] = "blind",
        [SELFTEST_MISSED] = "missed",
        [SELFTEST_NOISY] = "noisy",
        [SELFTEST_FAILED] = "failed",
        [SELFTEST_SKIPPED] = "skipped",
};

bool selftest_is_fault(SelftestResult result)
{
        return result == SELFTEST_MISSED || result == SELFTEST_NOISY || result == SELFTEST_FAILED;
}

void selftest_suite_clear(SelftestSuite *suite)
{
        free(suite->cases);
        cJSON_Delete(suite->document);
        *suite = (SelftestSuite){ 0 };
}

static int read_case(const cJSON *item, SelftestCase *ret, Error *e)
{
        static const char *const keys[] = { "name", "what", "shows", "program", "good", "job", "expect",
                "tree", "evidence", "absent" };
        const cJSON *member;

        *ret = (SelftestCase){
                .name = view_text(item, "name"),
                .what = view_text(item, "what"),
                .shows = view_text(item, "shows"),
                .program = view_text(item, "program"),
                .good = view_true(item, "good"),
                .job = view_get(item, "job"),
                .expect = view_get(item, "expect"),
                .tree = view_get(item, "tree"),
                .evidence = view_get(item, "evidence"),
                .absent = view_get(item, "absent"),
        };
        if (!ret->name || !ret->what || !ret->shows || !cJSON_IsObject(ret->job) ||
                        !cJSON_IsObject(ret->expect))
                return error_set(e, -EINVAL, SUITE_NAME ": \"%s\" lacks name, what, shows, job or expect",
                                ret->name ? ret->name : "?");
        cJSON_ArrayForEach(member, item)
        {
                bool known = false;

                for (size_t i = 0; i < ELEMENTSOF(keys); i++)
                        known = known || streq(member->string, keys[i]);
                if (!known)
                        return error_set(e, -EINVAL, SUITE_NAME ": \"%s\": %s is not a key", ret->name,
                                        member->string);
        }
        return 0;
}

int selftest_suite_parse(const char *text, size_t size, SelftestSuite *ret, Error *e)
{
        SelftestSuite suite = { 0 };
        const cJSON *jobs, *item;
        int r = json_parse(text, size, JSON_COMMENTS, SUITE_NAME, &suite.document, e);

        if (r < 0)
                return r;
        suite.clean = view_get(suite.document, "clean");
        jobs = view_get(suite.document, "jobs");
        suite.cases = calloc(MAX(view_length(jobs), (size_t) 1), sizeof(SelftestCase));
        if (!suite.cases)
                r = -ENOMEM;
        else if (!cJSON_IsObject(suite.clean) || view_length(jobs) == 0)
                r = error_set(e, -EINVAL, SUITE_NAME ": clean or jobs is missing");
        cJSON_ArrayForEach(item, jobs)
        {
                if (r < 0)
                        break;
                r = read_case(item, &suite.cases[suite.n++], e);
        }
        if (r < 0) {
                selftest_suite_clear(&suite);
                return r;
        }
        *ret = suite;
        return 0;
}

int selftest_suite_load(SelftestSuite *ret, Error *e)
{
        return selftest_suite_parse(selftest_suite_text, strlen(selftest_suite_text), ret, e);
}

static int add_probe(cJSON *job, const char *probe)
{
        cJSON *files = json_add_array(job, "files"), *file = files ? json_add_object(files, NULL) : NULL;

        if (!file || json_add_text(file, "path", "probe") < 0 || json_add_text(file, "source", probe) < 0)
                return -ENOMEM;
        return json_add_text(file, "mode", "0755");
}

char *selftest_job_text(const SelftestCase *c, const char *directory, const char *probe)
{
        _cleanup_(cJSON_Deletep) cJSON *job = cJSON_Duplicate(c->job, true);
        _cleanup_free_ char *job_id = text_printf("selftest-%s", c->name);

        if (!job || !job_id || json_add_text(job, "job_id", job_id) < 0 ||
                        json_add_text(job, "rationale", c->what) < 0 || add_probe(job, probe) < 0 ||
                        (directory ? json_add_text(job, "cwd", directory)
                                   : json_add_text(job, "workspace", "fresh")) < 0)
                return NULL;
        return json_print(job, true);
}

/* --- templates --- */

static int mismatch(Error *e, const char *at, const char *format, ...) _printf_(3, 4);
static int mismatch(Error *e, const char *at, const char *format, ...)
{
        char text[512];
        va_list ap;

        va_start(ap, format);
        (void) vsnprintf(text, sizeof(text), format, ap);
        va_end(ap);
        return error_set(e, -ENOENT, "%s %s", *at ? at : "the receipt", text);
}

static bool is_bound(const cJSON *template)
{
        return cJSON_IsObject(template) && template->child &&
               (json_get(template, "at_least") || json_get(template, "at_most"));
}

/* A number, or the length of a list. */
static int match_bound(const cJSON *template, const cJSON *value, const char *at, Error *e)
{
        const cJSON *least = json_get(template, "at_least"), *most = json_get(template, "at_most");
        double number;

        if (cJSON_IsArray(value))
                number = cJSON_GetArraySize(value);
        else if (cJSON_IsNumber(value))
                number = value->valuedouble;
        else
                return mismatch(e, at, "is %s", json_type_name(value));
        if (least && number < least->valuedouble)
                return mismatch(e, at, "is %.15g, less than %.15g", number, least->valuedouble);
        if (most && number > most->valuedouble)
                return mismatch(e, at, "is %.15g, more than %.15g", number, most->valuedouble);
        return 0;
}

static int match_element(const cJSON *template, const cJSON *list, const char *at, Error *e)
{
        _cleanup_free_ char *wanted = NULL;
        const cJSON *value;

        if (is_bound(template))
                return match_bound(template, list, at, e);
        cJSON_ArrayForEach(value, list)
        {
                if (selftest_match(template, value, at, NULL) == 0)
                        return 0;
        }
        wanted = json_print(template, false);
        if (wanted)
                wanted[strcspn(wanted, "\n")] = '\0';
        return mismatch(e, at, "lacks %.400s", wanted ? wanted : "an element");
}

static int match_list(const cJSON *template, const cJSON *value, const char *at, Error *e)
{
        const cJSON *element;
        int r = 0;

        if (!cJSON_IsArray(value))
                return mismatch(e, at, "is %s", json_type_name(value));
        if (!template->child && value->child) {
                _cleanup_free_ char *first = json_print(value->child, false);

                return mismatch(e, at, "is not empty: %.300s", first ? first : "");
        }
        cJSON_ArrayForEach(element, template)
        {
                if (r == 0)
                        r = match_element(element, value, at, e);
        }
        return r;
}

static int match_object(const cJSON *template, const cJSON *value, const char *at, Error *e)
{
        const cJSON *member;
        int r = 0;

        if (!cJSON_IsObject(value))
                return mismatch(e, at, "is %s", value ? json_type_name(value) : "missing");
        cJSON_ArrayForEach(member, template)
        {
                char below[AT_MAX];

                (void) snprintf(below, sizeof(below), "%s%s%s", at, *at ? "." : "", member->string);
                if (r == 0)
                        r = selftest_match(member, json_get(value, member->string), below, e);
        }
        return r;
}

static int match_scalar(const cJSON *template, const cJSON *value, const char *at, Error *e)
{
        _cleanup_free_ char *got = NULL, *wanted = NULL;
        bool matches;

        if (cJSON_IsString(template))
                matches = cJSON_IsString(value) &&
                          fnmatch(template->valuestring, value->valuestring, FNM_NOESCAPE) == 0;
        else if (cJSON_IsNumber(template))
                matches = cJSON_IsNumber(value) && value->valuedouble >= template->valuedouble &&
                          value->valuedouble <= template->valuedouble;
        else
                matches = value && (template->type & 0xff) == (value->type & 0xff);
        if (matches)
                return 0;
        wanted = json_print(template, false);
        got = value ? json_print(value, false) : strdup("missing");
        if (!wanted || !got)
                return mismatch(e, at, "is not as it must be");
        got[strcspn(got, "\n")] = wanted[strcspn(wanted, "\n")] = '\0';
        return mismatch(e, at, "is %.200s, not %.200s", got, wanted);
}

int selftest_match(const cJSON *template, const cJSON *value, const char *at, Error *e)
{
        if (is_bound(template))
                return match_bound(template, value, at, e);
        if (cJSON_IsArray(template))
                return match_list(template, value, at, e);
        if (cJSON_IsObject(template))
                return match_object(template, value, at, e);
        return match_scalar(template, value, at, e);
}

/* --- judging --- */

static const cJSON *find(const cJSON *receipt, const char *path)
{
        const cJSON *at = receipt;

        while (at && *path) {
                size_t length = strcspn(path, ".");
                char key[AT_MAX];

                (void) snprintf(key, sizeof(key), "%.*s", (int) length, path);
                at = cJSON_IsObject(at) ? json_get(at, key) : NULL;
                path += length + (path[length] == '.');
        }
        return at;
}

/* "sockets: …" speaks of sockets and of all below; "sockets.closed: …" of that only. */
static bool speaks_of(const char *spot, const char *key)
{
        size_t length = strcspn(spot, ": ");

        return length > 0 && strncmp(spot, key, length) == 0 && (key[length] == '\0' || key[length] == '.');
}

/* The blind spot that speaks of this key; NULL: there is none. */
static const char *declared(const cJSON *receipt, const char *key)
{
        const cJSON *spot;

        cJSON_ArrayForEach(spot, view_get(receipt, "blind_spots"))
        {
                const char *text = cJSON_GetStringValue(spot);

                if (text && speaks_of(text, key))
                        return text;
        }
        return NULL;
}

/* Whether the receipt has nothing at this key and says so. Nothing without a word is no blind spot but a
 * fault. */
static const char *blind_spot(const cJSON *receipt, const char *key)
{
        const cJSON *value = find(receipt, key);

        return value && !cJSON_IsNull(value) ? NULL : declared(receipt, key);
}

/* A limit that this host cannot keep is refused, and the job is not run. */
static const char *missing_controller(const cJSON *receipt)
{
        const cJSON *reason;

        cJSON_ArrayForEach(reason, view_get(receipt, "reasons"))
        {
                if (streq_ptr(view_text(reason, "code"), "controller_missing"))
                        return view_text(reason, "message");
        }
        return NULL;
}

/* look: blind_spot(), or declared() when what is there does not show it. */
static bool is_blind(const SelftestCase *c, const cJSON *receipt,
                const char *(*look)(const cJSON *receipt, const char *key), Error *why)
{
        const char *text = missing_controller(receipt);
        const cJSON *key;

        cJSON_ArrayForEach(key, c->evidence)
        {
                if (!text && cJSON_IsString(key))
                        text = look(receipt, key->valuestring);
        }
        if (text)
                error_set(why, 0, "%s", text);
        return text != NULL;
}

/* What a good job must not show. Where the host cannot see, there is nothing to be shown. */
static int match_clean(const cJSON *clean, const cJSON *receipt, Error *e)
{
        const cJSON *member;
        int r = 0;

        cJSON_ArrayForEach(member, clean)
        {
                if (r == 0 && !blind_spot(receipt, member->string))
                        r = selftest_match(member, json_get(receipt, member->string), member->string, e);
        }
        return r;
}

/* The same for a template of a good job, one level deeper: "processes": {"tree": …}. */
static int match_good(const cJSON *expect, const cJSON *receipt, Error *e)
{
        const cJSON *member, *inner;
        int r = match_clean(expect, receipt, NULL);

        if (r == 0)
                return 0;
        r = 0;
        cJSON_ArrayForEach(member, expect)
        {
                if (r < 0 || blind_spot(receipt, member->string))
                        continue;
                if (!cJSON_IsObject(member) || is_bound(member)) {
                        r = selftest_match(member, json_get(receipt, member->string), member->string, e);
                        continue;
                }
                cJSON_ArrayForEach(inner, member)
                {
                        char key[AT_MAX];

                        (void) snprintf(key, sizeof(key), "%s.%s", member->string, inner->string);
                        if (r == 0 && !blind_spot(receipt, key))
                                r = selftest_match(inner, find(receipt, key), key, e);
                }
        }
        return r;
}

/* What explains a mismatch best: the first reason of the receipt. */
static void add_reason(const cJSON *receipt, Error *why)
{
        const cJSON *reason = view_get(receipt, "reasons") ? view_get(receipt, "reasons")->child : NULL;
        const char *message = view_text(reason, "message"), *code = view_text(reason, "code");
        char text[ERROR_TEXT_MAX];

        if (!code)
                return;
        (void) snprintf(text, sizeof(text), "%.900s", why->text);
        error_set(why, 0, "%s (%.60s: %.400s)", text, code, message ? message : "");
}

SelftestResult selftest_judge(
                const SelftestSuite *suite, const SelftestCase *c, const cJSON *receipt, Error *why)
{
        const char *verdict = view_text(receipt, "verdict");
        int r;

        *why = ERROR_INIT;
        if (is_blind(c, receipt, blind_spot, why))
                return SELFTEST_BLIND;
        if (streq_ptr(verdict, "error") || streq_ptr(verdict, "aborted")) {
                error_set(why, 0, "verdict %s", verdict);
                add_reason(receipt, why);
                return SELFTEST_FAILED;
        }
        if (!c->good) {
                if (selftest_match(c->expect, receipt, "", why) == 0)
                        return SELFTEST_SEEN;
                if (is_blind(c, receipt, declared, why))
                        return SELFTEST_BLIND;
                add_reason(receipt, why);
                return SELFTEST_MISSED;
        }
        r = match_clean(suite->clean, receipt, why);
        if (r == 0)
                r = match_good(c->expect, receipt, why);
        if (r == 0)
                return SELFTEST_CLEAN;
        add_reason(receipt, why);
        return SELFTEST_NOISY;
}
