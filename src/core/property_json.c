/* SPDX-License-Identifier: Apache-2.0 */
/* Property values as a policy writes them, checked by type. The sentences say what is wrong with the value;
 * the caller puts file, line and key before them. */

#include "core/property.h"

#include <math.h>

#include "base/number.h"
#include "base/text.h"
#include "core/property_words.h"
#include "core/reader.h"

#define ERRNO_MAX          4095
#define PROPERTY_NAMES_MAX 256
#define FIELD_NAME_MAX     64 /* of a journal field */

typedef int (*ValueReader)(PropertyValue *value, const cJSON *json, Error *e);

static int fail_type(Error *e, const char *expected, const cJSON *json)
{
        return error_set(e, -EINVAL, "must be %s, is %s", expected, json_type_name(json));
}

static int read_property_bool(PropertyValue *value, const cJSON *json, Error *e)
{
        if (!cJSON_IsBool(json))
                return fail_type(e, "true or false", json);
        value->boolean = cJSON_IsTrue(json);
        return 0;
}

static bool is_choice(const char *choices, const char *word)
{
        size_t length = strlen(word);

        for (const char *p = choices; *p; p += strspn(p, " ")) {
                size_t n = strcspn(p, " ");

                if (n == length && strncmp(p, word, n) == 0)
                        return true;
                p += n;
        }
        return false;
}

static int read_property_string(PropertyValue *value, const cJSON *json, Error *e)
{
        const char *choices = value->info->choices, *text = json->valuestring;

        if (cJSON_IsBool(json) && choices && is_choice(choices, "yes"))
                text = cJSON_IsTrue(json) ? "yes" : "no";
        else if (!cJSON_IsString(json))
                return fail_type(e, "a string", json);
        if (choices && !is_choice(choices, text))
                return error_set(e, -EINVAL, "must be one of: %s; is \"%.80s\"", choices, text);
        value->string = strdup(text);
        return value->string ? 0 : -ENOMEM;
}

static int check_range(const PropertyInfo *info, double d, Error *e)
{
        if (d != trunc(d))
                return error_set(e, -EINVAL, "must be an integer, is %g", d);
        if ((info->minimum != 0 || info->maximum != 0) &&
                        (d < (double) info->minimum || d > (double) info->maximum))
                return error_set(e, -EINVAL, "must be from %lld to %lld, is %.0f", (long long) info->minimum,
                                (long long) info->maximum, d);
        return 0;
}

static int read_property_i32(PropertyValue *value, const cJSON *json, Error *e)
{
        int r;

        if (!cJSON_IsNumber(json))
                return fail_type(e, "an integer", json);
        r = check_range(value->info, json->valuedouble, e);
        if (r < 0)
                return r;
        value->number = (uint64_t) (int64_t) json->valuedouble;
        return 0;
}

/* U64, SIZE, RLIMIT: an integer, "infinity", and where bytes are meant "512M". */
static int read_property_u64(PropertyValue *value, const cJSON *json, Error *e)
{
        if (cJSON_IsString(json) && streq(json->valuestring, "infinity")) {
                value->number = UINT64_MAX;
                return 0;
        }
        if (cJSON_IsString(json) && value->info->type != PROPERTY_U64) {
                if (parse_size(json->valuestring, &value->number) < 0)
                        return error_set(e, -EINVAL, "\"%.40s\" is not a size such as \"512M\"",
                                        json->valuestring);
                return 0;
        }
        if (!cJSON_IsNumber(json) || json->valuedouble < 0 || json->valuedouble > 9007199254740992.0)
                return error_set(e, -EINVAL, "must be an integer of 0 or more, or \"infinity\"");
        value->number = (uint64_t) json->valuedouble;
        return check_range(value->info, json->valuedouble, e);
}

static int read_property_usec(PropertyValue *value, const cJSON *json, Error *e)
{
        if (cJSON_IsString(json) && streq(json->valuestring, "infinity")) {
                value->number = UINT64_MAX;
                return 0;
        }
        if (!cJSON_IsNumber(json) || json->valuedouble < 0 || json->valuedouble > 1e12)
                return error_set(e, -EINVAL, "must be seconds, a number of 0 or more, or \"infinity\"");
        value->number = (uint64_t) llround(json->valuedouble * (double) USEC_PER_SEC);
        return 0;
}

static int read_property_mode(PropertyValue *value, const cJSON *json, Error *e)
{
        const char *text = json->valuestring;

        if (!cJSON_IsString(json))
                return fail_type(e, "a string in octal, such as \"0022\"", json);
        if (!*text || strlen(text) > 4 || strspn(text, "01234567") != strlen(text))
                return error_set(
                                e, -EINVAL, "must be a string in octal such as \"0022\", is \"%.20s\"", text);
        value->number = strtoul(text, NULL, 8);
        return 0;
}

static int read_property_errno(PropertyValue *value, const cJSON *json, Error *e)
{
        if (!cJSON_IsString(json))
                return fail_type(e, "the name of an errno, such as \"EPERM\"", json);
        for (int i = 1; i <= ERRNO_MAX; i++) {
                const char *name = strerrorname_np(i);

                if (name && streq(name, json->valuestring)) {
                        value->number = (uint64_t) i;
                        return 0;
                }
        }
        return error_set(e, -EINVAL, "\"%.40s\" is not the name of an errno, such as \"EPERM\"",
                        json->valuestring);
}

/* --- lists --- */

static int read_strings(const cJSON *json, char ***ret, Error *e)
{
        _cleanup_strv_ char **list = NULL;
        const cJSON *item;
        size_t n = 0;

        if (!cJSON_IsArray(json))
                return fail_type(e, "a list of strings", json);
        list = strv_new((size_t) cJSON_GetArraySize(json));
        if (!list)
                return -ENOMEM;
        cJSON_ArrayForEach(item, json)
        {
                if (!cJSON_IsString(item) || !*item->valuestring)
                        return error_set(e, -EINVAL, "element %zu must be a string that is not empty", n);
                list[n] = strdup(item->valuestring);
                if (!list[n++])
                        return -ENOMEM;
        }
        *ret = TAKE_PTR(list);
        return 0;
}

static int read_property_strv(PropertyValue *value, const cJSON *json, Error *e)
{
        return read_strings(json, &value->list, e);
}

static int read_property_caps(PropertyValue *value, const cJSON *json, Error *e)
{
        _cleanup_strv_ char **names = NULL;
        int r = read_strings(json, &names, e);

        if (r < 0)
                return r;
        for (size_t i = 0; names[i]; i++) {
                size_t k = 0;

                while (capability_names[k] && !streq(capability_names[k], names[i]))
                        k++;
                if (!capability_names[k])
                        return error_set(e, -EINVAL, "\"%.40s\" is not a capability, see capabilities(7)",
                                        names[i]);
                value->number |= UINT64_C(1) << k;
        }
        return 0;
}

static int read_property_namespaces(PropertyValue *value, const cJSON *json, Error *e)
{
        _cleanup_strv_ char **names = NULL;
        int r;

        if (cJSON_IsBool(json)) {
                value->number = cJSON_IsTrue(json) ? 0 : NAMESPACES_ALL;
                return 0;
        }
        if (!cJSON_IsArray(json))
                return fail_type(e, "true, false, or the list of namespaces that stay permitted", json);
        r = read_strings(json, &names, e);
        if (r < 0)
                return r;
        for (size_t i = 0; names[i]; i++) {
                size_t k = 0;

                while (namespace_words[k].name && !streq(namespace_words[k].name, names[i]))
                        k++;
                if (!namespace_words[k].name)
                        return error_set(e, -EINVAL,
                                        "\"%.40s\" is not a namespace: cgroup ipc net mnt pid user uts",
                                        names[i]);
                value->number |= namespace_words[k].value;
        }
        return 0;
}

/* A first "~" makes the whole list one that denies; a "~" on the others says the same again. */
static int read_property_filter(PropertyValue *value, const cJSON *json, Error *e)
{
        int r = read_strings(json, &value->list, e);

        if (r < 0)
                return r;
        if (!value->list[0])
                return error_set(e, -EINVAL, "must not be an empty list");
        value->boolean = value->list[0][0] != '~';
        for (size_t i = 0; value->list[i]; i++) {
                char *word = value->list[i];

                if (word[0] == '~' && value->boolean)
                        return error_set(e, -EINVAL,
                                        "\"%.40s\": a list allows or denies as a whole; give two lists",
                                        word);
                if (word[0] == '~')
                        memmove(word, word + 1, strlen(word));
                if (!*word || word[strcspn(word, " \t\n~")] != '\0')
                        return error_set(e, -EINVAL, "element %zu is not one name", i);
        }
        return 0;
}

/* Absolute and without "..". */
static bool absolute_part_is_valid(const char *text, size_t length)
{
        if (length == 0 || text[0] != '/')
                return false;
        for (size_t i = 0; i + 2 < length; i++)
                if (strncmp(text + i, "/..", 3) == 0 && (i + 3 == length || text[i + 3] == '/'))
                        return false;
        return true;
}

static int read_property_binds(PropertyValue *value, const cJSON *json, Error *e)
{
        int r = read_strings(json, &value->list, e);

        for (size_t i = 0; r >= 0 && value->list[i]; i++) {
                const char *source = value->list[i][0] == '-' ? value->list[i] + 1 : value->list[i];
                size_t length = strcspn(source, ":");

                if (!absolute_part_is_valid(source, length) ||
                                (source[length] && !absolute_part_is_valid(source + length + 1,
                                                                   strlen(source + length + 1))))
                        return error_set(e, -EINVAL,
                                        "\"%.80s\" is not \"/source\" or \"/source:/destination\"",
                                        value->list[i]);
        }
        return r;
}

/* systemd takes a path without "+" for one of the host: where the unit has a root of its own, and a job
 * always has, it would be skipped without a word. */
static int read_property_paths(PropertyValue *value, const cJSON *json, Error *e)
{
        int r = read_strings(json, &value->list, e);

        for (size_t i = 0; r >= 0 && value->list[i]; i++) {
                const char *path = value->list[i], *dash = *path == '-' ? "-" : "";
                char *whole;

                path += strlen(dash);
                path += *path == '+';
                if (!absolute_part_is_valid(path, strlen(path)))
                        return error_set(e, -EINVAL, "\"%.80s\" is not \"/path\"", value->list[i]);
                whole = text_printf("%s+%s", dash, path);
                if (!whole)
                        return -ENOMEM;
                free(value->list[i]);
                value->list[i] = whole;
        }
        return r;
}

static int read_property_tmpfs(PropertyValue *value, const cJSON *json, Error *e)
{
        int r = read_strings(json, &value->list, e);

        for (size_t i = 0; r >= 0 && value->list[i]; i++)
                if (!absolute_part_is_valid(value->list[i], strcspn(value->list[i], ":")))
                        return error_set(e, -EINVAL, "\"%.80s\" is not \"/path\" or \"/path:options\"",
                                        value->list[i]);
        return r;
}

static int read_property_devices(PropertyValue *value, const cJSON *json, Error *e)
{
        int r = read_strings(json, &value->list, e);

        for (size_t i = 0; r >= 0 && value->list[i]; i++) {
                size_t length = strcspn(value->list[i], " ");
                const char *access = value->list[i][length] ? value->list[i] + length + 1 : "";

                if (length == 0 || !*access || access[strspn(access, "rwm")] != '\0')
                        return error_set(e, -EINVAL, "\"%.80s\" is not \"/dev/node rw\"", value->list[i]);
        }
        return r;
}

/* Names as journald takes them from a unit (systemd.journal-fields(7)); those of the audit trail are
 * qscope's own, and a policy must not be able to write them. */
static int read_property_fields(PropertyValue *value, const cJSON *json, Error *e)
{
        int r = read_strings(json, &value->list, e);

        for (size_t i = 0; r >= 0 && value->list[i]; i++) {
                const char *field = value->list[i];
                size_t length = strspn(field, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");

                if (length == 0 || length > FIELD_NAME_MAX || field[length] != '=' || *field == '_' ||
                                (*field >= '0' && *field <= '9') || strchr(field, '\n'))
                        return error_set(e, -EINVAL, "\"%.80s\" is not \"NAME=value\"", field);
                if (startswith(field, "QSCOPE_"))
                        return error_set(e, -EINVAL, "\"%.80s\": QSCOPE_ fields are the audit trail's own",
                                        field);
        }
        return r;
}

static const ValueReader value_readers[_PROPERTY_TYPE_MAX] = {
        [PROPERTY_BOOL] = read_property_bool,
        [PROPERTY_STRING] = read_property_string,
        [PROPERTY_STRV] = read_property_strv,
        [PROPERTY_PATHS] = read_property_paths,
        [PROPERTY_U64] = read_property_u64,
        [PROPERTY_SIZE] = read_property_u64,
        [PROPERTY_USEC] = read_property_usec,
        [PROPERTY_RLIMIT] = read_property_u64,
        [PROPERTY_I32] = read_property_i32,
        [PROPERTY_MODE] = read_property_mode,
        [PROPERTY_ERRNO] = read_property_errno,
        [PROPERTY_FILTER] = read_property_filter,
        [PROPERTY_CAPS] = read_property_caps,
        [PROPERTY_NAMESPACES] = read_property_namespaces,
        [PROPERTY_BINDS] = read_property_binds,
        [PROPERTY_TMPFS] = read_property_tmpfs,
        [PROPERTY_DEVICES] = read_property_devices,
        [PROPERTY_FIELDS] = read_property_fields,
};

static int add_one(PropertyList *list, const PropertyInfo *info, const cJSON *json, Error *e)
{
        PropertyValue value = { .info = info };
        int r = value_readers[info->type](&value, json, e);

        if (r < 0) {
                free(value.string);
                strv_free(value.list);
                return r;
        }
        return property_append(list, &value);
}

static int fail_unknown(const char *name, Error *e)
{
        const char *names[PROPERTY_NAMES_MAX], *nearest;
        size_t n = 0;

        for (const PropertyInfo *info; n < ELEMENTSOF(names) && (info = property_at(n)); n++)
                names[n] = info->name;
        nearest = read_nearest(name, names, n);
        if (nearest)
                return error_set(e, -EINVAL, "is not a property that a policy may set (did you mean \"%s\"?)",
                                nearest);
        return error_set(e, -EINVAL, "is not a property that a policy may set");
}

int property_add_json(PropertyList *list, const char *name, const cJSON *value, Error *e)
{
        const PropertyInfo *info = property_find(name);
        const cJSON *item;

        if (!info)
                return fail_unknown(name, e);
        if (info->type != PROPERTY_FILTER || !cJSON_IsArray(value) || !cJSON_IsArray(value->child))
                return add_one(list, info, value, e);
        cJSON_ArrayForEach(item, value)
        {
                int r = add_one(list, info, item, e);

                if (r < 0)
                        return r;
        }
        return 0;
}
