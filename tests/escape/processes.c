/* SPDX-License-Identifier: Apache-2.0 */
/* Signals, tracing, memory and settings of other processes, and the own priority. */
#include "escape.h"

#include <fcntl.h>
#include <linux/ioprio.h>
#include <linux/kcmp.h>
#include <sched.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#define HARMLESS SIGURG /* ignored where nobody asked for it */

static pid_t victim(const char *key)
{
        return (pid_t) target_number(key);
}

static int send_signal(const char *key)
{
        return kill(victim(key), HARMLESS) < 0 ? refused("kill") : 0;
}

static int signal_init(const char *argument)
{
        (void) argument;
        return kill(1, 0) < 0 ? refused("kill") : 0;
}

static int signal_thread(const char *key)
{
        return syscall(SYS_tgkill, victim(key), victim(key), HARMLESS) < 0 ? refused("tgkill") : 0;
}

static int signal_queue(const char *key)
{
        return sigqueue(victim(key), HARMLESS, (union sigval){ .sival_int = 1 }) < 0 ? refused("sigqueue")
                                                                                     : 0;
}

static int open_process(const char *key)
{
        return (int) syscall(SYS_pidfd_open, victim(key), 0);
}

static int signal_pidfd(const char *key)
{
        int fd = open_process(key);

        if (fd < 0)
                return refused("pidfd_open");
        return syscall(SYS_pidfd_send_signal, fd, HARMLESS, NULL, 0) < 0 ? refused("pidfd_send_signal") : 0;
}

static int take_descriptor(const char *key)
{
        int fd = open_process(key);

        if (fd < 0)
                return refused("pidfd_open");
        fd = (int) syscall(SYS_pidfd_getfd, fd, target_number("descriptor"), 0);
        if (fd < 0)
                return refused("pidfd_getfd");
        return lseek(fd, 0, SEEK_SET) < 0 ? refused("lseek") : read_token_fd(fd, "pidfd_getfd");
}

static int join_pidfd(const char *key)
{
        int fd = open_process(key);

        if (fd < 0)
                return refused("pidfd_open");
        return setns(fd, CLONE_NEWNET) < 0 ? refused("setns") : 0;
}

static int trace(const char *key)
{
        pid_t pid = victim(key);

        if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) < 0)
                return refused("ptrace");
        return 0; /* it ends with us */
}

static int trace_and_read(const char *key)
{
        pid_t pid = victim(key);
        union {
                long words[8];
                char bytes[8 * sizeof(long)];
        } data = { 0 };

        if (ptrace(PTRACE_ATTACH, pid, NULL, NULL) < 0 || waitpid(pid, NULL, 0) < 0)
                return refused("ptrace");
        for (size_t i = 0; i < 8; i++)
                data.words[i] = ptrace(PTRACE_PEEKDATA, pid,
                                target_number("address") + (long) (i * sizeof(long)), NULL);
        (void) ptrace(PTRACE_DETACH, pid, NULL, NULL);
        return has_token(data.bytes, sizeof(data.bytes)) ? 0 : without_effect("peek");
}

static int read_memory(const char *key)
{
        char data[64] = "";
        struct iovec here = { data, sizeof(data) }, there = { NULL, sizeof(data) };

        there.iov_base = (void *) (uintptr_t) target_number("address");
        if (process_vm_readv(victim(key), &here, 1, &there, 1, 0) < 0)
                return refused("process_vm_readv");
        return has_token(data, sizeof(data)) ? 0 : without_effect("process_vm_readv");
}

/* The first byte of the token, which is there already. */
static int write_memory(const char *key)
{
        char first = token()[0];
        struct iovec here = { &first, 1 }, there = { NULL, 1 };

        there.iov_base = (void *) (uintptr_t) target_number("address");
        return process_vm_writev(victim(key), &here, 1, &there, 1, 0) == 1 ? 0 : refused("process_vm_writev");
}

static int compare(const char *key)
{
        return syscall(SYS_kcmp, getpid(), victim(key), KCMP_FILES, 0, 0) < 0 ? refused("kcmp") : 0;
}

static int read_limit(const char *key)
{
        struct rlimit limit;

        if (prlimit(victim(key), RLIMIT_NOFILE, NULL, &limit) < 0)
                return refused("prlimit");
        return prlimit(victim(key), RLIMIT_NOFILE, &limit, NULL) < 0 ? refused("prlimit") : 0;
}

static int set_priority(const char *key)
{
        int now;

        errno = 0;
        now = getpriority(PRIO_PROCESS, (id_t) victim(key));
        if (errno)
                return refused("getpriority");
        return setpriority(PRIO_PROCESS, (id_t) victim(key), now) < 0 ? refused("setpriority") : 0;
}

static int set_affinity(const char *key)
{
        cpu_set_t set;

        if (sched_getaffinity(victim(key), sizeof(set), &set) < 0)
                return refused("sched_getaffinity");
        return sched_setaffinity(victim(key), sizeof(set), &set) < 0 ? refused("sched_setaffinity") : 0;
}

static int move_pages_of(const char *key)
{
        unsigned long from = 1, to = 1;

        return syscall(SYS_migrate_pages, victim(key), 8 * sizeof(from), &from, &to) < 0
                               ? refused("migrate_pages")
                               : 0;
}

/* --- more than its share --- */

static int be_nicer(const char *argument)
{
        (void) argument;
        return setpriority(PRIO_PROCESS, 0, -5) < 0 ? refused("setpriority") : 0;
}

static int be_realtime(const char *argument)
{
        struct sched_param parameters = { .sched_priority = 1 };

        (void) argument;
        return sched_setscheduler(0, SCHED_FIFO, &parameters) < 0 ? refused("sched_setscheduler") : 0;
}

static int be_first_on_disk(const char *argument)
{
        int best = IOPRIO_PRIO_VALUE(IOPRIO_CLASS_RT, 0);

        (void) argument;
        return syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, best) < 0 ? refused("ioprio_set") : 0;
}

static int raise_hard_limit(const char *argument)
{
        struct rlimit limit;

        (void) argument;
        if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
                return refused("getrlimit");
        limit.rlim_max += 1;
        return setrlimit(RLIMIT_NOFILE, &limit) < 0 ? refused("setrlimit") : 0;
}

const Attempt process_attempts[] = {
        { "kill", "sends a process a signal", send_signal, "pid" },
        { "kill-qscope", "sends qscope a signal", send_signal, "qscope" },
        { "kill-init", "may send systemd a signal", signal_init, NULL },
        { "tgkill", "sends a thread a signal", signal_thread, "pid" },
        { "sigqueue", "sends a process a signal with a value", signal_queue, "pid" },
        { "pidfd-signal", "sends a signal by a descriptor of the process", signal_pidfd, "pid" },
        { "pidfd-getfd", "takes a descriptor out of a process", take_descriptor, "pid" },
        { "pidfd-setns", "joins namespaces by a descriptor of the process", join_pidfd, "pid" },
        { "ptrace-seize", "traces a process", trace, "pid" },
        { "ptrace-attach", "stops a process and reads in it", trace_and_read, "pid" },
        { "ptrace-qscope", "traces qscope", trace, "qscope" },
        { "vm-read", "reads a process's memory", read_memory, "pid" },
        { "vm-write", "writes a process's memory", write_memory, "pid" },
        { "kcmp", "compares itself with a process", compare, "pid" },
        { "prlimit", "sets a process's limits", read_limit, "pid" },
        { "setpriority", "sets a process's priority", set_priority, "pid" },
        { "setaffinity", "sets a process's processors", set_affinity, "pid" },
        { "migrate-pages", "moves a process's memory", move_pages_of, "pid" },
        { "nice", "raises its own priority", be_nicer, NULL },
        { "realtime", "runs before everybody", be_realtime, NULL },
        { "ioprio", "reads before everybody", be_first_on_disk, NULL },
        { "rlimit", "raises its own hard limit", raise_hard_limit, NULL, .vm = true },
        { NULL },
};
