/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The state machine of one run (no other timers anywhere): start, hold, release, watch, settle, observe. It
 * joins the modules of sys/; it judges nothing. Every way a run can end leaves through the same door with a
 * filled outcome. */

#include "core/outcome.h"
#include "core/plan.h"
#include "run/engine.h"

typedef struct RunOptions {
        const char *state_dir; /* images of large layers are made here */
        const char *job_dir;   /* where the job file lies; NULL: the job came from the command line */
        bool trusted;          /* input paths were typed by a person */
        bool tty;              /* bounded only: the job has the caller's terminal */
        struct Keep *keep;     /* takes what changed, see run/keep.h; may be NULL */
} RunOptions;

/* dismissed: it was told to end before its turn had come, and counts as never begun. */
typedef void (*RunHandler)(void *userdata, bool dismissed);

/* Runs the plan in the engine; what plan, outcome and options point to must outlive it. The handler is called
 * once, from the event loop, and the outcome says all then: also that the plan has refusals and nothing was
 * started, or that the host failed. -ENOMEM or another errno, and no call, only if not even an outcome could
 * be had. */
int run_begin(Engine *engine, const Plan *plan, const RunOptions *options, Outcome *outcome,
                RunHandler handler, void *userdata);
