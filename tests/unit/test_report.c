/* SPDX-License-Identifier: Apache-2.0 */
#include "core/report.h"

#include "base/text.h"

#include "alloc.h"
#include "files.h"
#include "test.h"

/* What the functions write, as one text. */
typedef struct Memory {
        FILE *f;
        char *text;
        size_t size;
} Memory;

static void memory_open(Memory *m)
{
        *m = (Memory){ 0 };
        m->f = open_memstream(&m->text, &m->size);
        assert(m->f);
}

static const char *memory_text(Memory *m)
{
        CHECK_EQ(fflush(m->f), 0);
        return m->text;
}

static void memory_close(Memory *m)
{
        if (m->f)
                (void) fclose(m->f);
        free(m->text);
}

#define _cleanup_memory_ _cleanup_(memory_close)

static cJSON *parse(const char *text)
{
        cJSON *receipt = NULL;
        Error e = ERROR_INIT;

        CHECK_EQ(receipt_parse(text, strlen(text), "receipt", &receipt, &e), 0);
        return receipt;
}

static cJSON *receipt_of(const char *file)
{
        size_t size;
        _cleanup_free_ char *text = read_test_file(test_path(file), &size);

        return parse(text ? text : "");
}

static unsigned occurrences(const char *text, const char *part)
{
        unsigned n = 0;

        for (; (text = strstr(text, part)); text += strlen(part))
                n++;
        return n;
}

/* Of a job nothing stands in the page that HTML, or JavaScript, could take for its own. */
TEST(nothing_becomes_markup)
{
        _cleanup_(cJSON_Deletep) cJSON *receipt = parse(
                        "{\"schema\":\"qscope.receipt/v1\",\"verdict\":\"pass\",\"reasons\":[],"
                        "\"job_id\":\"</script><!--\",\"argv\":[\"a&b\xe2\x80\xa8\xe2\x80\xa9\"],"
                        "\"stdout\":\"</SCRIPT><script>alert(1)</script>\",\"isolation\":{\"<img>\":{}}}");
        _cleanup_memory_ Memory rows, details;

        memory_open(&rows);
        memory_open(&details);
        REQUIRE(receipt);
        CHECK_EQ(report_add(rows.f, details.f, receipt, NULL, "<b>.json"), 0);
        CHECK_EQ(report_add_broken(rows.f, details.f, "<i>", "</script>"), 0);
        for (size_t i = 0; i < 2; i++) {
                const char *text = memory_text(i == 0 ? &rows : &details);

                CHECK_EQ(occurrences(text, "<"), 4);
                CHECK_EQ(occurrences(text, "</script>\n"), 2);
                CHECK_EQ(occurrences(text, "<script type=\"application/json\" class="), 2);
                CHECK(!strstr(text, "&"));
                CHECK(!strstr(text, "\xe2\x80\xa8") && !strstr(text, "\xe2\x80\xa9"));
        }
        CHECK_HAS(rows.text, "\\u003c/script\\u003e\\u003c!--");
        CHECK_HAS(rows.text, "a\\u0026b\\\\xe2\\\\x80\\\\xa8");
        CHECK_HAS(details.text, "a\\u0026b\\u2028\\u2029");
}

/* However large the receipt, its part of the page is not. */
TEST(an_entry_is_bounded)
{
        _cleanup_(cJSON_Deletep) cJSON *receipt = receipt_of("golden/receipt/pass.json");
        _cleanup_memory_ Memory rows, details;
        cJSON *list = cJSON_CreateArray();
        _cleanup_free_ char *text = malloc(KIB(256) + 1);

        memory_open(&rows);
        memory_open(&details);
        REQUIRE(receipt && list && text);
        memset(text, 'x', KIB(256));
        text[KIB(256)] = '\0';
        memcpy(text + KIB(256) - 3, "end", 3);
        for (unsigned i = 0; i < 5000; i++)
                CHECK_EQ(json_add_text(list, NULL, "a path that is about as long as paths are"), 0);
        CHECK(cJSON_ReplaceItemInObjectCaseSensitive(receipt, "stdout", cJSON_CreateString(text)));
        CHECK(cJSON_ReplaceItemInObjectCaseSensitive(receipt, "argv", list));
        CHECK_EQ(report_add(rows.f, details.f, receipt, NULL, "file"), 0);
        memory_text(&details);
        CHECK(details.size < REPORT_ENTRY_MAX + KIB(32)); /* the explanation has its own bounds */
        CHECK_HAS(details.text, "\"cut\":{\"argv\":5000}");
        CHECK_HAS(details.text, "bytes are not in this report]...\\nxxx");
        CHECK_HAS(details.text, "xxxend\"");
}

/* What the page does not show is not in it; diffs are, escaped as all else. */
TEST(what_is_in_an_entry)
{
        _cleanup_(cJSON_Deletep)
                        cJSON *receipt = receipt_of("golden/receipt/files.json"),
                              *diffs = cJSON_Parse(
                                              "{\"files\":[{\"path\":\"<a>\",\"text\":\"+</script>\\n\"}]}");
        _cleanup_memory_ Memory rows, details;

        memory_open(&rows);
        memory_open(&details);
        REQUIRE(receipt && diffs);
        CHECK_EQ(report_add(rows.f, details.f, receipt, diffs, "file"), 0);
        memory_text(&details);
        CHECK_HAS(details.text,
                        "\"diffs\":{\"files\":[{\"path\":\"\\u003ca\\u003e\",\"text\":\"+\\u003c/script");
        CHECK_HAS(details.text, "\"explanation\":{\"sentence\"");
        for (const char *const *key = (const char *const[]){ "\"env\"", "\"sha256\"", "\"uid\"", "\"facts\"",
                             NULL };
                        *key; key++)
                CHECK(!strstr(details.text, *key));
}

TEST(cut_between_characters)
{
        _cleanup_(cJSON_Deletep) cJSON *receipt = receipt_of("corpus/receipt/good/smallest.json");
        _cleanup_memory_ Memory rows, details;
        char text[3 * 10001 + 2] = "x";

        memory_open(&rows);
        memory_open(&details);
        for (size_t i = 0; i < 10000; i++)
                memcpy(text + 1 + 3 * i, "\xe2\x82\xac", 3);
        REQUIRE(receipt);
        CHECK_EQ(json_add_text(receipt, "stderr", text), 0);
        CHECK_EQ(report_add(rows.f, details.f, receipt, NULL, "file"), 0);
        CHECK(!strstr(memory_text(&details), "\xef\xbf\xbd"));
        CHECK_HAS(details.text, "are not in this report");
}

TEST(page)
{
        _cleanup_memory_ Memory page;

        memory_open(&page);
        CHECK_EQ(report_begin(page.f, "a <title> & \"more\""), 0);
        CHECK_EQ(report_between(page.f), 0);
        CHECK_EQ(report_end(page.f), 0);
        CHECK_HAS(memory_text(&page), "<title>a &lt;title&gt; &amp; &quot;more&quot;</title>");
        CHECK_EQ(occurrences(page.text, "'sha256-"), 2);
        CHECK(!strstr(page.text, "@@") && !strstr(page.text, "<!--"));
        CHECK(!strstr(page.text, "innerHTML ="));
        CHECK_HAS(page.text, "default-src 'none'");
}

/* Whatever the reader takes can be shown. */
TEST(corpus)
{
        _cleanup_strv_ char **names = list_test_files(test_path("corpus/receipt/good"), ".json");
        _cleanup_memory_ Memory rows, details;

        memory_open(&rows);
        memory_open(&details);
        for (size_t i = 0; names[i]; i++) {
                _cleanup_free_ char *file = text_printf("corpus/receipt/good/%s", names[i]);
                _cleanup_(cJSON_Deletep) cJSON *receipt = file ? receipt_of(file) : NULL;

                CHECK_EQ(receipt ? report_add(rows.f, details.f, receipt, NULL, file) : -EINVAL, 0);
        }
}

typedef struct Attempt {
        const cJSON *receipt;
        FILE *nowhere;
} Attempt;

static int add(void *context)
{
        const Attempt *attempt = context;

        return report_add(attempt->nowhere, attempt->nowhere, attempt->receipt, NULL, "file");
}

TEST(out_of_memory)
{
        _cleanup_(cJSON_Deletep) cJSON *receipt = receipt_of("corpus/receipt/good/busy.json");
        Attempt attempt = { receipt, fopen("/dev/null", "we") };
        static char buffer[4096];

        REQUIRE(receipt && attempt.nowhere);
        CHECK_EQ(setvbuf(attempt.nowhere, buffer, _IOFBF, sizeof(buffer)), 0);
        CHECK(alloc_fail_each(add, &attempt) > 0);
        CHECK_EQ(fclose(attempt.nowhere), 0);
}

TEST_MAIN
