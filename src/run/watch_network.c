/* SPDX-License-Identifier: Apache-2.0 */

/* The job's network namespace, and what the job sends out of it: each packet is looked at, answered, and put
 * down to the process that sent it. */

#include "run/state.h"

#include <fcntl.h>
#include <sys/epoll.h>

#include "core/egress.h"
#include "run/watch_processes.h"
#include "sys/host.h"
#include "sys/netns.h"
#include "sys/sink.h"

/* Packets that are handled before the other events have their turn. */
#define BATCH_MAX 64u
/* From its trace to the device a packet takes less than this. */
#define SEND_USEC (100 * USEC_PER_MSEC)

struct NetworkWatch {
        Sink *sink;
        Egress *egress;
        sd_event_source *source;
        SenderQueue senders;
        size_t n_packets, sizes[BATCH_MAX];
        uint8_t packets[BATCH_MAX][SINK_PACKET_MAX];
};

typedef struct SinkCall {
        Sink *sink;
        Error error;
} SinkCall;

static int call_sink_new(void *userdata)
{
        SinkCall *call = userdata;

        return sink_new(EGRESS_HOST4, EGRESS_HOST6, &call->sink, &call->error);
}

int network_prepare(Run *run, Error *e)
{
        SinkCall call = { .error = ERROR_INIT };
        int r;

        if (run->plan->network != NETWORK_NONE)
                return outcome_blind_spot(run->outcome,
                                "egress: the job is in the host's network: what it reaches is not observed");
        r = netns_new(&run->netns_fd, e);
        if (r < 0)
                return r;
        run->network = calloc(1, sizeof(*run->network));
        if (!run->network)
                return -ENOMEM;
        run->network->egress = egress_new();
        if (!run->network->egress)
                return -ENOMEM;
        r = netns_call(run->netns_fd, call_sink_new, &call);
        run->network->sink = call.sink;
        if (r >= 0)
                run->trace_device = SINK_DEVICE;
        return r < 0 ? outcome_blind_spot(run->outcome,
                                       "egress: attempts to leave fail, and are not observed: %s",
                                       call.error.text[0] ? call.error.text : strerror(-r))
                     : 0;
}

void network_trace(Run *run, const TraceEvent *event)
{
        if (run->network && event->kind == TRACE_SEND)
                senders_add(&run->network->senders, event);
}

/* Reads what is there, up to a batch. Returns whether that was all. */
static bool read_batch(struct NetworkWatch *network)
{
        for (network->n_packets = 0; network->n_packets < BATCH_MAX; network->n_packets++) {
                ssize_t n = sink_read(network->sink, network->packets[network->n_packets]);

                if (n < 0)
                        return true;
                network->sizes[network->n_packets] = (size_t) n;
        }
        return false;
}

static int handle_packet(Run *run, const uint8_t *data, size_t size)
{
        struct NetworkWatch *network = run->network;
        uint64_t now = now_monotonic();
        EgressReply reply;
        Packet packet;
        pid_t pid;
        int r;

        /* Only the kernel and its drivers make packets here: what is none was made by neither. */
        if (packet_parse(data, size, &packet) < 0 || packet_is_kernels(&packet))
                return 0;
        pid = senders_take(&network->senders, (int) size);
        if (egress_ignores(network->egress, &packet))
                return 0;
        r = egress_packet(network->egress, &packet, pid,
                        now > run->released_usec ? now - run->released_usec : 0, &reply);
        if (r < 0)
                return r;
        if (reply.size > 0)
                sink_write(network->sink, reply.data, reply.size);
        if (reply.fresh && pid > 0) {
                const char *program = processes_program(run, pid);

                reply.fresh->program = program ? strdup(program) : NULL;
        }
        return 0;
}

/* The packets first, then who sent them: so nobody is missing who sent one of these. */
static int handle_batch(Run *run, bool *ret_all)
{
        struct NetworkWatch *network = run->network;
        uint64_t start = now_monotonic();
        int r = 0;

        *ret_all = read_batch(network);
        processes_sync(run);
        for (size_t i = 0; r >= 0 && i < network->n_packets; i++)
                r = handle_packet(run, network->packets[i], network->sizes[i]);
        if (*ret_all)
                senders_expire(&network->senders, start - SEND_USEC);
        return r;
}

static void lose(Run *run, int error)
{
        run_lose_evidence(run, "attempts to leave could not be recorded: %s", strerror(-error));
}

static int on_packets(
                _unused_ sd_event_source *source, _unused_ int fd, _unused_ uint32_t revents, void *userdata)
{
        Run *run = userdata;
        bool all;
        int r = handle_batch(run, &all);

        if (r < 0) {
                run->network->source = sd_event_source_disable_unref(run->network->source);
                lose(run, r);
        }
        return 0;
}

int network_attach(Run *run, Error *e)
{
        struct NetworkWatch *network = run->network;
        int r;

        if (!network || !network->sink)
                return 0;
        /* What the kernel had to say about a new device. */
        while (!read_batch(network))
                ;
        r = sd_event_add_io(run->event, &network->source, sink_fd(network->sink), EPOLLIN, on_packets, run);
        return r < 0 ? error_errno(e, r, "the sink of the job's network") : 0;
}

/* Nothing of the job lives: what is still in the device is bounded. */
void network_finish(Run *run)
{
        struct NetworkWatch *network = run->network;
        EgressEvidence *egress = &run->outcome->egress;
        bool all = false;
        uint64_t lost;
        int r = 0;

        if (!network || !network->source)
                return;
        while (r >= 0 && !all)
                r = handle_batch(run, &all);
        network->source = sd_event_source_disable_unref(network->source);
        if (r < 0)
                lose(run, r);
        lost = sink_lost(network->sink);
        if (lost == UNKNOWN)
                run_lose_evidence(run, "the sink of the job's network does not say what it lost");
        if (run->errors) {
                egress->refused_families = error_counter_read(run->errors, COUNTED_FAMILY);
                egress->refused_raw = error_counter_read(run->errors, COUNTED_RAW);
        }
        egress->observed = true;
        egress->lost = lost == UNKNOWN ? 0 : lost;
        egress_collect(network->egress, egress);
}

void network_clear(Run *run)
{
        struct NetworkWatch *network = run->network;

        if (network) {
                network->source = sd_event_source_disable_unref(network->source);
                sink_free(network->sink);
                egress_free(network->egress);
                free(network);
        }
        run->network = NULL;
        run->netns_fd = safe_close(run->netns_fd);
}
