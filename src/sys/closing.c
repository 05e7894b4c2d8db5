/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/closing.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

void closing_take(Closing *closing, int *fds, size_t n)
{
        int *larger = reallocarray(closing->fds, closing->n + n + 1, sizeof(int));

        if (larger)
                closing->fds = larger;
        for (size_t i = 0; i < n; i++) {
                if (larger && fds[i] >= 0)
                        closing->fds[closing->n++] = TAKE_FD(fds[i]);
                else
                        fds[i] = safe_close(fds[i]);
        }
}

static int compare(const void *a, const void *b)
{
        const int *x = a, *y = b;

        return *x < *y ? -1 : *x > *y;
}

/* Holds the sorted descriptors until the pipe, one of them, is closed at its other end. Everything else must
 * not live longer than qscope: its lock, its output. */
static _Noreturn void hold(const int *fds, size_t n, int pipe_fd)
{
        unsigned from = 0;
        char byte;

        (void) prctl(PR_SET_NAME, "closing", 0, 0, 0);
        for (size_t i = 0; i < n; i++) {
                if ((unsigned) fds[i] > from)
                        (void) close_range(from, (unsigned) fds[i] - 1, 0);
                from = (unsigned) fds[i] + 1;
        }
        (void) close_range(from, ~0u, 0);
        while (read(pipe_fd, &byte, 1) < 0 && errno == EINTR)
                ;
        _exit(0);
}

/* A child whose end is told to nobody, so that nobody mistakes it for another one. */
static pid_t fork_silently(void)
{
        struct clone_args args = { .exit_signal = 0 };

        return (pid_t) syscall(SYS_clone3, &args, sizeof(args));
}

void closing_finish(Closing *closing)
{
        int pair[2] = { -EBADF, -EBADF };
        pid_t pid = -1;

        /* Those of earlier runs. */
        while (waitpid(-1, NULL, WNOHANG | (int) __WCLONE) > 0)
                ;
        if (closing->n > 0 && pipe2(pair, O_CLOEXEC) == 0) {
                closing->fds[closing->n++] = pair[0];
                qsort(closing->fds, closing->n, sizeof(int), compare);
                pid = fork_silently();
        }
        if (pid == 0)
                hold(closing->fds, closing->n, pair[0]);
        for (size_t i = 0; i < closing->n; i++)
                safe_close(closing->fds[i]);
        safe_close(pair[1]); /* and now the other one may, too */
        free(closing->fds);
        *closing = (Closing){ 0 };
}
