/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Bytes that came from outside, made safe to print or to put into JSON; lists of strings. */

#include <stdarg.h>

#include "base/macro.h"

/* Length in bytes of the valid UTF-8 sequence at p (1..4), or 0: not UTF-8 (RFC 3629: no surrogates, no
 * overlong forms, nothing above U+10FFFF). */
size_t utf8_sequence(const uint8_t *p, size_t size);
bool utf8_is_valid(const void *data, size_t size);

/* Copies into out (size out_size, always terminated, cut at a character's edge): printable UTF-8 as it is,
 * everything else (controls, escapes, C1, bidirectional overrides, bytes that are not UTF-8) as \n, \t, \xNN.
 * Returns the length written. */
size_t text_escape(const char *data, size_t size, char *out, size_t out_size);

/* The same; what does not fit is cut and marked by "..." at the end. out_size is at least 32. */
size_t text_excerpt(const void *data, size_t size, char *out, size_t out_size);

/* The same as text_escape(), allocated, unbounded. NULL when out of memory. */
char *text_escape_alloc(const char *data, size_t size);

/* Valid UTF-8 from any bytes: each byte that is not becomes U+FFFD, and NUL becomes U+FFFD too, as C strings
 * cannot carry it. *ret_exact (may be NULL) tells whether nothing had to be replaced. NULL: out of memory. */
char *text_to_utf8(const void *data, size_t size, bool *ret_exact);

/* printf into a new string; NULL when out of memory. */
char *text_printf(const char *format, ...) _printf_(1, 2);
char *text_vprintf(const char *format, va_list ap) _printf_(1, 0);

/* A text that is written in pieces; the struct must stay where it is. text_stream_open() returns NULL when
 * out of memory, and then there is nothing to be closed, but may be; text_stream_close() the text, or NULL
 * where r is negative or not all could be kept: open_memstream(3) loses without a word a piece for which
 * there is no memory. */
typedef struct TextStream {
        FILE *f;
        char *text;
        size_t size, room; /* size is up to date after fflush() and at the end */
} TextStream;

FILE *text_stream_open(TextStream *stream);
char *text_stream_close(TextStream *stream, int r);

/* The rest of the line that begins with "NAME:", without the spaces and tabs before it, cut to the size; as
 * in /proc/PID/status. false: there is no such line, and value stays as it is. */
bool text_field(const char *text, const char *name, char *value, size_t size);

/* --- lists of strings, ended by NULL; NULL is the empty list --- */
size_t strv_length(char *const *list);
bool strv_contains(char *const *list, const char *text);
/* In the order of strcmp(3), for qsort(3) and bsearch(3). */
int strv_compare(const void *a, const void *b);
/* An empty list with room for n strings, which may then be put in by index, from 0 on. */
char **strv_new(size_t n);
char **strv_copy(char *const *list);
char **strv_free(char **list);
/* Appends a copy; 0 or -ENOMEM. */
int strv_extend(char ***list, const char *text);
/* Appends text itself and frees it on failure. NULL text is -ENOMEM, so a call that allocates can be passed.
 */
int strv_consume(char ***list, char *text);
int strv_extendf(char ***list, const char *format, ...) _printf_(2, 3);
DEFINE_CLEANUP(char **, strv_free)
#define _cleanup_strv_ _cleanup_(strv_freep)
