/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The state of a walk, shared by its two halves: tree.c goes through the directories, tree_list.c keeps what
 * was found. Part of sys/tree. */

#include <sys/stat.h>

#include "sys/tree.h"

/* A name of a file that has several. */
typedef struct SeenLink {
        dev_t device;
        ino_t inode;
        uint64_t links;
        char *path;
} SeenLink;

struct TreeWalk {
        TreeOwner owner;
        const ChangeRules *rules;
        uint64_t file_limit;
        uint64_t read_budget; /* bytes of files that may still be read */
        FileChanges changes;
        size_t room;
        uint64_t listed_bytes;
        SeenLink *seen;
        size_t n_seen, seen_room;
        Hash digest;
        TreeResult result;

        /* Where it is. */
        bool scratch;
        bool inodes_known;  /* the lower layer's inode numbers are those of one file system */
        const char *prefix; /* path of the tree */
        char *const *made;
        char *path; /* of the entry at hand, absolute */
        size_t path_length, path_room;
        uint32_t depth;    /* 0: the tree's own directory */
        size_t names_held; /* bytes, of all directories that are being read */
};

/* Whether a change to the entry at hand would still be listed. */
bool walk_lists(const TreeWalk *walk, ChangeKind kind, FileType type);

/* Counts and digests a change to the entry at hand, and lists it if it is to be. Takes change. */
int walk_emit(TreeWalk *walk, FileChange *change);

/* Remembers a name of a file that has several, and a file that is as large as a file may be. */
int walk_note(TreeWalk *walk, const struct stat *st);

/* A directory that came from elsewhere. */
int walk_moved(TreeWalk *walk, const char *from);

/* What could not be looked at; the first one is kept. */
int walk_lose(TreeWalk *walk, const char *format, ...) _printf_(2, 3);
