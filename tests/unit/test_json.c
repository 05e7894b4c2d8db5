/* SPDX-License-Identifier: Apache-2.0 */
#include "json/json.h"

#include <locale.h>
#include <time.h>

#include "alloc.h"
#include "base/text.h"
#include "test.h"

static int parse(const char *text, JsonFlags flags, cJSON **ret, Error *e)
{
        return json_parse(text, strlen(text), flags, "f.json", ret, e);
}

TEST(good_documents)
{
        static const char *const texts[] = { "null", " true ", "0", "-0", "1e3", "1E+3", "1.5e-3",
                "9007199254740992", "-9007199254740992", "\"\"", "\"a\\u00e4\\n\\/\"", "\"\\ud83d\\ude00\"",
                "[]", "{}", "[[],{}]", "{\"\":1}", "{\"a\":1,\"A\":2}", "\r\n\t {\"a\" : [ 1 , 2 ] }\n",
                "\"\x7f\"", "1e308", "1e-400" };

        for (size_t i = 0; i < ELEMENTSOF(texts); i++) {
                _cleanup_(cJSON_Deletep) cJSON *item = NULL;
                Error e = ERROR_INIT;

                CHECK_EQ(parse(texts[i], JSON_STRICT, &item, &e), 0);
                CHECK_STR(e.text, "");
        }
}

TEST(bad_documents)
{
        static const struct {
                const char *text, *sentence;
        } cases[] = {
                { "", "f.json: line 1, column 1: is empty" },
                { " \n ", "f.json: line 1, column 1: is empty" }, { "\xef\xbb\xbf{}", "byte order mark" },
                { "{} x", "line 1, column 4: text after the end" }, { "{}{}", "text after the end" },
                { "{\"a\":1,\"a\":2}", "line 1, column 8: a: this key is given twice" },
                { "{\"a\":1,\n\"\\u0061\":2}", "line 2, column 1: a: this key is given twice" },
                { "{\"x\":{\"b\":1,\"a\":1,\"b\":1}}", "x.b: this key is given twice" },
                { "{\"a\":\"\\u0000\"}", "a: \\u0000 is not allowed" },
                { "[1,\"\\ud800\"]", "[1]: \\ud800 is half of a surrogate pair" },
                { "\"\\udc00\"", "second half" }, { "\"\\ud800\\u0041\"", "half of a surrogate pair" },
                { "\"\\u12g4\"", "four hexadecimal digits" }, { "\"\\x\"", "after a backslash, found 'x'" },
                { "\"a", "this string has no end" }, { "\"a\\", "found the end of the text" },
                { "\"\\\"", "this string has no end" }, { "\"a\nb\"", "control character (0x0a)" },
                { "{\"k\":\"\xff\"}", "k: not UTF-8 (byte 0xff)" }, { "\"\xc3\"", "not UTF-8" },
                { "9007199254740993", "beyond 2^53" }, { "-9007199254740993", "beyond 2^53" },
                { "99999999999999999999999999999999999999", "beyond 2^53" }, { "1e400", "out of range" },
                { "-1e400", "out of range" }, { "01", "must not begin with 0" }, { "-", "expected a digit" },
                { "+1", "expected a value, found '+'" }, { ".5", "expected a value" },
                { "1.", "digit after the decimal point" }, { "1e", "digit in the exponent" },
                { "0x10", "text after the end" }, { "NaN", "expected a value" },
                { "Infinity", "expected a value" }, { "nul", "expected a value" },
                { "'a'", "expected a value" }, { "[1,]", "a comma before ']'" },
                { "{\"a\":1,}", "a comma before '}'" }, { "[1 2]", "expected ',' or ']', found '2'" },
                { "[", "expected a value, found the end of the text" },
                { "{", "expected a key in double quotes" },
                { "{a:1}", "expected a key in double quotes, found 'a'" },
                { "{\"a\" 1}", "a: expected ':' after the key" },
                { "{\"a\":}", "a: expected a value, found '}'" }, { "// c\n1", "comments are not allowed" },
                { "/* c */1", "expected a value" },
                { "{\"\xc3\xa4\":?}", "line 1, column 6: " }, /* columns count characters */
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                cJSON *item = NULL;
                Error e = ERROR_INIT;

                CHECK_EQ(parse(cases[i].text, JSON_STRICT, &item, &e), -EINVAL);
                CHECK_HAS(e.text, cases[i].sentence);
                CHECK(!item);
        }
}

TEST(nul_byte_in_the_text)
{
        cJSON *item = NULL;
        Error e = ERROR_INIT;

        CHECK_EQ(json_parse("[1\0]", 4, JSON_STRICT, "f", &item, &e), -EINVAL);
        CHECK_HAS(e.text, "found byte 0x00");
        CHECK_EQ(json_parse("\"\0\"", 3, JSON_STRICT, "f", &item, &e), -EINVAL);
        CHECK_EQ(json_parse("\"\\\0\"", 4, JSON_STRICT, "f", &item, &e), -EINVAL);
}

TEST(comments)
{
        _cleanup_(cJSON_Deletep) cJSON *item = NULL, *none = NULL;
        Error e = ERROR_INIT;

        CHECK_EQ(parse("// a\n{ // b\n\"a\": \"// no\", // c\n\"b\": 1 } // end", JSON_COMMENTS, &item, &e),
                        0);
        CHECK_STR(json_get(item, "a")->valuestring, "// no");
        CHECK_EQ(parse("// only\n", JSON_COMMENTS, &none, &e), -EINVAL);
        CHECK_EQ(parse("1 // \xff", JSON_COMMENTS, &none, &e), -EINVAL);
        CHECK_EQ(parse("1 / 2", JSON_COMMENTS, &none, &e), -EINVAL);
}

TEST(depth)
{
        char text[2 * JSON_DEPTH_MAX + 8];
        _cleanup_(cJSON_Deletep) cJSON *item = NULL;
        cJSON *none = NULL;
        Error e = ERROR_INIT;

        memset(text, '[', JSON_DEPTH_MAX);
        memset(text + JSON_DEPTH_MAX, ']', JSON_DEPTH_MAX);
        CHECK_EQ(json_parse(text, 2 * JSON_DEPTH_MAX, JSON_STRICT, "f", &item, &e), 0);
        memset(text, '[', JSON_DEPTH_MAX + 1);
        CHECK_EQ(json_parse(text, JSON_DEPTH_MAX + 1, JSON_STRICT, "f", &none, &e), -EINVAL);
        CHECK_HAS(e.text, "nested more than 64 deep");
}

TEST(long_numbers)
{
        char text[200];
        _cleanup_(cJSON_Deletep) cJSON *item = NULL;
        cJSON *none = NULL;

        memset(text, '1', sizeof(text));
        text[0] = '0', text[1] = '.', text[100] = '\0';
        CHECK_EQ(parse(text, JSON_STRICT, &item, NULL), 0); /* cJSON's own parser cuts after 63 */
        CHECK(item && item->valuedouble > 0.111 && item->valuedouble < 0.112);
        text[100] = '1', text[199] = '\0';
        CHECK_EQ(parse(text, JSON_STRICT, &none, NULL), -EINVAL);
}

static uint64_t now_msec(void)
{
        struct timespec t;

        (void) clock_gettime(CLOCK_MONOTONIC, &t);
        return (uint64_t) t.tv_sec * 1000 + (uint64_t) t.tv_nsec / 1000000;
}

/* 100,000 keys, in the order that is worst for quicksort and for lists; the last two are the same. */
TEST(many_keys)
{
        enum { N = 100000 };
        _cleanup_free_ char *text = malloc(N * 16 + 16);
        cJSON *item = NULL;
        uint64_t start = now_msec();
        Error e = ERROR_INIT;
        size_t used = 1;

        REQUIRE(text);
        text[0] = '{';
        for (unsigned i = 0; i < N; i++)
                used += (size_t) snprintf(text + used, 16, "\"k%05u\":1,", i);
        (void) memcpy(text + used, "\"k00000\":1}", 12);
        CHECK_EQ(parse(text, JSON_STRICT, &item, &e), -EINVAL);
        CHECK_HAS(e.text, "k00000: this key is given twice");
        CHECK(now_msec() - start < 5000);
}

TEST(locate)
{
        static const char text[] = "// c\n{\n \"argv\": [\"a\",\n \"b\"],\n \"limits\": {\"memory\":\n 1},\n "
                                   "\"a.b\": 2\n}";

        CHECK_EQ(json_locate(text, strlen(text), ""), 2);
        CHECK_EQ(json_locate(text, strlen(text), "argv"), 3);
        CHECK_EQ(json_locate(text, strlen(text), "argv[1]"), 4);
        CHECK_EQ(json_locate(text, strlen(text), "limits.memory"), 6);
        CHECK_EQ(json_locate(text, strlen(text), "a.b"), 7);
        CHECK_EQ(json_locate(text, strlen(text), "nothing"), 0);
        CHECK_EQ(json_locate("{", 1, "x"), 0);
}

TEST(get_is_exact)
{
        _cleanup_(cJSON_Deletep) cJSON *item = NULL;

        REQUIRE(parse("{\"Key\":1}", JSON_STRICT, &item, NULL) == 0);
        CHECK(json_get(item, "Key") != NULL);
        CHECK(json_get(item, "key") == NULL);
        CHECK(json_get(NULL, "key") == NULL);
        CHECK(json_get(json_get(item, "Key"), "x") == NULL);
}

static cJSON *build(void)
{
        cJSON *o = cJSON_CreateObject(), *inner;
        char *list[] = { (char *) "a", (char *) "b\xff", NULL };
        int r;

        r = json_add_u64(o, "max", UINT64_MAX - 1);
        r = r < 0 ? r : json_add_u64(o, "unknown", UNKNOWN);
        r = r < 0 ? r : json_add_u64(o, "exact", UINT64_C(1) << 53);
        r = r < 0 ? r : json_add_u64(o, "odd", (UINT64_C(1) << 53) - 1);
        r = r < 0 ? r : json_add_i64(o, "min", INT64_MIN);
        r = r < 0 ? r : json_add_i64(o, "minus", -5);
        r = r < 0 ? r : json_add_bool(o, "yes", true);
        r = r < 0 ? r : json_add_bool(o, "no", false);
        r = r < 0 ? r : json_add_null(o, "null");
        r = r < 0 ? r : json_add_text(o, "text", "\"\\\n\x1b\x7f\xc3\xa4\xff");
        r = r < 0 ? r : json_add_text(o, "none", NULL);
        r = r < 0 ? r : json_add_bytes(o, "bytes", "a\0b", 3);
        r = r < 0 ? r : json_add_strv(o, "list", list);
        inner = r < 0 ? NULL : json_add_object(o, "inner");
        r = json_add(inner, "half", cJSON_CreateNumber(0.5));
        r = r < 0 ? r : json_add(inner, "third", cJSON_CreateNumber(1.0 / 3));
        r = r < 0 ? r : (json_add_array(o, "empty") ? 0 : -ENOMEM);
        if (r < 0) {
                cJSON_Delete(o);
                return NULL;
        }
        return o;
}

static const char built[] =
                "{\"max\":18446744073709551614,\"unknown\":null,\"exact\":9007199254740992,"
                "\"odd\":9007199254740991,\"min\":-9223372036854775808,\"minus\":-5,\"yes\":true,"
                "\"no\":false,\"null\":null,\"text\":\"\\\"\\\\\\n\\u001b\\u007f\xc3\xa4\xef\xbf\xbd\","
                "\"none\":null,\"bytes\":\"a\xef\xbf\xbd"
                "b\",\"list\":[\"a\",\"b\xef\xbf\xbd\"],"
                "\"inner\":{\"half\":0.5,\"third\":0.3333333333333333},\"empty\":[]}\n";

TEST(print_exactly)
{
        _cleanup_(cJSON_Deletep) cJSON *o = build();
        _cleanup_free_ char *text = json_print(o, false);

        CHECK_STR(text, built);
}

TEST(print_indented_and_canonical)
{
        _cleanup_(cJSON_Deletep) cJSON *item = NULL;
        _cleanup_free_ char *indented = NULL, *canonical = NULL;

        REQUIRE(parse("{\"b\":[1,{}],\"a\":{\"d\":1,\"c\":[]}}", JSON_STRICT, &item, NULL) == 0);
        indented = json_print(item, true);
        canonical = json_print_canonical(item);
        CHECK_STR(indented, "{\n  \"b\": [\n    1,\n    {}\n  ],\n  \"a\": {\n    \"d\": 1,\n    \"c\": []\n "
                            " }\n}\n");
        CHECK_STR(canonical, "{\"a\":{\"c\":[],\"d\":1},\"b\":[1,{}]}");
}

/* Numbers that cJSON rounds, and those that need all digits, read back as what they were. */
TEST(numbers_survive)
{
        static const double numbers[] = { 0.1, 1e21, 1.7976931348623157e308, 5e-324, 9007199254740991.0,
                123456789.125, -1e-7, 4503599627370496.5, 3.141592653589793 };

        for (size_t i = 0; i < ELEMENTSOF(numbers); i++) {
                _cleanup_(cJSON_Deletep) cJSON *item = cJSON_CreateNumber(numbers[i]), *again = NULL;
                _cleanup_free_ char *text = json_print(item, false);

                REQUIRE(text && parse(text, JSON_STRICT, &again, NULL) == 0);
                CHECK(again->valuedouble >= numbers[i] && again->valuedouble <= numbers[i]);
        }
}

/* A decimal comma changes nothing, in either direction. */
TEST(locale)
{
        static const char *const names[] = { "de_DE.UTF-8", "fr_FR.UTF-8", "de_DE.utf8", "de_DE" };
        _cleanup_(cJSON_Deletep) cJSON *item = NULL;
        _cleanup_free_ char *text = NULL;
        bool set = false;

        for (size_t i = 0; i < ELEMENTSOF(names) && !set; i++)
                set = setlocale(LC_ALL, names[i]) != NULL;
        if (!set)
                (void) printf("  note: no locale with a decimal comma here; only the C locale was tried\n");
        CHECK_EQ(parse("[1.5,0.25]", JSON_STRICT, &item, NULL), 0);
        text = json_print(item, false);
        CHECK_STR(text, "[1.5,0.25]\n");
        (void) setlocale(LC_ALL, "C");
}

static int attempt_parse(_unused_ void *context)
{
        _cleanup_(cJSON_Deletep) cJSON *item = NULL;

        return parse("{\"a\":[1,\"x\",{\"b\":null,\"c\":true}],\"d\":{\"e\":{}}}", JSON_STRICT, &item, NULL);
}

static int attempt_print(_unused_ void *context)
{
        _cleanup_(cJSON_Deletep) cJSON *o = build();
        _cleanup_free_ char *text = o ? json_print(o, true) : NULL,
                            *sorted = text ? json_print_canonical(o) : NULL;

        return sorted ? 0 : -ENOMEM;
}

TEST(out_of_memory)
{
        CHECK(alloc_fail_each(attempt_parse, NULL) > 0);
        CHECK(alloc_fail_each(attempt_print, NULL) > 0);
}

TEST_MAIN
