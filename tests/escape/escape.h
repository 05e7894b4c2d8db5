/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the files of qscope-escape share: a program that tries to get out. It is started twice by the tests of
 * tests/bed/test_escape.py: in the bed, where each attempt must succeed, or it would say nothing, and in a
 * job, where none may. An attempt harms nothing, leaves nothing, and believes only what it got: the token of
 * a victim, an answer, a change. */

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

/* 0: it could; a negative errno: it could not. */
typedef int (*EscapeFunction)(const char *argument);

typedef struct Attempt {
        const char *name, *what;
        EscapeFunction call;
        const char *argument;
        bool vm; /* beyond what a container itself may do: to be seen to succeed in the vm bed only */
} Attempt;

extern const Attempt file_attempts[], proc_attempts[], process_attempts[], socket_attempts[],
                mount_attempts[], kernel_attempts[], shared_attempts[],
                own_attempts[]; /* each ended by a name of NULL */

/* Ends an attempt that was refused: returns -errno, and notes where it was. */
int refused(const char *step);

/* The same for a call that did what it was asked to, without the effect. */
int without_effect(const char *step);

/* Of an attempt that goes many ways: which one it was. Returns 0. */
int succeeded(const char *step);

/* A value of the command line (KEY=VALUE). That one is missing is a fault of the test: no attempt goes on
 * without. */
const char *target(const char *key);
long target_number(const char *key);

/* What a victim has and nobody else: the word that an attempt has to bring. It is not on the attempt's own
 * command line, so that nobody finds that instead. */
const char *token(void);
bool has_token(const void *data, size_t size);

/* Reads a file, and finds the token in it. */
int read_token(const char *path);
int read_token_fd(int fd, const char *step);

/* A mount namespace of its own where that may be had, so that nothing stays mounted. */
void own_mounts(void);

/* Mounts a new filesystem of this type on a new directory; its path is valid until the next call. */
const char *fresh_mount(const char *type);

/* Opens path to write, also on a filesystem of this type that is mounted anew: beds have them read-only. */
int open_kernel_file(const char *type, const char *top, const char *path, int flags);

/* The name of the abstract socket, the files that are locked and so on, which a victim makes (victim.c). */
#define VICTIM_FILE    "bed-escape"
#define VICTIM_MQUEUE  "/bed-escape"
#define VICTIM_SHM_KEY 0x62656401
extern const char *const victim_places[], *const victim_locks[]; /* ended by NULL */

/* Makes all of it, says so in the file "victim" of the working directory, and waits to be ended. */
int victim_main(void);
