/* SPDX-License-Identifier: Apache-2.0 */
#include "base/number.h"

#include <inttypes.h>
#include <time.h>

#define AGE_SECONDS_MAX UINT64_C(1000000000000) /* some thirty thousand years */

int parse_u64(const char *text, uint64_t *ret)
{
        uint64_t value = 0;

        if (!*text)
                return -EINVAL;
        for (const char *p = text; *p; p++) {
                if (*p < '0' || *p > '9')
                        return -EINVAL;
                if (__builtin_mul_overflow(value, 10, &value) ||
                                __builtin_add_overflow(value, (uint64_t) (*p - '0'), &value))
                        return -ERANGE;
        }
        *ret = value;
        return 0;
}

int parse_size(const char *text, uint64_t *ret_bytes)
{
        static const char suffixes[] = "KMGT";
        char digits[32];
        size_t length = strspn(text, "0123456789");
        unsigned shift = 0;
        uint64_t value;
        int r;

        if (length == 0)
                return -EINVAL;
        if (length >= sizeof(digits))
                return -ERANGE;
        memcpy(digits, text, length);
        digits[length] = '\0';
        if (text[length] != '\0') {
                const char *suffix = strchr(suffixes, text[length]);

                if (!suffix || text[length + 1] != '\0')
                        return -EINVAL;
                shift = 10u * (unsigned) (suffix - suffixes + 1);
        }
        r = parse_u64(digits, &value);
        if (r < 0)
                return r;
        if (value > (UINT64_MAX >> shift) || (value << shift) >= UNKNOWN - 1)
                return -ERANGE;
        *ret_bytes = value << shift;
        return 0;
}

int parse_cpu_percent(const char *text, uint64_t *ret_usec_per_sec)
{
        size_t whole = strspn(text, "0123456789"), length = whole, fraction = 0;
        uint64_t percent = 0;

        if (whole == 0 || whole > 7)
                return whole == 0 ? -EINVAL : -ERANGE;
        if (text[length] == '.') {
                fraction = strspn(text + length + 1, "0123456789");
                if (fraction == 0 || fraction > 2)
                        return -EINVAL;
                length += 1 + fraction;
        }
        if (!streq(text + length, "%"))
                return -EINVAL;
        for (size_t i = 0; i < length; i++)
                if (text[i] != '.')
                        percent = percent * 10 + (uint64_t) (text[i] - '0');
        /* percent now counts 1, 1/10 or 1/100 of a per cent; one per cent is 10,000 usec a second. */
        *ret_usec_per_sec = percent * (fraction == 0 ? 10000u : fraction == 1 ? 1000u : 100u);
        return *ret_usec_per_sec == 0 ? -ERANGE : 0;
}

int parse_age(const char *text, uint64_t *ret_usec)
{
        static const struct {
                const char *unit;
                uint64_t seconds;
        } units[] = { { "s", 1 }, { "min", 60 }, { "h", 3600 }, { "d", 86400 }, { "w", 604800 } };
        size_t digits = strspn(text, "0123456789");
        char number[12];
        uint64_t value;

        if (digits == 0)
                return -EINVAL;
        if (digits >= sizeof(number))
                return -ERANGE;
        (void) snprintf(number, sizeof(number), "%.*s", (int) digits, text);
        if (parse_u64(number, &value) < 0)
                return -EINVAL;
        for (size_t i = 0; i < ELEMENTSOF(units); i++)
                if (streq(text + digits, units[i].unit)) {
                        if (value > AGE_SECONDS_MAX / units[i].seconds)
                                return -ERANGE;
                        *ret_usec = value * units[i].seconds * USEC_PER_SEC;
                        return 0;
                }
        return -EINVAL;
}

char *format_bytes(uint64_t bytes, char buffer[static FORMAT_MAX])
{
        static const char suffixes[] = "BKMGTPE";
        unsigned unit = 0;

        if (bytes == UNKNOWN) {
                (void) snprintf(buffer, FORMAT_MAX, "unknown");
                return buffer;
        }
        while (unit < STRLEN("BKMGTPE") - 1 && bytes >> (10 * (unit + 1)) > 0)
                unit++;
        if (bytes % (UINT64_C(1) << (10 * unit)) == 0)
                (void) snprintf(buffer, FORMAT_MAX, "%" PRIu64 "%c", bytes >> (10 * unit), suffixes[unit]);
        else
                (void) snprintf(buffer, FORMAT_MAX, "%.1f%c",
                                (double) bytes / (double) (UINT64_C(1) << (10 * unit)), suffixes[unit]);
        return buffer;
}

char *format_usec(uint64_t usec, char buffer[static FORMAT_MAX])
{
        if (usec == UNKNOWN)
                (void) snprintf(buffer, FORMAT_MAX, "unknown");
        else if (usec < USEC_PER_MSEC)
                (void) snprintf(buffer, FORMAT_MAX, "%" PRIu64 " us", usec);
        else if (usec < USEC_PER_SEC)
                (void) snprintf(buffer, FORMAT_MAX, "%" PRIu64 " ms", usec / USEC_PER_MSEC);
        else if (usec < 120 * USEC_PER_SEC)
                (void) snprintf(buffer, FORMAT_MAX, "%.2f s", (double) usec / (double) USEC_PER_SEC);
        else
                (void) snprintf(buffer, FORMAT_MAX, "%" PRIu64 " min %" PRIu64 " s",
                                usec / (60 * USEC_PER_SEC), usec / USEC_PER_SEC % 60);
        return buffer;
}

char *format_timestamp(uint64_t realtime_usec, char buffer[static FORMAT_MAX])
{
        time_t seconds = (time_t) (realtime_usec / USEC_PER_SEC);
        struct tm tm = { 0 };

        if (!gmtime_r(&seconds, &tm)) {
                (void) snprintf(buffer, FORMAT_MAX, "unknown");
                return buffer;
        }
        (void) snprintf(buffer, FORMAT_MAX, "%04d-%02d-%02dT%02d:%02d:%02d.%06uZ", tm.tm_year + 1900,
                        tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec,
                        (unsigned) (realtime_usec % USEC_PER_SEC));
        return buffer;
}
