# SPDX-License-Identifier: Apache-2.0
"""The escape suite: what qscope-escape (tests/escape) tries, outside and inside.

Outside of a sandbox each attempt must succeed, or it says nothing; those that go beyond what a container may do are
shown to in the vm bed. Inside none may. A victim, which holds a token wherever another process might look, runs
beside: once on the host, once in a job of its own.
"""

import contextlib
import fcntl
import json
import os
import pty
import secrets
import shutil
import signal
import socket
import subprocess

import host
import lib
from lib import check, contains, eq, lacks, run_job, test, workspace

GROUP = "escape"

ESCAPE = "/usr/libexec/qscope/qscope-escape"
PLACES = ("/root", "/home", "/srv", "/var/lib", "/run", "/etc", "/opt", "/tmp", "/var/tmp", "/dev/shm")
SOCKETS = ("/run/docker.sock", "/run/containerd/containerd.sock", "/run/podman/podman.sock",
           "/run/crio/crio.sock", "/srv/bed-escape.socket")


def table():
    return [json.loads(line) for line in host.command_output(ESCAPE, "list").splitlines()]


def contents():
    """What is in the directory in which the attempts are made."""
    return {"escape*": lib.read_bytes(ESCAPE), "bed-original": "original\n", "receipt.json": "a receipt\n"}


# --- victims ----------------------------------------------------------------------------


class Victim:
    """A process of the host, or of a job (started: that call of qscope)."""

    def __init__(self, process, directory, pid, qscope_pid):
        self.process = process
        self.directory = directory
        self.qscope = qscope_pid
        self.pid = pid
        self.facts = json.loads(host.read(f"/proc/{pid}/cwd/victim"))
        self.cgroup = host.read(f"/proc/{pid}/cgroup").split("0::")[1].split("\n")[0]

    def targets(self):
        found = {key: self.facts[key] for key in ("address", "descriptor", "port")}
        return {**found, "pid": self.pid, "nekot": self.facts["token"][::-1], "qscope": self.qscope,
                "workspace": self.directory, "cgroup": self.cgroup}


def victims():
    """Pids of victims that are ready, by their token."""
    found = {}
    for pid, *_ in host.processes():
        text = host.read(f"/proc/{pid}/cmdline", "")
        if "\0victim\0token=" in text and os.path.exists(f"/proc/{pid}/cwd/victim"):
            found[text.split("token=")[1].strip("\0")] = pid
    return found


def start_victim(start):
    """start(token, directory) -> (process, pid of the qscope that it stands for)"""
    token = secrets.token_hex(8)
    directory = workspace({"bed-escape": token, **contents()})
    process, qscope_pid = start(token, directory)
    check(host.wait_until(lambda: token in victims(), lib.bound(20), 0.05), "the victim is not ready")
    return Victim(process, directory, victims()[token], qscope_pid)


@contextlib.contextmanager
def host_victim():
    def start(token, directory):
        process = subprocess.Popen([ESCAPE, "victim", f"token={token}"], cwd=directory,
                                   env={"TOKEN": token})
        return process, process.pid

    victim = start_victim(start)
    try:
        yield victim
    finally:
        victim.process.terminate()
        victim.process.wait()


@contextlib.contextmanager
def job_victim():
    def start(token, directory):
        started = lib.start_job(lib.job(["./escape", "victim", f"token={token}"], cwd=directory,
                                        env={"TOKEN": token}, timeout_sec=300))
        return started, started.process.pid

    victim = start_victim(start)
    try:
        yield victim
    finally:
        victim.process.kill(signal.SIGTERM)
        victim.process.finish()


# --- what the host has beside -----------------------------------------------------------


@contextlib.contextmanager
def listening(paths):
    """The sockets of services that a bed has not got."""
    made = []
    with contextlib.ExitStack() as stack:
        for path in paths:
            directory = os.path.dirname(path)
            if not os.path.isdir(directory):
                os.makedirs(directory)
                stack.callback(shutil.rmtree, directory)
            listener = stack.enter_context(socket.socket(socket.AF_UNIX))
            listener.bind(path)
            stack.callback(os.unlink, path)
            os.chmod(path, 0o666)
            listener.listen()
            made.append(listener)
        yield


@contextlib.contextmanager
def privileged_programs():
    """Copies that anybody may run: one is set-user-id root, one has a capability."""
    paths = {"setuid": "/usr/local/bin/bed-setuid", "capable": "/usr/local/bin/bed-capable"}
    for path in paths.values():
        shutil.copy(ESCAPE, path)
    os.chmod(paths["setuid"], 0o4755)
    subprocess.run(["setcap", "cap_sys_ptrace+ep", paths["capable"]], check=True)
    try:
        yield paths
    finally:
        for path in paths.values():
            os.unlink(path)


@contextlib.contextmanager
def terminal():
    """A terminal as the caller of qscope has one: (its end for a process, its name)."""
    master, slave = pty.openpty()
    try:
        yield slave, os.ttyname(slave)
    finally:
        os.close(master)
        os.close(slave)


@contextlib.contextmanager
def left_open():
    """Descriptors that a careless caller leaves to whoever it starts: a socket, a directory of the host."""
    with contextlib.ExitStack() as stack:
        pair = [stack.enter_context(end) for end in socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)]
        directory = os.open("/root", os.O_RDONLY)
        stack.callback(os.close, directory)
        yield [pair[0].fileno(), directory]


def disk():
    """"b MAJOR MINOR r" of a disk."""
    for name in sorted(os.listdir("/sys/block")):
        if not name.startswith(("ram", "zram")):
            return f"b {host.read(f'/sys/block/{name}/dev').strip().replace(':', ' ')} r"
    return "b 7 0 r"


class Surroundings:
    """All that the attempts are told of, beside the victim."""

    def __init__(self, stack):
        stack.enter_context(listening(SOCKETS))
        self.programs = stack.enter_context(privileged_programs())
        self.terminal, self.terminal_name = stack.enter_context(terminal())
        self.descriptors = stack.enter_context(left_open())
        self.receipt = lib.write("/var/lib/qscope/receipts/bed-escape.json", "{}")
        stack.callback(os.unlink, self.receipt)
        stack.callback(remove_planted)

    def words(self, victim):
        targets = {**victim.targets(), **self.programs, "receipt": self.receipt, "disk": disk(),
                   "terminal": self.terminal_name}
        return [f"{key}={value}" for key, value in targets.items()]

    def started_with(self):
        """As a careless caller starts it: with a terminal, and more."""
        return {"stdin": self.terminal, "pass_fds": self.descriptors, "env": lib.CALLER}


def remove_planted():
    for place in PLACES:
        with contextlib.suppress(OSError):
            os.unlink(f"{place}/bed-planted")


@contextlib.contextmanager
def surroundings():
    with contextlib.ExitStack() as stack:
        yield Surroundings(stack)


# --- what came of it --------------------------------------------------------------------


def on_the_host(directory):
    """What an attempt did is judged where it counts: its name, and whether the host has changed."""
    def is_changed(name, content):
        return host.read(f"{directory}/{name}") != content

    return {"plant": any(os.path.exists(f"{place}/bed-planted") for place in PLACES),
            "overwrite": is_changed("bed-original", "original\n"),
            "forge-receipt": is_changed("receipt.json", "a receipt\n")}


def attempts_of(text, directory):
    """name: attempt, with "done" as the host sees it; each of the table has to be there."""
    found = {}
    for line in text.splitlines():
        attempt = json.loads(line)
        found[attempt["name"]] = attempt
    eq(sorted(found), sorted(attempt["name"] for attempt in table()), "attempts that were made")
    for name, happened in on_the_host(directory).items():
        found[name]["result"] = "done" if happened else "refused"
    broken = [name for name, attempt in found.items() if attempt["result"] not in ("done", "refused")]
    eq(broken, [], "attempts that are broken")
    return found


def try_outside(around, victim):
    directory = workspace(contents(), uid=0)
    done = subprocess.run(["setsid", "--ctty", "--wait", ESCAPE, "all", *around.words(victim)], cwd=directory,
                          stdout=subprocess.PIPE, check=True, timeout=lib.bound(60), **around.started_with())
    return attempts_of(done.stdout.decode(), directory), directory


def try_inside(around, victim, **fields):
    directory = workspace(contents())
    run = run_job(lib.job(["./escape", "all", *around.words(victim)], cwd=directory,
                          limits={"output": "256K"}, **fields),
                  prefix=["setsid", "--ctty", "--wait"], **around.started_with())
    eq(run["exit_code"], 0, "exit_code")
    return run, attempts_of(run.out, directory)


def links_are_not_followed(run, token):
    """The diff has the links that were left for it, and nothing of where they lead."""
    entries = {entry["path"]: entry for entry in run["fs"]["added"]}
    for path in ("bed-link", "bed-directory"):
        eq(entries[path]["type"], "symlink", f"type of {path}")
    eq({entries[path]["type"] for path in ("bed-swap", "bed-swapped")}, {"file", "symlink"}, "what was swapped")
    lacks(json.dumps(run["fs"]), lib.sha256(token), "the diff")


def refused(around, victim, **fields):
    run, attempts = try_inside(around, victim, **fields)
    links_are_not_followed(run, victim.facts["token"])
    succeeded = [f"{name}: {attempt['what']} ({attempt['step']})" for name, attempt in attempts.items()
                 if attempt["result"] == "done"]
    eq(succeeded, [], "attempts that succeeded")
    return run


# --- the tests --------------------------------------------------------------------------


@test("smoke")
def test_table():
    """There are enough attempts of every kind, and few that a container cannot show."""
    attempts = table()
    names = [attempt["name"] for attempt in attempts]
    eq(len(set(names)), len(names), "different names")
    kinds = {attempt["kind"] for attempt in attempts}
    eq(sorted(kinds), ["files", "kernel", "mounts", "own", "proc", "processes", "shared", "sockets"], "kinds")
    lib.between(sum(not attempt["vm"] for attempt in attempts), 50, 1000, "attempts that a container shows")


@test("vm", timeout=60)
def test_outside():
    """Without a sandbox every attempt succeeds: the test can fail."""
    with surroundings() as around, job_victim(), host_victim() as victim:
        eq(victim.facts["missing"], "", "what the victim could not make")
        attempts, directory = try_outside(around, victim)
        # What a diff that follows links would have read.
        contains(host.read(f"{directory}/bed-link"), victim.facts["token"], "behind the link")
    failed = [f"{name}: {attempt['step']}: {attempt['error']}" for name, attempt in attempts.items()
              if attempt["result"] != "done" and not (attempt["vm"] and host.is_container())]
    eq(failed, [], "attempts that say nothing, since they failed outside")


@test("vm", "smoke", timeout=60)
def test_from_a_job_to_the_host():
    """None succeeds in a job, with a victim on the host."""
    with surroundings() as around, host_victim() as victim:
        refused(around, victim)


@test("vm", timeout=60)
def test_from_a_job_to_another():
    """None succeeds in a job, with a victim in another job at the same time."""
    with surroundings() as around, job_victim() as victim:
        refused(around, victim)


# The longest that each gives.
POLICIES = {"build": 600, "eval": 120, "strict": 60}


def as_the_bed_can(name):
    """A policy without the limits that need controllers, where there are none."""
    limits = {"limits": dict.fromkeys(("memory", "swap", "tasks", "cpu"))}
    change = {} if host.has_controllers() else {"default": limits, "max": limits, "require": []}
    return lib.drop_in(f"/etc/qscope/policies/{name}.json.d/90-bed-test.json", json.dumps(change))


@test(timeout=60)
def test_other_policies():
    """What the other policies give up is no way out either."""
    with surroundings() as around, host_victim() as victim:
        for name, seconds in POLICIES.items():
            with as_the_bed_can(name):
                refused(around, victim, policy=name, timeout_sec=seconds)
