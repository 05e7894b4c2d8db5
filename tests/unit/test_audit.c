/* SPDX-License-Identifier: Apache-2.0 */
#include "core/audit.h"

#include <signal.h>
#include <sys/stat.h>

#include "alloc.h"
#include "base/path.h"
#include "files.h"
#include "run/receipt_check.h"
#include "sample.h"
#include "test.h"

#define RUN_ID "0123456789abcdef0123456789abcdef"

static const AuditCaller caller = {
        .uid = 0,
        .login_uid = 1000,
        .sudo_uid = 1000,
        .login = (char *) "ada",
        .sudo_user = (char *) "ada",
};

/* The value of a field; NULL: there is none. */
static const char *value_of(char *const *fields, const char *name)
{
        for (size_t i = 0; fields[i]; i++) {
                const char *rest = startswith(fields[i], name);

                if (rest && *rest == '=')
                        return rest + 1;
        }
        return NULL;
}

static char **end_of(const Sample *s, const AuditReceipt *receipt)
{
        Judgement *j = sample_judge(s);
        char **fields = NULL;

        CHECK_EQ(audit_end_fields(&s->plan, s->outcome, j, &caller, receipt, &fields), 0);
        judgement_free(j);
        return fields;
}

static const AuditReceipt kept = {
        .path = "/var/lib/qscope/receipts/sample-1.json", .sha256 = "00aa", .bytes = 7
};

TEST(start)
{
        _sample_ Sample s;
        _cleanup_strv_ char **fields = NULL;

        sample_init(&s);
        REQUIRE(audit_start_fields(&s.plan, &caller, &fields) == 0);
        CHECK_STR(value_of(fields, "MESSAGE"), "Job sample-1 started under the policy \"default\"");
        CHECK_STR(value_of(fields, "MESSAGE_ID"), audit_events[AUDIT_STARTED].message_id);
        CHECK_STR(value_of(fields, "QSCOPE_JOB_ID"), "sample-1");
        CHECK_STR(value_of(fields, "QSCOPE_RUN_ID"), RUN_ID);
        CHECK_STR(value_of(fields, "QSCOPE_UNIT"), "qscope-" RUN_ID ".service");
        CHECK_STR(value_of(fields, "QSCOPE_POLICY_SHA256"), "00ff");
        CHECK_STR(value_of(fields, "QSCOPE_CALLER_UID"), "0");
        CHECK_STR(value_of(fields, "QSCOPE_CALLER_LOGIN_UID"), "1000");
        CHECK_STR(value_of(fields, "QSCOPE_CALLER_SUDO_USER"), "ada");
        CHECK(!value_of(fields, "QSCOPE_VERDICT"));
}

/* Each verdict has a record of its own kind; what is not known has no field. */
TEST(ends)
{
        _sample_ Sample s;
        _cleanup_strv_ char **pass = NULL, **fail = NULL, **error = NULL, **aborted = NULL, **refused = NULL,
                            **lost = NULL;
        const AuditReceipt none = { .sha256 = "00aa", .bytes = 7, .lost = true };

        sample_init(&s);
        pass = end_of(&s, &kept);
        CHECK_STR(value_of(pass, "MESSAGE_ID"), audit_events[AUDIT_FINISHED].message_id);
        CHECK_STR(value_of(pass, "MESSAGE"), "Job sample-1: pass");
        CHECK_STR(value_of(pass, "PRIORITY"), "6");
        CHECK_STR(value_of(pass, "QSCOPE_EXIT_CODE"), "0");
        CHECK_STR(value_of(pass, "QSCOPE_RECEIPT"), kept.path);
        CHECK_STR(value_of(pass, "QSCOPE_RECEIPT_SHA256"), "00aa");
        CHECK_STR(value_of(pass, "QSCOPE_RECEIPT_BYTES"), "7");
        CHECK(!value_of(pass, "QSCOPE_REASON") && !value_of(pass, "QSCOPE_SIGNAL"));

        sample_signal(&s, SIGSEGV);
        s.outcome->events.pids_max = 3;
        s.outcome->events.disk_full = 1; /* the same code twice */
        fail = end_of(&s, &kept);
        CHECK_STR(value_of(fail, "MESSAGE"), "Job sample-1: fail (signal and more)");
        CHECK_STR(value_of(fail, "QSCOPE_SIGNAL"), "SIGSEGV");
        CHECK(!value_of(fail, "QSCOPE_EXIT_CODE"));
        CHECK(strv_contains(fail, "QSCOPE_REASON=signal") && strv_contains(fail, "QSCOPE_REASON=limit_hit"));

        lost = end_of(&s, &none);
        CHECK_STR(value_of(lost, "QSCOPE_VERDICT"), "error");
        CHECK(strv_contains(lost, "QSCOPE_REASON=receipt_failed") && !value_of(lost, "QSCOPE_RECEIPT"));

        s.outcome->abort_signal = SIGTERM;
        aborted = end_of(&s, &kept);
        CHECK_STR(value_of(aborted, "MESSAGE_ID"), audit_events[AUDIT_ABORTED].message_id);

        outcome_host_error(s.outcome, "cgroup_v1", NULL, "no unified hierarchy");
        error = end_of(&s, &kept);
        CHECK_STR(value_of(error, "MESSAGE_ID"), audit_events[AUDIT_ERROR].message_id);
        CHECK_STR(value_of(error, "PRIORITY"), "4");

        REQUIRE(reason_add(&s.plan.refusals, "over_ceiling", "too much") == 0);
        refused = end_of(&s, &kept);
        CHECK_STR(value_of(refused, "MESSAGE_ID"), audit_events[AUDIT_REFUSED].message_id);
        CHECK(!value_of(refused, "QSCOPE_UNIT"));
}

/* What ended without a receipt: one that was owed, and one of a job that never had its turn. */
TEST(ends_without_receipt)
{
        _sample_ Sample s;
        _cleanup_strv_ char **broken = NULL, **dismissed = NULL;

        sample_init(&s);
        REQUIRE(audit_broken_fields(&s.plan, &caller, "out of memory", &broken) == 0);
        CHECK_STR(value_of(broken, "QSCOPE_VERDICT"), "error");
        CHECK_STR(value_of(broken, "MESSAGE_ID"), audit_events[AUDIT_ERROR].message_id);
        CHECK(strv_contains(broken, "QSCOPE_REASON=receipt_failed"));

        REQUIRE(audit_dismissed_fields(&s.plan, &caller, &dismissed) == 0);
        CHECK_STR(value_of(dismissed, "QSCOPE_VERDICT"), "aborted");
        CHECK_STR(value_of(dismissed, "QSCOPE_RUN_ID"), RUN_ID);
        CHECK_STR(value_of(dismissed, "MESSAGE_ID"), audit_events[AUDIT_ABORTED].message_id);
        CHECK(strv_contains(dismissed, "QSCOPE_REASON=aborted") && !value_of(dismissed, "QSCOPE_RECEIPT"));
        CHECK(!strv_contains(dismissed, "QSCOPE_REASON=receipt_failed"));
}

/* Nothing that the job's author wrote can end a line, move a cursor or look like another field; no value of
 * the environment and no argument is there at all. */
TEST(nothing_forged_and_nothing_leaked)
{
        _sample_ Sample s;
        _cleanup_strv_ char **fields = NULL;
        char long_name[5000];
        AuditCaller odd = caller;

        sample_init(&s);
        sample_argv(&s, "evil\nQSCOPE_VERDICT=pass\n\033[2J\xff", "--password=hunter3");
        odd.sudo_user = (char *) "a\nMESSAGE=x";
        REQUIRE(audit_start_fields(&s.plan, &odd, &fields) == 0);
        memset(long_name, 'x', sizeof(long_name) - 1);
        long_name[sizeof(long_name) - 1] = '\0';
        sample_argv(&s, long_name);
        REQUIRE(audit_start_fields(&s.plan, &odd, &fields) == 0);
        for (size_t i = 0; fields[i]; i++) {
                CHECK(strlen(fields[i]) < 512);
                CHECK(utf8_is_valid(fields[i], strlen(fields[i])));
                for (const char *p = fields[i]; *p; p++)
                        CHECK((unsigned char) *p >= 0x20);
                CHECK(!strstr(fields[i], "hunter")); /* the sample has TOKEN=hunter2 in its environment */
        }
        CHECK(!value_of(fields, "QSCOPE_VERDICT"));
        CHECK_HAS(value_of(fields, "QSCOPE_PROGRAM"), "evil\\nQSCOPE_VERDICT=pass\\n\\x1b[2J\\xff");
        CHECK_STR(value_of(fields, "QSCOPE_CALLER_SUDO_USER"), "a\\nMESSAGE=x");
}

TEST(a_path_is_kept_to_the_byte)
{
        _sample_ Sample s;
        _cleanup_strv_ char **fields = NULL;
        AuditReceipt odd = kept;
        AuditRecord record = AUDIT_RECORD_INIT;
        _cleanup_(cJSON_Deletep) cJSON *json = NULL;

        sample_init(&s);
        odd.path = "/srv/a\nb\xff.json";
        fields = end_of(&s, &odd);
        for (size_t i = 0; fields[i]; i++)
                REQUIRE(audit_record_take(&record, fields[i], strlen(fields[i])) == 0);
        CHECK_STR(record.values[AUDIT_RECEIPT], odd.path);
        json = audit_record_json(&record);
        CHECK_STR(cJSON_GetStringValue(json_get(json, "receipt")), "/srv/a\nb\xef\xbf\xbd.json");
        audit_record_clear(&record);
}

TEST(read_back)
{
        _sample_ Sample s;
        _cleanup_strv_ char **fields = NULL;
        _cleanup_(cJSON_Deletep) cJSON *json = NULL;
        AuditRecord record = AUDIT_RECORD_INIT;

        sample_init(&s);
        sample_exit(&s, 3);
        fields = end_of(&s, &kept);
        for (size_t i = 0; fields[i]; i++)
                REQUIRE(audit_record_take(&record, fields[i], strlen(fields[i])) == 0);
        CHECK(record.event == AUDIT_FINISHED);
        CHECK_STR(record.values[AUDIT_JOB_ID], "sample-1");
        CHECK_EQ(audit_record_number(&record, AUDIT_EXIT_CODE), 3);
        CHECK(audit_record_number(&record, AUDIT_SIGNAL) == UNKNOWN);
        CHECK(strv_contains(record.reasons, "exit_code"));
        json = audit_record_json(&record);
        CHECK_STR(cJSON_GetStringValue(json_get(json, "event")), "finished");
        CHECK_EQ(json_get(json, "exit_code")->valuedouble, 3);
        CHECK(cJSON_IsNull(json_get(json, "signal")));
        audit_record_clear(&record);
}

static const AuditApply applied = {
        .run_id = RUN_ID,
        .job_id = "sample-1",
        .verdict = "fail",
        .workspace = "/srv/a\nb",
        .receipt_sha256 = "00aa",
        .receipt = "/srv/sample-1.json",
        .changes = 12,
        .held = 1,
        .forced = 2,
};

/* An apply: before it and after it; neither is the end of a run, nor has its verdict. */
TEST(applies)
{
        _cleanup_strv_ char **before = NULL, **after = NULL, **half = NULL, **discarded = NULL;
        _cleanup_(cJSON_Deletep) cJSON *json = NULL;
        AuditRecord record = AUDIT_RECORD_INIT;
        AuditApply odd = applied;

        REQUIRE(audit_apply_fields(&applied, _AUDIT_RESULT_MAX, &caller, &before) == 0);
        CHECK_STR(value_of(before, "MESSAGE_ID"), audit_events[AUDIT_APPLYING].message_id);
        CHECK_STR(value_of(before, "MESSAGE"),
                        "Job sample-1: /srv/a\\nb: what the job changed is about to be applied");
        CHECK(!value_of(before, "QSCOPE_RESULT"));
        CHECK_STR(value_of(before, "QSCOPE_CALLER_SUDO_USER"), "ada");

        REQUIRE(audit_apply_fields(&applied, AUDIT_RESULT_APPLIED, &caller, &after) == 0);
        CHECK_STR(value_of(after, "PRIORITY"), "5");
        CHECK(!value_of(after, "QSCOPE_VERDICT"));
        for (size_t i = 0; after[i]; i++)
                REQUIRE(audit_record_take(&record, after[i], strlen(after[i])) == 0);
        CHECK(record.event == AUDIT_APPLIED && !audit_events[record.event].ends_run);
        CHECK_STR(record.values[AUDIT_WORKSPACE], applied.workspace);
        CHECK_STR(record.values[AUDIT_RESULT], "applied");
        json = audit_record_json(&record);
        CHECK_EQ(json_get(json, "changes")->valuedouble, 12);
        CHECK_EQ(json_get(json, "changes_held")->valuedouble, 1);
        CHECK_EQ(json_get(json, "changes_forced")->valuedouble, 2);
        CHECK_STR(cJSON_GetStringValue(json_get(json, "run_verdict")), "fail");
        audit_record_clear(&record);

        odd.held = UNKNOWN;
        odd.undo = true;
        odd.job_id = odd.workspace = odd.receipt = NULL;
        REQUIRE(audit_apply_fields(&odd, AUDIT_RESULT_HALF, &caller, &half) == 0);
        CHECK_STR(value_of(half, "QSCOPE_RESULT"), "half_changed");
        CHECK_STR(value_of(half, "PRIORITY"), "4");
        CHECK(!value_of(half, "QSCOPE_CHANGES_HELD") && !value_of(half, "QSCOPE_RECEIPT"));

        REQUIRE(audit_discard_fields(&odd, &caller, &discarded) == 0);
        CHECK_STR(value_of(discarded, "MESSAGE"),
                        "Job ?: ?: what was kept of the job's changes was discarded");
        CHECK_STR(value_of(discarded, "MESSAGE_ID"), audit_events[AUDIT_DISCARDED].message_id);
        CHECK(!value_of(discarded, "QSCOPE_CHANGES"));
}

/* What others may have put into an entry: passed over, or made harmless. */
TEST(strange_entries)
{
        static const struct {
                const char *data;
                size_t size;
        } entries[] = {
                { "", 0 },
                { "QSCOPE_JOB_ID", 13 },
                { "QSCOPE_JOB_ID=", 14 },
                { "QSCOPE_JOB_IDX=a", 16 },
                { "QSCOPE_JOB_ID=a\0b", 17 },
                { "QSCOPE_EXIT_CODE=-1", 19 },
                { "QSCOPE_EXIT_CODE=1x", 19 },
                { "QSCOPE_RECEIPT=relative", 23 },
                { "QSCOPE_RECEIPT=/a\0b", 19 },
                { "MESSAGE_ID=b9f1f0d1a6c94dd7a0f4f5f0a4a1c7e", 42 },
        };
        AuditRecord record = AUDIT_RECORD_INIT;

        for (size_t i = 0; i < ELEMENTSOF(entries); i++)
                CHECK_EQ(audit_record_take(&record, entries[i].data, entries[i].size), 0);
        CHECK(record.event == _AUDIT_EVENT_INVALID);
        for (AuditField field = 0; field < _AUDIT_FIELD_MAX; field++)
                CHECK(!record.values[field]);
        for (unsigned i = 0; i < 1000; i++)
                CHECK_EQ(audit_record_take(&record, "QSCOPE_REASON=a\nb", 17), 0);
        CHECK(strv_length(record.reasons) <= 16);
        CHECK_STR(record.reasons[0], "a\\nb");
        CHECK_EQ(audit_record_take(&record, "QSCOPE_JOB_ID=first", 19), 0);
        CHECK_EQ(audit_record_take(&record, "QSCOPE_JOB_ID=second", 20), 0);
        CHECK_STR(record.values[AUDIT_JOB_ID], "first");
        audit_record_clear(&record);
}

static int fill_all(void *context)
{
        const Sample *s = context;
        Judgement *j = NULL;
        char **fields = NULL;
        int r = judge(&s->plan, s->outcome, &j);

        if (r == 0)
                r = audit_end_fields(&s->plan, s->outcome, j, &caller, &kept, &fields);
        if (r == 0)
                r = audit_start_fields(&s->plan, &caller, &fields);
        if (r == 0)
                r = audit_apply_fields(&applied, AUDIT_RESULT_APPLIED, &caller, &fields);
        CHECK(r < 0 || value_of(fields, "QSCOPE_RECEIPT_BYTES"));
        judgement_free(j);
        strv_free(fields);
        return r;
}

TEST(out_of_memory)
{
        _sample_ Sample s;

        sample_init(&s);
        sample_exit(&s, 9);
        CHECK(alloc_fail_each(fill_all, &s) > 0);
}

/* units/qscope.catalog has an entry for each kind of record, and no others; its variables are our fields. */
TEST(catalog)
{
        _cleanup_free_ char *path = text_printf("%s/units/qscope.catalog", getenv("QSCOPE_SOURCE")), *text;
        size_t n = 0, size;

        text = read_test_file(path, &size);
        REQUIRE(text);
        for (AuditEvent event = 0; event < _AUDIT_EVENT_MAX; event++) {
                char entry[64];

                CHECK_EQ(strlen(audit_events[event].message_id), 32);
                (void) snprintf(entry, sizeof(entry), "\n-- %s\nSubject: ", audit_events[event].message_id);
                CHECK_HAS(text, entry);
        }
        for (const char *p = text; (p = strstr(p, "\n-- ")); p++)
                n++;
        CHECK_EQ(n, _AUDIT_EVENT_MAX);
        for (const char *p = text; (p = strstr(p, "@QSCOPE_"));) {
                size_t length = strcspn(++p, "@");
                bool known = false;

                for (AuditField field = 0; field < _AUDIT_FIELD_MAX; field++)
                        known = known || (strlen(audit_field_name(field)) == length &&
                                                         strncmp(audit_field_name(field), p, length) == 0);
                CHECK(known);
                p += length + 1;
        }
}

/* --- receipts on disk --- */

static char directory[] = "/tmp/qscope-test-audit.XXXXXX";

static ReceiptState check_at(const char *name, const char *recorded)
{
        _cleanup_free_ char *path = path_join(directory, name);
        char sha256[HASH_HEX_MAX], bytes[32];
        AuditRecord record = AUDIT_RECORD_INIT;

        hash_data(recorded, strlen(recorded), sha256);
        (void) snprintf(bytes, sizeof(bytes), "%zu", strlen(recorded));
        record.values[AUDIT_RECEIPT] = path;
        record.values[AUDIT_RECEIPT_SHA256] = sha256;
        record.values[AUDIT_RECEIPT_BYTES] = bytes;
        return receipt_check(&record);
}

static void put(const char *name, const char *text)
{
        _cleanup_free_ char *path = path_join(directory, name);

        CHECK_EQ(write_test_file(path, text), 0);
}

static void drop(const char *name)
{
        _cleanup_free_ char *path = path_join(directory, name);

        CHECK_EQ(unlink(path), 0);
}

TEST(receipts)
{
        _cleanup_free_ char *link = NULL, *fifo = NULL;
        AuditRecord record = AUDIT_RECORD_INIT;

        REQUIRE(mkdtemp(directory));
        link = path_join(directory, "link");
        fifo = path_join(directory, "fifo");
        put("a", "receipt\n");
        CHECK_EQ(check_at("a", "receipt\n"), RECEIPT_INTACT);
        CHECK_EQ(check_at("a", "recEipt\n"), RECEIPT_CHANGED); /* the same length */
        CHECK_EQ(check_at("a", "receipt\nand more\n"), RECEIPT_CHANGED);
        CHECK_EQ(check_at("b", "receipt\n"), RECEIPT_MISSING);
        CHECK_EQ(check_at("a/b", "receipt\n"), RECEIPT_MISSING);
        put("a.~3~", "older\n");
        CHECK_EQ(check_at("a", "older\n"), RECEIPT_MOVED);
        CHECK_EQ(check_at("a", "oldest\n"), RECEIPT_CHANGED);
        REQUIRE(symlink("a", link) == 0 && mkfifo(fifo, 0600) == 0);
        CHECK_EQ(check_at("link", "receipt\n"), RECEIPT_CHANGED);
        CHECK_EQ(check_at("fifo", "receipt\n"), RECEIPT_CHANGED); /* and it did not block */
        CHECK_EQ(check_at(".", "receipt\n"), RECEIPT_CHANGED);
        CHECK_EQ(receipt_check(&record), RECEIPT_NO_FILE);
        record.values[AUDIT_RECEIPT] = link;
        CHECK_EQ(receipt_check(&record), RECEIPT_UNTESTED);
        drop("a");
        drop("a.~3~");
        drop("link");
        drop("fifo");
        CHECK_EQ(rmdir(directory), 0);
}

TEST(states)
{
        for (ReceiptState state = 0; state < _RECEIPT_STATE_MAX; state++)
                CHECK(receipt_state_names[state]);
        CHECK(receipt_state_is_bad(RECEIPT_CHANGED) && receipt_state_is_bad(RECEIPT_MISSING));
        CHECK(receipt_state_is_bad(RECEIPT_LOST) && receipt_state_is_bad(RECEIPT_UNTESTED));
        CHECK(!receipt_state_is_bad(RECEIPT_INTACT) && !receipt_state_is_bad(RECEIPT_MOVED));
        CHECK(!receipt_state_is_bad(RECEIPT_NO_FILE));
}

TEST_MAIN
