/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The line on a terminal that says how far many jobs have come. */

#include "run/batch.h"

typedef struct Progress {
        bool on, shown;
        uint64_t told_usec;
} Progress;

/* "  37/300  35 passed, 2 not, 4 running  24.8/s  11 s left", on standard error; not too often. */
void progress_show(Progress *p, const BatchProgress *progress);
void progress_hide(Progress *p);

/* The number of -j; NULL: what the host bears. -EINVAL with a sentence. */
int progress_parse_jobs(const char *text, unsigned *ret, Error *e);
