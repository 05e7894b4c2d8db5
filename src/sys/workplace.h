/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The workspace that changes are brought back to, and the directory in it where they are staged. Everything
 * is looked at as root and changed with its owner's rights, those that the job had in its copy. Every path is
 * resolved anew below the open directory, never through a link, never into another mount. */

#include "base/error.h"
#include "core/apply.h"

typedef struct Workplace Workplace;

/* path: absolute, no link in it. The sentence says why it cannot be. */
int workplace_open(const char *path, const char *run_id, Workplace **ret, Error *e);
Workplace *workplace_free(Workplace *place);
DEFINE_CLEANUP(Workplace *, workplace_free)

/* --- looking --- */

/* What there is at a path. */
typedef struct WorkLook {
        bool above; /* the directory in which it would lie is there */
        ApplyNode node;
        dev_t device; /* which file it is, and in which state */
        ino_t inode;
        struct timespec modified;
} WorkLook;

void work_look_clear(WorkLook *look);

/* wanted: a regular file is read when it is as large as one of these (may be NULL). -ELOOP: a link stands in
 * the way; -EXDEV: a mount; another errno. */
int workplace_look(const Workplace *place, const char *path, const ApplyNode *wanted,
                const ApplyNode *or_wanted, WorkLook *ret);
/* The same for what is staged under this number. */
int workplace_look_staged(const Workplace *place, size_t number, const ApplyNode *wanted,
                const ApplyNode *or_wanted, WorkLook *ret);
/* Whether the staged one is the very file that was looked at. */
bool workplace_is_staged(const Workplace *place, size_t number, const WorkLook *look);

/* The names in a directory. */
int workplace_list(const Workplace *place, const char *path, char ***ret);
/* A regular file, at most max bytes of it. -EFBIG, -EINVAL. */
int workplace_read(const Workplace *place, const char *path, size_t max, char **ret, size_t *ret_size);

/* --- staging --- */

/* Makes the directory, which must not be there, and finds out whether the file system can do what is needed.
 */
int workplace_stage_begin(Workplace *place, Error *e);
/* Opens the one that is there. */
int workplace_stage_open(Workplace *place);
/* Removes it with all that is in it. -ENOENT is success. */
int workplace_stage_end(Workplace *place);

/* Copies the content whose digest is given. old (may be NULL): a path whose attributes it gets. sync: on the
 * disk at once. -EBADMSG: it is not what the digest says. */
int workplace_stage_file(Workplace *place, size_t number, int content_fd, const ApplyNode *node,
                unsigned mode, const char *old, bool sync);
int workplace_stage_link(Workplace *place, size_t number, const char *target);
/* Another name of what is staged already. */
int workplace_stage_name(Workplace *place, size_t number, size_t first);
int workplace_unstage(Workplace *place, size_t number);

/* --- changing: each is one system call that happens or does not --- */

typedef enum WorkAction {
        WORK_TAKE,     /* from its place to the stage */
        WORK_GIVE,     /* from the stage to its place, where nothing is */
        WORK_EXCHANGE, /* both at once */
        WORK_MKDIR,
        WORK_RMDIR,
        WORK_CHMOD,
} WorkAction;

int workplace_do(Workplace *place, WorkAction action, const char *path, size_t number, unsigned mode);

/* The directory in which path lies is on the disk; everything is. */
int workplace_sync_above(const Workplace *place, const char *path);
int workplace_sync(const Workplace *place);
