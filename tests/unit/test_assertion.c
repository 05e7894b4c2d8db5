/* SPDX-License-Identifier: Apache-2.0 */
#include "core/assertion.h"

#include "sample.h"
#include "test.h"

/* Judges; returns the only message under code, "" when everything holds. */
static const char *judge_one(const Sample *s, const char *code)
{
        static char message[1200];
        ReasonList reasons = { 0 };

        CHECK(assertions_judge(&s->job.expect, s->outcome, &reasons) == 0);
        CHECK(reasons.n <= 1);
        *message = '\0';
        if (reasons.n == 1) {
                CHECK(streq(reasons.items[0].code, code));
                CHECK(strlen(reasons.items[0].message) < sizeof(message));
                strcpy(message, reasons.items[0].message);
        }
        reason_list_clear(&reasons);
        return message;
}

static void assert_says(const char *message, const char *part)
{
        if (!strstr(message, part))
                fprintf(stderr, "\"%s\" does not say \"%s\"\n", message, part);
        CHECK(*part ? strstr(message, part) != NULL : *message == '\0');
}

TEST(streams)
{
        static const struct {
                const char *output;
                ExpectStream expect;
                const char *says; /* "": holds */
        } rows[] = {
                { "ok\n", { .equals = (char *) "ok\n" }, "" },
                { "", { .equals = (char *) "" }, "" },
                { "ok", { .equals = (char *) "ok\n" }, "from line 1 on" },
                { "a\nb\nc\n", { .equals = (char *) "a\nB\nc\n" },
                                "from line 2 on: \"b\\nc\\n\" instead of \"B\\nc\\n\"" },
                { "a\n", { .equals = (char *) "" }, "\"a\\n\" instead of \"\"" },
                { "\033[31mred", { .equals = (char *) "red" }, "\"\\x1b[31mred\"" },
                { "one two", { .contains = (char *) "two" }, "" },
                { "one two", { .contains = (char *) "three" }, "does not contain \"three\"" },
                { "", { .contains = (char *) "" }, "" },
                { "version 3.11.2\n", { .matches = (char *) "^version 3\\.\\d+" }, "" },
                { "version 2", { .matches = (char *) "^version 3" }, "does not match /^version 3/" },
                { "x", { .matches = (char *) "(" }, "takes more work to find out" },
                { "x",
                                { .sha256 = (char *) "2D711642B726B04401627CA9FBAC32F5C8530FB1903CC4DB"
                                                     "02258717921A4881" },
                                "" },
                { "y",
                                { .sha256 = (char *) "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db"
                                                     "02258717921a4881" },
                                "has SHA-256 a1fce436" },
                { "one", { .equals = (char *) "one", .contains = (char *) "n", .matches = (char *) "e$" },
                                "" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _sample_ Sample s;

                sample_init(&s);
                sample_text(&s.outcome->out, rows[i].output);
                s.job.expect.out = rows[i].expect;
                assert_says(judge_one(&s, "expect_stdout"), rows[i].says);
                s.job.expect.out = (ExpectStream){ 0 };
                sample_text(&s.outcome->err, rows[i].output);
                s.job.expect.err = rows[i].expect;
                assert_says(judge_one(&s, "expect_stderr"), rows[i].says);
        }
}

TEST(json)
{
        static const struct {
                const char *output, *expected, *says;
        } rows[] = {
                { " [1, 2, 3]\n", "[1,2,3]", "" },
                { "{\"a\": 1.0, \"b\": null}", "{\"b\":null,\"a\":1}", "" },
                { "{\"A\": 1}", "{\"a\":1}", "another value than expected, at a: nothing instead of 1" },
                { "{\"a\": 1, \"b\": 2}", "{\"a\":1}", "expected, at b: 2 instead of nothing" },
                { "[2, 1]", "[1,2]", "expected, at [0]: 2 instead of 1" },
                { "[1]", "[1,2]", "expected, at [1]: nothing instead of 2" },
                { "[1, 2, [3]]", "[1, 2]", "expected, at [2]: [3] instead of nothing" },
                { "{\"a\": [1, {\"b\": null}]}", "{\"a\":[1, {\"b\":\"x\"}]}",
                                "expected, at a[1].b: null instead of \"x\"" },
                { "[[]]", "[{}]", "expected, at [0]: [] instead of {}" },
                { "{\"\\u001b[2J\": 1}", "{}", "expected, at \\x1b[2J: 1 instead of nothing" },
                { "true", "1", "expected: true instead of 1" },
                { "[1, 2", "[1,2]", "stdout is not JSON" },
                { "", "[]", "stdout is not JSON" },
                { "[1] [1]", "[1]", "stdout is not JSON" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _sample_ Sample s;

                sample_init(&s);
                sample_text(&s.outcome->out, rows[i].output);
                s.job.expect.out.json = cJSON_Parse(rows[i].expected);
                CHECK(s.job.expect.out.json);
                assert_says(judge_one(&s, "expect_stdout"), rows[i].says);
        }
}

/* Output of which only the ends are kept: what needs all of it does not hold, what has the digest can. */
TEST(output_not_kept)
{
        _sample_ Sample s;
        char zeros[1001];

        sample_init(&s);
        memset(zeros, '0', 1000);
        zeros[1000] = '\0';
        sample_stream(&s.outcome->out, zeros, 1000, 10, 10);
        s.job.expect.out = (ExpectStream){ .contains = (char *) "0" };
        assert_says(judge_one(&s, "expect_stdout"),
                        "stdout.contains could not be decided: the output was 1000 bytes, larger");
        s.job.expect.out = (ExpectStream){ .matches = (char *) "0" };
        assert_says(judge_one(&s, "expect_stdout"), "stdout.matches could not be decided");
        s.job.expect.out = (ExpectStream){ .json = cJSON_CreateTrue() };
        assert_says(judge_one(&s, "expect_stdout"), "stdout.json could not be decided");
        cJSON_Delete(s.job.expect.out.json);
        s.job.expect.out = (ExpectStream){ .equals = zeros };
        assert_says(judge_one(&s, "expect_stdout"), "");
        zeros[500] = '1';
        assert_says(judge_one(&s, "expect_stdout"), "1000 bytes instead of 1000");
        s.outcome->out.whole = (uint8_t *) strdup(zeros); /* kept for the expectation */
        assert_says(judge_one(&s, "expect_stdout"), "");
        s.job.expect.out = (ExpectStream){ .contains = (char *) "010" };
        assert_says(judge_one(&s, "expect_stdout"), "");
}

TEST(head_and_tail_are_one)
{
        _sample_ Sample s;

        sample_init(&s);
        sample_stream(&s.outcome->out, "hello world", 11, 7, 100);
        s.job.expect.out = (ExpectStream){ .contains = (char *) "o wor", .equals = (char *) "hello world" };
        assert_says(judge_one(&s, "expect_stdout"), "");
}

TEST(output_never_read)
{
        _sample_ Sample s;

        sample_init(&s);
        free(s.outcome->out.head);
        free(s.outcome->out.tail);
        s.outcome->out = (StreamRecord){ .utf8 = true };
        s.job.expect.out = (ExpectStream){
                .equals = (char *) "",
                .sha256 = (char *) "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        };
        assert_says(judge_one(&s, "expect_stdout"), "");
}

#define SUM "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"

TEST(files)
{
        static const struct {
                ExpectFile expect;
                struct ExpectedFile file;
                const char *says;
        } rows[] = {
                { { .exists = 1 }, { .exists = true, .equals = -1 }, "" },
                { { .exists = 1 }, { .equals = -1 }, "a\\nb does not exist" },
                { { .exists = 0 }, { .equals = -1 }, "" },
                { { .exists = 0 }, { .exists = true, .equals = -1 }, "exists and should not" },
                { { .exists = -1, .equals = (char *) "x" }, { .exists = true, .equals = 1 }, "" },
                { { .exists = -1, .equals = (char *) "x" }, { .exists = true, .equals = 0 },
                                "is not as expected" },
                { { .exists = -1, .equals = (char *) "x" }, { .exists = true, .equals = -1 },
                                "could not be compared" },
                { { .exists = -1, .equals = (char *) "x" }, { .equals = -1 }, "does not exist" },
                { { .exists = -1, .sha256 = (char *) SUM }, { .exists = true, .sha256 = SUM, .equals = -1 },
                                "" },
                { { .exists = -1, .sha256 = (char *) SUM }, { .exists = true, .sha256 = "00", .equals = -1 },
                                "has SHA-256 00" },
                { { .exists = -1, .sha256 = (char *) SUM }, { .exists = true, .equals = -1 },
                                "(not computed)" },
                { { .exists = -1 }, { .equals = -1 }, "" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _sample_ Sample s;
                ExpectFile expect = rows[i].expect;
                struct ExpectedFile file = rows[i].file;

                sample_init(&s);
                expect.path = (char *) "a\nb";
                s.job.expect.files = &expect;
                s.job.expect.n_files = 1;
                s.outcome->expected_files = &file;
                s.outcome->n_expected_files = 1;
                assert_says(judge_one(&s, "expect_file"), rows[i].says);
                s.outcome->n_expected_files = 0;
                assert_says(judge_one(&s, "expect_file"), "was not looked at");
                s.outcome->expected_files = NULL;
        }
}

TEST(duration)
{
        _sample_ Sample s;

        sample_init(&s);
        s.job.expect.max_duration_usec = s.outcome->duration_usec;
        assert_says(judge_one(&s, "expect_duration"), "");
        s.job.expect.max_duration_usec--;
        assert_says(judge_one(&s, "expect_duration"), "it took 1234.567 ms, at most 1234.566 ms expected");
        s.outcome->duration_usec = UNKNOWN;
        assert_says(judge_one(&s, "expect_duration"), "is not known");
}

TEST_MAIN
