/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Every program that a job starts, before it runs, by fanotify(7) permission events on the mounts of the
 * job's own root: only the job uses those mounts, so only the job is seen. Each execve(2) waits for our
 * answer, which is what makes this complete. While events wait here a process of the job sleeps in the kernel
 * and cannot be frozen; and when the descriptor is closed, everything is let through. */

#include <sys/types.h>

#include "core/evidence.h"
#include "sys/closing.h"

typedef struct Programs Programs;

/* Marks every mount below the root of a held process from which a program can be executed. proc_fd: its /proc
 * directory. A negative errno with a sentence: this host does not allow it. */
int programs_open(int proc_fd, Programs **ret, Error *e);
/* A mount from which programs start unseen, since it could not be marked; NULL: there is none. */
const char *programs_unwatched(const Programs *programs);
/* Becomes readable when a process of the job waits for an answer; owned by it. */
int programs_fd(const Programs *programs);

/* Whether the file may be executed. fd: the file, opened for reading; start: what is known of the execve(2).
 */
typedef bool (*ProgramsHandler)(void *userdata, const ProgramStart *start, int fd);

/* Answers those that wait now; a bounded number of them. A negative errno: the queue cannot be read any more,
 * and what the job starts from now on may be missed. */
int programs_answer(Programs *programs, ProgramsHandler handler, void *userdata);
/* Starts that were let through unseen, or not understood. */
uint64_t programs_lost(const Programs *programs);
/* Gives its descriptor away before it is freed. */
void programs_give(Programs *programs, Closing *closing);
Programs *programs_free(Programs *programs);
DEFINE_CLEANUP(Programs *, programs_free)
