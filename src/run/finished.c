/* SPDX-License-Identifier: Apache-2.0 */
#include "run/finished.h"

#include <dirent.h>

#include "base/array.h"
#include "base/text.h"
#include "core/receipt_view.h"
#include "run/load.h"

typedef struct Entry {
        char *key; /* of job and policy */
        char *path;
        bool taken;
} Entry;

struct Finished {
        Entry *entries; /* sorted */
        size_t n, room;
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
        free(finished);
        return NULL;
}

static char *make_key(const char *job_sha256, const char *policy)
{
        return text_printf("%s %s", job_sha256, policy);
}

static bool is_finished(const cJSON *receipt)
{
        const char *verdict = view_text(receipt, "verdict");

        return verdict && !streq(verdict, "aborted") && !streq(verdict, "error");
}

/* Takes path. */
static int add(Finished *finished, const cJSON *receipt, char *path)
{
        const char *sha256 = view_text(receipt, "job_sha256"),
                   *policy = view_text(view_get(receipt, "policy"), "name");
        Entry *entries = array_grow(finished->entries, finished->n, &finished->room, sizeof(Entry));
        char *key = sha256 && policy ? make_key(sha256, policy) : NULL;

        if (entries)
                finished->entries = entries;
        if (entries && key && path) {
                finished->entries[finished->n++] = (Entry){ .key = key, .path = path };
                return 0;
        }
        free(key);
        free(path);
        return (sha256 && policy) || !entries ? -ENOMEM : 0;
}

static int read_one(Finished *finished, const char *directory, const char *name)
{
        _cleanup_free_ char *path = text_printf("%s/%s", directory, name);
        _cleanup_(cJSON_Deletep) cJSON *receipt = NULL;

        if (!path)
                return -ENOMEM;
        if (load_receipt(path, &receipt, NULL) < 0 || !is_finished(receipt))
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
        while (r == 0 && (entry = readdir(dir))) {
                size_t length = strlen(entry->d_name);

                if (length > STRLEN(".json") && streq(entry->d_name + length - STRLEN(".json"), ".json"))
                        r = read_one(finished, directory, entry->d_name);
        }
        (void) closedir(dir);
        if (r < 0)
                return error_errno(e, r, "%s", directory);
        if (finished->n > 0)
                qsort(finished->entries, finished->n, sizeof(Entry), compare);
        *ret = TAKE_PTR(finished);
        return 0;
}

const char *finished_take(Finished *finished, const char *job_sha256, const char *policy)
{
        _cleanup_free_ char *key = make_key(job_sha256, policy);
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
