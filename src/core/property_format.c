/* SPDX-License-Identifier: Apache-2.0 */
/* Property values as systemd's unit files would write them (systemd.syntax(7)). */

#include "core/property.h"

#include <inttypes.h>

#include "base/text.h"
#include "core/property_words.h"

/* linux/capability.h, in order. */
const char *const capability_names[] = {
        "CAP_CHOWN",
        "CAP_DAC_OVERRIDE",
        "CAP_DAC_READ_SEARCH",
        "CAP_FOWNER",
        "CAP_FSETID",
        "CAP_KILL",
        "CAP_SETGID",
        "CAP_SETUID",
        "CAP_SETPCAP",
        "CAP_LINUX_IMMUTABLE",
        "CAP_NET_BIND_SERVICE",
        "CAP_NET_BROADCAST",
        "CAP_NET_ADMIN",
        "CAP_NET_RAW",
        "CAP_IPC_LOCK",
        "CAP_IPC_OWNER",
        "CAP_SYS_MODULE",
        "CAP_SYS_RAWIO",
        "CAP_SYS_CHROOT",
        "CAP_SYS_PTRACE",
        "CAP_SYS_PACCT",
        "CAP_SYS_ADMIN",
        "CAP_SYS_BOOT",
        "CAP_SYS_NICE",
        "CAP_SYS_RESOURCE",
        "CAP_SYS_TIME",
        "CAP_SYS_TTY_CONFIG",
        "CAP_MKNOD",
        "CAP_LEASE",
        "CAP_AUDIT_WRITE",
        "CAP_AUDIT_CONTROL",
        "CAP_SETFCAP",
        "CAP_MAC_OVERRIDE",
        "CAP_MAC_ADMIN",
        "CAP_SYSLOG",
        "CAP_WAKE_ALARM",
        "CAP_BLOCK_SUSPEND",
        "CAP_AUDIT_READ",
        "CAP_PERFMON",
        "CAP_BPF",
        "CAP_CHECKPOINT_RESTORE",
        NULL,
};

/* linux/sched.h, names as in RestrictNamespaces=. */
const PropertyWord namespace_words[] = {
        { "cgroup", 0x02000000 },
        { "ipc", 0x08000000 },
        { "net", 0x40000000 },
        { "mnt", 0x00020000 },
        { "pid", 0x20000000 },
        { "user", 0x10000000 },
        { "uts", 0x04000000 },
        { NULL, 0 },
};

static void put_word(FILE *out, const char *text, bool first)
{
        bool quoted = !*text || text[strcspn(text, " \t\n\"'\\")] != '\0';

        if (!first)
                (void) fputc(' ', out);
        if (quoted)
                (void) fputc('"', out);
        for (; *text; text++) {
                if (*text == '\n') {
                        (void) fputs("\\n", out);
                        continue;
                }
                if (*text == '"' || *text == '\\')
                        (void) fputc('\\', out);
                if (*text == '%') /* specifiers, systemd.unit(5) */
                        (void) fputc('%', out);
                (void) fputc(*text, out);
        }
        if (quoted)
                (void) fputc('"', out);
}

static void put_list(FILE *out, char *const *list)
{
        for (size_t i = 0; list && list[i]; i++)
                put_word(out, list[i], i == 0);
}

static void put_number(FILE *out, uint64_t number)
{
        if (number == UINT64_MAX)
                (void) fputs("infinity", out);
        else
                (void) fprintf(out, "%" PRIu64, number);
}

static void put_usec(FILE *out, uint64_t usec)
{
        if (usec == UINT64_MAX)
                (void) fputs("infinity", out);
        else if (usec % USEC_PER_SEC == 0)
                (void) fprintf(out, "%" PRIu64 "s", usec / USEC_PER_SEC);
        else if (usec % USEC_PER_MSEC == 0)
                (void) fprintf(out, "%" PRIu64 "ms", usec / USEC_PER_MSEC);
        else
                (void) fprintf(out, "%" PRIu64 "us", usec);
}

/* CPUQuota= is written in per cent and carried as microseconds of each second. */
static void put_percent(FILE *out, uint64_t usec)
{
        uint64_t hundredths = usec / 100;

        (void) fprintf(out, "%" PRIu64, hundredths / 100);
        if (hundredths % 100 != 0)
                (void) fprintf(out, ".%02" PRIu64, hundredths % 100);
        (void) fputc('%', out);
}

static void put_capabilities(FILE *out, uint64_t mask)
{
        bool first = true;

        for (size_t i = 0; capability_names[i]; i++)
                if (mask & (UINT64_C(1) << i)) {
                        put_word(out, capability_names[i], first);
                        first = false;
                }
}

static void put_namespaces(FILE *out, uint64_t mask)
{
        bool first = true;

        if (mask == 0 || (mask & NAMESPACES_ALL) == NAMESPACES_ALL) {
                (void) fputs(mask == 0 ? "yes" : "no", out);
                return;
        }
        for (size_t i = 0; namespace_words[i].name; i++)
                if (mask & namespace_words[i].value) {
                        put_word(out, namespace_words[i].name, first);
                        first = false;
                }
}

static void put_value(FILE *out, const PropertyValue *value)
{
        switch (value->info->type) {
        case PROPERTY_BOOL:
                (void) fputs(value->boolean ? "yes" : "no", out);
                break;
        case PROPERTY_STRING:
                for (const char *p = value->string; *p; p++)
                        (void) fputs(*p == '%' ? "%%" : (char[]){ *p, '\0' }, out);
                break;
        case PROPERTY_U64:
        case PROPERTY_SIZE:
        case PROPERTY_RLIMIT:
                put_number(out, value->number);
                break;
        case PROPERTY_USEC:
                if (streq(value->info->name, "CPUQuota"))
                        put_percent(out, value->number);
                else
                        put_usec(out, value->number);
                break;
        case PROPERTY_I32:
                (void) fprintf(out, "%" PRId64, (int64_t) value->number);
                break;
        case PROPERTY_MODE:
                (void) fprintf(out, "%04" PRIo64, value->number);
                break;
        case PROPERTY_ERRNO:
                (void) fputs(strerrorname_np((int) value->number), out);
                break;
        case PROPERTY_CAPS:
                put_capabilities(out, value->number);
                break;
        case PROPERTY_NAMESPACES:
                put_namespaces(out, value->number);
                break;
        case PROPERTY_FILTER:
                if (!value->boolean)
                        (void) fputc('~', out);
                put_list(out, value->list);
                break;
        case PROPERTY_STRV:
        case PROPERTY_PATHS:
        case PROPERTY_BINDS:
        case PROPERTY_TMPFS:
        case PROPERTY_DEVICES:
        case PROPERTY_FIELDS:
                put_list(out, value->list);
                break;
        case _PROPERTY_TYPE_MAX:
                assert(false);
        }
}

char *property_format(const PropertyValue *value)
{
        TextStream stream;
        FILE *out = text_stream_open(&stream);

        if (out)
                put_value(out, value);
        return text_stream_close(&stream, 0);
}
