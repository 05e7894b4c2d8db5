/* SPDX-License-Identifier: Apache-2.0 */

/* qscope eval: a fixed table of cases against candidates. */

#include "cli/cli.h"

#include <inttypes.h>

#include "base/number.h"
#include "cli/arguments.h"
#include "cli/progress.h"
#include "run/eval.h"

typedef struct EvalArguments {
        const char *harness, *policy, *repeats, *receipts, *state_dir, *csv, *jobs;
        char **candidates; /* those of --solution come after the others */
        bool json, resume, quiet, help;
} EvalArguments;

static const Argument table[] = {
        { "--solution", ARGUMENT_LIST, offsetof(EvalArguments, candidates) },
        { "--harness", ARGUMENT_VALUE, offsetof(EvalArguments, harness) },
        { "--policy", ARGUMENT_VALUE, offsetof(EvalArguments, policy) },
        { "--repeats", ARGUMENT_VALUE, offsetof(EvalArguments, repeats) },
        { "--receipts", ARGUMENT_VALUE, offsetof(EvalArguments, receipts) },
        { "--state-dir", ARGUMENT_VALUE, offsetof(EvalArguments, state_dir) },
        { "--csv", ARGUMENT_VALUE, offsetof(EvalArguments, csv) },
        { "--jobs", ARGUMENT_VALUE, offsetof(EvalArguments, jobs) },
        { "-j", ARGUMENT_VALUE, offsetof(EvalArguments, jobs) },
        { "--json", ARGUMENT_SWITCH, offsetof(EvalArguments, json) },
        { "--resume", ARGUMENT_SWITCH, offsetof(EvalArguments, resume) },
        { "--quiet", ARGUMENT_SWITCH, offsetof(EvalArguments, quiet) },
        { "--help", ARGUMENT_SWITCH, offsetof(EvalArguments, help) },
        { "-h", ARGUMENT_SWITCH, offsetof(EvalArguments, help) },
};

static void print_help(void)
{
        (void) printf("Usage: qscope eval [OPTIONS] SUITE.json CANDIDATE...\n\n"
                      "Runs every case of a suite with every candidate (a file or a directory), each run as a job of\n"
                      "its own, and prints what passed. The suite is a table that was written before any candidate was\n"
                      "looked at; qscope.suite(5) describes it.\n\n"
                      "Options:\n"
                      "  --solution PATH        one more candidate\n"
                      "  --repeats N            each case so many times (default: the suite's \"repeats\", else 1)\n"
                      "  --harness NAME|PATH    how candidates are called, instead of the suite's: python, javascript,\n"
                      "                         c, shell, or the path of a manifest (default: by the candidate's name)\n"
                      "  --policy NAME          instead of the suite's (default: eval)\n"
                      "  -j, --jobs N           runs at a time, 1 to %u (default here: %u)\n"
                      "  --receipts DIR         the receipts go there\n"
                      "  --resume               with --receipts: do not run again what has a finished receipt there\n"
                      "  --json                 print the result as qscope.eval/v1 instead of a table\n"
                      "  --csv FILE             a record for each candidate and case\n"
                      "  --state-dir DIR        instead of /var/lib/qscope\n"
                      "  --quiet                no table and no progress; the exit status tells\n"
                      "  --help                 this text\n\n"
                      "A case passes when all its repeats pass, and a candidate when all its cases do. pass@k is the\n"
                      "chance that of k candidates at least one passes. The same suite, candidates and verdicts give the\n"
                      "same results sha256, in whatever order they ran.\n\n"
                      "Exit status: 0 every candidate passes every case, 1 some do not, 2 bad usage or a suite that does\n"
                      "not parse, 3 some runs were rejected, 4 qscope or the host could not run some; 130 or 143\n"
                      "interrupted.\n",
                        BATCH_JOBS_MAX, batch_default_jobs());
}

static int take_candidates(char **argv, int n, EvalArguments *a)
{
        _cleanup_strv_ char **more = TAKE_PTR(a->candidates);
        int r = 0;

        for (int i = 1; r == 0 && i < n; i++)
                r = strv_extend(&a->candidates, argv[i]);
        for (size_t i = 0; r == 0 && more && more[i]; i++)
                r = strv_extend(&a->candidates, more[i]);
        return r;
}

static int parse(char **argv, EvalArguments *a, uint64_t *repeats, Error *e)
{
        int n = arguments_parse(argv, table, ELEMENTSOF(table), a, e);

        if (n < 0 || a->help)
                return n;
        if (take_candidates(argv, n, a) < 0)
                return -ENOMEM;
        if (n == 0 || !a->candidates)
                return error_set(e, -EINVAL, "%s missing", n == 0 ? "the suite is" : "candidates are");
        if (a->repeats &&
                        (parse_u64(a->repeats, repeats) < 0 || *repeats < 1 || *repeats > SUITE_REPEATS_MAX))
                return error_set(e, -EINVAL, "--repeats %s: must be a number from 1 to %u", a->repeats,
                                SUITE_REPEATS_MAX);
        return a->resume && !a->receipts ? error_set(e, -EINVAL, "--resume needs --receipts DIR") : 0;
}

static void on_progress(void *userdata, const BatchProgress *progress)
{
        progress_show(userdata, progress);
}

static int write_csv(const EvalTable *results, const char *path, Error *e)
{
        FILE *out = streq(path, "-") ? stdout : fopen(path, "we");
        int r = out ? eval_write_csv(results, out) : -errno;

        if (out && out != stdout && fclose(out) != 0 && r == 0)
                r = -errno;
        return r < 0 ? error_errno(e, r, "%s", path) : 0;
}

static int print_json(const EvalTable *results)
{
        _cleanup_(cJSON_Deletep) cJSON *document = eval_to_json(results);
        _cleanup_free_ char *text = document ? json_print(document, true) : NULL;

        return cli_put(text);
}

static int tell(const EvalArguments *a, const EvalTable *results, const BatchResult *batch, Error *e)
{
        int r = 0;

        if (a->json)
                r = print_json(results);
        else if (!a->quiet)
                eval_print(results, a->csv && streq(a->csv, "-") ? stderr : stdout);
        if (r == 0 && a->csv)
                r = write_csv(results, a->csv, e);
        if (batch->stopped)
                (void) fprintf(stderr, "qscope: interrupted after %" PRIu64 " of %" PRIu64 " runs%s\n",
                                batch->tally.done, eval_runs(results),
                                a->receipts ? "; the same with --resume runs the rest" : "");
        return r;
}

static int run(const EvalArguments *a, const EvalOptions *options, Progress *progress, Error *e)
{
        _cleanup_(eval_donep) Eval *eval = NULL;
        BatchResult result = { 0 };
        int r = eval_prepare(options, &eval, e);

        if (r < 0)
                return cli_fail(EXIT_USAGE, e);
        r = eval_execute(eval, &result, e);
        progress_hide(progress);
        free(result.first_left);
        if (r == 0)
                r = tell(a, eval_table(eval), &result, e);
        return r < 0 ? cli_fail(EXIT_HOST, e) : result.tally.status;
}

int cli_eval(_unused_ int argc, char **argv)
{
        EvalArguments a = { 0 };
        Progress progress = { 0 };
        BatchOptions batch = { .on_progress = on_progress, .userdata = &progress };
        EvalOptions options = { .batch = &batch };
        Error e = ERROR_INIT;
        int status = EXIT_USAGE;

        if (parse(argv, &a, &options.repeats, &e) < 0 || progress_parse_jobs(a.jobs, &batch.jobs, &e) < 0) {
                status = cli_usage("eval", "%s", e.text);
        } else if (a.help) {
                print_help();
                status = 0;
        } else if (cli_make_receipts(a.receipts, &e) < 0) {
                status = cli_fail(EXIT_USAGE, &e);
        } else {
                progress.on = !a.quiet && isatty(STDERR_FILENO);
                batch.receipts_dir = a.receipts;
                batch.state_dir = a.state_dir;
                batch.resume = a.resume;
                options.suite = argv[0];
                options.candidates = a.candidates;
                options.harness = a.harness;
                options.policy = a.policy;
                status = run(&a, &options, &progress, &e);
        }
        strv_free(a.candidates);
        return status;
}
