/* SPDX-License-Identifier: Apache-2.0 */

/* qscope plan: what run would ask of systemd. Nothing is run. */

#include "cli/cli.h"

#include "core/plan_text.h"
#include "run/load.h"
#include "run/planning.h"

static void print_help(void)
{
        (void) fputs("Usage: qscope plan [OPTIONS] JOB.json\n\n"
                     "Prints what run would ask of systemd: the units with every property in systemd's own words, limits,\n"
                     "mounts, the names of the variables, and a systemd-run line that does the nearest thing by hand.\n"
                     "JOB.json may be - (standard input). Nothing is run.\n\n"
                     "Options:\n"
                     "  --policy NAME          the policy that the job is held to (default: the job's)\n"
                     "  --json                 as JSON (qscope.plan/v1)\n"
                     "  --help                 this text\n\n"
                     "Exit status: 0, 2 bad usage or a file that does not parse, 3 the policy would refuse the job (the plan\n"
                     "is printed all the same).\n",
                        stdout);
}

static int print(const Plan *plan, bool json)
{
        _cleanup_(cJSON_Deletep) cJSON *object = json ? plan_to_json(plan) : NULL;
        _cleanup_free_ char *text = json ? object ? json_print(object, true) : NULL : plan_to_text(plan);

        return cli_put(text);
}

static int plan_file(const char *path, const char *policy, bool json)
{
        _cleanup_(planning_clear) Planning planning = { 0 };
        _cleanup_(job_freep) Job *job = NULL;
        Error e = ERROR_INIT;
        int r = load_job(path, &job, &e);

        if (r == 0)
                r = planning_make(job, policy, 0, &planning, &e);
        if (r < 0)
                return cli_fail(EXIT_USAGE, &e);
        assert(planning.plan);
        if (print(planning.plan, json) < 0)
                return cli_fail(EXIT_HOST, &e);
        return planning.plan->refusals.n > 0 ? EXIT_REFUSED : 0;
}

int cli_plan(_unused_ int argc, char **argv)
{
        const char *path = NULL, *policy = NULL;
        bool json = false;

        for (int i = 1; argv[i]; i++) {
                if (streq(argv[i], "--help") || streq(argv[i], "-h")) {
                        print_help();
                        return 0;
                }
                if (streq(argv[i], "--json"))
                        json = true;
                else if (streq(argv[i], "--policy") && argv[i + 1])
                        policy = argv[++i];
                else if (startswith(argv[i], "--policy="))
                        policy = argv[i] + STRLEN("--policy=");
                else if (argv[i][0] == '-' && argv[i][1] != '\0')
                        return cli_usage("plan", "%s is not an option of plan, or lacks its value", argv[i]);
                else if (path)
                        return cli_usage("plan", "\"%s\" is one argument too many", argv[i]);
                else
                        path = argv[i];
        }
        return path ? plan_file(path, policy, json) : cli_usage("plan", "a job file is missing");
}
