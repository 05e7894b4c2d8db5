/* SPDX-License-Identifier: Apache-2.0 */
#include "base/pattern.h"

#include "test.h"

TEST(check)
{
        char text[PATTERN_MAX + 2];
        Error e = ERROR_INIT;

        CHECK_EQ(pattern_check("^a+$", &e), 0);
        CHECK_EQ(pattern_check("(a", &e), -EINVAL);
        CHECK_HAS(e.text, "is not a regular expression: missing closing parenthesis at byte 2");
        CHECK_EQ(pattern_check("\\C", &e), -EINVAL);
        CHECK_EQ(pattern_check("\xff", &e), -EINVAL);
        memset(text, '(', sizeof(text));
        text[100] = '\0';
        CHECK_EQ(pattern_check(text, &e), -EINVAL);
        memset(text, 'a', sizeof(text));
        text[PATTERN_MAX] = '\0';
        CHECK_EQ(pattern_check(text, &e), 0);
        text[PATTERN_MAX] = 'a';
        text[PATTERN_MAX + 1] = '\0';
        CHECK_EQ(pattern_check(text, &e), -E2BIG);
        CHECK_HAS(e.text, "1025 bytes");
}

TEST(match)
{
        CHECK_EQ(pattern_match("b+", "abbc", 4), 1);
        CHECK_EQ(pattern_match("^b", "abbc", 4), 0);
        CHECK_EQ(pattern_match("(?m)^b$", "a\nb\n", 4), 1);
        CHECK_EQ(pattern_match("", NULL, 0), 1);
        CHECK_EQ(pattern_match("a.c",
                                 "x\xff\xff"
                                 "abc",
                                 6),
                        1); /* bytes that are not UTF-8 in between */
        CHECK_EQ(pattern_match("b", "a\0b", 3), 1);
        CHECK_EQ(pattern_match("(", "a", 1), -EINVAL);
}

/* Patterns that would take hours: the budget ends them, and says so. */
TEST(hostile)
{
        /* A class at the end: a letter would be missed before the search begins. */
        static const char *const patterns[] = { "(a|a)*[bc]", "(?:a*)*[bc]", "a*a*a*a*a*[bc]",
                "(a*+[bc]|a)*[cd]", "a*+[bc]" };
        static char text[1 << 20];

        memset(text, 'a', sizeof(text));
        for (size_t i = 0; i < ELEMENTSOF(patterns); i++)
                CHECK_EQ(pattern_match(patterns[i], text, sizeof(text)), -E2BIG);
        CHECK_EQ(pattern_match("(a+)+$", text, sizeof(text)), 1);
        text[sizeof(text) - 1] = '!';
        CHECK_EQ(pattern_match("(a+)+$", text, sizeof(text)), -E2BIG);
        CHECK_EQ(pattern_match("a!", text, sizeof(text)), 1); /* and ordinary ones stay within it */
        CHECK_EQ(pattern_match("z", text, sizeof(text)), 0);
}

TEST_MAIN
