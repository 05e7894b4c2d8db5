/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Files that somebody's programs execute, or take commands from, without being asked: a git hook, the
 * start-up file of a shell, an editor's tasks. Who takes over a job's changes must not get these unnoticed.
 * What is executed only by name (a Makefile, a test) is not meant: who runs it knows. One table. Pure. */

#include "core/changes.h"

/* What would execute it ("git", "direnv" …), or NULL. path is relative to the workspace. type: what it
 * becomes. Compared without case: on some file systems .GIT is .git. A link, file or device in the place of a
 * directory that leads there counts too, since it can lead anywhere. */
const char *autorun_find(const char *path, FileType type);

/* Whether it depends on the content: only attributes that name a filter, a diff or a merge driver do harm. */
bool autorun_by_content(const char *path);
/* For such a file. */
bool autorun_content(const char *data, size_t size);
