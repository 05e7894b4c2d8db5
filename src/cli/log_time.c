/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/log_time.h"

#include <time.h>

#include "base/number.h"

#define SECONDS_MAX UINT64_C(253402300799) /* 9999-12-31: a year of four digits */

/* "-90s", "-15min", "-2h", "-7d": before now. */
static int parse_span(const char *text, uint64_t now_usec, uint64_t *ret)
{
        uint64_t span;
        int r = parse_age(text, &span);

        if (r < 0)
                return -EINVAL;
        *ret = span < now_usec ? now_usec - span : 0;
        return 0;
}

static int parse_epoch(const char *text, uint64_t *ret)
{
        uint64_t seconds;

        if (parse_u64(text, &seconds) < 0 || seconds > SECONDS_MAX)
                return -EINVAL;
        *ret = seconds * USEC_PER_SEC;
        return 0;
}

/* ".5" to 500000; further digits are dropped. */
static int parse_fraction(const char **text, uint64_t *ret_usec)
{
        uint64_t scale = USEC_PER_SEC / 10;
        const char *p = *text + 1;

        if (*p < '0' || *p > '9')
                return -EINVAL;
        for (; *p >= '0' && *p <= '9'; p++, scale /= 10)
                *ret_usec += (uint64_t) (*p - '0') * scale;
        *text = p;
        return 0;
}

static int parse_date(const char *text, uint64_t *ret)
{
        static const char *const formats[] = { "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M",
                "%Y-%m-%d %H:%M", "%Y-%m-%d" };
        uint64_t fraction = 0;

        for (size_t i = 0; i < ELEMENTSOF(formats); i++) {
                struct tm tm = { .tm_isdst = -1 };
                const char *end = strptime(text, formats[i], &tm);
                bool utc;
                time_t seconds;

                if (!end)
                        continue;
                if (*end == '.' && i < 2 && parse_fraction(&end, &fraction) < 0)
                        return -EINVAL;
                utc = streq(end, "Z");
                if (!utc && *end != '\0')
                        continue;
                seconds = utc ? timegm(&tm) : mktime(&tm);
                if (seconds < 0 || (uint64_t) seconds > SECONDS_MAX)
                        return -EINVAL;
                *ret = (uint64_t) seconds * USEC_PER_SEC + fraction;
                return 0;
        }
        return -EINVAL;
}

/* Midnight, local time, some days ago. */
static int parse_day(uint64_t now_usec, int days_ago, uint64_t *ret)
{
        time_t now = (time_t) (now_usec / USEC_PER_SEC), midnight;
        struct tm tm;

        if (!localtime_r(&now, &tm))
                return -EINVAL;
        tm.tm_hour = tm.tm_min = tm.tm_sec = 0;
        tm.tm_mday -= days_ago;
        tm.tm_isdst = -1;
        midnight = mktime(&tm);
        if (midnight < 0)
                return -EINVAL;
        *ret = (uint64_t) midnight * USEC_PER_SEC;
        return 0;
}

int log_time_parse(const char *text, uint64_t now_usec, uint64_t *ret_usec, Error *e)
{
        int r;

        if (streq(text, "now")) {
                *ret_usec = now_usec;
                return 0;
        }
        if (streq(text, "today") || streq(text, "yesterday"))
                r = parse_day(now_usec, streq(text, "yesterday"), ret_usec);
        else if (*text == '-')
                r = parse_span(text + 1, now_usec, ret_usec);
        else if (*text == '@')
                r = parse_epoch(text + 1, ret_usec);
        else
                r = parse_date(text, ret_usec);
        if (r < 0)
                return error_set(e, r,
                                "\"%s\" is not a time: 2026-09-03, \"2026-09-03 08:01:02\", @SECONDS, now, today, yesterday, "
                                "or before now: -90s, -5min, -2h, -7d, -1w",
                                text);
        return 0;
}
