/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/mount.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>

#include "base/path.h"
#include "base/text.h"
#include "sys/file.h"
#include "sys/namespace.h"

#define KEPT_MAX 64

int mount_namespace_own(void)
{
        if (unshare(CLONE_NEWNS) < 0)
                return -errno;
        return mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0 ? -errno : 0;
}

/* The kernel explains a failed configuration in messages read from the context: "e overlay: …". */
static int configure_failed(int context, int r, const char *type, Error *e)
{
        char reason[512];
        ssize_t n = read(context, reason, sizeof(reason) - 1);

        if (n <= 2)
                return error_errno(e, r, "%s cannot be mounted", type);
        reason[n] = '\0';
        reason[strcspn(reason, "\n")] = '\0';
        return error_errno(e, r, "%s cannot be mounted (%s)", type, reason + 2);
}

int mount_new(const char *type, const MountOption *options, unsigned attributes, int *ret_fd, Error *e)
{
        _cleanup_close_ int context = fsopen(type, FSOPEN_CLOEXEC), fd = -EBADF;

        if (context < 0)
                return error_errno(e, -errno, "the kernel has no %s", type);
        for (; options->key; options++) {
                unsigned command = options->value ? FSCONFIG_SET_STRING : FSCONFIG_SET_FLAG;

                if (fsconfig(context, command, options->key, options->value, 0) < 0)
                        return configure_failed(context, -errno, type, e);
        }
        if (fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
                return configure_failed(context, -errno, type, e);
        fd = fsmount(context, FSMOUNT_CLOEXEC, attributes);
        if (fd < 0)
                return error_errno(e, -errno, "%s cannot be mounted", type);
        *ret_fd = TAKE_FD(fd);
        return 0;
}

int mount_clone(int dir_fd, const char *path, unsigned attributes, int *ret_fd)
{
        _cleanup_close_ int fd = -EBADF;
        struct mount_attr attr = { .attr_set = attributes };

        fd = open_tree(dir_fd, path,
                        OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW);
        if (fd < 0)
                return -errno;
        if (attributes != 0 && mount_setattr(fd, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
                return -errno;
        *ret_fd = TAKE_FD(fd);
        return 0;
}

int mount_clone_tree(int dir_fd, const char *path, unsigned attributes, int *ret_fd)
{
        _cleanup_close_ int fd = -EBADF;
        struct mount_attr attr = { .attr_set = attributes };

        fd = open_tree(dir_fd, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE | AT_EMPTY_PATH);
        if (fd < 0 || mount_setattr(fd, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof(attr)) < 0)
                return -errno;
        *ret_fd = TAKE_FD(fd);
        return 0;
}

/* All ids, with a and b exchanged: a user namespace's map must be one to one. */
static void write_map(char *text, size_t size, uint32_t a, uint32_t b)
{
        uint32_t low = MIN(a, b), high = MAX(a, b);
        int n = 0;

        /* inside, outside, length; the last id (2^32 - 1) means "none" and cannot be mapped. */
        if (low > 0)
                n += snprintf(text + n, size - (size_t) n, "0 0 %u\n", low);
        n += snprintf(text + n, size - (size_t) n, "%u %u 1\n", low, high);
        if (high > low) {
                if (high - low > 1)
                        n += snprintf(text + n, size - (size_t) n, "%u %u %u\n", low + 1, low + 1,
                                        high - low - 1);
                n += snprintf(text + n, size - (size_t) n, "%u %u 1\n", high, low);
        }
        (void) snprintf(text + n, size - (size_t) n, "%u %u %u\n", high + 1, high + 1, UINT32_MAX - high - 1);
}

static int write_maps(pid_t pid, uid_t uid_a, uid_t uid_b, gid_t gid_a, gid_t gid_b, int *ret_namespace)
{
        char path[64], map[256];
        int r, fd;

        (void) snprintf(path, sizeof(path), "/proc/%d/uid_map", (int) pid);
        write_map(map, sizeof(map), uid_a, uid_b);
        r = file_write_at(AT_FDCWD, path, map);
        if (r < 0)
                return r;
        (void) snprintf(path, sizeof(path), "/proc/%d/gid_map", (int) pid);
        write_map(map, sizeof(map), gid_a, gid_b);
        r = file_write_at(AT_FDCWD, path, map);
        if (r < 0)
                return r;
        (void) snprintf(path, sizeof(path), "/proc/%d/ns/user", (int) pid);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        *ret_namespace = fd;
        return 0;
}

/* A user namespace needs a process to be made by. */
static int owner_namespace(uid_t uid_a, uid_t uid_b, gid_t gid_a, gid_t gid_b, int *ret_fd)
{
        pid_t pid;
        int r = namespace_hold(CLONE_NEWUSER, &pid);

        if (r < 0)
                return r;
        r = write_maps(pid, uid_a, uid_b, gid_a, gid_b, ret_fd);
        namespace_let_go(pid);
        return r;
}

int mount_map_owner(int mount_fd, uid_t from_uid, gid_t from_gid, uid_t to_uid, gid_t to_gid)
{
        _cleanup_close_ int namespace_fd = -EBADF;
        struct mount_attr attr = { .attr_set = MOUNT_ATTR_IDMAP };
        int r = owner_namespace(from_uid, to_uid, from_gid, to_gid, &namespace_fd);

        if (r < 0)
                return r;
        attr.userns_fd = (unsigned) namespace_fd;
        return mount_setattr(mount_fd, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0 ? -errno : 0;
}

int mount_attach(int mount_fd, const char *target)
{
        return move_mount(mount_fd, "", AT_FDCWD, target, MOVE_MOUNT_F_EMPTY_PATH) < 0 ? -errno : 0;
}

typedef struct Moving {
        int proc_fd, root_fd;
        const MountMove *moves;
        size_t n, at;
} Moving;

static int cover(int mount_fd, const char *target)
{
        return move_mount(mount_fd, "", AT_FDCWD, target, MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_SYMLINKS) < 0
                               ? -errno
                               : 0;
}

static int make_read_only(const char *target)
{
        _cleanup_close_ int fd = -EBADF;
        int r = mount_clone_tree(AT_FDCWD, target, MOUNT_ATTR_RDONLY, &fd);

        return r < 0 ? r : cover(fd, target);
}

/* Mounts below a directory, each by itself, in the order they were made, and what its own mount forbids. */
typedef struct Kept {
        const char *top;
        uint64_t attributes;
        char *targets[KEPT_MAX];
        int fds[KEPT_MAX];
        size_t n;
} Kept;

static bool has_word(const char *words, const char *word)
{
        size_t length = strlen(word);

        for (; words; words = strchr(words, ',')) {
                words += *words == ',';
                if (strncmp(words, word, length) == 0 && (words[length] == ',' || words[length] == '\0'))
                        return true;
        }
        return false;
}

static int keep(void *userdata, const char *target, const char *options)
{
        Kept *kept = userdata;
        int r;

        if (streq(target, kept->top))
                kept->attributes = has_word(options, "noexec") ? MOUNT_ATTR_NOEXEC : 0;
        if (!path_below(target, kept->top) || streq(target, kept->top))
                return 0;
        for (size_t i = 0; i < kept->n; i++)
                if (streq(kept->targets[i], target))
                        return 0; /* the path led to the upper one */
        if (kept->n >= KEPT_MAX)
                return -E2BIG;
        r = mount_clone(AT_FDCWD, target, 0, &kept->fds[kept->n]);
        if (r == -ENOENT || r == -ENOTDIR)
                return 0; /* hidden by another one */
        if (r < 0)
                return r;
        kept->targets[kept->n] = strdup(target);
        return kept->targets[kept->n++] ? 0 : -ENOMEM;
}

static int veil(int proc_fd, int mount_fd, const char *target)
{
        Kept kept = { .top = target };
        int r = mount_visit(proc_fd, keep, &kept);
        struct mount_attr attr = { .attr_set = kept.attributes };

        if (r == 0 && mount_setattr(mount_fd, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
                r = -errno;
        if (r == 0)
                r = cover(mount_fd, target);
        for (size_t i = 0; i < kept.n; i++) {
                if (r == 0)
                        r = mount_attach(kept.fds[i], kept.targets[i]);
                safe_close(kept.fds[i]);
                free(kept.targets[i]);
        }
        return r;
}

/* In the job's root. */
static int move_one(int proc_fd, const MountMove *move)
{
        switch (move->action) {
        case MOUNT_READ_ONLY:
                return make_read_only(move->target);
        case MOUNT_COVER:
                return cover(move->fd, move->target);
        case MOUNT_VEIL:
                return veil(proc_fd, move->fd, move->target);
        case MOUNT_ATTACH:
                if (move->fd >= 0)
                        return mount_attach(move->fd, move->target);
                return umount2(move->target, MNT_DETACH | UMOUNT_NOFOLLOW) < 0 ? -errno : 0;
        }
        return -EINVAL;
}

static int move_all(void *userdata)
{
        Moving *moving = userdata;

        if (fchdir(moving->root_fd) < 0 || chroot(".") < 0)
                return -errno;
        for (; moving->at < moving->n; moving->at++) {
                int r = move_one(moving->proc_fd, &moving->moves[moving->at]);

                if (r < 0)
                        return r;
        }
        return 0;
}

int mount_move_into(int proc_fd, const MountMove *moves, size_t n, Error *e)
{
        _cleanup_close_ int namespace_fd = openat(proc_fd, "ns/mnt", O_RDONLY | O_CLOEXEC), root_fd = -EBADF;
        Moving moving = { .proc_fd = proc_fd, .moves = moves, .n = n };
        int r;

        root_fd = openat(proc_fd, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (namespace_fd < 0 || root_fd < 0)
                return error_errno(e, -errno, "the job's mount namespace cannot be reached");
        moving.root_fd = root_fd;
        r = namespace_call(namespace_fd, move_all, &moving);
        return r < 0 ? error_errno(e, r, "%s cannot be mounted in the job's root",
                                       moving.at < n ? moves[moving.at].target : "the workspace")
                     : 0;
}

/* mountinfo writes space, tab, newline and backslash as \ooo (proc(5)). */
static void unescape(char *text)
{
        char *out = text;

        for (const char *p = text; *p; p++) {
                if (p[0] == '\\' && p[1] >= '0' && p[1] <= '3' && p[2] && p[3]) {
                        *out++ = (char) ((p[1] - '0') * 64 + (p[2] - '0') * 8 + (p[3] - '0'));
                        p += 3;
                } else {
                        *out++ = *p;
                }
        }
        *out = '\0';
}

/* "36 35 98:0 /root /mount/point rw,noatime …": the field and what is behind it. */
static char *next_field(char **p)
{
        return *p ? strsep(p, " \n") : NULL;
}

int mount_visit(int proc_fd, MountVisitor visit, void *userdata)
{
        _cleanup_free_ char *line = NULL;
        int fd = openat(proc_fd, "mountinfo", O_RDONLY | O_CLOEXEC), r = 0;
        size_t room = 0;
        FILE *f = fd < 0 ? NULL : fdopen(fd, "re");

        if (!f) {
                r = -errno;
                safe_close(fd);
                return r;
        }
        while (r == 0 && getline(&line, &room, f) >= 0) {
                char *p = line, *target, *options;

                for (int field = 0; field < 4; field++)
                        (void) next_field(&p);
                target = next_field(&p);
                options = next_field(&p);
                if (!target || !options)
                        continue;
                unescape(target);
                r = visit(userdata, target, options);
        }
        if (r == 0 && ferror(f))
                r = -EIO;
        (void) fclose(f);
        return r;
}

static int add_target(void *list, const char *target, _unused_ const char *options)
{
        return strv_extend(list, target);
}

int mount_list(char ***ret)
{
        _cleanup_close_ int proc_fd = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        _cleanup_strv_ char **list = NULL;
        int r = proc_fd < 0 ? -errno : mount_visit(proc_fd, add_target, &list);

        if (r == 0)
                *ret = TAKE_PTR(list);
        return r;
}

bool mount_list_has_submounts(char *const *list, const char *path)
{
        for (size_t i = 0; list && list[i]; i++)
                if (path_is_within(list[i], path) && !streq(list[i], path))
                        return true;
        return false;
}

int mount_has_submounts(const char *path)
{
        _cleanup_strv_ char **list = NULL;
        int r = mount_list(&list);

        return r < 0 ? r : mount_list_has_submounts(list, path);
}
