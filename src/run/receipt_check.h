/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Compares a receipt on disk with what the journal recorded of it. */

#include "core/audit.h"

typedef enum ReceiptState {
        RECEIPT_INTACT,
        RECEIPT_MOVED,    /* intact, as NAME.~N~: a later run wrote to the same path */
        RECEIPT_CHANGED,  /* other bytes, or something else than a regular file */
        RECEIPT_MISSING,  /* not at its place, nor kept aside */
        RECEIPT_REMOVED,  /* by qscope itself, for its age or the size of all: the trail says so */
        RECEIPT_LOST,     /* was never written: the record itself says so */
        RECEIPT_NO_FILE,  /* went to standard output */
        RECEIPT_UNTESTED, /* could not be read: no permission, a fault of the disk */
        _RECEIPT_STATE_MAX,
} ReceiptState;

extern const char *const receipt_state_names[_RECEIPT_STATE_MAX];

/* Whether the receipt is not what it was, or cannot be shown to be. */
bool receipt_state_is_bad(ReceiptState state);

/* record: the end of a run; removed: the digests of those that qscope itself removed, in the order of
 * strcmp(3), or NULL. */
ReceiptState receipt_check(const AuditRecord *record, char *const *removed);
