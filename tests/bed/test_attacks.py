# SPDX-License-Identifier: Apache-2.0
"""Attacks that once worked, each with the input that did it."""

import os
import signal
import subprocess
import time

import host
import lib
from lib import (between, check, contains, eq, fails, job, one_of, passes, py, run_job, sh, test,
                 workspace)

GROUP = "hostile"


def as_owner(*argv):
    return subprocess.Popen(["setpriv", f"--reuid={lib.OWNER}", f"--regid={lib.OWNER}",
                             "--clear-groups", "--", *argv])


def owned_directory(name):
    top = lib.scratch(name)
    os.mkdir(top)
    os.chown(top, lib.OWNER, lib.OWNER)
    return top


@test()
def test_link_into_another_mount_namespace():
    """/proc/PID/root of a user's own mount namespace: the text of the path lies there, not here."""
    top = owned_directory("ns")
    os.mkdir(f"{top}/m")
    os.chown(f"{top}/m", lib.OWNER, lib.OWNER)
    held = as_owner("unshare", "-Urm", "sh", "-c",
                    f"mount --rbind /etc {top}/m; exec sleep 30")
    try:
        mounts = f"/proc/{held.pid}/mounts"
        check(host.wait_until(lambda: f"{top}/m " in host.read(mounts, ""), lib.bound(20)),
              "the trap is not set")
        os.symlink(f"/proc/{held.pid}/root{top}/m", f"{top}/link")
        run = run_job(job(["head", "-n", "1", "shadow"], cwd=f"{top}/link"))
    finally:
        held.kill()
        held.wait()
    check(run.status != 0 and not run["stdout"], f"the job saw it: {run['stdout']!r}")


@test()
def test_roots_home_is_not_named_by_a_job():
    """Root's home, and directories that hold everybody's state, are no workspace for a file that
    a model wrote."""
    for path in ("/root", "/var/lib", "/var/log", "/var/cache"):
        run = run_job(job(["true"], cwd=path))
        eq(run.status, 3, f"exit status with {path}")


def secret(path, mode=0o600, uid=0):
    lib.write(path, "SECRET\n")
    os.chmod(path, mode)
    os.chown(path, uid, uid)
    return path


@test()
def test_inputs_beside_the_job_file():
    """Beside the job file lies what is only root's, or only somebody else's: not for the job."""
    mine = secret(lib.scratch("root-only"))
    theirs = secret(lib.scratch("users-only"), uid=lib.OWNER)
    for path in (mine, theirs, "/etc/shadow", "/proc/self/maps", "/proc/self/environ"):
        for fields in ({"stdin": {"file": path}}, {"files": [{"path": "x", "source": path}]}):
            run = run_job(job(["true"], cwd=None, workspace="fresh", **fields))
            eq(run.status, 4, f"exit status with {path}")
    open_to_all = secret(lib.scratch("for-all"), mode=0o644)
    eq(passes(job(["cat"], stdin={"file": open_to_all})).out, "SECRET\n", "stdout")


@test()
def test_reading_is_bounded():
    """Sparse files cost a job nothing; reading them must not cost qscope hours."""
    run = passes(job(py("for i in range(200):\n with open(f's{i}', 'w') as f: f.truncate(1023 << 20)"),
                     cwd=workspace()))
    # To read them all takes minutes on any machine.
    between(run["timing"]["diff"], 0, 1000 * min(lib.bound(15), 60), "timing.diff")
    eq(run["fs"]["totals"]["added"], 200, "added")
    for change in run["fs"]["added"]:
        check(change["sha256"] is None and change["sparse_sha256"], f"digests of {change['path']}")


@test()
def test_stopped_over_the_deadline():
    """A qscope that slept over the deadline does not pass a job that used the time."""
    started = lib.start_job(job(sh("sleep 3; exit 0"), timeout_sec=1.5))
    lib.wait_for_job("sleep")
    started.kill(signal.SIGSTOP)
    time.sleep(4)
    started.kill(signal.SIGCONT)
    run = started.finish(20)
    one_of(run["verdict"], ("fail", "error"), "verdict")


@test()
def test_home_replaced_by_a_file():
    """A directory that qscope made is passed over only as long as it is one."""
    script = "cd /; rmdir $HOME && head -c 1000 /dev/urandom > $HOME"
    run = passes(job(sh(script), env={"HOME": "/tmp/h"}))
    contains([entry["path"] for entry in run["fs"]["added"]], "/tmp/h", "fs.added")


@test()
def test_expected_files_in_an_odd_home():
    """What cannot be looked at is not taken for missing; what can be is."""
    home = {"HOME": "/srv/agent-home"}
    gone = {"files": {"/srv/agent-home/out": {"exists": False}}}
    fails(job(sh("echo x > $HOME/out"), env=home, expect=gone))
    run = run_job(job(["true"], expect={"files": {"/etc/passwd": {"exists": False}}}))
    eq(run.status, 4, "exit status")


@test()
def test_home_above_the_workspace():
    """The common layout ~/work, wherever the home lies."""
    top = workspace({"a": "alpha\n"})
    eq(passes(job(sh("cat a; touch $HOME/made && echo made"), cwd=top,
                  env={"HOME": os.path.dirname(top)})).out, "alpha\nmade\n", "stdout")


@test()
def test_small_file_limit_of_the_caller():
    """The caller's ulimit -f is not the end of qscope."""
    run = lib.qscope("run", lib.write_job(["true"]), lib.scratch("r.json"),
                     prefix=["prlimit", "--fsize=100:unlimited", "--"])
    eq(run.status, 0, "exit status")


@test()
def test_no_row_in_passwd():
    """HOME is a field of the job's /etc/passwd; it adds no row."""
    run = passes(job(["cat", "/etc/passwd"], env={"HOME": "/srv/a\nroot2:x:0:0::/:/bin/sh"}))
    check("root2" not in run.out, "a row was added")
