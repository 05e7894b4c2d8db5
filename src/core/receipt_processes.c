/* SPDX-License-Identifier: Apache-2.0 */
/* processes: the tree of all that ran, and what was left. */
#include "core/receipt_parts.h"

static int add_argv(cJSON *item, char *const *argv, bool cut)
{
        int r = argv ? json_add_strv(item, "argv", argv) : json_add_null(item, "argv");

        return r == 0 && cut ? json_add_bool(item, "argv_cut", true) : r;
}

static int add_run(cJSON *item, const ProgramRun *run)
{
        int r = receipt_add_raw(item, "program", run->path);

        return r < 0 ? r : add_argv(item, run->argv, run->argv_cut);
}

/* program and argv are what it ran last. execs is there where that is not all: several, or none. */
static int add_runs(cJSON *item, const ProcessNode *node)
{
        cJSON *list;
        int r;

        if (node->n_runs > 0) {
                r = add_run(item, &node->runs[node->n_runs - 1]);
        } else {
                r = receipt_add_raw(item, "program", node->origin);
                if (r == 0)
                        r = json_add_null(item, "argv");
        }
        if (r < 0 || node->n_runs == 1)
                return r;
        list = json_add_array(item, "execs");
        if (!list)
                return -ENOMEM;
        for (size_t i = 0; r == 0 && i < node->n_runs; i++) {
                cJSON *exec = json_add_object(list, NULL);

                r = exec ? add_run(exec, &node->runs[i]) : -ENOMEM;
                if (r == 0)
                        r = receipt_add_milliseconds(exec, "start_ms", node->runs[i].usec);
        }
        return r;
}

static int add_end(cJSON *item, const ProcessNode *node)
{
        char name[FORMAT_SIGNAL_MAX];
        int r = receipt_add_milliseconds(item, "start_ms", node->start_usec);

        if (r == 0)
                r = receipt_add_milliseconds(item, "end_ms", node->end_usec);
        if (r == 0)
                r = node->exit_status >= 0 ? json_add_i64(item, "exit_code", node->exit_status)
                                           : json_add_null(item, "exit_code");
        if (r == 0)
                r = json_add_text(item, "signal",
                                node->exit_signal > 0 ? format_signal(node->exit_signal, name) : NULL);
        return r;
}

static int add_node(cJSON *list, const ProcessNode *node)
{
        cJSON *item = json_add_object(list, NULL);
        int r = item ? json_add_i64(item, "pid", node->pid) : -ENOMEM;

        if (r == 0)
                r = node->ppid > 0 ? json_add_i64(item, "ppid", node->ppid) : json_add_null(item, "ppid");
        if (r == 0)
                r = add_runs(item, node);
        return r < 0 ? r : add_end(item, node);
}

static int add_tree(cJSON *processes, const ProcessTree *tree)
{
        bool any = tree->observed || tree->complete || tree->n > 0;
        cJSON *list = any ? json_add_array(processes, "tree") : NULL;
        int r = any ? (list ? 0 : -ENOMEM) : json_add_null(processes, "tree");

        for (size_t i = 0; r == 0 && list && i < tree->n; i++)
                r = add_node(list, &tree->items[i]);
        if (r == 0)
                r = any ? json_add_u64(processes, "total", tree->total) : json_add_null(processes, "total");
        if (r == 0)
                r = any ? json_add_u64(processes, "programs", tree->programs)
                        : json_add_null(processes, "programs");
        if (r == 0)
                r = json_add_bool(processes, "truncated", tree->truncated);
        if (r == 0)
                r = any ? json_add_u64(processes, "lost", tree->lost) : json_add_null(processes, "lost");
        return r;
}

static int add_observed(cJSON *processes, const ProcessTree *tree)
{
        cJSON *observed = json_add_object(processes, "observed");

        if (!observed || json_add_bool(observed, "forks_and_ends", tree->observed) < 0)
                return -ENOMEM;
        return json_add_bool(observed, "programs", tree->complete);
}

static int add_leftover(cJSON *list, const ProcessRecord *process)
{
        const char state[] = { process->state, '\0' };
        cJSON *item = json_add_object(list, NULL);

        if (!item || json_add_i64(item, "pid", process->pid) < 0 ||
                        json_add_i64(item, "ppid", process->ppid) < 0 ||
                        receipt_add_raw(item, "program", process->program) < 0 ||
                        receipt_add_raw(item, "comm", process->comm) < 0 ||
                        (process->argv ? json_add_strv(item, "argv", process->argv)
                                       : json_add_null(item, "argv")) < 0 ||
                        json_add_text(item, "state", *state ? state : NULL) < 0)
                return -ENOMEM;
        return receipt_add_milliseconds(item, "start_ms", process->start_usec);
}

int receipt_add_processes(cJSON *receipt, const ReceiptSource *s)
{
        const ProcessList *leftovers = &s->outcome->leftovers;
        cJSON *processes = json_add_object(receipt, "processes"), *list;

        if (!processes || add_tree(processes, &s->outcome->processes) < 0 ||
                        add_observed(processes, &s->outcome->processes) < 0)
                return -ENOMEM;
        list = json_add_array(processes, "leftover");
        for (size_t i = 0; list && i < leftovers->n; i++)
                if (add_leftover(list, &leftovers->items[i]) < 0)
                        return -ENOMEM;
        return list ? json_add_u64(processes, "leftover_total", leftovers->total) : -ENOMEM;
}
