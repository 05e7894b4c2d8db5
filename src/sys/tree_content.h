/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Contents of regular files: digests and comparison, within what may be read of them. Part of sys/tree.
 *
 * A file of 10 GiB that is one hole costs a job nothing, and a digest of all its zeros would cost us seconds.
 * Where holes are that large, the digest is over what is not zero instead (sparse_sha256): for each block of
 * 4096 bytes that is not all zero, in order, its offset (64 bits, little endian) and its bytes; at the end
 * the file's size (64 bits, little endian). It depends on nothing but the content, as a full one does. */

#include <sys/stat.h>

#include "base/hash.h"

#define CONTENT_HOLES_MAX MIB(64) /* read like everything else up to this */

typedef enum ContentWay {
        CONTENT_WHOLE,  /* read all of it */
        CONTENT_SPARSE, /* read what is not a hole */
        CONTENT_UNREAD, /* over the budget */
} ContentWay;

/* How to read a file, or two at once (after may be NULL); what that costs is taken from the budget. */
ContentWay content_choose(const struct stat *st, const struct stat *after, uint64_t *budget);

/* fd: a regular file. 0 or a negative errno. */
int content_hash(int fd, char sha256[static HASH_HEX_MAX]);
int content_hash_sparse(int fd, char sparse_sha256[static HASH_HEX_MAX]);

/* Whether two regular files of the same size hold the same bytes, whatever their times say. */
int content_equal(int before_fd, int after_fd, ContentWay way, bool *ret_equal);
