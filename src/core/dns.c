/* SPDX-License-Identifier: Apache-2.0 */
#include "core/dns.h"

#include <ctype.h>

#define HEADER    12u
#define LABEL_MAX 63u
#define WIRE_MAX  255u /* of a name */
#define CLASS_IN  1u
#define RECORD    16u /* the name as a pointer, type, class, time to live, length, four bytes */

_Static_assert(HEADER + WIRE_MAX + 4 + RECORD <= DNS_ANSWER_MAX, "every answer fits");
_Static_assert(4 * WIRE_MAX < DNS_NAME_MAX, "every name fits");

static unsigned get16(const uint8_t *p)
{
        return (unsigned) p[0] << 8 | p[1];
}

/* Master file format (RFC 1035, 5.1), which is printable and cannot be mistaken for another name. */
static char *put_byte(char *out, uint8_t byte)
{
        if (isalnum(byte) || byte == '-' || byte == '_') {
                *out++ = (char) tolower(byte);
                return out;
        }
        *out++ = '\\';
        *out++ = (char) ('0' + byte / 100);
        *out++ = (char) ('0' + byte / 10 % 10);
        *out++ = (char) ('0' + byte % 10);
        return out;
}

/* Names are not compressed in a question: there is nothing before it to point at. */
static int read_name(const uint8_t *data, size_t size, char *name, size_t *ret_size)
{
        size_t at = 0;

        while (at < size && data[at] != 0) {
                size_t length = data[at];

                if (length > LABEL_MAX || at + 1 + length >= size || at + 1 + length >= WIRE_MAX)
                        return -EBADMSG;
                if (at > 0)
                        *name++ = '.';
                for (size_t i = 0; i < length; i++)
                        name = put_byte(name, data[at + 1 + i]);
                at += 1 + length;
        }
        if (at >= size)
                return -EBADMSG;
        if (at == 0)
                *name++ = '.';
        *name = '\0';
        *ret_size = at + 1;
        return 0;
}

int dns_parse(const void *data, size_t size, DnsQuestion *ret)
{
        const uint8_t *p = data;
        size_t name_size;
        int r;

        *ret = (DnsQuestion){ .data = p };
        if (size < HEADER || (p[2] & 0xf8) != 0 /* an answer, or not a plain query */ || get16(p + 4) != 1)
                return -EBADMSG;
        r = read_name(p + HEADER, size - HEADER, ret->name, &name_size);
        if (r < 0)
                return r;
        p += HEADER + name_size;
        size -= HEADER + name_size;
        if (size < 4 || get16(p + 2) != CLASS_IN)
                return -EBADMSG;
        ret->type = get16(p);
        ret->size = HEADER + name_size + 4;
        return 0;
}

size_t dns_answer(const DnsQuestion *question, DnsResult result, const uint8_t *address,
                uint8_t answer[static DNS_ANSWER_MAX])
{
        /* Pointer to the question's name, A, IN, a time to live of 0, four bytes. */
        static const uint8_t record[] = { 0xc0, HEADER, 0, DNS_A, 0, CLASS_IN, 0, 0, 0, 0, 0, 4 };
        size_t size = question->size;
        bool found = result == DNS_FOUND;

        memcpy(answer, question->data, size);
        answer[2] = (uint8_t) (0x84 | (answer[2] & 0x01));    /* an answer, authoritative */
        answer[3] = (uint8_t) (0x80 | (found ? 0x00 : 0x03)); /* recursion available; the result */
        memset(answer + 6, 0, 6);
        if (!found || !address)
                return size;
        answer[7] = 1;
        memcpy(answer + size, record, sizeof(record));
        memcpy(answer + size + sizeof(record), address, 4);
        return size + sizeof(record) + 4;
}
