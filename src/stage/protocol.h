/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What qscope and the held stage say to each other over a SOCK_SEQPACKET socket pair. Both ends are built
 * from one source tree and installed together, so there are no versions; the magic number catches a mismatch.
 *
 *   stage  → qscope  READY                          (with SCM_CREDENTIALS: its pid and its dynamic uid)
 *   qscope → stage   RELEASE  + 5 descriptors       (command, stdin, stdout, stderr, life)
 *   stage  → qscope  TRYING   path                  before each execve of a file that exists
 *   stage  → qscope  FAILED   step, errno, path, …  and exit
 *
 * "life" is the writing end of a pipe that the exec closes: its end of file without FAILED before it means
 * that the command was executed. (The socket itself cannot tell: the service manager keeps a copy of it
 * open.)
 *
 * The command is a sealed memfd: a GateCommand, then strings_size bytes of strings, each ended by NUL, in
 * this order: working directory, search path, argc arguments, envc environment entries.
 *
 * qscope treats everything that arrives as hostile: after the exec the socket is closed (close-on-exec), but
 * only the kernel's credentials say who sent a message. */

#include <stdint.h>

#define GATE_MAGIC       UINT32_C(0x71736731)
#define GATE_PATH_MAX    4096
#define GATE_HEAD_MAX    256
#define GATE_STRINGS_MAX (8u << 20)

enum GateKind {
        GATE_READY = 1,
        GATE_RELEASE,
        GATE_TRYING,
        GATE_FAILED,
};

enum GateStep {
        GATE_STEP_NONE,
        GATE_STEP_PREPARE, /* reading the command, moving descriptors */
        GATE_STEP_CHDIR,
        GATE_STEP_EXEC,
        _GATE_STEP_MAX,
};

struct GateMessage {
        uint32_t magic;
        uint32_t kind;
        uint32_t step;
        int32_t error; /* positive errno */
        uint32_t mode; /* st_mode of path, 0: unknown */
        uint32_t head_size;
        uint8_t head[GATE_HEAD_MAX]; /* first bytes of the file that could not be executed */
        char path[GATE_PATH_MAX];    /* ended by NUL */
};

struct GateCommand {
        uint32_t magic;
        uint32_t argc, envc;
        uint32_t umask;
        uint32_t strings_size;
};
