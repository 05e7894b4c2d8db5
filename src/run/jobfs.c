/* SPDX-License-Identifier: Apache-2.0 */
#include "run/jobfs.h"

#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/path.h"
#include "run/expected.h"
#include "run/places.h"
#include "sys/file.h"
#include "sys/inside.h"
#include "sys/layer.h"
#include "sys/mount.h"
#include "sys/namespace.h"
#include "sys/root.h"
#include "sys/tree.h"
#include "sys/workspace.h"

/* Directories of the layer and where the job sees them. systemd's own PrivateTmp= lies on the host's disk,
 * outside any budget, its PrivateDevices= shares the host's /dev/shm, and /home, /root and /run in a
 * RootDirectory= are tmpfs that anybody may fill; these are mounted over all of them. */
typedef enum ScratchKind {
        SCRATCH_TMP,
        SCRATCH_VAR_TMP,
        SCRATCH_SHM,
        SCRATCH_HOME,
        SCRATCH_ROOT,
        SCRATCH_RUN,
        SCRATCH_OTHER,
        _SCRATCH_MAX,
        SCRATCH_NONE = -1,
} ScratchKind;

static const struct {
        const char *name, *target;
        unsigned mode;
} scratch_table[] = {
        [SCRATCH_TMP] = { "tmp", "/tmp", 01777 },
        [SCRATCH_VAR_TMP] = { "vartmp", "/var/tmp", 01777 },
        [SCRATCH_SHM] = { "shm", "/dev/shm", 01777 },
        [SCRATCH_HOME] = { "homes", "/home", 0755 },
        [SCRATCH_ROOT] = { "root", "/root", 0755 },
        [SCRATCH_RUN] = { "run", "/run", 0755 },
};

struct JobFs {
        const Plan *plan;
        const char *image_dir; /* NULL: the layer is a tmpfs */
        int root_fd;           /* borrowed */
        int source_fd;
        char *source_path; /* resolved */
        bool copy;
        int layer_fd;
        bool has_other;       /* the home is a directory of its own */
        char **made;          /* directories that we made in scratch space, absolute */
        char **resolved;      /* where entries of allow_changes led before the run */
        WorkspaceFile *files; /* one for each of job.files */
        size_t n_files;
        WorkspaceMounts workspace;
        Places *places;
        Moves moves;     /* what is ready to be moved into the job's root */
        bool shared_sys; /* the host's */
        uid_t uid;
        gid_t gid;
};

JobFs *jobfs_free(JobFs *fs)
{
        if (!fs)
                return NULL;
        safe_close(fs->source_fd);
        safe_close(fs->layer_fd);
        workspace_mounts_close(&fs->workspace);
        moves_clear(&fs->moves);
        places_free(fs->places);
        for (size_t i = 0; i < fs->n_files; i++)
                safe_close(fs->files[i].source_fd);
        free(fs->files);
        free(fs->source_path);
        strv_free(fs->made);
        strv_free(fs->resolved);
        free(fs);
        return NULL;
}

void jobfs_owner(const JobFs *fs, uid_t *ret_uid, gid_t *ret_gid)
{
        struct stat st;
        bool known = fs->source_fd >= 0 && fstat(fs->source_fd, &st) >= 0;

        *ret_uid = known ? st.st_uid : 0;
        *ret_gid = known ? st.st_gid : 0;
}

/* The row of the scratch table in which path lies; SCRATCH_OTHER in a home that lies in none of them. */
static ScratchKind scratch_of(const Plan *plan, const char *path)
{
        for (size_t i = 0; i < ELEMENTSOF(scratch_table); i++)
                if (path_is_within(path, scratch_table[i].target))
                        return (ScratchKind) i;
        return plan->home && path_is_within(path, plan->home) ? SCRATCH_OTHER : SCRATCH_NONE;
}

static const char *scratch_target(const JobFs *fs, ScratchKind kind)
{
        return kind == SCRATCH_OTHER ? fs->plan->home : scratch_table[kind].target;
}

static const char *scratch_name(ScratchKind kind)
{
        return kind == SCRATCH_OTHER ? "home" : scratch_table[kind].name;
}

static int open_workspace(JobFs *fs, Error *e)
{
        struct open_how how = {
                .flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
                .resolve = RESOLVE_NO_MAGICLINKS,
        };
        char link[64], path[4096];
        ssize_t n;
        int r;

        /* Not through a link of /proc into a process: that may lead into another mount namespace, where paths
         * mean something else. */
        fs->source_fd = (int) syscall(SYS_openat2, AT_FDCWD, fs->plan->cwd, &how, sizeof(how));
        if (fs->source_fd < 0)
                return error_errno(e, -errno, "%s", fs->plan->cwd);
        (void) snprintf(link, sizeof(link), "/proc/self/fd/%d", fs->source_fd);
        n = readlink(link, path, sizeof(path) - 1);
        if (n <= 0)
                return error_errno(e, -EIO, "%s", fs->plan->cwd);
        path[n] = '\0';
        fs->source_path = strdup(path);
        if (!fs->source_path)
                return -ENOMEM;
        /* The plan judged the path as written; links may lead elsewhere. */
        r = workspace_path_check(fs->plan->policy, fs->source_path, e);
        if (r < 0)
                return r;
        r = mount_has_submounts(fs->source_path);
        if (r < 0)
                return error_errno(e, r, "the mounts below %s", fs->source_path);
        fs->copy = r > 0;
        return 0;
}

/* Mount points outside scratch space are part of the read-only root. */
static int skeleton_directories(const JobFs *fs, char ***ret)
{
        _cleanup_strv_ char **places = NULL;
        const Plan *plan = fs->plan;
        int r = places_mount_points(fs->places, &places);

        for (size_t i = 0; r == 0 && places && places[i]; i++)
                if (scratch_of(plan, places[i]) == SCRATCH_NONE)
                        r = strv_extend(ret, places[i]);
        if (r == 0 && scratch_of(plan, plan->cwd) == SCRATCH_NONE && !path_is_within(plan->cwd, "/usr"))
                r = strv_extend(ret, plan->cwd);
        if (r == 0 && plan->home && scratch_of(plan, plan->home) == SCRATCH_OTHER)
                r = strv_extend(ret, plan->home);
        return r;
}

int jobfs_new(const Plan *plan, int root_fd, const char *image_dir, JobFs **ret, Error *e)
{
        _cleanup_(jobfs_freep) JobFs *fs = calloc(1, sizeof(*fs));
        _cleanup_strv_ char **directories = NULL;
        int r;

        if (!fs)
                return -ENOMEM;
        *fs = (JobFs){
                .plan = plan,
                .image_dir = plan->layer == LAYER_IMAGE ? image_dir : NULL,
                .root_fd = root_fd,
                .source_fd = -EBADF,
                .layer_fd = -EBADF,
                .workspace = WORKSPACE_MOUNTS_INIT,
        };
        /* The last row is a home that lies nowhere in the table. */
        fs->has_other = plan->home && scratch_of(plan, plan->home) == SCRATCH_OTHER;
        if (plan->workspace == WORKSPACE_OVERLAY) {
                r = open_workspace(fs, e);
                if (r < 0)
                        return r;
        }
        r = places_new(plan, fs->source_path, &fs->places, e);
        if (r == 0)
                r = skeleton_directories(fs, &directories);
        if (r == 0)
                r = root_make(root_fd, places_system(fs->places), directories, e);
        if (r == 0)
                r = places_make_files(fs->places, root_fd);
        if (r < 0)
                return r == -ENOTDIR || r == -ENOENT || r == -EACCES ? -EIO : r;
        *ret = TAKE_PTR(fs);
        return 0;
}

static int make_layer(JobFs *fs, Error *e)
{
        const Limits *limits = &fs->plan->limits;
        _cleanup_free_ char *target = text_printf("%s/layer", fs->plan->run_dir);
        int r;

        if (!target)
                return -ENOMEM;
        r = layer_open(fs->image_dir, limits->value[LIMIT_DISK], limits->value[LIMIT_INODES], target,
                        &fs->layer_fd, e);
        if (r < 0)
                return r;
        for (ScratchKind kind = 0; kind < _SCRATCH_MAX; kind++) {
                unsigned mode = kind == SCRATCH_OTHER ? 0700 : scratch_table[kind].mode;

                if (kind == SCRATCH_OTHER && !fs->has_other)
                        continue;
                if (mkdirat(fs->layer_fd, scratch_name(kind), 0700) < 0 ||
                                fchmodat(fs->layer_fd, scratch_name(kind), mode, 0) < 0)
                        return error_errno(e, -errno, "the layer's directories");
        }
        return 0;
}

/* Makes path below its scratch directory, so that something can be mounted there or the job finds its home.
 */
static int make_scratch_directory(JobFs *fs, const char *path, bool own)
{
        ScratchKind kind = scratch_of(fs->plan, path);
        const char *below = path_below(path, scratch_target(fs, kind));
        _cleanup_strv_ char **made = NULL;
        _cleanup_close_ int fd = openat(fs->layer_fd, scratch_name(kind), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        int r;

        if (fd < 0)
                return -errno;
        r = mkdir_parents_at(fd, below, 0755, own ? fs->uid : 0, own ? fs->gid : 0, &made);
        for (size_t i = 0; r == 0 && made && made[i]; i++)
                r = strv_extendf(&fs->made, "%s/%s", scratch_target(fs, kind), made[i]);
        return r;
}

static int make_home(JobFs *fs)
{
        const char *home = fs->plan->home, *name;
        _cleanup_close_ int fd = -EBADF;
        ScratchKind kind;
        int r;

        if (!home)
                return 0;
        kind = scratch_of(fs->plan, home);
        name = scratch_name(kind);
        if (kind != SCRATCH_OTHER) {
                r = make_scratch_directory(fs, home, false);
                if (r < 0)
                        return r;
        }
        fd = openat(fs->layer_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        name = kind == SCRATCH_OTHER ? "" : path_below(home, scratch_table[kind].target);
        /* /tmp as a home stays everybody's. */
        if (kind <= SCRATCH_SHM && *name == '\0')
                return 0;
        if (fchownat(fd, *name ? name : ".", fs->uid, fs->gid, 0) < 0 ||
                        fchmodat(fd, *name ? name : ".", 0700, 0) < 0)
                return -errno;
        return 0;
}

static int make_scratch(JobFs *fs)
{
        _cleanup_strv_ char **places = NULL;
        const Plan *plan = fs->plan;
        int r = make_home(fs);

        if (r == 0)
                r = places_mount_points(fs->places, &places);
        for (size_t i = 0; r == 0 && places && places[i]; i++)
                if (scratch_of(plan, places[i]) != SCRATCH_NONE)
                        r = make_scratch_directory(fs, places[i], false);
        if (r == 0 && scratch_of(plan, plan->cwd) != SCRATCH_NONE)
                r = make_scratch_directory(
                                fs, plan->cwd, plan->home && path_is_within(plan->cwd, plan->home));
        return r;
}

int jobfs_open_sources(JobFs *fs, JobFsOpen open_source, void *userdata, Error *e)
{
        const Job *job = fs->plan->job;

        fs->files = calloc(job->n_files + 1, sizeof(*fs->files));
        if (!fs->files)
                return -ENOMEM;
        for (; fs->n_files < job->n_files; fs->n_files++) {
                const JobFile *from = &job->files[fs->n_files];
                WorkspaceFile *file = &fs->files[fs->n_files];
                int r;

                *file = (WorkspaceFile){
                        .path = from->path,
                        .mode = from->mode,
                        .data = from->input.data,
                        .size = from->input.size,
                        .source_fd = -EBADF,
                };
                if (!from->input.path)
                        continue;
                r = open_source(userdata, from->input.path, &file->source_fd, e);
                if (r < 0)
                        return error_prefix(e, r, "job.files[%zu].source", fs->n_files);
        }
        return 0;
}

static int make_workspace(JobFs *fs, Error *e)
{
        const Plan *plan = fs->plan;
        WorkspaceRequest request = {
                .run_dir = plan->run_dir,
                .source_fd = fs->source_fd,
                .source_path = plan->cwd,
                .copy = fs->copy,
                .uid = fs->uid,
                .gid = fs->gid,
                .files = fs->files,
                .n_files = fs->n_files,
                .image_dir = fs->image_dir,
                .bytes = plan->limits.value[LIMIT_DISK],
                .inodes = plan->limits.value[LIMIT_INODES],
        };

        return workspace_make(&request, &fs->workspace, e);
}

/* The job may turn links as it likes: what counts is where they led when the changes were agreed. */
static int resolve_allowed(JobFs *fs)
{
        char **allowed = fs->plan->allow_changes;
        int r = 0;

        for (size_t i = 0; r == 0 && allowed && allowed[i]; i++) {
                char *place;

                r = tree_resolve(fs->workspace.lower_fd, fs->plan->cwd, fs->source_path, allowed[i], &place);
                if (r == 0 && place)
                        r = strv_consume(&fs->resolved, place);
        }
        return r;
}

static int add_scratch_moves(JobFs *fs, Moves *moves)
{
        for (ScratchKind kind = 0; kind < _SCRATCH_MAX; kind++) {
                int fd, r;

                if (kind == SCRATCH_OTHER && !fs->has_other)
                        continue;
                r = mount_clone(fs->layer_fd, scratch_name(kind), MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, &fd);
                if (r < 0)
                        return r;
                moves_add(moves, fd, scratch_target(fs, kind), MOUNT_ATTACH);
        }
        return 0;
}

static int new_sysfs(void *userdata)
{
        MountOption options[] = { { "source", "sysfs" }, { 0 } };
        Error ignored = { 0 };

        return mount_new("sysfs", options,
                        MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC,
                        userdata, &ignored);
}

/* /sys is one for each network: with that of its own, a job does not see the host's interfaces, and neither
 * can feel the other's locks and watches of its files. The host's /sys stays where there is none, or where
 * the policy has something mounted in it. */
static int add_sysfs(JobFs *fs, int proc_fd, Moves *moves)
{
        _cleanup_close_ int netns_fd = openat(proc_fd, "ns/net", O_RDONLY | O_CLOEXEC);
        int fd, r;

        if (netns_fd < 0)
                return -errno;
        fs->shared_sys = fs->plan->network == NETWORK_HOST ||
                         property_list_names(&fs->plan->policy->properties, "/sys");
        if (fs->shared_sys)
                return 0;
        r = namespace_call(netns_fd, new_sysfs, &fd);
        if (r == -ENOMEM)
                return r;
        fs->shared_sys = r < 0;
        if (r == 0)
                moves_add(moves, fd, "/sys", MOUNT_ATTACH);
        return 0;
}

/* Terminals of its own: PrivateDevices= shows those of the host. */
static int add_terminals(Moves *moves, Error *e)
{
        MountOption options[] = { { "source", "devpts" }, { "mode", "0620" }, { "ptmxmode", "0666" },
                { "max", "64" }, { 0 } };
        int fd, r;

        r = mount_new("devpts", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, &fd, e);
        if (r == 0)
                moves_add(moves, fd, "/dev/pts", MOUNT_ATTACH);
        return r;
}

/* Of the control groups only its own, where runtimes that size themselves look for their limits. */
static int add_own_group(int service_fd, Moves *moves, Error *e)
{
        int fd, r = mount_clone(service_fd, "",
                                MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC,
                                &fd);

        if (r < 0)
                return error_errno(e, r, "the job's control group cannot be shown to it");
        moves_add(moves, fd, "/sys/fs/cgroup", MOUNT_ATTACH);
        return 0;
}

int jobfs_prepare(JobFs *fs, const char *hostname, Error *e)
{
        int r = root_fill(fs->root_fd, places_system(fs->places) >= 0, hostname,
                        fs->plan->network == NETWORK_HOST, e);

        if (r == 0)
                r = make_layer(fs, e);
        if (r == 0)
                r = places_add_system(fs->places, &fs->moves, e);
        if (r < 0)
                return r;
        /* The stage runs on; only its name in the job's root goes, before /run is covered. */
        moves_add(&fs->moves, -EBADF, STAGE_TARGET, MOUNT_ATTACH);
        r = add_scratch_moves(fs, &fs->moves);
        return r < 0 ? error_errno(e, r, "the job's scratch directories") : add_terminals(&fs->moves, e);
}

int jobfs_attach(JobFs *fs, int proc_fd, int service_fd, uid_t uid, gid_t gid, Error *e)
{
        const Plan *plan = fs->plan;
        int r;

        fs->uid = uid;
        fs->gid = gid;
        r = root_add_user(fs->root_fd, uid, gid, plan->passwd_home, e);
        if (r < 0)
                return r;
        r = make_scratch(fs);
        if (r < 0)
                return error_errno(e, r, "the job's home directory cannot be made");
        r = make_workspace(fs, e);
        if (r == 0)
                r = resolve_allowed(fs);
        if (r < 0)
                return r;
        r = add_sysfs(fs, proc_fd, &fs->moves);
        if (r < 0)
                return error_errno(e, r, "the job's /sys");
        r = add_own_group(service_fd, &fs->moves, e);
        if (r < 0)
                return r;
        moves_add(&fs->moves, TAKE_FD(fs->workspace.job_fd), plan->cwd, MOUNT_ATTACH);
        r = moves_do(&fs->moves, proc_fd, 0, e);
        return r < 0 ? r : places_attach(fs->places, proc_fd, e);
}

static int add_place_fact(Outcome *o, int proc_fd, const char *target, int wanted_fd)
{
        _cleanup_free_ char *path = text_printf("root%s", target), *name = text_printf("mount:%s", target);
        struct stat theirs, ours;
        bool same;

        if (!path || !name)
                return -ENOMEM;
        same = fstatat(proc_fd, path, &theirs, AT_SYMLINK_NOFOLLOW) >= 0 && fstat(wanted_fd, &ours) >= 0 &&
               theirs.st_dev == ours.st_dev && theirs.st_ino == ours.st_ino;
        return outcome_add_fact(
                        o, name, same, "the job's layer", same ? "the job's layer" : "something else");
}

/* The budget as the layer's file system has it. */
static int add_budget_facts(const JobFs *fs, Outcome *o)
{
        const Limits *limits = &fs->plan->limits;
        const struct {
                const char *fact;
                LimitKind limit;
        } rows[] = { { "limit.disk", LIMIT_DISK }, { "limit.inodes", LIMIT_INODES } };
        uint64_t sizes[2], slack[2];
        int r = layer_size(fs->layer_fd, fs->image_dir != NULL, limits->value[LIMIT_DISK],
                        limits->value[LIMIT_INODES], sizes, slack);

        for (size_t i = 0; r == 0 && i < ELEMENTSOF(rows); i++) {
                uint64_t value = limits->value[rows[i].limit];
                char a[32], b[32];

                (void) snprintf(a, sizeof(a), "%" PRIu64, value);
                (void) snprintf(b, sizeof(b), "%" PRIu64, sizes[i]);
                r = outcome_add_fact(o, rows[i].fact, sizes[i] > 0 && sizes[i] <= value + slack[i], a, b);
        }
        return r;
}

int jobfs_facts(const JobFs *fs, int proc_fd, Outcome *o)
{
        int own_fds[] = { fs->layer_fd, fs->workspace.merged_fd };
        int r = add_place_fact(o, proc_fd, fs->plan->cwd, fs->workspace.merged_fd);

        for (ScratchKind kind = 0; r == 0 && kind < _SCRATCH_MAX; kind++) {
                _cleanup_close_ int fd = -EBADF;

                /* What the workspace itself covers is not to be seen. */
                if ((kind == SCRATCH_OTHER && !fs->has_other) ||
                                streq(scratch_target(fs, kind), fs->plan->cwd))
                        continue;
                fd = openat(fs->layer_fd, scratch_name(kind), O_PATH | O_DIRECTORY | O_CLOEXEC);
                r = add_place_fact(o, proc_fd, scratch_target(fs, kind), fd);
        }
        if (r == 0)
                r = inside_mount_facts(
                                proc_fd, own_fds, ELEMENTSOF(own_fds), &fs->plan->service_properties, o);
        if (r == 0)
                r = places_facts(fs->places, proc_fd, o);
        return r < 0 ? r : add_budget_facts(fs, o);
}

static int walk_all(JobFs *fs, TreeWalk *walk, Error *e)
{
        int r = tree_compare(walk, fs->workspace.upper_fd, fs->workspace.lower_fd, fs->workspace.merged_fd,
                        fs->plan->cwd);

        for (ScratchKind kind = 0; r == 0 && kind < _SCRATCH_MAX; kind++) {
                _cleanup_close_ int fd = -EBADF;

                if (kind == SCRATCH_OTHER && !fs->has_other)
                        continue;
                fd = openat(fs->layer_fd, scratch_name(kind),
                                O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
                if (fd < 0)
                        return error_errno(e, -errno, "%s", scratch_target(fs, kind));
                r = tree_scratch(walk, fd, scratch_target(fs, kind), fs->made);
        }
        return r;
}

/* The directory in which an expected path lies, and the rest of the path. */
static int open_expected(void *userdata, const char *path, const char **ret_below)
{
        const JobFs *fs = userdata;
        const char *cwd = fs->plan->cwd;
        ScratchKind kind;

        if (*path != '/') {
                *ret_below = path;
                return fcntl(fs->workspace.merged_fd, F_DUPFD_CLOEXEC, 0);
        }
        if (path_is_within(path, cwd)) {
                *ret_below = path_below(path, cwd);
                return fcntl(fs->workspace.merged_fd, F_DUPFD_CLOEXEC, 0);
        }
        kind = scratch_of(fs->plan, path);
        if (kind == SCRATCH_NONE)
                return -EXDEV;
        *ret_below = path_below(path, scratch_target(fs, kind));
        return openat(fs->layer_fd, scratch_name(kind), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

void jobfs_look(const JobFs *fs, Outcome *o)
{
        (void) layer_read(fs->layer_fd, &o->usage, &o->events);
}

/* What the method of showing the workspace, or the size of a file, kept from being seen. */
static int note_blind_spots(const JobFs *fs, const TreeResult *result, Outcome *o)
{
        int r = 0;

        if (fs->workspace.copied)
                r = outcome_blind_spot(o,
                                "fs: the workspace could not be mapped and was copied: that took as long as it is "
                                "large, and hard links, access lists and file capabilities in it were not kept");
        if (r == 0 && fs->shared_sys)
                r = outcome_blind_spot(o,
                                "shared: /sys is the host's: locks of files there are felt outside of the job");
        if (r == 0 && result->unread)
                r = outcome_blind_spot(o, "fs: sha256 is null where files were too large to be read");
        return r;
}

static int observe_changes(JobFs *fs, const ChangeRules *rules, Outcome *o, Error *e)
{
        TreeOwner owner = { fs->uid, fs->workspace.owner_uid, fs->gid, fs->workspace.owner_gid };
        const uint64_t *limits = fs->plan->limits.value;
        _cleanup_(tree_walk_freep) TreeWalk *walk = NULL;
        TreeResult result = { 0 };
        int r;

        /* Twice what the job could write: before and after. */
        r = tree_walk_new(&owner, rules, limits[LIMIT_FILE_SIZE], MAX(2 * limits[LIMIT_DISK], TREE_READ_MIN),
                        &walk);
        if (r == 0)
                r = walk_all(fs, walk, e);
        if (r == 0)
                r = tree_walk_finish(walk, &o->changes, &result);
        if (r < 0)
                return r;
        o->changes.resolved = TAKE_PTR(fs->resolved);
        o->events.file_at_limit = result.file_at_limit;
        if (result.lost) {
                o->evidence_lost = true;
                if (!o->evidence_message)
                        o->evidence_message = TAKE_PTR(result.lost);
        }
        r = note_blind_spots(fs, &result, o);
        free(result.lost);
        return r;
}

int jobfs_observe(JobFs *fs, Outcome *o, Error *e)
{
        ChangeRules rules;
        int r;

        o->workspace_method = strdup(fs->workspace.method);
        o->layer = strdup(layer_to_string(fs->plan->layer));
        if (!o->workspace_method || !o->layer)
                return -ENOMEM;
        r = layer_read(fs->layer_fd, &o->usage, &o->events);
        if (r < 0)
                return error_errno(e, r, "the layer");
        r = change_rules_make(
                        fs->plan->allow_changes, fs->resolved, fs->plan->policy->scratch_writes, &rules);
        if (r == 0)
                r = observe_changes(fs, &rules, o, e);
        change_rules_clear(&rules);
        return r < 0 ? r : expected_observe(&fs->plan->job->expect, open_expected, fs, o, e);
}

int jobfs_workspace(const JobFs *fs, const char **ret_cwd, char **ret_source)
{
        if (!fs->source_path)
                return -EBADF;
        *ret_source = strdup(fs->source_path);
        *ret_cwd = fs->plan->cwd;
        return *ret_source ? fs->workspace.merged_fd : -ENOMEM;
}
