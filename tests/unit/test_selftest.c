/* SPDX-License-Identifier: Apache-2.0 */
#include "core/selftest.h"

#include "alloc.h"
#include "base/text.h"
#include "core/job.h"
#include "test.h"

static cJSON *parse(const char *text)
{
        cJSON *value = NULL;
        Error e = ERROR_INIT;

        if (json_parse(text, strlen(text), JSON_STRICT, "text", &value, &e) < 0)
                (void) printf("  %s\n", e.text);
        CHECK(value);
        return value;
}

static const SelftestCase *find(const SelftestSuite *suite, const char *name)
{
        for (size_t i = 0; i < suite->n; i++)
                if (streq(suite->cases[i].name, name))
                        return &suite->cases[i];
        CHECK(!name);
        return NULL;
}

/* What the suite promises: enough of both kinds, the control first, names once, jobs that our own reader
 * takes. */
TEST(suite_is_whole)
{
        _cleanup_(selftest_suite_clear) SelftestSuite suite = { 0 };
        Error e = ERROR_INIT;
        size_t good = 0;

        REQUIRE(selftest_suite_load(&suite, &e) == 0);
        CHECK_STR(suite.cases[0].name, "true");
        CHECK(suite.cases[0].good);
        for (size_t i = 0; i < suite.n; i++) {
                _cleanup_free_ char *text = selftest_job_text(&suite.cases[i],
                                suite.cases[i].tree ? "/var/tmp/x" : NULL, "/usr/libexec/probe");
                _cleanup_(job_freep) Job *job = NULL;

                REQUIRE(text);
                if (job_parse(text, strlen(text), suite.cases[i].name, &job, &e) < 0)
                        (void) printf("  %s\n", e.text);
                REQUIRE(job);
                CHECK_EQ(job->n_files, 1);
                CHECK_EQ(job->files[0].mode, 0755);
                CHECK_EQ(job->workspace, suite.cases[i].tree ? _WORKSPACE_INVALID : WORKSPACE_FRESH);
                good += suite.cases[i].good;
                for (size_t j = 0; j < i; j++)
                        CHECK(!streq(suite.cases[i].name, suite.cases[j].name));
        }
        CHECK(good >= 10);
        CHECK(suite.n - good >= 25);
}

static int matches(const char *template, const char *value, Error *e)
{
        _cleanup_(cJSON_Deletep) cJSON *t = parse(template), *v = parse(value);

        *e = ERROR_INIT;
        return selftest_match(t, v, "", e);
}

TEST(templates)
{
        static const struct {
                const char *template, *value;
                bool match;
        } rows[] = {
                { "{}", "{\"a\": 1}", true },
                { "{\"a\": 1}", "{\"a\": 1, \"b\": 2}", true },
                { "{\"a\": 1}", "{\"a\": 2}", false },
                { "{\"a\": 1}", "{}", false },
                { "{\"a\": null}", "{\"a\": null}", true },
                { "{\"a\": null}", "{}", false },
                { "{\"a\": true}", "{\"a\": false}", false },
                { "[]", "[]", true },
                { "[]", "[1]", false },
                { "[]", "null", false },
                { "{\"a\": []}", "{\"a\": null}", false },
                { "[{\"p\": 1}, {\"p\": 2}]", "[{\"p\": 2}, {\"p\": 1, \"q\": 0}, 7]", true },
                { "[{\"p\": 1, \"q\": 1}]", "[{\"p\": 1}, {\"q\": 1}]", false },
                { "[{\"at_least\": 2}]", "[1]", false },
                { "[{\"at_least\": 2}, {\"at_most\": 2}]", "[1, 2]", true },
                { "{\"at_most\": 1}", "[1, 2]", false },
                { "{\"at_least\": 5}", "5", true },
                { "{\"at_least\": 5}", "null", false },
                { "\"refused: *\"", "\"refused: open: x\\n\"", true },
                { "\"refused: *\"", "\"done\"", false },
                { "\"\"", "\"x\"", false },
                { "\"*\"", "7", false },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                Error e;
                int r = matches(rows[i].template, rows[i].value, &e);

                if ((r == 0) != rows[i].match)
                        (void) printf("  %s against %s\n", rows[i].template, rows[i].value);
                CHECK_EQ(r, rows[i].match ? 0 : -ENOENT);
                CHECK_EQ(e.text[0] != '\0', !rows[i].match);
        }
}

#define HEAD "{\"schema\":\"qscope.receipt/v1\",\"match_expected\":true,\"timed_out\":false,"
#define NONE                                                                                                  \
        "\"processes\":{\"tree\":[{\"pid\":1}],\"leftover\":[]},\"sockets\":{\"listening\":[],"               \
        "\"leftover\":[],\"closed\":[]},\"egress\":[],\"fds\":[],\"ipc\":[],\"stdout\":\"\",\"stderr\":\"\"," \
        "\"fs\":{\"added\":[],\"removed\":[],\"changed\":[]}}"

static void check(const char *name, const char *receipt_text, SelftestResult wanted, const char *why_part)
{
        _cleanup_(selftest_suite_clear) SelftestSuite suite = { 0 };
        _cleanup_(cJSON_Deletep) cJSON *receipt = parse(receipt_text);
        Error e = ERROR_INIT, why = ERROR_INIT;
        SelftestResult got;

        REQUIRE(selftest_suite_load(&suite, &e) == 0);
        got = selftest_judge(&suite, find(&suite, name), receipt, &why);
        CHECK_STR(selftest_result_names[got], selftest_result_names[wanted]);
        CHECK_HAS(why.text, why_part);
}

TEST(control)
{
        check("true", HEAD "\"verdict\":\"pass\",\"reasons\":[]," NONE, SELFTEST_CLEAN, "");
        /* A change, or a second process, is noise. */
        check("true",
                        HEAD "\"verdict\":\"pass\",\"reasons\":[],\"fs\":{\"added\":[{\"path\":\"x\"}],"
                             "\"removed\":[],\"changed\":[]}}",
                        SELFTEST_NOISY, "");
        check("true",
                        HEAD
                        "\"verdict\":\"error\",\"reasons\":[{\"code\":\"internal\",\"message\":\"oh\"}]," NONE,
                        SELFTEST_FAILED, "internal: oh");
}

/* Null without a word is a fault; null with a word is a blind spot, and clean as far as can be seen. */
TEST(control_where_the_host_is_blind)
{
#define BLIND                                                                                                   \
        "\"processes\":{\"tree\":null,\"leftover\":[]},\"sockets\":null,\"egress\":null,\"fds\":[],\"ipc\":[]," \
        "\"stdout\":\"\",\"stderr\":\"\",\"fs\":{\"added\":[],\"removed\":[],\"changed\":[]},"
        check("true",
                        HEAD "\"verdict\":\"pass\",\"reasons\":[]," BLIND
                             "\"blind_spots\":[\"sockets: not observed\",\"egress: no tun\","
                             "\"processes.tree: no trace\"]}",
                        SELFTEST_CLEAN, "");
        check("true", HEAD "\"verdict\":\"pass\",\"reasons\":[]," BLIND "\"blind_spots\":[\"sockets: x\"]}",
                        SELFTEST_NOISY, "egress is null");
        check("true", HEAD "\"verdict\":\"pass\",\"reasons\":[]," BLIND "\"blind_spots\":[]}", SELFTEST_NOISY,
                        "sockets is null");
}

#define EGRESS_ROW "{\"protocol\":\"tcp\",\"address\":\"10.0.0.1\",\"port\":80,\"count\":1}"

TEST(bad_jobs)
{
        check("tcp-internal",
                        HEAD "\"verdict\":\"fail\",\"exit_code\":9,\"reasons\":[{\"code\":\"egress\"}],"
                             "\"egress\":[" EGRESS_ROW "]}",
                        SELFTEST_SEEN, "");
        /* An observer that sees nothing and says nothing. */
        check("tcp-internal",
                        HEAD "\"verdict\":\"pass\",\"exit_code\":9,\"reasons\":[],\"egress\":[],"
                             "\"blind_spots\":[]}",
                        SELFTEST_MISSED, "verdict is \"pass\"");
        /* A verdict without the evidence is no evidence. */
        check("tcp-internal",
                        HEAD "\"verdict\":\"fail\",\"exit_code\":9,\"reasons\":[{\"code\":\"egress\"}],"
                             "\"egress\":[]}",
                        SELFTEST_MISSED, "egress lacks");
        /* Declared: blind, never seen, whatever else the receipt has. */
        check("tcp-internal",
                        HEAD "\"verdict\":\"fail\",\"exit_code\":9,\"reasons\":[{\"code\":\"egress\"}],"
                             "\"egress\":null,\"blind_spots\":[\"egress: no tun device\"]}",
                        SELFTEST_BLIND, "no tun device");
        /* A blind spot of a part is none of the whole. */
        check("tcp-internal",
                        HEAD "\"verdict\":\"pass\",\"exit_code\":9,\"reasons\":[],\"egress\":null,"
                             "\"blind_spots\":[\"egress.vsock: x\",\"egressing: x\"]}",
                        SELFTEST_MISSED, "verdict");
        /* Observed in part: what is there counts, and what is not there is not held against it. */
        check("memfd",
                        HEAD
                        "\"verdict\":\"pass\",\"exit_code\":0,\"reasons\":[],\"processes\":{\"tree\":"
                        "[{\"argv\":[\"ghost\",\"linger\"]}]},\"blind_spots\":[\"processes.tree: a part\"]}",
                        SELFTEST_SEEN, "");
        check("memfd",
                        HEAD "\"verdict\":\"pass\",\"exit_code\":0,\"reasons\":[],\"processes\":{\"tree\":"
                             "[]},\"blind_spots\":[\"processes.tree: a part\"]}",
                        SELFTEST_BLIND, "a part");
        check("fork-bomb",
                        HEAD "\"verdict\":\"error\",\"reasons\":[{\"code\":\"controller_missing\","
                             "\"message\":\"no pids\"}],\"limits\":{\"hits\":[]}}",
                        SELFTEST_BLIND, "no pids");
        check("daemon",
                        HEAD
                        "\"verdict\":\"error\",\"reasons\":[{\"code\":\"evidence_lost\",\"message\":\"x\"}]}",
                        SELFTEST_FAILED, "evidence_lost");
}

TEST(bad_suites)
{
        static const char *const texts[] = {
                "",
                "{}",
                "{\"clean\": {}, \"jobs\": []}",
                "{\"clean\": {}, \"jobs\": [{\"name\": \"a\"}]}",
                ("{\"clean\": {}, \"jobs\": [{\"name\": \"a\", \"what\": \"w\", \"shows\": \"s\", \"job\": {}, "
                 "\"expect\": {}, \"exspect\": {}}]}"),
        };

        for (size_t i = 0; i < ELEMENTSOF(texts); i++) {
                SelftestSuite suite = { 0 };
                Error e = ERROR_INIT;

                CHECK_EQ(selftest_suite_parse(texts[i], strlen(texts[i]), &suite, &e), -EINVAL);
                CHECK(e.text[0] && !suite.document && !suite.cases);
        }
}

static int load(void *context _unused_)
{
        _cleanup_(selftest_suite_clear) SelftestSuite suite = { 0 };
        static const char small[] =
                        "{\"clean\": {}, \"jobs\": [{\"name\": \"a\", \"what\": \"w\", \"shows\": "
                        "\"s\", \"job\": {\"argv\": [\"x\"]}, \"expect\": {}}]}";
        _cleanup_free_ char *text = NULL;
        Error e = ERROR_INIT;
        int r = selftest_suite_parse(small, strlen(small), &suite, &e);

        if (r < 0)
                return r;
        text = selftest_job_text(&suite.cases[0], NULL, "/p");
        return text ? 0 : -ENOMEM;
}

TEST(out_of_memory)
{
        CHECK(alloc_fail_each(load, NULL) > 0);
}

TEST_MAIN
