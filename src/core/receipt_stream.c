/* SPDX-License-Identifier: Apache-2.0 */
/* Output in the receipt: text clipped to head and tail and always valid UTF-8, and beside it what was
 * counted. Where the text had to be repaired, the kept bytes are given in base64 too. */
#include "core/receipt_parts.h"

#include <inttypes.h>

/* The part of a stream that is shown, less the pieces of a character that the clipping cut through. */
typedef struct Shown {
        const uint8_t *head, *tail;
        size_t head_size, tail_size;
} Shown;

static bool is_truncated(const StreamRecord *s)
{
        return (uint64_t) s->head_size + s->tail_size < s->bytes;
}

/* How many bytes at the end of data begin a character whose rest is missing: 0..3. */
static size_t cut_at_end(const uint8_t *data, size_t size)
{
        for (size_t n = 1; n <= MIN(size, (size_t) 3); n++) {
                uint8_t first = data[size - n], length;

                if ((first & 0xc0) == 0x80) /* a continuation: its first byte stands before */
                        continue;
                length = first > 0xf4 ? 1 : first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc2 ? 2 : 1;
                return n < length ? n : 0;
        }
        return 0;
}

/* How many bytes at the start of data end a character whose first byte is missing: 0..3. */
static size_t cut_at_start(const uint8_t *data, size_t size)
{
        size_t n = 0;

        while (n < MIN(size, (size_t) 3) && (data[n] & 0xc0) == 0x80)
                n++;
        return n;
}

static Shown stream_shown(const StreamRecord *s)
{
        Shown shown = { s->head, s->tail, s->head_size, s->tail_size };

        if (is_truncated(s)) {
                size_t skip = cut_at_start(s->tail, s->tail_size);

                shown.head_size -= cut_at_end(s->head, s->head_size);
                shown.tail += skip;
                shown.tail_size -= skip;
        }
        return shown;
}

/* Head and tail in one piece, whole characters or not. NULL: out of memory. */
static uint8_t *stream_kept(const StreamRecord *s)
{
        uint8_t *kept = malloc(s->head_size + s->tail_size + 1);

        if (!kept)
                return NULL;
        if (s->head_size > 0)
                memcpy(kept, s->head, s->head_size);
        if (s->tail_size > 0)
                memcpy(kept + s->head_size, s->tail, s->tail_size);
        return kept;
}

/* The text of a stream. *ret_exact: nothing in it had to be replaced. NULL: out of memory. */
static char *stream_text(const StreamRecord *s, bool *ret_exact)
{
        _cleanup_free_ char *head = NULL, *tail = NULL;
        Shown shown = stream_shown(s);
        bool head_exact, tail_exact;

        if (!is_truncated(s)) { /* a character may lie across the two: they are one text */
                _cleanup_free_ uint8_t *kept = stream_kept(s);

                return kept ? text_to_utf8(kept, s->head_size + s->tail_size, ret_exact) : NULL;
        }
        head = text_to_utf8(shown.head, shown.head_size, &head_exact);
        tail = text_to_utf8(shown.tail, shown.tail_size, &tail_exact);
        if (!head || !tail)
                return NULL;
        *ret_exact = head_exact && tail_exact;
        return text_printf("%s\n...[truncated %" PRIu64 " bytes]...\n%s", head,
                        s->bytes - shown.head_size - shown.tail_size, tail);
}

int receipt_add_stream_text(cJSON *receipt, const char *key, const StreamRecord *s)
{
        bool exact;
        _cleanup_free_ char *text = stream_text(s, &exact);

        return json_add(receipt, key, text ? cJSON_CreateString(text) : NULL);
}

static int add_base64(cJSON *info, const StreamRecord *s)
{
        _cleanup_free_ uint8_t *kept = stream_kept(s);
        _cleanup_free_ char *text = kept ? base64_encode(kept, s->head_size + s->tail_size) : NULL;

        if (!text)
                return -ENOMEM;
        return json_add_text(info, "base64", text);
}

int receipt_add_stream_info(cJSON *receipt, const char *key, const StreamRecord *s)
{
        cJSON *info = json_add_object(receipt, key);
        bool exact, truncated = is_truncated(s);
        _cleanup_free_ char *text = stream_text(s, &exact);

        if (!info || !text)
                return -ENOMEM;
        /* A NUL is valid UTF-8, but the text cannot carry it: who trusts "utf8" must get the bytes. */
        exact = exact && s->utf8;
        if (json_add_u64(info, "bytes", s->bytes) < 0 ||
                        json_add_text(info, "sha256", *s->sha256 ? s->sha256 : NULL) < 0 ||
                        json_add_bool(info, "truncated", truncated) < 0 ||
                        json_add_bool(info, "utf8", exact) < 0 ||
                        json_add_u64(info, "after_exit_bytes", s->after_exit_bytes) < 0)
                return -ENOMEM;
        if (truncated && (json_add_u64(info, "head_bytes", s->head_size) < 0 ||
                                         json_add_u64(info, "tail_bytes", s->tail_size) < 0))
                return -ENOMEM;
        return exact ? 0 : add_base64(info, s);
}
