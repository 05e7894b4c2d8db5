/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A receipt that is read again. It is a file, and may be old, newer than this version, cut, or made by
 * somebody hostile: its form is checked strictly where something relies on it, and every other key is passed
 * over when it is not what was expected. Pure. */

#include "json/json.h"

#define RECEIPT_FILE_MAX MIB(64)
#define RECEIPT_SCHEMA   "qscope.receipt/v1"

/* Reads a receipt's text. -EINVAL with a sentence that names file and key: no JSON, another schema, no known
 * verdict, a key of the wrong type. Keys and codes that this version does not know are no error. */
int receipt_parse(const char *text, size_t size, const char *name, cJSON **ret, Error *e);

/* A member that is there and not null, else NULL. object may be NULL. */
const cJSON *view_get(const cJSON *object, const char *key);
const char *view_text(const cJSON *object, const char *key);
/* A whole number that is not negative, else UNKNOWN. */
uint64_t view_number(const cJSON *object, const char *key);
bool view_true(const cJSON *object, const char *key);
/* Elements of a list; 0 for anything else. */
size_t view_length(const cJSON *list);
/* What to say of the end of a run that has neither exit status nor signal. */
const char *view_no_end(const cJSON *receipt);
