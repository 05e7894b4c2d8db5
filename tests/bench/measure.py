# SPDX-License-Identifier: Apache-2.0
"""Running things and taking their time; watching a process while it runs.

Knows nothing about what is compared with what.
"""

import os
import random
import resource
import subprocess
import sys
import tempfile
import threading
import time

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# What every rival starts with.
ENVIRONMENT = {"PATH": PATH, "HOME": "/root", "LANG": "C.UTF-8", "TERM": "dumb"}

PROGRESS_SEC = 10
WATCH_SEC = 0.1


class Broken(Exception):
    """Something that was to be measured did not do what it must."""


# --- saying how far it is -----------------------------------------------------------------


class Progress:
    """On a terminal one line that changes; elsewhere a line now and then, so that a long step is seen to live."""

    def __init__(self, what):
        self.what = what
        self.begin = self.last = time.monotonic()
        self.terminal = sys.stderr.isatty()

    def show(self, text, always=False):
        now = time.monotonic()
        if self.terminal:
            print(f"\r\033[K{self.what}: {text}", end="", file=sys.stderr, flush=True)
        elif always or now - self.last >= PROGRESS_SEC:
            self.last = now
            print(f"{self.what}: {text} ({now - self.begin:.0f} s)", file=sys.stderr, flush=True)

    def end(self):
        if self.terminal:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


# --- one command ------------------------------------------------------------------------


def read(path, default=""):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return default


def output_of(*argv):
    """What it prints, or "" when it cannot be run."""
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              env=ENVIRONMENT, check=False)
    except OSError:
        return ""
    return done.stdout.decode(errors="replace").strip()


def seconds_of(argv, cwd=None, stdin=None, statuses=(0,)):
    """The time from its start to its end. It must succeed, or end as is allowed; what it prints is thrown away."""
    with tempfile.TemporaryFile() as errors:
        begin = time.perf_counter()
        done = subprocess.run(argv, cwd=cwd, env=ENVIRONMENT, stdin=stdin or subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=errors, check=False)
        seconds = time.perf_counter() - begin
        if done.returncode not in statuses:
            errors.seek(0)
            words = errors.read().decode(errors="replace").strip()[-400:]
            raise Broken(f"{' '.join(argv)[:120]}: exit status {done.returncode}: {words}")
    return seconds


def timed(argv, **kw):
    """For rivals of interleave()."""
    return lambda: seconds_of(argv, **kw)


def interleave(what, rivals, rounds, warm_up):
    """{name: samples}. rivals: {name: function that returns its seconds}. A round has each of them once, in an order
    that changes: what the one before leaves for systemd to do meets everybody."""
    samples = {name: [] for name in rivals}
    chance = random.Random(1)
    progress = Progress(what)
    for number in range(-warm_up, rounds):
        for name in chance.sample(sorted(rivals), len(rivals)):
            progress.show(f"round {max(number + 1, 0)} of {rounds}: {name}")
            seconds = rivals[name]()
            if number >= 0:
                samples[name].append(seconds)
    progress.end()
    return samples


# --- time of processors -----------------------------------------------------------------

TICKS = os.sysconf("SC_CLK_TCK")
# Who works for whoever starts a unit, besides systemd itself.
SERVANTS = ("systemd-journal", "dbus-daemon")


def _ticks(pid, fields):
    words = read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return sum(int(words[field]) for field in fields) if words else 0


def cpu_seconds():
    """(what our children have used so far, what systemd with all that it has started and its servants have). proc(5):
    utime, stime; for systemd also cutime, cstime. What the kernel does later in threads of its own is nobody's."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    ticks = _ticks(1, (11, 12, 13, 14))
    for pid in filter(str.isdigit, os.listdir("/proc")):
        if read(f"/proc/{pid}/comm").strip() in SERVANTS:
            ticks += _ticks(pid, (11, 12))
    return used.ru_utime + used.ru_stime, ticks / TICKS


def with_cpu(run, share, store):
    """The run, which also adds its two times of processors to the list, as those of one of so many."""

    def measured():
        before = cpu_seconds()
        seconds = run()
        store.append(tuple((now - then) / share for now, then in zip(cpu_seconds(), before)))
        return seconds

    return measured


# --- a process while it runs ------------------------------------------------------------


def status_bytes(pid, key):
    """VmRSS or VmHWM; None when the process is gone."""
    for line in read(f"/proc/{pid}/status").splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1]) * 1024
    return None


def descriptors_of(pid):
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return None


class Watch:
    """The peak of memory that a process holds, as the kernel keeps it (VmHWM of /proc/PID/status), looked at until
    its end. (What wait4(2) tells counts the memory of who started it.)"""

    def __init__(self, pid):
        self.pid = pid
        self.peak = None
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._look, daemon=True)
        self.thread.start()

    def _look(self):
        while True:
            peak = status_bytes(self.pid, "VmHWM")
            self.peak = max(self.peak or 0, peak or 0) or None
            if self.over.wait(WATCH_SEC):
                return

    def end(self):
        self.over.set()
        self.thread.join()
        return self.peak


def watched(argv, cwd=None):
    """(seconds, peak of memory)"""
    begin = time.perf_counter()
    with subprocess.Popen(argv, cwd=cwd, env=ENVIRONMENT, stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL) as process:
        watch = Watch(process.pid)
        status = process.wait()
    seconds = time.perf_counter() - begin
    peak = watch.end()
    if status:
        raise Broken(f"{' '.join(argv)[:120]}: exit status {status}")
    return seconds, peak
