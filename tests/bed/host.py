# SPDX-License-Identifier: Apache-2.0
"""What the bed is and what is on it: capabilities, speed, and what a run left behind.

Knows nothing about jobs or receipts; lib.py does.
"""

import functools
import os
import re
import subprocess
import time

# The uids systemd hands out with DynamicUser= (systemd.exec(5)): every job runs as one.
JOB_UIDS = range(61184, 65520)

CGROUP_ROOT = "/sys/fs/cgroup"
# Mounts that systemd makes by itself, at moments of its own.
FOREIGN_MOUNTS = ("/run/user", "/run/credentials", "/proc/sys/fs/binfmt_misc")


def read(path, default=None):
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read()
    except OSError:
        if default is None:
            raise
        return default


def command_output(*argv):
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return done.stdout.decode(errors="replace")


def quiet(*argv):
    return subprocess.run(
        argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False
    ).returncode


# --- speed ------------------------------------------------------------------------------


def _measure_slow():
    """How much slower than an ordinary machine this one is, by a loop and by processes."""
    best = 1e9
    for _ in range(3):
        begin = time.perf_counter()
        sum(i * i for i in range(200_000))
        best = min(best, time.perf_counter() - begin)
    return max(1.0, min(30.0, best / 0.025))


_base = None


def _given():
    return float(os.environ.get("QSCOPE_TEST_SLOW", 0))


def _machine():
    global _base
    if _base is None:
        _base = _given() or _measure_slow()
    return _base


def _crowd():
    """How many want each processor, the tests themselves among them."""
    load = float(read("/proc/loadavg").split()[0])
    return max(1.0, min(8.0, load / os.cpu_count()))


def slow():
    """The factor for every upper time bound: 1 on an ordinary machine that has nothing else to do,
    about 10 on an emulated CPU. QSCOPE_TEST_SLOW sets it."""
    return _given() or _machine() * _crowd()


# --- capabilities -----------------------------------------------------------------------


def controllers():
    return read(CGROUP_ROOT + "/cgroup.controllers", "").split()


def has_controllers():
    return {"memory", "pids", "cpu"} <= set(controllers())


@functools.cache
def is_container():
    return quiet("systemd-detect-virt", "--quiet", "--container") == 0


def bed_kind():
    return "container" if is_container() else "vm"


def is_fast():
    return _machine() < 4


def filesystem_type(path):
    return command_output("stat", "-f", "-c", "%T", path).strip()


# What a test may declare in needs=: how to find out, and what is lacking when not.
CAPABILITIES = {
    "controllers": (has_controllers, "the cgroup controllers memory, pids and cpu"),
    "missing-controllers": (
        lambda: not has_controllers(),
        "a missing controller (all of them are here)",
    ),
    "speed": (is_fast, "a CPU fast enough for this volume"),
    "container": (is_container, "being a container"),
    "oomd": (lambda: os.path.exists("/lib/systemd/systemd-oomd"), "systemd-oomd"),
    "node": (lambda: bool(find_program("node")), "node"),
    "gcc": (lambda: bool(find_program("gcc")), "gcc"),
    "script": (lambda: bool(find_program("script")), "script(1)"),
}


def find_program(name):
    for directory in "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin".split(":"):
        path = os.path.join(directory, name)
        if os.access(path, os.X_OK):
            return path
    return None


# --- what is there ----------------------------------------------------------------------


def _listing(path):
    try:
        return os.listdir(path)
    except OSError:
        return []


def _units():
    text = command_output(
        "systemctl", "list-units", "--all", "--plain", "--no-legend", "--full", "qscope-*"
    )
    names = [line.split()[0] for line in text.splitlines() if line.startswith("qscope-")]
    files = [name for name in _listing("/run/systemd/transient") if name.startswith("qscope-")]
    return {f"unit {name}" for name in names} | {f"unit file {name}" for name in files}


def _cgroups():
    found = set()
    for directory, names, _ in os.walk(CGROUP_ROOT):
        found |= {f"cgroup {directory}/{name}" for name in names if name.startswith("qscope-")}
    return found


def _mounts():
    found = set()
    for line in read("/proc/self/mountinfo").splitlines():
        point = line.split()[4]
        if not point.startswith(FOREIGN_MOUNTS):
            found.add(f"mount {point}")
    return found


def _run_directory():
    names = [name for name in _listing("/run/qscope") if not name.startswith(".")]
    return {f"file /run/qscope/{name}" for name in names}


def _scratch():
    found = set()
    for directory in ("/tmp", "/var/tmp", "/dev/shm", "/run/netns"):
        names = [name for name in _listing(directory) if "qscope" in name or "netns" in directory]
        found |= {f"file {directory}/{name}" for name in names}
    return found


def _loops():
    found = set()
    for name in _listing("/sys/block"):
        backing = read(f"/sys/block/{name}/loop/backing_file", "").strip()
        if backing and ("qscope" in backing or backing.endswith("(deleted)")):
            if not _is_of_another_bed(name):
                found.add(f"loop device {name} on {backing}")
    return found


def _is_of_another_bed(name):
    """A container shows the loop devices of its host, those of other containers among them. One that
    goes by itself when it is no longer used, and is used by nobody here, is none of ours."""
    if not is_container() or read(f"/sys/block/{name}/loop/autoclear", "0").strip() != "1":
        return False
    device = read(f"/sys/block/{name}/dev", "").strip()
    for pid in filter(str.isdigit, _listing("/proc")):
        if f" {device} " in read(f"/proc/{pid}/mountinfo", ""):
            return False
        for number in _listing(f"/proc/{pid}/fd"):
            try:
                if os.readlink(f"/proc/{pid}/fd/{number}") == f"/dev/{name}":
                    return False
            except OSError:
                pass
    return True


def processes():
    """(pid, name, uid, state) of every process of the bed."""
    for pid in filter(str.isdigit, _listing("/proc")):
        status = read(f"/proc/{pid}/status", "")
        fields = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
        if "Uid" in fields:
            uid = int(fields["Uid"].split()[0])
            yield int(pid), fields["Name"].strip(), uid, fields["State"].strip()


def _processes():
    found = set()
    for pid, name, uid, state in processes():
        if uid in JOB_UIDS or name.startswith("qscope"):
            found.add(f"process {pid} ({name}, uid {uid}, {state})")
    return found


def everything():
    """All that a run could leave on the host, as sentences."""
    return (
        _units() | _cgroups() | _mounts() | _run_directory() | _scratch() | _loops() | _processes()
    )


def new_since(baseline, seconds):
    """What is there beyond the baseline and stays for the given time; empty when clean."""
    deadline = time.monotonic() + seconds
    while True:
        left = everything() - baseline
        if not left or time.monotonic() > deadline:
            return sorted(left)
        time.sleep(0.02)


def wait_until(predicate, seconds, step=0.01):
    """Whether the predicate came true in time."""
    deadline = time.monotonic() + seconds
    while not predicate():
        if time.monotonic() > deadline:
            return False
        time.sleep(step)
    return True


def job_units():
    """Names of the job units (services and slices) that systemd has now.

    Nothing else that begins with qscope-: the tests themselves may run in such a unit.
    """
    found = {name.split()[-1] for name in _units()}
    return sorted(name for name in found if re.fullmatch(r"qscope-[0-9a-f]{32}\.\w+", name))


def namespace(pid, kind):
    """"net:[4026531840]"; None when the process is gone."""
    try:
        return os.readlink(f"/proc/{pid}/ns/{kind}")
    except OSError:
        return None


def job_processes():
    return sorted(_processes())


# --- was anything started? --------------------------------------------------------------


def start_marker():
    """Two witnesses for what systemd has started: a counter of jobs, and a time for the journal."""
    counter = command_output("systemctl", "show", "--property=NInstalledJobs", "--value").strip()
    return counter, time.time()


def started_since(marker):
    """Whether systemd was asked for a unit of qscope since the marker.

    The counter alone could be moved by a timer of the bed, so the journal has to agree.
    """
    counter, begin = marker
    if start_marker()[0] == counter:
        return False
    quiet("journalctl", "--sync")
    text = command_output("journalctl", "-o", "cat", f"--since=@{begin:.0f}", "_PID=1")
    return "qscope-" in text
