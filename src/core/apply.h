/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What `qscope apply` would do: the changes that a receipt tells of, which of them are meant, and the steps
 * that bring them about or take them back. Pure. A receipt is checked as if it came from an enemy, even where
 * its digest is known: a path that could lead outside the workspace is an error, not something to be passed
 * over. */

#include "core/changes.h"
#include "core/receipt_view.h"

#define APPLY_STAGING                                                                                        \
        ".qscope-apply-"         /* the directory in the workspace where contents are staged, and a run id */
#define APPLY_CHANGES_MAX 20000u /* more than a receipt lists */

/* One side of a change. */
typedef struct ApplyNode {
        bool exists;
        FileType type;
        unsigned mode;
        uint64_t uid, gid; /* UNKNOWN */
        uint64_t size;
        char sha256[HASH_HEX_MAX]; /* of a regular file; "": was not read */
        char *target;              /* of a link */
} ApplyNode;

static inline bool apply_is_directory(const ApplyNode *node)
{
        return node->exists && node->type == FILE_DIRECTORY;
}

typedef enum ApplyState {
        APPLY_SELECTED,
        APPLY_UNSELECTED, /* --select names others */
        APPLY_HELD,       /* the host would execute it: only if it is named exactly */
        APPLY_UNEXPECTED, /* was not agreed: only if it is named exactly */
        APPLY_UNABLE,     /* cannot be carried */
        _APPLY_STATE_MAX,
} ApplyState;

extern const char *const apply_state_names[_APPLY_STATE_MAX];

typedef struct ApplyChange {
        ChangeKind kind;
        char *path;   /* relative to the workspace, raw bytes, normalised */
        bool content; /* of a regular file: not only its mode */
        ApplyNode before, after;
        ApplyState state;
        bool exact;   /* --select names it, not only a directory above it */
        bool forced;  /* selected only because it is named so */
        char why[96]; /* for all states but APPLY_SELECTED; for that one: what to know, or "" */
} ApplyChange;

typedef enum ApplyStepKind {
        STEP_OPEN,     /* a directory that its owner may not write to, until the end */
        STEP_REMOVE,   /* a file or link: moved out of the way */
        STEP_RMDIR,    /* an empty directory */
        STEP_MKDIR,    /* a directory, open for its owner until the end */
        STEP_PUT,      /* a file or link where nothing is */
        STEP_EXCHANGE, /* a file or link for another */
        STEP_MODE,     /* of a directory, or of a file whose content stays */
        _STEP_MAX,
} ApplyStepKind;

typedef struct ApplyStep {
        ApplyStepKind kind;
        size_t change; /* index; its number names what is staged for it */
} ApplyStep;

typedef struct ApplyPlan {
        char *run_id, *job_id, *verdict;
        const char *no_layer; /* why there may be none, as the receipt has it */
        ApplyChange *items;   /* sorted by path_compare() */
        size_t n;
        bool *unexpected; /* for each: it was not agreed; NULL: nothing was to be judged by */
        char ***links;    /* names of one file each, by path; ended by NULL */
        ApplyStep *steps;
        size_t n_steps;
} ApplyPlan;

/* Reads the changes of a receipt. 0; -EINVAL with a sentence; -ENOMEM. */
int apply_plan_read(const cJSON *receipt, ApplyPlan **ret, Error *e);
ApplyPlan *apply_plan_free(ApplyPlan *plan);
DEFINE_CLEANUP(ApplyPlan *, apply_plan_free)

/* Which of them are meant. select: paths, relative to the workspace or absolute in it (cwd); NULL: all that
 * were agreed. -EINVAL with a sentence: it names nothing that changed, or has "..". */
int apply_plan_select(ApplyPlan *plan, char *const *select, const char *cwd, Error *e);

/* A .gitattributes whose content names a filter, or cannot be looked at. */
void apply_hold_content(ApplyChange *change, const char *why);

/* The steps for what is selected, in their order; backwards they take it back. 0 or -ENOMEM. */
int apply_plan_steps(ApplyPlan *plan);

/* The first of the names of the same file that is selected before this one, or NULL. */
const ApplyChange *apply_first_link(const ApplyPlan *plan, const ApplyChange *change);

/* The mode that the change gets: setuid and setgid of a file only if it was named exactly. */
unsigned apply_mode(const ApplyChange *change);

ApplyChange *apply_find(const ApplyPlan *plan, const char *path);
