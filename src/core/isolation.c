/* SPDX-License-Identifier: Apache-2.0 */
#include "core/isolation.h"

/* A fact that must hold because the plan asked systemd for the property behind it; NULL: always. */
static const struct {
        const char *fact, *property;
} fact_table[] = {
        { "namespace.mnt", NULL },
        { "namespace.user", "PrivateUsers" },
        { "namespace.ipc", "PrivateIPC" },
        { "namespace.uts", "ProtectHostname" },
        { "namespace.net", "PrivateNetwork" },
        { "root", NULL },
        { "uid", NULL },
        { "no_new_privs", "NoNewPrivileges" },
        { "gid", NULL },
        { "groups", NULL },
        { "seccomp", "SystemCallFilter" },
        { "seccomp.filters", "SystemCallFilter" },
        { "seccomp.list", "SystemCallFilter" },
        { "capabilities.effective", "CapabilityBoundingSet" },
        { "capabilities.permitted", "CapabilityBoundingSet" },
        { "capabilities.inheritable", "CapabilityBoundingSet" },
        { "capabilities.bounding", "CapabilityBoundingSet" },
        { "capabilities.ambient", NULL },
        { "devices", "PrivateDevices" },
        { "mounts.writable", NULL },
        { "limit.memory", NULL },
        { "limit.swap", NULL },
        { "limit.tasks", NULL },
        { "limit.cpu", NULL },
        { "limit.disk", NULL },
        { "limit.inodes", NULL },
        { "mount:/tmp", NULL },
        { "mount:/var/tmp", NULL },
        { "mount:/dev/shm", NULL },
        { "mount:/home", NULL },
        { "mount:/root", NULL },
        { "mount:/run", NULL },
};

const char *isolation_name(size_t i)
{
        return i < ELEMENTSOF(fact_table) ? fact_table[i].fact : NULL;
}

bool isolation_is_known(const char *fact)
{
        for (size_t i = 0; i < ELEMENTSOF(fact_table); i++)
                if (streq(fact_table[i].fact, fact))
                        return true;
        return false;
}

static bool asked_for(const Plan *plan, const char *fact)
{
        for (size_t i = 0; i < ELEMENTSOF(fact_table); i++) {
                const PropertyValue *value;

                if (!streq(fact_table[i].fact, fact))
                        continue;
                if (!fact_table[i].property)
                        return true;
                value = property_list_find(&plan->service_properties, fact_table[i].property);
                return value && (value->info->type != PROPERTY_BOOL || value->boolean) &&
                       (value->info->type != PROPERTY_CAPS || value->number == 0);
        }
        return true; /* places in the job's root */
}

static const IsolationFact *find_fact(const Outcome *o, const char *name)
{
        for (size_t i = 0; i < o->n_facts; i++)
                if (streq(o->facts[i].name, name))
                        return &o->facts[i];
        return NULL;
}

int isolation_check(const Plan *plan, const Outcome *o, Error *e)
{
        char **require = plan->policy->require;

        for (size_t i = 0; i < o->n_facts; i++) {
                const IsolationFact *fact = &o->facts[i];

                if (!fact->holds && asked_for(plan, fact->name))
                        return error_set(e, -EPERM, "%s is \"%s\" where \"%s\" was asked for", fact->name,
                                        fact->observed, fact->expected);
        }
        for (size_t i = 0; require && require[i]; i++) {
                const IsolationFact *fact = find_fact(o, require[i]);

                if (!fact)
                        return error_set(e, -EPERM,
                                        "%s is required by the policy %s and was not observed: the job has "
                                        "nothing of the kind",
                                        require[i], plan->policy->name);
                if (!fact->holds)
                        return error_set(e, -EPERM, "%s is \"%s\" where the policy %s requires \"%s\"",
                                        fact->name, fact->observed, plan->policy->name, fact->expected);
        }
        return 0;
}
