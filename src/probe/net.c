/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets: listening, connecting, asking. Everything that waits gives up after some seconds. */
#include "probe/probe.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/vm_sockets.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>
#include <poll.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

#define ANSWER_MSEC 5000

typedef struct Address {
        union {
                struct sockaddr any;
                struct sockaddr_in in;
                struct sockaddr_in6 in6;
        };
        socklen_t size;
} Address;

static int parse(const char *text, const char *port, Address *ret)
{
        uint16_t number = htons((uint16_t) strtoul(port, NULL, 10));

        memset(ret, 0, sizeof(*ret));
        if (inet_pton(AF_INET, text, &ret->in.sin_addr) == 1) {
                ret->in.sin_family = AF_INET;
                ret->in.sin_port = number;
                ret->size = sizeof(ret->in);
                return 0;
        }
        if (inet_pton(AF_INET6, text, &ret->in6.sin6_addr) == 1) {
                ret->in6.sin6_family = AF_INET6;
                ret->in6.sin6_port = number;
                ret->size = sizeof(ret->in6);
                return 0;
        }
        errno = EINVAL;
        return -1;
}

/* Descriptors are left open on purpose: a daemon keeps them. */
static int open_listener(const char *text, const char *port)
{
        Address address;
        int one = 1, fd;

        if (parse(text, port, &address) < 0)
                return -1;
        fd = socket(address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0)
                return -1;
        (void) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
        if (bind(fd, &address.any, address.size) < 0 || listen(fd, 4) < 0) {
                (void) close(fd);
                return -1;
        }
        return fd;
}

static int deed_listen(char **arguments)
{
        return open_listener(arguments[0], arguments[1]) < 0 ? deed_refused("listen") : DEED_DONE;
}

static int wait_for(int fd, short events)
{
        struct pollfd entry = { .fd = fd, .events = events };
        int error = 0;
        socklen_t size = sizeof(error);

        if (poll(&entry, 1, ANSWER_MSEC) <= 0) {
                errno = ETIMEDOUT;
                return -1;
        }
        if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0)
                return -1;
        errno = error;
        return error ? -1 : 0;
}

static int open_connection(const char *text, const char *port, int type)
{
        Address address;
        int fd;

        if (parse(text, port, &address) < 0)
                return -1;
        fd = socket(address.any.sa_family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return -1;
        if (connect(fd, &address.any, address.size) < 0 &&
                        (errno != EINPROGRESS || wait_for(fd, POLLOUT) < 0)) {
                int saved = errno;

                (void) close(fd);
                errno = saved;
                return -1;
        }
        return fd;
}

static int deed_connect(char **arguments)
{
        return open_connection(arguments[0], arguments[1], SOCK_STREAM) < 0 ? deed_refused("connect")
                                                                            : DEED_DONE;
}

/* A server and its client in one process, closed again. */
static int deed_loopback(char **arguments)
{
        int server = open_listener(arguments[0], arguments[1]), client, peer;
        char byte = 0;

        if (server < 0)
                return deed_refused("listen");
        client = open_connection(arguments[0], arguments[1], SOCK_STREAM);
        if (client < 0)
                return deed_refused("connect");
        peer = accept4(server, NULL, NULL, SOCK_CLOEXEC);
        if (peer < 0 || write(peer, "x", 1) != 1 || wait_for(client, POLLIN) < 0 ||
                        read(client, &byte, 1) != 1 || byte != 'x')
                return deed_refused("talk");
        (void) close(client);
        (void) close(peer);
        (void) close(server);
        return DEED_DONE;
}

static int ask(const char *address, const char *port, const void *question, size_t size)
{
        char answer[512];
        int fd = open_connection(address, port, SOCK_DGRAM);

        if (fd < 0)
                return deed_refused("connect");
        if (send(fd, question, size, 0) < 0)
                return deed_refused("send");
        if (wait_for(fd, POLLIN) < 0 || recv(fd, answer, sizeof(answer), 0) < 0)
                return deed_refused("answer");
        return DEED_DONE;
}

static int deed_udp(char **arguments)
{
        return ask(arguments[0], arguments[1], "qscope", 6);
}

static void read_nameserver(char *address, size_t size)
{
        FILE *f = fopen("/etc/resolv.conf", "re");
        static const char key[] = "nameserver ";
        char line[256];

        (void) snprintf(address, size, "127.0.0.1");
        while (f && fgets(line, sizeof(line), f))
                if (strncmp(line, key, sizeof(key) - 1) == 0) {
                        line[strcspn(line, "\n")] = '\0';
                        (void) snprintf(address, size, "%.60s", line + sizeof(key) - 1);
                        break;
                }
        if (f)
                (void) fclose(f);
}

/* One A question by hand (RFC 1035): a static libc has no resolver. An answer of "no such name" is one, but
 * the name was not found: refused. */
static int deed_dns(char **arguments)
{
        uint8_t packet[300] = { 0x71, 0x73, 1, 0, 0, 1 }, answer[512];
        char server[64], *rest, *label, name[200];
        size_t used = 12;
        ssize_t n;
        int fd;

        read_nameserver(server, sizeof(server));
        (void) snprintf(name, sizeof(name), "%s", arguments[0]);
        for (label = strtok_r(name, ".", &rest); label; label = strtok_r(NULL, ".", &rest)) {
                size_t length = strlen(label);

                packet[used++] = (uint8_t) length;
                memcpy(packet + used, label, length);
                used += length;
        }
        memcpy(packet + used, "\0\0\1\0\1", 5);
        used += 5;
        fd = open_connection(server, "53", SOCK_DGRAM);
        if (fd < 0 || send(fd, packet, used, 0) < 0)
                return deed_refused("ask");
        if (wait_for(fd, POLLIN) < 0)
                return deed_refused("answer");
        n = recv(fd, answer, sizeof(answer), 0);
        if (n < 12)
                return deed_refused("answer");
        errno = ENOENT;
        return (answer[3] & 0xf) == 0 ? DEED_DONE : deed_refused("name");
}

/* As ping(8) does it: an ICMP socket, or else a raw one. */
static int deed_ping(char **arguments)
{
        struct icmphdr echo = { .type = ICMP_ECHO, .checksum = htons(0xf7ff) };
        int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_ICMP);
        char answer[128];
        Address address;

        if (fd < 0)
                fd = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP);
        if (fd < 0)
                return deed_refused("socket");
        if (parse(arguments[0], "0", &address) < 0 || connect(fd, &address.any, address.size) < 0 ||
                        send(fd, &echo, sizeof(echo), 0) < 0)
                return deed_refused("send");
        if (wait_for(fd, POLLIN) < 0 || recv(fd, answer, sizeof(answer), 0) < 0)
                return deed_refused("answer");
        return DEED_DONE;
}

static int deed_raw(char **arguments)
{
        int fd = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW);

        (void) arguments;
        return fd < 0 ? deed_refused("socket") : DEED_DONE;
}

static int deed_packet(char **arguments)
{
        int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);

        (void) arguments;
        return fd < 0 ? deed_refused("socket") : DEED_DONE;
}

static int deed_vsock(char **arguments)
{
        struct sockaddr_vm address = { .svm_family = AF_VSOCK,
                .svm_cid = VMADDR_CID_HOST,
                .svm_port = (unsigned) strtoul(arguments[0], NULL, 10) };
        int fd = socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC, 0);

        if (fd < 0)
                return deed_refused("socket");
        return connect(fd, (struct sockaddr *) &address, sizeof(address)) < 0 ? deed_refused("connect")
                                                                              : DEED_DONE;
}

static int fill_unix(const char *name, struct sockaddr_un *ret, socklen_t *ret_size)
{
        size_t length = strlen(name);

        *ret = (struct sockaddr_un){ .sun_family = AF_UNIX };
        if (length >= sizeof(ret->sun_path))
                return -1;
        memcpy(ret->sun_path, name, length);
        if (name[0] == '@')
                ret->sun_path[0] = '\0';
        *ret_size = (socklen_t) (offsetof(struct sockaddr_un, sun_path) + length + (name[0] != '@'));
        return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

static int deed_unix_listen(char **arguments)
{
        struct sockaddr_un address;
        socklen_t size;
        int fd = fill_unix(arguments[0], &address, &size);

        if (fd < 0 || bind(fd, (struct sockaddr *) &address, size) < 0 || listen(fd, 4) < 0)
                return deed_refused("listen");
        return DEED_DONE;
}

static int deed_unix_connect(char **arguments)
{
        struct sockaddr_un address;
        socklen_t size;
        int fd = fill_unix(arguments[0], &address, &size);

        if (fd < 0 || connect(fd, (struct sockaddr *) &address, size) < 0)
                return deed_refused("connect");
        return DEED_DONE;
}

const Deed net_deeds[] = {
        { "listen", "ADDRESS PORT", 2, deed_listen },
        { "connect", "ADDRESS PORT", 2, deed_connect },
        { "loopback", "ADDRESS PORT", 2, deed_loopback },
        { "udp", "ADDRESS PORT", 2, deed_udp },
        { "dns", "NAME", 1, deed_dns },
        { "ping", "ADDRESS", 1, deed_ping },
        { "raw", "", 0, deed_raw },
        { "packet", "", 0, deed_packet },
        { "vsock", "PORT", 1, deed_vsock },
        { "unix-listen", "PATH|@NAME", 1, deed_unix_listen },
        { "unix-connect", "PATH|@NAME", 1, deed_unix_connect },
        { NULL },
};
