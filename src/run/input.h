/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Opens what a job file names as input. A model wrote the job file and qscope is root, so a path in it must
 * not reach more than the workspace's owner could read. */

#include <sys/types.h>

#include "base/error.h"
#include "core/plan.h"

typedef struct InputScope {
        const char *cwd;     /* the workspace, or NULL; relative paths start here */
        const char *job_dir; /* where the job file lies, or NULL */
        uid_t owner_uid;     /* the workspace's owner */
        gid_t owner_gid;
        char *const *hidden; /* what lies in one of these is not given to a job either */
        bool trusted;        /* a person typed the path: whatever qscope can read */
} InputScope;

/* What a run of this plan reaches. The owner is the caller as long as nobody says whose the workspace is. */
InputScope input_scope(const Plan *plan, const char *job_dir, bool trusted);

/* Opens a regular file for reading. -EACCES with a sentence when the scope does not reach it. */
int input_open(const InputScope *scope, const char *path, int *ret_fd, Error *e);

/* Standard input of a job: a sealed memfd, a file that cannot be written through the descriptor, or
 * /dev/null. */
int input_stdin(const InputScope *scope, const Job *job, int *ret_fd, Error *e);

/* Beforehand: a reason for whatever a job file names that a run could not open. Who is not root opens it with
 * rights of their own, and what these do not reach is not told. 0 or -ENOMEM. */
int input_look(const Plan *plan, const char *job_dir, ReasonList *ret);
