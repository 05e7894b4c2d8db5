/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/closing.h"

#include <sys/socket.h>

#define FDS_MAX 253u /* in one message: SCM_MAX_FD of the kernel (unix(7)) */

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

typedef union Control {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int[FDS_MAX]))];
} Control;

static void give(const int *fds, size_t n, int socket_fd)
{
        char byte = 0;
        struct iovec iov = { &byte, 1 };
        Control control = { 0 };
        struct msghdr message = { .msg_iov = &iov,
                .msg_iovlen = 1,
                .msg_control = &control,
                .msg_controllen = CMSG_SPACE(n * sizeof(int)) };

        control.header = (struct cmsghdr){
                .cmsg_len = CMSG_LEN(n * sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS
        };
        memcpy(CMSG_DATA(&control.header), fds, n * sizeof(int));
        (void) sendmsg(socket_fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void closing_finish(Closing *closing, int socket_fd)
{
        for (size_t i = 0; socket_fd >= 0 && i < closing->n; i += FDS_MAX)
                give(closing->fds + i, MIN(closing->n - i, (size_t) FDS_MAX), socket_fd);
        for (size_t i = 0; i < closing->n; i++)
                safe_close(closing->fds[i]);
        free(closing->fds);
        *closing = (Closing){ 0 };
}

/* One message; whether it was one of ours. */
static ssize_t receive(int socket_fd, void *data, size_t size, bool *ret_ours)
{
        struct iovec iov = { data, size };
        Control control;
        struct msghdr message = {
                .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)
        };
        ssize_t n;

        *ret_ours = false;
        do
                n = recvmsg(socket_fd, &message, MSG_CMSG_CLOEXEC);
        while (n < 0 && errno == EINTR);
        if (n < 0)
                return -errno;
        /* Without room for a single one nothing else tells of them. */
        *ret_ours = message.msg_flags & MSG_CTRUNC;
        for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c)) {
                size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

                if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
                        continue;
                *ret_ours = true;
                for (size_t i = 0; i < count; i++) {
                        int fd;

                        memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
                        safe_close(fd);
                }
        }
        return n;
}

ssize_t closing_receive(int socket_fd, void *data, size_t size)
{
        ssize_t n;
        bool ours;

        do
                n = receive(socket_fd, data, size, &ours);
        while (ours);
        return n;
}
