/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/log_time.h"

#include <time.h>

#include "test.h"

#define NOW (UINT64_C(1788422462) * USEC_PER_SEC + 500) /* 2026-09-03 08:01:02 UTC */

TEST(good)
{
        static const struct {
                const char *text;
                uint64_t usec;
        } cases[] = {
                { "now", NOW },
                { "@0", 0 },
                { "@1788422462", UINT64_C(1788422462) * USEC_PER_SEC },
                { "-1s", NOW - USEC_PER_SEC },
                { "-90s", NOW - 90 * USEC_PER_SEC },
                { "-15min", NOW - 900 * USEC_PER_SEC },
                { "-2h", NOW - 7200 * USEC_PER_SEC },
                { "-7d", NOW - 7 * 86400 * USEC_PER_SEC },
                { "-1w", NOW - 7 * 86400 * USEC_PER_SEC },
                { "-99999999h", 0 },
                { "2026-09-03T08:01:02Z", UINT64_C(1788422462) * USEC_PER_SEC },
                { "2026-09-03T08:01:02.25Z", UINT64_C(1788422462) * USEC_PER_SEC + 250000 },
                { "2026-09-03T08:01:02.123456789Z", UINT64_C(1788422462) * USEC_PER_SEC + 123456 },
                { "2026-09-03 08:01:02", UINT64_C(1788422462) * USEC_PER_SEC },
                { "2026-09-03 08:01", UINT64_C(1788422460) * USEC_PER_SEC },
                { "2026-09-03T08:01Z", UINT64_C(1788422460) * USEC_PER_SEC },
                { "2026-09-03", UINT64_C(1788393600) * USEC_PER_SEC },
                { "today", UINT64_C(1788393600) * USEC_PER_SEC },
                { "yesterday", UINT64_C(1788307200) * USEC_PER_SEC },
        };

        REQUIRE(setenv("TZ", "UTC0", 1) == 0);
        tzset();
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                uint64_t usec = UNKNOWN;
                Error e = ERROR_INIT;

                CHECK_EQ(log_time_parse(cases[i].text, NOW, &usec, &e), 0);
                if (usec != cases[i].usec)
                        (void) printf("  %s\n", cases[i].text);
                CHECK_EQ(usec, cases[i].usec);
                CHECK_STR(e.text, "");
        }
}

TEST(bad)
{
        static const char *const cases[] = { "", "-", "-h", "-1", "-1y", "-1 h", "--1s",
                "-99999999999999999999s", "@", "@-1", "@1x", "@99999999999999", "2026", "2026-13-01",
                "2026-09-32", "2026-09-03x", "2026-09-03 25:00", "2026-09-03T08:01:02.Z",
                "2026-09-03T08:01:02+02:00", "1900-01-01Z", "tomorrow", "Now", "\xff" };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                Error e = ERROR_INIT;
                uint64_t usec;
                int r = log_time_parse(cases[i], NOW, &usec, &e);

                if (r != -EINVAL)
                        (void) printf("  \"%s\"\n", cases[i]);
                CHECK_EQ(r, -EINVAL);
                CHECK_HAS(e.text, "is not a time");
        }
}

TEST_MAIN
