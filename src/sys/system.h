/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Another system's root, for jobs that shall not see the host's: a directory that holds one, or an image of a
 * file system that does (squashfs, erofs, ext4; not of a partitioned disk). Only ever read. */

#include "base/error.h"

/* Opens the root at path, which an administrator chose. An image is mounted at target, a directory of this
 * mount namespace. */
int system_open(const char *path, const char *target, int *ret_fd, Error *e);

/* Names of the directories at its top that a job may see: not those that every job has of its own (/proc,
 * /tmp, /home …). */
int system_directories(int system_fd, char ***ret);
