/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The limits a job may have: one table row each. Values are bytes, counts or microseconds (see unit). */

#include "base/macro.h"

typedef enum LimitKind {
        LIMIT_MEMORY,     /* bytes, MemoryMax= */
        LIMIT_SWAP,       /* bytes, MemorySwapMax= */
        LIMIT_CPU,        /* usec of CPU time a second, CPUQuota= */
        LIMIT_TASKS,      /* count, TasksMax= */
        LIMIT_CPU_TIME,   /* usec of CPU time in all; per process RLIMIT_CPU, for the job cpu.stat */
        LIMIT_FILE_SIZE,  /* bytes, LimitFSIZE= */
        LIMIT_OPEN_FILES, /* count, LimitNOFILE= */
        LIMIT_DISK,       /* bytes the job may write, by the size of its layer */
        LIMIT_INODES,     /* files the job may make, by the layer's inodes */
        LIMIT_OUTPUT,     /* bytes kept of each of stdout and stderr (all are counted and hashed) */
        _LIMIT_MAX,
        _LIMIT_INVALID = -EINVAL,
} LimitKind;

typedef enum LimitUnit {
        LIMIT_UNIT_BYTES,
        LIMIT_UNIT_COUNT,
        LIMIT_UNIT_CPU_RATE,
        LIMIT_UNIT_SECONDS
} LimitUnit;

#define LIMIT_UNSET     UINT64_MAX       /* nobody gave a value */
#define LIMIT_UNLIMITED (UINT64_MAX - 1) /* given as null: none, on purpose */

typedef struct Limits {
        uint64_t value[_LIMIT_MAX];
} Limits;

typedef struct LimitInfo {
        const char *key;      /* in job and policy files: "memory" … "cpu_time_sec" … */
        const char *property; /* documented systemd property that carries it, or NULL */
        LimitUnit unit;
        uint64_t floor; /* a smaller value would break the run itself, not the job */
} LimitInfo;

extern const LimitInfo limit_table[_LIMIT_MAX];

LimitKind limit_from_key(const char *key);

/* The value as a limit of one process (setrlimit(2)). RLIMIT_CPU counts whole seconds, and what systemd used
 * in that process before the command was executed: one more, so that it is the group's own counter that
 * decides. */
uint64_t limit_of_process(LimitKind kind, uint64_t value);

#define LIMITS_UNSET ((Limits){ { [0 ... _LIMIT_MAX - 1] = LIMIT_UNSET } })
