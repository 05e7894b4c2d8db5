# SPDX-License-Identifier: Apache-2.0
"""Ordinary programs find an ordinary system. Each of these was broken by some sandbox."""

import os
import subprocess

import host
import lib
from lib import (between, check, collect, contains, eq, fails, job, lacks, passes, py, sh,
                 test, workspace)

GROUP = "programs"


def prints(argv, want, **fields):
    run = passes(job(argv, **fields))
    eq(run.out, want, "stdout")
    return run


# --- who and where ----------------------------------------------------------------------


@test("smoke", "vm")
def test_who_am_i():
    """The job's uid has a name: id, whoami and Python's pwd and grp agree and do not fail."""
    code = ("import os, pwd, grp, getpass; u = pwd.getpwuid(os.getuid());"
            "print(u.pw_name, grp.getgrgid(os.getgid()).gr_name, u.pw_uid, getpass.getuser())")
    run = passes(sh(f"id -un; whoami; id -gn; id -u; python3 -c '{code}'"))
    name, whoami, group, uid, python = run.out.splitlines()
    eq([whoami, python], [name, f"{name} {group} {uid} {name}"], "names")
    check(int(uid) in host.JOB_UIDS, f"uid {uid} is not a job's")


@test()
def test_home_of_passwd():
    """The home in the job's passwd entry exists and is writable, also when HOME is not set."""
    code = "import os; p = os.path.expanduser('~/made'); open(p, 'w').close(); print(p)"
    run = passes(job(["/usr/bin/python3", "-c", code], env_allowlist=["PATH"]))
    check(run.out.startswith("/"), f"home {run.out!r}")


@test()
def test_home_and_tmp():
    """HOME is writable and empty; TMPDIR (or /tmp) takes files and is short enough for a socket."""
    code = ("import os, tempfile, socket\n"
            "print(os.listdir(os.environ['HOME']))\n"
            "open(os.environ['HOME'] + '/.cache-file', 'w').close()\n"
            "d = tempfile.mkdtemp()\n"
            "s = socket.socket(socket.AF_UNIX); s.bind(d + '/' + 'x' * 40)\n"
            "print(oct(os.stat('/tmp').st_mode), oct(os.stat('/var/tmp').st_mode))")
    prints(py(code), "[]\n0o41777 0o41777\n")


@test()
def test_home_is_the_workspaces_parent():
    """HOME above the workspace: both are writable, and the home shows nothing else."""
    top = workspace({"a": "x"}, at="/home/u/project")
    try:
        lib.write("/home/u/.secret", "s")
        run = passes(job(sh("cat a; touch ~/new && ls -A ~"), cwd=top, env={"HOME": "/home/u"}))
        eq(run.out, "xnew\nproject\n", "its view")
        check(not os.path.exists("/home/u/new"), "the real home was written")
    finally:
        subprocess.run(["rm", "-rf", "/home/u"], check=True)


@test()
def test_time_zone():
    """The zone is the host's, for C programs and for Python."""
    zone = subprocess.run(["date", "+%Z %z"], capture_output=True, text=True, check=True,
                          env={"PATH": lib.PATH}).stdout
    prints(sh("date '+%Z %z'; python3 -c 'import time; print(time.strftime(\"%Z %z\"))'"), zone * 2)


@test()
def test_utf8_locale():
    """Text in UTF-8 goes through Python and the C library."""
    code = ("import locale, sys; locale.setlocale(locale.LC_ALL, ''); print(sys.stdout.encoding, "
            "locale.nl_langinfo(locale.CODESET), 'é', sys.getfilesystemencoding())")
    for lang in ("C.UTF-8", "en_US.UTF-8"):
        prints(py(code), "utf-8 UTF-8 é utf-8\n", env={"LANG": lang})
    prints(sh("printf 'Äé' | wc -m; locale 2>&1 >/dev/null"), "2\n")


# --- names and addresses ----------------------------------------------------------------


@test("smoke")
def test_localhost():
    """localhost and the own host name resolve without a name server, at once."""
    code = ("import socket, time; t = time.monotonic();"
            "print(socket.gethostbyname('localhost'), bool(socket.getaddrinfo('localhost', 80)),"
            " bool(socket.getaddrinfo(socket.gethostname(), 80)), time.monotonic() - t)")
    runs = [passes(py(code)).out.rsplit(maxsplit=1) for _ in range(3)]
    eq({text for text, _ in runs}, {"127.0.0.1 True True"}, "stdout")
    # A resolver that asks somebody gives up after five seconds.
    best = min(float(seconds) for _, seconds in runs)
    check(best < 4.5, f"it took {best:.1f} s in the best of three")


@test()
def test_loopback():
    """A server and a client inside the job talk over 127.0.0.1, ::1 and a Unix socket."""
    code = ("import socket\n"
            "for f, a in ((2, ('127.0.0.1', 0)), (10, ('::1', 0)), (1, '/tmp/s')):\n"
            " s = socket.socket(f); s.bind(a); s.listen(); c = socket.socket(f)\n"
            " c.connect(s.getsockname()); p = s.accept()[0]; c.send(b'hi'); print(p.recv(9))\n"
            " p.close(); c.close(); s.close()")
    prints(py(code), "b'hi'\n" * 3)


@test()
def test_socket_servers():
    """A test suite that starts its own HTTP server and stops it leaves nothing and passes."""
    code = ("import threading, http.server as h, urllib.request as r\n"
            "s = h.ThreadingHTTPServer(('', 0), h.SimpleHTTPRequestHandler)\n"
            "threading.Thread(target=s.serve_forever).start()\n"
            "print(r.urlopen(f'http://localhost:{s.server_port}/README').status)\n"
            "s.shutdown(); s.server_close()")
    prints(py(code), "200\n")


@test()
def test_interfaces():
    """Listing the network interfaces works and shows the loopback."""
    prints(py("import socket; print('lo' in [n for _, n in socket.if_nameindex()])"), "True\n")


@test("smoke")
def test_certificates():
    """TLS trust is there: Python's ssl loads the system's certificates."""
    code = ("import ssl; c = ssl.create_default_context(); c.load_verify_locations("
            "'/etc/ssl/certs/ca-certificates.crt'); print(len(c.get_ca_certs()) > 20)")
    prints(py(code), "True\n")


# --- tools ------------------------------------------------------------------------------

TOOLS = [
    ("awk through alternatives", sh("awk 'BEGIN { print 6 * 7 }'"), "42\n"),
    ("each awk", sh("mawk 'BEGIN{print 1}'; gawk 'BEGIN{print 2}'"), "1\n2\n"),
    ("cat /dev/stdin", sh("echo given | cat /dev/stdin"), "given\n"),
    ("process substitution", ["bash", "-c", "cat <(echo a) <(echo b)"], "a\nb\n"),
    ("here documents", ["bash", "-c", "cat <<< x; cat << E\ny\nE"], "x\ny\n"),
    ("a pipe that is cut", ["bash", "-c", "yes | head -n 1; echo ${PIPESTATUS[0]}"], "y\n141\n"),
    ("pipefail", ["bash", "-ec", "set -o pipefail; yes | head -n 1 || echo $?"], "y\n141\n"),
    ("nice", sh("nice; nice -n 5 nice"), "0\n5\n"),
    ("free", sh("free | grep -c Mem"), "1\n"),
    ("ps of itself", sh("ps -o comm= -p $$"), "sh\n"),
    ("nproc", sh("test $(nproc) -ge 1 && echo ok"), "ok\n"),
    ("load average", sh("cut -d' ' -f1 /proc/loadavg | grep -c ."), "1\n"),
    ("uptime", sh("grep -c . /proc/uptime"), "1\n"),
    ("df", sh("df . >/dev/null && df /tmp > /dev/null && echo ok"), "ok\n"),
    ("mkfifo", sh("mkfifo p; echo x > p & cat p; wait"), "x\n"),
    ("tar", sh("mkdir d; echo 1 > d/f; tar czf d.tgz d; rm -r d; tar xzf d.tgz; cat d/f"), "1\n"),
    ("tar with owners", sh("echo 1 > f; tar cf t f; tar xpf t --same-owner && echo ok"), "ok\n"),
    ("cp -a", sh("echo 1 > f; chmod 640 f; touch -d 2001-01-01 f; cp -a f g; cp -p f /tmp/h;"
                 "stat -c '%a %Y' f g /tmp/h | uniq | wc -l"), "1\n"),
    ("install", sh("echo 1 > f; install -m 750 f g; stat -c %a g"), "750\n"),
    ("sed -i", sh("echo a > f; sed -i s/a/b/ f; cat f"), "b\n"),
    ("hard links", sh("echo 1 > f; ln f g; stat -c %h f"), "2\n"),
    ("hard link to an old file", sh("ln README l && stat -c %h l"), "2\n"),
    ("flock", sh("flock f echo locked"), "locked\n"),
    ("chown to itself", sh("touch f; chown $(id -u):$(id -g) f && echo ok"), "ok\n"),
    ("timeout", sh("timeout 0.2 sleep 5; echo $?"), "124\n"),
    ("setsid", sh("setsid --wait echo x"), "x\n"),
    ("xargs -P", sh("seq 4 | xargs -P4 -n1 echo | wc -l"), "4\n"),
    ("find -exec", sh("find . -name README -exec cat {} +"), "a workspace\n"),
    ("sort", sh("seq 1000 | sort -R | sort -n | tail -n 1"), "1000\n"),
    ("xz", sh("echo x | xz | xz -d"), "x\n"),
    ("jq", sh("echo '{\"a\":1}' | jq .a"), "1\n"),
    ("file", sh("file -b README"), "ASCII text\n"),
    ("perl", ["perl", "-e", "print getpwuid($>) ? 'known' : 'unknown'"], "known"),
    ("fsync", sh("dd if=/dev/zero of=f bs=4k count=1 conv=fsync 2>/dev/null && echo ok"), "ok\n"),
    ("urandom", sh("head -c 16 /dev/urandom | wc -c; head -c 1 /dev/random | wc -c"), "16\n1\n"),
    ("getconf", sh("test $(getconf ARG_MAX) -gt 100000 && getconf PATH >/dev/null && echo ok"),
     "ok\n"),
    ("nohup", sh("nohup echo x 2>/dev/null"), "x\n"),
    ("shell arithmetic and jobs", ["bash", "-c", "sleep 0.1 & wait $!; echo $?"], "0\n"),
    ("trap", sh("trap 'echo bye' EXIT; exit 0"), "bye\n"),
    ("self kill and trap", sh("trap 'echo term; exit 0' TERM; kill $$; sleep 1"), "term\n"),
    ("pwd", sh("test \"$PWD\" = \"$(pwd -P)\" && echo same"), "same\n"),
    ("tty says no", sh("tty"), "not a tty\n"),
    ("getent", sh("getent passwd $(id -u) | cut -d: -f3 | grep -cx $(id -u)"), "1\n"),
    ("getent group", sh("getent group $(id -g) >/dev/null && echo ok"), "ok\n"),
    ("root has a name", sh("stat -c %U /usr"), "root\n"),
]
# Programs that end with their own status.
STATUS = {"tty says no": 1}


def tool(_name, argv, want):
    run = lib.run_job(job(argv, expected_exit=STATUS.get(_name, 0)))
    eq(run["exit_code"], STATUS.get(_name, 0), "exit_code")
    eq(run.out, want, "stdout")
    eq([run.status, run["verdict"]], [0, "pass"], "status and verdict")


@test(timeout=60)
def test_tools():
    """The everyday tools of a shell do what they do elsewhere."""
    collect(TOOLS, tool)


@test(needs=["script"])
def test_pseudo_terminal():
    """The job may open terminals of its own: script(1) and pty.fork."""
    run = passes(sh("script -qec 'tty; echo in' /dev/null"))
    contains(run.out, "/dev/pts/", "script")
    contains(run.out, "in\r\n", "script")
    code = ("import os, pty\npid, fd = pty.fork()\n"
            "if pid == 0: os.execvp('stty', ['stty', 'size'])\n"
            "print(os.read(fd, 99)); os.waitpid(pid, 0)")
    prints(py(code), "b'0 0\\r\\n'\n")


@test()
def test_dev_full():
    """/dev/full is full, and that is no limit of ours."""
    run = fails(sh("echo x > /dev/full"))
    eq(run.hits, {}, "limits.hits")


@test()
def test_devices():
    """null, zero, full, random, tty's absence, and fd links are there; the modes are ordinary."""
    script = ("for d in null zero full random urandom; do test -c /dev/$d -a -r /dev/$d || "
              "echo $d; done; echo x > /dev/null; ls -l /dev/fd/ >/dev/null; test -d /dev/pts && "
              "test -w /dev/shm && echo ok")
    prints(sh(script), "ok\n")


# --- Python -----------------------------------------------------------------------------

PYTHON = [
    ("multiprocessing pool", "import multiprocessing as m\n"
     "if __name__ == '__main__':\n with m.Pool(3) as p: print(p.map(abs, [-1, 2, -3]))",
     "[1, 2, 3]\n"),
    ("spawned processes", "import concurrent.futures as c, multiprocessing as m, operator as o\n"
     "if __name__ == '__main__':\n"
     " with c.ProcessPoolExecutor(2, mp_context=m.get_context('spawn')) as p:\n"
     "  print(list(p.map(o.neg, [1, 2])))", "[-1, -2]\n"),
    ("shared memory", "from multiprocessing import shared_memory as s\n"
     "m = s.SharedMemory(create=True, size=99); m.buf[0] = 7; print(m.buf[0])\n"
     "m.close(); m.unlink()", "7\n"),
    ("semaphores", "import multiprocessing as m; s = m.Semaphore(1); print(s.acquire())", "True\n"),
    ("threads", "import threading as t\nx = [t.Thread(target=print, args=('t',)) for _ in '123']\n"
     "[y.start() for y in x]; [y.join() for y in x]", "t\nt\nt\n"),
    ("asyncio processes", "import asyncio as a\nasync def m():\n"
     " p = await a.create_subprocess_exec('echo', 'x', stdout=-1)\n"
     " print(await p.communicate())\na.run(m())", "(b'x\\n', None)\n"),
    ("sqlite", "import sqlite3 as s\nc = s.connect('d.db'); c.execute('pragma journal_mode=wal')\n"
     "c.execute('create table t(x)'); c.execute('insert into t values(1)'); c.commit()\n"
     "print(s.connect('d.db').execute('select * from t').fetchall())", "[(1,)]\n"),
    ("memfd and mmap", "import os, mmap; f = os.memfd_create('x'); os.ftruncate(f, 4096)\n"
     "m = mmap.mmap(f, 4096); m[0] = 5; print(os.pread(f, 1, 0))", "b'\\x05'\n"),
    ("timers", "import signal, time; signal.signal(14, lambda *_: print('alarm'))\n"
     "signal.setitimer(0, 0.05); time.sleep(1)", "alarm\n"),
    ("affinity", "import os; print(len(os.sched_getaffinity(0)) >= 1, os.cpu_count() >= 1)",
     "True True\n"),
    ("lower its limits", "import resource as r; r.setrlimit(r.RLIMIT_NOFILE, (64, 64))\n"
     "print(r.getrlimit(r.RLIMIT_NOFILE))", "(64, 64)\n"),
    ("inotify", "import ctypes; l = ctypes.CDLL(None); f = l.inotify_init1(0)\n"
     "print(l.inotify_add_watch(f, b'.', 256) > 0); open('x', 'w'); import os\n"
     "print(len(os.read(f, 99)) > 0)", "True\nTrue\n"),
    ("subprocess shell", "import subprocess as s; print(s.getoutput('echo x | tr x y'))", "y\n"),
    ("temporary files", "import tempfile; f = tempfile.TemporaryFile(); f.write(b'x')\n"
     "print(f.tell(), tempfile.gettempdir())", "1 /tmp\n"),
    ("platform", "import platform as p; print(p.system(), bool(p.freedesktop_os_release()['ID']))",
     "Linux True\n"),
    ("import from the workspace", "open('m.py', 'w').write('x = 1'); import sys\n"
     "sys.path.insert(0, '.'); import m; print(m.x)", "1\n"),
    ("venv", "import venv; venv.create('v', symlinks=True); import subprocess as s\n"
     "print(s.check_output(['v/bin/python', '-c', 'import sys; print(sys.prefix)'], text=True)"
     ".strip().endswith('/v'))", "True\n"),
    ("utime and xattr", "import os; open('f', 'w').close(); os.utime('f', (1, 2))\n"
     "os.setxattr('f', 'user.k', b'v'); print(os.stat('f').st_mtime, os.getxattr('f', 'user.k'))",
     "2.0 b'v'\n"),
    ("ioctl, sendfile", "import os; a = open('README', 'rb'); b = open('g', 'wb')\n"
     "print(os.sendfile(b.fileno(), a.fileno(), 0, 4))", "4\n"),
    ("copying", "import shutil; shutil.copy2('README', 'g'); shutil.copytree('.', '/tmp/t')\n"
     "print(open('/tmp/t/g').read(), end='')", "a workspace\n"),
]


def python(_name, code, want):
    prints(py(code), want)


@test(timeout=40)
def test_python():
    """What Python programs ordinarily use, works."""
    collect(PYTHON, python)


@test("smoke")
def test_python_pool():
    """A multiprocessing pool: semaphores in /dev/shm, forks, pipes."""
    python(*PYTHON[0])


# --- Node -------------------------------------------------------------------------------

WORKER = (
    "const {Worker, isMainThread, parentPort} = require('worker_threads');"
    "if (isMainThread) new Worker(__filename).on('message', m => console.log(m));"
    "else parentPort.postMessage('worker');"
)


@test("vm", needs=["node"])
def test_node():
    """Node: workers, interfaces, processors, memory, user, temporary files."""
    top = workspace({"w.js": WORKER})
    prints(["node", "w.js"], "worker\n", cwd=top)
    code = ("const os = require('os'); console.log(os.cpus().length > 0, os.totalmem() > 0,"
            " Object.keys(os.networkInterfaces()).includes('lo'), os.userInfo().uid > 0,"
            " os.hostname().length > 0, os.loadavg().length)")
    prints(["node", "-e", code], "true true true true true 3\n")


@test(needs=["node"])
def test_node_children():
    """Node starts processes, reads standard input and serves on loopback, as the seeds' harness."""
    code = ("const cp = require('child_process'), http = require('http');"
            "console.log(cp.execSync('echo child').toString().trim());"
            "console.log(require('fs').readFileSync(0, 'utf8'));"
            "const s = http.createServer((q, r) => r.end('served')).listen(0, 'localhost', () =>"
            " fetch(`http://localhost:${s.address().port}`).then(r => r.text()).then(t =>"
            " { console.log(t); s.close(); s.closeAllConnections(); }));")
    prints(["node", "-e", code], "child\ninput\nserved\n", stdin="input")


# --- building ---------------------------------------------------------------------------

MAKEFILE = ("all: a b c d\n\tcat a b c d\n"
            "a b c d:\n\tsleep 0.1; echo $@ > $@\n")
HELLO = '#include <stdio.h>\nint main(void) { puts("hello"); return 0; }\n'


@test("smoke", needs=["gcc"])
def test_gcc():
    """Compile, link and run."""
    prints(sh("gcc -O2 -o hello hello.c && ./hello"), "hello\n", cwd=workspace({"hello.c": HELLO}))


@test(needs=["gcc"])
def test_make():
    """make -j, also without a number, which counts processors and memory."""
    top = workspace({"Makefile": MAKEFILE})
    prints(sh("make -s -j4"), "a\nb\nc\nd\n", cwd=top)
    prints(sh("make -s -j"), "a\nb\nc\nd\n", cwd=top)


@test(needs=["gcc"])
def test_sanitized_program():
    """A program that installs many handlers and alternate stacks (a sanitizer's runtime does)."""
    code = ('#include <signal.h>\n#include <stdlib.h>\n#include <stdio.h>\n'
            'static void h(int s) { (void)s; puts("caught"); exit(0); }\n'
            'int main(void) { stack_t st = { .ss_sp = malloc(65536), .ss_size = 65536 };\n'
            'sigaltstack(&st, 0);\n'
            'struct sigaction a = { .sa_handler = h, .sa_flags = SA_ONSTACK };\n'
            'sigaction(SIGSEGV, &a, 0); *(volatile int *)0 = 1; return 1; }\n')
    prints(sh("gcc -o s s.c && ./s"), "caught\n", cwd=workspace({"s.c": code}))


# --- git --------------------------------------------------------------------------------

GIT_ENV = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@a", "GIT_COMMITTER_NAME": "c",
           "GIT_COMMITTER_EMAIL": "c@c", "GIT_CONFIG_NOSYSTEM": "1"}


def repository(uid):
    top = workspace({"a.txt": "one\n"}, uid=uid)
    env = {**lib.CALLER, **GIT_ENV}
    for args in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "first"]):
        # The owner of the directory may be another user: that is the point of the test.
        subprocess.run(["git", "-c", "safe.directory=*", *args], cwd=top, env=env, check=True)
    lib.give(top, uid)
    return top


@test("smoke")
def test_git():
    """git works in a repository that belongs to another uid (no "dubious ownership"), and what it
    commits stays in the layer."""
    for uid in (lib.OWNER, 0):
        top = repository(uid)
        before = lib.snapshot(f"{top}/.git/refs")
        script = ("git status --porcelain; echo two >> a.txt; git diff --stat | tail -n 1; "
                  "git add .; git commit -q -m second; git log --format=%s")
        run = passes(job(sh(script), cwd=top, env=GIT_ENV))
        eq(run.out, " 1 file changed, 1 insertion(+)\nsecond\nfirst\n", f"git with uid {uid}")
        lib.untouched(f"{top}/.git/refs", before)


@test(timeout=40)
def test_git_maintenance():
    """What git detaches after a commit is over before it counts as left behind; ten commits, a
    branch, a merge, a clone, a worktree."""
    script = ("for i in 1 2 3 4 5; do echo $i >> a.txt; git commit -qam c$i; done; "
              "git checkout -qb topic; echo t > t; git add t; git commit -qm t; "
              "git checkout -q main; git merge -q --no-ff -m merge topic; "
              "git clone -q . /tmp/clone; git worktree add -q /tmp/tree topic; git gc -q; "
              "git -C /tmp/clone log --oneline | wc -l; git status --porcelain | wc -l")
    run = passes(job(sh(script), cwd=repository(lib.OWNER), env=GIT_ENV))
    eq(run.out, "8\n0\n", "stdout")


@test()
def test_git_outside_a_repository():
    """git init and a commit in a fresh workspace, with only HOME's configuration."""
    script = ("git config --global user.name n; git config --global user.email e; git init -q; "
              "echo x > f; git add f; git commit -qm m; git log --format=%an:%s")
    run = passes(job(sh(script), workspace="fresh"))
    eq(run.out, "n:m\n", "stdout")


# --- the system's face ------------------------------------------------------------------


@test()
def test_etc_is_enough():
    """/etc has what libraries look for, and nothing secret."""
    names = ("passwd group hosts nsswitch.conf ld.so.cache ld.so.conf localtime ssl/certs "
             "ssl/openssl.cnf os-release protocols services alternatives "
             "debian_version gai.conf").split()
    wanted = " ".join(name for name in names if os.path.exists(f"/etc/{name}"))
    run = passes(sh(f"cd /etc; for f in {wanted}; do test -e $f || echo missing $f; done; "
                    "ls shadow gshadow sudoers ssh/*key* 2>/dev/null; true"))
    eq(run.out, "", "missing, or secret and there")


@test()
def test_usr_is_the_hosts():
    """The same programs as on the host, and /bin, /lib and /sbin lead there."""
    run = passes(sh("readlink -f /bin/sh; cat /etc/os-release | head -n 1"))
    shell, release = run.out.splitlines()
    eq(shell, os.path.realpath("/bin/sh"), "shell")
    eq(release, host.read("/etc/os-release").splitlines()[0], "os-release")


@test()
def test_kernel_files():
    """/proc has what runtimes size themselves by."""
    script = ("for f in meminfo cpuinfo stat uptime loadavg version filesystems self/status "
              "self/maps self/mountinfo sys/kernel/pid_max sys/vm/overcommit_memory; do "
              "head -c 1 /proc/$f >/dev/null || echo $f; done; "
              "test -d /sys/devices/system/cpu || echo cpu")
    prints(sh(script), "")


@test()
def test_group_writable_umask():
    """A job that changes its own umask gets what it asked for."""
    prints(sh("umask 002; touch f; umask 077; touch g; stat -c %a f g"), "664\n600\n")


@test()
def test_setgid_directory_is_refused_politely():
    """mkdir -m 2775 is EPERM here (no setuid, no setgid): an error of that call, not a kill."""
    run = passes(sh("mkdir -m 2775 d; echo $?; echo alive"))
    check(run.out.endswith("alive\n"), f"stdout {run.out!r}")


@test()
def test_refused_calls_are_errors():
    """A call the sandbox does not allow fails with an errno; it does not kill the program."""
    script = ("for c in 'mount -t tmpfs t /mnt' 'unshare -U true' 'chroot / true' 'dmesg' "
              "'mknod b b 8 0' 'swapoff -a' 'date -s 2001-01-01' 'renice -n -5 $$' "
              "'chrt -f 1 true' 'hostname x'; do $c >/dev/null 2>&1; test $? -lt 128 || "
              "echo \"$c: killed\"; done; echo end")
    prints(sh(script), "end\n")


@test()
def test_uname_and_hostname():
    """uname works, and the host name is a name."""
    run = passes(sh("uname -s; uname -n"))
    system, name = run.out.split()
    eq(system, "Linux", "system")
    between(len(name), 1, 64, "length of the host name")
    lacks(name, "\n", "host name")
