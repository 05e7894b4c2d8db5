/* SPDX-License-Identifier: Apache-2.0 */

/* qscope-escape: attempts to get out of a job, and the victim they aim at. See escape.h. */

#include "escape.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define ATTEMPT_SEC 60 /* beyond it something hangs, even in an emulated machine */
#define BROKEN      99 /* exit status of an attempt that lacks what the test should have given */
#define TOKEN_MAX   64

static const struct {
        const char *kind;
        const Attempt *attempts;
} tables[] = {
        { "files", file_attempts },
        { "proc", proc_attempts },
        { "processes", process_attempts },
        { "sockets", socket_attempts },
        { "mounts", mount_attempts },
        { "kernel", kernel_attempts },
        { "shared", shared_attempts },
        { "own", own_attempts },
};
#define N_TABLES (sizeof(tables) / sizeof(tables[0]))

/* Shared with the child that tries: no descriptor of ours may be taken for an inherited one. */
static struct Report {
        int result;
        char step[64];
} * report;

static char **targets;

int refused(const char *step)
{
        int r = errno ? -errno : -EPERM;

        (void) succeeded(step);
        return r;
}

int succeeded(const char *step)
{
        (void) snprintf(report->step, sizeof(report->step), "%s", step);
        return 0;
}

int without_effect(const char *step)
{
        errno = ENODATA;
        return refused(step);
}

const char *target(const char *key)
{
        size_t n = strlen(key);

        for (char **word = targets; *word; word++)
                if (strncmp(*word, key, n) == 0 && (*word)[n] == '=')
                        return *word + n + 1;
        (void) fprintf(stderr, "qscope-escape: %s=... is missing\n", key);
        _exit(BROKEN);
}

long target_number(const char *key)
{
        return strtol(target(key), NULL, 0);
}

const char *token(void)
{
        static char text[TOKEN_MAX + 1];
        const char *reversed = target("nekot");
        size_t n = strlen(reversed);

        if (n > TOKEN_MAX)
                _exit(BROKEN);
        for (size_t i = 0; i < n; i++)
                text[i] = reversed[n - 1 - i];
        return text;
}

bool has_token(const void *data, size_t size)
{
        return memmem(data, size, token(), strlen(token())) != NULL;
}

int read_token_fd(int fd, const char *step)
{
        static char data[1 << 16];
        ssize_t n;

        if (fd < 0)
                return refused(step);
        n = read(fd, data, sizeof(data));
        if (n < 0)
                return refused("read");
        (void) close(fd);
        return has_token(data, (size_t) n) ? 0 : without_effect("read");
}

int read_token(const char *path)
{
        return read_token_fd(open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC), path);
}

void own_mounts(void)
{
        if (unshare(CLONE_NEWNS) == 0)
                (void) mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
}

const char *fresh_mount(const char *type)
{
        static char path[] = "bed-fresh";

        own_mounts();
        (void) mkdir(path, 0700);
        return mount(type, path, type, 0, NULL) < 0 ? NULL : path;
}

int open_kernel_file(const char *type, const char *top, const char *path, int flags)
{
        char fresh[512];
        int fd = open(path, flags | O_CLOEXEC);

        if (fd >= 0 || !fresh_mount(type))
                return fd;
        (void) snprintf(fresh, sizeof(fresh), "bed-fresh%s", path + strlen(top));
        return open(fresh, flags | O_CLOEXEC);
}

/* --- one attempt, in a process of its own --- */

static const char *try_one(const Attempt *attempt)
{
        int status;
        pid_t pid;

        *report = (struct Report){ 0 };
        pid = fork();
        if (pid == 0) {
                (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
                (void) alarm(ATTEMPT_SEC);
                errno = 0;
                report->result = attempt->call(attempt->argument);
                _exit(0);
        }
        if (pid < 0 || waitpid(pid, &status, 0) < 0)
                return "broken";
        if (WIFSIGNALED(status)) {
                errno = EINTR;
                report->result = refused(sigabbrev_np(WTERMSIG(status)));
                return WTERMSIG(status) == SIGALRM ? "hung" : "refused";
        }
        if (WEXITSTATUS(status) != 0)
                return "broken";
        return report->result == 0 ? "done" : "refused";
}

static void print_attempt(const char *kind, const Attempt *attempt, const char *result)
{
        (void) printf("{\"name\": \"%s\", \"kind\": \"%s\", \"what\": \"%s\", \"vm\": %s", attempt->name,
                        kind, attempt->what, attempt->vm ? "true" : "false");
        if (result)
                (void) printf(", \"result\": \"%s\", \"error\": \"%s\", \"step\": \"%s\"", result,
                                report->result == 0 ? "" : strerrorname_np(-report->result), report->step);
        (void) puts("}");
        (void) fflush(stdout); /* before the next fork, which would print it again */
}

static int for_all(bool attempt)
{
        for (size_t i = 0; i < N_TABLES; i++)
                for (const Attempt *a = tables[i].attempts; a->name; a++)
                        print_attempt(tables[i].kind, a, attempt ? try_one(a) : NULL);
        return 0;
}

static int try_named(const char *name)
{
        for (size_t i = 0; i < N_TABLES; i++)
                for (const Attempt *a = tables[i].attempts; a->name; a++)
                        if (strcmp(a->name, name) == 0) {
                                print_attempt(tables[i].kind, a, try_one(a));
                                return 0;
                        }
        return 2;
}

/* As a program with the set-user-id bit or with capabilities: whether they count. */
static int powers(void)
{
        char line[256];
        FILE *file = fopen("/proc/self/status", "re");
        unsigned long long effective = 0;

        if (!file)
                return 1;
        while (fgets(line, sizeof(line), file))
                if (strncmp(line, "CapEff:", 7) == 0)
                        effective = strtoull(line + 7, NULL, 16);
        (void) fclose(file);
        return geteuid() == 0 || effective != 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
        const char *verb = argc > 1 ? argv[1] : "";

        report = mmap(NULL, sizeof(*report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (report == MAP_FAILED)
                return 1;
        targets = argv + (argc > 2 ? 2 : argc);
        if (strcmp(verb, "list") == 0)
                return for_all(false);
        if (strcmp(verb, "all") == 0)
                return for_all(true);
        if (strcmp(verb, "try") == 0 && argc > 2)
                return try_named(argv[2]);
        if (strcmp(verb, "victim") == 0)
                return victim_main();
        if (strcmp(verb, "powers") == 0)
                return powers();
        (void) fprintf(stderr,
                        "Usage: qscope-escape list | all TARGET... | try ATTEMPT TARGET... | victim TARGET...\n");
        return 2;
}
