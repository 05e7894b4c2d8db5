/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Many jobs: what is written of each of them, and the counts of all. Rows are made of receipts, which may
 * have been read from files: everything in them is escaped. Pure. */

#include <stdio.h>

#include "core/verdict.h"
#include "json/json.h"

/* One job of a batch that has come to its end, or could not be begun. */
typedef struct BatchEnd {
        uint64_t number;          /* of the job in the input, from 1 */
        const char *input;        /* its file, or the line of its file */
        const char *job_id;       /* what it says itself, where there is no receipt; NULL: unknown */
        const cJSON *receipt;     /* NULL: there is none */
        const char *receipt_path; /* NULL: nowhere */
        const char *error;        /* why there is no receipt, or why it could not be written; NULL: nothing */
        int status;               /* exit status of the contract */
        bool resumed;             /* it was run before */
} BatchEnd;

/* Its line of JSON (that of `qscope run`; without a receipt, all but the job_id is null, and "input" and
 * "error" say why), its record of CSV, and its row of the table: NULL for a job that passed. Each ends with a
 * newline. */
typedef struct BatchRow {
        char *line, *record, *row;
} BatchRow;

int batch_row_make(const BatchEnd *end, BatchRow *ret);
void batch_row_clear(BatchRow *row);

/* The first line of the CSV file, and of the table. */
extern const char batch_csv_header[], batch_table_header[];

#define BATCH_REASONS_MAX 64

typedef struct BatchTally {
        uint64_t done, verdicts[_VERDICT_MAX], broken, resumed;
        struct {
                char code[48];
                uint64_t n;
        } reasons[BATCH_REASONS_MAX];
        size_t n_reasons;
        uint64_t n_timed, total_msec, longest_msec; /* of the commands that ran */
        uint64_t longest;                           /* number of that job */
        int status;                                 /* the worst */
} BatchTally;

void batch_tally_add(BatchTally *tally, const BatchEnd *end);

/* Of several exit statuses the one that counts: 2 (a job that does not parse) before 4, 3, 1 and 0. A
 * signal's comes before all. */
int batch_worse_status(int a, int b);

/* The table's end: counts, reasons by how often they occurred. elapsed_usec: of the whole batch. */
void batch_tally_print(FILE *out, const BatchTally *tally, uint64_t elapsed_usec);
