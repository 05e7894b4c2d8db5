/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The job's network namespace, made by qscope so that observers are in it before the job exists. Nothing but
 * descriptors holds it (network_namespaces(7)): when qscope and the job are gone, however they went, the
 * kernel removes it with all that is in it. */

#include "base/error.h"

/* A new one; its loopback device is up. *ret_fd: the namespace. */
int netns_new(int *ret_fd, Error *e);

typedef int (*NetnsFunction)(void *userdata);

/* Calls the function in the namespace, on a thread of its own; returns what it returned, or a negative errno.
 * Descriptors that it opens stay what they are. */
int netns_call(int netns_fd, NetnsFunction function, void *userdata);

/* A socket(2) of that namespace, close-on-exec. A descriptor or a negative errno. */
int netns_socket(int netns_fd, int family, int type, int protocol);

/* The path by which another process finds the namespace as long as this one has it open. NULL: out of
 * memory. */
char *netns_path(int netns_fd);
