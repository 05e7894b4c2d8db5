# SPDX-License-Identifier: Apache-2.0
"""Much output: all of it is counted and hashed. Both sides have the same producer."""

import shlex

import rivals
from measure import timed

NAME = "output"
SUMMARY = "much output through the capture"

BYTES = 1 << 30
QUICK_BYTES = 1 << 26
ALONE = "into sha256sum, alone"


def measure(bench, group):
    size = QUICK_BYTES if bench.quick else BYTES
    cwd = bench.workspace("output-workspace", {})
    argv = ["head", "-c", str(size), "/dev/zero"]
    job = rivals.Job(bench.directory("output"), argv, cwd, timeout_sec=300)
    same, _ = rivals.same_sandbox(job)
    sandboxed = shlex.join(same) + " | sha256sum"

    def look(receipt):
        if receipt["stdout_info"]["bytes"] != size:
            raise rivals.Broken(f"{receipt['stdout_info']['bytes']} bytes came through, not {size}")

    samples = bench.interleave({
        "qscope run": rivals.qscope(job, look),
        ALONE: timed(["sh", "-c", f"{shlex.join(argv)} | sha256sum"], cwd=cwd),
        "systemd-run, same sandbox, into sha256sum": timed(["sh", "-c", sandboxed], cwd=cwd),
    }, 7)
    group.table(f"time for {size >> 20} MiB of `head -c`, the start included", samples, ALONE)
    group.figure(None if bench.quick else "output", f"{size >> 20} MiB of output through qscope, over sha256sum",
                 samples["qscope run"], samples[ALONE])
