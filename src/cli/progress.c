/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/progress.h"

#include <inttypes.h>
#include <sys/ioctl.h>

#include "base/number.h"
#include "sys/host.h"

#define PROGRESS_USEC (100 * USEC_PER_MSEC)

int progress_parse_jobs(const char *text, unsigned *ret, Error *e)
{
        uint64_t value = batch_default_jobs();

        if (text && (parse_u64(text, &value) < 0 || value < 1 || value > BATCH_JOBS_MAX))
                return error_set(e, -EINVAL, "-j %s: must be a number from 1 to %u", text, BATCH_JOBS_MAX);
        *ret = (unsigned) value;
        return 0;
}

void progress_hide(Progress *p)
{
        if (p->shown)
                (void) fputs("\r\033[K", stderr);
        p->shown = false;
}

static unsigned terminal_columns(void)
{
        struct winsize size;

        return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

void progress_show(Progress *p, const BatchProgress *progress)
{
        const BatchTally *tally = progress->tally;
        uint64_t now = now_monotonic(), run = tally->done - tally->resumed,
                 passed = tally->verdicts[VERDICT_PASS];
        double seconds = (double) progress->elapsed_usec / (double) USEC_PER_SEC,
               rate = seconds > 0 ? (double) run / seconds : 0;
        char total[32] = "", left[48] = "", line[256];

        if (!p->on || (p->shown && now - p->told_usec < PROGRESS_USEC))
                return;
        p->told_usec = now;
        p->shown = true;
        if (progress->total != UNKNOWN)
                (void) snprintf(total, sizeof(total), "/%" PRIu64, progress->total);
        if (progress->total != UNKNOWN && rate > 0)
                (void) snprintf(left, sizeof(left), "  %.0f s left",
                                (double) (progress->total - tally->done) / rate);
        (void) snprintf(line, sizeof(line),
                        "  %" PRIu64 "%s  %" PRIu64 " passed, %" PRIu64 " not, %zu running  %.1f/s%s",
                        tally->done, total, passed, tally->done - passed, progress->running, rate, left);
        (void) fprintf(stderr, "\r%.*s\033[K", (int) terminal_columns() - 1, line);
}
