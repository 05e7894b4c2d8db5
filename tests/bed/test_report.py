# SPDX-License-Identifier: Apache-2.0
"""Receipts of real runs against their schema, what they tell over time, and the page that is made of them."""

import json
import os
import stat

import schema
from lib import (check, collect, contains, eq, fails, job, lacks, passes, py, qscope, read_bytes, run_job, scratch, sh, test,
                 workspace, write)

GROUP = "report"

# One that ends in each of the ways, and one that leaves each kind of evidence.
JOBS = (
    ["true"],
    ["qscope-no-such-tool"],
    ["sudo", "true"],
    job(sh("kill -9 $$"), rationale="why", meta={"a": [1]}, x_note=[None]),
    job(["sleep", "60"], timeout_sec=0.3),
    job(sh("echo out; echo err >&2; printf '\\377\\000'; exit 3"), expected_exit=[3, 4]),
    job(sh("mkdir d; ln -s x l; mkfifo f; echo y >>README; chmod 4755 README 2>/dev/null; rm old; mv a b; ln b c;"
           " truncate -s 200M h; printf x >\"$(printf '\\377')\""), allow_changes=["d"]),
    job(py("import socket, subprocess as s, os\n"
           "l = socket.create_server(('127.0.0.1', 0)); u = socket.socket(socket.AF_UNIX); u.bind('\\0x')\n"
           "try: socket.create_connection(('192.0.2.1', 80), 1)\nexcept OSError: pass\n"
           "try: socket.socket(socket.AF_VSOCK)\nexcept OSError: pass\n"
           "open('/dev/shm/x', 'w'); s.Popen(['sleep', '60'], close_fds=False)")),
    job(["echo", "x" * 3000], limits={"output": 100}, workspace="fresh"),
)


@test("smoke", timeout=60)
def test_schema():
    """What is written is what its schema says, and a schema that an editor or a service trusts is no wish."""
    schemas = schema.Schemas()

    def fits(one):
        cwd = workspace({"README": "r\n", "old": "o", "a": "a"})
        if isinstance(one, dict) and one.get("workspace") != "fresh":
            one = {**one, "cwd": cwd}
        receipt = run_job(one).receipt
        check(receipt and receipt["verdict"] in ("pass", "fail", "rejected"), "it did not run")
        eq(schemas.fault("receipt", receipt), None, "fault")
        check(schemas.fault("receipt", {**receipt, "exit_code": "0"}), "the check takes anything")

    collect([(one,) for one in JOBS], fits)


@test(timeout=60)
def test_samples():
    """Memory and CPU over time: something in them is larger when the command used more."""
    run = run_job(py("import time\ndata = bytearray(8 << 20)\nuntil = time.monotonic() + .7\n"
                     "while time.monotonic() < until: pass"))
    samples = run["usage"]["samples"]
    check(samples, "a run of 0.7 s has no samples")
    eq(len(samples["cpu_usec"]), len(samples["memory_bytes"]), "lists")
    cpu = [value for value in samples["cpu_usec"] if value is not None]
    check(cpu and cpu == sorted(cpu) and cpu[-1] > 0, f"CPU time: {cpu}")
    check(cpu[-1] <= run["usage"]["cpu_usec"], "more CPU time than in all")
    check(len(samples["cpu_usec"]) * samples["interval_ms"] < run["duration_ms"] + 2 * samples["interval_ms"], "they are longer than the run")
    memory = [value for value in samples["memory_bytes"] if value is not None]
    if run["usage"]["memory_peak_bytes"] is not None:
        check(memory and 8 << 20 <= max(memory) <= run["usage"]["memory_peak_bytes"], f"memory: {memory}")
    contains(qscope("explain", run.receipt_path).stdout, "course   ", "explain")


@test()
def test_diffs():
    """The page has what changed in text files as long as it is kept, for its owner alone, unless it shall not."""
    top = workspace({"a": "one\ntwo\n"})
    run = passes(job(sh("sed -i s/two/zwei/ a; echo new > '<b>'"), cwd=top))

    def page(*options):
        eq(qscope("report", "-o", scratch("page.html"), *options, run.receipt_path).status, 0, "exit status")
        return read_bytes(scratch("page.html")).decode(), os.stat(scratch("page.html")).st_mode & 0o777

    text, mode = page()
    contains(text, "@@ -1,2 +1,2 @@\\n one\\n-two\\n+zwei\\n", "the page")
    contains(text, "\\u003cb\\u003e", "the page")
    eq(mode, 0o600, "mode")
    lacks(qscope("report", run.receipt_path).stdout, "zwei\\n", "the page on standard output")
    text, mode = page("--no-diffs")
    lacks(text, "zwei\\n", "the page without diffs")
    eq(mode, 0o644, "mode")
    write(f"{top}/a", "three\n")
    contains(page()[0], "the workspace has something else there now", "the page of a workspace that moved on")
    eq(qscope("apply", "--yes", "--select", "<b>", run.receipt_path).status, 0, "exit status of apply")
    eq(qscope("clean", "--discard", run["run_id"]).status, 0, "exit status of clean")
    contains(page()[0], "nothing is kept of this run: it was kept, and has been applied, discarded", "the page")


@test()
def test_where_the_page_goes():
    """A device or a link in the place of the page stays what it is."""
    receipt = scratch("where.json")
    passes(job(["true"]), receipt=receipt)
    node, link, target = scratch("node"), scratch("link"), scratch("target")
    write(target, "x")
    os.mknod(node, 0o600 | stat.S_IFIFO)
    os.symlink(target, link)
    for path in (node, link):
        before = os.lstat(path).st_mode
        run = qscope("report", "-o", path, receipt)
        eq([run.status, os.lstat(path).st_mode], [2, before], path)
        contains(run.stderr, "not a regular file", "stderr")
    eq(read_bytes(target), b"x", "the link's target")


@test("smoke")
def test_page():
    """One file, whatever stands in the receipts and beside them; nothing of a job is markup in it."""
    directory = scratch("receipts")
    os.makedirs(directory)
    fails(job(sh("echo '</script><img src=x>'; touch '<b>'; exit 1"), job_id="hostile"), receipt=f"{directory}/a.json")
    write(f"{directory}/broken.json", "{")
    write(f"{directory}/other.txt", "no receipt")
    page = scratch("page.html")
    eq(qscope("report", "-o", page, "--no-diffs", "--title", "<Title>", directory).status, 0, "exit status")
    text = read_bytes(page).decode()
    eq(text.count('class="row-data"'), 2, "receipts")
    for part in ("<img", "<b>", "<Title>", "</script><"):
        lacks(text, part, "page")
    contains(text, "\\u003c/script\\u003e\\u003cimg", "page")
    rows = [json.loads(line.split(">", 1)[1].removesuffix("</script>")) for line in text.splitlines() if 'class="row-data"' in line]
    eq([row["verdict"] for row in rows], ["fail", "unreadable"], "verdicts")
    # Twice the same; and a directory without receipts is a mistake.
    eq(qscope("report", "--title", "<Title>", directory).stdout, text, "to standard output")
    empty = scratch("empty")
    os.makedirs(empty)
    eq(qscope("report", "-o", scratch("no.html"), empty).status, 2, "nothing to read")
    check(not os.path.exists(scratch("no.html")), "there is a page of nothing")
    eq(qscope("report", "-o", scratch("no/page.html"), directory).status, 4, "nowhere to write")
    # What was named and is not there.
    gone = qscope("report", scratch("gone"))
    eq((gone.status, gone.stdout), (2, ""), "a path that is not there")
    contains(gone.stderr, "gone: cannot be read: No such file", "standard error")
    some = qscope("report", scratch("gone"), directory)
    eq((some.status, some.stdout != ""), (1, True), "one of two paths")
    contains(some.stderr, "gone: cannot be read: No such file", "standard error")
    eq(qscope("report", "-o", scratch("no.html"), f"{directory}/broken.json").status, 2, "not one receipt")
    check(not os.path.exists(scratch("no.html")), "there is a page of nothing")
