# SPDX-License-Identifier: Apache-2.0
"""Many jobs in one process: the receipts of single runs, in the order of the input, whatever else runs,
whoever interrupts; and nothing that grows."""

import csv
import json
import os
import pty
import re
import signal
import subprocess

import host
import lib
from lib import (between, check, contains, eq, fail, job, lacks, mentions, qscope, read_bytes,
                 scratch, sh, start_qscope, test, workspace, write)

GROUP = "batch"


def write_jobs(jobs, directory=None):
    """A directory of job files; bytes are written as they are. Sorted by name they are in order."""
    top = directory or scratch()
    for number, fields in enumerate(jobs):
        data = fields if isinstance(fields, bytes) else json.dumps(lib.make_job(fields)).encode()
        write(f"{top}/{number:04}.json", data)
    return top


def many(count, argv, **fields):
    shared = workspace({"a": "x\n"})
    return [job(argv, cwd=shared, job_id=f"n{number}", **fields) for number in range(count)]


def lines_of(text):
    return [json.loads(line) for line in text.splitlines()]


def receipts_in(directory):
    names = [name for name in os.listdir(directory) if name.endswith(".json")]
    return {name: lib.load_receipt(f"{directory}/{name}") for name in sorted(names)}


def batch(*args, status=0, **kw):
    run = qscope("batch", *args, **kw)
    eq(run.status, status, f"qscope's exit status ({run.stdout} {run.stderr})")
    return run


# --- the same as single runs ------------------------------------------------------------

VARYING = {"run_id", "samples", "kept", "unit", "started_at", "finished_at", "duration_ms", "timing", "usage", "pid",
           "ppid", "uid", "start", "end"}


def constant(value):
    """Without what differs from run to run: times, numbers of processes, what was used."""
    if isinstance(value, dict):
        return {key: constant(item) for key, item in value.items()
                if key not in VARYING and not key.endswith("_ms")}
    if isinstance(value, list):
        return [constant(item) for item in value]
    if isinstance(value, str):
        return re.sub(r"pid \d+|\d{4,}", "N", value)
    return "N" if type(value) is int and value > 9999 else value


@test("smoke", timeout=90)
def test_same_receipts():
    """Jobs of a batch, beside each other, have the receipts that single runs of them have."""
    shared = workspace({"a": "x\n", "sub/b": "y\n"})
    jobs = [
        job(["true"], cwd=shared, job_id="t"),
        job(sh("echo out; echo err >&2; echo z > a; rm sub/b; exit 3"), cwd=shared, job_id="f"),
        job(sh("sleep 300 & exec true"), cwd=shared, job_id="l"),
        job(["./missing"], cwd=shared, job_id="m"),
        job(["true"], cwd="/etc", job_id="r"),
        job(["python3", "-c", "import socket; socket.create_connection(('192.0.2.1', 9))"],
            cwd=shared, job_id="e"),
    ]
    top, receipts = write_jobs(jobs), scratch()
    batch(top, "-j", "6", "--receipts", receipts, "--quiet", status=3)
    for number, fields in enumerate(jobs):
        name = fields["job_id"]
        alone = lib.run_job(fields).receipt
        beside = lib.load_receipt(f"{receipts}/{name}.json")
        for key in sorted(alone.keys() | beside.keys()):
            if key in VARYING | {"processes", "isolation", "host"}:
                continue
            one, other = alone.get(key), beside.get(key)
            eq(constant(other), constant(one), f"{name}: receipt.{key}")
        eq(len(beside["isolation"]), len(alone["isolation"]), f"{name}: isolation")
        eq(alone["job_sha256"], beside["job_sha256"], "job_sha256")


@test(timeout=60)
def test_order_and_lines():
    """Rows come in the order of the input, not of the ends; a line is that of a single run."""
    jobs = [job(sh(f"sleep {delay}"), job_id=f"n{number}")
            for number, delay in enumerate((1, 0, 0.5, 0))]
    run = batch(write_jobs(jobs), "-j", "4", "--jsonl", "-")
    lines = lines_of(run.stdout)
    eq([line["job_id"] for line in lines], ["n0", "n1", "n2", "n3"], "order")
    eq(list(lines[0]), list(lib.run_job(jobs[0]).line), "keys of a line")


@test("smoke", timeout=60)
def test_inputs():
    """Files, directories, patterns that the shell left alone, and lines on standard input."""
    top = write_jobs(many(3, ["true"]))
    write(f"{top}/note.txt", "no job")
    run = batch(top, f"{top}/000[12].json", f"{top}/0000.json", "-j", "3", "--jsonl", "-")
    eq([line["job_id"] for line in lines_of(run.stdout)], "n0 n1 n2 n1 n2 n0".split(), "jobs")
    text = "".join(json.dumps(lib.make_job(fields)) + "\n\n" for fields in many(2, ["true"]))
    write(scratch("lines"), text[:-2])  # the last line without an end
    with open(scratch("lines"), "rb") as lines:
        run = batch("-", "--jsonl", "-", stdin=lines)
    eq([line["job_id"] for line in lines_of(run.stdout)], ["n0", "n1"], "lines")
    for wrong in (f"{top}/no*.json", f"{top}/none", workspace()):
        batch(wrong, status=2)
    run = batch(top, "--receipts", f"{top}/note.txt", "--jsonl", "-", status=2)
    eq(run.stdout, "", "jobs whose receipts have no place")
    contains(run.stderr, f"--receipts {top}/note.txt: ", "why")


@test(timeout=60)
def test_broken_in_the_middle():
    """Jobs that do not parse, or name no policy, are rows, and all others run."""
    jobs = many(5, ["true"])
    jobs[1] = b'{"argv": ['
    jobs[2] = b"\x00" * 100
    jobs[3] = {**jobs[3], "policy": "no-such"}
    run = batch(write_jobs(jobs), "-j", "2", "--jsonl", scratch("lines"), status=2)
    lines = lines_of(read_bytes(scratch("lines")).decode())
    eq([line["verdict"] for line in lines], ["pass", None, None, None, "pass"], "verdicts")
    eq([line["job_id"] for line in lines], ["n0", None, None, "n3", "n4"], "ids")
    check(all(line["error"] and line["input"] for line in lines[1:4]), f"lines: {lines}")
    contains(run.stdout, "5 jobs: 2 pass, 3 broken", "table")


@test(timeout=60)
def test_same_id_twice():
    """A second job with the same id keeps both receipts."""
    jobs = [job(["true"], job_id="same"), job(["false"], job_id="same")]
    batch(write_jobs(jobs), "-j", "1", "--receipts", scratch("r"), status=1)
    found = receipts_in(scratch("r"))
    eq({name: item["verdict"] for name, item in found.items()},
       {"same.json": "pass", "same.2.json": "fail"}, "receipts")


@test(timeout=60)
def test_fail_fast():
    """After the first that does not pass none is begun; it says where it stopped."""
    jobs = many(6, ["true"])
    jobs[1]["argv"] = ["false"]
    run = batch(write_jobs(jobs), "-j", "1", "--fail-fast", "--jsonl", "-", status=1)
    eq(len(lines_of(run.stdout)), 2, "jobs")
    contains(run.stderr, "0002.json", "where it stopped")


@test()
def test_keep():
    """A batch keeps nothing for an apply unless it is told to; an apply says how."""
    def run(*options):
        top, out = workspace({"a": "a\n"}), scratch(lib.fresh_name("r"))
        batch(write_jobs([job(sh("echo b > a"), job_id="k", cwd=top)], scratch(lib.fresh_name("jobs"))),
              "--receipts", out, *options)
        return qscope("apply", "--yes", f"{out}/k.json"), read_bytes(f"{top}/a")

    done, text = run()
    eq([done.status, text], [3, b"a\n"], "an apply without --keep")
    contains(done.stderr, "nothing is kept of this run: nothing was to be kept; run it with --keep", "the sentence")
    done, text = run("--keep")
    eq([done.status, text], [0, b"b\n"], "an apply with --keep")


@test(timeout=60)
def test_hostile_names():
    """Names of files and of what a job makes reach table and CSV, and do nothing there."""
    evil = "=cmd|'\x1b[2J\r\n\",@x"
    top = write_jobs([job(sh('printf x > "$0"') + [evil], job_id="evil", allow_changes=[])])
    write(f"{top}/+1{evil}.json", "no")
    run = batch(top, "--csv", scratch("c"), status=2)
    lacks(run.stdout + run.stderr, "\x1b", "table")
    with open(scratch("c"), newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    eq([row["verdict"] for row in rows], ["", "fail"], "verdicts")
    for row in rows:
        for cell in row.values():
            check(cell.isprintable() and cell[:1] not in tuple("=+-@"), f"cell {cell!r}")
    contains(rows[1]["message"], "cmd", "message")


# --- interrupted ------------------------------------------------------------------------


def survivors():
    return [pid for pid, _, uid, state in host.processes()
            if uid in host.JOB_UIDS and not state.startswith("Z")]


def sleepers():
    """The command itself, not only what holds its place at the gate."""
    return [pid for pid, name, uid, _ in host.processes()
            if uid in host.JOB_UIDS and name == "sleep"]


def wait_for(predicate, what):
    check(host.wait_until(predicate, lib.bound(30)), what)


@test("smoke", timeout=120)
def test_killed_and_resumed():
    """kill -9 in the middle: the jobs die at once, finished receipts stay, --resume runs the rest."""
    count = 24
    jobs = many(count, ["sleep", "0.3"])
    # The same id, another job: it is not taken for the one that was run.
    top, receipts = write_jobs(jobs), scratch("r")
    os.mkdir(receipts)
    started = start_qscope(["batch", top, "-j", "4", "--receipts", receipts, "--quiet"])
    wait_for(lambda: len(os.listdir(receipts)) >= 6 and sleepers(), "no receipts came")
    started.kill(signal.SIGKILL)
    started.finish()
    check(host.wait_until(lambda: not survivors(), lib.bound(1)), "jobs outlive a killed qscope")
    before = receipts_in(receipts)
    between(len(before), 6, count - 1, "receipts at the kill")
    jobs[0]["argv"] = ["true"]
    write_jobs(jobs, top)
    run = batch(top, "-j", "4", "--receipts", receipts, "--resume", "--jsonl", "-", timeout=90)
    lines = lines_of(run.stdout)
    eq([line["job_id"] for line in lines], [item["job_id"] for item in jobs], "order")
    eq({line["verdict"] for line in lines}, {"pass"}, "verdicts")
    after = receipts_in(receipts)
    eq(len(after), count + 1, "receipts")  # the changed job has two
    for name, receipt in before.items():
        eq(after[name]["run_id"], receipt["run_id"], f"{name} was written again")
    run = batch(top, "--receipts", receipts, "--resume")
    eq(receipts_in(receipts).keys(), after.keys(), "receipts after nothing was left")
    contains(run.stdout, f"{count} of them from before", "table")


@test(timeout=60)
def test_few_descriptors():
    """Where qscope itself has no descriptor left, what is not seen for it is lost, and no matter of the host: a pass has
    the blind spots that it has always."""
    always = set(lib.passes(sh("echo x; sleep 0.1"))["blind_spots"])
    top = write_jobs([job(sh(f"echo {n}; sleep 0.1")) for n in range(6)])
    for limit in 40, 90, 140, 190, 240, 290, 340:
        receipts = scratch(f"r{limit}")
        lib.host.quiet("prlimit", f"--nofile={limit}:{limit}", "setpriv", "--bounding-set", "-sys_resource", "--inh-caps",
                       "-sys_resource", lib.QSCOPE, "batch", "--quiet", "-j", "3", "--receipts", receipts, top)
        for name, receipt in receipts_in(receipts).items() if os.path.isdir(receipts) else ():
            if receipt["verdict"] == "pass":
                eq(set(receipt["blind_spots"]) - always, set(), f"what {name} does not see with {limit} descriptors")


@test()
def test_lines_in_files():
    """A *.jsonl is a job a line, wherever it stands among the others; a line that is no job is a row."""
    top = write_jobs([job(["true"], job_id="single")])
    lines = [json.dumps(job(["true"], job_id=f"l{n}")) for n in range(3)]
    one = write(scratch("one.jsonl"), "\n".join([lines[0], "", "{", lines[1]]) + "\n")
    two = write(scratch("two.ndjson"), lines[2])
    fifo = scratch("fifo.jsonl")
    os.mkfifo(fifo)
    run = batch(one, top, two, fifo, "--jsonl", "-", "--quiet", status=2)
    rows = lines_of(run.stdout)
    eq([row["job_id"] for row in rows], ["l0", None, "l1", "single", "l2", None], "jobs")
    contains(rows[1]["error"], "one.jsonl: line 3", "the line that is none")
    contains(rows[5]["error"], "fifo.jsonl: is not a regular file", "the pipe")


@test(timeout=60)
def test_resumed_from_what_others_can_write():
    """A receipt that belongs to somebody else, or that others can write, is no reason not to run the job."""
    top, receipts = write_jobs([job(["true"], job_id="one")]), scratch("r")
    batch(top, "--receipts", receipts)
    path = f"{receipts}/one.json"
    for spoil in (lambda: os.chown(path, 65534, 65534), lambda: os.chmod(path, 0o666)):
        before = set(os.listdir(receipts))
        spoil()
        run = batch(top, "--receipts", receipts, "--resume", "--jsonl", "-")
        (made,) = set(os.listdir(receipts)) - before
        eq(lines_of(run.stdout)[0]["receipt"], f"{receipts}/{made}", "the receipt that counts")
        os.unlink(f"{receipts}/{made}")
        os.chown(path, 0, 0)
    os.chmod(path, 0o600)
    contains(batch(top, "--receipts", receipts, "--resume").stdout, "1 of them from before", "table")


@test(timeout=60)
def test_resumed_under_another_policy():
    """What ran under a policy that has been changed since is run again, whichever way it ended."""
    top, receipts = write_jobs([job(["true"], job_id="one")]), scratch("r")

    def resume(verdict, n):
        status = {"pass": 0, "rejected": 3}[verdict]
        run = batch(top, "--receipts", receipts, "--resume", "--jsonl", "-", status=status)
        eq([line["verdict"] for line in lines_of(run.stdout)], [verdict], "verdicts")
        eq(len(receipts_in(receipts)), n, "receipts")

    os.mkdir(receipts)
    with lib.policy_drop_in(deny_argv0=["true"]):
        resume("rejected", 1)
    resume("pass", 2)
    resume("pass", 2)
    with lib.policy_drop_in(deny_argv0=["t?ue"]):
        resume("rejected", 3)


@test("smoke", timeout=60)
def test_interrupted():
    """Ctrl-C: what runs is ended, with receipts that say so, and it says where it was."""
    receipts = scratch("r")
    started = start_qscope(["batch", write_jobs(many(6, ["sleep", "300"])), "-j", "3",
                            "--receipts", receipts, "--jsonl", "-"])
    wait_for(lambda: len(sleepers()) >= 3, "the jobs did not start")
    started.kill(signal.SIGINT)
    run = started.finish()
    eq(run.status, 130, "exit status")
    lines = lines_of(run.stdout)
    eq([line["verdict"] for line in lines], ["aborted"] * 3, "verdicts")
    eq([item["verdict"] for item in receipts_in(receipts).values()], ["aborted"] * 3, "receipts")
    mentions(run.stderr, ["interrupted"], "where it was")
    contains(run.stderr, "number 4, ", "where it was")
    contains(run.stderr, "0003.json", "where it was")


@test(timeout=60)
def test_progress():
    """On a terminal: how many are done, passed and not, a rate; and no trace of it at the end."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [lib.QSCOPE, "batch", write_jobs([["true"], ["false"], ["true"]]), "-j", "1"],
        stdout=subprocess.PIPE, stderr=theirs, stdin=subprocess.DEVNULL, env=lib.CALLER)
    os.close(theirs)
    table = process.communicate(timeout=lib.bound(20))[0].decode()
    shown = os.read(ours, 65536).decode()
    os.close(ours)
    contains(shown, "/3  ", "progress")
    contains(shown, "passed", "progress")
    check(shown.endswith("\r\x1b[K"), f"the progress is left there: {shown[-80:]!r}")
    contains(table, "3 jobs: 2 pass, 1 fail", "table")


# --- started ahead ----------------------------------------------------------------------


def stages():
    """Stages that wait at their gates."""
    return [pid for pid, name, uid, state in host.processes()
            if uid in host.JOB_UIDS and name == "qscope-stage" and not state.startswith("Z")]


def start_ahead(jobs, *args):
    """A batch, one at a time: the first job runs, the second is held."""
    started = start_qscope(["batch", write_jobs(jobs), "-j", "1", "--jsonl", "-", *args])
    wait_for(lambda: sleepers() and stages(), "no stage is held while the first job runs")
    return started


@test("smoke", timeout=60)
def test_ahead():
    """The next job waits in its own sandbox; when its turn comes it runs, and says how long it
    waited; its figures are its own."""
    jobs = [job(["sleep", "300"]), job(sh("echo $$"), job_id="next")]
    started = start_ahead(jobs, "--receipts", scratch("r"))
    os.kill(sleepers()[0], signal.SIGKILL)
    lines = lines_of(started.finish().stdout)
    eq([line["verdict"] for line in lines][1:], ["pass"], "verdicts")
    receipt = lib.load_receipt(f"{scratch('r')}/next.json")
    check(receipt["timing"]["held"] > 0, f"timing {receipt['timing']}")
    check(receipt["duration_ms"] <= receipt["timing"]["run"] + 1, "duration")
    check(receipt["isolation"], "no isolation was observed")


@test(timeout=60)
def test_held_stage_dies():
    """Somebody kills a stage while it is held: an error for that job, and the batch goes on."""
    started = start_ahead([job(["sleep", "300"]), job(["true"]), job(["true"])])
    killed = stages()[0]
    os.kill(killed, signal.SIGKILL)
    wait_for(lambda: killed not in stages(), "the stage is alive")
    os.kill(sleepers()[0], signal.SIGKILL)
    run = started.finish()
    eq(sorted(line["verdict"] for line in lines_of(run.stdout)[1:]), ["error", "pass"], "verdicts")


def end_with_held(number, status, receipts):
    top, held = scratch(lib.fresh_name("r")), lib.fresh_name("held")
    jobs = [job(["sleep", "300"]), job(["sleep", "300"], job_id=held), job(["sleep", "300"])]
    started = start_ahead(jobs, "--receipts", top)
    started.kill(number)
    eq(started.finish().status, status, "exit status")
    check(host.wait_until(lambda: not survivors(), lib.bound(10)), "a held stage outlives qscope")
    eq([item["verdict"] for item in receipts_in(top).values()], receipts, "receipts")
    if receipts:
        host.quiet("journalctl", "--sync")
        trail = qscope("log", "--verify", "--json", held)
        eq([trail.status, [[line["verdict"], line["receipt_state"]] for line in lines_of(trail.stdout)]],
           [0, [["aborted", "no file"]]], "audit trail of the held job")


@test(timeout=60)
def test_held_stage_is_dismissed():
    """SIGTERM or SIGKILL to qscope: what is held goes too, and was never begun; the audit trail owes
    no receipt of it."""
    lib.collect([(signal.SIGTERM, 143, ["aborted"]), (signal.SIGKILL, -9, [])], end_with_held)


# --- many -------------------------------------------------------------------------------


@test(timeout=180)
def test_fifty_at_once():
    """Fifty at once on few CPUs all finish, and none is taken for another."""
    jobs = [job(sh(f"echo {number}; sleep 2; echo {number} > mine"), workspace="fresh",
                job_id=f"n{number}", timeout_sec=120) for number in range(50)]
    batch(write_jobs(jobs), "-j", "50", "--receipts", scratch("r"), "--quiet", timeout=150)
    receipts = [lib.load_receipt(f"{scratch('r')}/n{number}.json") for number in range(50)]
    for number, receipt in enumerate(receipts):
        eq([receipt["stdout"], [item["path"] for item in receipt["fs"]["added"]]],
           [f"{number}\n", ["mine"]], "output and files")
    check(max(receipt["started_at"] for receipt in receipts) <
          min(receipt["finished_at"] for receipt in receipts), "they were not begun at once")


def own_facts(pid):
    status = dict(line.split(":", 1) for line in host.read(f"/proc/{pid}/status").splitlines())
    return {
        "descriptors": len(os.listdir(f"/proc/{pid}/fd")),
        "mounts": len(host.read(f"/proc/{pid}/mountinfo").splitlines()),
        "peak_kib": int(status["VmHWM"].split()[0]),
    }


class Fed:
    """A batch that is fed by lines, and idle between them."""

    def __init__(self, *args):
        self.out = scratch("lines")
        self.process = subprocess.Popen(
            [lib.QSCOPE, "batch", "-", "--quiet", "--jsonl", self.out, *args],
            stdin=subprocess.PIPE, env=lib.CALLER, cwd=workspace())
        self.fed = 0

    def lines(self):
        return host.read(self.out, "").splitlines()

    def feed(self, jobs):
        for fields in jobs:
            self.process.stdin.write(json.dumps(lib.make_job(fields)).encode() + b"\n")
        self.process.stdin.flush()
        self.fed += len(jobs)
        check(host.wait_until(lambda: len(self.lines()) == self.fed, lib.bound(10 + len(jobs)), 0.05),
              f"{len(self.lines())} of {self.fed} jobs ended")
        check(host.wait_until(lambda: not host.job_units(), lib.bound(5)), "units are left")
        return own_facts(self.process.pid)

    def end(self):
        self.process.stdin.close()
        return self.process.wait(lib.bound(10))


@test(timeout=180, slow=True)
def test_nothing_grows():
    """A hundred jobs, 4 at a time: descriptors, memory, mounts and units are where they were after 20."""
    fed = Fed("-j", "4")
    try:
        jobs = many(100, ["true"])
        before = fed.feed(jobs[:20])
        after = fed.feed(jobs[20:])
        eq(fed.end(), 0, "exit status")
    finally:
        fed.process.kill()
        fed.process.wait()
    for key in ("descriptors", "mounts"):
        eq(after[key], before[key], key)
    between(after["peak_kib"], 1, 32 * 1024, "peak memory")
    between(after["peak_kib"], 1, before["peak_kib"] + 4096, "growth of the peak")


@test(timeout=60)
def test_bus_goes_away():
    """D-Bus stops while several jobs run: each ends, with a receipt."""
    started = start_qscope(["batch", write_jobs(many(3, ["sleep", "2"])), "-j", "3", "--jsonl", "-"])
    try:
        wait_for(lambda: len(sleepers()) >= 3, "the jobs did not start")
        host.quiet("systemctl", "stop", "dbus.socket", "dbus.service")
        run = started.finish()
        verdicts = {line["verdict"] for line in lines_of(run.stdout)}
        check(verdicts <= {"pass", "error"} and len(lines_of(run.stdout)) == 3, f"{run.stdout}")
        check(not survivors(), "processes of jobs are alive")
    finally:
        host.quiet("systemctl", "start", "dbus.socket", "dbus.service")
    lib.passes(["true"], timeout=30)


@test(timeout=60)
def test_bounded_apart():
    """Jobs in the posture bounded do not see the mounts of those beside them."""
    shared = workspace({"a": "x\n"})
    look = sh("sleep 0.3; grep -c /run/qscope/ /proc/self/mountinfo")
    jobs = [job(look, cwd=shared, posture="bounded", policy="trusted", job_id=f"b{number}",
                limits={"memory": None, "tasks": None, "cpu": None}, expected_exit=1)
            for number in range(2)]
    jobs += many(2, ["sleep", "1"])
    run = batch(write_jobs(jobs), "-j", "4", "--receipts", scratch("r"))
    for number in range(2):
        receipt = lib.load_receipt(f"{scratch('r')}/b{number}.json")
        eq(receipt["stdout"], "0\n", f"mounts of others ({run.stdout})")
