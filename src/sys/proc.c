/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/proc.h"

#include <fcntl.h>
#include <poll.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include "sys/file.h"

#define STATUS_MAX          KIB(8)
#define ARGUMENTS_WAITS     20u
#define ARGUMENTS_WAIT_NSEC (250 * 1000)
#define CMDLINE_MAX         KIB(4)

int proc_open(pid_t pid, int *ret_pidfd)
{
        int fd = (int) syscall(SYS_pidfd_open, pid, 0);

        if (fd < 0)
                return -errno;
        *ret_pidfd = fd;
        return 0;
}

bool proc_has_ended(int pidfd)
{
        struct pollfd p = { .fd = pidfd, .events = POLLIN };

        return poll(&p, 1, 0) > 0;
}

int proc_open_dir(pid_t pid, int *ret_fd)
{
        char path[32];
        int fd;

        (void) snprintf(path, sizeof(path), "/proc/%d", (int) pid);
        fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        *ret_fd = fd;
        return 0;
}

typedef struct StatusFact {
        const char *fact, *field, *expected;
} StatusFact;

static const StatusFact status_facts[] = {
        { "no_new_privs", "NoNewPrivs", "1" },
        { "seccomp", "Seccomp", "2" },
        { "capabilities.effective", "CapEff", "0000000000000000" },
        { "capabilities.permitted", "CapPrm", "0000000000000000" },
        { "capabilities.inheritable", "CapInh", "0000000000000000" },
        { "capabilities.bounding", "CapBnd", "0000000000000000" },
        { "capabilities.ambient", "CapAmb", "0000000000000000" },
};

static int add_status_facts(const char *status, Outcome *o)
{
        for (size_t i = 0; i < ELEMENTSOF(status_facts); i++) {
                const StatusFact *fact = &status_facts[i];
                char value[128] = "unknown";
                int r;

                (void) text_field(status, fact->field, value, sizeof(value));
                r = outcome_add_fact(o, fact->fact, streq(value, fact->expected), fact->expected, value);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* All four of real, effective, saved and file system uid. */
static int add_uid_fact(const char *status, uid_t uid, Outcome *o)
{
        char value[128] = "unknown", expected[64];

        (void) text_field(status, "Uid", value, sizeof(value));
        (void) snprintf(expected, sizeof(expected), "%u\t%u\t%u\t%u", uid, uid, uid, uid);
        for (char *p = value; *p; p++)
                *p = *p == '\t' ? ' ' : *p;
        for (char *p = expected; *p; p++)
                *p = *p == '\t' ? ' ' : *p;
        return outcome_add_fact(o, "uid", uid != 0 && streq(value, expected), expected, value);
}

static int add_namespace_facts(int proc_fd, Outcome *o)
{
        static const char *const names[] = { "mnt", "user", "ipc", "uts" };
        static const char *const facts[] = {
                "namespace.mnt",
                "namespace.user",
                "namespace.ipc",
                "namespace.uts",
        };

        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                char path[32], mine[64];
                struct stat theirs, own;
                bool other;
                int r;

                (void) snprintf(path, sizeof(path), "ns/%s", names[i]);
                (void) snprintf(mine, sizeof(mine), "/proc/self/ns/%s", names[i]);
                if (fstatat(proc_fd, path, &theirs, 0) < 0 || stat(mine, &own) < 0)
                        return -errno;
                other = theirs.st_ino != own.st_ino;
                r = outcome_add_fact(o, facts[i], other, "its own", other ? "its own" : "the host's");
                if (r < 0)
                        return r;
        }
        return 0;
}

/* Not only another one than the host's: the very one that is watched. */
static int add_network_fact(int proc_fd, int netns_fd, Outcome *o)
{
        struct stat theirs, own, wanted;
        const char *observed = "another";

        if (fstatat(proc_fd, "ns/net", &theirs, 0) < 0 || stat("/proc/self/ns/net", &own) < 0 ||
                        fstat(netns_fd, &wanted) < 0)
                return -errno;
        if (theirs.st_ino == own.st_ino)
                observed = "the host's";
        else if (theirs.st_ino == wanted.st_ino && theirs.st_dev == wanted.st_dev)
                observed = "its own";
        return outcome_add_fact(o, "namespace.net", streq(observed, "its own"), "its own", observed);
}

static int add_root_fact(int proc_fd, Outcome *o)
{
        struct stat theirs, own;
        bool other;

        if (fstatat(proc_fd, "root/", &theirs, 0) < 0 || stat("/", &own) < 0)
                return -errno;
        other = theirs.st_ino != own.st_ino || theirs.st_dev != own.st_dev;
        return outcome_add_fact(o, "root", other, "its own", other ? "its own" : "the host's");
}

int proc_isolation_facts(int proc_fd, int netns_fd, uid_t uid, Outcome *o)
{
        char status[STATUS_MAX];
        int r = file_read_at(proc_fd, "status", status, sizeof(status));

        if (r == 0)
                r = add_namespace_facts(proc_fd, o);
        if (r == 0 && netns_fd >= 0)
                r = add_network_fact(proc_fd, netns_fd, o);
        if (r == 0)
                r = add_root_fact(proc_fd, o);
        if (r == 0)
                r = add_uid_fact(status, uid, o);
        if (r == 0)
                r = add_status_facts(status, o);
        return r;
}

/* Reads NUL-separated arguments, cut at CMDLINE_MAX. */
static int read_argv(int proc_fd, char ***ret)
{
        _cleanup_close_ int fd = openat(proc_fd, "cmdline", O_RDONLY | O_CLOEXEC);
        char text[CMDLINE_MAX + 1];
        ssize_t n;
        int r;

        if (fd < 0)
                return -errno;
        n = read(fd, text, CMDLINE_MAX);
        if (n < 0)
                return -errno;
        text[n] = '\0';
        for (char *p = text; p < text + n; p += strlen(p) + 1) {
                r = strv_extend(ret, p);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* /proc/PID/stat: pid (comm) state ppid …; comm may hold anything, also ") ". Field 22 is the start time. */
static int read_stat(int proc_fd, uint64_t release_boottime_usec, ProcessRecord *ret)
{
        char text[2048], *open, *close, *p;
        uint64_t ticks = 0, usec;
        int r = file_read_at(proc_fd, "stat", text, sizeof(text));

        if (r < 0)
                return r;
        open = strchr(text, '(');
        close = strrchr(text, ')');
        if (!open || !close || close < open || strlen(close) < 4)
                return -EBADMSG;
        ret->comm = strndup(open + 1, (size_t) (close - open - 1));
        if (!ret->comm)
                return -ENOMEM;
        ret->state = close[2];
        ret->ppid = (pid_t) strtol(close + 3, &p, 10);
        for (unsigned field = 5; field <= 22 && *p; field++)
                ticks = strtoull(p, &p, 10);
        usec = ticks * (USEC_PER_SEC / (uint64_t) sysconf(_SC_CLK_TCK));
        ret->start_usec = usec > release_boottime_usec ? usec - release_boottime_usec : 0;
        return 0;
}

int proc_describe(pid_t pid, uint64_t release_boottime_usec, ProcessRecord *ret)
{
        _cleanup_close_ int fd = -EBADF;
        int r = proc_open_dir(pid, &fd);

        *ret = (ProcessRecord){ .pid = pid, .start_usec = UNKNOWN };
        if (r == 0)
                r = read_stat(fd, release_boottime_usec, ret);
        if (r == 0)
                r = read_argv(fd, &ret->argv);
        return r;
}

/* The kernel tells of an execve(2) a moment before it has put the arguments in place. A program may have
 * none, so it waits for a moment only. */
static int read_new_argv(int proc_fd, char ***ret)
{
        const struct timespec moment = { .tv_nsec = ARGUMENTS_WAIT_NSEC };
        int r = read_argv(proc_fd, ret);

        for (unsigned i = 0; r == 0 && !*ret && i < ARGUMENTS_WAITS; i++) {
                (void) nanosleep(&moment, NULL);
                r = read_argv(proc_fd, ret);
        }
        return r;
}

int proc_program(pid_t pid, char **ret_path, char ***ret_argv)
{
        _cleanup_close_ int fd = -EBADF;
        char path[PATH_MAX];
        ssize_t n;
        int r = proc_open_dir(pid, &fd);

        if (r < 0)
                return r;
        n = readlinkat(fd, "exe", path, sizeof(path));
        if (n <= 0 || n == (ssize_t) sizeof(path))
                return n < 0 ? -errno : -ENAMETOOLONG;
        *ret_path = strndup(path, (size_t) n);
        return *ret_path ? read_new_argv(fd, ret_argv) : -ENOMEM;
}
