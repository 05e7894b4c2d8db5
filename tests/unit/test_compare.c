/* SPDX-License-Identifier: Apache-2.0 */
#include "core/compare.h"

#include "alloc.h"
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

static cJSON *parse(const char *more)
{
        char *text = NULL;
        cJSON *receipt = NULL;
        Error e = ERROR_INIT;

        if (asprintf(&text, "{\"schema\":\"qscope.receipt/v1\",\"verdict\":\"pass\",\"reasons\":[]%s}",
                            more) < 0)
                return NULL;
        CHECK_EQ(receipt_parse(text, strlen(text), "r.json", &receipt, &e), 0);
        CHECK_STR(e.text, "");
        free(text);
        return receipt;
}

static void compare_golden(const char *file_a, const char *file_b, const char *name)
{
        _cleanup_(cJSON_Deletep) cJSON *a = read_receipt(file_a), *b = read_receipt(file_b), *result = NULL;
        _cleanup_free_ char *text = NULL, *golden = NULL, *json = NULL;
        char file[64];
        size_t size;

        REQUIRE(a && b);
        result = receipt_compare(a, b);
        REQUIRE(result);
        text = comparison_text(result, false);
        json = json_print(result, true);
        REQUIRE(text && json);
        CHECK(!strchr(text, '\033'));
        (void) snprintf(file, sizeof(file), "golden/compare/%s.txt", name);
        if (getenv("QSCOPE_UPDATE_GOLDEN"))
                CHECK_EQ(write_test_file(test_path(file), text), 0);
        golden = read_test_file(test_path(file), &size);
        if (!streq_ptr(golden, text))
                fprintf(stderr, "%s differs (QSCOPE_UPDATE_GOLDEN=1 writes it anew):\n%s", file, text);
        CHECK(streq_ptr(golden, text));
}

TEST(golden)
{
        compare_golden("golden/receipt/pass.json", "golden/receipt/many-causes.json", "pass-many-causes");
        compare_golden("golden/receipt/pass.json", "golden/receipt/not-found.json", "pass-not-found");
        compare_golden("corpus/receipt/good/busy.json", "corpus/receipt/good/hostile.json", "busy-hostile");
        compare_golden("corpus/receipt/good/odd-types.json", "corpus/receipt/good/busy.json",
                        "odd-types-busy");
        compare_golden("corpus/receipt/good/nulls.json", "golden/receipt/rejected.json", "nulls-rejected");
}

/* A receipt is the same as itself, whatever is in it. */
TEST(itself)
{
        static const char *const directories[] = { "golden/receipt", "corpus/receipt/good" };

        for (size_t d = 0; d < ELEMENTSOF(directories); d++) {
                char **files = list_test_files(test_path(directories[d]), ".json");

                for (size_t i = 0; files && files[i]; i++) {
                        char file[256];
                        _cleanup_(cJSON_Deletep) cJSON *a = NULL, *result = NULL;

                        (void) snprintf(file, sizeof(file), "%s/%s", directories[d], files[i]);
                        a = read_receipt(file);
                        result = a ? receipt_compare(a, a) : NULL;
                        REQUIRE(result);
                        CHECK(view_true(result, "same"));
                        CHECK_EQ(view_number(result, "total"), 0);
                }
                for (size_t i = 0; files && files[i]; i++)
                        free(files[i]);
                free(files);
        }
}

static void check_pair(const char *more_a, const char *more_b, bool same, uint64_t total, const char *part)
{
        _cleanup_(cJSON_Deletep) cJSON *a = parse(more_a), *b = parse(more_b), *result = NULL;
        _cleanup_free_ char *text = NULL;

        REQUIRE(a && b);
        result = receipt_compare(a, b);
        REQUIRE(result);
        text = comparison_text(result, false);
        CHECK_EQ(view_true(result, "same"), same);
        CHECK_EQ(view_number(result, "total"), total);
        CHECK_HAS(text, part);
}

TEST(noise)
{
        check_pair(",\"usage\":{\"cpu_usec\":100000}", ",\"usage\":{\"cpu_usec\":290000}", true, 0, "");
        check_pair(",\"usage\":{\"cpu_usec\":100000}", ",\"usage\":{\"cpu_usec\":310000}", false, 1,
                        "usage.cpu_usec");
        check_pair(",\"usage\":{\"cpu_usec\":10000000}", ",\"usage\":{\"cpu_usec\":14000000}", true, 0, "");
        check_pair(",\"usage\":{\"cpu_usec\":null}", ",\"usage\":{\"cpu_usec\":14000000}", true, 0, "");
        check_pair(",\"usage\":{\"memory_peak_bytes\":1048576}",
                        ",\"usage\":{\"memory_peak_bytes\":104857600}", false, 1, "1M  ->  100M");
        check_pair(",\"duration_ms\":900", ",\"duration_ms\":1800", true, 0, "");
}

TEST(what_was_asked)
{
        check_pair(",\"argv\":[\"a\"]", ",\"argv\":[\"b\"]", true, 1, "  job        argv");
        check_pair(",\"blind_spots\":[\"x: not seen\"]", "", true, 1, "  not seen   x: not seen");
}

TEST(order_and_numbers)
{
        check_pair(",\"processes\":{\"tree\":[{\"program\":\"/a\",\"pid\":1},{\"program\":\"/b\",\"pid\":2}]}",
                        ",\"processes\":{\"tree\":[{\"program\":\"/b\",\"pid\":9},{\"program\":\"/a\",\"pid\":8}]}",
                        true, 0, "");
        check_pair(",\"processes\":{\"tree\":[{\"program\":\"/a\"}]}",
                        ",\"processes\":{\"tree\":[{\"program\":\"/a\"},{\"program\":\"/a\"}]}", false, 1,
                        "/a:  once  ->  2 times");
        check_pair(",\"sockets\":{\"listening\":[{\"family\":\"inet\",\"local_port\":40000}]}",
                        ",\"sockets\":{\"listening\":[{\"family\":\"inet\",\"local_port\":50000}]}", true, 0,
                        "");
        check_pair(",\"sockets\":{\"listening\":[{\"family\":\"inet\",\"local_port\":80}]}",
                        ",\"sockets\":{\"listening\":[{\"family\":\"inet\",\"local_port\":81}]}", false, 2,
                        ":80");
        check_pair(",\"egress\":[{\"protocol\":\"tcp\",\"name\":\"a\",\"port\":1,\"count\":1}]",
                        ",\"egress\":[{\"protocol\":\"tcp\",\"name\":\"a\",\"port\":1,\"count\":9}]", true, 0,
                        "");
}

TEST(not_looked_at)
{
        check_pair(",\"egress\":null", ",\"egress\":[]", false, 1, "observed:  no  ->  yes");
        check_pair(",\"egress\":null", ",\"egress\":null", true, 0, "");
}

TEST(cut_lists)
{
        check_pair(",\"fs\":{\"truncated\":true,\"sha256\":\"a\"}",
                        ",\"fs\":{\"truncated\":true,\"sha256\":\"b\"}", false, 1,
                        "what the lists leave out");
}

TEST(hostile)
{
        check_pair(",\"stdout\":\"a\\u001b[2J\"", ",\"stdout\":\"b\"", false, 1, "\\x1b[2J");
        check_pair(",\"fs\":{\"added\":{\"a\":{}},\"removed\":7,\"changed\":[7,[],{\"path\":[]},{\"path\":\"\\u001b\"}]}",
                        ",\"fs\":{}", false, 1, "\\x1b");
        check_pair(",\"processes\":{\"tree\":7}", ",\"processes\":{\"tree\":\"x\"}", true, 0, "");
        check_pair(",\"usage\":{\"cpu_usec\":-1}", ",\"usage\":{\"cpu_usec\":1e300}", true, 0, "");
        check_pair(",\"limits\":{\"hits\":[{\"limit\":7},8]}", ",\"limits\":{\"hits\":{}}", true, 0, "");
}

TEST(deep)
{
        char text[4096], *p = text;
        cJSON *receipt = NULL;
        Error e = ERROR_INIT;

        p += snprintf(p, sizeof(text),
                        "{\"schema\":\"qscope.receipt/v1\",\"verdict\":\"pass\",\"reasons\":[],\"x\":");
        for (unsigned i = 0; i < 1000; i++)
                *p++ = '[';
        for (unsigned i = 0; i < 1000; i++)
                *p++ = ']';
        *p++ = '}';
        CHECK_EQ(receipt_parse(text, (size_t) (p - text), "deep.json", &receipt, &e), -EINVAL);
        CHECK_HAS(e.text, "deep.json");
        cJSON_Delete(receipt);
}

/* As many as a receipt can have: counted, not all listed. */
TEST(many)
{
        char *text = NULL;
        size_t size;
        FILE *f = open_memstream(&text, &size);

        REQUIRE(f);
        (void) fputs(",\"fs\":{\"added\":[", f);
        for (unsigned i = 0; i < 10000; i++)
                (void) fprintf(f, "%s{\"path\":\"f%u\",\"type\":\"file\",\"mode\":\"0644\",\"size\":1}",
                                i > 0 ? "," : "", i);
        (void) fputs("]}", f);
        (void) fclose(f);
        check_pair(text, ",\"fs\":{}", false, 10000, "8000 more");
        free(text);
}

static int compare_once(void *context)
{
        cJSON **pair = context;
        cJSON *result = receipt_compare(pair[0], pair[1]);
        char *text = result ? comparison_text(result, true) : NULL;
        int r = text ? 0 : -ENOMEM;

        if (text)
                CHECK_HAS(text, "exit_code");
        free(text);
        cJSON_Delete(result);
        return r;
}

TEST(out_of_memory)
{
        cJSON *pair[2] = { read_receipt("golden/receipt/pass.json"),
                read_receipt("golden/receipt/many-causes.json") };

        CHECK(alloc_fail_each(compare_once, pair) > 0);
        cJSON_Delete(pair[0]);
        cJSON_Delete(pair[1]);
}

TEST_MAIN
