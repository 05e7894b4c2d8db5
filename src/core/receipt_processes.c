/* SPDX-License-Identifier: Apache-2.0 */
/* processes: the tree of all that ran, and what was left. */
#include "core/receipt_parts.h"

static int add_process(cJSON *list, const ProcessRecord *process)
{
        const char state[] = { process->state, '\0' };
        cJSON *item = json_add_object(list, NULL);

        if (!item || json_add_i64(item, "pid", process->pid) < 0 ||
                        json_add_i64(item, "ppid", process->ppid) < 0 ||
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

        if (!processes || json_add_null(processes, "tree") < 0)
                return -ENOMEM;
        list = json_add_array(processes, "leftover");
        for (size_t i = 0; list && i < leftovers->n; i++)
                if (add_process(list, &leftovers->items[i]) < 0)
                        return -ENOMEM;
        if (!list || json_add_u64(processes, "leftover_total", leftovers->total) < 0)
                return -ENOMEM;
        return json_add_null(processes, "lost");
}
