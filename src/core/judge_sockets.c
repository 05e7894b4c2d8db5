/* SPDX-License-Identifier: Apache-2.0 */
#include "core/judges.h"

#include <inttypes.h>
#include <sys/socket.h>

#include "core/sockets.h"

#define NAMED 3u

static bool port_is_allowed(const Expect *expect, const SocketRecord *record)
{
        if (record->family != AF_INET && record->family != AF_INET6)
                return false;
        for (size_t i = 0; i < expect->n_allow_listen; i++)
                if (expect->allow_listen[i] == record->local.port)
                        return true;
        return false;
}

/* One that was closed before the end harms nobody, unless the job said where it would listen. */
static bool is_judged(const Expect *expect, const SocketRecord *record)
{
        return record->left || expect->allow_listen;
}

static int judge_listening(const Expect *expect, const SocketList *list, ReasonList *reasons)
{
        char text[NAMED * (SOCKET_TEXT_MAX + 24)] = "", name[SOCKET_TEXT_MAX];
        uint64_t unlisted = list->total - MIN(list->total, (uint64_t) list->n), found = 0;
        size_t used = 0;

        for (size_t i = 0; i < list->n; i++) {
                const SocketRecord *record = &list->items[i];

                if (!is_judged(expect, record) || port_is_allowed(expect, record) || found++ >= NAMED)
                        continue;
                used += (size_t) snprintf(text + used, sizeof(text) - used, "%s%s", found == 1 ? "" : ", ",
                                socket_format(record, name));
                if (record->pid > 0)
                        used += (size_t) snprintf(
                                        text + used, sizeof(text) - used, " (pid %d)", (int) record->pid);
        }
        if (found > 0)
                return reason_add(reasons, "listening", "%" PRIu64 " socket%s listening that %s: %s%s", found,
                                found == 1 ? " was" : "s were",
                                expect->allow_listen ? "expect.allow_listen does not have"
                                                     : "the command had left open",
                                text, found > NAMED ? ", ..." : "");
        /* What is not listed could be anything. Those left open are listed before others. */
        if (unlisted > 0 && (expect->allow_listen || (list->n > 0 && list->items[list->n - 1].left)))
                return reason_add(reasons, "evidence_lost",
                                "more listening sockets than the %zu listed: the others could not be "
                                "compared with expect.allow_listen",
                                list->n);
        return 0;
}

int sockets_judge(const Plan *plan, const Outcome *o, ReasonList *reasons)
{
        const SocketEvidence *sockets = &o->sockets;
        int r;

        if (!sockets->observed)
                return 0;
        r = judge_listening(&plan->job->expect, &sockets->listening, reasons);
        if (r >= 0 && sockets->lost > 0)
                r = reason_add(reasons, "evidence_lost",
                                "sockets were closed faster than they could be recorded: %" PRIu64 " missed",
                                sockets->lost);
        return r;
}
