/* SPDX-License-Identifier: Apache-2.0 */
#include "core/exec_hint.h"

#include <elf.h>
#include <sys/stat.h>

#include "test.h"

#define FILE_755 (S_IFREG | 0755)
#define FILE_644 (S_IFREG | 0644)

/* An ELF header up to e_machine, little endian. */
#define ELF_HEAD(class, type, machine)                                                                       \
        "\x7f"                                                                                               \
        "ELF" class "\x01\x01\0\0\0\0\0\0\0\0\0" type "\0" machine "\0"
#define CLASS_64 "\x02"
#define CLASS_32 "\x01"

typedef struct Case {
        const char *name;
        int error;
        const char *step, *argv0, *resolved;
        unsigned mode;
        const char *head;
        size_t head_size;
        ExecKind kind;
        int exit_code;
        const char *says; /* part of the hint */
} Case;

#define HEAD(literal) literal, STRLEN(literal)
#define NO_HEAD       NULL, 0

static const Case cases[] = {
        /* not there */
        { "no such tool", ENOENT, "exec", "ruff", NULL, 0, NO_HEAD, EXEC_NOT_FOUND, 127,
                        "not on PATH (searched: /usr/bin:/bin)" },
        { "no such path", ENOENT, "exec", "/opt/x", "/opt/x", 0, NO_HEAD, EXEC_NOT_FOUND, 127,
                        "/opt/x does not exist" },
        { "relative", ENOENT, "exec", "./run.sh", "./run.sh", 0, NO_HEAD, EXEC_NOT_FOUND, 127,
                        "working directory" },
        { "tilde", ENOENT, "exec", "~/bin/x", "~/bin/x", 0, NO_HEAD, EXEC_NOT_FOUND, 127, "nothing expands" },
        { "one string", ENOENT, "exec", "ls -l", NULL, 0, NO_HEAD, EXEC_NOT_FOUND, 127, "white space" },
        { "shell syntax", ENOENT, "exec", "$EDITOR", NULL, 0, NO_HEAD, EXEC_NOT_FOUND, 127,
                        "nothing expands" },
        { "builtin", ENOENT, "exec", "cd", NULL, 0, NO_HEAD, EXEC_NOT_FOUND, 127, "built into shells" },
        { "below a file", ENOTDIR, "exec", "/etc/passwd/x", "/etc/passwd/x", 0, NO_HEAD, EXEC_NOT_FOUND, 127,
                        "not a directory" },
        { "no cwd", ENOENT, "chdir", "true", NULL, 0, NO_HEAD, EXEC_BAD_CWD, 127, "working directory" },
        { "cwd is a file", ENOTDIR, "chdir", "true", NULL, 0, NO_HEAD, EXEC_BAD_CWD, 127, "Not a directory" },
        { "cwd closed", EACCES, "chdir", "true", NULL, 0, NO_HEAD, EXEC_BAD_CWD, 126, "may search" },

        /* its interpreter is not there */
        { "interpreter", ENOENT, "exec", "./a", "./a", FILE_755, HEAD("#!/usr/bin/python9 -u\nx"),
                        EXEC_BAD_INTERPRETER, 127, "names /usr/bin/python9, which is not" },
        { "CRLF", ENOENT, "exec", "./a", "./a", FILE_755, HEAD("#!/bin/sh\r\necho\r\n"), EXEC_BAD_INTERPRETER,
                        127, "ends with a carriage return" },
        { "CRLF and argument", ENOENT, "exec", "./a", "./a", FILE_755, HEAD("#!/bin/nosh -e\r\n"),
                        EXEC_BAD_INTERPRETER, 127, "carriage return" },
        { "empty line", ENOENT, "exec", "./a", "./a", FILE_755, HEAD("#!\necho"), EXEC_BAD_INTERPRETER, 127,
                        "names no interpreter" },
        { "no loader", ENOENT, "exec", "./a", "./a", FILE_755, HEAD(ELF_HEAD(CLASS_64, "\x03", "\x3e")),
                        EXEC_BAD_INTERPRETER, 127, "dynamic loader" },
        { "loader of another machine", ENOENT, "exec", "./a", "./a", FILE_755,
                        HEAD(ELF_HEAD(CLASS_64, "\x03", "\xb7")), EXEC_BAD_INTERPRETER, 127, "aarch64" },

        /* there, but not for us */
        { "no x", EACCES, "exec", "./run.py", "./run.py", FILE_644, HEAD("print(1)"), EXEC_NOT_EXECUTABLE,
                        126, "[\"python3\", \"./run.py\"]" },
        { "directory", EACCES, "exec", "/usr", "/usr", S_IFDIR | 0755, NO_HEAD, EXEC_NOT_EXECUTABLE, 126,
                        "is a directory" },
        { "fifo", EACCES, "exec", "./f", "./f", S_IFIFO | 0755, NO_HEAD, EXEC_NOT_EXECUTABLE, 126,
                        "not a regular file" },
        { "mode", EACCES, "exec", "./a", "./a", S_IFREG | 0750, NO_HEAD, EXEC_PERMISSION_DENIED, 126,
                        "mode 0750" },
        { "path closed", EACCES, "exec", "/root/x", "/root/x", 0, NO_HEAD, EXEC_PERMISSION_DENIED, 126,
                        "may not search" },
        { "interpreter not executable", EACCES, "exec", "./a", "./a", FILE_755, HEAD("#! /etc/passwd\n"),
                        EXEC_BAD_INTERPRETER, 126, "interpreter /etc/passwd may not" },
        { "refused", EPERM, "exec", "./a", "./a", FILE_755, NO_HEAD, EXEC_PERMISSION_DENIED, 126,
                        "refused by the sandbox" },

        /* there, but no program */
        { "no shebang", ENOEXEC, "exec", "./run.sh", "./run.sh", FILE_755, HEAD("echo hello\n"),
                        EXEC_NO_SHEBANG, 126, "[\"sh\", \"./run.sh\"]" },
        { "UTF-8 text", ENOEXEC, "exec", "./a", "./a", FILE_755, HEAD("# gr\xc3\xbc\xc3\x9f\n"),
                        EXEC_NO_SHEBANG, 126, "without a #! line" },
        { "byte order mark", ENOEXEC, "exec", "./a", "./a", FILE_755, HEAD("\xef\xbb\xbf#!/bin/sh\n"),
                        EXEC_NO_SHEBANG, 126, "byte order mark" },
        { "empty", ENOEXEC, "exec", "./a", "./a", FILE_755, NO_HEAD, EXEC_NO_SHEBANG, 126, "is empty" },
        { "not read", ENOEXEC, "exec", "./a", "./a", 0, NO_HEAD, EXEC_NOT_EXECUTABLE, 126,
                        "not in any format" },
        { "rubbish", ENOEXEC, "exec", "./a", "./a", FILE_755, HEAD("\x01\x02\x03\x04"), EXEC_NOT_EXECUTABLE,
                        126, "not in any format" },
        { "other machine", ENOEXEC, "exec", "./a", "./a", FILE_755, HEAD(ELF_HEAD(CLASS_64, "\x02", "\xb7")),
                        EXEC_WRONG_ARCHITECTURE, 126, "built for aarch64 (64 bits), this host is x86_64" },
        { "32 bits", ENOEXEC, "exec", "./a", "./a", FILE_755, HEAD(ELF_HEAD(CLASS_32, "\x02", "\x03")),
                        EXEC_WRONG_ARCHITECTURE, 126, "built for i686 (32 bits)" },
        { "unknown machine", ENOEXEC, "exec", "./a", "./a", FILE_755,
                        HEAD(ELF_HEAD(CLASS_64, "\x02", "\x99")), EXEC_WRONG_ARCHITECTURE, 126,
                        "an unknown machine" },
        { "big endian", ENOEXEC, "exec", "./a", "./a", FILE_755,
                        HEAD("\x7f"
                             "ELF" CLASS_64 "\x02\x01\0\0\0\0\0\0\0\0\0\0\x02\0\x16"),
                        EXEC_WRONG_ARCHITECTURE, 126, "built for s390x (64 bits)" },
        { "object file", ENOEXEC, "exec", "./a.o", "./a.o", FILE_755,
                        HEAD(ELF_HEAD(CLASS_64, "\x01", "\x3e")), EXEC_NOT_EXECUTABLE, 126, "link it first" },
        { "damaged", ENOEXEC, "exec", "./a", "./a", FILE_755, HEAD(ELF_HEAD(CLASS_64, "\x02", "\x3e")),
                        EXEC_NOT_EXECUTABLE, 126, "damaged" },
        { "cut ELF", ENOEXEC, "exec", "./a", "./a", FILE_755,
                        HEAD("\x7f"
                             "ELF"),
                        EXEC_NOT_EXECUTABLE, 126, "damaged" },
        { "Windows", ENOEXEC, "exec", "./a.exe", "./a.exe", FILE_755, HEAD("MZ\x90\0\x03\0\0\0"),
                        EXEC_WRONG_ARCHITECTURE, 126, "for Windows" },
        { "text that begins with MZ", ENOEXEC, "exec", "./a", "./a", FILE_755, HEAD("MZ=1\n"),
                        EXEC_NO_SHEBANG, 126, "text" },
        { "macOS", ENOEXEC, "exec", "./a", "./a", FILE_755, HEAD("\xcf\xfa\xed\xfe\x07\0\0\x01"),
                        EXEC_WRONG_ARCHITECTURE, 126, "for macOS" },
        { "shebang to nowhere", ENOEXEC, "exec", "./a", "./a", FILE_755, HEAD("#!  \t\nx"),
                        EXEC_BAD_INTERPRETER, 126, "names no interpreter" },
        { "shebang to a data file", ENOEXEC, "exec", "./a", "./a", FILE_755, HEAD("#!/srv/data\n"),
                        EXEC_BAD_INTERPRETER, 126, "/srv/data" },
        { "loader is rubbish", ELIBBAD, "exec", "./a", "./a", FILE_755, NO_HEAD, EXEC_BAD_INTERPRETER, 126,
                        "loader" },
        { "odd header", EINVAL, "exec", "./a", "./a", FILE_755, NO_HEAD, EXEC_NOT_EXECUTABLE, 126, "header" },

        /* other */
        { "name too long", ENAMETOOLONG, "exec", "aaaa", NULL, 0, NO_HEAD, EXEC_BAD_ARGS, 126,
                        "longer than a path" },
        { "environment too large", E2BIG, "exec", "./a", "./a", FILE_755, NO_HEAD, EXEC_BAD_ARGS, 126,
                        "environment together" },
        { "links in a circle", ELOOP, "exec", "./a", "./a", 0, NO_HEAD, EXEC_OTHER, 126, "circle" },
        { "scripts of scripts", ELOOP, "exec", "./a", "./a", FILE_755, HEAD("#!./b\n"), EXEC_BAD_INTERPRETER,
                        126, "scripts themselves" },
        { "busy", ETXTBSY, "exec", "./a", "./a", FILE_755, NO_HEAD, EXEC_OTHER, 126, "open for writing" },
        { "memory", ENOMEM, "exec", "./a", "./a", FILE_755, NO_HEAD, EXEC_OTHER, 126, "limits.memory" },
        { "no sentence of its own", EIO, "exec", "./a", "./a", FILE_755, NO_HEAD, EXEC_OTHER, 126,
                        "Input/output error" },
        { "another step", EAGAIN, "prepare", "./a", NULL, 0, NO_HEAD, EXEC_OTHER, 126,
                        "could not be prepared (prepare" },
        { "no step", EIO, NULL, "./a", NULL, 0, NO_HEAD, EXEC_OTHER, 126, "could not be executed" },
};

static void explain(const Case *c, const char *path, const char *machine, ExecHint *ret)
{
        ExecRecord record = {
                .error = c->error,
                .step = (char *) c->step,
                .resolved = (char *) c->resolved,
                .file_mode = c->mode,
                .head_size = c->head_size,
        };
        char *argv[] = { (char *) c->argv0, NULL };

        if (c->head)
                memcpy(record.head, c->head, c->head_size);
        exec_explain(&record, argv, path, machine, ret);
        CHECK(utf8_is_valid(ret->hint, strlen(ret->hint)));
}

TEST(table)
{
        bool seen[_EXEC_KIND_MAX] = { false };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                const Case *c = &cases[i];
                ExecHint hint;

                explain(c, "/usr/bin:/bin", "x86_64", &hint);
                if (hint.kind != c->kind || hint.exit_code != c->exit_code || !strstr(hint.hint, c->says))
                        fprintf(stderr, "%s: %s, %d, %s\n", c->name, exec_kind_names[hint.kind],
                                        hint.exit_code, hint.hint);
                CHECK(hint.kind == c->kind);
                CHECK(hint.exit_code == c->exit_code);
                CHECK(strstr(hint.hint, c->says));
                seen[hint.kind] = true;
        }
        for (size_t i = 0; i < _EXEC_KIND_MAX; i++)
                CHECK(seen[i] && exec_kind_names[i]);
}

TEST(facts_that_are_missing)
{
        const Case no_path = { "", ENOENT, "exec", "jq", NULL, 0, NO_HEAD, 0, 0, NULL };
        const Case elf = { "", ENOEXEC, "exec", "./a", "./a", FILE_755,
                HEAD(ELF_HEAD(CLASS_64, "\x02", "\xb7")), 0, 0, NULL };
        ExecHint hint;

        explain(&no_path, NULL, NULL, &hint);
        CHECK(hint.kind == EXEC_NOT_FOUND && strstr(hint.hint, "no PATH to search"));
        explain(&no_path, "", NULL, &hint);
        CHECK(strstr(hint.hint, "no PATH to search"));
        explain(&elf, NULL, NULL, &hint); /* without the host's machine nothing can be called foreign */
        CHECK(hint.kind == EXEC_NOT_EXECUTABLE);
        explain(&elf, NULL, "aarch64", &hint);
        CHECK(hint.kind == EXEC_NOT_EXECUTABLE && strstr(hint.hint, "damaged"));
}

TEST(long_arguments)
{
        ExecRecord record = { .error = E2BIG, .step = (char *) "exec" };
        _cleanup_free_ char *longer = malloc(131073);
        char *argv[] = { (char *) "printf", (char *) "%s", longer, NULL };
        ExecHint hint;

        CHECK(longer);
        memset(longer, 'a', 131072);
        longer[131072] = '\0';
        exec_explain(&record, argv, NULL, NULL, &hint);
        CHECK(hint.kind == EXEC_BAD_ARGS && hint.exit_code == 126);
        CHECK(strstr(hint.hint, "argv[2] has 131072 bytes"));
        longer[131071] = '\0'; /* the longest that Linux takes */
        exec_explain(&record, argv, NULL, NULL, &hint);
        CHECK(!strstr(hint.hint, "argv[2]") && strstr(hint.hint, "together"));
}

TEST(long_shebang)
{
        char head[EXEC_HEAD_MAX];
        Case c = { "", ENOEXEC, "exec", "./a", "./a", FILE_755, head, sizeof(head), 0, 0, NULL };
        ExecHint hint;

        memset(head, 'x', sizeof(head));
        memcpy(head, "#!/", 3);
        explain(&c, NULL, NULL, &hint);
        CHECK(hint.kind == EXEC_BAD_INTERPRETER && strstr(hint.hint, "longer than the 255 bytes"));
}

TEST(nothing_unescaped)
{
        const Case names[] = {
                { "", ENOENT, "exec", "\033[2J\xff\n", NULL, 0, NO_HEAD, 0, 0, NULL },
                { "", EACCES, "exec", "a", "./\033]0;x\007\xe2\x80\xae", FILE_644, NO_HEAD, 0, 0, NULL },
                { "", ENOENT, "exec", "a", "./a", FILE_755, HEAD("#!/bin/\033[31m\xff\xfe x\n"), 0, 0, NULL },
        };
        char huge[8192];
        Case long_name = { "", ENOENT, "exec", huge, NULL, 0, NO_HEAD, 0, 0, NULL };
        ExecHint hint;

        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                explain(&names[i], "/bin/\033[0m", "x86_64", &hint);
                for (const char *p = hint.hint; *p; p++)
                        CHECK((unsigned char) *p >= 0x20 && *p != 0x7f);
                CHECK(strstr(hint.hint, "\\x"));
        }
        memset(huge, 0xff, sizeof(huge) - 1);
        huge[sizeof(huge) - 1] = '\0';
        explain(&long_name, "/bin", NULL, &hint);
        CHECK(strlen(hint.hint) < sizeof(hint.hint) && strstr(hint.hint, "...") &&
                        strstr(hint.hint, "not on PATH"));
}

TEST(errno_names)
{
        CHECK(streq(errno_name(ENOENT), "ENOENT"));
        CHECK(streq(errno_name(ENOEXEC), "ENOEXEC"));
        CHECK(!errno_name(0));
        CHECK(!errno_name(-1));
        CHECK(!errno_name(100000));
}

TEST_MAIN
