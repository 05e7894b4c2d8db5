# SPDX-License-Identifier: Apache-2.0
"""Every process of a job is in processes.tree, the shortest-lived too, with what it really ran; and
what was missed is counted and never passes."""

import os
import platform
import signal
import struct
import time

import host
import lib
from lib import (check, eq, fails, job, one_of, passes, py, run_job, sh, start_job, test, verdict)

GROUP = "processes"

# Starts a program many times, as fast as it can be done.
SPAWN = (
    "import os, sys\n"
    "for i in range(int(sys.argv[1])):\n"
    " pid = os.posix_spawn(sys.argv[2], ['tiny', str(i)], {})\n"
    " os.waitpid(pid, 0)\n"
)


def tiny_program():
    """The bytes of a program that ends as soon as it runs: one page, and two instructions to exit(0)."""
    if platform.machine() != "x86_64":
        return lib.read_bytes("/bin/true")
    code = bytes.fromhex("31ff b83c000000 0f05")
    size = 64 + 56 + len(code)
    header = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1", 2, 62, 1, 0x400078, 64, 0, 0, 64, 56, 1,
                         0, 0, 0)
    segment = struct.pack("<IIQQQQQQ", 1, 5, 0, 0x400000, 0x400000, size, size, 0x1000)
    return header + segment + code


def spawning(count, **fields):
    """A job that starts so many of them, one after the other."""
    cwd = lib.workspace({"tiny*": tiny_program()})
    return job(py(SPAWN, str(count), f"{cwd}/tiny"), cwd=cwd, **fields)


def tree(run):
    found = run["processes"]["tree"]
    check(isinstance(found, list), f"processes.tree is {found}")
    return found


def complete(run):
    processes = run["processes"]
    eq(processes["lost"], 0, "processes.lost")
    eq(processes["observed"], {"forks_and_ends": True, "programs": True}, "processes.observed")
    eq(processes["truncated"], False, "processes.truncated")
    eq(processes["total"], len(tree(run)), "processes.total")
    return tree(run)


def named(run, argv):
    """The one process that ran this last."""
    found = [item for item in tree(run) if item["argv"] == argv]
    eq(len(found), 1, f"processes with argv {argv} in {lib.short(tree(run), 2000)}")
    return found[0]


def base(item):
    return os.path.basename(item["program"] or "")


@test("smoke", "vm")
def test_true():
    """The negative control: one program is one process."""
    run = passes(["true"])
    item, = complete(run)
    eq([item["program"], item["argv"], item["ppid"]], ["/usr/bin/true", ["true"], None], "the process")
    eq([item["exit_code"], item["signal"], "execs" in item], [0, None, False], "its end")
    check(0 <= item["start_ms"] <= item["end_ms"], f"times: {item}")
    eq(run["processes"]["programs"], 1, "processes.programs")


@test("smoke", "vm", timeout=240)
def test_short_lived():
    """A thousand children that live for about a millisecond, each with program, argv and end."""
    run = passes(spawning(1000, timeout_sec=200), timeout=220)
    items = complete(run)
    eq(len(items), 1001, "processes")
    children = [item for item in items if item["ppid"] == items[0]["pid"]]
    eq([item["argv"] for item in children], [["tiny", str(i)] for i in range(1000)], "arguments")
    eq({item["program"] for item in children}, {run["cwd"] + "/tiny"}, "programs")
    eq({(item["exit_code"], item["signal"]) for item in children}, {(0, None)}, "ends")
    check(all(item["end_ms"] is not None for item in children), "every end has its time")


@test("smoke", "vm")
def test_ends():
    """An exit status, a signal from a sibling, a crash, a status above 127 that is no signal."""
    run = passes(sh("(exit 7); sleep 60 & kill $!; wait; (kill -SEGV $(exec sh -c 'echo $PPID'));"
                    "sh -c 'kill -9 $$'; (exit 200); exit 0"))
    items = complete(run)
    ends = {(item["exit_code"], item["signal"]) for item in items}
    for end in [(7, None), (None, "SIGTERM"), (None, "SIGSEGV"), (None, "SIGKILL"), (200, None)]:
        check(end in ends, f"{end} is missing: {ends}")


@test("smoke", "vm")
def test_exec_without_fork():
    """A process that becomes another program, twice, is one process with all three."""
    run = passes(sh("exec sh -c 'exec true last'"))
    item, = complete(run)
    eq([item["program"], item["argv"]], ["/usr/bin/true", ["true", "last"]], "what it ran last")
    eq([os.path.basename(e["program"]) for e in item["execs"]], ["dash", "dash", "true"], "execs")
    eq(run["processes"]["programs"], 3, "processes.programs")


@test("smoke")
def test_fork_only():
    """Children that never execute anything are there, as copies of their parent."""
    run = passes(py("import os\nfor i in range(20):\n if os.fork() == 0: os._exit(i)\n os.wait()"))
    items = complete(run)
    eq(len(items), 21, "processes")
    eq([item["exit_code"] for item in items[1:]], list(range(20)), "ends")
    check(all(item["argv"] is None and item["execs"] == [] and base(item).startswith("python3")
              for item in items[1:]), f"copies: {lib.short(items)}")


@test("smoke")
def test_double_fork():
    """A grandchild whose parent is gone still says who made it."""
    run = fails(py("import os, time\n"
                   "if os.fork() == 0:\n os.setsid()\n"
                   " if os.fork() == 0: os.execvp('sleep', ['sleep', '300'])\n os._exit(0)\n"
                   "os.wait(); time.sleep(0.2)"))
    first, middle, last = complete(run)
    eq([middle["ppid"], last["ppid"]], [first["pid"], middle["pid"]], "parents")
    eq(last["argv"], ["sleep", "300"], "the one left behind")
    eq([last["exit_code"], last["signal"]], [None, "SIGKILL"], "it was killed")
    left, = run["processes"]["leftover"]
    eq([left["pid"], left["program"]], [last["pid"], "/usr/bin/sleep"], "leftover")


@test("smoke", "vm")
def test_renamed_copy():
    """A copy under another name is seen as the file it is, in the workspace and in /tmp."""
    run = passes(sh("cp /bin/true ./systemd; ./systemd a; cp /bin/true /tmp/sh; /tmp/sh b; true"))
    complete(run)
    eq(named(run, ["./systemd", "a"])["program"], run["cwd"] + "/systemd", "in the workspace")
    eq(named(run, ["/tmp/sh", "b"])["program"], "/tmp/sh", "in /tmp")


HIDE = (
    "import ctypes, os, time\n"
    "libc = ctypes.CDLL(None)\n"
    "if os.fork() == 0:\n"
    " if os.fork() == 0:\n"
    "  libc.prctl(15, b'kworker/0:0', 0, 0, 0)\n"
    "  data = open('/proc/self/stat').read().rsplit(')', 1)[1].split()\n"
    "  begin, end = int(data[45]), int(data[46])\n"
    "  ctypes.memset(begin, 0, end - begin)\n"
    "  ctypes.memmove(begin, b'[kworker/0:0]', 13)\n"
    "  time.sleep(300)\n"
    " os._exit(0)\n"
    "os.wait(); time.sleep(0.3)"
)


@test("smoke", "vm")
def test_hidden_child():
    """A child that calls itself a kernel thread: what it says is kept, and what it is, too."""
    run = fails(py(HIDE))
    complete(run)
    left, = run["processes"]["leftover"]
    eq(left["comm"], "kworker/0:0", "its own name")
    check(base(left).startswith("python3"), f"program: {left['program']}")
    check(base(tree(run)[-1]).startswith("python3"), f"in the tree: {tree(run)[-1]}")


@test("smoke")
def test_scripts():
    """A script is named, not its interpreter, also through another script; and env as a program of
    its own."""
    files = {"run*": "#!/bin/sh\nexit 4\n", "deep*": "#!./run\n", "py*": "#!/usr/bin/env python3\n1\n"}
    cwd = lib.workspace(files)
    run = passes(job(sh("./run x; ./deep; ./py; true"), cwd=cwd))
    complete(run)
    item = named(run, ["./run", "x"])
    eq([item["program"], item["exit_code"]], [cwd + "/run", 4], "the script")
    eq(named(run, ["./deep"])["program"], cwd + "/deep", "a script for a script")
    item = named(run, ["python3", "./py"])
    eq([os.path.basename(e["program"]) for e in item["execs"]][0], "py", "env's script")


@test("smoke", "vm")
def test_failed_exec():
    """What could not be executed was no program: no such file, no right, no format, no interpreter."""
    cwd = lib.workspace({"text*": "nothing that runs\n", "bad*": "#!/no/interpreter\n", "plain": "x"})
    run = passes(job(py("import os\nfor name in ['/no/such', './plain', './text', './bad']:\n"
                        " try: os.execv(name, [name])\n except OSError: pass\n"
                        "os.execv('/bin/true', ['true'])"), cwd=cwd))
    item, = complete(run)
    eq(len(item["execs"]), 2, "execs")
    eq([base(item["execs"][0])[:7], base(item["execs"][1])], ["python3", "true"], "execs")


# Both from the same place, with the same file name and the same numbers (execve is 59, 221 on AArch64).
SAME_NUMBERS = (
    "import ctypes, os\n"
    "call, number = ctypes.CDLL(None).syscall, 59 if os.uname().machine == 'x86_64' else 221\n"
    "a, b = ctypes.create_string_buffer(b'harmless', 64), ctypes.create_string_buffer(b'--version', 64)\n"
    "argv = (ctypes.c_void_p * 3)(ctypes.addressof(a), ctypes.addressof(b), None)\n"
    "for i in range(2):\n"
    " call(number, b'./text', argv, None, None, None, None)\n"
    " os.unlink('text')\n"
    " os.symlink('/usr/bin/printf', 'text')\n"
    " a.value, b.value = b'printf', b'another'\n"
)


@test("smoke")
def test_exec_once_more():
    """What failed is tried once more with other arguments in the same memory: those count."""
    cwd = lib.workspace({"text*": "nothing that runs\n"})
    run = passes(job(py(SAME_NUMBERS), cwd=cwd))
    item, = complete(run)
    eq([run["stdout"], base(item), item["argv"]], ["another", "printf", ["printf", "another"]], "the second")


MEMFD = (
    "import os, sys\n"
    "fd = os.memfd_create('innocent', 0)\n"
    "os.write(fd, open(sys.argv[1], 'rb').read())\n"
    "if os.fork() == 0: os.execve(fd, ['[hidden]', '1'], {})\n"
    "os.wait()\n"
    "os.symlink('/proc/self/fd/%d' % fd, 'true')\n"
    "if os.fork() == 0:\n"
    " try: os.execv('./text', ['./text'])\n"
    " except OSError: pass\n"
    " os.execv('./true', ['true'])\n"
    "os.wait()\n"
)


@test("smoke", "vm")
def test_memfd():
    """A program that lies in no file, executed by its descriptor and by a link to it: never mistaken
    for its loader, nor for what failed before."""
    cwd = lib.workspace({"text*": "nothing that runs\n"})
    run = passes(job(py(MEMFD, "/bin/sleep"), cwd=cwd, expected_exit="any"))
    first, a, b = complete(run)
    for item in (a, b):
        check(item["program"] is None or "innocent" in item["program"], f"program: {item}")
        check(item.get("execs") != [], f"that something was executed: {item}")
    eq(a["argv"], ["[hidden]", "1"], "arguments")


THREAD_EXEC = (
    "import os, threading, time\n"
    "threading.Thread(target=lambda: time.sleep(60), daemon=True).start()\n"
    "threading.Thread(target=lambda: os.execv('/bin/sh', ['sh', '-c', 'exit 5'])).start()\n"
    "time.sleep(60)"
)


@test("smoke")
def test_thread_execs():
    """A thread that is not the first executes: the process goes on as one, and ends once."""
    run = passes(job(py(THREAD_EXEC), expected_exit=5))
    item, = complete(run)
    eq([item["argv"], item["exit_code"], item["signal"]], [["sh", "-c", "exit 5"], 5, None], "the process")


@test("smoke")
def test_vfork():
    """vfork(2), as posix_spawn and subprocess use it."""
    run = passes(py("import subprocess\nsubprocess.run(['true', 'child'])"))
    complete(run)
    eq(named(run, ["true", "child"])["ppid"], tree(run)[0]["pid"], "its parent")


@test("smoke")
def test_arguments():
    """Arguments as they are: empty, not UTF-8, with newlines; too many of them are cut and said to be."""
    run = passes(py("import subprocess\nsubprocess.run([b'true', b'', b'a\\nb', b'\\xff\\x1b[0m'])\n"
                    "subprocess.run(['true'] + ['x' * 100] * 3000)"))
    complete(run)
    exact, many = tree(run)[1:]
    eq(exact["argv"][:3], ["true", "", "a\nb"], "arguments")
    eq(len(exact["argv"]), 4, "their number")
    check("argv_cut" not in exact, "they are all there")
    eq(many["argv_cut"], True, "argv_cut")
    check(100 < len(many["argv"]) <= 1024, f"{len(many['argv'])} are kept")


@test("vm", timeout=60)
def test_stopped_qscope():
    """While qscope is stopped the job waits in execve, and nothing is missed."""
    started = start_job(spawning(200, timeout_sec=50))
    check(host.wait_until(lambda: host.job_processes(), lib.bound(10)), "the job did not start")
    time.sleep(0.1)
    started.kill(signal.SIGSTOP)
    time.sleep(0.5)
    started.kill(signal.SIGCONT)
    run = verdict(started.finish(), 0, "pass")
    eq(len(complete(run)), 201, "processes")


@test("smoke", timeout=60)
def test_stopped_beyond_timeout():
    """The timeout still holds when qscope goes on too late to see it pass."""
    started = start_job(job(sh("while :; do true | true; done"), timeout_sec=1))
    check(host.wait_until(lambda: host.job_processes(), lib.bound(10)), "the job did not start")
    started.kill(signal.SIGSTOP)
    time.sleep(1.5)
    started.kill(signal.SIGCONT)
    run = started.finish()
    eq([run.status, run["timed_out"]], [1, True], "outcome")


@test("vm", timeout=60)
def test_killed_qscope():
    """Nothing is let through unobserved for long: the jobs of a killed qscope are dead at once."""
    started = start_job(job(sh("while :; do true | true; done"), timeout_sec=50))
    check(host.wait_until(lambda: host.job_processes(), lib.bound(10)), "the job did not start")
    time.sleep(0.2)
    started.kill(signal.SIGKILL)
    started.process.wait()
    dead = host.wait_until(lambda: not host.job_processes(), lib.bound(3))
    check(dead, f"alive after a moment: {host.job_processes()}")


@test("smoke", timeout=60)
def test_timeout_in_exec():
    """At the deadline the job is frozen and looked at, although it starts programs all the time."""
    run = fails(job(sh("for i in 1 2 3 4; do (while :; do true; /bin/true; done) & done; wait"),
                    timeout_sec=1))
    lib.timed_out(run, 1)


def memory_peak(started):
    """VmHWM of a running qscope, in KiB; the last that was seen."""
    peak = 0
    while started.process.poll() is None:
        text = host.read(f"/proc/{started.process.pid}/status")
        lines = [line for line in text.splitlines() if line.startswith("VmHWM:")]
        peak = max([peak] + [int(line.split()[1]) for line in lines])
        time.sleep(0.05)
    return peak


@test("smoke", timeout=90)
def test_flood():
    """Forks as fast as they can be made: complete, or reported as lost and no pass; and bounded."""
    flood = ("import os, time\nend = time.time() + 2\n"
             "for i in range(4):\n"
             " if os.fork() == 0:\n"
             "  while time.time() < end:\n"
             "   pid = os.fork()\n"
             "   if pid == 0: os._exit(0)\n"
             "   os.waitpid(pid, 0)\n"
             "  os._exit(0)\n"
             "for i in range(4): os.wait()")
    started = start_job(job(py(flood), timeout_sec=60))
    peak = memory_peak(started)
    run = started.finish()
    processes = run["processes"]
    check(len(processes["tree"]) <= 10000, f"{len(processes['tree'])} are listed")
    if processes["lost"] == 0:
        eq([run.status, run["verdict"]], [0, "pass"], "outcome")
        check(processes["total"] > 10, f"total: {processes['total']}")
        eq(processes["truncated"], processes["total"] > len(processes["tree"]), "truncated")
    else:
        eq([run.status, run["verdict"]], [4, "error"], "outcome")
    check(peak < 300 * 1024, f"qscope took {peak} KiB")


@test("smoke", timeout=60)
def test_signal_flood():
    """Events faster than they can be read: what the kernel had no room for is counted."""
    run = run_job(job(py("import os, signal, time\nsignal.pthread_sigmask(signal.SIG_BLOCK, [10])\n"
                         "end = time.time() + 1\nwhile time.time() < end: os.kill(os.getpid(), 10)"),
                      timeout_sec=30))
    one_of((run.status, run["verdict"], run["processes"]["lost"] > 0),
           [(0, "pass", False), (4, "error", True)], "outcome")
    check(run["duration_ms"] < 20_000, f"it took {run['duration_ms']} ms")


@test("vm")
def test_many_programs_in_one():
    """A process that executes itself over and over is one entry with a bounded list."""
    run = passes(sh("n=100; export n; cat > again <<'E'\n#!/bin/sh\nn=$((n-1)); [ $n -gt 0 ] && exec ./again\n"
                    "exit 0\nE\nchmod +x again; exec ./again"))
    processes = run["processes"]
    eq([processes["lost"], processes["truncated"]], [0, True], "processes")
    check(processes["programs"] >= 100, f"programs: {processes['programs']}")
    check(max(len(item.get("execs", [])) for item in tree(run)) == 64, "the list is bounded")
