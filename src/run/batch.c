/* SPDX-License-Identifier: Apache-2.0 */
#include "run/batch.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/epoll.h>

#include "base/number.h"
#include "core/receipt_view.h"
#include "run/finished.h"
#include "run/job_run.h"
#include "run/load.h"
#include "run/state.h"
#include "sys/file.h"
#include "sys/host.h"

#define JOBS_BY_DEFAULT_MAX 64u
#define MEMORY_OF_A_JOB     MIB(256)
/* Rows that wait for an earlier job: some hundred bytes each. When they are so many, no more are begun. */
#define WINDOW 8192u
/* Jobs are started ahead, so that the next is at its gate when it is its turn, each in the sandbox made for
 * it alone: as many as run at a time, and since making a sandbox takes longer than a short job, one more for
 * each CPU. systemd ends a unit that waits longer than this, so none is started ahead of jobs that may take
 * as long (and a minute for their end). */
#define AHEAD_MAX      16u
#define AHEAD_USEC     (10 * 60 * USEC_PER_SEC)
#define AHEAD_END_USEC (60 * USEC_PER_SEC)

struct Batch;

typedef struct Member {
        struct Batch *batch;
        JobItem item;
} Member;

typedef struct Batch {
        const BatchOptions *options;
        BatchResult *result;
        Engine *engine;
        Finished *finished; /* NULL: nothing is resumed */
        sd_event_source *input_source;
        uint64_t begin_usec, begun, shown; /* the latter two: numbers of jobs */
        uint64_t dismissed;                /* the first one; 0: none */
        BatchRow *rows;                    /* WINDOW of them, by number */
        size_t running, ahead;             /* the latter: how many may be ahead */
        bool ended;                        /* the input */
        int r;                             /* why nothing more can be told */
} Batch;

unsigned batch_default_jobs(void)
{
        unsigned cpus = 1, jobs;
        char text[KIB(8)], line[32] = "";
        uint64_t kib;
        cpu_set_t set;

        if (sched_getaffinity(0, sizeof(set), &set) == 0)
                cpus = (unsigned) CPU_COUNT(&set);
        jobs = MIN(cpus, JOBS_BY_DEFAULT_MAX);
        if (file_read_at(AT_FDCWD, "/proc/meminfo", text, sizeof(text)) == 0 &&
                        text_field(text, "MemAvailable", line, sizeof(line))) {
                line[strspn(line, "0123456789")] = '\0';
                if (parse_u64(line, &kib) == 0)
                        jobs = (unsigned) MIN((uint64_t) jobs, KIB(kib) / MEMORY_OF_A_JOB);
        }
        return MAX(jobs, 1u);
}

/* --- rows --- */

static BatchRow *row_of(Batch *b, uint64_t number)
{
        return &b->rows[number % WINDOW];
}

static void tell_progress(Batch *b)
{
        uint64_t total = job_source_total(b->options->source);
        BatchProgress progress = {
                .tally = &b->result->tally,
                .elapsed_usec = now_monotonic() - b->begin_usec,
                .total = b->ended ? b->begun : total,
        };

        /* The others wait at the gate. */
        progress.running = MIN(b->running, (size_t) b->options->jobs);
        if (b->options->on_progress)
                b->options->on_progress(b->options->userdata, &progress);
}

static void show_rows(Batch *b)
{
        for (BatchRow *row = row_of(b, b->shown + 1); row->line; row = row_of(b, b->shown + 1)) {
                if (b->r == 0 && b->options->on_row)
                        b->r = b->options->on_row(b->options->userdata, row);
                batch_row_clear(row);
                b->shown++;
        }
}

static void end_one(Batch *b, const BatchEnd *end)
{
        int r = batch_row_make(end, row_of(b, end->number));

        batch_tally_add(&b->result->tally, end);
        if (b->r == 0 && b->options->on_end)
                b->r = b->options->on_end(b->options->userdata, end);
        if (r < 0 && b->r == 0)
                b->r = r;
        if (end->status != 0 && b->options->fail_fast)
                b->result->stopped = true;
        show_rows(b);
        tell_progress(b);
}

static void end_broken(Batch *b, const JobItem *item, const char *error, int status)
{
        BatchEnd end = { .number = item->number,
                .input = item->name,
                .job_id = item->job ? item->job->job_id : NULL,
                .error = error,
                .status = status };

        end_one(b, &end);
}

/* --- one job --- */

static Member *member_free(Member *member)
{
        if (member)
                job_item_clear(&member->item);
        free(member);
        return NULL;
}

DEFINE_CLEANUP(Member *, member_free)

static void note_dismissed(Batch *b, JobItem *item)
{
        if (b->dismissed != 0 && b->dismissed < item->number)
                return;
        b->dismissed = item->number;
        free(b->result->first_left);
        b->result->first_left = TAKE_PTR(item->name);
        b->result->first_left_number = item->number;
}

static void on_ended(void *userdata, int r, JobRunResult *result, const Error *e)
{
        _cleanup_(member_freep) Member *member = userdata;
        Batch *b = member->batch;
        BatchEnd end = {
                .number = member->item.number,
                .input = member->item.name,
                .job_id = member->item.job->job_id,
                .receipt = result->receipt,
                .receipt_path = result->receipt_path,
                .error = result->error.text[0] ? result->error.text : NULL,
                .status = result->exit_status,
        };

        b->running--;
        if (r == -ECANCELED)
                note_dismissed(b, &member->item);
        else if (r < 0)
                end_broken(b, &member->item, e->text, 4);
        else
                end_one(b, &end);
}

static int verdict_status(const char *verdict)
{
        static const int statuses[_VERDICT_MAX] = { [VERDICT_PASS] = 0,
                [VERDICT_FAIL] = 1,
                [VERDICT_REJECTED] = 3,
                [VERDICT_ERROR] = 4,
                [VERDICT_ABORTED] = 4 };

        for (size_t i = 0; i < _VERDICT_MAX; i++)
                if (streq_ptr(verdict, verdict_names[i]))
                        return statuses[i];
        return 4;
}

/* Whether it was run before; then its row is made of its receipt. */
static bool end_finished(Batch *b, const JobItem *item)
{
        const char *policy = b->options->policy ? b->options->policy : item->job->policy;
        const char *path = b->finished ? finished_take(b->finished, item->job->sha256,
                                                         policy ? policy : "default")
                                       : NULL;
        _cleanup_(cJSON_Deletep) cJSON *receipt = NULL;
        BatchEnd end = { .number = item->number, .input = item->name, .receipt_path = path, .resumed = true };

        if (!path || load_receipt(path, &receipt, NULL) < 0)
                return false;
        end.receipt = receipt;
        end.status = verdict_status(view_text(receipt, "verdict"));
        end_one(b, &end);
        return true;
}

/* Takes what is in the item. */
static int begin_one(Batch *b, JobItem *item)
{
        _cleanup_(member_freep) Member *member = calloc(1, sizeof(*member));
        JobRunOptions options = { .policy = b->options->policy,
                .receipts_dir = b->options->receipts_dir,
                .state_dir = b->options->state_dir,
                .job_dir = item->job_dir,
                .wait_usec = AHEAD_USEC,
                .keep = b->options->keep ? KEEP_ALWAYS : KEEP_NEVER };
        Error e = ERROR_INIT;

        if (!member) {
                job_item_clear(item);
                return -ENOMEM;
        }
        *member = (Member){ .batch = b, .item = *item };
        *item = (JobItem){ 0 };
        b->begun = member->item.number;
        if (!member->item.job) {
                end_broken(b, &member->item, member->item.error.text, 2);
                return 0;
        }
        if (end_finished(b, &member->item))
                return 0;
        if (job_start(b->engine, member->item.job, &options, on_ended, member, &e) < 0) {
                end_broken(b, &member->item, e.text, 2);
                return 0;
        }
        b->running++;
        TAKE_PTR(member);
        return 0;
}

/* --- all of them --- */

static bool is_room(const Batch *b)
{
        size_t jobs = b->options->jobs, ahead;

        if (b->running < jobs || b->options->fail_fast)
                return b->running < jobs;
        /* How often as many as run at a time may come before it. */
        ahead = jobs * ((AHEAD_USEC - AHEAD_END_USEC) / MAX(engine_longest_usec(b->engine), USEC_PER_SEC));
        return engine_ahead(b->engine) < MIN(ahead, b->ahead) && b->running < 2 * jobs + b->ahead;
}

static bool may_begin(const Batch *b)
{
        return !b->ended && !b->result->stopped && b->r == 0 && engine_signal(b->engine) == 0 &&
               b->begun - b->shown < WINDOW - 1 && is_room(b);
}

static int on_input(
                _unused_ sd_event_source *source, _unused_ int fd, _unused_ uint32_t revents, void *userdata)
{
        Batch *b = userdata;

        /* Whoever waits for an event looks what can be begun. */
        b->input_source = sd_event_source_disable_unref(b->input_source);
        return 0;
}

static int wait_for_input(Batch *b)
{
        int r = b->input_source ? 0
                                : sd_event_add_io(b->engine->event, &b->input_source, STDIN_FILENO, EPOLLIN,
                                                  on_input, b);

        return r < 0 ? r : -EAGAIN;
}

/* Begins as many as there is room for. -EAGAIN: the input is not there yet. */
static int begin_more(Batch *b)
{
        while (may_begin(b)) {
                JobItem item = { 0 };
                int r = job_source_next(b->options->source, &item);

                if (r == -EAGAIN)
                        return wait_for_input(b);
                if (r > 0)
                        r = begin_one(b, &item);
                else if (r == 0)
                        b->ended = true;
                if (r < 0)
                        return r;
        }
        return 0;
}

static bool is_over(const Batch *b, bool waits)
{
        return b->running == 0 && !(waits && may_begin(b));
}

static int loop(Batch *b)
{
        for (;;) {
                int r = begin_more(b);

                if (r < 0 && r != -EAGAIN && b->r == 0)
                        b->r = r;
                if (is_over(b, r == -EAGAIN))
                        return b->r;
                tell_progress(b);
                r = engine_step(b->engine);
                if (r < 0)
                        return r;
        }
}

static void tell_rest(Batch *b)
{
        JobItem item = { 0 };

        /* Before others that had ended already some were dismissed. */
        for (; b->shown < b->begun; b->shown++)
                show_rows(b);
        b->result->signal = engine_signal(b->engine);
        if (b->result->signal != 0)
                b->result->stopped = true;
        b->result->stopped = b->dismissed != 0 || (b->result->stopped && !b->ended);
        if (b->result->stopped && b->dismissed == 0 && job_source_total(b->options->source) != UNKNOWN) {
                int r = job_source_next(b->options->source, &item);

                b->result->stopped = r > 0;
                b->result->first_left = r > 0 ? TAKE_PTR(item.name) : NULL;
                b->result->first_left_number = item.number;
                job_item_clear(&item);
        }
        if (b->result->signal != 0)
                b->result->tally.status = 128 + b->result->signal;
}

static void batch_clear(Batch *b)
{
        sd_event_source_disable_unref(b->input_source);
        engine_free(b->engine);
        finished_free(b->finished);
        for (size_t i = 0; b->rows && i < WINDOW; i++)
                batch_row_clear(&b->rows[i]);
        free(b->rows);
}

int batch_run(const BatchOptions *options, BatchResult *ret, Error *e)
{
        _cleanup_(batch_clear) Batch b = { .options = options, .result = ret, .begin_usec = now_monotonic() };
        int r = 0;

        *ret = (BatchResult){ 0 };
        if (options->resume)
                r = finished_read(options->receipts_dir, &b.finished, e);
        if (r < 0)
                return r;
        b.ahead = MIN(options->jobs + batch_default_jobs(), AHEAD_MAX);
        b.rows = calloc(WINDOW, sizeof(*b.rows));
        r = b.rows ? engine_new(&b.engine) : -ENOMEM;
        if (r == 0) {
                /* Whether another may be begun is known only when the one before is judged. */
                if (!options->fail_fast)
                        engine_set_turns(b.engine, options->jobs);
                r = loop(&b);
        }
        if (b.engine)
                tell_rest(&b);
        ret->elapsed_usec = now_monotonic() - b.begin_usec;
        return r < 0 ? error_errno(e, r, "the batch") : 0;
}
