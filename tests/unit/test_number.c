/* SPDX-License-Identifier: Apache-2.0 */
#include "base/number.h"

#include "test.h"

TEST(sizes)
{
        static const struct {
                const char *text;
                int r;
                uint64_t value;
        } cases[] = {
                { "0", 0, 0 },
                { "65536", 0, 65536 },
                { "64K", 0, 65536 },
                { "512M", 0, UINT64_C(512) << 20 },
                { "2G", 0, UINT64_C(2) << 30 },
                { "1T", 0, UINT64_C(1) << 40 },
                { "16777215T", 0, UINT64_C(16777215) << 40 },
                { "16777216T", -ERANGE, 0 },
                { "18446744073709551615", -ERANGE, 0 },
                { "18446744073709551614", -ERANGE, 0 },
                { "18446744073709551613", 0, UINT64_MAX - 2 },
                { "18446744073709551616", -ERANGE, 0 },
                { "99999999999999999999999999999999999999", -ERANGE, 0 },
                { "", -EINVAL, 0 },
                { "K", -EINVAL, 0 },
                { "-1", -EINVAL, 0 },
                { "+1", -EINVAL, 0 },
                { " 1", -EINVAL, 0 },
                { "1 ", -EINVAL, 0 },
                { "1k", -EINVAL, 0 },
                { "1KB", -EINVAL, 0 },
                { "1.5G", -EINVAL, 0 },
                { "0x10", -EINVAL, 0 },
                { "1e3", -EINVAL, 0 },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                uint64_t value = 0;

                CHECK_EQ(parse_size(cases[i].text, &value), cases[i].r);
                if (cases[i].r == 0)
                        CHECK(value == cases[i].value);
        }
}

TEST(cpu_per_cent)
{
        static const struct {
                const char *text;
                int r;
                uint64_t usec;
        } cases[] = {
                { "100%", 0, 1000000 },
                { "150%", 0, 1500000 },
                { "12.5%", 0, 125000 },
                { "0.01%", 0, 100 },
                { "0%", -ERANGE, 0 },
                { "0.00%", -ERANGE, 0 },
                { "%", -EINVAL, 0 },
                { "100", -EINVAL, 0 },
                { "-5%", -EINVAL, 0 },
                { "1.%", -EINVAL, 0 },
                { ".5%", -EINVAL, 0 },
                { "1.234%", -EINVAL, 0 },
                { "", -EINVAL, 0 },
                { "99999999%", -ERANGE, 0 },
                { "5%%", -EINVAL, 0 },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                uint64_t usec = 0;

                CHECK_EQ(parse_cpu_percent(cases[i].text, &usec), cases[i].r);
                if (cases[i].r == 0)
                        CHECK_EQ(usec, cases[i].usec);
        }
}

TEST(plain_numbers)
{
        uint64_t value = 0;

        CHECK_EQ(parse_u64("18446744073709551615", &value), 0);
        CHECK(value == UINT64_MAX);
        CHECK_EQ(parse_u64("18446744073709551616", &value), -ERANGE);
        CHECK_EQ(parse_u64("", &value), -EINVAL);
        CHECK_EQ(parse_u64("-0", &value), -EINVAL);
        CHECK_EQ(parse_u64("1 ", &value), -EINVAL);
        CHECK_EQ(parse_u64("007", &value), 0);
        CHECK_EQ(value, 7);
}

TEST(formats)
{
        char text[FORMAT_MAX];

        CHECK_STR(format_bytes(UINT64_C(512) << 20, text), "512M");
        CHECK_STR(format_bytes(0, text), "0B");
        CHECK_STR(format_bytes(17, text), "17B");
        CHECK_STR(format_bytes(1536, text), "1.5K");
        CHECK_STR(format_bytes(UNKNOWN, text), "unknown");
        CHECK_STR(format_usec(0, text), "0 us");
        CHECK_STR(format_usec(3000, text), "3 ms");
        CHECK_STR(format_usec(1250000, text), "1.25 s");
        CHECK_STR(format_usec(123 * USEC_PER_SEC, text), "2 min 3 s");
        CHECK_STR(format_usec(UNKNOWN, text), "unknown");
        CHECK_STR(format_timestamp(0, text), "1970-01-01T00:00:00.000000Z");
        CHECK_STR(format_timestamp(UINT64_C(1788422462000003), text), "2026-09-03T08:01:02.000003Z");
}

TEST_MAIN
