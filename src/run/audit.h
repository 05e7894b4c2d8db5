/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The audit trail of one run: joins the records (core/audit), who called (sys/caller) and the journal. Where
 * there is no journal there is still the receipt: nothing here fails a run, or an apply. */

#include "core/audit.h"

/* About to ask systemd for the units. A start without an end is a qscope that was killed. 0, or a negative
 * errno: there is no record, and a receipt can say so. */
int audit_started(const Plan *plan);

/* path as it was given; NULL: the receipt went into no file. text: the receipt itself. */
void audit_ended(const Plan *plan, const Outcome *outcome, const Judgement *judgement, const char *path,
                const char *text, bool lost);

/* It broke off before it could be judged. */
void audit_broken(const Plan *plan, const char *error);
/* It was told to end before its turn. */
void audit_dismissed(const Plan *plan);

/* Before (result is _AUDIT_RESULT_MAX) and after a workspace is changed; a layer that was discarded. 0, or a
 * negative errno: there is no record, and who called can be told. */
int audit_apply(const AuditApply *apply, AuditResult result);
int audit_discarded(const AuditApply *apply);
