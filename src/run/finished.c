/* SPDX-License-Identifier: Apache-2.0 */
#include "run/finished.h"

#include <dirent.h>

#include "base/array.h"
#include "base/text.h"
#include "core/receipt_view.h"
#include "run/load.h"
#include "sys/file.h"

typedef struct Entry {
        char *key; /* of job and policy, both by content */
        char *path;
        bool taken;
} Entry;

struct Finished {
        Entry *entries; /* sorted */
        size_t n, room;
        /* The policy in force that was asked for last: most batches have one. */
        char *policy, policy_sha256[65]; /* "": it cannot be had */
};

Finished *finished_free(Finished *finished)
{
        if (!finished)
                return NULL;
        for (size_t i = 0; i < finished->n; i++) {
                free(finished->entries[i].key);
                free(finished->entries[i].path);
        }
        free(finished->entries);
        free(finished->policy);
        free(finished);
        return NULL;
}

static char *make_key(const char *job_sha256, const char *policy, const char *policy_sha256)
{
        return text_printf("%s %s %s", job_sha256, policy, policy_sha256);
}

static bool is_finished(const cJSON *receipt)
{
        const char *verdict = view_text(receipt, "verdict");

        return verdict && !streq(verdict, "aborted") && !streq(verdict, "error");
}

/* Takes path. */
static int add(Finished *finished, const cJSON *receipt, char *path)
{
        const cJSON *of = view_get(receipt, "policy");
        const char *sha256 = view_text(receipt, "job_sha256"), *policy = view_text(of, "name"),
                   *policy_sha256 = view_text(of, "sha256");
        bool known = sha256 && policy && policy_sha256;
        Entry *entries = array_grow(finished->entries, finished->n, &finished->room, sizeof(Entry));
        char *key = known ? make_key(sha256, policy, policy_sha256) : NULL;

        if (entries)
                finished->entries = entries;
        if (entries && key && path) {
                finished->entries[finished->n++] = (Entry){ .key = key, .path = path };
                return 0;
        }
        free(key);
        free(path);
        return known || !entries ? -ENOMEM : 0;
}

/* A receipt that somebody else could have written says nothing. */
static int read_one(Finished *finished, const char *directory, const char *name)
{
        _cleanup_free_ char *path = text_printf("%s/%s", directory, name), *text = NULL;
        _cleanup_(cJSON_Deletep) cJSON *receipt = NULL;
        bool own = false;
        size_t size;

        if (!path)
                return -ENOMEM;
        if (file_read_own(path, RECEIPT_FILE_MAX, &text, &size, &own, NULL) < 0 || !own ||
                        receipt_parse(text, size, path, &receipt, NULL) < 0 || !is_finished(receipt))
                return 0;
        return add(finished, receipt, TAKE_PTR(path));
}

static int compare(const void *a, const void *b)
{
        const Entry *x = a, *y = b;
        int r = strcmp(x->key, y->key);

        return r != 0 ? r : strcmp(x->path, y->path);
}

int finished_read(const char *directory, Finished **ret, Error *e)
{
        _cleanup_(finished_freep) Finished *finished = calloc(1, sizeof(*finished));
        struct dirent *entry;
        DIR *dir;
        int r = 0;

        if (!finished)
                return -ENOMEM;
        dir = opendir(directory);
        if (!dir)
                return error_errno(e, -errno, "%s", directory);
        while (r == 0 && (entry = readdir(dir)))
                if (has_suffix(entry->d_name, ".json"))
                        r = read_one(finished, directory, entry->d_name);
        (void) closedir(dir);
        if (r < 0)
                return error_errno(e, r, "%s", directory);
        if (finished->n > 0)
                qsort(finished->entries, finished->n, sizeof(Entry), compare);
        *ret = TAKE_PTR(finished);
        return 0;
}

/* What a policy that changed would say of a job now, only a run can tell. */
static const char *policy_in_force(Finished *finished, const char *name)
{
        _cleanup_(policy_freep) Policy *policy = NULL;

        if (streq_ptr(finished->policy, name))
                return finished->policy_sha256;
        free(finished->policy);
        finished->policy = strdup(name);
        finished->policy_sha256[0] = '\0';
        if (load_policy(name, &policy, NULL) == 0)
                memcpy(finished->policy_sha256, policy->sha256, sizeof(finished->policy_sha256));
        return finished->policy_sha256;
}

const char *finished_take(Finished *finished, const char *job_sha256, const char *policy)
{
        const char *policy_sha256 = policy_in_force(finished, policy);
        _cleanup_free_ char *key = *policy_sha256 ? make_key(job_sha256, policy, policy_sha256) : NULL;
        size_t low = 0, high = finished->n;

        while (key && low < high) {
                size_t middle = low + (high - low) / 2;

                if (strcmp(finished->entries[middle].key, key) < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        for (; key && low < finished->n && streq(finished->entries[low].key, key); low++) {
                if (finished->entries[low].taken)
                        continue;
                finished->entries[low].taken = true;
                return finished->entries[low].path;
        }
        return NULL;
}
