/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/inside.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#include "base/number.h"
#include "base/path.h"
#include "sys/file.h"

#define STATUS_MAX    KIB(8)
#define LIMITS_MAX    KIB(4)
#define MOUNTINFO_MAX MIB(1)
#define DEV_DEPTH_MAX 4u
#define DEV_NODES_MAX 4096u
#define NAMED_MAX     256u /* bytes of a list of names in a fact */

/* A list of names for a fact, cut when it gets long. */
typedef struct Names {
        char text[NAMED_MAX];
        size_t n;
} Names;

static void add_name(Names *names, const char *name)
{
        size_t used = strlen(names->text);
        char excerpt[96];

        text_excerpt(name, strlen(name), excerpt, sizeof(excerpt));
        if (used + strlen(excerpt) + STRLEN(", ...") + 3 < sizeof(names->text))
                (void) snprintf(names->text + used, sizeof(names->text) - used, "%s%s", used ? ", " : "",
                                excerpt);
        else if (used >= STRLEN("...") && !streq(names->text + used - STRLEN("..."), "..."))
                (void) snprintf(names->text + used, sizeof(names->text) - used, ", ...");
        names->n++;
}

static int add_names_fact(Outcome *o, const char *fact, const char *expected, const Names *names)
{
        return outcome_add_fact(o, fact, names->n == 0, expected, names->n == 0 ? expected : names->text);
}

/* --- ids --- */

/* Tabs made spaces. */
static bool find_ids(const char *status, const char *name, char *value, size_t size)
{
        if (!text_field(status, name, value, size))
                return false;
        for (char *p = value; *p; p++)
                *p = *p == '\t' ? ' ' : *p;
        return true;
}

static int add_group_facts(const char *status, gid_t gid, Outcome *o)
{
        char value[256] = "unknown", expected[64], *end;
        bool alone;
        int r;

        (void) find_ids(status, "Gid", value, sizeof(value));
        (void) snprintf(expected, sizeof(expected), "%u %u %u %u", gid, gid, gid, gid);
        r = outcome_add_fact(o, "gid", gid != 0 && streq(value, expected), expected, value);
        if (r < 0)
                return r;
        if (!find_ids(status, "Groups", value, sizeof(value)))
                return outcome_add_fact(o, "groups", false, "none but its own", "unknown");
        alone = *value == '\0' || (strtoul(value, &end, 10) == gid && end[strspn(end, " ")] == '\0');
        return outcome_add_fact(o, "groups", alone, "none but its own", alone ? "none but its own" : value);
}

/* --- limits of a process, proc_pid_limits(5) --- */

static const struct {
        const char *property, *line, *fact;
} rlimits[] = {
        { "LimitCPU", "Max cpu time", "rlimit.cpu" },
        { "LimitFSIZE", "Max file size", "rlimit.fsize" },
        { "LimitDATA", "Max data size", "rlimit.data" },
        { "LimitSTACK", "Max stack size", "rlimit.stack" },
        { "LimitCORE", "Max core file size", "rlimit.core" },
        { "LimitNOFILE", "Max open files", "rlimit.nofile" },
        { "LimitAS", "Max address space", "rlimit.as" },
        { "LimitNPROC", "Max processes", "rlimit.nproc" },
        { "LimitMEMLOCK", "Max locked memory", "rlimit.memlock" },
        { "LimitLOCKS", "Max file locks", "rlimit.locks" },
        { "LimitSIGPENDING", "Max pending signals", "rlimit.sigpending" },
        { "LimitMSGQUEUE", "Max msgqueue size", "rlimit.msgqueue" },
        { "LimitNICE", "Max nice priority", "rlimit.nice" },
        { "LimitRTPRIO", "Max realtime priority", "rlimit.rtprio" },
        { "LimitRTTIME", "Max realtime timeout", "rlimit.rttime" },
};

/* The soft limit on the line that begins so; UNKNOWN: "unlimited", or no such line. */
static uint64_t soft_limit(const char *text, const char *name)
{
        const char *line = strstr(text, name);
        char digits[32];
        uint64_t value;

        if (!line || (line != text && line[-1] != '\n'))
                return UNKNOWN;
        line += strlen(name);
        line += strspn(line, " ");
        (void) snprintf(digits, sizeof(digits), "%.*s", (int) strcspn(line, " \n"), line);
        return parse_u64(digits, &value) < 0 ? UNKNOWN : value;
}

static int add_rlimit_facts(int proc_fd, const PropertyList *asked, Outcome *o)
{
        char text[LIMITS_MAX];
        int r = file_read_at(proc_fd, "limits", text, sizeof(text));

        for (size_t i = 0; r == 0 && i < ELEMENTSOF(rlimits); i++) {
                const PropertyValue *value = property_list_find(asked, rlimits[i].property);
                uint64_t observed = soft_limit(text, rlimits[i].line);
                char a[32], b[32] = "unlimited";

                if (!value || value->number >= LIMIT_UNLIMITED)
                        continue;
                (void) snprintf(a, sizeof(a), "%" PRIu64, value->number);
                if (observed != UNKNOWN)
                        (void) snprintf(b, sizeof(b), "%" PRIu64, observed);
                r = outcome_add_fact(o, rlimits[i].fact, observed <= value->number, a, b);
        }
        return r;
}

int inside_process_facts(int proc_fd, gid_t gid, const PropertyList *asked, Outcome *o)
{
        char status[STATUS_MAX];
        int r = file_read_at(proc_fd, "status", status, sizeof(status));

        if (r == 0)
                r = add_group_facts(status, gid, o);
        return r < 0 ? r : add_rlimit_facts(proc_fd, asked, o);
}

/* --- mounts, proc_pid_mountinfo(5) --- */

static int open_root(int proc_fd)
{
        int fd = openat(proc_fd, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);

        return fd < 0 ? -errno : fd;
}

static int open_inside(int root_fd, const char *path, uint64_t flags)
{
        struct open_how how = {
                .flags = flags | O_CLOEXEC,
                .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
        };
        int fd = (int) syscall(SYS_openat2, root_fd, path, &how, sizeof(how));

        return fd < 0 ? -errno : fd;
}

typedef struct MountLine {
        uint64_t id;
        dev_t device;
        char *target, *options, *type, *super_options;
} MountLine;

/* Space, tab, newline and backslash are written as \040 and so on. */
static void unescape(char *text)
{
        char *to = text;

        for (const char *p = text; *p; p++) {
                if (p[0] == '\\' && p[1] >= '0' && p[1] <= '3' && p[2] >= '0' && p[2] <= '7' && p[3] >= '0' &&
                                p[3] <= '7') {
                        *to++ = (char) ((p[1] - '0') * 64 + (p[2] - '0') * 8 + (p[3] - '0'));
                        p += 3;
                } else {
                        *to++ = *p;
                }
        }
        *to = '\0';
}

/* "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue" */
static int parse_mount(char *line, MountLine *ret)
{
        char *fields[6], *rest = strstr(line, " - "), *colon;
        unsigned long device_major, device_minor;

        if (!rest)
                return -EBADMSG;
        *rest = '\0';
        rest += STRLEN(" - ");
        for (size_t i = 0; i < ELEMENTSOF(fields); i++) {
                fields[i] = strsep(&line, " ");
                if (!fields[i])
                        return -EBADMSG;
        }
        if (parse_u64(fields[0], &ret->id) < 0)
                return -EBADMSG;
        device_major = strtoul(fields[2], &colon, 10);
        device_minor = *colon == ':' ? strtoul(colon + 1, NULL, 10) : 0;
        ret->device = makedev((unsigned) device_major, (unsigned) device_minor);
        ret->target = fields[4];
        ret->options = fields[5];
        ret->type = strsep(&rest, " ");
        (void) strsep(&rest, " ");
        ret->super_options = rest;
        if (!ret->super_options)
                return -EBADMSG;
        unescape(ret->target);
        return 0;
}

static bool has_option(const char *options, const char *option)
{
        size_t length = strlen(option);

        for (const char *p = options; p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL)
                if (strncmp(p, option, length) == 0 && (p[length] == ',' || p[length] == '\0'))
                        return true;
        return false;
}

/* Whether the path leads to this mount, and not to one that lies over it. */
static int is_reachable(int root_fd, const MountLine *mount)
{
        _cleanup_close_ int fd = open_inside(root_fd, mount->target, O_PATH);
        struct statx st;

        if (fd < 0)
                return fd == -ENOENT || fd == -EACCES || fd == -ENOTDIR ? 0 : fd;
        if (statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &st) < 0)
                return -errno;
        /* A kernel before 5.8 does not tell: then every mount counts. */
        return !(st.stx_mask & STATX_MNT_ID) || st.stx_mnt_id == mount->id;
}

static bool is_interface(const char *type)
{
        static const char *const types[] = { "proc", "devpts", "mqueue", "hugetlbfs" };

        for (size_t i = 0; i < ELEMENTSOF(types); i++)
                if (streq(types[i], type))
                        return true;
        return false;
}

static bool is_asked(const PropertyList *asked, const char *target)
{
        const PropertyValue *value = property_list_find(asked, "TemporaryFileSystem");

        for (size_t i = 0; value && value->list[i]; i++)
                if (strcspn(value->list[i], ":") == strlen(target) &&
                                strncmp(value->list[i], target, strlen(target)) == 0)
                        return true;
        return false;
}

static bool is_own(const int *own_fds, size_t n, dev_t device)
{
        struct stat st;

        for (size_t i = 0; i < n; i++)
                if (fstat(own_fds[i], &st) >= 0 && st.st_dev == device)
                        return true;
        return false;
}

int inside_mount_facts(int proc_fd, const int *own_fds, size_t n, const PropertyList *asked, Outcome *o)
{
        _cleanup_close_ int root_fd = open_root(proc_fd);
        _cleanup_free_ char *text = malloc(MOUNTINFO_MAX);
        Names names = { 0 };
        char *rest = text;
        int r;

        if (root_fd < 0 || !text)
                return root_fd < 0 ? root_fd : -ENOMEM;
        r = file_read_at(proc_fd, "mountinfo", text, MOUNTINFO_MAX);
        for (char *line; r >= 0 && (line = strsep(&rest, "\n"));) {
                MountLine mount;

                r = parse_mount(line, &mount);
                if (r < 0 || !has_option(mount.options, "rw") || !has_option(mount.super_options, "rw") ||
                                is_interface(mount.type) || is_own(own_fds, n, mount.device) ||
                                is_asked(asked, mount.target))
                        continue;
                r = is_reachable(root_fd, &mount);
                if (r > 0)
                        add_name(&names, mount.target);
        }
        return r < 0 ? r : add_names_fact(o, "mounts.writable", "the job's layer", &names);
}

/* --- devices --- */

/* null, zero, full, random, urandom; tty, ptmx (Documentation/admin-guide/devices.txt) */
static bool is_standard(dev_t device)
{
        static const unsigned memory[] = { 3, 5, 7, 8, 9 };

        for (size_t i = 0; i < ELEMENTSOF(memory); i++)
                if (device == makedev(1, memory[i]))
                        return true;
        return device == makedev(5, 0) || device == makedev(5, 2);
}

static int walk_devices(int dir_fd, unsigned depth, unsigned *nodes, Names *names)
{
        DIR *dir = fdopendir(dir_fd);
        struct dirent *entry;
        int r = 0;

        if (!dir) {
                r = -errno;
                safe_close(dir_fd);
                return r;
        }
        while (r == 0 && (errno = 0, entry = readdir(dir))) {
                struct stat st;

                if (streq(entry->d_name, ".") || streq(entry->d_name, ".."))
                        continue;
                if (++*nodes > DEV_NODES_MAX) {
                        r = -E2BIG;
                } else if (fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
                        r = -errno;
                } else if (S_ISBLK(st.st_mode) || (S_ISCHR(st.st_mode) && !is_standard(st.st_rdev))) {
                        add_name(names, entry->d_name);
                } else if (S_ISDIR(st.st_mode) && depth < DEV_DEPTH_MAX) {
                        int fd = openat(dirfd(dir), entry->d_name,
                                        O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

                        r = fd < 0 ? -errno : walk_devices(fd, depth + 1, nodes, names);
                }
        }
        if (r == 0 && errno != 0)
                r = -errno;
        (void) closedir(dir);
        return r;
}

int inside_device_facts(int proc_fd, Outcome *o)
{
        _cleanup_close_ int root_fd = open_root(proc_fd);
        Names names = { 0 };
        unsigned nodes = 0;
        int fd, r;

        if (root_fd < 0)
                return root_fd;
        fd = open_inside(root_fd, "/dev", O_RDONLY | O_DIRECTORY);
        r = fd < 0 ? fd : walk_devices(fd, 0, &nodes, &names);
        /* More than anyone could list is not what was asked for, and no fault of the host's either. */
        if (r == -E2BIG)
                add_name(&names, "too many to count");
        else if (r < 0)
                return r;
        return add_names_fact(o, "devices", "the standard ones", &names);
}

/* --- hidden paths --- */

int inside_hidden_facts(int proc_fd, char *const *paths, Outcome *o)
{
        _cleanup_close_ int root_fd = open_root(proc_fd);
        int r = root_fd < 0 ? root_fd : 0;

        for (size_t i = 0; r == 0 && paths && paths[i]; i++) {
                _cleanup_free_ char *fact = text_printf("hidden:%s", paths[i]);
                _cleanup_close_ int fd = open_inside(root_fd, paths[i], O_PATH);
                const char *observed = "it can be seen";
                struct stat st;

                if (!fact)
                        return -ENOMEM;
                if (fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP)
                        observed = "hidden";
                else if (fd >= 0 && fstat(fd, &st) >= 0 && st.st_uid == 0 && (st.st_mode & 0777) == 0)
                        observed = "hidden"; /* what systemd puts in its place */
                r = outcome_add_fact(o, fact, streq(observed, "hidden"), "hidden", observed);
        }
        return r;
}
