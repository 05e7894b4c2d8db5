/* SPDX-License-Identifier: Apache-2.0 */
#include "core/series.h"

#include "test.h"

TEST(largest_of_each_interval)
{
        Series s = { 0 };

        CHECK_EQ(series_wait(&s, 0), SERIES_INTERVAL / 2);
        series_add(&s, 0, 5, 1);
        series_add(&s, 1, 9, 2);
        series_add(&s, 2, 7, 3);
        series_add(&s, SERIES_INTERVAL * 3, UNKNOWN, 4);
        CHECK_EQ(s.n, 4);
        CHECK_EQ(s.memory_bytes[0], 9);
        CHECK_EQ(s.cpu_usec[0], 3);
        CHECK(s.memory_bytes[1] == UNKNOWN && s.cpu_usec[2] == UNKNOWN);
        CHECK(s.memory_bytes[3] == UNKNOWN);
        CHECK_EQ(s.cpu_usec[3], 4);
        CHECK_EQ(series_wait(&s, SERIES_INTERVAL * 3 + 10), SERIES_INTERVAL * 3 / 2 - 10);
        CHECK_EQ(series_wait(&s, SERIES_INTERVAL * 9), SERIES_INTERVAL / 2); /* late: soon */
}

/* When it is full it becomes coarser, and loses no peak. */
TEST(halves_when_full)
{
        Series s = { 0 };

        for (uint64_t i = 0; i < SERIES_MAX; i++)
                series_add(&s, i * SERIES_INTERVAL, i == 77 ? 1000 : i, i * 10);
        CHECK_EQ(s.n, SERIES_MAX);
        series_add(&s, SERIES_MAX * SERIES_INTERVAL, 3, 5000);
        CHECK_EQ(s.interval_usec, 2 * SERIES_INTERVAL);
        CHECK_EQ(s.n, SERIES_MAX / 2 + 1);
        CHECK_EQ(s.memory_bytes[38], 1000);
        CHECK_EQ(s.memory_bytes[0], 1);
        CHECK_EQ(s.cpu_usec[59], 1190);
        CHECK_EQ(s.memory_bytes[60], 3);
        CHECK_EQ(s.cpu_usec[60], 5000);
}

/* A week, a clock that has stood still, a look that comes late by years: the room is the same. */
TEST(any_time_fits)
{
        Series s = { 0 };

        series_add(&s, 0, 42, 1);
        series_add(&s, UINT64_C(7) * 24 * 3600 * USEC_PER_SEC, 1, 2);
        CHECK(s.n <= SERIES_MAX);
        CHECK_EQ(s.memory_bytes[0], 42);
        series_add(&s, UINT64_MAX / 4, 7, 3);
        CHECK(s.n <= SERIES_MAX);
        CHECK_EQ(s.memory_bytes[0], 42);
        CHECK_EQ(s.memory_bytes[s.n - 1], 7);
}

TEST(line)
{
        static const uint64_t rising[] = { 0, 1, 2, 3, 4, 5, 6, 7 }, gap[] = { 7, UNKNOWN, 7 },
                              none[] = { 0, UNKNOWN };
        char text[40 * 3 + 1];

        series_line(rising, ELEMENTSOF(rising), 40, text);
        CHECK_STR(text, "▁▂▃▄▅▆▇█");
        series_line(rising, ELEMENTSOF(rising), 4, text);
        CHECK_STR(text, "▂▄▆█");
        series_line(gap, ELEMENTSOF(gap), 40, text);
        CHECK_STR(text, "█·█");
        series_line(none, ELEMENTSOF(none), 40, text);
        CHECK_STR(text, "");
        series_line(NULL, 0, 40, text);
        CHECK_STR(text, "");
}

TEST_MAIN
