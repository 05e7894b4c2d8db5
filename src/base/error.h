/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The sentence a person gets. It is made where the facts are, prefixed on the way up and printed once.
 * Functions return a negative errno beside it. A fixed buffer: reporting out of memory must not need any. */

#include "base/macro.h"

#define ERROR_TEXT_MAX 1536

typedef struct Error {
        char text[ERROR_TEXT_MAX]; /* "" when nothing has been said; always valid, printable UTF-8 */
} Error;

#define ERROR_INIT ((Error){ .text = "" })

/* Writes the sentence (bytes that are not printable UTF-8 become \xNN) and returns r. e may be NULL. */
int error_set(Error *e, int r, const char *format, ...) _printf_(3, 4);

/* The same with ": " and the description of the errno behind it. */
int error_errno(Error *e, int r, const char *format, ...) _printf_(3, 4);

/* Puts text and ": " before the sentence. */
int error_prefix(Error *e, int r, const char *format, ...) _printf_(3, 4);
