/* SPDX-License-Identifier: Apache-2.0 */

/* qscope run: one job, one receipt. */

#include "cli/cli.h"

#include <limits.h>

#include "cli/options.h"
#include "cli/summary.h"
#include "run/job_run.h"
#include "run/load.h"
#include "run/planning.h"
#include "sys/file.h"

#define COMMAND_LINE "command line"
#define STDIN_MAX    MIB(64) /* of qscope's own standard input, passed on by --stdin - */

/* --stdin: a path that a person typed, or what comes in here. */
static int take_stdin(Job *job, const char *path, Error *e)
{
        int r;

        if (!path)
                return 0;
        job->has_stdin = true;
        if (!streq(path, "-")) {
                job->stdin_input.path = realpath(path, NULL);
                return job->stdin_input.path ? 0 : error_errno(e, -errno, "--stdin %s", path);
        }
        r = file_read("-", STDIN_MAX, (char **) &job->stdin_input.data, &job->stdin_input.size, e);
        return r;
}

/* The document made of the options has lines that nobody has seen. */
static void drop_line(Error *e)
{
        const char *rest = startswith(e->text, COMMAND_LINE ": line "),
                   *colon = rest ? strchr(rest, ':') : NULL;

        if (colon)
                memmove(e->text + STRLEN(COMMAND_LINE), colon, strlen(colon) + 1);
}

static int make_job(const RunArguments *a, Job **ret, Error *e)
{
        _cleanup_free_ char *text = NULL;
        int r;

        if (a->job_path) {
                r = load_job(a->job_path, ret, e);
                if (r == -ENOENT)
                        error_set(e, r, "%s: there is no such job file (a command goes after \"--\")",
                                        a->job_path);
                return r;
        }
        text = json_print(a->job, true);
        if (!text)
                return -ENOMEM;
        r = job_parse(text, strlen(text), COMMAND_LINE, ret, e);
        if (r < 0) {
                drop_line(e);
                return r;
        }
        return take_stdin(*ret, a->stdin_path, e);
}

static int print_result(const RunArguments *a, const JobRunResult *result)
{
        _cleanup_free_ char *line = NULL;

        if (a->receipt_path && streq(a->receipt_path, "-"))
                return cli_put(result->text);
        if (a->quiet)
                return 0;
        if (isatty(STDOUT_FILENO) && !a->json)
                return summary_print(stdout, result->receipt, result->receipt_path, cli_wants_colour());
        line = json_print(result->summary, false);
        return cli_put(line);
}

int cli_run(int argc, char **argv)
{
        _cleanup_(run_arguments_clear) RunArguments arguments = { 0 };
        _cleanup_(job_run_result_clear) JobRunResult result = { 0 };
        _cleanup_(job_freep) Job *job = NULL;
        _cleanup_free_ char *job_dir = NULL;
        JobRunOptions options = { 0 };
        Error e = ERROR_INIT;
        int r;

        r = run_arguments_parse(argc, argv, &arguments, &e);
        if (r < 0)
                return cli_usage("run", "%s", e.text);
        if (arguments.help) {
                run_arguments_help(stdout);
                return 0;
        }
        r = make_job(&arguments, &job, &e);
        if (r < 0)
                return cli_fail(EXIT_USAGE, &e);
        job_dir = planning_job_directory(arguments.job_path);
        options = (JobRunOptions){
                .policy = arguments.policy,
                .receipt_path = arguments.receipt_path,
                .state_dir = arguments.state_dir,
                .job_dir = job_dir,
                .trusted = arguments.command != NULL,
                .tty = arguments.tty,
                .keep = arguments.keep      ? KEEP_ALWAYS
                        : arguments.no_keep ? KEEP_NEVER
                                            : KEEP_BY_DEFAULT,
        };
        r = job_run(job, &options, &result, &e);
        if (r < 0 && geteuid() != 0) {
                error_prefix(&e, r,
                                "qscope must be root (sudo qscope …), and there is no receipt that says so");
                return cli_fail(EXIT_HOST, &e);
        }
        if (r < 0)
                return cli_fail(EXIT_USAGE, &e);
        if (result.error.text[0])
                (void) cli_fail(0, &result.error);
        return print_result(&arguments, &result) == -ENOMEM ? cli_fail(EXIT_HOST, &e) : result.exit_status;
}
