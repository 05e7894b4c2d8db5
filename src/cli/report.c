/* SPDX-License-Identifier: Apache-2.0 */

/* qscope report: receipts as a page to look at. One is read at a time; a file that is none becomes a row that
 * says so. */

#include "cli/cli.h"

#include <dirent.h>
#include <fcntl.h>
#include <getopt.h>
#include <sys/stat.h>

#include "base/path.h"
#include "base/text.h"
#include "core/report.h"
#include "sys/file.h"

#define ENTRIES_MAX 100000u

typedef struct ReportArguments {
        const char *output, *title;
        bool help;
} ReportArguments;

static int help(void)
{
        (void) puts("Usage: qscope report [OPTIONS] RECEIPT.json|DIRECTORY...\n\n"
                    "Makes one page of HTML of receipts: verdicts, reasons, processes over time, files changed,\n"
                    "attempts to leave, limits, output. The page needs nothing else, loads nothing and can be given\n"
                    "to others; nothing of a job becomes markup in it. Of a directory, all that ends in .json.\n\n"
                    "Options:\n"
                    "  -o, --output FILE    where the page goes; - (the default) is standard output\n"
                    "  --title TEXT         what is written above (default: qscope report)\n"
                    "  --help               this text\n\n"
                    "Exit status: 0, whatever the verdicts; 2 bad usage, or nothing that could be read; 4 the page\n"
                    "cannot be written.\n\n"
                    "Examples:\n"
                    "  qscope report -o report.html receipt.json\n"
                    "  qscope report -o report.html /var/lib/qscope/receipts");
        return 0;
}

static int parse(int argc, char **argv, ReportArguments *a, Error *e)
{
        static const struct option options[] = {
                { "output", required_argument, NULL, 'o' },
                { "title", required_argument, NULL, 't' },
                { "help", no_argument, NULL, 'h' },
                { NULL },
        };
        int option;

        opterr = 0;
        while ((option = getopt_long(argc, argv, ":o:", options, NULL)) >= 0)
                switch (option) {
                case 'o':
                        a->output = optarg;
                        break;
                case 't':
                        a->title = optarg;
                        break;
                case 'h':
                        a->help = true;
                        return 0;
                case ':':
                        return error_set(e, -EINVAL, "%s: a value is wanted", argv[optind - 1]);
                default:
                        return error_set(e, -EINVAL, "%s: there is no such option", argv[optind - 1]);
                }
        if (optind == argc)
                return error_set(e, -EINVAL, "which receipts?");
        if (!utf8_is_valid(a->title, strlen(a->title)))
                return error_set(e, -EINVAL, "--title: the value is not UTF-8");
        return 0;
}

/* --- what to read --- */

static int is_receipt_name(const struct dirent *entry)
{
        size_t length = strlen(entry->d_name);

        return length > STRLEN(".json") && entry->d_name[0] != '.' &&
               streq(entry->d_name + length - STRLEN(".json"), ".json");
}

static int add_directory(const char *path, char ***files, Error *e)
{
        struct dirent **entries = NULL;
        int n = scandir(path, &entries, is_receipt_name, versionsort), r = 0;

        if (n < 0)
                return error_errno(e, -errno, "%s: cannot be read", path);
        for (int i = 0; i < n; i++) {
                if (r == 0)
                        r = strv_consume(files, path_join(path, entries[i]->d_name));
                free(entries[i]);
        }
        free(entries);
        return r;
}

/* Arguments that are directories are taken apart; whether the rest can be read is seen when it is. */
static int list_files(char **arguments, char ***ret, Error *e)
{
        struct stat st;
        int r = 0;

        for (; r == 0 && *arguments; arguments++)
                if (stat(*arguments, &st) == 0 && S_ISDIR(st.st_mode))
                        r = add_directory(*arguments, ret, e);
                else
                        r = strv_extend(ret, *arguments);
        if (r == 0 && strv_length(*ret) == 0)
                return error_set(e, -ENOENT, "no file there ends in .json");
        if (r == 0 && strv_length(*ret) > ENTRIES_MAX)
                return error_set(e, -E2BIG, "%zu receipts are more than a page can show (%u)",
                                strv_length(*ret), ENTRIES_MAX);
        return r;
}

/* --- the page --- */

static int add_file(FILE *rows, FILE *details, const char *path)
{
        _cleanup_(cJSON_Deletep) cJSON *receipt = NULL;
        _cleanup_free_ char *text = NULL;
        Error e = ERROR_INIT;
        size_t size;
        int r = file_read(path, RECEIPT_FILE_MAX, &text, &size, &e);

        if (r == 0)
                r = receipt_parse(text, size, path, &receipt, &e);
        if (r == -ENOMEM)
                return r;
        return r < 0 ? report_add_broken(rows, details, path, e.text)
                     : report_add(rows, details, receipt, path);
}

static int copy(FILE *from, FILE *to)
{
        char buffer[KIB(16)];
        size_t n;

        rewind(from);
        while ((n = fread(buffer, 1, sizeof(buffer), from)) > 0)
                if (fwrite(buffer, 1, n, to) < n)
                        return -errno;
        return ferror(from) ? -EIO : 0;
}

/* details: a file that gathers what comes after the list. */
static int write_parts(FILE *f, FILE *details, const char *title, char *const *files)
{
        int r = report_begin(f, title);

        for (; r == 0 && files && *files; files++)
                r = add_file(f, details, *files);
        if (r == 0)
                r = report_between(f);
        if (r == 0)
                r = copy(details, f);
        if (r == 0)
                r = report_end(f);
        return r == 0 && fflush(f) != 0 ? -errno : r;
}

static int write_page(FILE *f, const char *title, char *const *files)
{
        FILE *details = tmpfile();
        int r;

        if (!details)
                return -errno;
        r = write_parts(f, details, title, files);
        (void) fclose(details);
        return r;
}

/* A page that is there already is replaced when the new one is whole. */
static int write_file(const char *path, const char *title, char *const *files)
{
        _cleanup_free_ char *temporary = text_printf("%s.XXXXXX", path);
        int fd = temporary ? mkostemp(temporary, O_CLOEXEC) : -1, r;
        mode_t mask = umask(0);
        FILE *f;

        (void) umask(mask);
        if (!temporary)
                return -ENOMEM;
        if (fd < 0)
                return -errno;
        f = fdopen(fd, "w");
        if (!f) {
                r = -errno;
                (void) safe_close(fd);
        } else {
                r = write_page(f, title, files);
                if (r == 0 && fchmod(fd, 0666u & ~mask) < 0)
                        r = -errno;
                if (fclose(f) != 0 && r == 0)
                        r = -errno;
        }
        if (r == 0 && rename(temporary, path) < 0)
                r = -errno;
        if (r < 0)
                (void) unlink(temporary);
        return r;
}

int cli_report(int argc, char **argv)
{
        ReportArguments a = { .output = "-", .title = "qscope report" };
        _cleanup_strv_ char **files = NULL;
        Error e = ERROR_INIT;
        bool plain;
        int r;

        if (parse(argc, argv, &a, &e) < 0)
                return cli_usage("report", "%s", e.text);
        if (a.help)
                return help();
        plain = streq(a.output, "-");
        if (plain && isatty(STDOUT_FILENO))
                return cli_usage("report", "where to? (-o FILE; a terminal does not show HTML)");
        r = list_files(argv + optind, &files, &e);
        if (r < 0)
                return cli_fail(EXIT_USAGE, &e);
        r = plain ? write_page(stdout, a.title, files) : write_file(a.output, a.title, files);
        if (r < 0) {
                error_errno(&e, r, "%s", plain ? "standard output" : a.output);
                return cli_fail(EXIT_HOST, &e);
        }
        return 0;
}
