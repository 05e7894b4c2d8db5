/* SPDX-License-Identifier: Apache-2.0 */

/* qscope-stage: systemd starts it inside the job's finished sandbox. It reports, waits at the gate for the
 * command, and becomes it. Static, and without malloc, so that it needs nothing of the root it runs in and
 * next to none of the job's memory. Any failure is an errno sent back, never a guess. */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <linux/close_range.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "stage/protocol.h"

#define SOCKET_FD 3
#define N_FDS     5 /* command, stdin, stdout, stderr, life: closed by the exec */

static struct GateMessage message;

static void copy_path(const char *path)
{
        size_t length = strlen(path);

        if (length >= sizeof(message.path))
                length = sizeof(message.path) - 1;
        memcpy(message.path, path, length);
        message.path[length] = '\0';
}

static void send_message(enum GateKind kind)
{
        message.magic = GATE_MAGIC;
        message.kind = kind;
        while (send(SOCKET_FD, &message, sizeof(message), MSG_NOSIGNAL) < 0 && errno == EINTR)
                ;
}

static _Noreturn void fail(enum GateStep step, int error)
{
        message.step = step;
        message.error = error;
        send_message(GATE_FAILED);
        _exit(127);
}

/* Waits for RELEASE; end of file means that qscope is gone or changed its mind, and nothing is run. */
static void receive_release(int fds[static N_FDS])
{
        struct GateMessage release;
        union {
                struct cmsghdr header;
                char bytes[CMSG_SPACE(sizeof(int) * N_FDS)];
        } control;
        struct iovec iov = { &release, sizeof(release) };
        struct msghdr header = {
                .msg_iov = &iov,
                .msg_iovlen = 1,
                .msg_control = &control,
                .msg_controllen = sizeof(control),
        };
        struct cmsghdr *c;
        ssize_t n;

        do
                n = recvmsg(SOCKET_FD, &header, MSG_CMSG_CLOEXEC);
        while (n < 0 && errno == EINTR);
        if (n <= 0)
                _exit(127);
        c = CMSG_FIRSTHDR(&header);
        if (n != sizeof(release) || release.magic != GATE_MAGIC || release.kind != GATE_RELEASE || !c ||
                        c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS ||
                        c->cmsg_len != CMSG_LEN(sizeof(int) * N_FDS))
                fail(GATE_STEP_PREPARE, EBADMSG);
        memcpy(fds, CMSG_DATA(c), sizeof(int) * N_FDS);
}

/* Maps the memfd and lays argv and environment out over its strings. */
static char **map_command(int fd, struct GateCommand **ret, char **ret_cwd, char **ret_path)
{
        struct GateCommand *command;
        struct stat st;
        char **vector, *p, *end;
        size_t n;

        if (fstat(fd, &st) < 0)
                fail(GATE_STEP_PREPARE, errno);
        if (st.st_size < (off_t) sizeof(*command) ||
                        st.st_size > (off_t) (sizeof(*command) + GATE_STRINGS_MAX))
                fail(GATE_STEP_PREPARE, EBADMSG);
        command = mmap(NULL, (size_t) st.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
        if (command == MAP_FAILED)
                fail(GATE_STEP_PREPARE, errno);
        if (command->magic != GATE_MAGIC || st.st_size != (off_t) (sizeof(*command) + command->strings_size))
                fail(GATE_STEP_PREPARE, EBADMSG);
        n = (size_t) command->argc + command->envc + 2;
        vector = mmap(NULL, (n + 2) * sizeof(char *), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                        0);
        if (vector == MAP_FAILED)
                fail(GATE_STEP_PREPARE, errno);
        p = (char *) (command + 1);
        end = p + command->strings_size;
        *ret_cwd = *ret_path = NULL;
        for (size_t i = 0, at = 0; i < n; i++) {
                char *next = memchr(p, '\0', (size_t) (end - p));

                if (!next)
                        fail(GATE_STEP_PREPARE, EBADMSG);
                if (i == 0)
                        *ret_cwd = p;
                else if (i == 1)
                        *ret_path = p;
                else
                        vector[at++] = p;
                if (i == (size_t) command->argc + 1)
                        vector[at++] = NULL; /* ends argv; the environment follows */
                p = next + 1;
        }
        *ret = command;
        return vector;
}

/* The signals systemd or libc left ignored or blocked are the job's to find at their defaults. */
static void reset_signals(void)
{
        struct sigaction action = { .sa_handler = SIG_DFL };
        sigset_t none;

        for (int signal_number = 1; signal_number < NSIG; signal_number++)
                (void) sigaction(signal_number, &action, NULL);
        (void) sigemptyset(&none);
        (void) sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Adds what helps to tell why the file could not be executed; with the job's own rights, so nothing leaks. */
static void describe(const char *path)
{
        struct stat st;
        ssize_t n;
        int fd;

        copy_path(path);
        message.mode = 0;
        message.head_size = 0;
        if (stat(path, &st) < 0)
                return;
        message.mode = st.st_mode;
        if (!S_ISREG(st.st_mode))
                return;
        fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        if (fd < 0)
                return;
        n = read(fd, message.head, sizeof(message.head));
        message.head_size = n > 0 ? (uint32_t) n : 0;
        (void) close(fd);
}

/* One candidate. Returns the errno; ENOENT only if there is no such file. */
static int try_exec(const char *path, char **argv, char **env, bool *ret_exists)
{
        int error;

        *ret_exists = faccessat(AT_FDCWD, path, F_OK, 0) == 0;
        if (!*ret_exists)
                return errno;
        copy_path(path);
        send_message(GATE_TRYING);
        (void) execve(path, argv, env);
        error = errno;
        describe(path);
        return error;
}

/* As execvp(3), but for these: no shell for a file without "#!", the last file that exists is named, and a
 * missing interpreter is told from a missing file. */
static _Noreturn void execute(const char *search, char **argv, char **env)
{
        int error = ENOENT, kept = 0;
        bool exists;

        if (strchr(argv[0], '/')) {
                error = try_exec(argv[0], argv, env, &exists);
                if (!exists)
                        copy_path(argv[0]);
                fail(GATE_STEP_EXEC, error);
        }
        for (const char *p = search;; p++) {
                char path[GATE_PATH_MAX];
                size_t length = strcspn(p, ":"), name = strlen(argv[0]);

                /* An element that makes too long a path cannot hold it. */
                if (length + name + 2 <= sizeof(path)) {
                        memcpy(path, p, length);
                        if (length > 0)
                                path[length++] = '/';
                        memcpy(path + length, argv[0], name + 1);
                        error = try_exec(path, argv, env, &exists);
                        if (exists && error != EACCES)
                                fail(GATE_STEP_EXEC, error);
                        if (exists && kept == 0)
                                kept = error;
                }
                p += strcspn(p, ":");
                if (*p == '\0')
                        break;
        }
        if (kept == 0)
                message.path[0] = '\0';
        fail(GATE_STEP_EXEC, kept != 0 ? kept : ENOENT);
}

int main(void)
{
        struct GateCommand *command;
        int fds[N_FDS];
        char **vector, *cwd, *path;

        /* Standard input is the socket. It moves to a descriptor of its own that the exec closes. */
        if (dup3(STDIN_FILENO, SOCKET_FD, O_CLOEXEC) < 0)
                return 127;
        (void) close(STDIN_FILENO);
        send_message(GATE_READY);
        receive_release(fds);
        vector = map_command(fds[0], &command, &cwd, &path);
        for (int i = 1; i < N_FDS; i++) {
                if (fds[i] <= STDERR_FILENO)
                        fail(GATE_STEP_PREPARE, EBADF);
        }
        for (int i = STDIN_FILENO; i <= STDERR_FILENO; i++) {
                if (dup2(fds[i + 1], i) < 0)
                        fail(GATE_STEP_PREPARE, errno);
        }
        if (close_range(SOCKET_FD, ~0u, CLOSE_RANGE_CLOEXEC) < 0)
                fail(GATE_STEP_PREPARE, errno);
        reset_signals();
        (void) umask(command->umask);
        if (chdir(cwd) < 0) {
                int error = errno;

                copy_path(cwd);
                fail(GATE_STEP_CHDIR, error);
        }
        execute(path, vector, vector + command->argc + 1);
}
