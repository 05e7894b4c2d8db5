/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/closing.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/prctl.h>
#include <sys/wait.h>

static int compare(const void *a, const void *b)
{
        const int *x = a, *y = b;

        return *x < *y ? -1 : *x > *y;
}

/* Sorted, each at most once. Everything else must not live longer than qscope: its lock, its output. */
static void only_keep(const int *fds, size_t n)
{
        unsigned from = 0;

        for (size_t i = 0; i < n; i++) {
                if ((unsigned) fds[i] > from)
                        (void) close_range(from, (unsigned) fds[i] - 1, 0);
                from = (unsigned) fds[i] + 1;
        }
        (void) close_range(from, ~0u, 0);
}

static _Noreturn void hold(int *fds, size_t n, int pipe_fd)
{
        char byte;

        /* Nobody's child, so that nobody has to wait for it. */
        if (fork() != 0)
                _exit(0);
        (void) prctl(PR_SET_NAME, "closing", 0, 0, 0);
        fds[n++] = pipe_fd;
        qsort(fds, n, sizeof(int), compare);
        only_keep(fds, n);
        while (read(pipe_fd, &byte, 1) < 0 && errno == EINTR)
                ;
        _exit(0);
}

/* The numbers that are none are left out; there is room for one more. */
static int *copy_valid(const int *fds, size_t n, size_t *ret_n)
{
        int *copy = calloc(n + 1, sizeof(int));

        *ret_n = 0;
        for (size_t i = 0; copy && i < n; i++)
                if (fds[i] >= 0)
                        copy[(*ret_n)++] = fds[i];
        return copy;
}

void close_later(int *fds, size_t n)
{
        size_t valid = 0;
        _cleanup_free_ int *copy = copy_valid(fds, n, &valid);
        int pair[2] = { -EBADF, -EBADF };
        pid_t pid = -1;

        if (copy && valid > 0 && pipe2(pair, O_CLOEXEC) == 0)
                pid = fork();
        if (pid == 0)
                hold(copy, valid, pair[0]);
        for (size_t i = 0; i < n; i++)
                fds[i] = safe_close(fds[i]);
        safe_close(pair[0]);
        safe_close(pair[1]); /* and now the other may close them */
        while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
                ;
}
