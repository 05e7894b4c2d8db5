/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/layer.h"

#include <fcntl.h>
#include <inttypes.h>
#include <linux/loop.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#include "base/text.h"
#include "sys/mount.h"

#define LOOP_TRIES 64
#define OWN_INODES 16u /* directories that are made for the job are not its files */
/* What ext4 itself needs besides the job's bytes: 256 bytes an inode, bitmaps, descriptors, the root. */
#define EXT4_OVERHEAD(bytes, inodes) (MIB(2) + (inodes) *256 + (bytes) / 64)
/* Blocks of 4 KiB: a group has as many as one of them has bits, and its table of inodes whole ones. */
#define EXT4_GROUP_BYTES  MIB(128)
#define EXT4_TABLE_INODES 16u

static int open_tmpfs(uint64_t bytes, uint64_t inodes, int *ret_fd, Error *e)
{
        char size[32], count[32];
        MountOption options[] = {
                { "source", "qscope-layer" },
                { "size", size },
                { "nr_inodes", count },
                { "mode", "0755" },
                { 0 },
        };

        (void) snprintf(size, sizeof(size), "%" PRIu64, bytes);
        (void) snprintf(count, sizeof(count), "%" PRIu64, inodes);
        return mount_new("tmpfs", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, ret_fd, e);
}

/* mke2fs(8) writes the file system into the open file. */
static int make_ext4(int fd, uint64_t inodes, Error *e)
{
        char path[64], count[32];
        const char *argv[] = {
                "mke2fs",
                "-q",
                "-F",
                "-t",
                "ext4",
                "-m",
                "0",
                "-b",
                "4096",
                "-N",
                count,
                "-O",
                "^has_journal,^resize_inode",
                "-E",
                "lazy_itable_init=1,nodiscard,root_owner=0:0",
                path,
                NULL,
        };
        int status;
        pid_t pid;

        (void) snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int) getpid(), fd);
        (void) snprintf(count, sizeof(count), "%" PRIu64, inodes);
        pid = fork();
        if (pid < 0)
                return error_errno(e, -errno, "mke2fs cannot be started");
        if (pid == 0) {
                int null = open("/dev/null", O_RDWR);

                (void) prctl(PR_SET_PDEATHSIG, SIGKILL);

                for (int i = 0; i < 3; i++)
                        (void) dup2(null, i);
                (void) setenv("PATH", "/usr/sbin:/sbin:/usr/bin:/bin", 1);
                (void) execvp(argv[0], (char *const *) argv);
                _exit(127);
        }
        while (waitpid(pid, &status, 0) < 0) {
                if (errno != EINTR)
                        return error_errno(e, -errno, "mke2fs cannot be waited for");
        }
        if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
                return error_set(e, -ENOENT,
                                "mke2fs is not installed (package e2fsprogs): it makes the file "
                                "system for disk budgets too large for memory");
        if (status != 0)
                return error_set(e, -EIO, "mke2fs failed (status %d)", status);
        return 0;
}

/* Takes the next free loop device. Another process may take it first: try again. */
static int attach_loop(int image, char path[static 32], int *ret_fd, Error *e)
{
        _cleanup_close_ int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
        struct loop_config config = {
                .fd = (uint32_t) image,
                .info.lo_flags = LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO,
        };

        if (control < 0)
                return error_errno(e, -errno, "/dev/loop-control (kernel module loop)");
        for (unsigned i = 0; i < LOOP_TRIES; i++) {
                int number = ioctl(control, LOOP_CTL_GET_FREE), fd;

                if (number < 0)
                        return error_errno(e, -errno, "no free loop device");
                (void) snprintf(path, 32, "/dev/loop%d", number);
                fd = open(path, O_RDWR | O_CLOEXEC);
                if (fd < 0 && errno == ENOENT) {
                        /* In a container nobody makes the nodes of new devices. */
                        if (mknod(path, S_IFBLK | 0600, makedev(7, (unsigned) number)) < 0 && errno != EEXIST)
                                return error_errno(e, -errno, "%s", path);
                        fd = open(path, O_RDWR | O_CLOEXEC);
                }
                if (fd < 0)
                        return error_errno(e, -errno, "%s", path);
                if (ioctl(fd, LOOP_CONFIGURE, &config) >= 0) {
                        *ret_fd = fd;
                        return 0;
                }
                if (errno != EBUSY) {
                        int r = -errno;

                        safe_close(fd);
                        return error_errno(e, r, "%s cannot be set up", path);
                }
                safe_close(fd);
        }
        return error_set(e, -EBUSY, "no loop device stayed free");
}

static int open_image(const char *dir, uint64_t bytes, uint64_t inodes, int *ret_fd, Error *e)
{
        _cleanup_close_ int image = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600), loop = -EBADF;
        char path[32];
        MountOption options[] = { { "source", path }, { "errors", "continue" }, { 0 } };
        int r;

        if (image < 0)
                return error_errno(e, -errno, "%s: no image file for the layer can be made", dir);
        if (ftruncate(image, (off_t) (bytes + EXT4_OVERHEAD(bytes, inodes))) < 0)
                return error_errno(e, -errno, "%s: the layer's image", dir);
        /* The budget is set aside now: a full host must not lose what the job believes to have written. */
        if (fallocate(image, 0, 0, (off_t) (bytes + EXT4_OVERHEAD(bytes, inodes))) < 0 && errno != EOPNOTSUPP)
                return error_errno(e, -errno, "%s: there is no room for a layer of the size of limits.disk",
                                dir);
        r = make_ext4(image, inodes, e);
        if (r == 0)
                r = attach_loop(image, path, &loop, e);
        if (r == 0)
                r = mount_new("ext4", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOATIME,
                                ret_fd, e);
        return r;
}

int layer_open(const char *image_dir, uint64_t bytes, uint64_t inodes, const char *target, int *ret_fd,
                Error *e)
{
        _cleanup_close_ int fd = -EBADF;
        int r;

        r = image_dir ? open_image(image_dir, bytes, inodes, &fd, e) : open_tmpfs(bytes, inodes, &fd, e);
        if (r < 0)
                return r;
        r = mount_attach(fd, target);
        if (r < 0)
                return error_errno(e, r, "the layer cannot be mounted at %s", target);
        /* The descriptor of a mount is a place, not an open directory (O_PATH). */
        *ret_fd = open(target, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return *ret_fd < 0 ? error_errno(e, -errno, "the layer at %s", target) : 0;
}

/* The largest value seen. */
static void note(uint64_t *most, uint64_t value)
{
        if (*most == UNKNOWN || value > *most)
                *most = value;
}

int layer_read(int fd, Usage *usage, LimitEvents *events)
{
        struct statvfs fs;

        if (fstatvfs(fd, &fs) < 0)
                return -errno;
        usage->disk_bytes = (uint64_t) (fs.f_blocks - fs.f_bfree) * fs.f_frsize;
        usage->disk_inodes = (uint64_t) (fs.f_files - fs.f_ffree);
        note(&events->disk_full, fs.f_bavail == 0);
        note(&events->inodes_full, fs.f_ffree == 0);
        note(&events->layer_peak_bytes, usage->disk_bytes);
        note(&events->layer_peak_inodes, usage->disk_inodes);
        return 0;
}

int layer_size(int fd, bool image, uint64_t bytes, uint64_t inodes, uint64_t ret_sizes[static 2],
                uint64_t ret_slack[static 2])
{
        struct statvfs fs;

        if (fstatvfs(fd, &fs) < 0)
                return -errno;
        ret_sizes[0] = (uint64_t) fs.f_blocks * fs.f_frsize;
        ret_sizes[1] = (uint64_t) fs.f_files;
        ret_slack[0] = image ? EXT4_OVERHEAD(bytes, inodes) : (uint64_t) fs.f_frsize;
        ret_slack[1] = image ? EXT4_TABLE_INODES * (bytes / EXT4_GROUP_BYTES + 2) : 0;
        return 0;
}
