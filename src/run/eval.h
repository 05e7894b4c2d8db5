/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A suite run against candidates: each run is a job of a batch. */

#include "core/eval.h"
#include "run/batch.h"

#define EVAL_CANDIDATES_MAX 10000u

typedef struct EvalOptions {
        const char *suite;         /* path of the suite; "-": standard input */
        char *const *candidates;   /* paths */
        const char *harness;       /* a name or a path, instead of the suite's; NULL: the suite's */
        const char *policy;        /* instead of the suite's; NULL: the suite's */
        uint64_t repeats;          /* 0: the suite's */
        const BatchOptions *batch; /* jobs, receipts_dir, state_dir, resume, on_progress, userdata */
} EvalOptions;

typedef struct Eval Eval;

/* Reads all that is needed, and refuses what does not go together, before anything runs. */
int eval_prepare(const EvalOptions *options, Eval **ret, Error *e);
/* Runs it. 0, or a negative errno with a sentence when not all could be told. */
int eval_execute(Eval *eval, BatchResult *ret, Error *e);
const EvalTable *eval_table(const Eval *eval);
Eval *eval_done(Eval *eval);
DEFINE_CLEANUP(Eval *, eval_done)
