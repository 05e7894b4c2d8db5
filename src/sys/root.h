/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The skeleton of a job's root directory: mount points, the links of a merged /usr, and the little of /etc
 * that ordinary programs ask for. Nothing of it is the job's to write. */

#include <sys/types.h>

#include "base/error.h"

/* Fills the empty directory root_fd. directories: further mount points (absolute). hostname: may be NULL.
 * host_network: names are asked for where the host asks. */
int root_make(int root_fd, const char *hostname, bool host_network, char *const *directories, Error *e);

/* Writes passwd and group with a row for the job's own user, known only now. */
int root_add_user(int root_fd, uid_t uid, gid_t gid, const char *home, Error *e);
