/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Kept layers on disk: a directory for each run below the state directory, root's alone, with the contents
 * of changed files under their SHA-256 and layer.json, which comes last. The lock on the directory says that
 * somebody works with it. Nothing in here says where anything goes: see run/apply.h. */

#include "core/kept.h"

#define KEPT_DIR "layers" /* below the state directory */

/* --- writing --- */

typedef struct KeptWriter KeptWriter;

/* A directory that has no name yet that anybody looks for. */
int kept_writer_new(const char *state_dir, const char *run_id, KeptWriter **ret);
/* Copies an open regular file. One that is there already is not copied again: *ret_new is false then. */
int kept_writer_add(KeptWriter *writer, int fd, const char *sha256, bool *ret_new);
/* Writes layer.json and gives it its name. */
int kept_writer_commit(KeptWriter *writer, const char *info);
/* What was not committed is removed. */
KeptWriter *kept_writer_free(KeptWriter *writer);
DEFINE_CLEANUP(KeptWriter *, kept_writer_free)

/* --- reading --- */

/* The directory of all layers. -ENOENT: there is none. */
int kept_open_all(const char *state_dir, int *ret_fd);
/* One layer, locked until the descriptor is closed: -ENOENT; -EBUSY: somebody else has it. */
int kept_open(int all_fd, const char *run_id, int *ret_fd);
/* The same without the lock, to look at it. */
int kept_peek(int all_fd, const char *run_id, int *ret_fd);
int kept_read_info(int layer_fd, const char *run_id, KeptInfo *ret, Error *e);
/* A content, by its digest. */
int kept_open_content(int layer_fd, const char *sha256, int *ret_fd);

/* Removes a layer whose lock is held, or what was left of one. */
int kept_remove(int all_fd, const char *run_id);
/* The runs that have one, ended by NULL. Removes on the way what a killed qscope did not finish. */
int kept_list(int all_fd, char ***ret);
