/* SPDX-License-Identifier: Apache-2.0 */
/* Files, shared objects and the kernel's other doors. */
#include "probe/probe.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>

static int deed_read(char **arguments)
{
        int fd = open(arguments[0], O_RDONLY | O_NONBLOCK | O_CLOEXEC);
        struct stat st;
        char byte;

        if (fd < 0)
                return deed_refused("open");
        if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode))
                return DEED_DONE;
        return read(fd, &byte, 1) < 0 ? deed_refused("read") : DEED_DONE;
}

static int deed_write(char **arguments)
{
        int fd = open(arguments[0], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);

        if (fd < 0)
                return deed_refused("open");
        return write(fd, "qscope\n", 7) == 7 ? DEED_DONE : deed_refused("write");
}

static int deed_mode(char **arguments)
{
        return chmod(arguments[0], (mode_t) strtoul(arguments[1], NULL, 8)) < 0 ? deed_refused("chmod")
                                                                                : DEED_DONE;
}

static int deed_fill(char **arguments)
{
        static char block[1 << 20];
        unsigned long n = strtoul(arguments[1], NULL, 10);
        int fd = open(arguments[0], O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

        if (fd < 0)
                return deed_refused("open");
        for (unsigned long i = 0; i < n; i++)
                if (write(fd, block, sizeof(block)) != (ssize_t) sizeof(block))
                        return deed_refused("write");
        return DEED_DONE;
}

static int deed_flood(char **arguments)
{
        static char block[1 << 16];
        unsigned long n = strtoul(arguments[0], NULL, 10) * 16;

        memset(block, 'x', sizeof(block));
        for (unsigned long i = 0; i < n; i++)
                for (size_t used = 0; used < sizeof(block);) {
                        ssize_t written = write(STDOUT_FILENO, block + used, sizeof(block) - used);

                        if (written <= 0)
                                return deed_refused("write");
                        used += (size_t) written;
                }
        return DEED_DONE;
}

/* Other bytes, the same size, the same times: what a look at size and time takes for nothing. */
static int deed_forge(char **arguments)
{
        int fd = open(arguments[0], O_WRONLY | O_CLOEXEC);
        struct stat st;
        struct timespec times[2];

        if (fd < 0 || fstat(fd, &st) < 0)
                return deed_refused("open");
        times[0] = st.st_atim;
        times[1] = st.st_mtim;
        if (pwrite(fd, "#", 1, 0) != 1 || futimens(fd, times) < 0)
                return deed_refused("write");
        return DEED_DONE;
}

static key_t shm_key(const char *text)
{
        return (key_t) strtoul(text, NULL, 16);
}

static int deed_sysv_shm(char **arguments)
{
        return shmget(shm_key(arguments[0]), 4096, IPC_CREAT | IPC_EXCL | 0600) < 0 ? deed_refused("shmget")
                                                                                    : DEED_DONE;
}

static int deed_sysv_find(char **arguments)
{
        return shmget(shm_key(arguments[0]), 0, 0) < 0 ? deed_refused("shmget") : DEED_DONE;
}

static int deed_posix_shm(char **arguments)
{
        int fd = shm_open(arguments[0], O_RDWR | O_CREAT | O_EXCL, 0600);

        if (fd < 0 || ftruncate(fd, 4096) < 0 ||
                        mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED)
                return deed_refused("shm_open");
        return DEED_DONE;
}

static int deed_posix_find(char **arguments)
{
        return shm_open(arguments[0], O_RDONLY, 0) < 0 ? deed_refused("shm_open") : DEED_DONE;
}

/* Whatever it would do, the first step is refused. */
static int deed_key(char **arguments)
{
        return syscall(SYS_add_key, "user", arguments[0], "x", (size_t) 1, -3 /* the session's */) < 0
                               ? deed_refused("add_key")
                               : DEED_DONE;
}

static int deed_io_uring(char **arguments)
{
        char parameters[120] = { 0 };

        (void) arguments;
        return syscall(SYS_io_uring_setup, 4, parameters) < 0 ? deed_refused("io_uring_setup") : DEED_DONE;
}

static int deed_namespace(char **arguments)
{
        (void) arguments;
        return unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0 ? deed_refused("unshare") : DEED_DONE;
}

static int deed_mount(char **arguments)
{
        return mount("none", arguments[0], "tmpfs", 0, NULL) < 0 ? deed_refused("mount") : DEED_DONE;
}

static int deed_bpf(char **arguments)
{
        char attributes[72] = { 0 };

        (void) arguments;
        return syscall(SYS_bpf, 0, attributes, sizeof(attributes)) < 0 ? deed_refused("bpf") : DEED_DONE;
}

const Deed host_deeds[] = {
        { "read", "PATH", 1, deed_read },
        { "write", "PATH", 1, deed_write },
        { "mode", "PATH OCTAL", 2, deed_mode },
        { "fill", "PATH MIB", 2, deed_fill },
        { "flood", "MIB", 1, deed_flood },
        { "forge", "PATH", 1, deed_forge },
        { "sysv-shm", "HEXKEY", 1, deed_sysv_shm },
        { "sysv-find", "HEXKEY", 1, deed_sysv_find },
        { "posix-shm", "/NAME", 1, deed_posix_shm },
        { "posix-find", "/NAME", 1, deed_posix_find },
        { "key", "NAME", 1, deed_key },
        { "io-uring", "", 0, deed_io_uring },
        { "namespace", "", 0, deed_namespace },
        { "mount", "PATH", 1, deed_mount },
        { "bpf", "", 0, deed_bpf },
        { NULL },
};
