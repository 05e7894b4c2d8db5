/* SPDX-License-Identifier: Apache-2.0 */

/* qscope-broken: qscope with an observer that sees nothing, for the tests of the selftest. It is the same
 * program, linked with --wrap=judge, so that nothing in the real one can be switched off. QSCOPE_BREAK names
 * the evidence that is lost without a word; with "declared:" before it the receipt says that it was not to be
 * had. */

#include "core/verdict.h"

int __real_judge(const Plan *plan, const Outcome *outcome, Judgement **ret);
int __wrap_judge(const Plan *plan, const Outcome *outcome, Judgement **ret);

/* All but the command itself: without that one, the verdict would notice. */
static void lose_processes(Outcome *o)
{
        o->processes.n = MIN(o->processes.n, (size_t) 1);
        o->processes.total = o->processes.programs = o->processes.n;
        o->processes.complete = o->processes.observed;
}

static void lose_sockets(Outcome *o)
{
        socket_evidence_clear(&o->sockets);
}

static void lose_egress(Outcome *o)
{
        egress_evidence_clear(&o->egress);
}

static void lose_fds(Outcome *o)
{
        fd_list_clear(&o->fds);
}

static void lose_ipc(Outcome *o)
{
        ipc_list_clear(&o->ipc);
}

static void lose_leftovers(Outcome *o)
{
        o->leftovers.n = 0;
        o->leftovers.total = 0;
}

static void lose_fs(Outcome *o)
{
        o->changes.n = 0;
        memset(o->changes.total, 0, sizeof(o->changes.total));
}

static void lose_limits(Outcome *o)
{
        o->events = (LimitEvents){ 0 };
}

static const struct {
        const char *name, *key;
        void (*lose)(Outcome *o);
        size_t observed; /* offset of its flag; 0: it has none */
} table[] = {
        { "processes", "processes.tree", lose_processes, offsetof(Outcome, processes.observed) },
        { "sockets", "sockets", lose_sockets, offsetof(Outcome, sockets.observed) },
        { "egress", "egress", lose_egress, offsetof(Outcome, egress.observed) },
        { "fds", "fds", lose_fds, offsetof(Outcome, fds.observed) },
        { "ipc", "ipc", lose_ipc, offsetof(Outcome, ipc.observed) },
        { "leftovers", NULL, lose_leftovers, 0 },
        { "fs", NULL, lose_fs, 0 },
        { "limits", NULL, lose_limits, 0 },
};

static char what[64];

/* Before main(): the selftest gives its jobs' processes an environment of their own. */
__attribute__((constructor)) static void remember(void)
{
        const char *given = getenv("QSCOPE_BREAK");

        (void) snprintf(what, sizeof(what), "%s", given ? given : "");
}

int __wrap_judge(const Plan *plan, const Outcome *outcome, Judgement **ret)
{
        const char *declared = startswith(what, "declared:");
        Outcome *o = (Outcome *) outcome; /* it is the caller's own, and not const there */

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                if (!streq(table[i].name, declared ? declared : what))
                        continue;
                table[i].lose(o);
                if (table[i].observed)
                        *(bool *) ((char *) o + table[i].observed) = !declared;
                if (declared)
                        o->processes.complete = o->processes.observed;
                if (declared && outcome_blind_spot(o, "%s: broken on purpose", table[i].key) < 0)
                        return -ENOMEM;
        }
        return __real_judge(plan, outcome, ret);
}
