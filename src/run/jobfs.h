/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* All file systems of one run, put together from sys/: the root's skeleton, the layer, the workspace, the
 * scratch directories; and afterwards what the job did to them. */

#include "core/outcome.h"
#include "core/plan.h"

typedef struct JobFs JobFs;

/* Looks at the workspace and makes the skeleton of the root. On the host's side nothing is mounted yet.
 * image_dir: where the images of large layers are made; borrowed. -ENOTDIR, -ENOENT and -EACCES are the
 * working directory's, which is the job's fault; any other is not. */
int jobfs_new(const Plan *plan, int root_fd, const char *image_dir, JobFs **ret, Error *e);
JobFs *jobfs_free(JobFs *fs);
DEFINE_CLEANUP(JobFs *, jobfs_free)

/* Who owns the workspace; root when there is none yet. */
void jobfs_owner(const JobFs *fs, uid_t *ret_uid, gid_t *ret_gid);

/* Opens a further input of the job (files[].source). */
typedef int (*JobFsOpen)(void *userdata, const char *path, int *ret_fd, Error *e);

/* Opens all of them, before anything is started. */
int jobfs_open_sources(JobFs *fs, JobFsOpen open_source, void *userdata, Error *e);

/* The layer, the files of /etc, and the mounts that need nothing of the stage: all that can be made while the
 * manager works. hostname: may be NULL. */
int jobfs_prepare(JobFs *fs, const char *hostname, Error *e);

/* Puts everything into the held stage's root. service_fd: its control group. */
int jobfs_attach(JobFs *fs, int proc_fd, int service_fd, uid_t uid, gid_t gid, Error *e);

/* Checks from outside that each of them is where the job will find it; appends facts. */
int jobfs_facts(const JobFs *fs, int proc_fd, Outcome *o);

/* Looks how full the layer is, while the job runs. */
void jobfs_look(const JobFs *fs, Outcome *o);

/* After the last process is gone: usage, changes, expected files into the outcome. */
int jobfs_observe(JobFs *fs, Outcome *o, Error *e);

/* The workspace as the job left it (borrowed), where the job saw it, and where it lies on the host. -EBADF:
 * there is none. */
int jobfs_workspace(const JobFs *fs, const char **ret_cwd, char **ret_source);
