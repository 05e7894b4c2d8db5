/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The parts of run/apply that have files of their own. Only apply*.c include this. */

#include "run/apply.h"
#include "sys/workplace.h"

typedef enum JournalPhase {
        JOURNAL_NONE,
        JOURNAL_STAGE,
        JOURNAL_COMMIT,
        JOURNAL_UNDO,
        JOURNAL_DONE,
        _JOURNAL_MAX,
} JournalPhase;

struct Apply {
        ApplyPlan *plan;
        KeptInfo info;
        int all_fd, layer_fd;
        Workplace *place;
        JournalPhase phase; /* as the journal has it */
        char *receipt;      /* absolute path; NULL: it came through a pipe */
        int recorded;
        ApplyCheck *checks;
        WorkLook *looks; /* for each change, at the time of the check */
};

/* --- apply.c --- */

/* A content of the layer, at most max bytes. -EFBIG, and others. */
int apply_read_after(const Apply *apply, const ApplyChange *change, size_t max, char **ret, size_t *ret_size);

/* --- apply_journal.c: what is going on, beside the layer --- */

int apply_journal_write(Apply *apply, JournalPhase phase);
int apply_journal_drop(Apply *apply);
/* Takes phase and selection from the one that is there. */
int apply_journal_read(Apply *apply, Error *e);

/* --- apply_check.c: the workspace compared with the receipt --- */

/* ret_what: how they differ. */
bool apply_matches(const ApplyNode *found, const ApplyNode *wanted, unsigned mode, const char **ret_what);
/* Whether a change that was not selected now is in the workspace all the same. */
bool apply_is_there(const Apply *apply, const ApplyChange *change);
int apply_check_all(Apply *apply, Error *e);

/* --- apply_steps.c: forwards and backwards --- */

/* What is staged under its change's number. */
int apply_stage_all(Apply *apply, Error *e);
/* Only what is not there as it should be. */
int apply_stage_missing(Apply *apply, Error *e);
/* *ret_done: the steps before the one that failed. -EINTR: a signal is waiting. */
int apply_do_all(Apply *apply, size_t *ret_done, Error *e);
/* The first n steps. -ESTALE: some could not be taken back, because somebody changed the files since. */
int apply_undo_all(Apply *apply, size_t n, Error *e);
/* Names that were changed are on the disk. */
int apply_sync_names(Apply *apply);
