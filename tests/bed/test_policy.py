# SPDX-License-Identifier: Apache-2.0
"""Policies: which one is in force, and that what it says holds in the job."""

import contextlib
import json
import os
import re
import shutil
import subprocess

import host
import lib
from lib import (check, contains, eq, errors, fails, lacks, mentions, one_of, passes, py, rejected, sh,
                 test, workspace)

GROUP = "policy"


def place(name, top="/etc", **content):
    """A policy's file for a block of the test."""
    text = content.pop("text", None)
    return lib.drop_in(f"{top}/qscope/policies/{name}", json.dumps(content) if text is None else text)


@contextlib.contextmanager
def policy(**content):
    """A policy that extends the default, for jobs that name "bed-test"."""
    with place("bed-test.json", extends="default", **content):
        yield


def job(argv, **fields):
    return {"argv": argv, "policy": "bed-test", **fields}


def tells(argv, want, **fields):
    eq(passes(job(argv, **fields)).out, want, "stdout")


# --- which one is in force ---------------------------------------------------------------


@test("smoke")
def test_lookup():
    """/etc before /usr/local/lib before /usr/lib; a link to /dev/null masks; drop-ins of all of them."""
    def description():
        run = lib.qscope("policy", "show", "bed-test", "--json")
        return json.loads(run.stdout)["policy"]["description"] if run.status == 0 else run.stderr

    with place("bed-test.json", "/usr/lib", description="vendor"):
        eq(description(), "vendor")
        with place("bed-test.json", "/usr/local/lib", description="local"):
            eq(description(), "local")
            with place("bed-test.json", description="admin"):
                eq(description(), "admin")
                with place("bed-test.json.d/5.json", "/usr/lib", description="drop-in"):
                    eq(description(), "drop-in")
                    contains(lib.qscope("policy", "list").stdout,
                             "\n  file  /usr/lib/qscope/policies/bed-test.json.d/5.json\n", "the list")
                    os.symlink("/dev/null", "/etc/qscope/policies/null")
                    os.makedirs("/etc/qscope/policies/bed-test.json.d")
                    os.rename("/etc/qscope/policies/null", "/etc/qscope/policies/bed-test.json.d/5.json")
                    eq(description(), "admin", "with the drop-in masked")
                    shutil.rmtree("/etc/qscope/policies/bed-test.json.d")
        os.symlink("/dev/null", "/etc/qscope/policies/bed-test.json")
        contains(description(), "is masked")
        os.unlink("/etc/qscope/policies/bed-test.json")


@test()
def test_list_and_show():
    """list has every policy that is installed; what show prints is a policy that lint takes."""
    text = lib.qscope("policy", "list").stdout
    for name in ("build", "default", "eval", "strict", "trusted"):
        contains(text, f"\n  file  /usr/lib/qscope/policies/{name}.json", "the list")
        shown = lib.qscope("policy", "show", name)
        eq(shown.status, 0, f"show {name}")
        contains(shown.stdout, "// /usr/lib/qscope/policies/", "the origin")
        path = lib.write(lib.scratch(f"{name}.json"), shown.stdout)
        # The bed may have lifted a limit of the default; that is told, and reads.
        one_of(lib.qscope("policy", "lint", path).status, (0, 1), f"lint of {name} as shown")


@test()
def test_lint():
    """Faults are named with file, line and key; doubts are told; a drop-in is judged by itself."""
    bad = lib.write(lib.scratch("bad.json"), '{\n"name": "bad",\n"max": {"timeout": 1}}')
    run = lib.qscope("policy", "lint", bad)
    eq(run.status, 2, "exit status")
    contains(run.stderr, "bad.json: line 3: policy.max.timeout: unknown key (did you mean")
    doubtful = lib.write(lib.scratch("doubtful.json"), "{}")
    run = lib.qscope("policy", "lint", doubtful)
    eq(run.status, 1, "exit status")
    contains(run.stdout, "policy.max.limits.memory is missing")
    eq(lib.qscope("policy", "lint", lib.write(lib.scratch("x.json.d/1.json"), "{}")).status, 0, "drop-in")
    program, link = os.path.realpath("/usr/bin/env"), lib.scratch("link")
    os.symlink(program, link)
    for rules, doubts in (([link], 1), ([link, program], 0), ([os.path.basename(program), "no-such"], 0)):
        linked = lib.write(lib.scratch("linked.json"),
                           json.dumps({"extends": "default", "allow_exec": rules}))
        run = lib.qscope("policy", "lint", linked)
        eq(run.status, doubts, f"exit status with {rules}: {run.stdout}")
        eq(run.stdout.count(f"{link} is a link to {program} here"), doubts, "links")


@test()
def test_a_policy_that_others_may_write():
    """Whoever can write a policy decides what jobs may do: one that everybody can is not believed."""
    with policy(), lib.nothing_started():
        os.chmod("/etc/qscope/policies/bed-test.json", 0o666)
        run = lib.run_job(job(["true"]))
        eq(run.status, 2, "exit status")
        contains(run.stderr, "others may write it")


@test()
def test_extends_in_a_circle():
    """A circle is refused, with the chain."""
    with place("bed-a.json", extends="bed-b"), place("bed-b.json", extends="bed-a"):
        run = lib.run_job({"argv": ["true"], "policy": "bed-a"})
        eq(run.status, 2, "exit status")
        contains(run.stderr, "bed-a -> bed-b -> bed-a")


# --- what it says holds ------------------------------------------------------------------


@test("smoke")
def test_hidden_paths():
    """Neither content nor names of a hidden directory, nor a hidden file, can be read: of the system,
    in the workspace, through links and by the workspace's other name."""
    top = workspace({"secret/key": "s3cr3t", "file": "s3cr3t", "other": "plain", "inner/secret/x": "s3cr3t"})
    os.symlink("secret/key", f"{top}/link")
    os.symlink("secret", f"{top}/dir")
    other = lib.scratch("alias")
    os.symlink(top, other)
    look = sh("cat secret/key link dir/key file inner/secret/x 2>/dev/null; ls secret inner/secret "
              "/usr/share/doc 2>/dev/null; cat other; mv secret gone 2>/dev/null; rm -rf secret file "
              "2>/dev/null; test -d secret && echo there")
    hidden = [f"{top}/secret", f"{top}/file", f"{top}/inner/secret", f"{top}/none", "/usr/share/doc"]
    with policy(hidden_paths=hidden):
        run = passes(job(look, cwd=top))
        eq(run.out, "plainthere\n", "stdout")
        eq(run["isolation"][f"hidden:{top}/secret"]["holds"], True, "the fact")
        eq(run["fs"]["added"] + run["fs"]["changed"] + run["fs"]["removed"], [], "changes")
        run = passes(job(look, cwd=other))
        eq(run.out, "plainthere\n", "stdout by the other name")
        check(not os.path.exists(f"{top}/none"), "a hidden path that was not there was made")
        # What the job file names is read by qscope: not from there either.
        run = lib.run_job(job(["cat"], cwd=top, stdin={"file": "secret/key"}))
        eq(run.status, 4, "exit status with a hidden stdin")
        contains(json.dumps(run["reasons"]), "which the policy hides")
        with lib.nothing_started():
            rejected(job(["true"], cwd=f"{top}/inner/secret"))
    eq(lib.read_bytes(f"{top}/secret/key"), b"s3cr3t", "the real file")


@test()
def test_hidden_through_hostile_links():
    """A workspace whose parts are links out of it hides nothing but what the job itself would see."""
    top = workspace({"README": ""})
    os.symlink("/usr/bin", f"{top}/a")
    os.symlink("/proc/1/root", f"{top}/b")
    with policy(hidden_paths=[f"{top}/a", f"{top}/b/etc"]):
        run = lib.run_job(job(["/bin/true"], cwd=top))
        check(run.status in (0, 1), f"exit status {run.status}")
    check(os.listdir("/usr/bin"), "the host's /usr/bin is still there")
    eq(passes(["true"])["verdict"], "pass")


@test()
def test_read_only_paths():
    """Paths of the host are shown and cannot be written: beside the workspace, in a home, and in it."""
    tools = f"{lib.SCRATCH}/tools"
    lib.write(f"{tools}/bin/hello", "#!/bin/sh\necho hello\n", 0o755)
    lib.write("/opt/bed-test.conf", "conf\n")
    lib.write("/home/bed/.tool/x", "home\n")
    top = workspace({"src/a": "a\n", "b": "b\n"})
    try:
        with policy(read_only_paths=[tools, "/opt/bed-test.conf", "/home/bed/.tool", f"{top}/src", "/none"],
                    default={"env": {"HOME": "/home/bed"}}):
            run = passes(job(sh(f"{tools}/bin/hello; cat /opt/bed-test.conf ~/.tool/x src/a; "
                                f"for f in {tools}/y /opt/bed-test.conf ~/.tool/x src/a src/n; do "
                                "(echo x > $f) 2>/dev/null && echo wrote $f; done; "
                                "echo more >> b; echo y > ~/mine; test -e /none || echo none"), cwd=top))
            eq(run.out, "hello\nconf\nhome\na\nnone\n", "stdout")
            eq([entry["path"] for entry in run["fs"]["changed"]], ["b"], "changed")
            eq([entry["path"] for entry in run["fs"]["added"]], ["/home/bed/mine"], "added")
            facts = run["isolation"]
            check(facts[f"read_only:{tools}"]["holds"] and facts[f"read_only:{top}/src"]["holds"], "the facts")
    finally:
        shutil.rmtree(tools)
        shutil.rmtree("/home/bed")
        os.unlink("/opt/bed-test.conf")


def make_system(top):
    """Another system: a shell, a file that tells, and no links of ours."""
    busybox = host.find_program("busybox")
    if not busybox:
        raise lib.Lacks("busybox")
    lib.write(f"{top}/usr/bin/sh", lib.read_bytes(busybox), 0o755)
    os.symlink("usr/bin", f"{top}/bin")
    for name in ("cat", "ls", "id", "touch"):
        os.symlink("sh", f"{top}/usr/bin/{name}")
    for name in ("etc/other-release", "etc/passwd", "opt/there", "var/hidden", "home/x/secret", "tmp/old"):
        lib.write(f"{top}/{name}", "other\n")


LOOK = ("cat /etc/other-release /opt/there; ls /home /tmp /var /usr/bin | cat; id -un; cat note; "
        "for d in /usr /etc /opt; do touch $d/x 2>/dev/null && echo wrote $d; done; touch mine")


def look_at_system(root):
    with policy(root=root):
        run = passes(job(["sh", "-c", LOOK], cwd=workspace({"note": "mine\n"})))
    contains(run.out, "other\nother\n", "stdout")
    contains(run.out, "\njob\nmine\n", "stdout")
    for word in ("python3", "secret", "hidden", "old", "wrote"):
        lacks(run.out, word, "stdout")
    eq([entry["path"] for entry in run["fs"]["added"]], ["mine"], "added")
    check(run["isolation"]["mount:/usr"]["holds"] and run["isolation"]["mount:/etc"]["holds"], "the facts")


@test()
def test_another_root():
    """A job in the directory of another system sees that one's programs and /etc, nothing of ours, and has
    a user, a home and a workspace there all the same."""
    make_system(lib.scratch("system"))
    look_at_system(lib.scratch("system"))


@test()
def test_a_root_image():
    """The same from an image of a file system."""
    make_system(lib.scratch("system"))
    image = lib.scratch("system.ext4")
    with open(image, "wb") as file:
        file.truncate(16 << 20)
    subprocess.run(["mke2fs", "-q", "-t", "ext4", "-d", lib.scratch("system"), image], check=True)
    look_at_system(image)


@test()
def test_a_root_that_is_none():
    """A root that is not there, or holds no system: an error that names it, nothing is started."""
    for root in ("/srv/nowhere", lib.scratch("empty"), lib.write(lib.scratch("noise.img"), "x" * 4096)):
        os.makedirs(lib.scratch("empty"), exist_ok=True)
        with policy(root=root), lib.nothing_started():
            run = errors(job(["true"]))
            contains(json.dumps(run["reasons"]), os.path.basename(root), "reasons")


@test("smoke")
def test_require():
    """A required fact that does not hold, though nobody asked systemd for it: exit 4, and the command is
    never started."""
    top = workspace({"a": ""})
    with policy(properties={"PrivateIPC": False}, require=["namespace.ipc"]):
        run = errors(job(sh("touch ran"), cwd=top))
        contains(json.dumps(run["reasons"]), "namespace.ipc", "reasons")
        eq(run["exit_code"], None, "exit_code")
        eq(run["fs"]["added"] if run["fs"] else [], [], "added")
    with policy(properties={"PrivateIPC": False}):
        passes(job(["true"], cwd=top))
    with policy(network=["none", "host"], require=["namespace.net"]):
        passes(job(["true"], cwd=top))
        run = errors(job(["true"], cwd=top, network="host"))
        contains(json.dumps(run["reasons"]), "was not observed", "reasons")


@test()
def test_defaults_and_fixed_values():
    """Every field of a job can have a default; what a job says itself goes first; fixed variables stay."""
    with policy(default={"expected_exit": 3, "env": {"A": "policy"}, "workspace": "fresh",
                         "expect": {"stdout": {"contains": "A="}}},
                env={"set": {"FIXED": "1"}, "deny": ["MY_*"]}):
        run = passes(job(sh("echo A=$A $FIXED; exit 3"), cwd=None), )
        eq(run.out, "A=policy 1\n", "stdout")
        fails(job(sh("exit 3"), expect={"stdout": {"equals": "x"}}))
        passes(job(sh("exit 0"), expected_exit=0, expect={}))
        env = {**lib.CALLER, "MY_AGENT": "s3cr3t"}
        run = passes(job(sh("env; exit 3"), env_allowlist=["MY_AGENT"], expect={}), env=env)
        lacks(run.out, "s3cr3t", "the job's environment")
        with lib.nothing_started():
            run = rejected(job(["true"], env={"FIXED": "2"}))
            contains(json.dumps(run["reasons"]), "FIXED")


@test()
def test_umask():
    """The job's umask is the policy's."""
    with policy(properties={"UMask": "0027"}):
        tells(sh("umask; touch a; stat -c %a a"), "0027\n640\n", cwd=workspace({}))


@test()
def test_properties_in_etc():
    """What a property takes away of /etc is not shown over it."""
    look = sh("ls /etc/alternatives | wc -l; ls /etc/ssl/certs >/dev/null 2>&1 && echo certificates")
    for asked, shown in (({"TemporaryFileSystem": ["/etc/alternatives"]}, r"0\ncertificates\n"),
                         ({"InaccessiblePaths": ["-+/etc/ssl"]}, r"[1-9]\d*\n")):
        with policy(properties=asked):
            run = lib.run_job(job(look, expected_exit="any", cwd=workspace({})))
            check(re.fullmatch(shown, run["stdout"]), f"{asked}: {run['stdout']!r} {run['reasons']}")


@test(needs=("controllers",), timeout=40)
def test_throttling():
    """A job that is slowed down is reported, and fails where the policy says so."""
    spin = py("import time\nend = time.monotonic() + 1\nwhile time.monotonic() < end: pass")
    with policy():
        run = passes(job(spin, limits={"cpu": "20%"}))
        contains(run.all_hits, "cpu", "hits")
    with policy(throttling="fail"):
        run = fails(job(spin, limits={"cpu": "20%"}))
        contains(json.dumps(run["reasons"]), "slowed down")


# --- programs ------------------------------------------------------------------------------


SEQ = "/usr/bin/seq"
# Each tries to run the denied seq in another way; what it prints if it could is "1".
WAYS = [
    "seq 1", "/usr/bin/seq 1", "env seq 1", "sh -c 'exec seq 1'", "ln -s /usr/bin/seq s; ./s 1",
    "cp /usr/bin/seq copy; ./copy 1", "cp /usr/bin/seq /tmp/c; /tmp/c 1", "cp /usr/bin/seq /dev/shm/c; /dev/shm/c 1",
    "printf '#!/usr/bin/seq\\n1\\n' > i; chmod +x i; ./i", "printf '#!/bin/sh\\nseq 1\\n' > t; chmod +x t; ./t",
    "python3 -c 'import subprocess; subprocess.run([\"seq\", \"1\"])'",
    "python3 -c 'import os; os.execv(\"/proc/self/fd/%d\" % os.open(\"/usr/bin/seq\", 0), [\"x\", \"1\"])'",
    "python3 -c 'import os; os.posix_spawn(\"/usr/bin/seq\", [\"x\", \"1\"], {})'",
    "cp /usr/bin/seq h; ln h hard; ./hard 1", "xargs -n 1 seq < /dev/null; echo 1 | xargs seq",
    "python3 -c 'import os; f = os.memfd_create(\"m\"); os.write(f, open(\"/usr/bin/seq\", \"rb\").read()); "
    "os.execve(f, [\"x\", \"1\"], {})'",
]


@test("smoke", timeout=40)
def test_denied_programs():
    """A denied program is refused before it runs, whoever starts it and under whatever name it goes, and the
    receipt says who tried; the job goes on."""
    lines = "\n".join(f"({way}) 2>/dev/null" for way in WAYS)
    digest = lib.sha256(lib.read_bytes(SEQ))
    with policy(deny_exec=["seq", f"sha256:{digest.upper()}"]):
        run = fails(job(sh(f"{lines}\necho end"), cwd=workspace({})))
        eq(run.out, "end\n", "stdout")
        eq([reason["code"] for reason in run["reasons"]], ["denied_exec"], "reasons")
        denied = run["processes"]["denied"]
        check(len(denied) >= len(WAYS) - 2, f"{len(denied)} refusals are listed")
        contains([item["rule"] for item in denied], "seq", "rules")
        contains([item["rule"] for item in denied], f"sha256:{digest}", "rules")
        contains({os.path.basename(item["by"] or "") for item in denied}, "env", "who tried")
        run = fails(job(["seq", "1"]))
        eq(run["exit_code"], 126, "exit_code")
        eq(run["exec"]["error"], "EPERM", "exec.error")
    with policy(deny_exec=["no-such-program"]):
        eq(passes(job(["seq", "1"])).out, "1\n", "what is not denied")


LOADER = "import os\nfor p in '/lib64/ld-linux-x86-64.so.2', '/proc/self/fd/%d', '/dev/fd/%d', 'link':\n" \
         " f = os.open('/lib64/ld-linux-x86-64.so.2', 0); os.set_inheritable(f, True)\n" \
         " if p == 'link': os.symlink('/proc/self/fd/%d' % f, p)\n" \
         " try: os.posix_spawn(p % f if '%' in p else p, ['ld', '/usr/bin/seq', '1'], {})\n" \
         " except PermissionError: print('no', flush=True)"


@test()
def test_the_loader_is_a_program():
    """The dynamic loader runs any program; started itself it is judged as one, also by a descriptor, which has
    no name that could be compared."""
    if not os.path.exists("/lib64/ld-linux-x86-64.so.2"):
        raise lib.Lacks("this machine's loader is called otherwise")
    for rules in ({"allow_exec": ["/usr/bin/python3*"]}, {"deny_exec": ["ld*.so*"]}):
        with policy(**rules):
            run = fails(job(py(LOADER)))
            eq(run.out, "no\n" * 4, f"stdout under {rules}")
            eq(run["processes"]["denied_total"], 4, "refusals")
    script = workspace({"seq*": "#!/lib64/ld-linux-x86-64.so.2 /usr/bin/seq\n", "twice*": "#!./seq\n",
                        "good*": "#!/bin/sh\necho good\n"})
    for rules in ({"allow_exec": ["dash", f"{script}/*"]}, {"deny_exec": ["ld*.so*"]}):
        with policy(**rules):
            for name in "./seq", "./twice":
                eq(fails(job([name], cwd=script))["processes"]["denied_total"], 1, f"refusals of {name} under {rules}")
            eq(passes(job(["./good"], cwd=script)).out, "good\n", "a script")


@test()
def test_denied_by_a_links_name():
    """A program is denied by the name that people know it by, which is often a link's (python3, sh, nc), and by its
    path in /bin; check says so, too. To be allowed, the file itself must be."""
    top = workspace({})
    os.symlink("/usr/bin/seq", f"{top}/python3")
    for rule, argv in (("python3", ["python3", "-c", "pass"]), ("/usr/bin/python3", ["python3", "-c", "pass"]),
                       ("/bin/seq", ["seq", "1"]), ("/usr/bin/seq", ["/bin/seq", "1"]), ("sh", ["sh", "-c", "true"])):
        with policy(deny_exec=[rule]):
            run = fails(job(argv))
            eq([item["rule"] for item in run["processes"]["denied"]], [rule], f"the rule for {argv}")
            checked = lib.qscope("check", "--json", lib.write_job(job(argv)))
            eq([checked.status, checked.line["reasons"][0]["code"]], [1, "denied_exec"], f"check of {argv}")
    with policy(allow_exec=["/bin/seq"]):
        passes(job(["seq", "1"]))
    with policy(allow_exec=["python3"]):
        fails(job(["./python3", "1"], cwd=top))
        checked = lib.qscope("check", lib.write_job(job(["./python3", "1"], cwd=top)))
        eq(checked.status, 1, "status of check")


@test()
def test_large_programs():
    """Digests of files that cost the job nothing do not keep qscope from the job's deadline."""
    code = ("import os\nfor i in range(200):\n if os.fork() == 0:\n"
            "  with open(f'f{i}', 'wb') as f: f.truncate(200 << 20); os.fchmod(f.fileno(), 0o755)\n"
            "  try: os.execv(f'./f{i}', ['x'])\n  finally: os._exit(0)\nwhile True: os.wait()")
    with policy(deny_exec=["sha256:" + "0" * 64]):
        run = lib.run_job(job(py(code), timeout_sec=1, workspace="fresh", cwd=None))
        if host.is_container():  # elsewhere 200 files may well take less
            eq(run["timed_out"], True, "timed_out")
            lib.between(run["duration_ms"], 1000, 1000 + lib.late_ms(), "duration_ms")
        run = fails(job(sh("truncate -s 1G f; chmod +x f; ./f"), expected_exit="any"))
        contains(run["reasons"][0]["message"], "too large", "the reason")


@test(timeout=40)
def test_allowed_programs():
    """Of a list of allowed programs only those run; a script needs its interpreter in it."""
    top = workspace({"script*": "#!/usr/bin/env python3\nprint('script')\n"})
    with policy(allow_exec=["/usr/bin/python3*", "env"]):
        eq(passes(job(py("print(1)"), cwd=top)).out, "1\n", "stdout")
        run = fails(job(py("import subprocess\ntry: subprocess.run(['ls'])\nexcept PermissionError: print('no')"),
                        cwd=top))
        eq(run.out, "no\n", "stdout")
        eq([item["rule"] for item in run["processes"]["denied"]], [None], "the refusal")
        fails(job(["./script"], cwd=top))
    with policy(allow_exec=["/usr/bin/python3*", "env", "script"]):
        eq(passes(job(["./script"], cwd=top)).out, "script\n", "stdout")
    digest = lib.sha256(lib.read_bytes(SEQ))
    with policy(allow_exec=[f"sha256:{digest}"]):
        eq(passes(job(["seq", "1"])).out, "1\n", "by its digest")
        fails(job(["ls"]))


# --- the ones that are installed -----------------------------------------------------------


PROGRAMS = [sh("echo ok | cat"), py("import threading, json, hashlib, subprocess\n"
                                    "subprocess.run(['true'], check=True)\n"
                                    "t = threading.Thread(target=print, args=('ok',)); t.start(); t.join()")]


@test(needs=("controllers",), timeout=60)
def test_shipped():
    """Ordinary programs run under each policy that is installed, and none has a network."""
    for name in ("build", "default", "eval", "strict"):
        for argv in PROGRAMS:
            eq(passes({"argv": argv, "policy": name, "timeout_sec": 60}).out, "ok\n", f"stdout under {name}")
        run = lib.run_job({"argv": py("import socket; socket.create_connection(('192.0.2.1', 9), 1)"),
                           "policy": name, "timeout_sec": 60})
        check(run.status != 0, f"{name}: a connection was made")


def exposure(name):
    """systemd's own opinion of a held job's unit, with the properties that qscope asked for."""
    path = lib.write_job({"argv": ["true"], "workspace": "fresh"})
    plan = json.loads(lib.qscope("plan", "--json", "--policy", name, path).stdout)
    skip = ("Description=", "Slice=", "BindReadOnlyPaths=", "CollectMode=")
    lines = [line for line in plan["units"]["service"]["properties"] if not line.startswith(skip)]
    unit = lib.write(lib.scratch("exposed.service"),
                     "[Service]\nExecStart=/usr/bin/true\n" + "\n".join(lines) + "\n")
    text = subprocess.run(["systemd-analyze", "security", "--offline=true", "--no-pager", unit],
                          capture_output=True, text=True, check=False).stdout
    return float(text.split("Overall exposure level for")[1].split(":")[1].split()[0])


@test()
def test_exposure():
    """`systemd-analyze security`: at most 0.9 for default, 0.5 for strict."""
    for name, most in (("default", 0.9), ("strict", 0.5)):
        check(exposure(name) <= most, f"exposure of {name}: {exposure(name)}, at most {most}")


# --- check and plan ------------------------------------------------------------------------


CHECKS = [
    (["python3"], {}, 0, "ok: "),
    (["./ok"], {}, 0, "ok: "),
    (["./link"], {}, 0, "ok: "),
    (["a.sh"], {"env": {"PATH": "sub:/usr/bin"}}, 0, "ok: sub/a.sh"),
    (["./new"], {"files": [{"path": "new", "content": "#!/bin/sh\n", "mode": "0755"}]}, 0, "ok: "),
    (["no-such-tool"], {}, 1, "not_found"),
    (["./noexec"], {}, 1, "not_executable"),
    (["./plain"], {}, 1, "no_shebang"),
    (["./interpreter"], {}, 1, "bad_interpreter"),
    (["./outside"], {}, 1, "not_found"),
    (["/opt/host-only"], {}, 1, "not_found"),
    (["true"], {"cwd": "/srv/nowhere"}, 1, "bad_cwd"),
    (["sudo"], {}, 3, "denied_argv0"),
    (["true"], {"timeout_sec": 604800}, 3, "over_ceiling"),
    (["true"], {"cwd": "/etc"}, 3, "workspace_refused"),
    (["true"], {"stdin": {"file": "ok"}, "files": [{"path": "x", "source": "ok"}]}, 0, "ok: "),
    (["true"], {"stdin": {"file": "none"}}, 4, "job.stdin: "),
    (["true"], {"files": [{"path": "x", "source": "/etc/shadow"}]}, 4, "job.files[0].source: /etc/shadow: "),
    (["true"], {"no_such_key": 1}, 2, "no_such_key"),
    (["true"], {"policy": "no-such"}, 2, "no-such"),
]


def check_case(argv, fields, status, word, top):
    run = lib.qscope("check", lib.write_job({"argv": argv, "cwd": top, **fields}))
    eq(run.status, status, "exit status")
    contains(run.stdout + run.stderr, word, "what it says")
    lines = lib.qscope("check", "--json", lib.write_job({"argv": argv, "cwd": top, **fields}))
    eq(lines.line["verdict"], {0: "pass", 1: "fail", 3: "rejected"}.get(status, "error"), "verdict")


@test("smoke")
def test_check():
    """check says beforehand what run says afterwards, and starts nothing."""
    script = "#!/bin/sh\n"
    top = workspace({"ok*": script, "noexec": script, "plain*": "echo\n", "interpreter*": "#!/none\n",
                     "sub/a.sh*": script})
    os.symlink("ok", f"{top}/link")
    os.symlink("/opt/host-only", f"{top}/outside")
    lib.write("/opt/host-only", script, 0o755)
    try:
        with lib.nothing_started():
            lib.collect([(*case, top) for case in CHECKS], check_case)
            run = lib.qscope("check", *[lib.write_job({"argv": argv, "cwd": top}) for argv in (["true"], ["sudo"])])
            eq(run.status, 3, "exit status of two")
    finally:
        os.unlink("/opt/host-only")


@test(timeout=60)
def test_check_agrees_with_run():
    """Whether a command is found and executed: check and run say the same."""
    script = "#!/bin/sh\n"
    top = workspace({"ok*": script, "noexec": script, "plain*": "echo\n", "interpreter*": "#!/none\n",
                     "crlf*": "#!/bin/sh\r\n", "empty*": "", "dir/x": ""})
    for argv in (["./ok"], ["./noexec"], ["./plain"], ["./interpreter"], ["./crlf"], ["./empty"], ["./dir"],
                 ["awk", "BEGIN { }"], ["/bin/true"], ["ok"]):
        checked = lib.qscope("check", "--json", lib.write_job({"argv": argv, "cwd": top})).line
        run = lib.run_job({"argv": argv, "cwd": top})
        kind = (run["exec"] or {}).get("kind")
        eq([checked["verdict"], checked["exec"].get("kind")], [run["verdict"], kind], f"{argv}")


@test()
def test_check_as_another_user():
    """check and plan need no root."""
    top = lib.workspace({"ok*": "#!/bin/sh\n"})
    path = lib.write(lib.scratch("job.json"), json.dumps({"argv": ["./ok"], "cwd": top}))
    os.chmod(os.path.dirname(path), 0o755)
    for verb in ("check", "plan"):
        run = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", lib.QSCOPE, verb,
                              path], capture_output=True, text=True, env=lib.CALLER, check=False)
        eq(run.returncode, 0, f"exit status of {verb}: {run.stderr}")


@test()
def test_nobody_reads():
    """A pipe that was closed is told as that."""
    path = lib.write_job({"argv": ["true"], "cwd": lib.workspace()})
    for verb in (["plan", path], ["log", "--json"]):
        reader, writer = os.pipe()
        os.close(reader)
        with os.fdopen(writer) as closed:
            run = subprocess.run([lib.QSCOPE, *verb], stdout=closed, stderr=subprocess.PIPE, text=True, env=lib.CALLER,
                                 check=False)
        told = verb[0] == "plan" or run.returncode != 0  # the journal may be empty
        eq(run.stderr, "qscope: standard output: Broken pipe\n" if told else "", "stderr")


@test()
def test_plan_and_by_hand():
    """plan has every property; the systemd-run line beside it can be typed as it is."""
    top = workspace({"a": "by hand\n"}, uid=0)
    os.chmod(top, 0o755)
    os.chmod(f"{top}/a", 0o644)
    path = lib.write_job({"argv": ["cat", "a", "$HOME"], "cwd": top, "env": {"TERM": "dumb"},
                          "expected_exit": 1, "limits": {"memory": None, "tasks": None, "cpu": None, "swap": None}})
    with lib.policy_drop_in(max={"limits": {"memory": None, "tasks": None, "cpu": None, "swap": None}}):
        with lib.nothing_started():
            text = lib.qscope("plan", path).stdout
            plan = json.loads(lib.qscope("plan", "--json", path).stdout)
    own = (plan["run_id"], plan["job_id"])
    for line in plan["units"]["service"]["properties"]:
        if any(word in line for word in own):
            continue
        contains(text, f"\n  {line}\n", "the text")
    line = text[text.index("\nsystemd-run ") + 1:]
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, env=lib.CALLER, check=False)
    contains(done.stdout, "by hand\n", f"stdout of the line ({done.stderr})")
    contains(done.stderr, "$HOME", "what was not expanded")


@test()
def test_plan_of_a_refused_job():
    """A plan is shown for a job that would be refused, too, with the reasons."""
    run = lib.qscope("plan", lib.write_job(["sudo", "true"]))
    eq(run.status, 3, "exit status")
    mentions(run.stdout, ["denied_argv0"], "the text")
