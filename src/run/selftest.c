/* SPDX-License-Identifier: Apache-2.0 */
#include "run/selftest.h"

#include <fcntl.h>
#include <fnmatch.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "run/doctor.h"
#include "run/job_run.h"
#include "sys/file.h"
#include "sys/host.h"

#define TREES_TEMPLATE "/var/tmp/qscope-selftest.XXXXXX"
#define PATH_SEARCHED  "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"

typedef struct Slot {
        pid_t pid; /* 0: nothing runs here */
        int fd;    /* the receipt, or what prevented one */
        size_t i;
        uint64_t begin_usec;
} Slot;

typedef struct Selftest {
        const SelftestSuite *suite;
        const SelftestOptions *options;
        char trees[sizeof(TREES_TEMPLATE)];
        SelftestRow *rows; /* as many as cases */
        bool *done;
        Slot slots[SELFTEST_JOBS_MAX];
} Selftest;

static volatile sig_atomic_t caught;

static void on_signal(int number)
{
        caught = number;
}

bool selftest_is_wanted(const SelftestSuite *suite, size_t i, const char *pattern)
{
        const char *name = suite->cases[i].name;

        return i == 0 || !pattern || strstr(name, pattern) || fnmatch(pattern, name, 0) == 0;
}

static bool is_on_host(const char *program)
{
        _cleanup_free_ char *directories = strdup(PATH_SEARCHED);
        char *rest = NULL;

        for (char *p = directories ? strtok_r(directories, ":", &rest) : NULL; p;
                        p = strtok_r(NULL, ":", &rest)) {
                _cleanup_free_ char *path = text_printf("%s/%s", p, program);

                if (path && access(path, X_OK) == 0)
                        return true;
        }
        return false;
}

/* --- the real directories --- */

/* Everything but the last component of path. */
static int make_parents(int fd, const char *path)
{
        _cleanup_free_ char *parents = strdup(path);
        char *slash = parents ? strrchr(parents, '/') : NULL;

        if (!parents)
                return -ENOMEM;
        if (!slash)
                return 0;
        *slash = '\0';
        return mkdir_parents_at(fd, parents, 0755, 0, 0, NULL);
}

static int make_tree(const char *path, const cJSON *tree)
{
        _cleanup_close_ int fd = -EBADF;
        const cJSON *file;
        int r = mkdir(path, 0755) < 0 ? -errno : 0;

        if (r == 0)
                fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (r == 0 && fd < 0)
                r = -errno;
        cJSON_ArrayForEach(file, tree)
        {
                if (r == 0)
                        r = make_parents(fd, file->string);
                if (r == 0)
                        r = file_create_at(
                                        fd, file->string, file->valuestring, strlen(file->valuestring), 0644);
        }
        return r;
}

/* What a job did to the real directory: nothing, or its workspace is none. */
static int check_tree(const char *path, const cJSON *tree, Error *why)
{
        const cJSON *file;

        cJSON_ArrayForEach(file, tree)
        {
                _cleanup_free_ char *name = text_printf("%s/%s", path, file->string), *text = NULL;
                size_t size;

                if (!name || file_read(name, MIB(1), &text, &size, NULL) < 0 ||
                                size != strlen(file->valuestring) ||
                                memcmp(text, file->valuestring, size) != 0)
                        return error_set(why, -ENOENT, "the real workspace was changed: %s", file->string);
        }
        return 0;
}

static int check_host(const SelftestCase *c, const char *directory, Error *why)
{
        const cJSON *path;
        struct stat st;

        cJSON_ArrayForEach(path, c->absent)
        {
                if (lstat(path->valuestring, &st) == 0)
                        return error_set(why, -EEXIST, "it is on the host: %s", path->valuestring);
        }
        return c->tree ? check_tree(directory, c->tree, why) : 0;
}

static char *tree_path(const Selftest *t, const SelftestCase *c)
{
        return text_printf("%s/%s", t->trees, c->name);
}

/* --- one job --- */

static int run_job(const char *policy, const char *text, int fd, Error *e)
{
        _cleanup_(job_run_result_clear) JobRunResult result = { 0 };
        _cleanup_(job_freep) Job *job = NULL;
        const JobRunOptions options = {
                .policy = policy, .receipt_path = "-", .trusted = true, .keep = KEEP_NEVER
        };
        int r = job_parse(text, strlen(text), "selftest", &job, e);

        if (r == 0)
                r = job_run(job, &options, &result, e);
        return r == 0 ? write_all(fd, result.text, strlen(result.text)) : r;
}

/* The environment is ours: what is in the caller's must not decide what is seen. */
static _Noreturn void child(const Selftest *t, const char *text, int fd, pid_t parent)
{
        Error e = ERROR_INIT;

        (void) prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (getppid() != parent || clearenv() != 0 || setenv("PATH", PATH_SEARCHED, 1) < 0 ||
                        setenv("HOME", "/root", 1) < 0 || setenv("LANG", "C.UTF-8", 1) < 0)
                _exit(EXIT_FAILURE);
        if (run_job(t->options->policy, text, fd, &e) < 0)
                (void) write_all(fd, e.text, strlen(e.text));
        _exit(EXIT_SUCCESS);
}

static int start(Selftest *t, Slot *slot, size_t i, Error *e)
{
        const SelftestCase *c = &t->suite->cases[i];
        _cleanup_free_ char *directory = tree_path(t, c), *text = NULL;
        _cleanup_close_ int fd = memfd_create("receipt", MFD_CLOEXEC);
        pid_t parent = getpid(), pid;
        int r = fd < 0 ? -errno : 0;

        if (r == 0 && directory && c->tree)
                r = make_tree(directory, c->tree);
        if (r < 0)
                return error_errno(e, r, "the workspace of %s", c->name);
        text = directory ? selftest_job_text(c, c->tree ? directory : NULL, QSCOPE_PROBE_PATH) : NULL;
        if (!text)
                return -ENOMEM;
        (void) fflush(NULL);
        pid = fork();
        if (pid < 0)
                return error_errno(e, -errno, "a process for %s", c->name);
        if (pid == 0)
                child(t, text, fd, parent);
        *slot = (Slot){ .pid = pid, .fd = TAKE_FD(fd), .i = i, .begin_usec = now_monotonic() };
        return 0;
}

static char *read_result(int fd, size_t *ret_size)
{
        off_t size = lseek(fd, 0, SEEK_END);
        char *text;

        if (size < 0 || (uint64_t) size > RECEIPT_FILE_MAX)
                return NULL;
        text = malloc((size_t) size + 1);
        if (!text)
                return NULL;
        if (pread(fd, text, (size_t) size, 0) != size) {
                free(text);
                return NULL;
        }
        text[size] = '\0';
        *ret_size = (size_t) size;
        return text;
}

/* An observer that is switched off may say so, and is switched off all the same. */
static bool could_be_seen(const SelftestCase *c)
{
        const cJSON *key;

        cJSON_ArrayForEach(key, c->evidence)
        {
                if (cJSON_IsString(key) && !doctor_can_observe(key->valuestring))
                        return false;
        }
        return true;
}

static void refuse_excuse(SelftestRow *row)
{
        char text[512];

        (void) snprintf(text, sizeof(text), "%.500s", row->why.text);
        row->result = SELFTEST_MISSED;
        error_set(&row->why, 0, "this host has all that is needed to see it, and still: %s", text);
}

static void judge_row(Selftest *t, const Slot *slot, SelftestRow *row)
{
        const SelftestCase *c = row->c;
        _cleanup_(cJSON_Deletep) cJSON *receipt = NULL;
        _cleanup_free_ char *directory = tree_path(t, c), *text = NULL;
        Error why = ERROR_INIT;
        size_t size = 0;

        row->result = SELFTEST_FAILED;
        text = read_result(slot->fd, &size);
        if (!text || size == 0) {
                error_set(&row->why, 0, "qscope ended without a receipt");
                return;
        }
        if (text[0] != '{' || receipt_parse(text, size, "receipt", &receipt, &row->why) < 0) {
                if (row->why.text[0] == '\0')
                        error_set(&row->why, 0, "%s", text);
                return;
        }
        (void) snprintf(row->verdict, sizeof(row->verdict), "%s", view_text(receipt, "verdict"));
        row->result = selftest_judge(t->suite, c, receipt, &row->why);
        if (row->result == SELFTEST_BLIND && could_be_seen(c))
                refuse_excuse(row);
        if (directory && check_host(c, directory, &why) < 0) {
                row->result = c->good ? SELFTEST_NOISY : SELFTEST_MISSED;
                row->why = why;
        }
}

static void reap(Selftest *t, Slot *slot)
{
        SelftestRow *row = &t->rows[slot->i];

        row->usec = now_monotonic() - slot->begin_usec;
        judge_row(t, slot, row);
        t->done[slot->i] = true;
        safe_close(slot->fd);
        *slot = (Slot){ .fd = -EBADF };
}

/* Waits for one of them. 0, or -EINTR when there is a signal. */
static int wait_one(Selftest *t)
{
        int status;
        pid_t pid = waitpid(-1, &status, 0);

        if (pid < 0)
                return errno == EINTR && !caught ? 0 : -errno;
        for (size_t i = 0; i < ELEMENTSOF(t->slots); i++)
                if (t->slots[i].pid == pid)
                        reap(t, &t->slots[i]);
        return 0;
}

static size_t count_running(const Selftest *t)
{
        size_t n = 0;

        for (size_t i = 0; i < ELEMENTSOF(t->slots); i++)
                n += t->slots[i].pid > 0;
        return n;
}

/* They end by themselves, with a receipt that nobody reads. */
static void abort_all(Selftest *t)
{
        for (size_t i = 0; i < ELEMENTSOF(t->slots); i++)
                if (t->slots[i].pid > 0)
                        (void) kill(t->slots[i].pid, SIGTERM);
        while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
                ;
}

static Slot *free_slot(Selftest *t)
{
        for (size_t i = 0; i < t->options->jobs; i++)
                if (t->slots[i].pid == 0)
                        return &t->slots[i];
        return NULL;
}

static int start_or_skip(Selftest *t, size_t i, Error *e)
{
        SelftestRow *row = &t->rows[i];

        row->c = &t->suite->cases[i];
        if (row->c->program && !is_on_host(row->c->program)) {
                row->result = SELFTEST_SKIPPED;
                error_set(&row->why, 0, "%s is not on this host", row->c->program);
                t->done[i] = true;
                return 0;
        }
        return start(t, free_slot(t), i, e);
}

/* Rows come out in order, whichever job is done first. */
static void report(const Selftest *t, size_t *next, SelftestHandler handler, void *userdata)
{
        for (; *next < t->suite->n; (*next)++) {
                if (!selftest_is_wanted(t->suite, *next, t->options->pattern))
                        continue;
                if (!t->done[*next])
                        return;
                handler(userdata, &t->rows[*next]);
        }
}

static int run_all(Selftest *t, SelftestHandler handler, void *userdata, Error *e)
{
        size_t i = 0, reported = 0;
        int r = 0;

        while (r == 0 && (i < t->suite->n || count_running(t) > 0)) {
                if (i < t->suite->n && !selftest_is_wanted(t->suite, i, t->options->pattern)) {
                        i++;
                        continue;
                }
                /* Beside the control nothing runs. */
                if (i < t->suite->n && free_slot(t) && (i == 0 || t->done[0]))
                        r = start_or_skip(t, i++, e);
                else
                        r = wait_one(t);
                if (r == 0 && caught)
                        r = -EINTR;
                if (r == 0 && t->done[0] && t->rows[0].result == SELFTEST_FAILED)
                        r = error_set(e, -EHOSTDOWN, "not even `true` can be run: %s", t->rows[0].why.text);
                else if (r == 0)
                        report(t, &reported, handler, userdata);
        }
        if (r < 0)
                abort_all(t);
        return r;
}

int selftest_run(const SelftestSuite *suite, const SelftestOptions *options, SelftestHandler handler,
                void *userdata, int *ret_signal, Error *e)
{
        static const int numbers[] = { SIGINT, SIGTERM, SIGHUP };
        const struct sigaction action = { .sa_handler = on_signal };
        Selftest t = { .suite = suite, .options = options, .trees = TREES_TEMPLATE };
        struct sigaction before[ELEMENTSOF(numbers)];
        int r = -ENOMEM;

        assert(options->jobs >= 1 && options->jobs <= SELFTEST_JOBS_MAX);
        caught = 0;
        for (size_t i = 0; i < ELEMENTSOF(numbers); i++)
                (void) sigaction(numbers[i], &action, &before[i]);
        t.rows = calloc(suite->n, sizeof(SelftestRow));
        t.done = calloc(suite->n, sizeof(bool));
        if (t.rows && t.done)
                r = mkdtemp(t.trees) && chmod(t.trees, 0755) == 0 ? 0 : error_errno(e, -errno, "%s", t.trees);
        if (r == 0) {
                r = run_all(&t, handler, userdata, e);
                (void) remove_tree_at(AT_FDCWD, t.trees);
        }
        *ret_signal = caught;
        for (size_t i = 0; i < ELEMENTSOF(numbers); i++)
                (void) sigaction(numbers[i], &before[i], NULL);
        free(t.rows);
        free(t.done);
        return r;
}
