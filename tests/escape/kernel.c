/* SPDX-License-Identifier: Apache-2.0 */
/* Other doors of the kernel: keys, programs in it, devices, identities, clocks, terminals. */
#include "escape.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <linux/io_uring.h>
#include <linux/perf_event.h>
#include <linux/userfaultfd.h>
#include <sys/acct.h>
#include <sys/fanotify.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/timex.h>
#include <sys/utsname.h>
#include <time.h>

static int add_key(const char *argument)
{
        (void) argument;
        return syscall(SYS_add_key, "user", "bed-own", "x", (size_t) 1, -1 /* the thread's */) < 0
                               ? refused("add_key")
                               : 0;
}

static int join_session(const char *argument)
{
        (void) argument;
        return syscall(SYS_keyctl, 1 /* KEYCTL_JOIN_SESSION_KEYRING */, NULL) < 0 ? refused("keyctl") : 0;
}

static int request_key(const char *argument)
{
        (void) argument;
        if (syscall(SYS_add_key, "user", "bed-own", "x", (size_t) 1, -1) < 0)
                return refused("add_key");
        return syscall(SYS_request_key, "user", "bed-own", NULL, 0) < 0 ? refused("request_key") : 0;
}

static int io_uring(const char *argument)
{
        struct io_uring_params parameters = { 0 };

        (void) argument;
        return syscall(SYS_io_uring_setup, 4, &parameters) < 0 ? refused("io_uring_setup") : 0;
}

static int bpf_map(const char *argument)
{
        union bpf_attr attributes = {
                .map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1
        };

        (void) argument;
        return syscall(SYS_bpf, BPF_MAP_CREATE, &attributes, sizeof(attributes)) < 0 ? refused("bpf") : 0;
}

/* All processes of one processor. */
static int perf_all(const char *argument)
{
        struct perf_event_attr attributes = {
                .type = PERF_TYPE_SOFTWARE, .size = sizeof(attributes), .config = PERF_COUNT_SW_CPU_CLOCK
        };

        (void) argument;
        return syscall(SYS_perf_event_open, &attributes, -1, 0, -1, 0) < 0 ? refused("perf_event_open") : 0;
}

static int user_faults(const char *argument)
{
        (void) argument;
        return syscall(SYS_userfaultfd, O_CLOEXEC) < 0 ? refused("userfaultfd") : 0;
}

static int watch_files(const char *path)
{
        int fd = fanotify_init(FAN_CLASS_CONTENT | FAN_CLOEXEC, O_RDONLY);

        if (fd < 0)
                return refused("fanotify_init");
        return fanotify_mark(fd, FAN_MARK_ADD | FAN_MARK_MOUNT, FAN_OPEN, AT_FDCWD, path) < 0
                               ? refused("fanotify_mark")
                               : 0;
}

/* Calls of another architecture have other numbers, which a filter has to know too. */
static int other_numbers(const char *argument)
{
        (void) argument;
#ifdef __x86_64__
        long r;

        __asm__ volatile("int $0x80" : "=a"(r) : "a"(20L /* getpid */) : "memory", "r8", "r9", "r10", "r11");
        errno = r < 0 ? (int) -r : 0;
        return r == getpid() ? 0 : refused("int 0x80");
#else
        errno = ENOSYS;
        return refused("int 0x80");
#endif
}

static int change_personality(const char *argument)
{
        (void) argument;
        return personality(ADDR_NO_RANDOMIZE) < 0 ? refused("personality") : 0;
}

static int stop_accounting(const char *argument)
{
        (void) argument;
        return acct(NULL) < 0 ? refused("acct") : 0;
}

static int io_ports(const char *argument)
{
        (void) argument;
#ifdef SYS_iopl
        return syscall(SYS_iopl, 3) < 0 ? refused("iopl") : 0;
#else
        errno = ENOSYS;
        return refused("iopl");
#endif
}

/* The names that they have. */
static int set_host_name(const char *argument)
{
        struct utsname names;

        (void) argument;
        (void) uname(&names);
        return sethostname(names.nodename, strlen(names.nodename)) < 0 ? refused("sethostname") : 0;
}

static int set_domain_name(const char *argument)
{
        struct utsname names;

        (void) argument;
        (void) uname(&names);
        return setdomainname(names.domainname, strlen(names.domainname)) < 0 ? refused("setdomainname") : 0;
}

static int set_clock(const char *argument)
{
        struct timespec now;

        (void) argument;
        (void) clock_gettime(CLOCK_REALTIME, &now);
        return clock_settime(CLOCK_REALTIME, &now) < 0 ? refused("clock_settime") : 0;
}

static int tune_clock(const char *argument)
{
        struct timex change = { .modes = ADJ_MAXERROR, .maxerror = 16000000 };

        (void) argument;
        return clock_adjtime(CLOCK_REALTIME, &change) < 0 ? refused("clock_adjtime") : 0;
}

/* --- identities --- */

static int become_root(const char *argument)
{
        (void) argument;
        return setresuid(0, 0, 0) < 0 ? refused("setresuid") : 0;
}

static int join_groups(const char *argument)
{
        gid_t group = 0;

        (void) argument;
        return setgroups(1, &group) < 0 ? refused("setgroups") : 0;
}

static int raise_ambient(const char *argument)
{
        struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
        struct __user_cap_data_struct data[2] = { 0 };

        (void) argument;
        data[0].effective = data[0].permitted = data[0].inheritable = 1u << CAP_SYS_PTRACE;
        if (syscall(SYS_capset, &header, data) < 0)
                return refused("capset");
        return prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_SYS_PTRACE, 0, 0) < 0 ? refused("ambient") : 0;
}

static int lock_capabilities(const char *argument)
{
        (void) argument;
        return prctl(PR_SET_SECUREBITS, 1 /* SECBIT_NOROOT */) < 0 ? refused("securebits") : 0;
}

/* --- devices --- */

/* "c 1 1 r": by a node of its own, since a bed has none. */
static int open_device(const char *text)
{
        char kind = 0, way = 0;
        unsigned major_number = 0, minor_number = 0;
        int fd;

        if (sscanf(text, "%c %u %u %c", &kind, &major_number, &minor_number, &way) != 4)
                return without_effect("device");
        (void) unlink("bed-node");
        if (mknod("bed-node", (kind == 'b' ? S_IFBLK : S_IFCHR) | 0600, makedev(major_number, minor_number)) <
                        0)
                return refused("mknod");
        fd = open("bed-node", (way == 'w' ? O_WRONLY : O_RDONLY) | O_NONBLOCK | O_CLOEXEC);
        (void) unlink("bed-node");
        return fd < 0 ? refused("open") : 0;
}

/* The test names the numbers of a disk of the machine. */
static int open_disk(const char *key)
{
        return open_device(target(key));
}

/* --- terminals --- */

#define TERMINALS 6

static int terminal(int i)
{
        static const char *const names[] = { "/dev/tty", "/dev/console", "/dev/tty1" };

        return i < 3 ? i : open(names[i - 3], O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
}

/* The kernel takes 32 bits of the request. A filter that compares 64 lets the others pass. */
static int terminal_request(unsigned long request, void *data)
{
        int error = ENOTTY;

        for (int i = 0; i < TERMINALS; i++) {
                int fd = terminal(i);

                if (fd >= 0 && syscall(SYS_ioctl, fd, request, data) >= 0)
                        return 0;
                if (errno != ENOTTY && errno != EBADF)
                        error = errno;
        }
        errno = error;
        return refused("ioctl");
}

#define HIGH_BITS (5UL << 32)

static int type_keys(const char *argument)
{
        char key = ' ';

        (void) argument;
        return terminal_request(TIOCSTI, &key);
}

static int type_keys_high(const char *argument)
{
        char key = ' ';

        (void) argument;
        return terminal_request(TIOCSTI | HIGH_BITS, &key);
}

/* A question that changes nothing, by the call that also pastes: TIOCL_GETSHIFTSTATE. */
static int paste(const char *argument)
{
        char code = 6;

        (void) argument;
        return terminal_request(TIOCLINUX, &code);
}

static int paste_high(const char *argument)
{
        char code = 6;

        (void) argument;
        return terminal_request(TIOCLINUX | HIGH_BITS, &code);
}

static int open_terminal(const char *key)
{
        int fd = open(target(key), O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);

        return fd < 0 ? refused("open") : isatty(fd) ? 0 : without_effect("isatty");
}

const Attempt kernel_attempts[] = {
        { "add-key", "adds a key to the kernel's", add_key, NULL },
        { "join-keyring", "joins a session keyring", join_session, NULL },
        { "request-key", "asks the kernel for a key", request_key, NULL },
        { "io-uring", "has the kernel work unseen", io_uring, NULL },
        { "bpf", "makes a map for programs in the kernel", bpf_map, NULL },
        { "perf", "watches all processes of a processor", perf_all, NULL },
        { "userfaultfd", "handles page faults", user_faults, NULL },
        { "fanotify", "watches every file that is opened", watch_files, "/usr" },
        { "int80", "calls the kernel by other numbers", other_numbers, NULL, .vm = true },
        { "personality", "changes how programs are laid out", change_personality, NULL },
        { "acct", "turns the accounting of processes off", stop_accounting, NULL },
        { "iopl", "talks to the hardware", io_ports, NULL, .vm = true },
        { "hostname", "sets the host's name", set_host_name, NULL },
        { "domainname", "sets the domain's name", set_domain_name, NULL },
        { "clock-set", "sets the clock", set_clock, NULL, .vm = true },
        { "clock-adjust", "tunes the clock", tune_clock, NULL, .vm = true },
        { "setuid", "becomes root", become_root, NULL },
        { "setgroups", "joins root's group", join_groups, NULL },
        { "ambient", "keeps a capability over execve", raise_ambient, NULL },
        { "securebits", "changes the rules of capabilities", lock_capabilities, NULL },
        { "dev-null", "makes a device node", open_device, "c 1 3 w" },
        { "dev-mem", "opens the machine's memory", open_device, "c 1 1 r", .vm = true },
        { "dev-kmsg", "writes to the kernel's log", open_device, "c 1 11 w", .vm = true },
        { "dev-disk", "opens a disk", open_disk, "disk", .vm = true },
        { "dev-loop", "opens the loop devices' control", open_device, "c 10 237 r", .vm = true },
        { "dev-fuse", "opens FUSE", open_device, "c 10 229 r", .vm = true },
        { "tiocsti", "types into the caller's terminal", type_keys, NULL },
        { "tiocsti-high", "the same with high bits in the request", type_keys_high, NULL },
        { "tioclinux", "asks the console", paste, NULL, .vm = true },
        { "tioclinux-high", "the same with high bits in the request", paste_high, NULL, .vm = true },
        { "terminal", "opens a terminal of the host by its name", open_terminal, "terminal" },
        { NULL },
};
