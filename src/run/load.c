/* SPDX-License-Identifier: Apache-2.0 */
#include "run/load.h"

#include <glob.h>

#include "sys/file.h"

#define DROP_INS_MAX 64u

static const char *const policy_dirs[] = {
        "/etc/qscope/policies",
        "/usr/local/lib/qscope/policies",
        "/usr/lib/qscope/policies",
};

int load_job(const char *path, Job **ret, Error *e)
{
        const char *name = streq(path, "-") ? "standard input" : path;
        _cleanup_free_ char *text = NULL;
        size_t size;
        int r = file_read(path, JOB_FILE_MAX, &text, &size, e);

        return r < 0 ? r : job_parse(text, size, name, ret, e);
}

/* The policy's file first, then its drop-ins by name. */
typedef struct PolicyFiles {
        char **paths;
        PolicyText texts[DROP_INS_MAX + 1];
        size_t n;
} PolicyFiles;

static void policy_files_clear(PolicyFiles *files)
{
        for (size_t i = 0; i < files->n; i++)
                free((char *) files->texts[i].text);
        strv_free(files->paths);
}

static int find_main(const char *name, char ***paths, Error *e)
{
        for (size_t i = 0; i < ELEMENTSOF(policy_dirs); i++) {
                _cleanup_free_ char *path = text_printf("%s/%s.json", policy_dirs[i], name);

                if (!path)
                        return -ENOMEM;
                if (access(path, F_OK) >= 0)
                        return strv_extend(paths, path);
        }
        return error_set(e, -ENOENT, "there is no policy \"%s\" (%s.json in %s, %s or %s)", name, name,
                        policy_dirs[0], policy_dirs[1], policy_dirs[2]);
}

static const char *base_name(const char *path)
{
        const char *slash = strrchr(path, '/');

        return slash ? slash + 1 : path;
}

static bool is_masked(char *const *paths, const char *path)
{
        for (size_t i = 0; paths && paths[i]; i++)
                if (streq(base_name(paths[i]), base_name(path)))
                        return true;
        return false;
}

static int compare_base_names(const void *a, const void *b)
{
        return strcmp(base_name(*(char *const *) a), base_name(*(char *const *) b));
}

static int find_drop_ins(const char *name, char ***ret)
{
        _cleanup_strv_ char **found = NULL;
        int r = 0;

        for (size_t i = 0; r == 0 && i < ELEMENTSOF(policy_dirs); i++) {
                _cleanup_free_ char *pattern = text_printf("%s/%s.json.d/*.json", policy_dirs[i], name);
                glob_t matches = { 0 };

                if (!pattern)
                        return -ENOMEM;
                /* The name is made of letters, digits, "-" and "_": nothing in it is a pattern. */
                if (glob(pattern, 0, NULL, &matches) != 0)
                        continue;
                for (size_t j = 0; r == 0 && j < matches.gl_pathc; j++)
                        if (!is_masked(found, matches.gl_pathv[j]))
                                r = strv_extend(&found, matches.gl_pathv[j]);
                globfree(&matches);
        }
        if (found)
                qsort(found, strv_length(found), sizeof(char *), compare_base_names);
        for (size_t i = 0; r == 0 && found && found[i]; i++)
                r = strv_extend(ret, found[i]);
        return r;
}

static int read_files(PolicyFiles *files, Error *e)
{
        if (strv_length(files->paths) > ELEMENTSOF(files->texts))
                return error_set(e, -E2BIG, "a policy may have at most %u drop-ins", DROP_INS_MAX);
        for (; files->paths[files->n]; files->n++) {
                PolicyText *text = &files->texts[files->n];
                char *content;
                int r = file_read(files->paths[files->n], POLICY_FILE_MAX, &content, &text->size, e);

                if (r < 0)
                        return r;
                text->name = files->paths[files->n];
                text->text = content;
        }
        return 0;
}

int load_policy(const char *name, Policy **ret, Error *e)
{
        _cleanup_(policy_files_clear) PolicyFiles files = { 0 };
        int r;

        if (!policy_name_is_valid(name))
                return error_set(e, -EINVAL,
                                "\"%s\" is not a policy's name (letters, digits, \"-\", \"_\"; never a path)",
                                name);
        r = find_main(name, &files.paths, e);
        if (r == 0)
                r = find_drop_ins(name, &files.paths);
        if (r == 0)
                r = read_files(&files, e);
        return r < 0 ? r : policy_parse(files.texts, files.n, ret, e);
}
