/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"

#include "alloc.h"
#include "test.h"

TEST(utf8_sequences)
{
        static const struct {
                const char *bytes;
                size_t length; /* 0: not UTF-8 */
        } cases[] = {
                { "a", 1 },
                { "\xc3\xa4", 2 },
                { "\xe2\x82\xac", 3 },
                { "\xf0\x9f\x98\x80", 4 },
                { "\xf4\x8f\xbf\xbf", 4 },
                { "\xc0\x80", 0 },         /* overlong NUL */
                { "\xc1\xbf", 0 },         /* overlong */
                { "\xe0\x9f\xbf", 0 },     /* overlong */
                { "\xf0\x8f\xbf\xbf", 0 }, /* overlong */
                { "\xed\xa0\x80", 0 },     /* surrogate */
                { "\xed\xbf\xbf", 0 },
                { "\xf4\x90\x80\x80", 0 }, /* above U+10FFFF */
                { "\xf5\x80\x80\x80", 0 },
                { "\x80", 0 },
                { "\xc3", 0 },
                { "\xe2\x82", 0 },
                { "\xc3\x28", 0 },
                { "\xff", 0 },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++)
                CHECK_EQ(utf8_sequence((const uint8_t *) cases[i].bytes, strlen(cases[i].bytes)),
                                cases[i].length);
        CHECK_EQ(utf8_sequence((const uint8_t *) "", 0), 0);
        CHECK(utf8_is_valid("a\xc3\xa4", 3));
        CHECK(!utf8_is_valid("a\xc3", 2));
        CHECK(utf8_is_valid(NULL, 0));
}

TEST(escape)
{
        static const struct {
                const char *in, *out;
        } cases[] = {
                { "plain \xc3\xa4", "plain \xc3\xa4" },
                { "\033[31m", "\\x1b[31m" },
                { "a\nb\tc\rd", "a\\nb\\tc\\rd" },
                { "\xff\x7f", "\\xff\\x7f" },
                { "\xc2\x9b", "\\xc2\\x9b" },          /* C1 CSI */
                { "\xe2\x80\xae", "\\xe2\\x80\\xae" }, /* right-to-left override */
                { "\xef\xbb\xbf", "\\xef\\xbb\\xbf" },
        };
        char out[64];

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_free_ char *allocated = text_escape_alloc(cases[i].in, strlen(cases[i].in));

                CHECK_EQ(text_escape(cases[i].in, strlen(cases[i].in), out, sizeof(out)),
                                strlen(cases[i].out));
                CHECK_STR(out, cases[i].out);
                CHECK_STR(allocated, cases[i].out);
        }
        CHECK_EQ(text_escape("\0x", 2, out, sizeof(out)), 5);
        CHECK_STR(out, "\\x00x");
}

TEST(escape_cuts_at_the_edge_of_a_character)
{
        char out[4];

        CHECK_EQ(text_escape("ab\xc3\xa4", 4, out, sizeof(out)), 2);
        CHECK_STR(out, "ab");
        CHECK_EQ(text_escape("a\xff", 2, out, sizeof(out)), 1);
        CHECK_STR(out, "a");
        CHECK_EQ(text_escape("abc", 3, out, 1), 0);
        CHECK_STR(out, "");
}

TEST(to_utf8)
{
        bool exact = false;
        _cleanup_free_ char *good = text_to_utf8("a\xc3\xa4", 3, &exact), *bad = NULL, *nul = NULL;

        CHECK_STR(good, "a\xc3\xa4");
        CHECK(exact);
        bad = text_to_utf8("a\xff\xc3", 3, &exact);
        CHECK_STR(bad, "a\xef\xbf\xbd\xef\xbf\xbd");
        CHECK(!exact);
        nul = text_to_utf8("a\0b", 3, &exact);
        CHECK_STR(nul, "a\xef\xbf\xbd"
                       "b");
        CHECK(!exact);
}

TEST(lists)
{
        _cleanup_strv_ char **list = NULL, **copy = NULL, **empty = strv_copy(NULL), **room = strv_new(3);
        char number[16];

        CHECK_EQ(strv_length(NULL), 0);
        CHECK(empty && !empty[0]);
        CHECK(room && !room[0]);
        for (int i = 0; i < 100; i++)
                CHECK_EQ(strv_extendf(&list, "%d", i), 0);
        CHECK_EQ(strv_length(list), 100);
        copy = strv_copy(list);
        CHECK_EQ(strv_length(copy), 100);
        /* A copy can be extended: its room is as strv_consume() expects. */
        for (int i = 100; i < 200; i++)
                CHECK_EQ(strv_extendf(&copy, "%d", i), 0);
        for (int i = 0; i < 200; i++) {
                (void) snprintf(number, sizeof(number), "%d", i);
                CHECK_STR(copy[i], number);
        }
        CHECK(strv_contains(copy, "199") && !strv_contains(copy, "200"));
        CHECK_EQ(strv_consume(&copy, NULL), -ENOMEM);
        for (size_t n = 0; n < 9; n++) {
                _cleanup_strv_ char **made = strv_new(n);

                REQUIRE(made);
                for (size_t i = 0; i < n; i++)
                        made[i] = strdup("x");
                CHECK_EQ(strv_extend(&made, "y"), 0);
                CHECK_EQ(strv_extend(&made, "z"), 0);
                CHECK_EQ(strv_length(made), n + 2);
        }
}

TEST(fields)
{
        static const char status[] = "Name:\tUid:\nUid:\t1 2\nGroups:\t\nTgid:77";
        char value[8] = "before", cut[3];

        CHECK(text_field(status, "Uid", value, sizeof(value)));
        CHECK_STR(value, "1 2");
        CHECK(text_field(status, "Groups", value, sizeof(value)));
        CHECK_STR(value, "");
        CHECK(text_field(status, "Tgid", value, sizeof(value)));
        CHECK_STR(value, "77");
        CHECK(!text_field(status, "gid", value, sizeof(value)));
        CHECK_STR(value, "77"); /* as it was */
        CHECK(text_field(status, "Uid", cut, sizeof(cut)));
        CHECK_STR(cut, "1 ");
}

static int write_pieces(_unused_ void *context)
{
        TextStream stream;
        FILE *f = text_stream_open(&stream);
        _cleanup_free_ char *text = NULL;

        for (unsigned i = 0; f && i < 100; i++)
                (void) fprintf(f, "%0100u\n", i);
        text = text_stream_close(&stream, 0);
        CHECK(!text || (stream.size == 10100 && strlen(text) == 10100));
        return text ? 0 : -ENOMEM;
}

/* The whole text or none. */
TEST(stream)
{
        TextStream stream;

        CHECK(alloc_fail_each(write_pieces, NULL) > 0);
        CHECK(text_stream_open(&stream));
        CHECK(!text_stream_close(&stream, -EINVAL));
}

TEST_MAIN
