/* SPDX-License-Identifier: Apache-2.0 */
/* Suites and harnesses as they are read. What a case takes over from a job file is read by the job's own
 * reader, when its job is made. */

#include "core/suite.h"

#include "base/path.h"
#include "core/reader.h"

#define HARNESS_FILES_MAX 64u

static int read_json(_unused_ const Reader *r, _unused_ const JsonPath *at, const cJSON *value, void *target)
{
        cJSON **ret = target;

        *ret = cJSON_Duplicate(value, true);
        return *ret ? 0 : -ENOMEM;
}

static int read_schema(const Reader *r, const JsonPath *at, const cJSON *value, _unused_ void *target)
{
        const char *wanted = streq(r->root, "suite") ? "qscope.suite/v1" : "qscope.harness/v1";

        if (!cJSON_IsString(value) || !streq(value->valuestring, wanted))
                return read_fail(r, at, "must be \"%s\"", wanted);
        return 0;
}

/* Names stand in tables and in job ids. */
static int read_name(const Reader *r, const JsonPath *at, const cJSON *value, void *target)
{
        int k = read_word(r, at, value, target);

        if (k >= 0 && strlen(value->valuestring) > SUITE_NAME_MAX)
                return read_fail(r, at, "must be at most %u bytes long", SUITE_NAME_MAX);
        return k;
}

static int read_policy(const Reader *r, const JsonPath *at, const cJSON *value, void *target)
{
        int k = read_word(r, at, value, target);

        if (k >= 0 && !policy_name_is_valid(value->valuestring))
                return read_fail(r, at, "must be a policy's name, never a path; is \"%.80s\"",
                                value->valuestring);
        return k;
}

static int read_repeats(const Reader *r, const JsonPath *at, const cJSON *value, void *target)
{
        return read_integer(r, at, value, 1, SUITE_REPEATS_MAX, target);
}

/* --- keys of cases --- */

static int read_job_key(_unused_ const Reader *r, const JsonPath *at, const cJSON *value, void *target)
{
        return json_add(*(cJSON **) target, at->key, cJSON_Duplicate(value, true));
}

static int read_own_key(const Reader *r, const JsonPath *at, const cJSON *value, void *target)
{
        SuiteCase *c = target;
        int k;

        if (!startswith(at->key, "x_"))
                return 0;
        k = read_job_key(r, at, value, &c->job);
        return k < 0 ? k : 1;
}

#define JOB_KEY(name)                                                                                        \
        {                                                                                                    \
                name, read_job_key, offsetof(SuiteCase, job)                                                 \
        }

/* Those of the case itself, then those of its job, which defaults may have, too. */
static const ReadRow case_rows[] = {
        { "name", read_name, offsetof(SuiteCase, name) },
        { "input", read_json, offsetof(SuiteCase, input) },
        { "output", read_json, offsetof(SuiteCase, output) },
        { "unchanged", read_bool, offsetof(SuiteCase, unchanged) },
        { "args", read_words, offsetof(SuiteCase, args) },
        JOB_KEY("stdin"),
        JOB_KEY("stdin_base64"),
        JOB_KEY("files"),
        JOB_KEY("timeout_sec"),
        JOB_KEY("expected_exit"),
        JOB_KEY("env_allowlist"),
        JOB_KEY("env"),
        JOB_KEY("allow_changes"),
        JOB_KEY("limits"),
        JOB_KEY("expect"),
        JOB_KEY("rationale"),
        JOB_KEY("meta"),
};
#define JOB_ROWS_FIRST 5u

static int read_defaults(const Reader *r, const JsonPath *at, const cJSON *value, void *target)
{
        SuiteCase c = { .job = cJSON_CreateObject() };
        int k = c.job ? read_object(r, at, value, case_rows + JOB_ROWS_FIRST,
                                        ELEMENTSOF(case_rows) - JOB_ROWS_FIRST, read_own_key, &c)
                      : -ENOMEM;

        if (k < 0)
                cJSON_Delete(c.job);
        else
                *(cJSON **) target = c.job;
        return k;
}

/* --- cases --- */

static int check_case(const Reader *r, const JsonPath *at, const SuiteCase *c)
{
        if (!c->name)
                return read_fail(r, at, "name is missing");
        if (c->input && (c->args || json_get(c->job, "stdin") || json_get(c->job, "stdin_base64")))
                return read_fail(r, at,
                                "has an input for solution() and also args or stdin, which are for programs: "
                                "keep one kind");
        if (!c->input && (c->output || c->unchanged))
                return read_fail(r, at,
                                "output and unchanged speak of what solution() does with an input, and there "
                                "is no input: judge a program by expect.stdout");
        if (c->input && !c->output && !c->unchanged && !json_get(c->job, "expect"))
                return read_fail(r, at, "asks nothing: give output, unchanged or expect");
        if (c->input && json_get(json_get(c->job, "expect"), "stdout"))
                return read_fail(r, at,
                                "expect.stdout cannot be judged beside input: standard output belongs to the "
                                "harness, and what solution() prints goes to standard error");
        return 0;
}

static int read_case(const Reader *r, const JsonPath *at, const cJSON *value, SuiteCase *c)
{
        int k;

        c->job = cJSON_CreateObject();
        k = c->job ? read_object(r, at, value, case_rows, ELEMENTSOF(case_rows), read_own_key, c) : -ENOMEM;
        return k < 0 ? k : check_case(r, at, c);
}

static int refuse_same_names(const Reader *r, const JsonPath *at, const Suite *suite)
{
        _cleanup_free_ const char **names = calloc(suite->n_cases, sizeof(char *));

        if (!names)
                return -ENOMEM;
        for (size_t i = 0; i < suite->n_cases; i++)
                names[i] = suite->cases[i].name;
        qsort(names, suite->n_cases, sizeof(char *), strv_compare);
        for (size_t i = 1; i < suite->n_cases; i++)
                if (streq(names[i - 1], names[i]))
                        return read_fail(r, at, "two cases are named \"%.80s\"", names[i]);
        return 0;
}

static int read_cases(const Reader *r, const JsonPath *at, const cJSON *value, void *target)
{
        JsonPath below = { .up = at };
        const cJSON *item;
        Suite *suite = target;
        int n = cJSON_IsArray(value) ? cJSON_GetArraySize(value) : 0, k;

        if (!cJSON_IsArray(value))
                return read_fail_type(r, at, "a list of cases", value);
        if (n < 1 || (unsigned) n > SUITE_CASES_MAX)
                return read_fail(r, at, "has %d cases, 1 to %u are allowed", n, SUITE_CASES_MAX);
        suite->cases = calloc((size_t) n, sizeof(SuiteCase));
        if (!suite->cases)
                return -ENOMEM;
        cJSON_ArrayForEach(item, value)
        {
                k = read_case(r, &below, item, &suite->cases[suite->n_cases++]);
                if (k < 0)
                        return k;
                below.index++;
        }
        return refuse_same_names(r, at, suite);
}

static const ReadRow suite_rows[] = {
        { "schema", read_schema, 0 },
        { "name", read_name, offsetof(Suite, name) },
        { "description", read_text, offsetof(Suite, description) },
        { "harness", read_word, offsetof(Suite, harness) },
        { "policy", read_policy, offsetof(Suite, policy) },
        { "repeats", read_repeats, offsetof(Suite, repeats) },
        { "defaults", read_defaults, offsetof(Suite, defaults) },
        { "cases", read_cases, 0 },
};

/* Each case once, with the simplest candidate: what is wrong with one is told before anything runs. */
static int check_jobs(const Suite *suite, const char *name, Error *e)
{
        char *words[] = { (char *) "true", NULL };
        const Harness harness = { .name = (char *) "check", .program = words, .function = words };
        const SuiteFiles none = { 0 };

        for (size_t i = 0; i < suite->n_cases; i++) {
                const SuiteRun run = { .suite = suite,
                        .harness = &harness,
                        .harness_files = &none,
                        .candidate = "candidate",
                        .candidate_files = &none,
                        .number = i,
                        .repeat = 1 };
                _cleanup_(job_freep) Job *job = NULL;
                int k = suite_make_job(&run, &job, e);

                if (k < 0)
                        return k == -EINVAL ? error_prefix(e, k, "%s", name) : k;
        }
        return 0;
}

static int read_suite(const Reader *r, const cJSON *document, Suite *suite)
{
        const JsonPath root = { .up = NULL };
        _cleanup_free_ char *canonical = NULL;
        int k = read_object(r, &root, document, suite_rows, ELEMENTSOF(suite_rows), NULL, suite);

        if (k < 0)
                return k;
        if (!suite->name || !suite->cases)
                return read_fail(r, &root, "%s is missing", suite->name ? "cases" : "name");
        if (!suite->policy)
                suite->policy = strdup(SUITE_POLICY_DEFAULT);
        canonical = json_print_canonical(document);
        if (!suite->policy || !canonical)
                return -ENOMEM;
        hash_data(canonical, strlen(canonical), suite->sha256);
        return 0;
}

int suite_parse(const char *text, size_t size, const char *name, Suite **ret, Error *e)
{
        const Reader r = { .file = name, .root = "suite", .text = text, .size = size, .e = e };
        _cleanup_(cJSON_Deletep) cJSON *document = NULL;
        _cleanup_(suite_freep) Suite *suite = calloc(1, sizeof(Suite));
        int k = json_parse(text, size, JSON_COMMENTS, name, &document, e);

        if (k < 0)
                return k;
        if (!suite)
                return -ENOMEM;
        suite->repeats = 1;
        k = read_suite(&r, document, suite);
        if (k >= 0)
                k = check_jobs(suite, name, e);
        if (k < 0)
                return k == -ENOMEM ? error_set(e, k, "%s: out of memory", name) : k;
        *ret = TAKE_PTR(suite);
        return 0;
}

Suite *suite_free(Suite *suite)
{
        if (!suite)
                return NULL;
        for (size_t i = 0; i < suite->n_cases; i++) {
                SuiteCase *c = &suite->cases[i];

                free(c->name);
                cJSON_Delete(c->input);
                cJSON_Delete(c->output);
                strv_free(c->args);
                cJSON_Delete(c->job);
        }
        free(suite->cases);
        free(suite->name);
        free(suite->description);
        free(suite->harness);
        free(suite->policy);
        cJSON_Delete(suite->defaults);
        free(suite);
        return NULL;
}

/* --- harness --- */

/* A name of its own directory: the manifest reaches nothing else. */
static int read_file_name(const Reader *r, const JsonPath *at, const cJSON *value, char **ret)
{
        if (!cJSON_IsString(value) || !value->valuestring[0])
                return read_fail_type(r, at, "a file's name", value);
        if (strchr(value->valuestring, '/') || streq(value->valuestring, ".") ||
                        streq(value->valuestring, ".."))
                return read_fail(r, at, "must be a file's name without directories, is \"%.80s\"",
                                value->valuestring);
        *ret = strdup(value->valuestring);
        return *ret ? 0 : -ENOMEM;
}

static int read_candidate(const Reader *r, const JsonPath *at, const cJSON *value, void *target)
{
        return read_file_name(r, at, value, target);
}

static int read_file_names(const Reader *r, const JsonPath *at, const cJSON *value, void *target)
{
        if (cJSON_IsArray(value) && cJSON_GetArraySize(value) > (int) HARNESS_FILES_MAX)
                return read_fail(r, at, "has more than %u elements", HARNESS_FILES_MAX);
        return read_list(r, at, value, "a list of names", read_file_name, target);
}

static int read_command(const Reader *r, const JsonPath *at, const cJSON *value, void *target)
{
        if (cJSON_IsArray(value) && !value->child)
                return read_fail(r, at, "must not be empty: the first element is the program");
        return read_words(r, at, value, target);
}

static const ReadRow harness_rows[] = {
        { "schema", read_schema, 0 },
        { "name", read_name, offsetof(Harness, name) },
        { "extensions", read_words, offsetof(Harness, extensions) },
        { "candidate", read_candidate, offsetof(Harness, candidate) },
        { "program", read_command, offsetof(Harness, program) },
        { "function", read_command, offsetof(Harness, function) },
        { "files", read_file_names, offsetof(Harness, files) },
};

int harness_parse(const char *text, size_t size, const char *name, Harness **ret, Error *e)
{
        const Reader r = { .file = name, .root = "harness", .text = text, .size = size, .e = e };
        const JsonPath root = { .up = NULL };
        _cleanup_(cJSON_Deletep) cJSON *document = NULL;
        _cleanup_(harness_freep) Harness *harness = calloc(1, sizeof(Harness));
        int k = json_parse(text, size, JSON_COMMENTS, name, &document, e);

        if (k < 0)
                return k;
        k = harness ? read_object(&r, &root, document, harness_rows, ELEMENTSOF(harness_rows), NULL, harness)
                    : -ENOMEM;
        if (k >= 0 && (!harness->name || !harness->candidate))
                k = read_fail(&r, &root, "%s is missing", harness->name ? "candidate" : "name");
        if (k >= 0 && !harness->program && !harness->function)
                k = read_fail(&r, &root, "has neither program nor function: it can run nothing");
        if (k >= 0 && strv_contains(harness->files, harness->candidate))
                k = read_fail(&r, &root, "\"%.80s\" is the candidate's name and also one of its files",
                                harness->candidate);
        if (k < 0)
                return k == -ENOMEM ? error_set(e, k, "%s: out of memory", name) : k;
        *ret = TAKE_PTR(harness);
        return 0;
}

Harness *harness_free(Harness *harness)
{
        if (!harness)
                return NULL;
        free(harness->name);
        strv_free(harness->extensions);
        free(harness->candidate);
        strv_free(harness->program);
        strv_free(harness->function);
        strv_free(harness->files);
        free(harness);
        return NULL;
}
