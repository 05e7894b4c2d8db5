/* SPDX-License-Identifier: Apache-2.0 */

/* qscope check: what would be refused or would fail, at once. Nothing is run. */

#include "cli/cli.h"

#include <sys/utsname.h>

#include "core/exec_hint.h"
#include "json/json.h"
#include "run/input.h"
#include "run/load.h"
#include "run/look.h"
#include "run/planning.h"

#define EXIT_WOULD_FAIL 1

typedef struct CheckArguments {
        const char *policy;
        bool json, quiet, help;
        char **paths;
        int n_paths;
} CheckArguments;

typedef struct Checked {
        const char *path;
        Job *job;
        Planning planning;
        ExecRecord record;
        ExecHint hint;
        ReasonList failures; /* besides that */
        ReasonList inputs;   /* that cannot be opened */
        Error e;             /* there is no plan */
        int status;
} Checked;

static void checked_clear(Checked *c)
{
        reason_list_clear(&c->failures);
        reason_list_clear(&c->inputs);
        look_clear(&c->record);
        planning_clear(&c->planning);
        job_free(c->job);
}

/* By name and path; a digest is compared when it is run, and so are interpreters. */
static int check_rules(Checked *c)
{
        const Policy *policy = c->planning.plan->policy;
        const ExecAsked asked = { .path = c->record.file, .called = c->record.resolved };
        const char *rule;

        if (c->record.error != 0 || exec_rules_match(&policy->exec, &asked, &rule) != EXEC_DENIED)
                return 0;
        return reason_add(&c->failures, "denied_exec", "%.200s is refused by the policy %s (%s%.100s)",
                        c->record.file, policy->name, rule ? "deny_exec: " : "not in allow_exec",
                        rule ? rule : "");
}

/* A run opens these before anything of the job. */
static int check_inputs(Checked *c)
{
        _cleanup_free_ char *job_dir = planning_job_directory(c->path);

        return c->planning.plan->refusals.n > 0 ? 0 : input_look(c->planning.plan, job_dir, &c->inputs);
}

static int make(Checked *c, const char *policy)
{
        struct utsname name;
        int r = load_job(c->path, &c->job, &c->e);

        if (r == 0)
                r = planning_make(c->job, policy, 0, &c->planning, &c->e);
        if (r < 0)
                return r;
        r = look_command(c->planning.plan, &c->record);
        if (r < 0)
                return error_errno(&c->e, r, "%s", c->path);
        if (c->record.error > 0)
                exec_explain(&c->record, c->planning.plan->argv, look_search_path(c->planning.plan),
                                uname(&name) < 0 ? NULL : name.machine, &c->hint);
        r = check_inputs(c);
        return r < 0 ? r : check_rules(c);
}

static int judge(const Checked *c, int r)
{
        if (r < 0)
                return r == -ENOMEM ? EXIT_HOST : EXIT_USAGE;
        if (c->planning.plan->refusals.n > 0)
                return EXIT_REFUSED;
        if (c->inputs.n > 0)
                return EXIT_HOST;
        return c->record.error > 0 || c->failures.n > 0 ? EXIT_WOULD_FAIL : 0;
}

static const char *verdict(const Checked *c)
{
        switch (c->status) {
        case 0:
                return "pass";
        case EXIT_WOULD_FAIL:
                return "fail";
        case EXIT_REFUSED:
                return "rejected";
        default:
                return "error";
        }
}

/* --- printing --- */

static int add_exec(cJSON *object, const Checked *c)
{
        cJSON *exec = json_add_object(object, "exec");
        int r = json_add_text(exec, "path", c->record.resolved);

        if (r == 0 && c->record.error > 0)
                r = json_add_text(exec, "error", errno_name(c->record.error));
        if (r == 0 && c->record.error > 0)
                r = json_add_text(exec, "kind", exec_kind_names[c->hint.kind]);
        if (r == 0 && c->record.error > 0)
                r = json_add_text(exec, "hint", c->hint.hint);
        return r;
}

static int add_reasons(cJSON *list, const ReasonList *reasons)
{
        int r = list ? 0 : -ENOMEM;

        for (size_t i = 0; i < reasons->n && r == 0; i++) {
                cJSON *one = json_add_object(list, NULL);

                r = json_add_text(one, "code", reasons->items[i].code);
                if (r == 0)
                        r = json_add_text(one, "message", reasons->items[i].message);
                if (r == 0)
                        r = json_add_text(one, "next", reason_find(reasons->items[i].code)->next);
        }
        return r;
}

static int add_all_reasons(cJSON *object, const Checked *c)
{
        cJSON *list = json_add_array(object, "reasons");
        int r = add_reasons(list, &c->planning.plan->refusals);

        if (r == 0)
                r = add_reasons(list, &c->inputs);
        return r < 0 ? r : add_reasons(list, &c->failures);
}

/* {"job": FILE, "verdict": …, "job_id", "policy", "reasons": […], "exec": {…}} or {…, "error": sentence}. */
static int print_json(const Checked *c)
{
        _cleanup_(cJSON_Deletep) cJSON *object = cJSON_CreateObject();
        _cleanup_free_ char *line = NULL;
        const Plan *plan = c->planning.plan;
        int r = json_add_text(object, "job", c->path);

        if (r == 0)
                r = json_add_text(object, "verdict", verdict(c));
        if (r == 0 && !plan)
                r = json_add_text(object, "error", c->e.text);
        if (r == 0 && plan)
                r = json_add_text(object, "job_id", plan->job_id);
        if (r == 0 && plan)
                r = json_add_text(object, "policy", plan->policy->name);
        if (r == 0 && plan)
                r = add_all_reasons(object, c);
        if (r == 0 && plan)
                r = add_exec(object, c);
        line = r == 0 ? json_print(object, false) : NULL;
        return r < 0 ? r : cli_put(line);
}

static void print_reasons(const char *path, const char *what, const ReasonList *reasons)
{
        for (size_t i = 0; i < reasons->n; i++)
                (void) printf("%s: would %s: %s: %s\n  next: %s\n", path, what, reasons->items[i].code,
                                reasons->items[i].message, reason_find(reasons->items[i].code)->next);
}

static int print_text(const Checked *c)
{
        _cleanup_free_ char *path = text_escape_alloc(c->path, strlen(c->path)), *found = NULL;
        const Plan *plan = c->planning.plan;

        if (!path)
                return -ENOMEM;
        if (!plan)
                return cli_fail(0, &c->e);
        print_reasons(path, "be rejected", &plan->refusals);
        print_reasons(path, "end in an error", &c->inputs);
        print_reasons(path, "fail", &c->failures);
        if (c->record.error > 0)
                (void) printf("%s: would fail: %s: %s\n", path, exec_kind_names[c->hint.kind], c->hint.hint);
        if (c->status != 0)
                return 0;
        if (c->record.error < 0) {
                (void) printf("%s: ok, but whether the command can be executed is not known before it is run\n",
                                path);
                return 0;
        }
        found = text_escape_alloc(c->record.resolved, strlen(c->record.resolved));
        if (!found)
                return -ENOMEM;
        (void) printf("%s: ok: %s under the policy %s\n", path, found, plan->policy->name);
        return 0;
}

static int check_one(const CheckArguments *a, const char *path)
{
        _cleanup_(checked_clear) Checked c = { .path = path, .e = ERROR_INIT };
        int r = make(&c, a->policy);

        c.status = judge(&c, r);
        r = a->quiet && c.planning.plan ? 0 : a->json ? print_json(&c) : print_text(&c);
        return r < 0 ? EXIT_HOST : c.status;
}

/* --- arguments --- */

static void print_help(void)
{
        (void) fputs("Usage: qscope check [OPTIONS] JOB.json...\n\n"
                     "Says what would be refused or would fail, without running anything: whether each job parses, what\n"
                     "its policy says to it, whether its command is there in its own root and can be executed, and whether\n"
                     "what it names as input can be opened.\n"
                     "JOB.json may be - (standard input). Needs no root, but cannot tell what the caller cannot read.\n\n"
                     "Options:\n"
                     "  --policy NAME          the policy that the jobs are held to (default: the job's)\n"
                     "  --json                 one line of JSON for each job\n"
                     "  --quiet                print only what cannot be read; the exit status tells\n"
                     "  --help                 this text\n\n"
                     "Exit status: 0 all would be started, 1 one would fail at its start, 2 one does not parse, 3 one\n"
                     "would be rejected, 4 its input cannot be opened, or it cannot be told. Of several, a job that does not\n"
                     "parse comes first, then 4, what is rejected, what fails.\n",
                        stdout);
}

static int parse(char **argv, CheckArguments *a, Error *e)
{
        for (int i = 1; argv[i]; i++) {
                if (streq(argv[i], "--help") || streq(argv[i], "-h"))
                        a->help = true;
                else if (streq(argv[i], "--json"))
                        a->json = true;
                else if (streq(argv[i], "--quiet"))
                        a->quiet = true;
                else if (streq(argv[i], "--policy") && argv[i + 1])
                        a->policy = argv[++i];
                else if (startswith(argv[i], "--policy="))
                        a->policy = argv[i] + STRLEN("--policy=");
                else if (argv[i][0] == '-' && argv[i][1] != '\0')
                        return error_set(e, -EINVAL, "%s is not an option of check, or lacks its value",
                                        argv[i]);
                else
                        argv[a->n_paths++] = argv[i]; /* options go, paths move to the front */
        }
        a->paths = argv;
        if (a->n_paths == 0 && !a->help)
                return error_set(e, -EINVAL, "a job file is missing");
        return 0;
}

/* The worst comes first. */
static int worse(int a, int b)
{
        static const int order[] = { EXIT_USAGE, EXIT_HOST, EXIT_REFUSED, EXIT_WOULD_FAIL };

        for (size_t i = 0; i < ELEMENTSOF(order); i++)
                if (a == order[i] || b == order[i])
                        return order[i];
        return 0;
}

int cli_check(_unused_ int argc, char **argv)
{
        CheckArguments a = { 0 };
        Error e = ERROR_INIT;
        int status = 0;

        if (parse(argv, &a, &e) < 0)
                return cli_usage("check", "%s", e.text);
        if (a.help) {
                print_help();
                return 0;
        }
        for (int i = 0; i < a.n_paths; i++)
                status = worse(status, check_one(&a, a.paths[i]));
        return status;
}
