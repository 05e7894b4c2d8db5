/* SPDX-License-Identifier: Apache-2.0 */

/* qscope log: the audit trail as the journal keeps it, and whether the receipts are still what was recorded.
 */

#include "cli/cli.h"

#include <inttypes.h>
#include <time.h>

#include "base/number.h"
#include "cli/arguments.h"
#include "cli/log_time.h"
#include "run/receipt_check.h"
#include "sys/host.h"
#include "sys/journal.h"

#define COLUMN_MAX 128

typedef struct LogArguments {
        const char *job_id, *verdict, *since_text, *until_text;
        uint64_t since, until; /* UNKNOWN: no bound */
        bool follow, verify, json, help;
} LogArguments;

static const char help_text[] =
                "Usage: qscope log [OPTIONS] [JOB_ID]\n\n"
                "Lists the audit trail from the journal: a line when a job starts and one when it ends, refusals and\n"
                "errors included, and the same for an apply of its changes. With --verify, compares the receipts on\n"
                "disk with the digests in the journal.\n\n"
                "Options:\n"
                "  -f, --follow         wait for more, from now on unless --since is given\n"
                "  --since TIME         not before this time\n"
                "  --until TIME         not after this time\n"
                "  --verdict VERDICT    ends with this verdict only: pass, fail, rejected, error, aborted\n"
                "  --verify             which receipts were changed or are missing\n"
                "  --json               one line of JSON for each record\n"
                "  --help               this text\n\n"
                "TIME is 2026-09-03, \"2026-09-03 08:01:02\" (local time; with T and Z: UTC), @SECONDS, today,\n"
                "yesterday, now, or -90s, -15min, -2h, -7d.\n\n"
                "Exit status: 0; 1 if --verify found a receipt that is not what was recorded, or if JOB_ID is not in\n"
                "the trail; 2 bad usage; 4 the journal cannot be read.\n\n"
                "Examples:\n"
                "  qscope log --since -1h --verdict fail    what failed in the last hour\n"
                "  qscope log --verify                      is every receipt still what was written?\n"
                "  journalctl QSCOPE_JOB_ID=lint-1          with systemd's own lines about the job's unit\n";

static bool is_verdict(const char *text)
{
        for (Verdict verdict = 0; verdict < _VERDICT_MAX; verdict++)
                if (streq(verdict_names[verdict], text))
                        return true;
        return false;
}

static const Argument table[] = {
        { "--follow", ARGUMENT_SWITCH, offsetof(LogArguments, follow) },
        { "-f", ARGUMENT_SWITCH, offsetof(LogArguments, follow) },
        { "--since", ARGUMENT_VALUE, offsetof(LogArguments, since_text) },
        { "--until", ARGUMENT_VALUE, offsetof(LogArguments, until_text) },
        { "--verdict", ARGUMENT_VALUE, offsetof(LogArguments, verdict) },
        { "--verify", ARGUMENT_SWITCH, offsetof(LogArguments, verify) },
        { "--json", ARGUMENT_SWITCH, offsetof(LogArguments, json) },
        { "--help", ARGUMENT_SWITCH, offsetof(LogArguments, help) },
        { "-h", ARGUMENT_SWITCH, offsetof(LogArguments, help) },
};

static int parse(char **argv, LogArguments *a, Error *e)
{
        int n, r = 0;

        *a = (LogArguments){ .since = UNKNOWN, .until = UNKNOWN };
        n = arguments_parse(argv, table, ELEMENTSOF(table), a, e);
        if (n < 0 || a->help)
                return n;
        a->job_id = argv[0];
        if (n > 1)
                return error_set(e, -EINVAL, "\"%s\" is one argument too many", argv[1]);
        if (a->verdict && !is_verdict(a->verdict))
                return error_set(e, -EINVAL,
                                "\"%s\" is not a verdict: pass, fail, rejected, error or aborted",
                                a->verdict);
        if (a->follow && (a->verify || a->until_text))
                return error_set(e, -EINVAL, "--follow does not go with --verify or --until");
        if (a->since_text)
                r = log_time_parse(a->since_text, now_realtime(), &a->since, e);
        if (r == 0 && a->until_text)
                r = log_time_parse(a->until_text, now_realtime(), &a->until, e);
        return r;
}

/* --- one record --- */

static char *local_time(uint64_t usec, char buffer[static COLUMN_MAX])
{
        time_t seconds = (time_t) (usec / USEC_PER_SEC);
        struct tm tm;

        if (!localtime_r(&seconds, &tm) || strftime(buffer, COLUMN_MAX, "%Y-%m-%d %H:%M:%S", &tm) == 0)
                (void) snprintf(buffer, COLUMN_MAX, "?");
        return buffer;
}

static const char *value_or(const AuditRecord *record, AuditField field, const char *otherwise)
{
        return record->values[field] ? record->values[field] : otherwise;
}

/* Paths are raw bytes in the trail. */
static void print_text(const char *text)
{
        char shown[COLUMN_MAX * 4];

        text_excerpt(text, strlen(text), shown, sizeof(shown));
        (void) fputs(shown, stdout);
}

static bool is_of_run(const AuditRecord *record)
{
        return record->event == AUDIT_STARTED || (record->event >= 0 && audit_events[record->event].ends_run);
}

static void print_word(const AuditRecord *record)
{
        const char *event = record->event >= 0 ? audit_events[record->event].name : "?";
        bool run_ended = is_of_run(record) && record->event != AUDIT_STARTED;

        (void) printf("%-8s  ", run_ended ? value_or(record, AUDIT_VERDICT, "?")
                                          : value_or(record, AUDIT_RESULT, event));
}

static void print_run(const AuditRecord *record)
{
        print_text(value_or(record, AUDIT_PROGRAM, "?"));
        if (record->event != AUDIT_STARTED && record->values[AUDIT_EXIT_CODE])
                (void) printf("  exit %s", record->values[AUDIT_EXIT_CODE]);
        else if (record->values[AUDIT_SIGNAL])
                (void) printf("  %s", record->values[AUDIT_SIGNAL]);
}

static void print_apply(const AuditRecord *record)
{
        static const struct {
                AuditField field;
                const char *words;
        } counts[] = {
                { AUDIT_CHANGES, "changes" },
                { AUDIT_CHANGES_HELD, "held back" },
                { AUDIT_CHANGES_FORCED, "forced" },
        };

        print_text(value_or(record, record->event == AUDIT_REMOVED ? AUDIT_RECEIPT : AUDIT_WORKSPACE, "?"));
        for (size_t i = 0; i < ELEMENTSOF(counts); i++)
                if (audit_record_number(record, counts[i].field) != UNKNOWN)
                        (void) printf("%s%s %s", i == 0 ? "  " : ", ", record->values[counts[i].field],
                                        counts[i].words);
}

static void print_line(const AuditRecord *record)
{
        char time[COLUMN_MAX];
        const char *sudo = record->values[AUDIT_CALLER_SUDO_USER];

        (void) printf("%s  ", local_time(record->realtime_usec, time));
        print_word(record);
        print_text(value_or(record, AUDIT_JOB_ID, "?"));
        (void) fputs("  ", stdout);
        if (is_of_run(record))
                print_run(record);
        else
                print_apply(record);
        (void) fputs("  by ", stdout);
        print_text(sudo ? sudo
                        : value_or(record, AUDIT_CALLER_LOGIN, value_or(record, AUDIT_CALLER_UID, "?")));
        for (size_t i = 0; record->reasons && record->reasons[i]; i++)
                (void) printf("%s%s", i == 0 ? "  " : " ", record->reasons[i]);
        (void) fputc('\n', stdout);
}

static int print_json(cJSON *object)
{
        _cleanup_free_ char *line = object ? json_print(object, false) : NULL;

        return cli_put(line);
}

typedef struct Tally {
        char **removed; /* digests of receipts that clean removed, sorted */
        uint64_t records, states[_RECEIPT_STATE_MAX], bad;
} Tally;

static void tally_clear(Tally *tally)
{
        strv_free(tally->removed);
}

static int verify_one(const LogArguments *a, const AuditRecord *record, Tally *tally)
{
        ReceiptState state = receipt_check(record, tally->removed);
        char time[COLUMN_MAX];

        tally->states[state]++;
        tally->bad += receipt_state_is_bad(state);
        if (a->json) {
                _cleanup_(cJSON_Deletep) cJSON *object = audit_record_json(record);

                if (!object || json_add_text(object, "receipt_state", receipt_state_names[state]) < 0)
                        return -ENOMEM;
                return print_json(object);
        }
        if (!receipt_state_is_bad(state))
                return 0;
        (void) printf("%-8s  ", receipt_state_names[state]);
        print_text(value_or(record, AUDIT_RECEIPT, "(no path)"));
        (void) fputs("  job ", stdout);
        print_text(value_or(record, AUDIT_JOB_ID, "?"));
        (void) printf("  of %s\n", local_time(record->realtime_usec, time));
        return 0;
}

static int show_one(const LogArguments *a, const AuditRecord *record, Tally *tally)
{
        tally->records++;
        if (a->verify)
                return record->event >= 0 && audit_events[record->event].ends_run
                                       ? verify_one(a, record, tally)
                                       : 0;
        if (a->json) {
                _cleanup_(cJSON_Deletep) cJSON *object = audit_record_json(record);

                return print_json(object);
        }
        print_line(record);
        return 0;
}

/* --- all of them --- */

/* Of the whole trail: they came later than the runs that are asked for. */
static int read_removed(Tally *tally, Error *e)
{
        _cleanup_(journal_freep) Journal *journal = NULL;
        int r = journal_open(&journal, e);

        if (r == 0)
                r = journal_match(journal, AUDIT_RESULT, AUDIT_RESULT_REMOVED);
        if (r >= 0)
                r = journal_seek(journal, 0);
        while (r >= 0) {
                _cleanup_(audit_record_clear) AuditRecord record = AUDIT_RECORD_INIT;

                r = journal_next(journal, &record);
                if (r == 0)
                        break;
                if (r > 0 && record.event == AUDIT_REMOVED && record.values[AUDIT_RECEIPT_SHA256])
                        r = strv_extend(&tally->removed, record.values[AUDIT_RECEIPT_SHA256]);
        }
        if (tally->removed)
                qsort(tally->removed, strv_length(tally->removed), sizeof(*tally->removed), strv_compare);
        return r < 0 ? r : 0;
}

static int select_records(Journal *journal, const LogArguments *a)
{
        int r = 0;

        if (a->job_id)
                r = journal_match(journal, AUDIT_JOB_ID, a->job_id);
        if (r >= 0 && a->verdict)
                r = journal_match(journal, AUDIT_VERDICT, a->verdict);
        if (r < 0)
                return r;
        if (a->follow && a->since == UNKNOWN)
                return journal_seek_end(journal);
        return journal_seek(journal, a->since == UNKNOWN ? 0 : a->since);
}

static int show_all(Journal *journal, const LogArguments *a, Tally *tally)
{
        for (;;) {
                _cleanup_(audit_record_clear) AuditRecord record = AUDIT_RECORD_INIT;
                int r = journal_next(journal, &record);

                if (r < 0)
                        return r;
                if (r == 0) {
                        if (fflush(stdout) != 0)
                                return 0; /* nobody reads */
                        r = a->follow ? journal_wait(journal) : 0;
                        if (r < 0 || !a->follow)
                                return r;
                        continue;
                }
                /* Times of different boots may overlap where the clock was wrong. */
                if ((a->since != UNKNOWN && record.realtime_usec < a->since) ||
                                (a->until != UNKNOWN && record.realtime_usec > a->until))
                        continue;
                r = show_one(a, &record, tally);
                if (r < 0)
                        return r;
        }
}

static int conclude(const LogArguments *a, const Tally *tally)
{
        Error e = ERROR_INIT;

        if (a->job_id && tally->records == 0) {
                error_set(&e, -ENOENT, "the journal has no record of a job \"%s\"%s", a->job_id,
                                geteuid() == 0 ? "" : " that you may read");
                return cli_fail(1, &e);
        }
        if (!a->verify)
                return 0;
        if (!a->json)
                (void) printf("%" PRIu64 " intact (%" PRIu64 " of them moved aside), %" PRIu64
                              " changed, %" PRIu64 " missing, %" PRIu64 " lost, %" PRIu64
                              " untested; %" PRIu64 " removed for age or size, %" PRIu64
                              " went into no file\n",
                                tally->states[RECEIPT_INTACT] + tally->states[RECEIPT_MOVED],
                                tally->states[RECEIPT_MOVED], tally->states[RECEIPT_CHANGED],
                                tally->states[RECEIPT_MISSING], tally->states[RECEIPT_LOST],
                                tally->states[RECEIPT_UNTESTED], tally->states[RECEIPT_REMOVED],
                                tally->states[RECEIPT_NO_FILE]);
        return tally->bad > 0;
}

int cli_log(_unused_ int argc, char **argv)
{
        _cleanup_(journal_freep) Journal *journal = NULL;
        LogArguments arguments;
        _cleanup_(tally_clear) Tally tally = { 0 };
        Error e = ERROR_INIT;
        int r = parse(argv, &arguments, &e);

        if (r < 0)
                return cli_usage("log", "%s", e.text);
        if (arguments.help)
                return cli_put(help_text);
        r = journal_open(&journal, &e);
        if (r < 0)
                return cli_fail(EXIT_HOST, &e);
        r = arguments.verify ? read_removed(&tally, &e) : 0;
        if (r == 0)
                r = select_records(journal, &arguments);
        if (r >= 0)
                r = show_all(journal, &arguments, &tally);
        if (r < 0) {
                error_errno(&e, r, "the audit trail");
                return cli_fail(EXIT_HOST, &e);
        }
        return conclude(&arguments, &tally);
}
