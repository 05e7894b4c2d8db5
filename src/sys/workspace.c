/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/workspace.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/text.h"
#include "sys/copy.h"
#include "sys/file.h"
#include "sys/layer.h"
#include "sys/mount.h"

#define FRESH_MODE 0755u

void workspace_mounts_close(WorkspaceMounts *mounts)
{
        mounts->lower_fd = safe_close(mounts->lower_fd);
        mounts->upper_fd = safe_close(mounts->upper_fd);
        mounts->merged_fd = safe_close(mounts->merged_fd);
        mounts->job_fd = safe_close(mounts->job_fd);
}

static int open_directory(const char *dir, const char *name, int *ret_fd)
{
        _cleanup_free_ char *path = text_printf("%s/%s", dir, name);
        int fd;

        if (!path)
                return -ENOMEM;
        fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        *ret_fd = fd;
        return 0;
}

/* The real directory, seen with its owner's files as the job's own. *ret_unmappable: this file system cannot
 * do that; any other failure is one. */
static int map_lower(const WorkspaceRequest *request, const struct stat *st, const char *target,
                bool *ret_unmappable)
{
        _cleanup_close_ int fd = -EBADF;
        int r;

        r = mount_clone(request->source_fd, "", MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
                        &fd);
        if (r < 0)
                return r;
        r = mount_map_owner(fd, st->st_uid, st->st_gid, request->uid, request->gid);
        *ret_unmappable = r == -EINVAL || r == -EOPNOTSUPP || r == -EPERM;
        return r < 0 ? r : mount_attach(fd, target);
}

static int copy_lower(const WorkspaceRequest *request, const struct stat *st, const char *target, Error *e)
{
        CopyOwner owner = { st->st_uid, request->uid, st->st_gid, request->gid };
        _cleanup_close_ int fd = -EBADF, source = -EBADF;
        int r;

        r = layer_open(request->image_dir, request->bytes, request->inodes, target, &fd, e);
        if (r < 0)
                return r;
        source = openat(request->source_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (source < 0)
                return error_errno(e, -errno, "%s", request->source_path);
        /* ext4 comes with a directory of its own, which is not the workspace's. */
        r = remove_tree_at(fd, "lost+found");
        if (r == 0)
                r = copy_tree(source, fd, &owner, e);
        if (r == -ENOSPC)
                return error_set(e, r,
                                "%s cannot be mapped to the job's user (it is on a file system without id-mapped "
                                "mounts, or has other mounts below it) and is larger than the disk budget it "
                                "would have to be copied within; raise limits.disk or limits.inodes, or use a "
                                "workspace on ext4, xfs or btrfs",
                                request->source_path);
        if (r < 0)
                return error_prefix(e, r, "%s cannot be copied", request->source_path);
        if (fchown(fd, request->uid, request->gid) < 0 || fchmod(fd, st->st_mode & 07777) < 0)
                return error_errno(e, -errno, "the copy of %s", request->source_path);
        return 0;
}

static int make_lower(const WorkspaceRequest *request, const struct stat *st, const char *target,
                WorkspaceMounts *mounts, Error *e)
{
        bool unmappable = request->copy;
        int r = unmappable ? -EINVAL : map_lower(request, st, target, &unmappable);

        if (r == 0) {
                mounts->method = "overlay over the id-mapped directory";
                return 0;
        }
        if (!unmappable)
                return error_errno(e, r, "%s cannot be mapped to the job's user", request->source_path);
        mounts->method = "overlay over a copy";
        mounts->copied = true;
        return copy_lower(request, st, target, e);
}

/* A directory on the way to a placed file is merged with the one below it and would hide its mode and owner.
 */
static int copy_directory_attributes(int lower_fd, int files_fd, const char *path)
{
        struct open_how how = {
                .flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
                .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS,
        };
        _cleanup_close_ int fd = -EBADF, below = -EBADF;
        struct stat st;

        if (lower_fd < 0)
                return 0;
        below = (int) syscall(SYS_openat2, lower_fd, path, &how, sizeof(how));
        if (below < 0 || fstat(below, &st) < 0)
                return 0;
        fd = openat(files_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 || fchown(fd, st.st_uid, st.st_gid) < 0 || fchmod(fd, st.st_mode & 07777) < 0)
                return -errno;
        return 0;
}

static int place_file(const WorkspaceRequest *request, int lower_fd, int files_fd, const WorkspaceFile *file)
{
        _cleanup_free_ char *parent = strdup(file->path);
        _cleanup_close_ int fd = -EBADF;
        _cleanup_strv_ char **made = NULL;
        char *slash;
        int r = 0;

        if (!parent)
                return -ENOMEM;
        slash = strrchr(parent, '/');
        if (slash) {
                *slash = '\0';
                r = mkdir_parents_at(files_fd, parent, 0755, request->uid, request->gid, &made);
        }
        for (size_t i = 0; r == 0 && made && made[i]; i++)
                r = copy_directory_attributes(lower_fd, files_fd, made[i]);
        if (r < 0)
                return r;
        fd = openat(files_fd, file->path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0)
                return -errno;
        r = file->data ? write_all(fd, file->data, file->size) : copy_data(file->source_fd, fd);
        if (r == 0 && (fchown(fd, request->uid, request->gid) < 0 || fchmod(fd, file->mode) < 0))
                r = -errno;
        return r;
}

/* The placed files are a layer of their own between the workspace and what the job writes, so that they are
 * part of what it found. */
static int make_files(const WorkspaceRequest *request, int layer_fd, int lower_fd, Error *e)
{
        _cleanup_close_ int files_fd = -EBADF;

        if (mkdirat(layer_fd, "files", FRESH_MODE) < 0 ||
                        fchownat(layer_fd, "files", request->uid, request->gid, 0) < 0)
                return error_errno(e, -errno, "the layer");
        files_fd = openat(layer_fd, "files", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (files_fd < 0)
                return error_errno(e, -errno, "the layer");
        for (size_t i = 0; i < request->n_files; i++) {
                int r = place_file(request, lower_fd, files_fd, &request->files[i]);

                if (r == -ENOSPC)
                        return error_set(e, r, "files: %s: does not fit in limits.disk and limits.inodes",
                                        request->files[i].path);
                if (r < 0)
                        return error_errno(e, r, "files: %s: cannot be placed", request->files[i].path);
        }
        return 0;
}

static int make_upper(const WorkspaceRequest *request, int layer_fd, unsigned mode, Error *e)
{
        if (mkdirat(layer_fd, "upper", 0700) < 0 || mkdirat(layer_fd, "work", 0700) < 0 ||
                        fchownat(layer_fd, "upper", request->uid, request->gid, 0) < 0 ||
                        fchmodat(layer_fd, "upper", mode, 0) < 0)
                return error_errno(e, -errno, "the layer");
        return 0;
}

static int mount_overlay(const char *lower, const char *upper, const char *work, int *ret_fd, Error *e)
{
        MountOption options[] = {
                { "source", "qscope" },
                { "lowerdir", lower },
                { "upperdir", upper },
                { "workdir", work },
                { "index", "off" },
                { "metacopy", "off" },
                { "redirect_dir", "on" },
                { "xino", "off" },
                { "volatile", NULL },
                { 0 },
        };
        MountOption read_only[] = { { "source", "qscope" }, { "lowerdir", lower }, { "xino", "off" }, { 0 } };

        return mount_new("overlay", upper ? options : read_only, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, ret_fd,
                        e);
}

/* What the job found: one directory, or the placed files over it. */
static int open_lower(const char *run_dir, bool has_files, bool has_source, char **ret_lowerdir, int *ret_fd,
                Error *e)
{
        _cleanup_free_ char *files = text_printf("%s/layer/files", run_dir),
                            *source = text_printf("%s/lower", run_dir);
        int r;

        if (!files || !source)
                return -ENOMEM;
        if (has_files && has_source) {
                *ret_lowerdir = text_printf("%s:%s", files, source);
                return *ret_lowerdir ? mount_overlay(*ret_lowerdir, NULL, NULL, ret_fd, e) : -ENOMEM;
        }
        *ret_lowerdir = TAKE_PTR(*(has_files ? &files : &source));
        r = open(*ret_lowerdir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (r < 0)
                return error_errno(e, -errno, "%s", *ret_lowerdir);
        *ret_fd = r;
        return 0;
}

static int make_merged(const char *run_dir, const char *lowerdir, WorkspaceMounts *mounts, Error *e)
{
        _cleanup_free_ char *upper = text_printf("%s/layer/upper", run_dir),
                            *work = text_printf("%s/layer/work", run_dir),
                            *merged = text_printf("%s/merged", run_dir);
        _cleanup_close_ int fd = -EBADF;
        int r;

        if (!upper || !work || !merged)
                return -ENOMEM;
        r = mount_overlay(lowerdir, upper, work, &fd, e);
        if (r < 0)
                return r;
        r = mount_attach(fd, merged);
        if (r == 0)
                r = open_directory(run_dir, "merged", &mounts->merged_fd);
        if (r == 0)
                r = mount_clone(mounts->merged_fd, "", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, &mounts->job_fd);
        if (r == 0)
                r = open_directory(run_dir, "layer/upper", &mounts->upper_fd);
        return r < 0 ? error_errno(e, r, "the workspace's overlay") : 0;
}

int workspace_make(const WorkspaceRequest *request, WorkspaceMounts *ret, Error *e)
{
        bool has_source = request->source_fd >= 0, has_files = !has_source || request->n_files > 0;
        WorkspaceMounts mounts = WORKSPACE_MOUNTS_INIT;
        struct stat st = { .st_mode = FRESH_MODE };
        _cleanup_free_ char *lower = text_printf("%s/lower", request->run_dir), *lowerdir = NULL;
        _cleanup_close_ int layer_fd = -EBADF, source_view = -EBADF;
        int r;

        if (!lower)
                return -ENOMEM;
        mounts.method = "fresh directory";
        mounts.owner_uid = request->uid;
        mounts.owner_gid = request->gid;
        if (has_source) {
                if (fstat(request->source_fd, &st) < 0)
                        return error_errno(e, -errno, "%s", request->source_path);
                mounts.owner_uid = st.st_uid;
                mounts.owner_gid = st.st_gid;
                r = make_lower(request, &st, lower, &mounts, e);
                if (r < 0)
                        return r;
                r = open_directory(request->run_dir, "lower", &source_view);
                if (r < 0)
                        return error_errno(e, r, "%s", lower);
        }
        r = open_directory(request->run_dir, "layer", &layer_fd);
        if (r < 0)
                return error_errno(e, r, "the layer");
        r = make_upper(request, layer_fd, st.st_mode & 07777, e);
        if (r == 0 && has_files)
                r = make_files(request, layer_fd, source_view, e);
        if (r == 0)
                r = open_lower(request->run_dir, has_files, has_source, &lowerdir, &mounts.lower_fd, e);
        if (r == 0)
                r = make_merged(request->run_dir, lowerdir, &mounts, e);
        if (r < 0) {
                workspace_mounts_close(&mounts);
                return r;
        }
        *ret = mounts;
        return 0;
}
