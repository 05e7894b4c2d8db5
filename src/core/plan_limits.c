/* SPDX-License-Identifier: Apache-2.0 */
/* Limits and the timeout: what the job asks, what the policy gives where it asks nothing, and the policy's
 * ceilings. */

#include "core/plan_parts.h"

#include <inttypes.h>

#include "base/number.h"

#define TIMEOUT_DEFAULT_USEC (30 * USEC_PER_SEC)
/* What one inode of a tmpfs costs in kernel memory, charged to the job: shmem inode and dentry, rounded up.
 */
#define TMPFS_INODE_BYTES UINT64_C(2048)
#define TMPFS_DISK_MAX    MIB(256) /* without a memory limit */

char *plan_format_limit(LimitKind kind, uint64_t value, char *buffer, size_t size)
{
        char text[FORMAT_MAX];

        if (value == LIMIT_UNLIMITED) {
                (void) snprintf(buffer, size, "null (no limit)");
                return buffer;
        }
        switch (limit_table[kind].unit) {
        case LIMIT_UNIT_BYTES:
                (void) snprintf(buffer, size, "%s", format_bytes(value, text));
                break;
        case LIMIT_UNIT_COUNT:
                (void) snprintf(buffer, size, "%" PRIu64, value);
                break;
        case LIMIT_UNIT_CPU_RATE:
                (void) snprintf(buffer, size, "%g%%", (double) value / 10000.0);
                break;
        case LIMIT_UNIT_SECONDS:
                (void) snprintf(buffer, size, "%g s", (double) value / (double) USEC_PER_SEC);
                break;
        }
        return buffer;
}

static int refuse_limit(Plan *plan, const char *code, LimitKind kind, uint64_t value, const char *relation,
                uint64_t bound)
{
        char asked[FORMAT_MAX], allowed[FORMAT_MAX];

        return reason_add(&plan->refusals, code, "job.limits.%s: %s is %s %s", limit_table[kind].key,
                        plan_format_limit(kind, value, asked, sizeof(asked)), relation,
                        plan_format_limit(kind, bound, allowed, sizeof(allowed)));
}

static int plan_limit(Plan *plan, LimitKind kind)
{
        uint64_t asked = plan->job->limits.value[kind], ceiling = plan->policy->max_limits.value[kind];
        uint64_t value = asked != LIMIT_UNSET ? asked : plan->policy->default_limits.value[kind];

        if (value == LIMIT_UNSET)
                value = LIMIT_UNLIMITED;
        /* LIMIT_UNLIMITED is above every value, so one comparison serves both. */
        if (ceiling != LIMIT_UNSET && value > ceiling) {
                plan->limits.value[kind] = ceiling; /* what it could have had, for the receipt */
                if (asked != LIMIT_UNSET)
                        return refuse_limit(plan, "over_ceiling", kind, value, "over the policy's", ceiling);
                value = ceiling;
        }
        plan->limits.value[kind] = value;
        if (value < limit_table[kind].floor)
                return refuse_limit(plan, "limit_floor", kind, value,
                                "too little for the run itself: give at least", limit_table[kind].floor);
        return 0;
}

static Layer choose_layer(const Limits *limits)
{
        uint64_t memory = limits->value[LIMIT_MEMORY], need;

        if (memory == LIMIT_UNLIMITED)
                return limits->value[LIMIT_DISK] <= TMPFS_DISK_MAX ? LAYER_TMPFS : LAYER_IMAGE;
        if (__builtin_mul_overflow(limits->value[LIMIT_INODES], TMPFS_INODE_BYTES, &need) ||
                        __builtin_add_overflow(need, limits->value[LIMIT_DISK], &need))
                return LAYER_IMAGE;
        return need <= memory / 2 ? LAYER_TMPFS : LAYER_IMAGE;
}

/* There is no layer that could be full: nothing is said to be bounded that is not. */
static int refuse_layer_limits(Plan *plan)
{
        static const LimitKind unkept[] = { LIMIT_DISK, LIMIT_INODES };

        for (size_t i = 0; i < ELEMENTSOF(unkept); i++)
                if (plan->limits.value[unkept[i]] != LIMIT_UNLIMITED &&
                                reason_add(&plan->refusals, "not_supported",
                                                "limits.%s cannot be kept in the posture bounded, where a job "
                                                "writes to the caller's own files: set it to null",
                                                limit_table[unkept[i]].key) < 0)
                        return -ENOMEM;
        return 0;
}

static int plan_layer(Plan *plan)
{
        static const LimitKind bounded[] = { LIMIT_DISK, LIMIT_INODES };
        bool unlimited = false;

        if (plan->posture == POSTURE_BOUNDED)
                return refuse_layer_limits(plan);
        for (size_t i = 0; i < ELEMENTSOF(bounded); i++) {
                const char *key = limit_table[bounded[i]].key;

                if (plan->limits.value[bounded[i]] != LIMIT_UNLIMITED)
                        continue;
                unlimited = true;
                if (reason_add(&plan->refusals, "not_supported",
                                    "limits.%s: null (no limit) is not supported: what a "
                                    "job writes goes to a layer of a fixed size; give a number",
                                    key) < 0)
                        return -ENOMEM;
        }
        plan->layer = unlimited ? LAYER_IMAGE : choose_layer(&plan->limits);
        return 0;
}

static int plan_timeout(Plan *plan)
{
        const Policy *policy = plan->policy;
        uint64_t asked = plan->job->timeout_usec;

        plan->timeout_usec = asked != UNKNOWN                          ? asked
                             : policy->default_timeout_usec != UNKNOWN ? policy->default_timeout_usec
                                                                       : TIMEOUT_DEFAULT_USEC;
        plan->timeout_usec = MIN(plan->timeout_usec, JOB_TIMEOUT_MAX);
        if (plan->timeout_usec <= policy->max_timeout_usec) /* UNKNOWN is above all */
                return 0;
        plan->timeout_usec = policy->max_timeout_usec;
        if (asked == UNKNOWN)
                return 0;
        return reason_add(&plan->refusals, "over_ceiling", "job.timeout_sec: %g s is over the policy's %g s",
                        (double) asked / (double) USEC_PER_SEC,
                        (double) policy->max_timeout_usec / (double) USEC_PER_SEC);
}

int plan_limits(Plan *plan)
{
        for (int kind = 0; kind < _LIMIT_MAX; kind++) {
                int r = plan_limit(plan, (LimitKind) kind);

                if (r < 0)
                        return r;
        }
        if (plan_layer(plan) < 0)
                return -ENOMEM;
        return plan_timeout(plan);
}
