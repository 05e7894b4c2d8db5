/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/cgroup.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <time.h>

#include "base/number.h"
#include "base/text.h"
#include "sys/file.h"

#define FILE_SIZE_MAX  KIB(16)
#define PROCS_SIZE_MAX MIB(4)

int cgroup_open_job(pid_t pid, const char *slice, const char *service, int *ret_slice_fd, int *ret_service_fd)
{
        char path[64], text[4096], wanted[4096 + 64], *group, *end;
        _cleanup_close_ int slice_fd = -EBADF, service_fd = -EBADF;
        size_t length, wanted_length;
        int r;

        (void) snprintf(path, sizeof(path), "/proc/%d/cgroup", (int) pid);
        r = file_read_at(AT_FDCWD, path, text, sizeof(text));
        if (r < 0)
                return r;
        group = strstr(text, "0::/");
        if (!group || (group != text && group[-1] != '\n'))
                return -ESTALE;
        group += STRLEN("0::");
        end = strchrnul(group, '\n');
        *end = '\0';
        (void) snprintf(wanted, sizeof(wanted), "/%s/%s", slice, service);
        length = strlen(group);
        wanted_length = strlen(wanted);
        if (length < wanted_length || !streq(group + length - wanted_length, wanted))
                return -ESTALE;
        /* The group's own path is used, not a guess where the manager puts slices; ".." cannot occur in one.
         */
        group[length - strlen(service) - 1] = '\0';
        (void) snprintf(wanted, sizeof(wanted), CGROUP_MOUNT "%s", group);
        slice_fd = open(wanted, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (slice_fd < 0)
                return -errno;
        service_fd = openat(slice_fd, service, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (service_fd < 0)
                return -errno;
        *ret_slice_fd = TAKE_FD(slice_fd);
        *ret_service_fd = TAKE_FD(service_fd);
        return 0;
}

/* The number behind "key " at the start of a line. */
static uint64_t find_value(const char *text, const char *key)
{
        size_t length = strlen(key);

        for (const char *line = text; line && *line;
                        line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
                if (strncmp(line, key, length) == 0 && line[length] == ' ') {
                        char digits[32];
                        uint64_t value;

                        (void) snprintf(digits, sizeof(digits), "%.*s",
                                        (int) strspn(line + length + 1, "0123456789"), line + length + 1);
                        return parse_u64(digits, &value) < 0 ? UNKNOWN : value;
                }
        }
        return UNKNOWN;
}

uint64_t cgroup_value(int fd, const char *file, const char *key)
{
        char text[FILE_SIZE_MAX];
        uint64_t value;

        if (fd < 0 || file_read_at(fd, file, text, sizeof(text)) < 0)
                return UNKNOWN;
        if (key)
                return find_value(text, key);
        return parse_u64(text, &value) < 0 ? UNKNOWN : value;
}

/* Sums " key=N" over all lines: io.stat has a line a device, *.pressure one for "some" and one for "full". */
static uint64_t sum_assignments(const char *text, const char *key)
{
        size_t length = strlen(key);
        uint64_t sum = 0;

        for (const char *p = text; (p = strstr(p, key)); p += length) {
                if (p == text || p[-1] != ' ' || p[length] != '=')
                        continue;
                sum += strtoull(p + length + 1, NULL, 10);
        }
        return sum;
}

static uint64_t pressure(int fd, const char *file)
{
        char text[1024];

        if (file_read_at(fd, file, text, sizeof(text)) < 0 || !startswith(text, "some "))
                return UNKNOWN;
        *strchrnul(text, '\n') = '\0';
        return sum_assignments(text, "total");
}

static void read_io(int fd, Usage *usage)
{
        char text[FILE_SIZE_MAX];

        /* An empty io.stat is a group that did no input or output: that is 0, not unknown. */
        if (file_read_at(fd, "io.stat", text, sizeof(text)) < 0)
                return;
        usage->io_read_bytes = sum_assignments(text, "rbytes");
        usage->io_write_bytes = sum_assignments(text, "wbytes");
}

static void read_cpu(int fd, Usage *usage)
{
        const struct {
                const char *key;
                uint64_t *value;
        } rows[] = {
                { "usage_usec", &usage->cpu_usec },
                { "user_usec", &usage->user_usec },
                { "system_usec", &usage->system_usec },
                { "throttled_usec", &usage->throttled_usec },
                { "nr_throttled", &usage->nr_throttled },
                { "nr_periods", &usage->nr_periods },
        };
        char text[FILE_SIZE_MAX];
        bool known = fd >= 0 && file_read_at(fd, "cpu.stat", text, sizeof(text)) == 0;

        for (size_t i = 0; i < ELEMENTSOF(rows); i++)
                *rows[i].value = known ? find_value(text, rows[i].key) : UNKNOWN;
}

void cgroup_read_usage(int fd, Usage *usage)
{
        read_cpu(fd, usage);
        usage->memory_peak_bytes = cgroup_value(fd, "memory.peak", NULL);
        usage->swap_peak_bytes = cgroup_value(fd, "memory.swap.peak", NULL);
        usage->pids_peak = cgroup_value(fd, "pids.peak", NULL);
        read_io(fd, usage);
        usage->cpu_pressure_usec = pressure(fd, "cpu.pressure");
        usage->memory_pressure_usec = pressure(fd, "memory.pressure");
        usage->io_pressure_usec = pressure(fd, "io.pressure");
}

static uint64_t larger_known(uint64_t a, uint64_t b)
{
        if (a == UNKNOWN || b == UNKNOWN)
                return a == UNKNOWN ? b : a;
        return MAX(a, b);
}

void cgroup_read_events(int slice_fd, LimitEvents *events)
{
        events->oom_kill = cgroup_value(slice_fd, "memory.events", "oom_kill");
        events->oom = cgroup_value(slice_fd, "memory.events", "oom");
        events->memory_max = cgroup_value(slice_fd, "memory.events", "max");
        events->swap_max = cgroup_value(slice_fd, "memory.swap.events", "max");
        events->pids_max = larger_known(events->pids_max, cgroup_value(slice_fd, "pids.events", "max"));
}

uint64_t cgroup_outer_oom(int slice_fd)
{
        return cgroup_value(slice_fd, "../memory.events", "oom");
}

uint64_t cgroup_oomd_kills(int fd)
{
        char text[32];
        ssize_t n = fgetxattr(fd, "user.oomd_ooms", text, sizeof(text) - 1);
        uint64_t value;

        if (n < 0)
                return errno == ENODATA ? 0 : UNKNOWN;
        text[n] = '\0';
        return parse_u64(text, &value) < 0 ? UNKNOWN : value;
}

int cgroup_is_populated(int fd)
{
        uint64_t value = cgroup_value(fd, "cgroup.events", "populated");

        return value == UNKNOWN ? -EIO : value != 0;
}

int cgroup_open_events(int fd)
{
        int events = openat(fd, "cgroup.events", O_RDONLY | O_CLOEXEC);

        return events < 0 ? -errno : events;
}

int cgroup_freeze(int fd)
{
        return file_write_at(fd, "cgroup.freeze", "1");
}

bool cgroup_is_frozen(int fd)
{
        return cgroup_value(fd, "cgroup.events", "frozen") == 1;
}

int cgroup_kill(int fd)
{
        return file_write_at(fd, "cgroup.kill", "1");
}

int cgroup_kill_slice(const char *slice)
{
        char path[512];
        int r;

        (void) snprintf(path, sizeof(path), CGROUP_MOUNT "/qscope.slice/%s/cgroup.kill", slice);
        r = file_write_at(AT_FDCWD, path, "1");
        return r == -ENOENT ? 0 : r;
}

int cgroup_pids(int fd, size_t max, pid_t **ret, size_t *ret_n, uint64_t *ret_total)
{
        _cleanup_free_ char *text = malloc(PROCS_SIZE_MAX);
        _cleanup_free_ pid_t *pids = calloc(max, sizeof(pid_t));
        size_t n = 0;
        uint64_t total = 0;
        int r;

        if (!text || !pids)
                return -ENOMEM;
        r = file_read_at(fd, "cgroup.procs", text, PROCS_SIZE_MAX);
        if (r < 0)
                return r;
        for (char *p = text; *p; total++) {
                long pid = strtol(p, &p, 10);

                if (pid > 0 && n < max)
                        pids[n++] = (pid_t) pid;
                p += strspn(p, "\n");
                if (pid <= 0)
                        break;
        }
        *ret = TAKE_PTR(pids);
        *ret_n = n;
        *ret_total = total;
        return 0;
}
