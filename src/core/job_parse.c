/* SPDX-License-Identifier: Apache-2.0 */
/* The job file: one table row for each key, then what concerns several keys at once. Opens no file and knows
 * no policy; "expect" is in expect.c. */

#include "core/job.h"

#include "base/hash.h"
#include "base/path.h"
#include "core/expect.h"
#include "core/reader.h"

#define FILE_MODE_DEFAULT 0644u

/* --- single keys --- */

static int read_job_id(const Reader *r, const JsonPath *at, const cJSON *value, void *target)
{
        int k = read_text(r, at, value, target);

        if (k >= 0 && !job_id_is_valid(value->valuestring))
                return read_fail(r, at,
                                "must be 1 to 128 letters, digits, '.', '_' or '-', the first a letter or "
                                "digit; is \"%.140s\"",
                                value->valuestring);
        return k;
}

static int read_argv(const Reader *r, const JsonPath *at, const cJSON *value, void *target)
{
        int n = cJSON_IsArray(value) ? cJSON_GetArraySize(value) : 1;

        if (cJSON_IsString(value))
                return read_fail(r, at,
                                "must be a list of strings, is a string: write each word by itself, as in "
                                "[\"ls\", \"-l\"]; no shell takes it apart");
        if (n == 0)
                return read_fail(r, at, "must not be empty: the first element is the program");
        if ((unsigned) n > JOB_ARGV_MAX)
                return read_fail(r, at, "has %d elements, at most %u are allowed", n, JOB_ARGV_MAX);
        return read_words(r, at, value, target);
}

static int read_workspace(const Reader *r, const JsonPath *at, const cJSON *value, void *target)
{
        int k = read_choice(r, at, value, workspace_names, _WORKSPACE_MAX);

        *(Workspace *) target = k < 0 ? _WORKSPACE_INVALID : (Workspace) k;
        return MIN(k, 0);
}

static int read_network(const Reader *r, const JsonPath *at, const cJSON *value, void *target)
{
        int k = read_choice(r, at, value, network_names, _NETWORK_MAX);

        *(Network *) target = k < 0 ? _NETWORK_INVALID : (Network) k;
        return MIN(k, 0);
}

static int read_posture(const Reader *r, const JsonPath *at, const cJSON *value, void *target)
{
        int k = read_choice(r, at, value, posture_names, _POSTURE_MAX);

        *(Posture *) target = k < 0 ? _POSTURE_INVALID : (Posture) k;
        return MIN(k, 0);
}

static int read_timeout(const Reader *r, const JsonPath *at, const cJSON *value, void *target)
{
        uint64_t usec;
        int k = read_duration(r, at, value, &usec);

        if (k < 0)
                return k;
        if (usec > JOB_TIMEOUT_MAX)
                return read_fail(r, at, "must be at most %llu seconds (a week), is %g",
                                (unsigned long long) (JOB_TIMEOUT_MAX / USEC_PER_SEC), value->valuedouble);
        *(uint64_t *) target = usec;
        return 0;
}

static int read_policy_name(const Reader *r, const JsonPath *at, const cJSON *value, void *target)
{
        int k = read_text(r, at, value, target);

        if (k >= 0 && !policy_name_is_valid(value->valuestring))
                return read_fail(r, at,
                                "must be a policy's name (letters, digits, _ and -), never a path; is "
                                "\"%.80s\"",
                                value->valuestring);
        return k;
}

static int read_meta(const Reader *r, const JsonPath *at, const cJSON *value, void *target)
{
        cJSON **ret = target;

        if (!cJSON_IsObject(value))
                return read_fail_type(r, at, "an object", value);
        *ret = cJSON_Duplicate(value, true);
        return *ret ? 0 : -ENOMEM;
}

/* --- expected_exit --- */

static int read_exit_status(const Reader *r, const JsonPath *at, const cJSON *value, ExitSet *set)
{
        uint64_t status;
        int k = read_integer(r, at, value, 0, UINT8_MAX, &status);

        if (k >= 0)
                set->bits[status / 8] |= (uint8_t) (1u << (status % 8));
        return k;
}

static int read_expected_exit(const Reader *r, const JsonPath *at, const cJSON *value, void *target)
{
        JsonPath below = { .up = at };
        const cJSON *item;
        Job *job = target;
        int k = 0;

        if (cJSON_IsArray(value) && !value->child)
                return read_fail(r, at,
                                "must not be empty: list the exit statuses that are right, or write \"any\"");
        if (cJSON_IsString(value) && streq(value->valuestring, "any"))
                job->exits.any = true;
        else if (cJSON_IsNumber(value))
                k = read_exit_status(r, at, value, &job->exits);
        else if (!cJSON_IsArray(value))
                return read_fail(r, at, "must be an integer from 0 to 255, a list of them, or \"any\"");
        for (item = cJSON_IsArray(value) ? value->child : NULL; item && k >= 0;
                        item = item->next, below.index++)
                k = read_exit_status(r, &below, item, &job->exits);
        if (k < 0)
                return k;
        job->expected_exit = cJSON_Duplicate(value, true);
        return job->expected_exit ? 0 : -ENOMEM;
}

/* --- input bytes --- */

static int read_content(const Reader *r, const JsonPath *at, const cJSON *value, void *target)
{
        JobInput *input = target;

        if (!cJSON_IsString(value))
                return read_fail_type(r, at, "a string", value);
        free(input->data);
        input->data = (uint8_t *) strdup(value->valuestring);
        input->size = strlen(value->valuestring);
        return input->data ? 0 : -ENOMEM;
}

static int read_content_base64(const Reader *r, const JsonPath *at, const cJSON *value, void *target)
{
        JobInput *input = target;
        uint8_t *data = NULL;
        int k;

        if (!cJSON_IsString(value))
                return read_fail_type(r, at, "a string in base64", value);
        k = base64_decode(value->valuestring, &data, &input->size);
        if (k == -EINVAL)
                return read_fail(r, at, "is not base64 (RFC 4648, with padding, no spaces or line breaks)");
        if (k < 0)
                return k;
        free(input->data);
        input->data = data;
        return 0;
}

static int refuse_second_stdin(const Reader *r, const JsonPath *at, Job *job)
{
        if (job->has_stdin)
                return read_fail(r, at, "stdin and stdin_base64 are both given: keep one");
        job->has_stdin = true;
        return 0;
}

static int read_stdin(const Reader *r, const JsonPath *at, const cJSON *value, void *target)
{
        static const ReadRow rows[] = { { "file", read_word, offsetof(JobInput, path) } };
        Job *job = target;
        int k = refuse_second_stdin(r, at, job);

        if (k < 0)
                return k;
        if (cJSON_IsString(value))
                return read_content(r, at, value, &job->stdin_input);
        if (!cJSON_IsObject(value))
                return read_fail_type(r, at, "a string, or {\"file\": \"path\"}", value);
        k = read_object(r, at, value, rows, ELEMENTSOF(rows), NULL, &job->stdin_input);
        if (k >= 0 && !job->stdin_input.path)
                return read_fail(r, at, "names no file: write {\"file\": \"path\"}, or leave stdin out");
        return k;
}

static int read_stdin_base64(const Reader *r, const JsonPath *at, const cJSON *value, void *target)
{
        Job *job = target;
        int k = refuse_second_stdin(r, at, job);

        return k < 0 ? k : read_content_base64(r, at, value, &job->stdin_input);
}

/* --- files --- */

static int read_mode(const Reader *r, const JsonPath *at, const cJSON *value, void *target)
{
        const char *text = value->valuestring;
        size_t length;

        /* 755 as a JSON integer would be decimal: nobody means that. */
        if (!cJSON_IsString(value))
                return read_fail_type(r, at, "permission bits as a string in octal, such as \"0755\"", value);
        length = strlen(text);
        if (length < 3 || length > 4 || strspn(text, "01234567") != length || (length == 4 && text[0] != '0'))
                return read_fail(r, at,
                                "must be permission bits in octal from \"0000\" to \"0777\", is \"%.20s\"",
                                text);
        *(unsigned *) target = (unsigned) strtoul(text, NULL, 8);
        return 0;
}

static int read_file_path(const Reader *r, const JsonPath *at, const cJSON *value, void *target)
{
        return read_path(r, at, value, target);
}

static int read_job_file(const Reader *r, const JsonPath *at, const cJSON *value, JobFile *file)
{
        static const ReadRow rows[] = {
                { "path", read_file_path, offsetof(JobFile, path) },
                { "content", read_content, offsetof(JobFile, input) },
                { "content_base64", read_content_base64, offsetof(JobFile, input) },
                { "source", read_word, offsetof(JobFile, input.path) },
                { "mode", read_mode, offsetof(JobFile, mode) },
        };
        static const char *const source_keys[] = { "content", "content_base64", "source" };
        unsigned sources = 0;
        int k;

        file->mode = FILE_MODE_DEFAULT;
        k = read_object(r, at, value, rows, ELEMENTSOF(rows), NULL, file);
        if (k < 0)
                return k;
        if (!file->path)
                return read_fail(r, at, "path is missing");
        for (size_t i = 0; i < ELEMENTSOF(source_keys); i++)
                sources += json_get(value, source_keys[i]) ? 1u : 0u;
        if (sources != 1)
                return read_fail(r, at, "needs exactly one of content, content_base64 and source, has %u",
                                sources);
        return 0;
}

static int read_files(const Reader *r, const JsonPath *at, const cJSON *value, void *target)
{
        JsonPath below = { .up = at };
        const cJSON *item;
        Job *job = target;
        int n;

        if (!cJSON_IsArray(value))
                return read_fail_type(r, at,
                                "a list of objects such as {\"path\": \"a.py\", \"content\": \"…\"}", value);
        n = cJSON_GetArraySize(value);
        if ((unsigned) n > JOB_FILES_MAX)
                return read_fail(r, at, "has %d elements, at most %u are allowed", n, JOB_FILES_MAX);
        job->files = calloc((size_t) n + 1, sizeof(JobFile));
        if (!job->files)
                return -ENOMEM;
        cJSON_ArrayForEach(item, value)
        {
                int k = read_job_file(r, &below, item, &job->files[job->n_files++]);

                if (k < 0)
                        return k;
                below.index++;
        }
        return 0;
}

/* --- what concerns several keys at once --- */

/* Makes one file's path relative to the workspace. */
static int finish_path(const Reader *r, const JsonPath *at, const char *cwd, JobFile *file)
{
        const char *relative = file->path;
        char *copy;

        if (file->path[0] == '/') {
                if (!cwd)
                        return read_fail(r, at,
                                        "is absolute, but the job has no cwd: write it relative to the "
                                        "workspace");
                relative = path_below(file->path, cwd);
                if (!relative)
                        return read_fail(r, at,
                                        "\"%.80s\" does not lie below cwd (%.80s): write it relative to it",
                                        file->path, cwd);
        }
        if (!*relative || streq(relative, "."))
                return read_fail(r, at, "is the workspace itself, not a file in it");
        copy = strdup(relative);
        if (!copy)
                return -ENOMEM;
        free(file->path);
        file->path = copy;
        return 0;
}

typedef struct FileOrder {
        const char *path;
        size_t index;
} FileOrder;

static int compare_order(const void *a, const void *b)
{
        const FileOrder *x = a, *y = b;
        int r = path_compare(x->path, y->path);

        return r != 0 ? r : x->index < y->index ? -1 : 1;
}

/* In path_compare()'s order a file and everything that would lie below it are neighbours. */
static int refuse_conflicts(const Reader *r, const JsonPath *files, const Job *job)
{
        _cleanup_free_ FileOrder *order = calloc(job->n_files + 1, sizeof(FileOrder));

        if (!order)
                return -ENOMEM;
        for (size_t i = 0; i < job->n_files; i++)
                order[i] = (FileOrder){ .path = job->files[i].path, .index = i };
        qsort(order, job->n_files, sizeof(FileOrder), compare_order);
        for (size_t i = 1; i < job->n_files; i++) {
                JsonPath item = { .up = files, .index = order[i].index }, at = { .up = &item, .key = "path" };

                if (streq(order[i - 1].path, order[i].path))
                        return read_fail(r, &at, "\"%.80s\" is given twice", order[i].path);
                if (path_is_within(order[i].path, order[i - 1].path))
                        return read_fail(r, &at,
                                        "\"%.80s\" cannot lie below \"%.80s\", which is given as a file",
                                        order[i].path, order[i - 1].path);
        }
        return 0;
}

static int finish_files(const Reader *r, const JsonPath *document, Job *job)
{
        JsonPath files = { .up = document, .key = "files" }, cwd_at = { .up = document, .key = "cwd" };
        _cleanup_free_ char *cwd = NULL;
        int k = 0;

        if (job->cwd && job->n_files > 0)
                k = path_normalise(job->cwd, &cwd);
        if (k == -EINVAL || k == -ENAMETOOLONG)
                return read_fail(r, &cwd_at,
                                "must not contain \"..\" or be too long: files are placed below it");
        for (size_t i = 0; i < job->n_files && k >= 0; i++) {
                JsonPath item = { .up = &files, .index = i }, at = { .up = &item, .key = "path" };

                k = finish_path(r, &at, cwd, &job->files[i]);
        }
        return k < 0 ? k : refuse_conflicts(r, &files, job);
}

/* Keys that begin with x_ go into the receipt; others that are not in the table are refused. */
static int read_extra(_unused_ const Reader *r, const JsonPath *at, const cJSON *value, void *target)
{
        Job *job = target;
        int k;

        if (!startswith(at->key, "x_"))
                return 0;
        if (!job->extra)
                job->extra = cJSON_CreateObject();
        k = json_add(job->extra, at->key, cJSON_Duplicate(value, true));
        return k < 0 ? k : 1;
}

static const ReadRow job_rows[] = {
        { "job_id", read_job_id, offsetof(Job, job_id) },
        { "argv", read_argv, offsetof(Job, argv) },
        { "cwd", read_absolute, offsetof(Job, cwd) },
        { "workspace", read_workspace, offsetof(Job, workspace) },
        { "files", read_files, 0 },
        { "stdin", read_stdin, 0 },
        { "stdin_base64", read_stdin_base64, 0 },
        { "timeout_sec", read_timeout, offsetof(Job, timeout_usec) },
        { "expected_exit", read_expected_exit, 0 },
        { "env_allowlist", read_env_names, offsetof(Job, env_allowlist) },
        { "env", read_env_values, offsetof(Job, env) },
        { "allow_changes", read_change_paths, offsetof(Job, allow_changes) },
        { "limits", read_limits, offsetof(Job, limits) },
        { "network", read_network, offsetof(Job, network) },
        { "posture", read_posture, offsetof(Job, posture) },
        { "expect", expect_read, offsetof(Job, expect) },
        { "policy", read_policy_name, offsetof(Job, policy) },
        { "rationale", read_text, offsetof(Job, rationale) },
        { "meta", read_meta, offsetof(Job, meta) },
};

static int read_job(const Reader *r, const cJSON *document, Job *job)
{
        const JsonPath root = { .up = NULL };
        int k;

        k = read_object(r, &root, document, job_rows, ELEMENTSOF(job_rows), read_extra, job);
        if (k < 0)
                return k;
        if (!job->argv)
                return read_fail(r, &root,
                                "argv is missing: the command, as a list such as [\"python3\", \"a.py\"]");
        for (size_t i = 0; i < ELEMENTSOF(job_rows) && k >= 0; i++)
                if (json_get(document, job_rows[i].key))
                        k = strv_extend(&job->given, job_rows[i].key);
        return k < 0 ? k : finish_files(r, &root, job);
}

int job_read_default(const Reader *r, const JsonPath *at, const cJSON *value, Job *job)
{
        for (size_t i = 0; i < ELEMENTSOF(job_rows); i++)
                if (streq(job_rows[i].key, at->key))
                        return job_rows[i].read(r, at, value, (char *) job + job_rows[i].offset);
        assert(false);
        return -EINVAL;
}

int job_take_defaults(Job *job, const cJSON *defaults)
{
        const Reader r = { .file = "policy", .root = "policy.default" };
        const JsonPath root = { .up = NULL };
        const cJSON *member;

        cJSON_ArrayForEach(member, defaults)
        {
                JsonPath at = { .up = &root, .key = member->string };
                int k;

                if (strv_contains(job->given, member->string) ||
                                strv_contains(job->defaulted, member->string))
                        continue;
                k = job_read_default(&r, &at, member, job);
                if (k >= 0)
                        k = strv_extend(&job->defaulted, member->string);
                if (k < 0)
                        return k;
        }
        return 0;
}

/* The same job in another layout, or on a line of a file, is the same job. */
static int hash_document(const cJSON *document, char hex[static HASH_HEX_MAX])
{
        _cleanup_free_ char *text = json_print_canonical(document);

        if (!text)
                return -ENOMEM;
        hash_data(text, strlen(text), hex);
        return 0;
}

static int read_document(const Reader *r, const cJSON *document, Job **ret)
{
        _cleanup_(job_freep) Job *job = job_new();
        int k = job ? read_job(r, document, job) : -ENOMEM;

        if (k == 0)
                k = hash_document(document, job->sha256);
        if (k == -ENOMEM)
                return error_set(r->e, k, "%s: out of memory", r->file);
        if (k < 0)
                return k;
        *ret = TAKE_PTR(job);
        return 0;
}

int job_read(const cJSON *document, const char *name, Job **ret, Error *e)
{
        const Reader r = { .file = name, .root = "job", .e = e };

        return read_document(&r, document, ret);
}

int job_parse(const char *text, size_t size, const char *name, Job **ret, Error *e)
{
        const Reader r = { .file = name, .root = "job", .text = text, .size = size, .e = e };
        _cleanup_(cJSON_Deletep) cJSON *document = NULL;
        int k;

        if (size > JOB_FILE_MAX)
                return error_set(e, -E2BIG,
                                "%s: is larger than %u bytes (1 MiB): put large inputs into files and "
                                "name them with \"source\"",
                                name, (unsigned) JOB_FILE_MAX);
        k = json_parse(text, size, JSON_STRICT, name, &document, e);
        return k < 0 ? k : read_document(&r, document, ret);
}
