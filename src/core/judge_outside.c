/* SPDX-License-Identifier: Apache-2.0 */
/* What others than the job and qscope did to it: a run that was disturbed says nothing about the job, so each
 * of these makes the verdict "error". A job cannot cause them by itself; what it could, counts as its own. */
#include "core/judges.h"

#include <inttypes.h>
#include <signal.h>

static uint64_t known(uint64_t counter)
{
        return counter == UNKNOWN ? 0 : counter;
}

/* A process of the job was killed for memory, and no group of the job was out of it. */
static bool is_host_oom(const Outcome *o)
{
        return known(o->events.oom_kill) > 0 && o->events.oom == 0;
}

/* Ended by a signal that nobody in the job sent. The kernel's own (RLIMIT_CPU, a limit of memory) are
 * generated while the job runs and are counted as sent by it. Those of its timers, descriptors and tracers
 * are not: who has such may have ended itself. */
static bool is_killed_outside(const Outcome *o)
{
        uint64_t sent = o->exit_signal == SIGKILL   ? o->outside.sent_kill
                        : o->exit_signal == SIGTERM ? o->outside.sent_term
                                                    : UNKNOWN;

        return sent == 0 && o->outside.senders == 0 && o->outside.signal_fds == 0 && !o->timed_out &&
               o->abort_signal == 0 && !o->host_code && known(o->events.oom_kill) == 0 &&
               known(o->events.cpu_time_exceeded) == 0;
}

bool outside_ended(const Outcome *o)
{
        const Interference *outside = &o->outside;

        if (o->exit_signal != SIGKILL && o->exit_signal != SIGTERM)
                return false;
        return outside->stopped || known(outside->oomd_kills) > 0 || is_host_oom(o) || is_killed_outside(o);
}

int outside_judge(const Outcome *o, ReasonList *reasons)
{
        const Interference *outside = &o->outside;
        char text[FORMAT_SIGNAL_MAX];
        int r = 0;

        if (outside->stopped)
                r = reason_add(reasons, "stopped_outside",
                                "systemd was told to stop the unit while the job ran; qscope did not ask for it");
        if (r >= 0 && known(outside->oomd_kills) > 0)
                r = reason_add(reasons, "oomd_killed",
                                "systemd-oomd killed the job's control group (user.oomd_ooms: %" PRIu64 ")",
                                outside->oomd_kills);
        if (r >= 0 && is_host_oom(o))
                r = reason_add(reasons, "host_oom",
                                "the kernel killed a process of the job (memory.events oom_kill: %" PRIu64
                                "), and the job was within its own limit: %s was out of memory",
                                o->events.oom_kill,
                                known(outside->outer_oom) > 0 ? "qscope.slice, which caps all jobs together,"
                                                              : "the host");
        if (r >= 0 && !outside->stopped && known(outside->oomd_kills) == 0 && is_killed_outside(o))
                r = reason_add(reasons, "killed_outside", "ended by %s, which no process of the job sent",
                                format_signal(o->exit_signal, text));
        return r;
}

bool outside_is_reason(const char *code)
{
        static const char *const codes[] = { "stopped_outside", "oomd_killed", "host_oom", "killed_outside" };

        for (size_t i = 0; i < ELEMENTSOF(codes); i++)
                if (streq(codes[i], code))
                        return true;
        return false;
}
