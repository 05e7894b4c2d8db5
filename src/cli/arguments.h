/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Options of the verbs that take many files: "--csv FILE", "--csv=FILE", "-j4". */

#include "base/error.h"

typedef enum ArgumentKind {
        ARGUMENT_SWITCH, /* bool */
        ARGUMENT_VALUE,  /* const char *; the last one counts */
        ARGUMENT_LIST,   /* char **, ended by NULL; each is appended */
} ArgumentKind;

typedef struct Argument {
        const char *name;
        ArgumentKind kind;
        size_t offset; /* in the struct that they are read into */
} Argument;

/* Reads what begins with "-" into target; the rest of argv moves to its front, ended by NULL. "--": what
 * follows is no option. Returns how many are left, or -EINVAL with a sentence. */
int arguments_parse(char **argv, const Argument *table, size_t n, void *target, Error *e);
