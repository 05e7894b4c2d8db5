/* SPDX-License-Identifier: Apache-2.0 */
#include "run/candidate.h"

#include <fcntl.h>
#include <fts.h>
#include <glob.h>
#include <sys/stat.h>

#include "sys/file.h"

#define HARNESS_FILE_MAX KIB(256)

const char *const harness_directories[] = {
        "/etc/qscope/harness",
        "/usr/local/share/qscope/harness",
        "/usr/share/qscope/harness",
        NULL,
};

/* --- files --- */

/* path: where it is on the host; name: what it is called in the workspace. */
static int add_file(const char *path, const char *name, SuiteFiles *files, uint64_t *left, Error *e)
{
        _cleanup_close_ int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        _cleanup_free_ char *data = NULL;
        struct stat st;
        size_t used = 0;

        if (fd < 0 || fstat(fd, &st) < 0)
                return error_errno(e, -errno, "%s", path);
        if (!S_ISREG(st.st_mode))
                return error_set(e, -EINVAL, "%s is no regular file", path);
        if ((uint64_t) st.st_size > *left || files->n_files >= CANDIDATE_FILES_MAX)
                return error_set(e, -EFBIG, "%s: a candidate may have %u files and %u MiB", path,
                                CANDIDATE_FILES_MAX, (unsigned) (CANDIDATE_BYTES_MAX / MIB(1)));
        data = malloc((size_t) st.st_size + 1);
        if (!data)
                return -ENOMEM;
        while (used < (size_t) st.st_size) {
                ssize_t n = read(fd, data + used, (size_t) st.st_size - used);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return error_set(e, n < 0 ? -errno : -EIO, "%s changed while it was read", path);
                used += (size_t) n;
        }
        *left -= used;
        return suite_files_add(files, name, st.st_mode & S_IXUSR ? 0755 : 0644, data, used);
}

static int add_entry(const FTSENT *entry, size_t top, SuiteFiles *files, uint64_t *left, Error *e)
{
        switch (entry->fts_info) {
        case FTS_D:
        case FTS_DP:
                return 0;
        case FTS_F:
                return add_file(entry->fts_path, entry->fts_path + top, files, left, e);
        case FTS_ERR:
        case FTS_DNR:
        case FTS_NS:
                return error_errno(e, -entry->fts_errno, "%s", entry->fts_path);
        default:
                return error_set(e, -EINVAL, "%s is a link or something special: a candidate has only files",
                                entry->fts_path);
        }
}

static int add_directory(const char *path, SuiteFiles *files, Error *e)
{
        char *paths[] = { (char *) path, NULL };
        FTS *fts = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV, NULL);
        uint64_t left = CANDIDATE_BYTES_MAX;
        size_t top = strlen(path);
        FTSENT *entry;
        int r = 0;

        if (!fts)
                return error_errno(e, -errno, "%s", path);
        top += path[top - 1] != '/';
        while (r == 0 && (errno = 0, entry = fts_read(fts)) != NULL)
                r = add_entry(entry, top, files, &left, e);
        if (r == 0 && errno != 0)
                r = error_errno(e, -errno, "%s", path);
        (void) fts_close(fts);
        return r;
}

static bool has_file(const SuiteFiles *files, const char *name)
{
        for (size_t i = 0; i < files->n_files; i++)
                if (streq(files->files[i].path, name))
                        return true;
        return false;
}

int candidate_load(const char *path, const Harness *harness, SuiteFiles *ret, Error *e)
{
        uint64_t left = CANDIDATE_BYTES_MAX;
        struct stat st;
        int r;

        if (stat(path, &st) < 0)
                return error_errno(e, -errno, "%s", path);
        r = S_ISDIR(st.st_mode) ? add_directory(path, ret, e)
                                : add_file(path, harness->candidate, ret, &left, e);
        if (r == 0 && !has_file(ret, harness->candidate))
                return error_set(e, -ENOENT,
                                "%s: the harness \"%s\" looks for a file %s in it, and there is none", path,
                                harness->name, harness->candidate);
        return r == 0 ? suite_files_finish(ret) : r;
}

/* --- harness --- */

static int load_manifest(const char *path, Harness **ret, Error *e)
{
        _cleanup_free_ char *text = NULL;
        size_t size;
        int r = file_read(path, HARNESS_FILE_MAX, &text, &size, e);

        return r < 0 ? r : harness_parse(text, size, path, ret, e);
}

static bool has_extension(const Harness *harness, const char *candidate)
{
        const char *dot = strrchr(candidate, '.');

        return dot && !strchr(dot, '/') && strv_contains(harness->extensions, dot);
}

/* Where the name's manifest lies. -ENOENT: nowhere. */
static int find_by_name(const char *name, char **ret)
{
        for (size_t i = 0; harness_directories[i]; i++) {
                _cleanup_free_ char *path = text_printf("%s/%s.json", harness_directories[i], name);

                if (!path)
                        return -ENOMEM;
                if (access(path, F_OK) == 0) {
                        *ret = TAKE_PTR(path);
                        return 0;
                }
        }
        return -ENOENT;
}

static int find_in(const char *directory, const char *candidate, char **ret, Error *e)
{
        _cleanup_free_ char *pattern = text_printf("%s/*.json", directory);
        glob_t matches = { 0 };
        int r = pattern ? 0 : -ENOMEM;

        if (r == 0 && glob(pattern, 0, NULL, &matches) != 0)
                return 0;
        for (size_t i = 0; r == 0 && !*ret && i < matches.gl_pathc; i++) {
                _cleanup_(harness_freep) Harness *harness = NULL;

                r = load_manifest(matches.gl_pathv[i], &harness, e);
                if (r == 0 && has_extension(harness, candidate)) {
                        *ret = strdup(matches.gl_pathv[i]);
                        r = *ret ? 0 : -ENOMEM;
                }
        }
        globfree(&matches);
        return r;
}

static int find_by_extension(const char *candidate, char **ret, Error *e)
{
        for (size_t i = 0; !*ret && harness_directories[i]; i++) {
                int r = find_in(harness_directories[i], candidate, ret, e);

                if (r < 0)
                        return r;
        }
        return *ret ? 0
                    : error_set(e, -ENOENT,
                                      "%s: no harness is for a name with this ending, a file's or a directory's; name "
                                      "one with \"harness\" in the suite or --harness",
                                      candidate);
}

/* The names of those there are, for who named another one. */
static int no_such_harness(const char *name, Error *e)
{
        glob_t found = { 0 };
        _cleanup_free_ char *names = strdup("");

        for (size_t i = 0; harness_directories[i]; i++) {
                _cleanup_free_ char *pattern = text_printf("%s/*.json", harness_directories[i]);

                if (pattern)
                        (void) glob(pattern, i > 0 ? GLOB_APPEND : 0, NULL, &found);
        }
        for (size_t i = 0; names && i < found.gl_pathc; i++) {
                const char *base = strrchr(found.gl_pathv[i], '/') + 1;
                _cleanup_free_ char *before = names;

                names = text_printf("%s%s%.*s", before, i > 0 ? ", " : "",
                                (int) (strlen(base) - STRLEN(".json")), base);
        }
        globfree(&found);
        return error_set(e, -ENOENT, "there is no harness \"%.80s\"; there are: %s (%s, or below /usr)", name,
                        names && *names ? names : "none", harness_directories[0]);
}

static int find(const char *name, const char *directory, const char *candidate, char **ret, Error *e)
{
        int r;

        if (!name)
                return find_by_extension(candidate, ret, e);
        if (strchr(name, '/')) {
                *ret = *name == '/' ? strdup(name) : text_printf("%s/%s", directory, name);
                return *ret ? 0 : -ENOMEM;
        }
        r = find_by_name(name, ret);
        return r == -ENOENT ? no_such_harness(name, e) : r;
}

int harness_load(const char *name, const char *directory, const char *candidate, Harness **ret,
                SuiteFiles *ret_files, Error *e)
{
        _cleanup_free_ char *path = NULL;
        _cleanup_(harness_freep) Harness *harness = NULL;
        uint64_t left = CANDIDATE_BYTES_MAX;
        int r = find(name, directory, candidate, &path, e);

        if (r == 0)
                r = load_manifest(path, &harness, e);
        for (size_t i = 0; r == 0 && harness->files && harness->files[i]; i++) {
                _cleanup_free_ char *file = text_printf(
                                "%.*s/%s", (int) (strrchr(path, '/') - path), path, harness->files[i]);

                r = file ? add_file(file, harness->files[i], ret_files, &left, e) : -ENOMEM;
        }
        if (r == 0)
                r = suite_files_finish(ret_files);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(harness);
        return 0;
}
