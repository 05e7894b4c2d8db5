/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Job × policy × caller → everything that will be asked of systemd and the kernel, and what is expected.
 * Pure. After the plan nothing decides. */

#include "core/job.h"
#include "core/policy.h"
#include "core/property.h"
#include "core/reason.h"

#define RUN_ID_MAX   33                  /* 32 lower-case hex digits and a NUL */
#define STATE_DIR    "/var/lib/qscope"   /* root's receipts and layers, unless told otherwise */
#define STAGE_TARGET "/run/qscope-stage" /* where the stage is in the job's root until the gate opens */

/* Facts of the caller and the host that a plan depends on. */
typedef struct PlanContext {
        const char *run_id;      /* 32 hex digits */
        const char *cwd;         /* the caller's directory, absolute */
        char *const *env;        /* the caller's environment, "NAME=value" */
        const char *runtime_dir; /* "/run/qscope": per-run directories are made below */
        const char *stage_path;  /* absolute path of qscope-stage on the host */
        uint64_t wait_usec;      /* how long the stage may have to wait at the gate for its turn */
} PlanContext;

/* Where the job's writes go: one file system of limited size that holds the workspace's upper layer, /tmp,
 * /var/tmp, /dev/shm and the scratch home. */
typedef enum Layer {
        LAYER_TMPFS, /* small budgets: memory, charged to the job */
        LAYER_IMAGE, /* large ones: an unlinked ext4 image on disk through a loop device */
        _LAYER_MAX,
} Layer;

const char *layer_to_string(Layer layer);

typedef struct Plan {
        const Job *job; /* borrowed, outlives the plan */
        const Policy *policy;
        char run_id[RUN_ID_MAX];
        char *job_id;
        char *service, *slice; /* unit names qscope-<run_id>.service (bounded: .scope), .slice */
        char *run_dir;         /* <runtime_dir>/<run_id> */
        char *root_dir;        /* <run_dir>/root, RootDirectory= */
        char **argv;
        char **env;        /* the whole environment of the job, "NAME=value", sorted by name */
        char **env_source; /* for each of env: "caller", "job" or "policy" (values never leave the plan) */
        char *cwd;         /* the workspace, absolute and lexically normalised */
        char *home;        /* where the scratch home is mounted; NULL: HOME is inside the workspace */
        char **shown;      /* directories of the host's /etc that are attached read-only, if they are there */
        char *passwd_home; /* the home directory in the job's /etc/passwd */
        Workspace workspace;
        Network network;
        Posture posture;
        uint64_t timeout_usec;
        uint64_t grace_usec; /* how long children may outlive the main process before they are leftovers */
        Limits limits;       /* resolved: LIMIT_UNLIMITED or a value, never LIMIT_UNSET */
        Layer layer;
        char **allow_changes; /* NULL: reported, not judged; paths absolute, normalised */
        PropertyList service_properties, slice_properties;
        ReasonList refusals; /* not empty: verdict "rejected", nothing is to be started */
} Plan;

/* Whether a directory may be a workspace, links resolved: not the system's, and below the policy's roots if
 * it has any. 0, or -EPERM with a sentence. */
int workspace_path_check(const Policy *policy, const char *path, Error *e);

/* 0 with a plan (look at refusals); -EINVAL with a sentence when the job cannot be a plan at all; -ENOMEM. */
int plan_make(const Job *job, const Policy *policy, const PlanContext *context, Plan **ret, Error *e);
Plan *plan_free(Plan *plan);
DEFINE_CLEANUP(Plan *, plan_free)

/* The plan for tools (qscope.plan/v1): units, every property as systemd would write it, limits, mounts,
 * expectations. Environment: names and sources only. NULL when out of memory. */
cJSON *plan_to_json(const Plan *plan);
