/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Finds and reads job and policy files. */

#include "core/job.h"
#include "core/policy.h"

/* Reads a job file ("-": standard input). -EINVAL and others with a sentence. */
int load_job(const char *path, Job **ret, Error *e);

/* Reads a receipt ("-": standard input), at most RECEIPT_FILE_MAX bytes of it; with its text, for whoever
 * asks whether it is what was written. */
int load_receipt(const char *path, cJSON **ret, Error *e);
int load_receipt_text(const char *path, char **ret_text, size_t *ret_size, cJSON **ret, Error *e);

/* Where policies are looked up: /etc/qscope/policies, /usr/local/lib/qscope/policies,
 * /usr/lib/qscope/policies. Ends with NULL. */
extern const char *const policy_directories[];

/* Looks a policy up by name: NAME.json of the first directory that has it, with the drop-ins NAME.json.d of
 * all of them, sorted by name, an earlier directory's masking a later one's of the same name; before all this
 * what it extends, found in the same way. As with units, an empty file or a link to /dev/null masks. A file
 * that others than root may write is refused. -ENOENT: there is none, or it is masked. */
int load_policy(const char *name, Policy **ret, Error *e);
int load_policy_from(const char *const *directories, const char *name, Policy **ret, Error *e);

/* Reads the policy in one file, with what it extends but without drop-ins of its own. *ret is NULL for a file
 * that lies in a directory of drop-ins: it is checked by itself. */
int load_policy_file(const char *const *directories, const char *path, Policy **ret, Error *e);

/* Names of all policies that are not masked, sorted; *ret_paths: the file of each. 0 or -ENOMEM. */
int list_policies(const char *const *directories, char ***ret_names, char ***ret_paths);

/* Appends the drop-ins of one of them that are not masked, in the order in which they are merged. 0, -E2BIG,
 * -ENOMEM. */
int list_drop_ins(const char *const *directories, const char *name, char ***paths, Error *e);
