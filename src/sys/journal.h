/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The journal (sd-journal(3)): sends the records of the audit trail and reads them back. */

#include "core/audit.h"

/* fields: "NAME=value", ended by NULL; a value may hold any bytes. 0 or a negative errno; -ENOENT: there is
 * no journal. */
int journal_send(char *const *fields);

typedef struct Journal Journal;

/* Opens the journals that the caller may read, for records of the trail only: those that root sent, or the
 * caller. Anybody may write the same fields; nobody else can write that he is root (_UID is journald's). */
int journal_open(Journal **ret, Error *e);
Journal *journal_free(Journal *journal);
DEFINE_CLEANUP(Journal *, journal_free)

/* Only records with this value. Several values of one field are alternatives. 0 or a negative errno. */
int journal_match(Journal *journal, AuditField field, const char *value);

/* From the first record at or after this time (CLOCK_REALTIME), or behind the last one. Matches come first.
 */
int journal_seek(Journal *journal, uint64_t realtime_usec);
int journal_seek_end(Journal *journal);

/* 1 with the next record, 0 when there is none yet, or a negative errno. */
int journal_next(Journal *journal, AuditRecord *ret);

/* Waits until there may be a next one. 0 or a negative errno. */
int journal_wait(Journal *journal);
