/* SPDX-License-Identifier: Apache-2.0 */
#include "run/watch_sockets.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "run/watch_processes.h"

static int on_closed(
                _unused_ sd_event_source *source, _unused_ int fd, _unused_ uint32_t revents, void *userdata)
{
        Run *run = userdata;
        SocketEvidence *evidence = &run->outcome->sockets;

        /* What is left for the next time keeps the descriptor readable. */
        if (sockets_read_closed(run->sockets, &evidence->closed, &evidence->lost) < 0) {
                run->sockets_source = sd_event_source_disable_unref(run->sockets_source);
                run_lose_evidence(run, "sockets that closed could not be read");
        }
        return 0;
}

/* The id of a control group is the inode of its directory (kernfs). */
static int cgroup_id(int fd, uint64_t *ret)
{
        struct stat st;

        if (fstat(fd, &st) < 0)
                return -errno;
        *ret = st.st_ino;
        return 0;
}

int watch_sockets_attach(Run *run, _unused_ Error *e)
{
        _cleanup_close_ int netns_fd = openat(run->proc_fd, "ns/net", O_RDONLY | O_CLOEXEC);
        bool shared = run->plan->network == NETWORK_HOST;
        uint64_t id = 0;
        int r = netns_fd < 0 ? -errno : 0;

        if (r == 0 && shared)
                r = cgroup_id(run->service_fd, &id);
        if (r == 0)
                r = sockets_open(netns_fd, id, &run->sockets);
        if (r == 0 && !shared)
                r = sd_event_add_io(run->engine->event, &run->sockets_source, sockets_closed_fd(run->sockets),
                                EPOLLIN, on_closed, run);
        if (r < 0) {
                run->sockets = sockets_free(run->sockets);
                return run_not_observed(run, r, "sockets: not observed (sock_diag: %s)", strerror(-r));
        }
        run->outcome->sockets.observed = true;
        return outcome_blind_spot(run->outcome, "sockets.closed: %s",
                        shared ? "not recorded, since the network is the host's"
                               : "only those of TCP and UDP are told of");
}

void watch_sockets_trace(Run *run, const TraceEvent *event)
{
        const char *program;
        SocketRecord record;

        if (event->kind != TRACE_LISTEN || !run->sockets)
                return;
        program = processes_program(run, event->pid);
        record = (SocketRecord){
                .family = event->local.family,
                .type = SOCK_STREAM,
                .protocol = IPPROTO_TCP,
                .local = event->local,
                .state = TCP_LISTEN,
                .pid = event->pid,
                .program = program ? strdup(program) : NULL,
        };
        if (socket_listening_add(&run->outcome->sockets.listening, &record) < 0)
                run_lose_evidence(run, "no memory for the list of sockets");
}

/* --- at the freeze --- */

typedef struct Look {
        Run *run;
        SocketHolders *holders;
        char **told; /* blind spots */
} Look;

static int name_holder(const Look *look, SocketRecord *record, pid_t pid)
{
        const char *program = processes_program(look->run, pid);

        record->pid = pid;
        record->program = program ? strdup(program) : NULL;
        return program && !record->program ? -ENOMEM : 0;
}

static int copy_record(const SocketRecord *record, SocketRecord *ret)
{
        *ret = *record;
        ret->name = record->name ? malloc(record->name_size + 1) : NULL;
        ret->program = record->program ? strdup(record->program) : NULL;
        if ((record->name && !ret->name) || (record->program && !ret->program)) {
                socket_record_clear(ret);
                return -ENOMEM;
        }
        if (ret->name)
                memcpy(ret->name, record->name, record->name_size + 1);
        return 0;
}

static int add_leftover(SocketEvidence *evidence, SocketRecord *record)
{
        SocketRecord copy;
        int r = 0;

        record->left = true;
        if (socket_is_listening(record)) {
                r = copy_record(record, &copy);
                if (r == 0)
                        r = socket_listening_add(&evidence->listening, &copy);
        }
        return r < 0 ? r : socket_list_add(&evidence->leftover, record);
}

static int on_socket(void *userdata, SocketRecord *record)
{
        Look *look = userdata;
        SocketHolder *holder = socket_holders_find(look->holders, record->inode);
        bool inet = record->family == AF_INET || record->family == AF_INET6;
        int r = 0;

        if (holder && holder->own)
                return 0;
        /* In the host's network, the kernel tells apart only Internet sockets. */
        if (look->run->plan->network == NETWORK_HOST && !inet && !holder)
                return 0;
        if (holder) {
                holder->known = true;
                r = name_holder(look, record, holder->pid);
        }
        return r < 0 ? r : add_leftover(&look->run->outcome->sockets, record);
}

/* What the kernel did not tell of, as where a module to ask is missing, is a socket all the same. */
static int add_unknown(Look *look)
{
        int r = 0;

        for (size_t i = 0; r >= 0 && i < look->holders->n; i++) {
                const SocketHolder *holder = &look->holders->items[i];
                SocketRecord record = { .inode = holder->inode };

                if (holder->known || holder->own)
                        continue;
                r = name_holder(look, &record, holder->pid);
                if (r >= 0)
                        r = add_leftover(&look->run->outcome->sockets, &record);
        }
        return r;
}

static bool may_open(const Plan *plan, const char *family)
{
        const PropertyValue *value = property_list_find(&plan->service_properties, "RestrictAddressFamilies");

        return !value || strv_contains(value->list, family) == value->boolean;
}

/* What the sandbox does not let a job open cannot be there, and needs no module to be asked for. */
static bool is_possible(const Plan *plan, const SocketQuestion *q)
{
        const PropertyValue *caps = property_list_find(&plan->service_properties, "CapabilityBoundingSet");

        if (q->family == AF_VSOCK)
                return may_open(plan, "AF_VSOCK");
        if (q->family == AF_PACKET || q->protocol == IPPROTO_RAW)
                return !caps || caps->number != 0;
        return true;
}

/* Once for each kind of socket. */
static int cannot_ask(Look *look, const SocketQuestion *q, int error)
{
        if (strv_contains(look->told, q->name))
                return 0;
        if (strv_extend(&look->told, q->name) < 0)
                return -ENOMEM;
        return run_not_observed(look->run, error, "sockets: those of %s cannot be asked for (sock_diag: %s)",
                        q->name, strerror(-error));
}

static int dump_all(Look *look)
{
        const SocketQuestion *q;

        for (size_t i = 0; (q = sockets_question(i)); i++) {
                int r = 0;

                if (is_possible(look->run->plan, q))
                        r = sockets_dump(look->run->sockets, q, on_socket, look);
                if (r < 0 && r != -ENOMEM)
                        r = cannot_ask(look, q, r);
                if (r < 0)
                        return r;
        }
        return add_unknown(look);
}

/* What closes from here on is closed by us. */
static void stop_reading(Run *run)
{
        SocketEvidence *evidence = &run->outcome->sockets;

        run->sockets_source = sd_event_source_disable_unref(run->sockets_source);
        if (sockets_settle(run->sockets, &evidence->closed, &evidence->lost) < 0)
                run_lose_evidence(run, "sockets that closed could not be read");
}

void watch_sockets_look(Run *run, SocketHolders *holders)
{
        Look look = { .run = run, .holders = holders };
        int r;

        if (!run->sockets)
                return;
        stop_reading(run);
        r = dump_all(&look);
        strv_free(look.told);
        if (r < 0)
                run_lose_evidence(run, "open sockets could not be listed: %s", strerror(-r));
}

void watch_sockets_finish(Run *run)
{
        if (!run->sockets)
                return;
        stop_reading(run);
        if (!run->outcome->processes.observed)
                (void) outcome_blind_spot(run->outcome,
                                "sockets.listening: those that were closed before the end are not listed");
}

void watch_sockets_clear(Run *run)
{
        run->sockets_source = sd_event_source_disable_unref(run->sockets_source);
        run->sockets = sockets_free(run->sockets);
}
