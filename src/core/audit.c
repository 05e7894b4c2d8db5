/* SPDX-License-Identifier: Apache-2.0 */
#include "core/audit.h"

#include <inttypes.h>
#include <linux/limits.h>

#include "base/number.h"

#define REASONS_MAX 16u /* codes in one record; they are few, and each is named once */
#define NAME_SHOWN  256u

const AuditEventInfo audit_events[_AUDIT_EVENT_MAX] = {
        [AUDIT_STARTED] = { "started", "66484ad85e1d46b0bf7aa5f1bacc1a9b" },
        [AUDIT_FINISHED] = { "finished", "b9f1f0d1a6c94dd7a0f4f5f0a4a1c7e2", .ends_run = true },
        [AUDIT_REFUSED] = { "refused", "7c8b33756fc8437b85f9d41ab4ea9c02", .ends_run = true },
        [AUDIT_ERROR] = { "error", "bacb702ad8584c1089e86fed51b53cbf", .ends_run = true },
        [AUDIT_ABORTED] = { "aborted", "e5b026af0b5c4ae695e12ac3119e344b", .ends_run = true },
        [AUDIT_APPLYING] = { "applying", "a371e1318b3143cdb9ff68a310cbba17" },
        [AUDIT_APPLIED] = { "applied", "c617ebc946b6486d87e9c24d4c2d0362" },
        [AUDIT_DISCARDED] = { "discarded", "1d2e5dffacac4d34a801c691b842a69a" },
};

static const char *const result_names[_AUDIT_RESULT_MAX] = {
        [AUDIT_RESULT_APPLIED] = "applied",
        [AUDIT_RESULT_ROLLED_BACK] = "rolled_back",
        [AUDIT_RESULT_TAKEN_BACK] = "taken_back",
        [AUDIT_RESULT_HALF] = "half_changed",
};

/* What a value may be. A text is one printable line whoever wrote it: "\n" would be a line of its own in many
 * a reader of journals. A path is kept to the byte, or it could not be opened again; the journal's own
 * protocol takes any bytes in a value, and whoever shows it escapes it. */
typedef enum FieldType { FIELD_TEXT, FIELD_NUMBER, FIELD_PATH } FieldType;

static const struct {
        const char *name, *key;
        FieldType type;
} field_table[_AUDIT_FIELD_MAX] = {
        [AUDIT_JOB_ID] = { AUDIT_FIELD_JOB_ID, "job_id", FIELD_TEXT },
        [AUDIT_RUN_ID] = { AUDIT_FIELD_RUN_ID, "run_id", FIELD_TEXT },
        [AUDIT_VERDICT] = { "QSCOPE_VERDICT", "verdict", FIELD_TEXT },
        [AUDIT_EXIT_CODE] = { "QSCOPE_EXIT_CODE", "exit_code", FIELD_NUMBER },
        [AUDIT_SIGNAL] = { "QSCOPE_SIGNAL", "signal", FIELD_TEXT },
        [AUDIT_DURATION] = { "QSCOPE_DURATION_USEC", "duration_usec", FIELD_NUMBER },
        [AUDIT_PROGRAM] = { "QSCOPE_PROGRAM", "program", FIELD_TEXT },
        [AUDIT_POLICY] = { "QSCOPE_POLICY", "policy", FIELD_TEXT },
        [AUDIT_POLICY_SHA256] = { "QSCOPE_POLICY_SHA256", "policy_sha256", FIELD_TEXT },
        [AUDIT_POSTURE] = { "QSCOPE_POSTURE", "posture", FIELD_TEXT },
        [AUDIT_UNIT] = { "QSCOPE_UNIT", "unit", FIELD_TEXT },
        [AUDIT_INVOCATION_ID] = { "QSCOPE_INVOCATION_ID", "invocation_id", FIELD_TEXT },
        [AUDIT_CALLER_UID] = { "QSCOPE_CALLER_UID", "caller_uid", FIELD_NUMBER },
        [AUDIT_CALLER_LOGIN_UID] = { "QSCOPE_CALLER_LOGIN_UID", "caller_login_uid", FIELD_NUMBER },
        [AUDIT_CALLER_LOGIN] = { "QSCOPE_CALLER_LOGIN", "caller_login", FIELD_TEXT },
        [AUDIT_CALLER_SUDO_UID] = { "QSCOPE_CALLER_SUDO_UID", "caller_sudo_uid", FIELD_NUMBER },
        [AUDIT_CALLER_SUDO_USER] = { "QSCOPE_CALLER_SUDO_USER", "caller_sudo_user", FIELD_TEXT },
        [AUDIT_RECEIPT] = { "QSCOPE_RECEIPT", "receipt", FIELD_PATH },
        [AUDIT_RECEIPT_SHA256] = { "QSCOPE_RECEIPT_SHA256", "receipt_sha256", FIELD_TEXT },
        [AUDIT_RECEIPT_BYTES] = { "QSCOPE_RECEIPT_BYTES", "receipt_bytes", FIELD_NUMBER },
        [AUDIT_RESULT] = { "QSCOPE_RESULT", "result", FIELD_TEXT },
        [AUDIT_WORKSPACE] = { "QSCOPE_WORKSPACE", "workspace", FIELD_PATH },
        [AUDIT_RUN_VERDICT] = { "QSCOPE_RUN_VERDICT", "run_verdict", FIELD_TEXT },
        [AUDIT_CHANGES] = { "QSCOPE_CHANGES", "changes", FIELD_NUMBER },
        [AUDIT_CHANGES_HELD] = { "QSCOPE_CHANGES_HELD", "changes_held", FIELD_NUMBER },
        [AUDIT_CHANGES_FORCED] = { "QSCOPE_CHANGES_FORCED", "changes_forced", FIELD_NUMBER },
};

#define REASON_NAME     "QSCOPE_REASON"
#define MESSAGE_ID_NAME "MESSAGE_ID"

const char *audit_field_name(AuditField field)
{
        return field_table[field].name;
}

/* --- writing --- */

/* NULL: there is no such fact, and no field. */
static int add_text(char ***fields, AuditField field, const char *value)
{
        char text[NAME_SHOWN];

        assert(field_table[field].type == FIELD_TEXT);
        if (!value)
                return 0;
        text_excerpt(value, strlen(value), text, sizeof(text));
        return strv_extendf(fields, "%s=%s", field_table[field].name, text);
}

static int add_number(char ***fields, AuditField field, uint64_t value)
{
        assert(field_table[field].type == FIELD_NUMBER);
        return value == UNKNOWN ? 0 : strv_extendf(fields, "%s=%" PRIu64, field_table[field].name, value);
}

static int add_path(char ***fields, AuditField field, const char *path)
{
        assert(field_table[field].type == FIELD_PATH);
        if (!path || strlen(path) >= PATH_MAX)
                return 0;
        return strv_extendf(fields, "%s=%s", field_table[field].name, path);
}

static int add_event(char ***fields, AuditEvent event, int priority)
{
        int r = strv_extendf(fields, MESSAGE_ID_NAME "=%s", audit_events[event].message_id);

        if (r == 0)
                r = strv_extendf(fields, "PRIORITY=%d", priority);
        return r < 0 ? r : strv_extend(fields, "SYSLOG_IDENTIFIER=qscope");
}

static int add_caller(char ***fields, const AuditCaller *caller)
{
        const struct {
                AuditField field;
                uint64_t value;
        } numbers[] = {
                { AUDIT_CALLER_UID, caller->uid },
                { AUDIT_CALLER_LOGIN_UID, caller->login_uid },
                { AUDIT_CALLER_SUDO_UID, caller->sudo_uid },
        };
        int r = 0;

        for (size_t i = 0; r == 0 && i < ELEMENTSOF(numbers); i++)
                r = add_number(fields, numbers[i].field, numbers[i].value);
        if (r == 0)
                r = add_text(fields, AUDIT_CALLER_LOGIN, caller->login);
        return r < 0 ? r : add_text(fields, AUDIT_CALLER_SUDO_USER, caller->sudo_user);
}

/* What both records of a run have. */
static int add_run(char ***fields, const Plan *plan, const AuditCaller *caller)
{
        const struct {
                AuditField field;
                const char *value;
        } texts[] = {
                { AUDIT_JOB_ID, plan->job_id },
                { AUDIT_RUN_ID, plan->run_id },
                { AUDIT_PROGRAM, plan->argv ? plan->argv[0] : NULL },
                { AUDIT_POLICY, plan->policy->name },
                { AUDIT_POLICY_SHA256, plan->policy->sha256 },
                { AUDIT_POSTURE, posture_to_string(plan->posture) },
        };
        int r = 0;

        for (size_t i = 0; r == 0 && i < ELEMENTSOF(texts); i++)
                r = add_text(fields, texts[i].field, texts[i].value);
        return r < 0 ? r : add_caller(fields, caller);
}

int audit_start_fields(const Plan *plan, const AuditCaller *caller, char ***fields)
{
        int r = strv_extendf(fields, "MESSAGE=Job %s started under the policy \"%s\"", plan->job_id,
                        plan->policy->name);

        if (r == 0)
                r = add_event(fields, AUDIT_STARTED, 6);
        if (r == 0)
                r = add_run(fields, plan, caller);
        return r < 0 ? r : add_text(fields, AUDIT_UNIT, plan->service);
}

/* Each code once, in their order. */
static int add_reasons(char ***fields, const ReasonList *reasons, bool lost)
{
        const char *codes[REASONS_MAX];
        size_t n = 0;
        int r = 0;

        for (size_t i = 0; i < reasons->n && n < ELEMENTSOF(codes); i++) {
                size_t k = 0;

                while (k < n && !streq(codes[k], reasons->items[i].code))
                        k++;
                if (k == n)
                        codes[n++] = reasons->items[i].code;
        }
        for (size_t i = 0; r == 0 && i < n; i++)
                r = strv_extendf(fields, REASON_NAME "=%s", codes[i]);
        return r < 0 || !lost ? r : strv_extend(fields, REASON_NAME "=receipt_failed");
}

static AuditEvent event_of(Verdict verdict)
{
        static const AuditEvent events[_VERDICT_MAX] = {
                [VERDICT_PASS] = AUDIT_FINISHED,
                [VERDICT_FAIL] = AUDIT_FINISHED,
                [VERDICT_REJECTED] = AUDIT_REFUSED,
                [VERDICT_ERROR] = AUDIT_ERROR,
                [VERDICT_ABORTED] = AUDIT_ABORTED,
        };

        return events[verdict];
}

/* syslog(3): info for what is as agreed, notice for what is not, warning for what the host owes an answer. */
static int priority_of(Verdict verdict)
{
        return verdict == VERDICT_PASS ? 6 : verdict == VERDICT_ERROR ? 4 : 5;
}

static int add_message(char ***fields, const Plan *plan, Verdict verdict, const Judgement *j)
{
        const ReasonList *reasons = &j->reasons;
        bool more = reasons->n > 1;

        return strv_extendf(fields, "MESSAGE=Job %s: %s%s%s%s%s", plan->job_id, verdict_names[verdict],
                        reasons->n > 0 ? " (" : "", reasons->n > 0 ? reasons->items[0].code : "",
                        more ? " and more" : "", reasons->n > 0 ? ")" : "");
}

static int add_receipt(char ***fields, const AuditReceipt *receipt)
{
        int r = add_path(fields, AUDIT_RECEIPT, receipt->path);

        if (r == 0)
                r = add_text(fields, AUDIT_RECEIPT_SHA256, receipt->sha256);
        return r < 0 ? r : add_number(fields, AUDIT_RECEIPT_BYTES, receipt->bytes);
}

int audit_end_fields(const Plan *plan, const Outcome *outcome, const Judgement *judgement,
                const AuditCaller *caller, const AuditReceipt *receipt, char ***fields)
{
        /* What cannot be shown afterwards did not happen as agreed: qscope's exit status says so, too. */
        Verdict verdict = receipt->lost ? VERDICT_ERROR : judgement->verdict;
        char signal[FORMAT_SIGNAL_MAX];
        int r = add_message(fields, plan, verdict, judgement);

        if (r == 0)
                r = add_event(fields, event_of(verdict), priority_of(verdict));
        if (r == 0)
                r = add_run(fields, plan, caller);
        if (r == 0 && verdict != VERDICT_REJECTED)
                r = add_text(fields, AUDIT_UNIT, plan->service);
        if (r == 0)
                r = add_text(fields, AUDIT_INVOCATION_ID, outcome->invocation_id);
        if (r == 0)
                r = add_text(fields, AUDIT_VERDICT, verdict_names[verdict]);
        if (r == 0)
                r = add_reasons(fields, &judgement->reasons, receipt->lost);
        if (r == 0 && judgement->exit_code >= 0)
                r = add_number(fields, AUDIT_EXIT_CODE, (uint64_t) judgement->exit_code);
        if (r == 0 && outcome->exit_signal != 0)
                r = add_text(fields, AUDIT_SIGNAL, format_signal(outcome->exit_signal, signal));
        if (r == 0)
                r = add_number(fields, AUDIT_DURATION, outcome->duration_usec);
        return r < 0 ? r : add_receipt(fields, receipt);
}

static int add_end_without_receipt(
                char ***fields, const Plan *plan, const AuditCaller *caller, Verdict verdict)
{
        int r = add_event(fields, event_of(verdict), priority_of(verdict));

        if (r == 0)
                r = add_run(fields, plan, caller);
        if (r == 0)
                r = add_text(fields, AUDIT_UNIT, plan->service);
        return r < 0 ? r : add_text(fields, AUDIT_VERDICT, verdict_names[verdict]);
}

int audit_broken_fields(const Plan *plan, const AuditCaller *caller, const char *error, char ***fields)
{
        char text[NAME_SHOWN];
        int r;

        text_excerpt(error, strlen(error), text, sizeof(text));
        r = strv_extendf(fields, "MESSAGE=Job %s: error, and no receipt: %s", plan->job_id, text);
        if (r == 0)
                r = add_end_without_receipt(fields, plan, caller, VERDICT_ERROR);
        if (r == 0)
                r = strv_extend(fields, REASON_NAME "=internal");
        return r < 0 ? r : strv_extend(fields, REASON_NAME "=receipt_failed");
}

int audit_dismissed_fields(const Plan *plan, const AuditCaller *caller, char ***fields)
{
        int r = strv_extendf(fields, "MESSAGE=Job %s: aborted before its turn, nothing of it was executed",
                        plan->job_id);

        if (r == 0)
                r = add_end_without_receipt(fields, plan, caller, VERDICT_ABORTED);
        return r < 0 ? r : strv_extend(fields, REASON_NAME "=aborted");
}

/* --- after the run --- */

/* The run's own verdict has a field of its own: who looks for what failed looks for runs. */
static int add_apply(char ***fields, const AuditApply *apply, const AuditCaller *caller)
{
        const struct {
                AuditField field;
                const char *value;
        } texts[] = {
                { AUDIT_JOB_ID, apply->job_id },
                { AUDIT_RUN_ID, apply->run_id },
                { AUDIT_RUN_VERDICT, apply->verdict },
                { AUDIT_RECEIPT_SHA256, apply->receipt_sha256 },
        };
        int r = 0;

        for (size_t i = 0; r == 0 && i < ELEMENTSOF(texts); i++)
                r = add_text(fields, texts[i].field, texts[i].value);
        if (r == 0)
                r = add_path(fields, AUDIT_WORKSPACE, apply->workspace);
        if (r == 0)
                r = add_path(fields, AUDIT_RECEIPT, apply->receipt);
        return r < 0 ? r : add_caller(fields, caller);
}

static int add_apply_message(char ***fields, const AuditApply *apply, const char *what)
{
        const char *job = apply->job_id ? apply->job_id : "?", *path = apply->workspace;
        char workspace[NAME_SHOWN], name[NAME_SHOWN];

        text_excerpt(job, strlen(job), name, sizeof(name));
        text_excerpt(path ? path : "?", path ? strlen(path) : 1, workspace, sizeof(workspace));
        return strv_extendf(fields, "MESSAGE=Job %s: %s: %s", name, workspace, what);
}

static int add_counts(char ***fields, const AuditApply *apply)
{
        int r = add_number(fields, AUDIT_CHANGES, apply->changes);

        if (r == 0)
                r = add_number(fields, AUDIT_CHANGES_HELD, apply->held);
        return r < 0 ? r : add_number(fields, AUDIT_CHANGES_FORCED, apply->forced);
}

int audit_apply_fields(const AuditApply *apply, AuditResult result, const AuditCaller *caller, char ***fields)
{
        static const char *const sentences[_AUDIT_RESULT_MAX] = {
                [AUDIT_RESULT_APPLIED] = "what the job changed was applied",
                [AUDIT_RESULT_ROLLED_BACK] = "an interrupted apply was taken back",
                [AUDIT_RESULT_TAKEN_BACK] = "the apply failed and was taken back",
                [AUDIT_RESULT_HALF] = "the apply failed, and the workspace is half changed",
        };
        bool ended = result < _AUDIT_RESULT_MAX;
        const char *what = ended         ? sentences[result]
                           : apply->undo ? "an interrupted apply is about to be taken back"
                                         : "what the job changed is about to be applied";
        int r = add_apply_message(fields, apply, what);

        if (r == 0)
                r = add_event(fields, ended ? AUDIT_APPLIED : AUDIT_APPLYING,
                                result == AUDIT_RESULT_HALF ? 4
                                : ended                     ? 5
                                                            : 6);
        if (r == 0)
                r = add_apply(fields, apply, caller);
        if (r == 0)
                r = add_text(fields, AUDIT_RESULT, ended ? result_names[result] : NULL);
        return r < 0 ? r : add_counts(fields, apply);
}

int audit_discard_fields(const AuditApply *apply, const AuditCaller *caller, char ***fields)
{
        int r = add_apply_message(fields, apply, "what was kept of the job's changes was discarded");

        if (r == 0)
                r = add_event(fields, AUDIT_DISCARDED, 5);
        return r < 0 ? r : add_apply(fields, apply, caller);
}

/* --- reading --- */

/* Whether data begins with "NAME="; then the rest is its value. */
static bool is_field(
                const char *data, size_t size, const char *name, const char **ret_value, size_t *ret_size)
{
        size_t length = strlen(name);

        if (size <= length || memcmp(data, name, length) != 0 || data[length] != '=')
                return false;
        *ret_value = data + length + 1;
        *ret_size = size - length - 1;
        return true;
}

static bool value_is_valid(FieldType type, const char *value, size_t size)
{
        if (size == 0 || size >= (type == FIELD_PATH ? PATH_MAX : NAME_SHOWN) || memchr(value, '\0', size))
                return false;
        if (type == FIELD_NUMBER)
                return size <= 20 && strspn(value, "0123456789") >= size;
        return type == FIELD_TEXT || value[0] == '/';
}

static int take_value(AuditRecord *record, AuditField field, const char *value, size_t size)
{
        FieldType type = field_table[field].type;
        char text[NAME_SHOWN], *copy;

        if (record->values[field] || !value_is_valid(type, value, size))
                return 0;
        if (type == FIELD_TEXT)
                text_excerpt(value, size, text, sizeof(text));
        copy = type == FIELD_TEXT ? strdup(text) : strndup(value, size);
        record->values[field] = copy;
        return copy ? 0 : -ENOMEM;
}

static AuditEvent event_from_id(const char *value, size_t size)
{
        for (AuditEvent event = 0; event < _AUDIT_EVENT_MAX; event++)
                if (strlen(audit_events[event].message_id) == size &&
                                memcmp(audit_events[event].message_id, value, size) == 0)
                        return event;
        return _AUDIT_EVENT_INVALID;
}

int audit_record_take(AuditRecord *record, const char *data, size_t size)
{
        const char *value;
        size_t length;

        for (AuditField field = 0; field < _AUDIT_FIELD_MAX; field++)
                if (is_field(data, size, field_table[field].name, &value, &length))
                        return take_value(record, field, value, length);
        if (is_field(data, size, MESSAGE_ID_NAME, &value, &length)) {
                record->event = event_from_id(value, length);
        } else if (is_field(data, size, REASON_NAME, &value, &length) &&
                        value_is_valid(FIELD_TEXT, value, length) &&
                        strv_length(record->reasons) < REASONS_MAX) {
                char text[NAME_SHOWN];

                text_excerpt(value, length, text, sizeof(text));
                return strv_extend(&record->reasons, text);
        }
        return 0;
}

void audit_record_clear(AuditRecord *record)
{
        for (AuditField field = 0; field < _AUDIT_FIELD_MAX; field++)
                free(record->values[field]);
        strv_free(record->reasons);
        *record = AUDIT_RECORD_INIT;
}

uint64_t audit_record_number(const AuditRecord *record, AuditField field)
{
        uint64_t value;

        if (!record->values[field] || parse_u64(record->values[field], &value) < 0)
                return UNKNOWN;
        return value;
}

cJSON *audit_record_json(const AuditRecord *record)
{
        _cleanup_(cJSON_Deletep) cJSON *object = cJSON_CreateObject();
        const char *event = record->event >= 0 ? audit_events[record->event].name : NULL;
        char time[FORMAT_MAX];

        if (!object || json_add_text(object, "time", format_timestamp(record->realtime_usec, time)) < 0 ||
                        json_add_text(object, "event", event) < 0)
                return NULL;
        for (AuditField field = 0; field < _AUDIT_FIELD_MAX; field++) {
                const char *key = field_table[field].key;
                int r = field_table[field].type == FIELD_NUMBER
                                        ? json_add_u64(object, key, audit_record_number(record, field))
                                        : json_add_text(object, key, record->values[field]);

                if (r < 0)
                        return NULL;
        }
        return json_add_strv(object, "reasons", record->reasons) < 0 ? NULL : TAKE_PTR(object);
}
