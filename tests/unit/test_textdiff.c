/* SPDX-License-Identifier: Apache-2.0 */
#include "core/textdiff.h"

#include "base/text.h"
#include "test.h"

static void check_diff(const char *before, const char *after, const char *wanted)
{
        _cleanup_free_ char *text = textdiff(before, strlen(before), after, strlen(after), false);

        CHECK_STR(text, wanted);
}

TEST(small)
{
        check_diff("", "", "");
        check_diff("a\n", "a\n", "");
        check_diff("a\nb\nc\n", "a\nB\nc\n", "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n");
        check_diff("", "a\n", "@@ -0,0 +1,1 @@\n+a\n");
        check_diff("a\n", "", "@@ -1,1 +0,0 @@\n-a\n");
        check_diff("a", "a\n", "@@ -1,1 +1,1 @@\n-a\n\\ No newline at end of file\n+a\n");
        check_diff("a\nb\n", "b\na\n", "@@ -1,2 +1,2 @@\n-a\n b\n+a\n");
        check_diff("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nx\n5\n6\n7\n8\n9\n",
                        "@@ -2,6 +2,7 @@\n 2\n 3\n 4\n+x\n 5\n 6\n 7\n");
}

/* Changes near each other share a hunk; others do not. */
TEST(hunks)
{
        check_diff("1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n", "x\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\ny\n",
                        "@@ -1,4 +1,4 @@\n-1\n+x\n 2\n 3\n 4\n@@ -9,4 +9,4 @@\n 9\n 10\n 11\n-12\n+y\n");
        check_diff("1\n2\n3\n4\n5\n6\n7\n8\n", "x\n2\n3\n4\n5\n6\n7\ny\n",
                        "@@ -1,8 +1,8 @@\n-1\n+x\n 2\n 3\n 4\n 5\n 6\n 7\n-8\n+y\n");
}

TEST(escapes)
{
        check_diff("", "\tx\033[2Jy\xff\r\n", "@@ -0,0 +1,1 @@\n+\tx\\x1b[2Jy\\xff\\r\n");
        CHECK(textdiff_is_text("a\tb\n", 4));
        CHECK(!textdiff_is_text("a\0b", 3));
        CHECK(!textdiff_is_text("a\xff", 2));
}

static char *numbers(unsigned from, unsigned to, unsigned every)
{
        char *text = NULL;
        size_t size;
        FILE *f = open_memstream(&text, &size);

        for (unsigned i = from; f && i < to; i++)
                (void) fprintf(f, "%s%u\n", every > 0 && i % every == 0 ? "x" : "", i);
        if (f)
                (void) fclose(f);
        return text;
}

/* Texts that have nothing in common cost no more than is allowed, and are printed so far as is allowed. */
TEST(bounds)
{
        _cleanup_free_ char *a = numbers(0, 20000, 0), *b = numbers(50000, 70000, 0),
                            *c = numbers(0, 20000, 500), *whole = NULL, *few = NULL;
        unsigned lines = 0;

        whole = textdiff(a, strlen(a), b, strlen(b), false);
        REQUIRE(whole);
        for (const char *p = whole; (p = strchr(p, '\n')); p++)
                lines++;
        CHECK_EQ(lines, TEXTDIFF_LINES_MAX + 2);
        CHECK_HAS(whole, "39000 more lines");
        few = textdiff(a, strlen(a), c, strlen(c), false);
        CHECK_HAS(few, "-500\n+x500\n");
        CHECK_HAS(few, "-19500\n+x19500\n");
}

/* The diff, applied to what was before, is what is after: for many small pairs. */
static char *patched(const char *before, const char *diff)
{
        char *out = NULL;
        size_t size;
        FILE *f = open_memstream(&out, &size);
        const char *at = before;
        unsigned line = 1;

        for (const char *p = diff; f && *p;) {
                const char *end = strchr(p, '\n') + 1;
                unsigned start;

                if (*p == '@') {
                        start = (unsigned) strtoul(p + 4, NULL, 10);
                        if (strtoul(strchr(p + 4, ',') + 1, NULL, 10) == 0)
                                start++;
                        for (; line < start; line++) {
                                const char *next = strchr(at, '\n') + 1;

                                (void) fwrite(at, 1, (size_t) (next - at), f);
                                at = next;
                        }
                } else {
                        if (*p != '-')
                                (void) fwrite(p + 1, 1, (size_t) (end - p - 1), f);
                        if (*p != '+') {
                                at = strchr(at, '\n') + 1;
                                line++;
                        }
                }
                p = end;
        }
        if (f) {
                (void) fputs(at, f);
                (void) fclose(f);
        }
        return out;
}

static void random_text(uint32_t *seed, char text[static 64])
{
        unsigned n = 0;

        *seed = *seed * 1103515245u + 12345u;
        n = (*seed >> 16) % 25;
        for (unsigned i = 0; i < n; i++) {
                *seed = *seed * 1103515245u + 12345u;
                text[2 * i] = (char) ('a' + (*seed >> 16) % 3);
                text[2 * i + 1] = '\n';
        }
        text[2 * n] = '\0';
}

TEST(patches)
{
        uint32_t seed = 7;

        for (unsigned i = 0; i < 3000; i++) {
                _cleanup_free_ char *diff = NULL, *result = NULL;
                char a[64], b[64];

                random_text(&seed, a);
                random_text(&seed, b);
                diff = textdiff(a, strlen(a), b, strlen(b), false);
                REQUIRE(diff);
                result = patched(a, diff);
                CHECK_STR(result, b);
        }
}

TEST_MAIN
