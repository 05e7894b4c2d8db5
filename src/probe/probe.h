/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the files of qscope-probe share. It is static and needs nothing but libc: it runs inside jobs of the
 * selftest. A deed returns one of these, which is the exit status. */

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEED_DONE    0
#define DEED_USAGE   2
#define DEED_REFUSED 9 /* the kernel said no, or nobody answered */

typedef int (*DeedFunction)(char **arguments); /* as many as the table says, then NULL */

typedef struct Deed {
        const char *name, *arguments;
        int n_arguments; /* -1: any number, at least one */
        DeedFunction call;
} Deed;

/* "refused: STEP: reason" on standard output; returns DEED_REFUSED. */
int deed_refused(const char *step);

/* Runs the deed that the words name. */
int deed_run(char **words);

extern const Deed net_deeds[], process_deeds[], host_deeds[]; /* each ended by a name of NULL */
