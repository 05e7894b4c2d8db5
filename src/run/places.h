/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a policy adds to a job's root and takes from it: another system in place of the host's, paths that are
 * shown read-only, paths that are hidden. All of it is attached while the stage is held, after the workspace,
 * since it may lie in there; and looked at from outside afterwards. */

#include "core/outcome.h"
#include "core/plan.h"
#include "run/moves.h"

typedef struct Places Places;

/* source_path: where the workspace really lies, NULL: nowhere on the host. What of the policy's paths does
 * not exist is left out. */
int places_new(const Plan *plan, const char *source_path, Places **ret, Error *e);
Places *places_free(Places *places);
DEFINE_CLEANUP(Places *, places_free)

/* The root of another system; negative: the host's is used. */
int places_system(const Places *places);

/* Appends the directories that the job's root must have, absolute. */
int places_mount_points(const Places *places, char ***ret);

/* Those that are files; their directories are there. */
int places_make_files(const Places *places, int root_fd);

/* Before anything else is attached: the other system, or the host's with inodes of the job's own. */
int places_add_system(Places *places, Moves *moves, Error *e);

/* After everything else. */
int places_attach(Places *places, int proc_fd, Error *e);

/* A fact for each. */
int places_facts(const Places *places, int proc_fd, Outcome *o);
