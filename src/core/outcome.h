/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Everything observed of one run, as plain values. sys/ and run/ fill it, core/ judges it. What is not known
 * is UNKNOWN or NULL, never 0. */

#include <sys/types.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"
#include "core/changes.h"
#include "core/evidence.h"
#include "core/kept.h"
#include "core/limits.h"
#include "core/series.h"

typedef enum Phase {
        PHASE_PREPARE,
        PHASE_START,
        PHASE_GATE,
        PHASE_HELD, /* at the gate, until it is its turn */
        PHASE_RUN,
        PHASE_DRAIN,
        PHASE_SETTLE,
        PHASE_DIFF,
        PHASE_WRITE,
        _PHASE_MAX,
} Phase;

extern const char *const phase_names[_PHASE_MAX]; /* "prepare", "start", "gate", … */

/* One standard stream, counted and hashed whole, kept head and tail. */
typedef struct StreamRecord {
        uint64_t bytes;              /* all of them */
        uint64_t after_exit_bytes;   /* of these, read after the main process had ended */
        char sha256[HASH_HEX_MAX];   /* of all of them */
        bool utf8;                   /* all of them are valid UTF-8 */
        uint8_t *head, *tail;        /* tail: the last bytes, none of which is in head */
        size_t head_size, tail_size; /* truncated when head_size + tail_size < bytes */
        uint8_t *whole; /* NULL unless an expectation needs it and it was small enough; equals bytes long */
} StreamRecord;

#define EXEC_HEAD_MAX 256

/* What the stage reported when the command could not be executed. */
typedef struct ExecRecord {
        char *resolved;              /* the path that was executed, or tried last; NULL: nothing was found */
        char *file;                  /* where its links lead; NULL: it was not looked up beforehand */
        int error;                   /* positive errno, 0: it was executed, -1: never tried */
        char *step;                  /* "chdir", "exec", "prepare" …; NULL when error <= 0 */
        uint8_t head[EXEC_HEAD_MAX]; /* first bytes of the file that could not be executed */
        size_t head_size;
        unsigned file_mode; /* st_mode of resolved, 0: unknown */
} ExecRecord;

typedef struct Usage {
        uint64_t cpu_usec, user_usec, system_usec;
        uint64_t memory_peak_bytes, swap_peak_bytes, pids_peak;
        uint64_t io_read_bytes, io_write_bytes;
        uint64_t throttled_usec, nr_throttled, nr_periods;
        uint64_t cpu_pressure_usec, memory_pressure_usec, io_pressure_usec; /* "some total" of *.pressure */
        uint64_t disk_bytes, disk_inodes;                                   /* used in the layer at the end */
} Usage;

/* The kernel's counters of limits that fired; UNKNOWN: not available on this host. */
typedef struct LimitEvents {
        uint64_t oom_kill;                            /* memory.events of the job's slice */
        uint64_t oom;                                 /* the same: a limit in it or below was the cause */
        uint64_t memory_max;                          /* memory.events max */
        uint64_t swap_max;                            /* memory.swap.events max */
        uint64_t pids_max;                            /* pids.events max */
        uint64_t emfile, enospc, efbig;               /* system calls of the job that returned these errors */
        uint64_t disk_full;                           /* the layer had no free block left: 0 or 1 */
        uint64_t inodes_full;                         /* the layer had no free inode left: 0 or 1 */
        uint64_t layer_peak_bytes, layer_peak_inodes; /* the most that was seen used in the layer */
        uint64_t cpu_time_exceeded; /* cpu.stat usage_usec was over cpu_time_sec and the job was killed: 0 or
                                       1 */
        char *file_at_limit; /* a file in the layer that is exactly as large as file_size; NULL: none */
} LimitEvents;

/* What was done to the job by others than itself and qscope. */
typedef struct Interference {
        bool stopped;                  /* systemd was told to stop its unit */
        uint64_t oomd_kills;           /* systemd-oomd(8) marks the control group that it kills */
        uint64_t outer_oom;            /* memory.events oom of qscope.slice during the run */
        uint64_t sent_kill, sent_term; /* SIGKILL and SIGTERM that came from the job's own processes */
        uint64_t senders, signal_fds;  /* what it made that sends signals by itself */
} Interference;

typedef struct IsolationFact {
        char *name; /* "namespace.net", "seccomp", "mount:/tmp", … */
        char *expected, *observed;
        bool holds;
} IsolationFact;

/* A process that was alive when the main process had ended and the grace was over. */
typedef struct ProcessRecord {
        pid_t pid, ppid;
        char *comm;          /* raw bytes; it chooses this itself, and argv */
        char **argv;         /* raw bytes, cut */
        char *program;       /* what it really runs; NULL: unknown */
        uint64_t start_usec; /* after the release of the gate; UNKNOWN */
        char state;          /* as in proc_pid_stat(5) */
} ProcessRecord;

typedef struct ProcessList {
        ProcessRecord *items;
        size_t n;
        uint64_t total;
} ProcessList;

typedef struct HostFacts {
        char *kernel, *systemd, *boot_id, *hostname, *machine; /* NULL: unknown */
} HostFacts;

typedef struct Outcome {
        /* What ended the run before the command could: qscope's or the host's fault. */
        const char *host_code; /* a code of the reason table, or NULL */
        char *host_message;
        char *host_remedy;

        uint64_t started_realtime_usec, finished_realtime_usec;
        uint64_t duration_usec; /* of the command, release to end, monotonic; UNKNOWN: it never ran */
        uint64_t phase_usec[_PHASE_MAX];

        bool released; /* the gate was opened: the command was executed, or its exec failed */
        ExecRecord exec;
        bool exited;     /* the main process has an end that is known */
        int exit_status; /* -1: not ended by exit */
        int exit_signal; /* 0: not ended by a signal */
        bool core_dumped;
        bool timed_out;
        int abort_signal;   /* qscope itself was told to stop by this signal; 0: no */
        bool evidence_lost; /* then the verdict is "error" whatever else holds */
        char *evidence_message;

        StreamRecord out, err;
        Usage usage;
        Series samples;
        LimitEvents events;
        Interference outside;
        IsolationFact *facts;
        size_t n_facts;
        FileChanges changes;
        KeptRecord kept;
        ProcessList leftovers;
        ProcessTree processes;
        DeniedList denied;
        SocketEvidence sockets;
        EgressEvidence egress;
        FdList fds;
        IpcList ipc;
        char **blind_spots;
        HostFacts host;
        char *invocation_id;
        char *layer;            /* "tmpfs", "image" */
        char *workspace_method; /* "overlay, id-mapped", "overlay over a copy", "fresh" */

        /* For expect.files: one per job.expect.files, in its order. */
        struct ExpectedFile {
                bool exists;
                char sha256[HASH_HEX_MAX];
                int equals; /* -1: not asked, 0, 1 */
        } * expected_files;
        size_t n_expected_files;
} Outcome;

#define FORMAT_SIGNAL_MAX 32

/* "SIGKILL", "SIGRTMIN+3"; "SIG200" for a number without a name. Returns buffer. */
char *format_signal(int signal, char buffer[static FORMAT_SIGNAL_MAX]);

/* Everything unknown. */
Outcome *outcome_new(void);
Outcome *outcome_free(Outcome *outcome);
DEFINE_CLEANUP(Outcome *, outcome_free)

int outcome_add_fact(Outcome *o, const char *name, bool holds, const char *expected, const char *observed);
int outcome_blind_spot(Outcome *o, const char *format, ...) _printf_(2, 3);
/* Keeps the first cause; later ones are its consequences. code must be in the reason table. */
void outcome_host_error(Outcome *o, const char *code, const char *remedy, const char *format, ...)
                _printf_(4, 5);
