/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Plan × outcome → verdict, reasons, limits that fired. Pure. */

#include "core/exec_hint.h"
#include "core/outcome.h"
#include "core/plan.h"
#include "core/reason.h"

typedef enum Verdict {
        VERDICT_PASS,
        VERDICT_FAIL,
        VERDICT_REJECTED,
        VERDICT_ERROR,
        VERDICT_ABORTED,
        _VERDICT_MAX,
} Verdict;

extern const char *const verdict_names[_VERDICT_MAX];

typedef struct LimitHit {
        LimitKind limit;
        const char *counter; /* the kernel's own: "memory.events oom_kill", "SIGXCPU", … */
        uint64_t count;
        bool killed; /* it killed something or made a call fail, so it counts against `pass`; throttling does
                        not */
} LimitHit;

#define LIMIT_HITS_MAX 24

typedef struct Judgement {
        Verdict verdict;
        bool match_expected;
        int exit_code; /* the receipt's: 126/127 for a command that could not be executed; -1: null */
        ExecHint exec; /* why it could not be executed; holds when outcome->exec.error > 0 */
        ReasonList reasons;
        LimitHit hits[LIMIT_HITS_MAX];
        size_t n_hits;
        size_t *unexpected; /* indices into outcome->changes.items */
        size_t n_unexpected;
} Judgement;

/* 0 or -ENOMEM. */
int judge(const Plan *plan, const Outcome *outcome, Judgement **ret);
Judgement *judgement_free(Judgement *judgement);
DEFINE_CLEANUP(Judgement *, judgement_free)

/* qscope's own exit status for a verdict: 0, 1, 3, 4, 128+signal. */
int verdict_exit_status(const Judgement *judgement, const Outcome *outcome);
