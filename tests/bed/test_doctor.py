# SPDX-License-Identifier: Apache-2.0
"""qscope doctor: what a host can do, and the known-bad suite. The suite is tested by breaking what it
watches: an observer that is blind must make it fail."""

import json
import os
import signal
import subprocess
import time

import host
import lib
from lib import check, collect, contains, eq, one_of, qscope, test

GROUP = "doctor"

# Built for the beds only: qscope whose observer named in QSCOPE_BREAK sees nothing.
BROKEN = "/usr/libexec/qscope/qscope-broken"


def doctor(*args, program=None, **kw):
    """(exit status, document); program: another qscope."""
    if program:
        done = subprocess.run([program, "doctor", "--json", *args], stdin=subprocess.DEVNULL, capture_output=True,
                              check=False, env={**lib.CALLER, **kw.pop("env", {})}, timeout=lib.bound(120))
        status, out = done.returncode, done.stdout.decode()
    else:
        run = qscope("doctor", "--json", *args, timeout=150, **kw)
        status, out = run.status, run.stdout
    return status, json.loads(out) if out else None


def results(document):
    return {row["name"]: row for row in document["results"]}


@test("smoke")
def test_facts():
    """Each thing is tried and told with a remedy where it is missing; a job really runs."""
    status, document = doctor()
    one_of(status, (0, 1), "exit status")
    facts = {fact["name"]: fact for fact in document["facts"]}
    for name in ("root", "systemd", "cgroups", "parts", "policy", "overlay", "job"):
        eq(facts[name]["state"], "ok", f"{name}: {facts[name]['text']}")
    for fact in document["facts"]:
        one_of(fact["state"], ("ok", "weak", "missing"), fact["name"])
        eq(fact["remedy"] is None, fact["state"] == "ok", f"{fact['name']} has a remedy")
    eq(facts["controllers"]["state"], "ok" if host.has_controllers() else "missing", "controllers")
    eq(document["ok"], status == 0, "ok")


@test()
def test_not_root():
    """Without root nothing can be run: 4, and the first line says why."""
    run = lib.start_qscope(["doctor"], prefix=["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]).finish()
    eq(run.status, 4, "exit status")
    contains(run.stdout, "sudo", "standard output")
    run = lib.start_qscope(["doctor", "--selftest"],
                           prefix=["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]).finish()
    eq(run.status, 4, "exit status of the selftest")


@test()
def test_usage():
    """Bad usage is 2, and the list runs nothing."""
    for args in (("--no-such",), ("x",), ("-j", "0"), ("-j", "99", "--selftest"), ("-k", "x"), ("-k",)):
        eq(qscope("doctor", *args).status, 2, f"exit status of doctor {args}")
    with lib.nothing_started():
        run = qscope("doctor", "--list")
    eq(run.status, 0, "exit status of --list")
    lines = run.stdout.splitlines()
    check(lines[0].startswith("good  true "), f"the control does not come first: {lines[0]}")
    check(sum(line.startswith("bad") for line in lines) >= 25, "fewer than 25 bad jobs")
    check(sum(line.startswith("good") for line in lines) >= 10, "fewer than 10 good jobs")


@test(timeout=150)
def test_selftest():
    """The whole suite on this bed: nothing is missed, no good job shows anything."""
    status, document = doctor("--selftest")
    bad = [f"{row['name']} {row['result']}: {row['why']}" for row in document["results"]
           if row["result"] not in ("seen", "clean", "blind", "skipped")]
    eq(bad, [], "rows that are not as they must be")
    eq(status, 0, "exit status")
    eq(document["ok"], True, "ok")
    eq(document["results"][0]["name"], "true", "the first row")
    eq(document["results"][0]["result"], "clean", "the control")
    blind = sorted(row["name"] for row in document["results"] if row["result"] == "blind")
    # What this bed lacks and nothing else: a new blind spot is to be noticed here.
    eq(blind, [] if host.has_controllers() else ["fork-bomb", "memory-bomb"], "blind rows")


@test()
def test_table():
    """For people: a line a job, what cannot be shown, and a last line with the counts."""
    run = qscope("doctor", "--selftest", "-k", "st*")
    eq(run.status, 0, "exit status")
    lines = run.stdout.splitlines()
    check(lines[0].startswith("clean    true "), f"the control does not come first: {lines[0]}")
    contains(run.stdout, "\nseen     stubborn ", "the table")
    contains(lines[-1], "2 seen, 1 clean, 0 blind, 0 missed, 0 noisy, 0 failed, 0 skipped, in ", "the last line")


@test("vm", needs=("controllers",), timeout=60)
def test_bombs():
    """Where the controllers are, the bombs are seen by the kernel's counters, and are not blind."""
    status, document = doctor("--selftest", "-k", "*-bomb")
    eq(status, 0, f"exit status: {document}")
    for name in ("fork-bomb", "memory-bomb"):
        eq(results(document)[name]["result"], "seen", f"{name}: {results(document)[name]['why']}")


# Evidence that is lost, and a job of the suite that must notice.
BREAKS = [
    ("leftovers", "background"),
    ("fs", "forged"),
    ("limits", "disk-filler"),
    ("processes", "millisecond"),
    ("sockets", "abstract"),
    ("egress", "tcp-public"),
    ("fds", "deleted-file"),
    ("ipc", "sysv-shm"),
]


@test(timeout=90)
def test_blind_observer():
    """An observer that sees nothing and says nothing makes the selftest fail, whichever it is."""
    check(os.access(BROKEN, os.X_OK), f"{BROKEN} is missing: build with -Dbroken=true")

    def broken(what, name):
        status, document = doctor("--selftest", "-k", name, program=BROKEN, env={"QSCOPE_BREAK": what})
        eq(status, 1, f"exit status for {name}")
        eq(results(document)[name]["result"], "missed", f"{name}: {results(document)[name]['why']}")

    collect(BREAKS, broken)
    status, document = doctor("--selftest", "-k", "background", program=BROKEN)
    eq(status, 0, f"with nothing broken: {document}")


@test(timeout=60)
def test_declared_blindness():
    """An observer that is switched off and says so is a fault where the host could have seen."""

    def declared(what, name):
        status, document = doctor("--selftest", "-k", name, program=BROKEN, env={"QSCOPE_BREAK": f"declared:{what}"})
        row = results(document)[name]
        eq((status, row["result"]), (1, "missed"), f"{name}: {row['why']}")
        contains(row["why"], "broken on purpose", "why")

    collect([("egress", "tcp-public"), ("sockets", "abstract"), ("processes", "memfd")], declared)


@test(timeout=60)
def test_blind_host():
    """A host without a way to see is told apart: blind, not missed, and a fault only with --strict."""
    # As a container that refuses these calls.
    less = ["systemd-run", "--quiet", "--wait", "--pipe", "-p", "SystemCallErrorNumber=EPERM",
            "-p", "SystemCallFilter=~perf_event_open fanotify_init", "-E", f"PATH={lib.PATH}"]
    for strict, wanted in (((), 0), (("--strict",), 1)):
        run = lib.start_qscope(["doctor", "--json", "--selftest", "-k", "millisecond", *strict], prefix=less).finish()
        row = results(json.loads(run.stdout))["millisecond"]
        eq(row["result"], "blind", f"millisecond: {row['why']}")
        eq(run.status, wanted, f"exit status {strict}")


@test()
def test_cannot_run():
    """Where not even true runs there is no table, but a sentence and 4."""
    with lib.policy_drop_in(deny_argv0=["true"]):
        run = qscope("doctor", "--selftest", "-k", "echo")
    # A refusal of the policy is a result: the control is noisy then.
    eq(run.status, 1, "exit status where the policy refuses")
    hide = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /run/dbus && mount -t tmpfs none /run/systemd && exec "$@"', "sh"]
    run = lib.start_qscope(["doctor", "--selftest"], prefix=hide).finish()
    eq(run.status, 4, "exit status without a bus")
    contains(run.stderr, "not even `true` can be run", "standard error")


@test()
def test_interrupted():
    """An interrupted selftest leaves nothing, and the runner looks."""
    run = lib.start_qscope(["doctor", "--selftest", "-k", "*bomb*"])
    time.sleep(0.3)
    run.kill(signal.SIGTERM)
    one_of(run.finish().status, (143, 0), "exit status")
