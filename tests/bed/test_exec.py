# SPDX-License-Identifier: Apache-2.0
"""What is executed, with which arguments and environment, and why a command could not be."""

import hashlib
import json
import os
import signal
import struct

import host
import lib
from lib import (between, check, collect, contains, eq, exits, fails, job, lacks, mentions,
                 one_of, passes, py, run_job, sh, sha256, test, workspace)

GROUP = "exec"

# --- argv -------------------------------------------------------------------------------

DUMP_ARGV = (
    "import os, sys, hashlib, json;"
    "print(json.dumps([[len(a), hashlib.sha256(a).hexdigest()]"
    " for a in map(os.fsencode, sys.argv[1:])]))"
)
HOSTILE_ARGUMENTS = [
    "$HOME", "$$", "${X}", "${HOME}", "$(reboot)", "`id`", "%n", "%%", "%i", "%h", "%s", "*", "?",
    "[a-z]", "~", ";", "|", "&", ">", "<", "#", "!", "\\", "trailing\\", "\\n", "\\x41", "a b",
    " lead", "trail ", "\t", "\n", "line\nline", "\r\n", "'", '"', "''", "-", "--", "-c", "=",
    "A=B", "@", "+", ":", "é", "\u200b", "\U0001f600", "\x01\x1b[31m", "\x7f", "\x80\x9b",
    "{}", "a,b", "\u202e", "\ufeff", "x" * 4096,
]


def received(arguments):
    run = passes(py(DUMP_ARGV, *arguments))
    eq(run["argv"][3:], list(arguments), "argv in the receipt")
    return json.loads(run.out)


def facts(arguments):
    raw = [argument.encode() for argument in arguments]
    return [[len(data), hashlib.sha256(data).hexdigest()] for data in raw]


@test("smoke", "vm")
def test_argv_bytes():
    """No shell, no systemd expansion and no printf ever looks at an argument."""
    got = received(HOSTILE_ARGUMENTS)
    wrong = [argument for argument, have, want in
             zip(HOSTILE_ARGUMENTS, got, facts(HOSTILE_ARGUMENTS)) if have != want]
    eq(wrong, [], "arguments that did not arrive as they were")
    eq(len(got), len(HOSTILE_ARGUMENTS), "number of arguments")


@test()
def test_argv_100k():
    """Arguments of 100 KiB, and 800 KiB in all, arrive whole."""
    arguments = [chr(ord("a") + i) * 102_400 for i in range(8)]
    eq(received(arguments), facts(arguments), "large arguments")


@test()
def test_argv_many():
    """Twenty thousand arguments arrive."""
    run = passes(sh("echo $#") + ["sh"] + ["x"] * 20_000)
    eq(run.out, "20000\n", "count")


@test()
def test_argv_too_long():
    """An argument over the kernel's 128 KiB is bad_args, and the hint says what the limit is."""
    run = exits(fails(["echo", "x" * 140_000]), 126)
    eq([run["exec"]["error"], run["exec"]["kind"]], ["E2BIG", "bad_args"], "exec")
    mentions(run["exec"]["hint"], ["128 KiB", "131072", "128K"], "hint")


@test()
def test_argv0_is_as_given():
    """The program sees argv[0] as the job wrote it, not the path it was found at."""
    top = workspace({"tool*": "#!/bin/sh\necho \"$0\"\n"})
    eq(passes(job(["./tool"], cwd=top)).out, "./tool\n", "script name")
    run = passes(["sh", "-c", "tr '\\0' '\\n' < /proc/$$/cmdline | head -n 1"])
    eq(run.out, "sh\n", "argv[0]")


# --- environment ------------------------------------------------------------------------

DUMP_ENV = (
    "import json;"
    "raw = open('/proc/self/environ', 'rb').read().split(b'\\0');"
    "print(json.dumps([r.decode('utf-8', 'surrogateescape') for r in raw if r]))"
)


def environment(**fields):
    kw = {"env": fields.pop("caller")} if "caller" in fields else {}
    run = passes(job(["/usr/bin/python3", "-c", DUMP_ENV], **fields), **kw)
    pairs = json.loads(run.out)
    names = [pair.split("=", 1)[0] for pair in pairs]
    eq(len(set(names)), len(names), "names are given once")
    return dict(pair.split("=", 1) for pair in pairs)


@test("smoke", "vm")
def test_environment_default():
    """By default PATH HOME LANG LC_ALL TERM where set, and not one variable more: no token, no
    agent socket, nothing of systemd's."""
    want = {key: lib.CALLER[key] for key in ("PATH", "HOME", "LANG", "TERM")}
    eq(environment(), want, "environment")


@test()
def test_environment_allowlist():
    """The listed names and no others; unset and empty ones are not there at all."""
    caller = {**lib.CALLER, "EMPTY": "", "EXTRA": "1", "OTHER": "2"}
    got = environment(env_allowlist=["PATH", "EXTRA", "EMPTY", "UNSET"], caller=caller)
    eq(got, {"PATH": lib.PATH, "EXTRA": "1"}, "environment")


@test()
def test_environment_denied_in_any_case():
    """What a policy never passes is no secret's name in one case only."""
    caller = {**lib.CALLER, "db_password": "1", "Api_Token": "2", "ld_preload": "3", "harmless": "4"}
    got = environment(env_allowlist=["db_password", "Api_Token", "ld_preload", "SECRET_TOKEN", "harmless"], caller=caller)
    eq(got, {"harmless": "4"}, "environment")


@test()
def test_environment_empty():
    """An empty list is an empty environment."""
    eq(environment(env_allowlist=[]), {}, "environment")


@test()
def test_environment_given():
    """`env` is set as given, before what the caller has, with no expansion of any kind."""
    given = {"A": "$HOME", "B": "%n%%", "C": "two\nlines", "D": "a=b=c", "E": "é \U0001f600",
             "F": "trail\\", "G": "", "LANG": "en_US.UTF-8", "H": "x" * 50_000, "_x1": "'\""}
    got = environment(env=given, env_allowlist=["PATH", "LANG"])
    eq(got, {"PATH": lib.PATH, **given}, "environment")


@test()
def test_environment_agent_socket():
    """The first runner dropped SSH_AUTH_SOCK even when listed: an agent is no environment."""
    run = run_job(job(["/usr/bin/env"], env_allowlist=["PATH", "SSH_AUTH_SOCK"]))
    one_of(run.status, (0, 3), "qscope's exit status")
    lacks(run["stdout"] or "", "SSH_AUTH_SOCK", "the job's environment")


@test()
def test_no_values_in_the_receipt():
    """A receipt names variables, never their values: it is shown around."""
    caller = {**lib.CALLER, "API_KEY": "value-from-caller-8271"}
    run = passes(job(["true"], env={"TOKEN": "value-from-job-5512"},
                     env_allowlist=["PATH", "API_KEY"]), env=caller)
    text = json.dumps(run.receipt)
    for value in ("value-from-caller-8271", "value-from-job-5512", lib.CALLER["SECRET_TOKEN"]):
        lacks(text, value, "the receipt")


@test()
def test_path_of_the_job():
    """argv[0] is looked up in the job's own PATH, not in qscope's."""
    top = workspace({"bin/tool*": "#!/bin/sh\necho mine\n"})
    run = passes(job(["tool"], cwd=top, env={"PATH": f"{top}/bin:/usr/bin:/bin"}))
    eq(run.out, "mine\n", "which tool ran")
    contains(json.dumps(run["exec"]), f"{top}/bin/tool", "exec")
    exits(fails(job(["tool"], cwd=top)), 127)


@test()
def test_current_directory_is_not_on_the_path():
    """A program in the workspace runs as ./tool only."""
    top = workspace({"tool*": "#!/bin/sh\necho ran\n"})
    exits(fails(job(["tool"], cwd=top)), 127)
    eq(passes(job(["./tool"], cwd=top)).out, "ran\n", "stdout")


# --- what a program inherits ------------------------------------------------------------


@test()
def test_signals_are_default():
    """No signal is ignored or blocked, even when qscope's caller ignores or blocks some."""

    def ignore():
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1, signal.SIGCHLD})

    run = passes(["grep", "-E", "^Sig(Blk|Ign|Cgt)", "/proc/self/status"], preexec_fn=ignore)
    values = dict(line.split(":\t") for line in run.out.splitlines())
    eq([values["SigBlk"], values["SigIgn"]], ["0" * 16, "0" * 16], "blocked, ignored")


@test()
def test_descriptors():
    """The job holds 0, 1 and 2 only: no directory of the host, no socket of qscope, none of the
    caller's."""
    reader, writer = os.pipe()
    code = "import os; print(sorted(int(n) for n in os.listdir('/proc/self/fd'))[:9])"
    run = passes(py(code), pass_fds=(reader, writer))
    eq(run.out, "[0, 1, 2, 3]\n", "descriptors (3 is the listing's own)")


@test()
def test_umask_is_ordinary():
    """Files are made with 022, whatever the caller's umask."""
    run = passes(sh("umask; touch f; mkdir d; stat -c %a f d"), umask=0o077)
    eq(run.out, "0022\n644\n755\n", "umask and modes")


@test()
def test_callers_limits_stay_out():
    """The caller's ulimits and nice value are the caller's; the number of open files is sane."""
    script = "ulimit -n; ulimit -c; nice"
    prefix = ["prlimit", "--nofile=200:200", "--nproc=5000", "--", "nice", "-n", "7"]
    files, _, nice = passes(sh(script), prefix=prefix).out.split()
    between(int(files), 1024, 1 << 20, "open files")
    eq(nice, "0", "nice value")


@test()
def test_open_files_hard_limit():
    """A program that raises its soft limit to the hard one and closes all must not loop for
    minutes: the hard limit is not in the millions."""
    run = passes(py("import resource; print(resource.getrlimit(resource.RLIMIT_NOFILE)[1])"))
    between(int(run.out), 1024, 1 << 20, "hard limit of open files")


@test()
def test_session():
    """The job has no controlling terminal and is not in the caller's session: it can neither type
    into a terminal nor be hit by its Ctrl-C."""
    code = ("import os\nprint(os.getsid(0))\n"
            "try: os.open('/dev/tty', os.O_RDWR)\nexcept OSError: print('no terminal')")
    session, terminal = passes(py(code)).out.splitlines()
    check(int(session) != os.getsid(0), "the job is in the caller's session")
    eq(terminal, "no terminal", "/dev/tty")


# --- why a command could not be executed ------------------------------------------------


def elf(machine):
    """A well-formed ELF header for another machine."""
    ident = b"\x7fELF\x02\x01\x01" + bytes(9)
    return ident + struct.pack("<HHIQQQIHHHHHH", 2, machine, 1, 0, 64, 0, 0, 64, 56, 0, 64, 0, 0)


def foreign_machine():
    return 183 if os.uname().machine == "x86_64" else 62


PROGRAMS = {
    "plain": "#!/bin/sh\necho no\n",
    "no-interpreter*": "#!/nonexistent/interpreter\n",
    "crlf*": "#!/bin/sh\r\necho no\r\n",
    "no-shebang*": "echo no\n",
    "empty*": "",
    "directory": None,
    "env-crlf*": "#!/usr/bin/env python3\r\nprint(1)\r\n",
}


def exec_workspace():
    top = workspace(PROGRAMS)
    lib.write(f"{top}/foreign", elf(foreign_machine()), 0o755, lib.OWNER)
    lib.write(f"{top}/secret", "#!/bin/sh\n", 0o700, 0)
    os.symlink("loop", f"{top}/loop")
    os.symlink("nowhere", f"{top}/dangling")
    return top


# argv[0]: exit codes, error, kinds, words of which the hint must have one
EXEC_ERRORS = [
    ("no-such-tool", (127,), "ENOENT", ("not_found",), ["PATH"]),
    ("./no-such-file", (127,), "ENOENT", ("not_found",), ["no-such-file", "exist"]),
    ("/usr/bin/no-such", (127,), "ENOENT", ("not_found",), ["no-such", "exist"]),
    ("./dangling", (127,), "ENOENT", ("not_found",), ["dangling", "exist", "link"]),
    ("./plain/x", (126, 127), "ENOTDIR", ("not_found", "other"), []),
    ("./plain", (126,), "EACCES", ("not_executable",), ["chmod", "execut"]),
    ("./secret", (126,), "EACCES", ("permission_denied",), ["permission", "owner", "mode"]),
    ("./directory", (126,), "EACCES", ("not_executable", "permission_denied", "other"),
     ["directory"]),
    ("./no-interpreter", (126, 127), "ENOENT", ("bad_interpreter",), ["/nonexistent/interpreter"]),
    ("./crlf", (126, 127), "ENOENT", ("bad_interpreter",), ["CRLF", "\\r", "carriage", "Windows"]),
    ("./no-shebang", (126,), "ENOEXEC", ("no_shebang",), ["#!", "shebang"]),
    ("./empty", (126,), "ENOEXEC", ("no_shebang", "not_executable", "other"), ["empty"]),
    ("./foreign", (126,), "ENOEXEC", ("wrong_architecture",), ["architecture", "machine", "built"]),
    ("./loop", (126, 127), "ELOOP", ("not_found", "other"), []),
]


def exec_error(argv0, codes, error, kinds, words, top):
    run = fails(job([argv0, "x"], cwd=top))
    one_of(run["exit_code"], codes, "exit_code")
    eq([run["signal"], run["timed_out"], run["match_expected"]], [None, False, False], "outcome")
    eq(run["exec"]["error"], error, "exec.error")
    one_of(run["exec"]["kind"], kinds, "exec.kind")
    check(run["exec"].get("hint") and run["exec"].get("step"), f"no hint or step: {run['exec']}")
    if words:
        mentions(run["exec"]["hint"], words, "exec.hint")


@test(timeout=40)
def test_exec_errors():
    """Each way a command cannot be executed has its own kind, the shell's exit code and a hint
    that says what to do."""
    top = exec_workspace()
    before = lib.snapshot(top)
    cases = EXEC_ERRORS if host.is_fast() else EXEC_ERRORS[5:12:2]
    collect([(*case, top) for case in cases], exec_error)
    lib.untouched(top, before)


@test("smoke")
def test_tool_not_on_path():
    """The commonest failure: a tool that exists in training data only."""
    run = exits(fails(["ruff", "check"]), 127)
    eq([run["exec"]["error"], run["exec"]["kind"]], ["ENOENT", "not_found"], "exec")
    contains(run["exec"]["hint"], "ruff", "hint")


@test()
def test_crlf_in_env_shebang():
    """`#!/usr/bin/env python3` with CRLF is env's failure (127), not ours, and is not hidden."""
    run = exits(fails(job(["./env-crlf"], cwd=workspace(PROGRAMS))), 127)
    contains(run["stderr"], "python3", "stderr")
    check(not (run["exec"] or {}).get("error"), "exec.error for a program that was started")


@test()
def test_job_that_exits_127_itself():
    """A command that ran and exits 126 or 127 has no exec.error."""
    for code in (126, 127):
        run = exits(fails(sh(f"exit {code}")), code)
        check(not (run["exec"] or {}).get("error"), f"exec.error: {run['exec']}")


@test("smoke")
def test_missing_cwd():
    """A workspace that is not there is bad_cwd, and qscope does not make it."""
    path = f"{lib.WORKSPACES}/not-there-{os.getpid()}"
    run = exits(fails(job(["true"], cwd=path)), 127)
    eq([run["exec"]["error"], run["exec"]["kind"]], ["ENOENT", "bad_cwd"], "exec")
    contains(run["exec"]["hint"], path, "hint")
    check(not os.path.exists(path), "the missing workspace was created")


@test()
def test_cwd_is_a_file():
    """A workspace that is a file is bad_cwd too."""
    path = lib.write(f"{workspace()}/file", "x")
    run = fails(job(["true"], cwd=path))
    eq([run["exec"]["error"], run["exec"]["kind"]], ["ENOTDIR", "bad_cwd"], "exec")
    one_of(run["exit_code"], (126, 127), "exit_code")
    eq(host.read(path), "x", "the file")


@test()
def test_resolved_path():
    """The receipt says which file was executed."""
    contains(json.dumps(passes(["true"])["exec"]), "/bin/true", "exec")


@test()
def test_binary_from_the_workspace():
    """A program that lies in the workspace can be executed: what a build makes can be tried."""
    top = workspace()
    lib.write(f"{top}/mine", lib.read_bytes("/bin/true"), 0o755, lib.OWNER)
    passes(job(["./mine"], cwd=top))
    run = passes(job(sh("cp /bin/echo e && ./e made && cp e /tmp/e2 && /tmp/e2 tmp"), cwd=top))
    eq(run.out, "made\ntmp\n", "programs made by the job")


@test()
def test_no_digest_confusion():
    """What the receipt says of the output is of the command's output, not of a hint's."""
    run = fails(["no-such-tool-here"])
    eq([run["stdout"], run["stdout_info"]["bytes"]], ["", 0], "stdout")
    eq(run["stdout_info"]["sha256"], sha256(""), "sha256 of nothing")
