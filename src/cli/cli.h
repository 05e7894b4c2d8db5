/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the verbs share. One verb a file; each takes its own arguments (argv[0] is the verb) and returns the
 * exit status. */

#include "base/error.h"

#define EXIT_USAGE   2
#define EXIT_REFUSED 3
#define EXIT_HOST    4

int cli_run(int argc, char **argv);
int cli_batch(int argc, char **argv);
int cli_eval(int argc, char **argv);
int cli_check(int argc, char **argv);
int cli_plan(int argc, char **argv);
int cli_policy(int argc, char **argv);
int cli_doctor(int argc, char **argv);
int cli_explain(int argc, char **argv);
int cli_report(int argc, char **argv);
int cli_clean(int argc, char **argv);
int cli_apply(int argc, char **argv);
int cli_diff(int argc, char **argv);
int cli_log(int argc, char **argv);

/* "qscope: SENTENCE" on standard error; returns status. */
int cli_fail(int status, const Error *e);
int cli_usage(const char *verb, const char *format, ...) _printf_(2, 3);

/* To standard output; NULL: there was no memory for the text, -ENOMEM. Otherwise 0: that standard output
 * could not be written is seen when the verb has ended, and is an error of all of them then. */
int cli_put(const char *text);

/* Whether standard output is a terminal that shows colours (NO_COLOR, TERM). */
bool cli_wants_colour(void);

/* The directory of --receipts; NULL: none was given. 0, or a negative errno with a sentence. */
int cli_make_receipts(const char *path, Error *e);
