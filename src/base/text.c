/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"

#include <stdarg.h>

size_t utf8_sequence(const uint8_t *p, size_t size)
{
        uint32_t code;
        size_t length;

        if (size == 0)
                return 0;
        if (p[0] < 0x80)
                return 1;
        if (p[0] >= 0xc2 && p[0] <= 0xdf)
                length = 2, code = p[0] & 0x1fu;
        else if (p[0] >= 0xe0 && p[0] <= 0xef)
                length = 3, code = p[0] & 0x0fu;
        else if (p[0] >= 0xf0 && p[0] <= 0xf4)
                length = 4, code = p[0] & 0x07u;
        else
                return 0;
        if (size < length)
                return 0;
        for (size_t i = 1; i < length; i++) {
                if ((p[i] & 0xc0) != 0x80)
                        return 0;
                code = (code << 6) | (p[i] & 0x3fu);
        }
        if ((length == 3 && code < 0x800) || (length == 4 && code < 0x10000) || code > 0x10ffff ||
                        (code >= 0xd800 && code <= 0xdfff))
                return 0;
        return length;
}

bool utf8_is_valid(const void *data, size_t size)
{
        const uint8_t *p = data;

        for (size_t i = 0; i < size;) {
                size_t n = utf8_sequence(p + i, size - i);

                if (n == 0)
                        return false;
                i += n;
        }
        return true;
}

/* Characters that move the cursor, hide or reorder text on a terminal although they are valid UTF-8. */
static bool is_dangerous(const uint8_t *p, size_t length)
{
        if (length == 1)
                return p[0] < 0x20 || p[0] == 0x7f;
        if (length == 2) /* C1 controls U+0080..U+009F, soft hyphen, Arabic letter mark U+061C */
                return (p[0] == 0xc2 && (p[1] < 0xa0 || p[1] == 0xad)) || (p[0] == 0xd8 && p[1] == 0x9c);
        if (length == 3 && p[0] == 0xe2 && p[1] == 0x80) /* zero width, marks, separators, embeddings */
                return (p[2] >= 0x8b && p[2] <= 0x8f) || (p[2] >= 0xa8 && p[2] <= 0xae);
        if (length == 3 && p[0] == 0xe2 && p[1] == 0x81) /* invisible operators, isolates */
                return p[2] >= 0xa0 && p[2] <= 0xaf;
        if (length == 3 && p[0] == 0xef)
                return p[1] == 0xbb && p[2] == 0xbf;        /* byte order mark */
        return length == 4 && p[0] == 0xf3 && p[1] == 0xa0; /* tags */
}

/* One unit of input as it is to be shown; returns the bytes of input used. */
static size_t escape_one(const uint8_t *p, size_t size, char out[static 17], size_t *ret_length)
{
        size_t n = utf8_sequence(p, size);

        if (n > 0 && !is_dangerous(p, n)) {
                memcpy(out, p, n);
                *ret_length = n;
                return n;
        }
        if (p[0] == '\n' || p[0] == '\t' || p[0] == '\r') {
                out[0] = '\\';
                out[1] = p[0] == '\n' ? 'n' : p[0] == '\t' ? 't' : 'r';
                *ret_length = 2;
                return 1;
        }
        n = MAX(n, (size_t) 1);
        for (size_t i = 0; i < n; i++)
                (void) snprintf(out + i * 4, 5, "\\x%02x", p[i]);
        *ret_length = n * 4;
        return n;
}

size_t text_escape(const char *data, size_t size, char *out, size_t out_size)
{
        size_t used = 0;

        assert(out_size > 0);
        for (size_t i = 0; i < size;) {
                char piece[17];
                size_t length, n = escape_one((const uint8_t *) data + i, size - i, piece, &length);

                if (used + length >= out_size)
                        break;
                memcpy(out + used, piece, length);
                used += length;
                i += n;
        }
        out[used] = '\0';
        return used;
}

size_t text_excerpt(const void *data, size_t size, char *out, size_t out_size)
{
        const uint8_t *p = data;
        size_t used = 0, fits = 0; /* fits: up to here, the mark of a cut has room too */

        assert(out_size >= 32);
        for (size_t i = 0; i < size;) {
                char piece[17];
                size_t length, n = escape_one(p + i, size - i, piece, &length);

                if (used + length >= out_size) {
                        memcpy(out + fits, "...", sizeof("..."));
                        return fits + STRLEN("...");
                }
                memcpy(out + used, piece, length);
                used += length;
                i += n;
                if (used + STRLEN("...") < out_size)
                        fits = used;
        }
        out[used] = '\0';
        return used;
}

char *text_escape_alloc(const char *data, size_t size)
{
        char *out;

        if (size > (SIZE_MAX - 1) / 4)
                return NULL;
        out = malloc(size * 4 + 1);
        if (out)
                text_escape(data, size, out, size * 4 + 1);
        return out;
}

char *text_to_utf8(const void *data, size_t size, bool *ret_exact)
{
        const uint8_t *p = data;
        size_t used = 0;
        bool exact = true;
        char *out;

        if (size > (SIZE_MAX - 1) / 3)
                return NULL;
        out = malloc(size * 3 + 1);
        if (!out)
                return NULL;
        for (size_t i = 0; i < size;) {
                size_t n = utf8_sequence(p + i, size - i);

                if (n == 0 || p[i] == '\0') {
                        memcpy(out + used, "\xef\xbf\xbd", 3);
                        used += 3;
                        i++;
                        exact = false;
                        continue;
                }
                memcpy(out + used, p + i, n);
                used += n;
                i += n;
        }
        out[used] = '\0';
        if (ret_exact)
                *ret_exact = exact;
        return out;
}

char *text_vprintf(const char *format, va_list ap)
{
        char *text = NULL;

        return vasprintf(&text, format, ap) < 0 ? NULL : text;
}

static ssize_t take(void *cookie, const char *data, size_t size)
{
        TextStream *stream = cookie;

        if (stream->size + size >= stream->room) {
                size_t room = (stream->size + size) * 2 + 1;
                char *larger = realloc(stream->text, room);

                if (!larger)
                        return 0;
                stream->text = larger;
                stream->room = room;
        }
        memcpy(stream->text + stream->size, data, size);
        stream->size += size;
        stream->text[stream->size] = '\0';
        return (ssize_t) size;
}

FILE *text_stream_open(TextStream *stream)
{
        *stream = (TextStream){ .text = calloc(1, 1), .room = 1 };
        if (stream->text)
                stream->f = fopencookie(stream, "w", (cookie_io_functions_t){ .write = take });
        if (!stream->f) {
                free(stream->text);
                stream->text = NULL;
        }
        return stream->f;
}

char *text_stream_close(TextStream *stream, int r)
{
        bool failed = r < 0 || !stream->f || ferror(stream->f);

        if (stream->f)
                failed = fclose(stream->f) != 0 || failed;
        if (!failed)
                return stream->text;
        free(stream->text);
        return NULL;
}

char *text_printf(const char *format, ...)
{
        va_list ap;
        char *text;

        va_start(ap, format);
        text = text_vprintf(format, ap);
        va_end(ap);
        return text;
}

bool text_field(const char *text, const char *name, char *value, size_t size)
{
        size_t length = strlen(name);

        for (const char *line = text; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
                if (strncmp(line, name, length) != 0 || line[length] != ':')
                        continue;
                line += length + 1;
                line += strspn(line, "\t ");
                (void) snprintf(value, size, "%.*s", (int) strcspn(line, "\n"), line);
                return true;
        }
        return false;
}

size_t strv_length(char *const *list)
{
        size_t n = 0;

        while (list && list[n])
                n++;
        return n;
}

bool strv_contains(char *const *list, const char *text)
{
        for (size_t i = 0; list && list[i]; i++)
                if (streq(list[i], text))
                        return true;
        return false;
}

int strv_compare(const void *a, const void *b)
{
        return strcmp(*(const char *const *) a, *(const char *const *) b);
}

char **strv_free(char **list)
{
        for (size_t i = 0; list && list[i]; i++)
                free(list[i]);
        free(list);
        return NULL;
}

int strv_consume(char ***list, char *text)
{
        size_t n = strv_length(*list);
        char **larger;

        if (!text)
                return -ENOMEM;
        /* Grows by powers of two: the old length says when the room is used up. */
        if (n == 0 || ((n + 1) & n) == 0) {
                larger = reallocarray(*list, (n + 1) * 2, sizeof(char *));
                if (!larger) {
                        free(text);
                        return -ENOMEM;
                }
                *list = larger;
        }
        (*list)[n] = text;
        (*list)[n + 1] = NULL;
        return 0;
}

int strv_extend(char ***list, const char *text)
{
        return strv_consume(list, strdup(text));
}

int strv_extendf(char ***list, const char *format, ...)
{
        va_list ap;
        char *text;

        va_start(ap, format);
        text = text_vprintf(format, ap);
        va_end(ap);
        return strv_consume(list, text);
}

char **strv_new(size_t n)
{
        size_t room = 1;

        while (room < n + 1) /* as strv_consume() would have made it */
                room *= 2;
        return calloc(room, sizeof(char *));
}

char **strv_copy(char *const *list)
{
        size_t n = strv_length(list);
        _cleanup_strv_ char **copy = strv_new(n);

        if (!copy)
                return NULL;
        for (size_t i = 0; i < n; i++) {
                copy[i] = strdup(list[i]);
                if (!copy[i])
                        return NULL;
        }
        return TAKE_PTR(copy);
}
