/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"

#include "base/text.h"
#include "test.h"

TEST(sentences)
{
        Error e = ERROR_INIT;

        CHECK_EQ(error_set(&e, -EINVAL, "limits.%s: too much", "memory"), -EINVAL);
        CHECK_STR(e.text, "limits.memory: too much");
        CHECK_EQ(error_prefix(&e, -EINVAL, "job.json"), -EINVAL);
        CHECK_STR(e.text, "job.json: limits.memory: too much");
        CHECK_EQ(error_errno(&e, -ENOENT, "cannot open %s", "x"), -ENOENT);
        CHECK_STR(e.text, "cannot open x: No such file or directory");
        CHECK_EQ(error_set(NULL, -EIO, "nobody asks"), -EIO);
        CHECK_EQ(error_errno(NULL, -EIO, "nobody asks"), -EIO);
        CHECK_EQ(error_prefix(NULL, -EIO, "nobody asks"), -EIO);
}

TEST(hostile_bytes_are_escaped)
{
        Error e = ERROR_INIT;

        (void) error_set(&e, -EINVAL, "%s", "\033]0;title\007 \xff");
        CHECK_STR(e.text, "\\x1b]0;title\\x07 \\xff");
}

TEST(long_sentences_are_cut)
{
        char text[ERROR_TEXT_MAX * 2];
        Error e = ERROR_INIT;

        memset(text, 0xc3, sizeof(text)); /* each becomes four characters */
        text[sizeof(text) - 1] = '\0';
        (void) error_set(&e, -EINVAL, "%s", text);
        CHECK(strlen(e.text) < ERROR_TEXT_MAX);
        CHECK(utf8_is_valid(e.text, strlen(e.text)));
        for (int i = 0; i < 400; i++)
                (void) error_prefix(&e, -EINVAL, "prefix");
        CHECK(strlen(e.text) < ERROR_TEXT_MAX);
        CHECK(startswith(e.text, "prefix: prefix: ") != NULL);
}

TEST_MAIN
