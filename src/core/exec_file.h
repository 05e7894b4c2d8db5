/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a file is, as far as execve(2) cares, told from its first bytes. Pure. */

#include "base/macro.h"

typedef enum ExecLook {
        EXEC_LOOK_UNKNOWN, /* no bytes were read, or they fit nothing below */
        EXEC_LOOK_EMPTY,
        EXEC_LOOK_SCRIPT, /* "#!" */
        EXEC_LOOK_ELF,
        EXEC_LOOK_WINDOWS,
        EXEC_LOOK_MACOS,
        EXEC_LOOK_TEXT, /* without "#!" */
        _EXEC_LOOK_MAX,
} ExecLook;

typedef struct ExecFile {
        ExecLook look;

        /* SCRIPT: the interpreter within the bytes given, and what is odd about its line */
        const char *interpreter;
        size_t interpreter_size;
        bool carriage_return; /* the line ends with \r\n */
        bool line_cut;        /* the line did not end within the bytes given */

        /* TEXT */
        bool byte_order_mark; /* it would be a script but for the mark before "#!" */

        /* ELF */
        const char *machine; /* "x86_64", "aarch64" …; NULL: one that is not in the table */
        unsigned bits;       /* 32, 64, 0: damaged */
        bool foreign;        /* made for another machine than the host's, or 32 bits on 64 */
        bool object;         /* not linked, or a core dump: not a program at all */
} ExecFile;

/* size 0 with known: the file is empty. machine: the host's (uname -m) or NULL. */
ExecFile exec_file_look(const uint8_t *head, size_t size, bool known, const char *machine);
