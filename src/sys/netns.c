/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/netns.h"

#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/text.h"
#include "sys/namespace.h"

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
        int r = namespace_call_new(CLONE_NEWNET, open_own, ret_fd);

        return r < 0 ? error_errno(e, r, "a network namespace for the job") : 0;
}

char *netns_path(int netns_fd)
{
        return text_printf("/proc/%d/fd/%d", (int) getpid(), netns_fd);
}
