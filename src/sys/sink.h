/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A network device (TUN) that every way out of a namespace leads to. What is sent comes out here, and nowhere
 * else; what is written here arrives as if from outside. It knows nothing of what packets mean.
 *
 * There is a second way, which ends in the namespace: a socket that is bound to the loopback device
 * (SO_BINDTODEVICE, IP_PKTINFO) sends there what is for elsewhere, whatever the routes say. That is seen on
 * the device. */

#include "base/error.h"

#define SINK_DEVICE "qscope0"
/* The largest packet that comes out; longer datagrams come in fragments. */
#define SINK_PACKET_MAX 1500
/* The largest packet that loopback takes. */
#define SINK_LOOPBACK_MAX 65536

typedef enum SinkWay {
        SINK_OUT,
        SINK_LOOPBACK, /* IPv4 only: without a route, IPv6 refuses a device that is named */
        _SINK_WAY_MAX,
} SinkWay;

typedef struct Sink Sink;

/* Makes it in the network namespace of the calling thread, with these addresses of its own, and the default
 * routes. The kernel removes it with the namespace. A negative errno with a sentence: this kernel or
 * container does not allow it. */
int sink_new(const char *address4, const char *address6, Sink **ret, Error *e);
Sink *sink_free(Sink *sink);
DEFINE_CLEANUP(Sink *, sink_free)

/* Becomes readable when there are packets; owned by the sink. */
int sink_fd(const Sink *sink, SinkWay way);

/* Reads one packet without waiting; none is larger than the way's own maximum. Its size, -EAGAIN when there
 * is none, or another negative errno. */
ssize_t sink_read(Sink *sink, SinkWay way, uint8_t *packet, size_t size);
/* Arrives on the device that the way ends in. Best effort, as networks are. */
void sink_write(Sink *sink, SinkWay way, const void *packet, size_t size);

/* Packets that were pushed out before they were read, until now; UNKNOWN when the kernel does not say. */
uint64_t sink_lost(Sink *sink);
