/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* qscope apply: from a receipt and the layer that was kept to the workspace, in a transaction. First
 * everything is compared; then every new content is staged in the workspace, where a full disk shows; then a
 * journal says what is meant; only then names are changed, one system call each. Whatever ends it half way,
 * the next apply of the same receipt finishes it or takes it back.
 *
 * The journal, apply.json beside the layer: { schema, phase, items [{index, exact, forced}…] }. phase is
 * "stage" (the workspace has nothing new but what is staged), "commit", "undo" or "done" (only the stage is
 * to be removed). What was done of it is read from the workspace itself. */

#include "core/apply.h"
#include "core/kept.h"

typedef struct ApplyOptions {
        const char *receipt_path;
        const char *state_dir; /* NULL: /var/lib/qscope */
        char *const *select;   /* NULL: all that was agreed */
        bool force;            /* whatever the verdict */
        bool rollback;
} ApplyOptions;

typedef enum ApplyFound {
        FOUND_TODO,     /* it is as the job found it */
        FOUND_DONE,     /* it is as the job left it */
        FOUND_CONFLICT, /* neither */
} ApplyFound;

typedef struct ApplyCheck {
        ApplyFound found;
        bool looked;   /* it was selected, or held back and is there all the same (FOUND_DONE) */
        char why[160]; /* of a conflict */
} ApplyCheck;

typedef struct Apply Apply;

/* Reads and checks everything; changes nothing. Exit statuses in *ret_status when it fails: 2 no receipt, 3
 * refused, 4 the host. */
int apply_open(const ApplyOptions *options, Apply **ret, int *ret_status, Error *e);
Apply *apply_free(Apply *apply);
DEFINE_CLEANUP(Apply *, apply_free)

const ApplyPlan *apply_plan(const Apply *apply);
const KeptInfo *apply_info(const Apply *apply);
const char *apply_workspace(const Apply *apply);
/* For the selected ones. */
const ApplyCheck *apply_check(const Apply *apply, size_t index);
size_t apply_count(const Apply *apply, ApplyFound found);
/* What was wanted and is not brought; nor has an earlier apply brought it. */
bool apply_is_held(const Apply *apply, size_t index);
size_t apply_count_held(const Apply *apply);
/* An earlier apply was interrupted: what is selected is what it had selected. */
bool apply_is_resumed(const Apply *apply);
/* It was being taken back. */
bool apply_is_undone(const Apply *apply);

/* --- for people to look at (apply_diff.c) --- */

/* A look at a receipt (text is what was parsed) and its layer while others may work with them: nothing is
 * selected or compared, and the workspace may be gone. -ENOENT, -EACCES, -EBADMSG and others with a sentence:
 * there is nothing to look at. */
int apply_look(const cJSON *receipt, const char *text, size_t size, const char *state_dir, Apply **ret,
                Error *e);

typedef struct ApplyDiff {
        char *text;    /* as textdiff() makes it; NULL: it cannot be shown */
        char why[160]; /* then */
} ApplyDiff;

void apply_diff_clear(ApplyDiff *diff);
/* Whether what changed is the content of a file. */
bool apply_has_diff(const ApplyChange *change);
/* Only what has the digests of the receipt is shown, be it text of at most TEXTDIFF_BYTES_MAX. 0 or -ENOMEM.
 */
int apply_diff(const Apply *apply, const ApplyChange *change, bool colour, ApplyDiff *ret);

/* --- doing --- */

/* Whether the audit trail has what was done: 0, or a negative errno; 1: nothing was. */
int apply_recorded(const Apply *apply);

/* Does it. 0; -EINTR: a signal came, and it was taken back; another errno with a sentence: it was taken back,
 * unless the sentence says otherwise. */
int apply_commit(Apply *apply, Error *e);
/* Takes an interrupted one back. */
int apply_rollback(Apply *apply, Error *e);
/* Removes the layer if there is nothing left to be applied. *ret_removed. */
int apply_finish(Apply *apply, bool *ret_removed, Error *e);
