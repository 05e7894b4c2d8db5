# SPDX-License-Identifier: Apache-2.0
"""What a job changed, told exactly: the cases that other ways of comparing get wrong, and jobs that make it
hard on purpose."""

import json
import os
import socket
import stat
import struct

import host
import lib
from lib import (changed_paths, check, contains, eq, fails, job, passes, py, run_job, sh, sha256,
                 test, workspace)

GROUP = "fs"

KINDS = ("added", "removed", "changed")


def lists(run):
    """All paths of each list."""
    return {kind: changed_paths(run, kind) for kind in KINDS if run["fs"][kind]}


def changed(run, path):
    return entry(run, path, "changed")


def entry(run, path, kind="added"):
    found = [item for item in run["fs"][kind] if item["path"] == path]
    eq(len(found), 1, f"entries for {path!r} in fs.{kind}")
    return found[0]


def renames(run):
    return [(item["from"], item["to"], item["how"]) for item in run["fs"]["renames"]]


def complete(run):
    """The list is whole, and says so."""
    eq([run["fs"]["complete"], run["fs"]["truncated"]], [True, False], "complete, truncated")
    eq([run["fs"]["totals"][kind] for kind in KINDS], [len(run["fs"][kind]) for kind in KINDS],
       "totals")
    eq(len(run["fs"]["sha256"]), 64, "length of the digest")
    return run


# --- the twelve traps -------------------------------------------------------------------


@test("smoke")
def test_mode_only():
    """chmod alone is a change of the mode, and none of the content."""
    run = complete(passes(job(sh("chmod 755 a; chmod 700 d; chmod 644 b"),
                              cwd=workspace({"a": "x\n", "b": "y\n", "d/f": "z\n"}))))
    eq(lists(run), {"changed": ["a", "d"]}, "changes")
    one = changed(run, "a")
    eq([one["what"], one["before"]["mode"], one["after"]["mode"]], [["mode"], "0644", "0755"], "a")
    eq([one["before"]["sha256"], one["after"]["sha256"]], [sha256("x\n")] * 2, "digests of a")


@test()
def test_opened_for_append():
    """Copied up, but equal: opened to append, times set, owner and mode set to what they were."""
    run = complete(passes(job(sh(": >> a; touch -d 2001-01-01 b; chmod 644 c; chown $(id -u) c; "
                                 "touch d/new; rm d/new"),
                              cwd=workspace({"a": "x", "b": "y", "c": "z", "d/f": "1"}))))
    eq(lists(run), {}, "changes")


@test()
def test_renamed_and_back():
    """A file and a directory that were moved away and back have not changed."""
    run = complete(passes(job(sh("mv a b; mv b a; mv d e; mv e d; mv d/deep f; mv f d/deep"),
                              cwd=workspace({"a": "x", "d/f": "1", "d/deep/g": "2"}))))
    eq(lists(run), {}, "changes")
    eq(renames(run), [], "renames")


@test()
def test_same_bytes_again():
    """Written anew with the same bytes, in place and by a rename over it: no change."""
    run = complete(passes(job(sh("printf x > a; printf y > t; mv t b; rm c; printf z > c"),
                              cwd=workspace({"a": "x", "b": "y", "c": "z"}))))
    eq(lists(run), {}, "changes")


@test("smoke")
def test_same_size_and_time():
    """Other bytes with the old size and the old times are a change of the content."""
    code = ("import os; s = os.stat('a'); open('a', 'w').write('BBBB'); "
            "os.utime('a', ns=(s.st_atime_ns, s.st_mtime_ns))")
    run = complete(passes(job(py(code), cwd=workspace({"a": "AAAA"}))))
    eq(lists(run), {"changed": ["a"]}, "changes")
    one = changed(run, "a")
    eq([one["what"], one["before"]["sha256"], one["after"]["sha256"]],
       [["content"], sha256("AAAA"), sha256("BBBB")], "what changed")


@test()
def test_directory_made_again():
    """A directory removed and made again with one of its files: the others are removed, each."""
    run = complete(passes(job(sh("rm -r d; mkdir d; printf 1 > d/a; printf new > d/n"),
                              cwd=workspace({"d/a": "1", "d/b": "2", "d/sub/c": "3", "e": "4"}))))
    eq(lists(run), {"added": ["d/n"], "removed": ["d/b", "d/sub", "d/sub/c"]}, "changes")


@test()
def test_hard_links():
    """Names of one file are told: one beside a file that was there, two that are new; and what is
    written through one name is a change of the file."""
    run = complete(passes(job(sh("ln a one; printf n > new; ln new twin; ln b through; "
                                 "printf evil > through"),
                              cwd=workspace({"a": "x", "b": "y"}))))
    eq(lists(run), {"added": ["new", "one", "through", "twin"], "changed": ["b"]}, "changes")
    groups = [(group["links"], group["paths"]) for group in run["fs"]["hard_links"]]
    eq(groups, [(2, ["a", "one"]), (2, ["b", "through"]), (2, ["new", "twin"])], "hard links")
    eq([entry(run, "one")["links"], changed(run, "b")["after"]["links"]], [2, 2], "links")
    eq(changed(run, "b")["after"]["sha256"], sha256("evil"), "what was written through")
    run = fails(job(sh("ln b out/x; printf evil > out/x"), cwd=workspace({"b": "y", "out/f": ""}),
                    allow_changes=["out"]))
    eq(run["fs"]["unexpected"], ["b"], "unexpected")


def sparse_digest(size, blocks):
    """As documented: every block of 4096 bytes that is not all zero, by its offset."""
    data = b"".join(struct.pack("<Q", at) + block for at, block in sorted(blocks.items()))
    return sha256(data + struct.pack("<Q", size))


@test()
def test_sparse():
    """10 GiB of hole are told by both sizes and cost nothing; a small hole is read like zeros."""
    size = 10 << 30
    code = (f"import os\nf = open('huge', 'wb'); f.truncate({size}); f.seek({size - 3}); f.write(b'end')\n"
            "open('small', 'wb').truncate(1 << 20); os.chmod('old', 0o600)\n"
            f"g = open('old2', 'r+b'); g.seek({size // 2}); g.write(b'x')")
    top = workspace()
    for name in ("old", "old2"):
        with open(f"{top}/{name}", "wb") as file:
            file.truncate(size)
    lib.give(top, lib.OWNER)
    run = complete(passes(job(py(code), cwd=top)))
    eq(lists(run), {"added": ["huge", "small"], "changed": ["old", "old2"]}, "changes")
    huge, small = entry(run, "huge"), entry(run, "small")
    eq([huge["size"], huge["sha256"]], [size, None], "huge")
    check(huge["allocated"] < 1 << 20, f"huge occupies {huge['allocated']}")
    last = {size - 4096: b"\0" * 4093 + b"end"}
    eq(huge["sparse_sha256"], sparse_digest(size, last), "digest of huge")
    eq([small["size"], small["sha256"]], [1 << 20, sha256(b"\0" * (1 << 20))], "small")
    eq(changed(run, "old")["what"], ["mode"], "old")
    two = changed(run, "old2")
    eq([two["what"], two["before"]["sparse_sha256"]], [["content"], sparse_digest(size, {})], "old2")
    check(run["timing"]["diff"] < 3000 * host.slow(), f"the diff took {run['timing']['diff']} ms")


@test()
def test_special_files():
    """FIFOs, sockets and devices are typed and never opened, made or removed or replaced."""
    top = workspace({"file": "x"})
    os.mkfifo(f"{top}/fifo")
    os.mknod(f"{top}/zero", stat.S_IFCHR | 0o666, os.makedev(1, 5))
    os.mknod(f"{top}/disk", stat.S_IFBLK | 0o600, os.makedev(7, 200))
    lib.give(top, lib.OWNER)
    code = ("import os, socket\nos.mkfifo('new'); os.chdir('.')\n"
            "socket.socket(socket.AF_UNIX).bind('sock')\n"
            "os.unlink('zero'); os.unlink('disk'); os.unlink('file'); os.mkfifo('file')\n"
            "os.chmod('fifo', 0o600)\n"
            "try: os.mknod('/tmp/white', 0o20600, 0)\nexcept OSError: pass")
    run = passes(job(py(code), cwd=top))
    eq([entry(run, "new")["type"], entry(run, "sock")["type"]], ["fifo", "socket"], "types")
    removed = [entry(run, name, "removed") for name in ("zero", "disk")]
    eq([(item["type"], item["device"]) for item in removed], [("char", "1:5"), ("block", "7:200")],
       "devices")
    one = changed(run, "file")
    eq([one["what"], one["before"]["type"], one["after"]["type"]], [["type"], "file", "fifo"],
       "a file that became a FIFO")
    eq(changed(run, "fifo")["what"], ["mode"], "the FIFO that was there")


@test()
def test_attributes_only():
    """An extended attribute that was set, changed or removed, on files and directories."""
    top = workspace({"a": "x", "b": "y", "c": "z", "d/f": ""})
    for name in ("b", "c"):
        os.setxattr(f"{top}/{name}", "user.old", b"1")
    code = ("import os\nos.setxattr('a', 'user.new', b'v\\0w'); os.setxattr('b', 'user.old', b'2')\n"
            "os.removexattr('c', 'user.old'); os.setxattr('d', 'user.dir', b'')\n"
            "open('made', 'w'); os.setxattr('made', 'user.m', b'm')")
    run = complete(passes(job(py(code), cwd=top)))
    eq(lists(run), {"added": ["made"], "changed": ["a", "b", "c", "d"]}, "changes")
    for name in "abcd":
        eq(changed(run, name)["what"], ["xattr"], name)
    eq(changed(run, "a")["after"]["xattrs"],
       [{"name": "user.new", "size": 3, "sha256": sha256(b"v\0w")}], "attributes of a")
    eq([side.get("xattrs", [{}])[0].get("sha256") for side in
        (changed(run, "b")["before"], changed(run, "b")["after"], changed(run, "c")["before"],
         changed(run, "c")["after"])], [sha256("1"), sha256("2"), sha256("1"), None], "values")
    eq(entry(run, "made")["xattrs"][0]["name"], "user.m", "attributes of what is new")


@test()
def test_capabilities():
    """A file that had capabilities or was setuid and lost that by being written to."""
    top = workspace({"tool*": "x", "same*": "y", "su": "z"})
    capability = struct.pack("<5I", 0x02000001, 1 << 13, 0, 0, 0)
    for name in ("tool", "same"):
        os.setxattr(f"{top}/{name}", "security.capability", capability)
    os.chmod(f"{top}/su", 0o4755)
    run = complete(passes(job(sh("printf more >> tool; : >> same; printf more >> su"), cwd=top)))
    eq(lists(run), {"changed": ["su", "tool"]}, "changes")
    one, two = changed(run, "tool"), changed(run, "su")
    eq(one["what"], ["content", "xattr"], "tool")
    eq([one["before"]["capabilities"], one["after"].get("capabilities")], ["0000000000002000", None],
       "capabilities")
    eq([two["what"], two["before"]["setuid"], two["after"].get("setuid")],
       [["content", "mode"], True, None], "setuid")


ODD_NAMES = [b"new\nline", b"esc\x1b[31m", b"\xff\xfe", b"\\x0a", b" "]


@test()
def test_odd_names():
    """Names with newlines, escapes and bytes that are no text: each told apart, none lost, and
    judged by its bytes."""
    code = f"for name in {ODD_NAMES!r}: open(name, 'w').close()"
    run = fails(job(py(code), cwd=workspace(), allow_changes=[]))
    eq(len(run["fs"]["added"]), len(ODD_NAMES), "fs.added")
    names = [lib.base64.b64decode(item["path_base64"]) if "path_base64" in item
             else item["path"].encode() for item in run["fs"]["added"]]
    eq(sorted(names), sorted(ODD_NAMES), "names")
    unexpected = [lib.base64.b64decode(name) for name in run["fs"]["unexpected_base64"]]
    eq(sorted(unexpected), sorted(ODD_NAMES), "unexpected names")
    check("\x1b" not in json.dumps(run["reasons"]), "an escape in the reasons")


@test()
def test_links_that_lead_out():
    """What is written through a link is judged where it lands: in scratch space, elsewhere in the
    workspace, or not at all."""
    outside = workspace({"victim": "precious"}, uid=0)
    top = workspace({"src/main": "x", "out/f": "y"})
    os.symlink("/tmp/landed", f"{top}/out/tmp")
    os.symlink(f"{outside}/victim", f"{top}/out/away")
    os.symlink("../src/main", f"{top}/out/inside")
    script = ("echo 1 > out/tmp; echo 2 > out/inside; { echo 3 > out/away; } 2>/dev/null; "
              "ln -s /etc/passwd out/new; true")
    run = fails(job(sh(script), cwd=top, allow_changes=["out"]))
    eq(lists(run), {"added": ["/tmp/landed", "out/new"], "changed": ["src/main"]}, "changes")
    eq(run["fs"]["unexpected"], ["src/main"], "unexpected")
    eq(entry(run, "out/new")["target"], "/etc/passwd", "target")
    eq(host.read(f"{outside}/victim"), "precious", "the file outside")


# --- renames ----------------------------------------------------------------------------


@test()
def test_renames():
    """A moved directory, file, and a file that was changed after it was moved are told as moves;
    the lists have all of it all the same."""
    top = workspace({"d/a": "1", "d/sub/b": "2", "e/f": "3", "g": "4444", "h": "5", "empty": ""})
    run = complete(passes(job(sh("mv d moved; mv moved/sub/b moved/bb; mv e/f f2; mv g e/g; "
                                 "echo more >> e/g; mv empty none; cp h h2; rm h"), cwd=top)))
    eq(changed_paths(run, "removed"),
       ["d", "d/a", "d/sub", "d/sub/b", "e/f", "empty", "g", "h"], "removed")
    found = {(one, two): how for one, two, how in renames(run)}
    eq(found.pop(("d", "moved")), "directory", "the directory")
    eq(sorted(found), sorted(found.keys() & {("d/sub/b", "moved/bb"), ("e/f", "f2"), ("g", "e/g"),
                                             ("h", "h2"), ("empty", "none")}), "renames")
    check({("d/sub/b", "moved/bb"), ("e/f", "f2"), ("h", "h2")} <= found.keys(), f"only {found}")


@test()
def test_renamed_directories_in_each_other():
    """Moves inside moved directories, and a directory that takes the place of another."""
    top = workspace({"a/b/c/f": "1", "x/y/g": "2", "old/h": "3"})
    run = complete(passes(job(sh("mv a/b a/q; mv a z; mv z/q/c z/r; mv x w; rm -r old; mv w/y old"),
                              cwd=top)))
    found = {(one, two) for one, two, how in renames(run) if how == "directory"}
    check({("a", "z"), ("x", "w")} <= found, f"renames are {found}")
    check({("a/b/c", "z/r"), ("a/b", "z/q")} <= found, f"renames are {found}")
    eq(changed_paths(run, "removed"), ["a", "a/b", "a/b/c", "a/b/c/f", "old/h", "x", "x/y", "x/y/g"],
       "removed")
    eq(changed_paths(run, "added"), ["old/g", "w", "z", "z/q", "z/r", "z/r/f"], "added")


# --- what was agreed --------------------------------------------------------------------


@test()
def test_allowed_link():
    """An allowed path that is a link of the workspace stands for where it led before the run, and
    not for where the job turned it."""
    top = workspace({"build/x": "1", "src/main": "2"})
    os.symlink("build", f"{top}/out")
    passes(job(sh("echo n > out/new; echo m > build/x"), cwd=top, allow_changes=["out"]))
    passes(job(sh("echo n > out/x"), cwd=top, allow_changes=["out/x"]))
    run = fails(job(sh("rm out; ln -s src out; echo evil > out/main"), cwd=top,
                    allow_changes=["out"]))
    eq(run["fs"]["unexpected"], ["src/main"], "unexpected")


@test()
def test_allowed_by_the_other_name():
    """A workspace that is reached through a link: allowed paths may be written either way."""
    top = workspace({"a/f": "1"})
    link = f"{workspace()}/link"
    os.symlink(top, link)
    passes(job(sh("echo x > a/f"), cwd=link, allow_changes=[f"{top}/a"]))
    fails(job(sh("echo x > a/f"), cwd=link, allow_changes=[f"{top}/b"]))


@test()
def test_scratch_writes():
    """The policy's scratch_writes: reported, only counted, or judged by allow_changes."""
    script = "echo 1 > /tmp/t; echo 2 > /dev/shm/s; echo 3 > /var/tmp/v; echo 4 > $HOME/h; echo w > w"
    scratch = ["/dev/shm/s", "/root/h", "/tmp/t", "/var/tmp/v"]
    run = passes(sh(script))
    eq(changed_paths(run, "added"), scratch + ["w"], "reported")
    eq([run["fs"]["totals"]["scratch"], run["fs"]["scratch_writes"]], [4, "report"], "report")
    with lib.policy_drop_in(scratch_writes="allow"):
        run = passes(job(sh(script), allow_changes=["w"]))
        eq([changed_paths(run, "added"), run["fs"]["totals"]["scratch"], run["fs"]["truncated"]],
           [["w"], 4, False], "allow")
    with lib.policy_drop_in(scratch_writes="fail"):
        run = fails(sh(script))
        eq([reason["code"] for reason in run["reasons"]], ["scratch_write"], "reasons")
        eq(sorted(run["fs"]["unexpected"]), scratch, "unexpected")
        run = fails(job(sh(script), allow_changes=["w", "/tmp", "/root", "/dev/shm/s"]))
        eq(run["fs"]["unexpected"], ["/var/tmp/v"], "unexpected")
        passes(job(sh("echo w > w; cat /dev/null > /dev/null"), allow_changes=["w"]))


# --- bounds -----------------------------------------------------------------------------


@test(slow=True)
def test_one_bad_among_many():
    """Behind ten thousand changes that were agreed, the one that was not is found and listed."""
    code = ("for i in range(10500): open(f'out/{i}', 'w').close()\n"
            "open('zz', 'w').write('bad')")
    top = workspace({"out/f": "", "zz": "good"})
    run = fails(job(py(code), cwd=top, allow_changes=["out"]))
    eq([run["fs"]["unexpected"], run["fs"]["truncated"]], [["zz"], True], "unexpected")
    eq(run["fs"]["totals"], {"added": 10500, "removed": 0, "changed": 1, "scratch": 0,
                             "unexpected": 1}, "totals")
    passes(job(py(code), cwd=top, allow_changes=["out", "zz"]))


@test(slow=True)
def test_digest_covers_what_is_not_listed():
    """Two jobs that differ only in a change beyond the list have different digests, and the same
    job twice has the same."""
    code = ("import sys\n"
            "for i in range(int(sys.argv[1])): open(f'{i:05}' + 'x' * (i == int(sys.argv[2])), 'w')")
    digests = []
    for n, which in ((20, 5), (20, 5), (11200, 5), (11200, 11100)):
        run = passes(job(py(code, str(n), str(which)), cwd=workspace()))
        eq([run["fs"]["totals"]["added"], run["fs"]["truncated"]], [n, n > 10000], "totals")
        digests.append(run["fs"]["sha256"])
    eq([digests[0] == digests[1], digests[2] == digests[3]], [True, False], "equal digests")


DEEP = """
import os, sys
for i in range(int(sys.argv[1])):
    os.mkdir('d'); os.chdir('d')
open('end', 'w')
"""


@test()
def test_deepest():
    """A tree 4000 deep is walked whole, though not all of its long paths are listed; one that is
    deeper than can be followed is lost evidence, and never a pass."""
    run = passes(job(py(DEEP, "4000"), cwd=workspace(), limits={"inodes": 20000}))
    eq([run["fs"]["totals"]["added"], run["fs"]["complete"]], [4001, True], "added, complete")
    check(os.path.getsize(run.receipt_path) < 32 << 20, "the receipt is over 32 MiB")
    run = lib.errors(job(py(DEEP, "6000"), cwd=workspace(), limits={"inodes": 20000}))
    eq([reason["code"] for reason in run["reasons"]], ["evidence_lost"], "reasons")
    eq([run["fs"]["complete"], run["fs"]["sha256"]], [False, None], "complete")
    check(run["fs"]["added"], "what was seen is not listed")


@test()
def test_many_attributes():
    """As many and as large attributes as the file system takes: listed in part, counted, digested."""
    code = ("import os\nopen('f', 'w'); n = 0\ntry:\n"
            "    while n < 3000: os.setxattr('f', f'user.{n:04}', b'v' * (n % 50)); n += 1\n"
            "except OSError: pass\nprint(n)\n"
            "for size in (65536, 3000, 100):\n"
            "    try: os.setxattr('f', 'user.large', b'L' * size); break\n"
            "    except OSError: pass")
    run = passes(job(py(code), cwd=workspace()))
    one = entry(run, "f")
    check(len(one["xattrs"]) <= 32, f"{len(one['xattrs'])} attributes are listed")
    total = one.get("xattrs_total", len(one["xattrs"]))
    check(total >= int(run.out), f"{total} attributes of {run.out}")


@test()
def test_swapping_until_killed():
    """A process that swaps directories for links until it is killed: everything is still when it is
    looked at, nothing is followed, the lists fit each other."""
    code = """
import os, sys
os.makedirs('a/deep'); open('a/deep/f', 'w').write('x'); os.symlink('/usr', 'l')
if os.fork() == 0:
    sys.stdout.flush()
    while True:
        os.rename('a', 'b'); os.rename('l', 'a'); os.rename('a', 'l'); os.rename('b', 'a')
"""
    run = fails(job(py(code), cwd=workspace()))
    eq([reason["code"] for reason in run["reasons"]], ["leftover_process"], "reasons")
    complete(run)
    paths = changed_paths(run, "added")
    check(len(paths) in (3, 4), f"added {paths}")
    links = [item for item in run["fs"]["added"] if item["type"] == "symlink"]
    check(all(item["target"] == "/usr" for item in links), f"links {links}")
    check(not [path for path in paths if "bin" in path], f"the link was followed: {paths}")


@test()
def test_nothing_is_hidden_by_modes():
    """Directories and files without any permission, as deep as one likes, are read all the same."""
    script = ("mkdir -p x/y/z; echo secret > x/y/z/f; echo 1 > old/f; chmod 000 x/y/z/f old/f; "
              "chmod 000 x/y/z; chmod 000 x/y; chmod 000 x old")
    run = complete(passes(job(sh(script), cwd=workspace({"old/f": "0"}))))
    eq(lists(run), {"added": ["x", "x/y", "x/y/z", "x/y/z/f"], "changed": ["old", "old/f"]},
       "changes")
    eq(entry(run, "x/y/z/f")["sha256"], sha256("secret\n"), "content")


@test()
def test_many_descriptors():
    """A job that holds ten thousand descriptors, deleted files among them, at its end."""
    code = ("import os, resource\n"
            "fds = [os.open(f't{i}', os.O_CREAT | os.O_RDWR) for i in range(500)]\n"
            "for i in range(0, 500, 2): os.unlink(f't{i}')\n"
            "for i in range(9400): fds.append(os.dup(fds[i % 500]))\nos.write(fds[0], b'deleted')\n"
            "os._exit(0)")
    run = complete(passes(job(py(code), cwd=workspace(), limits={"open_files": 10000})))
    eq(run["fs"]["totals"]["added"], 250, "added")


# --- cost -------------------------------------------------------------------------------


def many_files(n):
    top = workspace({"f": ""})
    for i in range(n // 100):
        os.mkdir(f"{top}/{i}")
        for j in range(100):
            with open(f"{top}/{i}/{j}", "wb") as file:
                file.write(b"%d" % j)
    lib.give(top, lib.OWNER)
    return top


def cost(top, phases=("prepare", "diff")):
    """The least of some runs that change ten files: noise only adds."""
    script = "for i in 1 2 3 4 5 6 7 8; do echo x > 0/$i; done; rm 0/9; echo n > 0/new"
    runs = [passes(job(sh(script), cwd=top)) for _ in range(4)]
    for run in runs:
        eq(sum(run["fs"]["totals"][kind] for kind in KINDS), 10, "changes")
    return [min(run["timing"][phase] for run in runs) for phase in phases]


@test(timeout=60, slow=True)
def test_cost_follows_the_changes():
    """Ten changes cost the same in a hundred files and in ten thousand."""
    small, large = cost(many_files(100)), cost(many_files(10000))
    for name, one, many in zip(("prepare", "diff"), small, large):
        check(many <= 1.5 * one + 5 * host.slow(), f"{name}: {one} ms in 100 files, {many} in 10000")


@test()
def test_copied_workspace_says_so():
    """Where the workspace has to be copied, the cost cannot follow the changes: the receipt says
    that, and what a copy does not keep."""
    top = workspace({"a": "x", "mnt": None})
    lib.subprocess.run(["mount", "-t", "tmpfs", "tmpfs", f"{top}/mnt"], check=True)
    run = passes(job(sh("echo y > a"), cwd=top))
    contains(run["fs"]["method"], "copy", "fs.method")
    check([text for text in run["blind_spots"] if "copied" in text], "no blind spot says so")
    eq(lists(run), {"changed": ["a"]}, "changes")


@test()
def test_special_names_of_overlayfs():
    """Names and attributes that overlayfs gives a meaning to are only names for a job."""
    code = ("import os\nos.mkdir('d/.wh.f'); open('.wh..wh..opq', 'w')\n"
            "for name in ('user.overlay.opaque', 'trusted.overlay.opaque'):\n"
            "    try: os.setxattr('d', name, b'y')\n    except OSError as e: pass\n"
            "s = socket = None")
    run = passes(job(py(code), cwd=workspace({"d/f": "1", "d/g": "2"})))
    eq(changed_paths(run, "removed"), [], "removed")
    eq(changed_paths(run, "added"), [".wh..wh..opq", "d/.wh.f"], "added")


@test()
def test_socket_of_the_workspace():
    """A socket that a job replaces by a file, and a file by a socket."""
    top = workspace({"f": "x"})
    os.chdir(top)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("s")
        lib.give(top, lib.OWNER)
        code = ("import os, socket\nos.unlink('s'); open('s', 'w').write('file')\n"
                "os.unlink('f'); socket.socket(socket.AF_UNIX).bind('f')")
        run = complete(passes(job(py(code), cwd=top)))
    os.chdir("/")
    eq([(changed(run, name)["before"]["type"], changed(run, name)["after"]["type"])
        for name in ("s", "f")], [("socket", "file"), ("file", "socket")], "types")
