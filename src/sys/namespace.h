/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Calls made inside a namespace of a job (setns(2)), by a child that shares our memory and descriptors: no
 * page table is copied as by fork(2), and this process stays where it is, whatever fails. */

#include <sys/types.h>

#include "base/error.h"

/* Calls function in the namespace and waits for it. What function opens is ours, and belongs to the namespace
 * for ever. Returns what function returned, or a negative errno. Not for user and pid namespaces, nor from
 * two threads. */
int namespace_call(int namespace_fd, int (*function)(void *userdata), void *userdata);

/* The same in a namespace that is made for it (CLONE_NEWNET …, clone(2)): function may keep it by opening
 * /proc/thread-self/ns. */
int namespace_call_new(int flags, int (*function)(void *userdata), void *userdata);

/* A child in new namespaces that does nothing: a user namespace needs one to be configured from outside. One
 * at a time, and no call meanwhile. */
int namespace_hold(int flags, pid_t *ret);
void namespace_let_go(pid_t pid);
