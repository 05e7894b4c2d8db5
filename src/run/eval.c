/* SPDX-License-Identifier: Apache-2.0 */
#include "run/eval.h"

#include <sys/stat.h>

#include "base/path.h"
#include "run/candidate.h"
#include "run/planning.h"
#include "sys/file.h"

typedef struct Loaded {
        char *path;
        dev_t device;
        ino_t inode;
        Harness *harness;
        SuiteFiles harness_files, files;
} Loaded;

struct Eval {
        const EvalOptions *options;
        Suite *suite;
        char *directory; /* of the suite */
        Loaded *loaded;
        EvalCandidate *candidates;
        size_t n_candidates;
        EvalTable *table;
};

Eval *eval_done(Eval *eval)
{
        if (!eval)
                return NULL;
        for (size_t i = 0; eval->loaded && i < eval->n_candidates; i++) {
                Loaded *loaded = &eval->loaded[i];

                free(loaded->path);
                harness_free(loaded->harness);
                suite_files_clear(&loaded->harness_files);
                suite_files_clear(&loaded->files);
        }
        free(eval->loaded);
        free(eval->candidates);
        eval_free(eval->table);
        suite_free(eval->suite);
        free(eval->directory);
        free(eval);
        return NULL;
}

const EvalTable *eval_table(const Eval *eval)
{
        return eval->table;
}

static int load_suite(Eval *eval, Error *e)
{
        const char *path = eval->options->suite;
        _cleanup_free_ char *text = NULL;
        size_t size;
        int r = file_read(path, SUITE_FILE_MAX, &text, &size, e);

        if (r == 0)
                r = suite_parse(text, size, streq(path, "-") ? "standard input" : path, &eval->suite, e);
        if (r < 0)
                return r;
        eval->directory = planning_job_directory(path);
        if (!eval->directory)
                eval->directory = strdup(".");
        return eval->directory ? 0 : -ENOMEM;
}

static int load_candidate(Eval *eval, const char *path, Loaded *loaded, Error *e)
{
        const char *given = eval->options->harness;
        struct stat st;
        int r;

        if (stat(path, &st) < 0)
                return error_errno(e, -errno, "%s", path);
        loaded->device = st.st_dev;
        loaded->inode = st.st_ino;
        loaded->path = strdup(path);
        r = loaded->path ? 0 : -ENOMEM;
        /* A path on the command line starts where the person is, one in the suite where the suite lies. */
        if (r == 0)
                r = harness_load(given ? given : eval->suite->harness, given ? "." : eval->directory, path,
                                &loaded->harness, &loaded->harness_files, e);
        return r == 0 ? candidate_load(path, loaded->harness, &loaded->files, e) : r;
}

/* It would count twice in pass@k. That two files hold the same is nobody's fault. */
static int check_given_once(const Eval *eval, const Loaded *loaded, Error *e)
{
        for (const Loaded *other = eval->loaded; other < loaded; other++)
                if (other->inode == loaded->inode && other->device == loaded->device)
                        return error_set(e, -EEXIST, "%s: the candidate is given twice (as %s, too)",
                                        loaded->path, other->path);
        return 0;
}

static int load_candidates(Eval *eval, Error *e)
{
        size_t n = strv_length(eval->options->candidates);

        if (n > EVAL_CANDIDATES_MAX)
                return error_set(e, -E2BIG, "%zu candidates, at most %u are allowed", n, EVAL_CANDIDATES_MAX);
        eval->loaded = calloc(n, sizeof(Loaded));
        eval->candidates = calloc(n, sizeof(EvalCandidate));
        if (!eval->loaded || !eval->candidates)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                Loaded *loaded = &eval->loaded[eval->n_candidates++];
                int r = load_candidate(eval, eval->options->candidates[i], loaded, e);

                if (r == 0)
                        r = check_given_once(eval, loaded, e);
                if (r < 0)
                        return r;
                eval->candidates[i] = (EvalCandidate){
                        .name = loaded->path, .sha256 = loaded->files.sha256, .harness = loaded->harness->name
                };
        }
        return 0;
}

static int make_job(const Eval *eval, uint64_t number, Job **ret, Error *e)
{
        size_t candidate;
        SuiteRun run = { .suite = eval->suite };
        const Loaded *loaded;

        eval_locate(eval->table, number - 1, &candidate, &run.number, &run.repeat);
        loaded = &eval->loaded[candidate];
        run.harness = loaded->harness;
        run.harness_files = &loaded->harness_files;
        run.candidate = loaded->path;
        run.candidate_files = &loaded->files;
        return suite_make_job(&run, ret, e);
}

/* Every case with every candidate once: what cannot be run at all is told now. */
static int check_jobs(const Eval *eval, uint64_t repeats, Error *e)
{
        for (uint64_t number = 1; number <= eval_runs(eval->table); number += repeats) {
                _cleanup_(job_freep) Job *job = NULL;
                int r = make_job(eval, number, &job, e);

                if (r < 0)
                        return r;
        }
        return 0;
}

int eval_prepare(const EvalOptions *options, Eval **ret, Error *e)
{
        _cleanup_(eval_donep) Eval *eval = calloc(1, sizeof(Eval));
        uint64_t repeats;
        int r = eval ? 0 : -ENOMEM;

        if (r < 0)
                return r;
        eval->options = options;
        r = load_suite(eval, e);
        if (r == 0)
                r = load_candidates(eval, e);
        if (r < 0)
                return r;
        repeats = options->repeats ? options->repeats : eval->suite->repeats;
        r = eval_new(eval->suite, eval->candidates, eval->n_candidates, repeats, &eval->table, e);
        if (r == 0)
                r = check_jobs(eval, repeats, e);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(eval);
        return 0;
}

static int make_item(void *userdata, uint64_t number, JobItem *ret)
{
        const Eval *eval = userdata;

        if (make_job(eval, number, &ret->job, &ret->error) == -ENOMEM)
                return -ENOMEM;
        ret->name = ret->job ? strdup(ret->job->job_id)
                             : text_printf("run %llu", (unsigned long long) number);
        ret->job_dir = strdup(eval->directory); /* what its files name as source is looked up there */
        return ret->name && ret->job_dir ? 0 : -ENOMEM;
}

typedef struct Listener {
        Eval *eval;
        const BatchOptions *options;
} Listener;

static int on_end(void *userdata, const BatchEnd *end)
{
        const Listener *listener = userdata;

        return eval_add(listener->eval->table, end->number - 1, end->receipt, end->receipt_path, end->error);
}

static void on_progress(void *userdata, const BatchProgress *progress)
{
        const Listener *listener = userdata;

        if (listener->options->on_progress)
                listener->options->on_progress(listener->options->userdata, progress);
}

int eval_execute(Eval *eval, BatchResult *ret, Error *e)
{
        _cleanup_(job_source_freep) JobSource *source = NULL;
        Listener listener = { .eval = eval, .options = eval->options->batch };
        BatchOptions options = *eval->options->batch;
        int r = job_source_made(make_item, eval, eval_runs(eval->table), &source);

        if (r < 0)
                return r;
        options.source = source;
        options.policy = eval->options->policy;
        options.on_row = NULL;
        options.on_end = on_end;
        options.on_progress = on_progress;
        options.userdata = &listener;
        return batch_run(&options, ret, e);
}
