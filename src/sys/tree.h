/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a job changed: only what is in its upper layer is looked at, so the cost follows the changes and not
 * the tree. What lies there was made by the job: nothing but regular files and directories is opened, no link
 * is followed, every name is one component below an open directory. */

#include "base/error.h"
#include "core/changes.h"

#define TREE_DEPTH_MAX      4096u     /* deeper is lost evidence */
#define TREE_CHANGES_MAX    10000u    /* listed; all are counted and digested */
#define TREE_UNEXPECTED_MAX 1000u     /* listed beyond these, when they were not agreed */
#define TREE_TEXT_MAX       MIB(4)    /* bytes of all listed paths, targets and attributes' names */
#define TREE_RENAMES_MAX    1000u     /* of directories */
#define TREE_LINKS_MAX      10000u    /* names of files that have several */
#define TREE_NAMES_MAX      MIB(64)   /* of memory for names of directories that are being read */
#define TREE_READ_MIN       MIB(256)  /* a budget for reading below this saves no time worth having */
#define TREE_HASH_MAX       MIB(1024) /* of one expected file */

typedef struct TreeWalk TreeWalk;

typedef struct TreeOwner {
        uid_t job_uid, owner_uid; /* the job's user is shown as the workspace's owner */
        gid_t job_gid, owner_gid;
} TreeOwner;

/* rules: borrowed. file_limit: a regular file of exactly this size is remembered as having hit it (UNKNOWN:
 * none). read_budget: bytes of files that are read at most. */
int tree_walk_new(const TreeOwner *owner, const ChangeRules *rules, uint64_t file_limit, uint64_t read_budget,
                TreeWalk **ret);
TreeWalk *tree_walk_free(TreeWalk *walk);
DEFINE_CLEANUP(TreeWalk *, tree_walk_free)

/* Both return 0 or -ENOMEM: what cannot be read is lost evidence, and the rest is looked at all the same. */

/* Compares an overlay with its lower layer. prefix: the workspace's path. */
int tree_compare(TreeWalk *walk, int upper_fd, int lower_fd, int merged_fd, const char *prefix);
/* Everything below dir_fd is new, but for the directories in made (absolute paths). */
int tree_scratch(TreeWalk *walk, int dir_fd, const char *prefix, char *const *made);

typedef struct TreeResult {
        char *file_at_limit; /* a path, or NULL */
        bool unread;         /* some files have no digest: they were over the budget */
        char *lost;          /* why it is not complete, or NULL */
} TreeResult;

/* Moves the result out. 0 or -ENOMEM. */
int tree_walk_finish(TreeWalk *walk, FileChanges *ret, TreeResult *ret_result);

/* For expectations: SHA-256 of a regular file below dir_fd ("" and exists when it is something else). */
int tree_file(int dir_fd, const char *path, bool *ret_exists, char sha256[static HASH_HEX_MAX]);

/* The place that path (absolute, normalised) leads to when the links in top_fd, which is seen at prefix, are
 * followed. alias (may be NULL): another path of top_fd. *ret is NULL when it leads to itself or nowhere. 0
 * or -ENOMEM. */
int tree_resolve(int top_fd, const char *prefix, const char *alias, const char *path, char **ret);
