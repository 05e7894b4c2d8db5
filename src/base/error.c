/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"

#include <stdarg.h>

#include "base/text.h"

static void put(Error *e, const char *text)
{
        text_escape(text, strlen(text), e->text, sizeof(e->text));
}

int error_set(Error *e, int r, const char *format, ...)
{
        char buffer[ERROR_TEXT_MAX];
        va_list ap;

        if (!e)
                return r;
        va_start(ap, format);
        (void) vsnprintf(buffer, sizeof(buffer), format, ap);
        va_end(ap);
        put(e, buffer);
        return r;
}

int error_errno(Error *e, int r, const char *format, ...)
{
        char buffer[ERROR_TEXT_MAX], reason[128];
        va_list ap;
        int n;

        if (!e)
                return r;
        va_start(ap, format);
        n = vsnprintf(buffer, sizeof(buffer), format, ap);
        va_end(ap);
        if (n >= 0 && (size_t) n < sizeof(buffer))
                (void) snprintf(buffer + n, sizeof(buffer) - (size_t) n, ": %s",
                                strerror_r(abs(r), reason, sizeof(reason)));
        put(e, buffer);
        return r;
}

int error_prefix(Error *e, int r, const char *format, ...)
{
        char prefix[ERROR_TEXT_MAX], rest[ERROR_TEXT_MAX], whole[ERROR_TEXT_MAX * 2 + 2];
        va_list ap;

        if (!e)
                return r;
        va_start(ap, format);
        (void) vsnprintf(prefix, sizeof(prefix), format, ap);
        va_end(ap);
        memcpy(rest, e->text, sizeof(rest));
        (void) snprintf(whole, sizeof(whole), "%s: %s", prefix, rest);
        put(e, whole);
        return r;
}
