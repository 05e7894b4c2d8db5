/* SPDX-License-Identifier: Apache-2.0 */
/* What is shared between processes that know nothing of each other. */
#include "escape.h"

#include <fcntl.h>
#include <mqueue.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/syscall.h>

static int shm_file(const char *path)
{
        return read_token(path);
}

static int sysv_memory(const char *argument)
{
        int id = shmget(VICTIM_SHM_KEY, 0, 0);
        const char *data;

        (void) argument;
        if (id < 0)
                return refused("shmget");
        data = shmat(id, NULL, SHM_RDONLY);
        if (data == (const char *) -1)
                return refused("shmat");
        return has_token(data, 64) ? 0 : without_effect("shmat");
}

static int sysv_queue(const char *argument)
{
        (void) argument;
        return msgget(VICTIM_SHM_KEY, 0) < 0 ? refused("msgget") : 0;
}

static int sysv_semaphore(const char *argument)
{
        (void) argument;
        return semget(VICTIM_SHM_KEY, 0, 0) < 0 ? refused("semget") : 0;
}

static int posix_queue(const char *argument)
{
        (void) argument;
        return mq_open(VICTIM_MQUEUE, O_RDWR) < 0 ? refused("mq_open") : 0;
}

/* Whether somebody else's lock of a file that both see can be felt here: one bit at a time, and whoever waits
 * for it waits for as long as the other likes. */
static int feel_locks(const char *argument)
{
        (void) argument;
        for (const char *const *path = victim_locks; *path; path++) {
                int fd = open(*path, O_RDONLY | O_CLOEXEC);

                if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
                        return succeeded(*path);
        }
        return without_effect("flock");
}

/* The victim opens these files all the time. */
static int feel_opens(const char *argument)
{
        int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK), watch = 1;
        const char *watched[64] = { 0 };
        struct pollfd wait = { .fd = fd, .events = POLLIN };
        struct inotify_event event;

        (void) argument;
        /* Watches are numbered from 1. */
        for (const char *const *path = victim_locks; fd >= 0 && *path; path++)
                if (inotify_add_watch(fd, *path, IN_OPEN) >= 0)
                        watched[watch++] = *path;
        if (poll(&wait, 1, 300) <= 0 || read(fd, &event, sizeof(event)) <= 0)
                return without_effect("inotify");
        return succeeded(watched[event.wd]);
}

static int find_key(const char *argument)
{
        long key = syscall(SYS_keyctl, 10 /* KEYCTL_SEARCH */, -4 /* the user's */, "user", token(), 0);

        (void) argument;
        return key < 0 ? refused("keyctl") : 0;
}

const Attempt shared_attempts[] = {
        { "shm-file", "reads a file in /dev/shm", shm_file, "/dev/shm/" VICTIM_FILE },
        { "sysv-memory", "reads System V shared memory", sysv_memory, NULL },
        { "sysv-queue", "finds a System V queue", sysv_queue, NULL },
        { "sysv-semaphore", "finds a System V semaphore", sysv_semaphore, NULL },
        { "posix-queue", "opens a POSIX message queue", posix_queue, NULL },
        { "flock", "feels the lock of a file that both see", feel_locks, NULL },
        { "inotify", "sees that a file is opened that both see", feel_opens, NULL },
        { "user-key", "finds a key of the user", find_key, NULL },
        { NULL },
};
