/* SPDX-License-Identifier: Apache-2.0 */
/* The strict reader. It scans RFC 8259 itself and builds the tree with cJSON's constructors: cJSON's own
 * parser cannot say where an error is, depends on the locale's decimal point and cuts numbers after 63
 * characters. Recursion is bounded by JSON_DEPTH_MAX, memory by a small multiple of the text. Knows nothing
 * of what the documents mean. */

#include "json/scanner.h"

static int scan_value(Scanner *s, const JsonPath *path, unsigned depth, cJSON **ret);

typedef struct Key {
        const char *text; /* belongs to the tree */
        size_t offset;
} Key;

static int compare_keys(const void *a, const void *b)
{
        const Key *x = a, *y = b;
        int r = strcmp(x->text, y->text);

        return r != 0 ? r : x->offset < y->offset ? -1 : 1;
}

/* Sorts, so that 100,000 keys cost no more than n log n. */
static int refuse_duplicates(Scanner *s, const JsonPath *path, Key *keys, size_t n)
{
        if (n < 2)
                return 0;
        qsort(keys, n, sizeof(Key), compare_keys);
        for (size_t i = 1; i < n; i++)
                if (streq(keys[i - 1].text, keys[i].text)) {
                        JsonPath at = { .up = path, .key = keys[i].text };

                        return scanner_fail(s, &at, keys[i].offset, "this key is given twice in one object");
                }
        return 0;
}

static int keys_append(Key **keys, size_t *n, const char *text, size_t offset)
{
        if ((*n & (*n - 1)) == 0) { /* 0, 1, 2, 4, 8, … are full */
                Key *larger = reallocarray(*keys, *n > 0 ? *n * 2 : 1, sizeof(Key));

                if (!larger)
                        return -ENOMEM;
                *keys = larger;
        }
        (*keys)[(*n)++] = (Key){ .text = text, .offset = offset };
        return 0;
}

/* "key": value, added to object. */
static int scan_member(Scanner *s, const JsonPath *path, unsigned depth, cJSON *object)
{
        _cleanup_(cJSON_Deletep) cJSON *item = NULL;
        _cleanup_free_ char *key = NULL;
        JsonPath at = { .up = path };
        int r;

        if (s->at >= s->size || s->text[s->at] != '"')
                return scanner_fail_expected(s, path, "a key in double quotes");
        r = scanner_string(s, path, &key);
        if (r < 0)
                return r;
        at.key = key;
        r = scanner_skip_space(s, &at);
        if (r < 0)
                return r;
        if (!scanner_accept(s, ':'))
                return scanner_fail_expected(s, &at, "':' after the key");
        r = scan_value(s, &at, depth, &item);
        if (r < 0)
                return r;
        return json_add(object, key, TAKE_PTR(item));
}

/* After a member or element: 1 to go on, 0 at the end. */
static int scan_separator(Scanner *s, const JsonPath *path, char end)
{
        char expected[] = "',' or ' '";
        int r;

        r = scanner_skip_space(s, path);
        if (r < 0)
                return r;
        if (scanner_accept(s, end))
                return 0;
        if (!scanner_accept(s, ',')) {
                expected[8] = end;
                return scanner_fail_expected(s, path, expected);
        }
        r = scanner_skip_space(s, path);
        if (r < 0)
                return r;
        if (s->at < s->size && s->text[s->at] == (uint8_t) end)
                return scanner_fail(s, path, s->at, "a comma before '%c'", end);
        return 1;
}

static int scan_object(Scanner *s, const JsonPath *path, unsigned depth, cJSON **ret)
{
        _cleanup_(cJSON_Deletep) cJSON *object = cJSON_CreateObject();
        _cleanup_free_ Key *keys = NULL;
        size_t n = 0, offset;
        int r;

        if (!object)
                return -ENOMEM;
        s->at++;
        r = scanner_skip_space(s, path);
        if (r < 0)
                return r;
        for (r = scanner_accept(s, '}') ? 0 : 1; r > 0; r = scan_separator(s, path, '}')) {
                offset = s->at;
                r = scan_member(s, path, depth, object);
                if (r < 0)
                        return r;
                r = keys_append(&keys, &n, object->child->prev->string, offset); /* the last child */
                if (r < 0)
                        return r;
        }
        if (r == 0)
                r = refuse_duplicates(s, path, keys, n);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(object);
        return 0;
}

static int scan_list(Scanner *s, const JsonPath *path, unsigned depth, cJSON **ret)
{
        _cleanup_(cJSON_Deletep) cJSON *list = cJSON_CreateArray();
        JsonPath at = { .up = path };
        int r;

        if (!list)
                return -ENOMEM;
        s->at++;
        r = scanner_skip_space(s, path);
        if (r < 0)
                return r;
        for (r = scanner_accept(s, ']') ? 0 : 1; r > 0; r = scan_separator(s, path, ']'), at.index++) {
                cJSON *item = NULL;

                r = scan_value(s, &at, depth, &item);
                if (r < 0)
                        return r;
                r = json_add(list, NULL, item);
                if (r < 0)
                        return r;
        }
        if (r < 0)
                return r;
        *ret = TAKE_PTR(list);
        return 0;
}

static int scan_word(Scanner *s, const JsonPath *path, cJSON **ret)
{
        static const char *const words[] = { "true", "false", "null" };

        for (size_t i = 0; i < ELEMENTSOF(words); i++) {
                size_t length = strlen(words[i]);

                if (s->size - s->at < length || memcmp(s->text + s->at, words[i], length) != 0)
                        continue;
                s->at += length;
                *ret = i == 0 ? cJSON_CreateTrue() : i == 1 ? cJSON_CreateFalse() : cJSON_CreateNull();
                return *ret ? 0 : -ENOMEM;
        }
        return scanner_fail_expected(s, path, "a value");
}

static int scan_text(Scanner *s, const JsonPath *path, cJSON **ret)
{
        _cleanup_free_ char *text = NULL;
        int r;

        r = scanner_string(s, path, &text);
        if (r < 0)
                return r;
        *ret = cJSON_CreateString(text);
        return *ret ? 0 : -ENOMEM;
}

static int scan_number(Scanner *s, const JsonPath *path, cJSON **ret)
{
        double value;
        int r;

        r = scanner_number(s, path, &value);
        if (r < 0)
                return r;
        *ret = cJSON_CreateNumber(value);
        return *ret ? 0 : -ENOMEM;
}

static int scan_value(Scanner *s, const JsonPath *path, unsigned depth, cJSON **ret)
{
        char where[JSON_PATH_MAX];
        uint8_t c;
        int r;

        r = scanner_skip_space(s, path);
        if (r < 0)
                return r;
        if (s->wanted && streq(json_path_format(path, where), s->wanted)) {
                s->found = s->at;
                return -ECANCELED;
        }
        if (s->at >= s->size)
                return scanner_fail_expected(s, path, "a value");
        c = s->text[s->at];
        if ((c == '{' || c == '[') && depth >= JSON_DEPTH_MAX)
                return scanner_fail(s, path, s->at, "nested more than %d deep", JSON_DEPTH_MAX);
        if (c == '{')
                return scan_object(s, path, depth + 1, ret);
        if (c == '[')
                return scan_list(s, path, depth + 1, ret);
        if (c == '"')
                return scan_text(s, path, ret);
        if (c == '-' || (c >= '0' && c <= '9'))
                return scan_number(s, path, ret);
        return scan_word(s, path, ret);
}

static int scan_document(Scanner *s, cJSON **ret)
{
        _cleanup_(cJSON_Deletep) cJSON *item = NULL;
        const JsonPath document = { .up = NULL };
        int r;

        if (s->size >= 3 && memcmp(s->text, "\xef\xbb\xbf", 3) == 0)
                return scanner_fail(s, NULL, 0,
                                "begins with a byte order mark: save the file as UTF-8 without it");
        r = scanner_skip_space(s, NULL);
        if (r < 0)
                return r;
        if (s->at >= s->size)
                return scanner_fail(s, NULL, 0, "is empty: expected a JSON document");
        r = scan_value(s, &document, 0, &item);
        if (r < 0)
                return r;
        r = scanner_skip_space(s, NULL);
        if (r < 0)
                return r;
        if (s->at < s->size)
                return scanner_fail(s, NULL, s->at, "text after the end of the document");
        *ret = TAKE_PTR(item);
        return 0;
}

int json_parse(const char *text, size_t size, JsonFlags flags, const char *name, cJSON **ret, Error *e)
{
        Scanner s = { .text = (const uint8_t *) text, .size = size, .flags = flags, .name = name, .e = e };
        int r = scan_document(&s, ret);

        return r == -ENOMEM ? error_set(e, r, "%s: out of memory", name) : r;
}

unsigned json_locate(const char *text, size_t size, const char *path)
{
        Scanner s = { .text = (const uint8_t *) text, .size = size, .flags = JSON_COMMENTS, .wanted = path };
        _cleanup_(cJSON_Deletep) cJSON *item = NULL;
        unsigned line, column;

        if (scan_document(&s, &item) != -ECANCELED)
                return 0;
        scanner_line_column(&s, s.found, &line, &column);
        return line;
}
