# SPDX-License-Identifier: Apache-2.0
"""Ten thousand jobs in one batch: a job at the end takes as long as one at the start, and nothing grows."""

import json
import os
import subprocess
import time

import measure as timing
import rivals
import stats
from measure import ENVIRONMENT

NAME = "soak"
SUMMARY = "many thousand jobs in one batch, 4 at a time"

JOBS = 10_000
QUICK_JOBS = 300
AT_A_TIME = 4
LEGS = 10  # "thousands"
BLOCKS = 10  # of a leg, for the spread
MEMORY_TARGET = 32 << 20
SETTLE_SEC = 10


# --- what could grow --------------------------------------------------------------------


def entries(path):
    """How many files and directories are below it."""
    return sum(len(names) + len(files) for _, names, files in os.walk(path))


def on_the_host(state):
    units = timing.output_of("systemctl", "list-units", "--all", "--plain", "--no-legend", "--full", "qscope-*")
    cgroups = sum(name.startswith("qscope-") for _, names, _ in os.walk("/sys/fs/cgroup") for name in names)
    return {
        "units": len(units.splitlines()),
        "unit files": sum(name.startswith("qscope-") for name in list_directory("/run/systemd/transient")),
        "mounts": len(timing.read("/proc/self/mountinfo").splitlines()),
        "cgroups": cgroups,
        "in /run/qscope": entries("/run/qscope"),
        "in the state directory": entries(state),
        "processes": sum(name.isdigit() for name in list_directory("/proc")),
        "systemd's memory": timing.status_bytes(1, "VmRSS"),
    }


def list_directory(path):
    try:
        return os.listdir(path)
    except OSError:
        return []


def of_qscope(pid):
    return {"memory": timing.status_bytes(pid, "VmRSS"), "descriptors": timing.descriptors_of(pid)}


# --- the batch --------------------------------------------------------------------------


class Batch:
    """Runs it, and looks at it at the end of each leg."""

    def __init__(self, bench, count):
        self.count = count
        self.state = bench.directory("state")
        top = bench.directory("soak")
        cwd = bench.workspace("soak-workspace", {"README": "a workspace\n"})
        self.receipts = bench.directory("soak/receipts")
        self.jobs = f"{top}/jobs.jsonl"
        self.first_job = rivals.qscope(rivals.Job(top, ["true"], cwd))  # makes what the state directory always has
        with open(self.jobs, "w", encoding="utf-8") as file:
            for number in range(count):
                file.write(json.dumps({"job_id": f"soak-{number}", "argv": ["true"], "cwd": cwd}) + "\n")
        self.legs = []
        self.times = []  # of the end of each job
        self.peak = None

    def words(self):
        return [rivals.QSCOPE, "batch", "--quiet", "-j", str(AT_A_TIME), "--receipts", self.receipts, "--jsonl", "-",
                "--state-dir", self.state, "-"]

    def run(self):
        begin = time.monotonic()
        with open(self.jobs, "rb") as lines, subprocess.Popen(self.words(), stdin=lines, stdout=subprocess.PIPE,
                                                              env=ENVIRONMENT) as process:
            watch = timing.Watch(process.pid)
            self._follow(process, begin)
            status = process.wait()
        self.peak = watch.end()
        if status or len(self.times) != self.count:
            raise timing.Broken(f"the batch ended with status {status} after {len(self.times)} jobs")

    def _follow(self, process, begin):
        progress = timing.Progress("soak")
        for line in process.stdout:
            self.times.append(time.monotonic() - begin)
            if json.loads(line)["verdict"] != "pass":
                raise timing.Broken(f"a job did not pass: {line!r}")
            done = len(self.times)
            progress.show(f"{done} of {self.count} jobs")
            # A moment before its end, so that the last one is still there to be looked at.
            if done % (self.count // LEGS) == self.count // LEGS - AT_A_TIME * 2:
                self.legs.append({"jobs": done, **of_qscope(process.pid), **on_the_host(self.state)})
        progress.end()

    def leg_times(self, leg):
        """Seconds for one job, of each block of a leg."""
        block = self.count // LEGS // BLOCKS
        ends = [0.0, *self.times]
        first = leg * self.count // LEGS
        return [(ends[first + (n + 1) * block] - ends[first + n * block]) / block for n in range(BLOCKS)]


def settled(state, before):
    """What is there afterwards; systemd takes a moment to forget the last units."""
    deadline = time.monotonic() + SETTLE_SEC
    while True:
        after = on_the_host(state)
        if all(after[key] <= before[key] for key in ("units", "unit files", "mounts", "cgroups")) or \
                time.monotonic() > deadline:
            return after
        time.sleep(0.2)


# --- what is told -----------------------------------------------------------------------


def measure(bench, group):
    count = QUICK_JOBS if bench.quick else JOBS
    batch = Batch(bench, count)
    batch.first_job()
    before = on_the_host(batch.state)
    batch.run()
    after = settled(batch.state, before)
    legs = [batch.leg_times(leg) for leg in range(LEGS)]
    names = [f"jobs {leg * count // LEGS + 1:,} to {(leg + 1) * count // LEGS:,}" for leg in range(LEGS)]
    group.table(f"time for each job, by blocks of {count // LEGS // BLOCKS}", dict(zip(names, legs)), names[0])
    group.figure(None, f"time for each job, last {count // LEGS:,} over first {count // LEGS:,}", legs[-1], legs[0])
    group.plain_figure(None if bench.quick else "memory",
                       f"qscope's peak memory with {count:,} jobs, over {MEMORY_TARGET >> 20} MiB",
                       batch.peak / MEMORY_TARGET)
    first, last = batch.legs[0], batch.legs[-1]
    for key in ("memory", "descriptors", "systemd's memory"):
        group.plain_figure(None, f"{key} at the end, over after the first {first['jobs']:,}", last[key] / first[key])
    group.facts.update(before=before, legs=batch.legs, after=after, peak_memory=batch.peak,
                       seconds_per_job=stats.median([value for leg in legs for value in leg]))
    group.note("left on the host: " + ", ".join(f"{key} {after[key] - before[key]:+d}" for key in before
                                                if key != "systemd's memory"))
    group.note("while it ran, at most: " + ", ".join(f"{key} {max(leg[key] for leg in batch.legs):,}"
                                                     for key in last if key not in ("jobs", "memory")))
