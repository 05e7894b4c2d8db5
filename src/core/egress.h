/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What answers to the packets that a job sends out of its namespace, and remembers who wanted to reach what.
 *
 * A question for a name is answered with an address that stands for that name and no other, so that the
 * attempt that follows tells name and port. These addresses are of 198.18.0.0/15, which is never routed (RFC
 * 2544). Every other attempt is refused at once. */

#include "core/packet.h"

#define EGRESS_HOST4     "198.18.0.1" /* the job's end of the sink */
#define EGRESS_HOST6     "fd71:7363:6f70::1"
#define EGRESS_RESOLVER4 "198.18.0.53" /* the name server in the job's resolv.conf */

#define EGRESS_RECORDS_MAX 1000u
#define EGRESS_NAMES_MAX   1024u

typedef struct Egress Egress;

Egress *egress_new(void);
Egress *egress_free(Egress *egress);
DEFINE_CLEANUP(Egress *, egress_free)

typedef struct EgressReply {
        EgressRecord *fresh; /* made for this packet, and nobody has said what program it is; else NULL */
        size_t size;         /* of the answer to be written back; 0: none */
        uint8_t data[PACKET_ANSWER_MAX];
} EgressReply;

/* Takes note of one packet. pid: who sent it, 0: unknown; usec: since the release. 0 or -ENOMEM. */
int egress_packet(Egress *egress, const Packet *packet, pid_t pid, uint64_t usec, EgressReply *ret);

/* Whether it is none of the job's: the kernel's own, or a TCP SYN that was sent once more. */
bool egress_ignores(Egress *egress, const Packet *packet);

/* Moves the records and their total to the evidence. */
void egress_collect(Egress *egress, EgressEvidence *ret);

/* Names the program that each record's process was running then, where the tree tells. */
void egress_name_programs(EgressEvidence *egress, const ProcessTree *tree);

/* --- who sent a packet: in the order in which processes hand packets to a device, they come out of it --- */

#define SENDERS_MAX 8192u

typedef struct Sender {
        pid_t pid;
        int size;
        uint64_t usec; /* CLOCK_MONOTONIC */
} Sender;

typedef struct SenderQueue {
        Sender items[SENDERS_MAX], last; /* last: the one that was taken last */
        size_t first, n;
} SenderQueue;

/* When it is full the oldest is forgotten: its packet has no sender then. */
void senders_add(SenderQueue *queue, const TraceEvent *event);

/* The sender of the next packet of the device, which has this size; what was sent before it never came out.
 * False and *ret unchanged: unknown, also where another process sent one of the same size at the same time.
 */
bool senders_take(SenderQueue *queue, int size, Sender *ret);

/* The device is empty: what was sent before that moment (CLOCK_MONOTONIC) and is left here never came out. */
void senders_expire(SenderQueue *queue, uint64_t usec);
