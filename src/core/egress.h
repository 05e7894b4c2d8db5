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
#define EGRESS_REFUSED_MAX 100u

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

/* Takes note of a way to send that was refused. */
void egress_refused(Egress *egress, RefusedKind kind, pid_t pid, uint64_t usec);

/* Moves the records and totals to the evidence. */
void egress_collect(Egress *egress, EgressEvidence *ret);

/* Names the program that each record's process was running then, where the tree tells. */
void egress_name_programs(EgressEvidence *egress, const ProcessTree *tree);

/* --- who sent a packet: in the order in which processes hand packets to a device, they come out of it --- */

/* No fewer than the device holds: what it had no room for is then seen to be too much here, too. */
#define SENDERS_MAX 4096u

typedef struct Sender {
        pid_t pid;
        int size;
        uint64_t usec; /* CLOCK_MONOTONIC */
} Sender;

typedef struct SenderQueue {
        Sender items[SENDERS_MAX], last; /* last: the one that was taken last */
        size_t first, n;
        bool doubtful; /* senders or packets are missing: nobody is named until the two are in step again */
} SenderQueue;

void senders_add(SenderQueue *queue, const TraceEvent *event);
/* Some senders were lost. */
void senders_doubt(SenderQueue *queue);

/* The sender of the next packet of the device, which has this size; what was sent before it never came out.
 * False and *ret unchanged: unknown, also where another process sent one of the same size at the same time.
 */
bool senders_take(SenderQueue *queue, int size, Sender *ret);

/* The device was empty at this moment: what was sent before it and is left here never came out. */
void senders_settle(SenderQueue *queue, uint64_t usec);
