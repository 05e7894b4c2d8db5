/* SPDX-License-Identifier: Apache-2.0 */
/* Building and printing trees. The printer is our own: cJSON's prints invalid UTF-8 raw, rounds integers
 * above 10^15 and takes the decimal point from the locale. Knows nothing of what the documents mean. */

#include "json/json.h"

#include <inttypes.h>
#include <locale.h>
#include <math.h>

#include "base/text.h"

#define EXACT_MAX (UINT64_C(1) << 53)

const char *json_type_name(const cJSON *item)
{
        if (cJSON_IsString(item))
                return "a string";
        if (cJSON_IsNumber(item))
                return "a number";
        if (cJSON_IsArray(item))
                return "a list";
        if (cJSON_IsObject(item))
                return "an object";
        if (cJSON_IsTrue(item))
                return "true";
        return cJSON_IsFalse(item) ? "false" : "null";
}

const cJSON *json_get(const cJSON *object, const char *key)
{
        return cJSON_IsObject(object) ? cJSON_GetObjectItemCaseSensitive(object, key) : NULL;
}

/* --- building --- */

int json_add(cJSON *object, const char *key, cJSON *item)
{
        cJSON_bool added;

        if (!object || !item) {
                cJSON_Delete(item);
                return -ENOMEM;
        }
        added = key ? cJSON_AddItemToObject(object, key, item) : cJSON_AddItemToArray(object, item);
        if (!added)
                cJSON_Delete(item);
        return added ? 0 : -ENOMEM;
}

int json_add_u64(cJSON *object, const char *key, uint64_t value)
{
        char digits[32];

        if (value == UNKNOWN)
                return json_add_null(object, key);
        if (value <= EXACT_MAX)
                return json_add(object, key, cJSON_CreateNumber((double) value));
        (void) snprintf(digits, sizeof(digits), "%" PRIu64, value);
        return json_add(object, key, cJSON_CreateRaw(digits));
}

int json_add_i64(cJSON *object, const char *key, int64_t value)
{
        char digits[32];

        if (value >= -(int64_t) EXACT_MAX && value <= (int64_t) EXACT_MAX)
                return json_add(object, key, cJSON_CreateNumber((double) value));
        (void) snprintf(digits, sizeof(digits), "%" PRId64, value);
        return json_add(object, key, cJSON_CreateRaw(digits));
}

int json_add_bool(cJSON *object, const char *key, bool value)
{
        return json_add(object, key, cJSON_CreateBool(value));
}

int json_add_null(cJSON *object, const char *key)
{
        return json_add(object, key, cJSON_CreateNull());
}

int json_add_text(cJSON *object, const char *key, const char *text)
{
        return text ? json_add_bytes(object, key, text, strlen(text)) : json_add_null(object, key);
}

int json_add_bytes(cJSON *object, const char *key, const void *data, size_t size)
{
        _cleanup_free_ char *text = text_to_utf8(data, size, NULL);

        return json_add(object, key, text ? cJSON_CreateString(text) : NULL);
}

int json_add_strv(cJSON *object, const char *key, char *const *list)
{
        cJSON *array = json_add_array(object, key);
        int r = array ? 0 : -ENOMEM;

        for (size_t i = 0; r >= 0 && list && list[i]; i++)
                r = json_add_text(array, NULL, list[i]);
        return r;
}

cJSON *json_add_object(cJSON *object, const char *key)
{
        cJSON *item = cJSON_CreateObject();

        return json_add(object, key, item) < 0 ? NULL : item;
}

cJSON *json_add_array(cJSON *object, const char *key)
{
        cJSON *item = cJSON_CreateArray();

        return json_add(object, key, item) < 0 ? NULL : item;
}

/* --- printing --- */

typedef struct Printer {
        FILE *out;
        bool indented, sorted;
        int error;
} Printer;

static void print_value(Printer *p, const cJSON *item, unsigned depth);

/* A memory stream that cannot grow drops bytes without setting its error flag; only the call tells. */
static void put_bytes(Printer *p, const void *data, size_t size)
{
        if (fwrite(data, 1, size, p->out) != size)
                p->error = -ENOMEM;
}

static void put(Printer *p, const char *text)
{
        put_bytes(p, text, strlen(text));
}

static void print_newline(Printer *p, unsigned depth)
{
        if (!p->indented)
                return;
        put(p, "\n");
        for (unsigned i = 0; i < depth; i++)
                put(p, "  ");
}

static void print_control(Printer *p, uint8_t c)
{
        static const char from[] = "\b\f\n\r\t", to[] = "bfnrt";
        const char *found = c ? strchr(from, c) : NULL;
        char text[8];

        if (found)
                (void) snprintf(text, sizeof(text), "\\%c", to[found - from]);
        else
                (void) snprintf(text, sizeof(text), "\\u%04x", c);
        put(p, text);
}

/* Bytes that are not UTF-8 become U+FFFD: whatever built the tree, what is printed is JSON. */
static void print_string(Printer *p, const char *text)
{
        const uint8_t *bytes = (const uint8_t *) text;
        size_t size = strlen(text), n;

        put(p, "\"");
        for (size_t i = 0; i < size; i += n) {
                n = utf8_sequence(bytes + i, size - i);
                if (n == 0) {
                        put(p, "\xef\xbf\xbd");
                        n = 1;
                } else if (bytes[i] < 0x20 || bytes[i] == 0x7f) {
                        print_control(p, bytes[i]);
                } else {
                        if (bytes[i] == '"' || bytes[i] == '\\')
                                put(p, "\\");
                        put_bytes(p, bytes + i, n);
                }
        }
        put(p, "\"");
}

/* The shortest text that reads back as the same double. */
static void print_number(Printer *p, double value)
{
        char text[64];

        if (!isfinite(value)) {
                put(p, "null");
                return;
        }
        if (value == trunc(value) && fabs(value) <= (double) EXACT_MAX) {
                (void) snprintf(text, sizeof(text), "%" PRId64, (int64_t) value);
                put(p, text);
                return;
        }
        for (int digits = 15; digits <= 17; digits++) {
                (void) snprintf(text, sizeof(text), "%.*g", digits, value);
                if (strtod(text, NULL) == value)
                        break;
        }
        put(p, text);
        /* Beyond EXACT_MAX an integer is refused by our own reader, and it was none. */
        if (text[strspn(text, "-0123456789")] == '\0')
                put(p, ".0");
}

static int compare_members(const void *a, const void *b)
{
        const cJSON *const *x = a, *const *y = b;

        return strcmp((*x)->string, (*y)->string);
}

/* The children in the order in which they are to be printed; NULL when out of memory or there are none. */
static const cJSON **collect(Printer *p, const cJSON *item, size_t *ret_n)
{
        const cJSON **list, *child;
        size_t n = 0;

        cJSON_ArrayForEach(child, item) n++;
        *ret_n = n;
        if (n == 0)
                return NULL;
        list = calloc(n, sizeof(*list));
        if (!list) {
                p->error = -ENOMEM;
                return NULL;
        }
        n = 0;
        cJSON_ArrayForEach(child, item) list[n++] = child;
        if (p->sorted && cJSON_IsObject(item))
                qsort(list, n, sizeof(*list), compare_members);
        return list;
}

static void print_container(Printer *p, const cJSON *item, unsigned depth)
{
        bool object = cJSON_IsObject(item);
        size_t n;
        _cleanup_free_ const cJSON **children = collect(p, item, &n);

        put(p, object ? "{" : "[");
        for (size_t i = 0; children && i < n; i++) {
                if (i > 0)
                        put(p, ",");
                print_newline(p, depth + 1);
                if (object) {
                        print_string(p, children[i]->string ? children[i]->string : "");
                        put(p, p->indented ? ": " : ":");
                }
                print_value(p, children[i], depth + 1);
        }
        if (n > 0)
                print_newline(p, depth);
        put(p, object ? "}" : "]");
}

static void print_value(Printer *p, const cJSON *item, unsigned depth)
{
        if (cJSON_IsArray(item) || cJSON_IsObject(item))
                print_container(p, item, depth);
        else if (cJSON_IsString(item))
                print_string(p, item->valuestring);
        else if (cJSON_IsRaw(item))
                put(p, item->valuestring);
        else if (cJSON_IsNumber(item))
                print_number(p, item->valuedouble);
        else
                put(p, cJSON_IsTrue(item) ? "true" : cJSON_IsFalse(item) ? "false" : "null");
}

static char *print(const cJSON *item, bool indented, bool sorted, const char *end)
{
        Printer p = { .indented = indented, .sorted = sorted };
        locale_t saved;
        TextStream stream;

        p.out = text_stream_open(&stream);
        if (!p.out)
                return NULL;
        saved = uselocale(newlocale(LC_ALL_MASK, "C", (locale_t) 0)); /* static, cannot fail for "C" */
        print_value(&p, item, 0);
        (void) uselocale(saved);
        put(&p, end);
        return text_stream_close(&stream, p.error);
}

char *json_print(const cJSON *item, bool indented)
{
        return print(item, indented, false, "\n");
}

char *json_print_canonical(const cJSON *item)
{
        return print(item, false, true, "");
}
