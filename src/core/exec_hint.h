/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Why a command could not be executed, from the errno and the file's first bytes. Pure. */

#include "core/outcome.h"

typedef enum ExecKind {
        EXEC_NOT_FOUND,
        EXEC_PERMISSION_DENIED,
        EXEC_NOT_EXECUTABLE,
        EXEC_NO_SHEBANG,
        EXEC_BAD_INTERPRETER,
        EXEC_WRONG_ARCHITECTURE,
        EXEC_BAD_CWD,
        EXEC_BAD_ARGS,
        EXEC_OTHER,
        _EXEC_KIND_MAX,
} ExecKind;

extern const char *const exec_kind_names[_EXEC_KIND_MAX];

typedef struct ExecHint {
        ExecKind kind;
        int exit_code;  /* 127: not found (file or working directory), 126: found but not executable */
        char hint[512]; /* one sentence and what to do; printable UTF-8 */
} ExecHint;

/* record->error must be positive. argv0, path ($PATH of the job, may be NULL), machine (uname -m, may be
 * NULL). */
void exec_explain(const ExecRecord *record, char *const *argv, const char *path, const char *machine,
                ExecHint *ret);

/* "ENOENT" for 2; NULL for an unknown number (strerrorname_np(3)). */
const char *errno_name(int error);
