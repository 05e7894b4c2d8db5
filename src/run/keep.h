/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Keeps what a run changed, so that `qscope apply` can take it over: the contents of changed files only, and
 * nothing where nothing changed. What is kept is bounded by the rules of core/kept.h. */

#include "core/plan.h"
#include "core/verdict.h"
#include "run/jobfs.h"

/* The rules as configured on this host. A sentence names the file where it does not parse. */
int keep_rules_load(KeepRules *ret, Error *e);

typedef struct Keep Keep;

/* wanted: as the person said; by default the configuration decides. */
typedef enum KeepWanted { KEEP_BY_DEFAULT, KEEP_ALWAYS, KEEP_NEVER } KeepWanted;

/* NULL is a Keep that keeps nothing. */
int keep_new(const Plan *plan, const char *state_dir, KeepWanted wanted, Keep **ret);
Keep *keep_free(Keep *keep);
DEFINE_CLEANUP(Keep *, keep_free)

/* After the changes are known and before the layer goes: copies, and says in the outcome what it did. Nothing
 * here is an error of the run. */
void keep_take(Keep *keep, const JobFs *fs, Outcome *o);

/* The receipt is written: the layer gets its name, and others go where there are too many. */
int keep_commit(Keep *keep, const Plan *plan, const Judgement *judgement, const char *receipt, Error *e);

#define KEEP_JOURNAL "apply.json" /* in a layer: an apply of it was begun and not ended */

/* What is removed, or with dry would be, by the rules. A layer that somebody works with, or whose apply was
 * interrupted, stays. Both return how many, or a negative errno with a sentence. */
int keep_prune(const char *state_dir, const KeepRules *rules, bool dry, uint64_t *ret_bytes, Error *e);
int keep_prune_receipts(
                const char *state_dir, const KeepRules *rules, bool dry, uint64_t *ret_bytes, Error *e);

/* Calls tell for each layer that can be read. */
typedef void (*KeepTell)(void *userdata, const KeptInfo *info, bool interrupted);
int keep_list(const char *state_dir, KeepTell tell, void *userdata, Error *e);

/* Removes the layers of a run or a job, by its id. Returns how many; a sentence beside that is a warning.
 * -EBUSY: somebody works with one; -EALREADY: an apply of it was interrupted, and its workspace is still
 * there. */
int keep_discard(const char *state_dir, const char *id, Error *e);
