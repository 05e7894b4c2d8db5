/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/closing.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "test.h"

#define MANY 600 /* more than fit into two messages */

/* The pipe's other end: whether anybody still holds this one. */
static bool is_held(int read_fd)
{
        char byte;
        ssize_t n = read(read_fd, &byte, 1);

        return n < 0 && errno == EAGAIN;
}

static int *dup_many(int fd)
{
        int *fds = calloc(MANY, sizeof(int));

        for (size_t i = 0; fds && i < MANY; i++)
                fds[i] = i == 7 ? -EBADF : fcntl(fd, F_DUPFD_CLOEXEC, 3);
        return fds;
}

/* They are held on their way, and closed by whoever receives them; what else is sent comes through. */
TEST(the_other_end_closes)
{
        Closing closing = { 0 };
        int pipe_fds[2], pair[2], *fds;
        char text[8] = "";

        REQUIRE(pipe2(pipe_fds, O_CLOEXEC | O_NONBLOCK) == 0);
        REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
        fds = dup_many(pipe_fds[1]);
        REQUIRE(fds);
        closing_take(&closing, fds, MANY);
        CHECK_EQ(fds[0], -EBADF);
        CHECK_EQ(closing.n, MANY - 1);
        safe_close(pipe_fds[1]);
        closing_finish(&closing, pair[1]);
        CHECK_EQ(closing.n, 0);
        CHECK(is_held(pipe_fds[0]));
        CHECK_EQ(send(pair[1], "word", 4, 0), 4);
        CHECK_EQ(closing_receive(pair[0], text, sizeof(text)), 4);
        CHECK_STR(text, "word");
        CHECK(!is_held(pipe_fds[0]));
        safe_close(pair[1]);
        CHECK_EQ(closing_receive(pair[0], text, sizeof(text)), 0);
        safe_close(pair[0]);
        safe_close(pipe_fds[0]);
        free(fds);
}

/* Who has no room for a single descriptor gets none, and what comes next all the same. */
TEST(no_room_at_the_other_end)
{
        Closing closing = { 0 };
        struct rlimit before, none;
        int pipe_fds[2], pair[2];
        char text[8] = "";

        REQUIRE(pipe2(pipe_fds, O_CLOEXEC | O_NONBLOCK) == 0);
        REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
        closing_take(&closing, &pipe_fds[1], 1);
        closing_finish(&closing, pair[1]);
        CHECK_EQ(send(pair[1], "word", 4, 0), 4);
        REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
        none = (struct rlimit){ 0, before.rlim_max };
        REQUIRE(setrlimit(RLIMIT_NOFILE, &none) == 0);
        CHECK_EQ(closing_receive(pair[0], text, sizeof(text)), 4);
        REQUIRE(setrlimit(RLIMIT_NOFILE, &before) == 0);
        CHECK_STR(text, "word");
        CHECK(!is_held(pipe_fds[0]));
        safe_close(pair[0]);
        safe_close(pair[1]);
        safe_close(pipe_fds[0]);
}

/* Nobody there, or nobody who reads: they are closed all the same. */
TEST(nobody_at_the_other_end)
{
        for (int way = 0; way < 2; way++) {
                Closing closing = { 0 };
                int pipe_fds[2], pair[2] = { -EBADF, -EBADF };

                REQUIRE(pipe2(pipe_fds, O_CLOEXEC | O_NONBLOCK) == 0);
                if (way == 1) {
                        REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
                        pair[0] = safe_close(pair[0]);
                }
                closing_take(&closing, &pipe_fds[1], 1);
                closing_finish(&closing, pair[1]);
                CHECK(!is_held(pipe_fds[0]));
                safe_close(pipe_fds[0]);
                safe_close(pair[1]);
        }
}

TEST_MAIN
