/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* expect.files: what is there after the run. */

#include "core/job.h"
#include "core/outcome.h"

/* Opens the directory in which an expected path lies and says what is left of the path. -EXDEV: no place that
 * a job can write to. */
typedef int (*ExpectedOpen)(void *userdata, const char *path, const char **ret_below);

int expected_observe(const Expect *expect, ExpectedOpen open_directory, void *userdata, Outcome *o, Error *e);
