/* SPDX-License-Identifier: Apache-2.0 */
#include "run/job_source.h"

#include <dirent.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <poll.h>
#include <sys/stat.h>

#include "base/array.h"
#include "run/load.h"
#include "run/planning.h"

#define CHUNK_SIZE KIB(64)

struct JobSource {
        char **paths; /* "-": standard input */
        size_t n, room, next;
        bool from_stdin, has_lines;
        uint64_t number;

        /* The lines that are being read, of standard input or a file. */
        int lines_fd;
        bool lines_ended;
        uint64_t line;
        char *buffer; /* what has been read of them; up to a line and a chunk */
        size_t used, scanned;
        bool overlong; /* the line is longer than a job may be: the rest of it is dropped */
        JobMaker make; /* not NULL: n jobs are made, and there are no paths */
        void *userdata;
};

void job_item_clear(JobItem *item)
{
        job_free(item->job);
        free(item->name);
        free(item->job_dir);
        *item = (JobItem){ 0 };
}

JobSource *job_source_free(JobSource *source)
{
        if (!source)
                return NULL;
        for (size_t i = 0; source->paths && i < source->n; i++)
                free(source->paths[i]);
        free(source->paths);
        if (source->lines_fd != STDIN_FILENO)
                safe_close(source->lines_fd);
        free(source->buffer);
        free(source);
        return NULL;
}

/* --- names --- */

/* A job a line. */
static bool is_lines(const char *path)
{
        return streq(path, "-") || has_suffix(path, ".jsonl") || has_suffix(path, ".ndjson");
}

/* Takes path; NULL is -ENOMEM. */
static int add_path(JobSource *source, char *path)
{
        char **paths = path ? array_grow(source->paths, source->n, &source->room, sizeof(char *)) : NULL;

        if (!paths) {
                free(path);
                return -ENOMEM;
        }
        source->paths = paths;
        source->paths[source->n++] = path;
        source->has_lines = source->has_lines || is_lines(path);
        return 0;
}

static int is_job_file(const struct dirent *entry)
{
        return entry->d_name[0] != '.' && has_suffix(entry->d_name, ".json");
}

static int compare_names(const struct dirent **a, const struct dirent **b)
{
        return strcmp((*a)->d_name, (*b)->d_name);
}

static int add_directory(JobSource *source, const char *path, Error *e)
{
        struct dirent **entries;
        int n = scandir(path, &entries, is_job_file, compare_names), r = 0;

        if (n < 0)
                return error_errno(e, -errno, "%s", path);
        for (int i = 0; i < n; i++) {
                if (r == 0)
                        r = add_path(source, text_printf("%s/%s", path, entries[i]->d_name));
                free(entries[i]);
        }
        free(entries);
        return r < 0 || n > 0 ? r : error_set(e, -ENOENT, "%s: there is no *.json in this directory", path);
}

static int add_existing(JobSource *source, const char *path, Error *e)
{
        struct stat st;

        if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
                return add_directory(source, path, e);
        return add_path(source, strdup(path));
}

static int add_argument(JobSource *source, const char *argument, Error *e)
{
        glob_t matches = { 0 };
        int r = 0;

        if (streq(argument, "-")) {
                if (source->from_stdin)
                        return error_set(e, -EINVAL, "standard input can be read only once");
                source->from_stdin = true;
                return add_path(source, strdup(argument));
        }
        if (access(argument, F_OK) == 0)
                return add_existing(source, argument, e);
        if (errno != ENOENT || glob(argument, GLOB_NOMAGIC, NULL, &matches) != 0 || !strpbrk(argument, "*?["))
                r = error_set(e, -ENOENT, "%s: there is no such job file or directory", argument);
        for (size_t i = 0; r == 0 && i < matches.gl_pathc; i++)
                r = add_existing(source, matches.gl_pathv[i], e);
        globfree(&matches);
        return r;
}

int job_source_new(char *const *arguments, JobSource **ret, Error *e)
{
        _cleanup_(job_source_freep) JobSource *source = calloc(1, sizeof(*source));
        int r = source ? 0 : -ENOMEM;

        if (source)
                source->lines_fd = -EBADF;
        for (size_t i = 0; r == 0 && arguments[i]; i++)
                r = add_argument(source, arguments[i], e);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(source);
        return 0;
}

int job_source_made(JobMaker make, void *userdata, uint64_t total, JobSource **ret)
{
        JobSource *source = calloc(1, sizeof(*source));

        if (!source)
                return -ENOMEM;
        *source = (JobSource){ .make = make, .userdata = userdata, .n = (size_t) total, .lines_fd = -EBADF };
        *ret = source;
        return 0;
}

uint64_t job_source_total(const JobSource *source)
{
        return source->has_lines ? UNKNOWN : source->n;
}

/* --- lines --- */

/* Only what is there: other jobs run meanwhile. 1: something; 0: the end; -EAGAIN. */
static int read_chunk(JobSource *source)
{
        struct pollfd p = { .fd = source->lines_fd, .events = POLLIN };
        ssize_t n;

        if (!source->buffer)
                source->buffer = malloc(JOB_FILE_MAX + CHUNK_SIZE + 1);
        if (!source->buffer)
                return -ENOMEM;
        do
                n = poll(&p, 1, 0);
        while (n < 0 && errno == EINTR);
        if (n == 0)
                return -EAGAIN;
        n = read(source->lines_fd, source->buffer + source->used, CHUNK_SIZE);
        if (n < 0)
                return errno == EINTR || errno == EAGAIN ? -EAGAIN : -errno;
        source->used += (size_t) n;
        return n > 0;
}

static bool is_blank(const char *text, size_t size)
{
        while (size > 0 && strchr(" \t\r", text[size - 1]) && text[size - 1])
                size--;
        return size == 0;
}

static int parse_line(JobSource *source, size_t size, JobItem *ret)
{
        const char *path = source->paths[source->next];
        bool from_stdin = source->lines_fd == STDIN_FILENO;

        *ret = (JobItem){ .number = ++source->number,
                .name = text_printf("%s: line %" PRIu64, from_stdin ? "standard input" : path, source->line),
                .job_dir = from_stdin ? NULL : planning_job_directory(path) };
        if (!ret->name)
                return -ENOMEM;
        if (source->overlong)
                error_set(&ret->error, -E2BIG, "%s: is longer than %u bytes (1 MiB)", ret->name,
                                (unsigned) JOB_FILE_MAX);
        else
                (void) job_parse(source->buffer, size, ret->name, &ret->job, &ret->error);
        return 1;
}

/* Takes one line out of the buffer. 1: a job; 0: none, read more; at the end what is left is a line, too. */
static int take_line(JobSource *source, JobItem *ret)
{
        char *end = source->used > source->scanned ? memchr(source->buffer + source->scanned, '\n',
                                                                     source->used - source->scanned)
                                                   : NULL;
        size_t size = end ? (size_t) (end - source->buffer) : source->used, whole = end ? size + 1 : size;
        int r = 0;

        source->scanned = source->used;
        if (!end && size > JOB_FILE_MAX) {
                source->overlong = true;
                source->used = source->scanned = 0;
        }
        if (!end && (!source->lines_ended || (size == 0 && !source->overlong)))
                return 0;
        source->line++;
        if (source->overlong || !is_blank(source->buffer, size))
                r = parse_line(source, size, ret);
        source->overlong = false;
        source->used -= MIN(whole, source->used);
        memmove(source->buffer, source->buffer + whole, source->used);
        source->scanned = 0;
        /* A blank line: look again. */
        return r == 0 ? -ECANCELED : r;
}

static int next_line(JobSource *source, JobItem *ret)
{
        for (;;) {
                int r = source->buffer ? take_line(source, ret) : 0;

                if (r == -ECANCELED)
                        continue;
                if (r != 0 || source->lines_ended)
                        return r;
                r = read_chunk(source);
                if (r < 0)
                        return r;
                source->lines_ended = r == 0;
        }
}

static int open_lines(JobSource *source, const char *path, JobItem *ret)
{
        _cleanup_close_ int fd = -EBADF;
        struct stat st;

        if (streq(path, "-")) {
                source->lines_fd = STDIN_FILENO;
                return 0;
        }
        fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
        if (fd >= 0 && fstat(fd, &st) >= 0 && S_ISREG(st.st_mode)) {
                source->lines_fd = TAKE_FD(fd);
                return 0;
        }
        *ret = (JobItem){ .number = ++source->number, .name = strdup(path) };
        if (fd < 0)
                error_errno(&ret->error, -errno, "%s: cannot be opened", path);
        else
                error_set(&ret->error, -EINVAL,
                                "%s: is not a regular file (for a pipe, pass \"-\" and redirect it)", path);
        source->next++;
        return ret->name ? 1 : -ENOMEM;
}

static void close_lines(JobSource *source)
{
        if (source->lines_fd != STDIN_FILENO)
                safe_close(source->lines_fd);
        source->lines_fd = -EBADF;
        source->lines_ended = false;
        source->line = 0;
        source->used = source->scanned = 0;
        source->next++;
}

/* --- */

static int next_file(JobSource *source, const char *path, JobItem *ret)
{
        *ret = (JobItem){
                .number = ++source->number, .name = strdup(path), .job_dir = planning_job_directory(path)
        };
        if (!ret->name)
                return -ENOMEM;
        (void) load_job(path, &ret->job, &ret->error);
        return 1;
}

static int next_made(JobSource *source, JobItem *ret)
{
        int r;

        *ret = (JobItem){ .number = ++source->next };
        r = source->make(source->userdata, ret->number, ret);
        if (r == 0)
                return 1;
        job_item_clear(ret);
        return r;
}

int job_source_next(JobSource *source, JobItem *ret)
{
        if (source->make)
                return source->next < source->n ? next_made(source, ret) : 0;
        while (source->next < source->n) {
                const char *path = source->paths[source->next];
                int r = 0;

                if (!is_lines(path)) {
                        source->next++;
                        return next_file(source, path, ret);
                }
                if (source->lines_fd < 0)
                        r = open_lines(source, path, ret);
                if (r == 0)
                        r = next_line(source, ret);
                if (r != 0)
                        return r;
                close_lines(source);
        }
        return 0;
}
