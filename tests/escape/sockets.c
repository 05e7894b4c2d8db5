/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets of the host's services, the host's network, and kinds of sockets no job needs. */
#include "escape.h"

#include <fcntl.h>
#include <linux/if_packet.h>
#include <linux/if_tun.h>
#include <linux/vm_sockets.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

static int connect_unix(const char *path, size_t length)
{
        static const int types[] = { SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET };
        struct sockaddr_un address = { .sun_family = AF_UNIX };

        if (length > sizeof(address.sun_path))
                return without_effect("name");
        memcpy(address.sun_path, path, length);
        for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
                int fd = socket(AF_UNIX, types[i] | SOCK_CLOEXEC, 0);

                if (fd >= 0 && connect(fd, (struct sockaddr *) &address,
                                               (socklen_t) (offsetof(struct sockaddr_un, sun_path) +
                                                               length)) == 0)
                        return 0;
        }
        return refused("connect");
}

static int connect_path(const char *path)
{
        return connect_unix(path, strlen(path) + 1);
}

static int connect_abstract(const char *argument)
{
        char name[108] = "";
        int n = snprintf(name + 1, sizeof(name) - 1, "bed-%s", token());

        (void) argument;
        return connect_unix(name, (size_t) n + 1);
}

static int connect_tcp(const char *argument)
{
        struct sockaddr_in address = { .sin_family = AF_INET,
                .sin_port = htons((uint16_t) target_number("port")),
                .sin_addr = { htonl(INADDR_LOOPBACK) } };
        char data[64];
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        (void) argument;
        if (fd < 0 || connect(fd, (struct sockaddr *) &address, sizeof(address)) < 0)
                return refused("connect");
        return getpeername(fd, (struct sockaddr *) data, &(socklen_t){ sizeof(data) }) < 0
                               ? refused("getpeername")
                               : 0;
}

static int connect_vsock(const char *argument)
{
        struct sockaddr_vm address = {
                .svm_family = AF_VSOCK, .svm_port = VMADDR_PORT_ANY, .svm_cid = VMADDR_CID_ANY
        };
        int fd = socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC, 0);

        (void) argument;
        if (fd < 0)
                return refused("socket");
        return bind(fd, (struct sockaddr *) &address, sizeof(address)) < 0 ? refused("bind") : 0;
}

/* --- kinds --- */

static int open_packet(const char *argument)
{
        (void) argument;
        return socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_ALL)) < 0 ? refused("socket") : 0;
}

static int open_raw(const char *argument)
{
        (void) argument;
        return socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP) < 0 ? refused("socket") : 0;
}

static int open_raw6(const char *argument)
{
        (void) argument;
        return socket(AF_INET6, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW) < 0 ? refused("socket") : 0;
}

static int open_crypto(const char *argument)
{
        (void) argument;
        return socket(AF_ALG, SOCK_SEQPACKET | SOCK_CLOEXEC, 0) < 0 ? refused("socket") : 0;
}

/* The same flags again: what counts is who may set them. */
static int set_interface(const char *argument)
{
        struct ifreq request = { .ifr_name = "lo" };
        int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

        (void) argument;
        if (fd < 0 || ioctl(fd, SIOCGIFFLAGS, &request) < 0)
                return refused("SIOCGIFFLAGS");
        return ioctl(fd, SIOCSIFFLAGS, &request) < 0 ? refused("SIOCSIFFLAGS") : 0;
}

static int make_tun(const char *path)
{
        struct ifreq request = { .ifr_name = "bed%d", .ifr_flags = IFF_TUN | IFF_NO_PI };
        int fd = open(path, O_RDWR | O_CLOEXEC);

        if (fd < 0)
                return refused("open");
        return ioctl(fd, TUNSETIFF, &request) < 0 ? refused("TUNSETIFF") : 0;
}

static int set_mark(const char *argument)
{
        int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), mark = 1;

        (void) argument;
        return fd < 0 || setsockopt(fd, SOL_SOCKET, SO_MARK, &mark, sizeof(mark)) < 0 ? refused("SO_MARK")
                                                                                      : 0;
}

/* Says to be systemd. */
static int forge_credentials(const char *argument)
{
        union {
                struct cmsghdr head;
                char bytes[CMSG_SPACE(sizeof(struct ucred))];
        } control = { 0 };
        struct iovec data = { (char[1]){ 0 }, 1 };
        struct msghdr message = {
                .msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)
        };
        struct ucred systemd = { .pid = 1 };
        int fds[2];

        (void) argument;
        if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, fds) < 0)
                return refused("socketpair");
        control.head = (struct cmsghdr){ CMSG_LEN(sizeof(systemd)), SOL_SOCKET, SCM_CREDENTIALS };
        memcpy(CMSG_DATA(&control.head), &systemd, sizeof(systemd));
        return sendmsg(fds[0], &message, 0) < 0 ? refused("sendmsg") : 0;
}

/* --- programs that ask for one --- */

static int run(char *const *argv)
{
        char *const env[] = { (char *) "PATH=/usr/bin:/bin", NULL };
        int status, null_fd;
        pid_t pid = fork();

        if (pid == 0) {
                null_fd = open("/dev/null", O_RDWR);
                (void) dup2(null_fd, 0);
                (void) dup2(null_fd, 1);
                (void) dup2(null_fd, 2);
                (void) execve(argv[0], argv, env);
                _exit(127);
        }
        if (pid < 0 || waitpid(pid, &status, 0) < 0)
                return refused("fork");
        return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : without_effect(argv[0]);
}

static int start_unit(const char *argument)
{
        char *const argv[] = { (char *) "/usr/bin/systemd-run", (char *) "--quiet", (char *) "--collect",
                (char *) "--wait", (char *) "true", NULL };

        (void) argument;
        return run(argv);
}

static int ask_bus(const char *argument)
{
        char *const argv[] = { (char *) "/usr/bin/busctl", (char *) "--no-pager", (char *) "list", NULL };

        (void) argument;
        return run(argv);
}

static int ask_manager(const char *argument)
{
        char *const argv[] = { (char *) "/usr/bin/systemctl", (char *) "--no-pager", (char *) "list-units",
                NULL };

        (void) argument;
        return run(argv);
}

const Attempt socket_attempts[] = {
        { "system-bus", "connects to the system bus", connect_path, "/run/dbus/system_bus_socket" },
        { "busctl", "asks the system bus", ask_bus, NULL },
        { "systemd-private", "connects to systemd", connect_path, "/run/systemd/private" },
        { "systemd-notify", "sends systemd notifications", connect_path, "/run/systemd/notify" },
        { "systemd-run", "has systemd run a command", start_unit, NULL },
        { "systemctl", "has systemd list its units", ask_manager, NULL },
        { "journal", "connects to the journal", connect_path, "/run/systemd/journal/socket" },
        { "journal-stdout", "connects to the journal's streams", connect_path,
                        "/run/systemd/journal/stdout" },
        { "syslog", "connects to /dev/log", connect_path, "/dev/log" },
        { "userdb", "asks systemd for users", connect_path, "/run/systemd/userdb/io.systemd.DynamicUser" },
        { "docker", "connects to docker", connect_path, "/run/docker.sock" },
        { "containerd", "connects to containerd", connect_path, "/run/containerd/containerd.sock" },
        { "podman", "connects to podman", connect_path, "/run/podman/podman.sock" },
        { "crio", "connects to CRI-O", connect_path, "/run/crio/crio.sock" },
        { "service", "connects to a service's socket in /srv", connect_path, "/srv/bed-escape.socket" },
        { "abstract", "connects to an abstract socket", connect_abstract, NULL },
        { "loopback", "connects to a server on the loopback", connect_tcp, NULL },
        { "vsock", "listens on the machine's own channel", connect_vsock, NULL, .vm = true },
        { "packet", "opens a packet socket", open_packet, NULL },
        { "raw", "opens a raw socket", open_raw, NULL },
        { "raw6", "opens a raw socket of IPv6", open_raw6, NULL },
        { "alg", "opens a socket of the kernel's ciphers", open_crypto, NULL, .vm = true },
        { "interface", "sets up a network interface", set_interface, NULL },
        { "tun", "makes a network interface", make_tun, "/dev/net/tun" },
        { "mark", "marks packets", set_mark, NULL },
        { "credentials", "says it is systemd", forge_credentials, NULL },
        { NULL },
};
