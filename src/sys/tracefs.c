/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/tracefs.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mount.h>
#include <sys/vfs.h>

#include "base/number.h"
#include "sys/file.h"
#include "sys/mount.h"

#define FORMAT_SIZE_MAX KIB(16)

int tracefs_open(int *ret_fd)
{
        _cleanup_close_ int fd = open("/sys/kernel/tracing", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        MountOption none[] = { { 0 } };
        struct statfs fs;

        if (fd >= 0 && fstatfs(fd, &fs) == 0 && fs.f_type == TRACEFS_MAGIC) {
                *ret_fd = TAKE_FD(fd);
                return 0;
        }
        return mount_new("tracefs", none, MOUNT_ATTR_RDONLY, ret_fd, NULL);
}

int tracefs_id(int fd, const char *event, uint64_t *ret)
{
        char path[128], text[32];
        int r;

        (void) snprintf(path, sizeof(path), "events/%s/id", event);
        r = file_read_at(fd, path, text, sizeof(text));
        return r < 0 ? r : parse_u64(text, ret);
}

/* The number behind "key:" in one line, up to ";". */
static int number_behind(const char *line, const char *key, uint32_t *ret)
{
        const char *p = strstr(line, key);
        unsigned long value;
        char *end;

        if (!p)
                return -ENODATA;
        value = strtoul(p + strlen(key), &end, 10);
        if (*end != ';' || value > UINT16_MAX)
                return -EBADMSG;
        *ret = (uint32_t) value;
        return 0;
}

/* "\tfield:__u8 saddr[4];\toffset:32;\tsize:4;\tsigned:0;" */
static bool line_declares(const char *line, const char *name)
{
        size_t length = strlen(name);
        const char *p, *end;

        line += strspn(line, "\t ");
        p = startswith(line, "field:");
        end = p ? strchr(p, ';') : NULL;
        if (!end)
                return false;
        for (p = strstr(p, name); p && p < end; p = strstr(p + 1, name))
                if (p[-1] == ' ' && (p[length] == ';' || p[length] == '['))
                        return true;
        return false;
}

static int find_field(const char *format, const char *name, TraceField *ret)
{
        for (const char *line = format; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
                char copy[256];
                int r;

                (void) snprintf(copy, sizeof(copy), "%.*s", (int) strcspn(line, "\n"), line);
                if (!line_declares(copy, name))
                        continue;
                r = number_behind(copy, "offset:", &ret->offset);
                return r < 0 ? r : number_behind(copy, "size:", &ret->size);
        }
        return -ENODATA;
}

int tracefs_fields(int fd, const char *event, const char *const names[], TraceField ret[])
{
        _cleanup_free_ char *format = malloc(FORMAT_SIZE_MAX);
        char path[128];
        int r;

        if (!format)
                return -ENOMEM;
        (void) snprintf(path, sizeof(path), "events/%s/format", event);
        r = file_read_at(fd, path, format, FORMAT_SIZE_MAX);
        for (size_t i = 0; r == 0 && names[i]; i++)
                r = find_field(format, names[i], &ret[i]);
        return r;
}
