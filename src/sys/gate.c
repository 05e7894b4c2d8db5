/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/gate.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "base/text.h"
#include "sys/file.h"

int gate_open(int *ret_fd, int *ret_stage_fd)
{
        int pair[2], on = 1;

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return -errno;
        /* The stage's end blocks; only ours must not. */
        if (setsockopt(pair[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) < 0 ||
                        fcntl(pair[0], F_SETFL, O_NONBLOCK) < 0) {
                int r = -errno;

                safe_close(pair[0]);
                safe_close(pair[1]);
                return r;
        }
        *ret_fd = pair[0];
        *ret_stage_fd = pair[1];
        return 0;
}

/* Descriptors that nobody asked for are closed, whoever sent them. */
static void read_control(struct msghdr *header, GatePeer *peer)
{
        for (struct cmsghdr *c = CMSG_FIRSTHDR(header); c; c = CMSG_NXTHDR(header, c)) {
                if (c->cmsg_level != SOL_SOCKET)
                        continue;
                if (c->cmsg_type == SCM_CREDENTIALS && c->cmsg_len == CMSG_LEN(sizeof(struct ucred))) {
                        struct ucred credentials;

                        memcpy(&credentials, CMSG_DATA(c), sizeof(credentials));
                        *peer = (GatePeer){ credentials.pid, credentials.uid, credentials.gid };
                } else if (c->cmsg_type == SCM_RIGHTS) {
                        size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

                        for (size_t i = 0; i < n; i++) {
                                int fd;

                                memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
                                safe_close(fd);
                        }
                }
        }
}

int gate_receive(int fd, struct GateMessage *ret, GatePeer *ret_peer)
{
        union {
                struct cmsghdr header;
                char bytes[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(sizeof(int) * 8)];
        } control;
        struct iovec iov = { ret, sizeof(*ret) };
        struct msghdr header = {
                .msg_iov = &iov,
                .msg_iovlen = 1,
                .msg_control = &control,
                .msg_controllen = sizeof(control),
        };
        ssize_t n;

        *ret = (struct GateMessage){ 0 };
        *ret_peer = (GatePeer){ 0 };
        do
                n = recvmsg(fd, &header, MSG_CMSG_CLOEXEC);
        while (n < 0 && errno == EINTR);
        if (n < 0)
                return errno == EAGAIN ? 0 : -errno;
        read_control(&header, ret_peer);
        if (n == 0)
                return -EPIPE;
        ret->path[sizeof(ret->path) - 1] = '\0';
        ret->head_size = MIN(ret->head_size, (uint32_t) sizeof(ret->head));
        if (n != sizeof(*ret) || ret->magic != GATE_MAGIC || ret->step >= _GATE_STEP_MAX || ret->error < 0)
                return -EBADMSG;
        return 1;
}

static int put(int fd, const char *text)
{
        return write_all(fd, text, strlen(text) + 1);
}

static int put_list(int fd, char *const *list)
{
        int r = 0;

        for (size_t i = 0; r == 0 && list && list[i]; i++)
                r = put(fd, list[i]);
        return r;
}

static uint64_t strings_size(char *const *list)
{
        uint64_t size = 0;

        for (size_t i = 0; list && list[i]; i++)
                size += strlen(list[i]) + 1;
        return size;
}

int gate_command(const char *cwd, const char *path, char *const *argv, char *const *env, unsigned mask,
                int *ret_fd)
{
        uint64_t size = strlen(cwd) + strlen(path) + 2 + strings_size(argv) + strings_size(env);
        struct GateCommand command = {
                .magic = GATE_MAGIC,
                .argc = (uint32_t) strv_length(argv),
                .envc = (uint32_t) strv_length(env),
                .umask = mask,
                .strings_size = (uint32_t) size,
        };
        _cleanup_close_ int fd = -EBADF;
        int r;

        if (size > GATE_STRINGS_MAX)
                return -E2BIG;
        fd = memfd_create("qscope-command", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        if (fd < 0)
                return -errno;
        r = write_all(fd, &command, sizeof(command));
        if (r == 0)
                r = put(fd, cwd);
        if (r == 0)
                r = put(fd, path);
        if (r == 0)
                r = put_list(fd, argv);
        if (r == 0)
                r = put_list(fd, env);
        if (r == 0 && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0)
                r = -errno;
        if (r < 0)
                return r;
        *ret_fd = TAKE_FD(fd);
        return 0;
}

int gate_release(int fd, int command_fd, const int streams[static 3], int life_fd)
{
        struct GateMessage release = { .magic = GATE_MAGIC, .kind = GATE_RELEASE };
        int fds[5] = { command_fd, streams[0], streams[1], streams[2], life_fd };
        union {
                struct cmsghdr header;
                char bytes[CMSG_SPACE(sizeof(fds))];
        } control = { 0 };
        struct iovec iov = { &release, sizeof(release) };
        struct msghdr header = {
                .msg_iov = &iov,
                .msg_iovlen = 1,
                .msg_control = &control,
                .msg_controllen = sizeof(control),
        };
        struct cmsghdr *c = CMSG_FIRSTHDR(&header);
        ssize_t n;

        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(fds));
        memcpy(CMSG_DATA(c), fds, sizeof(fds));
        do
                n = sendmsg(fd, &header, MSG_NOSIGNAL);
        while (n < 0 && errno == EINTR);
        if (n < 0)
                return -errno;
        return n == sizeof(release) ? 0 : -EIO;
}
