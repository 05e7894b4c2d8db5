/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Many jobs in one engine, several at a time. Jobs begin in the order of the input, and their rows come out
 * in it; only what waits for an earlier one is kept. */

#include "core/batch.h"
#include "run/job_source.h"

/* Each job that runs is a fanotify group, and a user has 128 of them (max_user_groups, fanotify(7)). */
#define BATCH_JOBS_MAX 100u

typedef struct BatchProgress {
        const BatchTally *tally;
        uint64_t elapsed_usec;
        uint64_t total; /* UNKNOWN: the input has not ended */
        size_t running;
} BatchProgress;

typedef struct BatchOptions {
        JobSource *source;
        unsigned jobs;            /* at a time, 1 to BATCH_JOBS_MAX */
        const char *policy;       /* overrides the jobs' */
        const char *receipts_dir; /* NULL: below the state directory */
        const char *state_dir;
        bool resume;    /* jobs with a finished receipt in receipts_dir are not run again */
        bool fail_fast; /* after the first that did not pass none is begun */
        bool keep;      /* what each changed is kept for an apply; thousands of layers would fill a disk */
        /* Rows in the order of the input; may be NULL. A negative errno ends the batch. */
        int (*on_row)(void *userdata, const BatchRow *row);
        /* The receipts, as they come; may be NULL. A negative errno ends the batch. */
        int (*on_end)(void *userdata, const BatchEnd *end);
        void (*on_progress)(void *userdata, const BatchProgress *progress);
        void *userdata;
} BatchOptions;

typedef struct BatchResult {
        BatchTally tally;
        uint64_t elapsed_usec;
        int signal;       /* 0: it was not interrupted */
        bool stopped;     /* not all were begun */
        char *first_left; /* then the first that was not; NULL: unknown */
        uint64_t first_left_number;
} BatchResult;

/* What the host bears at a time: one job for each CPU that qscope may use, and no more than there is memory
 * for (256 MiB a job). */
unsigned batch_default_jobs(void);

/* 0, or a negative errno with a sentence when not all could be told. Jobs that fail are no error. */
int batch_run(const BatchOptions *options, BatchResult *ret, Error *e);
