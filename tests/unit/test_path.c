/* SPDX-License-Identifier: Apache-2.0 */
#include "base/path.h"

#include "test.h"

TEST(normalise)
{
        static const struct {
                const char *in;
                int r;
                const char *out;
        } cases[] = {
                { "/", 0, "/" },
                { "//", 0, "/" },
                { "/.", 0, "/" },
                { "/a/b", 0, "/a/b" },
                { "/a/b/", 0, "/a/b" },
                { "//a//b//", 0, "/a/b" },
                { "/a/./b/.", 0, "/a/b" },
                { "a", 0, "a" },
                { "./a/", 0, "a" },
                { ".", 0, "." },
                { "././", 0, "." },
                { "..a/.b/...", 0, "..a/.b/..." },
                { "", -EINVAL, NULL },
                { "..", -EINVAL, NULL },
                { "a/..", -EINVAL, NULL },
                { "/../a", -EINVAL, NULL },
                { "a/../b", -EINVAL, NULL },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_free_ char *out = NULL;

                CHECK_EQ(path_normalise(cases[i].in, &out), cases[i].r);
                CHECK_STR(out, cases[i].out);
        }
}

TEST(too_long)
{
        char text[5000];
        _cleanup_free_ char *out = NULL;

        memset(text, 'a', sizeof(text));
        text[256] = '\0';
        CHECK_EQ(path_normalise(text, &out), -ENAMETOOLONG);
        text[255] = '\0';
        CHECK_EQ(path_normalise(text, &out), 0);
        for (size_t i = 0; i < sizeof(text); i++)
                text[i] = i % 2 ? 'a' : '/';
        text[4096] = '\0';
        CHECK_EQ(path_normalise(text, &out), -ENAMETOOLONG);
}

TEST(below)
{
        CHECK_STR(path_below("/a/b", "/a"), "b");
        CHECK_STR(path_below("/a", "/a"), "");
        CHECK_STR(path_below("/a", "/"), "a");
        CHECK(!path_below("/ab", "/a"));
        CHECK(!path_below("/a", "/a/b"));
        CHECK(path_is_within("/a/b/c", "/a/b") && !path_is_within("/a/bc", "/a/b"));
}

TEST(join)
{
        _cleanup_free_ char *a = path_join("/w", "x/y"), *b = path_join("/", "x"), *c = path_join("/w", "/x");

        CHECK_STR(a, "/w/x/y");
        CHECK_STR(b, "/x");
        CHECK_STR(c, "/x");
}

TEST(order)
{
        static const char *const sorted[] = { "a", "a/b", "a/b/c", "a/c", "a-b", "a.b", "b" };

        for (size_t i = 0; i < ELEMENTSOF(sorted); i++)
                for (size_t j = 0; j < ELEMENTSOF(sorted); j++) {
                        int r = path_compare(sorted[i], sorted[j]);

                        CHECK((r < 0) == (i < j) && (r > 0) == (i > j));
                }
}

TEST_MAIN
