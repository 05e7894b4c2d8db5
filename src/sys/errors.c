/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/errors.h"

#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

struct ErrorCounter {
        size_t n_cpus;
        int *fds; /* _COUNTED_ERROR_MAX × n_cpus: an event of a control group counts on one CPU only */
};

void error_counter_give(ErrorCounter *counter, Closing *closing)
{
        if (counter)
                closing_take(closing, counter->fds, _COUNTED_ERROR_MAX * counter->n_cpus);
}

ErrorCounter *error_counter_free(ErrorCounter *counter)
{
        if (!counter)
                return NULL;
        for (size_t i = 0; i < _COUNTED_ERROR_MAX * counter->n_cpus; i++)
                safe_close(counter->fds[i]);
        free(counter->fds);
        free(counter);
        return NULL;
}

/* The kernel's filter language (Documentation/trace/events.rst, 5.2). */
static void write_filter(CountedError error, char *filter, size_t size)
{
        switch (error) {
        case COUNTED_EMFILE:
                (void) snprintf(filter, size, "ret == -%d", EMFILE);
                break;
        case COUNTED_ENOSPC:
                /* inotify_add_watch says it for a limit of its own (inotify(7)), which is no full disk. */
                (void) snprintf(filter, size, "ret == -%d && id != %d", ENOSPC, (int) SYS_inotify_add_watch);
                break;
        case COUNTED_EFBIG:
                (void) snprintf(filter, size, "ret == -%d", EFBIG);
                break;
        case COUNTED_FORK_EAGAIN:
#ifdef SYS_fork
                (void) snprintf(filter, size, "ret == -%d && (id == %d || id == %d || id == %d || id == %d)",
                                EAGAIN, (int) SYS_clone, (int) SYS_clone3, (int) SYS_fork, (int) SYS_vfork);
#else
                (void) snprintf(filter, size, "ret == -%d && (id == %d || id == %d)", EAGAIN, (int) SYS_clone,
                                (int) SYS_clone3);
#endif
                break;
        case COUNTED_SENT_KILL:
                (void) snprintf(filter, size, "sig == %d", SIGKILL);
                break;
        case COUNTED_SENT_TERM:
                (void) snprintf(filter, size, "sig == %d", SIGTERM);
                break;
        case COUNTED_SENDER:
                (void) snprintf(filter, size, "ret == 0 && (id == %d || id == %d)", (int) SYS_timer_create,
                                (int) SYS_ptrace);
                break;
        case COUNTED_SIGNAL_FD:
                /* The event has all 64 bits of the argument, of which the call takes 32. */
                (void) snprintf(filter, size, "cmd == %d || cmd > %u", F_SETSIG, UINT32_MAX);
                break;
        case _COUNTED_ERROR_MAX:
                break;
        }
}

static int open_event(int cgroup_fd, int cpu, uint64_t id, CountedError error)
{
        struct perf_event_attr attr = {
                .type = PERF_TYPE_TRACEPOINT,
                .size = sizeof(attr),
                .config = id,
        };
        char filter[128] = "";
        int fd = (int) syscall(SYS_perf_event_open, &attr, cgroup_fd, cpu, -1,
                        PERF_FLAG_PID_CGROUP | PERF_FLAG_FD_CLOEXEC);

        if (fd < 0)
                return -errno;
        write_filter(error, filter, sizeof(filter));
        if (ioctl(fd, PERF_EVENT_IOC_SET_FILTER, filter) < 0) {
                int r = -errno;

                safe_close(fd);
                return r;
        }
        return fd;
}

static const char *event_of(CountedError error)
{
        switch (error) {
        case COUNTED_SENT_KILL:
        case COUNTED_SENT_TERM:
                return "signal/signal_generate";
        case COUNTED_SIGNAL_FD:
                return "syscalls/sys_enter_fcntl";
        default:
                return "raw_syscalls/sys_exit";
        }
}

static int open_events(Tracefs *tracefs, int cgroup_fd, CountedError error, ErrorCounter *counter)
{
        uint64_t id = 0;
        int r = tracefs_find(tracefs, event_of(error), NULL, &id, NULL);

        /* Kernels can be built without an event for each system call (CONFIG_FTRACE_SYSCALLS). */
        if (error == COUNTED_SIGNAL_FD && r == -ENOENT)
                return 0;
        for (int cpu = 0; r == 0 && cpu < (int) counter->n_cpus; cpu++) {
                int fd = open_event(cgroup_fd, cpu, id, error);

                if (fd >= 0)
                        counter->fds[(size_t) error * counter->n_cpus + (size_t) cpu] = fd;
                else if (fd != -ENODEV) /* this CPU is offline */
                        r = fd;
        }
        return r;
}

int error_counter_open(Tracefs *tracefs, int cgroup_fd, ErrorCounter **ret)
{
        _cleanup_(error_counter_freep) ErrorCounter *counter = calloc(1, sizeof(*counter));
        long cpus = sysconf(_SC_NPROCESSORS_CONF);
        int r = 0;

        if (!counter || cpus <= 0)
                return counter ? -EINVAL : -ENOMEM;
        counter->fds = calloc(_COUNTED_ERROR_MAX * (size_t) cpus, sizeof(int));
        if (!counter->fds)
                return -ENOMEM;
        counter->n_cpus = (size_t) cpus;
        for (size_t i = 0; i < _COUNTED_ERROR_MAX * counter->n_cpus; i++)
                counter->fds[i] = -EBADF;
        for (CountedError error = 0; r == 0 && error < _COUNTED_ERROR_MAX; error++)
                r = open_events(tracefs, cgroup_fd, error, counter);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(counter);
        return 0;
}

uint64_t error_counter_read(const ErrorCounter *counter, CountedError error)
{
        uint64_t sum = 0;

        for (size_t cpu = 0; cpu < counter->n_cpus; cpu++) {
                int fd = counter->fds[(size_t) error * counter->n_cpus + cpu];
                uint64_t value;

                if (fd < 0)
                        continue;
                if (read(fd, &value, sizeof(value)) != sizeof(value))
                        return UNKNOWN;
                sum += value;
        }
        return sum;
}
