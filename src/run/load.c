/* SPDX-License-Identifier: Apache-2.0 */
#include "run/load.h"

#include <glob.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "core/receipt_view.h"
#include "sys/file.h"

#define DROP_INS_MAX 64u /* of one policy */
#define NULL_MAJOR   1u
#define NULL_MINOR   3u

const char *const policy_directories[] = {
        "/etc/qscope/policies",
        "/usr/local/lib/qscope/policies",
        "/usr/lib/qscope/policies",
        NULL,
};

int load_job(const char *path, Job **ret, Error *e)
{
        const char *name = streq(path, "-") ? "standard input" : path;
        _cleanup_free_ char *text = NULL;
        size_t size;
        bool own = false;
        int r = file_read_own(path, JOB_FILE_MAX, &text, &size, &own, e);

        if (r == 0)
                r = job_parse(text, size, name, ret, e);
        if (r == 0)
                (*ret)->own = own;
        return r;
}

int load_receipt_text(const char *path, char **ret_text, size_t *ret_size, cJSON **ret, Error *e)
{
        _cleanup_free_ char *text = NULL;
        size_t size;
        int r = file_read(path, RECEIPT_FILE_MAX, &text, &size, e);

        if (r == 0)
                r = receipt_parse(text, size, streq(path, "-") ? "standard input" : path, ret, e);
        if (r < 0)
                return r;
        *ret_text = TAKE_PTR(text);
        *ret_size = size;
        return 0;
}

int load_receipt(const char *path, cJSON **ret, Error *e)
{
        _cleanup_free_ char *text = NULL;
        size_t size;

        return load_receipt_text(path, &text, &size, ret, e);
}

/* --- finding files --- */

static const char *base_name(const char *path)
{
        const char *slash = strrchr(path, '/');

        return slash ? slash + 1 : path;
}

/* As systemd.unit(5) has it: an empty file, or a link to /dev/null. */
static bool is_masked(const char *path)
{
        struct stat st;

        if (stat(path, &st) < 0)
                return false;
        return (S_ISCHR(st.st_mode) && st.st_rdev == makedev(NULL_MAJOR, NULL_MINOR)) ||
               (S_ISREG(st.st_mode) && st.st_size == 0);
}

static bool has_base_name(char *const *paths, const char *path)
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

/* The files that match in any directory, the first of each base name, masked ones too, sorted by base name. A
 * policy's name in the pattern is made of letters, digits, "-" and "_": nothing in it is special. */
static int find_files(const char *const *directories, const char *pattern, char ***ret)
{
        _cleanup_strv_ char **found = NULL;
        int r = 0;

        for (size_t i = 0; r == 0 && directories[i]; i++) {
                _cleanup_free_ char *full = text_printf("%s/%s", directories[i], pattern);
                glob_t matches = { 0 };

                if (!full)
                        return -ENOMEM;
                if (glob(full, 0, NULL, &matches) != 0)
                        continue;
                for (size_t j = 0; r == 0 && j < matches.gl_pathc; j++)
                        if (!has_base_name(found, matches.gl_pathv[j]))
                                r = strv_extend(&found, matches.gl_pathv[j]);
                globfree(&matches);
        }
        if (found)
                qsort(found, strv_length(found), sizeof(char *), compare_base_names);
        *ret = TAKE_PTR(found);
        return r;
}

static int find_main(const char *const *directories, const char *name, char ***paths, Error *e)
{
        for (size_t i = 0; directories[i]; i++) {
                _cleanup_free_ char *path = text_printf("%s/%s.json", directories[i], name);

                if (!path)
                        return -ENOMEM;
                if (access(path, F_OK) < 0)
                        continue;
                if (is_masked(path))
                        return error_set(e, -ENOENT,
                                        "the policy \"%s\" is masked: %s is empty or a link to /dev/null",
                                        name, path);
                return strv_extend(paths, path);
        }
        return error_set(e, -ENOENT,
                        "there is no policy \"%s\" (%s.json in %s); qscope policy list has the names", name,
                        name,
                        "/etc/qscope/policies, /usr/local/lib/qscope/policies or "
                        "/usr/lib/qscope/policies");
}

int list_drop_ins(const char *const *directories, const char *name, char ***paths, Error *e)
{
        _cleanup_free_ char *pattern = text_printf("%s.json.d/*.json", name);
        _cleanup_strv_ char **found = NULL;
        int r = pattern ? find_files(directories, pattern, &found) : -ENOMEM;

        if (strv_length(found) > DROP_INS_MAX)
                return error_set(e, -E2BIG, "the policy %s has more than %u drop-ins", name, DROP_INS_MAX);
        for (size_t i = 0; r == 0 && found && found[i]; i++)
                if (!is_masked(found[i]))
                        r = strv_extend(paths, found[i]);
        return r;
}

/* --- reading a chain of policies --- */

typedef struct Chain {
        const char *const *directories;
        char **names;                          /* of the policies, each extending the next */
        PolicyText *texts;                     /* in that order, too */
        size_t n, first[POLICY_CHAIN_MAX + 1]; /* first[i]: the first text of names[i] */
} Chain;

static void chain_clear(Chain *chain)
{
        for (size_t i = 0; i < chain->n; i++) {
                free((char *) chain->texts[i].name);
                free((char *) chain->texts[i].text);
        }
        free(chain->texts);
        strv_free(chain->names);
}

/* Whoever may write a policy decides what jobs may do. */
static int check_owner(const char *path, Error *e)
{
        struct stat st;

        if (stat(path, &st) < 0)
                return error_errno(e, -errno, "%s", path);
        if ((st.st_uid != 0 && st.st_uid != geteuid()) || (st.st_mode & S_IWOTH))
                return error_set(e, -EPERM,
                                "%s: others may write it, so it is not believed: chown root and chmod o-w",
                                path);
        return 0;
}

static int read_one(Chain *chain, const char *path, const char *policy, Error *e)
{
        PolicyText *larger = reallocarray(chain->texts, chain->n + 1, sizeof(*larger));
        _cleanup_free_ char *name = strdup(path), *content = NULL;
        size_t size;
        int r;

        if (larger)
                chain->texts = larger;
        if (!larger || !name)
                return -ENOMEM;
        r = check_owner(path, e);
        if (r == 0)
                r = file_read(path, POLICY_FILE_MAX, &content, &size, e);
        if (r < 0)
                return r;
        chain->texts[chain->n++] = (PolicyText){
                .name = TAKE_PTR(name), .text = TAKE_PTR(content), .size = size, .policy = policy
        };
        return 0;
}

static int fail_chain(const Chain *chain, const char *again, Error *e)
{
        char text[1024] = "";
        size_t used = 0;

        for (size_t i = 0; chain->names[i] && used < sizeof(text); i++)
                used += (size_t) snprintf(text + used, sizeof(text) - used, "%s -> ", chain->names[i]);
        if (strv_contains(chain->names, again))
                return error_set(e, -ELOOP, "policies extend each other: %s%s", text, again);
        return error_set(e, -ELOOP, "more than %u policies extend each other: %s%s", POLICY_CHAIN_MAX, text,
                        again);
}

/* Takes the next policy's files; *ret_base: what it extends, or NULL. */
static int read_level(Chain *chain, char *const *paths, const char *name, char **ret_base, Error *e)
{
        size_t level = strv_length(chain->names), first = chain->n;
        int r = strv_extend(&chain->names, name);

        chain->first[level] = first;
        for (size_t i = 0; r == 0 && paths[i]; i++)
                r = read_one(chain, paths[i], chain->names[level], e);
        return r < 0 ? r : policy_extends(chain->texts + first, chain->n - first, ret_base, e);
}

static int find_level(const Chain *chain, const char *name, char ***ret, Error *e)
{
        int r;

        if (strv_contains(chain->names, name) || strv_length(chain->names) == POLICY_CHAIN_MAX)
                return fail_chain(chain, name, e);
        r = find_main(chain->directories, name, ret, e);
        if (r < 0 && chain->names && e)
                return error_prefix(e, r, "the policy %s extends %s",
                                chain->names[strv_length(chain->names) - 1], name);
        return r < 0 ? r : list_drop_ins(chain->directories, name, ret, e);
}

/* The last of the chain first: each file gives way to those after it. */
static int parse_chain(const Chain *chain, Policy **ret, Error *e)
{
        _cleanup_free_ PolicyText *ordered = calloc(chain->n + 1, sizeof(*ordered));
        size_t n = 0, end = chain->n;

        if (!ordered)
                return -ENOMEM;
        for (size_t level = strv_length(chain->names); level-- > 0; end = chain->first[level])
                for (size_t i = chain->first[level]; i < end; i++)
                        ordered[n++] = chain->texts[i];
        return policy_parse(ordered, n, ret, e);
}

/* paths: the files of the first policy. */
static int load_chain(
                const char *const *directories, const char *name, char *const *paths, Policy **ret, Error *e)
{
        _cleanup_(chain_clear) Chain chain = { .directories = directories };
        _cleanup_free_ char *base = NULL;
        int r = read_level(&chain, paths, name, &base, e);

        while (r == 0 && base) {
                _cleanup_strv_ char **more = NULL;
                _cleanup_free_ char *current = TAKE_PTR(base);

                r = find_level(&chain, current, &more, e);
                if (r == 0)
                        r = read_level(&chain, more, current, &base, e);
        }
        return r < 0 ? r : parse_chain(&chain, ret, e);
}

int load_policy_from(const char *const *directories, const char *name, Policy **ret, Error *e)
{
        const Chain empty = { .directories = directories };
        _cleanup_strv_ char **paths = NULL;
        int r;

        if (!policy_name_is_valid(name))
                return error_set(e, -EINVAL,
                                "\"%s\" is not a policy's name (letters, digits, \"-\", \"_\"; never a path)",
                                name);
        r = find_level(&empty, name, &paths, e);
        return r < 0 ? r : load_chain(directories, name, paths, ret, e);
}

int load_policy(const char *name, Policy **ret, Error *e)
{
        return load_policy_from(policy_directories, name, ret, e);
}

/* --- for administrators --- */

static int check_drop_in(const char *path, Error *e)
{
        _cleanup_free_ char *text = NULL;
        PolicyText one = { .name = path };
        int r = file_read(path, POLICY_FILE_MAX, &text, &one.size, e);

        one.text = text;
        return r < 0 ? r : policy_check_text(&one, e);
}

static bool is_drop_in(const char *path)
{
        _cleanup_free_ char *full = realpath(path, NULL);
        char *slash = full ? strrchr(full, '/') : NULL;

        if (!slash)
                return false;
        *slash = '\0';
        return strlen(full) > STRLEN(".json.d") && streq(full + strlen(full) - STRLEN(".json.d"), ".json.d");
}

int load_policy_file(const char *const *directories, const char *path, Policy **ret, Error *e)
{
        const char *base = base_name(path), *suffix = strrchr(base, '.');
        size_t length = suffix && streq(suffix, ".json") ? (size_t) (suffix - base) : strlen(base);
        _cleanup_free_ char *name = strndup(base, length);
        _cleanup_strv_ char **paths = NULL;

        *ret = NULL;
        if (!name)
                return -ENOMEM;
        if (is_drop_in(path))
                return check_drop_in(path, e);
        if (!suffix || !streq(suffix, ".json") || !policy_name_is_valid(name))
                return error_set(e, -EINVAL,
                                "%s: a policy's file is called NAME.json (letters, digits, - and _)", path);
        if (strv_extend(&paths, path) < 0)
                return -ENOMEM;
        return load_chain(directories, name, paths, ret, e);
}

int list_policies(const char *const *directories, char ***ret_names, char ***ret_paths)
{
        _cleanup_strv_ char **paths = NULL, **names = NULL, **kept = NULL;
        int r = find_files(directories, "*.json", &paths);

        for (size_t i = 0; r == 0 && paths && paths[i]; i++) {
                const char *base = base_name(paths[i]);
                _cleanup_free_ char *name = strndup(base, strlen(base) - STRLEN(".json"));

                if (!name)
                        return -ENOMEM;
                if (is_masked(paths[i]) || !policy_name_is_valid(name))
                        continue;
                r = strv_extend(&names, name);
                if (r == 0)
                        r = strv_extend(&kept, paths[i]);
        }
        *ret_names = TAKE_PTR(names);
        *ret_paths = TAKE_PTR(kept);
        return r;
}
