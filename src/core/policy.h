/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The policy file, qscope.policy/v1 (JSON with // comments): defaults, ceilings and the sandbox's properties.
 * Pure: the caller finds and reads the files. */

#include "core/changes.h"
#include "core/exec_rules.h"
#include "core/job.h"
#include "core/property.h"

#define POLICY_FILE_MAX  MIB(1)
#define POLICY_CHAIN_MAX 8u  /* policies of which each extends the next */
#define POLICY_PATHS_MAX 64u /* in hidden_paths and read_only_paths: each is a mount */

typedef struct Policy {
        char *name, *description;
        char sha256[65];   /* of the merged policy's canonical text */
        char **deny_argv0; /* fnmatch patterns for the base name of argv[0], compared without case */
        ExecRules exec;
        /* "default": used where the job says nothing */
        uint64_t default_timeout_usec; /* UNKNOWN: 30 s */
        Limits default_limits;
        char **default_allow_changes; /* NULL: not judged */
        cJSON *job_defaults;          /* further keys of a job, for job_take_defaults(); NULL: none */
        /* "max": more is rejected */
        uint64_t max_timeout_usec; /* UNKNOWN: none */
        Limits max_limits;
        /* "env" */
        char **env_allow;  /* names passed where a job lists none; default PATH HOME LANG LC_ALL TERM */
        char **env_deny;   /* fnmatch patterns never passed from the caller whatever a job lists */
        char **env_set;    /* "NAME=value": a job cannot change them */
        uint32_t networks; /* bit per Network that a job may ask for */
        uint32_t postures;
        char **workspace_roots; /* NULL: anywhere but system directories */
        char *root; /* another system's root: a directory, or an image of a file system; NULL: the host's */
        char **hidden_paths, **read_only_paths;
        char **require; /* isolation facts that must be observed and hold */
        bool throttling_fails;
        ScratchWrites scratch_writes; /* default: report */
        PropertyList properties;      /* "properties": the sandbox */

        cJSON *document; /* all texts merged, without "extends" */
        cJSON *sources;  /* its shape, with the name of the file that each value came from */
} Policy;

typedef struct PolicyText {
        const char *name; /* file name for sentences */
        const char *text;
        size_t size;
        const char *policy; /* the policy that the file belongs to: "name" must be this; NULL: any will do */
} PolicyText;

/* The policy that the last of the texts to say so extends; NULL in *ret: none. 0; -EINVAL; -ENOMEM. */
int policy_extends(const PolicyText *texts, size_t n_texts, char **ret, Error *e);

/* Reads the texts and merges them by the rules of policy_merge.h, in this order: what is extended with its
 * drop-ins, then the policy's own file, then its drop-ins. 0; -EINVAL with a sentence (file, line, key);
 * -ENOMEM. */
int policy_parse(const PolicyText *texts, size_t n_texts, Policy **ret, Error *e);
Policy *policy_free(Policy *policy);
DEFINE_CLEANUP(Policy *, policy_free)

/* Reads one text by itself, as a drop-in: what it says is right, whatever it is merged with. */
int policy_check_text(const PolicyText *text, Error *e);

/* What an administrator should look at twice, one sentence each, in *ret. 0 or -ENOMEM. */
int policy_lint(const Policy *policy, char ***ret);

/* The merged policy as its own file format, with the file that each value came from in a comment behind it.
 * NULL when out of memory. */
char *policy_show(const Policy *policy);
