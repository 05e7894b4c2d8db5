# SPDX-License-Identifier: Apache-2.0
"""Many jobs, 1, 2 and 4 at a time. Warm is what `qscope batch` does by itself: the next jobs' sandboxes are started
ahead. With --fail-fast nothing is started ahead, which is cold."""

import json
import os
import time

import measure as timing
import rivals
import stats
from rivals import QSCOPE

NAME = "many"
SUMMARY = "many jobs: time for each, at -j 1, 2 and 4"

JOBS = 40
WARM = "qscope batch, warm"
COLD = "qscope batch, cold"
BUBBLEWRAP = "bubblewrap"
SAME = "systemd-run, same sandbox"
ONE = "qscope run, one by one"


# What is left of a job when its sandbox is ready and it is its turn.
AFTER_ITS_TURN = ("run", "drain", "settle", "diff", "write")


def batch(bench, directory, jobs_file, at_a_time, *options, turns=None):
    """Runs the batch and returns its time for one job. turns: takes how long the median job took from its turn."""
    count = bench.count(JOBS)

    def run():
        receipts = bench.directory(f"many/receipts-{time.monotonic_ns()}")
        with open(jobs_file, "rb") as lines:
            seconds = timing.seconds_of(
                [QSCOPE, "batch", "--quiet", "-j", str(at_a_time), "--receipts", receipts, *options,
                 *rivals.state_options(directory), "-"], stdin=lines)
        if turns is not None:
            turns.append(stats.median([from_turn(entry.path) for entry in os.scandir(receipts)]))
        return seconds / count

    return run


def from_turn(path):
    timing_of_job = rivals.read_pass(path)["timing"]
    return sum(timing_of_job[phase] or 0 for phase in AFTER_ITS_TURN) / 1000


def loops(words, count, at_a_time):
    """As many at a time by xargs, which adds nothing to speak of."""
    script = f'seq {count} | xargs -P {at_a_time} -I NUMBER "$@"'
    return lambda: timing.seconds_of(["sh", "-c", script, "sh", *words]) / count


def one_by_one(job, count):
    run = rivals.qscope(job)
    return lambda: sum(run() for _ in range(count)) / count


def write_jobs(path, cwd, count):
    with open(path, "w", encoding="utf-8") as file:
        for number in range(count):
            file.write(json.dumps({"job_id": f"bench-{number}", "argv": ["true"], "cwd": cwd}) + "\n")


def measure(bench, group):
    cwd = bench.workspace("many-workspace", {"README": "a workspace\n"})
    top = bench.directory("many")
    job = rivals.Job(top, ["true"], cwd)
    same, _ = rivals.same_sandbox(job)
    bubblewrap = rivals.bubblewrap(job.argv, cwd)
    count = bench.count(JOBS)
    jobs_file = f"{top}/jobs.jsonl"
    write_jobs(jobs_file, cwd, count)
    first = None
    for at_a_time in (1, 2, 4):
        turns = []
        all_of = {
            WARM: batch(bench, top, jobs_file, at_a_time, turns=turns),
            COLD: batch(bench, top, jobs_file, at_a_time, "--fail-fast"),
            SAME: loops(same, count, at_a_time),
        }
        if not rivals.lacking(bubblewrap):
            all_of[BUBBLEWRAP] = loops(bubblewrap, count, at_a_time)
        if at_a_time == 1:
            all_of[ONE] = one_by_one(job, count)
        samples = measure_at(bench, group, at_a_time, all_of, count)
        first = first or samples
        tell(group, at_a_time, samples, first)
        if at_a_time == 1:
            group.figure(None, "a warm job from its turn to its receipt, over qscope run", turns[-len(samples[WARM]):],
                         samples[ONE])


def measure_at(bench, group, at_a_time, all_of, count):
    cpu = {name: [] for name in all_of}
    watched = {name: timing.with_cpu(run, count, cpu[name]) for name, run in all_of.items()}
    samples = bench.interleave(watched, 7, f"many -j {at_a_time}")
    group.table(f"-j {at_a_time}: time for each of {count} jobs", samples, SAME)
    cpu = {name: values[-len(samples[SAME]):] for name, values in cpu.items()}  # without the warm-up
    group.table(f"-j {at_a_time}: processor time for each, systemd's included",
                {name: [sum(pair) for pair in values] for name, values in cpu.items()}, SAME)
    shares = {name: stats.median([pair[1] / sum(pair) for pair in values]) for name, values in cpu.items()}
    group.facts[f"of it systemd, and what it reaps, at -j {at_a_time}"] = shares
    group.note(f"processor time at -j {at_a_time}, of it systemd and what it reaps: "
               + ", ".join(f"{name} {100 * share:.0f}%" for name, share in shares.items()))
    group.facts[f"jobs per second at -j {at_a_time}"] = {
        name: 1 / stats.median(values) for name, values in samples.items()}
    return samples


def tell(group, at_a_time, samples, first):
    """The figures; first: the samples at -j 1."""
    warm = samples[WARM]
    if at_a_time == 1:
        group.figure("warm", "warm, one after the other, over qscope run", warm, samples[ONE])
    else:
        group.figure(None, f"warm at -j {at_a_time} over warm at -j 1", warm, first[WARM])
    if BUBBLEWRAP in samples:
        group.figure("warm-bubblewrap" if at_a_time == 1 else None,
                     f"warm at -j {at_a_time} over bubblewrap, {at_a_time} at a time", warm, samples[BUBBLEWRAP])
    group.figure(None, f"warm over cold batch at -j {at_a_time}", warm, samples[COLD])
