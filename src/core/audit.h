/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The audit trail's records, one when a job starts and one when it ends, and the same for an apply of what it
 * changed (systemd.journal-fields(7)): which fields there are, what may stand in them, and reading them back.
 * Names, numbers and digests; never a value of the environment, an argument or output of the job. Pure:
 * sys/journal carries them. */

#include "core/outcome.h"
#include "core/plan.h"
#include "core/verdict.h"

/* The field that a job's units carry as well (LogExtraFields=), so that systemd's own lines are found by it.
 */
#define AUDIT_FIELD_JOB_ID "QSCOPE_JOB_ID"
#define AUDIT_FIELD_RUN_ID "QSCOPE_RUN_ID"

typedef enum AuditEvent {
        AUDIT_STARTED,  /* before anything is asked of systemd */
        AUDIT_FINISHED, /* it ran: pass or fail */
        AUDIT_REFUSED,  /* verdict "rejected"; there is no start before it */
        AUDIT_ERROR,
        AUDIT_ABORTED,
        AUDIT_APPLYING,  /* before anything is changed in a workspace */
        AUDIT_APPLIED,   /* what became of it */
        AUDIT_DISCARDED, /* what was kept for an apply was removed by hand */
        _AUDIT_EVENT_MAX,
        _AUDIT_EVENT_INVALID = -EINVAL,
} AuditEvent;

typedef struct AuditEventInfo {
        const char *name;       /* "started" … */
        const char *message_id; /* 128 bits in hex; units/qscope.catalog has an entry for each */
        bool ends_run;          /* it tells of a receipt that was written */
} AuditEventInfo;

extern const AuditEventInfo audit_events[_AUDIT_EVENT_MAX];

/* Who started qscope, as the kernel says and as sudo says. */
typedef struct AuditCaller {
        uint64_t uid;       /* real uid */
        uint64_t login_uid; /* of the session's login (/proc/self/loginuid); UNKNOWN: none */
        uint64_t sudo_uid;  /* SUDO_UID; UNKNOWN: not by sudo */
        char *login;        /* user name of login_uid, else of uid; NULL: no such row */
        char *sudo_user;    /* SUDO_USER; NULL: not by sudo */
} AuditCaller;

/* Where the receipt went. */
typedef struct AuditReceipt {
        const char *path;   /* absolute; NULL: into no file */
        const char *sha256; /* of its text */
        uint64_t bytes;
        bool lost; /* it should have gone into a file and could not be written */
} AuditReceipt;

typedef enum AuditResult {
        AUDIT_RESULT_APPLIED,
        AUDIT_RESULT_ROLLED_BACK, /* an interrupted apply was taken back */
        AUDIT_RESULT_TAKEN_BACK,  /* it failed, or a signal came: the workspace is as it was */
        AUDIT_RESULT_HALF,        /* it failed, and could not be taken back */
        _AUDIT_RESULT_MAX,
} AuditResult;

/* What is brought to a workspace. */
typedef struct AuditApply {
        const char *run_id, *job_id, *verdict, *workspace, *receipt_sha256; /* of the run; NULL: unknown */
        const char *receipt; /* absolute path of the one that was given; NULL: none */
        uint64_t changes;    /* brought, or about to be */
        uint64_t held;       /* held back */
        uint64_t forced;     /* of the changes: those that came because somebody insisted */
        bool undo;           /* it takes an interrupted one back */
} AuditApply;

typedef enum AuditField {
        AUDIT_JOB_ID,
        AUDIT_RUN_ID,
        AUDIT_VERDICT,
        AUDIT_EXIT_CODE,
        AUDIT_SIGNAL,
        AUDIT_DURATION,
        AUDIT_PROGRAM,
        AUDIT_POLICY,
        AUDIT_POLICY_SHA256,
        AUDIT_POSTURE,
        AUDIT_UNIT,
        AUDIT_INVOCATION_ID,
        AUDIT_CALLER_UID,
        AUDIT_CALLER_LOGIN_UID,
        AUDIT_CALLER_LOGIN,
        AUDIT_CALLER_SUDO_UID,
        AUDIT_CALLER_SUDO_USER,
        AUDIT_RECEIPT,
        AUDIT_RECEIPT_SHA256,
        AUDIT_RECEIPT_BYTES,
        AUDIT_RESULT,
        AUDIT_WORKSPACE,
        AUDIT_RUN_VERDICT,
        AUDIT_CHANGES,
        AUDIT_CHANGES_HELD,
        AUDIT_CHANGES_FORCED,
        _AUDIT_FIELD_MAX,
} AuditField;

/* "QSCOPE_VERDICT" … */
const char *audit_field_name(AuditField field);

/* Appends "NAME=value" for each field of the record. 0 or -ENOMEM. */
int audit_start_fields(const Plan *plan, const AuditCaller *caller, char ***fields);
int audit_end_fields(const Plan *plan, const Outcome *outcome, const Judgement *judgement,
                const AuditCaller *caller, const AuditReceipt *receipt, char ***fields);

/* The end of a run that broke off before it could be judged (no memory): error says why. */
int audit_broken_fields(const Plan *plan, const AuditCaller *caller, const char *error, char ***fields);
/* The end of one that was told to end before anything of it was executed: no receipt is owed. */
int audit_dismissed_fields(const Plan *plan, const AuditCaller *caller, char ***fields);

/* result is _AUDIT_RESULT_MAX before it. */
int audit_apply_fields(
                const AuditApply *apply, AuditResult result, const AuditCaller *caller, char ***fields);
int audit_discard_fields(const AuditApply *apply, const AuditCaller *caller, char ***fields);

/* A record read back. */
typedef struct AuditRecord {
        uint64_t realtime_usec;
        AuditEvent event;
        char *values[_AUDIT_FIELD_MAX]; /* NULL: not in the record */
        char **reasons;                 /* codes */
} AuditRecord;

#define AUDIT_RECORD_INIT ((AuditRecord){ .event = _AUDIT_EVENT_INVALID })

/* Takes one "NAME=value" as the journal has it; names that are none of ours are passed over, and so is a
 * value that no record of ours can have. 0 or -ENOMEM. */
int audit_record_take(AuditRecord *record, const char *data, size_t size);
void audit_record_clear(AuditRecord *record);

/* The value as a number; UNKNOWN when there is none. */
uint64_t audit_record_number(const AuditRecord *record, AuditField field);

/* One object with a key for each field; null: not in the record. NULL when out of memory. */
cJSON *audit_record_json(const AuditRecord *record);
