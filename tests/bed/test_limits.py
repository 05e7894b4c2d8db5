# SPDX-License-Identifier: Apache-2.0
"""Each limit is enforced by the kernel, named with the kernel's counter, and not mistaken for
another; the next run starts clean."""

import json
import os

import host
import lib
from lib import (between, check, collect, contains, eq, exits, fails, hit, job, one_of,
                 only_hits, passes, py, run_job, sh, signal_of, test, workspace)

GROUP = "limits"

FILL_MEMORY = "x = []\nwhile True: x.append(bytearray(1 << 20))"


def clean_next_run():
    """Nothing of the last run is counted in the next one."""
    run = passes(["true"])
    eq(run.hits, {}, "limits.hits of the next run")
    between(run["usage"]["cpu_usec"], 0, lib.bound(2_000_000), "cpu_usec of the next run")


# --- memory -----------------------------------------------------------------------------


@test("smoke", needs=["controllers"])
def test_memory():
    """Over the memory limit: killed by the kernel, and named by memory.events."""
    run = fails(job(py(FILL_MEMORY), limits={"memory": "64M", "swap": 0}))
    only_hits(run, "memory")
    contains(run.hits["memory"]["counter"], "oom", "the kernel's counter")
    eq([signal_of(run), run["exit_code"], run["timed_out"]], [9, None, False], "outcome")
    between(run["usage"]["memory_peak_bytes"], 48 << 20, 80 << 20, "memory_peak_bytes")
    clean_next_run()


@test(needs=["controllers"])
def test_memory_of_a_child():
    """A child is killed and the parent exits 0: that is out of memory all the same."""
    script = "python3 -c \"$1\"; exit 0"
    run = fails(job(["sh", "-c", script, "sh", FILL_MEMORY], limits={"memory": "64M", "swap": 0}))
    only_hits(run, "memory")
    eq([run["exit_code"], run["match_expected"]], [0, True], "outcome")


@test(needs=["controllers"])
def test_memory_within_the_limit():
    """What fits is not touched, and the peak is measured."""
    run = passes(job(py("x = bytearray(40 << 20)"), limits={"memory": "128M"}))
    eq(run.hits, {}, "limits.hits")
    between(run["usage"]["memory_peak_bytes"], 40 << 20, 128 << 20, "memory_peak_bytes")


@test(needs=["controllers"])
def test_kill_is_not_memory():
    """kill -9 of a child under a memory limit is no out-of-memory."""
    run = passes(job(sh("sleep 9 & kill -9 $!; wait; exit 0"), limits={"memory": "64M"}))
    eq(run.hits, {}, "limits.hits")


@test(needs=["controllers"])
def test_default_memory_limit():
    """Without a word in the job there is a limit, and it is read back from the cgroup."""
    run = passes(["true"])
    check(run["limits"].get("memory") or run["limits"].get("set", {}).get("memory"),
          f"no memory limit by default: {run['limits']}")


@test(needs=["missing-controllers"])
def test_missing_controller():
    """A limit this host cannot enforce is no limit: status 4, the controller is named, and nothing
    is started."""
    for key, value, name in (("memory", "64M", "memory"), ("tasks", 10, "pids"),
                             ("cpu", "50%", "cpu")):
        with lib.nothing_started():
            run = run_job(job(["true"], limits={key: value}))
        eq(run.status, 4, f"exit status for limits.{key}")
        eq(run["verdict"], "error", "verdict")
        text = json.dumps(run["reasons"])
        contains(text, name, "reasons")
        contains(text, "controller", "reasons")


# --- processes --------------------------------------------------------------------------

@test("smoke", needs=["controllers"])
def test_tasks():
    """A fork bomb stops at the limit, with EAGAIN for the job and a counter for us."""
    bomb = "import os\nwhile True:\n try: os.fork()\n except OSError: pass"
    run = fails(job(py(bomb), limits={"tasks": 40}, timeout_sec=min(lib.bound(1), 20)))
    hit(run, "tasks")
    between(run["usage"]["pids_peak"], 30, 40, "pids_peak")
    eq(run["timed_out"], True, "timed_out")
    clean_next_run()


@test(needs=["controllers"])
def test_tasks_with_exit_0():
    """The limit made a fork fail, and the job hid it: it is named all the same."""
    code = ("import os, signal\npids = []\ntry:\n"
            " for _ in range(200):\n"
            "  p = os.fork()\n  if p == 0: signal.pause()\n  pids.append(p)\n"
            "except OSError as e: print(e.errno)\n"
            "for p in pids: os.kill(p, 9); os.waitpid(p, 0)")
    run = fails(job(py(code), limits={"tasks": 20}))
    only_hits(run, "tasks")
    eq([run["exit_code"], run.out], [0, "11\n"], "what the job saw")


@test(needs=["controllers"])
def test_tasks_in_turn():
    """Two hundred children one after the other under a limit of ten are fine."""
    code = ("import os\nfor _ in range(200):\n p = os.fork()\n if not p: os._exit(0)\n"
            " os.waitpid(p, 0)")
    eq(passes(job(py(code), limits={"tasks": 10})).hits, {}, "limits.hits")


# --- processor time ---------------------------------------------------------------------


@test("smoke", "vm")
def test_cpu_time():
    """A spinning job is stopped by its CPU time long before the timeout, and it is named so."""
    run = fails(job(sh("while :; do :; done"), limits={"cpu_time_sec": 1}, timeout_sec=100))
    only_hits(run, "cpu_time_sec")
    eq([run["timed_out"], run["exit_code"]], [False, None], "outcome")
    one_of(signal_of(run), (24, 9), "signal")
    between(run["usage"]["cpu_usec"], 900_000, lib.bound(5_000_000), "cpu_usec")
    clean_next_run()


@test()
def test_cpu_time_of_a_child():
    """A child is stopped by it and the parent exits 0."""
    script = "sh -c 'while :; do :; done'; exit 0"
    run = fails(job(sh(script), limits={"cpu_time_sec": 1}, timeout_sec=100))
    only_hits(run, "cpu_time_sec")


@test("vm")
def test_cpu_time_of_many():
    """The limit is the job's: many children that each stay below it are stopped together."""
    script = "for i in $(seq 60); do (sh -c 'ulimit -t 1; while :; do :; done'); done"
    run = fails(job(sh(script), limits={"cpu_time_sec": 2}, timeout_sec=100))
    hit(run, "cpu_time_sec")
    between(run["usage"]["cpu_usec"], 1_500_000, lib.bound(8_000_000), "cpu_usec")


@test()
def test_sleeping_uses_no_cpu_time():
    """Waiting is not computing."""
    eq(passes(job(["sleep", "1.3"], limits={"cpu_time_sec": 1})).hits, {}, "limits.hits")


@test(needs=["controllers"])
def test_cpu_rate():
    """A slowed-down job is reported as such and passes: throttling harms nobody."""
    run = passes(job(sh("i=0; while [ $i -lt 60000 ]; do i=$((i + 1)); done"),
                     limits={"cpu": "30%"}, timeout_sec=200), timeout=200)
    check("cpu" in run.all_hits, f"limits.hits lacks cpu: {sorted(run.all_hits)}")
    contains(run.all_hits["cpu"]["counter"], "throttled", "the kernel's counter")
    check(run["usage"]["throttled_usec"] > 0, "throttled_usec is 0")


# --- files ------------------------------------------------------------------------------


@test("vm")
def test_file_size():
    """A file over the limit: SIGXFSZ, named file_size."""
    run = fails(job(sh("exec dd if=/dev/zero of=big bs=64k count=64"),
                    limits={"file_size": "1M"}))
    only_hits(run, "file_size")
    eq([signal_of(run), run["exit_code"]], [25, None], "outcome")
    clean_next_run()


@test()
def test_file_size_of_a_child():
    """A child hits it and the parent exits 0."""
    run = fails(job(sh("head -c 4M /dev/zero > big; exit 0"), limits={"file_size": "1M"}))
    only_hits(run, "file_size")


@test()
def test_file_size_as_error():
    """A program that ignores SIGXFSZ (Python does) gets EFBIG, and it is the same limit."""
    code = "try: open('big', 'wb').write(bytes(4 << 20))\nexcept OSError as e: print(e.errno)"
    run = fails(job(py(code), limits={"file_size": "1M"}))
    only_hits(run, "file_size")
    eq(run.out, "27\n", "errno")


@test()
def test_file_size_is_not_for_pipes():
    """Output longer than file_size is output, not a file."""
    eq(passes(job(["head", "-c", "3M", "/dev/zero"], limits={"file_size": "1M"})).hits, {}, "hits")


@test("smoke", "vm")
def test_open_files():
    """Too many open files: EMFILE for the job, named open_files."""
    code = ("import os\nn = 0\ntry:\n while n < 5000: os.open('/dev/null', 0); n += 1\n"
            "except OSError as e: print(e.errno); raise SystemExit(1)")
    run = exits(fails(job(py(code), limits={"open_files": 64})), 1)
    only_hits(run, "open_files")
    eq(run.out, "24\n", "errno")
    clean_next_run()


@test()
def test_open_files_within():
    """Many files within the limit, one after the other, are fine."""
    code = "for _ in range(500): open('/dev/null').close()"
    eq(passes(job(py(code), limits={"open_files": 64})).hits, {}, "limits.hits")


# --- what the job may write -------------------------------------------------------------


def fill(path, megabytes, limit, **limits):
    script = f"head -c {megabytes}M /dev/zero > {path}; s=$?; stat -c %s {path}; exit $s"
    return run_job(job(sh(script), limits={"disk": limit, **limits}, timeout_sec=300))


@test("vm")
def test_disk():
    """Too many bytes: "no space left" for the job, named disk and not memory."""
    run = exits(lib.verdict(fill("big", 64, "16M"), 1, "fail"), 1)
    only_hits(run, "disk")
    contains(run["stderr"], "No space left", "stderr")
    between(int(run.out), 8 << 20, 16 << 20, "bytes that were written")
    clean_next_run()


@test()
def test_disk_everywhere():
    """The budget is one for all places a job can write to, so none is a way around it."""
    places = ["/tmp/big", "/dev/shm/big", "$HOME/big", "/var/tmp/big"]
    if not host.is_fast():
        places = places[:2]
    for place in places:
        run = lib.verdict(fill(place, 40, "16M"), 1, "fail")
        only_hits(run, "disk")
    run = fails(job(sh("for d in . /tmp /dev/shm ~; do head -c 6M /dev/zero > $d/f; done"),
                    limits={"disk": "16M"}))
    only_hits(run, "disk")


@test()
def test_disk_hidden_by_exit_0():
    """The job went on after "no space left" and exits 0: named all the same."""
    run = fails(job(sh("head -c 40M /dev/zero > big; exit 0"), limits={"disk": "16M"}))
    only_hits(run, "disk")
    eq(run["exit_code"], 0, "exit_code")


@test(timeout=60)
def test_disk_large():
    """A large budget (by an image on disk, not by memory) is enforced as well."""
    if not host.is_fast():
        raise lib.Lacks("a disk fast enough for hundreds of megabytes")
    run = lib.verdict(fill("big", 700, "600M", file_size="2G"), 1, "fail")
    only_hits(run, "disk")
    between(int(run.out), 400 << 20, 600 << 20, "bytes that were written")
    passes(job(sh("head -c 300M /dev/zero > big"), limits={"disk": "600M", "file_size": "2G"}))


@test("vm")
def test_inodes():
    """A million empty files: stopped by the layer's inodes, and named so."""
    code = ("n = 0\ntry:\n while n < 1000000: open(f'f{n}', 'w').close(); n += 1\n"
            "except OSError as e: print(n, e.errno); raise SystemExit(1)")
    run = exits(fails(job(py(code), limits={"inodes": 2000}, timeout_sec=300)), 1)
    only_hits(run, "inodes")
    made, error = map(int, run.out.split())
    eq(error, 28, "errno")
    between(made, 1000, 2000, "files that were made")
    clean_next_run()


@test(timeout=90, needs=["speed"], slow=True)
def test_a_million_files_by_default():
    """The same without a word in the job: the default has a limit too, and the receipt of so many
    files is readable and the host clean."""
    code = ("n = 0\ntry:\n while n < 1000000: open(f'f{n}', 'w').close(); n += 1\n"
            "except OSError as e: print(e.errno); raise SystemExit(1)")
    run = exits(fails(job(py(code), timeout_sec=300), timeout=90), 1)
    eq(run.out, "28\n", "errno")
    one_of(sorted(run.hits), (["inodes"], ["disk"], ["disk", "inodes"]), "limits.hits")
    check(os.path.getsize(run.receipt_path) < 32 << 20, "the receipt is over 32 MiB")


@test(needs=["controllers"])
def test_disk_is_not_memory():
    """Files in memory count as disk, not as memory: with a memory limit below the disk limit the
    job is told ENOSPC and lives."""
    script = "head -c 80M /dev/zero > /dev/shm/big; echo $?; echo alive"
    run = fails(job(sh(script), limits={"memory": "48M", "disk": "64M", "swap": 0},
                    timeout_sec=300))
    only_hits(run, "disk")
    eq(run.out, "1\nalive\n", "what the job saw")


@test()
def test_dev_full_is_not_our_disk():
    """ENOSPC from /dev/full is no limit."""
    eq(lib.run_job(sh("echo x > /dev/full")).hits, {}, "limits.hits")


@test()
def test_disk_within():
    """What fits, fits: also files made and deleted many times over."""
    script = "for i in 1 2 3 4 5 6 7 8; do head -c 6M /dev/zero > f; rm f; done"
    eq(passes(job(sh(script), limits={"disk": "16M"})).hits, {}, "limits.hits")


@test()
def test_several_at_once():
    """Two limits in one job are two hits; neither hides the other."""
    script = "head -c 13M /dev/zero > big; head -c 10M /dev/zero > /tmp/f; exit 3"
    run = exits(fails(job(sh(script), limits={"disk": "16M", "file_size": "12M"})), 3)
    only_hits(run, "disk", "file_size")


# --- limits as they are written ---------------------------------------------------------

BAD_LIMITS = [
    ("memory", "12X"), ("memory", -1), ("memory", 1.5), ("memory", True), ("memory", ""),
    ("memory", "1e3"), ("memory", " 64M"), ("memory", "64 M"), ("memory", []), ("memory", "-5M"),
    ("memory", "99999999999999999999"), ("memory", "0x10"), ("memory", "64m b"),
    ("tasks", "many"), ("tasks", -3), ("tasks", 2.5),
    ("cpu", "fast"), ("cpu", 150), ("cpu", "0%"), ("cpu", "-5%"), ("cpu", "50"),
    ("cpu_time_sec", 0), ("cpu_time_sec", "1s"), ("cpu_time_sec", -1),
    ("file_size", "big"), ("open_files", "64K!"), ("disk", "16Q"),
    ("inodes", -1), ("output", "-1"), ("output", {}),
    ("no_such_limit", 1), ("Memory", "64M"), ("MEMORY", 1),
]


def bad_limit(key, value):
    run = run_job(job(["true"], limits={key: value}))
    eq(run.status, 2, f"exit status for {value!r}")
    contains(run.stderr, f"limits.{key}", "stderr")


@test()
def test_bad_limits():
    """A limit that cannot be understood is never taken for none: status 2, the key is named."""
    with lib.nothing_started():
        collect(BAD_LIMITS, bad_limit)


TOO_SMALL = [
    ("memory", 4096), ("memory", "15M"), ("tasks", 0), ("tasks", 3), ("open_files", 0), ("open_files", 15),
    ("cpu", "0.9%"), ("cpu_time_sec", 0.05), ("disk", "63K"), ("inodes", 15),
]


def too_small(key, value):
    run = run_job(job(["true"], limits={key: value}))
    eq(run.status, 3, f"exit status for {value!r}")
    eq([reason["code"] for reason in run["reasons"]], ["limit_floor"], "reasons")
    contains(run["reasons"][0]["message"], f"limits.{key}", "the sentence")
    contains(run["reasons"][0]["message"], "give at least", "the floor")


@test()
def test_too_small_for_the_run_itself():
    """A limit so small that our own stage would die of it is refused with the floor, not reported as
    the job's fault."""
    with lib.nothing_started():
        collect(TOO_SMALL, too_small)


@test()
def test_spellings():
    """Bytes, K, M and G are the same number, and the receipt says what was set."""
    sizes = [2097152, "2097152", "2048K", "2M"]
    shown = []
    for size in sizes:
        run = passes(job(["true"], limits={"file_size": size}))
        limits = run["limits"].get("set", run["limits"])
        shown.append(limits["file_size"])
    eq(set(map(str, shown)), {str(shown[0])}, "limits.file_size")


@test()
def test_limits_inside():
    """The kernel's own view inside the job: what was set is what it has."""
    code = ("import resource as r; print([r.getrlimit(x) for x in "
            "(r.RLIMIT_FSIZE, r.RLIMIT_NOFILE, r.RLIMIT_CORE)])")
    run = passes(job(py(code), limits={"file_size": "2M", "open_files": 99}))
    contains(run.out, "(2097152, 2097152), (99, 99)", "limits inside")


@test()
def test_timeout_is_no_limit():
    """A timeout is timed_out, and no limit is named with it."""
    run = fails(job(["sleep", "60"], timeout_sec=1, cwd=workspace()))
    eq([run["timed_out"], run.hits, run["exit_code"]], [True, {}, None], "outcome")
