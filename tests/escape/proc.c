/* SPDX-License-Identifier: Apache-2.0 */
/* /proc, /sys and control groups: others' entries, and what changes the kernel. */
#include "escape.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <sys/klog.h>
#include <sys/stat.h>

/* Fills in the pid of the victim. */
static const char *of_victim(const char *format)
{
        static char path[PATH_MAX];

        (void) snprintf(path, sizeof(path), "/proc/%s/%s", target("pid"), format);
        return path;
}

static int read_entry(const char *name)
{
        return read_token(of_victim(name));
}

static int read_memory(const char *argument)
{
        char data[64];
        int fd = open(of_victim("mem"), O_RDWR | O_CLOEXEC);

        (void) argument;
        if (fd < 0)
                return refused("open");
        if (pread(fd, data, sizeof(data), (off_t) target_number("address")) < 0)
                return refused("pread");
        return has_token(data, sizeof(data)) ? 0 : without_effect("pread");
}

static int read_descriptor(const char *argument)
{
        char name[32];

        (void) argument;
        (void) snprintf(name, sizeof(name), "fd/%ld", target_number("descriptor"));
        return read_token(of_victim(name));
}

static int list_threads(const char *name)
{
        DIR *directory = opendir(of_victim(name));

        return directory && readdir(directory) ? 0 : refused("opendir");
}

static int search_command_lines(const char *argument)
{
        DIR *directory = opendir("/proc");
        struct dirent *entry;

        (void) argument;
        while (directory && (entry = readdir(directory))) {
                char path[PATH_MAX];

                (void) snprintf(path, sizeof(path), "/proc/%s/cmdline", entry->d_name);
                if (entry->d_name[0] >= '0' && entry->d_name[0] <= '9' && read_token(path) == 0)
                        return 0;
        }
        return without_effect("readdir");
}

static int join_namespace(const char *path)
{
        int fd = open(path, O_RDONLY | O_CLOEXEC);

        if (fd < 0)
                return refused("open");
        return setns(fd, 0) < 0 ? refused("setns") : 0;
}

static int join_victim(const char *name)
{
        return join_namespace(of_victim(name));
}

static int adjust_victim(const char *argument)
{
        char text[16] = "";
        int fd = open(of_victim("oom_score_adj"), O_RDWR | O_CLOEXEC);
        ssize_t n;

        (void) argument;
        if (fd < 0)
                return refused("open");
        n = pread(fd, text, sizeof(text), 0);
        return n <= 0 || write(fd, text, (size_t) n) != n ? refused("write") : 0;
}

static int open_file(const char *path)
{
        char byte;
        int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);

        if (fd < 0)
                return refused("open");
        return read(fd, &byte, 1) < 0 && errno != EAGAIN ? refused("read") : 0;
}

static int open_root(const char *path)
{
        return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC) < 0 ? refused("open") : 0;
}

static int read_log(const char *argument)
{
        static char text[4096];

        (void) argument;
        return klogctl(3 /* SYSLOG_ACTION_READ_ALL */, text, sizeof(text)) < 0 ? refused("syslog") : 0;
}

static int protect_itself(const char *argument)
{
        int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

        (void) argument;
        return fd < 0 || write(fd, "-1000", 5) != 5 ? refused("write") : 0;
}

/* A file of the kernel gets what it has already. */
static int write_back(const char *type, const char *top, const char *path)
{
        char text[512];
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t n;

        if (fd < 0)
                return refused("open");
        n = read(fd, text, sizeof(text));
        (void) close(fd);
        fd = open_kernel_file(type, top, path, O_WRONLY);
        if (fd < 0)
                return refused("open to write");
        return n <= 0 || write(fd, text, (size_t) n) != n ? refused("write") : 0;
}

static int write_sysctl(const char *path)
{
        return write_back("proc", "/proc", path);
}

static int open_proc(const char *path)
{
        return open_kernel_file("proc", "/proc", path, O_WRONLY) < 0 ? refused("open") : 0;
}

static int open_sys(const char *path)
{
        return open_kernel_file("sysfs", "/sys", path, O_WRONLY) < 0 ? refused("open") : 0;
}

static int open_mounted(const char *type)
{
        struct stat st;
        const char *path = fresh_mount(type);

        return path && stat(path, &st) == 0 ? 0 : refused("mount");
}

/* --- control groups --- */

#define CGROUP_TOP "/sys/fs/cgroup"

/* The path of the own control group below the mount; "" in a cgroup namespace. */
static const char *own_cgroup(void)
{
        static char line[PATH_MAX];
        FILE *file = fopen("/proc/self/cgroup", "re");

        line[0] = '\0';
        while (file && fgets(line, sizeof(line), file))
                if (strncmp(line, "0::", 3) == 0)
                        break;
        if (file)
                (void) fclose(file);
        line[strcspn(line, "\n")] = '\0';
        return line[0] ? line + 3 : "";
}

/* Opens a file of a control group, as the mount shows it by its path, by itself, or on a mount of its own. */
static int open_cgroup_file(const char *group, const char *name, int flags)
{
        char path[PATH_MAX + 64];
        int fd;

        (void) snprintf(path, sizeof(path), CGROUP_TOP "%s/%s", group, name);
        fd = open_kernel_file("cgroup2", CGROUP_TOP, path, flags);
        if (fd >= 0)
                return fd;
        (void) snprintf(path, sizeof(path), CGROUP_TOP "/%s", name);
        return open(path, flags | O_CLOEXEC);
}

/* Out of its control group: into a new one beside it. */
static int leave_cgroup(const char *argument)
{
        char path[PATH_MAX + 64], own[PATH_MAX];
        int back, fd;
        bool moved;

        (void) argument;
        (void) snprintf(own, sizeof(own), "%s", own_cgroup());
        back = open_cgroup_file(own, "cgroup.procs", O_WRONLY);
        (void) snprintf(path, sizeof(path), CGROUP_TOP "/bed-escape-%d", getpid());
        if (mkdir(path, 0755) < 0)
                return refused("mkdir");
        (void) strcat(path, "/cgroup.procs");
        fd = open(path, O_WRONLY | O_CLOEXEC);
        moved = fd >= 0 && write(fd, "0", 1) == 1;
        if (moved)
                (void) !write(back, "0", 1);
        *strrchr(path, '/') = '\0';
        (void) rmdir(path);
        return moved ? 0 : refused("cgroup.procs");
}

static int join_cgroup(const char *group)
{
        int fd = open_cgroup_file(group, "cgroup.procs", O_WRONLY);

        return fd < 0 ? refused("open") : 0;
}

static int raise_limit(const char *name)
{
        char text[64] = "";
        int fd = open_cgroup_file(own_cgroup(), name, O_RDWR);
        ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text));

        if (n <= 0)
                return refused("open");
        return pwrite(fd, text, (size_t) n, 0) < 0 ? refused("write") : 0;
}

static int kill_cgroup(const char *key)
{
        return open_cgroup_file(target(key), "cgroup.kill", O_WRONLY) < 0 ? refused("open") : 0;
}

const Attempt proc_attempts[] = {
        { "proc-environ", "reads a process's environment", read_entry, "environ" },
        { "proc-cmdline", "reads a process's arguments", read_entry, "cmdline" },
        { "proc-search", "finds a process by its arguments", search_command_lines, NULL },
        { "proc-mem", "opens a process's memory to write", read_memory, NULL },
        { "proc-root", "reads through a process's root", read_entry, "root/dev/shm/" VICTIM_FILE },
        { "proc-cwd", "reads in a process's directory", read_entry, "cwd/victim" },
        { "proc-fd", "reads through a process's descriptor", read_descriptor, NULL },
        { "proc-task", "lists a process's threads", list_threads, "task" },
        { "proc-oom", "sets a process's score for the OOM killer", adjust_victim, NULL },
        { "proc-join-net", "joins a process's network namespace", join_victim, "ns/net" },
        { "proc-join-mnt", "joins a process's mount namespace", join_victim, "ns/mnt" },
        { "proc-join-ipc", "joins a process's IPC namespace", join_victim, "ns/ipc" },
        { "init-environ", "reads the environment of systemd", open_file, "/proc/1/environ" },
        { "init-root", "opens the root of systemd", open_root, "/proc/1/root/etc" },
        { "init-maps", "reads the memory map of systemd", open_file, "/proc/1/maps" },
        { "init-join", "joins the network namespace of systemd", join_namespace, "/proc/1/ns/net" },
        { "proc-kmsg", "opens the kernel's log", open_file, "/proc/kmsg" },
        { "kernel-log", "reads the kernel's log by syslog(2)", read_log, NULL },
        { "sysrq", "opens /proc/sysrq-trigger", open_proc, "/proc/sysrq-trigger", .vm = true },
        { "core-pattern", "writes the program for core dumps", write_sysctl,
                        "/proc/sys/kernel/core_pattern" },
        { "sysctl-modprobe", "writes the program that loads modules", write_sysctl,
                        "/proc/sys/kernel/modprobe", .vm = true },
        { "sysctl-swappiness", "writes a setting of memory", write_sysctl, "/proc/sys/vm/swappiness" },
        { "oom-protect", "keeps itself from the OOM killer", protect_itself, NULL, .vm = true },
        { "sys-write", "writes a setting in /sys", open_sys, "/sys/kernel/mm/transparent_hugepage/enabled",
                        .vm = true },
        { "sys-uevent", "asks the kernel for an event", open_sys, "/sys/class/net/lo/uevent", .vm = true },
        { "tracefs", "mounts the kernel's tracing", open_mounted, "tracefs", .vm = true },
        { "debugfs", "mounts the kernel's debugging files", open_mounted, "debugfs", .vm = true },
        { "cgroup-leave", "moves itself into another control group", leave_cgroup, NULL },
        { "cgroup-root", "opens the root group's list of processes to write", join_cgroup, "/init.scope" },
        { "cgroup-limits", "writes its own group's limits", raise_limit, "cgroup.max.descendants" },
        { "cgroup-freeze", "writes its own group's freezer", raise_limit, "cgroup.freeze" },
        { "cgroup-kill", "opens another group's cgroup.kill", kill_cgroup, "cgroup" },
        { NULL },
};
