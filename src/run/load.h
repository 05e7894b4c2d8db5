/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Finds and reads job and policy files. */

#include "core/job.h"
#include "core/policy.h"

/* Reads a job file ("-": standard input). -EINVAL and others with a sentence. */
int load_job(const char *path, Job **ret, Error *e);

/* Looks a policy up by name in /etc/qscope/policies, /usr/local/lib/qscope/policies and
 * /usr/lib/qscope/policies: NAME.json of the first that has it, with the drop-ins the files in NAME.json.d of
 * all, sorted by name, an earlier directory's masking a later one's of the same name. -ENOENT: there is none.
 */
int load_policy(const char *name, Policy **ret, Error *e);
