/* SPDX-License-Identifier: Apache-2.0 */
#include "core/eval.h"

#include <inttypes.h>

#include "core/csv.h"
#include "core/receipt_view.h"

#define PRINTED_CELLS_MAX 200u /* beyond, only what did not pass is shown */
#define PRINTED_LINES_MAX 500u
#define SHOWN_NAME_MAX    200
#define DETAIL_MAX        512

typedef struct RunDigest {
        uint8_t bytes[SHA256_DIGEST_SIZE];
} RunDigest;

struct EvalTable {
        const Suite *suite;
        const EvalCandidate *candidates;
        size_t n_candidates;
        uint64_t repeats;
        EvalCell *cells;    /* of the cases of the first candidate, then of the second… */
        RunDigest *digests; /* by number */
};

static size_t n_cells(const EvalTable *t)
{
        return t->n_candidates * t->suite->n_cases;
}

static const EvalCell *cell_of(const EvalTable *t, size_t candidate, size_t number)
{
        return &t->cells[candidate * t->suite->n_cases + number];
}

uint64_t eval_runs(const EvalTable *t)
{
        return n_cells(t) * t->repeats;
}

void eval_locate(const EvalTable *t, uint64_t number, size_t *ret_candidate, size_t *ret_case,
                uint64_t *ret_repeat)
{
        size_t cell = (size_t) (number / t->repeats);

        *ret_repeat = number % t->repeats + 1;
        *ret_case = cell % t->suite->n_cases;
        *ret_candidate = cell / t->suite->n_cases;
}

int eval_new(const Suite *suite, const EvalCandidate *candidates, size_t n_candidates, uint64_t repeats,
                EvalTable **ret, Error *e)
{
        _cleanup_(eval_freep) EvalTable *t = calloc(1, sizeof(EvalTable));

        if (!t)
                return -ENOMEM;
        *t = (EvalTable){
                .suite = suite, .candidates = candidates, .n_candidates = n_candidates, .repeats = repeats
        };
        if (n_candidates > EVAL_RUNS_MAX / suite->n_cases / repeats)
                return error_set(e, -E2BIG,
                                "%zu candidates, %zu cases and %" PRIu64
                                " repeats are more than %u runs: take fewer at a time",
                                n_candidates, suite->n_cases, repeats, EVAL_RUNS_MAX);
        t->cells = calloc(n_cells(t), sizeof(EvalCell));
        t->digests = calloc(eval_runs(t), sizeof(RunDigest));
        if (!t->cells || !t->digests)
                return -ENOMEM;
        *ret = TAKE_PTR(t);
        return 0;
}

EvalTable *eval_free(EvalTable *t)
{
        if (!t)
                return NULL;
        for (size_t i = 0; t->cells && i < n_cells(t); i++) {
                free(t->cells[i].code);
                free(t->cells[i].message);
                free(t->cells[i].detail);
                free(t->cells[i].receipt);
        }
        free(t->cells);
        free(t->digests);
        free(t);
        return NULL;
}

/* --- one run --- */

static void hash_text(Hash *hash, const char *text)
{
        hash_update(hash, text ? text : "-", text ? strlen(text) + 1 : 2);
}

static void digest_run(const cJSON *receipt, RunDigest *ret, char hex[static HASH_HEX_MAX])
{
        char exit_code[32];
        const cJSON *reason;
        Hash hash, copy;

        hash_init(&hash);
        hash_text(&hash, view_text(receipt, "verdict"));
        cJSON_ArrayForEach(reason, view_get(receipt, "reasons"))
        {
                hash_text(&hash, view_text(reason, "code"));
        }
        (void) snprintf(exit_code, sizeof(exit_code), "%" PRIu64, view_number(receipt, "exit_code"));
        hash_text(&hash, exit_code);
        hash_text(&hash, view_text(receipt, "signal"));
        hash_text(&hash, view_text(view_get(receipt, "stdout_info"), "sha256"));
        copy = hash;
        sha256_digest(&copy, sizeof(ret->bytes), ret->bytes);
        hash_finish(&hash, hex);
}

/* The last line that is not empty, where a traceback ends; or the first. */
static char *one_line(const char *text, bool last)
{
        const char *line = NULL;

        for (const char *p = text; p && *p; p += strcspn(p, "\n")) {
                p += strspn(p, "\n");
                if (*p && (last || !line))
                        line = p;
        }
        return line ? strndup(line, MIN(strcspn(line, "\n"), (size_t) DETAIL_MAX)) : NULL;
}

static int keep_reason(EvalCell *cell, const cJSON *receipt, const char *path, const char *error)
{
        const cJSON *reasons = view_get(receipt, "reasons"), *first = reasons ? reasons->child : NULL;
        const char *code = view_text(first, "code"), *message = view_text(first, "message");

        if (cell->message)
                return 0;
        cell->code = strdup(code ? code : "no_receipt");
        cell->message = strdup(message ? message : error ? error : "there is no receipt");
        cell->detail = one_line(view_text(receipt, "stderr"), true);
        if (!cell->detail)
                cell->detail = one_line(view_text(receipt, "stdout"), false);
        cell->receipt = receipt && path ? strdup(path) : NULL;
        return cell->code && cell->message && (!receipt || !path || cell->receipt) ? 0 : -ENOMEM;
}

/* What the host could not run, the policy refused or somebody interrupted is no answer of the candidate. */
static bool is_judged(const char *verdict)
{
        return verdict && (streq(verdict, "pass") || streq(verdict, "fail"));
}

int eval_add(EvalTable *t, uint64_t number, const cJSON *receipt, const char *path, const char *error)
{
        const char *verdict = view_text(receipt, "verdict");
        uint64_t msec = view_number(receipt, "duration_ms"), repeat;
        size_t candidate, index;
        char hex[HASH_HEX_MAX];
        EvalCell *cell;

        eval_locate(t, number, &candidate, &index, &repeat);
        cell = &t->cells[candidate * t->suite->n_cases + index];
        digest_run(receipt, &t->digests[number], hex);
        cell->runs++;
        if (!is_judged(verdict))
                return keep_reason(cell, receipt, path, error);
        if (cell->judged++ == 0)
                memcpy(cell->first, hex, sizeof(hex));
        cell->varies |= !streq(cell->first, hex);
        if (msec != UNKNOWN) {
                cell->total_msec += msec;
                cell->n_timed++;
        }
        if (streq(verdict, "pass")) {
                cell->passed++;
                return 0;
        }
        return keep_reason(cell, receipt, path, error);
}

/* --- figures --- */

double eval_pass_at_k(uint64_t n, uint64_t c, uint64_t k)
{
        double none = 1;

        if (n - c < k)
                return 1;
        for (uint64_t i = n - c + 1; i <= n; i++)
                none *= 1 - (double) k / (double) i;
        return 1 - none;
}

void eval_digest(const EvalTable *t, char hex[static HASH_HEX_MAX])
{
        hash_data(t->digests, eval_runs(t) * sizeof(RunDigest), hex);
}

static bool is_passed(const EvalTable *t, const EvalCell *cell)
{
        return cell->passed == t->repeats;
}

/* Some run has failed, whatever became of the others. */
static bool is_failed(const EvalTable *t, const EvalCell *cell)
{
        (void) t;
        return cell->passed < cell->judged;
}

static bool is_untold(const EvalTable *t, const EvalCell *cell)
{
        return !is_passed(t, cell) && !is_failed(t, cell);
}

static bool is_flaky(const EvalCell *cell)
{
        return cell->passed > 0 && cell->passed < cell->judged;
}

static size_t count_cases(
                const EvalTable *t, size_t candidate, bool (*is)(const EvalTable *, const EvalCell *))
{
        size_t n = 0;

        for (size_t i = 0; i < t->suite->n_cases; i++)
                n += is(t, cell_of(t, candidate, i));
        return n;
}

static bool varies(const EvalTable *t, const EvalCell *cell)
{
        (void) t;
        return is_flaky(cell) || cell->varies;
}

/* 1: all cases pass, 0: not all, UNKNOWN: too many of its runs were none. */
static uint64_t solves(const EvalTable *t, size_t candidate)
{
        if (count_cases(t, candidate, is_passed) == t->suite->n_cases)
                return 1;
        return count_cases(t, candidate, is_failed) > 0 ? 0 : UNKNOWN;
}

/* Returns how many candidates are known to solve all of it or not. */
static uint64_t count_solved(const EvalTable *t, uint64_t *ret_solved)
{
        uint64_t n = 0;

        *ret_solved = 0;
        for (size_t i = 0; i < t->n_candidates; i++) {
                uint64_t one = solves(t, i);

                n += one != UNKNOWN;
                *ret_solved += one == 1;
        }
        return n;
}

/* 1, 2, 5, 10, 20, 50… as far as there are samples. */
static uint64_t next_k(uint64_t k)
{
        uint64_t power = 1;

        while (power * 10 <= k)
                power *= 10;
        return k == power * 2 ? power * 5 : k * 2;
}

/* --- for people --- */

static void print_name(FILE *out, const char *name, int width)
{
        char shown[SHOWN_NAME_MAX];

        (void) text_excerpt(name, strlen(name), shown, sizeof(shown));
        (void) fprintf(out, "%-*s", width, shown);
}

static int name_width(const EvalTable *t)
{
        size_t width = 8;

        for (size_t i = 0; i < t->suite->n_cases; i++)
                width = MAX(width, strlen(t->suite->cases[i].name));
        return (int) MIN(width, 48u);
}

static void print_cell(const EvalTable *t, FILE *out, const SuiteCase *c, const EvalCell *cell)
{
        char message[SHOWN_NAME_MAX];

        (void) fprintf(out, "  %s  ",
                        is_passed(t, cell)             ? "ok  "
                        : cell->passed == cell->judged ? "-   "
                        : cell->passed                 ? "SOME"
                                                       : "FAIL");
        print_name(out, c->name, name_width(t));
        (void) fprintf(out, "  %" PRIu64 "/%" PRIu64, cell->passed, t->repeats);
        if (cell->judged < t->repeats)
                (void) fprintf(out, " (%" PRIu64 " without a verdict)", t->repeats - cell->judged);
        if (cell->n_timed > 0)
                (void) fprintf(out, "  %6" PRIu64 " ms", cell->total_msec / cell->n_timed);
        if (cell->code) {
                (void) text_excerpt(cell->message, strlen(cell->message), message, sizeof(message));
                (void) fprintf(out, "  %s: %s", cell->code, message);
                if (cell->detail) {
                        (void) text_excerpt(cell->detail, strlen(cell->detail), message, sizeof(message));
                        (void) fprintf(out, "\n        | %s", message);
                }
                if (cell->receipt) {
                        (void) text_excerpt(cell->receipt, strlen(cell->receipt), message, sizeof(message));
                        (void) fprintf(out, "\n        %s", message);
                }
        } else if (cell->varies) {
                (void) fputs("  its output differs from run to run", out);
        }
        (void) fputc('\n', out);
}

static void print_candidate(const EvalTable *t, size_t candidate, FILE *out, size_t *lines)
{
        size_t passed = count_cases(t, candidate, is_passed), differ = count_cases(t, candidate, varies),
               untold = count_cases(t, candidate, is_untold);
        bool all = n_cells(t) <= PRINTED_CELLS_MAX;

        print_name(out, t->candidates[candidate].name, 0);
        (void) fprintf(out, ": %zu of %zu cases pass", passed, t->suite->n_cases);
        if (differ > 0)
                (void) fprintf(out, ", %zu differ%s from run to run", differ, differ == 1 ? "s" : "");
        if (untold > 0)
                (void) fprintf(out, ", %zu cannot be told", untold);
        (void) fputc('\n', out);
        for (size_t i = 0; i < t->suite->n_cases && *lines < PRINTED_LINES_MAX; i++) {
                const EvalCell *cell = cell_of(t, candidate, i);

                if (!all && is_passed(t, cell))
                        continue;
                print_cell(t, out, &t->suite->cases[i], cell);
                (*lines)++;
        }
}

static void print_pass_at_k(FILE *out, uint64_t n, uint64_t c, uint64_t all)
{
        for (uint64_t k = 1; k <= n; k = next_k(k))
                (void) fprintf(out, "%spass@%" PRIu64 " %.3f", k == 1 ? "" : "  ", k,
                                eval_pass_at_k(n, c, k));
        (void) fprintf(out, "%s%" PRIu64 " of %" PRIu64 " %s every case", n > 0 ? "  (" : "", c, n,
                        n == 1 ? "candidate passes" : "candidates pass");
        if (n < all)
                (void) fprintf(out, ", %" PRIu64 " cannot be told", all - n);
        (void) fputs(n > 0 ? ")\n" : "\n", out);
}

void eval_print(const EvalTable *t, FILE *out)
{
        uint64_t solved, known = count_solved(t, &solved);
        char hex[HASH_HEX_MAX];
        size_t lines = 0;

        for (size_t i = 0; i < t->n_candidates; i++)
                print_candidate(t, i, out, &lines);
        if (lines == PRINTED_LINES_MAX)
                (void) fputs("  … --json and --csv have all of it\n", out);
        (void) fputc('\n', out);
        print_pass_at_k(out, known, solved, t->n_candidates);
        eval_digest(t, hex);
        (void) fprintf(out, "results sha256:%s\n", hex);
}

/* --- for tools --- */

/* Of what nothing is known there are no figures. */
static int add_pass_at_k(cJSON *object, uint64_t n, uint64_t c)
{
        cJSON *figures = n > 0 ? json_add_object(object, "pass_at_k") : NULL;
        int r = figures ? 0 : n > 0 ? -ENOMEM : json_add_null(object, "pass_at_k");

        for (uint64_t k = 1; r == 0 && k <= n; k = next_k(k)) {
                char key[32];

                (void) snprintf(key, sizeof(key), "%" PRIu64, k);
                r = json_add(figures, key, cJSON_CreateNumber(eval_pass_at_k(n, c, k)));
        }
        return r;
}

static int add_pass(cJSON *object, uint64_t pass)
{
        return pass == UNKNOWN ? json_add_null(object, "pass") : json_add_bool(object, "pass", pass == 1);
}

static uint64_t passes(const EvalTable *t, const EvalCell *cell)
{
        return is_passed(t, cell) ? 1 : is_failed(t, cell) ? 0 : UNKNOWN;
}

static int add_cell(const EvalTable *t, cJSON *list, const SuiteCase *c, const EvalCell *cell)
{
        cJSON *object = json_add_object(list, NULL);
        int r = object ? json_add_text(object, "case", c->name) : -ENOMEM;

        if (r == 0)
                r = add_pass(object, passes(t, cell));
        if (r == 0)
                r = json_add_u64(object, "runs", cell->runs);
        if (r == 0)
                r = json_add_u64(object, "judged", cell->judged);
        if (r == 0)
                r = json_add_u64(object, "passed", cell->passed);
        if (r == 0)
                r = json_add_bool(object, "flaky", is_flaky(cell));
        if (r == 0)
                r = json_add_bool(object, "varies", cell->varies);
        if (r == 0)
                r = json_add_u64(object, "mean_ms",
                                cell->n_timed ? cell->total_msec / cell->n_timed : UNKNOWN);
        if (r == 0)
                r = json_add_text(object, "reason", cell->code);
        if (r == 0)
                r = json_add_text(object, "message", cell->message);
        if (r == 0)
                r = json_add_text(object, "detail", cell->detail);
        if (r == 0)
                r = json_add_text(object, "receipt", cell->receipt);
        /* What one case is worth when samples are repeats of one candidate. */
        return r == 0 ? add_pass_at_k(object, cell->judged, cell->passed) : r;
}

static int add_candidate(const EvalTable *t, size_t number, cJSON *list)
{
        const EvalCandidate *candidate = &t->candidates[number];
        size_t passed = count_cases(t, number, is_passed);
        cJSON *object = json_add_object(list, NULL), *results;
        int r = object ? json_add_text(object, "name", candidate->name) : -ENOMEM;

        if (r == 0)
                r = json_add_text(object, "sha256", candidate->sha256);
        if (r == 0)
                r = json_add_text(object, "harness", candidate->harness);
        if (r == 0)
                r = add_pass(object, solves(t, number));
        if (r == 0)
                r = json_add_u64(object, "cases_passed", passed);
        results = r == 0 ? json_add_array(object, "results") : NULL;
        r = results ? 0 : -ENOMEM;
        for (size_t i = 0; r == 0 && i < t->suite->n_cases; i++)
                r = add_cell(t, results, &t->suite->cases[i], cell_of(t, number, i));
        return r;
}

static int add_suite(const EvalTable *t, cJSON *document)
{
        cJSON *suite = json_add_object(document, "suite");
        int r = suite ? json_add_text(suite, "name", t->suite->name) : -ENOMEM;

        if (r == 0)
                r = json_add_text(suite, "sha256", t->suite->sha256);
        if (r == 0)
                r = json_add_u64(suite, "cases", t->suite->n_cases);
        return r == 0 ? json_add_u64(suite, "repeats", t->repeats) : r;
}

cJSON *eval_to_json(const EvalTable *t)
{
        _cleanup_(cJSON_Deletep) cJSON *document = cJSON_CreateObject();
        uint64_t solved, known = count_solved(t, &solved);
        cJSON *candidates;
        char hex[HASH_HEX_MAX];
        int r = document ? json_add_text(document, "schema", "qscope.eval/v1") : -ENOMEM;

        if (r == 0)
                r = add_suite(t, document);
        candidates = r == 0 ? json_add_array(document, "candidates") : NULL;
        r = candidates ? 0 : -ENOMEM;
        for (size_t i = 0; r == 0 && i < t->n_candidates; i++)
                r = add_candidate(t, i, candidates);
        if (r == 0)
                r = add_pass_at_k(document, known, solved);
        eval_digest(t, hex);
        if (r == 0)
                r = json_add_text(document, "results_sha256", hex);
        return r == 0 ? TAKE_PTR(document) : NULL;
}

int eval_write_csv(const EvalTable *t, FILE *out)
{
        int r = 0;

        (void) fputs("candidate,case,pass,runs,passed,flaky,varies,mean_ms,reason,message,judged,detail,receipt\n",
                        out);
        for (size_t i = 0; r == 0 && i < n_cells(t); i++) {
                const EvalCell *cell = &t->cells[i];

                r = csv_text(out, t->candidates[i / t->suite->n_cases].name);
                (void) fputc(',', out);
                if (r == 0)
                        r = csv_text(out, t->suite->cases[i % t->suite->n_cases].name);
                (void) fprintf(out, ",%s,%" PRIu64 ",%" PRIu64 ",%s,%s,",
                                is_passed(t, cell)   ? "true"
                                : is_failed(t, cell) ? "false"
                                                     : "",
                                cell->runs, cell->passed, is_flaky(cell) ? "true" : "false",
                                cell->varies ? "true" : "false");
                csv_number(out, cell->n_timed ? cell->total_msec / cell->n_timed : UNKNOWN);
                (void) fputc(',', out);
                if (r == 0)
                        r = csv_text(out, cell->code);
                (void) fputc(',', out);
                if (r == 0)
                        r = csv_text(out, cell->message);
                (void) fprintf(out, ",%" PRIu64 ",", cell->judged);
                if (r == 0)
                        r = csv_text(out, cell->detail);
                (void) fputc(',', out);
                if (r == 0)
                        r = csv_text(out, cell->receipt);
                (void) fputc('\n', out);
        }
        return r < 0 ? r : ferror(out) ? -EIO : 0;
}
