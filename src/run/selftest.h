/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Runs the known-bad suite through the same door as every run, each job in a process of its own, a few at a
 * time. The first case is the negative control: nothing else is run before it. */

#include "core/selftest.h"

#define SELFTEST_JOBS_MAX 16u

typedef struct SelftestOptions {
        const char *policy;  /* NULL: "default" */
        const char *pattern; /* fnmatch(3) of names, or a part of one; NULL: all */
        unsigned jobs;       /* at a time, 1 to SELFTEST_JOBS_MAX */
} SelftestOptions;

typedef struct SelftestRow {
        const SelftestCase *c;
        SelftestResult result;
        char verdict[16]; /* of the receipt; "" when there is none */
        Error why;        /* why it is not seen or not clean */
        uint64_t usec;
} SelftestRow;

typedef void (*SelftestHandler)(void *userdata, const SelftestRow *row);

/* Calls handler for each case that was asked for, in the suite's order. 0: all have been run; -EHOSTDOWN: the
 * control could not be run, and so nothing was; -EINTR: *ret_signal came; another errno with a sentence. */
int selftest_run(const SelftestSuite *suite, const SelftestOptions *options, SelftestHandler handler,
                void *userdata, int *ret_signal, Error *e);

/* Whether a case is asked for by the pattern. The control is, always. */
bool selftest_is_wanted(const SelftestSuite *suite, size_t i, const char *pattern);
