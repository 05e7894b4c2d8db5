# SPDX-License-Identifier: Apache-2.0
"""qscope explain: what a receipt means, from receipts of real runs and from files that nobody should
have written."""

import json
import os
import subprocess

import lib
from lib import check, collect, contains, eq, fails, job, lacks, passes, qscope, scratch, sh, test, write

GROUP = "explain"


def explain(*args, **kw):
    return qscope("explain", *args, **kw)


def explained(run):
    """The text and the document of a run's receipt; both say the same."""
    text, document = explain(run.receipt_path), explain("--json", run.receipt_path)
    eq((text.status, document.status), (0, 0), "exit status of explain")
    return text.stdout, json.loads(document.stdout)


@test("smoke")
def test_several_reasons():
    """Each reason has its own lines: what it means, what to check, what to do next."""
    run = fails(job(sh("echo x >config.json; sleep 60 >/dev/null 2>&1 & exit 3"), allow_changes=["build"]))
    text, document = explained(run)
    codes = [reason["code"] for reason in run["reasons"]]
    eq([reason["code"] for reason in document["reasons"]], codes, "codes")
    for code in ("exit_code", "leftover_process", "unexpected_change"):
        check(code in codes, f"{code} is not among the reasons {codes}")
        contains(text, f"  {code}: ", "explain")
    for reason in document["reasons"]:
        check(reason["known"] and reason["meaning"] and reason["next"], f"not explained: {reason}")
    contains(text, "config.json", "explain")
    contains(text, "sleep", "explain")


@test()
def test_pass():
    """A pass is told with what is still to be looked at."""
    text, document = explained(passes(job(["true"], allow_changes=[])))
    contains(text, "PASS", "explain")
    eq(document["reasons"], [], "reasons")
    names = [sign["name"] for sign in document["signs"]]
    check("said_nothing" in names, f"a job that did nothing is not questioned: {names}")


@test()
def test_not_found():
    """127 is the model's memory of another machine: install nothing, change the job."""
    text, _ = explained(fails(["qscope-no-such-tool"]))
    contains(text, "Install nothing", "explain")


@test()
def test_hostile_output():
    """What a job prints, and how it calls its files, does not reach the terminal as it is."""
    run = fails(sh(r"printf '\033[2J' >&2; touch \"$(printf 'a\033[2Jb\nc')\"; exit 1".replace('\\"', '"')))
    text, _ = explained(run)
    lacks(text, "\x1b", "explain")


@test()
def test_standard_input():
    """A receipt comes through a pipe as well."""
    run = passes(["true"])
    with open(run.receipt_path, "rb") as file:
        piped = explain("-", stdin=file)
    eq(piped.status, 0, "exit status")
    eq(piped.stdout, explain(run.receipt_path).stdout, "the text")


@test()
def test_bad_files():
    """What is no receipt ends with 2 and names the file and the key."""
    head = '{"schema": "qscope.receipt/v1", "verdict": '
    cases = [
        ("empty", b"", "empty.json"),
        ("garbage", b"\x00\xff\x1b[2J", "garbage.json"),
        ("another-schema", b'{"schema": "x/v1", "verdict": "pass", "reasons": []}', "receipt.schema"),
        ("verdict", (head + '"great", "reasons": []}').encode(), "receipt.verdict"),
        ("reasons", (head + '"fail", "reasons": {}}').encode(), "receipt.reasons"),
        ("cut", (head + '"fail", "reas').encode(), "cut.json"),
        ("deep", b"[" * 100000, "deep.json"),
        ("job", b'{"argv": ["true"]}', "receipt.schema"),
    ]

    def refuse(name, data, part):
        path = write(scratch(f"{name}.json"), data)
        run = explain(path)
        eq(run.status, 2, "exit status")
        eq(run.stdout, "", "standard output")
        contains(run.stderr, part, "standard error")
        contains(run.stderr, path, "standard error")
        lacks(run.stderr, "\x1b", "standard error")

    collect(cases, refuse)
    for path in ("/nowhere/r.json", "/", "/dev/zero"):
        eq(explain(path).status, 2, f"exit status for {path}")


@test()
def test_too_large():
    """A file over the bound is refused without being read."""
    path = scratch("large.json")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.truncate(1 << 40)
    run = explain(path)
    eq(run.status, 2, "exit status")
    contains(run.stderr, path, "standard error")


@test()
def test_usage():
    """One receipt; known options only; no root is needed."""
    for args in ((), ("a", "b"), ("--no-such",)):
        eq(explain(*args).status, 2, f"exit status of explain {args}")
    path = passes(["true"]).receipt_path
    os.chmod(path, 0o644)
    done = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", lib.QSCOPE, "explain", "-"],
                          stdin=open(path, "rb"), capture_output=True, check=False)
    eq(done.returncode, 0, "exit status without root")
