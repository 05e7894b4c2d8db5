/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The mounts that are moved into a held job, collected and then moved all at once: each time costs a process,
 * which has to join the job's mount namespace. */

#include "sys/mount.h"

#define MOVES_MAX 256

typedef struct Moves {
        MountMove items[MOVES_MAX];
        size_t n;
} Moves;

/* Takes fd; borrows target until they are moved. */
void moves_add(Moves *moves, int fd, const char *target, MountAction action);

/* Closes them where they are not moved after all. */
void moves_clear(Moves *moves);

/* Moves them where r is 0, and closes them in any case: 0, r, or what failed. */
int moves_do(Moves *moves, int proc_fd, int r, Error *e);
