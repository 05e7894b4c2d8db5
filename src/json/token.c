/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens of the strict reader: white space, comments, strings, numbers, and the sentences for all errors.
 * Knows nothing of lists and objects. */

#include "json/scanner.h"

#include <locale.h>
#include <math.h>
#include <stdarg.h>

#include "base/text.h"

#define INTEGER_MAX     (UINT64_C(1) << 53) /* beyond, a double skips integers */
#define NUMBER_TEXT_MAX 128u

/* --- places and sentences --- */

char *json_path_format(const JsonPath *path, char buffer[static JSON_PATH_MAX])
{
        size_t used;

        if (!path || !path->up) {
                buffer[0] = '\0';
                return buffer;
        }
        json_path_format(path->up, buffer);
        used = strlen(buffer);
        if (path->key)
                (void) snprintf(buffer + used, JSON_PATH_MAX - used, "%s%s", used > 0 ? "." : "", path->key);
        else
                (void) snprintf(buffer + used, JSON_PATH_MAX - used, "[%zu]", path->index);
        return buffer;
}

void scanner_line_column(const Scanner *s, size_t offset, unsigned *ret_line, unsigned *ret_column)
{
        unsigned line = 1, column = 1;

        for (size_t i = 0; i < offset && i < s->size; i++) {
                if (s->text[i] == '\n')
                        line++, column = 1;
                else if ((s->text[i] & 0xc0) != 0x80) /* columns count characters */
                        column++;
        }
        *ret_line = line;
        *ret_column = column;
}

int scanner_fail(Scanner *s, const JsonPath *path, size_t offset, const char *format, ...)
{
        char where[JSON_PATH_MAX], what[512];
        unsigned line, column;
        va_list ap;

        if (s->wanted || !s->e)
                return -EINVAL;
        va_start(ap, format);
        (void) vsnprintf(what, sizeof(what), format, ap);
        va_end(ap);
        scanner_line_column(s, offset, &line, &column);
        json_path_format(path, where);
        return error_set(s->e, -EINVAL, "%s: line %u, column %u: %s%s%s", s->name, line, column, where,
                        where[0] ? ": " : "", what);
}

/* The byte at offset as it may stand in a sentence. */
static const char *show_byte(const Scanner *s, size_t offset, char buffer[static 16])
{
        uint8_t c;

        if (offset >= s->size)
                return "the end of the text";
        c = s->text[offset];
        if (c > 0x20 && c < 0x7f)
                (void) snprintf(buffer, 16, "'%c'", c);
        else
                (void) snprintf(buffer, 16, "byte 0x%02x", c);
        return buffer;
}

int scanner_fail_expected(Scanner *s, const JsonPath *path, const char *expected)
{
        char buffer[16];

        return scanner_fail(s, path, s->at, "expected %s, found %s", expected, show_byte(s, s->at, buffer));
}

/* --- white space and comments --- */

static int skip_comment(Scanner *s, const JsonPath *path)
{
        while (s->at < s->size && s->text[s->at] != '\n') {
                size_t n = utf8_sequence(s->text + s->at, s->size - s->at);

                if (n == 0)
                        return scanner_fail(s, path, s->at, "a comment that is not UTF-8 (byte 0x%02x)",
                                        s->text[s->at]);
                s->at += n;
        }
        return 0;
}

int scanner_skip_space(Scanner *s, const JsonPath *path)
{
        while (s->at < s->size) {
                uint8_t c = s->text[s->at];

                if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
                        s->at++;
                } else if (c == '/' && s->at + 1 < s->size && s->text[s->at + 1] == '/') {
                        int r;

                        if (!(s->flags & JSON_COMMENTS))
                                return scanner_fail(s, path, s->at, "comments are not allowed in this file");
                        r = skip_comment(s, path);
                        if (r < 0)
                                return r;
                } else {
                        break;
                }
        }
        return 0;
}

bool scanner_accept(Scanner *s, char c)
{
        if (s->at >= s->size || s->text[s->at] != (uint8_t) c)
                return false;
        s->at++;
        return true;
}

/* --- strings --- */

/* Four hex digits after "\u" at s->at; -1 when there are not. */
static int32_t scan_hex4(Scanner *s)
{
        int32_t code = 0;

        if (s->size - s->at < 4)
                return -1;
        for (size_t i = 0; i < 4; i++) {
                uint8_t c = s->text[s->at + i];

                code *= 16;
                if (c >= '0' && c <= '9')
                        code += c - '0';
                else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
                        code += (c | 0x20) - 'a' + 10;
                else
                        return -1;
        }
        s->at += 4;
        return code;
}

static size_t put_utf8(uint32_t code, char *out)
{
        if (code < 0x80) {
                out[0] = (char) code;
                return 1;
        }
        if (code < 0x800) {
                out[0] = (char) (0xc0 | (code >> 6));
                out[1] = (char) (0x80 | (code & 0x3f));
                return 2;
        }
        if (code < 0x10000) {
                out[0] = (char) (0xe0 | (code >> 12));
                out[1] = (char) (0x80 | ((code >> 6) & 0x3f));
                out[2] = (char) (0x80 | (code & 0x3f));
                return 3;
        }
        out[0] = (char) (0xf0 | (code >> 18));
        out[1] = (char) (0x80 | ((code >> 12) & 0x3f));
        out[2] = (char) (0x80 | ((code >> 6) & 0x3f));
        out[3] = (char) (0x80 | (code & 0x3f));
        return 4;
}

/* After "\u". */
static int scan_unicode(Scanner *s, const JsonPath *path, char *out, size_t *used)
{
        size_t start = s->at - 2;
        int32_t code = scan_hex4(s), low;

        if (code < 0)
                return scanner_fail(s, path, start, "\\u needs four hexadecimal digits");
        if (code == 0)
                return scanner_fail(s, path, start, "\\u0000 is not allowed: no string here may hold a NUL");
        if (code >= 0xdc00 && code <= 0xdfff)
                return scanner_fail(s, path, start,
                                "\\u%04x is the second half of a surrogate pair without its first",
                                (unsigned) code);
        if (code >= 0xd800 && code <= 0xdbff) {
                low = scanner_accept(s, '\\') && scanner_accept(s, 'u') ? scan_hex4(s) : -1;
                if (low < 0xdc00 || low > 0xdfff)
                        return scanner_fail(s, path, start, "\\u%04x is half of a surrogate pair",
                                        (unsigned) code);
                code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
        }
        *used += put_utf8((uint32_t) code, out + *used);
        return 0;
}

/* After the backslash. */
static int scan_escape(Scanner *s, const JsonPath *path, char *out, size_t *used)
{
        static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
        const char *found = NULL;

        if (s->at < s->size && s->text[s->at] != '\0')
                found = strchr(from, s->text[s->at]);
        if (found) {
                out[(*used)++] = to[found - from];
                s->at++;
                return 0;
        }
        if (scanner_accept(s, 'u'))
                return scan_unicode(s, path, out, used);
        return scanner_fail_expected(s, path, "one of \" \\ / b f n r t u after a backslash");
}

/* Everything between the quotes; out has room for as many bytes as are left up to the closing quote. */
static int scan_characters(Scanner *s, const JsonPath *path, size_t start, char *out)
{
        size_t used = 0, n;
        int r;

        while (!scanner_accept(s, '"')) {
                if (s->at >= s->size)
                        return scanner_fail(s, path, start, "this string has no end");
                if (s->text[s->at] < 0x20)
                        return scanner_fail(s, path, s->at,
                                        "a control character (0x%02x) in a string: write it as \\u%04x",
                                        s->text[s->at], s->text[s->at]);
                if (scanner_accept(s, '\\')) {
                        r = scan_escape(s, path, out, &used);
                        if (r < 0)
                                return r;
                        continue;
                }
                n = utf8_sequence(s->text + s->at, s->size - s->at);
                if (n == 0)
                        return scanner_fail(s, path, s->at, "not UTF-8 (byte 0x%02x)", s->text[s->at]);
                memcpy(out + used, s->text + s->at, n);
                used += n;
                s->at += n;
        }
        out[used] = '\0';
        return 0;
}

/* A string from its quote on, unescaped into *ret. */
int scanner_string(Scanner *s, const JsonPath *path, char **ret)
{
        _cleanup_free_ char *out = NULL;
        size_t start = s->at, end = start + 1;
        int r;

        while (end < s->size && s->text[end] != '"')
                end += s->text[end] == '\\' ? 2 : 1;
        out = malloc(MIN(end, s->size) - start + 1);
        if (!out)
                return -ENOMEM;
        s->at++;
        r = scan_characters(s, path, start, out);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(out);
        return 0;
}

/* --- numbers --- */

static size_t skip_digits(Scanner *s)
{
        size_t start = s->at;

        while (s->at < s->size && s->text[s->at] >= '0' && s->text[s->at] <= '9')
                s->at++;
        return s->at - start;
}

/* Moves over one number and says whether it is written as an integer. */
static int scan_number_shape(Scanner *s, const JsonPath *path, bool *ret_integer)
{
        bool integer = true;
        size_t start;

        (void) scanner_accept(s, '-');
        start = s->at;
        if (skip_digits(s) == 0)
                return scanner_fail_expected(s, path, "a digit");
        if (s->text[start] == '0' && s->at - start > 1)
                return scanner_fail(s, path, start, "a number must not begin with 0");
        if (scanner_accept(s, '.')) {
                integer = false;
                if (skip_digits(s) == 0)
                        return scanner_fail_expected(s, path, "a digit after the decimal point");
        }
        if (scanner_accept(s, 'e') || scanner_accept(s, 'E')) {
                integer = false;
                if (!scanner_accept(s, '+'))
                        (void) scanner_accept(s, '-');
                if (skip_digits(s) == 0)
                        return scanner_fail_expected(s, path, "a digit in the exponent");
        }
        *ret_integer = integer;
        return 0;
}

static bool integer_is_exact(const char *text)
{
        uint64_t value = 0;

        for (const char *p = text[0] == '-' ? text + 1 : text; *p; p++) {
                value = value * 10 + (uint64_t) (*p - '0');
                if (value > INTEGER_MAX)
                        return false;
        }
        return true;
}

int scanner_number(Scanner *s, const JsonPath *path, double *ret)
{
        char text[NUMBER_TEXT_MAX];
        size_t start = s->at, length;
        bool integer = false;
        double value;
        int r;

        r = scan_number_shape(s, path, &integer);
        if (r < 0)
                return r;
        length = s->at - start;
        if (length >= sizeof(text))
                return scanner_fail(s, path, start, "this number is %zu characters long, at most %u are read",
                                length, NUMBER_TEXT_MAX - 1);
        memcpy(text, s->text + start, length);
        text[length] = '\0';
        if (integer && !integer_is_exact(text))
                return scanner_fail(s, path, start,
                                "the integer %.40s is beyond 2^53 and would not be kept exactly", text);
        /* newlocale(3) with "C" for all categories returns a static object. */
        value = strtod_l(text, NULL, newlocale(LC_ALL_MASK, "C", (locale_t) 0));
        if (!isfinite(value))
                return scanner_fail(s, path, start, "the number %.40s is out of range", text);
        *ret = value;
        return 0;
}
