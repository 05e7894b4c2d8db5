/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Watches what a job starts: answers each execve(2) (sys/programs.h), reads the kernel's trace (sys/trace.h)
 * and makes the tree of both. Other observers ask it for the process behind a number, and get the events of
 * the trace that are theirs through observers_trace(). */

#include "run/state.h"

typedef struct ProcessWatch ProcessWatch;

int processes_attach(Run *run, Error *e);
/* Takes in everything that has happened until now. */
void processes_sync(Run *run);
/* Answers what waits in execve(2): to be called wherever the event loop is not running and the job is. */
void processes_serve(Run *run);
/* Becomes readable when something waits; < 0: nothing ever does. */
int processes_fd(const Run *run);
void processes_look(Run *run);
void processes_finish(Run *run);
void processes_clear(Run *run);

/* Whether the kernel's trace is read. */
bool processes_traced(const Run *run);

/* The path (or else the name) of the program that a process was running at the last event; NULL: unknown. */
const char *processes_program(const Run *run, pid_t pid);
