/* SPDX-License-Identifier: Apache-2.0 */
/* The plain values that one run leaves behind: making them, freeing them, adding to their lists. Nothing is
 * judged here. */
#include "core/outcome.h"

#include <signal.h>
#include <stdarg.h>

#include "core/reason.h"

const char *const phase_names[_PHASE_MAX] = {
        [PHASE_PREPARE] = "prepare",
        [PHASE_START] = "start",
        [PHASE_GATE] = "gate",
        [PHASE_HELD] = "held",
        [PHASE_RUN] = "run",
        [PHASE_DRAIN] = "drain",
        [PHASE_SETTLE] = "settle",
        [PHASE_DIFF] = "diff",
        [PHASE_WRITE] = "write",
};

char *format_signal(int signal, char buffer[static FORMAT_SIGNAL_MAX])
{
        const char *name = sigabbrev_np(signal);

        if (name)
                (void) snprintf(buffer, FORMAT_SIGNAL_MAX, "SIG%s", name);
        else if (signal >= SIGRTMIN && signal <= SIGRTMAX)
                (void) snprintf(buffer, FORMAT_SIGNAL_MAX, "SIGRTMIN+%d", signal - SIGRTMIN);
        else
                (void) snprintf(buffer, FORMAT_SIGNAL_MAX, "SIG%d", signal);
        return buffer;
}

Outcome *outcome_new(void)
{
        Outcome *o = calloc(1, sizeof(Outcome));

        if (!o)
                return NULL;
        o->started_realtime_usec = o->finished_realtime_usec = o->duration_usec = UNKNOWN;
        for (size_t i = 0; i < _PHASE_MAX; i++)
                o->phase_usec[i] = UNKNOWN;
        for (size_t i = 0; i < _CHANGE_MAX; i++)
                o->changes.total[i] = UNKNOWN;
        o->changes.scratch = UNKNOWN;
        o->exec.error = -1;
        o->exit_status = -1;
        o->out.utf8 = o->err.utf8 = true; /* nothing was read, and nothing is valid */
        o->usage = (Usage){
                .cpu_usec = UNKNOWN,
                .user_usec = UNKNOWN,
                .system_usec = UNKNOWN,
                .memory_peak_bytes = UNKNOWN,
                .swap_peak_bytes = UNKNOWN,
                .pids_peak = UNKNOWN,
                .io_read_bytes = UNKNOWN,
                .io_write_bytes = UNKNOWN,
                .throttled_usec = UNKNOWN,
                .nr_throttled = UNKNOWN,
                .nr_periods = UNKNOWN,
                .cpu_pressure_usec = UNKNOWN,
                .memory_pressure_usec = UNKNOWN,
                .io_pressure_usec = UNKNOWN,
                .disk_bytes = UNKNOWN,
                .disk_inodes = UNKNOWN,
        };
        o->events = (LimitEvents){
                .oom_kill = UNKNOWN,
                .oom = UNKNOWN,
                .memory_max = UNKNOWN,
                .swap_max = UNKNOWN,
                .pids_max = UNKNOWN,
                .emfile = UNKNOWN,
                .enospc = UNKNOWN,
                .layer_peak_bytes = UNKNOWN,
                .layer_peak_inodes = UNKNOWN,
                .efbig = UNKNOWN,
                .disk_full = UNKNOWN,
                .inodes_full = UNKNOWN,
                .cpu_time_exceeded = UNKNOWN,
        };
        for (RefusedKind kind = 0; kind < _REFUSED_KIND_MAX; kind++)
                o->egress.refused_total[kind] = UNKNOWN;
        o->outside = (Interference){
                .oomd_kills = UNKNOWN,
                .outer_oom = UNKNOWN,
                .sent_kill = UNKNOWN,
                .sent_term = UNKNOWN,
                .senders = UNKNOWN,
                .signal_fds = UNKNOWN,
        };
        return o;
}

static void stream_clear(StreamRecord *stream)
{
        free(stream->head);
        free(stream->tail);
        free(stream->whole);
}

static void process_list_clear(ProcessList *list)
{
        for (size_t i = 0; i < list->n; i++) {
                free(list->items[i].comm);
                free(list->items[i].program);
                strv_free(list->items[i].argv);
        }
        free(list->items);
}

Outcome *outcome_free(Outcome *o)
{
        if (!o)
                return NULL;
        free(o->host_message);
        free(o->host_remedy);
        free(o->exec.resolved);
        free(o->exec.step);
        free(o->evidence_message);
        stream_clear(&o->out);
        stream_clear(&o->err);
        free(o->events.file_at_limit);
        for (size_t i = 0; i < o->n_facts; i++) {
                free(o->facts[i].name);
                free(o->facts[i].expected);
                free(o->facts[i].observed);
        }
        free(o->facts);
        file_changes_clear(&o->changes);
        process_list_clear(&o->leftovers);
        process_tree_clear(&o->processes);
        denied_list_clear(&o->denied);
        socket_evidence_clear(&o->sockets);
        egress_evidence_clear(&o->egress);
        fd_list_clear(&o->fds);
        ipc_list_clear(&o->ipc);
        strv_free(o->blind_spots);
        free(o->host.kernel);
        free(o->host.systemd);
        free(o->host.boot_id);
        free(o->host.hostname);
        free(o->host.machine);
        free(o->invocation_id);
        free(o->layer);
        free(o->workspace_method);
        free(o->expected_files);
        free(o);
        return NULL;
}

/* Copies text unless it is NULL, which means unknown and stays so. */
static int copy_known(const char *text, char **ret)
{
        *ret = text ? strdup(text) : NULL;
        return text && !*ret ? -ENOMEM : 0;
}

int outcome_add_fact(Outcome *o, const char *name, bool holds, const char *expected, const char *observed)
{
        _cleanup_free_ char *name_copy = strdup(name), *expected_copy = NULL, *observed_copy = NULL;
        IsolationFact *larger;

        if (!name_copy || copy_known(expected, &expected_copy) < 0 ||
                        copy_known(observed, &observed_copy) < 0)
                return -ENOMEM;
        larger = reallocarray(o->facts, o->n_facts + 1, sizeof(IsolationFact));
        if (!larger)
                return -ENOMEM;
        o->facts = larger;
        o->facts[o->n_facts++] = (IsolationFact){
                .name = TAKE_PTR(name_copy),
                .expected = TAKE_PTR(expected_copy),
                .observed = TAKE_PTR(observed_copy),
                .holds = holds,
        };
        return 0;
}

int outcome_blind_spot(Outcome *o, const char *format, ...)
{
        va_list ap;
        char *text;

        va_start(ap, format);
        text = text_vprintf(format, ap);
        va_end(ap);
        return strv_consume(&o->blind_spots, text);
}

void outcome_host_error(Outcome *o, const char *code, const char *remedy, const char *format, ...)
{
        const ReasonInfo *info = reason_find(code);
        Error e = ERROR_INIT;
        char text[ERROR_TEXT_MAX];
        va_list ap;

        assert(info);
        if (o->host_code)
                return;
        va_start(ap, format);
        (void) vsnprintf(text, sizeof(text), format, ap);
        va_end(ap);
        (void) error_set(&e, 0, "%s", text);
        /* The code alone decides the verdict; without memory for the sentence it stands without one. */
        o->host_code = info->code;
        o->host_message = strdup(e.text);
        o->host_remedy = remedy ? strdup(remedy) : NULL;
}
