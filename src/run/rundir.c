/* SPDX-License-Identifier: Apache-2.0 */
#include "run/rundir.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "core/plan.h"
#include "sys/cgroup.h"
#include "sys/file.h"

#define STOP_TIMEOUT (15 * USEC_PER_SEC)

struct RunDir {
        char run_id[RUN_ID_MAX];
        int parent_fd, lock_fd, root_fd;
};

static bool is_run_id(const char *name)
{
        return strlen(name) == RUN_ID_MAX - 1 && strspn(name, "0123456789abcdef") == RUN_ID_MAX - 1;
}

static int open_runtime_dir(Error *e)
{
        int fd;

        if (mkdir(RUNTIME_DIR, 0711) < 0 && errno != EEXIST)
                return error_errno(e, -errno, RUNTIME_DIR);
        fd = open(RUNTIME_DIR, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        return fd < 0 ? error_errno(e, -errno, RUNTIME_DIR) : fd;
}

/* The lock lies beside the directory: it is taken before the directory exists and outlives its removal, so
 * that nobody ever sees one without the other's protection. */
static int take_lock(int parent_fd, const char *name)
{
        _cleanup_close_ int fd = openat(parent_fd, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);

        if (fd < 0)
                return -errno;
        if (flock(fd, LOCK_EX | LOCK_NB) < 0)
                return -errno;
        return TAKE_FD(fd);
}

/* Gets its name only when it is held: another qscope that cleans must not find it free for a moment. */
static int new_lock(int parent_fd, const char *run_id)
{
        char name[RUN_ID_MAX + 8], own[32];
        _cleanup_close_ int fd = openat(parent_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

        if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
                return -errno;
        (void) snprintf(name, sizeof(name), "%s.lock", run_id);
        (void) snprintf(own, sizeof(own), "/proc/self/fd/%d", fd);
        if (linkat(AT_FDCWD, own, parent_fd, name, AT_SYMLINK_FOLLOW) < 0)
                return -errno;
        return TAKE_FD(fd);
}

static int remove_run(int parent_fd, const char *run_id)
{
        char name[RUN_ID_MAX + 8];
        int r = remove_tree_at(parent_fd, run_id);

        if (r < 0)
                return r;
        (void) snprintf(name, sizeof(name), "%s.lock", run_id);
        return unlinkat(parent_fd, name, 0) < 0 && errno != ENOENT ? -errno : 0;
}

RunDir *rundir_abandon(RunDir *dir)
{
        if (!dir)
                return NULL;
        safe_close(dir->root_fd);
        safe_close(dir->lock_fd);
        safe_close(dir->parent_fd);
        free(dir);
        return NULL;
}

/* In a mount namespace of our own; nobody else sees what is mounted there. */
static void unmount_all(const char *run_id)
{
        static const char *const names[] = { "merged", "lower", "layer", "system", "blank" };

        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                char path[RUN_ID_MAX + 32];

                (void) snprintf(path, sizeof(path), RUNTIME_DIR "/%s/%s", run_id, names[i]);
                /* At once if it can be, so that a loop device is free again when qscope ends. */
                if (umount2(path, UMOUNT_NOFOLLOW) < 0)
                        (void) umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW);
        }
}

RunDir *rundir_free(RunDir *dir)
{
        if (dir && dir->lock_fd >= 0) {
                unmount_all(dir->run_id);
                (void) remove_run(dir->parent_fd, dir->run_id);
        }
        return rundir_abandon(dir);
}

int rundir_root_fd(const RunDir *dir)
{
        return dir->root_fd;
}

int rundir_new(const char *run_id, RunDir **ret, Error *e)
{
        static const char *const names[] = { "root", "layer", "lower", "merged", "system", "blank" };
        _cleanup_(rundir_freep) RunDir *dir = calloc(1, sizeof(*dir));
        char path[RUN_ID_MAX + 16];
        int r = 0;

        if (!dir)
                return -ENOMEM;
        dir->parent_fd = dir->lock_fd = dir->root_fd = -EBADF;
        memcpy(dir->run_id, run_id, RUN_ID_MAX);
        dir->parent_fd = open_runtime_dir(e);
        if (dir->parent_fd < 0)
                return dir->parent_fd;
        dir->lock_fd = new_lock(dir->parent_fd, run_id);
        if (dir->lock_fd < 0)
                return error_errno(e, dir->lock_fd, RUNTIME_DIR "/%s.lock", run_id);
        if (mkdirat(dir->parent_fd, run_id, 0700) < 0)
                r = -errno;
        for (size_t i = 0; r == 0 && i < ELEMENTSOF(names); i++) {
                (void) snprintf(path, sizeof(path), "%s/%s", run_id, names[i]);
                if (mkdirat(dir->parent_fd, path, 0755) < 0)
                        r = -errno;
        }
        if (r == 0) {
                (void) snprintf(path, sizeof(path), "%s/root", run_id);
                dir->root_fd = openat(dir->parent_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
                r = dir->root_fd < 0 ? -errno : 0;
        }
        if (r < 0)
                return error_errno(e, r, RUNTIME_DIR "/%s", run_id);
        *ret = TAKE_PTR(dir);
        return 0;
}

/* One dead run: nothing may live before its units are stopped, nothing may be mounted before it is removed.
 */
static int clean_one(int parent_fd, const char *run_id, Manager *m, Error *e)
{
        char slice[64];
        int r;

        (void) snprintf(slice, sizeof(slice), "qscope-%s.slice", run_id);
        (void) cgroup_kill_slice(slice);
        r = manager_stop_wait(m, slice, STOP_TIMEOUT, e);
        if (r < 0)
                return r;
        r = remove_run(parent_fd, run_id);
        return r < 0 ? error_errno(e, r, RUNTIME_DIR "/%s cannot be removed", run_id) : 0;
}

/* "ID.lock" of a run that nobody holds. *ret_fd keeps the lock while it is cleaned. */
static bool is_dead(int parent_fd, const char *name, char run_id[static RUN_ID_MAX], int *ret_fd)
{
        size_t length = RUN_ID_MAX - 1;
        int fd;

        if (strlen(name) != length + STRLEN(".lock") || !streq(name + length, ".lock"))
                return false;
        memcpy(run_id, name, length);
        run_id[length] = '\0';
        if (!is_run_id(run_id))
                return false;
        fd = take_lock(parent_fd, name);
        if (fd < 0)
                return false;
        *ret_fd = fd;
        return true;
}

int rundir_clean(Manager *m, Error *e)
{
        _cleanup_(manager_freep) Manager *own = NULL;
        _cleanup_close_ int parent_fd = open_runtime_dir(e);
        struct dirent *entry;
        int r = 0, copy, n = 0;
        DIR *dir;

        if (parent_fd < 0)
                return parent_fd;
        copy = fcntl(parent_fd, F_DUPFD_CLOEXEC, 0);
        dir = copy < 0 ? NULL : fdopendir(copy);
        if (!dir)
                return error_errno(e, -errno, RUNTIME_DIR);
        while (r >= 0 && (entry = readdir(dir))) {
                _cleanup_close_ int lock_fd = -EBADF;
                char run_id[RUN_ID_MAX];

                if (!is_dead(parent_fd, entry->d_name, run_id, &lock_fd))
                        continue;
                if (!m && !own)
                        r = manager_connect(NULL, &own, e);
                if (r >= 0)
                        r = clean_one(parent_fd, run_id, m ? m : own, e);
                n += r >= 0;
        }
        (void) closedir(dir);
        return r < 0 ? r : n;
}

int rundir_count_dead(Error *e)
{
        _cleanup_close_ int parent_fd = open(RUNTIME_DIR, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        struct dirent *entry;
        int copy, n = 0;
        DIR *dir;

        if (parent_fd < 0)
                return errno == ENOENT ? 0 : error_errno(e, -errno, RUNTIME_DIR);
        copy = fcntl(parent_fd, F_DUPFD_CLOEXEC, 0);
        dir = copy < 0 ? NULL : fdopendir(copy);
        if (!dir)
                return error_errno(e, -errno, RUNTIME_DIR);
        while ((entry = readdir(dir))) {
                _cleanup_close_ int lock_fd = -EBADF;
                char run_id[RUN_ID_MAX];

                n += is_dead(parent_fd, entry->d_name, run_id, &lock_fd);
        }
        (void) closedir(dir);
        return n;
}
