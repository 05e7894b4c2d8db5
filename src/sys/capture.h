/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One output stream of a job: a pipe, read as fast as it comes, counted and hashed whole, kept head and tail.
 * Its memory does not depend on how much the job prints. */

#include <sys/types.h>

#include "base/error.h"
#include "core/outcome.h"

#define CAPTURE_WHOLE_MAX MIB(8) /* what is kept whole for an expectation at most */

typedef struct Capture Capture;

/* keep_bytes: of head and tail together. whole: keep all of it, up to CAPTURE_WHOLE_MAX. *ret_write_fd is the
 * job's end, owned by uid so that /dev/stdout can be opened again by it. */
int capture_new(uint64_t keep_bytes, bool whole, Capture **ret, int *ret_write_fd);
Capture *capture_free(Capture *c);
DEFINE_CLEANUP(Capture *, capture_free)

/* The reading end, for the event loop; it does not block. */
int capture_fd(const Capture *c);

/* Lets the job open its end again by name: a pipe made by root could not be. */
int capture_give(const Capture *c, uid_t uid, gid_t gid);

/* Reads what is there, a bounded amount. 1: more may follow, 0: nothing is there now, -EPIPE: end of file. */
int capture_read(Capture *c, bool after_exit);

/* Moves the result out. 0 or -ENOMEM. */
int capture_finish(Capture *c, StreamRecord *ret);
