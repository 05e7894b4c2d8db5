/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* systemd unit properties by their documented names (systemd.exec(5), systemd.resource-control(5),
 * systemd.kill(5), systemd.service(5)): which type each has on D-Bus (org.freedesktop.systemd1(5)) and since
 * which version. Values are checked here; sys/unit only appends them to a message. */

#include <cjson/cJSON.h>

#include "base/error.h"

typedef enum PropertyType {
        PROPERTY_BOOL,       /* b */
        PROPERTY_STRING,     /* s */
        PROPERTY_STRV,       /* as */
        PROPERTY_PATHS,      /* as: "/path" of the job's root, a leading "-" ignores a missing one */
        PROPERTY_U64,        /* t: bytes, counts, microseconds; "infinity" is UINT64_MAX */
        PROPERTY_SIZE,       /* t: bytes, may be given as "512M" */
        PROPERTY_USEC,       /* t: seconds in JSON (number), microseconds on the bus */
        PROPERTY_RLIMIT,     /* t, also sets NAMESoft */
        PROPERTY_I32,        /* i */
        PROPERTY_MODE,       /* u: octal string such as "0022" */
        PROPERTY_ERRNO,      /* i: errno name such as "EPERM" */
        PROPERTY_FILTER,     /* (bas): list; a first element that starts with "~" makes it a deny list */
        PROPERTY_CAPS,       /* t: mask; list of capability names, [] is none */
        PROPERTY_NAMESPACES, /* t: mask of those permitted; true (none permitted), false (all), or a list */
        PROPERTY_BINDS,   /* a(ssbt): list of "source[:destination]", leading "-" ignores a missing source */
        PROPERTY_TMPFS,   /* a(ss): list of "path[:options]" */
        PROPERTY_DEVICES, /* a(ss): list of "path rwm" */
        PROPERTY_FIELDS,  /* aay: list of "NAME=value", journal fields */
        _PROPERTY_TYPE_MAX,
} PropertyType;

typedef struct PropertyInfo {
        const char *name;     /* documented: "CPUQuota" */
        const char *bus_name; /* where it differs: "CPUQuotaPerSecUSec"; else NULL */
        PropertyType type;
        unsigned since;           /* first systemd version, 0: older than any we support (250) */
        bool scope;               /* a scope can have it, too */
        const char *choices;      /* STRING: the words it may be, separated by spaces; NULL: any */
        int64_t minimum, maximum; /* I32, U64: the range, when not both 0 */
} PropertyInfo;

/* One property to ask for. Which members hold depends on info->type. */
typedef struct PropertyValue {
        const PropertyInfo *info;
        bool boolean; /* BOOL; FILTER: true for an allow list */
        uint64_t number;
        char *string;
        char **list;
} PropertyValue;

typedef struct PropertyList {
        PropertyValue *items;
        size_t n;
} PropertyList;

const PropertyInfo *property_find(const char *name);

/* Whether any list in it names something within the directory. */
bool property_list_names(const PropertyList *list, const char *directory);

/* The i-th row of the table, NULL past its end. */
const PropertyInfo *property_at(size_t i);

/* Each appends one; name must be in the table (assert) and of that type. 0 or -ENOMEM. */
int property_add_bool(PropertyList *list, const char *name, bool value);
int property_add_number(PropertyList *list, const char *name, uint64_t value);
int property_add_string(PropertyList *list, const char *name, const char *value);
int property_add_list(PropertyList *list, const char *name, char *const *value, bool allow);

/* Appends what a policy's "properties" object gives for one name. A value may be a list of lists for a
 * FILTER that is assigned several times (allow list, then deny lists taken from it).
 * -EINVAL with a sentence: unknown name or wrong value. */
int property_add_json(PropertyList *list, const char *name, const cJSON *value, Error *e);

/* Appends value and takes its members, also on failure. */
int property_append(PropertyList *list, PropertyValue *value);

/* Appends copies of all of from. */
int property_add_copies(PropertyList *list, const PropertyList *from);

void property_list_clear(PropertyList *list);
const PropertyValue *property_list_find(const PropertyList *list, const char *name);

/* The value as systemd's own unit file syntax would have it, for `plan`; NULL when out of memory. */
char *property_format(const PropertyValue *value);
