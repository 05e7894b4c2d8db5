/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Packets of the Internet protocols (RFC 791, 8200, 9293, 768, 792, 4443), read from bytes that a hostile
 * program chose, and the answers that make its attempt fail at once. */

#include "core/evidence.h"

/* The largest answer: an ICMPv6 error is cut at this (RFC 4443, 2.4 c). */
#define PACKET_ANSWER_MAX 1280

typedef struct Packet {
        const uint8_t *data; /* borrowed; size bytes, as long as its header says */
        size_t size;
        unsigned char protocol;   /* IPPROTO_TCP …, behind all extension headers */
        bool later_fragment;      /* what follows is a piece from the middle, without any header */
        const uint8_t *transport; /* the header of that protocol */
        size_t transport_size;    /* of it and all behind it */
        Endpoint source, remote;  /* port 0: the protocol has none, or it was cut off */
        uint8_t tcp_flags;        /* TH_SYN …; 0: not TCP */
        uint32_t tcp_sequence;    /* host order */
        uint8_t icmp_type;        /* ICMP and ICMPv6 */
        const uint8_t *payload;   /* UDP: what was sent */
        size_t payload_size;
} Packet;

/* 0, or -EBADMSG: it is no packet, or a header of it is cut short. */
int packet_parse(const void *data, size_t size, Packet *ret);

/* Sent to more than one host: no such packet is ever answered. */
bool packet_is_multicast(const Packet *packet);

/* An ICMP message other than those that a program can ask for: the kernel's own doing. */
bool packet_is_kernels(const Packet *packet);

/* Writes what the addressed host would say if it did not want it: TCP RST, else ICMP unreachable. Its size;
 * 0: such a packet has no answer. */
size_t packet_refuse(const Packet *packet, uint8_t answer[static PACKET_ANSWER_MAX]);

/* Writes a datagram back to the sender of a UDP packet. Its size; 0: it does not fit. */
size_t packet_reply(const Packet *packet, const void *payload, size_t payload_size,
                uint8_t answer[static PACKET_ANSWER_MAX]);
