/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The skeleton of a job's root directory: mount points, the links of a merged /usr, and the little of /etc
 * that ordinary programs ask for. Nothing of it is the job's to write. */

#include <sys/types.h>

#include "base/error.h"

/* Fills the empty directory root_fd with what systemd needs to find there. directories: further mount points
 * (absolute). system_fd: the root of another system in place of the host's, whose links at the top are taken;
 * negative: none. */
int root_make(int root_fd, int system_fd, char *const *directories, Error *e);

/* The files of /etc, while systemd is busy. hostname: may be NULL. host_network: names are asked for where
 * the host asks. Of another system only what is made for the job, to be laid over its own. */
int root_fill(int root_fd, bool other_system, const char *hostname, bool host_network, Error *e);

/* Writes passwd and group with a row for the job's own user, known only now. */
int root_add_user(int root_fd, uid_t uid, gid_t gid, const char *home, Error *e);
