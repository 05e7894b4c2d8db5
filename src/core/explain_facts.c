/* SPDX-License-Identifier: Apache-2.0 */
/* One line for each kind of evidence. Null is "not recorded", which is another thing than none. */
#include "core/explain_facts.h"

#include <inttypes.h>
#include <stdarg.h>

#include "base/number.h"
#include "base/text.h"
#include "core/series.h"

#define NAMED_MAX     5u   /* of a list, by name */
#define WORD_MAX      100u /* bytes of one string of the receipt */
#define CURVE_COLUMNS 30u

/* A sentence that grows; what does not fit is left out. */
typedef struct Line {
        char text[EXPLAIN_TEXT_MAX];
        size_t used;
} Line;

static void _printf_(2, 3) add(Line *line, const char *format, ...)
{
        va_list ap;
        int n;

        va_start(ap, format);
        n = vsnprintf(line->text + line->used, sizeof(line->text) - line->used, format, ap);
        va_end(ap);
        if (n > 0)
                line->used = MIN(line->used + (size_t) n, sizeof(line->text) - 1);
}

/* A string of the receipt. */
static void add_word(Line *line, const char *text)
{
        char out[WORD_MAX];

        text_excerpt(text ? text : "?", text ? strlen(text) : 1, out, sizeof(out));
        add(line, "%s", out);
}

static const char *plural(uint64_t n)
{
        return n == 1 ? "" : "s";
}

/* As the receipt counts them, which may be more than it lists. */
static uint64_t total_of(const cJSON *totals, const char *key, const cJSON *list)
{
        uint64_t total = view_number(totals, key);

        return total == UNKNOWN ? view_length(list) : total;
}

/* "a, b, c and 4 more": each element by name. */
static void add_list(Line *line, const cJSON *list, uint64_t total, void (*name)(Line *, const cJSON *))
{
        const cJSON *item;
        size_t n = 0;

        cJSON_ArrayForEach(item, list)
        {
                if (n == NAMED_MAX)
                        break;
                add(line, n++ == 0 ? ": " : ", ");
                name(line, item);
        }
        if (n > 0 && total > n)
                add(line, " and %" PRIu64 " more", total - n);
}

static void name_command(Line *line, const cJSON *item)
{
        add_word(line, cJSON_GetStringValue(item));
}

static void fact_command(Line *line, const cJSON *receipt)
{
        const cJSON *argv = view_get(receipt, "argv"), *word;
        size_t n = 0;

        cJSON_ArrayForEach(word, argv)
        {
                if (n == NAMED_MAX + 3)
                        break;
                add(line, n++ == 0 ? "" : " ");
                name_command(line, word);
        }
        if (view_length(argv) > n)
                add(line, " ...");
        if (view_text(receipt, "cwd")) {
                add(line, ", in ");
                add_word(line, view_text(receipt, "cwd"));
        }
}

static void fact_end(Line *line, const cJSON *receipt)
{
        uint64_t code = view_number(receipt, "exit_code"), msec = view_number(receipt, "duration_ms");
        const char *signal = view_text(receipt, "signal");
        char time[FORMAT_MAX];

        if (view_true(receipt, "timed_out"))
                add(line, "killed at its time limit");
        else if (signal) {
                add(line, "ended by ");
                add_word(line, signal);
        } else if (code != UNKNOWN)
                add(line, "exit status %" PRIu64, code);
        else
                add(line, "%s", view_no_end(receipt));
        if (msec != UNKNOWN)
                add(line, ", after %s", format_usec(msec * USEC_PER_MSEC, time));
        if (view_true(receipt, "match_expected"))
                add(line, ", as expected");
}

static void fact_used(Line *line, const cJSON *receipt)
{
        const cJSON *usage = view_get(receipt, "usage");
        uint64_t cpu = view_number(usage, "cpu_usec"), memory = view_number(usage, "memory_peak_bytes"),
                 tasks = view_number(usage, "pids_peak");
        char text[FORMAT_MAX];

        if (cpu != UNKNOWN)
                add(line, "%s of CPU time", format_usec(cpu, text));
        if (memory != UNKNOWN)
                add(line, "%s%s of memory at most", line->used ? ", " : "", format_bytes(memory, text));
        if (tasks != UNKNOWN)
                add(line, "%s%" PRIu64 " task%s at a time at most", line->used ? ", " : "", tasks,
                                plural(tasks));
}

/* A list of samples. Values beyond room are left out, as is what is no number. Returns how many. */
static size_t read_samples(const cJSON *list, uint64_t *values, size_t room)
{
        const cJSON *item;
        size_t n = 0;

        cJSON_ArrayForEach(item, list)
        {
                bool known = cJSON_IsNumber(item) && item->valuedouble >= 0 && item->valuedouble < 1e18;

                if (n == room)
                        break;
                values[n++] = known ? (uint64_t) item->valuedouble : UNKNOWN;
        }
        return n;
}

/* What was used within each interval, from what had been used up to its end. */
static void differences(uint64_t *values, size_t n)
{
        uint64_t before = 0;

        for (size_t i = 0; i < n; i++) {
                uint64_t value = values[i];

                if (value == UNKNOWN)
                        continue;
                values[i] = value > before ? value - before : 0;
                before = MAX(before, value);
        }
}

static void add_curve(Line *line, const char *what, const uint64_t *values, size_t n)
{
        char curve[CURVE_COLUMNS * 3 + 1];

        series_line(values, n, CURVE_COLUMNS, curve);
        if (n > 1 && *curve)
                add(line, "%s%s %s", line->used ? ", " : "", what, curve);
}

static void fact_over_time(Line *line, const cJSON *receipt)
{
        const cJSON *samples = view_get(view_get(receipt, "usage"), "samples");
        uint64_t values[SERIES_MAX];
        size_t n = read_samples(view_get(samples, "memory_bytes"), values, SERIES_MAX);

        add_curve(line, "memory", values, n);
        n = read_samples(view_get(samples, "cpu_usec"), values, SERIES_MAX);
        differences(values, n);
        add_curve(line, "CPU", values, n);
}

static void name_hit(Line *line, const cJSON *hit)
{
        uint64_t count = view_number(hit, "count");

        add_word(line, view_text(hit, "limit"));
        add(line, " (");
        add_word(line, view_text(hit, "counter"));
        if (count != UNKNOWN)
                add(line, " %" PRIu64, count);
        add(line, ")");
}

static void fact_limits(Line *line, const cJSON *receipt)
{
        const cJSON *hits = view_get(view_get(receipt, "limits"), "hits");
        size_t n = view_length(hits);

        if (n == 0)
                return;
        add(line, "%zu hit%s", n, plural(n));
        add_list(line, hits, n, name_hit);
}

static void fact_printed(Line *line, const cJSON *receipt)
{
        uint64_t out = view_number(view_get(receipt, "stdout_info"), "bytes"),
                 err = view_number(view_get(receipt, "stderr_info"), "bytes");
        char text[FORMAT_MAX];

        if (out == UNKNOWN || err == UNKNOWN)
                return;
        if (out == 0 && err == 0) {
                add(line, "nothing");
                return;
        }
        add(line, "%s to stdout", format_bytes(out, text));
        add(line, ", %s to stderr", format_bytes(err, text));
}

static void name_path(Line *line, const cJSON *item)
{
        add_word(line, view_text(item, "path"));
}

static void fact_changed(Line *line, const cJSON *receipt)
{
        static const char *const kinds[] = { "added", "removed", "changed" };
        const cJSON *fs = view_get(receipt, "fs");
        uint64_t sum = 0;

        if (!fs)
                return;
        for (size_t i = 0; i < ELEMENTSOF(kinds); i++) {
                const cJSON *list = view_get(fs, kinds[i]);
                uint64_t total = total_of(view_get(fs, "totals"), kinds[i], list);

                if (total == 0)
                        continue;
                add(line, "%s%" PRIu64 " %s", sum ? "; " : "", total, kinds[i]);
                add_list(line, list, total, name_path);
                sum += total;
        }
        if (sum == 0)
                add(line, "nothing");
}

/* Its program, however this receipt has it. */
static void add_program(Line *line, const cJSON *item)
{
        const char *program = view_text(item, "program");

        if (!program)
                program = cJSON_GetStringValue(cJSON_GetArrayItem(view_get(item, "argv"), 0));
        if (!program)
                program = view_text(item, "comm");
        add_word(line, program);
}

static void fact_started(Line *line, const cJSON *receipt)
{
        const cJSON *processes = view_get(receipt, "processes"), *tree = view_get(processes, "tree");
        uint64_t total = total_of(processes, "total", tree);

        if (!tree) {
                add(line, "not recorded");
                return;
        }
        add(line, "%" PRIu64 " process%s", total, total == 1 ? "" : "es");
        add_list(line, tree, total, add_program);
}

/* "tcp 10.0.0.1:80", "unix /run/x", "unix @x". */
static void add_address(Line *line, const cJSON *item, const char *address_key, const char *port_key)
{
        const char *protocol = view_text(item, "protocol"), *family = view_text(item, "family"),
                   *address = view_text(item, address_key), *name = view_text(item, "name");
        uint64_t port = view_number(item, port_key);

        add_word(line, protocol ? protocol : family);
        if (name) {
                add(line, view_true(item, "abstract") ? " @" : " ");
                add_word(line, name);
        }
        if (address) {
                add(line, " ");
                add_word(line, address);
        }
        if (port != UNKNOWN)
                add(line, "%s%" PRIu64, address ? ":" : " port ", port);
}

static void name_socket(Line *line, const cJSON *item)
{
        add_address(line, item, "local_address", "local_port");
        if (view_text(item, "program")) {
                add(line, " by ");
                add_program(line, item);
        }
}

static void fact_opened(Line *line, const cJSON *receipt)
{
        const cJSON *sockets = view_get(receipt, "sockets"), *list = view_get(sockets, "listening");
        uint64_t n = total_of(view_get(sockets, "totals"), "listening", list);

        if (!sockets) {
                add(line, "not recorded");
                return;
        }
        if (n == 0) {
                add(line, "nothing listened");
                return;
        }
        add(line, "%" PRIu64 " listening socket%s", n, plural(n));
        add_list(line, list, n, name_socket);
}

static void name_attempt(Line *line, const cJSON *item)
{
        uint64_t count = view_number(item, "count");

        add_address(line, item, "address", "port");
        if (view_text(item, "program")) {
                add(line, " by ");
                add_program(line, item);
        }
        if (count != UNKNOWN && count > 1)
                add(line, ", %" PRIu64 " times", count);
}

static void fact_tried(Line *line, const cJSON *receipt)
{
        const cJSON *list = view_get(receipt, "egress");
        size_t n = view_length(list);

        if (!list) {
                add(line, "not recorded");
                return;
        }
        if (n == 0) {
                add(line, "to reach nobody");
                return;
        }
        add(line, "to reach %zu destination%s%s", n, plural(n),
                        streq_ptr(view_text(receipt, "network"), "none") ? ", and did not" : "");
        add_list(line, list, n, name_attempt);
}

static void name_object(Line *line, const cJSON *item)
{
        add_word(line, view_text(item, "kind"));
        if (view_text(item, "name")) {
                add(line, " ");
                add_word(line, view_text(item, "name"));
        }
}

static void name_open_file(Line *line, const cJSON *item)
{
        add_word(line, view_text(item, "target"));
}

/* One kind of what was left; *n sums up. */
static void add_left(Line *line, const char *what, const cJSON *list, uint64_t total,
                void (*name)(Line *, const cJSON *), uint64_t *n)
{
        if (total == 0)
                return;
        add(line, "%s%" PRIu64 " %s%s", *n ? "; " : "", total, what, total == 1 ? "" : "s");
        add_list(line, list, total, name);
        *n += total;
}

static void fact_left(Line *line, const cJSON *receipt)
{
        const cJSON *processes = view_get(receipt, "processes"), *sockets = view_get(receipt, "sockets"),
                    *list;
        uint64_t n = 0;

        if (!processes)
                return;
        list = view_get(processes, "leftover");
        add_left(line, "running program", list, total_of(processes, "leftover_total", list), add_program, &n);
        list = view_get(sockets, "leftover");
        add_left(line, "socket", list, total_of(view_get(sockets, "totals"), "leftover", list), name_socket,
                        &n);
        list = view_get(receipt, "fds");
        add_left(line, "open descriptor", list, total_of(view_get(receipt, "fds_info"), "total", list),
                        name_open_file, &n);
        list = view_get(receipt, "ipc");
        add_left(line, "shared object", list, total_of(view_get(receipt, "ipc_info"), "total", list),
                        name_object, &n);
        add(line, n > 0 ? " (all gone now)" : "nothing");
}

static const struct {
        const char *name;
        void (*fill)(Line *line, const cJSON *receipt);
} facts[] = {
        { "command", fact_command },
        { "end", fact_end },
        { "used", fact_used },
        { "course", fact_over_time },
        { "limits", fact_limits },
        { "printed", fact_printed },
        { "changed", fact_changed },
        { "started", fact_started },
        { "opened", fact_opened },
        { "tried", fact_tried },
        { "left", fact_left },
};

/* Of a command that never ran there is nothing else to say. */
static bool was_started(const cJSON *receipt)
{
        return view_get(receipt, "duration_ms") || view_get(receipt, "exit_code") ||
               view_get(receipt, "signal") || view_true(receipt, "timed_out");
}

int explain_add_facts(cJSON *list, const cJSON *receipt)
{
        size_t n = was_started(receipt) ? ELEMENTSOF(facts) : 2;

        for (size_t i = 0; i < n; i++) {
                Line line = { .text = "" };
                cJSON *item;

                facts[i].fill(&line, receipt);
                if (line.used == 0)
                        continue;
                item = json_add_object(list, NULL);
                if (!item || json_add_text(item, "name", facts[i].name) < 0 ||
                                json_add_text(item, "text", line.text) < 0)
                        return -ENOMEM;
        }
        return 0;
}
