/* SPDX-License-Identifier: Apache-2.0 */
/* Under which conditions the command ran and what it used. Most of it is tables: key, where the value lies.
 */
#include "core/receipt_parts.h"

#include "core/hits.h"

/* A member of a struct by its place, so that a counter is one row. */
typedef struct Field {
        const char *key;
        size_t offset;
} Field;

static int add_numbers(cJSON *object, const void *base, const Field *fields, size_t n)
{
        for (size_t i = 0; object && i < n; i++) {
                uint64_t value;

                memcpy(&value, (const char *) base + fields[i].offset, sizeof(value));
                if (json_add_u64(object, fields[i].key, value) < 0)
                        return -ENOMEM;
        }
        return object ? 0 : -ENOMEM;
}

int receipt_add_milliseconds(cJSON *object, const char *key, uint64_t usec)
{
        if (usec == UNKNOWN)
                return json_add_null(object, key);
        return json_add(object, key, cJSON_CreateNumber((double) usec / (double) USEC_PER_MSEC));
}

/* As a job file would have it: bytes, counts, seconds, "150%"; null: none. */
static int add_limit_value(cJSON *object, const char *key, LimitKind kind, uint64_t value)
{
        char text[FORMAT_MAX];

        if (value == LIMIT_UNLIMITED || value == LIMIT_UNSET)
                return json_add_null(object, key);
        switch (limit_table[kind].unit) {
        case LIMIT_UNIT_CPU_RATE:
                return json_add_text(object, key, limit_format(kind, value, text));
        case LIMIT_UNIT_SECONDS:
                return json_add(object, key, cJSON_CreateNumber((double) value / (double) USEC_PER_SEC));
        default:
                return json_add_u64(object, key, value);
        }
}

int receipt_add_limits(cJSON *receipt, const ReceiptSource *s)
{
        cJSON *limits = json_add_object(receipt, "limits"), *set, *hits;
        const uint64_t *value = s->plan->limits.value;

        set = limits ? json_add_object(limits, "set") : NULL;
        for (LimitKind kind = 0; kind < _LIMIT_MAX; kind++)
                if (!set || add_limit_value(set, limit_table[kind].key, kind, value[kind]) < 0)
                        return -ENOMEM;
        hits = json_add_array(limits, "hits");
        for (size_t i = 0; hits && i < s->judgement->n_hits; i++) {
                const LimitHit *hit = &s->judgement->hits[i];
                cJSON *item = json_add_object(hits, NULL);

                if (!item || json_add_text(item, "limit", limit_table[hit->limit].key) < 0 ||
                                json_add_text(item, "counter", hit->counter) < 0 ||
                                json_add_u64(item, "count", hit->count) < 0 ||
                                add_limit_value(item, "limit_value", hit->limit, value[hit->limit]) < 0 ||
                                json_add_bool(item, "killed", hit->killed) < 0)
                        return -ENOMEM;
        }
        return hits ? 0 : -ENOMEM;
}

static int add_series(cJSON *object, const char *key, const uint64_t *values, size_t n)
{
        cJSON *list = json_add_array(object, key);

        for (size_t i = 0; list && i < n; i++)
                if (json_add_u64(list, NULL, values[i]) < 0)
                        return -ENOMEM;
        return list ? 0 : -ENOMEM;
}

static int add_samples(cJSON *usage, const Series *samples)
{
        cJSON *object;

        if (samples->n == 0)
                return json_add_null(usage, "samples");
        object = json_add_object(usage, "samples");
        if (!object || receipt_add_milliseconds(object, "interval_ms", samples->interval_usec) < 0 ||
                        add_series(object, "memory_bytes", samples->memory_bytes, samples->n) < 0)
                return -ENOMEM;
        return add_series(object, "cpu_usec", samples->cpu_usec, samples->n);
}

int receipt_add_usage(cJSON *receipt, const ReceiptSource *s)
{
        static const Field fields[] = {
                { "cpu_usec", offsetof(Usage, cpu_usec) },
                { "user_usec", offsetof(Usage, user_usec) },
                { "system_usec", offsetof(Usage, system_usec) },
                { "memory_peak_bytes", offsetof(Usage, memory_peak_bytes) },
                { "swap_peak_bytes", offsetof(Usage, swap_peak_bytes) },
                { "pids_peak", offsetof(Usage, pids_peak) },
                { "io_read_bytes", offsetof(Usage, io_read_bytes) },
                { "io_write_bytes", offsetof(Usage, io_write_bytes) },
                { "disk_bytes", offsetof(Usage, disk_bytes) },
                { "disk_inodes", offsetof(Usage, disk_inodes) },
                { "throttled_usec", offsetof(Usage, throttled_usec) },
        };
        static const Field pressure[] = {
                { "cpu_usec", offsetof(Usage, cpu_pressure_usec) },
                { "memory_usec", offsetof(Usage, memory_pressure_usec) },
                { "io_usec", offsetof(Usage, io_pressure_usec) },
        };
        const Usage *usage = &s->outcome->usage;
        cJSON *object = json_add_object(receipt, "usage");

        if (add_numbers(object, usage, fields, ELEMENTSOF(fields)) < 0 ||
                        add_numbers(json_add_object(object, "pressure"), usage, pressure,
                                        ELEMENTSOF(pressure)) < 0)
                return -ENOMEM;
        return add_samples(object, &s->outcome->samples);
}

int receipt_add_facts(cJSON *receipt, const ReceiptSource *s)
{
        cJSON *isolation = json_add_object(receipt, "isolation");

        for (size_t i = 0; isolation && i < s->outcome->n_facts; i++) {
                const IsolationFact *fact = &s->outcome->facts[i];
                cJSON *item = json_add_object(isolation, fact->name);

                if (!item || json_add_text(item, "expected", fact->expected) < 0 ||
                                json_add_text(item, "observed", fact->observed) < 0 ||
                                json_add_bool(item, "holds", fact->holds) < 0)
                        return -ENOMEM;
        }
        return isolation ? 0 : -ENOMEM;
}

static int add_env(cJSON *receipt, const Plan *plan)
{
        cJSON *env = json_add_array(receipt, "env");

        for (size_t i = 0; env && plan->env && plan->env[i]; i++) {
                cJSON *item = json_add_object(env, NULL);
                size_t name = strcspn(plan->env[i], "=");

                if (!item || json_add_bytes(item, "name", plan->env[i], name) < 0 ||
                                json_add_text(item, "source", plan->env_source[i]) < 0)
                        return -ENOMEM;
        }
        return env ? 0 : -ENOMEM;
}

int receipt_add_policy(cJSON *receipt, const ReceiptSource *s)
{
        const Plan *plan = s->plan;
        cJSON *policy = json_add_object(receipt, "policy");

        if (!policy || json_add_text(policy, "name", plan->policy->name) < 0 ||
                        json_add_text(policy, "sha256", plan->policy->sha256) < 0 ||
                        json_add_text(receipt, "posture", posture_to_string(plan->posture)) < 0 ||
                        json_add_text(receipt, "network", network_to_string(plan->network)) < 0)
                return -ENOMEM;
        return add_env(receipt, plan);
}

int receipt_add_host(cJSON *receipt, const ReceiptSource *s)
{
        const HostFacts *facts = &s->outcome->host;
        cJSON *host = json_add_object(receipt, "host"), *unit;

        if (!host || json_add_text(host, "kernel", facts->kernel) < 0 ||
                        json_add_text(host, "systemd", facts->systemd) < 0 ||
                        json_add_text(host, "boot_id", facts->boot_id) < 0 ||
                        json_add_text(host, "hostname", facts->hostname) < 0 ||
                        json_add_text(host, "machine", facts->machine) < 0)
                return -ENOMEM;
        unit = json_add_object(receipt, "unit");
        if (!unit ||
                        json_add_text(unit, s->plan->posture == POSTURE_BOUNDED ? "scope" : "service",
                                        s->plan->service) < 0 ||
                        json_add_text(unit, "slice", s->plan->slice) < 0)
                return -ENOMEM;
        return json_add_text(unit, "invocation_id", s->outcome->invocation_id);
}

int receipt_add_timing(cJSON *receipt, const ReceiptSource *s)
{
        cJSON *timing = json_add_object(receipt, "timing");

        for (size_t i = 0; timing && i < _PHASE_MAX; i++)
                if (receipt_add_milliseconds(timing, phase_names[i], s->outcome->phase_usec[i]) < 0)
                        return -ENOMEM;
        return timing ? 0 : -ENOMEM;
}
