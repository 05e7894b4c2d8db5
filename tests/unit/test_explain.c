/* SPDX-License-Identifier: Apache-2.0 */
#include "core/explain.h"

#include "alloc.h"
#include "corpus.h"
#include "files.h"
#include "test.h"

static cJSON *read_receipt(const char *file)
{
        _cleanup_free_ char *text = NULL;
        cJSON *receipt = NULL;
        Error e = ERROR_INIT;
        size_t size;

        text = read_test_file(test_path(file), &size);
        CHECK(text);
        CHECK_EQ(text ? receipt_parse(text, size, file, &receipt, &e) : -ENOENT, 0);
        return receipt;
}

static char *explained(const char *file)
{
        _cleanup_(cJSON_Deletep) cJSON *receipt = read_receipt(file), *explanation = NULL;

        explanation = receipt ? explain(receipt) : NULL;
        return explanation ? explanation_text(explanation, false) : NULL;
}

static void compare_golden(const char *receipt, const char *name)
{
        _cleanup_free_ char *text = explained(receipt), *golden = NULL;
        char file[64];
        size_t size;

        (void) snprintf(file, sizeof(file), "golden/explain/%s.txt", name);
        REQUIRE(text);
        if (getenv("QSCOPE_UPDATE_GOLDEN"))
                CHECK_EQ(write_test_file(test_path(file), text), 0);
        golden = read_test_file(test_path(file), &size);
        if (!streq_ptr(golden, text))
                fprintf(stderr, "%s differs (QSCOPE_UPDATE_GOLDEN=1 writes it anew):\n%s", file, text);
        CHECK(streq_ptr(golden, text));
}

TEST(golden)
{
        static const char *const receipts[] = { "pass", "not-found", "many-causes" };
        static const char *const corpus[] = { "busy", "hostile", "unknown-code", "odd-types", "nulls" };
        char file[64];

        for (size_t i = 0; i < ELEMENTSOF(receipts); i++) {
                (void) snprintf(file, sizeof(file), "golden/receipt/%s.json", receipts[i]);
                compare_golden(file, receipts[i]);
        }
        for (size_t i = 0; i < ELEMENTSOF(corpus); i++) {
                (void) snprintf(file, sizeof(file), "corpus/receipt/good/%s.json", corpus[i]);
                compare_golden(file, corpus[i]);
        }
}

/* Every byte of a job goes through the escaping, in the text and in its document. */
TEST(nothing_reaches_the_terminal)
{
        _cleanup_free_ char *text = explained("corpus/receipt/good/hostile.json");

        REQUIRE(text);
        for (const char *p = text; *p; p++)
                CHECK((unsigned char) *p >= 0x20 || *p == '\n');
        CHECK(!strstr(text, "\xc2\x9b"));     /* the eight-bit CSI */
        CHECK(!strstr(text, "\xe2\x80\xae")); /* right-to-left override */
        CHECK(!strstr(text, "\nPASS"));
        CHECK_HAS(text, "\\x1b[2J");
}

TEST(several_reasons_at_once)
{
        _cleanup_free_ char *text = explained("corpus/receipt/good/busy.json");

        CHECK_HAS(text, "exit_code: exit code 2, expected 0");
        CHECK_HAS(text, "leftover_process: 1 process");
        /* The receipt has no next step of its own for this one: the table has. */
        CHECK_HAS(text, "wait for its children");
}

TEST(document_for_tools)
{
        _cleanup_(cJSON_Deletep) cJSON *receipt = read_receipt("corpus/receipt/good/unknown-code.json"),
                                       *explanation = NULL;
        const cJSON *reasons;

        REQUIRE(receipt);
        explanation = explain(receipt);
        REQUIRE(explanation);
        CHECK_STR(view_text(explanation, "schema"), "qscope.explanation/v1");
        CHECK_STR(view_text(explanation, "verdict"), "fail");
        reasons = view_get(explanation, "reasons");
        CHECK_EQ(view_length(reasons), 2);
        CHECK_STR(view_text(cJSON_GetArrayItem(reasons, 0), "code"), "from_the_future");
        CHECK(!view_true(cJSON_GetArrayItem(reasons, 0), "known"));
        CHECK(view_true(cJSON_GetArrayItem(reasons, 1), "known"));
}

/* NULL: the text is no receipt, or there was no memory. */
static char *page_of(const char *text, bool colour)
{
        _cleanup_(cJSON_Deletep) cJSON *receipt = NULL, *explanation = NULL;
        Error e = ERROR_INIT;

        CHECK_EQ(receipt_parse(text, strlen(text), "x", &receipt, &e), 0);
        explanation = receipt ? explain(receipt) : NULL;
        return explanation ? explanation_text(explanation, colour) : NULL;
}

/* A receipt of a command that passed in silence and with blind spots is no reason to trust it. */
TEST(signs_of_a_pass)
{
        static const char text[] =
                        "{\"schema\":\"qscope.receipt/v1\",\"verdict\":\"pass\",\"reasons\":[],"
                        "\"stdout_info\":{\"bytes\":0},\"stderr_info\":{\"bytes\":0},"
                        "\"fs\":{\"added\":[],\"removed\":[],\"changed\":[]},\"blind_spots\":[\"sockets: x\"]}";
        _cleanup_free_ char *page = page_of(text, true);

        CHECK_HAS(page, "printed nothing and changed nothing");
        CHECK_HAS(page, "some things could not");
        CHECK_HAS(page, "Not every socket");
        CHECK_HAS(page, "\033[1;32mPASS");
}

/* It ran for a while: "not started" is for what has no duration. */
TEST(interrupted)
{
        static const char text[] =
                        "{\"schema\":\"qscope.receipt/v1\",\"verdict\":\"aborted\","
                        "\"reasons\":[{\"code\":\"aborted\",\"message\":\"interrupted by SIGINT\"}],"
                        "\"exit_code\":null,\"signal\":null,\"duration_ms\":1370}";
        _cleanup_free_ char *page = page_of(text, false);

        CHECK_HAS(page, "interrupted (aborted), after 1.37 s");
        CHECK(page && !strstr(page, "not started"));
}

static int parse(const char *text, size_t size, const char *name, Error *e)
{
        _cleanup_(cJSON_Deletep) cJSON *receipt = NULL;

        return receipt_parse(text, size, name, &receipt, e);
}

TEST(corpus)
{
        unsigned failures = 0;

        CHECK(corpus_replay_bad("corpus/receipt/bad", parse, &failures) > 10);
        CHECK(corpus_replay_good("corpus/receipt/good", parse, &failures) > 4);
        CHECK_EQ(failures, 0);
}

static int explain_all(void *context)
{
        _cleanup_(cJSON_Deletep) cJSON *explanation = explain(context);
        _cleanup_free_ char *text = explanation ? explanation_text(explanation, false) : NULL;

        return text ? 0 : -ENOMEM;
}

TEST(out_of_memory)
{
        _cleanup_(cJSON_Deletep) cJSON *receipt = read_receipt("corpus/receipt/good/busy.json");

        REQUIRE(receipt);
        CHECK(alloc_fail_each(explain_all, receipt) > 0);
}

TEST_MAIN
