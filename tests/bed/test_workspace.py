# SPDX-License-Identifier: Apache-2.0
"""The workspace: seen at its own path, writable, and never changed for real."""

import json
import os
import socket
import subprocess

import host
import lib
from lib import (b64, changed_paths, check, collect, contains, eq, fail, job, mentions, one_of,
                 passes, py, run_job, sh, sha256, test, workspace)

GROUP = "workspace"

TREE = {
    "a.txt": "alpha\n",
    "b.txt": "beta\n",
    "dir/one": "1\n",
    "dir/two": "2\n",
    "dir/deep/er/three": "3\n",
    "gone/x": "x\n",
    "run.sh*": "#!/bin/sh\necho ran\n",
}


# --- the real directory is untouched ----------------------------------------------------

CHANGES = """
set -e
echo more >> a.txt; : > b.txt; rm dir/one; echo new > dir/new; mkdir -p made/here
chmod 600 dir/two; mv dir/deep dir/moved; rm -r gone; ln -s a.txt link; ln a.txt hard
echo over > run.sh; mkfifo pipe; touch -d 2001-01-01 b.txt
cat a.txt dir/moved/er/three; ls
"""


@test("smoke", "vm")
def test_real_directory_is_untouched():
    """Whatever a job writes, deletes and renames, the directory keeps every byte, mode, owner,
    time and link, while the job itself sees its changes."""
    top = workspace(TREE)
    before = lib.snapshot(top)
    run = passes(job(sh(CHANGES), cwd=top))
    eq(run.out, "alpha\nmore\n3\na.txt\nb.txt\ndir\nhard\nlink\nmade\npipe\nrun.sh\n", "its view")
    lib.untouched(top, before)


@test()
def test_changes_are_listed():
    """Every path that was written, made or removed is in the receipt, relative to the workspace."""
    run = passes(job(sh("echo y >> a.txt; rm b.txt; mkdir new; echo z > new/z"),
                     cwd=workspace(TREE)))
    eq(changed_paths(run, "changed"), ["a.txt"], "fs.changed")
    eq(changed_paths(run, "removed"), ["b.txt"], "fs.removed")
    eq(changed_paths(run, "added"), ["new", "new/z"], "fs.added")


@test()
def test_no_changes():
    """A job that only reads has an empty list: no noise that a reviewer learns to overlook."""
    run = passes(job(sh("cat a.txt dir/*; ls -lR; ./run.sh"), cwd=workspace(TREE)))
    eq([run["fs"][kind] for kind in ("added", "removed", "changed")], [[], [], []], "fs")


@test()
def test_remove_everything():
    """The deleting mistake that starts all these stories: the real directory does not notice."""
    top = workspace({**TREE, ".hidden": "h"})
    before = lib.snapshot(top)
    run = passes(job(sh("rm -rf ./* .hidden; ls -A; rm -rf \"$PWD\" 2>/dev/null; true"), cwd=top))
    eq(run.out, "", "what was left in its view")
    lib.untouched(top, before)
    contains(changed_paths(run, "removed"), "a.txt", "fs.removed")


@test()
def test_rename_of_a_lower_directory():
    """Renaming a directory that was there before works (npm and rustup do it), both ways."""
    code = "import os; os.rename('dir', 'other'); os.rename('other', 'dir'); os.rename('dir', 'd')"
    top = workspace(TREE)
    before = lib.snapshot(top)
    run = passes(job(py(code + "; print(open('d/deep/er/three').read())"), cwd=top))
    eq(run.out, "3\n\n", "content after the rename")
    lib.untouched(top, before)
    check(run["fs"]["added"] and run["fs"]["removed"], "the rename left no trace in fs")


@test()
def test_scratch_writes_are_reported():
    """What a job writes to /tmp, /var/tmp, /dev/shm and its home is reported by absolute path,
    and is gone afterwards."""
    name = f"bed-scratch-{os.getpid()}"
    places = ["/tmp", "/var/tmp", "/dev/shm", "/root"]
    script = "; ".join(f"echo x > {place}/{name}" for place in places)
    run = passes(sh(script))
    eq(changed_paths(run, "added"), sorted(f"{place}/{name}" for place in places), "fs.added")
    eq([place for place in places if os.path.exists(f"{place}/{name}")], [], "files on the host")


@test()
def test_two_jobs_in_one_workspace():
    """Jobs at the same time in one directory do not see each other's writes."""
    top = workspace(TREE)
    script = "echo $1 > a.txt; touch made-$1; sleep 1; cat a.txt; ls -d made-*"
    runs = [lib.start_job(job(["sh", "-c", script, "sh", str(n)], cwd=top)) for n in (1, 2)]
    outs = [lib.verdict(run.finish(), 0, "pass").out for run in runs]
    eq(outs, ["1\nmade-1\n", "2\nmade-2\n"], "what each saw")


# --- who may write what -----------------------------------------------------------------


@test("smoke", "vm")
def test_owner_is_the_job():
    """The job owns the workspace of whoever owns it: files look like its own and can be written."""
    for uid in (0, lib.OWNER, 64999):
        top = workspace(TREE, uid=uid)
        run = passes(job(sh("test -O . && test -O a.txt && echo x > a.txt && touch new && "
                            "stat -c %U:%G a.txt new && id -un"), cwd=top))
        names = run.out.split()
        eq(names[:2], [f"{names[2]}:{names[2]}"] * 2, f"owner and group with uid {uid}")


@test()
def test_what_the_owner_may_not():
    """A root-owned file in a user's directory stays unwritable, a secret one unreadable."""
    top = workspace(TREE)
    lib.write(f"{top}/roots", "root's\n", 0o644, 0)
    lib.write(f"{top}/secret", "secret\n", 0o600, 0)
    run = passes(job(sh("cat roots; ! echo x >> roots; ! cat secret; ! chmod 777 secret; "
                        "! chown $(id -u) roots"), cwd=top))
    eq(run.out, "root's\n", "what was read")
    lib.lacks(json.dumps(run.receipt), "secret\\n", "the receipt")


@test()
def test_unwritable_directory():
    """A directory its owner made read-only is read-only for the job."""
    top = workspace({"locked/x": "x"})
    os.chmod(f"{top}/locked", 0o555)
    passes(job(sh("cat locked/x && ! touch locked/y"), cwd=top))


# --- where a workspace may lie ----------------------------------------------------------


def at_place(place):
    check(not os.path.exists(place), f"{place} is there already")
    parent = os.path.dirname(place)
    made = not os.path.isdir(parent)
    top = workspace(TREE, at=place)
    try:
        before = lib.snapshot(top)
        run = passes(job(sh("pwd; cat a.txt; echo x > a.txt; mv dir d; rm b.txt"), cwd=top))
        eq(run.out, f"{place}\nalpha\n", "its view")
        eq(changed_paths(run, "changed"), ["a.txt"], "fs.changed")
        lib.untouched(top, before)
    finally:
        subprocess.run(["rm", "-rf", top], check=True)
        if made:
            os.rmdir(parent)


PLACES = ["/opt/bed-project", "/tmp/bed-project", "/root/bed-project", "/home/u/x", "/home/u",
          "/srv/bed-project", "/var/tmp/bed-project", "/var/lib/bed-project", "/bed-project",
          "/mnt/bed-project"]


@test(timeout=40)
def test_places():
    """A workspace works wherever people keep one, also on an overlay (as /opt is in a container),
    on a tmpfs, in a home that is hidden, and below the private /tmp."""
    collect([(place,) for place in PLACES], at_place)


NAMES = ["with space", "comma,colon:semi;", "per%cent%n", "back\\slash", 'quo"te\'s', "é-\u200b",
         "$HOME", "new\nline", "\x1b[31m", "*", "-dash", "=", "trail ", "#hash", "x" * 200]


def named(name):
    top = workspace(TREE, at=f"{workspace()}/{name}/w")
    run = passes(job(["sh", "-c", "pwd; cat a.txt; echo x > a.txt"], cwd=top))
    eq(run.out, f"{top}\nalpha\n", "its view")
    eq(run["cwd"], top, "cwd in the receipt")


@test(timeout=40)
def test_names():
    """The workspace's path may hold whatever a file name may: mount options, systemd's specifiers
    and escapes are not a user's problem."""
    collect([(name,) for name in NAMES], named)


@test()
def test_long_path():
    """A path longer than a mount option may be (256 bytes) works."""
    top = workspace(TREE, at="/".join([workspace()] + ["d" * 100] * 8))
    eq(passes(job(sh("cat a.txt; echo x > a.txt"), cwd=top)).out, "alpha\n", "its view")


SYSTEM_DIRECTORIES = ["/", "/usr", "/usr/bin", "/etc", "/proc", "/sys", "/dev", "/run", "/proc/1",
                      "/sys/fs/cgroup", "/boot", "/bin"]


def system_directory(path):
    run = run_job(job(["true"], cwd=path))
    one_of(run.status, (2, 3, 4), "qscope's exit status")
    contains(run.stderr + json.dumps(run.receipt), path, "the sentence")


@test()
def test_system_directories():
    """A system directory is no workspace: refused with a sentence, nothing is started."""
    with lib.nothing_started():
        collect([(path,) for path in SYSTEM_DIRECTORIES], system_directory)


@test()
def test_bad_cwd_values():
    """A relative or empty cwd is a mistake in the job file."""
    for cwd in ("src", "", "./x", "../x", "~", "a\u0001"):
        run = run_job(job(["true"], cwd=cwd))
        eq(run.status, 2, f"exit status for {cwd!r}")
        contains(run.stderr, "cwd", "stderr")


@test()
def test_symbolic_link():
    """A workspace reached through a link is seen at the path the job names."""
    top = workspace(TREE)
    link = f"{workspace()}/link"
    os.symlink(top, link)
    before = lib.snapshot(top)
    run = passes(job(sh(f"cat {link}/a.txt; cat a.txt; echo x > a.txt"), cwd=link))
    eq(run.out, "alpha\nalpha\n", "its view")
    lib.untouched(top, before)
    check(os.path.islink(link), "the link is gone")


@test()
def test_dots_in_the_path():
    """Dots and doubled slashes do not lead elsewhere; ".." is refused, as links make it ambiguous."""
    top = workspace(TREE)
    eq(passes(job(sh("pwd -P; cat a.txt"), cwd=f"{top}/.//./")).out, f"{top}\nalpha\n", "view")
    run = run_job(job(sh("pwd"), cwd=f"{top}/dir/.."))
    eq(run.status, 3, "exit status")
    contains(json.dumps(run["reasons"]), "..", "the sentence")


@test()
def test_mount_below():
    """A workspace with another mount in it: the job sees the whole tree, or is refused with a
    sentence that names the mount; never half a tree."""
    top = workspace({**TREE, "mnt": None})
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", f"{top}/mnt"], check=True)
    lib.write(f"{top}/mnt/inner", "inner\n", uid=lib.OWNER)
    run = run_job(job(sh("cat mnt/inner; echo x > mnt/inner; echo y > a.txt"), cwd=top))
    eq(host.read(f"{top}/mnt/inner"), "inner\n", "the real file on the mount")
    if run.status == 0:
        eq(run.out, "inner\n", "its view")
    else:
        one_of(run.status, (3, 4), "qscope's exit status")
        contains(run.stderr + json.dumps(run["reasons"]), "mnt", "the sentence")


@test()
def test_workspace_is_a_mount():
    """A workspace that is itself a mount (a tmpfs here, which old kernels cannot id-map) works."""
    top = workspace()
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", top], check=True)
    lib.write(f"{top}/a.txt", "alpha\n")
    lib.give(top, lib.OWNER)
    run = passes(job(sh("cat a.txt; echo x >> a.txt; touch b"), cwd=top))
    eq(run.out, "alpha\n", "its view")
    eq([host.read(f"{top}/a.txt"), os.listdir(top)], ["alpha\n", ["a.txt"]], "the real directory")


@test()
def test_read_only_workspace():
    """A workspace on a read-only mount is writable for the job all the same: it is a layer."""
    top = workspace(TREE)
    subprocess.run(["mount", "--bind", top, top], check=True)
    subprocess.run(["mount", "-o", "remount,bind,ro", top], check=True)
    eq(passes(job(sh("echo x > a.txt; cat a.txt"), cwd=top)).out, "x\n", "its view")


@test()
def test_parents_are_empty():
    """Beside the workspace's own path the job sees nothing of the directories above it."""
    top = workspace(TREE, at=f"{workspace({'neighbour/secret': 's'})}/mine")
    run = passes(job(sh("ls -A .. ; ls -A ../.."), cwd=top))
    eq(run.out.split()[0], "mine", "the parent directory")
    lib.lacks(run.out, "neighbour", "what is beside it")


# --- fresh workspaces and files ---------------------------------------------------------


@test("smoke")
def test_fresh():
    """"fresh" is an empty, writable directory at the job's cwd; the real one is not seen."""
    top = workspace(TREE)
    before = lib.snapshot(top)
    run = passes(job(sh("pwd; ls -A; echo x > a.txt; cat a.txt"), cwd=top, workspace="fresh"))
    eq(run.out, f"{top}\nx\n", "its view")
    lib.untouched(top, before)


@test("smoke")
def test_files():
    """`files` are there before the run, with content and mode, and are not the job's changes."""
    source = lib.write(lib.scratch("source"), b"\x00\xffsource")
    files = [
        {"path": "main.py", "content": "print('é')\n"},
        {"path": "data/raw.bin", "content_base64": b64(b"\x00\x01\xfe\xff")},
        {"path": "copy.bin", "source": source},
        {"path": "bin/tool", "content": "#!/bin/sh\necho tool\n", "mode": "0755"},
        {"path": "empty", "content": ""},
    ]
    script = ("python3 main.py; sha256sum data/raw.bin copy.bin | cut -c1-64; bin/tool; "
              "stat -c %a main.py bin/tool; stat -c %s empty; test -O main.py && echo mine")
    run = passes(job(sh(script), files=files))
    want = ["é", sha256(b"\x00\x01\xfe\xff"), sha256(b"\x00\xffsource"), "tool", "644", "755", "0",
            "mine"]
    eq(run.out.split("\n")[:-1], want, "what the job saw")
    eq([run["fs"][kind] for kind in ("added", "removed", "changed")], [[], [], []], "fs")


@test()
def test_files_without_cwd_are_fresh():
    """With files and without cwd the workspace holds these files and nothing of the caller's."""
    files = [{"path": "only", "content": "x"}]
    run = passes(job(["ls", "-A"], files=files), cwd=workspace(TREE))
    eq(run.out, "only\n", "its view")


@test()
def test_files_over_a_workspace():
    """Files are laid over the workspace; only what the job then does is a change."""
    top = workspace(TREE)
    before = lib.snapshot(top)
    files = [{"path": "a.txt", "content": "given\n"}, {"path": "new/file", "content": "n\n"}]
    run = passes(job(sh("cat a.txt b.txt new/file; echo x >> b.txt"), cwd=top, files=files))
    eq(run.out, "given\nbeta\nn\n", "its view")
    eq([changed_paths(run, "changed"), changed_paths(run, "added")], [["b.txt"], []], "fs")
    lib.untouched(top, before)


BAD_PATHS = ["", ".", "..", "../x", "a/../../x", "/etc/cron.d/x", "/x", "a/..", "a//../../b"]


def bad_path(path):
    run = run_job(job(["true"], files=[{"path": path, "content": "x"}]))
    eq(run.status, 2, "exit status")
    contains(run.stderr, "files[0]", "stderr")


@test()
def test_files_never_outside():
    """A path of `files` that leads out of the workspace is a mistake in the job."""
    with lib.nothing_started():
        collect([(path,) for path in BAD_PATHS], bad_path)


@test()
def test_files_through_links():
    """A link that lies in the workspace does not carry `files` out of it, neither by directory
    nor by name."""
    outside = workspace({"target": "precious\n"}, uid=0)
    top = workspace(TREE)
    os.symlink(outside, f"{top}/out")
    os.symlink(f"{outside}/target", f"{top}/name")
    for path in ("out/planted", "out/target", "name"):
        run = run_job(job(["true"], cwd=top, files=[{"path": path, "content": "evil"}]))
        one_of(run.status, (0, 2, 3, 4), "exit status")
        eq(os.listdir(outside), ["target"], f"outside after {path}")
        eq(host.read(f"{outside}/target"), "precious\n", f"the target after {path}")


@test()
def test_source_that_is_not_there():
    """A source that cannot be read is named, and nothing is started."""
    with lib.nothing_started():
        run = run_job(job(["true"], files=[{"path": "a", "source": "/nonexistent/source"}]))
    one_of(run.status, (2, 4), "exit status")
    contains(run.stderr + json.dumps(run.receipt), "/nonexistent/source", "the sentence")


@test()
def test_source_is_not_a_file():
    """A FIFO or a device as a source neither hangs nor fills the disk."""
    fifo = lib.scratch("fifo")
    os.mkfifo(fifo)
    for source in (fifo, "/dev/zero", "/etc"):
        run = run_job(job(["true"], files=[{"path": "a", "source": source}]))
        one_of(run.status, (2, 4), f"exit status for {source}")
        contains(run.stderr + json.dumps(run.receipt), source, "the sentence")


# --- what a job may make in it ----------------------------------------------------------


@test()
def test_hostile_names():
    """File names that are not text stay evidence: the receipt is valid and lists each."""
    code = ("import os\n"
            "names = [b'new\\nline', b'esc\\x1b[31m', b'\\xff\\xfe', b'sp ace', b'\"quote', "
            "b'x' * 255, 'é'.encode(), b'-rf', b'\\\\']\n"
            "for n in names: open(n, 'w').close()")
    run = passes(job(py(code), cwd=workspace()))
    eq(len(run["fs"]["added"]), 9, "fs.added")
    contains(changed_paths(run, "added"), "new\nline", "fs.added")


@test()
def test_special_files():
    """A FIFO, a socket and links left in the workspace neither hang qscope nor are followed."""
    code = ("import os, socket\nos.mkfifo('fifo')\nsocket.socket(socket.AF_UNIX).bind('sock')\n"
            "os.symlink('/etc/shadow', 'shadow'); os.symlink('.', 'self'); os.symlink('x', 'x')")
    run = passes(job(py(code), cwd=workspace()))
    eq(changed_paths(run, "added"), ["fifo", "self", "shadow", "sock", "x"], "fs.added")
    kinds = {item["path"]: item["type"] for item in run["fs"]["added"]}
    eq([kinds["fifo"], kinds["sock"], kinds["shadow"]], ["fifo", "socket", "symlink"], "types")


@test()
def test_special_files_in_the_real_directory():
    """The same lying there before the run."""
    top = workspace(TREE)
    os.mkfifo(f"{top}/fifo")
    with socket.socket(socket.AF_UNIX) as listener:
        os.chdir(top)
        listener.bind("sock")
        os.symlink("/nonexistent", f"{top}/dangling")
        lib.give(top, lib.OWNER)
        passes(job(sh("ls -l; rm fifo sock dangling"), cwd=top))
    check(os.path.exists(f"{top}/fifo"), "the real FIFO is gone")
    os.chdir("/")


@test()
def test_deep_tree():
    """A tree deeper than a path may be long is walked, listed as far as it goes, and removed."""
    code = "import os\nfor _ in range(900): os.mkdir('ddddd'); os.chdir('ddddd')\nopen('f', 'w')"
    run = passes(job(py(code), cwd=workspace()))
    check(run["fs"]["added"], "fs.added is empty")


@test()
def test_many_changes():
    """Five thousand new files: the receipt stays readable, and what it leaves out it says."""
    run = passes(job(py("for i in range(5000): open(f'f{i}', 'w').close()"), cwd=workspace()))
    listed = len(run["fs"]["added"])
    if listed < 5000:
        eq(run["fs"]["truncated"], True, "fs.truncated")
        contains(json.dumps(run["fs"]), "5000", "the total in fs")
    check(os.path.getsize(run.receipt_path) < 16 << 20, "the receipt is over 16 MiB")


@test()
def test_unreadable_leftovers():
    """Files a job made unreadable even for itself are still listed, and do not stop the removal."""
    run = passes(job(sh("mkdir d; echo x > d/f; chmod 000 d/f d"), cwd=workspace()))
    eq(changed_paths(run, "added"), ["d", "d/f"], "fs.added")


# --- standard input ---------------------------------------------------------------------


@test()
def test_stdin_default():
    """Without stdin the job reads /dev/null, never what qscope's caller has there."""
    with open(lib.write(lib.scratch("in"), "the caller's secret"), "rb") as file:
        run = passes(sh("readlink /proc/self/fd/0; cat"), stdin=file)
    eq(run.out, "/dev/null\n", "what the job has as stdin")


@test("smoke")
def test_stdin_forms():
    """Text, base64 and a file arrive byte for byte, then the end of the file."""
    raw = bytes(range(256)) * 40
    path = lib.write(lib.scratch("in"), raw * 200)
    digest = ["sha256sum"]
    cases = [({"stdin": "a\né\x01 $HOME %n"}, "a\né\x01 $HOME %n".encode()), ({"stdin": ""}, b""),
             ({"stdin_base64": b64(raw)}, raw), ({"stdin": {"file": path}}, raw * 200)]
    for fields, want in cases:
        run = passes(job(digest, **fields))
        eq(run.out.split()[0], sha256(want), f"digest of {lib.short(fields, 60)}")


@test()
def test_stdin_not_read():
    """A job that does not read its large stdin ends as it would elsewhere."""
    path = lib.write(lib.scratch("in"), b"x" * 4_000_000)
    passes(job(["true"], stdin={"file": path}))
    eq(passes(job(["head", "-c", "3"], stdin={"file": path})).out, "xxx", "the first bytes")
    passes(job(["true"], stdin="y" * 500_000))


@test()
def test_stdin_file_is_not_handed_over():
    """The stdin file is read only: the job cannot write to it, however it opens it."""
    path = lib.write(lib.scratch("in"), "given\n", 0o666)
    run = run_job(job(sh("cat; echo x > /dev/stdin; echo y >> /proc/self/fd/0; echo z >&0"),
                      stdin={"file": path}, expected_exit="any"))
    eq(run.out, "given\n", "stdout")
    eq(host.read(path), "given\n", "the file")


@test()
def test_stdin_that_is_not_there():
    """A stdin file that cannot be read is named before anything starts."""
    with lib.nothing_started():
        run = run_job(job(["cat"], stdin={"file": "/nonexistent/in"}))
    one_of(run.status, (2, 4), "exit status")
    mentions(run.stderr + json.dumps(run.receipt), ["/nonexistent/in"], "the sentence")


@test()
def test_stdin_both_ways():
    """stdin and stdin_base64 together are a mistake."""
    run = run_job(job(["cat"], stdin="a", stdin_base64="YQ=="))
    eq(run.status, 2, "exit status")
    if "stdin" not in run.stderr:
        fail(f"stderr does not name stdin: {run.stderr!r}")
