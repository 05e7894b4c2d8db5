/* SPDX-License-Identifier: Apache-2.0 */
#include "run/look.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "base/path.h"
#include "core/exec_file.h"

#define LINKS_MAX    40       /* as the kernel: path_resolution(7) */
#define ARGUMENT_MAX KIB(128) /* MAX_ARG_STRLEN: execve(2) */

typedef struct Look {
        const Plan *plan;
        char *source; /* the workspace, links resolved; NULL: there is none on the host */
        uid_t owner_uid;
        gid_t owner_gid;
        char machine[sizeof(((struct utsname *) NULL)->machine)];
} Look;

/* What is at a path of the job's root. */
typedef struct Seen {
        unsigned mode;
        uid_t uid;
        gid_t gid;
        char path[PATH_MAX]; /* links resolved */
        bool in_workspace, head_known;
        uint8_t head[EXEC_HEAD_MAX];
        size_t head_size;
} Seen;

const char *look_search_path(const Plan *plan)
{
        for (size_t i = 0; plan->env && plan->env[i]; i++)
                if (startswith(plan->env[i], "PATH="))
                        return plan->env[i] + STRLEN("PATH=");
        return "/usr/local/bin:/usr/bin:/bin";
}

/* --- where a path of the job's root comes from --- */

static const char *find_within(char *const *directories, const char *path)
{
        for (size_t i = 0; directories && directories[i]; i++)
                if (path_is_within(path, directories[i]))
                        return directories[i];
        return NULL;
}

/* The bind mounts of the unit: "[-]source[:destination]". */
static int view_bind(const Plan *plan, const char *path, char **ret)
{
        const PropertyValue *binds = property_list_find(&plan->service_properties, "BindReadOnlyPaths");

        for (size_t i = 0; binds && binds->list[i]; i++) {
                const char *source = binds->list[i] + (binds->list[i][0] == '-'),
                           *colon = strchr(source, ':');

                /* The one with a destination is the stage's, which goes before the command comes. */
                if (colon || !path_is_within(path, source))
                        continue;
                *ret = strdup(path);
                return *ret ? 0 : -ENOMEM;
        }
        return 0;
}

/* The host's path of what the job sees at path, which has no links in it; NULL: nothing, or only a directory
 * that is made for the job. */
static int view(const Look *look, const char *path, char **ret)
{
        static const char *const own[] = { "/proc", "/sys", "/dev", "/run", "/tmp", "/var", "/home",
                "/root" };
        const Plan *plan = look->plan;
        const Policy *policy = plan->policy;

        *ret = NULL;
        if (plan->posture == POSTURE_BOUNDED) {
                *ret = strdup(path);
                return *ret ? 0 : -ENOMEM;
        }
        if (find_within(policy->hidden_paths, path))
                return 0;
        if (path_is_within(path, plan->cwd)) {
                const char *below = path_below(path, plan->cwd);

                if (look->source)
                        *ret = *below ? path_join(look->source, below) : strdup(look->source);
                return look->source && !*ret ? -ENOMEM : 0;
        }
        if (find_within(policy->read_only_paths, path)) {
                *ret = strdup(path);
                return *ret ? 0 : -ENOMEM;
        }
        for (size_t i = 0; i < ELEMENTSOF(own); i++)
                if (path_is_within(path, own[i]))
                        return 0;
        if (find_within(plan->shown, path)) {
                *ret = strdup(path);
                return *ret ? 0 : -ENOMEM;
        }
        if (policy->root) {
                *ret = path_join(policy->root, path + 1);
                return *ret ? 0 : -ENOMEM;
        }
        /* The links of a merged /usr: /bin, /lib64 … */
        if (strchr(path + 1, '/') == NULL && path[1] != '\0' && !streq(path, "/etc") &&
                        !streq(path, "/usr")) {
                struct stat st;

                if (lstat(path, &st) >= 0 && S_ISLNK(st.st_mode)) {
                        *ret = strdup(path);
                        return *ret ? 0 : -ENOMEM;
                }
        }
        return view_bind(plan, path, ret);
}

static const JobFile *find_placed(const Look *look, const char *path)
{
        const Job *job = look->plan->job;
        const char *below = path_below(path, look->plan->cwd);

        for (size_t i = 0; below && i < job->n_files; i++)
                if (streq(job->files[i].path, below))
                        return &job->files[i];
        return NULL;
}

/* --- walking it --- */

typedef struct Walk {
        char done[PATH_MAX]; /* absolute, no links in it */
        char rest[2 * PATH_MAX];
        unsigned links;
} Walk;

static int prepend(Walk *walk, const char *target)
{
        char *rest = strdup(walk->rest);
        int n = rest ? snprintf(walk->rest, sizeof(walk->rest), "%s/%s", target, rest) : 0;

        free(rest);
        if (!rest)
                return -ENOMEM;
        if (*target == '/')
                (void) snprintf(walk->done, sizeof(walk->done), "/");
        return n < 0 || (size_t) n >= sizeof(walk->rest) ? -ENAMETOOLONG : 0;
}

static void go_up(Walk *walk)
{
        char *slash = strrchr(walk->done, '/');

        slash[slash == walk->done ? 1 : 0] = '\0';
}

/* One component. */
static int step(const Look *look, Walk *walk, const char *name)
{
        _cleanup_free_ char *next = path_join(walk->done, name), *host = NULL;
        char target[PATH_MAX];
        ssize_t n;
        int r = next ? view(look, next, &host) : -ENOMEM;

        if (r < 0)
                return r;
        if (strlen(next) >= sizeof(walk->done))
                return -ENAMETOOLONG;
        n = host && !find_placed(look, next) ? readlink(host, target, sizeof(target) - 1) : -1;
        if (n < 0) {
                memcpy(walk->done, next, strlen(next) + 1);
                return 0;
        }
        target[n] = '\0';
        return ++walk->links > LINKS_MAX ? -ELOOP : prepend(walk, target);
}

static int resolve(const Look *look, const char *path, Walk *walk)
{
        int n;

        *walk = (Walk){ .done = "/" };
        n = snprintf(walk->rest, sizeof(walk->rest), "%s%s%s", *path == '/' ? "" : look->plan->cwd,
                        *path == '/' ? "" : "/", path);
        if (n < 0 || n >= PATH_MAX)
                return -ENAMETOOLONG;
        while (walk->rest[0]) {
                char name[NAME_MAX + 1];
                size_t skip = strspn(walk->rest, "/"), length = strcspn(walk->rest + skip, "/");
                int r = 0;

                if (length > NAME_MAX)
                        return -ENAMETOOLONG;
                memcpy(name, walk->rest + skip, length);
                name[length] = '\0';
                memmove(walk->rest, walk->rest + skip + length, strlen(walk->rest + skip + length) + 1);
                if (streq(name, ".."))
                        go_up(walk);
                else if (*name && !streq(name, "."))
                        r = step(look, walk, name);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* --- one file --- */

static int see_placed(const JobFile *file, Seen *seen)
{
        seen->mode = S_IFREG | file->mode;
        seen->in_workspace = true;
        if (file->input.data) {
                seen->head_known = true;
                seen->head_size = MIN(file->input.size, sizeof(seen->head));
                memcpy(seen->head, file->input.data, seen->head_size);
        }
        return 0;
}

/* Of what is no regular file nothing is opened. */
static int see_host(const char *host, Seen *seen)
{
        _cleanup_close_ int fd = -EBADF;
        struct stat st;
        ssize_t n;

        if (lstat(host, &st) < 0)
                return -errno;
        seen->mode = st.st_mode;
        seen->uid = st.st_uid;
        seen->gid = st.st_gid;
        if (!S_ISREG(st.st_mode))
                return 0;
        fd = open(host, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC);
        n = fd < 0 ? -1 : read(fd, seen->head, sizeof(seen->head));
        seen->head_known = n >= 0;
        seen->head_size = n >= 0 ? (size_t) n : 0;
        return 0;
}

static int see(const Look *look, const char *path, Seen *seen)
{
        _cleanup_free_ char *host = NULL;
        _cleanup_free_ Walk *walk = malloc(sizeof(*walk));
        const JobFile *placed;
        int r = walk ? resolve(look, path, walk) : -ENOMEM;

        *seen = (Seen){ 0 };
        if (r < 0)
                return r;
        memcpy(seen->path, walk->done, sizeof(seen->path));
        placed = find_placed(look, walk->done);
        if (placed)
                return see_placed(placed, seen);
        r = view(look, walk->done, &host);
        if (r < 0)
                return r;
        if (!host)
                return -ENOENT;
        seen->in_workspace = look->source && path_is_within(walk->done, look->plan->cwd);
        return see_host(host, seen);
}

/* The job is everybody, in the workspace its owner; in the posture bounded it is the caller. */
static bool may_execute(const Look *look, const Seen *seen)
{
        if (look->plan->posture == POSTURE_BOUNDED)
                return seen->mode & (S_IXUSR | S_IXGRP | S_IXOTH);
        if (!seen->in_workspace)
                return seen->mode & S_IXOTH;
        if (!look->source || seen->uid == look->owner_uid)
                return seen->mode & S_IXUSR;
        return seen->mode & (seen->gid == look->owner_gid ? S_IXGRP : S_IXOTH);
}

/* --- one candidate --- */

/* Kernels of x86_64 usually run programs of 32 bits. */
static bool is_foreign(const Look *look, const ExecFile *file)
{
        return file->foreign && !(streq(look->machine, "x86_64") && streq_ptr(file->machine, "i686"));
}

static int check_interpreter(const Look *look, const ExecFile *file)
{
        _cleanup_free_ char *name = strndup(file->interpreter, file->interpreter_size);
        Seen seen;
        int r;

        if (!name)
                return -ENOMEM;
        if (file->line_cut)
                return 0;
        if (!*name || file->carriage_return)
                return -ENOENT;
        r = see(look, name, &seen);
        if (r < 0)
                return r;
        return S_ISREG(seen.mode) && may_execute(look, &seen) ? 0 : -EACCES;
}

static int check_file(const Look *look, const Seen *seen)
{
        ExecFile file;

        if (!S_ISREG(seen->mode) || !may_execute(look, seen))
                return -EACCES;
        if (!seen->head_known)
                return 0;
        file = exec_file_look(seen->head, seen->head_size, true, look->machine);
        switch (file.look) {
        case EXEC_LOOK_SCRIPT:
                return check_interpreter(look, &file);
        case EXEC_LOOK_ELF:
                return file.object || is_foreign(look, &file) ? -ENOEXEC : 0;
        default:
                return -ENOEXEC;
        }
}

/* 0: it would be executed; a negative errno; *ret_exists as the stage has it. */
static int try_path(const Look *look, const char *path, ExecRecord *record, bool *ret_exists)
{
        Seen seen;
        int r = see(look, path, &seen);

        *ret_exists = r == 0;
        if (r == 0)
                r = check_file(look, &seen);
        if (r == -ENOMEM || !*ret_exists)
                return r;
        free(record->resolved);
        free(record->file);
        record->resolved = strdup(path);
        record->file = strdup(seen.path);
        record->file_mode = seen.mode;
        record->head_size = seen.head_size;
        memcpy(record->head, seen.head, sizeof(record->head));
        return record->resolved && record->file ? r : -ENOMEM;
}

static int settle(ExecRecord *record, int r, const char *step)
{
        if (r == -ENOMEM)
                return r;
        /* What the caller may not look at is not the job's fault. */
        record->error = r == -EACCES && geteuid() != 0 && record->file_mode == 0 ? -1 : -r;
        if (r < 0 && !record->step) {
                record->step = strdup(step);
                return record->step ? 0 : -ENOMEM;
        }
        return 0;
}

static int search(const Look *look, ExecRecord *record)
{
        const char *name = look->plan->argv[0];
        int kept = 0, r;
        bool exists;

        if (strchr(name, '/')) {
                r = try_path(look, name, record, &exists);
                if (!exists && r != -ENOMEM && !record->resolved)
                        record->resolved = strdup(name);
                return settle(record, r, "exec");
        }
        for (const char *p = look_search_path(look->plan);; p++) {
                size_t length = strcspn(p, ":");
                _cleanup_free_ char *path =
                                text_printf("%.*s%s%s", (int) length, p, length > 0 ? "/" : "", name);

                if (!path)
                        return -ENOMEM;
                r = try_path(look, path, record, &exists);
                if (r == -ENOMEM || (exists && r != -EACCES))
                        return settle(record, r, "exec");
                if (exists && kept == 0)
                        kept = r;
                p += length;
                if (*p == '\0')
                        break;
        }
        return settle(record, kept != 0 ? kept : -ENOENT, "exec");
}

static bool has_long_argument(char *const *argv)
{
        for (size_t i = 0; argv[i]; i++)
                if (strlen(argv[i]) >= ARGUMENT_MAX)
                        return true;
        return false;
}

/* The workspace itself: what is missing there is told as if chdir(2) had failed. */
static int open_source(Look *look, ExecRecord *record)
{
        const Plan *plan = look->plan;
        struct stat st = { 0 };
        int r = 0;

        if (plan->workspace != WORKSPACE_OVERLAY)
                return 0;
        look->source = realpath(plan->cwd, NULL);
        if (!look->source || stat(look->source, &st) < 0)
                r = -errno;
        else if (!S_ISDIR(st.st_mode))
                r = -ENOTDIR;
        if (r < 0) {
                record->resolved = strdup(plan->cwd);
                return record->resolved ? settle(record, r, "chdir") : -ENOMEM;
        }
        look->owner_uid = st.st_uid;
        look->owner_gid = st.st_gid;
        return 0;
}

static bool is_image(const char *root)
{
        struct stat st;

        return root && stat(root, &st) >= 0 && !S_ISDIR(st.st_mode);
}

int look_command(const Plan *plan, ExecRecord *ret)
{
        Look look = { .plan = plan };
        struct utsname name;
        int r;

        *ret = (ExecRecord){ 0 };
        if (uname(&name) >= 0)
                memcpy(look.machine, name.machine, sizeof(look.machine));
        r = open_source(&look, ret);
        if (r == 0 && ret->error == 0 && has_long_argument(plan->argv))
                r = settle(ret, -E2BIG, "exec");
        else if (r == 0 && ret->error == 0 && is_image(plan->policy->root))
                ret->error = -1;
        else if (r == 0 && ret->error == 0)
                r = search(&look, ret);
        free(look.source);
        return r;
}

void look_clear(ExecRecord *record)
{
        free(record->resolved);
        free(record->file);
        free(record->step);
        *record = (ExecRecord){ 0 };
}
