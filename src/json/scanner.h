/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Between the two halves of the strict reader: tokens (token.c) and structure (scan.c). Not for others. */

#include "json/json.h"

typedef struct Scanner {
        const uint8_t *text;
        size_t size, at;
        JsonFlags flags;
        const char *name;
        Error *e;
        const char *wanted; /* json_locate(): the path looked for, else NULL */
        size_t found;       /* its offset, once scanning ended with -ECANCELED */
} Scanner;

void scanner_line_column(const Scanner *s, size_t offset, unsigned *ret_line, unsigned *ret_column);

/* Writes a sentence with file, line, column and key; returns -EINVAL. */
int scanner_fail(Scanner *s, const JsonPath *path, size_t offset, const char *format, ...) _printf_(4, 5);
int scanner_fail_expected(Scanner *s, const JsonPath *path, const char *expected);

/* White space, and comments where the flags allow them. */
int scanner_skip_space(Scanner *s, const JsonPath *path);
/* Moves over c if it is next. */
bool scanner_accept(Scanner *s, char c);
/* A string from its quote on, unescaped into *ret; a number from its first character on. */
int scanner_string(Scanner *s, const JsonPath *path, char **ret);
int scanner_number(Scanner *s, const JsonPath *path, double *ret);
