/* SPDX-License-Identifier: Apache-2.0 */
#include "core/suite.h"

#include "core/eval.h"
#include "test.h"

static const char good[] =
                "// written first\n"
                "{\"schema\": \"qscope.suite/v1\", \"name\": \"Sort it!\", \"repeats\": 3,\n"
                " \"defaults\": {\"timeout_sec\": 5, \"limits\": {\"memory\": \"64M\", \"tasks\": 8},\n"
                "  \"files\": [{\"path\": \"common\", \"content\": \"c\"}]},\n"
                " \"cases\": [\n"
                "  {\"name\": \"a\", \"input\": [2, 1], \"output\": [1, 2]},\n"
                "  {\"name\": \"b\", \"input\": [2, 1], \"unchanged\": true, \"limits\": {\"memory\": \"32M\"}},\n"
                "  {\"name\": \"c\", \"input\": 1, \"output\": 2, \"unchanged\": true},\n"
                "  {\"name\": \"d\", \"args\": [\"-x\"], \"stdin\": \"in\", \"timeout_sec\": 1,\n"
                "   \"files\": [{\"path\": \"mine\", \"content\": \"m\"}],\n"
                "   \"expect\": {\"stdout\": {\"equals\": \"out\"}}}\n"
                " ]}";

static Suite *parse(const char *text, Error *e)
{
        Suite *suite = NULL;

        *e = ERROR_INIT;
        return suite_parse(text, strlen(text), "s.json", &suite, e) == 0 ? suite : NULL;
}

static Harness *harness(void)
{
        static const char text[] =
                        "{\"name\": \"py\", \"extensions\": [\".py\"], \"candidate\": \"candidate.py\","
                        " \"program\": [\"py\", \"candidate.py\"], \"function\": [\"py\", \"h.py\"],"
                        " \"files\": [\"h.py\"]}";
        Harness *ret = NULL;
        Error e = ERROR_INIT;

        CHECK_EQ(harness_parse(text, strlen(text), "h.json", &ret, &e), 0);
        return ret;
}

static Job *make(const Suite *suite, size_t number, const SuiteFiles *candidate, Error *e)
{
        _cleanup_(harness_freep) Harness *h = harness();
        SuiteFiles files = { 0 };
        SuiteRun run = { .suite = suite,
                .harness = h,
                .harness_files = &files,
                .candidate = "tries/one\n.py",
                .candidate_files = candidate,
                .number = number,
                .repeat = 2 };
        Job *job = NULL;

        *e = ERROR_INIT;
        CHECK_EQ(suite_files_add(&files, "h.py", 0644, "h", 1), 0);
        CHECK_EQ(suite_files_finish(&files), 0);
        (void) suite_make_job(&run, &job, e);
        suite_files_clear(&files);
        return job;
}

static void check_json(const cJSON *item, const char *wanted)
{
        _cleanup_free_ char *text = json_print_canonical(item);

        CHECK_STR(text, wanted);
}

TEST(jobs_of_functions)
{
        static const struct {
                size_t number;
                const char *mode, *json;
        } rows[] = { { 0, "output", "{\"output\":[1,2]}" }, { 1, "input", "{\"input\":[2,1]}" },
                { 2, "both", "{\"input\":1,\"output\":2}" } };
        Error e = ERROR_INIT;
        _cleanup_(suite_freep) Suite *suite = parse(good, &e);
        SuiteFiles candidate = { 0 };

        CHECK(suite && suite->n_cases == 4 && suite->repeats == 3);
        CHECK_STR(suite->policy, "eval");
        CHECK_EQ(suite_files_add(&candidate, "candidate.py", 0644, "def", 3), 0);
        CHECK_EQ(suite_files_finish(&candidate), 0);
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(job_freep) Job *job = make(suite, rows[i].number, &candidate, &e);

                CHECK(job != NULL);
                CHECK_STR(job->argv[0], "py");
                CHECK_STR(job->argv[1], "h.py");
                CHECK_STR(job->argv[2], rows[i].mode);
                check_json(job->expect.out.json, rows[i].json);
                CHECK_EQ(job->n_files, 3u);
                CHECK_STR(job->files[1].path, "h.py");
                CHECK_STR(job->files[2].path, "candidate.py");
                CHECK_EQ(job->timeout_usec, 5 * USEC_PER_SEC);
                CHECK_EQ(job->limits.value[LIMIT_TASKS], 8u);
                CHECK_EQ(job->limits.value[LIMIT_MEMORY], MIB(rows[i].number == 1 ? 32 : 64));
        }
        suite_files_clear(&candidate);
}

TEST(jobs_of_programs)
{
        Error e = ERROR_INIT;
        _cleanup_(suite_freep) Suite *suite = parse(good, &e);
        SuiteFiles none = { 0 };
        _cleanup_(job_freep) Job *job = make(suite, 3, &none, &e);

        CHECK(job != NULL);
        CHECK_STR(job->job_id, "eval.Sort-it-.tries-one-.py.4.2");
        CHECK_STR(job->argv[1], "candidate.py");
        CHECK_STR(job->argv[2], "-x");
        CHECK(job->argv[3] == NULL);
        CHECK_STR((char *) job->stdin_input.data, "in");
        CHECK_STR(job->expect.out.equals, "out");
        CHECK_EQ(job->timeout_usec, USEC_PER_SEC);
        CHECK_EQ(job->n_files, 3u); /* mine, common, h.py */
}

/* Another candidate, case or repeat is another job, for --resume. */
TEST(jobs_differ)
{
        Error e = ERROR_INIT;
        _cleanup_(suite_freep) Suite *suite = parse(good, &e);
        SuiteFiles one = { 0 }, two = { 0 };
        _cleanup_(job_freep) Job *a = NULL, *b = NULL, *c = NULL;

        CHECK_EQ(suite_files_add(&one, "candidate.py", 0644, "1", 1), 0);
        CHECK_EQ(suite_files_add(&two, "candidate.py", 0644, "2", 1), 0);
        CHECK(suite_files_finish(&one) == 0 && suite_files_finish(&two) == 0);
        a = make(suite, 0, &one, &e);
        b = make(suite, 0, &two, &e);
        c = make(suite, 0, &one, &e);
        CHECK(a && b && c && !streq(a->sha256, b->sha256) && streq(a->sha256, c->sha256));
        suite_files_clear(&one);
        suite_files_clear(&two);
}

TEST(a_candidate_cannot_replace_the_harness)
{
        Error e = ERROR_INIT;
        _cleanup_(suite_freep) Suite *suite = parse(good, &e);
        SuiteFiles candidate = { 0 };
        Job *job;

        CHECK_EQ(suite_files_add(&candidate, "h.py", 0644, "x", 1), 0);
        CHECK_EQ(suite_files_finish(&candidate), 0);
        job = make(suite, 0, &candidate, &e);
        CHECK(job == NULL);
        CHECK_HAS(e.text, "the candidate has a file \"h.py\"");
        suite_files_clear(&candidate);
}

TEST(bad_suites)
{
        static const struct {
                const char *text, *sentence;
        } rows[] = {
                { "{}", "name is missing" },
                { "{\"name\": \"n\"}", "cases is missing" },
                { "{\"name\": \"n\", \"cases\": []}", "suite.cases: has 0 cases" },
                { "{\"name\": \"n\", \"cases\": [{\"input\": 1, \"output\": 1}]}",
                                "suite.cases[0]: name is missing" },
                { "{\"name\": \"n\", \"cases\": [{\"name\": \"c\", \"input\": 1}]}", "asks nothing" },
                { "{\"name\": \"n\", \"cases\": [{\"name\": \"c\", \"output\": 1}]}", "there is no input" },
                { "{\"name\": \"n\", \"cases\": [{\"name\": \"c\", \"input\": 1, \"output\": 1, \"stdin\": \"x\"}]}",
                                "keep one kind" },
                { "{\"name\": \"n\", \"cases\": [{\"name\": \"c\", \"argv\": [\"x\"]}]}", "argv" },
                { "{\"name\": \"n\", \"cases\": [{\"name\": \"c\", \"stdn\": \"x\"}]}",
                                "did you mean \"stdin\"" },
                { "{\"name\": \"n\", \"defaults\": {\"qqqqq\": 1}, \"cases\": [{\"name\": \"c\"}]}",
                                "suite.defaults.qqqqq: unknown key; known here: stdin stdin_base64 files" },
                { "{\"name\": \"n\", \"cases\": [{\"name\": \"c\"}, {\"name\": \"c\"}]}",
                                "two cases are named \"c\"" },
                { "{\"name\": \"n\", \"cases\": [{\"name\": \"c\", \"timeout_sec\": -1}]}",
                                "s.json: case \"c\": job.timeout_sec" },
                { "{\"name\": \"n\", \"policy\": \"../x\", \"cases\": [{\"name\": \"c\"}]}", "never a path" },
                { "{\"name\": \"n\", \"repeats\": 0, \"cases\": [{\"name\": \"c\"}]}", "suite.repeats" },
                { "{\"schema\": \"qscope.job/v1\", \"name\": \"n\", \"cases\": [{\"name\": \"c\"}]}",
                                "qscope.suite/v1" },
                { "{\"name\": \"n\", \"cases\": [{\"name\": \"c\", \"input\": 1, \"expect\": {\"stdout\": {\"equals\": "
                  "\"x\"}}}]}",
                                "expect.stdout cannot be judged" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                Error e;
                _cleanup_(suite_freep) Suite *suite = parse(rows[i].text, &e);

                CHECK(suite == NULL);
                CHECK_HAS(e.text, rows[i].sentence);
        }
}

TEST(bad_harnesses)
{
        static const char *const texts[] = {
                "{\"name\": \"n\", \"candidate\": \"c\"}",
                "{\"name\": \"n\", \"program\": [\"x\"]}",
                "{\"name\": \"n\", \"candidate\": \"a/c\", \"program\": [\"x\"]}",
                "{\"name\": \"n\", \"candidate\": \"c\", \"program\": []}",
                "{\"name\": \"n\", \"candidate\": \"c\", \"program\": [\"x\"], \"files\": [\"../x\"]}",
                "{\"name\": \"n\", \"candidate\": \"c\", \"program\": [\"x\"], \"files\": [\"c\"]}",
        };

        for (size_t i = 0; i < ELEMENTSOF(texts); i++) {
                Harness *h = NULL;
                Error e = ERROR_INIT;

                CHECK_EQ(harness_parse(texts[i], strlen(texts[i]), "h.json", &h, &e), -EINVAL);
                CHECK_HAS(e.text, "h.json: ");
        }
}

/* --- results --- */

TEST(pass_at_k)
{
        CHECK(eval_pass_at_k(1, 0, 1) == 0 && eval_pass_at_k(1, 1, 1) == 1);
        CHECK(eval_pass_at_k(5, 0, 5) == 0 && eval_pass_at_k(5, 1, 5) == 1);
        CHECK(eval_pass_at_k(10, 3, 1) > 0.2999 && eval_pass_at_k(10, 3, 1) < 0.3001);
        /* 1 - C(7,2)/C(10,2) */
        CHECK(eval_pass_at_k(10, 3, 2) > 0.5333 && eval_pass_at_k(10, 3, 2) < 0.5334);
}

static cJSON *receipt(const char *verdict, const char *code)
{
        cJSON *r = cJSON_CreateObject(), *reasons = json_add_array(r, "reasons"), *reason;

        CHECK_EQ(json_add_text(r, "verdict", verdict), 0);
        CHECK_EQ(json_add_u64(r, "duration_ms", 7), 0);
        if (code) {
                reason = json_add_object(reasons, NULL);
                CHECK(json_add_text(reason, "code", code) == 0 &&
                                json_add_text(reason, "message", "\x1b[31m") == 0);
        }
        return r;
}

static EvalTable *table(const Suite *suite, const EvalCandidate *candidates)
{
        EvalTable *t = NULL;
        Error e = ERROR_INIT;

        CHECK_EQ(eval_new(suite, candidates, 2, 3, &t, &e), 0);
        return t;
}

static void add(EvalTable *t, uint64_t number, const char *verdict, const char *code)
{
        cJSON *r = receipt(verdict, code);

        CHECK_EQ(eval_add(t, number, r, "/r.json", NULL), 0);
        cJSON_Delete(r);
}

/* In whatever order runs end, the result is the same; a changed one is another. */
TEST(order_does_not_matter)
{
        static const EvalCandidate candidates[] = { { "a", "1", "py" }, { "b", "2", "py" } };
        Error e = ERROR_INIT;
        _cleanup_(suite_freep) Suite *suite = parse(good, &e);
        _cleanup_(eval_freep) EvalTable *forward = table(suite, candidates),
                                        *backward = table(suite, candidates),
                                        *other = table(suite, candidates);
        char a[HASH_HEX_MAX], b[HASH_HEX_MAX], c[HASH_HEX_MAX];
        uint64_t n = eval_runs(forward);

        CHECK_EQ(n, 24u);
        for (uint64_t i = 0; i < n; i++) {
                bool bad = i % 7 == 0;

                add(forward, i, bad ? "fail" : "pass", bad ? "expected_exit" : NULL);
                add(other, i, bad ? "fail" : "pass", bad ? "timed_out" : NULL);
        }
        for (uint64_t i = n; i-- > 0;)
                add(backward, i, i % 7 == 0 ? "fail" : "pass", i % 7 == 0 ? "expected_exit" : NULL);
        eval_digest(forward, a);
        eval_digest(backward, b);
        eval_digest(other, c);
        CHECK_STR(a, b);
        CHECK(!streq(a, c));
}

/* The table, then the records of CSV. */
static char *print_all(const EvalTable *t)
{
        TextStream stream;
        FILE *out = text_stream_open(&stream);

        if (out)
                eval_print(t, out);
        return text_stream_close(&stream, out ? eval_write_csv(t, out) : -1);
}

TEST(what_is_printed)
{
        static const EvalCandidate candidates[] = { { "a\x1b[2J", "1", "py" }, { "b", "2", "py" } };
        Error e = ERROR_INIT;
        _cleanup_(suite_freep) Suite *suite = parse(good, &e);
        _cleanup_(eval_freep) EvalTable *t = table(suite, candidates);
        _cleanup_(cJSON_Deletep) cJSON *document = NULL;
        _cleanup_free_ char *text = NULL;
        const cJSON *first;

        for (uint64_t i = 0; i < eval_runs(t); i++)
                add(t, i, i == 1 ? "fail" : "pass", i == 1 ? "expected_exit" : NULL);
        text = print_all(t);
        REQUIRE(text);
        CHECK(!strchr(text, '\x1b'));
        CHECK_HAS(text, "a\\x1b[2J: 3 of 4 cases pass, 1 differs from run to run");
        CHECK_HAS(text, "SOME  a");
        CHECK_HAS(text, "2/3");
        CHECK_HAS(text, "pass@1 0.500  pass@2 1.000  (1 of 2 candidates pass every case)");
        CHECK_HAS(text, "\"b\",\"d\",true,3,3,false,false,7,,");
        document = eval_to_json(t);
        first = json_get(json_get(document, "candidates")->child, "results")->child;
        CHECK(cJSON_IsTrue(json_get(first, "flaky")));
        CHECK_STR(json_get(first, "reason")->valuestring, "expected_exit");
}

/* What the host could not run, or was interrupted, is held against nobody. */
TEST(runs_without_a_verdict)
{
        static const EvalCandidate candidates[] = { { "a", "1", "py" }, { "b", "2", "py" } };
        Error e = ERROR_INIT;
        _cleanup_(suite_freep) Suite *suite = parse(good, &e);
        _cleanup_(eval_freep) EvalTable *t = table(suite, candidates);
        _cleanup_(cJSON_Deletep) cJSON *document = NULL;
        _cleanup_free_ char *text = NULL;
        const cJSON *first;

        add(t, 0, "pass", NULL);
        add(t, 1, "error", "controller_missing");
        CHECK_EQ(eval_add(t, 2, NULL, NULL, "there is no such policy"), 0);
        for (uint64_t i = 12; i < 24; i++)
                add(t, i, i == 13 ? "aborted" : i == 14 ? "fail" : "pass", i == 14 ? "exit_code" : NULL);
        text = print_all(t);
        REQUIRE(text);
        CHECK_HAS(text, "-     a  ");
        CHECK_HAS(text, "a: 0 of 4 cases pass, 4 cannot be told\n");
        CHECK_HAS(text, "b: 3 of 4 cases pass, 1 differs from run to run\n");
        CHECK_HAS(text, "1/3 (2 without a verdict)");
        CHECK_HAS(text, "0/3 (3 without a verdict)");
        CHECK_HAS(text, "pass@1 0.000  (0 of 1 candidate passes every case, 1 cannot be told)");
        CHECK_HAS(text, "\"a\",\"b\",,0,0,false,false,,,");
        document = eval_to_json(t);
        first = json_get(document, "candidates")->child;
        CHECK(cJSON_IsNull(json_get(first, "pass")));
        first = json_get(first, "results")->child;
        CHECK(cJSON_IsNull(json_get(first, "pass")) && cJSON_IsFalse(json_get(first, "flaky")));
        CHECK_EQ((long long) json_get(first, "judged")->valuedouble, 1);
        CHECK_STR(json_get(first, "receipt")->valuestring, "/r.json");
        CHECK(cJSON_IsNull(json_get(first->next, "pass_at_k")));
}

TEST_MAIN
