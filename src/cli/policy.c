/* SPDX-License-Identifier: Apache-2.0 */

/* qscope policy: the policies in force. */

#include "cli/cli.h"

#include "base/text.h"
#include "run/load.h"

#define EXIT_FINDINGS 1

static void print_help(void)
{
        (void) fputs("Usage: qscope policy list\n"
                     "       qscope policy show NAME [--json]\n"
                     "       qscope policy lint FILE...\n\n"
                     "list: the policies that a job may name, with their files and drop-ins.\n"
                     "show: the policy as it is in force, merged from what it extends, its file and its drop-ins, with the\n"
                     "file that each value came from. What is printed is a policy file again.\n"
                     "lint: whether policy files and drop-ins read, and what is likely not meant in them.\n\n"
                     "Options:\n"
                     "  --json                 {\"name\", \"sha256\", \"policy\", \"sources\"}; sources has the shape of policy\n"
                     "  --help                 this text\n\n"
                     "Exit status: 0, 1 lint has found something, 2 bad usage or a policy that does not parse.\n",
                        stdout);
}

static void put_line(const char *label, const char *text)
{
        char shown[2048];

        text_excerpt(text, strlen(text), shown, sizeof(shown));
        (void) printf("%s%s\n", label, shown);
}

/* --- list --- */

static void print_policy(const char *name, const char *path)
{
        _cleanup_(policy_freep) Policy *policy = NULL;
        _cleanup_strv_ char **drop_ins = NULL;
        Error e = ERROR_INIT;
        int r = load_policy(name, &policy, &e);

        (void) printf("%s\n", name);
        put_line("  file  ", path);
        /* Too many are an error of the policy itself. */
        (void) list_drop_ins(policy_directories, name, &drop_ins, NULL);
        for (size_t i = 0; drop_ins && drop_ins[i]; i++)
                put_line("  file  ", drop_ins[i]);
        if (r < 0)
                put_line("  error ", e.text);
        else if (policy->description)
                put_line("        ", policy->description);
}

static int list(void)
{
        _cleanup_strv_ char **names = NULL, **paths = NULL;
        Error e = ERROR_INIT;

        if (list_policies(policy_directories, &names, &paths) < 0)
                return cli_fail(EXIT_HOST, &e);
        if (strv_length(names) == 0) {
                error_set(&e, -ENOENT, "there are no policies in %s, %s or %s", policy_directories[0],
                                policy_directories[1], policy_directories[2]);
                return cli_fail(EXIT_USAGE, &e);
        }
        for (size_t i = 0; names[i]; i++)
                print_policy(names[i], paths[i]);
        return 0;
}

/* --- show --- */

static char *show_json(const Policy *policy)
{
        _cleanup_(cJSON_Deletep) cJSON *object = cJSON_CreateObject();
        int r = json_add_text(object, "name", policy->name);

        if (r == 0)
                r = json_add_text(object, "sha256", policy->sha256);
        if (r == 0)
                r = json_add(object, "policy", cJSON_Duplicate(policy->document, true));
        if (r == 0)
                r = json_add(object, "sources", cJSON_Duplicate(policy->sources, true));
        return r == 0 ? json_print(object, true) : NULL;
}

static int show(const char *name, bool json)
{
        _cleanup_(policy_freep) Policy *policy = NULL;
        _cleanup_free_ char *text = NULL;
        Error e = ERROR_INIT;

        if (load_policy(name, &policy, &e) < 0)
                return cli_fail(EXIT_USAGE, &e);
        text = json ? show_json(policy) : policy_show(policy);
        if (cli_put(text) < 0)
                return cli_fail(EXIT_HOST, &e);
        return 0;
}

/* --- lint --- */

/* The file that is executed on this host for the rule's program; NULL: it is not here, or is no single one.
 */
static char *find_program(const char *rule)
{
        static const char *const directories[] = { "/usr/local/sbin", "/usr/local/bin", "/usr/sbin",
                "/usr/bin" };

        if (*rule == '/')
                return realpath(rule, NULL);
        for (size_t i = 0; i < ELEMENTSOF(directories); i++) {
                _cleanup_free_ char *path = text_printf("%s/%s", directories[i], rule);
                char *real = path ? realpath(path, NULL) : NULL;

                if (real)
                        return real;
        }
        return NULL;
}

/* The file itself is asked for, which a link's name does not allow: nothing would say so until a job fails.
 */
static int lint_links(const Policy *policy, char ***ret)
{
        char **allow = policy->root ? NULL : policy->exec.allow;
        int r = 0;

        for (size_t i = 0; allow && allow[i] && r == 0; i++) {
                _cleanup_free_ char *real = find_program(allow[i]);
                const ExecAsked asked = { .path = real };
                const char *rule;

                if (real && exec_rules_match(&policy->exec, &asked, &rule) == EXEC_DENIED && !rule)
                        r = strv_extendf(ret,
                                        "policy.allow_exec: %s is a link to %s here, which no rule allows: "
                                        "programs are known by the file that is executed",
                                        allow[i], real);
        }
        return r;
}

static int lint(const char *path)
{
        _cleanup_(policy_freep) Policy *policy = NULL;
        _cleanup_strv_ char **found = NULL;
        Error e = ERROR_INIT;

        if (load_policy_file(policy_directories, path, &policy, &e) < 0)
                return cli_fail(EXIT_USAGE, &e);
        if (policy && (policy_lint(policy, &found) < 0 || lint_links(policy, &found) < 0))
                return cli_fail(EXIT_HOST, &e);
        for (size_t i = 0; found && found[i]; i++) {
                _cleanup_free_ char *line = text_printf("%s: %s", path, found[i]);

                put_line("", line ? line : found[i]);
        }
        return strv_length(found) > 0 ? EXIT_FINDINGS : 0;
}

static int lint_all(char **paths)
{
        int status = 0;

        for (size_t i = 0; paths[i]; i++)
                status = MAX(status, lint(paths[i]));
        return status;
}

/* --- arguments --- */

int cli_policy(int argc, char **argv)
{
        const char *verb = argc > 1 ? argv[1] : "";
        bool json = false;
        int n = 0;

        for (int i = 1; i < argc; i++)
                if (streq(argv[i], "--help") || streq(argv[i], "-h")) {
                        print_help();
                        return 0;
                }
        for (int i = 2; i < argc; i++) {
                if (streq(argv[i], "--json") && streq(verb, "show"))
                        json = true;
                else if (argv[i][0] == '-')
                        return cli_usage("policy", "%s is not an option of policy %s", argv[i], verb);
                else
                        argv[n++] = argv[i];
        }
        if (argc > 1)
                argv[n] = NULL;
        if (streq(verb, "list") && n == 0)
                return list();
        if (streq(verb, "show") && n == 1)
                return show(argv[0], json);
        if (streq(verb, "lint") && n > 0)
                return lint_all(argv);
        return cli_usage("policy", "list, show NAME, or lint FILE... is wanted");
}
