/* SPDX-License-Identifier: Apache-2.0 */
#include "run/guard.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "run/rundir.h"
#include "sys/cgroup.h"

#define END_TIMEOUT_MSEC 10000

/* The end of the pipe comes while qscope still ends: its lock may be held for a moment, as long as it takes
 * the kernel to close everything. */
static void wait_for_end(int pidfd)
{
        struct pollfd p = { .fd = pidfd, .events = POLLIN };

        if (pidfd >= 0)
                (void) poll(&p, 1, END_TIMEOUT_MSEC);
}

static _Noreturn void guard(int fd, int pidfd, const char *slice)
{
        char byte;
        ssize_t n;
        sigset_t all;

        /* Ctrl-C and a closed terminal are meant for qscope; the guard is there for what follows. */
        (void) sigfillset(&all);
        (void) sigprocmask(SIG_BLOCK, &all, NULL);
        (void) setsid();
        (void) prctl(PR_SET_NAME, "qscope-guard", 0, 0, 0);
        /* A reader of qscope's output must not wait for the guard. */
        for (int i = 0; i < 3; i++) {
                int null = open("/dev/null", O_RDWR | O_CLOEXEC);

                if (null >= 0 && null != i) {
                        (void) dup2(null, i);
                        (void) close(null);
                }
        }
        if (chdir("/") < 0)
                _exit(1);
        do
                n = read(fd, &byte, 1);
        while (n < 0 && errno == EINTR);
        if (n == 0) {
                /* At once: from now on what the job starts is let through unseen. */
                (void) cgroup_kill_slice(slice);
                wait_for_end(pidfd);
                (void) rundir_clean(NULL, NULL);
        }
        _exit(0);
}

int guard_start(const char *slice, Guard *ret)
{
        _cleanup_close_ int pidfd = (int) syscall(SYS_pidfd_open, getpid(), 0);
        int pair[2];
        pid_t pid;

        if (pipe2(pair, O_CLOEXEC) < 0)
                return -errno;
        pid = fork();
        if (pid == 0) {
                (void) close(pair[1]);
                guard(pair[0], pidfd, slice);
        }
        safe_close(pair[0]);
        if (pid < 0) {
                int r = -errno;

                safe_close(pair[1]);
                return r;
        }
        *ret = (Guard){ .fd = pair[1], .pid = pid };
        return 0;
}

void guard_dismiss(Guard *guard)
{
        if (guard->fd < 0)
                return;
        (void) !write(guard->fd, "", 1);
        guard->fd = safe_close(guard->fd);
        while (waitpid(guard->pid, NULL, 0) < 0 && errno == EINTR)
                ;
}
