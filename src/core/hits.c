/* SPDX-License-Identifier: Apache-2.0 */
/* One table: limit, where its evidence stands, how many times. Rows of one limit are in order of strength and
 * the first that holds is taken. A signal alone is no evidence when a counter says otherwise: `kill -9 $$` is
 * not an OOM, and `kill -XCPU $$` did not use up its time. */
#include "core/hits.h"

#include <inttypes.h>
#include <signal.h>

/* RLIMIT_CPU's signal comes up to a second before the limit (its unit is seconds, and the soft limit lies
 * below the hard one), and is counted by the scheduler's tick. */
#define CPU_TIME_SLACK_USEC (USEC_PER_SEC + 50 * USEC_PER_MSEC)

typedef struct HitRule {
        LimitKind limit;
        const char *counter;                                   /* as the receipt names it */
        uint64_t (*count)(const Plan *plan, const Outcome *o); /* 0: this did not happen */
        const char *code;                                      /* of the reason; NULL: nothing was harmed */
        const char *text; /* of the reason, after "memory (limit 512M): " */
} HitRule;

static uint64_t known(uint64_t counter)
{
        return counter == UNKNOWN ? 0 : counter;
}

static bool is_limited(const Plan *plan, LimitKind kind)
{
        return plan->limits.value[kind] != LIMIT_UNLIMITED && plan->limits.value[kind] != LIMIT_UNSET;
}

/* A kill without a group below the job's slice being out of memory is somebody else's: judge_outside.c. */
static uint64_t memory_killed(const Plan *plan _unused_, const Outcome *o)
{
        return o->events.oom == 0 ? 0 : known(o->events.oom_kill);
}

/* With swap forbidden, every reclaim "fails" to swap: that says nothing. */
static uint64_t swap_refused(const Plan *plan, const Outcome *o)
{
        return plan->limits.value[LIMIT_SWAP] == 0 ? 0 : known(o->events.swap_max);
}

/* Throttling is worth telling from a twentieth of the time on. */
#define THROTTLED_SHARE 20u

static uint64_t cpu_throttled(const Plan *plan _unused_, const Outcome *o)
{
        /* A quota as large as the machine is passed now and then by the accounting's own grain. */
        if (o->usage.throttled_usec != UNKNOWN && o->duration_usec != UNKNOWN &&
                        o->usage.throttled_usec < o->duration_usec / THROTTLED_SHARE)
                return 0;
        return known(o->usage.nr_throttled);
}

static uint64_t task_refused(const Plan *plan _unused_, const Outcome *o)
{
        return known(o->events.pids_max);
}

static uint64_t cpu_time_watched(const Plan *plan _unused_, const Outcome *o)
{
        if (o->events.cpu_time_exceeded != 1)
                return 0;
        return o->usage.cpu_usec != UNKNOWN ? o->usage.cpu_usec : 1;
}

/* Whether the job has used its CPU time, less slack. What is not known does not speak against it. */
static bool cpu_time_used(const Plan *plan, const Outcome *o, uint64_t slack_usec)
{
        if (!is_limited(plan, LIMIT_CPU_TIME))
                return false;
        return o->usage.cpu_usec == UNKNOWN ||
               o->usage.cpu_usec + slack_usec >= plan->limits.value[LIMIT_CPU_TIME];
}

static uint64_t cpu_time_signal(const Plan *plan, const Outcome *o)
{
        return o->exit_signal == SIGXCPU && cpu_time_used(plan, o, CPU_TIME_SLACK_USEC);
}

/* The hard limit kills with SIGKILL, which other things do too; a shell reports its child's death as an exit
 * status. Either counts only together with the time really used. */
static uint64_t cpu_time_killed(const Plan *plan, const Outcome *o)
{
        bool by_us = o->timed_out || o->abort_signal != 0 || o->host_code || known(o->events.oom_kill) > 0;

        if (o->usage.cpu_usec == UNKNOWN)
                return 0;
        if (o->exit_status == 128 + SIGXCPU)
                return cpu_time_used(plan, o, CPU_TIME_SLACK_USEC);
        return !by_us && (o->exit_signal == SIGKILL || o->exit_status == 128 + SIGKILL) &&
               cpu_time_used(plan, o, 0);
}

/* The write that raises SIGXFSZ also fails with EFBIG: if those are counted and there was none, the signal
 * came from somewhere else. */
static uint64_t file_size_signal(const Plan *plan, const Outcome *o)
{
        return o->exit_signal == SIGXFSZ && is_limited(plan, LIMIT_FILE_SIZE) && o->events.efbig != 0;
}

static uint64_t file_size_call(const Plan *plan _unused_, const Outcome *o)
{
        return known(o->events.efbig);
}

static uint64_t file_size_reached(const Plan *plan _unused_, const Outcome *o)
{
        return o->events.file_at_limit != NULL;
}

static uint64_t open_files_call(const Plan *plan _unused_, const Outcome *o)
{
        return known(o->events.emfile);
}

/* ENOSPC is said for blocks and for inodes. Unless the inodes are known to be gone, it was the blocks: a job
 * may have made room again before anyone looked. */
/* ENOSPC may have another cause (/dev/full, a queue): the layer's it can only be if the layer was seen well
 * filled, or is so small that it is filled and emptied between two looks. */
static bool was_pressed(const Plan *plan, LimitKind limit, uint64_t peak, uint64_t small)
{
        uint64_t value = plan->limits.value[limit];

        return peak == UNKNOWN || value < small || peak >= value / 2;
}

static uint64_t disk_call(const Plan *plan, const Outcome *o)
{
        const LimitEvents *e = &o->events;

        if (e->disk_full == 1)
                return known(e->enospc);
        if (e->inodes_full == 1 || !was_pressed(plan, LIMIT_DISK, e->layer_peak_bytes, MIB(64)))
                return 0;
        return known(e->enospc);
}

static uint64_t disk_filled(const Plan *plan _unused_, const Outcome *o)
{
        return o->events.disk_full == 1;
}

static uint64_t inodes_call(const Plan *plan, const Outcome *o)
{
        const LimitEvents *e = &o->events;

        if (e->disk_full == 1)
                return 0;
        if (e->inodes_full == 1)
                return known(e->enospc);
        return disk_call(plan, o) == 0 && was_pressed(plan, LIMIT_INODES, e->layer_peak_inodes, 1024)
                               ? known(e->enospc)
                               : 0;
}

static uint64_t inodes_filled(const Plan *plan _unused_, const Outcome *o)
{
        return o->events.inodes_full == 1;
}

static const HitRule rules[] = {
        { LIMIT_MEMORY, "memory.events oom_kill", memory_killed, "killed_by_limit",
                        "a process was killed for memory" },
        { LIMIT_SWAP, "memory.swap.events max", swap_refused, NULL, NULL },
        { LIMIT_CPU, "cpu.stat nr_throttled", cpu_throttled, NULL, NULL },
        { LIMIT_TASKS, "pids.events max", task_refused, "limit_hit",
                        "starting a process or thread was refused" },
        { LIMIT_CPU_TIME, "cpu.stat usage_usec", cpu_time_watched, "killed_by_limit",
                        "the CPU time was used up" },
        { LIMIT_CPU_TIME, "SIGXCPU", cpu_time_signal, "killed_by_limit", "the CPU time was used up" },
        { LIMIT_CPU_TIME, "RLIMIT_CPU", cpu_time_killed, "killed_by_limit", "the CPU time was used up" },
        { LIMIT_FILE_SIZE, "SIGXFSZ", file_size_signal, "killed_by_limit",
                        "a file would have become larger" },
        { LIMIT_FILE_SIZE, "system calls EFBIG", file_size_call, "limit_hit",
                        "a file would have become larger" },
        { LIMIT_FILE_SIZE, "RLIMIT_FSIZE", file_size_reached, "limit_hit",
                        "a file was stopped at this size" },
        { LIMIT_OPEN_FILES, "system calls EMFILE", open_files_call, "limit_hit",
                        "opening one more file was refused" },
        { LIMIT_DISK, "system calls ENOSPC", disk_call, "limit_hit", "a write found no space left" },
        { LIMIT_DISK, "statfs free blocks", disk_filled, "limit_hit", "no space was left at the end" },
        { LIMIT_INODES, "system calls ENOSPC", inodes_call, "limit_hit", "a file could not be made" },
        { LIMIT_INODES, "statfs free inodes", inodes_filled, "limit_hit",
                        "no further file could be made at the end" },
};

char *limit_format(LimitKind kind, uint64_t value, char buffer[static FORMAT_MAX])
{
        if (value == LIMIT_UNLIMITED || value == LIMIT_UNSET)
                (void) snprintf(buffer, FORMAT_MAX, "none");
        else if (limit_table[kind].unit == LIMIT_UNIT_BYTES)
                format_bytes(value, buffer);
        else if (limit_table[kind].unit == LIMIT_UNIT_CPU_RATE)
                (void) snprintf(buffer, FORMAT_MAX, "%.15g%%", (double) value / 10000.0);
        else if (limit_table[kind].unit == LIMIT_UNIT_SECONDS)
                (void) snprintf(buffer, FORMAT_MAX, "%.15g s", (double) value / (double) USEC_PER_SEC);
        else
                (void) snprintf(buffer, FORMAT_MAX, "%" PRIu64, value);
        return buffer;
}

static int add_hit(
                const HitRule *rule, uint64_t count, const Plan *plan, const Outcome *o, Judgement *judgement)
{
        char value[FORMAT_MAX];
        const char *file = rule->count == file_size_reached ? o->events.file_at_limit : NULL;

        assert(judgement->n_hits < LIMIT_HITS_MAX);
        judgement->hits[judgement->n_hits++] = (LimitHit){
                .limit = rule->limit,
                .counter = rule->counter,
                .count = count,
                .killed = rule->code != NULL,
        };
        if (!rule->code)
                return 0;
        return reason_add(&judgement->reasons, rule->code, "%s (limit %s): %s (%s: %" PRIu64 ")%s%s",
                        limit_table[rule->limit].key,
                        limit_format(rule->limit, plan->limits.value[rule->limit], value), rule->text,
                        rule->counter, count, file ? ", " : "", file ? file : "");
}

int hits_collect(const Plan *plan, const Outcome *o, Judgement *judgement)
{
        for (size_t i = 0; i < ELEMENTSOF(rules); i++) {
                uint64_t count;
                int r;

                /* A stronger row of the same limit has been taken: rows of one limit stand together. */
                if (judgement->n_hits > 0 && judgement->hits[judgement->n_hits - 1].limit == rules[i].limit)
                        continue;
                count = rules[i].count(plan, o);
                if (count == 0)
                        continue;
                r = add_hit(&rules[i], count, plan, o, judgement);
                if (r < 0)
                        return r;
        }
        return 0;
}
