/* SPDX-License-Identifier: Apache-2.0 */
/* What an exec may have left to the command: the gate's socket, descriptors of who started it. */
#include "escape.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define DESCRIPTORS 4096

static int find_descriptor(const char *argument)
{
        (void) argument;
        for (int fd = 3; fd < DESCRIPTORS; fd++)
                if (fcntl(fd, F_GETFD) >= 0)
                        return 0;
        return without_effect("fcntl");
}

/* Whatever its number: standard input was the gate. */
static int talk_to_gate(const char *argument)
{
        (void) argument;
        for (int fd = 0; fd < DESCRIPTORS; fd++)
                if (send(fd, "ready", 5, MSG_DONTWAIT | MSG_NOSIGNAL) == 5)
                        return 0;
        return without_effect("send");
}

static int find_directory(const char *argument)
{
        struct stat st;

        (void) argument;
        for (int fd = 0; fd < DESCRIPTORS; fd++)
                if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode) && fchdir(fd) == 0)
                        return 0;
        return without_effect("fchdir");
}

static int find_environment(const char *name)
{
        return getenv(name) ? 0 : without_effect("getenv");
}

const Attempt own_attempts[] = {
        { "inherited", "finds a descriptor that was left open", find_descriptor, NULL },
        { "gate", "talks to the gate over its socket", talk_to_gate, NULL },
        { "inherited-directory", "finds a directory of the host that was left open", find_directory, NULL },
        { "inherited-secret", "finds a secret in its environment", find_environment, "SECRET_TOKEN" },
        { NULL },
};
