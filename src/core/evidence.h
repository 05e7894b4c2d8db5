/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the observers saw of a running job, as plain values. Names, paths and arguments are the job's own raw
 * bytes. Every list is cut at a bound and says how many there were; `observed` is false where this host could
 * not look, and then the list is empty for that reason. `lost` counts what is known to have been missed: lost
 * evidence is never a pass. */

#include <sys/types.h>

#include "base/error.h"

/* --- events of the kernel's trace, in the order of their time --- */

typedef enum TraceKind {
        TRACE_FORK,   /* pid: the new process; ppid: who made it */
        TRACE_THREAD, /* pid: it has one more thread */
        TRACE_EXEC,   /* pid: it runs another program now; name: its comm */
        TRACE_FAILED, /* pid, tid: an execve(2) of this thread failed */
        TRACE_STATUS, /* pid: it called exit_group(value) */
        TRACE_LEFT, /* pid: its first thread called exit(value): its status, unless all are ended together */
        TRACE_SIGNAL,  /* pid: signal `value` ends it; 0: a signal does, and it is not known which */
        TRACE_EXIT,    /* pid: one of its threads is gone; with the last one, the process */
        TRACE_LISTEN,  /* pid: a TCP socket of it listens at `local` */
        TRACE_SEND,    /* pid: it handed a packet of `value` bytes to the sink's device */
        TRACE_REFUSED, /* pid: a way to send was refused to it: `value` is a RefusedKind */
        _TRACE_KIND_MAX,
} TraceKind;

typedef struct Endpoint {
        int family; /* AF_INET, AF_INET6; 0: unknown */
        uint8_t address[16];
        uint16_t port; /* host order; 0: none */
} Endpoint;

typedef struct TraceEvent {
        TraceKind kind;
        pid_t pid, tid, ppid; /* as the caller's pid namespace counts; tid: the thread that did it */
        uint64_t usec;        /* CLOCK_MONOTONIC */
        int value;
        Endpoint local;
        char name[16];
} TraceEvent;

/* --- processes.tree --- */

/* One file that an execve(2) is about to execute: the program itself, then the interpreter of a script, then
 * the dynamic loader. All of one call have the same `call`, and the first of them is the program. */
typedef struct ProgramStart {
        pid_t pid, tid, ppid; /* ppid: 0: unknown */
        uint64_t usec;        /* CLOCK_MONOTONIC */
        uint64_t call;        /* 0: it could not be looked at, and only path is known */
        char name[16];        /* as the kernel will name the process: the base name of what was given, cut */
        const char *path;     /* as resolved in the job's root; NULL: unknown */
        const char *called;   /* as it was given, in the job's own memory; NULL: unknown */
        char *const *argv;    /* NULL: unknown */
        bool argv_cut;
        bool is_program; /* it is the file that was named, as far as one can tell, and not a part of it */
        bool is_script;  /* what is opened next for it is an interpreter: a program itself, and no loader */
} ProgramStart;

/* A program that was started: what execve(2) was given. */
typedef struct ProgramRun {
        char *path;    /* as resolved in the job's root; NULL: unknown */
        char **argv;   /* NULL: unknown */
        bool argv_cut; /* there was more of it */
        uint64_t usec; /* after the release of the gate */
} ProgramRun;

typedef struct ProcessNode {
        pid_t pid, ppid;  /* ppid: 0: not of the job, or unknown */
        char *origin;     /* the program that it is a copy of, as it was made; NULL: unknown */
        ProgramRun *runs; /* in order; none: it never executed anything */
        size_t n_runs;
        uint64_t start_usec, end_usec; /* after the release of the gate; UNKNOWN */
        int exit_status;               /* -1: unknown, or not ended by exit */
        int exit_signal;               /* 0: none, or unknown */
} ProcessNode;

typedef struct ProcessTree {
        ProcessNode *items; /* in order of their start, a parent before its children */
        size_t n;
        uint64_t total;    /* processes, also those not listed */
        uint64_t programs; /* programs that were started, also those not listed */
        bool truncated;    /* processes, programs or arguments are not listed for want of room */
        uint64_t lost;     /* events missed */
        bool observed;     /* forks and ends were seen */
        bool complete;     /* every program was seen before it ran */
} ProcessTree;

/* --- processes.denied --- */

#define DENIED_MAX 64u /* listed */

/* A program that the policy does not let run: it was refused before it ran. The same one refused to the same
 * process again only counts. */
typedef struct DeniedProgram {
        pid_t pid;   /* who tried */
        char *by;    /* what that was running; NULL: unknown */
        char *path;  /* NULL: unknown */
        char **argv; /* NULL: unknown */
        char *rule;  /* of deny_exec; NULL: allow_exec does not name it */
        uint64_t count;
        uint64_t usec; /* the first time, after the release of the gate */
} DeniedProgram;

typedef struct DeniedList {
        DeniedProgram *items;
        size_t n;
        uint64_t total;
} DeniedList;

/* Takes one; 0 or -ENOMEM. */
int denied_list_add(DeniedList *list, const DeniedProgram *program);

/* --- sockets --- */

typedef struct SocketRecord {
        int family;   /* AF_INET, AF_INET6, AF_UNIX, AF_PACKET, AF_NETLINK, AF_VSOCK */
        int type;     /* SOCK_STREAM …; 0: unknown */
        int protocol; /* IPPROTO_TCP …; 0 */
        Endpoint local, remote;
        char *name; /* AF_UNIX: the path, or the abstract name without its leading NUL; NULL: none */
        size_t name_size;
        bool abstract;
        int state; /* as in <netinet/tcp.h>: TCP_LISTEN …; 0: none */
        uint64_t inode;
        uint64_t peer_inode; /* AF_UNIX: of the socket at the other end; 0: none */
        bool left;           /* open when the main process had ended */
        pid_t pid;           /* a process that holds it; 0: unknown */
        char *program;       /* its program's path or comm; NULL: unknown */
} SocketRecord;

typedef struct SocketList {
        SocketRecord *items;
        size_t n;
        uint64_t total;
} SocketList;

typedef struct SocketEvidence {
        bool observed;
        uint64_t lost;
        SocketList listening; /* every place where one listened during the run, also for a moment */
        SocketList leftover;  /* open when the main process had ended, listening or not */
        SocketList closed;    /* seen to be closed during the run */
} SocketEvidence;

/* --- egress --- */

typedef enum EgressProtocol {
        EGRESS_TCP,
        EGRESS_UDP,
        EGRESS_DNS,
        EGRESS_ICMP,
        EGRESS_OTHER,
        _EGRESS_PROTOCOL_MAX,
} EgressProtocol;

/* One destination one process tried to reach; the same again only counts. */
typedef struct EgressRecord {
        EgressProtocol protocol;
        int ip_protocol; /* its number, for EGRESS_OTHER */
        Endpoint remote;
        char *name;    /* EGRESS_DNS: the name asked; else the name this address was given as; NULL */
        pid_t pid;     /* 0: unknown */
        char *program; /* NULL: unknown */
        uint64_t count;
        uint64_t first_usec; /* after the release of the gate */
} EgressRecord;

/* Ways to send that are not given to a job: so there is no attempt to be seen, only that it asked. */
typedef enum RefusedKind {
        REFUSED_FAMILY,   /* socket(2): no such address family here (vsock, packet, …) */
        REFUSED_RAW,      /* socket(2): a capability is missing (raw) */
        REFUSED_IO_URING, /* io_uring_setup(2) */
        _REFUSED_KIND_MAX,
} RefusedKind;

typedef struct RefusedRecord {
        RefusedKind kind;
        pid_t pid;
        char *program; /* NULL: unknown */
        uint64_t count;
        uint64_t first_usec; /* after the release of the gate */
} RefusedRecord;

typedef struct EgressEvidence {
        bool observed;
        EgressRecord *items;
        size_t n;
        uint64_t total; /* attempts, also those of records not listed */
        uint64_t lost;  /* packets that a flood pushed out before they were read */
        RefusedRecord *refused;
        size_t n_refused;
        uint64_t refused_total[_REFUSED_KIND_MAX]; /* also those not listed; UNKNOWN */
} EgressEvidence;

/* --- what leftover processes hold open, and what is shared --- */

typedef struct FdRecord {
        pid_t pid;
        int fd;
        const char *kind; /* "file" "directory" "pipe" "socket" "memfd" "device" "anon" "other" */
        char *target;     /* where it leads, as the kernel names it */
        bool deleted;
        bool writable;
} FdRecord;

typedef struct FdList {
        bool observed;
        FdRecord *items;
        size_t n;
        uint64_t total;
} FdList;

typedef struct IpcRecord {
        const char *kind; /* "sysv_shm" "sysv_sem" "sysv_msg" "posix_mq" "posix_shm" "posix_sem" "key" "lock"
                           */
        char *name;       /* of POSIX objects and files locked; NULL */
        uint64_t key, id; /* of System V objects; UNKNOWN */
        uint64_t size;    /* bytes, messages or semaphores; UNKNOWN */
        pid_t pid;        /* who made or holds it; 0: unknown */
} IpcRecord;

typedef struct IpcList {
        bool observed;
        IpcRecord *items;
        size_t n;
        uint64_t total;
} IpcList;

#define ENDPOINT_TEXT_MAX 64

/* "192.0.2.1", "2001:db8::1"; NULL when the family is unknown. */
const char *endpoint_address(const Endpoint *endpoint, char text[static ENDPOINT_TEXT_MAX]);
/* "192.0.2.1:443", "[2001:db8::1]:443", without a port if there is none; "?" */
const char *endpoint_format(const Endpoint *endpoint, char text[static ENDPOINT_TEXT_MAX]);

/* "tcp", "dns", …, "ip-47" for a protocol without a name. */
const char *egress_protocol(const EgressRecord *record);

/* Each frees what is below and leaves zeros. */
void process_tree_clear(ProcessTree *tree);
void denied_list_clear(DeniedList *list);
void socket_record_clear(SocketRecord *record);
void socket_evidence_clear(SocketEvidence *sockets);
void egress_evidence_clear(EgressEvidence *egress);
void fd_list_clear(FdList *fds);
void ipc_list_clear(IpcList *ipc);
