/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Calls made inside a namespace of a job (setns(2)). */

#include "base/error.h"

/* Calls function in a thread of its own that has joined the namespace, and waits for it: this thread stays
 * where it is, whatever fails. What function opens belongs to the namespace for ever. Returns what function
 * returned, or a negative errno. Takes no namespace that setns(2) does not take from a thread: not for user,
 * mount and pid ones. */
int namespace_call(int namespace_fd, int (*function)(void *userdata), void *userdata);

/* The same in a namespace that is made for it (CLONE_NEWNET …, unshare(2)): function may keep it by opening
 * /proc/thread-self/ns. */
int namespace_call_new(int flags, int (*function)(void *userdata), void *userdata);
