# SPDX-License-Identifier: Apache-2.0
"""Many jobs, 1, 2 and 4 at a time. Warm is what `qscope batch` does by itself: the next jobs' sandboxes are started
ahead. With --fail-fast nothing is started ahead, which is cold."""

import json
import time

import measure as timing
import rivals
from rivals import QSCOPE

NAME = "many"
SUMMARY = "many jobs: time for each, at -j 1, 2 and 4"

JOBS = 40
ONE = "qscope run, one by one"


def batch(bench, directory, jobs_file, at_a_time, *options):
    """Runs the batch and returns its time for one job."""
    count = bench.count(JOBS)

    def run():
        receipts = bench.directory(f"many/receipts-{time.monotonic_ns()}")
        with open(jobs_file, "rb") as lines:
            seconds = timing.seconds_of(
                [QSCOPE, "batch", "--quiet", "-j", str(at_a_time), "--receipts", receipts, *options,
                 *rivals.state_options(directory), "-"], stdin=lines)
        return seconds / count

    return run


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
    for at_a_time in (1, 2, 4):
        all_of = {
            "qscope batch, warm": batch(bench, top, jobs_file, at_a_time),
            "qscope batch, cold": batch(bench, top, jobs_file, at_a_time, "--fail-fast"),
            "systemd-run, same sandbox": loops(same, count, at_a_time),
            "bubblewrap": loops(bubblewrap, count, at_a_time),
        }
        if at_a_time == 1:
            all_of[ONE] = one_by_one(job, count)
        samples = bench.interleave(all_of, 7, f"many -j {at_a_time}")
        group.table(f"-j {at_a_time}: time for each of {count} jobs", samples, "systemd-run, same sandbox")
        warm = samples["qscope batch, warm"]
        group.facts[f"jobs per second at -j {at_a_time}"] = {
            name: 1 / row["median"] for name, row in group.tables[-1]["rows"].items()}
        if at_a_time == 1:
            group.figure("warm", "warm, one after the other, over qscope run", warm, samples[ONE])
            group.figure("warm-bubblewrap", "warm, one after the other, over bubblewrap", warm, samples["bubblewrap"])
            first = warm
        else:
            group.figure(None, f"warm at -j {at_a_time} over warm at -j 1", warm, first)
            group.figure(None, f"warm at -j {at_a_time} over bubblewrap, {at_a_time} at a time", warm,
                         samples["bubblewrap"])
        group.figure(None, f"warm over cold batch at -j {at_a_time}", warm, samples["qscope batch, cold"])
