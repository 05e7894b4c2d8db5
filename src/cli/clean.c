/* SPDX-License-Identifier: Apache-2.0 */

/* qscope clean: removes what runs whose qscope is gone left behind, which every run does first, and of kept
 * layers and receipts what is older or more than is to be kept. */

#include "cli/cli.h"

#include <inttypes.h>

#include "base/number.h"
#include "base/text.h"
#include "cli/arguments.h"
#include "core/plan.h"
#include "run/keep.h"
#include "run/rundir.h"

typedef struct CleanArguments {
        KeepRules rules;
        const char *layer_age, *layer_total, *layer_count, *receipt_age, *receipt_total, *state_dir;
        char **discard;
        bool dry_run, yes, list, json, help;
} CleanArguments;

static int help(void)
{
        (void) puts("Usage: qscope clean [OPTIONS]\n\n"
                    "Removes what runs whose qscope was killed left behind: their processes, units and directories. Runs\n"
                    "that are still going on are not touched. Then what is kept for qscope apply, and receipts, where they\n"
                    "are older or more than " KEPT_CONFIG
                    " or an option says; on a terminal it asks before.\n\n"
                    "  -n, --dry-run         say what would be removed\n"
                    "  -y, --yes             do not ask\n"
                    "  --list                print the layers that are kept, and do nothing\n"
                    "  --discard ID          remove the layers of this run or job, and nothing else; may be repeated\n"
                    "  --layer-age AGE       layers older than this (7d, 12h)\n"
                    "  --layer-total SIZE    the oldest layers, while all are larger than this\n"
                    "  --layer-count N       the oldest layers, while there are more\n"
                    "  --receipt-age AGE     receipts older than this; never by default\n"
                    "  --receipt-total SIZE  the oldest receipts, while all are larger than this; never by default\n"
                    "  --json                one line of JSON\n"
                    "  --state-dir DIR       (default: " STATE_DIR ")\n"
                    "  --help\n\n"
                    "Exit status: 0; 2 bad usage; 3 a layer is in use, or the answer was no; 4 the host could not.");
        return 0;
}

static const Argument table[] = {
        { "--dry-run", ARGUMENT_SWITCH, offsetof(CleanArguments, dry_run) },
        { "-n", ARGUMENT_SWITCH, offsetof(CleanArguments, dry_run) },
        { "--yes", ARGUMENT_SWITCH, offsetof(CleanArguments, yes) },
        { "-y", ARGUMENT_SWITCH, offsetof(CleanArguments, yes) },
        { "--list", ARGUMENT_SWITCH, offsetof(CleanArguments, list) },
        { "--discard", ARGUMENT_LIST, offsetof(CleanArguments, discard) },
        { "--layer-age", ARGUMENT_VALUE, offsetof(CleanArguments, layer_age) },
        { "--layer-total", ARGUMENT_VALUE, offsetof(CleanArguments, layer_total) },
        { "--layer-count", ARGUMENT_VALUE, offsetof(CleanArguments, layer_count) },
        { "--receipt-age", ARGUMENT_VALUE, offsetof(CleanArguments, receipt_age) },
        { "--receipt-total", ARGUMENT_VALUE, offsetof(CleanArguments, receipt_total) },
        { "--json", ARGUMENT_SWITCH, offsetof(CleanArguments, json) },
        { "--state-dir", ARGUMENT_VALUE, offsetof(CleanArguments, state_dir) },
        { "--help", ARGUMENT_SWITCH, offsetof(CleanArguments, help) },
        { "-h", ARGUMENT_SWITCH, offsetof(CleanArguments, help) },
};

static int take_rules(CleanArguments *a, Error *e)
{
        static const char age[] = "an age: 90s, 15min, 12h, 7d, 2w", size[] = "a size: bytes, 512M, 2G",
                          count[] = "a number";
        const struct {
                const char *text, *what;
                int (*parse)(const char *text, uint64_t *ret);
                uint64_t *ret;
        } rules[] = {
                { a->layer_age, age, parse_age, &a->rules.age },
                { a->layer_total, size, parse_size, &a->rules.total },
                { a->layer_count, count, parse_u64, &a->rules.count },
                { a->receipt_age, age, parse_age, &a->rules.receipt_age },
                { a->receipt_total, size, parse_size, &a->rules.receipt_total },
        };

        for (size_t i = 0; i < ELEMENTSOF(rules); i++)
                if (rules[i].text && rules[i].parse(rules[i].text, rules[i].ret) < 0)
                        return error_set(e, -EINVAL, "\"%s\" is not %s", rules[i].text, rules[i].what);
        return 0;
}

static int parse(char **argv, CleanArguments *a, Error *e)
{
        int n = arguments_parse(argv, table, ELEMENTSOF(table), a, e);

        if (n < 0 || a->help)
                return n;
        if (n > 0)
                return error_set(e, -EINVAL, "\"%s\": no argument is wanted", argv[0]);
        if (a->discard && (a->list || a->dry_run))
                return error_set(e, -EINVAL, "--discard goes with neither --list nor --dry-run");
        return take_rules(a, e);
}

/* --- layers by hand --- */

static void list_one(void *userdata, const KeptInfo *info, bool interrupted)
{
        const CleanArguments *a = userdata;
        char time[FORMAT_MAX], size[FORMAT_MAX], text[512];

        if (a->json) {
                _cleanup_free_ char *line = NULL;
                _cleanup_(cJSON_Deletep) cJSON *object = cJSON_CreateObject();

                if (object && json_add_text(object, "run_id", info->run_id) == 0 &&
                                json_add_text(object, "job_id", info->job_id) == 0 &&
                                json_add_text(object, "verdict", info->verdict) == 0 &&
                                json_add_text(object, "workspace", info->workspace) == 0 &&
                                json_add_u64(object, "files", info->files) == 0 &&
                                json_add_u64(object, "bytes", info->bytes) == 0 &&
                                json_add_text(object, "kept_at", format_timestamp(info->kept_usec, time)) ==
                                                0 &&
                                json_add_bool(object, "interrupted", interrupted) == 0)
                        line = json_print(object, false);
                if (line)
                        (void) fputs(line, stdout);
                return;
        }
        (void) text_excerpt(info->workspace, strlen(info->workspace), text, sizeof(text));
        (void) printf("%s  %.19sZ  %-8s  %8s  %s  %s%s\n", info->run_id,
                        format_timestamp(info->kept_usec, time), info->verdict,
                        format_bytes(info->bytes, size), info->job_id, text,
                        interrupted ? "  (an apply was interrupted)" : "");
}

static int discard(const CleanArguments *a)
{
        Error e = ERROR_INIT;
        int n = 0;

        for (size_t i = 0; a->discard[i]; i++) {
                int r = keep_discard(a->state_dir, a->discard[i], &e);

                if (r < 0)
                        return cli_fail(r == -EBUSY || r == -EALREADY ? EXIT_REFUSED : EXIT_HOST, &e);
                if (r == 0) {
                        error_set(&e, -ENOENT, "%s: nothing is kept of such a run or job", a->discard[i]);
                        return cli_fail(EXIT_REFUSED, &e);
                }
                if (*e.text)
                        (void) cli_fail(0, &e);
                e = ERROR_INIT;
                n += r;
        }
        if (a->json)
                (void) printf("{\"layers\":%d}\n", n);
        else
                (void) printf("%d layer%s discarded\n", n, n == 1 ? "" : "s");
        return 0;
}

/* --- cleaning --- */

typedef struct Found {
        int runs, layers, receipts;
        uint64_t layer_bytes, receipt_bytes;
} Found;

static int prune(const CleanArguments *a, bool dry, Found *found, Error *e)
{
        found->layers = keep_prune(a->state_dir, &a->rules, dry, &found->layer_bytes, e);
        if (found->layers < 0)
                return found->layers;
        found->receipts = keep_prune_receipts(a->state_dir, &a->rules, dry, &found->receipt_bytes, e);
        return MIN(found->receipts, 0);
}

static bool confirm(const Found *found)
{
        char layers[FORMAT_MAX], receipts[FORMAT_MAX], answer[8];

        (void) printf("Remove %d layer%s (%s) and %d receipt%s (%s)? [y/N] ", found->layers,
                        found->layers == 1 ? "" : "s", format_bytes(found->layer_bytes, layers),
                        found->receipts, found->receipts == 1 ? "" : "s",
                        format_bytes(found->receipt_bytes, receipts));
        (void) fflush(stdout);
        return fgets(answer, sizeof(answer), stdin) && (streq(answer, "y\n") || streq(answer, "yes\n"));
}

static void tell(const CleanArguments *a, const Found *found)
{
        char layers[FORMAT_MAX], receipts[FORMAT_MAX];
        const char *what = a->dry_run ? "to be removed" : "removed";

        if (a->json) {
                (void) printf("{\"runs\":%d,\"layers\":%d,\"layer_bytes\":%" PRIu64
                              ",\"receipts\":%d,\"receipt_bytes\":%" PRIu64 "}\n",
                                found->runs, found->layers, found->layer_bytes, found->receipts,
                                found->receipt_bytes);
                return;
        }
        (void) printf("%d dead run%s %s\n", found->runs, found->runs == 1 ? "" : "s", what);
        if (found->layers > 0)
                (void) printf("%d layer%s %s (%s)\n", found->layers, found->layers == 1 ? "" : "s", what,
                                format_bytes(found->layer_bytes, layers));
        if (found->receipts > 0)
                (void) printf("%d receipt%s %s (%s)\n", found->receipts, found->receipts == 1 ? "" : "s",
                                what, format_bytes(found->receipt_bytes, receipts));
}

static int clean(const CleanArguments *a)
{
        Found found = { 0 };
        Error e = ERROR_INIT;
        int r;

        found.runs = a->dry_run ? rundir_count_dead(&e) : rundir_clean(NULL, &e);
        r = MIN(found.runs, 0);
        if (r == 0)
                r = prune(a, true, &found, &e);
        if (r == 0 && !a->dry_run && found.layers + found.receipts > 0) {
                if (!a->yes && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && !confirm(&found))
                        return EXIT_REFUSED;
                r = prune(a, false, &found, &e);
        }
        if (r < 0)
                return cli_fail(EXIT_HOST, &e);
        tell(a, &found);
        return 0;
}

/* An option stands over the configuration, but not over one that does not parse. */
static int run(CleanArguments *a, char **argv)
{
        Error e = ERROR_INIT, broken = ERROR_INIT;
        int r = keep_rules_load(&a->rules, &broken);

        if (parse(argv, a, &e) < 0)
                return cli_usage("clean", "%s", e.text);
        if (a->help)
                return help();
        if (r < 0)
                return cli_fail(EXIT_USAGE, &broken);
        if (geteuid() != 0) {
                error_set(&e, -EPERM, "clean must be run as root (sudo qscope clean)");
                return cli_fail(EXIT_HOST, &e);
        }
        if (a->list)
                return keep_list(a->state_dir, list_one, a, &e) < 0 ? cli_fail(EXIT_HOST, &e) : 0;
        return a->discard ? discard(a) : clean(a);
}

int cli_clean(_unused_ int argc, char **argv)
{
        CleanArguments arguments = { .state_dir = STATE_DIR };
        int r = run(&arguments, argv);

        strv_free(arguments.discard);
        return r;
}
