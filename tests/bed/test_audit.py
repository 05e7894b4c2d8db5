# SPDX-License-Identifier: Apache-2.0
"""The audit trail: a record when a job starts and one when it ends, whatever becomes of it; receipts
that are not what was recorded are found; what others do to a job is told from its own end."""

import contextlib
import json
import os
import re
import subprocess
import time

import host
import lib
from lib import (between, check, collect, contains, eq, errors, fails, job, lacks, mentions, one_of, passes,
                 rejected, run_job, scratch, sh, signal_of, start_job, test, workspace)

GROUP = "audit"

MESSAGE_IDS = {
    "started": "66484ad85e1d46b0bf7aa5f1bacc1a9b",
    "finished": "b9f1f0d1a6c94dd7a0f4f5f0a4a1c7e2",
    "refused": "7c8b33756fc8437b85f9d41ab4ea9c02",
    "error": "bacb702ad8584c1089e86fed51b53cbf",
    "aborted": "e5b026af0b5c4ae695e12ac3119e344b",
    "applying": "a371e1318b3143cdb9ff68a310cbba17",
    "applied": "c617ebc946b6486d87e9c24d4c2d0362",
    "discarded": "1d2e5dffacac4d34a801c691b842a69a",
    "removed": "1837c73497b149eb8033e0a83be70b6a",
}
DROP_IN = "/run/systemd/system/qscope-.service.d/90-bed-test.conf"


def unique():
    return f"audit-{os.getpid()}-{lib.fresh_name('j')}-{time.time_ns() % 1000000}"


def journal(*matches):
    """The entries with these fields, oldest first."""
    host.quiet("journalctl", "--sync")
    text = host.command_output("journalctl", "-o", "json", "--no-pager", "--all", *matches)
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def trail(job_id):
    """qscope's own records of a job."""
    return [entry for entry in journal(f"QSCOPE_JOB_ID={job_id}") if "MESSAGE_ID" in entry
            and entry["MESSAGE_ID"] in MESSAGE_IDS.values() and entry.get("QSCOPE_RUN_ID")]


def log(*args):
    host.quiet("journalctl", "--sync")
    return lib.qscope("log", *args)


def log_lines(*args):
    run = log("--json", *args)
    return run, [json.loads(line) for line in run.stdout.splitlines()]


# --- the records ------------------------------------------------------------------------


@test("smoke", "vm")
def test_both_records():
    """A run leaves a start and an end; each field is there, and the digest is the receipt's."""
    name = unique()
    run = fails(job(sh("exit 3"), job_id=name))
    start, end = trail(name)
    eq([start["MESSAGE_ID"], end["MESSAGE_ID"]],
       [MESSAGE_IDS["started"], MESSAGE_IDS["finished"]], "message ids")
    for entry in (start, end):
        eq(entry["QSCOPE_RUN_ID"], run["run_id"], "QSCOPE_RUN_ID")
        eq(entry["QSCOPE_POLICY"], "default", "QSCOPE_POLICY")
        eq(entry["QSCOPE_POLICY_SHA256"], run["policy"]["sha256"], "QSCOPE_POLICY_SHA256")
        eq(entry["QSCOPE_UNIT"], run["unit"]["service"], "QSCOPE_UNIT")
        eq(entry["QSCOPE_PROGRAM"], "sh", "QSCOPE_PROGRAM")
        eq([entry["QSCOPE_CALLER_UID"], entry["QSCOPE_CALLER_LOGIN"]], ["0", "root"], "the caller")
        eq(entry["_UID"], "0", "_UID")
    eq([end["QSCOPE_VERDICT"], end["QSCOPE_EXIT_CODE"], end["QSCOPE_REASON"]],
       ["fail", "3", "exit_code"], "how it ended")
    eq(end["QSCOPE_INVOCATION_ID"], run["unit"]["invocation_id"], "QSCOPE_INVOCATION_ID")
    data = lib.read_bytes(run.receipt_path)
    eq([end["QSCOPE_RECEIPT"], end["QSCOPE_RECEIPT_SHA256"], end["QSCOPE_RECEIPT_BYTES"]],
       [run.receipt_path, lib.sha256(data), str(len(data))], "the receipt")


@test()
def test_found_by_each_field():
    """journalctl finds the end of a run by every field that it has."""
    name = unique()
    run = fails(job(sh("kill -SEGV $$"), job_id=name))
    end = trail(name)[-1]
    for field, value in end.items():
        if field.startswith("QSCOPE_"):
            found = [entry["QSCOPE_RUN_ID"] for entry in journal(f"{field}={value}")
                     if entry.get("MESSAGE_ID") == MESSAGE_IDS["finished"]]
            check(run["run_id"] in found, f"not found by {field}={value}")
    eq(end["QSCOPE_SIGNAL"], "SIGSEGV", "QSCOPE_SIGNAL")


@test("smoke")
def test_refusals_and_errors():
    """A refused job and one that the host could not run are in the trail, with their reasons."""
    name = unique()
    rejected(job(["sudo", "true"], job_id=name))
    (entry,) = trail(name)
    eq([entry["MESSAGE_ID"], entry["QSCOPE_VERDICT"], entry["QSCOPE_REASON"]],
       [MESSAGE_IDS["refused"], "rejected", "denied_argv0"], "the refusal")
    check("QSCOPE_UNIT" not in entry, "a refused job has a unit")
    name = unique()
    with lib.drop_in(DROP_IN, "[Service]\nBindPaths=/not/there:/x\n", reload=True):
        errors(job(["true"], job_id=name))
    start, end = trail(name)
    eq([start["MESSAGE_ID"], end["MESSAGE_ID"]], [MESSAGE_IDS["started"], MESSAGE_IDS["error"]],
       "message ids")
    eq(end["QSCOPE_REASON"], "sandbox_failed", "QSCOPE_REASON")


JOURNAL = "/run/systemd/journal/socket"


@test()
def test_without_a_journal():
    """A run that the trail does not have says so in its receipt."""
    os.rename(JOURNAL, JOURNAL + ".away")
    try:
        run = lib.passes(["true"])
    finally:
        os.rename(JOURNAL + ".away", JOURNAL)
    mentions(" ".join(run["blind_spots"]), ["audit: this run is not recorded"])
    lacks(" ".join(lib.passes(["true"])["blind_spots"]), "audit:", "blind spots with a journal")


@test()
def test_aborted():
    """An interrupted run is recorded as such."""
    name = unique()
    started = start_job(job(["sleep", "30"], job_id=name))
    host.wait_until(host.job_units, lib.bound(5))
    started.kill(15)
    eq(started.finish().status, 143, "exit status")
    eq([entry["MESSAGE_ID"] for entry in trail(name)],
       [MESSAGE_IDS["started"], MESSAGE_IDS["aborted"]], "message ids")


@test()
def test_who_called():
    """sudo's word for who it was is recorded beside the kernel's, and cannot be more than one
    line."""
    name = unique()
    caller = {**lib.CALLER, "SUDO_UID": "1000", "SUDO_USER": "ada\nQSCOPE_VERDICT=pass"}
    fails(job(["false"], job_id=name), env=caller)
    end = trail(name)[-1]
    eq(end["QSCOPE_CALLER_SUDO_UID"], "1000", "QSCOPE_CALLER_SUDO_UID")
    eq(end["QSCOPE_CALLER_SUDO_USER"], "ada\\nQSCOPE_VERDICT=pass", "QSCOPE_CALLER_SUDO_USER")
    eq(end["QSCOPE_VERDICT"], "fail", "QSCOPE_VERDICT")
    name = unique()
    passes(job(["true"], job_id=name), env={**lib.CALLER, "SUDO_UID": "-1", "SUDO_USER": "x"})
    check("QSCOPE_CALLER_SUDO_UID" not in trail(name)[-1], "SUDO_UID=-1 was taken for a uid")


@test()
def test_nothing_forged_and_nothing_leaked():
    """A job's own words are no fields and no lines of the trail; its environment, arguments and
    output are not in it at all."""
    name = unique()
    evil = "x\nQSCOPE_VERDICT=pass\nMESSAGE=Job x: pass\x1b[2J"
    run_job(job([evil, "--token=arg-secret"], job_id=name, env={"KEY": "env-secret"}))
    fails(job(sh(f"echo '{evil}' out-secret; logger QSCOPE_VERDICT=pass; exit 1"), job_id=name))
    for entry in trail(name):
        text = json.dumps(entry)
        for secret in ("arg-secret", "env-secret", "out-secret", "s3cr3t"):
            lacks(text, secret, "the record")
        check(isinstance(entry["QSCOPE_PROGRAM"], str), "QSCOPE_PROGRAM is not a text")
        lacks(entry["QSCOPE_PROGRAM"], "\n", "QSCOPE_PROGRAM")
        check(entry.get("QSCOPE_VERDICT") != "pass", "the verdict was forged")
    run = log(name)
    eq(len(run.stdout.splitlines()), 4, "lines of qscope log")
    lacks(run.stdout, "\x1b", "qscope log")


@test()
def test_records_of_others_do_not_count():
    """Anybody may send the same fields to the journal. What a user sent is not in root's trail, and
    cannot make a receipt look changed."""
    name = unique()
    sender = ("import socket\ns = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)\n"
              f"s.sendto(b'MESSAGE_ID={MESSAGE_IDS['finished']}\\nMESSAGE=x\\nQSCOPE_JOB_ID={name}\\n"
              "QSCOPE_VERDICT=pass\\nQSCOPE_RECEIPT=/etc/shadow\\nQSCOPE_RECEIPT_SHA256=00\\n"
              "QSCOPE_RECEIPT_BYTES=1\\n', '/run/systemd/journal/socket')")
    subprocess.run(["setpriv", "--reuid=1000", "--regid=1000", "--clear-groups", "python3", "-c",
                    sender], check=True)
    check(journal(f"QSCOPE_JOB_ID={name}"), "the forged entry did not arrive: nothing was tested")
    eq(log(name).status, 1, "exit status of qscope log for a job that nobody ran")


@test("smoke")
def test_systemds_own_lines():
    """The unit carries the job's fields: journalctl shows what systemd says about it as well."""
    name = unique()
    with lib.drop_in(DROP_IN, "[Service]\nBindPaths=/not/there:/x\n", reload=True):
        run = errors(job(["true"], job_id=name))
    entries = journal(f"QSCOPE_JOB_ID={name}")
    theirs = [entry for entry in entries if entry.get("SYSLOG_IDENTIFIER") != "qscope"]
    check(theirs, "no line of systemd's own has QSCOPE_JOB_ID")
    eq({entry["QSCOPE_RUN_ID"] for entry in entries}, {run["run_id"]}, "QSCOPE_RUN_ID")
    contains(json.dumps(theirs), "NAMESPACE", "what systemd said")


@test()
def test_catalog():
    """journalctl explains each kind of record."""
    eq(host.quiet("journalctl", "--update-catalog"), 0, "journalctl --update-catalog")
    name = unique()
    passes(job(["true"], job_id=name))
    host.quiet("journalctl", "--sync")
    text = host.command_output("journalctl", "--catalog", "--no-pager", f"QSCOPE_JOB_ID={name}",
                               "SYSLOG_IDENTIFIER=qscope")
    for words in (f"Job {name} is about to be started", f"Job {name} ran: pass", "qscope log --verify"):
        contains(text, words, "journalctl --catalog")
    for kind, number in MESSAGE_IDS.items():
        text = host.command_output("journalctl", "--list-catalog", number)
        contains(text, "qscope:", f"the catalog's entry for {kind}")


# --- applies ----------------------------------------------------------------------------


def counts(entry):
    return [entry.get(f"QSCOPE_CHANGES{part}") for part in ("", "_HELD", "_FORCED")]


@test("smoke")
def test_apply():
    """An apply leaves a record before it changes anything and one after it, with whose changes came where, and how
    many by insistence; neither is taken for a run."""
    name, top = unique(), workspace({"a": "a\n", "b": "b\n"})
    run = fails(job(sh("echo x > a; echo x > b; echo x > c; echo x > .envrc"), job_id=name, cwd=top,
                    allow_changes=["a", "c", ".envrc"]))
    digest = lib.sha256(lib.read_bytes(run.receipt_path))
    eq(lib.qscope("apply", "--dry-run", "--force", run.receipt_path).status, 0, "exit status of --dry-run")
    eq(len(trail(name)), 2, "records after a look at it")
    done = lib.qscope("apply", "--yes", "--force", "--json", run.receipt_path)
    eq([done.status, done.line["recorded"]], [1, True], "the first apply")
    for option in ("b", ".envrc"):
        eq(lib.qscope("apply", "--yes", "--force", "--select", option, run.receipt_path).status, 0, "exit status")
    entries = trail(name)[2:]
    eq([entry["MESSAGE_ID"] for entry in entries], [MESSAGE_IDS["applying"], MESSAGE_IDS["applied"]] * 3, "ids")
    for entry in entries:
        eq([entry[f"QSCOPE_{key}"] for key in ("RUN_ID", "RUN_VERDICT", "WORKSPACE", "RECEIPT", "RECEIPT_SHA256",
                                               "CALLER_UID")],
           [run["run_id"], "fail", os.path.realpath(top), run.receipt_path, digest, "0"], "the record")
    eq([entry["QSCOPE_RESULT"] for entry in entries[1::2]], ["applied"] * 3, "QSCOPE_RESULT")
    eq([counts(entry) for entry in entries], [["2", "2", "2"]] * 2 + [["1", "0", "1"]] * 4, "numbers")
    shown = log(name).stdout.splitlines()
    eq(len(shown), 8, "lines of qscope log")
    contains(shown[3], f"applied   {name}  {top}  2 changes, 2 held back, 2 forced  by root", "qscope log")
    _, lines = log_lines("--verdict", "fail", name)
    eq([line["event"] for line in lines], ["finished"], "by verdict")
    _, lines = log_lines("--verify", name)
    eq([line["receipt_state"] for line in lines], ["intact"], "verified")


@test()
def test_apply_that_breaks_off():
    """One that was killed has a beginning and no end; the next one says whether it went on or took it back. Without
    a journal it is done all the same, and says so."""
    name, top = unique(), workspace({"a": "a\n"})
    script = sh("echo x > a; echo x > b; mkdir c; echo x > c/d")
    for option, result in (("--rollback", "rolled_back"), ("--yes", "applied")):
        run = passes(job(script, job_id=name, cwd=top))
        broken = lib.Started(["/usr/libexec/qscope/qscope-broken", "apply", "--yes", run.receipt_path], None,
                             env={**lib.CALLER, "QSCOPE_BREAK_APPLY": "kill-after:6"}).finish()
        eq(broken.status, -9, "exit status of the one that was killed")
        eq(lib.qscope("apply", option, run.receipt_path).status, 0, f"exit status with {option}")
        mine = [entry for entry in trail(name) if entry["QSCOPE_RUN_ID"] == run["run_id"]][2:]
        eq([entry.get("QSCOPE_RESULT") for entry in mine], [None, None, result], "results")
        eq(counts(mine[-1])[0], "4" if result == "applied" else "0", "QSCOPE_CHANGES")
    run = passes(job(sh("echo y > a"), job_id=name, cwd=top))
    os.rename(JOURNAL, JOURNAL + ".away")
    try:
        done = lib.qscope("apply", "--yes", "--json", run.receipt_path)
    finally:
        os.rename(JOURNAL + ".away", JOURNAL)
    eq([done.status, done.line["recorded"], lib.read_bytes(f"{top}/a")], [0, False, b"y\n"], "without a journal")
    contains(done.stderr, "not recorded in the journal", "the sentence")
    run = passes(job(sh("echo z > a"), job_id=name, cwd=top))
    eq(lib.qscope("clean", "--discard", run["run_id"]).status, 0, "exit status of --discard")
    last = trail(name)[-1]
    eq([last["MESSAGE_ID"], last["QSCOPE_RUN_ID"]], [MESSAGE_IDS["discarded"], run["run_id"]], "the last record")


# --- qscope log -------------------------------------------------------------------------


@test("smoke")
def test_log():
    """Lists by job, verdict and time; as text and as JSON."""
    name, other = unique(), unique()
    begin = time.time()
    passes(job(["true"], job_id=name))
    fails(job(["false"], job_id=name))
    fails(job(["false"], job_id=other))
    run = log(name)
    eq(run.status, 0, "exit status")
    eq([line.split()[2] for line in run.stdout.splitlines()],
       ["started", "pass", "started", "fail"], "the lines")
    _, lines = log_lines("--verdict", "fail", f"--since=@{int(begin)}")
    eq([line["job_id"] for line in lines if line["job_id"] in (name, other)], [name, other], "jobs")
    eq({line["verdict"] for line in lines}, {"fail"}, "verdicts")
    eq(lines[-1]["reasons"], ["exit_code"], "reasons")
    _, lines = log_lines(name, f"--until=@{int(begin) - 1}")
    eq(lines, [], "before it began")
    _, lines = log_lines(f"--since=@{int(time.time()) + 60}")
    eq(lines, [], "of the future")
    eq(log("no-such-job-here").status, 1, "exit status for a job that is not there")
    for bad in (["--verdict", "good"], ["--since", "tomorrow"], ["--no-such"], ["a", "b"],
                ["--since"], ["--follow", "--verify"]):
        eq(log(*bad).status, 2, f"exit status of {bad}")


@test()
def test_log_follows():
    """qscope log -f prints what comes while it waits."""
    name = unique()
    path = lib.scratch("follow")
    with open(path, "wb") as out, subprocess.Popen([lib.QSCOPE, "log", "-f", "--json", name],
                                                   stdout=out, env=lib.CALLER) as follower:
        try:
            time.sleep(lib.bound(0.5))
            eq(host.read(path), "", "what it says of the past")
            passes(job(["true"], job_id=name))
            seen = host.wait_until(lambda: host.read(path).count("\n") == 2, lib.bound(10))
            check(seen, f"it did not follow: {host.read(path)!r}")
            eq([json.loads(line)["event"] for line in host.read(path).splitlines()],
               ["started", "finished"], "events")
        finally:
            follower.terminate()


def tamper_append(path):
    with open(path, "ab") as file:
        file.write(b" ")


def tamper_swap(path):
    data = lib.read_bytes(path)
    lib.write(path, data.replace(b'"verdict": "fail"', b'"verdict": "pass"'))


def tamper_link(path):
    os.rename(path, path + ".real")
    os.symlink(path + ".real", path)


def tampered(tamper, want):
    name = unique()
    run = fails(job(["false"], job_id=name))
    eq(log("--verify", name).status, 0, "exit status before")
    tamper(run.receipt_path)
    verified, lines = log_lines("--verify", name)
    eq(verified.status, 1, "exit status")
    eq([line["receipt_state"] for line in lines], [want], "the state")
    text = log("--verify", name).stdout
    contains(text, run.receipt_path, "the sentence")
    contains(text, want, "the sentence")


@test("smoke")
def test_verify():
    """A receipt that was changed, cut, replaced or removed is found, and named."""
    collect([(tamper_append, "changed"), (tamper_swap, "changed"), (tamper_link, "changed"),
             (lambda path: os.truncate(path, 100), "changed"), (os.unlink, "missing"),
             (lambda path: os.truncate(path, 0), "changed")], tampered)


@test()
def test_verify_what_is_in_order():
    """A receipt that a later run moved aside, and one that went to standard output, are no
    faults."""
    name = unique()
    path = lib.scratch("receipt.json")
    for argv in (["true"], ["false"], ["true"]):
        run_job(job(argv, job_id=name), receipt=path)
    lib.qscope("run", "--receipt", "-", lib.write_job(job(["true"], job_id=name)))
    run, lines = log_lines("--verify", name)
    eq(run.status, 0, "exit status")
    eq([line["receipt_state"] for line in lines], ["moved", "moved", "intact", "no file"], "states")
    os.unlink(f"{path}.~1~")
    run, lines = log_lines("--verify", name)
    eq([line["receipt_state"] for line in lines], ["changed", "moved", "intact", "no file"],
       "states without the first")
    eq(run.status, 1, "exit status without the first")


@test()
def test_relative_receipt():
    """A receipt's path is recorded as it is found from anywhere."""
    name = unique()
    lib.qscope("run", lib.write_job(job(["true"], job_id=name)), "here.json")
    eq(trail(name)[-1]["QSCOPE_RECEIPT"], os.path.realpath(lib.scratch("here.json")), "the path")


# --- what others do ---------------------------------------------------------------------


def while_it_runs(action, argv=("sleep", "30"), **fields):
    started = start_job(job(list(argv), **fields))
    found = host.wait_until(
        lambda: any(uid in host.JOB_UIDS and name == argv[0] for _, name, uid, _ in
                    host.processes()), lib.bound(10))
    check(found, "the job did not start")
    action()
    return started.finish(20)


def job_pid(name):
    return next(pid for pid, comm, uid, _ in host.processes()
                if uid in host.JOB_UIDS and comm == name)


def service():
    return next(name for name in host.job_units() if name.endswith(".service"))


def oomd_kill():
    """What systemd-oomd does: it marks the group, then kills all of it."""
    text = host.read(f"/proc/{job_pid('sleep')}/cgroup")
    path = next(line[3:] for line in text.splitlines() if line.startswith("0::"))
    os.setxattr(f"{host.CGROUP_ROOT}{path}", "user.oomd_ooms", b"1")
    with open(f"{host.CGROUP_ROOT}{path}/cgroup.kill", "w", encoding="ascii") as file:
        file.write("1")


@test()
def test_verify_what_clean_removed():
    """What qscope itself removed is in the trail, and not missed."""
    name, state = unique(), scratch("state")
    run = lib.qscope("run", "--state-dir", state, lib.write_job(job(["true"], job_id=name)))
    path = run.line["receipt"]
    digest = lib.sha256(lib.read_bytes(path))
    os.utime(path, (0, 0))
    clean = lib.qscope("clean", "--yes", "--state-dir", state, "--receipt-age", "1h")
    contains(clean.stdout, "1 receipt removed", "what clean says")
    eq(os.path.exists(path), False, "the receipt is there")
    verify = lib.qscope("log", "--verify", name)
    contains(verify.stdout, "1 removed for age or size", "what log says")
    eq(verify.status, 0, "exit status")
    (record,) = journal(f"QSCOPE_RECEIPT={path}", "QSCOPE_RESULT=removed")
    eq([record["MESSAGE_ID"], record["QSCOPE_RECEIPT_SHA256"]], [MESSAGE_IDS["removed"], digest], "the record")


OUTSIDE = [
    (lambda: os.kill(job_pid("sleep"), 9), "killed_outside", 9),
    (lambda: os.kill(job_pid("sleep"), 15), "killed_outside", 15),
    (lambda: host.quiet("systemctl", "stop", service()), "stopped_outside", 9),
    (lambda: host.quiet("systemctl", "stop", "qscope.slice"), "stopped_outside", 9),
    (lambda: host.quiet("systemctl", "kill", "--signal=KILL", service()), "killed_outside", 9),
    (oomd_kill, "oomd_killed", 9),
]


def disturbed(action, code, number):
    run = lib.verdict(while_it_runs(action), 4, "error")
    # With the slice its counters go, which may be lost evidence besides.
    codes = [reason["code"] for reason in run["reasons"] if reason["code"] != "evidence_lost"]
    eq(codes, [code], "reasons")
    eq([signal_of(run), run["exit_code"], run["timed_out"], run.hits], [number, None, False, {}],
       "outcome")


@test("vm", timeout=60)
def test_interference():
    """Kills from outside, a stop by an admin and systemd-oomd: an error with a reason of its own,
    and no limit of the job."""
    collect(OUTSIDE, disturbed)


# SIGKILL by timer_create(2), which comes in an interrupt, and from who reads a full pipe (F_SETSIG is 10, fcntl(2)).
TIMER = """
import ctypes, struct, time
libc, timer = ctypes.CDLL(None), ctypes.c_void_p()
assert libc.timer_create(1, struct.pack("<QII48x", 0, 9, 0), ctypes.byref(timer)) == 0
assert libc.timer_settime(timer, 0, struct.pack("<qqqq", 0, 0, 0, 100000000), None) == 0
time.sleep(9)
"""
SIGNAL_FD = """
import ctypes, fcntl, os, time
%s
fcntl.fcntl(1, fcntl.F_SETOWN, os.getpid())
fcntl.fcntl(1, fcntl.F_SETFL, fcntl.fcntl(1, fcntl.F_GETFL) | os.O_ASYNC)
while True:
    os.write(1, bytes(1048576))
"""
SIGNAL_FDS = ("fcntl.fcntl(1, 10, 9)",
              # The kernel takes 32 bits of it. fcntl is 72, 25 on AArch64.
              'ctypes.CDLL(None).syscall(72 if os.uname().machine == "x86_64" else 25, 1,'
              " ctypes.c_long(1 << 32 | 10), 9)")
# PTRACE_ATTACH is 16, PTRACE_CONT 7: the tracer has a signal delivered that nobody sent.
TRACER = """
import ctypes, os, time
libc, victim = ctypes.CDLL(None), os.getpid()
libc.prctl(0x59616d61, ctypes.c_long(-1), 0, 0, 0)
if os.fork():
    while True: time.sleep(9)
libc.ptrace(16, victim, None, None)
os.waitpid(victim, 0)
libc.ptrace(7, victim, None, ctypes.c_long(9))
"""

OWN = [
    ("kill -9 $$", "signal"), ("kill -TERM $$", "signal"), ("(sleep 0.1; kill -9 $$) & wait", "signal"),
    ("python3 -c \"import os; os.kill(os.getppid(), 9)\"; sleep 9", "signal"),
    (f"exec python3 -c '{TIMER}'", "signal"),
    *((f"exec python3 -c '{SIGNAL_FD % how}'", "signal") for how in SIGNAL_FDS),
]


def by_itself(script, code):
    run = fails(job(sh(script), timeout_sec=20))
    # Whoever sent it may live a moment longer.
    codes = [reason["code"] for reason in run["reasons"] if reason["code"] != "leftover_process"]
    eq(codes, [code], "reasons")


@test("vm")
def test_own_signals():
    """What a job sends to itself, by whichever of its processes, is its own end: a failure."""
    collect(OWN, by_itself)


@test("vm")
def test_own_tracer():
    """What a tracer of the job has delivered to it is its own end, too, where the policy lets it trace."""
    with lib.policy_drop_in(properties={"SystemCallFilter": [["@system-service", "ptrace"]]}):
        by_itself(f"exec python3 -c '{TRACER}'", "signal")


EAT = ("import time\nx = []\nfor _ in range(300): x.append(bytearray(b'x' * (1 << 20)))\n"
       "time.sleep(20)")


@test("vm", needs=["controllers"], timeout=60)
def test_the_cap_of_all_jobs():
    """A job within its own limit that is killed for the cap of qscope.slice: not its own limit."""
    with lib.drop_in("/run/systemd/system/qscope.slice.d/90-bed-test.conf",
                     "[Slice]\nMemoryMax=100M\nMemorySwapMax=0\n", reload=True):
        run = run_job(job(lib.py(EAT), limits={"memory": "500M"}, timeout_sec=40))
    lib.verdict(run, 4, "error")
    eq([reason["code"] for reason in run["reasons"]], ["host_oom"], "reasons")
    contains(run["reasons"][0]["message"], "qscope.slice", "the sentence")
    eq(run.hits, {}, "limits.hits")


@contextlib.contextmanager
def little_memory(left):
    """The host's memory is taken by files, which nobody can kill, but for so many MiB."""
    place = lib.scratch("memory")
    os.mkdir(place)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=100%", "none", place], check=True)
    try:
        available = int(re.search(r"MemAvailable: +(\d+) kB", host.read("/proc/meminfo")).group(1)) << 10
        with open(f"{place}/ballast", "wb") as file:
            os.posix_fallocate(file.fileno(), 0, available - (left << 20))
        yield
    finally:
        subprocess.run(["umount", place], check=True)


# An emulated processor stands still for longer than the kernel's own watchdog allows.
@test("vm", needs=["controllers", "speed"], timeout=60)
def test_the_host_is_out_of_memory():
    """The kernel kills a job that is within its own limit, since the whole host has no memory left."""
    eat = "import mmap\nmmap.mmap(-1, 800 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x8000)  # populated"
    with little_memory(200):
        run = run_job(job(lib.py(eat), limits={"memory": "2G"}, timeout_sec=60))
    lib.verdict(run, 4, "error")
    eq([reason["code"] for reason in run["reasons"]], ["host_oom"], "reasons")
    contains(run["reasons"][0]["message"], "the host was out of memory", "the sentence")
    eq([run.hits, run["exit_code"], signal_of(run)], [{}, None, 9], "outcome")


@test("vm", needs=["controllers", "oomd"], timeout=90)
def test_systemd_oomd():
    """The real one kills a job that has the kernel search for memory all the time, and is named."""
    top = lib.workspace({"big": b"x" * (160 << 20)})
    with lib.drop_in("/run/systemd/oomd.conf.d/90-bed-test.conf",
                     "[OOM]\nDefaultMemoryPressureDurationSec=1s\n"), \
         lib.drop_in("/run/systemd/system/qscope.slice.d/90-bed-test.conf",
                     "[Slice]\nManagedOOMMemoryPressure=kill\nManagedOOMMemoryPressureLimit=1%\n", reload=True):
        eq(host.quiet("systemctl", "restart", "systemd-oomd.service"), 0, "systemd-oomd")
        try:
            run = run_job(job(sh("while :; do cat big > /dev/null; done"), cwd=top,
                              limits={"memory": "48M"}, timeout_sec=60), timeout=90)
        finally:
            host.quiet("systemctl", "stop", "systemd-oomd.service", "systemd-oomd.socket")
    lib.verdict(run, 4, "error")
    eq([reason["code"] for reason in run["reasons"]], ["oomd_killed"], "reasons")
    eq([run.hits, run["exit_code"], run["timed_out"]], [{}, None, False], "outcome")


# --- isolation is observed --------------------------------------------------------------


@test("smoke", "vm")
def test_facts():
    """Each kind of fact is in the receipt, and holds."""
    run = passes(job(["true"], limits={"file_size": "1M", "open_files": 99, "cpu_time_sec": 5}))
    facts = run["isolation"]
    wanted = ("namespace.mnt namespace.user namespace.ipc namespace.uts namespace.net root uid gid groups"
              " no_new_privs seccomp seccomp.filters capabilities.bounding mounts.writable devices"
              " rlimit.nofile rlimit.fsize rlimit.cpu rlimit.core limit.disk limit.inodes")
    for name in wanted.split():
        check(name in facts, f"isolation lacks {name}")
    bad = [name for name, fact in facts.items() if not fact["holds"]]
    eq(bad, [], "facts that do not hold")
    eq([facts["rlimit.nofile"]["observed"], facts["rlimit.fsize"]["observed"]], ["99", "1048576"],
       "limits as observed")


# Each takes one thing away, or adds one, behind qscope's back.
WEAKENED = [
    ("SupplementaryGroups=0", "groups"),
    ("PrivateDevices=no\nDevicePolicy=auto", "devices"),
    ("BindPaths=/srv", "mounts.writable"),
    ("LimitNOFILE=65536", "rlimit.nofile"),
]


def weakened(settings, fact):
    marker = f"/srv/bed-weakened-{os.getpid()}"
    script = f"touch {marker} /opt/bed-weakened; echo ran"
    with lib.drop_in(DROP_IN, f"[Service]\n{settings}\n", reload=True):
        run = run_job(sh(script))
    check(not os.path.exists(marker), "the job wrote to the host")
    lib.verdict(run, 4, "error")
    eq(run["stdout"], "", "stdout: the command was let go")
    check(any(fact in reason["message"] for reason in run["reasons"]) or
          run["reasons"][0]["code"] in ("sandbox_failed", "start_failed", "observers_failed"),
          f"the reasons do not name {fact}: {run['reasons']}")


@test("smoke", timeout=90)
def test_weakened():
    """A part of the sandbox taken away by the host: it is seen, named, and nothing is run."""
    collect(WEAKENED, weakened)


@test("vm", timeout=60)
def test_lost_list_of_calls():
    """A setting of the host takes the list of system calls away, and the filters that other settings
    bring stay: seen by asking them, and nothing is run."""
    with lib.drop_in(DROP_IN, "[Service]\nSystemCallFilter=\n", reload=True):
        run = run_job(sh("echo ran"))
    if "PTRACE_SECCOMP_GET_FILTER" in json.dumps(run["blind_spots"]):
        raise lib.Lacks("a kernel that shows filters to a process which is under none itself")
    lib.verdict(run, 4, "error")
    eq(run["stdout"], "", "stdout: the command was let go")
    contains(run["reasons"][0]["message"], "seccomp.list", "the reason")


def set_sysctl(path, value):
    with open(path, "w", encoding="ascii") as file:
        file.write(value)


@test("vm", timeout=60)
def test_impossible_namespaces():
    """No network, user or mount namespace can be made on this host: refused, nothing was run."""
    for kind in ("net", "ipc", "uts"):
        path = f"/proc/sys/user/max_{kind}_namespaces"
        if not os.access(path, os.W_OK):
            raise lib.Lacks("sysctls of its own")
        before = host.read(path)
        set_sysctl(path, "0")
        try:
            run = errors(sh("echo ran"))
        finally:
            set_sysctl(path, before)
        eq([run["stdout"], run["exit_code"]], ["", None], f"outcome without {kind} namespaces")
    passes(["true"])


def exposure(**fields):
    """systemd's own measure of a job's unit, which is running."""
    texts = []

    def measure():
        texts.append(host.command_output("systemd-analyze", "security", "--no-pager", service()))
        os.kill(job_pid("sleep"), 9)

    while_it_runs(measure, **fields)
    return float(re.search(r"exposure level for \S+: ([0-9.]+)", texts[0]).group(1))


@test("smoke")
def test_exposure():
    """The default sandbox leaves an exposure of at most 0.9."""
    between(exposure(), 0, 0.9, "exposure")


@test("vm", needs=["controllers"])
def test_exposure_of_strict():
    """The policy strict, which requires its limits to be observed, leaves at most 0.5."""
    between(exposure(policy="strict", timeout_sec=60), 0, 0.5, "exposure")


@test()
def test_property_from_a_later_systemd():
    """A policy asks for a property that this systemd does not have: refused, with the property and
    the version it came with."""
    text = host.command_output("systemctl", "--version")
    version = int(re.search(r"systemd (\d+)", text).group(1))
    if version >= 254:
        raise lib.Lacks("a systemd older than one of the table's properties")
    with lib.policy_drop_in(properties={"MemoryKSM": True}), lib.nothing_started():
        run = errors(["true"])
    (reason,) = run["reasons"]
    for word in ("MemoryKSM", "254", str(version)):
        contains(reason["message"], word, "the sentence")


# --- units ------------------------------------------------------------------------------


@test("smoke")
def test_units():
    """The unit files are installed where systemd looks, and it understands them."""
    text = host.command_output("systemd-analyze", "verify", "--man=no", "qscope.slice")
    lacks(text, "qscope", "systemd-analyze verify")
    contains(host.command_output("systemctl", "cat", "qscope.slice"), "MemoryMax=", "qscope.slice")
    eq(host.quiet("systemd-tmpfiles", "--create", "qscope.conf"), 0, "systemd-tmpfiles")
    mode = os.stat("/var/lib/qscope/receipts").st_mode & 0o7777
    eq(oct(mode), oct(0o700), "mode of /var/lib/qscope/receipts")


@test(timeout=40)
def test_without_the_slice():
    """qscope.slice is not installed: systemd makes one, and jobs run as ever."""
    text = host.command_output("systemctl", "show", "--property=FragmentPath", "--value",
                               "qscope.slice").strip()
    check(os.path.isfile(text), f"qscope.slice is not installed: {text!r}")
    os.rename(text, text + ".away")
    try:
        host.quiet("systemctl", "stop", "qscope.slice")
        host.quiet("systemctl", "daemon-reload")
        passes(["true"])
    finally:
        os.rename(text + ".away", text)
        host.quiet("systemctl", "stop", "qscope.slice")
        host.quiet("systemctl", "daemon-reload")
    one_of(passes(["true"])["verdict"], ["pass"], "verdict")
