# SPDX-License-Identifier: Apache-2.0
"""The posture bounded: a scope around a process of the caller's own, with limits and a receipt."""

import json
import os
import pty
import signal
import subprocess
import time

import host
import lib
from lib import (between, check, contains, eq, errors, exits, fails, lacks, mentions, only_hits, passes,
                 py, rejected, sh, signal_of, start_job, test, workspace)

GROUP = "bounded"

# Where the bed has no controllers, a limit that needs one would be refused.
UNCONTROLLED = {"memory": None, "tasks": None, "cpu": None}


def bounded(argv, **fields):
    limits = {**UNCONTROLLED, **fields.pop("limits", {})}
    return {"argv": argv, "--policy": "trusted", "posture": "bounded", "limits": limits, **fields}


@test("smoke")
def test_not_a_models_choice():
    """What came through a pipe, or could be written by others, cannot leave the sandbox by naming a policy."""
    for fields in ({}, {"posture": "bounded"}):
        wish = {"argv": ["touch", "/root/out"], "policy": "trusted", "limits": UNCONTROLLED, **fields}
        loose, receipt = lib.write_job(wish), lib.scratch("loose.json")
        os.chmod(loose, 0o666)
        eq(lib.qscope("run", loose, receipt).status, 3, "a file that anybody can write")
        with open(receipt, encoding="utf-8") as file:
            reason = json.load(file)["reasons"][0]
        eq(reason["code"], "posture_refused", "reason")
        mentions(reason["message"], ["--policy trusted"])
        eq(lib.qscope("check", loose).status, 3, "exit status of check")
        os.chmod(loose, 0o644)
        os.chown(loose, 1000, 1000)
        eq(lib.qscope("check", loose).status, 3, "a file of somebody else's")
        piped = lib.qscope("run", "-", lib.scratch("piped.json"), stdin=open(loose, "rb"))
        eq(piped.status, 3, "a job from a pipe")
        check(not os.path.exists("/root/out"), "it ran as the caller")
        wish["argv"] = ["true"]
        eq(lib.qscope("run", lib.write_job(wish), lib.scratch("own.json")).status, 0, "a file of the caller's own")
    passes({**bounded(["true"]), "policy": "default"})


@test("smoke", "vm")
def test_the_callers_files():
    """The job works in the caller's own files, in a scope of its slice, and the receipt says what
    was not recorded."""
    top = workspace({"a": "old\n"}, uid=0)
    run = passes(bounded(sh("cat a; echo new >a; echo more >b; cat /proc/self/cgroup"), cwd=top))
    contains(run.out, "old\n")
    contains(run.out, f"/{run['unit']['slice']}/{run['unit']['scope']}\n")
    eq(lib.read_bytes(f"{top}/a"), b"new\n", "the workspace's file")
    eq(lib.read_bytes(f"{top}/b"), b"more\n", "the workspace's new file")
    eq(run["fs"], None, "fs")
    mentions(" ".join(run["blind_spots"]), ["fs:", "caller's own files"])
    eq([run["posture"], run["network"]], ["bounded", "host"], "posture and network")


@test("smoke")
def test_processes():
    """What it starts is seen as in a service, and starting something elsewhere on the host does not
    wait for qscope."""
    run = passes(bounded(sh("/bin/true a; (exit 3); /bin/true b; exit 0")))
    processes = run["processes"]
    eq([processes["lost"], processes["total"]], [0, 4], "processes")
    eq([item["argv"] for item in processes["tree"][1:]], [["/bin/true", "a"], None, ["/bin/true", "b"]],
       "argv")
    started = start_job(bounded(["sleep", "1"]))
    check(host.wait_until(lambda: any(name == "sleep" for _, name, _, _ in host.processes()),
                          lib.bound(10)), "the job did not start")
    started.kill(signal.SIGSTOP)
    try:
        subprocess.run(["true"], timeout=lib.bound(5), check=True)
    finally:
        started.kill(signal.SIGCONT)
    started.finish()


@test()
def test_how_it_ended():
    """Exit status, signal and a command that is not there, as in the other posture."""
    exits(passes(bounded(sh("exit 7"), expected_exit=7)), 7)
    eq(signal_of(fails(bounded(sh("kill -USR1 $$")))), signal.SIGUSR1, "signal")
    run = exits(fails(bounded(["no-such-command-at-all"])), 127)
    eq(run["exec"]["kind"], "not_found", "exec.kind")
    eq(exits(fails(bounded(["true"], cwd="/no/such/directory")), 127)["exec"]["kind"], "bad_cwd",
       "exec.kind")


@test()
def test_environment_and_descriptors():
    """Exactly the variables of the policy, and no descriptor but the three streams."""
    run = passes(bounded(py("import os; print(sorted(os.environ)); print(sorted(os.listdir('/proc/self/fd')))")))
    names, fds = run.out.splitlines()
    eq(names, str(sorted(set(lib.CALLER) - {"SECRET_TOKEN", "SSH_AUTH_SOCK"})), "environment")
    eq(fds, "['0', '1', '2', '3']", "descriptors (3 is the listing's own)")


@test("vm")
def test_timeout_kills_all():
    """At the deadline everything in the scope dies, also what left the process group."""
    run = fails(bounded(sh("setsid sleep 777 & echo here; sleep 777"), timeout_sec=1))
    eq([run["timed_out"], run["exit_code"], run.out], [True, None, "here\n"], "outcome")
    eq(subprocess.run(["pgrep", "-f", "sleep 777"], capture_output=True).stdout, b"", "survivors")


@test()
def test_leftover():
    """What still runs when the command has ended is named and killed."""
    run = fails(bounded(sh("setsid sleep 776 >/dev/null 2>&1 & exit 0")))
    eq([reason["code"] for reason in run["reasons"]], ["leftover_process"], "reasons")
    eq([one["argv"] for one in run["processes"]["leftover"]], [["sleep", "776"]], "leftover")


@test()
def test_limits_of_a_process():
    """open_files and file_size are set on the held process; the caller's other limits are kept."""
    limits = {"open_files": 77, "file_size": "64K"}
    run = passes(bounded(sh("ulimit -n; ulimit -f; ulimit -s"), limits=limits))
    own = subprocess.run(["sh", "-c", "ulimit -s"], capture_output=True, text=True).stdout.strip()
    eq(run.out.split(), ["77", "128", own], "ulimit -n, -f, -s")
    run = fails(bounded(["dd", "if=/dev/zero", "of=big", "bs=4096", "count=64"], limits=limits))
    only_hits(run, "file_size")


@test("vm", needs=["controllers"])
def test_memory_limit():
    """The scope's slice has the memory limit, and the receipt the kernel's counter."""
    run = fails(bounded(py("x = b'x' * (256 << 20)"), limits={"memory": "64M", "swap": 0}))
    only_hits(run, "memory")


@test()
def test_expected_files():
    """expect.files looks at the caller's own files."""
    passes(bounded(sh("echo x >made"), expect={"files": {"made": {"equals": "x\n"}}}))
    fails(bounded(["true"], expect={"files": {"made": {"exists": True}}}))


@test()
def test_refused():
    """What cannot be kept without a sandbox is refused, never left out."""
    for fields, words in (({"--policy": "default"}, ["posture", "default"]),
                          ({"allow_changes": []}, ["allow_changes", "isolated"]),
                          ({"network": "none"}, ["job.network", "isolated"]),
                          ({"workspace": "fresh"}, ["fresh", "isolated"]),
                          ({"files": [{"path": "x", "content": ""}]}, ["job.files"]),
                          ({"limits": {"disk": "1M"}}, ["limits.disk", "null"])):
        run = rejected({**bounded(["true"]), **fields})
        mentions(" ".join(one["message"] for one in run["reasons"]), words)
    run = lib.qscope("run", "--tty", "--policy", "default", "--", "true")
    eq(run.status, 2, "exit status")
    mentions(run.stderr, ["--tty", "bounded"])


@test()
def test_killed_qscope():
    """When qscope dies the job dies: held at the gate or running."""
    run = start_job(bounded(["sleep", "775"]))
    found = host.wait_until(lambda: subprocess.run(["pgrep", "-fx", "sleep 775"],
                                                   capture_output=True).stdout, lib.bound(20))
    check(found, "the job did not start")
    run.kill(signal.SIGKILL)
    gone = host.wait_until(lambda: not subprocess.run(["pgrep", "-fx", "sleep 775"],
                                                      capture_output=True).stdout, lib.bound(10))
    check(gone, "the job outlived qscope")
    run.process.wait()
    lib.qscope("clean")


@test()
def test_terminal():
    """With --tty the job has the caller's terminal; without it, none at all."""
    argv = [lib.QSCOPE, "run", "--tty", "--quiet", "--policy", "trusted", "--posture", "bounded"]
    for limit in ("--memory", "--tasks", "--cpu"):
        argv += [limit, "null"]
    controller, terminal = pty.openpty()
    process = subprocess.Popen([*argv, "--cwd", workspace(uid=0), "--", "sh", "-c", "tty; read x; echo got $x"],
                               stdin=terminal, stdout=terminal, stderr=terminal, env=lib.CALLER)
    os.close(terminal)
    time.sleep(0.2)
    os.write(controller, b"line\n")
    status = process.wait(lib.bound(20))
    text = os.read(controller, 4096).decode()
    eq(status, 0, f"exit status ({text!r})")
    contains(text, "/dev/pts/")
    contains(text, "got line")
    os.close(controller)
    run = passes(bounded(sh("tty; : </dev/tty"), expected_exit="any"))
    contains(run.out, "not a tty")
    check(run["exit_code"] != 0, "the job could open a controlling terminal")
