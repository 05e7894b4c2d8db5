/* SPDX-License-Identifier: Apache-2.0 */
#include "core/batch.h"

#include "alloc.h"
#include "core/csv.h"
#include "core/receipt_view.h"
#include "sample.h"
#include "test.h"

static char *csv_field(const char *text)
{
        char *field = NULL;
        size_t size = 0;
        FILE *f = open_memstream(&field, &size);

        CHECK(f && csv_text(f, text) == 0 && fclose(f) == 0);
        return field;
}

TEST(csv_quotes)
{
        static const char *const rows[][2] = {
                { "plain", "\"plain\"" }, { "", "\"\"" }, { "a,b;c", "\"a,b;c\"" },
                { "say \"no\"", "\"say \"\"no\"\"\"" }, { "two\nlines", "\"two\\nlines\"" },
                { "\x1b[31mred", "\"\\x1b[31mred\"" }, { "\xff", "\"\\xff\"" },
                { "\xe2\x80\xae", "\"\\xe2\\x80\\xae\"" }, /* right-to-left override */
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_free_ char *field = csv_field(rows[i][0]);

                CHECK_STR(field, rows[i][1]);
        }
}

/* What a spreadsheet would calculate, also behind what it passes over. */
TEST(csv_formulas)
{
        static const char *const texts[] = { "=1+1", "+1", "-1", "@SUM(A1)", "=cmd|' /C calc'!A0", "\t=1",
                "\r=1" };

        for (size_t i = 0; i < ELEMENTSOF(texts); i++) {
                _cleanup_free_ char *field = csv_field(texts[i]);

                CHECK(field[0] == '"' && !strchr("=+-@\t\r", field[1]));
        }
}

TEST(csv_unknown_is_empty)
{
        _cleanup_free_ char *text = NULL;
        size_t size = 0;
        FILE *f = open_memstream(&text, &size);

        csv_number(f, UNKNOWN);
        CHECK(csv_text(f, NULL) == 0);
        csv_number(f, 0);
        CHECK(fclose(f) == 0);
        CHECK_STR(text, "0");
}

static cJSON *sample_receipt(const Sample *s)
{
        _cleanup_(judgement_freep) Judgement *j = sample_judge(s);

        return receipt_build(&s->plan, s->outcome, j);
}

static unsigned count(const char *text, char c)
{
        unsigned n = 0;

        for (; *text; text++)
                n += *text == c;
        return n;
}

/* Outside quotes: of the header there are none. */
static unsigned count_fields(const char *record)
{
        unsigned n = 1;
        bool quoted = false;

        for (; *record; record++) {
                quoted ^= *record == '"';
                n += !quoted && *record == ',';
        }
        return n;
}

static void assert_one_record(const char *record)
{
        CHECK_EQ(count_fields(record), count(batch_csv_header, ',') + 1);
        CHECK_EQ(count(record, '\n'), 1);
        for (const char *p = record; *p; p++)
                CHECK(*p == '\n' || (unsigned char) *p >= 0x20);
}

/* The same line as that of a single run. */
TEST(row_of_a_pass)
{
        _sample_ Sample s;
        _cleanup_(cJSON_Deletep) cJSON *receipt = NULL, *summary = NULL;
        _cleanup_(judgement_freep) Judgement *j = NULL;
        _cleanup_free_ char *line = NULL;
        BatchRow row;

        sample_init(&s);
        j = sample_judge(&s);
        receipt = sample_receipt(&s);
        summary = receipt_summary(&s.plan, j, "r/a.json");
        line = json_print(summary, false);
        REQUIRE(batch_row_make(&(BatchEnd){ .number = 7,
                                               .input = "a.json",
                                               .receipt = receipt,
                                               .receipt_path = "r/a.json" },
                                &row) == 0);
        CHECK_STR(row.line, line);
        CHECK(!row.row);
        assert_one_record(row.record);
        batch_row_clear(&row);
}

TEST(row_of_a_failure)
{
        _sample_ Sample s;
        _cleanup_(cJSON_Deletep) cJSON *receipt = NULL;
        BatchRow row;

        sample_init(&s);
        sample_exit(&s, 3);
        receipt = sample_receipt(&s);
        REQUIRE(batch_row_make(&(BatchEnd){ .number = 7, .input = "a.json", .receipt = receipt, .status = 1 },
                                &row) == 0);
        CHECK_HAS(row.row, "fail");
        CHECK_HAS(row.row, "exit code 3, expected 0");
        CHECK_HAS(row.record, "\"exit_code\"");
        assert_one_record(row.record);
        batch_row_clear(&row);
}

TEST(row_of_a_broken_job)
{
        BatchRow row;

        REQUIRE(batch_row_make(&(BatchEnd){ .number = 2,
                                               .input = "=x\033[2J\".json",
                                               .error = "-no\r\nway",
                                               .status = 2 },
                                &row) == 0);
        CHECK_HAS(row.line, "\"verdict\":null");
        CHECK_HAS(row.row, "broken");
        CHECK_HAS(row.record, "\"'=x\\x1b[2J\"\".json\"");
        CHECK_HAS(row.record, "\"'-no\\r\\nway\"");
        CHECK(!strchr(row.row, '\033'));
        assert_one_record(row.record);
        batch_row_clear(&row);
}

TEST(row_of_a_job_that_could_not_begin)
{
        BatchRow row;

        REQUIRE(batch_row_make(&(BatchEnd){ .number = 2,
                                               .input = "a.json",
                                               .job_id = "mine",
                                               .error = "no policy",
                                               .status = 2 },
                                &row) == 0);
        CHECK_HAS(row.line, "\"job_id\":\"mine\"");
        CHECK_HAS(row.line, "\"run_id\":null");
        CHECK_HAS(row.row, "mine");
        CHECK_HAS(row.record, "mine");
        assert_one_record(row.record);
        batch_row_clear(&row);
}

/* A receipt that was read again may say anything. */
TEST(row_of_a_hostile_receipt)
{
        static const char text[] =
                        "{\"job_id\":\"\\u001b[31m\",\"verdict\":\"\\r\",\"exit_code\":-1,"
                        "\"duration_ms\":\"x\",\"reasons\":[{\"code\":5},{\"code\":\"\\u009b\",\"message\":[]}]}";
        _cleanup_(cJSON_Deletep) cJSON *receipt = NULL;
        BatchTally tally = { 0 };
        BatchEnd end = { .number = 1, .input = "x", .status = 4 };
        BatchRow row;

        REQUIRE(json_parse(text, strlen(text), JSON_STRICT, "x", &receipt, NULL) == 0);
        end.receipt = receipt;
        REQUIRE(batch_row_make(&end, &row) == 0);
        CHECK(!strchr(row.row, '\033') && !strchr(row.row, '\r'));
        assert_one_record(row.record);
        batch_row_clear(&row);
        batch_tally_add(&tally, &end);
        CHECK_EQ(tally.n_reasons, 1);
        CHECK(!strchr(tally.reasons[0].code, '\x9b'));
}

TEST(worst_status)
{
        CHECK_EQ(batch_worse_status(0, 0), 0);
        CHECK_EQ(batch_worse_status(0, 1), 1);
        CHECK_EQ(batch_worse_status(3, 1), 3);
        CHECK_EQ(batch_worse_status(3, 4), 4);
        CHECK_EQ(batch_worse_status(2, 4), 2);
        CHECK_EQ(batch_worse_status(2, 130), 130);
}

TEST(counts)
{
        _sample_ Sample s;
        _cleanup_(cJSON_Deletep) cJSON *good = NULL, *bad = NULL;
        _cleanup_free_ char *text = NULL;
        BatchTally tally = { 0 };
        size_t size = 0;
        FILE *f = open_memstream(&text, &size);

        sample_init(&s);
        good = sample_receipt(&s);
        sample_exit(&s, 3);
        bad = sample_receipt(&s);
        for (unsigned i = 1; i <= 5; i++)
                batch_tally_add(&tally, &(BatchEnd){ .number = i,
                                                        .receipt = i == 3 ? bad : good,
                                                        .status = i == 3,
                                                        .resumed = i == 5 });
        batch_tally_add(&tally, &(BatchEnd){ .number = 6, .input = "x", .error = "no", .status = 2 });
        batch_tally_print(f, &tally, 2 * USEC_PER_SEC);
        CHECK(fclose(f) == 0);
        CHECK_HAS(text, "6 jobs: 4 pass, 1 fail, 1 broken, 1 of them from before, in 2.0 s (2.5 a second)");
        CHECK_HAS(text, "     1  exit_code\n");
        CHECK_EQ(tally.status, 2);
}

/* Strange receipts do not make the table of reasons grow. */
TEST(reasons_are_bounded)
{
        BatchTally tally = { 0 };

        for (unsigned i = 0; i < 2 * BATCH_REASONS_MAX; i++) {
                _cleanup_(cJSON_Deletep) cJSON *receipt = cJSON_CreateObject();
                _cleanup_free_ char *code = text_printf("code-%u", i);

                CHECK(json_add_text(json_add_object(json_add_array(receipt, "reasons"), NULL), "code",
                                      code) == 0);
                batch_tally_add(&tally, &(BatchEnd){ .number = 1, .receipt = receipt });
        }
        CHECK_EQ(tally.n_reasons, BATCH_REASONS_MAX);
}

static int make_row(void *context)
{
        BatchEnd end = { .number = 1, .input = "a", .receipt = context, .error = "e", .status = 1 };
        BatchRow row;
        int r = batch_row_make(&end, &row);

        if (r == 0)
                CHECK(row.line && row.record && row.row);
        batch_row_clear(&row);
        return r;
}

TEST(out_of_memory)
{
        _sample_ Sample s;
        _cleanup_(cJSON_Deletep) cJSON *receipt = NULL;

        sample_init(&s);
        sample_exit(&s, 3);
        receipt = sample_receipt(&s);
        CHECK(alloc_fail_each(make_row, receipt) > 0);
}

TEST_MAIN
