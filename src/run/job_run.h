/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One job from its parsed form to its receipt on disk and its record in the journal: the one door through
 * which every run goes, whatever becomes of it. */

#include "core/receipt.h"
#include "run/keep.h"
#include "run/run.h"

typedef struct JobRunOptions {
        const char *policy;       /* name that overrides the job's; NULL: the job's, else "default" */
        const char *receipt_path; /* NULL: below the state directory, named after the job; "-": not to a file
                                   */
        const char *receipts_dir; /* where receipt_path is NULL: instead of the state directory's */
        const char *state_dir;    /* NULL: /var/lib/qscope for root, else $XDG_STATE_HOME/qscope */
        const char *job_dir;
        uint64_t wait_usec; /* how long it may have to wait for its turn */
        bool trusted;
        bool tty; /* the posture bounded only: the job has the caller's terminal */
        KeepWanted keep;
} JobRunOptions;

typedef struct JobRunResult {
        cJSON *receipt, *summary;
        char *text;         /* the receipt as written */
        char *receipt_path; /* where it is; NULL: nowhere */
        int exit_status;    /* of the contract: 0, 1, 3, 4, 128 + signal */
        Error error;        /* what is to be told besides, such as a receipt that could not be written */
} JobRunResult;

void job_run_result_clear(JobRunResult *result);

/* r: 0: the result holds, and the handler may take what is in it. -ECANCELED: it was
 * dismissed before its turn. Another negative errno with a sentence when there is no receipt for want of
 * memory. */
typedef void (*JobRunHandler)(void *userdata, int r, JobRunResult *result, const Error *e);

/* Starts the job, which must stay until the handler is called, once and from the event loop, and so must the
 * strings of the options. The job gets the policy's defaults. A negative errno with a sentence, and no call,
 * when there could be no run at all: no such policy, no place for the receipt (exit status 2). */
int job_start(Engine *engine, Job *job, const JobRunOptions *options, JobRunHandler handler, void *userdata,
                Error *e);

/* The same for one job alone, from its beginning to its end, with an engine of its own. */
int job_run(Job *job, const JobRunOptions *options, JobRunResult *ret, Error *e);
