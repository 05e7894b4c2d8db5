/* SPDX-License-Identifier: Apache-2.0 */
/* One line a fact: what has nothing to say is not printed. Nothing here knows how a run works; it reads the
 * published keys of the receipt, which may be old, cut or not even ours, and trusts none of its strings. */
#include "cli/summary.h"

#include <inttypes.h>

#include "base/number.h"
#include "base/text.h"
#include "core/receipt_view.h"

#define LINE_TEXT_MAX  100u /* columns of job's text in a line, roughly */
#define COMMAND_MAX    160u
#define REASON_MAX     400u
#define PATHS_MAX      5u /* changed paths shown */
#define OUTPUT_LINES   4u /* of the end of each stream */
#define LEFTOVERS_MAX  3u
#define SOCKETS_SHOWN  3u
#define EGRESS_MAX     3u
#define HITS_MAX       10u
#define REASONS_MAX    12u
#define PATH_SHOWN_MAX 1000u

typedef struct Page {
        FILE *f;
        const cJSON *receipt;
        bool colour;
} Page;

typedef struct Paint {
        const char *verdict, *code, *sign;
} Paint;

#define PAINT_OFF  "\033[0m"
#define PAINT_DIM  "\033[2m"
#define PAINT_BOLD "\033[1m"

static const Paint paints[] = {
        { "pass", "\033[1;32m", "PASS" },
        { "fail", "\033[1;31m", "FAIL" },
        { "rejected", "\033[1;33m", "REJECTED" },
        { "error", "\033[1;35m", "ERROR" },
        { "aborted", "\033[1;33m", "ABORTED" },
};

static uint64_t scaled(uint64_t value, uint64_t factor)
{
        return value == UNKNOWN || value > (UNKNOWN - 1) / factor ? UNKNOWN : value * factor;
}

/* --- writing --- */

static const char *paint(const Page *p, const char *code)
{
        return p->colour ? code : "";
}

/* Begins a line: "  command   ". */
static void label(const Page *p, const char *name)
{
        fprintf(p->f, "  %s%-9s%s ", paint(p, PAINT_DIM), name, paint(p, PAINT_OFF));
}

/* A string of the receipt, escaped and cut. */
static void put_bytes(const Page *p, const char *text, size_t size, size_t most)
{
        char out[1024];

        text_excerpt(text, size, out, MIN(most, sizeof(out)));
        fputs(out, p->f);
}

static void put(const Page *p, const char *text, size_t most)
{
        put_bytes(p, text ? text : "?", text ? strlen(text) : 1, most);
}

static void print_verdict(const Page *p)
{
        const char *verdict = view_text(p->receipt, "verdict"), *job_id = view_text(p->receipt, "job_id");
        const Paint *found = NULL;

        for (size_t i = 0; verdict && i < ELEMENTSOF(paints); i++)
                if (streq(paints[i].verdict, verdict))
                        found = &paints[i];
        fputs(paint(p, found ? found->code : "\033[1m"), p->f);
        if (found)
                fputs(found->sign, p->f);
        else
                put(p, verdict ? verdict : "no verdict", LINE_TEXT_MAX);
        fprintf(p->f, "%s  ", paint(p, PAINT_OFF));
        put(p, job_id ? job_id : "(no job_id)", LINE_TEXT_MAX + 40);
        fputc('\n', p->f);
}

static bool needs_quotes(const char *word)
{
        return !*word || strpbrk(word, " \t\n\"'\\$`*?;&|<>()[]{}#~!") != NULL;
}

static void print_word(FILE *out, const char *word, bool first)
{
        bool quoted = needs_quotes(word);

        if (!first)
                fputc(' ', out);
        if (quoted)
                fputc('\'', out);
        for (size_t i = 0; i < 4 * COMMAND_MAX && word[i]; i++) {
                /* A quote within quotes, as a shell has it. */
                if (quoted && word[i] == '\'')
                        fputs("'\\'", out);
                fputc(word[i], out);
        }
        if (quoted)
                fputc('\'', out);
}

/* As it could be typed, more or less: quotes show where an argument begins and ends. */
static int print_command(const Page *p)
{
        const cJSON *argv = view_get(p->receipt, "argv"), *word;
        _cleanup_free_ char *line = NULL;
        TextStream stream;
        FILE *out;

        if (!cJSON_IsArray(argv))
                return 0;
        out = text_stream_open(&stream);
        if (!out)
                return -ENOMEM;
        cJSON_ArrayForEach(word, argv)
        {
                const char *text = cJSON_GetStringValue(word);

                if (text)
                        print_word(out, text, word == argv->child);
                if (fflush(out) != 0 || stream.size > COMMAND_MAX)
                        break;
        }
        line = text_stream_close(&stream, 0);
        if (!line)
                return -ENOMEM;
        label(p, "command");
        put_bytes(p, line, stream.size, COMMAND_MAX);
        fputc('\n', p->f);
        return 0;
}

/* "0", "[0,1]", "\"any\"" as the job wrote it. */
static int print_expected(const Page *p)
{
        const cJSON *expected = view_get(p->receipt, "expected_exit");
        _cleanup_free_ char *text = expected ? json_print(expected, false) : NULL;

        if (!expected)
                return 0;
        if (!text)
                return -ENOMEM;
        fputs(" (expected ", p->f);
        put_bytes(p, text, strcspn(text, "\n"), LINE_TEXT_MAX);
        fputc(')', p->f);
        return 0;
}

static int print_end(const Page *p)
{
        const char *signal = view_text(p->receipt, "signal"),
                   *resolved = view_text(view_get(p->receipt, "exec"), "resolved");
        uint64_t code = view_number(p->receipt, "exit_code");
        bool timed_out = view_true(p->receipt, "timed_out");
        int r = 0;

        label(p, "end");
        if (timed_out)
                fputs("timed out", p->f);
        else if (code != UNKNOWN)
                fprintf(p->f, "exit %" PRIu64, code);
        else if (!signal)
                fputs(view_no_end(p->receipt), p->f);
        if (signal && !timed_out) {
                put(p, signal, LINE_TEXT_MAX);
                fputs(view_true(p->receipt, "core_dumped") ? ", core dumped" : "", p->f);
        }
        if (!timed_out && code != UNKNOWN && !view_true(p->receipt, "match_expected"))
                r = print_expected(p);
        if (resolved && view_get(view_get(p->receipt, "exec"), "error")) {
                fputs(", could not execute ", p->f);
                put(p, resolved, LINE_TEXT_MAX);
        }
        fputc('\n', p->f);
        return r;
}

static void print_time(const Page *p)
{
        uint64_t duration = scaled(view_number(p->receipt, "duration_ms"), USEC_PER_MSEC);
        uint64_t cpu = view_number(view_get(p->receipt, "usage"), "cpu_usec");
        const cJSON *timeout = view_get(p->receipt, "timeout_sec");
        char text[FORMAT_MAX];

        if (duration == UNKNOWN)
                return;
        label(p, "time");
        fputs(format_usec(duration, text), p->f);
        if (cJSON_IsNumber(timeout))
                fprintf(p->f, " of %.15g s", timeout->valuedouble);
        if (cpu != UNKNOWN)
                fprintf(p->f, ", CPU %s", format_usec(cpu, text));
        fputc('\n', p->f);
}

static void print_memory(const Page *p)
{
        const cJSON *usage = view_get(p->receipt, "usage");
        uint64_t peak = view_number(usage, "memory_peak_bytes"), pids = view_number(usage, "pids_peak");
        uint64_t limit = view_number(view_get(view_get(p->receipt, "limits"), "set"), "memory");
        char text[FORMAT_MAX];

        if (peak == UNKNOWN)
                return;
        label(p, "memory");
        fprintf(p->f, "%s peak", format_bytes(peak, text));
        if (limit != UNKNOWN)
                fprintf(p->f, " of %s", format_bytes(limit, text));
        if (pids != UNKNOWN)
                fprintf(p->f, ", %" PRIu64 " task%s at most", pids, pids == 1 ? "" : "s");
        fputc('\n', p->f);
}

static void print_hits(const Page *p)
{
        const cJSON *hits = view_get(view_get(p->receipt, "limits"), "hits"), *hit;
        unsigned n = 0;

        cJSON_ArrayForEach(hit, hits)
        {
                uint64_t count = view_number(hit, "count");

                if (n++ == HITS_MAX)
                        break;
                label(p, n == 1 ? "limits" : "");
                put(p, view_text(hit, "limit"), LINE_TEXT_MAX);
                fputs(": ", p->f);
                put(p, view_text(hit, "counter"), LINE_TEXT_MAX);
                if (count != UNKNOWN)
                        fprintf(p->f, " %" PRIu64, count);
                fputs(view_true(hit, "killed") ? "\n" : " (slowed down, not harmed)\n", p->f);
        }
}

static uint64_t count_changes(const cJSON *fs, const char *kind)
{
        uint64_t total = view_number(view_get(fs, "totals"), kind);
        const cJSON *list = view_get(fs, kind);

        if (total != UNKNOWN)
                return total;
        return cJSON_IsArray(list) ? (uint64_t) cJSON_GetArraySize(list) : 0;
}

static void print_changes(const Page *p)
{
        static const struct {
                const char *kind, *mark;
        } kinds[] = { { "added", "+" }, { "changed", "~" }, { "removed", "-" } };
        const cJSON *fs = view_get(p->receipt, "fs"), *change;
        uint64_t total = 0, shown = 0;

        for (size_t i = 0; i < ELEMENTSOF(kinds); i++)
                total += count_changes(fs, kinds[i].kind);
        if (total == 0)
                return;
        label(p, "changes");
        for (size_t i = 0; i < ELEMENTSOF(kinds); i++)
                fprintf(p->f, "%s%" PRIu64 " %s", i == 0 ? "" : ", ", count_changes(fs, kinds[i].kind),
                                kinds[i].kind);
        fputc('\n', p->f);
        for (size_t i = 0; i < ELEMENTSOF(kinds); i++) {
                cJSON_ArrayForEach(change, view_get(fs, kinds[i].kind))
                {
                        if (shown == PATHS_MAX)
                                break;
                        shown++;
                        label(p, "");
                        fprintf(p->f, "%s ", kinds[i].mark);
                        put(p, view_text(change, "path"), LINE_TEXT_MAX);
                        fputc('\n', p->f);
                }
        }
        if (total > shown && shown > 0) {
                label(p, "");
                fprintf(p->f, "  and %" PRIu64 " more\n", total - shown);
        }
}

static void print_processes(const Page *p)
{
        const cJSON *processes = view_get(p->receipt, "processes");
        uint64_t total = view_number(processes, "total"), programs = view_number(processes, "programs"),
                 lost = view_number(processes, "lost");

        if (total == UNKNOWN || programs == UNKNOWN || total == 0)
                return;
        label(p, "processes");
        fprintf(p->f, "%" PRIu64 ", %" PRIu64 " program%s started", total, programs,
                        programs == 1 ? "" : "s");
        if (lost != UNKNOWN && lost > 0)
                fprintf(p->f, ", %" PRIu64 " event%s missed", lost, lost == 1 ? "" : "s");
        fputc('\n', p->f);
}

static void print_leftovers(const Page *p)
{
        const cJSON *processes = view_get(p->receipt, "processes"), *list = view_get(processes, "leftover"),
                    *process;
        uint64_t total = view_number(processes, "leftover_total");
        unsigned n = 0;

        if (total == UNKNOWN)
                total = cJSON_IsArray(list) ? (uint64_t) cJSON_GetArraySize(list) : 0;
        if (total == 0)
                return;
        label(p, "left");
        fprintf(p->f, "%" PRIu64 " process%s", total, total == 1 ? "" : "es");
        cJSON_ArrayForEach(process, list)
        {
                const char *program = view_text(process, "program");
                uint64_t pid = view_number(process, "pid");

                if (n == LEFTOVERS_MAX)
                        break;
                fputs(n++ == 0 ? ": " : ", ", p->f);
                put(p, program ? program : view_text(process, "comm"), LINE_TEXT_MAX);
                if (pid != UNKNOWN)
                        fprintf(p->f, " (%" PRIu64 ")", pid);
        }
        fputs(total > n && n > 0 ? ", ...\n" : "\n", p->f);
}

/* "tcp 127.0.0.1:80", "unix @name" */
static void put_socket(const Page *p, const cJSON *socket)
{
        const char *protocol = view_text(socket, "protocol"), *address = view_text(socket, "local_address");
        uint64_t port = view_number(socket, "local_port");

        put(p, protocol ? protocol : view_text(socket, "family"), LINE_TEXT_MAX);
        fputc(' ', p->f);
        if (!address) {
                fputs(view_true(socket, "abstract") ? "@" : "", p->f);
                put(p, view_text(socket, "name"), LINE_TEXT_MAX);
                return;
        }
        fputs(strchr(address, ':') ? "[" : "", p->f);
        put(p, address, LINE_TEXT_MAX);
        fputs(strchr(address, ':') ? "]" : "", p->f);
        if (port != UNKNOWN)
                fprintf(p->f, ":%" PRIu64, port);
}

static void print_sockets(const Page *p)
{
        const cJSON *sockets = view_get(p->receipt, "sockets"), *list = view_get(sockets, "listening"),
                    *socket;
        uint64_t total = view_number(view_get(sockets, "totals"), "listening"),
                 left = view_number(view_get(sockets, "totals"), "leftover");
        unsigned n = 0;

        if (total != UNKNOWN && total > 0) {
                label(p, "listened");
                cJSON_ArrayForEach(socket, list)
                {
                        uint64_t pid = view_number(socket, "pid");

                        if (n == SOCKETS_SHOWN)
                                break;
                        fputs(n++ == 0 ? "" : ", ", p->f);
                        put_socket(p, socket);
                        if (pid != UNKNOWN)
                                fprintf(p->f, " (%" PRIu64 ")", pid);
                }
                if (total > n)
                        fprintf(p->f, "%sand %" PRIu64 " more", n > 0 ? ", " : "", total - n);
                fputc('\n', p->f);
        }
        if (left != UNKNOWN && left > 0) {
                label(p, "left");
                fprintf(p->f, "%" PRIu64 " open socket%s\n", left, left == 1 ? "" : "s");
        }
}

/* "tcp example.org:443", by its name where it has one. */
static void print_attempt(const Page *p, const cJSON *attempt)
{
        const char *name = view_text(attempt, "name"), *protocol = view_text(attempt, "protocol");
        uint64_t port = view_number(attempt, "port");

        put(p, protocol, LINE_TEXT_MAX);
        fputc(' ', p->f);
        put(p, name ? name : view_text(attempt, "address"), LINE_TEXT_MAX);
        if (port != UNKNOWN && !streq_ptr(protocol, "dns"))
                fprintf(p->f, ":%" PRIu64, port);
}

static void print_egress(const Page *p)
{
        const cJSON *list = view_get(p->receipt, "egress"), *attempt;
        uint64_t total = view_number(view_get(p->receipt, "egress_info"), "total");
        unsigned n = 0, listed = cJSON_IsArray(list) ? (unsigned) cJSON_GetArraySize(list) : 0;

        if (listed == 0)
                return;
        if (total == UNKNOWN)
                total = listed;
        label(p, "egress");
        fprintf(p->f, "%" PRIu64 " attempt%s to leave: ", total, total == 1 ? "" : "s");
        cJSON_ArrayForEach(attempt, list)
        {
                if (n == EGRESS_MAX)
                        break;
                if (n++ > 0)
                        fputs(", ", p->f);
                print_attempt(p, attempt);
        }
        fputs(listed > n ? ", ...\n" : "\n", p->f);
}

/* Where the last n lines of text begin. A newline at the very end ends a line and begins none. */
static const char *last_lines(const char *text, unsigned n)
{
        const char *start = text + strlen(text);

        if (start > text && start[-1] == '\n')
                start--;
        while (start > text && (start[-1] != '\n' || --n > 0))
                start--;
        return start;
}

static void print_output(const Page *p, const char *key, const char *info_key)
{
        const char *text = view_text(p->receipt, key), *start;
        uint64_t bytes = view_number(view_get(p->receipt, info_key), "bytes");
        char size[FORMAT_MAX];

        if (!text || !*text)
                return;
        start = last_lines(text, OUTPUT_LINES);
        label(p, key);
        fprintf(p->f, "%s%s\n", bytes == UNKNOWN ? "" : format_bytes(bytes, size),
                        start > text ? ", the end of it" : "");
        while (*start) {
                size_t length = strcspn(start, "\n");

                label(p, "");
                fprintf(p->f, "%s|%s ", paint(p, PAINT_DIM), paint(p, PAINT_OFF));
                put_bytes(p, start, length, LINE_TEXT_MAX);
                fputc('\n', p->f);
                start += length + (start[length] == '\n');
        }
}

static void print_reasons(const Page *p)
{
        const cJSON *reason;
        unsigned n = 0;

        cJSON_ArrayForEach(reason, view_get(p->receipt, "reasons"))
        {
                const char *next = view_text(reason, "next");

                if (n++ == REASONS_MAX)
                        break;
                label(p, "why");
                fputs(paint(p, PAINT_BOLD), p->f);
                put(p, view_text(reason, "code"), LINE_TEXT_MAX);
                fprintf(p->f, "%s: ", paint(p, PAINT_OFF));
                put(p, view_text(reason, "message"), REASON_MAX);
                fputc('\n', p->f);
                if (!next)
                        continue;
                label(p, "  next");
                put(p, next, REASON_MAX);
                fputc('\n', p->f);
        }
}

static void print_blind_spots(const Page *p)
{
        const cJSON *list = view_get(p->receipt, "blind_spots");
        int n = cJSON_IsArray(list) ? cJSON_GetArraySize(list) : 0;

        if (n == 0)
                return;
        label(p, "not seen");
        fprintf(p->f, "%d thing%s: see blind_spots in the receipt\n", n, n == 1 ? "" : "s");
}

/* What can be had of the changes now. */
static void print_kept(const Page *p)
{
        const cJSON *kept = view_get(p->receipt, "kept");
        const char *state = view_text(kept, "state"), *verdict = view_text(p->receipt, "verdict");
        char size[FORMAT_MAX];

        if (!state || streq(state, "nothing") || streq(state, "off") || !streq_ptr(verdict, "pass"))
                return;
        label(p, "kept");
        if (streq(state, "yes")) {
                fprintf(p->f, "%s: qscope apply shows the changes and takes them over\n",
                                format_bytes(view_number(kept, "bytes"), size));
                return;
        }
        fputs("not for qscope apply: ", p->f);
        put(p, state, LINE_TEXT_MAX);
        fputc('\n', p->f);
}

int summary_print(FILE *f, const cJSON *receipt, const char *receipt_path, bool colour)
{
        const Page p = { f, receipt, colour };
        int r;

        errno = 0;
        print_verdict(&p);
        r = print_command(&p);
        if (r >= 0)
                r = print_end(&p);
        if (r < 0)
                return r;
        print_time(&p);
        print_memory(&p);
        print_hits(&p);
        print_changes(&p);
        print_kept(&p);
        print_processes(&p);
        print_leftovers(&p);
        print_sockets(&p);
        print_egress(&p);
        print_output(&p, "stdout", "stdout_info");
        print_output(&p, "stderr", "stderr_info");
        print_reasons(&p);
        print_blind_spots(&p);
        if (receipt_path) {
                label(&p, "receipt");
                put(&p, receipt_path, PATH_SHOWN_MAX);
                fputc('\n', f);
        }
        if (fflush(f) == 0 && !ferror(f))
                return 0;
        return errno > 0 ? -errno : -EIO;
}
