/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The names in one or two directories, in order, as many at a time as memory allows: a job may have put
 * millions into one. Part of sys/tree. */

#include <limits.h>

#include "base/macro.h"

typedef struct NameList {
        char *text; /* the names, each ended by NUL */
        size_t used, room;
        uint32_t *at; /* where each begins */
        size_t n, n_room;
        size_t bytes_max;
        bool more;                /* the names from next on are still to come */
        char next[NAME_MAX + 1];  /* "": from the first on */
        char limit[NAME_MAX + 1]; /* while reading: names from here on do not fit; "": all do so far */
} NameList;

/* bytes_max: of memory, about. */
NameList *name_list_new(size_t bytes_max);
NameList *name_list_free(NameList *list);
DEFINE_CLEANUP(NameList *, name_list_free)

/* The next names, sorted by bytes, none twice; again while list->more. A descriptor that is negative is no
 * directory. 0 or a negative errno. */
int name_list_read(NameList *list, int fd_a, int fd_b);

static inline const char *name_list_get(const NameList *list, size_t i)
{
        return list->text + list->at[i];
}

/* Bytes that it holds. */
size_t name_list_size(const NameList *list);
