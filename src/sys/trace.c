/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/trace.h"

#include <linux/perf_event.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/array.h"

/* What the buffers of all CPUs may take together, and each of them. */
#define RINGS_SIZE_MAX MIB(16)
#define RING_SIZE_MAX  KIB(512)
#define PACKETS_SIZE   KIB(128)
#define RING_SIZE_MIN  KIB(64)
/* Larger than any record that is asked for here; a record's size is 16 bits wide. */
#define RECORD_SIZE_MAX 512u
#define SENT_SLOTS      256u
#define SENT_AGE_NSEC   (USEC_PER_SEC * NSEC_PER_USEC)
#define FIELDS_MAX      4u

#ifndef PERF_FORMAT_LOST
#define PERF_FORMAT_LOST (1U << 4) /* Linux 6.0 */
#endif

typedef enum Source {
        SOURCE_TASKS, /* forks, execs and exits */
        SOURCE_EXIT,
        SOURCE_FAILED,
        SOURCE_DELIVER,
        SOURCE_GENERATE,
        SOURCE_LISTEN,
        SOURCE_SEND,
        _SOURCE_MAX,
} Source;

/* All signals but these end a process that does not handle them (signal(7)). */
#define IS_FATAL                                                                                             \
        "sig != 17 && sig != 18 && sig != 19 && sig != 20 && sig != 21 && sig != 22 && sig != 23 && sig != 28"
static_assert(SIGCHLD == 17 && SIGCONT == 18 && SIGSTOP == 19 && SIGTSTP == 20 && SIGTTIN == 21 &&
                                SIGTTOU == 22 && SIGURG == 23 && SIGWINCH == 28,
                "the filter names signals by their numbers");

/* The filters are in the kernel's language (Documentation/trace/events.rst, 5.2). */
static const struct {
        const char *event, *filter;
        const char *fields[FIELDS_MAX + 1];
} source_table[_SOURCE_MAX] = {
        [SOURCE_EXIT] = { "raw_syscalls/sys_enter", NULL, { "id", "args" } },
        [SOURCE_FAILED] = { "raw_syscalls/sys_exit", NULL, { "ret", "id" } },
        [SOURCE_DELIVER] = { "signal/signal_deliver", "sa_handler == 0 && " IS_FATAL,
                        { "sig", "common_pid" } },
        [SOURCE_GENERATE] = { "signal/signal_generate", "result == 0 && " IS_FATAL, { "sig", "pid" } },
        [SOURCE_LISTEN] = { "sock/inet_sock_set_state", "newstate == 10",
                        { "family", "sport", "saddr", "saddr_v6" } },
        /* Bits 3 and 4: in an interrupt, and then it is not the process that happened to run which sends. */
        [SOURCE_SEND] = { "net/net_dev_queue", NULL, { "len" } },
};

typedef struct Cpu {
        int *fds; /* _SOURCE_MAX of them */
        uint64_t ids[_SOURCE_MAX];
        struct perf_event_mmap_page *page; /* the buffer follows it */
} Cpu;

typedef struct Pending {
        uint64_t nsec, order; /* order: of its reading, for events of the same moment */
        uint32_t thread;      /* of signals: whom it was sent or delivered to */
        bool sent;            /* a signal that was sent, not an event of its own */
        TraceEvent event;
} Pending;

/* A signal that is to end a process and has not done so yet. */
typedef struct Sent {
        uint32_t thread;
        int signal;
        uint64_t nsec;
} Sent;

struct Trace {
        Cpu *cpus;
        int *fds; /* of all of them */
        size_t n_cpus, ring_size;
        int epoll_fd;
        Source owner;     /* whose the buffers are; all others write into them */
        bool counts_lost; /* the kernel counts for each event what it lost */
        TraceField fields[_SOURCE_MAX][FIELDS_MAX];
        Sent sent[SENT_SLOTS];
        Pending *pending;
        size_t n_pending, room;
        uint64_t order, lost;
};

void trace_give(Trace *trace, Closing *closing)
{
        if (trace)
                closing_take(closing, trace->fds, trace->n_cpus * _SOURCE_MAX);
}

Trace *trace_free(Trace *trace)
{
        if (!trace)
                return NULL;
        for (size_t i = 0; i < trace->n_cpus; i++) {
                struct perf_event_mmap_page *page = trace->cpus[i].page;

                if (page)
                        (void) munmap(page, trace->ring_size + (size_t) getpagesize());
        }
        for (size_t i = 0; i < trace->n_cpus * _SOURCE_MAX; i++)
                safe_close(trace->fds[i]);
        free(trace->fds);
        safe_close(trace->epoll_fd);
        free(trace->cpus);
        free(trace->pending);
        free(trace);
        return NULL;
}

int trace_fd(const Trace *trace)
{
        return trace->epoll_fd;
}

/* --- opening --- */

static int open_event(int cgroup_fd, int cpu, Source source, uint64_t id, bool counts_lost)
{
        struct perf_event_attr attr = {
                .type = source == SOURCE_TASKS ? PERF_TYPE_SOFTWARE : PERF_TYPE_TRACEPOINT,
                .size = sizeof(attr),
                .config = source == SOURCE_TASKS ? (uint64_t) PERF_COUNT_SW_DUMMY : id,
                .sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME,
                .sample_id_all = 1,
                .read_format = counts_lost ? PERF_FORMAT_LOST : 0,
                .use_clockid = 1,
                .clockid = CLOCK_MONOTONIC,
                .watermark = 1,
                .wakeup_watermark = 1,
        };
        int fd;

        if (source == SOURCE_TASKS) {
                attr.task = attr.comm = attr.comm_exec = 1;
        } else {
                attr.sample_type |= PERF_SAMPLE_RAW;
                attr.sample_period = 1;
        }
        fd = (int) syscall(SYS_perf_event_open, &attr, cgroup_fd, cpu, -1,
                        PERF_FLAG_PID_CGROUP | PERF_FLAG_FD_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

static int open_ring(Trace *trace, Cpu *cpu)
{
        struct epoll_event event = { .events = EPOLLIN };
        void *map = mmap(NULL, trace->ring_size + (size_t) getpagesize(), PROT_READ | PROT_WRITE, MAP_SHARED,
                        cpu->fds[trace->owner], 0);

        if (map == MAP_FAILED)
                return -errno;
        cpu->page = map;
        return epoll_ctl(trace->epoll_fd, EPOLL_CTL_ADD, cpu->fds[trace->owner], &event) < 0 ? -errno : 0;
}

static int set_filter(int fd, Source source, const char *device)
{
        char filter[128];

        if (source == SOURCE_EXIT)
                (void) snprintf(filter, sizeof(filter), "id == %d || id == %d", (int) SYS_exit_group,
                                (int) SYS_exit);
        else if (source == SOURCE_FAILED)
                (void) snprintf(filter, sizeof(filter),
                                "ret < 0 && (id == %d || id == %d || id == %d || id == %d)", (int) SYS_execve,
                                (int) SYS_execveat, (int) SYS_socket, (int) SYS_io_uring_setup);
        else if (source == SOURCE_SEND)
                (void) snprintf(filter, sizeof(filter), "!(common_flags & 24) && name == \"%s\"", device);
        return ioctl(fd, PERF_EVENT_IOC_SET_FILTER,
                               source_table[source].filter ? source_table[source].filter : filter) < 0
                               ? -errno
                               : 0;
}

static int add_source(Trace *trace, Source source, uint64_t id, int cgroup_fd, const char *device)
{
        for (size_t i = 0; i < trace->n_cpus; i++) {
                Cpu *cpu = &trace->cpus[i];
                int fd = open_event(cgroup_fd, (int) i, source, id, trace->counts_lost), r = 0;

                if (fd == -ENODEV)
                        continue; /* this CPU is offline */
                if (fd < 0)
                        return fd;
                cpu->fds[source] = fd;
                if (source == trace->owner)
                        r = open_ring(trace, cpu);
                else if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, cpu->fds[trace->owner]) < 0)
                        r = -errno;
                if (r == 0 && source != SOURCE_TASKS)
                        r = set_filter(fd, source, device);
                if (r == 0 && ioctl(fd, PERF_EVENT_IOC_ID, &cpu->ids[source]) < 0)
                        r = -errno;
                if (r < 0)
                        return r;
        }
        return 0;
}

static int add_tracepoint(Trace *trace, Source source, Tracefs *tracefs, int cgroup_fd, const char *device)
{
        uint64_t id;
        int r = tracefs_find(tracefs, source_table[source].event, source_table[source].fields, &id,
                        trace->fields[source]);

        return r < 0 ? r : add_source(trace, source, id, cgroup_fd, device);
}

/* A power of two, as the kernel wants it. */
static size_t choose_ring_size(size_t n_cpus, Source owner)
{
        size_t size = owner == SOURCE_SEND ? PACKETS_SIZE : RING_SIZE_MAX;

        while (size > RING_SIZE_MIN && size * n_cpus > RINGS_SIZE_MAX)
                size /= 2;
        return MAX(size, (size_t) getpagesize());
}

static int new_trace(Source owner, Trace **ret)
{
        _cleanup_(trace_freep) Trace *trace = calloc(1, sizeof(*trace));
        long cpus = sysconf(_SC_NPROCESSORS_CONF);

        if (!trace)
                return -ENOMEM;
        trace->owner = owner;
        trace->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
        if (trace->epoll_fd < 0 || cpus <= 0)
                return -errno;
        trace->cpus = calloc((size_t) cpus, sizeof(Cpu));
        trace->fds = calloc((size_t) cpus, sizeof(int[_SOURCE_MAX]));
        if (!trace->cpus || !trace->fds)
                return -ENOMEM;
        trace->n_cpus = (size_t) cpus;
        trace->ring_size = choose_ring_size(trace->n_cpus, owner);
        for (size_t i = 0; i < trace->n_cpus * _SOURCE_MAX; i++)
                trace->fds[i] = -EBADF;
        for (size_t i = 0; i < trace->n_cpus; i++)
                trace->cpus[i].fds = trace->fds + i * _SOURCE_MAX;
        *ret = TAKE_PTR(trace);
        return 0;
}

static int open_sources(Trace *trace, Tracefs *tracefs, int cgroup_fd, const char *device)
{
        int r;

        if (device)
                return add_tracepoint(trace, SOURCE_SEND, tracefs, cgroup_fd, device);
        r = add_source(trace, SOURCE_TASKS, 0, cgroup_fd, NULL);
        for (Source source = SOURCE_TASKS + 1; r == 0 && source < SOURCE_SEND; source++)
                r = add_tracepoint(trace, source, tracefs, cgroup_fd, NULL);
        return r;
}

static int open_counting(Tracefs *tracefs, int cgroup_fd, const char *device, bool counts_lost, Trace **ret)
{
        _cleanup_(trace_freep) Trace *trace = NULL;
        int r = new_trace(device ? SOURCE_SEND : SOURCE_TASKS, &trace);

        if (!trace)
                return r;
        trace->counts_lost = counts_lost;
        r = open_sources(trace, tracefs, cgroup_fd, device);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(trace);
        return 0;
}

int trace_open(Tracefs *tracefs, int cgroup_fd, const char *device, Trace **ret)
{
        int r = open_counting(tracefs, cgroup_fd, device, true, ret);

        return r == -EINVAL ? open_counting(tracefs, cgroup_fd, device, false, ret) : r;
}

/* --- records: perf_event_open(2), "Overview of the ring buffer" --- */

typedef struct Record {
        uint8_t data[RECORD_SIZE_MAX];
        size_t size, at;
} Record;

static uint64_t load(const uint8_t *data, size_t size)
{
        uint64_t value64 = 0;
        uint32_t value32;
        uint16_t value16;

        switch (size) {
        case 8:
                memcpy(&value64, data, 8);
                return value64;
        case 4:
                memcpy(&value32, data, 4);
                return value32;
        case 2:
                memcpy(&value16, data, 2);
                return value16;
        default:
                return size > 0 ? data[0] : 0;
        }
}

static uint64_t take(Record *record, size_t size)
{
        uint64_t value = 0;

        if (record->size - record->at < size) {
                record->at = record->size;
                return 0;
        }
        value = load(record->data + record->at, size);
        record->at += size;
        return value;
}

/* Behind every record but samples: struct { u32 pid, tid; u64 time, identifier; } */
#define TRAILER_SIZE 24u

typedef struct Sample {
        Source source;
        pid_t pid, tid;
        uint64_t nsec;
        const uint8_t *raw;
        size_t raw_size;
} Sample;

static int read_sample(const Trace *trace, const Cpu *cpu, Record *record, Sample *ret)
{
        uint64_t id = take(record, 8);
        size_t size;

        ret->pid = (pid_t) take(record, 4);
        ret->tid = (pid_t) take(record, 4);
        ret->nsec = take(record, 8);
        size = take(record, 4);
        if (size > record->size - record->at)
                return -EBADMSG;
        ret->raw = record->data + record->at;
        ret->raw_size = size;
        for (ret->source = SOURCE_TASKS + 1; ret->source < _SOURCE_MAX; ret->source++) {
                if (cpu->fds[ret->source] < 0 || cpu->ids[ret->source] != id)
                        continue;
                for (size_t i = 0; source_table[ret->source].fields[i]; i++) {
                        const TraceField *field = &trace->fields[ret->source][i];

                        if ((size_t) field->offset + field->size > size)
                                return -EBADMSG;
                }
                return 0;
        }
        return -EBADMSG;
}

static const uint8_t *field_data(const Trace *trace, const Sample *sample, size_t field)
{
        return sample->raw + trace->fields[sample->source][field].offset;
}

static uint64_t field_value(const Trace *trace, const Sample *sample, size_t field)
{
        return load(field_data(trace, sample, field), trace->fields[sample->source][field].size);
}

static int add_event(Trace *trace, const Pending *event)
{
        Pending *pending = array_grow(trace->pending, trace->n_pending, &trace->room, sizeof(Pending));

        if (!pending)
                return -ENOMEM;
        trace->pending = pending;
        trace->pending[trace->n_pending] = *event;
        trace->pending[trace->n_pending].order = trace->order++;
        trace->pending[trace->n_pending].event.usec = event->nsec / NSEC_PER_USEC;
        trace->n_pending++;
        return 0;
}

static void read_endpoint(const Trace *trace, const Sample *sample, Endpoint *ret)
{
        ret->family = (int) field_value(trace, sample, 0);
        ret->port = (uint16_t) field_value(trace, sample, 1);
        if (ret->family == AF_INET6)
                memcpy(ret->address, field_data(trace, sample, 3),
                                MIN((size_t) trace->fields[SOURCE_LISTEN][3].size, sizeof(ret->address)));
        else
                memcpy(ret->address, field_data(trace, sample, 2),
                                MIN((size_t) trace->fields[SOURCE_LISTEN][2].size, (size_t) 4));
}

/* 1: *event is one, 0: it is none. */
static int read_failed(long call, int error, TraceEvent *event)
{
        event->kind = TRACE_REFUSED;
        switch (call) {
        case SYS_io_uring_setup:
                event->value = REFUSED_IO_URING;
                return error == EPERM || error == EACCES;
        case SYS_socket:
                event->value = error == EAFNOSUPPORT ? REFUSED_FAMILY : REFUSED_RAW;
                return error == EAFNOSUPPORT || error == EPERM || error == EACCES;
        default:
                event->kind = TRACE_FAILED;
                event->value = error;
                return 1;
        }
}

/* 1: *ret is an event, 0: it is none. */
static int read_tracepoint(const Trace *trace, const Sample *sample, Pending *ret)
{
        TraceEvent *event = &ret->event;

        *ret = (Pending){ .nsec = sample->nsec, .event = { .pid = sample->pid, .tid = sample->tid } };
        switch (sample->source) {
        case SOURCE_EXIT:
                event->kind = field_value(trace, sample, 0) == SYS_exit_group ? TRACE_STATUS : TRACE_LEFT;
                event->value = (int) (field_value(trace, sample, 1) & 0xff);
                return event->kind == TRACE_STATUS || sample->pid == sample->tid;
        case SOURCE_FAILED:
                return read_failed((long) field_value(trace, sample, 1), -(int) field_value(trace, sample, 0),
                                event);
        case SOURCE_DELIVER:
        case SOURCE_GENERATE:
                event->kind = TRACE_SIGNAL;
                event->value = (int) field_value(trace, sample, 0);
                ret->thread = (uint32_t) field_value(trace, sample, 1);
                ret->sent = sample->source == SOURCE_GENERATE;
                return 1;
        case SOURCE_LISTEN:
                event->kind = TRACE_LISTEN;
                read_endpoint(trace, sample, &event->local);
                return 1;
        case SOURCE_SEND:
                event->kind = TRACE_SEND;
                event->value = (int) field_value(trace, sample, 0);
                return 1;
        case SOURCE_TASKS:
        case _SOURCE_MAX:
                break;
        }
        return 0;
}

/* struct { u32 pid, ppid, tid, ptid; u64 time; trailer } */
static int read_task(Record *record, bool forked, Pending *ret)
{
        pid_t pid = (pid_t) take(record, 4), ppid = (pid_t) take(record, 4), tid = (pid_t) take(record, 4);

        *ret = (Pending){ .event = { .pid = pid, .tid = tid, .kind = TRACE_EXIT } };
        if (forked)
                ret->event.kind = pid == tid ? TRACE_FORK : TRACE_THREAD;
        if (ret->event.kind == TRACE_FORK)
                ret->event.ppid = ppid;
        (void) take(record, 4);
        ret->nsec = take(record, 8);
        return record->at == record->size ? -EBADMSG : 1;
}

/* struct { u32 pid, tid; char comm[]; trailer } */
static int read_exec(Record *record, Pending *ret)
{
        *ret = (Pending){ .event.kind = TRACE_EXEC };
        if (record->size < sizeof(struct perf_event_header) + 8 + TRAILER_SIZE)
                return -EBADMSG;
        ret->event.pid = (pid_t) take(record, 4);
        ret->event.tid = (pid_t) take(record, 4);
        memcpy(ret->event.name, record->data + record->at,
                        MIN(record->size - record->at - TRAILER_SIZE, sizeof(ret->event.name) - 1));
        record->at = record->size - TRAILER_SIZE + 8;
        ret->nsec = take(record, 8);
        return 1;
}

static int read_lost(Trace *trace, Record *record)
{
        (void) take(record, 8);
        if (!trace->counts_lost)
                trace->lost += take(record, 8);
        return 0;
}

/* Appends what one record tells. */
static int read_record(Trace *trace, const Cpu *cpu, Record *record)
{
        struct perf_event_header header;
        Pending event;
        Sample sample;
        int r = 0;

        memcpy(&header, record->data, sizeof(header));
        record->at = sizeof(header);
        switch (header.type) {
        case PERF_RECORD_FORK:
        case PERF_RECORD_EXIT:
                r = read_task(record, header.type == PERF_RECORD_FORK, &event);
                break;
        case PERF_RECORD_COMM:
                if (header.misc & PERF_RECORD_MISC_COMM_EXEC)
                        r = read_exec(record, &event);
                break;
        case PERF_RECORD_LOST:
                r = read_lost(trace, record);
                break;
        case PERF_RECORD_SAMPLE:
                r = read_sample(trace, cpu, record, &sample);
                if (r == 0)
                        r = read_tracepoint(trace, &sample, &event);
                break;
        default:
                break;
        }
        if (r == 1)
                r = add_event(trace, &event);
        return r;
}

static void copy_out(const uint8_t *ring, size_t ring_size, uint64_t from, void *to, size_t size)
{
        size_t at = from & (ring_size - 1), first = MIN(size, ring_size - at);

        memcpy(to, ring + at, first);
        memcpy((uint8_t *) to + first, ring, size - first);
}

/* Everything that is in one buffer now. */
static int drain(Trace *trace, const Cpu *cpu)
{
        const uint8_t *ring = (const uint8_t *) cpu->page + getpagesize();
        uint64_t head = __atomic_load_n(&cpu->page->data_head, __ATOMIC_ACQUIRE), tail = cpu->page->data_tail;
        int r = 0;

        while (r >= 0 && tail < head) {
                struct perf_event_header header;
                Record record = { 0 };

                copy_out(ring, trace->ring_size, tail, &header, sizeof(header));
                if (header.size < sizeof(header) || header.size > head - tail) {
                        tail = head; /* never seen; what follows has no beginning */
                        trace->lost++;
                        break;
                }
                record.size = header.size;
                if (record.size <= sizeof(record.data)) {
                        copy_out(ring, trace->ring_size, tail, record.data, record.size);
                        r = read_record(trace, cpu, &record);
                } else {
                        r = -EBADMSG;
                }
                if (r == -EBADMSG) {
                        trace->lost++;
                        r = 0;
                }
                tail += header.size;
        }
        __atomic_store_n(&cpu->page->data_tail, tail, __ATOMIC_RELEASE);
        return r;
}

static int compare(const void *a, const void *b)
{
        const Pending *x = a, *y = b;

        if (x->nsec != y->nsec)
                return x->nsec < y->nsec ? -1 : 1;
        return x->order < y->order ? -1 : x->order > y->order;
}

static uint64_t now_nsec(void)
{
        struct timespec now;

        (void) clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t) now.tv_sec * USEC_PER_SEC * NSEC_PER_USEC + (uint64_t) now.tv_nsec;
}

/* Which signal ended a process. One that ends it without a core dump is never delivered: the kernel marks the
 * process as ending when the signal is sent, and all its threads meet a SIGKILL (complete_signal() of
 * kernel/signal.c). So what was sent within the group is kept until the SIGKILL arrives. What came from
 * elsewhere (also a timer that fired while another group ran) stays unknown. Both name the thread as the
 * first pid namespace counts. */
static void resolve_signal(Trace *trace, Pending *signal)
{
        Sent *sent = &trace->sent[signal->thread % SENT_SLOTS];

        if (signal->sent)
                *sent = (Sent){ signal->thread, signal->event.value, signal->nsec };
        else if (signal->event.value == SIGKILL)
                signal->event.value =
                                sent->thread == signal->thread && signal->nsec - sent->nsec <= SENT_AGE_NSEC
                                                ? sent->signal
                                                : 0;
}

static int hand_over(Trace *trace, Pending *event, TraceHandler handler, void *userdata)
{
        if (event->event.kind == TRACE_SIGNAL)
                resolve_signal(trace, event);
        return event->sent ? 0 : handler(userdata, &event->event);
}

/* Buffers are read one after the other, so of what happens meanwhile a cause may be missed and its effect
 * seen. Only what is older than the first reading is complete; the rest is kept for the next time. */
int trace_read(Trace *trace, TraceHandler handler, void *userdata)
{
        uint64_t until = now_nsec();
        size_t done = 0;
        int r = 0;

        for (size_t i = 0; r >= 0 && i < trace->n_cpus; i++)
                if (trace->cpus[i].page)
                        r = drain(trace, &trace->cpus[i]);
        if (r < 0)
                return r;
        qsort(trace->pending, trace->n_pending, sizeof(Pending), compare);
        while (r >= 0 && done < trace->n_pending && trace->pending[done].nsec <= until)
                r = hand_over(trace, &trace->pending[done++], handler, userdata);
        trace->n_pending -= done;
        memmove(trace->pending, trace->pending + done, trace->n_pending * sizeof(Pending));
        return r < 0 ? r : 0;
}

uint64_t trace_lost(const Trace *trace)
{
        uint64_t lost = trace->lost;

        for (size_t i = 0; trace->counts_lost && i < trace->n_cpus; i++) {
                for (Source source = 0; source < _SOURCE_MAX; source++) {
                        uint64_t values[2] = { 0 }; /* value, lost */

                        if (trace->cpus[i].fds[source] >= 0 &&
                                        read(trace->cpus[i].fds[source], values, sizeof(values)) ==
                                                        sizeof(values))
                                lost += values[1];
                }
        }
        return lost;
}
