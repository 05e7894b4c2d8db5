/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One entry of a directory and lists of names. Part of sys/tree. */

#include <sys/stat.h>

#include "core/outcome.h"

typedef struct NameList {
        char **items;
        size_t n, room;
} NameList;

/* Appends the names in a directory; "." and ".." are left out. */
int name_list_read(NameList *list, int dir_fd);
/* Sorts by bytes and removes doubles. */
void name_list_sort(NameList *list);
void name_list_clear(NameList *list);

/* Fills ret from st; a link's target is read, a regular file's content hashed if hash. */
int node_read(int dir_fd, const char *name, const struct stat *st, bool hash, FileNode *ret);

/* SHA-256 of a regular file. -ESTALE: it is none. */
int node_hash(int dir_fd, const char *name, char sha256[static HASH_HEX_MAX]);

/* ChangeWhat bits. */
int node_compare(int before_dir, int after_dir, const char *name, const struct stat *before,
                const struct stat *after, unsigned *ret_what);
