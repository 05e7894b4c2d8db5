/* SPDX-License-Identifier: Apache-2.0 */
#include "core/csv.h"

#include <inttypes.h>

#include "base/text.h"

/* A cell that begins so is a formula (OWASP, "CSV Injection"); tabs and line ends are no longer there. */
#define FORMULA_STARTS "=+-@"

int csv_text(FILE *out, const char *text)
{
        _cleanup_free_ char *safe = NULL;

        if (!text)
                return 0;
        safe = text_escape_alloc(text, strlen(text));
        if (!safe)
                return -ENOMEM;
        (void) fputc('"', out);
        if (strchr(FORMULA_STARTS, *safe) && *safe)
                (void) fputc('\'', out);
        for (const char *p = safe; *p; p++) {
                if (*p == '"')
                        (void) fputc('"', out);
                (void) fputc(*p, out);
        }
        (void) fputc('"', out);
        return 0;
}

void csv_number(FILE *out, uint64_t number)
{
        if (number != UNKNOWN)
                (void) fprintf(out, "%" PRIu64, number);
}
