/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/tree_names.h"

#include <dirent.h>
#include <fcntl.h>

#include "base/array.h"

NameList *name_list_new(size_t bytes_max)
{
        NameList *list = calloc(1, sizeof(*list));

        if (list)
                list->bytes_max = MIN(bytes_max, (size_t) UINT32_MAX / 2);
        return list;
}

NameList *name_list_free(NameList *list)
{
        if (!list)
                return NULL;
        free(list->text);
        free(list->at);
        free(list);
        return NULL;
}

size_t name_list_size(const NameList *list)
{
        return list->room + list->n_room * sizeof(*list->at);
}

static int grow(NameList *list, size_t length)
{
        uint32_t *at;

        if (list->used + length > list->room) {
                size_t room = MAX(list->room * 2, list->used + length + 256);
                char *larger = realloc(list->text, room);

                if (!larger)
                        return -ENOMEM;
                list->text = larger;
                list->room = room;
        }
        at = array_grow(list->at, list->n, &list->n_room, sizeof(*at));
        if (!at)
                return -ENOMEM;
        list->at = at;
        return 0;
}

static int compare(const void *a, const void *b, void *text)
{
        return strcmp((const char *) text + *(const uint32_t *) a,
                        (const char *) text + *(const uint32_t *) b);
}

static void sort(NameList *list)
{
        size_t kept = 0;

        if (list->n == 0)
                return;
        qsort_r(list->at, list->n, sizeof(*list->at), compare, list->text);
        for (size_t i = 1; i < list->n; i++)
                if (strcmp(name_list_get(list, kept), name_list_get(list, i)) != 0)
                        list->at[++kept] = list->at[i];
        list->n = kept + 1;
}

/* Keeps the first half of them; the others are for the next time. */
static int halve(NameList *list)
{
        NameList kept = { 0 };
        int r = 0;

        sort(list);
        if (list->n > 1) {
                (void) snprintf(list->limit, sizeof(list->limit), "%s", name_list_get(list, list->n / 2));
                list->n /= 2;
        }
        for (size_t i = 0; r == 0 && i < list->n; i++) {
                size_t length = strlen(name_list_get(list, i)) + 1;

                r = grow(&kept, length);
                if (r < 0 || !kept.text)
                        break;
                memcpy(kept.text + kept.used, name_list_get(list, i), length);
                kept.at[kept.n++] = (uint32_t) kept.used;
                kept.used += length;
        }
        if (r < 0) {
                free(kept.text);
                free(kept.at);
                return r;
        }
        free(list->text);
        free(list->at);
        list->text = kept.text;
        list->used = kept.used;
        list->room = kept.room;
        list->at = kept.at;
        list->n_room = kept.n_room;
        return 0;
}

static int add(NameList *list, const char *name)
{
        size_t length = strlen(name) + 1;
        int r;

        if (streq(name, ".") || streq(name, "..") || strcmp(name, list->next) < 0 ||
                        (*list->limit && strcmp(name, list->limit) >= 0))
                return 0;
        r = grow(list, length);
        if (r < 0)
                return r;
        memcpy(list->text + list->used, name, length);
        list->at[list->n++] = (uint32_t) list->used;
        list->used += length;
        return list->used + list->n * sizeof(*list->at) > list->bytes_max ? halve(list) : 0;
}

static int read_directory(NameList *list, int dir_fd)
{
        int copy = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
        struct dirent *entry;
        DIR *dir;

        if (copy < 0)
                return -errno;
        dir = fdopendir(copy);
        if (!dir) {
                r = -errno;
                safe_close(copy);
                return r;
        }
        while (r == 0 && (errno = 0, entry = readdir(dir)))
                r = add(list, entry->d_name);
        if (r == 0 && errno != 0)
                r = -errno;
        (void) closedir(dir);
        return r;
}

int name_list_read(NameList *list, int fd_a, int fd_b)
{
        int r = 0;

        list->n = list->used = 0;
        list->limit[0] = '\0';
        if (fd_a >= 0)
                r = read_directory(list, fd_a);
        if (r == 0 && fd_b >= 0)
                r = read_directory(list, fd_b);
        if (r < 0)
                return r;
        sort(list);
        list->more = *list->limit;
        memcpy(list->next, list->limit, sizeof(list->next));
        return 0;
}
