/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/manager_property.h"

#include <signal.h>

static int append_bool(sd_bus_message *m, const char *name, const PropertyValue *v)
{
        return sd_bus_message_append(m, "(sv)", name, "b", (int) v->boolean);
}

static int append_string(sd_bus_message *m, const char *name, const PropertyValue *v)
{
        return sd_bus_message_append(m, "(sv)", name, "s", v->string);
}

static int append_u64(sd_bus_message *m, const char *name, const PropertyValue *v)
{
        return sd_bus_message_append(m, "(sv)", name, "t", v->number);
}

static int append_i32(sd_bus_message *m, const char *name, const PropertyValue *v)
{
        return sd_bus_message_append(m, "(sv)", name, "i", (int32_t) v->number);
}

static int append_u32(sd_bus_message *m, const char *name, const PropertyValue *v)
{
        return sd_bus_message_append(m, "(sv)", name, "u", (uint32_t) v->number);
}

static int append_rlimit(sd_bus_message *m, const char *name, const PropertyValue *v)
{
        char soft[64];
        /* At the hard limit of RLIMIT_CPU the kernel sends SIGKILL; the soft one comes first, with SIGXCPU,
         * which tells the cause (setrlimit(2)). */
        uint64_t hard = streq(name, "LimitCPU") && v->number < UINT64_MAX - 1 ? v->number + 1 : v->number;
        int r = sd_bus_message_append(m, "(sv)", name, "t", hard);

        if (r < 0)
                return r;
        (void) snprintf(soft, sizeof(soft), "%sSoft", name);
        return sd_bus_message_append(m, "(sv)", soft, "t", v->number);
}

/* (s v(TYPE)): opens down to the value; close_value() closes again. */
static int open_value(sd_bus_message *m, const char *name, const char *signature)
{
        int r = sd_bus_message_open_container(m, 'r', "sv");

        if (r >= 0)
                r = sd_bus_message_append(m, "s", name);
        return r < 0 ? r : sd_bus_message_open_container(m, 'v', signature);
}

static int close_value(sd_bus_message *m)
{
        int r = sd_bus_message_close_container(m);

        return r < 0 ? r : sd_bus_message_close_container(m);
}

static int append_strv(sd_bus_message *m, const char *name, const PropertyValue *v)
{
        int r = open_value(m, name, "as");

        if (r >= 0)
                r = sd_bus_message_append_strv(m, v->list);
        return r < 0 ? r : close_value(m);
}

static int append_filter(sd_bus_message *m, const char *name, const PropertyValue *v)
{
        int r = open_value(m, name, "(bas)");

        if (r >= 0)
                r = sd_bus_message_open_container(m, 'r', "bas");
        if (r >= 0)
                r = sd_bus_message_append(m, "b", (int) v->boolean);
        if (r >= 0)
                r = sd_bus_message_append_strv(m, v->list);
        if (r >= 0)
                r = sd_bus_message_close_container(m);
        return r < 0 ? r : close_value(m);
}

/* Splits "a<separator>b" once; *ret_rest is "" when there is no separator. */
static int split_once(const char *text, char separator, char **ret_first, const char **ret_rest)
{
        const char *at = strchr(text, separator);

        *ret_first = at ? strndup(text, (size_t) (at - text)) : strdup(text);
        *ret_rest = at ? at + 1 : "";
        return *ret_first ? 0 : -ENOMEM;
}

/* a(ssbt): source, destination, ignore a missing source, MS_REC */
static int append_binds(sd_bus_message *m, const char *name, const PropertyValue *v)
{
        int r = open_value(m, name, "a(ssbt)");

        if (r >= 0)
                r = sd_bus_message_open_container(m, 'a', "(ssbt)");
        for (size_t i = 0; r >= 0 && v->list && v->list[i]; i++) {
                bool optional = v->list[i][0] == '-';
                _cleanup_free_ char *source = NULL;
                const char *destination;

                r = split_once(v->list[i] + optional, ':', &source, &destination);
                if (r >= 0)
                        r = sd_bus_message_append(m, "(ssbt)", source, *destination ? destination : source,
                                        (int) optional, UINT64_C(0x4000));
        }
        if (r >= 0)
                r = sd_bus_message_close_container(m);
        return r < 0 ? r : close_value(m);
}

static int append_pairs(sd_bus_message *m, const char *name, const PropertyValue *v, char separator)
{
        int r = open_value(m, name, "a(ss)");

        if (r >= 0)
                r = sd_bus_message_open_container(m, 'a', "(ss)");
        for (size_t i = 0; r >= 0 && v->list && v->list[i]; i++) {
                _cleanup_free_ char *first = NULL;
                const char *second;

                r = split_once(v->list[i], separator, &first, &second);
                if (r >= 0)
                        r = sd_bus_message_append(m, "(ss)", first, second);
        }
        if (r >= 0)
                r = sd_bus_message_close_container(m);
        return r < 0 ? r : close_value(m);
}

static int append_tmpfs(sd_bus_message *m, const char *name, const PropertyValue *v)
{
        return append_pairs(m, name, v, ':');
}

static int append_devices(sd_bus_message *m, const char *name, const PropertyValue *v)
{
        return append_pairs(m, name, v, ' ');
}

static int append_fields(sd_bus_message *m, const char *name, const PropertyValue *v)
{
        int r = open_value(m, name, "aay");

        if (r >= 0)
                r = sd_bus_message_open_container(m, 'a', "ay");
        for (size_t i = 0; r >= 0 && v->list[i]; i++)
                r = sd_bus_message_append_array(m, 'y', v->list[i], strlen(v->list[i]));
        if (r >= 0)
                r = sd_bus_message_close_container(m);
        return r < 0 ? r : close_value(m);
}

typedef int (*Append)(sd_bus_message *m, const char *name, const PropertyValue *v);

static const Append append_table[_PROPERTY_TYPE_MAX] = {
        [PROPERTY_BOOL] = append_bool,
        [PROPERTY_STRING] = append_string,
        [PROPERTY_STRV] = append_strv,
        [PROPERTY_PATHS] = append_strv,
        [PROPERTY_U64] = append_u64,
        [PROPERTY_SIZE] = append_u64,
        [PROPERTY_USEC] = append_u64,
        [PROPERTY_RLIMIT] = append_rlimit,
        [PROPERTY_I32] = append_i32,
        [PROPERTY_MODE] = append_u32,
        [PROPERTY_ERRNO] = append_i32,
        [PROPERTY_FILTER] = append_filter,
        [PROPERTY_CAPS] = append_u64,
        [PROPERTY_NAMESPACES] = append_u64,
        [PROPERTY_BINDS] = append_binds,
        [PROPERTY_TMPFS] = append_tmpfs,
        [PROPERTY_DEVICES] = append_devices,
        [PROPERTY_FIELDS] = append_fields,
};

int manager_append_property(sd_bus_message *m, const PropertyValue *value)
{
        const PropertyInfo *info = value->info;

        return append_table[info->type](m, info->bus_name ? info->bus_name : info->name, value);
}

static int append_success_status(sd_bus_message *m)
{
        int32_t statuses[256], signals[64];
        size_t n_signals = 0;
        int r = open_value(m, "SuccessExitStatus", "(aiai)");

        for (size_t i = 0; i < ELEMENTSOF(statuses); i++)
                statuses[i] = (int32_t) i;
        for (int32_t i = 1; i < NSIG && n_signals < ELEMENTSOF(signals); i++)
                if (i < 32 || i >= SIGRTMIN)
                        signals[n_signals++] = i;
        if (r >= 0)
                r = sd_bus_message_open_container(m, 'r', "aiai");
        if (r >= 0)
                r = sd_bus_message_append_array(m, 'i', statuses, sizeof(statuses));
        if (r >= 0)
                r = sd_bus_message_append_array(m, 'i', signals, n_signals * sizeof(*signals));
        if (r >= 0)
                r = sd_bus_message_close_container(m);
        return r < 0 ? r : close_value(m);
}

int manager_append_service(
                sd_bus_message *m, const char *program, const char *network_namespace, int stdin_fd)
{
        int r = sd_bus_message_append(m, "(sv)", "ExecStart", "a(sasb)", 1, program, 1, program, 0);

        if (r >= 0)
                r = sd_bus_message_append(m, "(sv)", "StandardInputFileDescriptor", "h", stdin_fd);
        if (r >= 0 && network_namespace)
                r = sd_bus_message_append(m, "(sv)", "NetworkNamespacePath", "s", network_namespace);
        if (r >= 0)
                r = sd_bus_message_append(m, "(sv)", "AddRef", "b", 1);
        return r < 0 ? r : append_success_status(m);
}
