/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The file system that takes all a job writes: its size and its number of files are the job's budget, kept by
 * the kernel. Either a tmpfs, or ext4 in an unlinked file behind a loop device that frees itself; neither
 * leaves anything when its last mount is gone. */

#include "base/error.h"
#include "core/outcome.h"

/* image_dir: where the image file is made (on disk); NULL: a tmpfs. Attached at target. */
int layer_open(const char *image_dir, uint64_t bytes, uint64_t inodes, const char *target, int *ret_fd,
                Error *e);

/* What is used of it, and whether it is full: a request for one more block or file would fail. The flags stay
 * once they are set, the peaks only grow: to be called now and then. */
int layer_read(int fd, Usage *usage, LimitEvents *events);

/* How large the kernel made it: bytes, then inodes; and by how much that may be more than was asked for
 * (whole pages; ext4's own structures, whole blocks of its inode tables). */
int layer_size(int fd, bool image, uint64_t bytes, uint64_t inodes, uint64_t ret_sizes[static 2],
                uint64_t ret_slack[static 2]);
