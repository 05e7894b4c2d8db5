/* SPDX-License-Identifier: Apache-2.0 */
#include "run/audit.h"

#include "sys/caller.h"
#include "sys/journal.h"

int audit_started(const Plan *plan)
{
        _cleanup_(caller_clear) AuditCaller caller = { 0 };
        _cleanup_strv_ char **fields = NULL;
        int r = caller_read(&caller);

        if (r == 0)
                r = audit_start_fields(plan, &caller, &fields);
        return r < 0 ? r : journal_send(fields);
}

void audit_ended(const Plan *plan, const Outcome *outcome, const Judgement *judgement, const char *path,
                const char *text, bool lost)
{
        _cleanup_(caller_clear) AuditCaller caller = { 0 };
        _cleanup_strv_ char **fields = NULL;
        /* Whoever verifies it later does so from another directory. */
        _cleanup_free_ char *absolute = path ? realpath(path, NULL) : NULL;
        char sha256[HASH_HEX_MAX];
        AuditReceipt receipt = { .path = absolute, .sha256 = sha256, .bytes = strlen(text), .lost = lost };

        hash_data(text, strlen(text), sha256);
        if (caller_read(&caller) == 0 &&
                        audit_end_fields(plan, outcome, judgement, &caller, &receipt, &fields) == 0)
                (void) journal_send(fields);
}

void audit_broken(const Plan *plan, const char *error)
{
        _cleanup_(caller_clear) AuditCaller caller = { 0 };
        _cleanup_strv_ char **fields = NULL;

        if (caller_read(&caller) == 0 && audit_broken_fields(plan, &caller, error, &fields) == 0)
                (void) journal_send(fields);
}

void audit_dismissed(const Plan *plan)
{
        _cleanup_(caller_clear) AuditCaller caller = { 0 };
        _cleanup_strv_ char **fields = NULL;

        if (caller_read(&caller) == 0 && audit_dismissed_fields(plan, &caller, &fields) == 0)
                (void) journal_send(fields);
}

int audit_apply(const AuditApply *apply, AuditResult result)
{
        _cleanup_(caller_clear) AuditCaller caller = { 0 };
        _cleanup_strv_ char **fields = NULL;
        int r = caller_read(&caller);

        if (r == 0)
                r = audit_apply_fields(apply, result, &caller, &fields);
        return r < 0 ? r : journal_send(fields);
}

int audit_discarded(const AuditApply *apply)
{
        _cleanup_(caller_clear) AuditCaller caller = { 0 };
        _cleanup_strv_ char **fields = NULL;
        int r = caller_read(&caller);

        if (r == 0)
                r = audit_discard_fields(apply, &caller, &fields);
        return r < 0 ? r : journal_send(fields);
}
