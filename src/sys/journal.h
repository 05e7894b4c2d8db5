/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The audit trail: one structured record a run in the journal (sd_journal_sendv(3)). */

#include "base/error.h"

/* 128-bit message id of a finished run, for `journalctl MESSAGE_ID=`. */
#define JOURNAL_RUN_FINISHED "b9f1f0d1a6c94dd7a0f4f5f0a4a1c7e2"

/* fields: "NAME=value", ended by NULL. 0 or a negative errno. */
int journal_send(char *const *fields);
