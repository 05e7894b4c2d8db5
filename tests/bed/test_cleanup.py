# SPDX-License-Identifier: Apache-2.0
"""Never hang, never leave anything: background children, timeouts, interrupted runs, and a systemd
that reloads, refuses or is not there. The runner checks the host after every test; here is what
must hold besides."""

import json
import os
import re
import signal
import subprocess
import time

import host
import lib
from lib import (between, check, collect, contains, eq, errors, exits, fail, fails, job, mentions,
                 one_of, passes, py, run_job, sh, signal_of, test, wait_for_job, workspace)

GROUP = "cleanup"


def survivors():
    return [pid for pid, _, uid, state in host.processes()
            if uid in host.JOB_UIDS and not state.startswith("Z")]


def no_survivor(seconds=0.5):
    dead = host.wait_until(lambda: not survivors(), lib.bound(seconds))
    check(dead, f"processes of the job are alive: {host.job_processes()}")


# --- background children ----------------------------------------------------------------

DOUBLE_FORK = (
    "import os, time\n"
    "if os.fork() == 0:\n os.setsid()\n if os.fork() == 0: time.sleep(300)\n os._exit(0)\n"
    "os.wait(); print('ok')"
)
STUBBORN = (
    "import os, signal, time\nr, w = os.pipe()\n"
    "if os.fork() == 0:\n for n in range(1, 65):\n  try: signal.signal(n, signal.SIG_IGN)\n"
    "  except (OSError, ValueError): pass\n"
    " os.write(w, b'x')\n time.sleep(300)\nos.read(r, 1); print('ok')"
)
BACKGROUND = [
    ("subshell", sh("(sleep 300 &); echo ok")),
    ("double fork in a session of its own", py(DOUBLE_FORK)),
    ("ignores every signal and keeps the pipes", py(STUBBORN)),
    ("nohup", sh("nohup sleep 300 >/dev/null 2>&1 & echo ok")),
    ("stopped", sh("sleep 300 & kill -STOP $!; echo ok")),
    ("many", sh("for i in 1 2 3 4 5 6 7 8 9; do sleep 300 & done; echo ok")),
]


def not_held_up(run):
    """After the end of the main process qscope waits for the grace (half a second) and no longer."""
    between(run["timing"]["drain"], 0, 500 + lib.late_ms(), "timing.drain")


def background(_name, argv):
    run = exits(fails(argv), 0)
    eq(run.out, "ok\n", "stdout")
    not_held_up(run)
    leftover = run["processes"]["leftover"]
    check(leftover, "processes.leftover is empty")
    eq([run["match_expected"], run["timed_out"], run.hits], [True, False, {}], "outcome")
    no_survivor()


@test("smoke", timeout=40)
def test_background_children():
    """A child left behind neither holds qscope up nor survives, and the job fails for it although
    it exits 0."""
    collect(BACKGROUND if host.is_fast() else BACKGROUND[:3], background)


@test()
def test_leftovers_are_named():
    """The receipt says what was left running."""
    run = fails(sh("sleep 299 & echo ok"))
    contains(json.dumps(run["processes"]["leftover"]), "299", "processes.leftover")
    mentions(json.dumps(run["reasons"]), ["left", "running", "alive"], "reasons")


@test()
def test_leftovers_allowed():
    """A job may declare that it leaves processes behind; they are listed and killed anyway."""
    run = passes(job(sh("sleep 300 & echo ok"), expect={"allow_leftovers": True}))
    check(run["processes"]["leftover"], "processes.leftover is empty")
    no_survivor()


@test()
def test_short_lived_helper():
    """A helper that outlives its parent by milliseconds is not a leftover."""

    def helper():
        run = passes(sh("(sleep 0.02 &) ; echo ok"))
        eq(run["processes"]["leftover"], [], "processes.leftover")

    lib.attempts(3, helper)


@test()
def test_nothing_left_costs_nothing():
    """The grace for helpers is not waited for when nothing is left."""
    waited = fails(sh("sleep 300 & echo ok"))["timing"]["drain"]
    check(any(passes(["true"])["timing"]["drain"] < waited / 2 for _ in range(10)),
          f"drain never took less than half of the {waited} ms that it takes with a leftover")


@test()
def test_runaway_forks():
    """A process that forks and exits for ever cannot run away from the kill."""
    code = ("import os\nif os.fork(): os._exit(0)\nos.setsid()\n"
            "while True:\n if os.fork(): os._exit(0)")
    run = exits(fails(py(code)), 0)
    not_held_up(run)
    no_survivor()


# --- timeouts ---------------------------------------------------------------------------

TIMEOUTS = [
    ("kill -STOP 0", sh("kill -STOP 0")),
    ("the main process stops itself", sh("kill -STOP $$")),
    ("TERM is ignored", sh("trap '' TERM INT HUP QUIT; while :; do sleep 1; done")),
    ("children", sh("sleep 60 & (sleep 60 & sleep 60) & wait")),
    ("a pipeline", sh("sleep 60 | sleep 60 | cat")),
    ("a spinning child", sh("sh -c 'while :; do :; done' & wait")),
    ("two sessions", py("import os, time\nif not os.fork(): os.setsid()\ntime.sleep(60)")),
]


def times_out(_name, argv):
    run = lib.timed_out(fails(job(argv, timeout_sec=1)), 1)
    eq(run.hits, {}, "limits.hits")
    no_survivor()


@test(timeout=40)
def test_timeouts():
    """Whatever the job does about it, the timeout ends every process of it, and is called one."""
    collect(TIMEOUTS if host.is_fast() else TIMEOUTS[:3], times_out)


@test()
def test_short_timeouts():
    """A fraction of a second is a timeout too."""
    for seconds in (0.2, 0.05, 0.001):
        run = run_job(job(["sleep", "30"], timeout_sec=seconds))
        eq([run.status, run["timed_out"]], [1, True], f"outcome with {seconds}")
        eq(run["timeout_sec"], seconds, "timeout_sec in the receipt")


@test()
def test_just_in_time():
    """A command that ends shortly before its timeout has not timed out."""
    for _ in range(3):
        run = passes(job(["sleep", "0.9"], timeout_sec=0.9 + lib.bound(1)))
        eq(run["timed_out"], False, "timed_out")


# --- qscope is interrupted --------------------------------------------------------------


def delays():
    if not host.is_fast():
        return [0.01, 0.3, 0.8, 2, 4]
    return [0, .001, .002, .004, .007, .01, .014, .018, .023, .03, .038, .048, .06, .075, .095,
            .12, .16, .22, .3, .5]


def holds_back(pid, number):
    """Whether the process blocks the signal, as qscope does once it has read the job."""
    blocked = re.search(r"^SigBlk:\t(\w+)", host.read(f"/proc/{pid}/status", ""), re.MULTILINE)
    return bool(blocked and int(blocked[1], 16) >> (number - 1) & 1)


def interrupted(delay, number, argv):
    """Sends the signal after the delay. Until qscope has read the job the receipt may be missing."""
    started = lib.start_job(argv)
    time.sleep(delay)
    early = not holds_back(started.process.pid, number)
    started.kill(number)
    run = started.finish()
    if run.status == -number or (run.receipt is None and early):
        check(early and run.receipt is None, "qscope died of the signal instead of handling it")
    elif run.status != 0:
        eq(run.status, 128 + number, "qscope's exit status")
        eq(run["verdict"], "aborted", "verdict")
        eq([run["exit_code"], run["timed_out"]], [None, False], "exit_code and timed_out")
        lib.reasons(run)
    no_survivor()
    return run


def sweep(number):
    collect([(delay, number, ["sleep", "30"]) for delay in delays()], interrupted)


@test(timeout=40)
def test_sigint():
    """Ctrl-C at any moment: status 130, the job is dead, the receipt says aborted."""
    sweep(signal.SIGINT)


@test(timeout=40)
def test_sigterm():
    """SIGTERM at any moment: status 143, the job is dead, the receipt says aborted."""
    sweep(signal.SIGTERM)


@test("smoke")
def test_interrupted_in_the_middle():
    """The plain case: a running job, Ctrl-C, and what it had printed is kept."""
    started = lib.start_job(sh("echo begun; sleep 30"))
    wait_for_job("sleep")
    started.kill(signal.SIGINT)
    run = lib.verdict(started.finish(), 130, "aborted")
    eq(run.out, "begun\n", "stdout")
    eq(run["match_expected"], False, "match_expected")
    check(run.line and run.line["verdict"] == "aborted", f"the line: {run.stdout!r}")


def late_interruption(delay, number, argv):
    """Around the end of the job: either the whole outcome or an abort, never a torn receipt."""
    started = lib.start_job(argv)
    time.sleep(delay)
    started.kill(number)
    run = started.finish()
    one_of(run.status, (0, 1, 128 + number, -number), "exit status")
    if run.receipt is not None:
        want = {0: ("pass",), 1: ("fail",)}.get(run.status, ("aborted", "pass", "fail"))
        one_of(run["verdict"], want, "verdict")
    no_survivor()


@test("vm", timeout=60)
def test_signals_around_the_end():
    """The same while the job ends, its leftovers are killed and the receipt is written."""
    spans = [delay for delay in delays() if 0.01 <= delay <= 4]
    cases = [(delay, signal.SIGTERM, argv) for delay in spans
             for argv in (["true"], sh("(sleep 300 &); exit 0"))]
    collect(cases if host.is_fast() else cases[::3], late_interruption)


@test()
def test_two_signals():
    """An impatient Ctrl-C Ctrl-C does not interrupt the clean-up."""
    for gap in (0, 0.005, 0.05):
        started = lib.start_job(sh("trap '' INT TERM; sleep 30 & sleep 30"))
        wait_for_job()
        time.sleep(0.1)
        for number in (signal.SIGINT, signal.SIGINT, signal.SIGTERM):
            started.kill(number)
            time.sleep(gap)
        run = started.finish()
        one_of(run.status, (130, 143), "exit status")
        eq(run["verdict"], "aborted", "verdict")
        no_survivor()


def killed(delay):
    started = lib.start_job(sh("sleep 60 & sleep 60"))
    time.sleep(delay)
    started.kill(signal.SIGKILL)
    run = started.finish()
    eq(run.status, -signal.SIGKILL, "exit status")
    if run.receipt is not None:
        fail("a receipt of a run that was killed")


@test("vm", timeout=60)
def test_sigkill_at_any_moment():
    """SIGKILL to qscope at any moment: the next run leaves nothing of it (the runner looks for
    units, cgroups, mounts, directories, loop devices and processes)."""
    collect([(delay,) for delay in delays()], killed)
    passes(["true"])
    no_survivor(2)


@test("smoke")
def test_sigkill_while_running():
    """SIGKILL while the job runs: one next run clears everything away and is clean itself."""
    started = lib.start_job(sh("sleep 60 & sleep 60"))
    wait_for_job()
    started.kill(signal.SIGKILL)
    started.finish()
    run = passes(["true"])
    eq(run.hits, {}, "limits.hits")
    no_survivor(2)


@test(timeout=60, slow=True)
def test_sigkill_without_a_next_run():
    """When qscope is gone and nobody runs it again, the job still ends by itself soon after its
    timeout."""
    started = lib.start_job(job(["sleep", "999"], timeout_sec=2))
    wait_for_job()
    started.kill(signal.SIGKILL)
    started.finish()
    check(host.wait_until(lambda: not survivors(), 2 + lib.bound(30)), "the job is still alive")
    passes(["true"])


@test(timeout=60, slow=True)
def test_qscope_is_stopped():
    """A qscope that is stopped (Ctrl-Z) does not give the job more time."""
    started = lib.start_job(job(["sleep", "999"], timeout_sec=2))
    wait_for_job()
    started.kill(signal.SIGSTOP)
    dead = host.wait_until(lambda: not survivors(), 2 + lib.bound(30))
    started.kill(signal.SIGCONT)
    run = started.finish()
    check(dead, "the job outlived its timeout")
    # Stopped before it had opened the gate, it finds the stage gone: then the run never was.
    one_of(run["verdict"], ("fail", "error"), "verdict")
    eq(run["exit_code"], None, "exit_code")


@test()
def test_a_living_run_is_left_alone():
    """Clearing up after dead runs does not touch one that is alive."""
    started = lib.start_job(sh("sleep 2; echo done"))
    wait_for_job()
    for _ in range(3):
        passes(["true"])
    eq(lib.verdict(started.finish(), 0, "pass").out, "done\n", "stdout")


@test()
def test_hangup():
    """The terminal is closed (SIGHUP): no job goes on unattended."""
    started = lib.start_job(["sleep", "30"])
    wait_for_job()
    started.kill(signal.SIGHUP)
    run = started.finish()
    check(run.status != 0, "exit status 0")
    passes(["true"])
    no_survivor(2)


# --- systemd in the middle of a run -----------------------------------------------------


def during(action, argv):
    started = lib.start_job(argv)
    wait_for_job()
    time.sleep(0.2)
    action()
    return started.finish()


def complete(run):
    check(run["usage"]["cpu_usec"] is not None, "cpu_usec is null")
    eq(run["processes"]["leftover"], [], "processes.leftover")
    return run


@test()
def test_daemon_reexec():
    """`systemctl daemon-reexec` while a job runs: the job goes on, the receipt is complete."""
    argv = sh(f"echo a; sleep {min(lib.bound(1), 10):.1f}; echo b")
    run = during(lambda: host.quiet("systemctl", "daemon-reexec"), argv)
    eq(complete(lib.verdict(run, 0, "pass")).out, "a\nb\n", "stdout")


@test("smoke")
def test_daemon_reload():
    """`systemctl daemon-reload` the same: neither the limits nor the sandbox are lost."""
    argv = sh("echo a; sleep 1; grep -E '^(NoNewPrivs|Seccomp):' /proc/self/status")
    run = during(lambda: host.quiet("systemctl", "daemon-reload"), argv)
    eq(complete(lib.verdict(run, 0, "pass")).out, "a\nNoNewPrivs:\t1\nSeccomp:\t2\n", "stdout")


def reexec_after(delay):
    started = lib.start_job(["sleep", "0.3"])
    time.sleep(delay)
    host.quiet("systemctl", "daemon-reexec")
    run = started.finish()
    one_of(run.status, (0, 4), "exit status")
    one_of(run["verdict"], ("pass", "error"), "verdict")
    no_survivor()


@test(timeout=60, slow=True)
def test_reexec_in_other_phases():
    """A re-execution while the units start or stop: a receipt in any case, and nothing left."""
    collect([(delay,) for delay in (0.005, 0.02, 0.05, 0.1, 0.2, 0.35, 0.45)], reexec_after)


@test()
def test_reloads_all_the_time():
    """Six jobs while systemd reloads over and over."""
    loop = subprocess.Popen(["sh", "-c", "while :; do systemctl daemon-reload; sleep 0.05; done"])
    try:
        for _ in range(6):
            complete(passes(["sleep", "0.1"], timeout=30))
    finally:
        loop.kill()
        loop.wait()


def unit_names(suffix):
    return [name for name in host.job_units() if name.endswith(suffix)]


def ended_outside(verb):
    def action():
        host.quiet("systemctl", *verb, *unit_names(".service"))

    run = during(action, ["sleep", "30"])
    one_of((run.status, run["verdict"]), [(1, "fail"), (4, "error")], "status and verdict")
    eq([run["exit_code"], run["timed_out"], run.hits], [None, False, {}], "outcome")
    one_of(signal_of(run), (9, 15, None), "signal")
    no_survivor()


@test()
def test_ended_from_outside():
    """Someone stops or kills the unit: not a pass, not a timeout, and not out of memory."""
    collect([(["stop"],), (["kill", "--signal=KILL"],), (["kill", "--signal=TERM"],)],
            ended_outside)


@test()
def test_slice_stopped_from_outside():
    """Someone stops the job's slice: a receipt that is no pass, and nothing left."""
    run = during(lambda: host.quiet("systemctl", "stop", *unit_names(".slice")), ["sleep", "30"])
    one_of((run.status, run["verdict"]), [(1, "fail"), (4, "error")], "status and verdict")
    no_survivor()


def restart_bus():
    host.quiet("systemctl", "stop", "dbus.socket", "dbus.service")


@test(timeout=60)
def test_bus_goes_away():
    """D-Bus stops in the middle of a run: the job ends as it must, there is a receipt, and the next
    run leaves nothing."""
    try:
        run = during(restart_bus, sh("sleep 1; echo end"))
        one_of((run.status, run["verdict"]), [(0, "pass"), (4, "error")], "status and verdict")
        no_survivor()
    finally:
        host.quiet("systemctl", "start", "dbus.socket", "dbus.service")
    passes(["true"], timeout=30)


# --- what is missing --------------------------------------------------------------------


def hidden(*paths):
    """A prefix that runs qscope where these paths are empty."""
    mounts = " && ".join(f"mount -t tmpfs none {path}" for path in paths)
    return ["unshare", "--mount", "sh", "-c", f'{mounts} && exec "$@"', "sh"]


@test("smoke", "vm")
def test_without_systemd():
    """No systemd: status 4, a sentence that says so and what to do, and a receipt that says error;
    never a run without a sandbox."""
    with lib.nothing_started():
        run = errors(["true"], prefix=hidden("/run/systemd", "/run/dbus"))
    mentions(run.stderr + json.dumps(run["reasons"]), ["systemd"], "the sentence")
    eq([run["exit_code"], run["stdout"]], [None, ""], "outcome")


@test()
def test_without_dbus():
    """No D-Bus: it works without, or says what is missing."""
    run = run_job(["true"], prefix=hidden("/run/dbus"))
    if run.status != 0:
        lib.verdict(run, 4, "error")
        mentions(run.stderr + json.dumps(run["reasons"]), ["D-Bus", "dbus", "bus"], "the sentence")


@test()
def test_without_cgroup2():
    """Not the unified hierarchy: status 4 and a sentence about cgroups."""
    with lib.nothing_started():
        run = errors(["true"], prefix=hidden("/sys/fs/cgroup"))
    mentions(run.stderr + json.dumps(run["reasons"]), ["cgroup"], "the sentence")


@test("smoke")
def test_not_root():
    """Not root: status 4, a sentence that names root, and a receipt where the user may write."""
    directory = lib.scratch("user")
    os.mkdir(directory)
    os.chown(directory, lib.OWNER, lib.OWNER)
    prefix = ["setpriv", f"--reuid={lib.OWNER}", f"--regid={lib.OWNER}", "--clear-groups", "--"]
    with lib.nothing_started():
        run = errors(["true"], prefix=prefix, receipt=f"{directory}/r.json")
    mentions(run.stderr + json.dumps(run["reasons"]), ["root"], "the sentence")


@test()
def test_masked_slice():
    """An administrator masks qscope.slice: systemd refuses, and so do we, with its words."""
    host.quiet("systemctl", "stop", "qscope.slice")
    host.quiet("systemctl", "mask", "--runtime", "qscope.slice")
    try:
        run = errors(["true"])
        mentions(run.stderr + json.dumps(run["reasons"]), ["masked", "qscope.slice"], "sentence")
    finally:
        host.quiet("systemctl", "unmask", "--runtime", "qscope.slice")
        host.quiet("systemctl", "daemon-reload")
    passes(["true"])


DROP_IN = "/run/systemd/system/qscope-.service.d/90-bed-test.conf"


@test()
def test_start_fails():
    """systemd cannot start the unit: an error of the host with systemd's result, not a failing
    command."""
    with lib.drop_in(DROP_IN, "[Service]\nBindPaths=/not/there:/x\n", reload=True):
        run = errors(["true"])
    eq([run["exit_code"], run["signal"], run["timed_out"]], [None, None, False], "outcome")
    passes(["true"])


@test(timeout=40)
def test_start_hangs():
    """A start that does not come to an end can be interrupted, and leaves nothing."""
    with lib.drop_in(DROP_IN, "[Service]\nExecStartPre=/bin/sleep 120\n", reload=True):
        started = lib.start_job(["true"])
        check(host.wait_until(lambda: unit_names(".service"), lib.bound(20)), "no unit was started")
        time.sleep(0.5)
        started.kill(signal.SIGINT)
        run = started.finish()
    eq([run.status, run["verdict"]], [130, "aborted"], "status and verdict")
    no_survivor(2)


# --- isolation is observed, not requested -----------------------------------------------

LOOK = (
    "import os\nprint(os.readlink('/proc/self/ns/net'), os.readlink('/proc/self/ns/ipc'),"
    " os.getuid(), int([l for l in open('/proc/self/status') if 'CapEff' in l][0].split()[1], 16))"
)
WEAKENED = [
    ("PrivateNetwork=no\nNetworkNamespacePath=", 0),
    ("PrivateIPC=no\nIPCNamespacePath=", 1),
    ("DynamicUser=no\nUser=root", 2),
    ("CapabilityBoundingSet=CAP_NET_ADMIN\nAmbientCapabilities=CAP_NET_ADMIN", 3),
]


def weakened(settings, index):
    with lib.drop_in(DROP_IN, f"[Service]\n{settings}\n", reload=True):
        run = run_job(py(LOOK))
    if run.status == 4:
        eq([run["verdict"], run["stdout"]], ["error", ""], "verdict and stdout")
        check(run.seconds < lib.bound(20), f"the refusal took {run.seconds:.1f} s")
        return
    eq(run.status, 0, "exit status")
    got = run.out.split()[index]
    host_value = [os.readlink("/proc/self/ns/net"), os.readlink("/proc/self/ns/ipc"), "0"]
    bad = got != "0" if index == 3 else got == host_value[index]
    check(not bad, f"the command ran with a weaker sandbox: {run.out!r}")


@test(timeout=100)
def test_weakened_sandbox():
    """A setting of the host takes a part of the sandbox away: the command is not released."""
    collect(WEAKENED, weakened)


@test()
def test_receipt_lists_isolation():
    """The receipt says what was observed from outside."""
    text = json.dumps(passes(["true"], cwd=None)["isolation"]).lower()
    for word in ("net", "seccomp", "no_new_privs", "cap", "uid"):
        contains(text, word, "isolation")


@test()
def test_workspace_survives_everything():
    """After an abort, a kill, a timeout and a refusal the real directory is as it was."""
    top = workspace({"a": "alpha\n"})
    before = lib.snapshot(top)
    script = sh("rm a; echo x > b; sleep 30")
    for number in (signal.SIGINT, signal.SIGKILL):
        started = lib.start_job(job(script, cwd=top))
        wait_for_job("sleep")
        started.kill(number)
        started.finish()
    fails(job(script, cwd=top, timeout_sec=1))
    lib.untouched(top, before)
    passes(job(["cat", "a"], cwd=top))
