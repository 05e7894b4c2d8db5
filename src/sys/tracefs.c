/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/tracefs.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/perf_event.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#include "base/number.h"
#include "sys/file.h"
#include "sys/mount.h"

#define FORMAT_SIZE_MAX KIB(16)

/* As many as there are events that anybody asks for. */
#define EVENTS_MAX 16

typedef struct Event {
        const char *name;
        uint64_t id;
        char *format;
        int kept_fd;
} Event;

struct Tracefs {
        int fd; /* the file system's root; negative: not opened yet */
        bool keep;
        Event events[EVENTS_MAX];
        size_t n;
};

int tracefs_new(bool keep, Tracefs **ret)
{
        Tracefs *tracefs = calloc(1, sizeof(*tracefs));

        if (!tracefs)
                return -ENOMEM;
        tracefs->fd = -EBADF;
        tracefs->keep = keep;
        *ret = tracefs;
        return 0;
}

Tracefs *tracefs_free(Tracefs *tracefs)
{
        if (!tracefs)
                return NULL;
        for (size_t i = 0; i < tracefs->n; i++) {
                safe_close(tracefs->events[i].kept_fd);
                free(tracefs->events[i].format);
        }
        safe_close(tracefs->fd);
        free(tracefs);
        return NULL;
}

/* The host's, or where it has none mounted one of our own, attached nowhere. */
static int open_root(int *ret_fd)
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

static int read_id(int fd, const char *event, uint64_t *ret)
{
        char path[128], text[32];
        int r;

        (void) snprintf(path, sizeof(path), "events/%s/id", event);
        r = file_read_at(fd, path, text, sizeof(text));
        return r < 0 ? r : parse_u64(text, ret);
}

/* An event that never counts, of this thread. */
static int open_kept(uint64_t id)
{
        struct perf_event_attr attr = {
                .type = PERF_TYPE_TRACEPOINT, .size = sizeof(attr), .config = id, .disabled = 1
        };

        return (int) syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
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

static int add_event(Tracefs *tracefs, const char *name)
{
        Event event = { .name = name, .kept_fd = -EBADF, .format = malloc(FORMAT_SIZE_MAX) };
        char path[128];
        int r;

        if (!event.format)
                return -ENOMEM;
        (void) snprintf(path, sizeof(path), "events/%s/format", name);
        r = tracefs->n < EVENTS_MAX ? read_id(tracefs->fd, name, &event.id) : -E2BIG;
        if (r == 0)
                r = file_read_at(tracefs->fd, path, event.format, FORMAT_SIZE_MAX);
        if (r < 0) {
                free(event.format);
                return r;
        }
        if (tracefs->keep)
                event.kept_fd = open_kept(event.id);
        tracefs->events[tracefs->n++] = event;
        return 0;
}

int tracefs_find(Tracefs *tracefs, const char *event, const char *const names[], uint64_t *ret_id,
                TraceField ret[])
{
        size_t at = 0;
        int r = tracefs->fd >= 0 ? 0 : open_root(&tracefs->fd);

        while (at < tracefs->n && !streq(tracefs->events[at].name, event))
                at++;
        if (r == 0 && at == tracefs->n)
                r = add_event(tracefs, event);
        for (size_t i = 0; r == 0 && names && names[i]; i++)
                r = find_field(tracefs->events[at].format, names[i], &ret[i]);
        if (r == 0)
                *ret_id = tracefs->events[at].id;
        return r;
}
