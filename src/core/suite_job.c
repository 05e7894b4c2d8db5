/* SPDX-License-Identifier: Apache-2.0 */
/* From a suite, a harness and a candidate to the job of one run. The job is written as a document and read by
 * the reader of job files, so a suite can ask for nothing that a job cannot. */

#include "core/suite.h"

#include <inttypes.h>

#include "base/array.h"

#define ID_PART_MAX 40

/* --- files --- */

static int file_copy(const JobFile *file, JobFile *ret)
{
        JobFile copy = { .mode = file->mode, .input.size = file->input.size };

        copy.path = strdup(file->path);
        copy.input.data = malloc(file->input.size + 1);
        if (!copy.path || !copy.input.data) {
                free(copy.path);
                free(copy.input.data);
                return -ENOMEM;
        }
        memcpy(copy.input.data, file->input.data, file->input.size);
        copy.input.data[file->input.size] = '\0';
        *ret = copy;
        return 0;
}

int suite_files_add(SuiteFiles *files, const char *path, unsigned mode, const void *data, size_t size)
{
        const JobFile file = {
                .path = (char *) path, .mode = mode, .input = { .data = (uint8_t *) data, .size = size }
        };
        JobFile *grown = array_grow(files->files, files->n_files, &files->room, sizeof(JobFile));
        int r;

        if (!grown)
                return -ENOMEM;
        files->files = grown;
        r = file_copy(&file, &files->files[files->n_files]);
        files->n_files += r == 0;
        return r;
}

static int compare_files(const void *a, const void *b)
{
        return strcmp(((const JobFile *) a)->path, ((const JobFile *) b)->path);
}

int suite_files_finish(SuiteFiles *files)
{
        Hash hash;

        if (files->n_files > 0)
                qsort(files->files, files->n_files, sizeof(JobFile), compare_files);
        hash_init(&hash);
        for (size_t i = 0; i < files->n_files; i++) {
                const JobFile *file = &files->files[i];
                _cleanup_free_ char *head = text_printf("%zu %s %o %zu\n", strlen(file->path), file->path,
                                file->mode, file->input.size);

                if (!head)
                        return -ENOMEM;
                hash_update(&hash, head, strlen(head));
                hash_update(&hash, file->input.data, file->input.size);
        }
        hash_finish(&hash, files->sha256);
        return 0;
}

void suite_files_clear(SuiteFiles *files)
{
        for (size_t i = 0; i < files->n_files; i++) {
                free(files->files[i].path);
                free(files->files[i].input.data);
        }
        free(files->files);
        *files = (SuiteFiles){ 0 };
}

/* Behind those that the case has itself. */
static int place_files(Job *job, const SuiteFiles *files, const char *whose, Error *e)
{
        JobFile *grown = reallocarray(job->files, job->n_files + files->n_files + 1, sizeof(JobFile));
        size_t n_before = job->n_files;

        if (!grown)
                return -ENOMEM;
        job->files = grown;
        for (size_t i = 0; i < files->n_files; i++) {
                const JobFile *file = &files->files[i];

                for (size_t k = 0; k < n_before; k++)
                        if (streq(job->files[k].path, file->path))
                                return error_set(e, -EINVAL,
                                                "%s has a file \"%.80s\", and so has the harness or the case",
                                                whose, file->path);
                if (file_copy(file, &job->files[job->n_files]) < 0)
                        return -ENOMEM;
                job->n_files++;
        }
        return 0;
}

/* --- the document --- */

static int add_copy(cJSON *object, const char *key, const cJSON *item)
{
        return json_add(object, key, cJSON_Duplicate(item, true));
}

/* The case's value stands before the default one; of limits, env and expect, each of their keys does; files
 * are placed besides. */
static int merge_key(cJSON *document, const cJSON *item)
{
        const cJSON *member;
        cJSON *mine = cJSON_GetObjectItemCaseSensitive(document, item->string);
        bool is_list = streq(item->string, "files");
        int k = 0;

        if (!mine)
                return add_copy(document, item->string, item);
        if (is_list ? !cJSON_IsArray(mine) || !cJSON_IsArray(item)
                    : !cJSON_IsObject(mine) || !cJSON_IsObject(item))
                return 0;
        if (streq(item->string, "meta"))
                return 0;
        cJSON_ArrayForEach(member, item)
        {
                if (!is_list && json_get(mine, member->string))
                        continue;
                k = add_copy(mine, is_list ? NULL : member->string, member);
                if (k < 0)
                        return k;
        }
        return 0;
}

static int add_keys(cJSON *document, const cJSON *keys)
{
        const cJSON *item;
        int k = 0;

        cJSON_ArrayForEach(item, keys)
        {
                k = merge_key(document, item);
                if (k < 0)
                        return k;
        }
        return 0;
}

static void add_id_part(char *out, const char *text)
{
        size_t n = 0;

        for (; *text && n < ID_PART_MAX; text++)
                out[n++] = (*text >= 'a' && *text <= 'z') || (*text >= 'A' && *text <= 'Z') ||
                                                           (*text >= '0' && *text <= '9') ||
                                                           strchr("._-", *text)
                                           ? *text
                                           : '-';
        out[n] = '\0';
}

/* Begins with a letter whatever the names are, and is another one for each case and repeat of a candidate. */
static int add_job_id(cJSON *document, const SuiteRun *run)
{
        char suite[ID_PART_MAX + 1], candidate[ID_PART_MAX + 1];
        _cleanup_free_ char *id = NULL;

        add_id_part(suite, run->suite->name);
        add_id_part(candidate, run->candidate);
        id = text_printf("eval.%s.%s.%zu.%" PRIu64, suite, candidate, run->number + 1, run->repeat);
        return id ? json_add_text(document, "job_id", id) : -ENOMEM;
}

/* What the receipt says of where the job came from; and what makes it another job when one of it changes. */
static int add_origin(cJSON *document, const SuiteRun *run)
{
        cJSON *origin = json_add_object(document, "x_eval");
        int k = origin ? json_add_text(origin, "suite", run->suite->name) : -ENOMEM;

        if (k == 0)
                k = json_add_text(origin, "suite_sha256", run->suite->sha256);
        if (k == 0)
                k = json_add_text(origin, "harness", run->harness->name);
        if (k == 0)
                k = json_add_text(origin, "harness_sha256", run->harness_files->sha256);
        if (k == 0)
                k = json_add_text(origin, "candidate", run->candidate);
        if (k == 0)
                k = json_add_text(origin, "candidate_sha256", run->candidate_files->sha256);
        if (k == 0)
                k = json_add_text(origin, "case", run->suite->cases[run->number].name);
        return k == 0 ? json_add_u64(origin, "repeat", run->repeat) : k;
}

static int add_argv(cJSON *document, char *const *command, char *const *args, const char *mode)
{
        cJSON *argv = json_add_array(document, "argv");
        int k = argv ? 0 : -ENOMEM;

        for (size_t i = 0; k == 0 && command[i]; i++)
                k = json_add_text(argv, NULL, command[i]);
        for (size_t i = 0; k == 0 && args && args[i]; i++)
                k = json_add_text(argv, NULL, args[i]);
        return k == 0 && mode ? json_add_text(argv, NULL, mode) : k;
}

/* What the harness shall print, and what must stand there. */
static int add_question(cJSON *document, const SuiteCase *c)
{
        _cleanup_free_ char *input = json_print(c->input, false);
        cJSON *expect, *stream, *wanted;
        int k = input ? json_add_text(document, "stdin", input) : -ENOMEM;

        if (k < 0 || (!c->output && !c->unchanged))
                return k;
        expect = cJSON_GetObjectItemCaseSensitive(document, "expect");
        if (!expect)
                expect = json_add_object(document, "expect");
        stream = expect ? json_add_object(expect, "stdout") : NULL;
        wanted = stream ? json_add_object(stream, "json") : NULL;
        if (!wanted)
                return -ENOMEM;
        if (c->output)
                k = add_copy(wanted, "output", c->output);
        return k == 0 && c->unchanged ? add_copy(wanted, "input", c->input) : k;
}

static const char *question_mode(const SuiteCase *c)
{
        return !c->unchanged ? "output" : c->output ? "both" : "input";
}

static int make_document(const SuiteRun *run, cJSON *document)
{
        const SuiteCase *c = &run->suite->cases[run->number];
        int k = add_job_id(document, run);

        if (k == 0)
                k = add_argv(document, c->input ? run->harness->function : run->harness->program, c->args,
                                c->input ? question_mode(c) : NULL);
        if (k == 0)
                k = json_add_text(document, "workspace", workspace_to_string(WORKSPACE_FRESH));
        if (k == 0)
                k = json_add_text(document, "policy", run->suite->policy);
        if (k == 0)
                k = add_keys(document, c->job);
        if (k == 0)
                k = add_keys(document, run->suite->defaults);
        if (k == 0 && c->input)
                k = add_question(document, c);
        return k == 0 ? add_origin(document, run) : k;
}

int suite_make_job(const SuiteRun *run, Job **ret, Error *e)
{
        const SuiteCase *c = &run->suite->cases[run->number];
        _cleanup_(cJSON_Deletep) cJSON *document = cJSON_CreateObject();
        _cleanup_free_ char *name = text_printf("case \"%s\"", c->name);
        _cleanup_(job_freep) Job *job = NULL;
        int k = document && name ? 0 : -ENOMEM;

        if (k == 0 && !(c->input ? run->harness->function : run->harness->program))
                return error_set(e, -EINVAL, "%s: the harness \"%s\" can only run %s", name,
                                run->harness->name, c->input ? "programs" : "functions");
        if (k == 0)
                k = make_document(run, document);
        if (k == 0)
                k = job_read(document, name, &job, e);
        if (k == 0)
                k = place_files(job, run->harness_files, "the harness", e);
        if (k == 0)
                k = place_files(job, run->candidate_files, "the candidate", e);
        if (k < 0)
                return k == -EINVAL ? k : error_errno(e, k, "%s", run->suite->name);
        *ret = TAKE_PTR(job);
        return 0;
}
