/* SPDX-License-Identifier: Apache-2.0 */
#include "core/series.h"

/* The larger; a value that is known is larger than one that is not. */
static uint64_t larger(uint64_t a, uint64_t b)
{
        if (a == UNKNOWN || b == UNKNOWN)
                return MIN(a, b);
        return MAX(a, b);
}

static void halve(Series *series)
{
        size_t n = (series->n + 1) / 2;

        for (size_t i = 0; i < n; i++) {
                bool pair = 2 * i + 1 < series->n;

                series->memory_bytes[i] = larger(series->memory_bytes[2 * i],
                                pair ? series->memory_bytes[2 * i + 1] : UNKNOWN);
                series->cpu_usec[i] =
                                larger(series->cpu_usec[2 * i], pair ? series->cpu_usec[2 * i + 1] : UNKNOWN);
        }
        series->n = n;
        series->interval_usec *= 2;
}

void series_add(Series *series, uint64_t usec, uint64_t memory_bytes, uint64_t cpu_usec)
{
        size_t i;

        if (series->interval_usec == 0)
                series->interval_usec = SERIES_INTERVAL;
        while (usec / series->interval_usec >= SERIES_MAX)
                halve(series);
        i = (size_t) (usec / series->interval_usec);
        for (; series->n <= i; series->n++)
                series->memory_bytes[series->n] = series->cpu_usec[series->n] = UNKNOWN;
        series->memory_bytes[i] = larger(series->memory_bytes[i], memory_bytes);
        series->cpu_usec[i] = larger(series->cpu_usec[i], cpu_usec);
}

uint64_t series_wait(const Series *series, uint64_t usec)
{
        uint64_t interval = series->interval_usec ? series->interval_usec : SERIES_INTERVAL;
        uint64_t next = series->n * interval + interval / 2;

        return next > usec ? next - usec : interval / 2;
}

void series_line(const uint64_t *values, size_t n, size_t columns, char *buffer)
{
        static const char *const bars[] = { "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
        const size_t highest = ELEMENTSOF(bars) - 1;
        size_t width = MIN(n, columns);
        uint64_t top = 0;

        buffer[0] = '\0';
        for (size_t i = 0; i < n; i++)
                top = values[i] == UNKNOWN ? top : MAX(top, values[i]);
        for (size_t i = 0; top > 0 && i < width; i++) {
                uint64_t value = UNKNOWN;
                const char *bar = "·";

                for (size_t j = i * n / width; j < (i + 1) * n / width; j++)
                        value = larger(value, values[j]);
                if (value != UNKNOWN)
                        bar = bars[(size_t) ((double) value / (double) top * (double) highest + 0.5)];
                buffer = stpcpy(buffer, bar);
        }
}
