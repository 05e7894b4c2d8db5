/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The options of `qscope run`. Those that stand for fields of a job become a job document, so that they are
 * read by the same reader, with the same rules and sentences, as a job file. */

#include "json/json.h"

typedef struct RunArguments {
        const char *job_path;     /* NULL: argv is given on the command line */
        const char *receipt_path; /* NULL: the default place */
        const char *policy, *state_dir, *stdin_path;
        bool json, quiet, help, tty, keep, no_keep;
        char **command; /* after "--"; NULL: none */
        cJSON *job;     /* what the options say of the job */
} RunArguments;

/* argv[0] is the verb. 0, or -EINVAL with a sentence. */
int run_arguments_parse(int argc, char **argv, RunArguments *ret, Error *e);
void run_arguments_clear(RunArguments *arguments);
void run_arguments_help(FILE *f);
