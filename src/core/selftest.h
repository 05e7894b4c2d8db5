/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The known-bad suite: small jobs, what each does, and what its receipt must then say. Pure: run/selftest.c
 * runs them. The suite is data, src/core/selftest.json, built in; its form is described there. */

#include "core/receipt_view.h"

typedef enum SelftestResult {
        SELFTEST_SEEN,    /* bad, and the receipt shows it */
        SELFTEST_CLEAN,   /* good, and the receipt shows nothing */
        SELFTEST_BLIND,   /* the receipt says itself that this kind of evidence was not to be had */
        SELFTEST_MISSED,  /* bad, and the receipt does not show it */
        SELFTEST_NOISY,   /* good, and the receipt shows something */
        SELFTEST_FAILED,  /* there is no receipt, or its verdict is an error */
        SELFTEST_SKIPPED, /* the program that it is about is not on this host */
        _SELFTEST_RESULT_MAX,
} SelftestResult;

extern const char *const selftest_result_names[_SELFTEST_RESULT_MAX]; /* "seen", "clean", … */
bool selftest_is_fault(SelftestResult result);                        /* missed, noisy, failed */

typedef struct SelftestCase {
        const char *name, *what, *shows;
        const char *program; /* must be on the host; NULL: none */
        bool good;
        const cJSON *job, *expect;
        const cJSON *tree;     /* path: content; NULL: the workspace is fresh */
        const cJSON *evidence; /* keys of the receipt; NULL: none that could be missing */
        const cJSON *absent;   /* paths of the host; NULL: none */
} SelftestCase;

typedef struct SelftestSuite {
        cJSON *document; /* what the cases point into */
        const cJSON *clean;
        SelftestCase *cases;
        size_t n;
} SelftestSuite;

/* The suite that is built in. -EINVAL with a sentence is a fault of ours. */
int selftest_suite_load(SelftestSuite *ret, Error *e);
int selftest_suite_parse(const char *text, size_t size, SelftestSuite *ret, Error *e);
void selftest_suite_clear(SelftestSuite *suite);

/* The text of a case's job file. directory: where its tree is, NULL when it has none; probe: path of
 * qscope-probe. NULL when out of memory. */
char *selftest_job_text(const SelftestCase *c, const char *directory, const char *probe);

/* Compares a receipt with what it must say. why: what is not as it must be, or what was not observed. */
SelftestResult selftest_judge(
                const SelftestSuite *suite, const SelftestCase *c, const cJSON *receipt, Error *why);

/* Whether value is as the template says; at: where, for the sentence. 0, or -ENOENT with a sentence. */
int selftest_match(const cJSON *template, const cJSON *value, const char *at, Error *e);

extern const char selftest_suite_text[]; /* made from selftest.json by the build */
