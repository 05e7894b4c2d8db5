/* SPDX-License-Identifier: Apache-2.0 */
#include "core/outcome.h"

#include <signal.h>

#include "alloc.h"
#include "test.h"

TEST(everything_is_unknown)
{
        _cleanup_(outcome_freep) Outcome *o = outcome_new();
        const uint64_t *usage, *events;

        CHECK(o);
        usage = (const uint64_t *) &o->usage;
        for (size_t i = 0; i < sizeof(Usage) / sizeof(uint64_t); i++)
                CHECK(usage[i] == UNKNOWN); /* a counter that was added must be unknown at first too */
        events = (const uint64_t *) &o->events;
        for (size_t i = 0; i < offsetof(LimitEvents, file_at_limit) / sizeof(uint64_t); i++)
                CHECK(events[i] == UNKNOWN);
        for (size_t i = 0; i < _PHASE_MAX; i++)
                CHECK(o->phase_usec[i] == UNKNOWN && phase_names[i]);
        for (size_t i = 0; i < _FILE_TYPE_MAX; i++)
                CHECK(file_type_names[i]);
        CHECK(o->duration_usec == UNKNOWN && o->started_realtime_usec == UNKNOWN);
        CHECK(o->exec.error == -1 && o->exit_status == -1 && o->exit_signal == 0 && !o->exited &&
                        !o->released);
        CHECK(!o->host_code && !o->evidence_lost && o->out.utf8 && o->err.utf8);
}

TEST(lists)
{
        _cleanup_(outcome_freep) Outcome *o = outcome_new();
        char name[] = "seccomp";

        CHECK(o);
        CHECK(outcome_add_fact(o, name, true, "2", "2") == 0);
        name[0] = 'x'; /* the fact's name is its own: callers make theirs on the way */
        CHECK(outcome_add_fact(o, "namespace.net", false, "own", NULL) == 0);
        CHECK(o->n_facts == 2);
        CHECK(streq(o->facts[0].name, "seccomp") && streq(o->facts[0].observed, "2") && o->facts[0].holds);
        CHECK(!o->facts[1].observed && !o->facts[1].holds);
        CHECK(outcome_blind_spot(o, "%s: not seen", "sockets") == 0);
        CHECK(outcome_blind_spot(o, "another") == 0);
        CHECK(streq(o->blind_spots[0], "sockets: not seen") && strv_length(o->blind_spots) == 2);
}

TEST(first_host_error_is_kept)
{
        _cleanup_(outcome_freep) Outcome *o = outcome_new();

        CHECK(o);
        outcome_host_error(o, "start_refused", "do this", "the manager said: %s", "no\033[0m");
        outcome_host_error(o, "internal", NULL, "a consequence");
        CHECK(streq(o->host_code, "start_refused"));
        CHECK(streq(o->host_message, "the manager said: no\\x1b[0m"));
        CHECK(streq(o->host_remedy, "do this"));
}

TEST(signals)
{
        char text[FORMAT_SIGNAL_MAX];

        CHECK(streq(format_signal(SIGKILL, text), "SIGKILL"));
        CHECK(streq(format_signal(SIGXFSZ, text), "SIGXFSZ"));
        CHECK(streq(format_signal(SIGRTMIN + 3, text), "SIGRTMIN+3"));
        CHECK(streq(format_signal(SIGRTMIN, text), "SIGRTMIN+0"));
        CHECK(streq(format_signal(200, text), "SIG200"));
        CHECK(streq(format_signal(0, text), "SIG0"));
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
        CHECK(streq(o->host_code, "no_systemd")); /* the verdict needs no memory */
        return o->host_message && o->host_remedy ? 0 : -ENOMEM;
}

TEST(out_of_memory)
{
        CHECK(alloc_fail_each(fill, NULL) > 0);
        CHECK(alloc_fail_each(host_error, NULL) > 0);
}

TEST_MAIN
