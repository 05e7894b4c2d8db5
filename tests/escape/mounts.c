/* SPDX-License-Identifier: Apache-2.0 */
/* Mounts, roots and new namespaces, by the old calls and by the new ones. */
#include "escape.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#undef MS_BIND
#include <sched.h>

/* <sys/mount.h> and <linux/mount.h> do not go together in every libc. */
int mount(const char *source, const char *target, const char *type, unsigned long flags, const void *data);
int umount2(const char *target, int flags);
#define MOUNT_BIND    4096UL
#define MOUNT_REMOUNT 32UL
#define UMOUNT_DETACH 2

static const char *place(void)
{
        (void) mkdir("bed-place", 0755);
        return "bed-place";
}

static int mount_type(const char *type)
{
        own_mounts();
        return mount(type, place(), type, 0, NULL) < 0 ? refused("mount") : 0;
}

static int mount_bind(const char *path)
{
        own_mounts();
        return mount(path, place(), NULL, MOUNT_BIND, NULL) < 0 ? refused("mount") : 0;
}

static int mount_overlay(const char *argument)
{
        (void) argument;
        own_mounts();
        return mount("overlay", place(), "overlay", 0, "lowerdir=/usr/bin:/usr/lib") < 0 ? refused("mount")
                                                                                         : 0;
}

static int remount(const char *path)
{
        own_mounts();
        return mount(NULL, path, NULL, MOUNT_BIND | MOUNT_REMOUNT, NULL) < 0 ? refused("mount") : 0;
}

static int unmount(const char *path)
{
        own_mounts();
        return umount2(path, UMOUNT_DETACH) < 0 ? refused("umount2") : 0;
}

static int change_root(const char *argument)
{
        (void) argument;
        return chroot(".") < 0 ? refused("chroot") : 0;
}

/* "." on "." needs no directory for the old root (pivot_root(2)). */
static int pivot(const char *argument)
{
        (void) argument;
        own_mounts();
        if (mount("tmpfs", place(), "tmpfs", 0, NULL) < 0 || chdir(place()) < 0)
                return refused("mount");
        return syscall(SYS_pivot_root, ".", ".") < 0 ? refused("pivot_root") : 0;
}

/* --- the new calls --- */

static int fs_open(const char *argument)
{
        (void) argument;
        return syscall(SYS_fsopen, "tmpfs", 0) < 0 ? refused("fsopen") : 0;
}

static int fs_pick(const char *path)
{
        return syscall(SYS_fspick, AT_FDCWD, path, 0) < 0 ? refused("fspick") : 0;
}

static int open_tree_clone(const char *path)
{
        return (int) syscall(SYS_open_tree, AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
}

static int clone_tree(const char *path)
{
        own_mounts();
        return open_tree_clone(path) < 0 ? refused("open_tree") : 0;
}

static int move_tree(const char *path)
{
        int fd;

        own_mounts();
        fd = open_tree_clone(path);
        return syscall(SYS_move_mount, fd, "", AT_FDCWD, place(), MOVE_MOUNT_F_EMPTY_PATH) < 0
                               ? refused("move_mount")
                               : 0;
}

static int set_attributes(const char *path)
{
        struct mount_attr attributes = { .attr_set = MOUNT_ATTR_NOATIME, .attr_clr = MOUNT_ATTR__ATIME };
        int fd;

        own_mounts();
        fd = open_tree_clone(path);
        if (syscall(SYS_mount_setattr, fd < 0 ? AT_FDCWD : fd, fd < 0 ? path : "", fd < 0 ? 0 : AT_EMPTY_PATH,
                            &attributes, sizeof(attributes)) < 0)
                return refused("mount_setattr");
        return 0;
}

/* --- namespaces --- */

static int leave(int flag)
{
        return unshare(flag) < 0 ? refused("unshare") : 0;
}

static int unshare_user(const char *argument)
{
        (void) argument;
        return leave(CLONE_NEWUSER);
}

static int unshare_mount(const char *argument)
{
        (void) argument;
        return leave(CLONE_NEWNS);
}

static int unshare_network(const char *argument)
{
        (void) argument;
        return leave(CLONE_NEWNET);
}

static int unshare_pid(const char *argument)
{
        (void) argument;
        return leave(CLONE_NEWPID);
}

static int unshare_ipc(const char *argument)
{
        (void) argument;
        return leave(CLONE_NEWIPC);
}

static int unshare_uts(const char *argument)
{
        (void) argument;
        return leave(CLONE_NEWUTS);
}

static int unshare_cgroup(const char *argument)
{
        (void) argument;
        return leave(CLONE_NEWCGROUP);
}

static int unshare_time(const char *argument)
{
        (void) argument;
        return leave(CLONE_NEWTIME);
}

/* Everything that a user namespace opens, in one call. */
static int unshare_all(const char *argument)
{
        (void) argument;
        return leave(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWPID);
}

static int wait_for(pid_t pid)
{
        if (pid == 0)
                _exit(0);
        return pid < 0 || waitpid(pid, NULL, 0) < 0 ? refused("clone") : 0;
}

static int clone_user(const char *argument)
{
        (void) argument;
        return wait_for((pid_t) syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL));
}

/* Its flags lie in memory, where no filter sees them. */
static int clone3_user(const char *argument)
{
        struct clone_args arguments = { .flags = CLONE_NEWUSER, .exit_signal = SIGCHLD };

        (void) argument;
        return wait_for((pid_t) syscall(SYS_clone3, &arguments, sizeof(arguments)));
}

const Attempt mount_attempts[] = {
        { "mount-tmpfs", "mounts a new filesystem", mount_type, "tmpfs" },
        { "mount-proc", "mounts a /proc of its own", mount_type, "proc" },
        { "mount-cgroup", "mounts control groups of its own", mount_type, "cgroup2" },
        { "mount-bind", "mounts a directory elsewhere", mount_bind, "/usr" },
        { "mount-overlay", "mounts an overlay", mount_overlay, NULL },
        { "remount", "changes a mount", remount, "/" },
        { "unmount", "takes a mount away", unmount, "/dev/shm" },
        { "chroot", "changes its root", change_root, NULL },
        { "pivot-root", "changes everybody's root", pivot, NULL },
        { "fsopen", "makes a new filesystem", fs_open, NULL },
        { "fspick", "takes hold of a filesystem", fs_pick, "/dev/shm" },
        { "open-tree", "copies a mount", clone_tree, "/usr" },
        { "move-mount", "attaches a mount", move_tree, "/usr" },
        { "mount-setattr", "changes the attributes of a mount", set_attributes, "/usr" },
        { "unshare-user", "makes a user namespace", unshare_user, NULL },
        { "unshare-mount", "makes a mount namespace", unshare_mount, NULL },
        { "unshare-net", "makes a network namespace", unshare_network, NULL },
        { "unshare-pid", "makes a PID namespace", unshare_pid, NULL },
        { "unshare-ipc", "makes an IPC namespace", unshare_ipc, NULL },
        { "unshare-uts", "makes a UTS namespace", unshare_uts, NULL },
        { "unshare-cgroup", "makes a cgroup namespace", unshare_cgroup, NULL },
        { "unshare-time", "makes a time namespace", unshare_time, NULL },
        { "unshare-all", "makes a user namespace and all that it opens", unshare_all, NULL },
        { "clone-user", "makes a user namespace by clone(2)", clone_user, NULL },
        { "clone3-user", "makes a user namespace by clone3(2)", clone3_user, NULL },
        { NULL },
};
