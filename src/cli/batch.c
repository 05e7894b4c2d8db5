/* SPDX-License-Identifier: Apache-2.0 */

/* qscope batch: many jobs, several at a time; a receipt for each, and a table. */

#include "cli/cli.h"

#include <inttypes.h>

#include "cli/arguments.h"
#include "cli/progress.h"

typedef struct BatchArguments {
        const char *policy, *receipts, *state_dir, *csv, *jsonl, *jobs;
        bool resume, fail_fast, keep, quiet, help;
        char **paths; /* ended by NULL */
} BatchArguments;

typedef struct Printer {
        FILE *table, *csv, *jsonl; /* NULL: not wanted */
        Progress progress;
        bool headed;
} Printer;

/* --- arguments --- */

static void print_help(void)
{
        (void) printf("Usage: qscope batch [OPTIONS] JOBS...\n\n"
                      "Runs many jobs, several at a time, each as `qscope run` would, and writes a receipt for each.\n"
                      "JOBS are job files, files with one job on each line (JSON Lines: *.jsonl, *.ndjson), directories\n"
                      "(their *.json, sorted by name), patterns, and - for standard input with one job on each line,\n"
                      "begun as they come in. Rows come out in the order of the input. A job that does not parse is a\n"
                      "row, and stops nothing.\n\n"
                      "Options:\n"
                      "  -j, --jobs N           jobs at a time, 1 to %u (default here: %u, one for each CPU, and no\n"
                      "                         more than there are 256 MiB of memory for)\n"
                      "  --receipts DIR         receipts go there, named after the job's id; a second job with the\n"
                      "                         same id gets ID.2.json, a third ID.3.json\n"
                      "  --resume               with --receipts: do not run again what has a finished receipt there.\n"
                      "                         A job is known by its content and its policy, not by its id; what was\n"
                      "                         aborted, or ended as error, is run again\n"
                      "  --fail-fast            after the first job that does not pass begin no other; those that run\n"
                      "                         come to their end\n"
                      "  --csv FILE             a record for each job, for spreadsheets\n"
                      "  --jsonl FILE           a line of JSON for each job, that of `qscope run`; - is standard output\n"
                      "  --policy NAME          the policy of all of them (default: each job's own)\n"
                      "  --state-dir DIR        instead of /var/lib/qscope\n"
                      "  --keep                 keep what the jobs changed for qscope apply; without, nothing is kept\n"
                      "  --quiet                no table and no progress; the exit status tells\n"
                      "  --help                 this text\n\n"
                      "The table lists what did not pass, then counts. It goes to standard output, or to standard error\n"
                      "with --jsonl -. On a terminal the progress is shown. Ctrl-C ends the jobs that run, with receipts\n"
                      "that say so.\n\n"
                      "Exit status: 0 all passed, 1 some failed, 2 bad usage or a job that does not parse, 3 some were\n"
                      "rejected, 4 qscope or the host could not run some; 130 or 143 interrupted. Of several, 2 comes\n"
                      "first, then 4, 3, 1.\n",
                        BATCH_JOBS_MAX, batch_default_jobs());
}

static const Argument table[] = {
        { "--policy", ARGUMENT_VALUE, offsetof(BatchArguments, policy) },
        { "--receipts", ARGUMENT_VALUE, offsetof(BatchArguments, receipts) },
        { "--state-dir", ARGUMENT_VALUE, offsetof(BatchArguments, state_dir) },
        { "--csv", ARGUMENT_VALUE, offsetof(BatchArguments, csv) },
        { "--jsonl", ARGUMENT_VALUE, offsetof(BatchArguments, jsonl) },
        { "--jobs", ARGUMENT_VALUE, offsetof(BatchArguments, jobs) },
        { "-j", ARGUMENT_VALUE, offsetof(BatchArguments, jobs) },
        { "--resume", ARGUMENT_SWITCH, offsetof(BatchArguments, resume) },
        { "--fail-fast", ARGUMENT_SWITCH, offsetof(BatchArguments, fail_fast) },
        { "--keep", ARGUMENT_SWITCH, offsetof(BatchArguments, keep) },
        { "--quiet", ARGUMENT_SWITCH, offsetof(BatchArguments, quiet) },
        { "--help", ARGUMENT_SWITCH, offsetof(BatchArguments, help) },
        { "-h", ARGUMENT_SWITCH, offsetof(BatchArguments, help) },
};

static int parse(char **argv, BatchArguments *a, Error *e)
{
        int n = arguments_parse(argv, table, ELEMENTSOF(table), a, e);

        if (n < 0 || a->help)
                return n;
        a->paths = argv;
        if (n == 0)
                return error_set(e, -EINVAL, "jobs are missing: files, directories, or -");
        return a->resume && !a->receipts ? error_set(e, -EINVAL, "--resume needs --receipts DIR") : 0;
}

/* --- printing --- */

static int put(FILE *f, const char *text)
{
        return f && (fputs(text, f) < 0 || fflush(f) != 0) ? -errno : 0;
}

static int on_row(void *userdata, const BatchRow *row)
{
        Printer *p = userdata;
        int r;

        progress_hide(&p->progress);
        if (p->table && row->row && !p->headed) {
                (void) fputs(batch_table_header, p->table);
                p->headed = true;
        }
        r = row->row ? put(p->table, row->row) : 0;
        if (r == 0)
                r = put(p->jsonl, row->line);
        return r < 0 ? r : put(p->csv, row->record);
}

static void on_progress(void *userdata, const BatchProgress *progress)
{
        Printer *p = userdata;

        progress_show(&p->progress, progress);
}

static void print_end(const Printer *p, const BatchArguments *a, const BatchResult *result)
{
        _cleanup_free_ char *left = NULL;

        if (p->table) {
                batch_tally_print(p->table, &result->tally, result->elapsed_usec);
                (void) fflush(p->table);
        }
        if (!result->stopped && result->signal == 0)
                return;
        if (result->first_left)
                left = text_escape_alloc(result->first_left, strlen(result->first_left));
        (void) fprintf(stderr, "qscope: %s after %" PRIu64 " jobs",
                        result->signal ? "interrupted" : "stopped at the first that did not pass",
                        result->tally.done);
        if (left)
                (void) fprintf(stderr, "; the next would have been number %" PRIu64 ", %s",
                                result->first_left_number, left);
        else if (result->stopped)
                (void) fputs("; more was to come", stderr);
        if (result->stopped)
                (void) fputs(a->receipts ? "; the same with --resume runs the rest"
                                         : "; without --receipts there is nothing to resume from",
                                stderr);
        (void) fputc('\n', stderr);
}

/* --- */

/* What is in its place is written over, as by a shell's ">"; the jobs' own files are receipts. */
static int open_output(const char *path, FILE **ret, Error *e)
{
        if (!path)
                return 0;
        if (streq(path, "-")) {
                *ret = stdout;
                return 0;
        }
        *ret = fopen(path, "we");
        return *ret ? 0 : error_errno(e, -errno, "%s", path);
}

static int open_outputs(const BatchArguments *a, Printer *p, Error *e)
{
        int r = open_output(a->jsonl, &p->jsonl, e);

        if (r == 0)
                r = open_output(a->csv, &p->csv, e);
        if (r == 0 && p->csv)
                r = fputs(batch_csv_header, p->csv) < 0 ? error_errno(e, -errno, "%s", a->csv) : 0;
        if (r == 0 && p->csv == stdout && p->jsonl == stdout)
                r = error_set(e, -EINVAL, "--csv - and --jsonl -: only one of them can be standard output");
        if (!a->quiet)
                p->table = p->jsonl == stdout || p->csv == stdout ? stderr : stdout;
        p->progress.on = !a->quiet && isatty(STDERR_FILENO);
        return r;
}

static int close_output(FILE *f, const char *path)
{
        bool lost = f && ferror(f);
        Error e = ERROR_INIT;

        errno = 0;
        if (!f || f == stdout || (fclose(f) == 0 && !lost))
                return 0;
        error_errno(&e, errno > 0 ? -errno : -EIO, "%s", path);
        return cli_fail(EXIT_HOST, &e);
}

static int close_outputs(const BatchArguments *a, const Printer *p, int status)
{
        status = MAX(status, close_output(p->csv, a->csv));
        return MAX(status, close_output(p->jsonl, a->jsonl));
}

int cli_batch(_unused_ int argc, char **argv)
{
        _cleanup_(job_source_freep) JobSource *source = NULL;
        BatchArguments a = { 0 };
        BatchOptions options = { 0 };
        BatchResult result = { 0 };
        Printer printer = { 0 };
        Error e = ERROR_INIT;
        int r;

        if (parse(argv, &a, &e) < 0 || progress_parse_jobs(a.jobs, &options.jobs, &e) < 0)
                return cli_usage("batch", "%s", e.text);
        if (a.help) {
                print_help();
                return 0;
        }
        if (job_source_new(a.paths, &source, &e) < 0 || cli_make_receipts(a.receipts, &e) < 0 ||
                        open_outputs(&a, &printer, &e) < 0)
                return cli_fail(EXIT_USAGE, &e);
        options.source = source;
        options.policy = a.policy;
        options.receipts_dir = a.receipts;
        options.state_dir = a.state_dir;
        options.resume = a.resume;
        options.fail_fast = a.fail_fast;
        options.keep = a.keep;
        options.on_row = on_row;
        options.on_progress = on_progress;
        options.userdata = &printer;
        r = batch_run(&options, &result, &e);
        progress_hide(&printer.progress);
        print_end(&printer, &a, &result);
        free(result.first_left);
        if (r < 0)
                return close_outputs(&a, &printer, cli_fail(EXIT_HOST, &e));
        return close_outputs(&a, &printer, result.tally.status);
}
