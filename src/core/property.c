/* SPDX-License-Identifier: Apache-2.0 */
/* The table of systemd properties and lists of their values. Reading them from JSON is in property_json.c,
 * showing them in property_format.c. Types are those of org.freedesktop.systemd1(5) (systemd 252); no
 * property that could undo the sandbox (Delegate, BindPaths, User, Environment, PAMName, …) is in it, and
 * none that would blind an observer (IPAddressDeny drops packets before the sink sees them). */

#include "core/property.h"

#include "base/text.h"

#define YES_NO "yes no"

static const PropertyInfo property_table[] = {
        /* systemd.unit(5), systemd.service(5) */
        { "Description", NULL, PROPERTY_STRING },
        { "CollectMode", NULL, PROPERTY_STRING, .choices = "inactive inactive-or-failed" },
        { "Type", NULL, PROPERTY_STRING, .choices = "simple exec oneshot" },
        { "ExitType", NULL, PROPERTY_STRING, .choices = "main cgroup" },
        { "RemainAfterExit", NULL, PROPERTY_BOOL },
        { "TimeoutStartSec", "TimeoutStartUSec", PROPERTY_USEC },
        { "TimeoutStopSec", "TimeoutStopUSec", PROPERTY_USEC },
        { "RuntimeMaxSec", "RuntimeMaxUSec", PROPERTY_USEC },
        { "OOMPolicy", NULL, PROPERTY_STRING, .choices = "continue stop kill" },
        { "Slice", NULL, PROPERTY_STRING },

        /* systemd.kill(5) */
        { "KillMode", NULL, PROPERTY_STRING, .choices = "control-group mixed process none" },
        { "KillSignal", NULL, PROPERTY_I32, .minimum = 1, .maximum = 64 },
        { "FinalKillSignal", NULL, PROPERTY_I32, .minimum = 1, .maximum = 64 },
        { "SendSIGKILL", NULL, PROPERTY_BOOL },
        { "SendSIGHUP", NULL, PROPERTY_BOOL },

        /* systemd.resource-control(5): what a scope can be given, too */
        { "CPUAccounting", NULL, PROPERTY_BOOL, .scope = true },
        { "MemoryAccounting", NULL, PROPERTY_BOOL, .scope = true },
        { "TasksAccounting", NULL, PROPERTY_BOOL, .scope = true },
        { "IOAccounting", NULL, PROPERTY_BOOL, .scope = true },
        { "IPAccounting", NULL, PROPERTY_BOOL, .scope = true },
        { "CPUQuota", "CPUQuotaPerSecUSec", PROPERTY_USEC, .scope = true },
        { "CPUWeight", NULL, PROPERTY_U64, .minimum = 1, .maximum = 10000, .scope = true },
        { "IOWeight", NULL, PROPERTY_U64, .minimum = 1, .maximum = 10000, .scope = true },
        { "MemoryMin", NULL, PROPERTY_SIZE, .scope = true },
        { "MemoryLow", NULL, PROPERTY_SIZE, .scope = true },
        { "MemoryHigh", NULL, PROPERTY_SIZE, .scope = true },
        { "MemoryMax", NULL, PROPERTY_SIZE, .scope = true },
        { "MemorySwapMax", NULL, PROPERTY_SIZE, .scope = true },
        { "MemoryZSwapMax", NULL, PROPERTY_SIZE, .since = 253, .scope = true },
        { "TasksMax", NULL, PROPERTY_U64, .scope = true },
        { "DevicePolicy", NULL, PROPERTY_STRING, .choices = "auto closed strict", .scope = true },
        { "DeviceAllow", NULL, PROPERTY_DEVICES, .scope = true },
        { "ManagedOOMPreference", NULL, PROPERTY_STRING, .choices = "none avoid omit", .scope = true },

        /* systemd.exec(5): who and where */
        { "DynamicUser", NULL, PROPERTY_BOOL },
        { "RootDirectory", NULL, PROPERTY_STRING },
        { "MountAPIVFS", NULL, PROPERTY_BOOL },
        { "BindReadOnlyPaths", NULL, PROPERTY_BINDS },
        { "TemporaryFileSystem", NULL, PROPERTY_TMPFS },
        { "ReadOnlyPaths", NULL, PROPERTY_PATHS },
        { "InaccessiblePaths", NULL, PROPERTY_PATHS },
        { "NoExecPaths", NULL, PROPERTY_PATHS },
        { "ExecPaths", NULL, PROPERTY_PATHS },
        { "UMask", NULL, PROPERTY_MODE },
        { "Personality", NULL, PROPERTY_STRING },
        { "Nice", NULL, PROPERTY_I32, .minimum = -20, .maximum = 19 },
        { "OOMScoreAdjust", NULL, PROPERTY_I32, .minimum = -1000, .maximum = 1000 },
        { "CPUSchedulingPriority", NULL, PROPERTY_I32, .minimum = 0, .maximum = 99 },
        { "CPUSchedulingResetOnFork", NULL, PROPERTY_BOOL },
        { "IOSchedulingPriority", NULL, PROPERTY_I32, .minimum = 0, .maximum = 7 },
        { "TimerSlackNSec", NULL, PROPERTY_U64 },
        { "CoredumpFilter", NULL, PROPERTY_U64 },
        { "IgnoreSIGPIPE", NULL, PROPERTY_BOOL },
        { "StandardInput", NULL, PROPERTY_STRING, .choices = "null" },
        { "StandardOutput", NULL, PROPERTY_STRING, .choices = "null" },
        { "StandardError", NULL, PROPERTY_STRING, .choices = "null" },
        { "LogExtraFields", NULL, PROPERTY_FIELDS },

        /* systemd.exec(5): limits of a process */
        { "LimitCPU", NULL, PROPERTY_RLIMIT },
        { "LimitFSIZE", NULL, PROPERTY_RLIMIT },
        { "LimitDATA", NULL, PROPERTY_RLIMIT },
        { "LimitSTACK", NULL, PROPERTY_RLIMIT },
        { "LimitCORE", NULL, PROPERTY_RLIMIT },
        { "LimitNOFILE", NULL, PROPERTY_RLIMIT },
        { "LimitAS", NULL, PROPERTY_RLIMIT },
        { "LimitNPROC", NULL, PROPERTY_RLIMIT },
        { "LimitMEMLOCK", NULL, PROPERTY_RLIMIT },
        { "LimitLOCKS", NULL, PROPERTY_RLIMIT },
        { "LimitSIGPENDING", NULL, PROPERTY_RLIMIT },
        { "LimitMSGQUEUE", NULL, PROPERTY_RLIMIT },
        { "LimitNICE", NULL, PROPERTY_RLIMIT },
        { "LimitRTPRIO", NULL, PROPERTY_RLIMIT },
        { "LimitRTTIME", NULL, PROPERTY_RLIMIT },

        /* systemd.exec(5): the sandbox */
        { "NoNewPrivileges", NULL, PROPERTY_BOOL },
        { "CapabilityBoundingSet", NULL, PROPERTY_CAPS },
        { "AmbientCapabilities", NULL, PROPERTY_CAPS },
        { "SecureBits", NULL, PROPERTY_I32, .minimum = 0, .maximum = 63 },
        { "PrivateUsers", NULL, PROPERTY_BOOL },
        { "PrivateDevices", NULL, PROPERTY_BOOL },
        { "PrivateTmp", NULL, PROPERTY_BOOL },
        { "PrivateIPC", NULL, PROPERTY_BOOL },
        { "PrivateMounts", NULL, PROPERTY_BOOL },
        { "PrivateNetwork", NULL, PROPERTY_BOOL },
        { "ProtectSystem", NULL, PROPERTY_STRING, .choices = YES_NO " full strict" },
        { "ProtectHome", NULL, PROPERTY_STRING, .choices = YES_NO " read-only tmpfs" },
        { "ProtectProc", NULL, PROPERTY_STRING, .choices = "default noaccess invisible ptraceable" },
        { "ProcSubset", NULL, PROPERTY_STRING, .choices = "all pid" },
        { "ProtectClock", NULL, PROPERTY_BOOL },
        { "ProtectHostname", NULL, PROPERTY_BOOL },
        { "ProtectKernelTunables", NULL, PROPERTY_BOOL },
        { "ProtectKernelModules", NULL, PROPERTY_BOOL },
        { "ProtectKernelLogs", NULL, PROPERTY_BOOL },
        { "ProtectControlGroups", NULL, PROPERTY_BOOL },
        { "LockPersonality", NULL, PROPERTY_BOOL },
        { "MemoryDenyWriteExecute", NULL, PROPERTY_BOOL },
        { "MemoryKSM", NULL, PROPERTY_BOOL, .since = 254 },
        { "RestrictRealtime", NULL, PROPERTY_BOOL },
        { "RestrictSUIDSGID", NULL, PROPERTY_BOOL },
        { "RestrictNamespaces", NULL, PROPERTY_NAMESPACES },
        { "RestrictAddressFamilies", NULL, PROPERTY_FILTER },
        { "RestrictFileSystems", NULL, PROPERTY_FILTER },
        { "SystemCallFilter", NULL, PROPERTY_FILTER },
        { "SystemCallLog", NULL, PROPERTY_FILTER },
        { "SystemCallArchitectures", NULL, PROPERTY_STRV },
        { "SystemCallErrorNumber", NULL, PROPERTY_ERRNO },
        { "KeyringMode", NULL, PROPERTY_STRING, .choices = "inherit private shared" },
        { "RemoveIPC", NULL, PROPERTY_BOOL },
};

const PropertyInfo *property_find(const char *name)
{
        for (size_t i = 0; i < ELEMENTSOF(property_table); i++)
                if (streq(property_table[i].name, name))
                        return &property_table[i];
        return NULL;
}

const PropertyInfo *property_at(size_t i)
{
        return i < ELEMENTSOF(property_table) ? &property_table[i] : NULL;
}

static void value_clear(PropertyValue *value)
{
        free(value->string);
        strv_free(value->list);
}

int property_append(PropertyList *list, PropertyValue *value)
{
        PropertyValue *larger = reallocarray(list->items, list->n + 1, sizeof(PropertyValue));

        if (!larger) {
                value_clear(value);
                return -ENOMEM;
        }
        list->items = larger;
        list->items[list->n++] = *value;
        return 0;
}

static PropertyValue value_of(const char *name)
{
        const PropertyInfo *info = property_find(name);

        assert(info);
        return (PropertyValue){ .info = info };
}

int property_add_bool(PropertyList *list, const char *name, bool boolean)
{
        PropertyValue value = value_of(name);

        assert(value.info->type == PROPERTY_BOOL);
        value.boolean = boolean;
        return property_append(list, &value);
}

int property_add_number(PropertyList *list, const char *name, uint64_t number)
{
        PropertyValue value = value_of(name);

        value.number = number;
        return property_append(list, &value);
}

int property_add_string(PropertyList *list, const char *name, const char *string)
{
        PropertyValue value = value_of(name);

        assert(value.info->type == PROPERTY_STRING);
        value.string = strdup(string);
        if (!value.string)
                return -ENOMEM;
        return property_append(list, &value);
}

int property_add_list(PropertyList *list, const char *name, char *const *strings, bool allow)
{
        PropertyValue value = value_of(name);

        value.boolean = allow;
        value.list = strv_copy(strings);
        if (!value.list)
                return -ENOMEM;
        return property_append(list, &value);
}

int property_add_copies(PropertyList *list, const PropertyList *from)
{
        for (size_t i = 0; i < from->n; i++) {
                PropertyValue value = from->items[i];

                value.string = value.string ? strdup(value.string) : NULL;
                value.list = value.list ? strv_copy(value.list) : NULL;
                if ((from->items[i].string && !value.string) || (from->items[i].list && !value.list)) {
                        value_clear(&value);
                        return -ENOMEM;
                }
                if (property_append(list, &value) < 0)
                        return -ENOMEM;
        }
        return 0;
}

void property_list_clear(PropertyList *list)
{
        for (size_t i = 0; i < list->n; i++)
                value_clear(&list->items[i]);
        free(list->items);
        *list = (PropertyList){ 0 };
}

bool property_list_names(const PropertyList *list, const char *directory)
{
        for (size_t i = 0; i < list->n; i++)
                for (size_t j = 0; list->items[i].list && list->items[i].list[j]; j++)
                        if (strstr(list->items[i].list[j], directory))
                                return true;
        return false;
}

const PropertyValue *property_list_find(const PropertyList *list, const char *name)
{
        for (size_t i = 0; i < list->n; i++)
                if (streq(list->items[i].info->name, name))
                        return &list->items[i];
        return NULL;
}
