/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The directory of one run below /run/qscope, locked as long as its qscope lives, and the removal of what
 * dead ones left: found by name and lock, never by guessing. */

#include "base/error.h"
#include "sys/manager.h"

#define RUNTIME_DIR "/run/qscope"

typedef struct RunDir RunDir;

/* Makes <RUNTIME_DIR>/<run_id> with root, layer, lower, merged, system, blank in it and takes its lock. */
int rundir_new(const char *run_id, RunDir **ret, Error *e);
int rundir_root_fd(const RunDir *dir);
/* Removes the directory and gives the lock back. The units must be gone. NULL is fine. */
RunDir *rundir_free(RunDir *dir);
/* Gives the lock back and leaves the rest to the next run: the units could not be stopped. */
RunDir *rundir_abandon(RunDir *dir);
DEFINE_CLEANUP(RunDir *, rundir_free)

/* Kills, stops and removes what runs whose qscope is gone left. m may be NULL: then only connects when there
 * is something to do. Returns how many there were, or a negative errno with a sentence. */
int rundir_clean(Manager *m, Error *e);

/* How many of them there are; removes nothing. */
int rundir_count_dead(Error *e);
