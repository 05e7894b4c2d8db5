/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What is left in an IPC namespace (ipc_namespaces(7)): System V objects and POSIX message queues. And the
 * keys of a user (keyrings(7)). */

#include "core/shared.h"

/* Appends everything in the namespace. 0 or a negative errno. */
int ipc_list(int ipcns_fd, IpcList *list);

/* How many keys a user has; UNKNOWN when it cannot be told. */
uint64_t ipc_count_keys(uid_t uid);
