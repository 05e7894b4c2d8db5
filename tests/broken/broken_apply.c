/* SPDX-License-Identifier: Apache-2.0 */

/* qscope-broken apply: is killed, or finds no space, at one step. QSCOPE_BREAK_APPLY is "kill:N",
 * "kill-after:N" or "enospc:N": before or after the N-th call that changes something in the workspace, from 1
 * on. */

#include <signal.h>

#include "sys/workplace.h"

int __real_workplace_do(Workplace *place, WorkAction action, const char *path, size_t number, unsigned mode);
int __wrap_workplace_do(Workplace *place, WorkAction action, const char *path, size_t number, unsigned mode);
int __real_workplace_stage_file(Workplace *place, size_t number, int content_fd, const ApplyNode *node,
                unsigned mode, const char *old, bool sync);
int __wrap_workplace_stage_file(Workplace *place, size_t number, int content_fd, const ApplyNode *node,
                unsigned mode, const char *old, bool sync);

static unsigned long calls;

static bool is_now(const char *what)
{
        const char *text = getenv("QSCOPE_BREAK_APPLY"), *rest = text ? startswith(text, what) : NULL;

        return rest && *rest == ':' && strtoul(rest + 1, NULL, 10) == calls;
}

static void die_if(const char *what)
{
        if (is_now(what))
                (void) raise(SIGKILL);
}

int __wrap_workplace_do(Workplace *place, WorkAction action, const char *path, size_t number, unsigned mode)
{
        int r;

        calls++;
        die_if("kill");
        r = is_now("enospc") ? -ENOSPC : __real_workplace_do(place, action, path, number, mode);
        die_if("kill-after");
        return r;
}

int __wrap_workplace_stage_file(Workplace *place, size_t number, int content_fd, const ApplyNode *node,
                unsigned mode, const char *old, bool sync)
{
        int r;

        calls++;
        die_if("kill");
        r = is_now("enospc") ? -ENOSPC
                             : __real_workplace_stage_file(place, number, content_fd, node, mode, old, sync);
        die_if("kill-after");
        return r;
}
