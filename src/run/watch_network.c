/* SPDX-License-Identifier: Apache-2.0 */
#include "run/watch_network.h"

#include <sys/epoll.h>

#include "core/egress.h"
#include "run/watch_processes.h"
#include "sys/host.h"
#include "sys/namespace.h"
#include "sys/netns.h"
#include "sys/sink.h"
#include "sys/trace.h"

/* Packets that are handled before the other events have their turn. */
#define BATCH_MAX 64u
/* The smallest buffer of a trace holds more events: nothing is lost before so many are read at once. */
#define EVENTS_SURE 256u

struct NetworkWatch {
        Sink *sink;
        Egress *egress;
        Trace *trace; /* NULL: nobody says who sent a packet */
        sd_event_source *sources[_SINK_WAY_MAX];
        SenderQueue senders;
        unsigned n_events; /* of the last reading of the trace */
        uint64_t n_lost;   /* by the trace, until now */
        size_t n_packets, sizes[BATCH_MAX];
        uint8_t (*packets)[SINK_PACKET_MAX]; /* BATCH_MAX of them */
        uint8_t looped[SINK_LOOPBACK_MAX];
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
        run->network->packets = malloc(sizeof(*run->network->packets) * BATCH_MAX);
        return run->network->egress && run->network->packets ? 0 : -ENOMEM;
}

int network_listen(Run *run)
{
        SinkCall call = { .error = ERROR_INIT };
        int r;

        if (!run->network)
                return 0;
        r = namespace_call(run->netns_fd, call_sink_new, &call);
        run->network->sink = call.sink;
        return r < 0 ? run_not_observed(run, r, "egress: attempts to leave fail, and are not observed: %s",
                                       call.error.text[0] ? call.error.text : strerror(-r))
                     : 0;
}

static uint64_t since_release(const Run *run, uint64_t usec)
{
        return usec > run->released_usec ? usec - run->released_usec : 0;
}

void network_trace(Run *run, const TraceEvent *event)
{
        if (run->network && event->kind == TRACE_REFUSED)
                egress_refused(run->network->egress, (RefusedKind) event->value, event->pid,
                                since_release(run, event->usec));
}

static int on_trace(void *userdata, const TraceEvent *event)
{
        NetworkWatch *network = userdata;

        network->n_events++;
        if (event->kind == TRACE_SEND)
                senders_add(&network->senders, event);
        return 0;
}

static int read_senders(NetworkWatch *network)
{
        uint64_t lost;
        int r;

        if (!network->trace)
                return 0;
        network->n_events = 0;
        r = trace_read(network->trace, on_trace, network);
        if (network->n_events < EVENTS_SURE)
                return r;
        lost = trace_lost(network->trace);
        if (lost > network->n_lost)
                senders_doubt(&network->senders);
        network->n_lost = lost;
        return r;
}

/* Reads what is there, up to a batch. Returns whether that was all. */
static bool read_batch(NetworkWatch *network)
{
        for (network->n_packets = 0; network->n_packets < BATCH_MAX; network->n_packets++) {
                ssize_t n = sink_read(network->sink, SINK_OUT, network->packets[network->n_packets],
                                SINK_PACKET_MAX);

                if (n < 0)
                        return true;
                network->sizes[network->n_packets] = (size_t) n;
        }
        return false;
}

/* Who runs now: the tree knows better who ran then, unless it is too large. */
static void name_program(Run *run, EgressRecord *record)
{
        const char *program;

        processes_sync(run);
        program = processes_program(run, record->pid);
        record->program = program ? strdup(program) : NULL;
}

static int handle_packet(Run *run, SinkWay way, const uint8_t *data, size_t size)
{
        NetworkWatch *network = run->network;
        Sender sender = { .usec = now_monotonic() };
        EgressReply reply;
        Packet packet;
        int r;

        /* Only the kernel makes packets here: what is none was not made by the job. */
        if (packet_parse(data, size, &packet) < 0 || packet_is_kernels(&packet))
                return 0;
        if (way == SINK_OUT)
                (void) senders_take(&network->senders, (int) size, &sender);
        if (egress_ignores(network->egress, &packet))
                return 0;
        r = egress_packet(network->egress, &packet, sender.pid, since_release(run, sender.usec), &reply);
        if (r < 0)
                return r;
        if (reply.size > 0)
                sink_write(network->sink, way, reply.data, reply.size);
        if (reply.fresh && sender.pid > 0)
                name_program(run, reply.fresh);
        return 0;
}

/* Nobody says who sent these. */
static int handle_looped(Run *run, bool *ret_all)
{
        NetworkWatch *network = run->network;
        int r = 0;

        *ret_all = false;
        for (size_t i = 0; r >= 0 && i < BATCH_MAX; i++) {
                ssize_t n = sink_read(network->sink, SINK_LOOPBACK, network->looped, sizeof(network->looped));

                *ret_all = n < 0;
                if (n < 0)
                        break;
                r = handle_packet(run, SINK_LOOPBACK, network->looped, (size_t) n);
        }
        return r;
}

/* The packets first, then who sent them: so nobody is missing who sent one of these. */
static int handle_sent(Run *run, bool *ret_all)
{
        NetworkWatch *network = run->network;
        uint64_t start = now_monotonic();
        int r;

        *ret_all = read_batch(network);
        r = read_senders(network);
        for (size_t i = 0; r >= 0 && i < network->n_packets; i++)
                r = handle_packet(run, SINK_OUT, network->packets[i], network->sizes[i]);
        if (*ret_all)
                senders_settle(&network->senders, start);
        return r;
}

static int handle_batch(Run *run, bool *ret_all)
{
        bool all_sent, all_looped = true;
        int r = handle_sent(run, &all_sent);

        if (r >= 0)
                r = handle_looped(run, &all_looped);
        *ret_all = all_sent && all_looped;
        return r;
}

static void stop_reading(NetworkWatch *network)
{
        for (SinkWay way = 0; way < _SINK_WAY_MAX; way++)
                network->sources[way] = sd_event_source_disable_unref(network->sources[way]);
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
                stop_reading(run->network);
                lose(run, r);
        }
        return 0;
}

int network_attach(Run *run, Error *e)
{
        NetworkWatch *network = run->network;
        int r;

        if (!network || !network->sink)
                return 0;
        /* What the kernel had to say about a new device. */
        while (!read_batch(network))
                ;
        r = trace_open(run->engine->tracefs, run->slice_fd, SINK_DEVICE, &network->trace);
        if (r < 0)
                r = run_not_observed(run, r, "egress: which process tried is not known (%s)", strerror(-r));
        for (SinkWay way = 0; r >= 0 && way < _SINK_WAY_MAX; way++) {
                r = sd_event_add_io(run->engine->event, &network->sources[way], sink_fd(network->sink, way),
                                EPOLLIN, on_packets, run);
                if (r >= 0)
                        r = sd_event_source_set_priority(network->sources[way], RUN_PRIORITY_EVIDENCE);
        }
        return r < 0 ? error_errno(e, r, "the sink of the job's network") : 0;
}

/* Nothing of the job lives: what is still in the device is bounded. */
void network_finish(Run *run)
{
        NetworkWatch *network = run->network;
        EgressEvidence *egress = &run->outcome->egress;
        bool all = false;
        uint64_t lost;
        int r = 0;

        if (!network || !network->sources[SINK_OUT])
                return;
        while (r >= 0 && !all)
                r = handle_batch(run, &all);
        stop_reading(network);
        if (r < 0)
                lose(run, r);
        lost = sink_lost(network->sink);
        if (lost == UNKNOWN)
                run_lose_evidence(run, "the sink of the job's network does not say what it lost");
        egress->observed = true;
        egress->lost = lost == UNKNOWN ? 0 : lost;
        egress_collect(network->egress, egress);
        for (RefusedKind kind = 0; !processes_traced(run) && kind < _REFUSED_KIND_MAX; kind++)
                egress->refused_total[kind] = UNKNOWN;
        egress_name_programs(egress, &run->outcome->processes);
}

void network_clear(Run *run)
{
        NetworkWatch *network = run->network;

        if (network) {
                stop_reading(network);
                trace_give(network->trace, &run->closing);
                trace_free(network->trace);
                sink_free(network->sink);
                egress_free(network->egress);
                free(network->packets);
                free(network);
        }
        run->network = NULL;
        run->netns_fd = safe_close(run->netns_fd);
}
