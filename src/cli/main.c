/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"

#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/stat.h>

#include "core/reader.h"
#include "sys/file.h"

typedef struct Verb {
        const char *name, *what;
        int (*call)(int argc, char **argv);
} Verb;

static const Verb verbs[] = {
        { "run", "run one command under a policy and write a receipt", cli_run },
        { "batch", "run many jobs, several at a time; a table, a CSV", cli_batch },
        { "eval", "a fixed table of cases against candidates; pass@k", cli_eval },
        { "check", "say what would be refused or would fail; run nothing", cli_check },
        { "plan", "show what run would ask of systemd; run nothing", cli_plan },
        { "policy", "list, show and check the policies in force", cli_policy },
        { "log", "list the audit trail; compare receipts with it", cli_log },
        { "explain", "say what a receipt means and what to do next", cli_explain },
        { "diff", "say what differs between two receipts", cli_diff },
        { "apply", "bring what a job changed to its workspace", cli_apply },
        { "report", "make a page of receipts to look at", cli_report },
        { "doctor", "try what this host can enforce and observe; --selftest", cli_doctor },
        { "clean", "remove what dead runs left behind, old layers and receipts", cli_clean },
};

static void print_help(FILE *f)
{
        (void) fputs("qscope runs a command that nobody trusts in a transient systemd unit of its own and writes a\n"
                     "receipt: what it printed, used, changed and left behind, and whether that was agreed.\n\n"
                     "Usage: qscope VERB [OPTIONS] ...\n\n",
                        f);
        for (size_t i = 0; i < ELEMENTSOF(verbs); i++)
                (void) fprintf(f, "  %-8s %s\n", verbs[i].name, verbs[i].what);
        (void) fputs("\nTry:\n"
                     "  qscope run -- python3 -c 'print(6 * 7)'     one command, in a copy of this directory\n"
                     "  qscope run job.json receipt.json            the same from a file\n"
                     "  qscope run --help                           every option, exit statuses, examples\n\n"
                     "  --help, --version\n",
                        f);
}

int cli_fail(int status, const Error *e)
{
        (void) fprintf(stderr, "qscope: %s\n", e->text[0] ? e->text : "out of memory");
        return status;
}

int cli_usage(const char *verb, const char *format, ...)
{
        char text[512];
        Error e = ERROR_INIT;
        va_list ap;

        va_start(ap, format);
        (void) vsnprintf(text, sizeof(text), format, ap);
        va_end(ap);
        error_set(&e, -EINVAL, "%s; see qscope%s%s --help", text, *verb ? " " : "", verb);
        return cli_fail(EXIT_USAGE, &e);
}

/* Why it could not be written, where that is known: stdio only remembers that it could not. */
static int output_errno;

int cli_put(const char *text)
{
        if (!text)
                return -ENOMEM;
        if (fputs(text, stdout) < 0)
                output_errno = errno;
        return 0;
}

bool cli_wants_colour(void)
{
        const char *term = getenv("TERM"), *no_colour = getenv("NO_COLOR");

        return isatty(STDOUT_FILENO) && term && !streq(term, "dumb") && !(no_colour && *no_colour);
}

int cli_make_receipts(const char *path, Error *e)
{
        int r = path ? mkdir_parents_at(AT_FDCWD, path, 0700, geteuid(), getegid(), NULL) : 0;
        struct stat st;

        if (path && r == 0 && stat(path, &st) < 0)
                r = -errno;
        else if (path && r == 0 && !S_ISDIR(st.st_mode))
                r = -ENOTDIR;
        return r < 0 ? error_errno(e, r, "--receipts %s", path) : 0;
}

/* Descriptors 0 to 2 must be open: what is opened next would otherwise become a standard stream. */
static void open_standard_streams(void)
{
        int fd;

        do
                fd = open("/dev/null", O_RDWR);
        while (fd >= 0 && fd <= STDERR_FILENO);
        safe_close(fd);
}

/* Until a run takes signals into its event loop nothing has been started that would have to be stopped. */
static void on_early_signal(int number)
{
        _exit(128 + number);
}

/* Who asked has no answer where it could not be printed: nothing that is lost is a success. */
static int finish(int status)
{
        Error e = ERROR_INIT;

        if (fflush(stdout) != 0)
                output_errno = errno;
        else if (!ferror(stdout))
                return status;
        if (output_errno > 0)
                error_errno(&e, -output_errno, "standard output");
        else
                error_set(&e, -EIO, "standard output: not all of it could be written");
        return cli_fail(MAX(status, EXIT_HOST), &e);
}

int main(int argc, char **argv)
{
        const char *names[ELEMENTSOF(verbs)], *nearest;

        open_standard_streams();
        (void) signal(SIGINT, on_early_signal);
        (void) signal(SIGTERM, on_early_signal);
        (void) signal(SIGHUP, on_early_signal);
        /* Of the locale only how characters are classified: numbers stay as JSON has them. */
        (void) setlocale(LC_CTYPE, "");
        (void) signal(SIGPIPE, SIG_IGN);
        (void) signal(SIGXFSZ, SIG_IGN); /* an error like others, not the end */
        if (argc < 2)
                return cli_usage("", "a verb is missing");
        if (streq(argv[1], "--help") || streq(argv[1], "-h") || streq(argv[1], "help")) {
                print_help(stdout);
                return finish(0);
        }
        if (streq(argv[1], "--version")) {
                (void) puts("qscope " QSCOPE_VERSION);
                return finish(0);
        }
        for (size_t i = 0; i < ELEMENTSOF(verbs); i++)
                if (streq(argv[1], verbs[i].name))
                        return finish(verbs[i].call(argc - 1, argv + 1));
        for (size_t i = 0; i < ELEMENTSOF(verbs); i++)
                names[i] = verbs[i].name;
        nearest = read_nearest(argv[1], names, ELEMENTSOF(names));
        if (nearest)
                return cli_usage("", "\"%s\" is not a verb (did you mean \"%s\"?)", argv[1], nearest);
        return cli_usage("", "\"%s\" is not a verb", argv[1]);
}
