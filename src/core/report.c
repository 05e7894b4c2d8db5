/* SPDX-License-Identifier: Apache-2.0 */
#include "core/report.h"

#include "base/hash.h"
#include "base/text.h"
#include "core/explain.h"

/* Made by meson from report/. */
extern const char report_page[], report_style[], report_script[];

#define MARK          "@@"
#define PLACE_ROWS    "<!--rows-->\n"
#define PLACE_DETAILS "<!--details-->\n"
#define COMMAND_MAX   400u
#define CODES_MAX     16u

/* --- writing --- */

static int put(FILE *f, const char *text)
{
        return fputs(text, f) < 0 ? -errno : 0;
}

/* Text between tags or in an attribute. */
static int put_text(FILE *f, const char *text)
{
        static const struct {
                char c;
                const char *entity;
        } entities[] = { { '&', "&amp;" }, { '<', "&lt;" }, { '>', "&gt;" }, { '"', "&quot;" },
                { '\'', "&#39;" } };

        for (; *text; text++) {
                const char *entity = NULL;

                for (size_t i = 0; i < ELEMENTSOF(entities); i++)
                        if (entities[i].c == *text)
                                entity = entities[i].entity;
                if (entity ? fputs(entity, f) < 0 : fputc(*text, f) == EOF)
                        return -errno;
        }
        return 0;
}

/* JSON that HTML sees nothing in: neither "</script>" nor "<!--". Outside of strings JSON has none of these
 * characters, so each may be replaced wherever it stands. U+2028 and U+2029 end a line of JavaScript. */
static int put_json(FILE *f, const cJSON *item)
{
        _cleanup_free_ char *text = json_print(item, false);

        for (const char *p = text; p && *p; p++) {
                bool line = startswith(p, "\xe2\x80\xa8") || startswith(p, "\xe2\x80\xa9");
                int r;

                if (line)
                        r = fprintf(f, "\\u202%c", p[2] == '\xa8' ? '8' : '9');
                else if (strchr("<>&", *p))
                        r = fprintf(f, "\\u%04x", (unsigned) *p);
                else
                        r = *p == '\n' ? 0 : fputc(*p, f);
                if (r < 0)
                        return -errno;
                if (line)
                        p += 2;
        }
        return text ? 0 : -ENOMEM;
}

static int put_data(FILE *f, const char *class, const cJSON *item)
{
        int r = fprintf(f, "<script type=\"application/json\" class=\"%s\">", class) < 0 ? -errno : 0;

        if (r == 0)
                r = put_json(f, item);
        return r < 0 ? r : put(f, "</script>\n");
}

/* --- one receipt --- */

typedef struct Cut {
        size_t text, list; /* bytes of a text, elements of a list */
} Cut;

static cJSON *cut_item(const cJSON *item, const Cut *cut);

static bool is_continuation(char c)
{
        return ((unsigned char) c & 0xc0u) == 0x80u;
}

/* Head and tail, at the edges of characters. */
static cJSON *cut_text(const char *text, size_t most)
{
        size_t length = strlen(text), head = most / 2, tail = length - most / 2;
        _cleanup_free_ char *shorter = NULL;

        if (length <= most)
                return cJSON_CreateString(text);
        while (head > 0 && is_continuation(text[head]))
                head--;
        while (is_continuation(text[tail]))
                tail++;
        shorter = text_printf("%.*s\n...[%zu bytes are not in this report]...\n%s", (int) head, text,
                        tail - head, text + tail);
        return shorter ? cJSON_CreateString(shorter) : NULL;
}

static cJSON *cut_list(const cJSON *list, const Cut *cut)
{
        _cleanup_(cJSON_Deletep) cJSON *shorter = cJSON_CreateArray();
        const cJSON *item;
        size_t n = 0;

        if (!shorter)
                return NULL;
        cJSON_ArrayForEach(item, list)
        {
                if (n++ == cut->list)
                        break;
                if (json_add(shorter, NULL, cut_item(item, cut)) < 0)
                        return NULL;
        }
        return TAKE_PTR(shorter);
}

/* What the page does not show only makes it slower: a browser takes a second of its time for ten MiB. Bytes
 * in base64 stand beside a text that is shown; reasons and blind spots come with the explanation. */
static bool is_shown(const char *key)
{
        static const char *const hidden[] = { "blind_spots", "env", "finished_at", "gid", "hard_links",
                "job_sha256", "match_expected", "reasons", "sha256", "uid", "unit" };
        size_t length = strlen(key), suffix = STRLEN("base64");

        for (size_t i = 0; i < ELEMENTSOF(hidden); i++)
                if (streq(key, hidden[i]))
                        return false;
        return length < suffix || !streq(key + length - suffix, "base64");
}

/* "cut" tells the length of each list that lost elements. */
static cJSON *cut_object(const cJSON *object, const Cut *cut)
{
        _cleanup_(cJSON_Deletep) cJSON *shorter = cJSON_CreateObject();
        const cJSON *item;
        cJSON *lengths = NULL;

        if (!shorter)
                return NULL;
        cJSON_ArrayForEach(item, object)
        {
                if (!is_shown(item->string) || cJSON_IsNull(item))
                        continue;
                if (json_add(shorter, item->string, cut_item(item, cut)) < 0)
                        return NULL;
                if (view_length(item) <= cut->list)
                        continue;
                if (!lengths && !(lengths = json_add_object(shorter, "cut")))
                        return NULL;
                if (json_add_u64(lengths, item->string, view_length(item)) < 0)
                        return NULL;
        }
        return TAKE_PTR(shorter);
}

/* The depth is that of the parsed document, which is bounded. */
static cJSON *cut_item(const cJSON *item, const Cut *cut)
{
        if (cJSON_IsString(item))
                return cut_text(item->valuestring, cut->text);
        if (cJSON_IsArray(item))
                return cut_list(item, cut);
        if (cJSON_IsObject(item))
                return cut_object(item, cut);
        return cJSON_Duplicate(item, false);
}

/* As much of the receipt as there is room for. */
static cJSON *receipt_cut(const cJSON *receipt)
{
        static const Cut cuts[] = { { KIB(16), 400 }, { KIB(8), 100 }, { KIB(2), 30 }, { 256, 8 },
                { 64, 1 } };

        for (size_t i = 0; i < ELEMENTSOF(cuts); i++) {
                _cleanup_(cJSON_Deletep) cJSON *shorter = cut_item(receipt, &cuts[i]);
                _cleanup_free_ char *text = shorter ? json_print(shorter, false) : NULL;

                if (!text)
                        return NULL;
                if (strlen(text) <= REPORT_ENTRY_MAX)
                        return TAKE_PTR(shorter);
        }
        return cJSON_CreateObject(); /* ten thousand keys of its own, say */
}

/* The words of the command, for the list and for the search. */
static int add_command(cJSON *row, const cJSON *receipt)
{
        char text[COMMAND_MAX];
        size_t used = 0;
        const cJSON *word;

        text[0] = '\0';
        cJSON_ArrayForEach(word, view_get(receipt, "argv"))
        {
                const char *next = cJSON_GetStringValue(word);

                if (!next || sizeof(text) - used < 40)
                        continue;
                if (used > 0)
                        text[used++] = ' ';
                used += text_excerpt(next, strlen(next), text + used, sizeof(text) - used);
        }
        return json_add_text(row, "command", text);
}

static int add_codes(cJSON *row, const cJSON *receipt)
{
        cJSON *codes = json_add_array(row, "codes");
        const cJSON *reason;

        cJSON_ArrayForEach(reason, view_get(receipt, "reasons"))
        {
                char text[64];
                const char *code = view_text(reason, "code");

                if (!codes || view_length(codes) == CODES_MAX)
                        break;
                text_excerpt(code, strlen(code), text, sizeof(text));
                if (json_add_text(codes, NULL, text) < 0)
                        return -ENOMEM;
        }
        return codes ? 0 : -ENOMEM;
}

static cJSON *row_new(const char *file, const char *verdict)
{
        _cleanup_(cJSON_Deletep) cJSON *row = cJSON_CreateObject();

        if (!row || json_add_text(row, "file", file) < 0 || json_add_text(row, "verdict", verdict) < 0)
                return NULL;
        return TAKE_PTR(row);
}

/* What the list shows and can be filtered by. */
static cJSON *row_of(const cJSON *receipt, const char *file)
{
        _cleanup_(cJSON_Deletep) cJSON *row = row_new(file, view_text(receipt, "verdict"));
        const cJSON *usage = view_get(receipt, "usage"), *policy = view_get(receipt, "policy");
        const char *job = view_text(receipt, "job_id"), *name = view_text(policy, "name");
        char text[160];

        if (!row)
                return NULL;
        text_excerpt(job ? job : "", job ? strlen(job) : 0, text, sizeof(text));
        if (json_add_text(row, "job", text) < 0)
                return NULL;
        text_excerpt(name ? name : "", name ? strlen(name) : 0, text, sizeof(text));
        if (json_add_text(row, "policy", text) < 0 || add_command(row, receipt) < 0 ||
                        add_codes(row, receipt) < 0 ||
                        json_add_u64(row, "duration_ms", view_number(receipt, "duration_ms")) < 0 ||
                        json_add_u64(row, "memory", view_number(usage, "memory_peak_bytes")) < 0 ||
                        json_add_u64(row, "cpu_usec", view_number(usage, "cpu_usec")) < 0)
                return NULL;
        return TAKE_PTR(row);
}

static cJSON *explanation_of(const cJSON *receipt)
{
        static const char *const shown[] = { "sentence", "reasons", "signs", "blind_spots" };
        _cleanup_(cJSON_Deletep) cJSON *all = explain(receipt), *part = cJSON_CreateObject();

        for (size_t i = 0; all && part && i < ELEMENTSOF(shown); i++) {
                cJSON *item = cJSON_DetachItemFromObjectCaseSensitive(all, shown[i]);

                if (item && json_add(part, shown[i], item) < 0)
                        return NULL;
        }
        return all ? TAKE_PTR(part) : NULL;
}

int report_add(FILE *rows, FILE *details, const cJSON *receipt, const cJSON *diffs, const char *file)
{
        _cleanup_(cJSON_Deletep) cJSON *row = row_of(receipt, file), *detail = cJSON_CreateObject();
        int r;

        if (!row || !detail || json_add(detail, "receipt", receipt_cut(receipt)) < 0 ||
                        json_add(detail, "explanation", explanation_of(receipt)) < 0 ||
                        (diffs && json_add(detail, "diffs", cJSON_Duplicate(diffs, true)) < 0))
                return -ENOMEM;
        r = put_data(rows, "row-data", row);
        return r < 0 ? r : put_data(details, "detail-data", detail);
}

int report_add_broken(FILE *rows, FILE *details, const char *file, const char *sentence)
{
        _cleanup_(cJSON_Deletep) cJSON *row = row_new(file, "unreadable"), *none = cJSON_CreateNull();
        int r;

        if (!row || !none || json_add_text(row, "error", sentence) < 0)
                return -ENOMEM;
        r = put_data(rows, "row-data", row);
        return r < 0 ? r : put_data(details, "detail-data", none);
}

/* --- the page around them --- */

/* 'sha256-…' of a text, as a Content-Security-Policy has it. */
static int put_digest(FILE *f, const char *text)
{
        uint8_t digest[SHA256_DIGEST_SIZE];
        _cleanup_free_ char *base64 = NULL;
        Hash hash;

        hash_init(&hash);
        hash_update(&hash, text, strlen(text));
        sha256_digest(&hash, sizeof(digest), digest);
        base64 = base64_encode(digest, sizeof(digest));
        if (!base64)
                return -ENOMEM;
        return fprintf(f, "'sha256-%s'", base64) < 0 ? -errno : 0;
}

static int put_mark(FILE *f, const char *name, size_t length, const char *title)
{
        static const struct {
                const char *name, *text;
                int (*put)(FILE *f, const char *text);
        } marks[] = {
                { "style", report_style, put },
                { "script", report_script, put },
                { "style-digest", report_style, put_digest },
                { "script-digest", report_script, put_digest },
                { "title", NULL, put_text },
        };

        for (size_t i = 0; i < ELEMENTSOF(marks); i++)
                if (strlen(marks[i].name) == length && strncmp(marks[i].name, name, length) == 0)
                        return marks[i].put(f, marks[i].text ? marks[i].text : title);
        assert(false);
        return -EINVAL;
}

/* The page from one place to another, with its marks replaced: "@@name@@". */
static int put_page(FILE *f, const char *from, const char *to, const char *title)
{
        while (from < to) {
                const char *mark = strstr(from, MARK), *end;
                int r;

                if (!mark || mark >= to)
                        return fwrite(from, 1, (size_t) (to - from), f) < (size_t) (to - from) ? -errno : 0;
                end = strstr(mark + STRLEN(MARK), MARK);
                assert(end);
                if (fwrite(from, 1, (size_t) (mark - from), f) < (size_t) (mark - from))
                        return -errno;
                mark += STRLEN(MARK);
                r = put_mark(f, mark, (size_t) (end - mark), title);
                if (r < 0)
                        return r;
                from = end + STRLEN(MARK);
        }
        return 0;
}

/* The page after one place (NULL: from its start) and up to another (NULL: its end). */
static int put_part(FILE *f, const char *after, const char *before, const char *title)
{
        const char *from = after ? strstr(report_page, after) : report_page;
        const char *to = before ? strstr(report_page, before) : report_page + strlen(report_page);

        assert(from && to);
        return put_page(f, from + (after ? strlen(after) : 0), to, title);
}

int report_begin(FILE *f, const char *title)
{
        return put_part(f, NULL, PLACE_ROWS, title);
}

int report_between(FILE *f)
{
        return put_part(f, PLACE_ROWS, PLACE_DETAILS, "");
}

int report_end(FILE *f)
{
        return put_part(f, PLACE_DETAILS, NULL, "");
}
