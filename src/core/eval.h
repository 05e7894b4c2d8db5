/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What became of each case with each candidate, over all repeats. Pure; made of receipts. */

#include <stdio.h>

#include "core/suite.h"

#define EVAL_RUNS_MAX 1000000u

typedef struct EvalCell {
        uint64_t runs, passed;
        uint64_t judged; /* those with the verdict pass or fail: the others say nothing of the candidate */
        char *code, *message; /* the first reason of the first run that did not pass; NULL: none */
        char *detail;  /* the last line of its standard error, or the first of its output; NULL: none */
        char *receipt; /* its path; NULL: there is none */
        uint64_t total_msec, n_timed;
        bool varies;              /* repeats differ in verdict, reasons, exit or output */
        char first[HASH_HEX_MAX]; /* digest of the first run that came in */
} EvalCell;

typedef struct EvalCandidate {
        const char *name, *sha256, *harness; /* borrowed */
} EvalCandidate;

typedef struct EvalTable EvalTable;

/* What is borrowed must outlive the table. -E2BIG with a sentence when there are over EVAL_RUNS_MAX runs. */
int eval_new(const Suite *suite, const EvalCandidate *candidates, size_t n_candidates, uint64_t repeats,
                EvalTable **ret, Error *e);
EvalTable *eval_free(EvalTable *table);
DEFINE_CLEANUP(EvalTable *, eval_free)

uint64_t eval_runs(const EvalTable *table);

/* The run with a number from 0: repeats change first, then cases, then candidates. repeat is from 1. */
void eval_locate(const EvalTable *table, uint64_t number, size_t *ret_candidate, size_t *ret_case,
                uint64_t *ret_repeat);

/* receipt NULL: there is none; error says why, or is NULL. path: the receipt's. 0 or -ENOMEM. */
int eval_add(EvalTable *table, uint64_t number, const cJSON *receipt, const char *path, const char *error);

/* The chance that at least one of k samples is right, drawn from n of which c are (Chen et al., "Evaluating
 * Large Language Models Trained on Code", §2.1); 0 < k <= n, c <= n. */
double eval_pass_at_k(uint64_t n, uint64_t c, uint64_t k);

/* SHA-256 over what each run came to (verdict, codes of the reasons, exit, signal, standard output), in the
 * order of suite and candidates: the same inputs give the same, however the runs were ordered. Times,
 * memory and messages are not in it. */
void eval_digest(const EvalTable *table, char hex[static HASH_HEX_MAX]);

/* For people; as a document, qscope.eval/v1 (NULL: out of memory); a CSV record for each candidate and case.
 */
void eval_print(const EvalTable *table, FILE *out);
cJSON *eval_to_json(const EvalTable *table);
int eval_write_csv(const EvalTable *table, FILE *out);
