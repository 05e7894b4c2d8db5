/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Strict JSON (RFC 8259) over cJSON, which accepts trailing text and duplicate keys, looks keys up regardless
 * of case, cuts strings at \u0000, loses integers above 2^53 and prints invalid UTF-8 raw. */

#include <cjson/cJSON.h>

#include "base/error.h"

#define JSON_DEPTH_MAX 64

typedef enum JsonFlags {
        JSON_STRICT = 0,
        JSON_COMMENTS = 1 << 0, /* "//" to the end of the line is white space */
} JsonFlags;

/* Parses text (not necessarily terminated). name is the file's name for sentences. Refuses: invalid UTF-8, a
 * byte order mark, trailing text, duplicate keys (after unescaping), \u0000, unpaired surrogates, nesting
 * over JSON_DEPTH_MAX, integers beyond ±2^53 and numbers that are not finite. Every sentence has line and
 * column, and the key where there is one. 0, -EINVAL, -ENOMEM. */
int json_parse(const char *text, size_t size, JsonFlags flags, const char *name, cJSON **ret, Error *e);

/* Where a value stands, innermost first: a chain on the reader's stack. key NULL: element index of a list. */
typedef struct JsonPath {
        const struct JsonPath *up; /* NULL: the document itself, which adds nothing to the text */
        const char *key;
        size_t index;
} JsonPath;

#define JSON_PATH_MAX 512

/* "limits.memory", "argv[2]"; "" for the document; cut when too long. Returns buffer. */
char *json_path_format(const JsonPath *path, char buffer[static JSON_PATH_MAX]);

/* The line (from 1) on which the value at path begins ("limits.memory", "argv[2]"), or 0 when there is none.
 * For error sentences only: it scans the text again. */
unsigned json_locate(const char *text, size_t size, const char *path);

/* "a string", "a list", "null"… for sentences. */
const char *json_type_name(const cJSON *item);

/* Member by its exact name, or NULL. */
const cJSON *json_get(const cJSON *object, const char *key);

DEFINE_CLEANUP(cJSON *, cJSON_Delete)

/* --- writing: every function returns 0 or -ENOMEM and adds to object under key (copied), or, with a NULL
 * key, appends to an array --- */
int json_add(cJSON *object, const char *key, cJSON *item); /* takes item, also on failure; NULL is -ENOMEM */
int json_add_u64(cJSON *object, const char *key, uint64_t value); /* exact; UNKNOWN becomes null */
int json_add_i64(cJSON *object, const char *key, int64_t value);
int json_add_bool(cJSON *object, const char *key, bool value);
int json_add_null(cJSON *object, const char *key);
int json_add_text(cJSON *object, const char *key, const char *text); /* any bytes, made UTF-8; NULL: null */
int json_add_bytes(cJSON *object, const char *key, const void *data, size_t size);
int json_add_strv(cJSON *object, const char *key, char *const *list);
cJSON *json_add_object(cJSON *object, const char *key); /* borrowed; NULL when out of memory */
cJSON *json_add_array(cJSON *object, const char *key);

/* The document as text with a newline at its end: indented, or on one line. NULL when out of memory. */
char *json_print(const cJSON *item, bool indented);

/* On one line, members sorted by the bytes of their keys, no newline: equal documents give equal text. */
char *json_print_canonical(const cJSON *item);
