/* SPDX-License-Identifier: Apache-2.0 */
#include "run/input.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sys/fsuid.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#include "base/path.h"
#include "sys/file.h"
#include "sys/mount.h"

#define NOBODY 65534u

/* Never through a link of /proc into a process: qscope's own would be followed with qscope's rights. */
static int open_plain(const char *path)
{
        struct open_how how = {
                .flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
                .resolve = RESOLVE_NO_MAGICLINKS,
        };
        int fd = (int) syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));

        return fd < 0 ? -errno : fd;
}

/* Opens with another user's rights: setfsuid(2) takes the capabilities that override permissions with it.
 * Root's supplementary groups would remain, so they are dropped meanwhile. */
static int open_as(const char *path, uid_t uid, gid_t gid)
{
        gid_t groups[64];
        int n_groups = getgroups(ELEMENTSOF(groups), groups), fd, r;

        if (n_groups < 0 || syscall(SYS_setgroups, 0, NULL) < 0)
                return -errno;
        (void) setfsgid(gid);
        (void) setfsuid(uid);
        fd = open_plain(path);
        r = fd < 0 ? fd : 0;
        (void) setfsuid(geteuid());
        (void) setfsgid(getegid());
        if (syscall(SYS_setgroups, (size_t) n_groups, groups) < 0)
                r = -errno;
        if (r < 0)
                safe_close(fd);
        return r < 0 ? r : fd;
}

/* Whether the opened file really lies below directory, links resolved. */
static bool lies_below(int fd, const char *directory)
{
        char link[64], path[4096];
        _cleanup_free_ char *real = directory ? realpath(directory, NULL) : NULL;
        ssize_t n;

        if (!real)
                return false;
        (void) snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
        n = readlink(link, path, sizeof(path) - 1);
        if (n <= 0)
                return false;
        path[n] = '\0';
        return path_is_within(path, real);
}

/* Files of the kernel say things of qscope, not of the job's world. */
static bool is_pseudo(int fd)
{
        struct statfs fs;

        return fstatfs(fd, &fs) < 0 || fs.f_type == PROC_SUPER_MAGIC || fs.f_type == SYSFS_MAGIC ||
               fs.f_type == CGROUP2_SUPER_MAGIC;
}

/* What root may hand to a job: its own files in the workspace, which the job sees as its own anyway, and
 * beside the job file its own that everybody could read. */
static bool root_may_give(const InputScope *scope, int fd)
{
        struct stat st;

        if (fstat(fd, &st) < 0 || st.st_uid != 0)
                return false;
        return lies_below(fd, scope->cwd) || ((st.st_mode & S_IROTH) && lies_below(fd, scope->job_dir));
}

/* The rights of the workspace's owner. Those of root reach too far; without them what anybody may read
 * remains. */
static int open_in_scope(const InputScope *scope, const char *path)
{
        int fd = open_as(path, scope->owner_uid, scope->owner_gid);

        if (fd < 0 || scope->owner_uid != 0 || root_may_give(scope, fd))
                return fd;
        safe_close(fd);
        return open_as(path, NOBODY, NOBODY);
}

int input_open(const InputScope *scope, const char *path, int *ret_fd, Error *e)
{
        _cleanup_free_ char *full = path_join(scope->cwd ? scope->cwd : "/", path);
        _cleanup_close_ int fd = -EBADF;
        struct stat st;

        if (!full)
                return -ENOMEM;
        fd = scope->trusted ? open(full, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
                            : open_in_scope(scope, full);
        if (fd == -EACCES || fd == -EPERM)
                return error_set(e, -EACCES,
                                "%s: a job may name what the workspace's owner can read; where that is root, only root's "
                                "own files in the workspace, those beside the job file that everybody may read, and "
                                "what any user can reach",
                                full);
        if (fd < 0)
                return error_errno(e, scope->trusted ? -errno : fd, "%s: cannot be read", full);
        if (fstat(fd, &st) < 0)
                return error_errno(e, -errno, "%s", full);
        for (size_t i = 0; !scope->trusted && scope->hidden && scope->hidden[i]; i++)
                if (lies_below(fd, scope->hidden[i]))
                        return error_set(e, -EACCES, "%s: lies in %s, which the policy hides", full,
                                        scope->hidden[i]);
        if (!S_ISREG(st.st_mode) || is_pseudo(fd))
                return error_set(e, -EINVAL, "%s: is not a regular file", full);
        *ret_fd = TAKE_FD(fd);
        return 0;
}

static int open_data(const JobInput *input, int *ret_fd)
{
        _cleanup_close_ int fd = memfd_create("stdin", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        char link[64];
        int r;

        if (fd < 0)
                return -errno;
        r = write_all(fd, input->data, input->size);
        if (r == 0 && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0)
                r = -errno;
        if (r < 0)
                return r;
        /* Again, from the start and for reading only. */
        (void) snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
        r = open(link, O_RDONLY | O_CLOEXEC);
        if (r < 0)
                return -errno;
        *ret_fd = r;
        return 0;
}

/* A descriptor can be opened again for writing through /proc; on a read-only mount of its own it cannot. */
static int open_read_only(int fd, int *ret_fd)
{
        _cleanup_close_ int mount = -EBADF;
        char link[64];
        int r = mount_clone(fd, "", MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, &mount);

        if (r < 0)
                return r;
        (void) snprintf(link, sizeof(link), "/proc/self/fd/%d", mount);
        r = open(link, O_RDONLY | O_CLOEXEC);
        if (r < 0)
                return -errno;
        *ret_fd = r;
        return 0;
}

int input_stdin(const InputScope *scope, const Job *job, int *ret_fd, Error *e)
{
        _cleanup_close_ int fd = -EBADF;
        int r;

        if (!job->has_stdin) {
                r = open("/dev/null", O_RDONLY | O_CLOEXEC);
                *ret_fd = r;
                return r < 0 ? error_errno(e, -errno, "/dev/null") : 0;
        }
        if (!job->stdin_input.path) {
                r = open_data(&job->stdin_input, ret_fd);
                return r < 0 ? error_errno(e, r, "the job's standard input") : 0;
        }
        r = input_open(scope, job->stdin_input.path, &fd, e);
        if (r < 0)
                return error_prefix(e, r, "job.stdin");
        r = open_read_only(fd, ret_fd);
        return r < 0 ? error_errno(e, r, "job.stdin: %s", job->stdin_input.path) : 0;
}

InputScope input_scope(const Plan *plan, const char *job_dir, bool trusted)
{
        return (InputScope){
                .cwd = plan->workspace == WORKSPACE_OVERLAY ? plan->cwd : NULL,
                .job_dir = job_dir,
                .owner_uid = geteuid(),
                .owner_gid = getegid(),
                .hidden = plan->policy->hidden_paths,
                .trusted = trusted,
        };
}

/* -errno: there is no workspace, so nothing would be opened. */
static int find_owner(const Plan *plan, InputScope *scope)
{
        struct stat st = { 0 };

        if (plan->posture == POSTURE_BOUNDED)
                return 0;
        if (scope->cwd && stat(scope->cwd, &st) < 0)
                return -errno;
        scope->owner_uid = st.st_uid;
        scope->owner_gid = st.st_gid;
        return 0;
}

/* -errno with a sentence; 0: it can be opened, or whether it can is not for this caller to know. */
static int look_at(const InputScope *scope, const char *path, Error *e)
{
        _cleanup_close_ int fd = -EBADF;
        int r = path ? input_open(scope, path, &fd, e) : 0;

        return scope->trusted && (r == -EACCES || r == -EPERM) ? 0 : r;
}

int input_look(const Plan *plan, const char *job_dir, ReasonList *ret)
{
        const Job *job = plan->job;
        InputScope scope = input_scope(plan, job_dir, geteuid() != 0);
        Error e = ERROR_INIT;
        int r = 0;

        if (find_owner(plan, &scope) < 0)
                return 0;
        for (size_t i = 0; r == 0 && i < job->n_files; i++)
                if (look_at(&scope, job->files[i].input.path, &e) < 0)
                        r = reason_add(ret, "files_failed", "job.files[%zu].source: %s", i, e.text);
        if (r == 0 && look_at(&scope, job->stdin_input.path, &e) < 0)
                r = reason_add(ret, "stdin_failed", "job.stdin: %s", e.text);
        return r;
}
