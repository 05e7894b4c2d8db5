/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Mounts made by the file-descriptor calls (fsopen(2), open_tree(2), mount_setattr(2), move_mount(2)). All of
 * them live in a mount namespace of qscope's own, so that the kernel removes them when qscope is gone,
 * however it went. */

#include <sys/types.h>

#include "base/error.h"

/* A mount namespace of this process's own that still follows the host's mounts. 0 or a negative errno. */
int mount_namespace_own(void);

typedef struct MountOption {
        const char *key, *value; /* value NULL: a flag; key NULL: the end */
} MountOption;

/* Makes a file system and its mount, attached nowhere yet. attributes: MOUNT_ATTR_*. */
int mount_new(const char *type, const MountOption *options, unsigned attributes, int *ret_fd, Error *e);

/* A detached copy of the mount at dir_fd/path ("" for dir_fd itself), without what is mounted below. */
int mount_clone(int dir_fd, const char *path, unsigned attributes, int *ret_fd);

/* The same with all that is mounted below; attributes hold for each of them. */
int mount_clone_tree(int dir_fd, const char *path, unsigned attributes, int *ret_fd);

/* Maps owners on a detached mount: what the file system says of (from_uid, from_gid) is seen as (to_uid,
 * to_gid), and the other way round; everybody else stays. -EINVAL: this file system cannot. */
int mount_map_owner(int mount_fd, uid_t from_uid, gid_t from_gid, uid_t to_uid, gid_t to_gid);

/* Attaches a detached mount at a directory of this namespace. */
int mount_attach(int mount_fd, const char *target);

typedef enum MountAction {
        MOUNT_ATTACH,    /* at target itself */
        MOUNT_COVER,     /* at what target leads to, should it be a link */
        MOUNT_VEIL,      /* the same; what is mounted below stays where it is */
        MOUNT_READ_ONLY, /* what target leads to, and all below it, cannot be written any more; fd is not used
                          */
} MountAction;

typedef struct MountMove {
        int fd; /* detached mount; < 0 (MOUNT_ATTACH): what is mounted at target is removed instead */
        const char *target; /* absolute, as the held process sees it */
        MountAction action;
} MountMove;

/* Moves mounts into the namespace and root of a held process, in order. proc_fd: its /proc directory. */
int mount_move_into(int proc_fd, const MountMove *moves, size_t n, Error *e);

/* Not 0 ends the visit, which returns it. options: those of the mount itself, "rw,nosuid,noexec". */
typedef int (*MountVisitor)(void *userdata, const char *target, const char *options);

/* Every mount that a process sees below its root (proc_fd: its /proc directory), in the order they were made;
 * also those that lie hidden under another. */
int mount_visit(int proc_fd, MountVisitor visit, void *userdata);

/* 1: something is mounted below path (resolved, absolute), 0: nothing, or a negative errno. */
int mount_has_submounts(const char *path);
/* Where all of ours are; to be freed. */
int mount_list(char ***ret);
bool mount_list_has_submounts(char *const *list, const char *path);
