/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a job changed in the places that it may write to, as plain values, and the rules by which a change was
 * agreed or not. Pure. What was not read is UNKNOWN, NULL or "". */

#include <sys/types.h>

#include "base/hash.h"
#include "base/text.h"

#define XATTRS_LISTED_MAX 32u /* of one file; all are counted and digested */
#define CAPABILITIES_MAX  17  /* 16 hex digits and a NUL */

typedef enum FileType {
        FILE_REGULAR,
        FILE_DIRECTORY,
        FILE_SYMLINK,
        FILE_FIFO,
        FILE_SOCKET,
        FILE_CHAR,
        FILE_BLOCK,
        _FILE_TYPE_MAX,
} FileType;

extern const char *const file_type_names[_FILE_TYPE_MAX]; /* "file", "directory", "symlink", … */

typedef struct FileXattr {
        char *name; /* raw bytes */
        uint64_t size;
        char sha256[HASH_HEX_MAX]; /* of the value */
} FileXattr;

/* One side of a change. */
typedef struct FileNode {
        FileType type;
        unsigned mode; /* permission bits with setuid, setgid, sticky */
        uid_t uid;     /* as the workspace's owner would see it */
        gid_t gid;
        uint64_t size;             /* UNKNOWN for all but regular files */
        uint64_t allocated;        /* bytes on disk; less than size: it has holes */
        uint64_t links;            /* names of a file that is no directory */
        dev_t device;              /* of FILE_CHAR and FILE_BLOCK */
        uint64_t inode;            /* of the file that was there before the run and that this one is, or 0 */
        char sha256[HASH_HEX_MAX]; /* of a regular file's content; "" when not computed */
        char sparse_sha256[HASH_HEX_MAX]; /* instead, where holes are too large to be read, see
                                             sys/tree_content.h */
        char *target;                     /* of a symlink */
        FileXattr *xattrs;                /* sorted by name; user.*, access lists, file capabilities */
        size_t n_xattrs;
        uint64_t xattrs_total;               /* also those that are not in xattrs */
        char xattrs_sha256[HASH_HEX_MAX];    /* over all of them; "" when they were not read */
        char capabilities[CAPABILITIES_MAX]; /* permitted, in hex; "" when it has none */
} FileNode;

typedef enum ChangeKind { CHANGE_ADDED, CHANGE_REMOVED, CHANGE_CHANGED, _CHANGE_MAX } ChangeKind;

typedef enum ChangeWhat {
        CHANGED_CONTENT = 1 << 0,
        CHANGED_MODE = 1 << 1,
        CHANGED_OWNER = 1 << 2,
        CHANGED_TYPE = 1 << 3,
        CHANGED_XATTR = 1 << 4,
} ChangeWhat;

typedef struct FileChange {
        ChangeKind kind;
        char *path;    /* absolute in the job, raw bytes */
        bool scratch;  /* outside the workspace: /tmp, /var/tmp, /dev/shm, home */
        unsigned what; /* ChangeWhat bits for CHANGE_CHANGED */
        FileNode before, after;
} FileChange;

/* How it is known that something was moved, the surest first. */
typedef enum RenameHow {
        RENAME_DIRECTORY, /* the layer says from where; everything below came along */
        RENAME_INODE,     /* it is the same file, whatever was written to it since */
        RENAME_CONTENT,   /* the same bytes: a copy and a removal look the same */
        _RENAME_MAX,
} RenameHow;

extern const char *const rename_how_names[_RENAME_MAX];

typedef struct FileRename {
        char *from, *to;
        RenameHow how;
} FileRename;

/* Names of one file that the job made or touched; others may be where it did not. */
typedef struct HardLinks {
        char **paths;
        uint64_t links; /* all of its names */
} HardLinks;

typedef struct FileChanges {
        FileChange *items;
        size_t n;
        uint64_t total[_CHANGE_MAX];     /* also those that are not in items; UNKNOWN: nobody looked */
        uint64_t scratch;                /* of all these, outside the workspace */
        uint64_t unlisted_unexpected[2]; /* not in items and not agreed: in the workspace, in scratch places
                                          */
        bool truncated;                  /* items had to end early */
        bool complete;                   /* everything was looked at */
        char sha256[HASH_HEX_MAX];       /* over all changes, also those not listed; "" when not complete */
        FileRename *renames;
        size_t n_renames;
        HardLinks *hard_links;
        size_t n_hard_links;
        char **resolved; /* where entries of allow_changes led before the run: links followed */
} FileChanges;

void file_node_clear(FileNode *node);
void file_change_clear(FileChange *change);
void file_changes_clear(FileChanges *changes);

/* --- what was agreed --- */

/* What a policy thinks of writes to /tmp, /var/tmp, /dev/shm and the home. */
typedef enum ScratchWrites {
        SCRATCH_REPORT, /* listed, not judged */
        SCRATCH_ALLOW,  /* counted, neither listed nor judged */
        SCRATCH_FAIL,   /* judged by allow_changes, and when that is not given, none is agreed */
        _SCRATCH_WRITES_MAX,
        _SCRATCH_WRITES_INVALID = -EINVAL,
} ScratchWrites;

extern const char *const scratch_writes_names[_SCRATCH_WRITES_MAX];

typedef struct ChangeRules {
        char **allowed; /* NULL: changes of the workspace are not judged. By path_compare(), none below
                           another */
        ScratchWrites scratch;
} ChangeRules;

/* allow_changes (NULL: not given) and where its entries led to (may be NULL). 0 or -ENOMEM. */
int change_rules_make(
                char *const *allow_changes, char *const *resolved, ScratchWrites scratch, ChangeRules *ret);
void change_rules_clear(ChangeRules *rules);

bool change_is_unexpected(
                const ChangeRules *rules, ChangeKind kind, FileType type, const char *path, bool scratch);

/* --- renames --- */

/* Adds to changes->renames, which has the directories, the files that were moved, as far as the items tell.
 * A file that came along with its directory is not named again. 0 or -ENOMEM. */
int changes_find_renames(FileChanges *changes);
