# SPDX-License-Identifier: Apache-2.0
"""After the run: changes are brought back whole or not at all, receipts are compared, what is kept is
bounded."""

import fcntl
import hashlib
import json
import os
import pty
import random
import shutil
import signal
import stat
import subprocess

import host
import lib
from lib import (check, collect, contains, eq, fails, job, lacks, one_of, passes, qscope, scratch, sh, test,
                 workspace, write)

GROUP = "apply"
BROKEN = "/usr/libexec/qscope/qscope-broken"
LAYERS = "/var/lib/qscope/layers"
KEEP = "/etc/qscope/keep.json"

FILES = {
    "edit.txt": "one\ntwo\nthree\n",
    "gone.txt": "gone\n",
    "mode.sh": "#!/bin/sh\n",
    "old/a": "a\n",
    "old/deep/b": "b\n",
    "move/x": "x\n",
    "file-to-dir": "f\n",
    "dir-to-file/y": "y\n",
    "keep": "kept\n",
}
SCRIPT = """
sed -i s/two/TWO/ edit.txt; rm gone.txt; chmod 755 mode.sh; rm -r old; mv move moved
rm file-to-dir; mkdir file-to-dir; echo in > file-to-dir/in
rm -r dir-to-file; echo now > dir-to-file
mkdir -p new/deep; echo n > new/deep/n; ln new/deep/n new/hard; ln -s deep/n new/link
mkdir closed; echo c > closed/c; chmod 555 closed; chmod 444 closed/c; ln -sfn edit.txt link
"""


# --- helpers ----------------------------------------------------------------------------


def make(files=None, at=None):
    top = workspace(FILES if files is None else files, at=at)
    os.symlink("keep", f"{top}/link")
    lib.give(top, lib.OWNER)
    return top


def in_memory():
    """A directory in memory, for tests that apply very often: what waits for a disk there tells nothing."""
    top = f"{os.path.dirname(workspace({}))}/ram"
    os.makedirs(top)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", top], check=True)
    return top


def tree(top):
    """What an apply must bring about, and nothing that it may leave as it likes (times, inodes)."""
    found = {}
    for directory, names, files in os.walk(top):
        for name in [""] + names + files:
            path = os.path.join(directory, name) if name else directory
            info = os.lstat(path)
            what = (os.readlink(path) if stat.S_ISLNK(info.st_mode)
                    else lib.read_bytes(path) if stat.S_ISREG(info.st_mode) else None)
            mode = 0 if stat.S_ISLNK(info.st_mode) else info.st_mode
            found[os.path.relpath(path, top)] = (stat.S_IFMT(info.st_mode), mode, info.st_uid, info.st_gid,
                                                 what)
    return found


def same(got, want, what="the workspace"):
    wrong = sorted(name for name in got.keys() | want.keys() if got.get(name) != want.get(name))
    check(not wrong, f"{what}: {[(n, got.get(n), want.get(n)) for n in wrong[:3]]}")


def expected(top, script):
    """The same script, run by the workspace's owner in a copy that is no copy-on-write layer."""
    copy = scratch(lib.fresh_name("copy"))
    subprocess.run(["cp", "-a", top, copy], check=True)
    os.chmod(os.path.dirname(copy), 0o755)
    subprocess.run(["setpriv", f"--reuid={lib.OWNER}", f"--regid={lib.OWNER}", "--clear-groups", "sh", "-c",
                    script], cwd=copy, check=True)
    return tree(copy)


def apply(run, *options, program=None, env=None, **kw):
    path = run if isinstance(run, str) else run.receipt_path
    if getattr(run, "state", None):
        options = (*options, f"--state-dir={run.state}")
    if program:
        return lib.Started([program, "apply", *options, path], None, env={**lib.CALLER, **(env or {})},
                           **kw).finish()
    return qscope("apply", *options, path, **kw)


def applied(run, *options):
    done = apply(run, "--yes", *options)
    eq(done.status, 0, f"exit status of apply ({done.stderr.strip()})")
    return done


def refused(done, status=3):
    eq(done.status, status, f"exit status of apply ({done.stdout.strip()} {done.stderr.strip()})")
    check(done.stderr.startswith("qscope: "), f"no sentence: {done.stderr!r}")
    lacks(done.stdout + done.stderr, "\x1b", "output")
    return done


def layer(run):
    state = getattr(run, "state", None)
    return f"{state}/layers/{run['run_id']}" if state else f"{LAYERS}/{run['run_id']}"


def kept_in(state, run_job):
    """A passed run whose layer is kept there."""
    run = passes(run_job, options=[f"--state-dir={state}"])
    run.state = state
    return run


class Saved:
    """Workspace and layer of a run, put back as often as is wanted."""

    def __init__(self, run, top):
        self.pairs = [(path, scratch(lib.fresh_name("saved"))) for path in (top, layer(run))]
        for path, saved in self.pairs:
            subprocess.run(["cp", "-a", path, saved], check=True)

    def restore(self):
        for path, saved in self.pairs:
            shutil.rmtree(path, ignore_errors=True)
            subprocess.run(["cp", "-a", saved, path], check=True)


# --- apply ------------------------------------------------------------------------------


@test("smoke")
def test_all_kinds():
    """After an apply the workspace is what the owner's own run of the command would have made of it, and
    the layer is gone."""
    top = make()
    want = expected(top, SCRIPT)
    run = passes(job(sh(SCRIPT), cwd=top))
    eq(run["kept"]["state"], "yes", "kept.state")
    dry = apply(run, "--dry-run")
    eq(dry.status, 0, "exit status of --dry-run")
    contains(dry.stdout, "-two\n+TWO\n", "the diff")
    applied(run)
    same(tree(top), want)
    eq(os.lstat(f"{top}/new/hard").st_ino, os.lstat(f"{top}/new/deep/n").st_ino, "inode of the hard link")
    check(not os.path.exists(layer(run)), "the layer is still there")
    contains(refused(apply(run, "--yes")).stderr, "nothing is kept", "the sentence")


@test()
def test_asks():
    """On a terminal it shows and asks; without one it does not guess."""
    top = make({"a": "one\n"})
    before = tree(top)
    run = passes(job(sh("echo two >> a; printf 'x\\033[2Jy\\n' > b"), cwd=top))
    contains(refused(apply(run), 2).stderr, "--yes", "the sentence")
    for answer, status in (("n\n", 3), ("y\n", 0)):
        same(tree(top), before)
        pid, fd = pty.fork()
        if pid == 0:
            os.execvpe(lib.QSCOPE, ["qscope", "apply", run.receipt_path], lib.CALLER)
        text = b""
        while b"[y/N]" not in text:
            text += os.read(fd, 4096)
        os.write(fd, answer.encode())
        try:
            while part := os.read(fd, 4096):
                text += part
        except OSError:
            pass
        eq(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), status, f"exit status after {answer!r}")
        os.close(fd)
        lacks(text.decode(), "\x1b[2J", "what is shown")
        contains(text.decode(), "+two", "what is shown")
    eq(lib.read_bytes(f"{top}/a"), b"one\ntwo\n", "a")


@test()
def test_verdict():
    """Only a pass is applied; --force says so aloud and leaves out what was not agreed."""
    top = make({"src/a": "a\n", "other": "o\n"})
    run = fails(job(sh("echo b > src/a; echo x > other; exit 3"), cwd=top, allow_changes=["src"]))
    before = tree(top)
    for words in ("\"fail\"", "--dry-run --force"):
        contains(refused(apply(run, "--yes")).stderr, words, "the sentence")
    same(tree(top), before)
    forced = apply(run, "--yes", "--force")
    eq(forced.status, 1, "exit status")
    contains(forced.stderr, "FORCED", "stderr")
    eq((lib.read_bytes(f"{top}/src/a"), lib.read_bytes(f"{top}/other")), (b"b\n", b"o\n"), "files")
    applied(run, "--force", "--select", "other")
    eq(lib.read_bytes(f"{top}/other"), b"x\n", "other")


@test()
def test_select():
    """--select takes paths and what is below, with the new directories above; the rest stays for later."""
    top = make({"a": "a\n", "b": "b\n"})
    want = expected(top, "echo 1 > a; rm b; mkdir -p d/e; echo f > d/e/f; echo g > d/g")
    run = passes(job(sh("echo 1 > a; rm b; mkdir -p d/e; echo f > d/e/f; echo g > d/g"), cwd=top))
    for bad in ("nothing", "../a", "/etc", "a/../a"):
        refused(apply(run, "--yes", "--select", bad), 2)
    applied(run, "--select", "d/e/f")
    check(sorted(os.listdir(f"{top}/d")) == ["e"], "more than was selected")
    eq(lib.read_bytes(f"{top}/a"), b"a\n", "a")
    check(os.path.exists(layer(run)), "the layer went too early")
    applied(run, "--select", f"{top}/a", "--select", "b")
    applied(run)
    same(tree(top), want)
    check(not os.path.exists(layer(run)), "the layer is still there")


@test()
def test_held_back():
    """What the host would execute by itself is shown, held back, and comes only by its exact name."""
    top = make({".git/config": "[core]\n", "a": "a\n"})
    script = ("mkdir -p .git/hooks .github/workflows .VSCode; echo h > .git/hooks/pre-commit; echo e > .envrc;"
              "echo w > .github/workflows/x.yml; echo t > .VSCode/tasks.json; echo '* filter=x' > .gitattributes;"
              "echo '*.c text' > a.txt; mkdir s; echo '*.c text' > s/.gitattributes; echo x >> .git/config;"
              "ln -s /etc/passwd out; ln -s ../../etc up; ln -s a in; echo b > a")
    run = passes(job(sh(script), cwd=top))
    dry = apply(run, "--dry-run").stdout
    contains(dry, "--select .envrc brings it)\n", "--dry-run")
    contains(dry, "\n.envrc: held back: ", "--dry-run")
    contains(dry, "+++ b/.envrc\n@@ -0,0 +1,1 @@\n+e\n", "--dry-run")
    done = apply(run, "--yes", "--json")
    eq(done.status, 1, "exit status")
    held = sorted(item["path"] for item in done.line["held"])
    want = sorted(".git/hooks/pre-commit .envrc .github/workflows/x.yml .VSCode/tasks.json .gitattributes .git/config"
                  " out up".split())
    eq(held, want, "held back")
    for path in want:
        check(path == ".git/config" or not os.path.lexists(f"{top}/{path}"), f"{path} was applied")
    eq([lib.read_bytes(f"{top}/{name}") for name in ("a", "a.txt", "s/.gitattributes", ".git/config", "in")],
       [b"b\n", b"*.c text\n", b"*.c text\n", b"[core]\n", b"b\n"], "the others")
    eq(apply(run, "--yes", "--select", ".git", "--select", ".github").status, 1, "a directory is not its name")
    check(not os.path.exists(f"{top}/.git/hooks/pre-commit"), "the hook was applied")
    # What has come by its name is there, and no longer held back.
    applied(run, "--select", ".envrc")
    again = apply(run, "--yes", "--json").line
    eq(sorted([*(item["path"] for item in again["held"]), ".envrc"]), want, "held back after .envrc")
    applied(run, *(f"--select={path}" for path in want))
    eq(lib.read_bytes(f"{top}/.git/hooks/pre-commit"), b"h\n", "the hook")


def replaced_by_link(name):
    def change(top, outside):
        shutil.rmtree(f"{top}/{name}")
        os.symlink(outside, f"{top}/{name}")
    return change


def workspace_moved(top, outside):
    subprocess.run(["cp", "-a", top, f"{outside}/moved"], check=True)
    shutil.rmtree(top)
    os.symlink(f"{outside}/moved", top)


def anew(name, how, *args):
    def change(top, _outside):
        if os.path.lexists(f"{top}/{name}"):
            os.unlink(f"{top}/{name}")
        how(f"{top}/{name}", *args)
    return change


def other_bytes(top, _outside):
    write(f"{top}/edit.txt", "one\nTWO\nthree\n")
    os.utime(f"{top}/edit.txt", (1, 1))


CONFLICT_SCRIPT = "echo x > edit.txt; rm gone.txt; echo x > new; rm -r old; echo y > sub/b; echo y > sub/deep/b"
CONFLICTS = [
    ("a changed file was changed", anew("edit.txt", write, "else\n")),
    ("same size, same time", other_bytes),
    ("a changed file is gone", lambda t, o: os.unlink(f"{t}/edit.txt")),
    ("its mode was changed", lambda t, o: os.chmod(f"{t}/edit.txt", 0o600)),
    ("a removed file was changed", anew("gone.txt", write, "new\n")),
    ("a new file is there", anew("new", write, "mine\n")),
    ("a link is there", lambda t, o: os.symlink(f"{o}/b", f"{t}/new")),
    ("a whiteout is there", anew("new", os.mknod, stat.S_IFCHR | 0o600, 0)),
    ("a whiteout took its place", anew("edit.txt", os.mknod, stat.S_IFCHR | 0o600, 0)),
    ("a FIFO is there", anew("new", os.mkfifo)),
    ("a FIFO took its place", anew("edit.txt", os.mkfifo)),
    ("a directory took its place", anew("edit.txt", os.mkdir)),
    ("a removed directory has more in it", anew("old/mine", write, "m\n")),
    ("a directory became a link", replaced_by_link("sub")),
    ("a directory below became a link", replaced_by_link("sub/deep")),
    ("a directory is gone", lambda t, o: shutil.rmtree(f"{t}/sub")),
    ("another mount lies there",
     lambda t, o: subprocess.run(["mount", "-t", "tmpfs", "tmpfs", f"{t}/sub/deep"], check=True)),
    ("the workspace became a link", workspace_moved),
]


@test(timeout=60)
def test_conflicts():
    """Where the workspace has moved on, nothing is changed, and nothing outside is touched."""
    top = make({**FILES, "sub/b": "b\n", "sub/deep/b": "b\n"})
    os.utime(f"{top}/edit.txt", (1, 1))
    run = passes(job(sh(CONFLICT_SCRIPT), cwd=top))
    saved = Saved(run, top)

    def conflict(_name, change):
        outside = scratch(lib.fresh_name("outside"))
        write(f"{outside}/b", "outside\n")
        write(f"{outside}/deep/b", "outside\n")
        lib.give(outside, lib.OWNER)
        change(top, outside)
        before, kept = lib.snapshot(outside), tree(top)
        try:
            refused(apply(run, "--yes"))
            same(tree(top), kept)
            lib.untouched(outside, before)
            check(os.path.exists(layer(run)), "the layer went")
        finally:
            lib.unmount_below(top)
            if os.path.islink(top):
                os.unlink(top)
            saved.restore()

    collect(CONFLICTS, conflict)
    os.symlink("/etc", f"{top}/.qscope-apply-{run['run_id']}")
    contains(refused(apply(run, "--yes"), 4).stderr, "remove it", "the sentence")
    check(not os.path.exists(f"{top}/new"), "it was applied")


@test()
def test_tampered_receipt():
    """A receipt is believed only if its digest is the one beside the layer; what leads outside is no receipt."""
    top = make({"a": "a\n"})
    run = passes(job(sh("echo b > a"), cwd=top))
    other = passes(job(sh("echo c > a"), cwd=top))
    before = tree(top)

    def tampered(_name, status, change):
        document = json.loads(lib.read_bytes(run.receipt_path))
        change(document)
        path = write(scratch(lib.fresh_name("t") + ".json"), json.dumps(document))
        refused(apply(path, "--yes"), status)
        refused(apply(path, "--yes", "--force"), status)
        same(tree(top), before)

    def path(name):
        return lambda d: d["fs"]["changed"][0].update(path=name)

    collect([
        ("another verdict", 3, lambda d: d.update(verdict="pass", x_mine=1)),
        ("another directory", 3, lambda d: d.update(cwd="/etc")),
        ("another run", 3, lambda d: d.update(run_id=other["run_id"])),
        ("a run that is a path", 3, lambda d: d.update(run_id="../receipts")),
        ("no run", 3, lambda d: d.pop("run_id")),
        ("..", 2, path("../../etc/passwd")),
        (".. within", 2, path("a/../../b")),
        ("//", 2, path("a//b")),
        ("empty", 2, path("")),
        ("a number", 2, path(7)),
        ("too long", 2, path("x" * 300)),
        ("NUL in base64", 2, lambda d: d["fs"]["changed"][0].update(path_base64="YQBi")),
        ("twice", 2, lambda d: d["fs"]["changed"].append(d["fs"]["changed"][0])),
        ("below a file", 2, lambda d: d["fs"]["added"].append({**d["fs"]["changed"][0]["after"], "path": "a/b"})),
        ("no digest", 2, lambda d: d["fs"]["changed"][0]["after"].update(sha256="../../x")),
        ("fs is a list", 2, lambda d: d.update(fs=[])),
        ("added is a string", 2, lambda d: d["fs"].update(added="x")),
        ("truncated", 2, lambda d: d["fs"].update(truncated=True)),
    ], tampered)
    blob = [name for name in os.listdir(layer(run)) if len(name) == 64][0]
    write(f"{layer(run)}/{blob}", "evil\n")
    contains(refused(apply(run, "--yes"), 3).stderr, "damaged", "the sentence")
    same(tree(top), before)


@test()
def test_locked():
    """Two applies of one layer do not run at once."""
    run = passes(job(sh("echo b > a"), cwd=make({"a": "a\n"})))
    fd = os.open(layer(run), os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(fd, fcntl.LOCK_EX)
    contains(refused(apply(run, "--yes")).stderr, "another qscope", "the sentence")
    os.close(fd)
    applied(run)


@test(timeout=120)
def test_killed_at_every_step():
    """Killed before or after any step, the next apply finishes it, or takes it back: never anything between."""
    ram = in_memory()
    top = make(at=f"{ram}/w")
    before, want = tree(top), expected(top, SCRIPT)
    run = kept_in(f"{ram}/state", job(sh(SCRIPT), cwd=top))
    saved = Saved(run, top)
    steps = 0

    def one(step, how, option, result):
        saved.restore()
        done = apply(run, "--yes", program=BROKEN, env={"QSCOPE_BREAK_APPLY": f"{how}:{step}"})
        if done.status == 0:
            return False
        eq(done.status, -signal.SIGKILL, f"exit status ({done.stderr})")
        again = apply(run, option)
        eq(again.status, 0, f"exit status of the second apply ({again.stderr.strip()} {again.stdout})")
        same(tree(top), result, f"killed at {how}:{step}, then {option}")
        return True

    # What is after one step is before the next. Each step with one of both here, with the other in every fifth.
    for step in range(1, 200):
        ways = [("--yes", want), ("--rollback", before)]
        if not one(step, "kill", *ways[step % 2]):
            break
        if step % 5 == 0:
            one(step, "kill-after", *ways[(step + 1) % 2])
        steps = step
    check(steps >= 30, f"only {steps} steps were seen")
    same(tree(top), want)


@test(timeout=60)
def test_no_space_at_every_step():
    """No space, at any step: the workspace is as it was, nothing of the stage remains, and it can be tried again."""
    ram = in_memory()
    top = make(at=f"{ram}/w")
    before = tree(top)
    run = kept_in(f"{ram}/state", job(sh(SCRIPT), cwd=top))
    want = expected(top, SCRIPT)
    for step in list(range(1, 40, 3)):
        done = apply(run, "--yes", program=BROKEN, env={"QSCOPE_BREAK_APPLY": f"enospc:{step}"})
        if done.status == 0:
            break
        refused(done, 4)
        contains(done.stderr, "No space left", "the sentence")
        same(tree(top), before, f"no space at step {step}")
    if os.path.exists(layer(run)):
        applied(run)
    same(tree(top), want)


@test()
def test_full_workspace():
    """A workspace that is really full is left as it was; with room made the same apply goes through."""
    top = workspace({})
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size=1M,mode=755,uid={lib.OWNER},gid={lib.OWNER}", "tmpfs", top],
                   check=True)
    write(f"{top}/ballast", b"b" * 700_000, uid=lib.OWNER)
    write(f"{top}/a", "a\n", uid=lib.OWNER)
    run = passes(job(sh("echo b > a; for i in 1 2 3 4; do head -c 100000 /dev/zero > new$i; done"), cwd=top))
    before = tree(top)
    done = refused(apply(run, "--yes"), 4)
    contains(done.stderr, "No space left", "the sentence")
    same(tree(top), before)
    write(f"{top}/ballast", b"", uid=lib.OWNER)
    applied(run)
    eq(sorted(os.listdir(top)), ["a", "ballast", "new1", "new2", "new3", "new4"], "names")


MANY = "for i in $(seq 1000); do echo new > f$i; done; mkdir d; for i in $(seq 50); do echo x > d/$i; done"


@test(timeout=120, needs=("speed",))
def test_thousand_changes():
    """A thousand changes, killed or interrupted at any moment, again and again: in the end all are there, and after
    a Ctrl-C all or none."""
    ram = in_memory()
    top = workspace({f"f{i}": "old\n" for i in range(1, 1001)}, at=f"{ram}/w")
    before = tree(top)
    run = kept_in(f"{ram}/state", job(sh(MANY), cwd=top, timeout_sec=60))
    want = {**before, **{f"f{i}": (*before[f"f{i}"][:4], b"new\n") for i in range(1, 1001)}}
    chance = random.Random(6)
    for _ in range(12):
        number = chance.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGINT])
        started = lib.start_qscope(["apply", "--yes", f"--state-dir={run.state}", run.receipt_path])
        try:
            started.process.wait(chance.uniform(0.02, 0.35))
        except subprocess.TimeoutExpired:
            started.kill(number)
        done = started.finish()
        if done.status == 0:
            break
        one_of(done.status, [-signal.SIGKILL, 130], f"exit status ({done.stderr})")
    if os.path.exists(layer(run)):
        applied(run)
    got = tree(top)
    eq({name for name in got if "qscope" in name}, set(), "what is left of the stage")
    same({name: got[name] for name in want}, want)
    eq(len(os.listdir(f"{top}/d")), 50, "files in d")


SWAP = """
import os, sys
top, outside = sys.argv[1:]
print("ready", flush=True)
while not os.path.exists(top + "/stop"):
    os.rename(top + "/d", top + "/aside")
    os.symlink(outside, top + "/d")
    os.unlink(top + "/d")
    os.rename(top + "/aside", top + "/d")
"""


@test(timeout=60)
def test_swapped_while_applying():
    """A directory that somebody swaps for a link all the time leads an apply nowhere, and what could not be done is
    done, or taken back, once there is peace."""
    ram = in_memory()
    top = make({f"d/f{i}": "old\n" for i in range(60)}, at=f"{ram}/w")
    outside = scratch("outside")
    os.makedirs(outside)
    script = "for i in $(seq 0 59); do echo new > d/f$i; echo new > d/n$i; done"
    want = expected(top, script)
    run = kept_in(f"{ram}/state", job(sh(script), cwd=top))
    swapper = subprocess.Popen(["python3", "-c", SWAP, top, outside], stdout=subprocess.PIPE)
    swapper.stdout.readline()
    for _ in range(8):
        done = apply(run, "--yes")
        one_of(done.status, [0, 3, 4], f"exit status ({done.stderr})")
        eq(os.listdir(outside), [], "what is outside")
        if done.status == 0:
            break
    write(f"{top}/stop")
    swapper.wait()
    os.unlink(f"{top}/stop")
    eq(os.listdir(outside), [], "what is outside")
    for _ in range(3):
        if os.path.exists(layer(run)):
            apply(run, "--yes")
    same(tree(top), want)


@test()
def test_changed_in_between():
    """A file that somebody changes while an apply is interrupted is nobody's but theirs: finishing refuses, taking
    back leaves it and says so."""
    top = make()
    run = passes(job(sh(SCRIPT), cwd=top))
    saved = Saved(run, top)
    for option in ("--yes", "--rollback"):
        saved.restore()
        apply(run, "--yes", program=BROKEN, env={"QSCOPE_BREAK_APPLY": "kill:35"})
        write(f"{top}/edit.txt", "mine\n", uid=lib.OWNER)
        contains(refused(apply(run, option)).stderr, "edit.txt" if option == "--rollback" else "interrupted",
                 "the sentence")
        eq(lib.read_bytes(f"{top}/edit.txt"), b"mine\n", "edit.txt")
    contains(qscope("clean", "--list").stdout, "interrupted", "the list")
    eq(qscope("clean", "--discard", run["run_id"]).status, 3, "an interrupted apply was discarded")
    shutil.rmtree(top)
    eq(qscope("clean", "--discard", run["run_id"]).status, 0, "exit status of --discard")


# --- what is kept -----------------------------------------------------------------------


@test()
def test_kept():
    """A layer is kept where something changed, in nobody's hands but root's, and as the options say."""
    top = make({"a": "a\n"})
    run = passes(job(["true"], cwd=top))
    eq((run["kept"], os.path.exists(layer(run))), ({"state": "nothing", "files": 0, "bytes": 0}, False), "kept")
    run = passes(job(sh("echo b > a"), cwd=top), options=["--no-keep"])
    eq((run["kept"]["state"], os.path.exists(layer(run))), ("off", False), "kept with --no-keep")
    run = passes(job(sh("echo b > a; echo b > b"), cwd=top))
    eq(run["kept"], {"state": "yes", "files": 1, "bytes": 2}, "kept")
    for path, mode in ((LAYERS, 0o40700), (layer(run), 0o40700), (f"{layer(run)}/layer.json", 0o100600)):
        info = os.lstat(path)
        eq((info.st_uid, info.st_mode), (0, mode), path)
    eq(qscope("clean", "--discard", run["run_id"]).status, 0, "exit status of --discard")
    eq(qscope("clean", "--discard", run["run_id"]).status, 3, "exit status of a second --discard")
    with lib.drop_in(KEEP, '// ours\n{"layers": {"each": "1K", "count": 2}}\n'):
        run = passes(job(sh("head -c 2000 /dev/zero > z"), cwd=top))
        eq((run["kept"]["state"], os.path.exists(layer(run))), ("too_large", False), "kept")
        runs = [passes(job(sh(f"echo {n} > a"), cwd=top)) for n in range(3)]
        eq([os.path.exists(layer(run)) for run in runs], [False, True, True], "layers")


@test()
def test_clean():
    """clean removes by age, number and size what the options say, says before what it would, and keeps receipts
    unless told otherwise."""
    state = scratch("state")
    top = make({"a": "a\n"})
    runs = [qscope("run", "--state-dir", state, "--cwd", top, "--", "sh", "-c", f"echo {n} > a") for n in range(3)]
    ids = [run.line["run_id"] for run in runs]
    eq(sorted(os.listdir(f"{state}/layers")), sorted(ids), "layers")

    def clean(*options):
        done = qscope("clean", "--state-dir", state, "--json", *options)
        eq(done.status, 0, f"exit status of clean ({done.stderr.strip()})")
        return done.line["layers"], done.line["receipts"]

    eq(clean(), (0, 0), "removed by default")
    eq(clean("--dry-run", "--layer-count", "1", "--receipt-total", "0"), (2, 3), "to be removed")
    eq(clean("--layer-count", "1"), (2, 0), "removed")
    eq(os.listdir(f"{state}/layers"), ids[2:], "layers")
    eq(clean("--layer-age", "1h"), (0, 0), "removed")
    eq(clean("--layer-age", "0s", "--receipt-age", "1h"), (1, 0), "removed")
    os.utime(runs[0].line["receipt"], (1, 1))
    eq(clean("--receipt-age", "52w"), (0, 1), "removed")
    eq(qscope("clean", "--layer-age", "soon").status, 2, "exit status of a bad age")
    with lib.drop_in(KEEP, '{"layers": {"agee": "1d"}}\n'):
        contains(refused(qscope("clean"), 2).stderr, "agee", "the sentence")


# --- diff -------------------------------------------------------------------------------


@test()
def test_diff():
    """Two runs of the same thing do not differ; of others it is said in what."""
    top = make({"a": "a\n"})
    runs = [passes(job(sh("echo hello; cat a > c"), cwd=top)) for _ in range(2)]
    done = qscope("diff", runs[0].receipt_path, runs[1].receipt_path)
    eq(done.status, 0, f"exit status of diff ({done.stdout})")
    other = fails(job(sh("echo hallo; cat a a > c; exit 3"), cwd=top))
    done = qscope("diff", runs[0].receipt_path, other.receipt_path)
    eq(done.status, 1, "exit status of diff")
    for part in ("! end", "exit_code:  0  ->  3", "-hello\n+hallo", "! files      c:"):
        contains(done.stdout, part, "diff")
    document = json.loads(qscope("diff", "--json", runs[0].receipt_path, other.receipt_path).stdout)
    eq((document["schema"], document["same"]), ("qscope.diff/v1", False), "the document")
    eq(qscope("diff", runs[0].receipt_path, write(scratch("no.json"), "{}")).status, 2, "exit status")
    eq(qscope("diff", runs[0].receipt_path).status, 2, "exit status")


@test()
def test_diff_directories():
    """Two directories are compared job by job, the newest receipt of each."""
    top = make({"a": "a\n"})
    for name, script in (("A", "cat a"), ("B", "cat a"), ("C", "cat a a")):
        os.makedirs(scratch(name))
        for number in range(2):
            passes(job(sh(script), cwd=top, job_id=f"j{number}"), receipt=scratch(f"{name}/{number}.json"))
    eq(qscope("diff", scratch("A"), scratch("B")).status, 0, "exit status for the same")
    os.unlink(scratch("C/1.json"))
    done = qscope("diff", scratch("A"), scratch("C"))
    eq(done.status, 1, "exit status for others")
    contains(done.stdout, "0 the same, 1 different, 1 only in A, 0 only in B", "the summary")
    write(scratch("B/table.json"), "[]")
    done = qscope("diff", scratch("A"), scratch("B"))
    eq(done.status, 2, "exit status with something that is no receipt")
    contains(done.stderr, "passed over", "stderr")
    contains(done.stdout, "2 the same, 0 different", "the summary")
