/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What job and policy files have in common: typed readers for one value each, tables of keys, and sentences
 * that name file, line and key. Pure. */

#include "base/error.h"
#include "base/text.h"
#include "core/limits.h"
#include "json/json.h"

typedef struct Reader {
        const char *file; /* for sentences */
        const char *root; /* "job" or "policy": stands before each key */
        const char *text; /* where lines are looked up; NULL: no line is named */
        size_t size;
        Error *e;
} Reader;

/* Reads value into *target, whose type the reader knows. 0, -EINVAL with a sentence, -ENOMEM. */
typedef int (*ReadFunction)(const Reader *r, const JsonPath *at, const cJSON *value, void *target);

typedef struct ReadRow {
        const char *key;
        ReadFunction read;
        size_t offset; /* of the member in the struct that the object is read into */
} ReadRow;

/* "job.json: line 4: job.timeout_sec: <sentence>"; -EINVAL. */
int read_fail(const Reader *r, const JsonPath *at, const char *format, ...) _printf_(3, 4);
/* "must be <expected>, is a string". */
int read_fail_type(const Reader *r, const JsonPath *at, const char *expected, const cJSON *value);
/* "is not a key of … (did you mean "timeout_sec"?)", or a list of the keys. */
int read_fail_unknown(const Reader *r, const JsonPath *at, const ReadRow *rows, size_t n_rows);

/* The name in names that is likely meant by text, or NULL. */
const char *read_nearest(const char *text, const char *const *names, size_t n);

/* An object whose keys are those of the table. other (may be NULL) gets the keys that are not and returns 1
 * when it took one, 0 to have it refused. */
int read_object(const Reader *r, const JsonPath *at, const cJSON *value, const ReadRow *rows, size_t n_rows,
                ReadFunction other, void *target);

/* --- one value each; the comment names the type of *target --- */
int read_text(const Reader *r, const JsonPath *at, const cJSON *value, void *target); /* char * */
int read_word(const Reader *r, const JsonPath *at, const cJSON *value, void *target); /* char *, not "" */
int read_bool(const Reader *r, const JsonPath *at, const cJSON *value, void *target); /* bool */
int read_duration(const Reader *r, const JsonPath *at, const cJSON *value,
                void *target); /* uint64_t usec > 0 */
int read_limits(const Reader *r, const JsonPath *at, const cJSON *value, void *target); /* Limits */
int read_words(const Reader *r, const JsonPath *at, const cJSON *value, void *target);  /* char **, none "" */
int read_env_names(const Reader *r, const JsonPath *at, const cJSON *value, void *target); /* char ** */
int read_env_values(const Reader *r, const JsonPath *at, const cJSON *value,
                void *target); /* char ** NAME=value */
int read_absolute(
                const Reader *r, const JsonPath *at, const cJSON *value, void *target); /* char *, as given */
int read_absolutes(const Reader *r, const JsonPath *at, const cJSON *value,
                void *target); /* char **, normalised */
int read_change_paths(const Reader *r, const JsonPath *at, const cJSON *value,
                void *target); /* char **, normalised */
int read_sha256(const Reader *r, const JsonPath *at, const cJSON *value, void *target); /* char * */

/* An integer from minimum to maximum. */
int read_integer(const Reader *r, const JsonPath *at, const cJSON *value, uint64_t minimum, uint64_t maximum,
                uint64_t *ret);
/* The index of a string in names. */
int read_choice(const Reader *r, const JsonPath *at, const cJSON *value, const char *const *names, size_t n);

/* A list, each element read by element into one string. *ret is a list even when empty. */
typedef int (*ReadElement)(const Reader *r, const JsonPath *at, const cJSON *value, char **ret);
int read_list(const Reader *r, const JsonPath *at, const cJSON *value, const char *expected,
                ReadElement element, char ***ret);

/* A path, normalised; sentences for "", "..", too long. */
int read_path(const Reader *r, const JsonPath *at, const cJSON *value, char **ret);
bool env_name_is_valid(const char *name);
