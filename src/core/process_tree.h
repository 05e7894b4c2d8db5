/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Makes processes.tree from events: what the kernel traced (forks, execs, ends) and what each execve(2) was
 * given. Both come in the order of their time. Either may be missing where the host cannot give it: without
 * a trace an execve counts as done when it is tried, and processes that execute nothing are not seen.
 * Pure; bounded whatever the job does. */

#include "core/evidence.h"

typedef struct TreeBuilder TreeBuilder;

typedef struct TreeBounds {
        size_t processes;    /* listed */
        size_t runs;         /* programs listed for each of them */
        uint64_t text_bytes; /* of paths and arguments, all together */
        size_t live;         /* processes that can be told apart at the same time */
} TreeBounds;

extern const TreeBounds tree_bounds_default;

/* root: the process that will become the job's command. */
int tree_builder_new(const TreeBounds *bounds, bool traced, pid_t root, TreeBuilder **ret);

/* 0 or -ENOMEM. What makes no sense by itself (an exec of a process never seen) is taken as it is. */
int tree_builder_trace(TreeBuilder *builder, const TraceEvent *event);
int tree_builder_start(TreeBuilder *builder, const ProgramStart *start);

/* Another file of this execve(2) was told of already, which was no script, and it has not failed since: this
 * one is its loader. Without a trace nobody tells of a failure; a second call with everything equal is
 * then the same. */
bool tree_builder_knows(const TreeBuilder *builder, const ProgramStart *start);

/* The program that a process is running now or was running when it ended, or that it is a copy of: its path,
 * else its name. NULL: unknown. Valid until the next event. */
const char *tree_builder_program(const TreeBuilder *builder, pid_t pid);
/* Who made it; 0: unknown. */
pid_t tree_builder_parent(const TreeBuilder *builder, pid_t pid);

/* An exec that no program start was seen for: the path and arguments are looked up right after it, by whoever
 * can look. Called from within tree_builder_trace(); false: unknown. Takes over what it gives. */
typedef bool (*TreeFinder)(void *userdata, pid_t pid, char **ret_path, char ***ret_argv);
void tree_builder_set_finder(TreeBuilder *builder, TreeFinder finder, void *userdata);

/* Gives the tree, with times counted from the release. The builder holds nothing any more. */
void tree_builder_finish(TreeBuilder *builder, uint64_t released_usec, ProcessTree *ret);
TreeBuilder *tree_builder_free(TreeBuilder *builder);
DEFINE_CLEANUP(TreeBuilder *, tree_builder_free)
