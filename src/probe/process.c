/* SPDX-License-Identifier: Apache-2.0 */
/* Processes: what stays, what hides, what is over in a moment. Every one of them ends by itself in the end.
 */
#include "probe/probe.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#define LIFE_SEC 60 /* of whatever is left behind */

static int deed_nothing(char **arguments)
{
        (void) arguments;
        return DEED_DONE;
}

/* Long enough to be looked at: a program that no mount has is told of only when it runs. */
static int deed_linger(char **arguments)
{
        const struct timespec pause = { .tv_nsec = 400 * 1000 * 1000 };

        (void) arguments;
        (void) nanosleep(&pause, NULL);
        return DEED_DONE;
}

static void live_on(void)
{
        (void) alarm(LIFE_SEC);
        for (;;)
                (void) pause();
}

/* Tells the first process how the deed went, then stays. */
static _Noreturn void become_daemon(int report_fd, char **words)
{
        int null_fd = open("/dev/null", O_RDWR), status;

        for (int fd = 0; fd < 3; fd++)
                (void) dup2(null_fd, fd);
        status = deed_run(words);
        (void) !write(report_fd, &status, sizeof(status));
        (void) close(report_fd);
        if (status != DEED_DONE)
                _exit(status);
        live_on();
        _exit(0);
}

/* A double fork: who did it is gone before anybody looks, and its child belongs to nobody. */
static int deed_daemon(char **arguments)
{
        int fds[2], status = DEED_REFUSED;
        pid_t pid;

        if (pipe2(fds, O_CLOEXEC) < 0)
                return deed_refused("pipe");
        pid = fork();
        if (pid < 0)
                return deed_refused("fork");
        if (pid == 0) {
                (void) setsid();
                if (fork() == 0)
                        become_daemon(fds[1], arguments);
                _exit(0);
        }
        (void) close(fds[1]);
        (void) waitpid(pid, NULL, 0);
        if (read(fds[0], &status, sizeof(status)) != sizeof(status))
                return deed_refused("report");
        return status;
}

static int wait_status(pid_t pid)
{
        int status;

        if (pid < 0 || waitpid(pid, &status, 0) < 0)
                return -1;
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int spawn(char *const *argv)
{
        pid_t pid = fork();

        if (pid == 0) {
                (void) execv("/proc/self/exe", argv);
                _exit(127);
        }
        return wait_status(pid);
}

/* Children that execute a program and are gone within a millisecond, one after the other. */
static int deed_spawn(char **arguments)
{
        char *const argv[] = { (char *) "quick", (char *) "nothing", NULL };
        unsigned long n = strtoul(arguments[0], NULL, 10);

        for (unsigned long i = 0; i < n; i++)
                if (spawn(argv) != 0)
                        return deed_refused("spawn");
        return DEED_DONE;
}

static int deed_child(char **arguments)
{
        pid_t pid = fork();
        int status;

        if (pid == 0)
                _exit(deed_run(arguments));
        status = wait_status(pid);
        return status < 0 ? deed_refused("child") : status;
}

/* Calls itself something else, by its arguments and by its name, and does not end with its parent. */
static int deed_disguise(char **arguments)
{
        char *const argv[] = { arguments[0], (char *) "daemon", (char *) "rename", arguments[0], NULL };

        return spawn(argv) == 0 ? DEED_DONE : deed_refused("spawn");
}

static int deed_rename(char **arguments)
{
        return prctl(PR_SET_NAME, arguments[0]) < 0 ? deed_refused("prctl") : DEED_DONE;
}

/* A program that never was a file. */
static int deed_memfd(char **arguments)
{
        char *const argv[] = { (char *) "ghost", (char *) "linger", NULL }, *const env[] = { NULL };
        int fd = memfd_create("ghost", MFD_CLOEXEC), self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
        char buffer[65536];
        ssize_t n;
        pid_t pid;

        (void) arguments;
        if (fd < 0 || self < 0)
                return deed_refused("memfd_create");
        while ((n = read(self, buffer, sizeof(buffer))) > 0)
                if (write(fd, buffer, (size_t) n) != n)
                        return deed_refused("write");
        pid = fork();
        if (pid == 0) {
                (void) fexecve(fd, argv, env);
                _exit(127);
        }
        return wait_status(pid) == 0 ? DEED_DONE : deed_refused("fexecve");
}

/* Opens a file and removes its name: a daemon keeps what nobody finds. */
static int deed_deleted(char **arguments)
{
        int fd = open(arguments[0], O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0700);

        if (fd < 0 || write(fd, "hidden\n", 7) != 7 || unlink(arguments[0]) < 0)
                return deed_refused("open");
        return DEED_DONE;
}

/* At most so many at once, and fewer where the kernel says no; then all of them end. */
static int deed_swarm(char **arguments)
{
        unsigned long n = strtoul(arguments[0], NULL, 10), started = 0;
        int fds[2], refused = 0;
        char byte;

        if (pipe2(fds, O_CLOEXEC) < 0)
                return deed_refused("pipe");
        for (; started < n; started++) {
                pid_t pid = fork();

                if (pid < 0) {
                        refused = errno;
                        break;
                }
                if (pid == 0) {
                        (void) close(fds[1]);
                        (void) alarm(LIFE_SEC);
                        (void) !read(fds[0], &byte, 1);
                        _exit(0);
                }
        }
        (void) close(fds[1]);
        while (wait(NULL) > 0)
                ;
        errno = refused;
        return refused ? deed_refused("fork") : DEED_DONE;
}

static int deed_memory(char **arguments)
{
        size_t size = strtoul(arguments[0], NULL, 10) << 20;
        char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        if (memory == MAP_FAILED)
                return deed_refused("mmap");
        memset(memory, 'q', size);
        return memory[size - 1] == 'q' ? DEED_DONE : DEED_REFUSED;
}

static int deed_burn(char **arguments)
{
        struct timespec begin, now;
        long limit = strtol(arguments[0], NULL, 10);

        (void) clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
        do
                (void) clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
        while (now.tv_sec - begin.tv_sec < limit);
        return DEED_DONE;
}

static int deed_stubborn(char **arguments)
{
        (void) arguments;
        for (int number = 1; number < 32; number++)
                (void) signal(number, SIG_IGN);
        (void) signal(SIGALRM, SIG_DFL);
        live_on();
        return DEED_DONE;
}

static int deed_kill(char **arguments)
{
        pid_t pid = arguments[0][0] == 's' ? getpid() : (pid_t) strtol(arguments[0], NULL, 10);

        return kill(pid, (int) strtol(arguments[1], NULL, 10)) < 0 ? deed_refused("kill") : DEED_DONE;
}

static int deed_ptrace(char **arguments)
{
        pid_t pid = (pid_t) strtol(arguments[0], NULL, 10);

        return ptrace(PTRACE_SEIZE, pid, NULL, NULL) < 0 ? deed_refused("ptrace") : DEED_DONE;
}

const Deed process_deeds[] = {
        { "nothing", "", 0, deed_nothing },
        { "linger", "", 0, deed_linger },
        { "daemon", "DEED [ARGUMENT...]", -1, deed_daemon },
        { "child", "DEED [ARGUMENT...]", -1, deed_child },
        { "spawn", "N", 1, deed_spawn },
        { "disguise", "NAME", 1, deed_disguise },
        { "rename", "NAME", 1, deed_rename },
        { "memfd", "", 0, deed_memfd },
        { "deleted", "PATH", 1, deed_deleted },
        { "swarm", "N", 1, deed_swarm },
        { "memory", "MIB", 1, deed_memory },
        { "burn", "SECONDS", 1, deed_burn },
        { "stubborn", "", 0, deed_stubborn },
        { "kill", "PID|self SIGNAL", 2, deed_kill },
        { "ptrace", "PID", 1, deed_ptrace },
        { NULL },
};
