/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/system.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "base/text.h"
#include "sys/layer.h"
#include "sys/mount.h"

#define DIRECTORIES_MAX 64u
#define SUPERBLOCK_MAX  2048

/* A job has these of its own, or nothing of the kind. */
static const char *const own_directories[] = {
        "boot",
        "dev",
        "home",
        "lost+found",
        "media",
        "mnt",
        "proc",
        "root",
        "run",
        "srv",
        "sys",
        "tmp",
        "var",
};

/* Documentation/filesystems: squashfs.rst, erofs.rst (the super block lies at 1024), ext4/super.rst. */
static const struct {
        const char *type;
        size_t offset, size;
        const char *magic;
} image_types[] = {
        { "squashfs", 0, 4, "hsqs" },
        { "erofs", 1024, 4, "\xe2\xe1\xf5\xe0" },
        { "ext4", 1024 + 56, 2, "\x53\xef" },
};

static const char *image_type(int fd)
{
        uint8_t head[SUPERBLOCK_MAX];
        ssize_t n = pread(fd, head, sizeof(head), 0);

        for (size_t i = 0; i < ELEMENTSOF(image_types); i++)
                if (n >= (ssize_t) (image_types[i].offset + image_types[i].size) &&
                                memcmp(head + image_types[i].offset, image_types[i].magic,
                                                image_types[i].size) == 0)
                        return image_types[i].type;
        return NULL;
}

static int open_image(const char *path, const char *target, int *ret_fd, Error *e)
{
        _cleanup_close_ int image = open(path, O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC), loop = -EBADF,
                            mount = -EBADF;
        const char *type = image < 0 ? NULL : image_type(image);
        char device[LOOP_PATH_MAX];
        MountOption options[] = { { "source", device }, { "ro", NULL }, { 0 } };
        int r;

        if (image < 0)
                return error_errno(e, -errno, "%s", path);
        if (!type)
                return error_set(e, -EINVAL,
                                "%s: is no image of a squashfs, erofs or ext4 file system (a partitioned disk is "
                                "not one)",
                                path);
        r = layer_attach_loop(image, true, device, &loop, e);
        if (r == 0)
                r = mount_new(type, options, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, &mount,
                                e);
        if (r < 0)
                return error_prefix(e, r, "%s", path);
        r = mount_attach(mount, target);
        if (r < 0)
                return error_errno(e, r, "%s cannot be mounted at %s", path, target);
        *ret_fd = open(target, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return *ret_fd < 0 ? error_errno(e, -errno, "%s", target) : 0;
}

int system_open(const char *path, const char *target, int *ret_fd, Error *e)
{
        struct stat st;

        if (stat(path, &st) < 0)
                return error_errno(e, -errno, "the policy's root %s", path);
        if (S_ISREG(st.st_mode))
                return open_image(path, target, ret_fd, e);
        if (!S_ISDIR(st.st_mode))
                return error_set(e, -ENOTDIR, "the policy's root %s is neither a directory nor an image",
                                path);
        *ret_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return *ret_fd < 0 ? error_errno(e, -errno, "the policy's root %s", path) : 0;
}

static bool is_own(const char *name)
{
        for (size_t i = 0; i < ELEMENTSOF(own_directories); i++)
                if (streq(own_directories[i], name))
                        return true;
        return name[0] == '.';
}

static int visit(int system_fd, const char *name, char ***ret)
{
        struct stat st;

        if (is_own(name) || fstatat(system_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode))
                return 0;
        return strv_length(*ret) == DIRECTORIES_MAX ? -E2BIG : strv_extend(ret, name);
}

int system_directories(int system_fd, char ***ret)
{
        int fd = openat(system_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
        DIR *dir = fd < 0 ? NULL : fdopendir(fd);

        if (!dir) {
                r = -errno;
                safe_close(fd);
                return r;
        }
        for (struct dirent *entry = readdir(dir); entry && r == 0; entry = readdir(dir))
                r = visit(system_fd, entry->d_name, ret);
        (void) closedir(dir);
        return r;
}
