/* SPDX-License-Identifier: Apache-2.0 */
#include "run/guard.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/array.h"
#include "core/plan.h"
#include "run/rundir.h"
#include "sys/cgroup.h"
#include "sys/closing.h"

#define END_TIMEOUT_MSEC 10000

typedef struct Watched {
        char (*ids)[RUN_ID_MAX];
        size_t n, room;
} Watched;

/* The end of the socket comes while qscope still ends: its locks may be held for a moment, as long as it
 * takes the kernel to close everything. */
static void wait_for_end(int pidfd)
{
        struct pollfd p = { .fd = pidfd, .events = POLLIN };

        (void) poll(&p, 1, END_TIMEOUT_MSEC);
}

/* A run that is watched already is over. */
static void toggle(Watched *watched, const char id[static RUN_ID_MAX])
{
        void *larger;

        for (size_t i = 0; i < watched->n; i++) {
                if (!streq(watched->ids[i], id))
                        continue;
                watched->n--;
                memmove(watched->ids[i], watched->ids[watched->n], RUN_ID_MAX);
                return;
        }
        larger = array_grow(watched->ids, watched->n, &watched->room, RUN_ID_MAX);
        /* Its lock tells of it, too; only later. */
        if (!larger)
                return;
        watched->ids = larger;
        memcpy(watched->ids[watched->n++], id, RUN_ID_MAX);
}

/* At once: from now on what the jobs start is let through unseen. */
static void kill_all(const Watched *watched)
{
        for (size_t i = 0; i < watched->n; i++) {
                char slice[64];

                (void) snprintf(slice, sizeof(slice), "qscope-%s.slice", watched->ids[i]);
                (void) cgroup_kill_slice(slice);
        }
}

/* Nothing must live longer than qscope through us: its locks, its output, what watches its jobs. */
static void keep_only(int a, int b)
{
        unsigned first = (unsigned) MIN(a, b), second = (unsigned) MAX(a, b);

        (void) close_range(3, first - 1, 0);
        (void) close_range(first + 1, second - 1, 0);
        (void) close_range(second + 1, ~0u, 0);
}

static _Noreturn void guard(int fd, int pidfd)
{
        Watched watched = { 0 };
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
        keep_only(fd, pidfd);
        if (chdir("/") < 0)
                _exit(1);
        for (;;) {
                char id[RUN_ID_MAX] = "";

                n = closing_receive(fd, id, RUN_ID_MAX - 1);
                if (n == RUN_ID_MAX - 1)
                        toggle(&watched, id);
                else
                        break;
        }
        if (n == 0) {
                kill_all(&watched);
                wait_for_end(pidfd);
                (void) rundir_clean(NULL, NULL);
        }
        _exit(0);
}

int guard_start(Guard *ret)
{
        _cleanup_close_ int pidfd = (int) syscall(SYS_pidfd_open, getpid(), 0);
        int pair[2];
        pid_t pid;

        if (pidfd < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return -errno;
        pid = fork();
        if (pid == 0)
                guard(pair[0], pidfd);
        safe_close(pair[0]);
        if (pid < 0) {
                int r = -errno;

                safe_close(pair[1]);
                return r;
        }
        ret->fd = pair[1];
        return 0;
}

int guard_toggle(Guard *guard, const char *run_id)
{
        ssize_t n = send(guard->fd, run_id, RUN_ID_MAX - 1, MSG_NOSIGNAL | MSG_DONTWAIT);

        return n < 0 ? -errno : 0;
}

void guard_dismiss(Guard *guard)
{
        if (guard->fd < 0)
                return;
        /* Nobody waits for it: it may still be closing, or be stopped. */
        (void) send(guard->fd, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
        guard->fd = safe_close(guard->fd);
}
