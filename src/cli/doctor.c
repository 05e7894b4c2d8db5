/* SPDX-License-Identifier: Apache-2.0 */

/* qscope doctor: what this host can enforce and observe; with --selftest, whether it really does. */

#include "cli/cli.h"

#include <getopt.h>
#include <inttypes.h>

#include "base/number.h"
#include "base/text.h"
#include "run/doctor.h"
#include "run/selftest.h"
#include "sys/host.h"

#define JOBS_DEFAULT 4u

typedef struct Arguments {
        bool selftest, json, strict, list;
        SelftestOptions options;
} Arguments;

static int help(void)
{
        (void) puts("Usage: qscope doctor [OPTIONS]\n\n"
                    "Tries what jobs need on this host, one line each, and runs a job. With --selftest it runs the\n"
                    "known-bad suite: small jobs that each do one bad thing, whose receipts must show it, and good\n"
                    "ones, whose receipts must show nothing.\n\n"
                    "  --policy NAME   policy that the jobs are held to (default: default)\n"
                    "  --json          one JSON document, for tools\n"
                    "  --selftest      run the suite\n"
                    "  -k PATTERN      of the suite, only jobs whose name has or matches this\n"
                    "  -j N            that many at a time (default: 4)\n"
                    "  --strict        what this host cannot see is a fault too\n"
                    "  --list          print the suite, run nothing\n"
                    "  --help\n\n"
                    "Exit status: 0: all is as it must be; 1: something is missing, missed, or noisy; 2: bad usage;\n"
                    "4: no job can be run on this host.");
        return 0;
}

/* 0, 1: help was printed, or an exit status. */
static int parse(int argc, char **argv, Arguments *a)
{
        enum { OPTION_POLICY = 256, OPTION_JSON, OPTION_SELFTEST, OPTION_STRICT, OPTION_LIST };
        static const struct option options[] = {
                { "policy", required_argument, NULL, OPTION_POLICY },
                { "json", no_argument, NULL, OPTION_JSON },
                { "selftest", no_argument, NULL, OPTION_SELFTEST },
                { "strict", no_argument, NULL, OPTION_STRICT },
                { "list", no_argument, NULL, OPTION_LIST },
                { "help", no_argument, NULL, 'h' },
                { NULL },
        };
        uint64_t jobs;
        int option;

        opterr = 0;
        while ((option = getopt_long(argc, argv, ":hk:j:", options, NULL)) >= 0)
                switch (option) {
                case OPTION_POLICY:
                        a->options.policy = optarg;
                        break;
                case OPTION_JSON:
                        a->json = true;
                        break;
                case OPTION_SELFTEST:
                        a->selftest = true;
                        break;
                case OPTION_STRICT:
                        a->strict = true;
                        break;
                case OPTION_LIST:
                        a->list = true;
                        break;
                case 'k':
                        a->options.pattern = optarg;
                        break;
                case 'j':
                        if (parse_u64(optarg, &jobs) < 0 || jobs < 1 || jobs > SELFTEST_JOBS_MAX)
                                return cli_usage("doctor", "-j: a number from 1 to %u", SELFTEST_JOBS_MAX);
                        a->options.jobs = (unsigned) jobs;
                        break;
                case 'h':
                        (void) help();
                        return 1;
                case ':':
                        return cli_usage("doctor", "%s: a value is missing", argv[optind - 1]);
                default:
                        return cli_usage("doctor", "%s: there is no such option", argv[optind - 1]);
                }
        if (optind < argc)
                return cli_usage("doctor", "\"%s\": no argument is wanted", argv[optind]);
        if (!a->selftest && (a->options.pattern || a->strict))
                return cli_usage("doctor", "-k and --strict go with --selftest");
        return 0;
}

static bool colours(void)
{
        const char *term = getenv("TERM"), *no_colour = getenv("NO_COLOR");

        return isatty(STDOUT_FILENO) && term && !streq(term, "dumb") && !(no_colour && *no_colour);
}

/* "MISSED" in red, "blind" in yellow. */
static void put_state(const char *word, int grade, int width)
{
        static const char *const codes[] = { "\033[32m", "\033[33m", "\033[1;31m" };
        bool colour = colours();

        (void) printf("%s%-*s%s", colour ? codes[grade] : "", width, word, colour ? "\033[0m" : "");
}

/* A text that may quote a job, on one line. */
static void put_text(const char *text)
{
        char out[1024];

        text_excerpt(text, strlen(text), out, sizeof(out));
        (void) fputs(out, stdout);
}

static int print_document(cJSON *document, Error *e)
{
        _cleanup_free_ char *text = document ? json_print(document, true) : NULL;

        return text ? cli_put(text) : error_errno(e, -ENOMEM, "the document");
}

/* --- the host --- */

typedef struct Examined {
        cJSON *facts; /* NULL: printed at once */
        unsigned n[_DOCTOR_STATE_MAX];
        bool runs; /* the last one, a job, has run */
        int r;
} Examined;

static void on_fact(void *userdata, const DoctorFact *fact)
{
        Examined *x = userdata;
        cJSON *item;

        x->n[fact->state]++;
        x->runs = fact->state == DOCTOR_OK;
        if (!x->facts) {
                put_state(doctor_state_names[fact->state], (int) fact->state, 8);
                (void) printf(" %-12s ", fact->name);
                put_text(fact->text);
                (void) putchar('\n');
                if (fact->remedy)
                        (void) printf("%22s-> %s\n", "", fact->remedy);
                (void) fflush(stdout);
                return;
        }
        item = json_add_object(x->facts, NULL);
        if (!item || json_add_text(item, "name", fact->name) < 0 ||
                        json_add_text(item, "state", doctor_state_names[fact->state]) < 0 ||
                        json_add_text(item, "text", fact->text) < 0 ||
                        json_add_text(item, "remedy", fact->remedy) < 0)
                x->r = -ENOMEM;
}

static int examine(const Arguments *a)
{
        _cleanup_(cJSON_Deletep) cJSON *document = NULL;
        Examined x = { .runs = false };
        Error e = ERROR_INIT;
        int r = 0;

        if (a->json) {
                document = cJSON_CreateObject();
                if (!document || json_add_text(document, "schema", "qscope.doctor/v1") < 0)
                        return cli_fail(EXIT_HOST, &e);
                x.facts = json_add_array(document, "facts");
                if (!x.facts)
                        return cli_fail(EXIT_HOST, &e);
        }
        doctor_examine(a->options.policy, on_fact, &x);
        if (!a->json)
                (void) printf("\n%u ok, %u weak, %u missing\n", x.n[DOCTOR_OK], x.n[DOCTOR_WEAK],
                                x.n[DOCTOR_MISSING]);
        else if (x.r < 0 || json_add_bool(document, "ok",
                                            x.n[DOCTOR_OK] > 0 && x.n[DOCTOR_WEAK] == 0 &&
                                                            x.n[DOCTOR_MISSING] == 0) < 0)
                r = -ENOMEM;
        else
                r = print_document(document, &e);
        if (r < 0 || !x.runs)
                return r < 0 ? cli_fail(EXIT_HOST, &e) : EXIT_HOST;
        return x.n[DOCTOR_WEAK] > 0 || x.n[DOCTOR_MISSING] > 0;
}

/* --- the suite --- */

typedef struct Tested {
        cJSON *results; /* NULL: printed at once */
        char **blind;   /* what was not observed, each once */
        unsigned n[_SELFTEST_RESULT_MAX];
        int r;
} Tested;

static const struct {
        const char *word;
        int grade;
} shown[_SELFTEST_RESULT_MAX] = {
        [SELFTEST_SEEN] = { "seen", 0 },
        [SELFTEST_CLEAN] = { "clean", 0 },
        [SELFTEST_BLIND] = { "blind", 1 },
        [SELFTEST_MISSED] = { "MISSED", 2 },
        [SELFTEST_NOISY] = { "NOISY", 2 },
        [SELFTEST_FAILED] = { "FAILED", 2 },
        [SELFTEST_SKIPPED] = { "skipped", 1 },
};

static void print_row(const SelftestRow *row)
{
        put_state(shown[row->result].word, shown[row->result].grade, 8);
        (void) printf(" %-17s %-9s %-53s %s\n", row->c->name, row->verdict, row->c->what, row->c->shows);
        if (row->result != SELFTEST_SEEN && row->result != SELFTEST_CLEAN && row->why.text[0]) {
                (void) printf("%9s-> ", "");
                put_text(row->why.text);
                (void) putchar('\n');
        }
        (void) fflush(stdout);
}

static int add_row(cJSON *results, const SelftestRow *row)
{
        cJSON *item = json_add_object(results, NULL);

        if (!item || json_add_text(item, "name", row->c->name) < 0 ||
                        json_add_bool(item, "good", row->c->good) < 0 ||
                        json_add_text(item, "what", row->c->what) < 0 ||
                        json_add_text(item, "shows", row->c->shows) < 0 ||
                        json_add_text(item, "result", selftest_result_names[row->result]) < 0 ||
                        json_add_text(item, "verdict", row->verdict[0] ? row->verdict : NULL) < 0 ||
                        json_add_text(item, "why", row->why.text[0] ? row->why.text : NULL) < 0)
                return -ENOMEM;
        return json_add_u64(item, "duration_ms", row->usec / USEC_PER_MSEC);
}

static void on_row(void *userdata, const SelftestRow *row)
{
        Tested *t = userdata;

        t->n[row->result]++;
        if (row->result == SELFTEST_BLIND && !strv_contains(t->blind, row->why.text) && t->r == 0)
                t->r = strv_extend(&t->blind, row->why.text);
        if (!t->results)
                print_row(row);
        else if (t->r == 0)
                t->r = add_row(t->results, row);
}

static unsigned faults(const Tested *t, bool strict)
{
        unsigned n = strict ? t->n[SELFTEST_BLIND] : 0;

        for (SelftestResult i = 0; i < _SELFTEST_RESULT_MAX; i++)
                n += selftest_is_fault(i) ? t->n[i] : 0;
        return n;
}

static void print_totals(const Tested *t, uint64_t usec)
{
        char text[FORMAT_MAX];

        if (t->blind)
                (void) puts("\nThis host cannot show:");
        for (size_t i = 0; t->blind && t->blind[i]; i++) {
                (void) fputs("  ", stdout);
                put_text(t->blind[i]);
                (void) putchar('\n');
        }
        (void) putchar('\n');
        for (SelftestResult i = 0; i < _SELFTEST_RESULT_MAX; i++)
                (void) printf("%s%u %s", i == 0 ? "" : ", ", t->n[i], selftest_result_names[i]);
        (void) printf(", in %s\n", format_usec(usec, text));
}

static int print_result(cJSON *document, const Tested *t, bool ok, Error *e)
{
        cJSON *totals = json_add_object(document, "totals");
        int r = totals ? 0 : -ENOMEM;

        for (SelftestResult i = 0; r == 0 && i < _SELFTEST_RESULT_MAX; i++)
                r = json_add_u64(totals, selftest_result_names[i], t->n[i]);
        if (r < 0 || json_add_strv(document, "blind_spots", t->blind) < 0 ||
                        json_add_bool(document, "ok", ok) < 0)
                return -ENOMEM;
        return print_document(document, e);
}

static cJSON *new_document(cJSON **ret_results)
{
        _cleanup_(cJSON_Deletep) cJSON *document = cJSON_CreateObject();

        if (!document || json_add_text(document, "schema", "qscope.selftest/v1") < 0)
                return NULL;
        *ret_results = json_add_array(document, "results");
        return *ret_results ? TAKE_PTR(document) : NULL;
}

static int test(const Arguments *a, const SelftestSuite *suite)
{
        _cleanup_(cJSON_Deletep) cJSON *document = NULL;
        Tested t = { .results = NULL };
        Error e = ERROR_INIT;
        uint64_t begin = now_monotonic();
        int r, number = 0;
        bool ok;

        if (a->json) {
                document = new_document(&t.results);
                if (!document)
                        return cli_fail(EXIT_HOST, &e);
        }
        r = selftest_run(suite, &a->options, on_row, &t, &number, &e);
        ok = r == 0 && t.r == 0 && faults(&t, a->strict) == 0;
        if (r == 0 && t.r == 0 && a->json)
                r = print_result(document, &t, ok, &e);
        else if (r == 0)
                print_totals(&t, now_monotonic() - begin);
        strv_free(t.blind);
        if (number != 0)
                return 128 + number;
        return r < 0 || t.r < 0 ? cli_fail(EXIT_HOST, &e) : !ok;
}

static int list(const Arguments *a, const SelftestSuite *suite)
{
        for (size_t i = 0; i < suite->n; i++)
                if (selftest_is_wanted(suite, i, a->options.pattern))
                        (void) printf("%-5s %-17s %-53s %s\n", suite->cases[i].good ? "good" : "bad",
                                        suite->cases[i].name, suite->cases[i].what, suite->cases[i].shows);
        return 0;
}

int cli_doctor(int argc, char **argv)
{
        _cleanup_(selftest_suite_clear) SelftestSuite suite = { 0 };
        Arguments a = { .options.jobs = JOBS_DEFAULT };
        Error e = ERROR_INIT;
        int r = parse(argc, argv, &a);

        if (r != 0)
                return r == 1 ? 0 : r;
        if (!a.selftest && !a.list)
                return examine(&a);
        if (selftest_suite_load(&suite, &e) < 0)
                return cli_fail(EXIT_HOST, &e);
        if (a.list)
                return list(&a, &suite);
        if (geteuid() != 0) {
                error_set(&e, -EPERM, "the selftest must be run as root (sudo qscope doctor --selftest)");
                return cli_fail(EXIT_HOST, &e);
        }
        return test(&a, &suite);
}
