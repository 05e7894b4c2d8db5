/* SPDX-License-Identifier: Apache-2.0 */
/* The table of limits. Nothing here decides; the plan compares. */

#include "core/limits.h"

/* Floors, each from what the run itself needs inside the limit before the command begins:
 * memory: systemd's executor and the stage run in the job's cgroup and peak at about 6 MiB;
 * cpu: the kernel takes no quota below 1 ms of each 100 ms period;
 * tasks: PrivateUsers= makes systemd fork a helper beside the executor, and a thread of each may linger;
 * cpu_time: executor and stage use some 20 ms, on an emulated machine five times that;
 * open_files: standard streams, gate, and what the dynamic loader opens at once;
 * disk, inodes: the layer's own directories. */
const LimitInfo limit_table[_LIMIT_MAX] = {
        [LIMIT_MEMORY] = { "memory", "MemoryMax", LIMIT_UNIT_BYTES, MIB(16) },
        [LIMIT_SWAP] = { "swap", "MemorySwapMax", LIMIT_UNIT_BYTES, 0 },
        [LIMIT_CPU] = { "cpu", "CPUQuota", LIMIT_UNIT_CPU_RATE, 10000 },
        [LIMIT_TASKS] = { "tasks", "TasksMax", LIMIT_UNIT_COUNT, 4 },
        [LIMIT_CPU_TIME] = { "cpu_time_sec", "LimitCPU", LIMIT_UNIT_SECONDS, USEC_PER_SEC / 10 },
        [LIMIT_FILE_SIZE] = { "file_size", "LimitFSIZE", LIMIT_UNIT_BYTES, 0 },
        [LIMIT_OPEN_FILES] = { "open_files", "LimitNOFILE", LIMIT_UNIT_COUNT, 16 },
        [LIMIT_DISK] = { "disk", NULL, LIMIT_UNIT_BYTES, KIB(64) },
        [LIMIT_INODES] = { "inodes", NULL, LIMIT_UNIT_COUNT, 16 },
        [LIMIT_OUTPUT] = { "output", NULL, LIMIT_UNIT_BYTES, 0 },
};

LimitKind limit_from_key(const char *key)
{
        for (size_t i = 0; i < _LIMIT_MAX; i++)
                if (streq(limit_table[i].key, key))
                        return (LimitKind) i;
        return _LIMIT_INVALID;
}

uint64_t limit_of_process(LimitKind kind, uint64_t value)
{
        return kind == LIMIT_CPU_TIME ? (value + USEC_PER_SEC - 1) / USEC_PER_SEC + 1 : value;
}
