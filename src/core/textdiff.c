/* SPDX-License-Identifier: Apache-2.0 */
/* E. W. Myers, "An O(ND) Difference Algorithm and Its Variations" (1986): the shortest script, found by how
 * far each diagonal can be followed with d edits. Where the texts differ in too much for that, what is
 * between their common beginning and end is shown as a whole. */
#include "core/textdiff.h"

#include "base/array.h"
#include "base/text.h"

#define EDITS_MAX 1000 /* memory grows with its square: 4 MiB */
#define CONTEXT   3

typedef struct Line {
        const char *text;
        size_t size; /* with its newline */
} Line;

typedef struct Lines {
        Line *items;
        size_t n;
} Lines;

typedef struct Diff {
        Lines a, b;
        bool *removed, *added; /* for each line of a, of b */
        size_t head, tail;     /* common lines at both ends */
} Diff;

typedef struct Out {
        FILE *f;
        unsigned lines, more; /* printed, and left out */
        bool colour;
} Out;

bool textdiff_is_text(const char *data, size_t size)
{
        return utf8_is_valid(data, size) && !memchr(data, '\0', size);
}

static int split(const char *data, size_t size, Lines *ret)
{
        size_t room = 0;

        for (const char *p = data, *end = data + size; p < end;) {
                const char *newline = memchr(p, '\n', (size_t) (end - p));
                size_t length = newline ? (size_t) (newline - p) + 1 : (size_t) (end - p);
                Line *items = array_grow(ret->items, ret->n, &room, sizeof(*items));

                if (!items)
                        return -ENOMEM;
                ret->items = items;
                items[ret->n++] = (Line){ p, length };
                p += length;
        }
        return 0;
}

static bool same(const Diff *d, size_t i, size_t k)
{
        const Line *a = &d->a.items[i], *b = &d->b.items[k];

        return a->size == b->size && memcmp(a->text, b->text, a->size) == 0;
}

static void trim(Diff *d)
{
        while (d->head < d->a.n && d->head < d->b.n && same(d, d->head, d->head))
                d->head++;
        while (d->tail < d->a.n - d->head && d->tail < d->b.n - d->head &&
                        same(d, d->a.n - 1 - d->tail, d->b.n - 1 - d->tail))
                d->tail++;
}

static void mark_whole(Diff *d)
{
        for (size_t i = d->head; i < d->a.n - d->tail; i++)
                d->removed[i] = true;
        for (size_t k = d->head; k < d->b.n - d->tail; k++)
                d->added[k] = true;
}

/* trace[d] holds, for the diagonals -d to d, how far in a was got. */
static int32_t reached(int32_t **trace, int d, int k)
{
        return k < -d || k > d ? -1 : trace[d][k + d];
}

/* Whether the step onto diagonal k with d edits is an insertion. */
static bool goes_down(int32_t **trace, int d, int k)
{
        return k == -d || (k != d && reached(trace, d - 1, k - 1) < reached(trace, d - 1, k + 1));
}

static void walk_back(Diff *diff, int32_t **trace, int d, int k)
{
        for (; d > 0; d--) {
                bool down = goes_down(trace, d, k);
                int before = down ? k + 1 : k - 1;
                int32_t x = reached(trace, d - 1, before);

                if (down)
                        diff->added[diff->head + (size_t) (x - before)] = true;
                else
                        diff->removed[diff->head + (size_t) x] = true;
                k = before;
        }
}

/* 1: found; 0: more than EDITS_MAX. */
static int search(Diff *diff, int32_t **trace)
{
        int32_t n = (int32_t) (diff->a.n - diff->head - diff->tail),
                m = (int32_t) (diff->b.n - diff->head - diff->tail);

        for (int d = 0; d <= EDITS_MAX; d++) {
                trace[d] = calloc(2 * (size_t) d + 1, sizeof(**trace));
                if (!trace[d])
                        return -ENOMEM;
                for (int k = -d; k <= d; k += 2) {
                        int32_t x = d == 0                   ? 0
                                    : goes_down(trace, d, k) ? reached(trace, d - 1, k + 1)
                                                             : reached(trace, d - 1, k - 1) + 1;

                        while (x < n && x - k >= 0 && x - k < m &&
                                        same(diff, diff->head + (size_t) x, diff->head + (size_t) (x - k)))
                                x++;
                        trace[d][k + d] = x;
                        if (x >= n && x - k >= m) {
                                walk_back(diff, trace, d, k);
                                return 1;
                        }
                }
        }
        return 0;
}

static int compare(Diff *d)
{
        _cleanup_free_ int32_t **trace = calloc(EDITS_MAX + 1, sizeof(*trace));
        int r = trace ? search(d, trace) : -ENOMEM;

        for (int i = 0; trace && i <= EDITS_MAX; i++)
                free(trace[i]);
        if (r == 0)
                mark_whole(d);
        return r < 0 ? r : 0;
}

/* --- printing --- */

static const char *sign_colour(char sign)
{
        return sign == '-' ? "\033[31m" : sign == '+' ? "\033[32m" : sign == '@' ? "\033[36m" : "";
}

/* Tabs stay: they move the cursor and do no more. */
static char *escape_line(const char *text, size_t size)
{
        char *escaped = malloc(4 * size + 1);
        size_t used = 0;

        for (size_t i = 0; escaped && i < size;) {
                size_t tab = i;

                while (tab < size && text[tab] != '\t')
                        tab++;
                used += text_escape(text + i, tab - i, escaped + used, 4 * size + 1 - used);
                if (tab < size)
                        escaped[used++] = '\t';
                i = tab + 1;
        }
        if (escaped)
                escaped[used] = '\0';
        return escaped;
}

/* Whatever could not be written is seen at the end. */
static int put_line(Out *out, char sign, const Line *line)
{
        bool ended = line->size > 0 && line->text[line->size - 1] == '\n', coloured;
        _cleanup_free_ char *text = NULL;

        if (out->lines >= TEXTDIFF_LINES_MAX) {
                out->more++;
                return 0;
        }
        text = escape_line(line->text, line->size - ended);
        if (!text)
                return -ENOMEM;
        out->lines++;
        coloured = out->colour && sign != ' ';
        (void) fprintf(out->f, "%s%c%s%s\n%s", coloured ? sign_colour(sign) : "", sign, text,
                        coloured ? "\033[0m" : "", ended ? "" : "\\ No newline at end of file\n");
        return 0;
}

typedef struct Position {
        size_t i, k;
} Position;

static bool at_change(const Diff *d, Position p)
{
        return (p.i < d->a.n && d->removed[p.i]) || (p.k < d->b.n && d->added[p.k]);
}

static bool at_end(const Diff *d, Position p)
{
        return p.i >= d->a.n && p.k >= d->b.n;
}

static void step_over_change(const Diff *d, Position *p)
{
        while (p->i < d->a.n && d->removed[p->i])
                p->i++;
        while (p->k < d->b.n && d->added[p->k])
                p->k++;
}

/* Behind the last change that is near enough, and its context. */
static Position hunk_end(const Diff *d, Position p)
{
        Position end = p;

        while (!at_end(d, p)) {
                size_t equal = 0;

                step_over_change(d, &p);
                end = p;
                while (!at_end(d, p) && !at_change(d, p) && equal <= 2 * CONTEXT)
                        p.i++, p.k++, equal++;
                if (equal > 2 * CONTEXT || at_end(d, p))
                        break;
        }
        for (size_t n = 0; n < CONTEXT && !at_end(d, end); n++)
                end.i++, end.k++;
        return end;
}

static int put_hunk(Out *out, const Diff *d, Position p, Position end)
{
        size_t n = end.i - p.i, m = end.k - p.k;
        int r = 0;

        if (out->lines < TEXTDIFF_LINES_MAX)
                (void) fprintf(out->f, "%s@@ -%zu,%zu +%zu,%zu @@%s\n", out->colour ? sign_colour('@') : "",
                                p.i + (n > 0), n, p.k + (m > 0), m, out->colour ? "\033[0m" : "");
        while (r == 0 && (p.i < end.i || p.k < end.k)) {
                if (p.i < end.i && d->removed[p.i])
                        r = put_line(out, '-', &d->a.items[p.i++]);
                else if (p.k < end.k && d->added[p.k])
                        r = put_line(out, '+', &d->b.items[p.k++]);
                else
                        r = put_line(out, ' ', &d->a.items[p.i++]), p.k++;
        }
        return r;
}

static int put_all(Out *out, const Diff *d)
{
        Position p = { 0, 0 };
        int r = 0;

        while (r == 0 && !at_end(d, p)) {
                Position start, end;

                while (!at_end(d, p) && !at_change(d, p))
                        p.i++, p.k++;
                if (at_end(d, p))
                        break;
                start = p;
                for (size_t n = 0; n < CONTEXT && start.i > 0 && start.k > 0; n++)
                        start.i--, start.k--;
                end = hunk_end(d, p);
                r = put_hunk(out, d, start, end);
                p = end;
        }
        if (r == 0 && out->more > 0)
                (void) fprintf(out->f, "… %u more lines\n", out->more);
        return r;
}

char *textdiff(const char *before, size_t before_size, const char *after, size_t after_size, bool colour)
{
        TextStream stream;
        Out out = { .f = text_stream_open(&stream), .colour = colour };
        Diff d = { 0 };
        int r = out.f ? split(before, before_size, &d.a) : -ENOMEM;

        if (r == 0)
                r = split(after, after_size, &d.b);
        if (r == 0) {
                d.removed = calloc(d.a.n + 1, sizeof(bool));
                d.added = calloc(d.b.n + 1, sizeof(bool));
                r = d.removed && d.added ? 0 : -ENOMEM;
        }
        if (r == 0) {
                trim(&d);
                r = compare(&d);
        }
        if (r == 0)
                r = put_all(&out, &d);
        free(d.a.items);
        free(d.b.items);
        free(d.removed);
        free(d.added);
        return text_stream_close(&stream, r);
}
