/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/errors.h"

#include <fcntl.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/syscall.h>

#include "base/number.h"
#include "sys/file.h"
#include "sys/mount.h"

struct ErrorCounter {
        size_t n_errors, n_cpus;
        int *fds; /* n_errors × n_cpus: an event of a control group counts on one CPU only */
};

ErrorCounter *error_counter_free(ErrorCounter *counter)
{
        if (!counter)
                return NULL;
        for (size_t i = 0; i < counter->n_errors * counter->n_cpus; i++)
                safe_close(counter->fds[i]);
        free(counter->fds);
        free(counter);
        return NULL;
}

/* The tracepoint's number, from a tracefs of our own: the host may have none mounted. */
static int tracepoint_id(uint64_t *ret)
{
        MountOption none[] = { { 0 } };
        _cleanup_close_ int fd = -EBADF;
        char text[32];
        int r = mount_new("tracefs", none, MOUNT_ATTR_RDONLY, &fd, NULL);

        if (r == 0)
                r = file_read_at(fd, "events/raw_syscalls/sys_exit/id", text, sizeof(text));
        return r < 0 ? r : parse_u64(text, ret);
}

static int open_event(int cgroup_fd, int cpu, uint64_t id, int error)
{
        struct perf_event_attr attr = {
                .type = PERF_TYPE_TRACEPOINT,
                .size = sizeof(attr),
                .config = id,
        };
        char filter[64];
        int fd = (int) syscall(SYS_perf_event_open, &attr, cgroup_fd, cpu, -1,
                        PERF_FLAG_PID_CGROUP | PERF_FLAG_FD_CLOEXEC);

        if (fd < 0)
                return -errno;
        /* inotify_add_watch says ENOSPC for a limit of its own (inotify(7)), which is no full disk. */
        (void) snprintf(filter, sizeof(filter), "ret == -%d && id != %d", error, (int) SYS_inotify_add_watch);
        if (ioctl(fd, PERF_EVENT_IOC_SET_FILTER, filter) < 0) {
                int r = -errno;

                safe_close(fd);
                return r;
        }
        return fd;
}

int error_counter_open(int cgroup_fd, const int *errors, size_t n_errors, ErrorCounter **ret)
{
        _cleanup_(error_counter_freep) ErrorCounter *counter = calloc(1, sizeof(*counter));
        long cpus = sysconf(_SC_NPROCESSORS_CONF);
        uint64_t id;
        int r;

        if (!counter || cpus <= 0 || n_errors > ERROR_COUNTER_MAX)
                return counter ? -EINVAL : -ENOMEM;
        r = tracepoint_id(&id);
        if (r < 0)
                return r;
        counter->fds = calloc(n_errors * (size_t) cpus, sizeof(int));
        if (!counter->fds)
                return -ENOMEM;
        counter->n_cpus = (size_t) cpus;
        counter->n_errors = n_errors;
        for (size_t i = 0; i < n_errors * (size_t) cpus; i++)
                counter->fds[i] = -EBADF;
        for (size_t i = 0; i < n_errors; i++) {
                for (int cpu = 0; cpu < (int) cpus; cpu++) {
                        int fd = open_event(cgroup_fd, cpu, id, errors[i]);

                        if (fd == -ENODEV)
                                continue; /* this CPU is offline */
                        if (fd < 0)
                                return fd;
                        counter->fds[i * counter->n_cpus + (size_t) cpu] = fd;
                }
        }
        *ret = TAKE_PTR(counter);
        return 0;
}

uint64_t error_counter_read(const ErrorCounter *counter, size_t index)
{
        uint64_t sum = 0;

        for (size_t cpu = 0; cpu < counter->n_cpus; cpu++) {
                int fd = counter->fds[index * counter->n_cpus + cpu];
                uint64_t value;

                if (fd < 0)
                        continue;
                if (read(fd, &value, sizeof(value)) != sizeof(value))
                        return UNKNOWN;
                sum += value;
        }
        return sum;
}
