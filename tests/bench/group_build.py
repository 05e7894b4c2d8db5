# SPDX-License-Identifier: Apache-2.0
"""A real build: qscope's own, from a copy of its sources, in a job under the policy build and outside."""

import contextlib
import json
import os
import shutil
import subprocess

import rivals
from measure import ENVIRONMENT, read, timed

NAME = "build"
SUMMARY = "qscope's own build, in a job and outside"

OUTSIDE = "outside"
QUICK_TARGET = "src/qscope-stage"


# The limits that need controllers of control groups, and where their lack is told to the policy.
LIMITS = {"memory": "memory", "swap": "memory", "tasks": "pids", "cpu": "cpu"}
DROP_IN = "/etc/qscope/policies/build.json.d/90-bench.json"


@contextlib.contextmanager
def lifted_limits():
    """Where the host cannot keep them, as in a bed without controllers, qscope would rightly refuse."""
    controllers = read("/sys/fs/cgroup/cgroup.controllers").split()
    lacking = {limit: None for limit, controller in LIMITS.items() if controller not in controllers}
    if not lacking:
        yield
        return
    os.makedirs(os.path.dirname(DROP_IN), exist_ok=True)
    with open(DROP_IN, "w", encoding="utf-8") as file:
        json.dump({"default": {"limits": lacking}, "max": {"limits": lacking}}, file)
    try:
        yield
    finally:
        os.unlink(DROP_IN)


def unpack(bench, name):
    top = bench.directory(name)
    subprocess.run(["tar", "-xf", bench.options.source, "-C", top, "--no-same-owner"], env=ENVIRONMENT, check=True)
    bench.give(top)
    return top


def measure(bench, group):
    if not bench.options.source:
        group.note("not measured: without --source there is nothing to build")
        return
    target = f" {QUICK_TARGET}" if bench.quick else ""
    argv = ["sh", "-c", f"meson setup -Dtests=false build && ninja -C build{target}"]
    job = rivals.Job(bench.directory("build"), argv, unpack(bench, "build-inside"), policy="build")
    outside = unpack(bench, "build-outside")
    processes = []

    def look(receipt):
        processes.append(receipt["processes"]["total"])
        if receipt["processes"]["lost"]:
            raise rivals.Broken("events of processes were lost")

    def build_outside():
        shutil.rmtree(f"{outside}/build", ignore_errors=True)
        return timed(argv, cwd=outside)()

    with lifted_limits():
        samples = bench.interleave({"inside": rivals.qscope(job, look), OUTSIDE: build_outside}, 5, quick=1)
    group.table("time of meson setup and ninja", samples, OUTSIDE)
    group.figure(None if bench.quick else "build", "the build inside a job, all evidence on, over the same outside",
                 samples["inside"], samples[OUTSIDE])
    group.facts["processes"] = processes[-1]
    group.note(f"{processes[-1]:,} processes; inside, files are written to the job's layer, outside to the directory")
