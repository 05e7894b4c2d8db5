/* SPDX-License-Identifier: Apache-2.0 */
/* All offsets are those of the RFCs. Nothing is read before its size was checked: the headers' own lengths
 * are claims. */
#include "core/packet.h"

#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#define IPV4_HEADER    20u
#define IPV6_HEADER    40u
#define TCP_HEADER     20u
#define UDP_HEADER     8u
#define ICMP_HEADER    8u
#define FRAGMENT_SIZE  8u
#define EXTENSIONS_MAX 16u
#define ICMP_QUOTE_MAX 548u /* so that the message is no longer than 576 bytes (RFC 1812, 4.3.2.3) */
#define ANSWER_TTL     64

static uint16_t get16(const uint8_t *p)
{
        return (uint16_t) (p[0] << 8 | p[1]);
}

static uint32_t get32(const uint8_t *p)
{
        return (uint32_t) get16(p) << 16 | get16(p + 2);
}

static void put16(uint8_t *p, uint32_t value)
{
        p[0] = (uint8_t) (value >> 8);
        p[1] = (uint8_t) value;
}

static void put32(uint8_t *p, uint32_t value)
{
        put16(p, value >> 16);
        put16(p + 2, value);
}

/* --- reading --- */

static int parse_ipv4(Packet *p)
{
        size_t header, total;
        uint16_t fragment;

        if (p->size < IPV4_HEADER)
                return -EBADMSG;
        header = (size_t) (p->data[0] & 0x0f) * 4;
        total = get16(p->data + 2);
        if (header < IPV4_HEADER || total < header || total > p->size)
                return -EBADMSG;
        p->size = total;
        fragment = get16(p->data + 6);
        p->later_fragment = (fragment & 0x1fff) != 0;
        p->protocol = p->data[9];
        p->source.family = p->remote.family = AF_INET;
        memcpy(p->source.address, p->data + 12, 4);
        memcpy(p->remote.address, p->data + 16, 4);
        p->transport = p->data + header;
        p->transport_size = total - header;
        return 0;
}

/* Extension headers (RFC 8200, 4.1; authentication: RFC 4302). An unknown one ends the search: it is then the
 * protocol. */
static int skip_extensions(Packet *p)
{
        for (unsigned i = 0; i < EXTENSIONS_MAX; i++) {
                const uint8_t *h = p->transport;
                size_t length;

                switch (p->protocol) {
                case IPPROTO_HOPOPTS:
                case IPPROTO_ROUTING:
                case IPPROTO_DSTOPTS:
                case IPPROTO_MH:
                        length = p->transport_size < 2 ? SIZE_MAX : ((size_t) h[1] + 1) * 8;
                        break;
                case IPPROTO_AH:
                        length = p->transport_size < 2 ? SIZE_MAX : ((size_t) h[1] + 2) * 4;
                        break;
                case IPPROTO_FRAGMENT:
                        length = FRAGMENT_SIZE;
                        break;
                default:
                        return 0;
                }
                if (length > p->transport_size)
                        return -EBADMSG;
                if (p->protocol == IPPROTO_FRAGMENT && (get16(h + 2) & 0xfff8) != 0)
                        p->later_fragment = true;
                p->protocol = h[0];
                p->transport += length;
                p->transport_size -= length;
                if (p->later_fragment)
                        return 0;
        }
        return -EBADMSG;
}

static int parse_ipv6(Packet *p)
{
        size_t payload;

        if (p->size < IPV6_HEADER)
                return -EBADMSG;
        payload = get16(p->data + 4);
        if (payload > p->size - IPV6_HEADER)
                return -EBADMSG;
        p->size = IPV6_HEADER + payload;
        p->protocol = p->data[6];
        p->source.family = p->remote.family = AF_INET6;
        memcpy(p->source.address, p->data + 8, 16);
        memcpy(p->remote.address, p->data + 24, 16);
        p->transport = p->data + IPV6_HEADER;
        p->transport_size = payload;
        return skip_extensions(p);
}

/* Source and destination port stand first in each of these. */
static bool has_ports(unsigned char protocol)
{
        return protocol == IPPROTO_TCP || protocol == IPPROTO_UDP || protocol == IPPROTO_UDPLITE ||
               protocol == IPPROTO_SCTP || protocol == IPPROTO_DCCP;
}

static bool is_icmp(const Packet *p)
{
        return p->protocol == (p->remote.family == AF_INET ? IPPROTO_ICMP : IPPROTO_ICMPV6);
}

static int parse_transport(Packet *p)
{
        const uint8_t *h = p->transport;

        if (p->later_fragment)
                return 0;
        if (has_ports(p->protocol) && p->transport_size >= 4) {
                p->source.port = get16(h);
                p->remote.port = get16(h + 2);
        }
        if (p->protocol == IPPROTO_TCP) {
                if (p->transport_size < TCP_HEADER)
                        return -EBADMSG;
                p->tcp_sequence = get32(h + 4);
                p->tcp_flags = h[13] & 0x3f;
        } else if (p->protocol == IPPROTO_UDP) {
                if (p->transport_size < UDP_HEADER)
                        return -EBADMSG;
                p->payload = h + UDP_HEADER;
                p->payload_size = p->transport_size - UDP_HEADER;
        } else if (is_icmp(p)) {
                if (p->transport_size < ICMP_HEADER)
                        return -EBADMSG;
                p->icmp_type = h[0];
        }
        return 0;
}

int packet_parse(const void *data, size_t size, Packet *ret)
{
        int r;

        *ret = (Packet){ .data = data, .size = size };
        if (size == 0)
                return -EBADMSG;
        switch (ret->data[0] >> 4) {
        case 4:
                r = parse_ipv4(ret);
                break;
        case 6:
                r = parse_ipv6(ret);
                break;
        default:
                r = -EBADMSG;
        }
        return r < 0 ? r : parse_transport(ret);
}

bool packet_is_multicast(const Packet *p)
{
        const uint8_t *a = p->remote.address;

        if (p->remote.family == AF_INET6)
                return a[0] == 0xff;
        return a[0] >> 4 == 0xe || get32(a) == INADDR_BROADCAST;
}

/* A program without capabilities can send echo requests (icmp(7)), and by joining a group make the kernel
 * report it (RFC 2710, 3810). The rest answers or announces something. */
bool packet_is_kernels(const Packet *p)
{
        static const uint8_t asked_v4[] = { ICMP_ECHO, 42 /* extended echo, RFC 8335 */ };
        static const uint8_t asked_v6[] = { ICMP6_ECHO_REQUEST, MLD_LISTENER_REPORT, MLD_LISTENER_REDUCTION,
                143 /* MLDv2 report */, 160 /* extended echo */ };
        bool v4 = p->remote.family == AF_INET;

        if (p->protocol == IPPROTO_TCP)
                return !p->later_fragment && (p->tcp_flags & TH_RST);
        return is_icmp(p) && !p->later_fragment &&
               !memchr(v4 ? asked_v4 : asked_v6, p->icmp_type, v4 ? sizeof(asked_v4) : sizeof(asked_v6));
}

/* --- answering --- */

static uint32_t sum(const uint8_t *p, size_t size, uint32_t start)
{
        uint32_t total = start;

        for (; size >= 2; p += 2, size -= 2)
                total += get16(p);
        return size ? total + ((uint32_t) *p << 8) : total;
}

static uint16_t fold(uint32_t total)
{
        while (total >> 16)
                total = (total & 0xffff) + (total >> 16);
        return (uint16_t) ~total;
}

/* The header from the packet's destination back to its source. Returns where the next one goes. */
static uint8_t *put_header(const Packet *p, unsigned char protocol, size_t size, uint8_t *out)
{
        if (p->remote.family == AF_INET) {
                memset(out, 0, IPV4_HEADER);
                out[0] = 0x45;
                put16(out + 2, (uint32_t) (IPV4_HEADER + size));
                out[8] = ANSWER_TTL;
                out[9] = protocol;
                memcpy(out + 12, p->remote.address, 4);
                memcpy(out + 16, p->source.address, 4);
                put16(out + 10, fold(sum(out, IPV4_HEADER, 0)));
                return out + IPV4_HEADER;
        }
        memset(out, 0, IPV6_HEADER);
        out[0] = 0x60;
        put16(out + 4, (uint32_t) size);
        out[6] = protocol;
        out[7] = ANSWER_TTL;
        memcpy(out + 8, p->remote.address, 16);
        memcpy(out + 24, p->source.address, 16);
        return out + IPV6_HEADER;
}

/* With the pseudo header that TCP, UDP and ICMPv6 have in common. */
static uint16_t checksum(const Packet *p, unsigned char protocol, const uint8_t *data, size_t size)
{
        uint32_t total = (uint32_t) size + protocol;

        total = sum(p->source.address, sizeof(p->source.address), total);
        total = sum(p->remote.address, sizeof(p->remote.address), total);
        return fold(sum(data, size, total));
}

static size_t header_size(const Packet *p)
{
        return p->remote.family == AF_INET ? IPV4_HEADER : IPV6_HEADER;
}

/* RFC 9293, 3.10.7.1: what a closed port says. */
static size_t put_reset(const Packet *p, uint8_t *answer)
{
        uint8_t *out = put_header(p, IPPROTO_TCP, TCP_HEADER, answer);
        const uint8_t *h = p->transport;
        size_t header = MIN((size_t) (h[12] >> 4) * 4, p->transport_size);
        uint32_t length = (uint32_t) (p->transport_size - MAX(header, (size_t) TCP_HEADER));

        memset(out, 0, TCP_HEADER);
        put16(out, p->remote.port);
        put16(out + 2, p->source.port);
        out[12] = (TCP_HEADER / 4) << 4;
        if (p->tcp_flags & TH_ACK) {
                put32(out + 4, get32(h + 8));
                out[13] = TH_RST;
        } else {
                length += (p->tcp_flags & TH_SYN ? 1u : 0u) + (p->tcp_flags & TH_FIN ? 1u : 0u);
                put32(out + 8, p->tcp_sequence + length);
                out[13] = TH_RST | TH_ACK;
        }
        put16(out + 16, checksum(p, IPPROTO_TCP, out, TCP_HEADER));
        return header_size(p) + TCP_HEADER;
}

/* Of all codes one that a socket which does not ask for errors is told of, too: "fatal" in the kernel's table
 * (icmp_err_convert[] in net/ipv4/icmp.c). */
static uint8_t unreachable_code(const Packet *p)
{
        if (p->remote.family != AF_INET)
                return p->protocol == IPPROTO_UDP ? ICMP6_DST_UNREACH_NOPORT : ICMP6_DST_UNREACH_ADMIN;
        if (p->protocol == IPPROTO_UDP)
                return ICMP_PORT_UNREACH;
        return is_icmp(p) ? ICMP_PKT_FILTERED : ICMP_PROT_UNREACH;
}

static size_t put_unreachable(const Packet *p, uint8_t *answer)
{
        bool v4 = p->remote.family == AF_INET;
        size_t most = v4 ? ICMP_QUOTE_MAX : PACKET_ANSWER_MAX - IPV6_HEADER - ICMP_HEADER;
        size_t quoted = MIN(p->size, most), size = ICMP_HEADER + quoted;
        unsigned char protocol = v4 ? IPPROTO_ICMP : IPPROTO_ICMPV6;
        uint8_t *out = put_header(p, protocol, size, answer);

        memset(out, 0, ICMP_HEADER);
        out[0] = v4 ? ICMP_DEST_UNREACH : ICMP6_DST_UNREACH;
        out[1] = unreachable_code(p);
        memcpy(out + ICMP_HEADER, p->data, quoted);
        put16(out + 2, v4 ? fold(sum(out, size, 0)) : checksum(p, protocol, out, size));
        return header_size(p) + size;
}

size_t packet_refuse(const Packet *p, uint8_t answer[static PACKET_ANSWER_MAX])
{
        if (p->later_fragment || packet_is_multicast(p) || packet_is_kernels(p))
                return 0;
        return p->protocol == IPPROTO_TCP ? put_reset(p, answer) : put_unreachable(p, answer);
}

size_t packet_reply(const Packet *p, const void *payload, size_t payload_size,
                uint8_t answer[static PACKET_ANSWER_MAX])
{
        size_t size = UDP_HEADER + payload_size;
        uint16_t check;
        uint8_t *out;

        if (p->protocol != IPPROTO_UDP || p->later_fragment ||
                        payload_size > PACKET_ANSWER_MAX - IPV6_HEADER - UDP_HEADER)
                return 0;
        out = put_header(p, IPPROTO_UDP, size, answer);
        put16(out, p->remote.port);
        put16(out + 2, p->source.port);
        put16(out + 4, (uint32_t) size);
        put16(out + 6, 0);
        memcpy(out + UDP_HEADER, payload, payload_size);
        check = checksum(p, IPPROTO_UDP, out, size);
        put16(out + 6, check ? check : 0xffff); /* 0 would mean none (RFC 768) */
        return header_size(p) + size;
}
