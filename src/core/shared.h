/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The bounded lists of what is open or shared at the end (descriptors, IPC). */

#include "core/evidence.h"

#define FDS_LISTED_MAX 1000u
#define IPC_LISTED_MAX 1000u

/* Each appends, or only counts when the list is full. Takes what the record holds, also on failure. 0 or
 * -ENOMEM. */
int fd_list_add(FdList *list, FdRecord *record);
int ipc_list_add(IpcList *list, IpcRecord *record);
