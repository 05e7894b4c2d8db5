/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Copies a directory tree where it cannot be mapped: file systems without id-mapped mounts, and workspaces
 * with other mounts below them. */

#include <sys/types.h>

#include "base/error.h"

#define COPY_DEPTH_MAX 512

typedef struct CopyOwner {
        uid_t from_uid, to_uid; /* what belongs to from belongs to to in the copy; the rest stays */
        gid_t from_gid, to_gid;
} CopyOwner;

/* Copies what is in src_fd into the empty directory dst_fd: types, modes, times, user attributes; hard links
 * become files of their own. Follows no links, crosses mounts, opens nothing but regular files and
 * directories. -ENOSPC: the destination is full. The sentence names the path. */
int copy_tree(int src_fd, int dst_fd, const CopyOwner *owner, Error *e);

/* The rest of one open file into another. */
int copy_data(int src_fd, int dst_fd);

/* The attributes user.* of one open file to another; the destination's file system may not have them. */
int copy_xattrs(int src_fd, int dst_fd);
