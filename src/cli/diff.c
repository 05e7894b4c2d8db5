/* SPDX-License-Identifier: Apache-2.0 */

/* qscope diff: what differs between two receipts, or between two directories of them, job by job. */

#include "cli/cli.h"

#include <dirent.h>
#include <getopt.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/text.h"
#include "core/compare.h"
#include "run/load.h"

#define RECEIPTS_MAX 100000u /* in a directory */
#define DIFF_SCHEMA  "qscope.diff/v1"
#define NAME_SHOWN   256

static int help(void)
{
        (void) puts("Usage: qscope diff [--json] A.json B.json\n"
                    "       qscope diff [--json] DIRECTORY_A DIRECTORY_B\n\n"
                    "Says what differs between two receipts: how it ended, output, files, processes, sockets, attempts to\n"
                    "leave, limits, and use beyond noise. Lines with \"!\" matter; the others tell what was asked, and what\n"
                    "was not seen. Of two directories the receipts (*.json) of the same job_id are compared, the newest of\n"
                    "each.\n\n"
                    "  --json   one JSON document (qscope.diff/v1), for tools\n"
                    "  --help\n\n"
                    "Exit status: 0 nothing that matters differs; 1 something does, or a job is in one directory only; 2\n"
                    "bad usage, or a file that is not a receipt (in a directory: it is passed over, and nothing else\n"
                    "differs).");
        return 0;
}

/* --- one pair --- */

static int add_receipt(cJSON *document, const char *key, const char *path, const cJSON *receipt)
{
        cJSON *object = json_add_object(document, key);

        if (!object || json_add_text(object, "receipt", path) < 0 ||
                        json_add_text(object, "job_id", view_text(receipt, "job_id")) < 0 ||
                        json_add_text(object, "run_id", view_text(receipt, "run_id")) < 0)
                return -ENOMEM;
        return json_add_text(object, "verdict", view_text(receipt, "verdict"));
}

/* *ret has the members of receipt_compare() and which receipts they are of. */
static int compare_pair(const char *path_a, const char *path_b, cJSON **ret, Error *e)
{
        _cleanup_(cJSON_Deletep) cJSON *a = NULL, *b = NULL, *result = NULL;
        int r = load_receipt(path_a, &a, e);

        if (r == 0)
                r = load_receipt(path_b, &b, e);
        if (r < 0)
                return r;
        result = receipt_compare(a, b);
        if (!result || add_receipt(result, "a", path_a, a) < 0 || add_receipt(result, "b", path_b, b) < 0)
                return -ENOMEM;
        *ret = TAKE_PTR(result);
        return 0;
}

static const char *shown(const char *text, char buffer[static NAME_SHOWN])
{
        (void) text_excerpt(text, strlen(text), buffer, NAME_SHOWN);
        return buffer;
}

static int print_pair(const cJSON *result)
{
        _cleanup_free_ char *text = comparison_text(result, cli_wants_colour());

        return cli_put(text);
}

static int print_document(cJSON *document)
{
        _cleanup_free_ char *text = NULL;

        if (json_add_text(document, "schema", DIFF_SCHEMA) == 0)
                text = json_print(document, true);
        return cli_put(text);
}

static int diff_files(const char *a, const char *b, bool json, Error *e)
{
        _cleanup_(cJSON_Deletep) cJSON *result = NULL;
        int r = compare_pair(a, b, &result, e);

        if (r == 0)
                r = json ? print_document(result) : print_pair(result);
        if (r == 0 && !json && view_number(result, "total") == 0)
                (void) puts("nothing differs");
        return r < 0 ? r : view_true(result, "same") ? 0 : 1;
}

/* --- directories --- */

typedef struct Entry {
        char *job_id, *path, *started;
} Entry;

typedef struct Entries {
        Entry *items;
        size_t n, room;
        bool incomplete; /* something was no receipt */
} Entries;

static void entries_clear(Entries *entries)
{
        for (size_t i = 0; i < entries->n; i++) {
                free(entries->items[i].job_id);
                free(entries->items[i].path);
                free(entries->items[i].started);
        }
        free(entries->items);
}

/* By job, the newest first. */
static int compare_entries(const void *a, const void *b)
{
        const Entry *x = a, *y = b;
        int r = strcmp(x->job_id, y->job_id);

        return r != 0 ? r : strcmp(y->started, x->started);
}

static int add_entry(Entries *entries, const char *path, Error *e)
{
        _cleanup_(cJSON_Deletep) cJSON *receipt = NULL;
        const char *job_id, *started;
        Entry *items;
        int r = load_receipt(path, &receipt, e);

        job_id = r < 0 ? NULL : view_text(receipt, "job_id");
        if (r == 0 && !job_id)
                r = error_set(e, -EINVAL, "%s: receipt.job_id: is missing", path);
        if (r < 0 && r != -ENOMEM) {
                (void) fprintf(stderr, "qscope: passed over: %s\n", e->text);
                entries->incomplete = true;
                *e = ERROR_INIT;
                return 0;
        }
        if (r < 0 || !job_id)
                return r;
        started = view_text(receipt, "started_at");
        items = entries->n < RECEIPTS_MAX
                                ? array_grow(entries->items, entries->n, &entries->room, sizeof(*items))
                                : NULL;
        if (!items)
                return entries->n < RECEIPTS_MAX
                                       ? -ENOMEM
                                       : error_set(e, -E2BIG, "more than %u receipts", RECEIPTS_MAX);
        entries->items = items;
        items[entries->n] = (Entry){ strdup(job_id), strdup(path), strdup(started ? started : "") };
        entries->n++;
        return items[entries->n - 1].job_id && items[entries->n - 1].path && items[entries->n - 1].started
                               ? 0
                               : -ENOMEM;
}

static int read_directory(const char *path, Entries *entries, Error *e)
{
        struct dirent *entry;
        DIR *dir = opendir(path);
        int r = 0;

        if (!dir)
                return error_errno(e, -errno, "%s", path);
        while (r == 0 && (entry = readdir(dir))) {
                _cleanup_free_ char *file = NULL;

                if (*entry->d_name == '.' || !has_suffix(entry->d_name, ".json"))
                        continue;
                file = text_printf("%s/%s", path, entry->d_name);
                r = file ? add_entry(entries, file, e) : -ENOMEM;
        }
        (void) closedir(dir);
        if (entries->n > 0)
                qsort(entries->items, entries->n, sizeof(*entries->items), compare_entries);
        return r;
}

static size_t next_job(const Entries *entries, size_t i)
{
        size_t k = i + 1;

        while (k < entries->n && streq(entries->items[k].job_id, entries->items[i].job_id))
                k++;
        return k;
}

typedef struct Totals {
        size_t same, different, only_a, only_b;
} Totals;

static int tell_only(const Entry *entry, const char *side, bool json, cJSON *list)
{
        char name[NAME_SHOWN];

        if (json)
                return json_add_text(list, NULL, entry->job_id);
        (void) printf("%s  only in %s\n", shown(entry->job_id, name), side);
        return 0;
}

static int tell_pair(const Entry *a, const Entry *b, bool json, cJSON *list, Totals *totals, Error *e)
{
        _cleanup_(cJSON_Deletep) cJSON *result = NULL;
        char name[NAME_SHOWN];
        int r = compare_pair(a->path, b->path, &result, e);

        if (r < 0)
                return r;
        totals->same += view_true(result, "same");
        totals->different += !view_true(result, "same");
        if (json)
                return json_add(list, NULL, TAKE_PTR(result));
        if (view_true(result, "same"))
                return 0;
        (void) printf("%s\n", shown(a->job_id, name));
        return print_pair(result);
}

/* The lists of the document: pairs, only_a, only_b. */
static int tell_all(const Entries *a, const Entries *b, bool json, cJSON *lists[static 3], Totals *totals,
                Error *e)
{
        size_t i = 0, k = 0;
        int r = 0;

        while (r == 0 && (i < a->n || k < b->n)) {
                int order = i >= a->n ? 1 : k >= b->n ? -1 : strcmp(a->items[i].job_id, b->items[k].job_id);

                if (order == 0)
                        r = tell_pair(&a->items[i], &b->items[k], json, lists[0], totals, e);
                else if (order < 0)
                        totals->only_a++, r = tell_only(&a->items[i], "A", json, lists[1]);
                else
                        totals->only_b++, r = tell_only(&b->items[k], "B", json, lists[2]);
                if (order <= 0)
                        i = next_job(a, i);
                if (order >= 0)
                        k = next_job(b, k);
        }
        return r;
}

static int diff_directories(const char *a, const char *b, bool json, Error *e)
{
        _cleanup_(entries_clear) Entries x = { 0 }, y = { 0 };
        _cleanup_(cJSON_Deletep) cJSON *document = cJSON_CreateObject();
        cJSON *lists[3];
        Totals totals = { 0 };
        bool same;
        int status, r = read_directory(a, &x, e);

        if (r == 0)
                r = read_directory(b, &y, e);
        if (r < 0)
                return r;
        lists[0] = document ? json_add_array(document, "pairs") : NULL;
        lists[1] = lists[0] ? json_add_array(document, "only_a") : NULL;
        lists[2] = lists[1] ? json_add_array(document, "only_b") : NULL;
        if (!lists[2])
                return -ENOMEM;
        r = tell_all(&x, &y, json, lists, &totals, e);
        same = totals.different + totals.only_a + totals.only_b == 0;
        status = !same ? 1 : x.incomplete || y.incomplete ? EXIT_USAGE : 0;
        if (r < 0)
                return r;
        if (!json) {
                (void) printf("%zu the same, %zu different, %zu only in A, %zu only in B\n", totals.same,
                                totals.different, totals.only_a, totals.only_b);
                return status;
        }
        r = json_add_bool(document, "same", same);
        if (r == 0)
                r = print_document(document);
        return r < 0 ? r : status;
}

static bool is_directory(const char *path)
{
        struct stat st;

        return !streq(path, "-") && stat(path, &st) >= 0 && S_ISDIR(st.st_mode);
}

int cli_diff(int argc, char **argv)
{
        static const struct option options[] = {
                { "json", no_argument, NULL, 'j' },
                { "help", no_argument, NULL, 'h' },
                { NULL },
        };
        Error e = ERROR_INIT;
        bool json = false, directory;
        const char *a, *b;
        int option, r;

        opterr = 0;
        while ((option = getopt_long(argc, argv, ":h", options, NULL)) >= 0) {
                if (option == 'h')
                        return help();
                if (option != 'j')
                        return cli_usage("diff", "%s: there is no such option", argv[optind - 1]);
                json = true;
        }
        if (argc - optind != 2)
                return cli_usage("diff", "two receipts, or two directories of them, are wanted");
        a = argv[optind];
        b = argv[optind + 1];
        if (streq(a, "-") && streq(b, "-"))
                return cli_usage("diff", "only one of them can be standard input");
        directory = is_directory(a);
        if (directory != is_directory(b))
                return cli_usage("diff", "a receipt cannot be compared with a directory");
        r = directory ? diff_directories(a, b, json, &e) : diff_files(a, b, json, &e);
        return r >= 0 ? r : cli_fail(r == -ENOMEM ? EXIT_HOST : EXIT_USAGE, &e);
}
