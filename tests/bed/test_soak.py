# SPDX-License-Identifier: Apache-2.0
"""Many runs, one after the other and at once: all complete, nothing left."""

import concurrent.futures

import host
import lib
from lib import check, eq, job, sh, test, workspace

GROUP = "soak"


def complete(run, text):
    lib.verdict(run, 0, "pass")
    eq(run.out, text, "stdout")
    usage = run["usage"]
    check(usage["cpu_usec"] and usage["user_usec"] is not None, f"usage {usage}")
    missing = [key for key in lib.SEED_KEYS if key not in run.receipt]
    eq(missing, [], "missing keys")
    if host.has_controllers():
        check(usage["memory_peak_bytes"] and usage["pids_peak"], f"usage {usage}")


def soak(count, workers):
    shared = workspace({"a": "x\n"})

    def one(number):
        script = f"echo {number} > a; cat a; touch made-{number}"
        run = lib.run_job(job(sh(script), cwd=shared, job_id=f"soak-{number}"), timeout=90)
        complete(run, f"{number}\n")
        eq(lib.changed_paths(run, "added"), [f"made-{number}"], "fs.added")
        return run

    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        runs = list(pool.map(one, range(count)))
    eq(len({run["run_id"] for run in runs}), count, "different run ids")
    seconds = sorted(run.seconds for run in runs)
    print(f"     | {count} runs, {workers} at once: median {seconds[count // 2] * 1000:.0f} ms, "
          f"slowest {seconds[-1] * 1000:.0f} ms")


@test(timeout=300, slow=True)
def test_in_a_row():
    """Two hundred jobs one after the other: two hundred complete receipts."""
    soak(200 if host.is_fast() else 15, 1)


@test(timeout=60, slow=True)
def test_at_once():
    """Twenty jobs at the same time do not disturb each other."""
    soak(20, 20)


@test("vm", timeout=60)
def test_a_few_at_once():
    """The same in small, for every bed."""
    soak(6, 6 if host.is_fast() else 3)


@test(timeout=60)
def test_at_once_with_trouble():
    """Passing, failing, timing-out and killed jobs at the same time keep their own outcomes."""
    shared = workspace()
    jobs = [(["true"], (0, None)), (sh("exit 9"), (9, None)), (sh("kill -9 $$"), (None, 9)),
            (["sleep", "9"], (None, None)), (sh("(sleep 300 &)"), (0, None)),
            (["no-such-tool"], (127, None))] * 2

    def one(item):
        return lib.run_job(job(item[0], cwd=shared, timeout_sec=1 if "9" in item[0] else 20))

    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        runs = list(pool.map(one, jobs))
    for run, (argv, (code, number)) in zip(runs, jobs):
        eq(run["exit_code"], code, f"exit_code of {argv}")
        if number:
            eq(lib.signal_of(run), number, f"signal of {argv}")
        eq(run["timed_out"], argv == ["sleep", "9"], f"timed_out of {argv}")
