/* SPDX-License-Identifier: Apache-2.0 */
/* Whom the attempts aim at: a process that has something in every place where another one might look. Outside
 * it can make all of it, in a job what a job can; what it could not make is listed. */
#include "escape.h"

#include <fcntl.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>

const char *const victim_places[] = { "/root", "/home", "/srv", "/var/lib", "/run", "/etc", "/opt", "/tmp",
        "/var/tmp", "/dev/shm", NULL };

/* What every job sees. */
const char *const victim_locks[] = { "/usr/bin/env", "/usr/lib/os-release", "/usr", "/", "/etc/passwd",
        "/etc", "/dev/null", "/dev/zero", "/dev", "/proc/version", "/proc", "/sys/kernel/uevent_seqnum",
        "/sys", "/run/qscope-stage", "/sys/fs/cgroup", NULL };

static char memory[64]; /* holds the token */

static struct Victim {
        int descriptor, port;
        char missing[512];
} self;

static void missing(const char *what)
{
        size_t n = strlen(self.missing);

        (void) snprintf(self.missing + n, sizeof(self.missing) - n, " %s", what);
}

static void make_files(void)
{
        for (const char *const *place = victim_places; *place; place++) {
                char path[256];
                int fd;

                (void) snprintf(path, sizeof(path), "%s/" VICTIM_FILE, *place);
                fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
                if (fd < 0 || write(fd, memory, strlen(memory)) < 0 || fchmod(fd, 0666) < 0)
                        missing(path);
                (void) close(fd);
        }
}

static void remove_files(void)
{
        for (const char *const *place = victim_places; *place; place++) {
                char path[256];

                (void) snprintf(path, sizeof(path), "%s/" VICTIM_FILE, *place);
                (void) unlink(path);
        }
}

/* A file that only this process has: its name is gone. */
static void make_descriptor(void)
{
        self.descriptor = open("bed-deleted", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        if (self.descriptor < 0 || write(self.descriptor, memory, strlen(memory)) < 0)
                missing("descriptor");
        (void) unlink("bed-deleted");
}

static int shared_memory = -1, queue = -1, semaphore = -1;

static void make_ipc(void)
{
        char *data;

        shared_memory = shmget(VICTIM_SHM_KEY, 4096, IPC_CREAT | 0666);
        data = shmat(shared_memory, NULL, 0);
        if (data == (char *) -1)
                missing("sysv-memory");
        else
                (void) strcpy(data, memory);
        queue = msgget(VICTIM_SHM_KEY, IPC_CREAT | 0666);
        semaphore = semget(VICTIM_SHM_KEY, 1, IPC_CREAT | 0666);
        if (queue < 0 || semaphore < 0)
                missing("sysv");
        (void) umask(0);
        if (mq_open(VICTIM_MQUEUE, O_RDWR | O_CREAT, 0666, NULL) < 0)
                missing("posix-queue");
}

static void remove_ipc(void)
{
        (void) shmctl(shared_memory, IPC_RMID, NULL);
        (void) msgctl(queue, IPC_RMID, NULL);
        (void) semctl(semaphore, 0, IPC_RMID);
        (void) mq_unlink(VICTIM_MQUEUE);
}

static void make_sockets(void)
{
        struct sockaddr_un name = { .sun_family = AF_UNIX };
        struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
        socklen_t length = sizeof(address);
        int abstract = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0),
            server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        int n = snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "bed-%s", memory);

        if (bind(abstract, (struct sockaddr *) &name,
                            (socklen_t) (offsetof(struct sockaddr_un, sun_path) + 1 + (size_t) n)) < 0 ||
                        listen(abstract, 64) < 0)
                missing("abstract");
        if (bind(server, (struct sockaddr *) &address, sizeof(address)) < 0 || listen(server, 64) < 0 ||
                        getsockname(server, (struct sockaddr *) &address, &length) < 0)
                missing("loopback");
        self.port = ntohs(address.sin_port);
}

static void take_locks(void)
{
        int taken = 0;

        for (const char *const *path = victim_locks; *path; path++) {
                int fd = open(*path, O_RDONLY | O_CLOEXEC);

                taken += fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;
        }
        if (taken == 0)
                missing("flock");
}

static void open_again(void)
{
        for (const char *const *path = victim_locks; *path; path++)
                (void) close(open(*path, O_RDONLY | O_CLOEXEC));
}

static void make_key(void)
{
        if (syscall(SYS_add_key, "user", memory, "x", (size_t) 1, -4 /* the user's */) < 0)
                missing("user-key");
}

static void remove_key(void)
{
        long key = syscall(SYS_keyctl, 10 /* KEYCTL_SEARCH */, -4, "user", memory, 0);

        if (key > 0)
                (void) syscall(SYS_keyctl, 21 /* KEYCTL_INVALIDATE */, key);
}

/* Whole or not at all: the test reads it as soon as it is there. */
static int say_ready(void)
{
        FILE *file = fopen("victim.new", "we");

        if (!file)
                return -1;
        (void) fprintf(file,
                        "{\"pid\": %d, \"address\": %lu, \"descriptor\": %d, \"port\": %d, \"missing\": \"%s\","
                        " \"token\": \"%s\"}\n",
                        getpid(), (unsigned long) (uintptr_t) memory, self.descriptor, self.port,
                        self.missing, memory);
        return fclose(file) == 0 ? rename("victim.new", "victim") : -1;
}

static volatile sig_atomic_t ended;

static void end(int number)
{
        (void) number;
        ended = 1;
}

int victim_main(void)
{
        const struct timespec pause = { .tv_nsec = 50 * 1000 * 1000 };
        struct sigaction action = { .sa_handler = end };

        (void) sigaction(SIGTERM, &action, NULL);
        (void) sigaction(SIGALRM, &action, NULL);
        (void) alarm(300); /* whatever becomes of the test */
        (void) strncpy(memory, target("token"), sizeof(memory) - 1);
        make_files();
        make_descriptor();
        make_ipc();
        make_sockets();
        make_key();
        take_locks();
        if (say_ready() < 0)
                return 1;
        while (!ended) {
                open_again();
                (void) nanosleep(&pause, NULL);
        }
        remove_files();
        remove_ipc();
        remove_key();
        return 0;
}
