# SPDX-License-Identifier: Apache-2.0
"""One job by itself: `true` in a small workspace, all evidence on, beside all that one could take instead."""

import rivals
import stats
from measure import timed

NAME = "cold"
SUMMARY = "one job, started cold"

FIRST = "systemd-run, same sandbox"


def measure(bench, group):
    cwd = bench.workspace("cold-workspace", {"README": "a workspace\n"})
    job = rivals.Job(bench.directory("cold"), ["true"], cwd)
    same, left_out = rivals.same_sandbox(job)
    lines = {
        FIRST: same,
        "systemd-run, qscope plan's line": rivals.plans_systemd_run(job),
        "systemd-run, plain": rivals.plain_systemd_run(job.argv, cwd),
        "bubblewrap": rivals.bubblewrap(job.argv, cwd),
        "Python runner": rivals.python_runner(job),
        "bounded shell runner": rivals.shell_runner(job.argv, cwd),
        "no runner": job.argv,
    }
    phases = {}
    all_of = {"qscope run": rivals.qscope(job, lambda receipt: add_phases(phases, receipt["timing"]))}
    for name, words in lines.items():
        if rivals.lacking(words):
            group.note(f"{name}: {words[0]} is not there")
        else:
            all_of[name] = timed(words, cwd=cwd)
    samples = bench.interleave(all_of, 40)
    group.table("time of one job", samples, FIRST)
    group.figure("cold", "qscope run, all evidence on, over systemd-run with the same sandbox",
                 samples["qscope run"], samples[FIRST])
    group.facts["phases of qscope run, ms"] = {name: stats.median(values) for name, values in phases.items()}
    whole = 1000 * stats.median(samples["qscope run"])
    group.note("of qscope run: " + ", ".join(f"{name} {100 * value / whole:.0f}%" for name, value in
                                             group.facts["phases of qscope run, ms"].items()))
    group.note(f"{FIRST}: of the plan's service without {', '.join(left_out)}; its root is made once, not for each run")
    group.note("bubblewrap: the same namespaces, without the filter of system calls, limits and a control group")


def add_phases(phases, timing):
    for name, value in timing.items():
        if value is not None:
            phases.setdefault(name, []).append(value)
