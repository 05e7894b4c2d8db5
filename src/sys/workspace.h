/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The workspace as the job sees it: an overlay whose lower layer is what was there, whose upper layer takes
 * what the job writes (Documentation/filesystems/overlayfs.rst). */

#include <sys/types.h>

#include "base/error.h"

/* One file to be placed before the run. */
typedef struct WorkspaceFile {
        const char *path; /* relative, no ".." */
        const void *data; /* size bytes; or NULL and */
        size_t size;
        int source_fd; /* an open file, copied from its start */
        unsigned mode;
} WorkspaceFile;

typedef struct WorkspaceRequest {
        const char *run_dir; /* has the empty directories lower, merged and copy, and the layer at layer */
        int source_fd;       /* the real directory; < 0: a fresh, empty one */
        const char *source_path; /* its path, for sentences */
        bool copy;               /* do not map, copy: there are mounts below it */
        uid_t uid;               /* the job's */
        gid_t gid;
        const WorkspaceFile *files;
        size_t n_files;
        const char *image_dir; /* for the copy's own layer, see layer_open() */
        uint64_t bytes, inodes;
} WorkspaceRequest;

typedef struct WorkspaceMounts {
        int lower_fd;    /* what the job found, as it saw it; for the comparison */
        int upper_fd;    /* its layer */
        int merged_fd;   /* what it made of it */
        int job_fd;      /* the same mount, detached, to be moved into the job's root */
        uid_t owner_uid; /* whom the workspace belongs to on the host */
        gid_t owner_gid;
        const char *method; /* for the receipt */
        bool copied;        /* the lower layer is a copy */
} WorkspaceMounts;

#define WORKSPACE_MOUNTS_INIT                                                                                \
        ((WorkspaceMounts){ .lower_fd = -EBADF, .upper_fd = -EBADF, .merged_fd = -EBADF, .job_fd = -EBADF })

int workspace_make(const WorkspaceRequest *request, WorkspaceMounts *ret, Error *e);
void workspace_mounts_close(WorkspaceMounts *mounts);
