/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Questions for names (RFC 1035), read from bytes that a hostile program chose, and answers to them. */

#include "base/macro.h"

/* A name is 255 bytes at most; one byte is shown as up to four. */
#define DNS_NAME_MAX   1024
#define DNS_ANSWER_MAX 512

typedef enum DnsType {
        DNS_A = 1,
        DNS_PTR = 12,
        DNS_AAAA = 28,
} DnsType;

typedef struct DnsQuestion {
        char name[DNS_NAME_MAX]; /* lower case, no dot at the end, printable: other bytes as \DDD (RFC 4343)
                                  */
        unsigned type;           /* DnsType, or any other */
        const uint8_t *data;     /* borrowed: the header and the one question */
        size_t size;
} DnsQuestion;

/* 0, or -EBADMSG: not a message with exactly one question. What follows the question is not looked at. */
int dns_parse(const void *data, size_t size, DnsQuestion *ret);

typedef enum DnsResult {
        DNS_FOUND,     /* with the IPv4 address, or, for address NULL, there is the name but no such record */
        DNS_NOT_FOUND, /* NXDOMAIN */
} DnsResult;

/* Returns the answer's size. */
size_t dns_answer(const DnsQuestion *question, DnsResult result, const uint8_t *address,
                uint8_t answer[static DNS_ANSWER_MAX]);
