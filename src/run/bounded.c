/* SPDX-License-Identifier: Apache-2.0 */

/* The posture bounded: qscope itself starts the stage, in the caller's own files and network, and systemd
 * puts it into a scope while it is held. Limits, deadline, exact environment and the evidence that needs no
 * namespace are the same as in a service; a sandbox there is none. */

#include "run/state.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "run/expected.h"
#include "sys/host.h"
#include "sys/mount.h"

static _Noreturn void become_stage(const Run *run)
{
        static const char path[] = QSCOPE_STAGE_PATH;
        char *argv[] = { (char *) path, NULL }, *env[] = { NULL };
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);

        /* The caller's files, in a mount namespace of its own: in qscope's are the mounts of other jobs, and
         * what watches programs watches mounts. */
        if (setns(run->engine->mntns_fd, CLONE_NEWNS) < 0 || mount_namespace_own() < 0)
                _exit(127);
        /* Without a terminal of its own nothing can be typed into the caller's (TIOCSTI, ioctl_tty(2)). */
        if (!run->options.tty && setsid() < 0)
                _exit(127);
        if (null < 0 || dup2(run->stage_fd, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0 ||
                        dup2(null, STDERR_FILENO) < 0)
                _exit(127);
        /* qscope raised these for itself. */
        for (size_t i = 0; i < ENGINE_RAISED_LIMITS; i++)
                (void) setrlimit(engine_raised_limits[i], &run->engine->caller_limits[i]);
        (void) execve(path, argv, env);
        _exit(127);
}

int bounded_fork(Run *run, Error *e)
{
        pid_t pid = fork();

        if (pid == 0)
                become_stage(run);
        if (pid < 0)
                return error_errno(e, -errno, "the stage cannot be started");
        run->child = pid;
        return 0;
}

/* As systemd would for a service: LimitCPU= and the others (setrlimit(2)). */
static int limit_process(const Run *run)
{
        static const struct {
                LimitKind limit;
                __rlimit_resource_t resource;
        } kinds[] = {
                { LIMIT_CPU_TIME, RLIMIT_CPU },
                { LIMIT_FILE_SIZE, RLIMIT_FSIZE },
                { LIMIT_OPEN_FILES, RLIMIT_NOFILE },
        };

        for (size_t i = 0; i < ELEMENTSOF(kinds); i++) {
                uint64_t value = run->plan->limits.value[kinds[i].limit];
                struct rlimit limit;

                if (value == LIMIT_UNLIMITED)
                        continue;
                value = limit_of_process(kinds[i].limit, value);
                /* SIGXCPU tells the cause; SIGKILL comes a second later. */
                limit = (struct rlimit){ value, kinds[i].limit == LIMIT_CPU_TIME ? value + 1 : value };
                if (prlimit(run->child, kinds[i].resource, &limit, NULL) < 0)
                        return -errno;
        }
        return 0;
}

int bounded_hold(Run *run, Error *e)
{
        int r = limit_process(run);

        if (r < 0)
                return error_errno(e, r, "the limits of a process cannot be set");
        r = outcome_blind_spot(run->outcome,
                        "fs: in the posture bounded the job works in the caller's own files; what it changed "
                        "there was not recorded");
        if (r == 0 && run->uid == 0)
                r = outcome_blind_spot(run->outcome,
                                "processes: in the posture bounded a job of root can leave its control group, and "
                                "with it the limits and the record");
        if (r == 0 && run->options.tty)
                r = outcome_blind_spot(run->outcome, "stdout, stderr: went to the caller's terminal");
        return r < 0 ? error_errno(e, r, "the stage") : 0;
}

bool bounded_status(Run *run, ServiceStatus *ret)
{
        siginfo_t info = { 0 };

        *ret = (ServiceStatus){ 0 };
        if (run->child <= 0 || waitid(P_PID, (id_t) run->child, &info, WEXITED | WNOHANG) < 0 ||
                        info.si_pid == 0)
                return false;
        run->child = 0;
        ret->code = info.si_code;
        ret->status = info.si_status;
        ret->exit_usec = now_monotonic();
        return true;
}

void bounded_reap(Run *run)
{
        if (run->child <= 0)
                return;
        /* Not waited for yet, so the number is still its own. */
        (void) kill(run->child, SIGKILL);
        while (waitpid(run->child, NULL, 0) < 0 && errno == EINTR)
                ;
        run->child = 0;
}

static int open_expected(void *userdata, const char *path, const char **ret_below)
{
        const Plan *plan = userdata;
        bool absolute = *path == '/';

        *ret_below = absolute ? path + strspn(path, "/") : path;
        return open(absolute ? "/" : plan->cwd, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

int bounded_observe(Run *run, Error *e)
{
        return expected_observe(&run->plan->job->expect, open_expected, (void *) run->plan, run->outcome, e);
}
