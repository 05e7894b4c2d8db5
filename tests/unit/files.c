/* SPDX-License-Identifier: Apache-2.0 */
#include "files.h"

#include <dirent.h>
#include <limits.h>

#include "base/text.h"

const char *test_path(const char *name)
{
        static char path[PATH_MAX];
        const char *root = getenv("QSCOPE_TESTS");

        (void) snprintf(path, sizeof(path), "%s/%s", root ? root : "tests", name);
        return path;
}

char *read_test_file(const char *path, size_t *ret_size)
{
        FILE *f = fopen(path, "re");
        size_t size = 0, room = 4096;
        char *data = f ? malloc(room + 1) : NULL;

        while (data) {
                char *larger;

                size += fread(data + size, 1, room - size, f);
                if (size < room)
                        break;
                room *= 2;
                larger = realloc(data, room + 1);
                if (!larger)
                        free(data);
                data = larger;
        }
        if (f)
                (void) fclose(f);
        if (data) {
                data[size] = '\0';
                *ret_size = size;
        }
        return data;
}

int write_test_file(const char *path, const char *text)
{
        FILE *f = fopen(path, "we");
        bool failed;

        if (!f)
                return -errno;
        failed = fputs(text, f) < 0;
        return fclose(f) != 0 || failed ? -EIO : 0;
}

static int compare(const void *a, const void *b)
{
        return strcmp(*(char *const *) a, *(char *const *) b);
}

char **list_test_files(const char *directory, const char *suffix)
{
        DIR *d = opendir(directory);
        struct dirent *entry;
        char **list = NULL;
        int r = 0;

        while (d && r == 0 && (entry = readdir(d))) {
                size_t length = strlen(entry->d_name);

                if (entry->d_name[0] != '.' && length >= strlen(suffix) &&
                                streq(entry->d_name + length - strlen(suffix), suffix))
                        r = strv_extend(&list, entry->d_name);
        }
        if (d)
                (void) closedir(d);
        if (!list || r < 0) {
                (void) fprintf(stderr, "no *%s in %s\n", suffix, directory);
                abort();
        }
        qsort(list, strv_length(list), sizeof(char *), compare);
        return list;
}
