/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A suite, qscope.suite/v1: cases that were written before any candidate was looked at. And the harness,
 * qscope.harness/v1: how a candidate of one language is called. Together with a candidate's files they make
 * the job of each run. Pure: no files are opened here.
 *
 * A case is one of two kinds. With "input", the candidate has a function solution(): the harness gives it the
 * input and prints {"output": …} and, where the case says "unchanged", {"input": …}, what the input is
 * afterwards. Without it, the candidate is a program, which gets the case's stdin, files and args. */

#include "core/job.h"

#define SUITE_FILE_MAX       MIB(8)
#define SUITE_CASES_MAX      10000u
#define SUITE_REPEATS_MAX    1000u
#define SUITE_NAME_MAX       64u
#define SUITE_POLICY_DEFAULT "eval"

typedef struct SuiteCase {
        char *name;
        cJSON *input;  /* for solution(); NULL: the candidate is a program */
        cJSON *output; /* what it must give; NULL: not judged */
        bool unchanged;
        char **args; /* further arguments of a program; NULL: none */
        cJSON *job;  /* the other keys, which are those of a job; never NULL */
} SuiteCase;

typedef struct Suite {
        char sha256[HASH_HEX_MAX]; /* of the document in its canonical form */
        char *name, *description;
        char *harness; /* a name, or a path (with a slash); NULL: by the candidate's extension */
        char *policy;
        uint64_t repeats;
        cJSON *defaults; /* keys of a job, for every case; NULL: none */
        SuiteCase *cases;
        size_t n_cases;
} Suite;

/* Reads a suite and checks every job that it will make as far as that goes without a candidate. name stands
 * in sentences. 0, -EINVAL with a sentence, -ENOMEM. */
int suite_parse(const char *text, size_t size, const char *name, Suite **ret, Error *e);
Suite *suite_free(Suite *suite);
DEFINE_CLEANUP(Suite *, suite_free)

typedef struct Harness {
        char *name;
        char **extensions; /* of candidates, ".py" */
        char *candidate;   /* the name of a candidate's file beside the harness */
        char **program;    /* what runs it as a program; NULL: cannot */
        char **function;   /* what calls its solution(); one argument follows: output, input, both */
        char **files;      /* names of files that lie beside the manifest and are placed in the workspace */
} Harness;

int harness_parse(const char *text, size_t size, const char *name, Harness **ret, Error *e);
Harness *harness_free(Harness *harness);
DEFINE_CLEANUP(Harness *, harness_free)

/* The files of a harness, and of a candidate. */
typedef struct SuiteFiles {
        JobFile *files;
        size_t n_files, room;
        char sha256[HASH_HEX_MAX]; /* of all of them, paths, modes and bytes */
} SuiteFiles;

/* Appends a copy of the bytes. 0 or -ENOMEM. */
int suite_files_add(SuiteFiles *files, const char *path, unsigned mode, const void *data, size_t size);
/* Sorts them and takes their digest. 0 or -ENOMEM. */
int suite_files_finish(SuiteFiles *files);
void suite_files_clear(SuiteFiles *files);

/* The run of one case with one candidate, one of its repeats. */
typedef struct SuiteRun {
        const Suite *suite;
        const Harness *harness;
        const SuiteFiles *harness_files;
        const char *candidate; /* its name */
        const SuiteFiles *candidate_files;
        size_t number;   /* of the case, from 0 */
        uint64_t repeat; /* from 1 */
} SuiteRun;

/* 0; -EINVAL with a sentence when these do not go together; -ENOMEM. */
int suite_make_job(const SuiteRun *run, Job **ret, Error *e);
