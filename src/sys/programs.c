/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/programs.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <sched.h>
#include <sys/fanotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>

#include "base/text.h"
#include "sys/file.h"
#include "sys/mount.h"

/* What is kept of an execve(2). The kernel takes up to 128 KiB an argument, and more of them than this. */
#define ARGS_MAX      1024u
#define ARGS_SIZE_MAX KIB(64)
#define FILENAME_SIZE 4096u
#define PAGE_SIZE     4096u /* or a part of one: no read crosses into a page that may not be there */
#define STATUS_SIZE   KIB(4)
/* Answered at once; the others have their turn after the deadline and the output. An answer may take long: to
 * digest a file that a job made large costs the job nothing. */
#define EVENTS_MAX  256u
#define ANSWER_USEC (50 * USEC_PER_MSEC)
/* An event is there a moment before its process sleeps; a long one where the job is over its share of CPU.
 * What is waited for that is bounded for all that are answered at once. */
#define SLEEP_YIELDS 50u
#define SLEEP_WAITS  100u
#define SLEEP_USEC   1000u

struct Programs {
        int fd, root_fd;
        unsigned waits; /* left, of those for processes to sleep */
        uint64_t lost;
        char *unwatched; /* the first mount that could not be marked */
};

void programs_give(Programs *programs, Closing *closing)
{
        if (programs)
                closing_take(closing, &programs->fd, 1);
}

Programs *programs_free(Programs *programs)
{
        if (!programs)
                return NULL;
        safe_close(programs->fd);
        safe_close(programs->root_fd);
        free(programs->unwatched);
        free(programs);
        return NULL;
}

const char *programs_unwatched(const Programs *programs)
{
        return programs->unwatched;
}

int programs_fd(const Programs *programs)
{
        return programs->fd;
}

uint64_t programs_lost(const Programs *programs)
{
        return programs->lost;
}

/* --- opening --- */

static bool has_option(const char *options, const char *wanted)
{
        size_t length = strlen(wanted);

        for (const char *p = options; p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL)
                if (strncmp(p, wanted, length) == 0 && (p[length] == ',' || p[length] == '\0'))
                        return true;
        return false;
}

static int mark(void *userdata, const char *target, const char *options)
{
        Programs *programs = userdata;

        if (has_option(options, "noexec"))
                return 0;
        if (fanotify_mark(programs->fd, FAN_MARK_ADD | FAN_MARK_MOUNT, FAN_OPEN_EXEC_PERM, programs->root_fd,
                            target[1] ? target + 1 : ".") == 0)
                return 0;
        /* Under another mount, where the job cannot reach it either. */
        if (errno == ENOENT || errno == ENOTDIR)
                return 0;
        if (!programs->unwatched)
                programs->unwatched = strdup(target);
        return programs->unwatched ? 0 : -ENOMEM;
}

int programs_open(int proc_fd, Programs **ret, Error *e)
{
        _cleanup_(programs_freep) Programs *programs = calloc(1, sizeof(*programs));
        int r;

        if (!programs)
                return -ENOMEM;
        programs->root_fd = openat(proc_fd, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
        programs->fd = fanotify_init(FAN_CLASS_CONTENT | FAN_CLOEXEC | FAN_NONBLOCK | FAN_REPORT_TID |
                                                     FAN_UNLIMITED_QUEUE | FAN_UNLIMITED_MARKS,
                        O_RDONLY | O_LARGEFILE | O_CLOEXEC | O_NOATIME);
        if (programs->root_fd < 0 || programs->fd < 0)
                return error_errno(e, -errno, "fanotify_init");
        r = mount_visit(proc_fd, mark, programs);
        if (r < 0)
                return error_errno(e, r, "the job's mounts");
        *ret = TAKE_PTR(programs);
        return 0;
}

/* --- what a process that waits in execve(2) gave to it --- */

typedef struct Call {
        pid_t tid;
        int proc_fd;
        long number;
        uint64_t args[4];
        char line[512];
        char filename[FILENAME_SIZE];
} Call;

/* /proc/PID/syscall: the number, six arguments, stack and instruction pointer, or "running" (proc(5)). */
static int read_call(Programs *programs, Call *call)
{
        _cleanup_close_ int fd = openat(call->proc_fd, "syscall", O_RDONLY | O_CLOEXEC);
        char *p = call->line;

        if (fd < 0)
                return -errno;
        for (unsigned i = 0;; i++) {
                ssize_t n = pread(fd, call->line, sizeof(call->line) - 1, 0);

                if (n <= 0)
                        return n < 0 ? -errno : -ESRCH;
                call->line[n] = '\0';
                if (!startswith(call->line, "running"))
                        break;
                if (i < SLEEP_YIELDS)
                        (void) sched_yield();
                else if (programs->waits > 0)
                        programs->waits -= usleep(SLEEP_USEC) == 0;
                else
                        return -EAGAIN;
        }
        call->number = strtol(p, &p, 10);
        for (size_t i = 0; i < ELEMENTSOF(call->args); i++)
                call->args[i] = strtoull(p, &p, 16);
        return call->number == SYS_execve || call->number == SYS_execveat ? 0 : -ENODATA;
}

/* Not beyond the end of a page: the next one may not be there. */
static ssize_t read_memory(pid_t tid, uint64_t address, void *buffer, size_t size)
{
        size_t room = PAGE_SIZE - (size_t) (address % PAGE_SIZE), n = MIN(size, room);
        struct iovec local = { buffer, n }, remote = { .iov_len = n };

        /* An address of another process, which is no pointer here. */
        memcpy(&remote.iov_base, &address, sizeof(remote.iov_base));
        return process_vm_readv(tid, &local, 1, &remote, 1, 0);
}

/* Up to size - 1 bytes. 1: there was more, 0, or a negative errno. */
static int read_string(pid_t tid, uint64_t address, char *buffer, size_t size)
{
        size_t used = 0;

        while (used < size - 1) {
                ssize_t n = read_memory(tid, address + used, buffer + used, size - 1 - used);

                if (n <= 0)
                        return n < 0 ? -errno : -EFAULT;
                if (memchr(buffer + used, '\0', (size_t) n))
                        return 0;
                used += (size_t) n;
        }
        buffer[used] = '\0';
        return 1;
}

static int read_pointer(pid_t tid, uint64_t address, uint64_t *ret)
{
        char bytes[sizeof(uint64_t)];

        for (size_t used = 0; used < sizeof(bytes);) {
                ssize_t n = read_memory(tid, address + used, bytes + used, sizeof(bytes) - used);

                if (n <= 0)
                        return n < 0 ? -errno : -EFAULT;
                used += (size_t) n;
        }
        memcpy(ret, bytes, sizeof(bytes));
        return 0;
}

/* As it stands in the memory of the job, which another thread of it may change after us. */
static int read_argv(const Call *call, char ***ret, bool *ret_cut)
{
        uint64_t list = call->args[call->number == SYS_execveat ? 2 : 1], address = 0;
        _cleanup_free_ char *text = malloc(ARGS_SIZE_MAX);
        _cleanup_strv_ char **argv = strv_new(ARGS_MAX);
        size_t used = 0;
        int r = 0;

        if (!text || !argv)
                return -ENOMEM;
        *ret_cut = false;
        for (size_t n = 0; list != 0; n++, list += sizeof(uint64_t)) {
                r = read_pointer(call->tid, list, &address);
                if (r < 0 || address == 0)
                        break;
                if (n == ARGS_MAX || used + 2 > ARGS_SIZE_MAX) {
                        *ret_cut = true;
                        break;
                }
                r = read_string(call->tid, address, text + used, ARGS_SIZE_MAX - used);
                if (r < 0)
                        break;
                *ret_cut = r == 1;
                argv[n] = strdup(text + used);
                if (!argv[n])
                        return -ENOMEM;
                used += strlen(text + used) + 1;
        }
        if (r < 0)
                return r;
        *ret = TAKE_PTR(argv);
        return 0;
}

static int open_call(Programs *programs, pid_t tid, Call *call)
{
        char path[32];
        int r;

        *call = (Call){ .tid = tid };
        (void) snprintf(path, sizeof(path), "/proc/%d", (int) tid);
        call->proc_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (call->proc_fd < 0)
                return -errno;
        r = read_call(programs, call);
        if (r == 0)
                r = read_string(tid, call->args[call->number == SYS_execveat ? 1 : 0], call->filename,
                                sizeof(call->filename));
        return r < 0 ? r : 0;
}

/* All files of one call have the same; the next call has another, since a retry with everything equal has the
 * same outcome. FNV-1a. */
static uint64_t identify(const Call *call)
{
        const char *texts[] = { call->line, call->filename };
        uint64_t hash = UINT64_C(14695981039346656037) ^ (uint64_t) call->tid;

        for (size_t i = 0; i < ELEMENTSOF(texts); i++)
                for (const char *p = texts[i]; *p; p++)
                        hash = (hash ^ (uint8_t) *p) * UINT64_C(1099511628211);
        return hash;
}

/* The kernel's own resolution of what was named, once more, and only to compare: descriptors of the job's
 * (/proc/self/fd/3) would be ours here, and are refused. */
static int find_named(const Programs *programs, const Call *call, struct stat *ret)
{
        bool at = call->number == SYS_execveat;
        struct open_how how = { .flags = O_PATH | O_CLOEXEC,
                .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
        const char *name = call->filename;
        _cleanup_close_ int fd = -EBADF;
        char path[32] = "cwd";

        if (at && (int) call->args[0] != AT_FDCWD)
                (void) snprintf(path, sizeof(path), "fd/%d", (int) call->args[0]);
        if (*name == '\0')
                return at && fstatat(call->proc_fd, path, ret, 0) == 0 ? 0 : -ENOENT;
        if (*name != '/') {
                char target[FILENAME_SIZE], whole[2 * FILENAME_SIZE];
                ssize_t n = readlinkat(call->proc_fd, path, target, sizeof(target) - 1);

                if (n <= 0 || target[0] != '/')
                        return -ENOENT;
                target[n] = '\0';
                (void) snprintf(whole, sizeof(whole), "%s/%s", target, name);
                fd = (int) syscall(SYS_openat2, programs->root_fd, whole, &how, sizeof(how));
        } else {
                fd = (int) syscall(SYS_openat2, programs->root_fd, name, &how, sizeof(how));
        }
        return fd < 0 || fstat(fd, ret) < 0 ? -errno : 0;
}

static bool is_named(const Programs *programs, const Call *call, int fd)
{
        struct stat named = { 0 }, file = { 0 };

        return find_named(programs, call, &named) == 0 && fstat(fd, &file) == 0 &&
               named.st_ino == file.st_ino && named.st_dev == file.st_dev;
}

/* What cannot be read is taken for one: what follows it is looked at more closely then. */
static bool is_script(int fd)
{
        char start[2] = "";

        return pread(fd, start, sizeof(start), 0) < 0 || memcmp(start, "#!", sizeof(start)) == 0;
}

static pid_t status_pid(const char *status, const char *name)
{
        char value[16] = "";

        (void) text_field(status, name, value, sizeof(value));
        return (pid_t) strtol(value, NULL, 10);
}

static void read_ids(const Call *call, ProgramStart *start)
{
        char status[STATUS_SIZE];

        if (file_read_at(call->proc_fd, "status", status, sizeof(status)) < 0)
                return;
        start->pid = status_pid(status, "Tgid");
        start->ppid = status_pid(status, "PPid");
}

static void read_name(const Call *call, ProgramStart *start)
{
        const char *slash = strrchr(call->filename, '/');

        (void) snprintf(start->name, sizeof(start->name), "%.15s", slash ? slash + 1 : call->filename);
}

/* As the job sees it: the root of its mount namespace is its own. */
static char *read_path(int fd)
{
        char link[32], path[PATH_MAX];
        ssize_t n;

        (void) snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
        n = readlink(link, path, sizeof(path) - 1);
        return n > 0 ? strndup(path, (size_t) n) : NULL;
}

static uint64_t now_usec(void)
{
        struct timespec now;

        (void) clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t) now.tv_sec * USEC_PER_SEC + (uint64_t) now.tv_nsec / NSEC_PER_USEC;
}

/* Nothing here waits for the job but for it to sleep. */
static bool ask(Programs *programs, pid_t tid, int fd, ProgramsHandler handler, void *userdata)
{
        _cleanup_free_ char *path = read_path(fd);
        _cleanup_strv_ char **argv = NULL;
        ProgramStart start = { .pid = tid, .tid = tid, .usec = now_usec(), .path = path };
        bool allow;
        Call call;
        int r = open_call(programs, tid, &call);

        if (r == 0) {
                start.call = identify(&call);
                start.called = call.filename;
                read_ids(&call, &start);
                read_name(&call, &start);
                (void) read_argv(&call, &argv, &start.argv_cut);
                start.argv = argv;
                start.is_program = is_named(programs, &call, fd);
                start.is_script = is_script(fd);
        } else if (r == -EAGAIN || r == -ENOMEM || r == -EMFILE || r == -ENFILE) {
                programs->lost++;
        } /* else it was killed meanwhile, and starts nothing */
        allow = handler(userdata, &start, fd);
        safe_close(call.proc_fd);
        return allow;
}

static void answer(Programs *programs, const struct fanotify_event_metadata *event, ProgramsHandler handler,
                void *userdata)
{
        struct fanotify_response response = { event->fd, FAN_ALLOW };

        if (event->fd < 0) { /* the queue was full, or the file could not be opened for us */
                programs->lost++;
                return;
        }
        if (!ask(programs, event->pid, event->fd, handler, userdata))
                response.response = FAN_DENY;
        /* Fails when the process was killed meanwhile. */
        (void) !write(programs->fd, &response, sizeof(response));
        safe_close(event->fd);
}

int programs_answer(Programs *programs, ProgramsHandler handler, void *userdata)
{
        /* One at a time: each event that is read holds a descriptor and a process. */
        _Alignas(struct fanotify_event_metadata) char buffer[FAN_EVENT_METADATA_LEN];

        uint64_t until = now_usec() + ANSWER_USEC;

        programs->waits = SLEEP_WAITS;
        for (unsigned i = 0; i == 0 || (i < EVENTS_MAX && now_usec() < until); i++) {
                struct fanotify_event_metadata event;
                ssize_t n = read(programs->fd, buffer, sizeof(buffer));

                if (n < 0 && (errno == EAGAIN || errno == EINTR))
                        return 0;
                /* What cannot be opened for us has been refused by the kernel. */
                if (n < 0 && errno != EMFILE && errno != ENFILE && errno != ENOMEM) {
                        programs->lost++;
                        continue;
                }
                if (n < 0)
                        return -errno;
                memcpy(&event, buffer, sizeof(event));
                if (n != (ssize_t) sizeof(event) || event.vers != FANOTIFY_METADATA_VERSION)
                        return -EBADMSG;
                answer(programs, &event, handler, userdata);
        }
        return 0;
}
