/* SPDX-License-Identifier: Apache-2.0 */
/* What is asked of systemd: the slice's properties and the service's. What only sys/ can know (descriptors,
 * the network namespace) and what no PropertyType carries (SuccessExitStatus=) is added there. */

#include "core/audit.h"
#include "core/plan_parts.h"

#include "base/path.h"

#define START_TIMEOUT_USEC (30 * USEC_PER_SEC)
#define STOP_TIMEOUT_USEC  (10 * USEC_PER_SEC)
/* Behind the job's timeout, so that the job dies even if qscope does: room for start, settle and diff. */
#define RUNTIME_MARGIN_USEC (15 * USEC_PER_SEC)
#define CORE_LIMIT          1 /* 0 would still feed a piped core_pattern, 1 suppresses that too: core(5) */
#define SIGKILL_NUMBER      9

/* What ordinary programs look up below /etc besides the files that every root gets: no secrets, nothing that
 * names users or the network. Missing ones are ignored. */
static const char *const etc_paths[] = {
        "/etc/alternatives",
        "/etc/ca-certificates",
        "/etc/crypto-policies",
        "/etc/fonts",
        "/etc/java-11-openjdk",
        "/etc/java-17-openjdk",
        "/etc/java-21-openjdk",
        "/etc/ld.so.conf.d",
        "/etc/perl",
        "/etc/pki/ca-trust",
        "/etc/pki/tls/certs",
        "/etc/python3",
        "/etc/ssl/certs",
        "/etc/terminfo",
};

/* Limits that the cgroup enforces: on the slice, and mirrored on the service, because programs size
 * themselves by their own cgroup's files. */
static const LimitKind cgroup_limits[] = { LIMIT_MEMORY, LIMIT_SWAP, LIMIT_CPU, LIMIT_TASKS };
static const LimitKind process_limits[] = { LIMIT_CPU_TIME, LIMIT_FILE_SIZE, LIMIT_OPEN_FILES };

static int add_limits(PropertyList *list, const Limits *limits, const LimitKind *kinds, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                const LimitInfo *info = &limit_table[kinds[i]];
                uint64_t value = limits->value[kinds[i]];

                if (value == LIMIT_UNLIMITED)
                        continue;
                if (property_add_number(list, info->property, limit_of_process(kinds[i], value)) < 0)
                        return -ENOMEM;
        }
        return 0;
}

static int add_accounting(PropertyList *list)
{
        static const char *const names[] = { "CPUAccounting", "MemoryAccounting", "TasksAccounting",
                "IOAccounting" };

        for (size_t i = 0; i < ELEMENTSOF(names); i++)
                if (property_add_bool(list, names[i], true) < 0)
                        return -ENOMEM;
        return 0;
}

static int add_description(PropertyList *list, const Plan *plan)
{
        _cleanup_free_ char *text = text_printf("qscope job %s", plan->job_id);

        return text ? property_add_string(list, "Description", text) : -ENOMEM;
}

/* So that systemd's own lines about the unit are found like the records of the audit trail. */
static int add_log_fields(PropertyList *list, const Plan *plan)
{
        _cleanup_strv_ char **fields = NULL;

        if (strv_extendf(&fields, AUDIT_FIELD_JOB_ID "=%s", plan->job_id) < 0 ||
                        strv_extendf(&fields, AUDIT_FIELD_RUN_ID "=%s", plan->run_id) < 0)
                return -ENOMEM;
        return property_add_list(list, "LogExtraFields", fields, true);
}

/* Life and death of the unit. */
static int add_service(PropertyList *list, const Plan *plan, const PlanContext *context)
{
        static const struct {
                const char *name, *value;
        } words[] = {
                { "Type", "exec" },
                { "ExitType", "cgroup" },
                { "CollectMode", "inactive-or-failed" },
                { "KillMode", "control-group" },
                { "OOMPolicy", "continue" },
                { "StandardOutput", "null" },
                { "StandardError", "null" },
        };
        const struct {
                const char *name;
                uint64_t value;
        } numbers[] = {
                { "KillSignal", SIGKILL_NUMBER },
                { "TimeoutStartSec", START_TIMEOUT_USEC },
                { "TimeoutStopSec", STOP_TIMEOUT_USEC },
                { "RuntimeMaxSec", plan->timeout_usec + RUNTIME_MARGIN_USEC + context->wait_usec },
                { "LimitCORE", CORE_LIMIT },
        };

        for (size_t i = 0; i < ELEMENTSOF(words); i++)
                if (property_add_string(list, words[i].name, words[i].value) < 0)
                        return -ENOMEM;
        for (size_t i = 0; i < ELEMENTSOF(numbers); i++)
                if (property_add_number(list, numbers[i].name, numbers[i].value) < 0)
                        return -ENOMEM;
        if (property_add_bool(list, "RemainAfterExit", true) < 0 ||
                        property_add_bool(list, "DynamicUser", true) < 0 ||
                        property_add_bool(list, "IgnoreSIGPIPE", false) < 0)
                return -ENOMEM;
        return property_add_string(list, "Slice", plan->slice);
}

/* The path of one entry of InaccessiblePaths= or TemporaryFileSystem=: "-+/path:options". */
static bool covers(const char *entry, const char *path)
{
        _cleanup_free_ char *top = strdup(entry + strspn(entry, "-+"));

        if (!top)
                return true; /* then it is not shown */
        *strchrnul(top, ':') = '\0';
        return path_is_within(path, top);
}

/* What the policy takes away is not shown: a bind would lie over it. */
static bool is_covered(const PropertyList *properties, const char *path)
{
        static const char *const names[] = { "InaccessiblePaths", "TemporaryFileSystem" };

        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                const PropertyValue *value = property_list_find(properties, names[i]);

                for (size_t j = 0; value && value->list && value->list[j]; j++)
                        if (covers(value->list[j], path))
                                return true;
        }
        return false;
}

/* Of the host's own system; another root is attached whole while the stage is held, and so are the policy's
 * read_only_paths and hidden_paths: some lie in what is attached then. The directories of /etc are attached,
 * too: systemd reads all mounts anew for every bind that is to be read-only. But where a property of the
 * policy is about something in /etc, systemd must find it. */
static int add_binds(PropertyList *list, Plan *plan, const PlanContext *context)
{
        _cleanup_strv_ char **binds = NULL;
        bool host = !plan->policy->root, bind = property_list_names(&plan->policy->properties, "/etc");

        if (host && strv_extend(&binds, "/usr") < 0)
                return -ENOMEM;
        for (size_t i = 0; host && i < ELEMENTSOF(etc_paths); i++)
                if (!is_covered(&plan->policy->properties, etc_paths[i]) &&
                                (bind ? strv_extendf(&binds, "-%s", etc_paths[i])
                                      : strv_extend(&plan->shown, etc_paths[i])) < 0)
                        return -ENOMEM;
        if (strv_extendf(&binds, "%s:%s", context->stage_path, STAGE_TARGET) < 0)
                return -ENOMEM;
        return property_add_list(list, "BindReadOnlyPaths", binds, true);
}

static int add_files(PropertyList *list, Plan *plan, const PlanContext *context)
{
        if (property_add_string(list, "RootDirectory", plan->root_dir) < 0 ||
                        property_add_bool(list, "MountAPIVFS", true) < 0)
                return -ENOMEM;
        return add_binds(list, plan, context);
}

/* A scope is a control group around a process that is there already: systemd cannot put a sandbox around it.
 */
static int add_scope(PropertyList *list, const Plan *plan, const PlanContext *context)
{
        if (property_add_string(list, "CollectMode", "inactive-or-failed") < 0 ||
                        property_add_string(list, "KillMode", "control-group") < 0 ||
                        property_add_number(list, "KillSignal", SIGKILL_NUMBER) < 0 ||
                        property_add_number(list, "TimeoutStopSec", STOP_TIMEOUT_USEC) < 0 ||
                        property_add_number(list, "RuntimeMaxSec",
                                        plan->timeout_usec + RUNTIME_MARGIN_USEC + context->wait_usec) < 0)
                return -ENOMEM;
        return property_add_string(list, "Slice", plan->slice);
}

static int plan_scope(Plan *plan, const PlanContext *context)
{
        PropertyList *scope = &plan->service_properties;
        const PropertyList *sandbox = &plan->policy->properties;

        if (add_description(scope, plan) < 0 || add_scope(scope, plan, context) < 0 ||
                        add_accounting(scope) < 0 ||
                        add_limits(scope, &plan->limits, cgroup_limits, ELEMENTSOF(cgroup_limits)) < 0)
                return -ENOMEM;
        for (size_t i = 0; i < sandbox->n; i++)
                if (!sandbox->items[i].info->scope &&
                                reason_add(&plan->refusals, "not_supported",
                                                "the policy %s asks for %s, which no process in the posture "
                                                "bounded can be given: use a policy made for it, such as "
                                                "\"trusted\"",
                                                plan->policy->name, sandbox->items[i].info->name) < 0)
                        return -ENOMEM;
        return plan->refusals.n > 0 ? 0 : property_add_copies(scope, sandbox);
}

/* A program in a memfd lies on no mount, so whoever refuses programs is not asked about it. */
static int add_no_memfd(PropertyList *list, const Policy *policy)
{
        char *calls[] = { (char *) "memfd_create", NULL };

        return exec_rules_are_empty(&policy->exec)
                               ? 0
                               : property_add_list(list, "SystemCallFilter", calls, false);
}

int plan_properties(Plan *plan, const PlanContext *context)
{
        PropertyList *slice = &plan->slice_properties, *service = &plan->service_properties;

        if (add_description(slice, plan) < 0 || add_accounting(slice) < 0 ||
                        add_limits(slice, &plan->limits, cgroup_limits, ELEMENTSOF(cgroup_limits)) < 0)
                return -ENOMEM;
        if (plan->posture == POSTURE_BOUNDED)
                return plan_scope(plan, context);
        if (add_description(service, plan) < 0 || add_log_fields(service, plan) < 0 ||
                        add_service(service, plan, context) < 0 || add_accounting(service) < 0 ||
                        add_limits(service, &plan->limits, cgroup_limits, ELEMENTSOF(cgroup_limits)) < 0 ||
                        add_limits(service, &plan->limits, process_limits, ELEMENTSOF(process_limits)) < 0 ||
                        add_files(service, plan, context) < 0)
                return -ENOMEM;
        if (plan->network == NETWORK_NONE && property_add_bool(service, "PrivateNetwork", true) < 0)
                return -ENOMEM;
        if (property_add_copies(service, &plan->policy->properties) < 0)
                return -ENOMEM;
        return add_no_memfd(service, plan->policy);
}
