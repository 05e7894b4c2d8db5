/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A candidate's files, and the harness that goes with it. A model wrote the candidate: its bytes are only
 * ever copied. */

#include "core/suite.h"

#define CANDIDATE_BYTES_MAX MIB(8)
#define CANDIDATE_FILES_MAX 1024u

/* Where harnesses are looked up by name: /etc/qscope/harness, /usr/local/share/qscope/harness,
 * /usr/share/qscope/harness. Ends with NULL. */
extern const char *const harness_directories[];

/* name: a name; or a path (with a slash), relative to directory; NULL: the one whose extensions the
 * candidate's name has. Reads the files beside it, too. -ENOENT and others with a sentence. */
int harness_load(const char *name, const char *directory, const char *candidate, Harness **ret,
                SuiteFiles *ret_files, Error *e);

/* A file is placed under the harness's name for it; of a directory all files are, under their own, and that
 * name must be among them. Links and other things than files and directories are refused. */
int candidate_load(const char *path, const Harness *harness, SuiteFiles *ret, Error *e);
