/* SPDX-License-Identifier: Apache-2.0 */
#include "core/outcome.h"

#include <signal.h>

#include "alloc.h"

static void test_everything_is_unknown(void)
{
        _cleanup_(outcome_freep) Outcome *o = outcome_new();
        const uint64_t *usage, *events;

        assert(o);
        usage = (const uint64_t *) &o->usage;
        for (size_t i = 0; i < sizeof(Usage) / sizeof(uint64_t); i++)
                assert(usage[i] == UNKNOWN); /* a counter that was added must be unknown at first too */
        events = (const uint64_t *) &o->events;
        for (size_t i = 0; i < offsetof(LimitEvents, file_at_limit) / sizeof(uint64_t); i++)
                assert(events[i] == UNKNOWN);
        for (size_t i = 0; i < _PHASE_MAX; i++)
                assert(o->phase_usec[i] == UNKNOWN && phase_names[i]);
        for (size_t i = 0; i < _FILE_TYPE_MAX; i++)
                assert(file_type_names[i]);
        assert(o->duration_usec == UNKNOWN && o->started_realtime_usec == UNKNOWN);
        assert(o->exec.error == -1 && o->exit_status == -1 && o->exit_signal == 0 && !o->exited &&
                        !o->released);
        assert(!o->host_code && !o->evidence_lost && o->out.utf8 && o->err.utf8);
}

static void test_lists(void)
{
        _cleanup_(outcome_freep) Outcome *o = outcome_new();

        assert(o);
        assert(outcome_add_fact(o, "seccomp", true, "2", "2") == 0);
        assert(outcome_add_fact(o, "namespace.net", false, "own", NULL) == 0);
        assert(o->n_facts == 2);
        assert(streq(o->facts[0].name, "seccomp") && streq(o->facts[0].observed, "2") && o->facts[0].holds);
        assert(!o->facts[1].observed && !o->facts[1].holds);
        assert(outcome_blind_spot(o, "%s: not seen", "sockets") == 0);
        assert(outcome_blind_spot(o, "another") == 0);
        assert(streq(o->blind_spots[0], "sockets: not seen") && strv_length(o->blind_spots) == 2);
}

static void test_first_host_error_is_kept(void)
{
        _cleanup_(outcome_freep) Outcome *o = outcome_new();

        assert(o);
        outcome_host_error(o, "start_refused", "do this", "the manager said: %s", "no\033[0m");
        outcome_host_error(o, "internal", NULL, "a consequence");
        assert(streq(o->host_code, "start_refused"));
        assert(streq(o->host_message, "the manager said: no\\x1b[0m"));
        assert(streq(o->host_remedy, "do this"));
}

static void test_signals(void)
{
        char text[FORMAT_SIGNAL_MAX];

        assert(streq(format_signal(SIGKILL, text), "SIGKILL"));
        assert(streq(format_signal(SIGXFSZ, text), "SIGXFSZ"));
        assert(streq(format_signal(SIGRTMIN + 3, text), "SIGRTMIN+3"));
        assert(streq(format_signal(SIGRTMIN, text), "SIGRTMIN+0"));
        assert(streq(format_signal(200, text), "SIG200"));
        assert(streq(format_signal(0, text), "SIG0"));
}

static int fill(void *context _unused_)
{
        _cleanup_(outcome_freep) Outcome *o = outcome_new();

        if (!o)
                return -ENOMEM;
        if (outcome_add_fact(o, "a", true, "x", "y") < 0 || outcome_add_fact(o, "b", true, NULL, "y") < 0)
                return -ENOMEM;
        return outcome_blind_spot(o, "spot %d", 1);
}

static int host_error(void *context _unused_)
{
        _cleanup_(outcome_freep) Outcome *o = outcome_new();

        if (!o)
                return -ENOMEM;
        outcome_host_error(o, "no_systemd", "remedy", "message");
        assert(streq(o->host_code, "no_systemd")); /* the verdict needs no memory */
        return o->host_message && o->host_remedy ? 0 : -ENOMEM;
}

static void test_out_of_memory(void)
{
        assert(alloc_fail_each(fill, NULL) > 0);
        assert(alloc_fail_each(host_error, NULL) > 0);
}

int main(void)
{
        test_everything_is_unknown();
        test_lists();
        test_first_host_error_is_kept();
        test_signals();
        test_out_of_memory();
        return 0;
}
