# SPDX-License-Identifier: Apache-2.0
"""The contract of `qscope run`: the first job file and its receipt, commands, verdicts, exit
statuses, expectations, and the receipt's file."""

import concurrent.futures
import json
import os
import re
import shutil
import subprocess

import host
import lib
from lib import (between, check, collect, contains, eq, errors, exits, fails, job, mentions,
                 one_of, passes, py, rejected, run_job, scratch, sh, sha256, signal_of, test,
                 workspace)

GROUP = "contract"

SEED_JOB = {
    "job_id": "2026-09-03-lint-1",
    "argv": ["python3", "-m", "compileall", "-q", "src"],
    "cwd": "/home/ubuntu/work",
    "timeout_sec": 30,
    "expected_exit": 0,
    "env_allowlist": ["PATH", "HOME", "LANG"],
}
SEED_ONE_LINER = "import json,sys; print(json.load(open(sys.argv[1]))['exit_code'])"


# --- the first runner's job file, receipt and consumers ---------------------------------


def seed_home():
    """The directories the first job file names, as the first users had them."""
    check(not os.path.exists("/home/ubuntu"), "this bed already has /home/ubuntu")
    workspace({"work/src/app.py": "print('hello')\n", "work/src/lib/util.py": "X = 1\n",
               "jobs": None, "receipts": None}, at="/home/ubuntu")
    name = SEED_JOB["job_id"]
    lib.write(f"/home/ubuntu/jobs/{name}.json", json.dumps(SEED_JOB, indent=2))
    return f"jobs/{name}.json", f"receipts/{name}.json"


def in_seed_home(function):
    job_file, receipt = seed_home()
    try:
        function(job_file, receipt)
    finally:
        shutil.rmtree("/home/ubuntu")


@test("smoke", "vm")
def test_seed_job():
    """The first job file runs unchanged, its receipt has the eleven keys with their meaning, and
    its users' one-liners read it."""
    in_seed_home(check_seed_job)


def check_seed_job(job_file, receipt):
    before = lib.snapshot("/home/ubuntu/work")
    path = f"/home/ubuntu/{receipt}"
    run = lib.qscope("run", job_file, receipt, receipt_path=path, cwd="/home/ubuntu")
    lib.verdict(run, 0, "pass")
    for key in ("job_id", "argv", "cwd", "timeout_sec", "expected_exit"):
        eq(run[key], SEED_JOB[key], key)
    eq([key for key in lib.SEED_KEYS if key not in run.receipt], [], "missing keys")
    eq([run["exit_code"], run["timed_out"], run["match_expected"]], [0, False, True], "outcome")
    eq([run["stdout"], run["stderr"]], ["", ""], "streams")
    check(isinstance(run["duration_ms"], int), "duration_ms is not an integer")
    lib.untouched("/home/ubuntu/work", before)
    done = subprocess.run(["python3", "-c", SEED_ONE_LINER, receipt], cwd="/home/ubuntu",
                          capture_output=True, text=True, check=True)
    eq(done.stdout, "0\n", "what the seed's one-liner prints")
    summary = {key: run.line[key] for key in ("job_id", "match_expected", "exit_code")}
    eq(summary, {"job_id": SEED_JOB["job_id"], "match_expected": True, "exit_code": 0}, "line")


@test()
def test_seed_failures():
    """What the first users' decision table reads: 127 for an invented tool, python's 2 for a
    wrong directory, timed_out with a null exit code and the output so far."""
    invented = exits(fails(job(["ruff", "check", "."])), 127)
    eq([invented["match_expected"], invented["timed_out"]], [False, False], "invented tool")
    wrong = exits(fails(job(["python3", "src/app.py"])), 2)
    contains(wrong["stderr"], "src/app.py", "stderr")
    late = fails(job(sh("echo begun; sleep 60"), timeout_sec=min(lib.bound(1), 20)))
    eq([late["timed_out"], late["exit_code"], late["match_expected"]], [True, None, False], "late")
    eq(late.out, "begun\n", "output before the timeout")


@test()
def test_seed_prompt_shape():
    """The five keys the first prompt asks a model for are a job; a refusal by /bin/false fails."""
    proposal = {"argv": ["/bin/false"], "cwd": workspace(), "timeout_sec": 10,
                "expected_exit": 0, "rationale": "this task needs a pipeline"}
    run = exits(fails(proposal), 1)
    eq(run["rationale"], proposal["rationale"], "rationale")
    eq(run["match_expected"], False, "match_expected")
    check(run["job_id"], "no job_id was generated")


@test()
def test_seed_integers_as_given():
    """timeout_sec and expected_exit come back as the numbers the job gave."""
    run = passes(job(sh("exit 3"), timeout_sec=45, expected_exit=3))
    eq([run["timeout_sec"], run["expected_exit"]], [45, 3], "numbers")
    defaults = passes(["true"])
    eq([defaults["timeout_sec"], defaults["expected_exit"]], [30, 0], "defaults")


# --- the receipt's keys -----------------------------------------------------------------

TOP_LEVEL = (
    "schema run_id verdict reasons policy posture host unit started_at finished_at signal"
    " core_dumped exec stdout_info stderr_info limits usage isolation fs processes timing"
    " blind_spots"
).split()
USAGE = (
    "cpu_usec user_usec system_usec memory_peak_bytes pids_peak io_read_bytes io_write_bytes"
    " throttled_usec"
).split()
STREAM = "bytes sha256 truncated utf8 after_exit_bytes".split()
TIMESTAMP = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z"


@test("smoke", "vm")
def test_receipt_keys():
    """Every documented key is there, in its documented form, so that a script need not ask."""
    run = passes(["echo", "hello"])
    eq([key for key in TOP_LEVEL + lib.SEED_KEYS if key not in run.receipt], [], "missing keys")
    eq([key for key in USAGE if key not in run["usage"]], [], "missing keys of usage")
    for name in ("stdout_info", "stderr_info"):
        eq([key for key in STREAM if key not in run[name]], [], f"missing keys of {name}")
    eq([key for key in ("added", "removed", "changed") if key not in run["fs"]], [], "keys of fs")
    eq(run["schema"], "qscope.receipt/v1", "schema")
    check(re.fullmatch("[0-9a-f]{32}", run["run_id"]), f"run_id {run['run_id']}")
    for key in ("started_at", "finished_at"):
        check(re.fullmatch(TIMESTAMP, run[key]), f"{key} {run[key]}")
    check(run["started_at"] <= run["finished_at"], "finished before it started")
    eq([run["posture"], run["signal"], run["core_dumped"]], ["isolated", None, False], "facts")


@test()
def test_receipt_names_the_host():
    """A receipt can be traced: to the policy by its digest, the kernel, the boot, the units."""
    run = passes(["true"])
    eq(run["policy"]["name"], "default", "policy.name")
    check(re.fullmatch("[0-9a-f]{64}", run["policy"]["sha256"]), "policy.sha256")
    text = json.dumps(run["host"])
    contains(text, os.uname().release, "host")
    boot_id = host.read("/proc/sys/kernel/random/boot_id").strip()
    check(boot_id in text or boot_id.replace("-", "") in text, f"no boot id in {text}")
    contains(json.dumps(run["unit"]), f"qscope-{run['run_id']}.service", "unit")


@test()
def test_usage_is_never_a_guess():
    """CPU time is measured; what this host cannot tell is null and never 0."""
    run = passes(py("x = sum(i * i for i in range(1500000))"))
    between(run["usage"]["cpu_usec"], 10_000, 60_000_000, "cpu_usec")
    for key in ("memory_peak_bytes", "pids_peak"):
        value = run["usage"][key]
        check(value is None or value > 0, f"{key} is {value}")
        if host.has_controllers():
            check(value is not None, f"{key} is unknown although the controllers are here")


@test()
def test_timing_by_phase():
    """Each phase has its milliseconds, so that "slow" can be traced to a phase."""
    run = passes(["sleep", "0.2"])
    timing = run["timing"]
    wanted = "prepare start run drain settle diff write".split()
    eq([key for key in wanted if key not in timing], [], "missing phases")
    between(timing["run"], 190, 1000 * run.seconds, "timing.run")
    phases = sum(timing[key] or 0 for key in wanted)
    between(phases, timing["run"], 1000 * run.seconds, "sum of all phases")


@test()
def test_duration_is_the_commands():
    """duration_ms measures the command, not what qscope does around it."""


    def once():
        run = passes(["sleep", "0.5"])
        around = sum(run["timing"][key] or 0 for key in ("prepare", "start", "settle", "diff", "write"))
        between(run["duration_ms"], 500, 1000 * run.seconds - around, "duration_ms")
        between(run["duration_ms"], 500, 500 + lib.bound(300), "duration_ms")

    lib.attempts(3, once)


@test("smoke")
def test_json_line():
    """Not on a terminal: exactly one JSON line with the documented keys, nothing on stderr."""
    run = passes(["echo", "noise"])
    check(run.line is not None, f"stdout is not one JSON line: {run.stdout!r}")
    keys = {"job_id", "run_id", "verdict", "match_expected", "exit_code", "receipt"}
    eq(set(run.line), keys, "keys of the line")
    eq([run.line["run_id"], run.line["job_id"]], [run["run_id"], run["job_id"]], "ids")
    eq([run.line["verdict"], run.line["exit_code"]], ["pass", 0], "outcome")
    eq(os.path.realpath(run.line["receipt"]), os.path.realpath(run.receipt_path), "receipt")
    eq(run.stderr, "", "stderr")


@test()
def test_carried_keys():
    """rationale, meta and x_ keys come back as they were, so that a caller can find its own."""
    meta = {"model": "m-1", "attempt": 3, "nested": {"list": [1, None, "é"]}}
    run = passes(job(["true"], rationale="because", meta=meta, x_trace="t-1", x_list=[1, 2]))
    eq([run["rationale"], run["meta"]], ["because", meta], "carried")
    eq([run["x_trace"], run["x_list"]], ["t-1", [1, 2]], "x_ keys")


# --- the examples -----------------------------------------------------------------------

EXAMPLES = [
    ("hello", "pass", 0, False),
    ("tool-missing", "fail", 127, False),
    ("times-out", "fail", None, True),
    ("background-listener", "fail", 0, False),
    ("edits-workspace", "pass", 0, False),
    ("changes-too-much", "fail", 0, False),
]


def examples():
    """A copy of the examples, which lie beside the tests or where packages put them."""
    here = os.path.dirname(os.path.abspath(__file__))
    for place in (f"{here}/../../examples", "/usr/share/doc/qscope/examples"):
        if os.path.isdir(place):
            return shutil.copytree(place, scratch("examples"))
    raise lib.Lacks("the examples")


def example(name, want, exit_code, timed_out, top):
    path = scratch(f"{name}.receipt")
    run = lib.qscope("run", f"{top}/{name}.json", path, receipt_path=path, cwd=f"{top}/project")
    eq([run["verdict"], run.status], [want, 0 if want == "pass" else 1], "verdict and status")
    eq([run["exit_code"], run["timed_out"]], [exit_code, timed_out], "outcome")
    check(run["rationale"], "no rationale")


@test()
def test_examples():
    """The examples of the manual do what they say, and leave their project as it is."""
    top = examples()
    before = lib.snapshot(f"{top}/project")
    collect([(*case, top) for case in EXAMPLES], example)
    if host.has_controllers():
        example("out-of-memory", "fail", None, False, top)
    lib.untouched(f"{top}/project", before)


# --- exit statuses and signals ----------------------------------------------------------


def run_many(jobs):
    """Runs jobs, some at the same time; results in their order."""
    workers = 4 if host.is_fast() else 1
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        return list(pool.map(run_job, jobs))


def check_exit_status(code, run):
    eq(run.status, 0 if code == 0 else 1, "qscope's exit status")
    eq(run["verdict"], "pass" if code == 0 else "fail", "verdict")
    eq(run["exit_code"], code, "exit_code")
    eq([run["signal"], run["timed_out"]], [None, False], "signal and timeout")
    eq(run.hits, {}, "limits.hits")
    check("error" not in (run["exec"] or {}) or run["exec"]["error"] is None,
          f"exec.error for a command that ran: {run['exec']}")


@test("vm", timeout=90)
def test_exit_statuses():
    """Every exit status 0 to 255 is reported as itself: systemd's own 200 to 243, a shell's 126
    and 127, and 128+n mean nothing special when the job itself exits so."""
    codes = range(256) if host.is_fast() else (0, 1, 127, 203, 255)
    shared = workspace()
    runs = run_many([job(sh(f"exit {code}"), cwd=shared) for code in codes])
    collect(list(zip(codes, runs)), check_exit_status)


# Ignored or stopping by default: they do not end a process.
HARMLESS = {17, 18, 19, 20, 21, 22, 23, 28}


def check_signal(number, run):
    eq([run.status, run["verdict"]], [1, "fail"], "status and verdict")
    eq([run["exit_code"], run["timed_out"]], [None, False], "exit_code and timed_out")
    eq(signal_of(run), number, "signal")
    if number not in (24, 25):  # SIGXCPU and SIGXFSZ may well be taken for the limits' own
        eq(run.hits, {}, "limits.hits")


@test("vm", timeout=60)
def test_signals():
    """Death by each signal is that signal, with a null exit code: not 128+n, not a timeout, and a
    SIGKILL is not out of memory."""
    numbers = [n for n in range(1, 32) if n not in HARMLESS] + [34, 64]
    if not host.is_fast():
        numbers = [6, 9, 15]
    shared = workspace()
    runs = run_many([job(sh(f"kill -{n} $$; sleep 5"), cwd=shared) for n in numbers])
    collect(list(zip(numbers, runs)), check_signal)


@test("smoke")
def test_kill_is_not_oom():
    """`kill -9 $$` is a signal and nothing else."""
    run = fails(sh("kill -9 $$"))
    eq([signal_of(run), run["exit_code"], run["timed_out"], run.hits], [9, None, False, {}],
       "signal, exit_code, timed_out, hits")


@test()
def test_expected_exit_forms():
    """A number, a list or "any"; a signal is never an exit, not even an expected "any"."""
    shared = workspace()
    exits(passes(job(sh("exit 3"), cwd=shared, expected_exit=3)), 3)
    exits(passes(job(sh("exit 4"), cwd=shared, expected_exit=[0, 4])), 4)
    exits(passes(job(sh("exit 99"), cwd=shared, expected_exit="any")), 99)
    exits(fails(job(sh("exit 0"), cwd=shared, expected_exit=[1, 2])), 0)
    run = fails(job(sh("kill -15 $$"), cwd=shared, expected_exit="any"))
    eq(run["match_expected"], False, "match_expected after a signal")


@test()
def test_expected_127():
    """A job may expect its tool to be missing; then the seed's match_expected holds."""
    run = run_job(job(["no-such-tool-here"], expected_exit=127))
    eq([run["exit_code"], run["match_expected"]], [127, True], "outcome")


# --- expectations beyond the exit code --------------------------------------------------


def expectation(expect, good):
    script = "printf 'one\\n{\"a\": 1}\\n'; printf 'warn' >&2; echo new > made; rm -f gone"
    run = run_job(job(sh(script), cwd=workspace({"gone": "x"}), expect=expect))
    eq(run.status, 0 if good else 1, f"qscope's exit status for {expect}")
    eq(run["verdict"], "pass" if good else "fail", f"verdict for {expect}")
    eq(run["match_expected"], True, "match_expected speaks of the exit code alone")
    if not good:
        lib.reasons(run)


OUT = 'one\n{"a": 1}\n'
EXPECTATIONS = [
    ({"stdout": {"equals": OUT}}, True),
    ({"stdout": {"equals": "one\n"}}, False),
    ({"stdout": {"contains": "one"}}, True),
    ({"stdout": {"contains": "three"}}, False),
    ({"stdout": {"matches": "^o.e"}}, True),
    ({"stdout": {"matches": "^x"}}, False),
    ({"stdout": {"sha256": sha256(OUT)}}, True),
    ({"stdout": {"sha256": sha256("other")}}, False),
    ({"stdout": {"json": {"a": 1}}}, False),
    ({"stderr": {"equals": "warn"}}, True),
    ({"stderr": {"contains": "fatal"}}, False),
    ({"files": {"made": {"exists": True, "equals": "new\n"}}}, True),
    ({"files": {"made": {"sha256": sha256("new\n")}}}, True),
    ({"files": {"made": {"equals": "old\n"}}}, False),
    ({"files": {"gone": {"exists": False}}}, True),
    ({"files": {"gone": {"exists": True}}}, False),
    ({"max_duration_ms": 29_000}, True),
    ({"stdout": {"contains": "one"}, "stderr": {"contains": "fatal"}}, False),
]


@test()
def test_expectations():
    """Each assertion of `expect` decides the verdict both ways and leaves match_expected alone."""
    collect(EXPECTATIONS, expectation)


@test()
def test_expect_json():
    """expect.stdout.json compares values, not spelling."""
    argv = ["printf", '{ "b": [1, 2.0],\\n "a": null }\\n']
    passes(job(argv, expect={"stdout": {"json": {"a": None, "b": [1, 2]}}}))
    fails(job(argv, expect={"stdout": {"json": {"a": None, "b": [2, 1]}}}))


@test()
def test_expect_duration():
    """A command that is slower than max_duration_ms fails, although it exits 0."""
    run = fails(job(["sleep", "0.4"], expect={"max_duration_ms": 100}))
    eq([run["exit_code"], run["match_expected"]], [0, True], "outcome")


ALLOWED = [
    (None, True),
    ([], False),
    (["logs", ".cache/"], True),
    (["logs/run.log", ".cache"], True),
    (["logs"], False),
    (["log", ".cache"], False),
    ([".cache", "logs/run"], False),
]


def allow_changes(allowed, good):
    script = "mkdir .cache; echo 1 > .cache/a; echo more >> logs/run.log"
    run = run_job(job(sh(script), cwd=workspace({"logs/run.log": "x\n"}), allow_changes=allowed))
    eq(run["verdict"], "pass" if good else "fail", "verdict")
    eq(run.status, 0 if good else 1, "qscope's exit status")
    if not good:
        check(run["fs"]["unexpected"], "fs.unexpected is empty")


@test("smoke")
def test_allow_changes():
    """A change outside the list fails the job; not given, changes are only reported; a prefix of
    a name is not its directory."""
    collect(ALLOWED, allow_changes)


@test()
def test_allow_changes_absolute():
    """An allowed path may be absolute, and what was unexpected is named."""
    top = workspace({"a/b": "x"})
    passes(job(sh("echo y > a/b"), cwd=top, allow_changes=[f"{top}/a"]))
    run = fails(job(sh("echo y > a/b; echo z > c"), cwd=top, allow_changes=[f"{top}/a"]))
    contains(json.dumps(run["fs"]["unexpected"]), '"c"', "fs.unexpected")
    lib.lacks(json.dumps(run["fs"]["unexpected"]), "a/b", "fs.unexpected")


@test()
def test_nothing_may_change_and_nothing_did():
    """allow_changes [] passes for a job that only reads."""
    passes(job(sh("cat README; ls -l"), allow_changes=[]))


# --- the policy's refusals --------------------------------------------------------------


@test("smoke", "vm")
def test_over_the_ceiling():
    """Asking for more than the policy gives is rejected before anything starts, the ceiling is in
    the reason, and there is a receipt."""
    with lib.policy_drop_in(max={"timeout_sec": 7}), lib.nothing_started():
        run = rejected(job(["true"], timeout_sec=8))
    contains(json.dumps(run["reasons"]), "7", "reasons")
    eq([run["exit_code"], run["timed_out"], run["duration_ms"]], [None, False, None], "outcome")


@test()
def test_limit_over_the_ceiling():
    """The same for a limit; at the ceiling it is accepted."""
    with lib.policy_drop_in(max={"limits": {"file_size": "2M"}}):
        passes(job(["true"], limits={"file_size": "2M"}))
        with lib.nothing_started():
            run = rejected(job(["true"], limits={"file_size": "3M"}))
    mentions(json.dumps(run["reasons"]), ["2M", "2097152"], "reasons")


@test()
def test_denied_program():
    """deny_argv0 looks at the base name, by pattern, whatever the path or the case."""
    with lib.policy_drop_in(deny_argv0=["sleep", "mk*"]), lib.nothing_started():
        for argv in (["sleep", "1"], ["/bin/SLEEP", "1"], ["./mkfs.ext4"]):
            run = rejected(argv)
            mentions(json.dumps(run["reasons"]), [os.path.basename(argv[0])], "reasons")


@test()
def test_policy_by_name_only():
    """A policy is a name: a path is a mistake in the job, an unknown name starts nothing."""
    with lib.nothing_started():
        run = run_job(job(["true"], policy="../../tmp/mine"))
        eq(run.status, 2, "qscope's exit status for a path")
        mentions(run.stderr, ["policy"], "stderr")
        run = run_job(job(["true"], policy="no-such-policy"))
        one_of(run.status, (2, 3, 4), "qscope's exit status for an unknown name")
        contains(run.stderr + json.dumps(run.receipt), "no-such-policy", "the sentence")


# --- the command line -------------------------------------------------------------------


@test()
def test_help_and_version():
    """--help teaches and --version tells, on stdout, with status 0."""
    text = lib.qscope("--help")
    eq(text.status, 0, "status of --help")
    contains(text.stdout, "run", "help")
    eq(lib.qscope("run", "--help").status, 0, "status of run --help")
    version = lib.qscope("--version")
    eq(version.status, 0, "status of --version")
    check(re.search(r"\d+\.\d+|\d+", version.stdout), f"no version in {version.stdout!r}")


USAGE_ERRORS = [
    [], ["no-such-verb"], ["run"], ["run", "--no-such-option", "x.json"], ["run", "--"],
    ["run", "a.json", "b.json", "c.json"], ["run", "--receipt"], ["run", "--policy"],
    ["run", "does-not-exist.json", "r.json"], ["run", ""],
]


def usage_error(args):
    run = lib.qscope(*args)
    eq(run.status, 2, "exit status")
    check(run.stderr.strip(), "no sentence on stderr")
    eq(run.stdout, "", "stdout")


@test("smoke")
def test_usage_errors():
    """A call that cannot be understood is status 2 with a sentence, and starts nothing."""
    with lib.nothing_started():
        collect([(args,) for args in USAGE_ERRORS], usage_error)
    contains(lib.qscope("run", "does-not-exist.json").stderr, "does-not-exist.json", "stderr")


@test()
def test_job_from_stdin():
    """JOB.json may be "-"; the job's own stdin is still not the caller's."""
    path = scratch("receipt.json")
    text = json.dumps(job(["cat"], cwd=workspace()))
    lib.write(scratch("job"), text)
    with open(scratch("job"), "rb") as file:
        run = lib.qscope("run", "-", path, receipt_path=path, stdin=file)
    lib.verdict(run, 0, "pass")
    eq(run.out, "", "what the job read")


@test()
def test_argv_on_the_command_line():
    """`qscope run -- ARGV` runs in the caller's directory, and options end at "--"."""
    top = workspace({"here": "x"})
    path = scratch("receipt.json")
    run = lib.qscope("run", "--receipt", path, "--", "sh", "-c", "pwd; ls; echo \"$@\"", "sh",
                     "--json", "--", "-j", receipt_path=path, cwd=top)
    lib.verdict(run, 0, "pass")
    eq(run.out, f"{top}\nhere\n--json -- -j\n", "stdout")
    check(run["job_id"], "no job_id was generated")


@test()
def test_cwd_defaults_to_the_callers():
    """A job file without cwd runs where qscope was called."""
    top = workspace({"here": "x"})
    run = passes(job(sh("pwd; ls"), cwd=None), cwd=top)
    eq([run.out, run["cwd"]], [f"{top}\nhere\n", top], "where it ran")


@test()
def test_quiet():
    """--quiet says nothing when all is well; the receipt and the status still tell."""
    run = passes(["true"], options=["--quiet"])
    eq(run.stderr, "", "stderr")


@test()
def test_receipt_to_stdout():
    """With "-" the receipt itself goes to standard output, whole."""
    run = lib.qscope("run", lib.write_job(["echo", "x"]), "-")
    eq(run.status, 0, "exit status")
    documents, text, decoder = [], run.stdout.strip(), json.JSONDecoder()
    while text:
        value, end = decoder.raw_decode(text)
        documents.append(value)
        text = text[end:].strip()
    receipts = [value for value in documents if value.get("schema") == "qscope.receipt/v1"]
    eq(len(receipts), 1, "receipts on stdout")
    eq(receipts[0]["stdout"], "x\n", "the job's output")


# --- the receipt's file -----------------------------------------------------------------


@test()
def test_receipt_to_a_full_stdout():
    """A receipt that could not be printed is lost, and nothing that is lost is a success."""
    with open("/dev/full", "wb") as full:
        done = subprocess.run([lib.QSCOPE, "run", "--receipt", "-", "--workspace", "fresh", "--", "true"], stdout=full,
                              stderr=subprocess.PIPE, env=lib.CALLER, check=False)
    eq(done.returncode, 4, "exit status")
    contains(done.stderr.decode(), "standard output", "what it says")


@test()
def test_full_stdout():
    """An answer that could not be printed is said to be lost, and is no success of any verb."""
    receipt, top = scratch("receipt.json"), workspace()
    file = lib.write_job(job(["true"], cwd=top))
    suite = lib.write(scratch("suite.json"), json.dumps({"name": "s", "cases": [{"name": "x", "expected_exit": 0}]}))
    candidate = lib.write(scratch("a.py"), "")
    eq(lib.qscope("run", file, receipt).status, 0, "exit status")
    for args in (["run", file], ["batch", file], ["batch", file, "--jsonl", "-"], ["eval", suite, candidate],
                 ["eval", suite, candidate, "--json"], ["eval", suite, candidate, "--quiet", "--csv", "-"],
                 ["check", file], ["plan", file], ["explain", receipt], ["diff", receipt, receipt], ["report", receipt],
                 ["policy", "list"], ["policy", "show", "default"], ["log"], ["clean", "--dry-run"], ["doctor", "--list"],
                 ["--help"], ["--version"], ["run", "--help"]):
        with open("/dev/full", "wb") as full:
            done = subprocess.run([lib.QSCOPE, *args], stdout=full, stderr=subprocess.PIPE, text=True, env=lib.CALLER,
                                  check=False)
        eq(done.returncode, 4, f"exit status of {args} ({done.stderr})")
        contains(done.stderr, "standard output: ", f"what {args} says")


@test()
def test_default_receipt_name():
    """Without a path the receipt is named after the job id below /var/lib/qscope/receipts, and a
    later run of the same job takes another name."""
    job_id = f"bed-{os.getpid()}.default"
    file = lib.write_job(job(["true"], job_id=job_id, cwd=workspace()))
    paths = [lib.qscope("run", file).line["receipt"] for _ in range(3)]
    try:
        eq(len(set(paths)), 3, "different receipts")
        for path in paths:
            eq(os.path.dirname(path), "/var/lib/qscope/receipts", "directory")
            contains(os.path.basename(path), job_id, "name")
            eq(lib.load_receipt(path)["job_id"], job_id, "job_id in the receipt")
        ids = {lib.load_receipt(path)["run_id"] for path in paths}
        eq(len(ids), 3, "different run ids")
    finally:
        for path in set(paths):
            os.unlink(path)


@test()
def test_default_receipt_of_another_user():
    """XDG_STATE_HOME is for users; root's receipts stay where the manual says."""
    env = {**lib.CALLER, "XDG_STATE_HOME": scratch("state")}
    path = lib.qscope("run", lib.write_job(["true"]), env=env).line["receipt"]
    os.unlink(path)
    eq(os.path.dirname(path), "/var/lib/qscope/receipts", "directory")


@test("smoke")
def test_existing_receipt_is_kept():
    """An existing file at the receipt's path is kept under NAME.~1~, then NAME.~2~: an earlier
    receipt is never overwritten."""
    path = scratch("receipt.json")
    lib.write(path, "the earlier one\n")
    first = passes(["true"], receipt=path)
    eq(host.read(f"{path}.~1~"), "the earlier one\n", "the kept file")
    second = passes(["true"], receipt=path)
    eq(lib.load_receipt(f"{path}.~2~")["run_id"], first["run_id"], "the second kept file")
    eq(host.read(f"{path}.~1~"), "the earlier one\n", "the first kept file")
    eq(lib.load_receipt(path)["run_id"], second["run_id"], "the newest")


@test()
def test_receipt_never_through_a_link():
    """A symbolic link at the receipt's path is not followed, dangling or not."""
    victim = lib.write(scratch("victim"), "precious\n")
    for target in (victim, scratch("dangling")):
        path = scratch()
        os.symlink(target, path)
        run = run_job(["true"], receipt=path)
        one_of(run.status, (0, 2, 4), "exit status")
        eq(host.read(victim), "precious\n", "the link's target")
        check(not os.path.exists(scratch("dangling")), "a dangling link was written through")
        if run.status == 0:
            check(not os.path.islink(path), "the receipt's path is still a link")


def unwritable(path):
    marker = workspace()
    with lib.nothing_started():
        run = run_job(job(["true"], cwd=marker), receipt=path)
    one_of(run.status, (2, 4), "exit status")
    check(run.stderr.strip(), "no sentence on stderr")
    return run


@test()
def test_receipt_nowhere_to_go():
    """A receipt that could not be written is found out before anything runs: a job without a
    receipt would be a run without evidence."""
    contains(unwritable(scratch("no/such/dir/r.json")).stderr, "no/such/dir", "stderr")
    lib.write(scratch("file"), "x")
    unwritable(scratch("file") + "/r.json")
    unwritable(scratch("x" * 300))
    directory = scratch("ro")
    os.mkdir(directory)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "tmpfs", directory], check=True)
    contains(unwritable(directory + "/r.json").stderr, directory, "stderr")


@test()
def test_receipt_path_is_a_directory():
    """A directory at the receipt's path stays what it is."""
    directory = scratch("dir")
    os.mkdir(directory)
    run = run_job(["true"], receipt=scratch("other.json"))
    eq(run.status, 0, "exit status")
    run = lib.qscope("run", lib.write_job(["true"]), directory)
    one_of(run.status, (0, 2, 4), "exit status")
    check(os.path.isdir(directory) or os.path.isdir(f"{directory}.~1~"), "the directory is gone")


def fill_up(path):
    filler = os.open(path, os.O_WRONLY | os.O_CREAT)
    try:
        while True:
            os.write(filler, b"x" * 4096)
    except OSError:
        os.close(filler)


@test()
def test_disk_full_for_the_receipt():
    """No room for the receipt: status 4 with a sentence, and no torn file in its place."""
    directory = scratch("full")
    os.mkdir(directory)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k,nr_inodes=16", "tmpfs", directory],
                   check=True)
    lib.write(directory + "/earlier", "x")
    fill_up(directory + "/filler")
    run = lib.qscope("run", lib.write_job(["seq", "2000"]), directory + "/r.json")
    one_of(run.status, (2, 4), "exit status")
    contains(run.stderr, directory, "stderr")
    lib.lacks(run.stdout, "pass", "a verdict that nothing proves")
    eq(sorted(os.listdir(directory)), ["earlier", "filler"], "files")


@test()
def test_same_receipt_at_once():
    """Five runs at once with the same job id: five receipts, none lost."""
    file = lib.write_job(job(["true"], job_id=f"bed-{os.getpid()}.once", cwd=workspace()))
    with concurrent.futures.ThreadPoolExecutor(5) as pool:
        paths = [run.line["receipt"] for run in pool.map(lambda _: lib.qscope("run", file),
                                                         range(5))]
    ids = {lib.load_receipt(path)["run_id"] for path in paths}
    for path in set(paths):
        os.unlink(path)
    eq([len(set(paths)), len(ids)], [5, 5], "different receipts and runs")


@test()
def test_every_run_writes_a_receipt():
    """Whatever the verdict: a failed job, a command that cannot start and a host that cannot run
    it all leave a receipt with a reason."""
    fails(["false"])
    fails(["no-such-tool-here"])
    with lib.drop_in("/run/systemd/system/qscope-.service.d/90-bed-test.conf",
                     "[Service]\nBindPaths=/not/there:/x\n", reload=True):
        run = errors(["true"])
    eq([run["exit_code"], run["match_expected"]], [None, False], "outcome")


@test()
def test_caller_without_stdout():
    """qscope's reader is gone (a closed pipe): the receipt is written all the same."""
    path = scratch("receipt.json")
    argv = ["sh", "-c", 'exec "$@" | true', "sh", lib.QSCOPE, "run", lib.write_job(["true"]), path]
    subprocess.run(argv, env=lib.CALLER, check=False, stderr=subprocess.DEVNULL)
    host.wait_until(lambda: os.path.exists(path), lib.bound(20))
    eq(lib.load_receipt(path)["verdict"], "pass", "verdict")
