/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Paths as text. Nothing is looked up: links are the file system's business, and the caller's. */

#include "base/macro.h"

/* Drops "//", "/./" and a slash at the end. A relative path that names its own directory becomes ".".
 * -EINVAL: empty, or has a ".." component; -ENAMETOOLONG: more than PATH_MAX bytes, or a component of more
 * than NAME_MAX; -ENOMEM. */
int path_normalise(const char *path, char **ret);

/* Whether path is directory or lies below it; both normalised. Everything absolute lies below "/". */
bool path_is_within(const char *path, const char *directory);

/* What follows directory and its slash; "" for directory itself; NULL when path does not lie below it. */
const char *path_below(const char *path, const char *directory);

/* directory/name, or name itself when it is absolute; NULL when out of memory. */
char *path_join(const char *directory, const char *name);

/* Order in which everything below a directory follows it directly ("a", "a/b", "a-b"). */
int path_compare(const char *a, const char *b);
