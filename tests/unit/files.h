/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Test data on disk. Paths are relative to tests/, which the test runner names in QSCOPE_TESTS. */

#include "base/macro.h"

/* "<tests>/<name>"; a static buffer. */
const char *test_path(const char *name);

/* The whole file, with a NUL behind it; NULL when it cannot be read. */
char *read_test_file(const char *path, size_t *ret_size);
int write_test_file(const char *path, const char *text);

/* Names of the entries of a directory that end in suffix, sorted. Aborts when there are none: a corpus that
 * got lost must not pass. */
char **list_test_files(const char *directory, const char *suffix);
