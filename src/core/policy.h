/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The policy file, qscope.policy/v1 (JSON with // comments): defaults, ceilings and the sandbox's properties.
 * Pure: the caller reads the files. */

#include "core/changes.h"
#include "core/job.h"
#include "core/property.h"

#define POLICY_FILE_MAX MIB(1)

typedef struct Policy {
        char *name, *description;
        char sha256[65];   /* of the merged policy's canonical text */
        char **deny_argv0; /* fnmatch patterns for the base name of argv[0], compared without case */
        /* "default": used where the job says nothing */
        uint64_t default_timeout_usec; /* UNKNOWN: 30 s */
        Limits default_limits;
        char **default_allow_changes; /* NULL: not judged */
        /* "max": more is rejected */
        uint64_t max_timeout_usec; /* UNKNOWN: none */
        Limits max_limits;
        /* "env" */
        char **env_allow;  /* names passed where a job lists none; default PATH HOME LANG LC_ALL TERM */
        char **env_deny;   /* fnmatch patterns never passed from the caller whatever a job lists */
        char **env_set;    /* "NAME=value" */
        uint32_t networks; /* bit per Network that a job may ask for */
        uint32_t postures;
        char **workspace_roots; /* NULL: anywhere but system directories */
        char **hidden_paths, **read_only_paths;
        ScratchWrites scratch_writes; /* default: report */
        PropertyList properties;      /* "properties": the sandbox */
} Policy;

/* Reads one policy text. Drop-ins: pass the main file's text first, then each drop-in's, in n_texts; objects
 * merge key by key, anything else replaces. 0; -EINVAL with a sentence (file, line, key); -ENOMEM. */
typedef struct PolicyText {
        const char *name; /* file name for sentences */
        const char *text;
        size_t size;
} PolicyText;

int policy_parse(const PolicyText *texts, size_t n_texts, Policy **ret, Error *e);
Policy *policy_free(Policy *policy);
DEFINE_CLEANUP(Policy *, policy_free)
