/* SPDX-License-Identifier: Apache-2.0 */
/* Judges a run. Every cause is a reason of its own and none hides another; the verdict is the gravest of
 * them. What follows from a cause is not a second one: the SIGKILL that qscope sent at the timeout is no
 * death by a signal, and a command that never was executed has no output to be wrong. */
#include "core/verdict.h"

#include <inttypes.h>
#include <signal.h>

#include "base/path.h"
#include "core/assertion.h"
#include "core/hits.h"
#include "core/judges.h"

#define LEFTOVERS_NAMED  3u
#define UNEXPECTED_NAMED 3u
#define NAME_MAX_SHOWN   96u

const char *const verdict_names[_VERDICT_MAX] = {
        [VERDICT_PASS] = "pass",
        [VERDICT_FAIL] = "fail",
        [VERDICT_REJECTED] = "rejected",
        [VERDICT_ERROR] = "error",
        [VERDICT_ABORTED] = "aborted",
};

Judgement *judgement_free(Judgement *judgement)
{
        if (!judgement)
                return NULL;
        reason_list_clear(&judgement->reasons);
        free(judgement->unexpected);
        free(judgement);
        return NULL;
}

static int judge_refusals(const Plan *plan, Judgement *j)
{
        j->verdict = VERDICT_REJECTED;
        for (size_t i = 0; i < plan->refusals.n; i++) {
                int r = reason_add(&j->reasons, plan->refusals.items[i].code, "%s",
                                plan->refusals.items[i].message);

                if (r < 0)
                        return r;
        }
        return 0;
}

static const char *plan_path(const Plan *plan)
{
        for (size_t i = 0; plan->env && plan->env[i]; i++) {
                const char *value = startswith(plan->env[i], "PATH=");

                if (value)
                        return value;
        }
        return NULL;
}

/* What the receipt calls exit_code, and whether it is the one expected. */
static void judge_exit(const Plan *plan, const Outcome *o, const ExecHint *hint, Judgement *j)
{
        const ExitSet *exits = &plan->job->exits;

        if (hint)
                j->exit_code = hint->exit_code;
        else if (o->exited && !o->timed_out && o->exit_signal == 0)
                j->exit_code = o->exit_status;
        if (o->timed_out || j->exit_code < 0)
                return;
        if (!plan->job->expected_exit)
                j->match_expected = j->exit_code == 0;
        else /* "any" means any exit of the command; one that was not executed had none */
                j->match_expected = hint ? !exits->any && exit_set_contains(exits, j->exit_code)
                                         : exit_set_contains(exits, j->exit_code);
}

/* Whether the signal that ended the main process was our own doing, and has a reason of its own already. */
static bool killed_by_us(const Outcome *o)
{
        return o->exit_signal == SIGKILL && (o->timed_out || o->abort_signal != 0 || o->host_code);
}

static int judge_end(const Plan *plan, const Outcome *o, const ExecHint *hint, Judgement *j)
{
        char signal_text[FORMAT_SIGNAL_MAX], time_text[FORMAT_MAX];
        int r = 0;

        if (hint && !j->match_expected) {
                const char *name = errno_name(o->exec.error);

                r = reason_add(&j->reasons, "exec_failed", "%s (%s): %s", exec_kind_names[hint->kind],
                                name ? name : "unknown error", hint->hint);
        }
        if (r >= 0 && o->timed_out)
                r = reason_add(&j->reasons, "timed_out", "still running after %s, and was killed",
                                format_usec(plan->timeout_usec, time_text));
        if (r >= 0 && !hint && o->exited && o->exit_signal != 0 && !killed_by_us(o) && !outside_ended(o))
                r = reason_add(&j->reasons, "signal", "ended by %s%s",
                                format_signal(o->exit_signal, signal_text),
                                o->core_dumped ? " (core dumped)" : "");
        if (r >= 0 && !hint && j->exit_code >= 0 && !j->match_expected) {
                _cleanup_free_ char *expected =
                                plan->job->expected_exit ? cJSON_PrintUnformatted(plan->job->expected_exit)
                                                         : strdup("0");

                if (!expected)
                        return -ENOMEM;
                r = reason_add(&j->reasons, "exit_code", "exit code %d, expected %s", j->exit_code, expected);
        }
        return r;
}

static int judge_leftovers(const Plan *plan, const Outcome *o, Judgement *j)
{
        const ProcessList *list = &o->leftovers;
        uint64_t total = list->total == UNKNOWN ? list->n : MAX(list->total, (uint64_t) list->n);
        char text[LEFTOVERS_NAMED * (NAME_MAX_SHOWN + 16)] = "", name[NAME_MAX_SHOWN];
        size_t used = 0;

        if (total == 0 || plan->job->expect.allow_leftovers)
                return 0;
        for (size_t i = 0; i < MIN(list->n, (size_t) LEFTOVERS_NAMED); i++) {
                const ProcessRecord *process = &list->items[i];
                const char *shown = process->program ? process->program : process->comm ? process->comm : "?";

                text_excerpt(shown, strlen(shown), name, sizeof(name));
                used += (size_t) snprintf(text + used, sizeof(text) - used, "%s%s (pid %d)",
                                i == 0 ? ": " : ", ", name, (int) list->items[i].pid);
        }
        return reason_add(&j->reasons, "leftover_process",
                        "%" PRIu64 " process%s still ran when the command had ended%s%s", total,
                        total == 1 ? "" : "es", text, total > LEFTOVERS_NAMED ? ", ..." : "");
}

/* In the workspace or in scratch places: those of each that were not agreed, listed ones and others. */
static int find_unexpected(const ChangeRules *rules, const FileChanges *changes, Judgement *j,
                uint64_t n_unexpected[static 2])
{
        for (size_t scratch = 0; scratch < 2; scratch++)
                n_unexpected[scratch] = changes->unlisted_unexpected[scratch];
        if (changes->n == 0)
                return 0;
        j->unexpected = calloc(changes->n, sizeof(size_t));
        if (!j->unexpected)
                return -ENOMEM;
        for (size_t i = 0; i < changes->n; i++) {
                const FileChange *change = &changes->items[i];
                const FileNode *node = change->kind == CHANGE_REMOVED ? &change->before : &change->after;

                if (!change_is_unexpected(rules, change->kind, node->type, change->path, change->scratch))
                        continue;
                j->unexpected[j->n_unexpected++] = i;
                n_unexpected[change->scratch]++;
        }
        return 0;
}

static int name_unexpected(
                const Plan *plan, const FileChanges *changes, Judgement *j, bool scratch, uint64_t total)
{
        static const char *const verbs[_CHANGE_MAX] = { "added", "removed", "changed" };
        char text[UNEXPECTED_NAMED * (NAME_MAX_SHOWN + 16)] = "", path[NAME_MAX_SHOWN];
        size_t used = 0, named = 0;

        for (size_t i = 0; i < j->n_unexpected && named < UNEXPECTED_NAMED; i++) {
                const FileChange *change = &changes->items[j->unexpected[i]];
                const char *below = path_below(change->path, plan->cwd),
                           *shown = below && *below ? below : change->path;

                if (change->scratch != scratch)
                        continue;
                text_excerpt(shown, strlen(shown), path, sizeof(path));
                used += (size_t) snprintf(text + used, sizeof(text) - used, "%s%s %s", named == 0 ? "" : ", ",
                                verbs[change->kind], path);
                named++;
        }
        return reason_add(&j->reasons, scratch ? "scratch_write" : "unexpected_change",
                        "%" PRIu64 " change%s %s%s%s%s", total, total == 1 ? "" : "s",
                        !scratch              ? "outside allow_changes"
                        : plan->allow_changes ? "in scratch places, outside allow_changes"
                                              : "in scratch places",
                        named > 0 ? ": " : "", text, named > 0 && total > named ? ", ..." : "");
}

static int judge_changes(const Plan *plan, const Outcome *o, Judgement *j)
{
        const FileChanges *changes = &o->changes;
        uint64_t n_unexpected[2];
        ChangeRules rules;
        int r;

        r = change_rules_make(plan->allow_changes, changes->resolved, plan->policy->scratch_writes, &rules);
        if (r < 0)
                return r;
        r = find_unexpected(&rules, changes, j, n_unexpected);
        change_rules_clear(&rules);
        for (size_t scratch = 0; r >= 0 && scratch < 2; scratch++)
                if (n_unexpected[scratch] > 0)
                        r = name_unexpected(plan, changes, j, scratch, n_unexpected[scratch]);
        return r;
}

/* Also a working directory that is not there: then nothing had to be started to know that it fails. */
static bool was_tried(const Outcome *o)
{
        return o->released || o->exec.error > 0;
}

/* Reasons that are neither the command's nor the job's. */
static int judge_run(const Outcome *o, Judgement *j)
{
        char text[FORMAT_SIGNAL_MAX];
        int r = 0;

        if (o->host_code)
                r = reason_add(&j->reasons, o->host_code, "%s",
                                o->host_message && *o->host_message ? o->host_message
                                                                    : "no further description");
        else if (!was_tried(o) && o->abort_signal == 0 && !o->evidence_lost)
                r = reason_add(&j->reasons, "internal", "the command was not started, and nothing says why");
        if (r >= 0 && o->evidence_lost)
                r = reason_add(&j->reasons, "evidence_lost", "%s",
                                o->evidence_message ? o->evidence_message
                                                    : "a part of what happened was not observed");
        else if (r >= 0 && o->released && !o->exited && o->exec.error <= 0 && !o->timed_out &&
                        !o->host_code && o->abort_signal == 0)
                r = reason_add(&j->reasons, "evidence_lost", "the end of the main process was not observed");
        if (r >= 0 && o->abort_signal != 0)
                r = reason_add(&j->reasons, "aborted", "interrupted by %s",
                                format_signal(o->abort_signal, text));
        return r;
}

static int judge_facts(const Plan *plan, const Outcome *o, Judgement *j)
{
        const ExecHint *hint = o->exec.error > 0 ? &j->exec : NULL;
        int r;

        if (hint)
                exec_explain(&o->exec, plan->argv, plan_path(plan), o->host.machine, &j->exec);
        judge_exit(plan, o, hint, j);
        r = judge_end(plan, o, hint, j);
        if (r >= 0)
                r = hits_collect(plan, o, j);
        if (r >= 0)
                r = outside_judge(o, &j->reasons);
        /* A run that was cut short left processes, files and output half done: nothing was agreed about
         * those. */
        if (r < 0 || o->host_code || o->abort_signal != 0)
                return r;
        r = judge_leftovers(plan, o, j);
        if (r >= 0)
                r = processes_judge(plan, o, &j->reasons);
        if (r >= 0)
                r = sockets_judge(plan, o, &j->reasons);
        if (r >= 0)
                r = egress_judge(plan, o, &j->reasons);
        if (r >= 0)
                r = judge_changes(plan, o, j);
        if (r >= 0 && (!hint || j->match_expected))
                r = assertions_judge(&plan->job->expect, o, &j->reasons);
        return r;
}

static Verdict weigh(const Outcome *o, const Judgement *j)
{
        if (o->host_code || reason_has(&j->reasons, "evidence_lost") || reason_has(&j->reasons, "internal"))
                return VERDICT_ERROR;
        if (o->abort_signal != 0)
                return VERDICT_ABORTED;
        for (size_t i = 0; i < j->reasons.n; i++)
                if (outside_is_reason(j->reasons.items[i].code))
                        return VERDICT_ERROR;
        return j->reasons.n > 0 ? VERDICT_FAIL : VERDICT_PASS;
}

int judge(const Plan *plan, const Outcome *outcome, Judgement **ret)
{
        _cleanup_(judgement_freep) Judgement *j = calloc(1, sizeof(Judgement));
        int r;

        if (!j)
                return -ENOMEM;
        j->exit_code = -1;
        if (plan->refusals.n > 0)
                r = judge_refusals(plan, j);
        else {
                r = judge_run(outcome, j);
                if (r >= 0 && was_tried(outcome))
                        r = judge_facts(plan, outcome, j);
                if (r >= 0)
                        j->verdict = weigh(outcome, j);
        }
        /* Nothing that fails passes for want of a sentence. */
        if (r >= 0 && j->verdict == VERDICT_PASS && !j->match_expected) {
                r = reason_add(&j->reasons, "evidence_lost", "how the command ended is not known");
                j->verdict = VERDICT_ERROR;
        }
        if (r < 0)
                return r;
        *ret = TAKE_PTR(j);
        return 0;
}

int verdict_exit_status(const Judgement *judgement, const Outcome *outcome)
{
        static const int status[_VERDICT_MAX] = {
                [VERDICT_PASS] = 0,
                [VERDICT_FAIL] = 1,
                [VERDICT_REJECTED] = 3,
                [VERDICT_ERROR] = 4,
        };

        return judgement->verdict == VERDICT_ABORTED ? 128 + outcome->abort_signal
                                                     : status[judgement->verdict];
}
