/* SPDX-License-Identifier: Apache-2.0 */
#include "run/doctor.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <linux/netlink.h>
#include <linux/perf_event.h>
#include <net/if.h>
#include <sched.h>
#include <sys/fanotify.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "base/number.h"
#include "base/text.h"
#include "core/receipt_view.h"
#include "run/job_run.h"
#include "run/load.h"
#include "run/rundir.h"
#include "sys/cgroup.h"
#include "sys/file.h"
#include "sys/mount.h"
#include "sys/tracefs.h"

#define LAYER_FREE_MIN MIB(512)

const char *const doctor_state_names[_DOCTOR_STATE_MAX] = {
        [DOCTOR_OK] = "ok",
        [DOCTOR_WEAK] = "weak",
        [DOCTOR_MISSING] = "missing",
};

typedef struct Examination {
        const char *policy;
        Manager *manager; /* NULL: there is none to be reached */
        Error no_manager; /* why */
} Examination;

static void _printf_(3, 4) say(DoctorFact *fact, DoctorState state, const char *format, ...)
{
        va_list ap;

        fact->state = state;
        va_start(ap, format);
        (void) vsnprintf(fact->text, sizeof(fact->text), format, ap);
        va_end(ap);
}

static void try_root(_unused_ Examination *x, DoctorFact *fact)
{
        if (geteuid() == 0)
                say(fact, DOCTOR_OK, "this is root");
        else
                say(fact, DOCTOR_MISSING, "this is user %u", (unsigned) geteuid());
}

static void try_systemd(Examination *x, DoctorFact *fact)
{
        if (!x->manager)
                say(fact, DOCTOR_MISSING, "%.400s", x->no_manager.text);
        else if (manager_version_number(x->manager) < MANAGER_VERSION_MIN)
                say(fact, DOCTOR_MISSING, "%s, and %d is needed", manager_version(x->manager),
                                MANAGER_VERSION_MIN);
        else
                say(fact, DOCTOR_OK, "%s, over the bus", manager_version(x->manager));
}

static void try_cgroups(_unused_ Examination *x, DoctorFact *fact)
{
        unsigned found = 0;
        Error e = ERROR_INIT;

        if (cgroup_host(&found, &e) < 0)
                say(fact, DOCTOR_MISSING, "%.400s", e.text);
        else
                say(fact, DOCTOR_OK, "the unified hierarchy");
}

static void try_controllers(_unused_ Examination *x, DoctorFact *fact)
{
        static const Controller wanted[] = { CONTROLLER_MEMORY, CONTROLLER_PIDS, CONTROLLER_CPU };
        char missing[256] = "";
        unsigned found = 0;
        size_t used = 0;

        (void) cgroup_host(&found, NULL);
        for (size_t i = 0; i < ELEMENTSOF(wanted); i++) {
                _cleanup_free_ char *where = NULL;

                if (found & wanted[i])
                        continue;
                (void) cgroup_elsewhere(wanted[i], &where);
                used += (size_t) snprintf(missing + used, sizeof(missing) - used, "%s%s%s%.48s%s",
                                used ? ", " : "", controller_name(wanted[i]), where ? " (in " : "",
                                where ? where : "", where ? ", version 1)" : "");
        }
        if (used > 0)
                say(fact, DOCTOR_MISSING, "not here: %s", missing);
        else
                say(fact, DOCTOR_OK, "memory, pids, cpu");
}

static void try_parts(_unused_ Examination *x, DoctorFact *fact)
{
        static const char *const parts[] = { QSCOPE_STAGE_PATH, QSCOPE_PROBE_PATH };

        for (size_t i = 0; i < ELEMENTSOF(parts); i++)
                if (access(parts[i], X_OK) < 0) {
                        say(fact, DOCTOR_MISSING, "%s: %s", parts[i], strerror(errno));
                        return;
                }
        say(fact, DOCTOR_OK, "qscope-stage and qscope-probe");
}

static void try_policy(Examination *x, DoctorFact *fact)
{
        _cleanup_(policy_freep) Policy *policy = NULL;
        Error e = ERROR_INIT;

        if (load_policy(x->policy ? x->policy : "default", &policy, &e) < 0)
                say(fact, DOCTOR_MISSING, "%.500s", e.text);
        else
                say(fact, DOCTOR_OK, "%.60s, sha256 %.16s...", policy->name, policy->sha256);
}

/* In a child, whose mount namespace and mounts are gone with it. Its exit status: 0, or an errno. */
static int in_child(int (*attempt)(void))
{
        pid_t pid;
        int status;

        (void) fflush(NULL);
        pid = fork();
        if (pid == 0)
                _exit(-attempt());
        if (pid < 0 || waitpid(pid, &status, 0) < 0)
                return -errno;
        return WIFEXITED(status) ? -WEXITSTATUS(status) : -EIO;
}

static int attempt_overlay(void)
{
        static const char *const names[] = { "lower", "upper", "work" };
        char top[] = "/run/qscope-doctor.XXXXXX";
        _cleanup_close_ int fd = -EBADF, top_fd = -EBADF, overlay_fd = -EBADF;
        int r = mount_namespace_own();

        if (r < 0)
                return r;
        r = mount_new("tmpfs", (const MountOption[]){ { NULL } }, 0, &fd, NULL);
        if (r < 0)
                return r;
        if (!mkdtemp(top))
                return -errno;
        r = mount_attach(fd, top);
        top_fd = r < 0 ? -EBADF : open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        for (size_t i = 0; r == 0 && i < ELEMENTSOF(names); i++)
                if (mkdirat(top_fd, names[i], 0755) < 0)
                        r = -errno;
        if (r == 0 && fchdir(top_fd) < 0)
                r = -errno;
        if (r == 0)
                r = mount_new("overlay",
                                (const MountOption[]){ { "lowerdir", "lower" }, { "upperdir", "upper" },
                                                { "workdir", "work" }, { "redirect_dir", "on" }, { NULL } },
                                0, &overlay_fd, NULL);
        (void) umount2(top, MNT_DETACH);
        (void) rmdir(top);
        return r;
}

static void try_overlay(_unused_ Examination *x, DoctorFact *fact)
{
        int r = in_child(attempt_overlay);

        if (r < 0)
                say(fact, DOCTOR_MISSING, "an overlay cannot be mounted: %s", strerror(-r));
        else
                say(fact, DOCTOR_OK, "an overlay was mounted, with redirect_dir");
}

static int attempt_idmap(void)
{
        _cleanup_close_ int dir_fd = -EBADF, fd = -EBADF;
        int r = mount_namespace_own();

        if (r < 0)
                return r;
        dir_fd = open("/var/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (dir_fd < 0)
                return -errno;
        r = mount_clone(dir_fd, "", 0, &fd);
        return r < 0 ? r : mount_map_owner(fd, 0, 0, 61184, 61184);
}

static void try_idmap(_unused_ Examination *x, DoctorFact *fact)
{
        int r = in_child(attempt_idmap);

        if (r < 0)
                say(fact, DOCTOR_WEAK, "the file system of /var/tmp cannot be id-mapped: %s", strerror(-r));
        else
                say(fact, DOCTOR_OK, "the file system of /var/tmp was id-mapped");
}

static void try_space(_unused_ Examination *x, DoctorFact *fact)
{
        const char *path = access(STATE_DIR, F_OK) == 0 ? STATE_DIR : "/var/lib";
        char text[FORMAT_MAX];
        struct statvfs st;
        uint64_t bytes;

        if (statvfs(path, &st) < 0) {
                say(fact, DOCTOR_MISSING, "%s: %s", path, strerror(errno));
                return;
        }
        bytes = (uint64_t) st.f_bavail * st.f_frsize;
        say(fact, bytes < LAYER_FREE_MIN ? DOCTOR_WEAK : DOCTOR_OK, "%s free in %s",
                        format_bytes(bytes >> 20 << 20, text), path);
}

static void try_loop(_unused_ Examination *x, DoctorFact *fact)
{
        _cleanup_close_ int fd = open("/dev/loop-control", O_RDWR | O_CLOEXEC);

        if (fd < 0)
                say(fact, DOCTOR_MISSING, "/dev/loop-control: %s", strerror(errno));
        else
                say(fact, DOCTOR_OK, "/dev/loop-control was opened");
}

static void try_fanotify(_unused_ Examination *x, DoctorFact *fact)
{
        _cleanup_close_ int fd = fanotify_init(FAN_CLASS_CONTENT | FAN_CLOEXEC, O_RDONLY | O_CLOEXEC);

        if (fd >= 0 && fanotify_mark(fd, FAN_MARK_ADD, FAN_OPEN_EXEC_PERM, AT_FDCWD, QSCOPE_STAGE_PATH) == 0)
                say(fact, DOCTOR_OK, "permission events of programs");
        else
                say(fact, DOCTOR_WEAK, "permission events of programs: %s", strerror(errno));
}

static int open_tracepoint(uint64_t id)
{
        struct perf_event_attr attributes = {
                .type = PERF_TYPE_TRACEPOINT,
                .size = sizeof(attributes),
                .config = id,
                .sample_period = 1,
                .disabled = 1,
        };
        int fd = (int) syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);

        return fd < 0 ? -errno : fd;
}

static void try_trace(_unused_ Examination *x, DoctorFact *fact)
{
        _cleanup_(tracefs_freep) Tracefs *tracefs = NULL;
        _cleanup_close_ int fd = -EBADF;
        uint64_t id;
        int r = tracefs_new(false, &tracefs);

        if (r >= 0)
                r = tracefs_find(tracefs, "sched/sched_process_fork", NULL, &id, NULL);
        if (r < 0) {
                say(fact, DOCTOR_WEAK, "tracefs: %s", strerror(-r));
                return;
        }
        fd = open_tracepoint(id);
        if (fd < 0)
                say(fact, DOCTOR_WEAK, "perf_event_open: %s", strerror(-fd));
        else
                say(fact, DOCTOR_OK, "a tracepoint was opened by perf_event_open");
}

/* In a network namespace of its own, as the sink's device is. */
static int attempt_tun(void)
{
        struct ifreq request = { .ifr_flags = IFF_TUN | IFF_NO_PI };
        _cleanup_close_ int fd = -EBADF;

        if (unshare(CLONE_NEWNET) < 0)
                return -errno;
        fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        memcpy(request.ifr_name, "qscope0", 8);
        return ioctl(fd, TUNSETIFF, &request) < 0 ? -errno : 0;
}

static void try_tun(_unused_ Examination *x, DoctorFact *fact)
{
        int r = in_child(attempt_tun);

        if (r < 0)
                say(fact, DOCTOR_WEAK, "/dev/net/tun: %s", strerror(-r));
        else
                say(fact, DOCTOR_OK, "a device was made in a network namespace");
}

static void try_sockets(_unused_ Examination *x, DoctorFact *fact)
{
        _cleanup_close_ int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);

        if (fd < 0)
                say(fact, DOCTOR_WEAK, "sock_diag: %s", strerror(errno));
        else
                say(fact, DOCTOR_OK, "sock_diag was opened");
}

static void try_journal(_unused_ Examination *x, DoctorFact *fact)
{
        static const struct sockaddr_un address = { .sun_family = AF_UNIX,
                .sun_path = "/run/systemd/journal/socket" };
        _cleanup_close_ int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

        if (fd < 0 || connect(fd, (const struct sockaddr *) &address, sizeof(address)) < 0)
                say(fact, DOCTOR_WEAK, "%s: %s", address.sun_path, strerror(errno));
        else
                say(fact, DOCTOR_OK, "journald listens");
}

/* What a run did not remove is removed by the next one: here it is only counted. */
static void try_leftovers(_unused_ Examination *x, DoctorFact *fact)
{
        Error e = ERROR_INIT;
        int n = rundir_count_dead(&e);

        if (n < 0)
                say(fact, DOCTOR_WEAK, "%.400s", e.text);
        else if (n > 0)
                say(fact, DOCTOR_WEAK, "%d dead run%s in " RUNTIME_DIR, n, n == 1 ? "" : "s");
        else
                say(fact, DOCTOR_OK, "no dead runs");
}

static void describe_run(const cJSON *receipt, DoctorFact *fact)
{
        const cJSON *reason = view_get(receipt, "reasons") ? view_get(receipt, "reasons")->child : NULL,
                    *timing = view_get(receipt, "timing"), *isolation = view_get(receipt, "isolation"),
                    *phase;
        double total = 0;

        cJSON_ArrayForEach(phase, timing)
        {
                total += cJSON_IsNumber(phase) ? phase->valuedouble : 0;
        }
        if (streq_ptr(view_text(receipt, "verdict"), "pass"))
                say(fact, DOCTOR_OK,
                                "`true` passed in %.0f ms; %d facts of its isolation hold, %zu blind spots",
                                total, cJSON_GetArraySize(isolation),
                                view_length(view_get(receipt, "blind_spots")));
        else
                say(fact, DOCTOR_MISSING, "`true`: %s: %.300s: %.160s", view_text(receipt, "verdict"),
                                view_text(reason, "message"), view_text(reason, "next"));
}

/* A run changes its process (its mounts, its signals): one of its own. */
static void try_job(Examination *x, DoctorFact *fact)
{
        static const char text[] = "{\"job_id\": \"doctor\", \"argv\": [\"true\"], \"workspace\": \"fresh\"}";
        _cleanup_(job_run_result_clear) JobRunResult result = { 0 };
        const JobRunOptions options = {
                .policy = x->policy, .receipt_path = "-", .trusted = true, .keep = KEEP_NEVER
        };
        _cleanup_(job_freep) Job *job = NULL;
        Error e = ERROR_INIT;
        int r = job_parse(text, strlen(text), "doctor", &job, &e);

        if (r == 0)
                r = job_run(job, &options, &result, &e);
        if (r < 0)
                say(fact, DOCTOR_MISSING, "`true`: %.400s", e.text);
        else
                describe_run(result.receipt, fact);
}

/* The job comes last: what it needs has been looked at, and a run changes this process (its mounts, its
 * signals). */
static const struct {
        const char *name;
        void (*attempt)(Examination *x, DoctorFact *fact);
        const char *remedy;
} examinations[] = {
        { "root", try_root, "Run it as root: sudo qscope doctor" },
        { "systemd", try_systemd, "Use a host that systemd 250 or newer booted, with its bus" },
        { "cgroups", try_cgroups, "Boot with systemd.unified_cgroup_hierarchy=1" },
        { "controllers", try_controllers,
                        "Enable them (cgroup_enable=memory, no cgroup_no_v1=), or lift these limits in the policy" },
        { "parts", try_parts, "Install qscope whole: meson install" },
        { "policy", try_policy, "Correct the policy, or install qscope's own" },
        { "overlay", try_overlay, "Load the overlay module: modprobe overlay" },
        { "id-mapping", try_idmap, "Put workspaces on ext4, xfs or btrfs; elsewhere they are copied" },
        { "loop", try_loop, "Load the loop module: modprobe loop; large disk limits need it" },
        { "space", try_space, "Make room: what jobs write is kept there while they run" },
        { "programs", try_fanotify,
                        "Use a kernel with fanotify permission events (CONFIG_FANOTIFY_ACCESS_PERMISSIONS)" },
        { "processes", try_trace, "Use a kernel with tracepoints, and allow perf_event_open to root" },
        { "sockets", try_sockets, "Load the sock_diag modules: modprobe inet_diag unix_diag" },
        { "egress", try_tun, "Load the tun module: modprobe tun" },
        { "journal", try_journal, "Start journald: without it there is no audit trail" },
        { "leftovers", try_leftovers, "qscope clean" },
        { "job", try_job, "See the reason, and the lines above" },
};

void doctor_examine(const char *policy, DoctorHandler handler, void *userdata)
{
        Examination x = { .policy = policy, .no_manager = ERROR_INIT };

        (void) manager_connect(NULL, &x.manager, &x.no_manager);
        for (size_t i = 0; i < ELEMENTSOF(examinations); i++) {
                DoctorFact fact = { .name = examinations[i].name };

                examinations[i].attempt(&x, &fact);
                if (fact.state != DOCTOR_OK)
                        fact.remedy = examinations[i].remedy;
                handler(userdata, &fact);
        }
        manager_free(x.manager);
}

/* What the observation of each key needs; a key that is not here needs nothing that a host could lack. */
static const struct {
        const char *evidence;
        void (*attempt)(Examination *x, DoctorFact *fact);
} needs[] = {
        { "processes.tree", try_fanotify },
        { "processes.tree", try_trace },
        { "sockets", try_sockets },
        { "egress", try_tun },
        { "limits.hits", try_controllers },
};

bool doctor_can_observe(const char *evidence)
{
        for (size_t i = 0; i < ELEMENTSOF(needs); i++) {
                DoctorFact fact = { .state = DOCTOR_OK };

                if (!streq(needs[i].evidence, evidence))
                        continue;
                needs[i].attempt(NULL, &fact);
                if (fact.state != DOCTOR_OK)
                        return false;
        }
        return true;
}
