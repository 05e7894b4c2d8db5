/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Regular expressions (pcre2pattern(3)), the one home of libpcre2. Patterns and data may be hostile: every
 * search has a budget of work and of memory, and running out of it is an error, never "no match". */

#include "base/error.h"

#define PATTERN_MAX UINT64_C(1024) /* bytes of one pattern */

/* Whether the pattern compiles. 0; -EINVAL or -E2BIG with a sentence; -ENOMEM. */
int pattern_check(const char *pattern, Error *e);

/* Searches data (any bytes; where they are not UTF-8 nothing matches). 1: found; 0: not; -E2BIG: the budget
 * was used up; -EINVAL: no valid pattern; -ENOMEM. */
int pattern_match(const char *pattern, const void *data, size_t size);
