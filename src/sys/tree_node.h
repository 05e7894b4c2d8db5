/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One entry of a directory. Part of sys/tree. What is named is opened only if it is a regular file or a
 * directory, and looked at again once it is open; no link is followed. */

#include "core/changes.h"
#include "sys/tree_content.h"

FileType node_type(mode_t mode);

/* A regular file. -ESTALE: it is none. */
int node_open(int dir_fd, const char *name, int *ret_fd);

/* Fills ret from st; a link's target is read, and with attributes also those of a regular file or a
 * directory. Attributes that cannot be read are not an error: ret->xattrs_sha256 stays empty. */
int node_read(int dir_fd, const char *name, const struct stat *st, bool attributes, FileNode *ret);

/* Digests a regular file's content into node, or leaves it when the budget does not allow that. */
int node_hash(int dir_fd, const char *name, const struct stat *st, uint64_t *budget, FileNode *node);

/* Compares two sides that have been read with attributes: ChangeWhat bits. -EFBIG: the budget does not
 * allow to compare their contents. -ENODATA: attributes were not read. */
int node_compare(int before_dir, const struct stat *before_st, const FileNode *before, int after_dir,
                const struct stat *after_st, const FileNode *after, const char *name, uint64_t *budget,
                unsigned *ret_what);
