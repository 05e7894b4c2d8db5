/* SPDX-License-Identifier: Apache-2.0 */

/* qscope clean: removes what runs whose qscope is gone left behind, which every run does first, and of kept
 * layers and receipts what is older or more than is to be kept. */

#include "cli/cli.h"

#include <getopt.h>
#include <inttypes.h>

#include "base/number.h"
#include "base/text.h"
#include "core/plan.h"
#include "run/keep.h"
#include "run/rundir.h"

typedef struct CleanArguments {
        KeepRules rules;
        const char *state_dir;
        char **discard;
        bool dry_run, yes, list, json;
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

enum { LAYER_AGE = 256, LAYER_TOTAL, LAYER_COUNT, RECEIPT_AGE, RECEIPT_TOTAL };

static int parse_rule(int option, const char *text, KeepRules *rules)
{
        switch (option) {
        case LAYER_AGE:
                return parse_age(text, &rules->age);
        case LAYER_TOTAL:
                return parse_size(text, &rules->total);
        case LAYER_COUNT:
                return parse_u64(text, &rules->count);
        case RECEIPT_AGE:
                return parse_age(text, &rules->receipt_age);
        default:
                return parse_size(text, &rules->receipt_total);
        }
}

static int parse(int argc, char **argv, CleanArguments *a, bool *ret_help)
{
        static const struct option options[] = {
                { "dry-run", no_argument, NULL, 'n' },
                { "yes", no_argument, NULL, 'y' },
                { "list", no_argument, NULL, 'l' },
                { "discard", required_argument, NULL, 'x' },
                { "layer-age", required_argument, NULL, LAYER_AGE },
                { "layer-total", required_argument, NULL, LAYER_TOTAL },
                { "layer-count", required_argument, NULL, LAYER_COUNT },
                { "receipt-age", required_argument, NULL, RECEIPT_AGE },
                { "receipt-total", required_argument, NULL, RECEIPT_TOTAL },
                { "json", no_argument, NULL, 'j' },
                { "state-dir", required_argument, NULL, 'd' },
                { "help", no_argument, NULL, 'h' },
                { NULL },
        };
        int option;

        opterr = 0;
        while ((option = getopt_long(argc, argv, ":hny", options, NULL)) >= 0)
                switch (option) {
                case 'n':
                        a->dry_run = true;
                        break;
                case 'y':
                        a->yes = true;
                        break;
                case 'l':
                        a->list = true;
                        break;
                case 'j':
                        a->json = true;
                        break;
                case 'd':
                        a->state_dir = optarg;
                        break;
                case 'x':
                        if (strv_extend(&a->discard, optarg) < 0)
                                return -ENOMEM;
                        break;
                case 'h':
                        *ret_help = true;
                        return 0;
                case ':':
                        return cli_usage("clean", "%s: a value is missing", argv[optind - 1]);
                case '?':
                        return cli_usage("clean", "%s: there is no such option", argv[optind - 1]);
                default:
                        if (parse_rule(option, optarg, &a->rules) < 0)
                                return cli_usage("clean", "\"%s\": is no such age, size or number", optarg);
                }
        if (argc > optind)
                return cli_usage("clean", "\"%s\": no argument is wanted", argv[optind]);
        if (a->discard && (a->list || a->dry_run))
                return cli_usage("clean", "--discard goes with neither --list nor --dry-run");
        return 0;
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

int cli_clean(int argc, char **argv)
{
        CleanArguments arguments = { .state_dir = STATE_DIR };
        Error e = ERROR_INIT;
        bool wants_help = false;
        int r = keep_rules_load(&arguments.rules, &e), broken = r;

        r = parse(argc, argv, &arguments, &wants_help);
        if (r < 0)
                r = EXIT_HOST;
        else if (wants_help)
                r = help();
        else if (r == 0 && broken < 0)
                r = cli_fail(EXIT_USAGE, &e);
        else if (r == 0 && geteuid() != 0) {
                error_set(&e, -EPERM, "clean must be run as root (sudo qscope clean)");
                r = cli_fail(EXIT_HOST, &e);
        } else if (r == 0 && arguments.list)
                r = keep_list(arguments.state_dir, list_one, &arguments, &e) < 0 ? cli_fail(EXIT_HOST, &e)
                                                                                 : 0;
        else if (r == 0)
                r = arguments.discard ? discard(&arguments) : clean(&arguments);
        strv_free(arguments.discard);
        return r;
}
