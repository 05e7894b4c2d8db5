/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The job's network namespace, made by qscope so that observers are in it before the job exists. Nothing but
 * descriptors holds it (network_namespaces(7)): when qscope and the job are gone, however they went, the
 * kernel removes it with all that is in it. */

#include "base/error.h"

/* A new one; its loopback device is up. *ret_fd: the namespace. */
int netns_new(int *ret_fd, Error *e);

/* The path by which another process finds the namespace as long as this one has it open. NULL: out of
 * memory. */
char *netns_path(int netns_fd);
