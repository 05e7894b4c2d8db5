/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Why a verdict is what it is. One table of codes, each with what a person should do next. */

#include "base/macro.h"

typedef struct Reason {
        const char *code; /* from reason_table */
        char *message;    /* the facts, printable UTF-8 */
} Reason;

typedef struct ReasonList {
        Reason *items;
        size_t n;
} ReasonList;

typedef struct ReasonInfo {
        const char *code; /* stable: scripts match on it */
        const char *next; /* what to do next, one sentence */
} ReasonInfo;

/* For people who read a receipt. */
typedef struct ReasonMeaning {
        const char *code;
        const char *meaning; /* what it says of the command, one sentence */
        const char *check;   /* what to look at before acting, a question; NULL: nothing */
} ReasonMeaning;

/* The row of a code; NULL for one that is not in the table. */
const ReasonInfo *reason_find(const char *code);
const ReasonMeaning *reason_meaning(const char *code);

/* Appends one. The code must be in the table (assert). 0 or -ENOMEM. */
int reason_add(ReasonList *list, const char *code, const char *format, ...) _printf_(3, 4);
bool reason_has(const ReasonList *list, const char *code);
void reason_list_clear(ReasonList *list);
