/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Files of the host: read with a bound, written whole or not at all, directories removed. Knows nothing of
 * jobs. Paths here come from the person who started qscope, not from a job, unless a comment says otherwise.
 */

#include "base/error.h"
#include "base/hash.h"

/* Reads a regular file whole ("-": standard input, which may be anything). -EFBIG over max, -EISDIR or
 * -EINVAL for what is not a regular file (a FIFO would block), each with a sentence. *ret has a NUL behind
 * it. */
int file_read(const char *path, size_t max, char **ret, size_t *ret_size, Error *e);

/* The same; *ret_own: it is a file of root's or of who runs this, and nobody else may write it. */
int file_read_own(const char *path, size_t max, char **ret, size_t *ret_size, bool *ret_own, Error *e);

/* The same for an open file, without sentences. */
int file_read_fd(int fd, size_t max, char **ret, size_t *ret_size);

/* Reads a small file of /proc, /sys or a cgroup below dir_fd into buffer, ended by NUL, last newline removed.
 * 0 or a negative errno; -EMSGSIZE when it does not fit. */
int file_read_at(int dir_fd, const char *path, char *buffer, size_t size);
int file_write_at(int dir_fd, const char *path, const char *text);

/* SHA-256 of the next size bytes, however many more there are. 0; -EPIPE: there are fewer; another errno. */
int file_hash(int fd, uint64_t size, char sha256[static HASH_HEX_MAX]);

/* Writes all of it. 0 or a negative errno. */
int write_all(int fd, const void *data, size_t size);

/* Makes a new file below dir_fd with the given content; -EEXIST if there is one. */
int file_create_at(int dir_fd, const char *path, const void *data, size_t size, unsigned mode);

/* Writes a file whole or not at all, over one that is there, and waits until it is on the disk. */
int file_replace_at(int dir_fd, const char *name, const void *data, size_t size);

/* Makes each missing directory of path (relative to dir_fd, no "..") with mode, owned by uid and gid. Those
 * that it made are appended to made (may be NULL) as paths relative to dir_fd. */
int mkdir_parents_at(int dir_fd, const char *path, unsigned mode, uid_t uid, gid_t gid, char ***made);

/* Removes a directory tree without following links or crossing into another mount. 0 or a negative errno;
 * -ENOENT is success. */
int remove_tree_at(int dir_fd, const char *name);

/* A file that appears under its name only when it is complete. */
typedef struct PendingFile PendingFile;

/* Checks that path can be written and holds a place for it. A path that exists must be a regular file. */
int pending_file_open(const char *path, PendingFile **ret, Error *e);

/* Writes, syncs and gives it its name. With keep, a file that has the name already is kept as NAME.~1~,
 * NAME.~2~ …; without, the new one gets the next free of NAME, NAME.2, NAME.3 (before the suffix ".json").
 * A link in the name's place is never followed. *ret_path: the name that it got. */
int pending_file_commit(
                PendingFile *file, const void *data, size_t size, bool keep, char **ret_path, Error *e);
PendingFile *pending_file_free(PendingFile *file);
DEFINE_CLEANUP(PendingFile *, pending_file_free)
