/* SPDX-License-Identifier: Apache-2.0 */
/* Why execve(2) or chdir(2) refused a command, in words: errno × what the file looks like → kind, exit status
 * and one sentence. Everything quoted from the job is escaped. Opens nothing: the stage has looked already.
 *
 * Exit status as a shell has it (POSIX XCU 2.8.2; tried with bash 5.2 and dash): 127 for what is not there
 * (the file, its interpreter, the working directory), 126 for what is there and cannot be executed. */
#include "core/exec_hint.h"

#include <stdarg.h>
#include <sys/stat.h>

#include "core/exec_file.h"

/* MAX_ARG_STRLEN of Linux, with the NUL: execve(2), "Limits on size of arguments and environment". */
#define ARGUMENT_MAX KIB(128)

#define QUOTE_MAX 160

typedef struct Question {
        const ExecRecord *record;
        char *const *argv;
        const char *path; /* $PATH of the job, or NULL */
        ExecFile file;
        char name[QUOTE_MAX];        /* of the file: as resolved, else argv[0] */
        char interpreter[QUOTE_MAX]; /* of a script */
        char machine[QUOTE_MAX];     /* of the host */
} Question;

typedef void (*Answer)(const Question *q, ExecHint *ret);

const char *const exec_kind_names[_EXEC_KIND_MAX] = {
        [EXEC_NOT_FOUND] = "not_found",
        [EXEC_PERMISSION_DENIED] = "permission_denied",
        [EXEC_NOT_EXECUTABLE] = "not_executable",
        [EXEC_NO_SHEBANG] = "no_shebang",
        [EXEC_BAD_INTERPRETER] = "bad_interpreter",
        [EXEC_WRONG_ARCHITECTURE] = "wrong_architecture",
        [EXEC_BAD_CWD] = "bad_cwd",
        [EXEC_BAD_ARGS] = "bad_args",
        [EXEC_OTHER] = "other",
};

const char *errno_name(int error)
{
        return error > 0 ? strerrorname_np(error) : NULL;
}

static void _printf_(3, 4) answer(ExecHint *ret, ExecKind kind, const char *format, ...)
{
        char text[2 * sizeof(ret->hint)];
        va_list ap;

        va_start(ap, format);
        (void) vsnprintf(text, sizeof(text), format, ap);
        va_end(ap);
        ret->kind = kind;
        text_excerpt(text, strlen(text), ret->hint, sizeof(ret->hint));
}

/* Which program usually reads a script of this name: for the advice only. */
static const char *interpreter_for(const char *name)
{
        static const struct {
                const char *suffix, *program;
        } table[] = {
                { ".py", "python3" },
                { ".js", "node" },
                { ".mjs", "node" },
                { ".rb", "ruby" },
                { ".pl", "perl" },
                { ".bash", "bash" },
                { ".php", "php" },
                { ".lua", "lua" },
        };
        const char *dot = strrchr(name, '.');

        for (size_t i = 0; dot && i < ELEMENTSOF(table); i++)
                if (streq(table[i].suffix, dot))
                        return table[i].program;
        return "sh";
}

static bool is_shell_builtin(const char *name)
{
        static const char *const builtins[] = {
                ".",
                "alias",
                "bg",
                "cd",
                "command",
                "declare",
                "eval",
                "exec",
                "exit",
                "export",
                "fg",
                "local",
                "popd",
                "pushd",
                "set",
                "shopt",
                "source",
                "trap",
                "ulimit",
                "umask",
                "unset",
        };

        for (size_t i = 0; i < ELEMENTSOF(builtins); i++)
                if (streq(builtins[i], name))
                        return true;
        return false;
}

/* argv[0] without a slash that no directory of PATH has. */
static void not_on_path(const Question *q, ExecHint *ret)
{
        const char *name = q->argv[0];
        char path[QUOTE_MAX];

        if (is_shell_builtin(name))
                answer(ret, EXEC_NOT_FOUND,
                                "\"%s\" is built into shells and not a program: run it by a shell, [\"sh\", "
                                "\"-c\", \"...\"].",
                                q->name);
        else if (strpbrk(name, " \t\n"))
                answer(ret, EXEC_NOT_FOUND,
                                "argv[0] \"%s\" has white space in it and no program is called that: argv is "
                                "a "
                                "list, each word an element of its own.",
                                q->name);
        else if (strpbrk(name, "$~*|;&<>"))
                answer(ret, EXEC_NOT_FOUND,
                                "argv[0] \"%s\" has a shell's characters in it, and nothing expands them: "
                                "run "
                                "it by a shell, [\"sh\", \"-c\", \"...\"].",
                                q->name);
        else if (!q->path || !*q->path)
                answer(ret, EXEC_NOT_FOUND,
                                "\"%s\" has no slash and the job has no PATH to search: give its absolute "
                                "path, "
                                "or pass PATH.",
                                q->name);
        else {
                text_excerpt(q->path, strlen(q->path), path, sizeof(path));
                answer(ret, EXEC_NOT_FOUND,
                                "\"%s\" is not on PATH (searched: %s): the job's root does not have this "
                                "tool; use one that is there, or give the path of the job's own.",
                                q->name, path);
        }
}

static void missing_file(const Question *q, ExecHint *ret)
{
        const char *name = q->argv[0];

        if (!strchr(name, '/'))
                not_on_path(q, ret);
        else if (name[0] == '~' || name[0] == '$')
                answer(ret, EXEC_NOT_FOUND,
                                "argv[0] \"%s\" is taken as it is, nothing expands ~ or $: write the path "
                                "out.",
                                q->name);
        else if (name[0] == '/')
                answer(ret, EXEC_NOT_FOUND,
                                "%s does not exist in the job's root: name a program that is there, or put "
                                "this "
                                "one into the workspace.",
                                q->name);
        else
                answer(ret, EXEC_NOT_FOUND,
                                "%s does not exist relative to the working directory: check cwd, and that "
                                "the "
                                "file is in the workspace.",
                                q->name);
}

static void missing_interpreter(const Question *q, ExecHint *ret)
{
        if (q->file.look == EXEC_LOOK_SCRIPT && q->file.carriage_return)
                answer(ret, EXEC_BAD_INTERPRETER,
                                "the #! line of %s ends with a carriage return (Windows line ends), so "
                                "the interpreter looked for is \"%s\\r\": convert it with sed -i "
                                "'s/\\r$//'.",
                                q->name, q->interpreter);
        else if (q->file.look == EXEC_LOOK_SCRIPT && q->file.interpreter_size == 0)
                answer(ret, EXEC_BAD_INTERPRETER,
                                "the #! line of %s names no interpreter: write one there, such as "
                                "#!/bin/sh.",
                                q->name);
        else if (q->file.look == EXEC_LOOK_SCRIPT)
                answer(ret, EXEC_BAD_INTERPRETER,
                                "the #! line of %s names %s, which is not in the job's root: name an "
                                "interpreter that is there.",
                                q->name, q->interpreter);
        else if (q->file.look == EXEC_LOOK_ELF && q->file.foreign)
                answer(ret, EXEC_BAD_INTERPRETER,
                                "%s is there, but was built for %s and its loader is not in the job's "
                                "root: build it for %s.",
                                q->name, q->file.machine ? q->file.machine : "another machine", q->machine);
        else
                answer(ret, EXEC_BAD_INTERPRETER,
                                "%s is there, but the dynamic loader it names is not in the job's root "
                                "(built for another C library?): link it statically, or build it for "
                                "this system.",
                                q->name);
}

static void on_enoent(const Question *q, ExecHint *ret)
{
        ret->exit_code = 127;
        if (q->record->file_mode != 0)
                missing_interpreter(q, ret);
        else
                missing_file(q, ret);
}

static void on_enotdir(const Question *q, ExecHint *ret)
{
        ret->exit_code = 127;
        answer(ret, EXEC_NOT_FOUND,
                        "%s does not exist: a part of the path before its name is not a directory.", q->name);
}

static void on_eacces(const Question *q, ExecHint *ret)
{
        unsigned mode = q->record->file_mode;

        if (mode == 0)
                answer(ret, EXEC_PERMISSION_DENIED,
                                "%s cannot be reached: the job's user may not search a directory on its "
                                "path (chmod o+x, or another place).",
                                q->name);
        else if (S_ISDIR(mode))
                answer(ret, EXEC_NOT_EXECUTABLE, "%s is a directory: name the program in it.", q->name);
        else if (!S_ISREG(mode))
                answer(ret, EXEC_NOT_EXECUTABLE, "%s is not a regular file: only those can be executed.",
                                q->name);
        else if (!(mode & 0111))
                answer(ret, EXEC_NOT_EXECUTABLE,
                                "%s has no execute permission (mode %04o): chmod +x it, or run it by its "
                                "interpreter, [\"%s\", \"%s\"].",
                                q->name, mode & 07777u, interpreter_for(q->name), q->name);
        else if (q->file.look == EXEC_LOOK_SCRIPT && (mode & 0111) == 0111)
                answer(ret, EXEC_BAD_INTERPRETER,
                                "%s may be executed, but its interpreter %s may not (no execute "
                                "permission, a directory, or a noexec mount).",
                                q->name, q->interpreter);
        else
                answer(ret, EXEC_PERMISSION_DENIED,
                                "%s has mode %04o, which does not let the job's user execute it (or it "
                                "lies on a noexec mount): chmod a+rx it.",
                                q->name, mode & 07777u);
}

static void on_eperm(const Question *q, ExecHint *ret)
{
        answer(ret, EXEC_PERMISSION_DENIED,
                        "executing %s was refused by the sandbox or by a security module: use another "
                        "program, or a policy that allows it.",
                        q->name);
}

static void unknown_elf(const Question *q, ExecHint *ret)
{
        if (q->file.object)
                answer(ret, EXEC_NOT_EXECUTABLE,
                                "%s is an object file or a core dump, not a program: link it first.",
                                q->name);
        else if (q->file.foreign)
                answer(ret, EXEC_WRONG_ARCHITECTURE,
                                "%s was built for %s (%u bits), this host is %s: build it for %s.", q->name,
                                q->file.machine ? q->file.machine : "an unknown machine", q->file.bits,
                                q->machine, q->machine);
        else
                answer(ret, EXEC_NOT_EXECUTABLE,
                                "%s looks like a program but is damaged or cut short: build or copy it "
                                "again.",
                                q->name);
}

static void unknown_script(const Question *q, ExecHint *ret)
{
        if (q->file.interpreter_size == 0)
                answer(ret, EXEC_BAD_INTERPRETER,
                                "the #! line of %s names no interpreter: write one there, such as "
                                "#!/bin/sh.",
                                q->name);
        else if (q->file.line_cut)
                answer(ret, EXEC_BAD_INTERPRETER,
                                "the #! line of %s is longer than the 255 bytes Linux reads: shorten the "
                                "interpreter's path.",
                                q->name);
        else
                answer(ret, EXEC_BAD_INTERPRETER,
                                "the interpreter %s that the #! line of %s names is not a program this "
                                "host can execute.",
                                q->interpreter, q->name);
}

static void on_enoexec(const Question *q, ExecHint *ret)
{
        switch (q->file.look) {
        case EXEC_LOOK_EMPTY:
                answer(ret, EXEC_NO_SHEBANG, "%s is empty: there is nothing to execute.", q->name);
                break;
        case EXEC_LOOK_SCRIPT:
                unknown_script(q, ret);
                break;
        case EXEC_LOOK_ELF:
                unknown_elf(q, ret);
                break;
        case EXEC_LOOK_WINDOWS:
        case EXEC_LOOK_MACOS:
                answer(ret, EXEC_WRONG_ARCHITECTURE,
                                "%s is a program for %s, and this is Linux: build it for Linux.", q->name,
                                q->file.look == EXEC_LOOK_WINDOWS ? "Windows" : "macOS");
                break;
        case EXEC_LOOK_TEXT:
                if (q->file.byte_order_mark)
                        answer(ret, EXEC_NO_SHEBANG,
                                        "%s has a byte order mark before its #!, which hides it from the "
                                        "kernel: save it without.",
                                        q->name);
                else
                        answer(ret, EXEC_NO_SHEBANG,
                                        "%s is text without a #! line, and a shell's guess is not made here: "
                                        "add #!/bin/sh (or its interpreter) as the first line, or run it "
                                        "as [\"%s\", \"%s\"].",
                                        q->name, interpreter_for(q->name), q->name);
                break;
        default:
                answer(ret, EXEC_NOT_EXECUTABLE, "%s is not in any format that Linux executes.", q->name);
        }
}

static void on_e2big(const Question *q, ExecHint *ret)
{
        uint64_t total = 0;

        for (size_t i = 0; q->argv[i]; i++) {
                size_t size = strlen(q->argv[i]) + 1;

                total += size;
                if (size <= ARGUMENT_MAX)
                        continue;
                answer(ret, EXEC_BAD_ARGS,
                                "argv[%zu] has %zu bytes, over the 128 KiB (%u) that Linux passes in one "
                                "argument: pass it in a file or on standard input.",
                                i, size - 1, (unsigned) ARGUMENT_MAX - 1);
                return;
        }
        answer(ret, EXEC_BAD_ARGS,
                        "arguments (%llu bytes) and environment together are more than Linux passes to a "
                        "program, "
                        "or one variable is over 128 KiB: pass them in a file or on standard input.",
                        (unsigned long long) total);
}

static void on_enametoolong(const Question *q, ExecHint *ret)
{
        answer(ret, EXEC_BAD_ARGS,
                        "argv[0] \"%s\" is longer than a path can be: is a script in the place of a program?",
                        q->name);
}

static void on_eloop(const Question *q, ExecHint *ret)
{
        if (q->record->file_mode != 0)
                answer(ret, EXEC_BAD_INTERPRETER,
                                "the interpreters of %s are scripts themselves, more than five deep: name "
                                "a program in its #! line.",
                                q->name);
        else
                answer(ret, EXEC_OTHER, "the symbolic links on the path of %s lead in a circle.", q->name);
}

static void on_elibbad(const Question *q, ExecHint *ret)
{
        answer(ret, EXEC_BAD_INTERPRETER,
                        "the dynamic loader that %s names is not one this host can execute.", q->name);
}

static void on_etxtbsy(const Question *q, ExecHint *ret)
{
        answer(ret, EXEC_OTHER,
                        "%s is open for writing by a process (a build that is not finished?): close it "
                        "first.",
                        q->name);
}

static void on_enomem(const Question *q, ExecHint *ret)
{
        answer(ret, EXEC_OTHER, "there was not enough memory to load %s: raise limits.memory.", q->name);
}

static void on_einval(const Question *q, ExecHint *ret)
{
        answer(ret, EXEC_NOT_EXECUTABLE,
                        "%s has a header that Linux does not accept (damaged, or more than one loader "
                        "named): build it again.",
                        q->name);
}

static void on_other(const Question *q, ExecHint *ret)
{
        char text[128];

        answer(ret, EXEC_OTHER, "%s could not be executed: %s.", q->name,
                        strerror_r(q->record->error, text, sizeof(text)));
}

static const struct {
        int error;
        Answer explain;
} answers[] = {
        { ENOENT, on_enoent },
        { ENOTDIR, on_enotdir },
        { EACCES, on_eacces },
        { EPERM, on_eperm },
        { ENOEXEC, on_enoexec },
        { E2BIG, on_e2big },
        { ENAMETOOLONG, on_enametoolong },
        { ELOOP, on_eloop },
        { ELIBBAD, on_elibbad },
        { EISDIR, on_elibbad },
        { ETXTBSY, on_etxtbsy },
        { ENOMEM, on_enomem },
        { EINVAL, on_einval },
};

static void explain_exec(const Question *q, ExecHint *ret)
{
        for (size_t i = 0; i < ELEMENTSOF(answers); i++)
                if (answers[i].error == q->record->error) {
                        answers[i].explain(q, ret);
                        return;
                }
        on_other(q, ret);
}

static void explain_chdir(const Question *q, ExecHint *ret)
{
        const char *path = q->record->resolved ? q->record->resolved : "";
        char text[128], cwd[256];

        text_excerpt(path, strlen(path), cwd, sizeof(cwd));
        if (q->record->error == ENOENT || q->record->error == ENOTDIR)
                ret->exit_code = 127;
        answer(ret, EXEC_BAD_CWD,
                        "the working directory %s cannot be entered: %s. Set cwd to a directory that exists%s.",
                        cwd, strerror_r(q->record->error, text, sizeof(text)),
                        q->record->error == EACCES ? " and that its user may search" : "");
}

static void explain_step(const Question *q, ExecHint *ret)
{
        char step[64], text[128];

        text_excerpt(q->record->step, strlen(q->record->step), step, sizeof(step));
        answer(ret, EXEC_OTHER, "the process could not be prepared (%s: %s); %s was not tried.", step,
                        strerror_r(q->record->error, text, sizeof(text)), q->name);
}

void exec_explain(const ExecRecord *record, char *const *argv, const char *path, const char *machine,
                ExecHint *ret)
{
        Question q = { .record = record, .argv = argv, .path = path };
        const char *step = record->step ? record->step : "exec",
                   *name = record->resolved ? record->resolved : argv[0];

        assert(record->error > 0 && argv && argv[0]);
        q.file = exec_file_look(record->head, record->head_size, S_ISREG(record->file_mode), machine);
        text_excerpt(name, strlen(name), q.name, sizeof(q.name));
        text_excerpt(q.file.interpreter, q.file.interpreter_size, q.interpreter, sizeof(q.interpreter));
        text_excerpt(machine ? machine : "another", strlen(machine ? machine : "another"), q.machine,
                        sizeof(q.machine));
        *ret = (ExecHint){ .exit_code = 126 };
        if (streq(step, "chdir"))
                explain_chdir(&q, ret);
        else if (streq(step, "exec"))
                explain_exec(&q, ret);
        else
                explain_step(&q, ret);
}
