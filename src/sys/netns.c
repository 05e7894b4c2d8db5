/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/netns.h"

#include <fcntl.h>
#include <net/if.h>
#include <pthread.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/text.h"

typedef struct Visit {
        int netns_fd; /* < 0: a new one */
        NetnsFunction function;
        void *userdata;
        int r;
} Visit;

static void *visit(void *argument)
{
        Visit *v = argument;

        if (v->netns_fd < 0 ? unshare(CLONE_NEWNET) < 0 : setns(v->netns_fd, CLONE_NEWNET) < 0)
                v->r = -errno;
        else
                v->r = v->function(v->userdata);
        return NULL;
}

/* A thread of its own: should the way back fail, qscope would be left without the host's network. */
static int visit_wait(Visit *v)
{
        pthread_t thread;
        int r = pthread_create(&thread, NULL, visit, v);

        if (r != 0)
                return -r;
        (void) pthread_join(thread, NULL);
        return v->r;
}

int netns_call(int netns_fd, NetnsFunction function, void *userdata)
{
        Visit v = { .netns_fd = netns_fd, .function = function, .userdata = userdata };

        return netns_fd < 0 ? -EBADF : visit_wait(&v);
}

/* netdevice(7) */
static int loopback_up(void)
{
        _cleanup_close_ int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP };

        return fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request) < 0 ? -errno : 0;
}

static int open_own(void *userdata)
{
        int fd = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC), r;

        if (fd < 0)
                return -errno;
        r = loopback_up();
        if (r < 0) {
                safe_close(fd);
                return r;
        }
        *(int *) userdata = fd;
        return 0;
}

int netns_new(int *ret_fd, Error *e)
{
        Visit v = { .netns_fd = -EBADF, .function = open_own, .userdata = ret_fd };
        int r = visit_wait(&v);

        return r < 0 ? error_errno(e, r, "a network namespace for the job") : 0;
}

typedef struct SocketCall {
        int family, type, protocol;
} SocketCall;

static int call_socket(void *userdata)
{
        const SocketCall *call = userdata;
        int fd = socket(call->family, call->type | SOCK_CLOEXEC, call->protocol);

        return fd < 0 ? -errno : fd;
}

int netns_socket(int netns_fd, int family, int type, int protocol)
{
        SocketCall call = { family, type, protocol };

        return netns_call(netns_fd, call_socket, &call);
}

char *netns_path(int netns_fd)
{
        return text_printf("/proc/%d/fd/%d", (int) getpid(), netns_fd);
}
