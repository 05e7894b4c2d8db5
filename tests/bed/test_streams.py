# SPDX-License-Identifier: Apache-2.0
"""Output is bytes: counted and hashed whole, kept head and tail, harmless on a terminal."""

import base64
import json
import re
import resource
import shlex
import signal
import time

import host
import lib
from lib import (between, check, contains, eq, exits, fails, job, lacks, passes, py, run_job, sh,
                 sha256, test, workspace)

GROUP = "streams"


def info(run, stream, data, **more):
    facts = run[f"{stream}_info"]
    want = {"bytes": len(data), "sha256": sha256(data), **more}
    eq({key: facts.get(key) for key in want}, want, f"{stream}_info")


@test("vm")
def test_both_streams():
    """stdout and stderr are apart, complete, counted and hashed."""
    run = passes(sh("echo out; echo err >&2; printf é"))
    eq([run["stdout"], run["stderr"]], ["out\né", "err\n"], "text")
    info(run, "stdout", "out\né".encode(), truncated=False, utf8=True, after_exit_bytes=0)
    info(run, "stderr", b"err\n", truncated=False, utf8=True)


@test()
def test_nothing():
    """No output is an empty string and the digest of nothing."""
    run = passes(["true"])
    eq([run["stdout"], run["stderr"]], ["", ""], "text")
    info(run, "stdout", b"", truncated=False)


@test("smoke")
def test_not_utf8():
    """One byte that is not UTF-8 costs nothing: the text is readable, the bytes are exact."""
    raw = b"ok \xff\xfe\xc3( \xed\xa0\x80 end\n" + bytes(range(128, 256))
    run = passes(py(f"import os; os.write(1, {raw!r})"))
    info(run, "stdout", raw, utf8=False, truncated=False)
    eq(base64.b64decode(run["stdout_info"]["base64"]), raw, "base64")
    check(run.out.startswith("ok ") and " end\n" in run.out, f"text {run.out!r}")


@test()
def test_nul_and_controls():
    """NUL and control bytes: counted, hashed, and the receipt stays JSON that others can read."""
    raw = b"a\0b\x01\x1b[31mred\x07\r\n\x7f"
    run = passes(py(f"import os; os.write(1, {raw!r}); os.write(2, b'\\0' * 100)"))
    info(run, "stdout", raw, truncated=False)
    info(run, "stderr", b"\0" * 100)
    check(run.out.startswith("a") and "red" in run.out, f"text {run.out!r}")
    text = lib.read_bytes(run.receipt_path)
    check(not any(byte < 32 and byte != 10 for byte in text), "raw control bytes in the receipt")


@test()
def test_node_and_jq_read_it():
    """Other JSON readers accept a receipt of odd bytes: node's and jq's."""
    run = passes(py(r"import os; os.write(1, b'\0\xff\xed\xa0\x80 \xe2\x80\xa8\xf0\x9f\x98')"))
    for argv in (["jq", "-e", ".stdout"],
                 ["node", "-e", "JSON.parse(require('fs').readFileSync(process.argv[1], 'utf8'))"]):
        if host.find_program(argv[0]):
            eq(host.quiet(*argv, run.receipt_path), 0, f"exit status of {argv[0]}")


@test()
def test_clipped():
    """Long output keeps its head and its tail, says that it was clipped, and hashes all of it."""
    raw = b"".join(b"line %d\n" % n for n in range(200_000))
    run = passes(["seq", "-f", "line %.0f", "0", "199999"])
    info(run, "stdout", raw, truncated=True, utf8=True)
    check(run.out.startswith("line 0\nline 1\n"), "the head is missing")
    check(run.out.endswith("line 199999\n"), "the tail is missing")
    between(len(run.out), 1000, 1 << 20, "length of the text")


@test()
def test_output_limit():
    """limits.output is what is kept of each stream; the job goes on, and it is no failure."""
    run = passes(job(sh("seq 100000; seq 100000 >&2; echo end"), limits={"output": 2000}))
    for text in (run["stdout"], run["stderr"]):
        between(len(text), 500, 2400, "length of the text")
    check(run.out.endswith("end\n"), "the tail is missing")
    eq([run["stdout_info"]["truncated"], run["stderr_info"]["truncated"]], [True, True], "clipped")


@test()
def test_clip_between_characters():
    """A clip does not cut a character in two: text that was UTF-8 has no replacement in it."""
    for shift in range(4):
        run = passes(py(f"print('x' * {shift} + '\U0001f600' * 60000, end='')"))
        eq(run["stdout_info"]["utf8"], True, "utf8")
        lacks(run.out, "\ufffd", "the clipped text")


@test("vm")
def test_yes_until_the_timeout():
    """`yes` for two seconds: endless output is no obstacle to the timeout, and is kept."""
    run = lib.timed_out(fails(job(["yes"], timeout_sec=2)), 2)
    check(run.out.startswith("y\ny\n"), "the head is missing")
    check(run["stdout_info"]["bytes"] > 100_000, f"bytes {run['stdout_info']['bytes']}")
    eq(run["stdout_info"]["truncated"], True, "truncated")


@test("vm")
def test_endless_output_hides_no_end():
    """Children that print without a pause: the end of the main process is seen when it comes, what
    it printed before is told from the rest, and they are leftovers."""
    script = ("flood() { head -c 1000 /dev/zero; touch $1; exec cat /dev/zero; }\n"
              "flood a & flood b >&2 &\n"
              "until [ -e a ] && [ -e b ]; do sleep 0.05; done; exit 7")
    run = exits(fails(job(sh(script), timeout_sec=60)), 7)
    # When it is not seen, systemd ends the job 15 s after its timeout.
    between(run["duration_ms"], 0, 40_000, "duration_ms")
    between(run["timing"]["drain"], 0, 500 + lib.late_ms(), "timing.drain")
    eq(len(run["processes"]["leftover"]), 2, "processes.leftover")
    infos = [run["stdout_info"], run["stderr_info"]]
    for info_of in infos:
        between(info_of["after_exit_bytes"], 0, info_of["bytes"] - 1000, "after_exit_bytes")
    check(any(info_of["after_exit_bytes"] for info_of in infos), "nothing came after the exit")


@test()
def test_endless_output_hides_no_signal():
    """Ctrl-C ends a job that prints without a pause, too."""
    started = lib.start_job(job(sh("cat /dev/zero & exec cat /dev/zero >&2"), timeout_sec=60))
    lib.wait_for_job()
    started.kill(signal.SIGINT)
    sent = time.monotonic() - started.begin
    run = lib.verdict(started.finish(), 130, "aborted")
    between(run["duration_ms"], 0, 1000 * sent + lib.late_ms(), "duration_ms")


def big_output(megabytes):
    run = passes(job(["head", "-c", f"{megabytes}M", "/dev/zero"], timeout_sec=120), timeout=150)
    eq(run["stdout_info"]["bytes"], megabytes << 20, "bytes")
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    print(f"     | qscope's peak memory: {peak} KiB for {megabytes} MiB of output")
    check(peak < 64 << 10, f"qscope used {peak} KiB of memory for {megabytes} MiB of output")
    return run


@test(timeout=150, needs=["speed"], slow=True)
def test_a_gibibyte():
    """1 GiB of output: hashed whole, while qscope's own memory stays flat."""
    digest = "49bc20df15e412a64472421e13fe86ff1c5165e18b2afccf160d4dc19fe68a14"
    eq(big_output(1024)["stdout_info"]["sha256"], digest, "sha256 of 1 GiB of zeros")


@test()
def test_memory_is_flat():
    """The same with 64 MiB, cheap enough for every machine."""
    big_output(64)


@test()
def test_both_streams_full():
    """A job that fills both pipes at once, in any order, does not deadlock."""
    code = ("import os, threading\n"
            "def fill(fd):\n for _ in range(2000): os.write(fd, b'x' * 4096)\n"
            "ts = [threading.Thread(target=fill, args=(fd,)) for fd in (2, 1, 2)]\n"
            "[t.start() for t in ts]; [t.join() for t in ts]")
    run = passes(py(code))
    eq([run["stdout_info"]["bytes"], run["stderr_info"]["bytes"]], [8192000, 16384000], "bytes")


@test()
def test_output_before_the_timeout():
    """What was printed before the timeout is in the receipt, of both streams."""
    run = fails(job(sh("echo out; echo err >&2; sleep 60"), timeout_sec=min(lib.bound(1), 20)))
    eq([run["stdout"], run["stderr"]], ["out\n", "err\n"], "text")


@test()
def test_output_before_a_kill():
    """And what was printed right before a SIGKILL."""
    run = fails(sh("seq 1000; kill -9 $$"))
    eq(run["stdout_info"]["bytes"], len("".join(f"{n}\n" for n in range(1, 1001))), "bytes")


@test("smoke")
def test_reopened_streams():
    """/dev/stdout, /dev/stderr and /proc/self/fd can be opened again, as on any system."""
    run = passes(sh("echo a >/dev/stdout; echo b >/dev/stderr; echo c >/proc/self/fd/1; "
                    "echo d >/dev/fd/1; echo e | tee /dev/stderr"))
    eq([run["stdout"], run["stderr"]], ["a\nc\nd\ne\n", "b\ne\n"], "text")


@test()
def test_closed_streams():
    """A job that closes its streams early just goes on."""
    passes(sh("exec >&- 2>&-; sleep 0.3; exit 0"))
    passes(py("import os; os.close(0); os.close(1); os.close(2)"))


@test()
def test_after_exit():
    """What a short-lived child prints after the main process ended is counted apart."""

    def late():
        run = passes(sh("(sleep 0.03; echo late) & echo early"))
        eq(run.out, "early\nlate\n", "stdout")
        eq(run["stdout_info"]["after_exit_bytes"], 5, "bytes after the exit")

    lib.attempts(3, late)


# --- on a terminal ----------------------------------------------------------------------


def on_terminal(job_or_argv, options=(), env=None, **kw):
    """Runs qscope under script(1): its terminal's bytes as text, and the receipt."""
    receipt = lib.scratch(lib.fresh_name("receipt"))
    argv = [lib.QSCOPE, "run", *options, lib.write_job(job_or_argv), receipt]
    log = lib.scratch(lib.fresh_name("typescript"))
    prefix = ["script", "--quiet", "--return", "--command", shlex.join(argv), log]
    run = lib.Started(prefix, receipt, env=env or lib.CALLER, **kw).finish()
    text = lib.read_bytes(log).decode("utf-8", "surrogateescape")
    # script's own first and last lines repeat the command.
    return run, text.split("\n", 1)[1].rsplit("\nScript done", 1)[0]


@test(needs=["script"])
def test_summary_on_a_terminal():
    """A person gets a summary, not JSON: the verdict, the exit, and where the receipt is."""
    run, text = on_terminal(["echo", "hello"])
    eq(run.status, 0, "exit status")
    lib.mentions(text, ["pass"], "the summary")
    contains(text, run.receipt_path, "the summary")
    lacks(text, '"job_id"', "the summary")


@test(needs=["script"])
def test_summary_of_failures():
    """For each failure the summary says what happened."""
    cases = [(job(sh("exit 7")), ["7"]), (job(["sleep", "9"], timeout_sec=1), ["timed", "time"]),
             (job(sh("kill -SEGV $$")), ["SIGSEGV"]), (job(["no-such-tool"]), ["no-such-tool"])]
    for task, words in cases:
        run, text = on_terminal(task)
        eq(run.status, 1, f"exit status of {task['argv']}")
        lib.mentions(text, words, "the summary")
        lib.mentions(text, ["fail"], "the summary")


ATTACKS = ["\x1b]0;PWNED\x07", "\x1b[2J", "\x1b[31m", "\x9b31m", "\x1bP+q\x1b\\", "\r\x1b[K",
           "\u202e", "\x08\x08"]


@test("smoke", needs=["script"])
def test_nothing_of_the_job_reaches_the_terminal():
    """Escape sequences in the output, the arguments, the workspace's name, new files' names and
    the rationale arrive nowhere on the terminal."""
    attack = "".join(ATTACKS)
    top = workspace({"x": ""}, at=f"{workspace()}/\x1b]0;PWNED\x07 \x1b[2J")
    script = "printf '%s' \"$1\"; printf '%s' \"$1\" >&2; touch \"new$2\"; exit 3"
    task = job(["sh", "-c", script, "sh", attack, "\x1b[2Jname"], cwd=top, rationale=attack,
               allow_changes=[], meta={"m": attack})
    run, text = on_terminal(task)
    eq(run.status, 1, "exit status")
    only_colours(text)


def only_colours(text):
    """qscope's own colours are plain SGR sequences of its own; the attacks are not among them."""
    lacks(text, "PWNED\x07", "the terminal")
    for bad in ("\x1b]", "\x1bP", "\x1b[2J", "\x9b", "\u202e", "\x08"):
        lacks(text, bad, "the terminal")
    stripped = re.sub(r"\x1b\[[0-9;]*m", "", text)
    lacks(stripped, "\x1b", "the terminal, without colours")


@test(needs=["script"])
def test_attack_by_program_name():
    """The same in the name of a program that is not there."""
    run, text = on_terminal(["no\x1b]0;PWNED\x07\x1b[2Jtool"])
    eq(run.status, 1, "exit status")
    only_colours(text)


@test()
def test_errors_are_escaped_too():
    """A sentence about a job file does not repeat its bytes raw."""
    for text in (b'{"argv":["true"],"\\u001b[2Jkey":1}', b'{"\x1b]0;x\x07":1}', b"\x9b\xff{"):
        run = run_job(text)
        eq(run.status, 2, "exit status")
        check("\x1b" not in run.stderr and "\x9b" not in run.stderr, f"raw bytes: {run.stderr!r}")


@test(needs=["script"])
def test_no_color():
    """NO_COLOR is honoured, and so is a terminal that has none."""
    for more in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        _, text = on_terminal(["true"], env={**lib.CALLER, **more})
        lacks(text, "\x1b", f"the terminal with {more}")


@test(needs=["script"])
def test_json_on_a_terminal():
    """--json gives the line on a terminal too."""
    run, text = on_terminal(["true"], options=["--json"])
    eq(run.status, 0, "exit status")
    lines = [line for line in text.splitlines() if line.startswith("{")]
    eq(len(lines), 1, "JSON lines")
    eq(json.loads(lines[0])["verdict"], "pass", "verdict")


@test(needs=["script"])
def test_the_callers_terminal_is_not_the_jobs():
    """Under a terminal the job still has none: no descriptor, no /dev/tty, nothing to type into."""
    code = ("import os\nprint([os.isatty(n) for n in (0, 1, 2)])\n"
            "try: os.open('/dev/tty', os.O_RDWR); print('opened')\n"
            "except OSError: print('none')")
    run, _ = on_terminal(py(code))
    eq(run.out, "[False, False, False]\nnone\n", "what the job saw")
