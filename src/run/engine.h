/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What belongs to the process and not to one run: the event loop, the connection to systemd, the guard, the
 * signals, the mount namespace. Any number of runs are in it at a time (run.h); what one of them meets never
 * ends another. */

#include "core/outcome.h"

typedef struct Engine Engine;

/* Holds SIGINT, SIGTERM and SIGHUP back from here on: the event loop takes them, and each ends all runs. The
 * caller's umask is put aside. 0 or a negative errno. */
int engine_new(Engine **ret);
/* Should runs be left in it, they are killed. NULL is fine. */
Engine *engine_free(Engine *engine);
DEFINE_CLEANUP(Engine *, engine_free)

/* Waits for one event and handles it. A negative errno: nothing can be waited for any more. */
int engine_step(Engine *engine);

/* How many commands may run at a time; without it, any number. What is begun beyond that is started ahead:
 * its stage waits at the gate, in its own sandbox, for its turn, and the oldest goes first. A turn ends when
 * nothing of the job lives any more. A signal then ends the runs that have had their turn and dismisses the
 * others. */
void engine_set_turns(Engine *engine, size_t turns);
/* Runs that have not had their turn yet. */
size_t engine_ahead(const Engine *engine);
/* The longest timeout of all runs in it. */
uint64_t engine_longest_usec(const Engine *engine);
/* Ends the runs that have not had their turn, as if they had never been begun. */
void engine_dismiss_ahead(Engine *engine);

/* The first signal that came; 0: none. */
int engine_signal(const Engine *engine);

/* The caller's umask, for what is written in the caller's name. */
unsigned engine_caller_umask(const Engine *engine);

/* Connects and prepares what has not been prepared yet. -EHOSTDOWN: the outcome says why, and the next run
 * may try again. */
int engine_open(Engine *engine, Outcome *outcome);
