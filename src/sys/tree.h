/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a job changed: only what is in its upper layer is looked at, so the cost follows the changes and not
 * the tree. What lies there was made by the job: nothing but regular files and directories is opened, no link
 * is followed, every name is one component below an open directory. */

#include "base/error.h"
#include "core/outcome.h"

#define TREE_DEPTH_MAX   4096      /* deeper is lost evidence */
#define TREE_CHANGES_MAX 10000u    /* listed; all are counted and digested */
#define TREE_PATHS_MAX   MIB(8)    /* bytes of all listed paths together: a deep tree has long ones */
#define TREE_READ_MIN    MIB(256)  /* a budget for reading below this saves no time worth having */
#define TREE_HASH_MAX    MIB(1024) /* of one expected file */

typedef struct TreeWalk TreeWalk;

typedef struct TreeOwner {
        uid_t job_uid, owner_uid; /* the job's user is shown as the workspace's owner */
        gid_t job_gid, owner_gid;
} TreeOwner;

/* file_limit: a regular file of exactly this size is remembered as having hit it (UNKNOWN: none).
 * read_budget: bytes of files that are read at most, by their apparent sizes. */
int tree_walk_new(const TreeOwner *owner, uint64_t file_limit, uint64_t read_budget, TreeWalk **ret);
TreeWalk *tree_walk_free(TreeWalk *walk);
DEFINE_CLEANUP(TreeWalk *, tree_walk_free)

/* Compares an overlay with its lower layer. prefix: the workspace's path. */
int tree_compare(TreeWalk *walk, int upper_fd, int lower_fd, int merged_fd, const char *prefix, Error *e);

/* Everything below dir_fd is new, but for the directories in made (absolute paths). */
int tree_scratch(TreeWalk *walk, int dir_fd, const char *prefix, char *const *made, Error *e);

/* Moves the result out. *ret_file_at_limit: path or NULL; *ret_over_budget: some files have no digest;
 * *ret_lost: why it is not complete, or NULL. */
int tree_walk_finish(TreeWalk *walk, FileChanges *ret, char **ret_file_at_limit, bool *ret_over_budget,
                const char **ret_lost);

/* For expectations: SHA-256 of a regular file below merged_fd ("" and exists when it is something else). */
int tree_file(int dir_fd, const char *path, bool *ret_exists, char sha256[static HASH_HEX_MAX]);
