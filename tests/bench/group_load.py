# SPDX-License-Identifier: Apache-2.0
"""Evidence while there is much: sockets on the host, processes in the job; and what memory qscope takes then."""

import subprocess

import measure as timing
import rivals
from measure import ENVIRONMENT

NAME = "load"
SUMMARY = "evidence under load, and memory"

COUNT = 10_000
QUICK_COUNT = 500
SCRIPT = 'n=0; while [ $n -lt "$1" ]; do /bin/true; n=$((n + 1)); done'


def with_sockets(run, count):
    """The run's time while a process holds as many sockets."""

    def measured():
        with subprocess.Popen(["python3", f"{rivals.HERE}/sockets.py", str(count)], env=ENVIRONMENT,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
            if holder.stdout.readline() != b"ready\n":
                raise timing.Broken("the sockets could not be opened")
            seconds = run()
            holder.stdin.close()
        return seconds

    return measured


def sockets(bench, group, count):
    cwd = bench.workspace("load-workspace", {"README": "a workspace\n"})
    run = rivals.qscope(rivals.Job(bench.directory("load-sockets"), ["true"], cwd))
    samples = bench.interleave({"without": run, f"{count:,} sockets": with_sockets(run, count)}, 15, "load, sockets")
    group.table("time of one job, with sockets on the host", samples, "without")
    group.figure(None, f"qscope run with {count:,} sockets on the host, over without", samples[f"{count:,} sockets"],
                 samples["without"])


def processes(bench, group, count):
    cwd = bench.workspace("load-workspace", {})
    job = rivals.Job(bench.directory("load-processes"), ["sh", "-c", SCRIPT, "sh", str(count)], cwd, timeout_sec=900)
    small = rivals.Job(bench.directory("load-small"), ["true"], cwd)
    same, _ = rivals.same_sandbox(job)
    peaks = {"many": [], "small": []}

    def inside():
        receipt = job.receipt_path()
        seconds, peak = timing.watched(rivals.qscope_words(job, receipt), cwd=cwd)
        found = rivals.read_pass(receipt)["processes"]
        if found["total"] < count or found["lost"]:
            raise timing.Broken(f"{found['total']} processes were seen, {found['lost']} events were lost")
        peaks["many"].append(peak)
        return seconds

    def alone():
        seconds, peak = timing.watched(rivals.qscope_words(small, small.receipt_path()), cwd=cwd)
        peaks["small"].append(peak)
        return seconds

    samples = bench.interleave({
        "qscope run": inside,
        "systemd-run, same sandbox": timing.timed(same, cwd=cwd),
        "outside": timing.timed(job.argv, cwd=cwd),
        "qscope run, one process": alone,
    }, 3, "load, processes")
    group.table(f"time of a job that starts {count:,} processes, one after the other", samples,
                "systemd-run, same sandbox")
    group.figure(None, f"qscope run of {count:,} processes, over systemd-run with the same sandbox",
                 samples["qscope run"], samples["systemd-run, same sandbox"])
    group.figure(None, f"qscope's peak memory with {count:,} processes, over one with one", peaks["many"],
                 peaks["small"])
    group.facts["peak memory"] = peaks
    group.note("peak memory of qscope: " + ", ".join(f"{name} {max(values) / 2**20:.1f} MiB"
                                                     for name, values in peaks.items()))


def measure(bench, group):
    count = QUICK_COUNT if bench.quick else COUNT
    sockets(bench, group, count)
    processes(bench, group, count)
