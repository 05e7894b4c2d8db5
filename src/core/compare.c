/* SPDX-License-Identifier: Apache-2.0 */
#include "core/compare.h"

#include <inttypes.h>

#include "base/array.h"
#include "base/number.h"
#include "base/text.h"
#include "core/textdiff.h"

#define TEXT_MAX   512 /* bytes of one side, escaped */
#define DIFF_LINES 40u

/* One thing that a receipt says: a name and what is said of it. */
typedef struct Fact {
        char *name, *value;
} Fact;

typedef struct Facts {
        Fact *items;
        size_t n, room;
} Facts;

typedef struct Comparison {
        cJSON *list;
        uint64_t total, mattering;
} Comparison;

static void facts_clear(Facts *facts)
{
        for (size_t i = 0; i < facts->n; i++) {
                free(facts->items[i].name);
                free(facts->items[i].value);
        }
        free(facts->items);
        *facts = (Facts){ 0 };
}

/* Takes both; NULL name is -ENOMEM. */
static int facts_add(Facts *facts, char *name, char *value)
{
        Fact *items = name && value ? array_grow(facts->items, facts->n, &facts->room, sizeof(*items)) : NULL;

        if (!items) {
                free(name);
                free(value);
                return -ENOMEM;
        }
        facts->items = items;
        items[facts->n++] = (Fact){ name, value };
        return 0;
}

static int compare_facts(const void *a, const void *b)
{
        const Fact *x = a, *y = b;
        int r = strcmp(x->name, y->name);

        return r != 0 ? r : strcmp(x->value, y->value);
}

static void facts_sort(Facts *facts)
{
        if (facts->n > 0)
                qsort(facts->items, facts->n, sizeof(*facts->items), compare_facts);
}

/* The same name several times becomes one with its number. */
static int facts_count(Facts *facts)
{
        size_t n = 0;

        facts_sort(facts);
        for (size_t i = 0; i < facts->n;) {
                size_t same = 1;

                while (i + same < facts->n && streq(facts->items[i].name, facts->items[i + same].name)) {
                        free(facts->items[i + same].name);
                        free(facts->items[i + same].value);
                        facts->items[i + same] = (Fact){ 0 };
                        same++;
                }
                free(facts->items[i].value);
                facts->items[i].value = same == 1 ? strdup("once") : text_printf("%zu times", same);
                facts->items[n] = facts->items[i];
                if (n != i)
                        facts->items[i] = (Fact){ 0 };
                if (!facts->items[n++].value)
                        return -ENOMEM; /* the rest leaks nothing: cleared entries are NULL */
                i += same;
        }
        facts->n = n;
        return 0;
}

/* --- differences --- */

static int add_side(cJSON *item, const char *key, const char *text)
{
        char shown[TEXT_MAX];

        if (!text)
                return json_add_null(item, key);
        (void) text_excerpt(text, strlen(text), shown, sizeof(shown));
        return json_add_text(item, key, shown);
}

/* *ret_item may be NULL: it was only counted. */
static int differ(Comparison *c, const char *area, const char *name, const char *a, const char *b,
                bool matters, cJSON **ret_item)
{
        cJSON *item;

        if (ret_item)
                *ret_item = NULL;
        c->mattering += matters;
        if (c->total++ >= COMPARE_LISTED_MAX)
                return 0;
        item = json_add_object(c->list, NULL);
        if (!item || json_add_text(item, "area", area) < 0 || add_side(item, "name", name) < 0 ||
                        add_side(item, "a", a) < 0 || add_side(item, "b", b) < 0 ||
                        json_add_bool(item, "matters", matters) < 0)
                return -ENOMEM;
        if (ret_item)
                *ret_item = item;
        return 0;
}

static int differ_facts(Comparison *c, const char *area, Facts *a, Facts *b, bool matters)
{
        size_t i = 0, k = 0;
        int r = 0;

        facts_sort(a);
        facts_sort(b);
        while (r == 0 && (i < a->n || k < b->n)) {
                int order = i >= a->n ? 1 : k >= b->n ? -1 : strcmp(a->items[i].name, b->items[k].name);

                if (order == 0 && !streq(a->items[i].value, b->items[k].value))
                        r = differ(c, area, a->items[i].name, a->items[i].value, b->items[k].value, matters,
                                        NULL);
                else if (order < 0)
                        r = differ(c, area, a->items[i].name, a->items[i].value, NULL, matters, NULL);
                else if (order > 0)
                        r = differ(c, area, b->items[k].name, NULL, b->items[k].value, matters, NULL);
                i += order <= 0;
                k += order >= 0;
        }
        return r;
}

/* --- single values --- */

/* Any JSON value as text; NULL for null and for what is not there. */
static char *value_text(const cJSON *value)
{
        if (!value || cJSON_IsNull(value))
                return NULL;
        if (cJSON_IsString(value))
                return strdup(value->valuestring);
        return json_print_canonical(value);
}

static const cJSON *find(const cJSON *receipt, const char *path)
{
        const char *dot = strchr(path, '.');
        char key[32];

        if (!dot)
                return view_get(receipt, path);
        (void) snprintf(key, sizeof(key), "%.*s", (int) (dot - path), path);
        return view_get(view_get(receipt, key), dot + 1);
}

static const struct {
        const char *area, *path;
        bool matters;
} values[] = {
        { "end", "verdict", true },
        { "end", "exit_code", true },
        { "end", "signal", true },
        { "end", "timed_out", true },
        { "end", "core_dumped", true },
        { "end", "match_expected", true },
        { "end", "exec.error", true },
        { "job", "argv", false },
        { "job", "cwd", false },
        { "job", "expected_exit", false },
        { "job", "timeout_sec", false },
        { "job", "posture", false },
        { "job", "policy.name", false },
        { "job", "policy.sha256", false },
        { "job", "exec.resolved", false },
        { "host", "host.kernel", false },
        { "host", "host.systemd", false },
};

static int differ_values(Comparison *c, const cJSON *a, const cJSON *b)
{
        int r = 0;

        for (size_t i = 0; r == 0 && i < ELEMENTSOF(values); i++) {
                const cJSON *x = find(a, values[i].path), *y = find(b, values[i].path);
                _cleanup_free_ char *s = value_text(x), *t = value_text(y);

                if ((x && !s) || (y && !t))
                        return -ENOMEM;
                if (!streq_ptr(s, t))
                        r = differ(c, values[i].area, values[i].path, s, t, values[i].matters, NULL);
        }
        return r;
}

/* --- lists --- */

/* Strings, or one member of each object. */
static int collect_words(const cJSON *list, const char *key, Facts *facts)
{
        const cJSON *item;
        int r = 0;

        cJSON_ArrayForEach(item, list)
        {
                const char *text = key ? view_text(item, key) : cJSON_GetStringValue(item);

                if (text && r == 0)
                        r = facts_add(facts, strdup(text), strdup(""));
        }
        return r == 0 ? facts_count(facts) : r;
}

static int differ_words(Comparison *c, const char *area, const cJSON *a, const cJSON *b, const char *key,
                bool matters)
{
        _cleanup_(facts_clear) Facts x = { 0 }, y = { 0 };
        int r = collect_words(a, key, &x);

        if (r == 0)
                r = collect_words(b, key, &y);
        return r < 0 ? r : differ_facts(c, area, &x, &y, matters);
}

/* What one receipt has looked at and the other has not cannot be told to be the same. */
static int differ_observed(Comparison *c, const char *area, const cJSON *a, const cJSON *b, bool *ret_both)
{
        *ret_both = a && b;
        if ((a != NULL) == (b != NULL))
                return 0;
        return differ(c, area, "observed", a ? "yes" : "no", b ? "yes" : "no", true, NULL);
}

/* --- output --- */

static unsigned count_lines(const char *text, size_t *ret_cut)
{
        unsigned n = 0;

        *ret_cut = strlen(text);
        for (const char *p = text; (p = strchr(p, '\n')); p++)
                if (++n == DIFF_LINES)
                        *ret_cut = (size_t) (p - text) + 1;
        return n;
}

static int add_diff(cJSON *item, const char *before, const char *after)
{
        _cleanup_free_ char *diff = NULL;
        size_t before_size = strlen(before), after_size = strlen(after), cut;
        unsigned lines;

        if (before_size > TEXTDIFF_BYTES_MAX || after_size > TEXTDIFF_BYTES_MAX)
                return 0;
        diff = textdiff(before, before_size, after, after_size, false);
        if (!diff)
                return -ENOMEM;
        lines = count_lines(diff, &cut);
        diff[cut] = '\0';
        if (lines > DIFF_LINES) {
                _cleanup_free_ char *marked = text_printf("%s… %u more lines\n", diff, lines - DIFF_LINES);

                return marked ? json_add_text(item, "diff", marked) : -ENOMEM;
        }
        return *diff ? json_add_text(item, "diff", diff) : 0;
}

static int differ_stream(Comparison *c, const cJSON *a, const cJSON *b, const char *key, const char *info_key)
{
        const cJSON *infos[2] = { view_get(a, info_key), view_get(b, info_key) };
        const char *texts[2] = { view_text(a, key), view_text(b, key) },
                   *digests[2] = { view_text(infos[0], "sha256"), view_text(infos[1], "sha256") };
        char sizes[2][64];
        bool known[2];
        cJSON *item;
        int r;

        if (digests[0] && digests[1] ? streq(digests[0], digests[1]) : streq_ptr(texts[0], texts[1]))
                return 0;
        for (size_t i = 0; i < 2; i++) {
                uint64_t bytes = view_number(infos[i], "bytes");

                if (bytes == UNKNOWN && texts[i])
                        bytes = strlen(texts[i]);
                known[i] = bytes != UNKNOWN;
                (void) snprintf(sizes[i], sizeof(sizes[i]), "%" PRIu64 " bytes%s%.12s", bytes,
                                digests[i] ? ", " : "", digests[i] ? digests[i] : "");
        }
        r = differ(c, "output", key, known[0] ? sizes[0] : NULL, known[1] ? sizes[1] : NULL, true, &item);
        return r == 0 && item && texts[0] && texts[1] ? add_diff(item, texts[0], texts[1]) : r;
}

/* --- files --- */

static char *file_value(const char *kind, const cJSON *node)
{
        const char *type = view_text(node, "type"), *mode = view_text(node, "mode"),
                   *sha256 = view_text(node, "sha256"), *target = view_text(node, "target");
        uint64_t size = view_number(node, "size");
        char bytes[32] = "";

        if (size != UNKNOWN)
                (void) snprintf(bytes, sizeof(bytes), " %" PRIu64 " bytes", size);
        return text_printf("%s %s %s%s%s%.12s%s%.200s", kind, type ? type : "?", mode ? mode : "?", bytes,
                        sha256 ? ", " : "", sha256 ? sha256 : "", target ? " -> " : "", target ? target : "");
}

static int collect_files(const cJSON *fs, Facts *facts)
{
        static const char *const kinds[] = { "added", "removed", "changed" };
        int r = 0;

        for (size_t i = 0; r == 0 && i < ELEMENTSOF(kinds); i++) {
                const cJSON *list = view_get(fs, kinds[i]), *item;

                if (!cJSON_IsArray(list))
                        continue;
                cJSON_ArrayForEach(item, list)
                {
                        const cJSON *after = view_get(item, "after");
                        const char *path = view_text(item, "path_base64");

                        path = path ? path : view_text(item, "path");
                        if (path && r == 0)
                                r = facts_add(facts, strdup(path),
                                                file_value(kinds[i], after ? after : item));
                }
        }
        return r;
}

static int differ_files(Comparison *c, const cJSON *a, const cJSON *b)
{
        _cleanup_(facts_clear) Facts x = { 0 }, y = { 0 };
        const cJSON *fs_a = view_get(a, "fs"), *fs_b = view_get(b, "fs");
        const char *digest_a = view_text(fs_a, "sha256"), *digest_b = view_text(fs_b, "sha256");
        uint64_t before = c->total;
        bool both;
        int r = differ_observed(c, "files", fs_a, fs_b, &both);

        if (r < 0 || !both)
                return r;
        r = collect_files(fs_a, &x);
        if (r == 0)
                r = collect_files(fs_b, &y);
        if (r == 0)
                r = differ_facts(c, "files", &x, &y, true);
        /* More changed than is listed: only the digest over everything tells. */
        if (r == 0 && c->total == before && (view_true(fs_a, "truncated") || view_true(fs_b, "truncated")) &&
                        !streq_ptr(digest_a, digest_b))
                r = differ(c, "files", "what the lists leave out", digest_a, digest_b, true, NULL);
        return r;
}

/* --- processes, sockets, egress --- */

static int collect_processes(const cJSON *list, const char *prefix, Facts *facts)
{
        const cJSON *item;
        int r = 0;

        cJSON_ArrayForEach(item, list)
        {
                const char *program = view_text(item, "program"), *signal = view_text(item, "signal");
                uint64_t code = view_number(item, "exit_code");
                char end[64] = "";

                program = program ? program : view_text(item, "comm");
                if (signal)
                        (void) snprintf(end, sizeof(end), " (%.32s)", signal);
                else if (code != UNKNOWN && code != 0)
                        (void) snprintf(end, sizeof(end), " (exit %" PRIu64 ")", code);
                if (r == 0)
                        r = facts_add(facts, text_printf("%s%s%s", prefix, program ? program : "?", end),
                                        strdup(""));
        }
        return r;
}

static int differ_processes(Comparison *c, const cJSON *a, const cJSON *b)
{
        _cleanup_(facts_clear) Facts x = { 0 }, y = { 0 };
        const cJSON *sides[2] = { view_get(a, "processes"), view_get(b, "processes") };
        Facts *facts[2] = { &x, &y };
        bool both;
        int r = differ_observed(
                        c, "processes", view_get(sides[0], "tree"), view_get(sides[1], "tree"), &both);

        for (size_t i = 0; r == 0 && i < 2; i++) {
                if (both)
                        r = collect_processes(view_get(sides[i], "tree"), "", facts[i]);
                if (r == 0)
                        r = collect_processes(view_get(sides[i], "leftover"), "left over: ", facts[i]);
                if (r == 0)
                        r = facts_count(facts[i]);
        }
        return r < 0 ? r : differ_facts(c, "processes", &x, &y, true);
}

/* A port that the kernel chose is another one each time (ip_local_port_range). */
#define EPHEMERAL_FIRST 32768u

static char *port_text(uint64_t port)
{
        if (port == UNKNOWN || port == 0)
                return strdup("");
        return port >= EPHEMERAL_FIRST ? strdup(":(chosen)") : text_printf(":%" PRIu64, port);
}

static char *socket_text(const cJSON *socket, const char *prefix)
{
        const char *family = view_text(socket, "family"), *protocol = view_text(socket, "protocol"),
                   *address = view_text(socket, "local_address"), *program = view_text(socket, "program"),
                   *name = view_text(socket, "name");
        _cleanup_free_ char *port = port_text(view_number(socket, "local_port"));

        if (!port)
                return NULL;
        return text_printf("%s%s %s %s%s%s%s%s", prefix, family ? family : "?", protocol ? protocol : "",
                        address ? address
                        : name  ? name
                                : "",
                        port, program ? " (" : "", program ? program : "", program ? ")" : "");
}

static int collect_sockets(const cJSON *list, const char *prefix, Facts *facts)
{
        const cJSON *item;
        int r = 0;

        cJSON_ArrayForEach(item, list)
        {
                if (r == 0)
                        r = facts_add(facts, socket_text(item, prefix), strdup(""));
        }
        return r;
}

static int differ_sockets(Comparison *c, const cJSON *a, const cJSON *b)
{
        _cleanup_(facts_clear) Facts x = { 0 }, y = { 0 };
        const cJSON *sides[2] = { view_get(a, "sockets"), view_get(b, "sockets") };
        Facts *facts[2] = { &x, &y };
        bool both;
        int r = differ_observed(c, "sockets", sides[0], sides[1], &both);

        for (size_t i = 0; r == 0 && both && i < 2; i++) {
                r = collect_sockets(view_get(sides[i], "listening"), "listening: ", facts[i]);
                if (r == 0)
                        r = collect_sockets(view_get(sides[i], "leftover"), "left open: ", facts[i]);
                if (r == 0)
                        r = facts_count(facts[i]);
        }
        return r < 0 ? r : differ_facts(c, "sockets", &x, &y, true);
}

/* How often somebody tried is a matter of his patience. */
static int collect_egress(const cJSON *list, Facts *facts)
{
        const cJSON *item;
        int r = 0;

        cJSON_ArrayForEach(item, list)
        {
                const char *protocol = view_text(item, "protocol"), *name = view_text(item, "name"),
                           *address = view_text(item, "address");
                uint64_t port = view_number(item, "port");

                if (r == 0)
                        r = facts_add(facts,
                                        text_printf("%s %s:%" PRIu64, protocol ? protocol : "?",
                                                        name      ? name
                                                        : address ? address
                                                                  : "?",
                                                        port == UNKNOWN ? 0 : port),
                                        strdup(""));
        }
        if (r == 0)
                r = facts_count(facts);
        for (size_t i = 0; r == 0 && i < facts->n; i++) {
                free(facts->items[i].value);
                facts->items[i].value = strdup("tried");
                r = facts->items[i].value ? 0 : -ENOMEM;
        }
        return r;
}

static int differ_egress(Comparison *c, const cJSON *a, const cJSON *b)
{
        _cleanup_(facts_clear) Facts x = { 0 }, y = { 0 };
        const cJSON *list_a = view_get(a, "egress"), *list_b = view_get(b, "egress");
        bool both;
        int r = differ_observed(c, "egress", list_a, list_b, &both);

        if (r == 0 && both)
                r = collect_egress(list_a, &x);
        if (r == 0 && both)
                r = collect_egress(list_b, &y);
        return r < 0 ? r : differ_facts(c, "egress", &x, &y, true);
}

/* --- usage --- */

/* Noise: neither half as much again nor more than the floor. */
static const struct {
        const char *path;
        uint64_t floor;
        char *(*format)(uint64_t value, char buffer[static FORMAT_MAX]);
} usages[] = {
        { "usage.cpu_usec", 200 * USEC_PER_MSEC, format_usec },
        { "usage.memory_peak_bytes", MIB(16), format_bytes },
        { "usage.disk_bytes", MIB(4), format_bytes },
        { "usage.io_write_bytes", MIB(16), format_bytes },
        { "usage.pids_peak", 8, NULL },
        { "duration_ms", 1000, NULL },
};

static const char *usage_text(size_t row, uint64_t value, char buffer[static FORMAT_MAX])
{
        if (usages[row].format)
                return usages[row].format(value, buffer);
        (void) snprintf(buffer, FORMAT_MAX, "%" PRIu64, value);
        return buffer;
}

static int differ_usage(Comparison *c, const cJSON *a, const cJSON *b)
{
        int r = 0;

        for (size_t i = 0; r == 0 && i < ELEMENTSOF(usages); i++) {
                const char *dot = strchr(usages[i].path, '.');
                const cJSON *x = dot ? view_get(a, "usage") : a, *y = dot ? view_get(b, "usage") : b;
                const char *key = dot ? dot + 1 : usages[i].path;
                uint64_t u = view_number(x, key), v = view_number(y, key), low = MIN(u, v), high = MAX(u, v);
                char s[FORMAT_MAX], t[FORMAT_MAX];

                if (u == UNKNOWN || v == UNKNOWN || high - low <= usages[i].floor || high - low <= low / 2)
                        continue;
                r = differ(c, "usage", usages[i].path, usage_text(i, u, s), usage_text(i, v, t), true, NULL);
        }
        return r;
}

/* --- all --- */

static int compare_all(Comparison *c, const cJSON *a, const cJSON *b)
{
        int r = differ_values(c, a, b);

        if (r == 0)
                r = differ_words(c, "reasons", view_get(a, "reasons"), view_get(b, "reasons"), "code", true);
        if (r == 0)
                r = differ_stream(c, a, b, "stdout", "stdout_info");
        if (r == 0)
                r = differ_stream(c, a, b, "stderr", "stderr_info");
        if (r == 0)
                r = differ_files(c, a, b);
        if (r == 0)
                r = differ_processes(c, a, b);
        if (r == 0)
                r = differ_sockets(c, a, b);
        if (r == 0)
                r = differ_egress(c, a, b);
        if (r == 0)
                r = differ_words(c, "limits", find(a, "limits.hits"), find(b, "limits.hits"), "limit", true);
        if (r == 0)
                r = differ_usage(c, a, b);
        if (r == 0)
                r = differ_words(c, "not seen", view_get(a, "blind_spots"), view_get(b, "blind_spots"), NULL,
                                false);
        return r;
}

cJSON *receipt_compare(const cJSON *a, const cJSON *b)
{
        _cleanup_(cJSON_Deletep) cJSON *object = cJSON_CreateObject();
        _cleanup_(cJSON_Deletep) cJSON *list = cJSON_CreateArray();
        Comparison c = { .list = list };

        if (!object || !list || compare_all(&c, a, b) < 0 ||
                        json_add_bool(object, "same", c.mattering == 0) < 0 ||
                        json_add_u64(object, "total", c.total) < 0 ||
                        json_add_bool(object, "truncated", c.total > COMPARE_LISTED_MAX) < 0 ||
                        json_add(object, "differences", TAKE_PTR(list)) < 0)
                return NULL;
        return TAKE_PTR(object);
}

/* --- for people --- */

static int print_difference(FILE *f, const cJSON *item, bool colour)
{
        const char *a = view_text(item, "a"), *b = view_text(item, "b"), *diff = view_text(item, "diff");
        bool matters = view_true(item, "matters"), strong = colour && matters;

        return fprintf(f, "%s%c %-9s  %s:  %s  ->  %s%s\n%s", strong ? "\033[1m" : "", matters ? '!' : ' ',
                               view_text(item, "area"), view_text(item, "name"), a ? a : "(none)",
                               b ? b : "(none)", strong ? "\033[0m" : "", diff ? diff : "") < 0
                               ? -ENOMEM
                               : 0;
}

char *comparison_text(const cJSON *comparison, bool colour)
{
        uint64_t total = view_number(comparison, "total");
        const cJSON *item;
        TextStream stream;
        FILE *f = text_stream_open(&stream);
        int r = 0;

        if (!f)
                return NULL;
        cJSON_ArrayForEach(item, view_get(comparison, "differences"))
        {
                if (r == 0)
                        r = print_difference(f, item, colour);
        }
        if (r == 0 && view_true(comparison, "truncated"))
                (void) fprintf(f, "  … %" PRIu64 " more\n", total - COMPARE_LISTED_MAX);
        return text_stream_close(&stream, r);
}
