/* SPDX-License-Identifier: Apache-2.0 */
#include "run/places.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>

#include "base/path.h"
#include "sys/file.h"
#include "sys/inside.h"
#include "sys/system.h"

#define VEILS_MAX 64

/* One path of the host that the job sees. */
typedef struct Shown {
        const char *path; /* of the policy: there the job sees it */
        int fd;           /* O_PATH, links followed */
} Shown;

struct Places {
        const Plan *plan;
        int system_fd;
        char **system;         /* names of the directories that are attached at the top */
        char **targets;        /* where; */
        struct stat *attached; /* and what was attached */
        char *shared;          /* directories that could not be veiled */
        char **mounts;         /* of the host */
        char **etc;            /* of plan.shown, those that the host has */
        Shown shown[POLICY_PATHS_MAX];
        size_t n_shown;
        char **read_only; /* paths in the workspace that cannot be written, as the job sees them */
        char **hidden;    /* as the job sees them; twice where the workspace is seen by another name */
        int blank_fd;     /* has the entries "directory" and "file" that nobody may open */
};

Places *places_free(Places *places)
{
        if (!places)
                return NULL;
        safe_close(places->system_fd);
        safe_close(places->blank_fd);
        for (size_t i = 0; i < places->n_shown; i++)
                safe_close(places->shown[i].fd);
        strv_free(places->system);
        strv_free(places->targets);
        free(places->attached);
        free(places->shared);
        strv_free(places->mounts);
        strv_free(places->etc);
        strv_free(places->read_only);
        strv_free(places->hidden);
        free(places);
        return NULL;
}

int places_system(const Places *places)
{
        return places->system_fd;
}

/* --- what there is --- */

/* A workspace, a home or a shown path that lies in a directory of the system has it to itself: what is
 * attached there read-only could not hold its mount point. */
static bool is_needed(const Places *p, const char *name)
{
        const Plan *plan = p->plan;
        _cleanup_free_ char *top = text_printf("/%s", name);
        bool fixed = streq(name, "usr") || streq(name, "etc");

        if (!top || fixed)
                return false;
        if (path_is_within(plan->cwd, top) || (plan->home && path_is_within(plan->home, top)))
                return true;
        for (size_t i = 0; i < p->n_shown; i++)
                if (path_is_within(p->shown[i].path, top))
                        return true;
        return false;
}

static int open_system(Places *p, Error *e)
{
        _cleanup_free_ char *target = text_printf("%s/system", p->plan->run_dir);
        _cleanup_strv_ char **names = NULL;
        int r;

        if (!p->plan->policy->root)
                return 0;
        r = target ? system_open(p->plan->policy->root, target, &p->system_fd, e) : -ENOMEM;
        if (r == 0)
                r = system_directories(p->system_fd, &names);
        for (size_t i = 0; r == 0 && names && names[i]; i++)
                if (!is_needed(p, names[i]))
                        r = strv_extend(&p->system, names[i]);
        if (r < 0 && e->text[0] == '\0')
                return error_errno(e, r, "the policy's root %s", p->plan->policy->root);
        if (r == 0 && !strv_contains(p->system, "usr"))
                return error_set(e, -EINVAL, "the policy's root %s has no /usr: it holds no system",
                                p->plan->policy->root);
        return r;
}

/* The job's path for what lies at path on the host, in the workspace; NULL in *ret: it does not lie there. */
static int in_workspace(const Plan *plan, const char *source_path, const char *path, char **ret)
{
        _cleanup_free_ char *real = realpath(path, NULL);
        const char *below = source_path ? path_below(real ? real : path, source_path) : NULL;

        *ret = NULL;
        if (!below)
                return 0;
        *ret = *below ? path_join(plan->cwd, below) : strdup(plan->cwd);
        return *ret ? 0 : -ENOMEM;
}

/* Both as it is written and as it is found in the workspace. */
static int add_path(const Plan *plan, const char *source_path, const char *path, char ***list)
{
        _cleanup_free_ char *inside = NULL;
        int r = in_workspace(plan, source_path, path, &inside);

        if (r == 0)
                r = strv_extend(list, path);
        if (r == 0 && inside && !streq(inside, path))
                r = strv_extend(list, inside);
        return r;
}

/* The host's own system is read-only in the job as it is. */
static bool is_there_anyway(const Plan *plan, const char *path)
{
        static const char *const trees[] = { "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32" };

        for (size_t i = 0; i < ELEMENTSOF(trees) && !plan->policy->root; i++)
                if (path_is_within(path, trees[i]))
                        return true;
        return false;
}

static bool is_directory(int fd)
{
        struct stat st;

        return fstat(fd, &st) >= 0 && S_ISDIR(st.st_mode);
}

/* What is made there is the job's to change, and told from its own only where it is a directory. */
static bool is_scratch(const char *path)
{
        static const char *const trees[] = { "/tmp", "/var/tmp", "/dev", "/home", "/root", "/run" };

        for (size_t i = 0; i < ELEMENTSOF(trees); i++)
                if (path_is_within(path, trees[i]))
                        return true;
        return false;
}

static int add_shown(Places *p, const char *source_path, const char *path, Error *e)
{
        _cleanup_free_ char *inside = NULL;
        int fd, r = in_workspace(p->plan, source_path, path, &inside);

        if (r < 0)
                return r;
        if (path_is_within(path, p->plan->cwd) || inside)
                return add_path(p->plan, source_path, path, &p->read_only);
        if (is_there_anyway(p->plan, path))
                return 0;
        fd = open(path, O_PATH | O_CLOEXEC);
        if (fd < 0 && errno == ENOENT)
                return 0;
        if (fd < 0)
                return error_errno(e, -errno, "policy.read_only_paths: %s", path);
        if (!is_directory(fd) && is_scratch(path)) {
                safe_close(fd);
                return error_set(e, -ENOTDIR,
                                "policy.read_only_paths: %s is a file where a job has scratch space: name its "
                                "directory",
                                path);
        }
        p->shown[p->n_shown++] = (Shown){ path, fd };
        return 0;
}

/* Nothing to be seen: an empty directory and an empty file, both of root, with no permission for anybody. */
static int make_blanks(Places *p, Error *e)
{
        MountOption options[] = { { "source", "qscope-hidden" }, { "size", "4096" }, { "nr_inodes", "8" },
                { "mode", "0755" }, { 0 } };
        _cleanup_free_ char *target = text_printf("%s/blank", p->plan->run_dir);
        _cleanup_close_ int mount = -EBADF, file = -EBADF;
        int r;

        if (!target)
                return -ENOMEM;
        r = mount_new("tmpfs", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, &mount, e);
        if (r < 0)
                return r;
        /* Only of what is attached somewhere can parts be attached elsewhere. */
        r = mount_attach(mount, target);
        p->blank_fd = r < 0 ? -EBADF : open(target, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (p->blank_fd < 0 || mkdirat(p->blank_fd, "directory", 0) < 0)
                return error_errno(e, r < 0 ? r : -errno, "what hides paths");
        file = openat(p->blank_fd, "file", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0);
        if (file < 0)
                return error_errno(e, -errno, "what hides paths");
        return 0;
}

int places_new(const Plan *plan, const char *source_path, Places **ret, Error *e)
{
        _cleanup_(places_freep) Places *p = calloc(1, sizeof(*p));
        char **shown = plan->policy->read_only_paths, **hidden = plan->policy->hidden_paths;
        struct stat st;
        int r = 0;

        if (!p)
                return -ENOMEM;
        p->plan = plan;
        p->system_fd = p->blank_fd = -EBADF;
        for (size_t i = 0; r == 0 && shown && shown[i]; i++)
                r = add_shown(p, source_path, shown[i], e);
        for (size_t i = 0; r == 0 && hidden && hidden[i]; i++)
                r = add_path(plan, source_path, hidden[i], &p->hidden);
        for (size_t i = 0; r == 0 && plan->shown && plan->shown[i]; i++)
                if (stat(plan->shown[i], &st) >= 0 && S_ISDIR(st.st_mode))
                        r = strv_extend(&p->etc, plan->shown[i]);
        if (r == 0)
                r = open_system(p, e);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(p);
        return 0;
}

/* --- mount points --- */

int places_mount_points(const Places *p, char ***ret)
{
        int r = 0;

        for (size_t i = 0; r == 0 && p->system && p->system[i]; i++)
                r = strv_extendf(ret, "/%s", p->system[i]);
        for (size_t i = 0; r == 0 && p->etc && p->etc[i]; i++)
                r = strv_extend(ret, p->etc[i]);
        /* A system's own /usr cannot be written: there the mount point is, or is not. */
        for (size_t i = 0; r == 0 && i < p->n_shown; i++) {
                const char *path = p->shown[i].path, *slash = strrchr(path, '/');

                if (path_is_within(path, "/usr"))
                        continue;
                if (is_directory(p->shown[i].fd))
                        r = strv_extend(ret, path);
                else if (slash > path)
                        r = strv_extendf(ret, "%.*s", (int) (slash - path), path);
        }
        return r;
}

int places_make_files(const Places *p, int root_fd)
{
        int r = 0;

        for (size_t i = 0; r == 0 && i < p->n_shown; i++) {
                if (is_directory(p->shown[i].fd) || path_is_within(p->shown[i].path, "/usr"))
                        continue;
                r = file_create_at(root_fd, p->shown[i].path + 1, "", 0, 0644);
                r = r == -EEXIST ? 0 : r;
        }
        return r;
}

/* --- attaching --- */

/* What was made for the job lies over what the system has. */
static int clone_etc(const Places *p, int *ret_fd, Error *e)
{
        _cleanup_free_ char *lower =
                        text_printf("%s/etc:/proc/self/fd/%d/etc", p->plan->root_dir, p->system_fd);
        MountOption options[] = { { "source", "qscope-etc" }, { "lowerdir", lower }, { "xino", "off" },
                { 0 } };

        if (!lower)
                return -ENOMEM;
        return mount_new("overlay", options, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, ret_fd,
                        e);
}

static int add_shared(Places *p, const char *target)
{
        _cleanup_free_ char *before = p->shared;

        p->shared = text_printf("%s%s%s", before ? before : "", before ? ", " : "", target);
        return p->shared ? 0 : -ENOMEM;
}

/* The same files under inodes of the job's own. A lock or a watch (flock(2), inotify(7)) is one of the inode:
 * on the host's, the host and every other job that sees the file would feel it. An overlay of one layer, and
 * an empty one since it wants two, is such a view. *ret_fd is negative where there can be none. */
static int veil(Places *p, const char *lower, const char *target, int *ret_fd)
{
        _cleanup_free_ char *layers = text_printf("%s:%s/usr", lower, p->plan->root_dir);
        MountOption options[] = { { "source", "qscope-veil" }, { "lowerdir", layers }, { "xino", "off" },
                { 0 } };
        Error ignored = { 0 };

        *ret_fd = -EBADF;
        if (!layers)
                return -ENOMEM;
        if (!mount_list_has_submounts(p->mounts, lower) &&
                        mount_new("overlay", options,
                                        MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, ret_fd,
                                        &ignored) == 0)
                return 0;
        return add_shared(p, target);
}

static int clone_directory(Places *p, const char *name, int *ret_fd, Error *e)
{
        _cleanup_free_ char *lower = text_printf("/proc/self/fd/%d/%s", p->system_fd, name);
        int r;

        if (streq(name, "etc"))
                return clone_etc(p, ret_fd, e);
        r = lower ? veil(p, lower, name, ret_fd) : -ENOMEM;
        if (r == 0 && *ret_fd < 0)
                r = mount_clone(p->system_fd, name, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
                                ret_fd);
        return r < 0 ? error_errno(e, r, "/%s of the policy's root", name) : 0;
}

static int add_other_system(Places *p, Moves *moves, Error *e)
{
        int r = 0;

        p->attached = calloc(strv_length(p->system) + 1, sizeof(*p->attached));
        if (!p->attached)
                return -ENOMEM;
        for (size_t i = 0; r == 0 && p->system && p->system[i]; i++)
                r = strv_extendf(&p->targets, "/%s", p->system[i]);
        for (size_t i = 0; r == 0 && p->system && p->system[i]; i++) {
                int fd = -EBADF;

                r = clone_directory(p, p->system[i], &fd, e);
                if (r < 0)
                        return r;
                moves_add(moves, fd, p->targets[i], MOUNT_ATTACH);
                if (fstat(fd, &p->attached[i]) < 0)
                        r = -errno;
        }
        return r;
}

/* Over what systemd has bound: directories, each where it lies on the host. */
static int add_host_veils(Places *p, Moves *moves)
{
        const PropertyValue *binds = property_list_find(&p->plan->service_properties, "BindReadOnlyPaths");
        int r = 0;

        for (size_t i = 0; r == 0 && binds && binds->list[i]; i++) {
                const char *path = binds->list[i] + (binds->list[i][0] == '-');
                struct stat st;
                int fd = -EBADF;

                if (strchr(path, ':') || stat(path, &st) < 0 || !S_ISDIR(st.st_mode))
                        continue;
                r = moves->n < VEILS_MAX ? veil(p, path, path, &fd) : add_shared(p, path);
                if (r == 0 && fd >= 0)
                        moves_add(moves, fd, path, MOUNT_VEIL);
        }
        return r;
}

static int add_etc(Places *p, Moves *moves, Error *e)
{
        int r = 0;

        for (size_t i = 0; r == 0 && p->etc && p->etc[i]; i++) {
                int fd = -EBADF;

                r = veil(p, p->etc[i], p->etc[i], &fd);
                if (r == 0 && fd < 0)
                        r = mount_clone_tree(AT_FDCWD, p->etc[i],
                                        MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, &fd);
                if (r < 0)
                        return error_errno(e, r, "the host's %s", p->etc[i]);
                moves_add(moves, fd, p->etc[i], MOUNT_ATTACH);
        }
        return r;
}

int places_add_system(Places *p, Moves *moves, Error *e)
{
        int r = mount_list(&p->mounts);

        if (r < 0)
                return error_errno(e, r, "the host's mounts cannot be read");
        if (p->system_fd >= 0)
                return add_other_system(p, moves, e);
        r = add_host_veils(p, moves);
        return r < 0 ? r : add_etc(p, moves, e);
}

/* What a path of the job's root leads to, without leaving it. */
static int stat_in_root(int proc_fd, const char *path, struct stat *st, bool *ret_read_only)
{
        struct open_how how = { .flags = O_PATH | O_CLOEXEC,
                .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
        _cleanup_close_ int root = openat(proc_fd, "root", O_PATH | O_DIRECTORY | O_CLOEXEC), fd = -EBADF;
        struct statvfs fs;

        if (root < 0)
                return -errno;
        fd = (int) syscall(SYS_openat2, root, path, &how, sizeof(how));
        if (fd < 0 || fstat(fd, st) < 0)
                return -errno;
        if (ret_read_only)
                *ret_read_only = fstatvfs(fd, &fs) >= 0 && (fs.f_flag & ST_RDONLY);
        return 0;
}

/* -ENOENT and its like: there is nothing that could be hidden or written. */
static bool is_absent(int r)
{
        return r == -ENOENT || r == -ENOTDIR || r == -ELOOP;
}

static int add_shown_moves(const Places *p, Moves *moves, Error *e)
{
        for (size_t i = 0; i < p->n_shown; i++) {
                int fd, r = mount_clone_tree(p->shown[i].fd, "",
                                        MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, &fd);

                if (r < 0)
                        return error_errno(e, r, "policy.read_only_paths: %s", p->shown[i].path);
                moves_add(moves, fd, p->shown[i].path, MOUNT_ATTACH);
        }
        return 0;
}

static int attach_read_only(const Places *p, int proc_fd, Error *e)
{
        Moves moves = { 0 };
        int r = add_shown_moves(p, &moves, e);

        for (size_t i = 0; r == 0 && p->read_only && p->read_only[i]; i++) {
                struct stat st;
                int found = stat_in_root(proc_fd, p->read_only[i], &st, NULL);

                if (found == 0)
                        moves_add(&moves, -EBADF, p->read_only[i], MOUNT_READ_ONLY);
                else if (!is_absent(found))
                        r = error_errno(e, found, "policy.read_only_paths: %s", p->read_only[i]);
        }
        return moves_do(&moves, proc_fd, r, e);
}

/* Called while nothing of the job runs: what is seen here is what will be covered. */
static int attach_hidden(Places *p, int proc_fd, Error *e)
{
        Moves moves = { 0 };
        int r = p->hidden ? make_blanks(p, e) : 0;

        for (size_t i = 0; r == 0 && p->hidden && p->hidden[i]; i++) {
                struct stat st = { 0 };
                int fd, found = stat_in_root(proc_fd, p->hidden[i], &st, NULL);

                if (is_absent(found))
                        continue;
                r = found < 0 ? found
                              : mount_clone(p->blank_fd, S_ISDIR(st.st_mode) ? "directory" : "file",
                                                MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
                                                &fd);
                if (r < 0)
                        error_errno(e, r, "policy.hidden_paths: %s", p->hidden[i]);
                else
                        moves_add(&moves, fd, p->hidden[i], MOUNT_COVER);
        }
        return moves_do(&moves, proc_fd, r, e);
}

int places_attach(Places *p, int proc_fd, Error *e)
{
        int r = attach_read_only(p, proc_fd, e);

        return r < 0 ? r : attach_hidden(p, proc_fd, e);
}

/* --- facts --- */

static bool same_file(const struct stat *a, const struct stat *b)
{
        return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static int add_fact(Outcome *o, const char *kind, const char *path, bool holds, const char *expected)
{
        _cleanup_free_ char *name = text_printf("%s:%s", kind, path);

        return name ? outcome_add_fact(o, name, holds, expected, holds ? expected : "something else")
                    : -ENOMEM;
}

static int add_system_facts(const Places *p, int proc_fd, Outcome *o)
{
        int r = 0;

        for (size_t i = 0; r == 0 && p->system && p->system[i]; i++) {
                _cleanup_free_ char *path = text_printf("/%s", p->system[i]);
                bool read_only = false, holds;
                struct stat theirs;

                if (!path)
                        return -ENOMEM;
                holds = stat_in_root(proc_fd, path, &theirs, &read_only) == 0 && read_only &&
                        same_file(&theirs, &p->attached[i]);
                r = add_fact(o, "mount", path, holds, "the policy's root, read-only");
        }
        return r;
}

static int add_read_only_facts(const Places *p, int proc_fd, Outcome *o)
{
        int r = 0;

        for (size_t i = 0; r == 0 && i < p->n_shown; i++) {
                struct stat theirs, ours;
                bool read_only = false, holds;

                holds = stat_in_root(proc_fd, p->shown[i].path, &theirs, &read_only) == 0 &&
                        fstat(p->shown[i].fd, &ours) >= 0 && read_only && same_file(&theirs, &ours);
                r = add_fact(o, "read_only", p->shown[i].path, holds, "the host's, read-only");
        }
        for (size_t i = 0; r == 0 && p->read_only && p->read_only[i]; i++) {
                bool read_only = false;
                struct stat st;
                int found = stat_in_root(proc_fd, p->read_only[i], &st, &read_only);

                r = add_fact(o, "read_only", p->read_only[i], is_absent(found) || (found == 0 && read_only),
                                "read-only");
        }
        return r;
}

int places_facts(const Places *p, int proc_fd, Outcome *o)
{
        int r = add_system_facts(p, proc_fd, o);

        if (r == 0 && p->shared)
                r = outcome_blind_spot(o,
                                "shared: the host's inodes are used in %s (no overlay over it can be mounted, or "
                                "something is mounted below it): locks of files there are felt outside of the job",
                                p->shared);
        if (r == 0)
                r = add_read_only_facts(p, proc_fd, o);
        return r < 0 ? r : inside_hidden_facts(proc_fd, p->hidden, o);
}
