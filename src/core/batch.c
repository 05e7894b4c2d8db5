/* SPDX-License-Identifier: Apache-2.0 */
#include "core/batch.h"

#include <inttypes.h>

#include "base/number.h"
#include "base/text.h"
#include "core/csv.h"
#include "core/receipt_view.h"

#define ROW_TEXT_MAX 200

const char batch_csv_header[] =
                "number,input,job_id,run_id,verdict,exit_code,signal,timed_out,duration_ms,cpu_usec,"
                "memory_peak_bytes,stdout_bytes,reasons,message,receipt\n";
const char batch_table_header[] = "     #  VERDICT   EXIT        TIME  JOB\n";

void batch_row_clear(BatchRow *row)
{
        free(row->line);
        free(row->record);
        free(row->row);
        *row = (BatchRow){ 0 };
}

static const char *job_id(const BatchEnd *end)
{
        return end->receipt ? view_text(end->receipt, "job_id") : end->job_id;
}

static const char *first_message(const BatchEnd *end)
{
        const cJSON *reasons = view_get(end->receipt, "reasons");

        return view_length(reasons) > 0 ? view_text(reasons->child, "message") : end->error;
}

static int add_copy(cJSON *line, const cJSON *receipt, const char *key)
{
        const cJSON *item = view_get(receipt, key);

        return json_add(line, key, item ? cJSON_Duplicate(item, false) : cJSON_CreateNull());
}

static char *make_line(const BatchEnd *end)
{
        static const char *const keys[] = { "run_id", "verdict", "match_expected", "exit_code" };
        _cleanup_(cJSON_Deletep) cJSON *line = cJSON_CreateObject();
        int r = line ? json_add_text(line, "job_id", job_id(end)) : -ENOMEM;

        for (size_t i = 0; r == 0 && i < ELEMENTSOF(keys); i++)
                r = add_copy(line, end->receipt, keys[i]);
        if (r == 0)
                r = json_add_text(line, "receipt", end->receipt_path);
        if (r == 0 && end->error) {
                r = json_add_text(line, "input", end->input);
                if (r == 0)
                        r = json_add_text(line, "error", end->error);
        }
        return r == 0 ? json_print(line, false) : NULL;
}

/* "expected_exit;leftover" */
static char *join_codes(const cJSON *receipt)
{
        TextStream stream;
        FILE *out = text_stream_open(&stream);
        const cJSON *reason;
        bool first = true;

        if (!out)
                return NULL;
        cJSON_ArrayForEach(reason, view_get(receipt, "reasons"))
        {
                const char *code = view_text(reason, "code");

                (void) fprintf(out, "%s%s", first ? "" : ";", code ? code : "?");
                first = false;
        }
        return text_stream_close(&stream, 0);
}

static int write_record(FILE *out, const BatchEnd *end)
{
        const cJSON *receipt = end->receipt, *usage = view_get(receipt, "usage");
        _cleanup_free_ char *codes = join_codes(receipt);
        const char *timed_out = !receipt ? NULL : view_true(receipt, "timed_out") ? "true" : "false";
        const struct {
                const char *text;
                uint64_t number; /* where text is NULL */
        } fields[] = {
                { NULL, end->number },
                { end->input, 0 },
                { job_id(end), UNKNOWN },
                { view_text(receipt, "run_id"), UNKNOWN },
                { view_text(receipt, "verdict"), UNKNOWN },
                { NULL, view_number(receipt, "exit_code") },
                { view_text(receipt, "signal"), UNKNOWN },
                { timed_out, UNKNOWN },
                { NULL, view_number(receipt, "duration_ms") },
                { NULL, view_number(usage, "cpu_usec") },
                { NULL, view_number(usage, "memory_peak_bytes") },
                { NULL, view_number(view_get(receipt, "stdout_info"), "bytes") },
                { codes, UNKNOWN },
                { first_message(end), UNKNOWN },
                { end->receipt_path, UNKNOWN },
        };
        int r = codes ? 0 : -ENOMEM;

        for (size_t i = 0; r == 0 && i < ELEMENTSOF(fields); i++) {
                if (i > 0)
                        (void) fputc(',', out);
                if (fields[i].text)
                        r = csv_text(out, fields[i].text);
                else
                        csv_number(out, fields[i].number);
        }
        (void) fputc('\n', out);
        return r;
}

static int write_row(FILE *out, const BatchEnd *end)
{
        const char *id = job_id(end), *verdict = view_text(end->receipt, "verdict"),
                   *message = first_message(end), *shown = id ? id : end->input;
        uint64_t code = view_number(end->receipt, "exit_code"),
                 duration = view_number(end->receipt, "duration_ms");
        char job[ROW_TEXT_MAX], why[ROW_TEXT_MAX], word[16], number[24] = "-", time[24] = "-";

        (void) text_excerpt(shown, strlen(shown), job, sizeof(job));
        (void) text_escape(verdict ? verdict : "broken", strlen(verdict ? verdict : "broken"), word,
                        sizeof(word));
        if (code != UNKNOWN)
                (void) snprintf(number, sizeof(number), "%" PRIu64, code);
        if (duration != UNKNOWN)
                (void) snprintf(time, sizeof(time), "%" PRIu64 " ms", duration);
        (void) fprintf(out, "%6" PRIu64 "  %-8s  %4s  %10s  %s\n", end->number, word, number, time, job);
        if (message) {
                (void) text_excerpt(message, strlen(message), why, sizeof(why));
                (void) fprintf(out, "        %s\n", why);
        }
        return 0;
}

static char *write_text(int (*write)(FILE *out, const BatchEnd *end), const BatchEnd *end)
{
        TextStream stream;
        FILE *out = text_stream_open(&stream);

        return text_stream_close(&stream, out ? write(out, end) : -ENOMEM);
}

int batch_row_make(const BatchEnd *end, BatchRow *ret)
{
        bool passed = end->status == 0;

        *ret = (BatchRow){ .line = make_line(end),
                .record = write_text(write_record, end),
                .row = passed ? NULL : write_text(write_row, end) };
        if (ret->line && ret->record && (passed || ret->row))
                return 0;
        batch_row_clear(ret);
        return -ENOMEM;
}

/* --- counting --- */

static void count_reason(BatchTally *tally, const char *code)
{
        size_t i = 0;

        while (i < tally->n_reasons && !streq(tally->reasons[i].code, code))
                i++;
        if (i == tally->n_reasons) {
                /* The table of codes is shorter; what more there is comes from strange receipts. */
                if (i == BATCH_REASONS_MAX)
                        return;
                (void) text_escape(
                                code, strlen(code), tally->reasons[i].code, sizeof(tally->reasons[i].code));
                tally->n_reasons++;
        }
        tally->reasons[i].n++;
}

int batch_worse_status(int a, int b)
{
        static const int order[] = { 2, 4, 3, 1 };

        if (a > 128 || b > 128)
                return MAX(a, b);
        for (size_t i = 0; i < ELEMENTSOF(order); i++)
                if (a == order[i] || b == order[i])
                        return order[i];
        return 0;
}

void batch_tally_add(BatchTally *tally, const BatchEnd *end)
{
        const char *verdict = view_text(end->receipt, "verdict");
        uint64_t duration = view_number(end->receipt, "duration_ms");
        const cJSON *reason;

        tally->done++;
        tally->resumed += end->resumed;
        tally->status = batch_worse_status(tally->status, end->status);
        for (size_t i = 0; verdict && i < _VERDICT_MAX; i++)
                tally->verdicts[i] += streq(verdict_names[i], verdict);
        tally->broken += !verdict;
        cJSON_ArrayForEach(reason, view_get(end->receipt, "reasons"))
        {
                const char *code = view_text(reason, "code");

                if (code)
                        count_reason(tally, code);
        }
        if (duration == UNKNOWN)
                return;
        if (tally->n_timed == 0 || duration > tally->longest_msec) {
                tally->longest_msec = duration;
                tally->longest = end->number;
        }
        tally->n_timed++;
        tally->total_msec += duration;
}

static int compare_reasons(const void *a, const void *b, void *userdata)
{
        const BatchTally *tally = userdata;
        const size_t *x = a, *y = b;
        uint64_t n = tally->reasons[*x].n, m = tally->reasons[*y].n;

        if (n != m)
                return n > m ? -1 : 1;
        return strcmp(tally->reasons[*x].code, tally->reasons[*y].code);
}

static void print_reasons(FILE *out, const BatchTally *tally)
{
        size_t order[BATCH_REASONS_MAX];

        for (size_t i = 0; i < tally->n_reasons; i++)
                order[i] = i;
        qsort_r(order, tally->n_reasons, sizeof(*order), compare_reasons, (void *) tally);
        for (size_t i = 0; i < tally->n_reasons; i++)
                (void) fprintf(out, "%6" PRIu64 "  %s\n", tally->reasons[order[i]].n,
                                tally->reasons[order[i]].code);
}

void batch_tally_print(FILE *out, const BatchTally *tally, uint64_t elapsed_usec)
{
        uint64_t run = tally->done - tally->resumed;
        double seconds = (double) elapsed_usec / (double) USEC_PER_SEC;

        (void) fprintf(out, "%" PRIu64 " job%s:", tally->done, tally->done == 1 ? "" : "s");
        for (size_t i = 0; i < _VERDICT_MAX; i++)
                if (tally->verdicts[i] > 0 || i == VERDICT_PASS)
                        (void) fprintf(out, " %" PRIu64 " %s,", tally->verdicts[i], verdict_names[i]);
        if (tally->broken > 0)
                (void) fprintf(out, " %" PRIu64 " broken,", tally->broken);
        if (tally->resumed > 0)
                (void) fprintf(out, " %" PRIu64 " of them from before,", tally->resumed);
        (void) fprintf(out, " in %.1f s", seconds);
        if (run > 0 && seconds > 0)
                (void) fprintf(out, " (%.1f a second)", (double) run / seconds);
        (void) fputc('\n', out);
        if (tally->n_timed > 0)
                (void) fprintf(out,
                                "commands: %" PRIu64 " ms on average, at most %" PRIu64 " ms (job %" PRIu64
                                ")\n",
                                tally->total_msec / tally->n_timed, tally->longest_msec, tally->longest);
        print_reasons(out, tally);
}
