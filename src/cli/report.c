/* SPDX-License-Identifier: Apache-2.0 */

/* qscope report: receipts as a page to look at. One is read at a time; a file that is none becomes a row that
 * says so. */

#include "cli/cli.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/path.h"
#include "base/text.h"
#include "cli/arguments.h"
#include "core/report.h"
#include "run/diffs.h"
#include "run/load.h"

#define ENTRIES_MAX  100000u
#define EXIT_MISSING 1

typedef struct ReportArguments {
        const char *output, *title, *state_dir;
        bool no_diffs, help;
} ReportArguments;

typedef struct Page {
        FILE *rows, *details; /* details: a file that gathers what comes after the list */
        const ReportArguments *a;
        DiffRoom room;
        size_t n_receipts; /* that could be read */
        bool has_contents; /* of files */
} Page;

static int help(void)
{
        (void) puts("Usage: qscope report [OPTIONS] RECEIPT.json|DIRECTORY...\n\n"
                    "Makes one page of HTML of receipts: verdicts, reasons, processes over time, files changed,\n"
                    "attempts to leave, limits, output. The page needs nothing else, loads nothing and can be given\n"
                    "to others; nothing of a job becomes markup in it. Of a directory, all that ends in .json.\n\n"
                    "Where what a run changed is still kept for qscope apply, and the workspace still is as it was, the\n"
                    "page has the text diffs. Such a page is its owner's alone; on standard output there are none.\n\n"
                    "Options:\n"
                    "  -o, --output FILE    where the page goes; - (the default) is standard output\n"
                    "  --title TEXT         what is written above (default: qscope report)\n"
                    "  --no-diffs           leave out what the changed files contain\n"
                    "  --state-dir DIR      where layers were kept (default: /var/lib/qscope)\n"
                    "  --help               this text\n\n"
                    "Exit status: 0, whatever the verdicts; 1 the page is there, but a path given could not be read; 2\n"
                    "bad usage, or nothing that could be read; 4 the page cannot be written.\n\n"
                    "Examples:\n"
                    "  qscope report -o report.html receipt.json\n"
                    "  qscope report -o report.html /var/lib/qscope/receipts");
        return 0;
}

static const Argument table[] = {
        { "--output", ARGUMENT_VALUE, offsetof(ReportArguments, output) },
        { "-o", ARGUMENT_VALUE, offsetof(ReportArguments, output) },
        { "--title", ARGUMENT_VALUE, offsetof(ReportArguments, title) },
        { "--no-diffs", ARGUMENT_SWITCH, offsetof(ReportArguments, no_diffs) },
        { "--state-dir", ARGUMENT_VALUE, offsetof(ReportArguments, state_dir) },
        { "--help", ARGUMENT_SWITCH, offsetof(ReportArguments, help) },
        { "-h", ARGUMENT_SWITCH, offsetof(ReportArguments, help) },
};

static int parse(char **argv, ReportArguments *a, Error *e)
{
        int n = arguments_parse(argv, table, ELEMENTSOF(table), a, e);

        if (n < 0 || a->help)
                return n;
        if (n == 0)
                return error_set(e, -EINVAL, "which receipts?");
        if (!utf8_is_valid(a->title, strlen(a->title)))
                return error_set(e, -EINVAL, "--title: the value is not UTF-8");
        return 0;
}

/* --- what to read --- */

static int is_receipt_name(const struct dirent *entry)
{
        return entry->d_name[0] != '.' && has_suffix(entry->d_name, ".json");
}

static int add_directory(const char *path, char ***files)
{
        struct dirent **entries = NULL;
        int n = scandir(path, &entries, is_receipt_name, versionsort), r = 0;

        if (n < 0)
                return -errno;
        for (int i = 0; i < n; i++) {
                if (r == 0)
                        r = strv_consume(files, path_join(path, entries[i]->d_name));
                free(entries[i]);
        }
        free(entries);
        return r;
}

/* A directory is taken apart; whether a file is a receipt is seen when it is read. */
static int add_argument(const char *path, char ***files)
{
        struct stat st;

        if (streq(path, "-"))
                return strv_extend(files, path);
        if (stat(path, &st) < 0)
                return -errno;
        if (S_ISDIR(st.st_mode))
                return add_directory(path, files);
        return faccessat(AT_FDCWD, path, R_OK, AT_EACCESS) < 0 ? -errno : strv_extend(files, path);
}

/* What cannot be read is named; *ret_missing: how many. */
static int list_files(char **arguments, char ***ret, size_t *ret_missing, Error *e)
{
        int r;

        *ret_missing = 0;
        for (; *arguments; arguments++) {
                r = add_argument(*arguments, ret);
                if (r == -ENOMEM)
                        return r;
                if (r == 0)
                        continue;
                error_errno(e, r, "%s: cannot be read", *arguments);
                (void) cli_fail(0, e);
                (*ret_missing)++;
        }
        if (strv_length(*ret) == 0)
                return error_set(e, -ENOENT,
                                *ret_missing > 0 ? "nothing could be read" : "no file there ends in .json");
        if (strv_length(*ret) > ENTRIES_MAX)
                return error_set(e, -E2BIG, "%zu receipts are more than a page can show (%u)",
                                strv_length(*ret), ENTRIES_MAX);
        return 0;
}

/* --- the page --- */

static int add_file(Page *page, const char *path)
{
        _cleanup_(cJSON_Deletep) cJSON *receipt = NULL, *diffs = NULL;
        _cleanup_free_ char *text = NULL;
        Error e = ERROR_INIT;
        size_t size;
        int r = load_receipt_text(path, &text, &size, &receipt, &e);

        if (r < 0 && r != -ENOMEM)
                return report_add_broken(page->rows, page->details, path, e.text);
        if (r == 0 && !page->a->no_diffs)
                r = diffs_make(receipt, text, size, page->a->state_dir, &page->room, &diffs);
        if (r < 0)
                return r;
        page->n_receipts++;
        page->has_contents |= cJSON_HasObjectItem(diffs, "files");
        return report_add(page->rows, page->details, receipt, diffs, path);
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

static int write_parts(Page *page, char *const *files)
{
        int r = report_begin(page->rows, page->a->title);

        for (; r == 0 && files && *files; files++)
                r = add_file(page, *files);
        if (r == 0)
                r = report_between(page->rows);
        if (r == 0)
                r = copy(page->details, page->rows);
        if (r == 0)
                r = report_end(page->rows);
        if (r == 0 && fflush(page->rows) != 0)
                r = -errno;
        return r == 0 && page->n_receipts == 0 ? -ENODATA : r;
}

/* -ENODATA: there is not one receipt in it. */
static int write_page(FILE *f, const ReportArguments *a, char *const *files, bool *ret_has_contents)
{
        Page page = { .rows = f, .details = tmpfile(), .a = a, .room = DIFF_ROOM_INIT };
        int r;

        if (!page.details)
                return -errno;
        r = write_parts(&page, files);
        (void) fclose(page.details);
        *ret_has_contents = page.has_contents;
        return r;
}

/* A page that is there already is replaced when the new one is whole. Files may have been nobody else's to
 * read: the page has their contents for its owner only. */
static int write_file(const ReportArguments *a, char *const *files)
{
        const char *path = a->output;
        bool has_contents = false;
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
                r = write_page(f, a, files, &has_contents);
                if (r == 0 && fchmod(fd, (has_contents ? 0600u : 0666u) & ~mask) < 0)
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

int cli_report(_unused_ int argc, char **argv)
{
        ReportArguments a = { .output = "-", .title = "qscope report" };
        _cleanup_strv_ char **files = NULL;
        Error e = ERROR_INIT;
        size_t missing;
        bool plain, unused;
        struct stat st;
        int r;

        if (parse(argv, &a, &e) < 0)
                return cli_usage("report", "%s", e.text);
        if (a.help)
                return help();
        plain = streq(a.output, "-");
        a.no_diffs |= plain; /* who may read what becomes of it is not known */
        if (plain && isatty(STDOUT_FILENO))
                return cli_usage("report", "where to? (-o FILE; a terminal does not show HTML)");
        /* A device or a link would be replaced by the page. */
        if (!plain && lstat(a.output, &st) >= 0 && !S_ISREG(st.st_mode))
                return cli_usage("report",
                                "%s: exists and is not a regular file; give another name, or \"-\"",
                                a.output);
        r = list_files(argv, &files, &missing, &e);
        if (r < 0)
                return cli_fail(EXIT_USAGE, &e);
        r = plain ? write_page(stdout, &a, files, &unused) : write_file(&a, files);
        if (r == -ENODATA) {
                error_set(&e, r, "none of these is a receipt: %s", files[0]);
                return cli_fail(EXIT_USAGE, &e);
        }
        if (r < 0) {
                error_errno(&e, r, "%s", plain ? "standard output" : a.output);
                return cli_fail(EXIT_HOST, &e);
        }
        return missing > 0 ? EXIT_MISSING : 0;
}
