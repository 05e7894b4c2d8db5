/* SPDX-License-Identifier: Apache-2.0 */
/* The receipt's keys in their order: first the verdict, then the eleven keys that the oldest consumers read,
 * then the evidence. Unknown is null, never 0, and what was not observed is null too and stands in
 * blind_spots. Values of environment variables never appear. */
#include "core/receipt_parts.h"

#include "base/number.h"
#include "core/receipt_view.h"

int receipt_add_raw(cJSON *object, const char *key, const char *text)
{
        _cleanup_free_ char *base64 = NULL, *key_base64 = NULL;
        int r;

        r = json_add_text(object, key, text);
        if (r < 0 || !text || utf8_is_valid(text, strlen(text)))
                return r;
        key_base64 = text_printf("%s_base64", key);
        base64 = base64_encode(text, strlen(text));
        if (!key_base64 || !base64)
                return -ENOMEM;
        return json_add_text(object, key_base64, base64);
}

static int add_exit_code(cJSON *object, const Judgement *j)
{
        return j->exit_code < 0 ? json_add_null(object, "exit_code")
                                : json_add_i64(object, "exit_code", j->exit_code);
}

static int add_timestamp(cJSON *object, const char *key, uint64_t usec)
{
        char text[FORMAT_MAX];

        return json_add_text(object, key, usec == UNKNOWN ? NULL : format_timestamp(usec, text));
}

static int add_verdict(cJSON *receipt, const ReceiptSource *s)
{
        const Judgement *j = s->judgement;
        cJSON *reasons;

        if (json_add_text(receipt, "schema", RECEIPT_SCHEMA) < 0 ||
                        json_add_text(receipt, "run_id", s->plan->run_id) < 0 ||
                        json_add_text(receipt, "verdict", verdict_names[j->verdict]) < 0)
                return -ENOMEM;
        reasons = json_add_array(receipt, "reasons");
        for (size_t i = 0; i < j->reasons.n; i++) {
                const Reason *reason = &j->reasons.items[i];
                const char *next = reason_find(reason->code)->next, *host = s->outcome->host_remedy;
                cJSON *item = json_add_object(reasons, NULL);

                if (host && streq_ptr(reason->code, s->outcome->host_code))
                        next = host;
                if (!item || json_add_text(item, "code", reason->code) < 0 ||
                                json_add_text(item, "message", reason->message) < 0 ||
                                json_add_text(item, "next", next) < 0)
                        return -ENOMEM;
        }
        return reasons ? 0 : -ENOMEM;
}

static int add_expected_exit(cJSON *receipt, const Job *job)
{
        return json_add(receipt, "expected_exit",
                        job->expected_exit ? cJSON_Duplicate(job->expected_exit, true)
                                           : cJSON_CreateNumber(0));
}

/* The seed's, in the seed's order and with the seed's meaning. */
static int add_eleven(cJSON *receipt, const ReceiptSource *s)
{
        const Plan *plan = s->plan;
        const Outcome *o = s->outcome;
        uint64_t duration = o->duration_usec;

        if (json_add_text(receipt, "job_id", plan->job_id) < 0 ||
                        json_add_strv(receipt, "argv", plan->argv) < 0 ||
                        receipt_add_raw(receipt, "cwd", plan->cwd) < 0 ||
                        json_add(receipt, "timeout_sec",
                                        cJSON_CreateNumber((double) plan->timeout_usec /
                                                           (double) USEC_PER_SEC)) < 0 ||
                        add_expected_exit(receipt, plan->job) < 0 ||
                        add_exit_code(receipt, s->judgement) < 0 ||
                        json_add_bool(receipt, "timed_out", o->timed_out) < 0 ||
                        receipt_add_stream_text(receipt, "stdout", &o->out) < 0 ||
                        receipt_add_stream_text(receipt, "stderr", &o->err) < 0)
                return -ENOMEM;
        if (json_add_u64(receipt, "duration_ms", duration == UNKNOWN ? UNKNOWN : duration / USEC_PER_MSEC) <
                        0)
                return -ENOMEM;
        return json_add_bool(receipt, "match_expected", s->judgement->match_expected);
}

/* Only for arguments that JSON cannot carry as text: all of them in base64, so that nothing is lost. */
static int add_raw_argv(cJSON *receipt, char *const *argv)
{
        cJSON *list;
        bool exact = true;

        for (size_t i = 0; argv && argv[i]; i++)
                exact = exact && utf8_is_valid(argv[i], strlen(argv[i]));
        if (exact)
                return 0;
        list = json_add_array(receipt, "argv_base64");
        for (size_t i = 0; list && argv[i]; i++) {
                _cleanup_free_ char *text = base64_encode(argv[i], strlen(argv[i]));

                if (!text || json_add_text(list, NULL, text) < 0)
                        return -ENOMEM;
        }
        return list ? 0 : -ENOMEM;
}

static int add_exec(cJSON *receipt, const ReceiptSource *s)
{
        const ExecRecord *record = &s->outcome->exec;
        const ExecHint *hint = &s->judgement->exec;
        const char *name = errno_name(record->error);
        char number[32];
        cJSON *exec;

        if (record->error < 0)
                return json_add_null(receipt, "exec");
        exec = json_add_object(receipt, "exec");
        if (!exec || receipt_add_raw(exec, "resolved", record->resolved) < 0)
                return -ENOMEM;
        if (record->error == 0)
                return 0;
        (void) snprintf(number, sizeof(number), "errno %d", record->error);
        if (json_add_text(exec, "error", name ? name : number) < 0 ||
                        json_add_text(exec, "kind", exec_kind_names[hint->kind]) < 0 ||
                        json_add_text(exec, "step", record->step) < 0 ||
                        json_add_text(exec, "hint", hint->hint) < 0)
                return -ENOMEM;
        return 0;
}

static int add_end(cJSON *receipt, const ReceiptSource *s)
{
        const Outcome *o = s->outcome;
        char text[FORMAT_SIGNAL_MAX];

        if (add_raw_argv(receipt, s->plan->argv) < 0 ||
                        json_add_text(receipt, "signal",
                                        o->exit_signal ? format_signal(o->exit_signal, text) : NULL) < 0 ||
                        json_add_bool(receipt, "core_dumped", o->core_dumped) < 0 ||
                        add_exec(receipt, s) < 0 ||
                        add_timestamp(receipt, "started_at", o->started_realtime_usec) < 0 ||
                        add_timestamp(receipt, "finished_at", o->finished_realtime_usec) < 0 ||
                        receipt_add_stream_info(receipt, "stdout_info", &o->out) < 0)
                return -ENOMEM;
        return receipt_add_stream_info(receipt, "stderr_info", &o->err);
}

static int add_blind_spots(cJSON *receipt, const ReceiptSource *s)
{
        return json_add_strv(receipt, "blind_spots", s->outcome->blind_spots);
}

/* What the job's author wrote for the reader of the receipt. */
static int add_carried(cJSON *receipt, const ReceiptSource *s)
{
        const Job *job = s->plan->job;
        const cJSON *item;

        if (json_add_text(receipt, "job_sha256", job->sha256[0] ? job->sha256 : NULL) < 0 ||
                        json_add_text(receipt, "rationale", job->rationale) < 0 ||
                        json_add(receipt, "meta",
                                        job->meta ? cJSON_Duplicate(job->meta, true) : cJSON_CreateNull()) <
                                        0)
                return -ENOMEM;
        cJSON_ArrayForEach(item, job->extra)
        {
                if (json_add(receipt, item->string, cJSON_Duplicate(item, true)) < 0)
                        return -ENOMEM;
        }
        return 0;
}

cJSON *receipt_build(const Plan *plan, const Outcome *outcome, const Judgement *judgement)
{
        static const ReceiptPart parts[] = {
                add_verdict,
                add_eleven,
                add_end,
                receipt_add_limits,
                receipt_add_usage,
                receipt_add_facts,
                receipt_add_fs,
                receipt_add_kept,
                receipt_add_processes,
                receipt_add_sockets,
                receipt_add_egress,
                receipt_add_open,
                add_blind_spots,
                receipt_add_policy,
                receipt_add_host,
                receipt_add_timing,
                add_carried,
        };
        const ReceiptSource source = { plan, outcome, judgement };
        _cleanup_(cJSON_Deletep) cJSON *receipt = cJSON_CreateObject();

        if (!receipt)
                return NULL;
        for (size_t i = 0; i < ELEMENTSOF(parts); i++)
                if (parts[i](receipt, &source) < 0)
                        return NULL;
        return TAKE_PTR(receipt);
}

cJSON *receipt_summary(const Plan *plan, const Judgement *judgement, const char *receipt_path)
{
        _cleanup_(cJSON_Deletep) cJSON *summary = cJSON_CreateObject();

        if (!summary || json_add_text(summary, "job_id", plan->job_id) < 0 ||
                        json_add_text(summary, "run_id", plan->run_id) < 0 ||
                        json_add_text(summary, "verdict", verdict_names[judgement->verdict]) < 0 ||
                        json_add_bool(summary, "match_expected", judgement->match_expected) < 0 ||
                        add_exit_code(summary, judgement) < 0 ||
                        json_add_text(summary, "receipt", receipt_path) < 0)
                return NULL;
        return TAKE_PTR(summary);
}
