/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Where the jobs of a batch come from: files, directories, patterns, and lines of JSON that come in while
 * others run. One job is read at a time; only names are kept. */

#include "core/job.h"

typedef struct JobSource JobSource;

/* One job, or why it is none. */
typedef struct JobItem {
        uint64_t number; /* from 1 */
        char *name;      /* "dir/a.json", "a.jsonl: line 2", "standard input: line 3" */
        char *job_dir;   /* where its file lies; NULL: it came through a pipe */
        Job *job;        /* NULL: error says why */
        Error error;
} JobItem;

void job_item_clear(JobItem *item);

/* arguments: a file; *.jsonl or *.ndjson, a job a line; a directory: its *.json, sorted by name; "-":
 * standard input, a job a line; a pattern of glob(7), where no file has that name. -ENOENT and others with a
 * sentence: what is named is not there. */
int job_source_new(char *const *arguments, JobSource **ret, Error *e);

/* Jobs that are made one by one: make gets the number, from 1 to total, and fills name, job or error. 0 or
 * -ENOMEM. */
typedef int (*JobMaker)(void *userdata, uint64_t number, JobItem *ret);
int job_source_made(JobMaker make, void *userdata, uint64_t total, JobSource **ret);
JobSource *job_source_free(JobSource *source);
DEFINE_CLEANUP(JobSource *, job_source_free)

/* 1: *ret is the next one; 0: there are no more; -EAGAIN: not yet, standard input becomes readable when there
 * is. -ENOMEM. */
int job_source_next(JobSource *source, JobItem *ret);

/* How many there are; UNKNOWN where lines are read. */
uint64_t job_source_total(const JobSource *source);
