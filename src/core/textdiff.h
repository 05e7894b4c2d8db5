/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The unified diff of two texts for a person's terminal: every line escaped, lengths bounded. Pure. */

#include "base/macro.h"

#define TEXTDIFF_BYTES_MAX MIB(1) /* of each side; larger ones are not compared by line */
#define TEXTDIFF_LINES_MAX 1000u  /* printed; then how many more there are */

/* Whether it is text: UTF-8 without NUL. */
bool textdiff_is_text(const char *data, size_t size);

/* Lines of hunks ("@@ …"), without the two lines with the names. colour: ANSI colours. "" when both are
 * equal. NULL when out of memory. */
char *textdiff(const char *before, size_t before_size, const char *after, size_t after_size, bool colour);
