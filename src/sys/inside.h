/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a held process would find inside its sandbox, seen from outside: groups, its own limits,
 * mounts, devices. Each appends facts to the outcome; 0, -ENOMEM, or what /proc said. proc_fd: its /proc
 * directory (sys/proc). Paths are resolved within its root, never through a link out of it. */

#include <sys/types.h>

#include "core/outcome.h"
#include "core/property.h"

/* "gid", "groups" (no supplementary one), and "rlimit.nofile" … for each LimitNAME= among the properties. */
int inside_process_facts(int proc_fd, gid_t gid, const PropertyList *asked, Outcome *o);

/* "mounts.writable": of the mounts that can be reached, only those of the given file systems (a descriptor
 * for each) may be written to, and what the policy itself asks for with TemporaryFileSystem=. Interfaces of
 * the kernel that have nothing to fill (proc, devpts, mqueue, hugetlbfs) do not count. */
int inside_mount_facts(int proc_fd, const int *own_fds, size_t n, const PropertyList *asked, Outcome *o);

/* "devices": null, zero, full, random, urandom, tty, ptmx and no other below /dev. */
int inside_device_facts(int proc_fd, Outcome *o);

/* "hidden:/path" for each: it is not there, or nobody may open it. */
int inside_hidden_facts(int proc_fd, char *const *paths, Outcome *o);
