/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/options.h"

#include <math.h>

#include "base/path.h"
#include "base/text.h"
#include "json/json.h"

typedef enum OptionKind {
        OPTION_FLAG,      /* target: bool in RunArguments */
        OPTION_STRING,    /* target: const char * in RunArguments */
        OPTION_TEXT,      /* job key: string */
        OPTION_DIRECTORY, /* job key: a path, made absolute */
        OPTION_NUMBER,    /* job key: number */
        OPTION_LIST,      /* job key: list of strings, may be repeated */
        OPTION_STATUS,    /* job key: a number, a list of numbers, or "any" */
        OPTION_PAIR,      /* job key: object, NAME=VALUE */
        OPTION_LIMIT,     /* job.limits.KEY: string or number */
} OptionKind;

typedef struct Option {
        const char *name, *argument;
        OptionKind kind;
        const char *key;
        size_t offset;
        const char *help;
} Option;

#define TARGET(member) offsetof(RunArguments, member)

static const Option options[] = {
        { "policy", "NAME", OPTION_STRING, NULL, TARGET(policy),
                        "policy that the job is held to (default: default)" },
        { "receipt", "FILE", OPTION_STRING, NULL, TARGET(receipt_path),
                        "where the receipt goes; - is standard output" },
        { "json", NULL, OPTION_FLAG, NULL, TARGET(json), "one line of JSON, on a terminal too" },
        { "quiet", NULL, OPTION_FLAG, NULL, TARGET(quiet), "print nothing; the exit status tells" },
        { "state-dir", "DIR", OPTION_STRING, NULL, TARGET(state_dir),
                        "receipts and layers (default: /var/lib/qscope)" },
        { "keep", NULL, OPTION_FLAG, NULL, TARGET(keep),
                        "keep what it changed for qscope apply, whatever the configuration says" },
        { "no-keep", NULL, OPTION_FLAG, NULL, TARGET(no_keep), "keep nothing for qscope apply" },
        { "help", NULL, OPTION_FLAG, NULL, TARGET(help), "this text" },
        { "job-id", "ID", OPTION_TEXT, "job_id", 0, "name of the job and its receipt" },
        { "cwd", "DIR", OPTION_DIRECTORY, "cwd", 0, "the workspace (default: this directory)" },
        { "workspace", "KIND", OPTION_TEXT, "workspace", 0,
                        "overlay (a copy-on-write view) or fresh (empty)" },
        { "timeout", "SEC", OPTION_NUMBER, "timeout_sec", 0, "wall clock limit in seconds (default: 30)" },
        { "expect-exit", "N", OPTION_STATUS, "expected_exit", 0,
                        "exit status agreed on, or any; may be repeated" },
        { "stdin", "FILE", OPTION_STRING, NULL, TARGET(stdin_path),
                        "standard input of the job; - is qscope's own" },
        { "env", "NAME=VALUE", OPTION_PAIR, "env", 0, "set a variable" },
        { "pass-env", "NAME", OPTION_LIST, "env_allowlist", 0,
                        "pass this variable from here; without: PATH HOME LANG LC_ALL TERM" },
        { "allow-change", "PATH", OPTION_LIST, "allow_changes", 0,
                        "path that may change, or anything under it" },
        { "memory", "SIZE", OPTION_LIMIT, "memory", 0, "memory limit (K, M, G; null: no limit)" },
        { "swap", "SIZE", OPTION_LIMIT, "swap", 0, "swap limit" },
        { "cpu", "PERCENT", OPTION_LIMIT, "cpu", 0, "CPU bandwidth, such as 150%" },
        { "tasks", "N", OPTION_LIMIT, "tasks", 0, "processes and threads at once" },
        { "cpu-time", "SEC", OPTION_LIMIT, "cpu_time_sec", 0, "CPU time in all, in seconds" },
        { "file-size", "SIZE", OPTION_LIMIT, "file_size", 0, "largest file" },
        { "open-files", "N", OPTION_LIMIT, "open_files", 0, "open files of one process" },
        { "disk", "SIZE", OPTION_LIMIT, "disk", 0, "bytes written in all" },
        { "inodes", "N", OPTION_LIMIT, "inodes", 0, "files made in all" },
        { "output", "SIZE", OPTION_LIMIT, "output", 0, "bytes kept of each of stdout and stderr" },
        { "network", "KIND", OPTION_TEXT, "network", 0, "none or host" },
        { "posture", "KIND", OPTION_TEXT, "posture", 0, "isolated or bounded" },
        { "tty", NULL, OPTION_FLAG, NULL, TARGET(tty),
                        "posture bounded: the job gets this terminal; its output is not recorded" },
};

void run_arguments_help(FILE *f)
{
        (void) fputs("Usage: qscope run [OPTIONS] JOB.json [RECEIPT.json]\n"
                     "       qscope run [OPTIONS] -- COMMAND [ARGUMENT...]\n\n"
                     "Runs one job in a transient systemd service of its own, sandboxed and limited, and writes one\n"
                     "receipt. JOB.json may be - (standard input). Without RECEIPT.json the receipt goes to\n"
                     "/var/lib/qscope/receipts/, named after the job.\n\nOptions:\n",
                        f);
        for (size_t i = 0; i < ELEMENTSOF(options); i++) {
                char left[64];

                (void) snprintf(left, sizeof(left), "--%s%s%s", options[i].name,
                                options[i].argument ? " " : "",
                                options[i].argument ? options[i].argument : "");
                (void) fprintf(f, "  %-22s %s\n", left, options[i].help);
        }
        (void) fputs("\nOptions for the job's fields go with \"--\"; a job file has them as keys.\n\n"
                     "Exit status: 0 pass, 1 it ran and did not do what was agreed, 2 bad usage or a file that does\n"
                     "not parse, 3 refused by the policy, 4 qscope or the host could not do it, 130 or 143 interrupted.\n\n"
                     "Examples:\n"
                     "  qscope run -- ruff check .                     is the tool there, does it pass?\n"
                     "  qscope run --timeout 5 --memory 64M -- ./fit   with less than the policy would give\n"
                     "  qscope run --allow-change build -- make        nothing but build/ may change\n"
                     "  model | qscope run -                           a job from a pipe\n",
                        f);
}

static const Option *find_option(const char *name, size_t length)
{
        for (size_t i = 0; i < ELEMENTSOF(options); i++)
                if (strlen(options[i].name) == length && strncmp(options[i].name, name, length) == 0)
                        return &options[i];
        return NULL;
}

/* A relative directory is meant from here; a job file has to say an absolute one. */
static char *absolute_path(const char *path)
{
        _cleanup_free_ char *here = *path == '/' ? NULL : getcwd(NULL, 0);

        return here ? path_join(here, path) : strdup(path);
}

/* A number as such, so that the reader sees what a job file would have; anything else as a string for it to
 * judge. */
static cJSON *number_or_text(const char *text)
{
        char *end;
        double value = strtod(text, &end);

        if (*text != '\0' && *end == '\0' && strspn(text, "0123456789.eE+-") == strlen(text) &&
                        isfinite(value))
                return cJSON_CreateNumber(value);
        return cJSON_CreateString(text);
}

/* cJSON's own look-up is without case; keys here are ours. */
static cJSON *member(cJSON *object, const char *key, bool array)
{
        cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);

        if (item)
                return item;
        return array ? json_add_array(object, key) : json_add_object(object, key);
}

static int add_pair(cJSON *job, const char *key, const char *value, Error *e)
{
        const char *equals = strchr(value, '=');
        _cleanup_free_ char *name = equals ? strndup(value, (size_t) (equals - value)) : NULL;
        cJSON *object;

        if (!equals)
                return error_set(e, -EINVAL, "--%s %s: NAME=VALUE is wanted", key, value);
        object = member(job, key, false);
        return name && object ? json_add_text(object, name, equals + 1) : -ENOMEM;
}

static int add_status(cJSON *job, const char *key, const char *value)
{
        cJSON *array;

        if (streq(value, "any"))
                return json_add_text(job, key, value);
        array = member(job, key, true);
        return array ? json_add(array, NULL, number_or_text(value)) : -ENOMEM;
}

static int apply(const Option *option, const char *value, RunArguments *a, Error *e)
{
        _cleanup_free_ char *directory = NULL;
        char *base = (char *) a;
        cJSON *parent;

        switch (option->kind) {
        case OPTION_FLAG:
                *(bool *) (base + option->offset) = true;
                return 0;
        case OPTION_STRING:
                memcpy(base + option->offset, &value, sizeof(value));
                return 0;
        case OPTION_TEXT:
                return json_add_text(a->job, option->key, value);
        case OPTION_DIRECTORY:
                directory = absolute_path(value);
                return directory ? json_add_text(a->job, option->key, directory) : -ENOMEM;
        case OPTION_NUMBER:
                return json_add(a->job, option->key, number_or_text(value));
        case OPTION_LIST:
                parent = member(a->job, option->key, true);
                return parent ? json_add_text(parent, NULL, value) : -ENOMEM;
        case OPTION_STATUS:
                return add_status(a->job, option->key, value);
        case OPTION_PAIR:
                return add_pair(a->job, option->key, value, e);
        case OPTION_LIMIT:
                parent = member(a->job, "limits", false);
                if (parent && streq(value, "null"))
                        return json_add_null(parent, option->key);
                return parent ? json_add(parent, option->key, number_or_text(value)) : -ENOMEM;
        }
        return -EINVAL;
}

/* One "--name", "--name value" or "--name=value". Returns how many arguments were used. */
static int parse_option(char **argv, RunArguments *a, Error *e)
{
        const char *name = argv[0] + STRLEN("--"), *equals = strchr(name, '='), *value = NULL;
        const Option *option = find_option(name, equals ? (size_t) (equals - name) : strlen(name));
        int used = 1, r;

        if (!option)
                return error_set(e, -EINVAL, "%s is not an option of run", argv[0]);
        if (option->kind == OPTION_FLAG && equals)
                return error_set(e, -EINVAL, "--%s takes no value", option->name);
        if (option->kind != OPTION_FLAG) {
                value = equals ? equals + 1 : argv[1];
                used = equals ? 1 : 2;
                if (!value || (!equals && streq(value, "--")))
                        return error_set(e, -EINVAL, "--%s: %s is wanted", option->name, option->argument);
                if (!utf8_is_valid(value, strlen(value)))
                        return error_set(e, -EINVAL, "--%s: the value is not UTF-8", option->name);
        }
        r = apply(option, value, a, e);
        return r < 0 ? r : used;
}

static int take_positional(char *argument, RunArguments *a, Error *e)
{
        if (!a->job_path)
                a->job_path = argument;
        else if (!a->receipt_path)
                a->receipt_path = argument;
        else
                return error_set(e, -EINVAL, "\"%s\" is one argument too many (a command goes after \"--\")",
                                argument);
        return 0;
}

static int check(RunArguments *a, Error *e)
{
        if (a->help)
                return 0;
        if (a->command && a->job_path)
                return error_set(e, -EINVAL, "\"%s\" before \"--\": either a job file or a command",
                                a->job_path);
        if (!a->command && !a->job_path)
                return error_set(e, -EINVAL, "a job file, or \"--\" and a command, is missing");
        if (a->command && !a->command[0])
                return error_set(e, -EINVAL, "there is no command after \"--\"");
        if (a->keep && a->no_keep)
                return error_set(e, -EINVAL, "--keep and --no-keep exclude each other");
        if (!a->command && a->job->child)
                return error_set(e, -EINVAL,
                                "options for the job's fields go with \"--\" only; write \"%s\" into the job file",
                                a->job->child->string);
        if (!a->command && a->stdin_path)
                return error_set(e, -EINVAL,
                                "--stdin goes with \"--\" only; write \"stdin\" into the job file");
        return 0;
}

static int add_command(RunArguments *a, Error *e)
{
        cJSON *array = json_add_array(a->job, "argv");

        for (size_t i = 0; array && a->command[i]; i++) {
                int r;

                if (!utf8_is_valid(a->command[i], strlen(a->command[i])))
                        return error_set(e, -EINVAL, "argument %zu of the command is not UTF-8", i);
                r = json_add_text(array, NULL, a->command[i]);
                if (r < 0)
                        return r;
        }
        return array ? 0 : -ENOMEM;
}

int run_arguments_parse(int argc, char **argv, RunArguments *ret, Error *e)
{
        int r = 0;

        *ret = (RunArguments){ .job = cJSON_CreateObject() };
        if (!ret->job)
                return -ENOMEM;
        for (int i = 1; r >= 0 && i < argc;) {
                if (streq(argv[i], "--")) {
                        ret->command = argv + i + 1;
                        break;
                }
                if (startswith(argv[i], "--")) {
                        r = parse_option(argv + i, ret, e);
                        i += MAX(r, 0);
                } else if (streq(argv[i], "-h")) {
                        ret->help = true;
                        i++;
                } else if (argv[i][0] == '-' && argv[i][1] != '\0') {
                        r = error_set(e, -EINVAL, "%s is not an option of run", argv[i]);
                } else {
                        r = take_positional(argv[i++], ret, e);
                }
        }
        if (r >= 0)
                r = check(ret, e);
        if (r >= 0 && ret->command && !ret->help)
                r = add_command(ret, e);
        return r < 0 ? r : 0;
}

void run_arguments_clear(RunArguments *arguments)
{
        cJSON_Delete(arguments->job);
        *arguments = (RunArguments){ 0 };
}
