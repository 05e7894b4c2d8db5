/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The state machine of one run (one event loop, no other timers anywhere): start, hold, release, watch,
 * settle, observe. It joins the modules of sys/; it judges nothing. Every way a run can end leaves through
 * the same door with a filled outcome. */

#include "core/outcome.h"
#include "core/plan.h"

typedef struct RunOptions {
        const char *state_dir; /* images of large layers are made here */
        const char *job_dir;   /* where the job file lies; NULL: the job came from the command line */
        bool trusted;          /* input paths were typed by a person */
        bool tty;              /* bounded only: the job has the caller's terminal */
        struct Keep *keep;     /* takes what changed, see run/keep.h; may be NULL */
} RunOptions;

/* Holds SIGINT, SIGTERM and SIGHUP back until run_execute() takes them. 0 or a negative errno. */
int run_block_signals(void);

/* Runs the plan, which must not have refusals. 0: the outcome says all, also that the host failed. -ENOMEM or
 * another errno only if not even an outcome could be had. */
int run_execute(const Plan *plan, const RunOptions *options, Outcome *outcome);
