# SPDX-License-Identifier: Apache-2.0
"""What a job listened at, left open, closed, and shared. Nothing of it is there for the next job."""

import signal
import socket

import host
import lib
from lib import (check, contains, eq, fails, job, one_of, passes, py,
                 run_job, start_job,
                 test, verdict)

GROUP = "sockets"

# Leaves a process behind that is nobody's child.
LEAVE = """
def leave():
    import os, time
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(600)
        os._exit(0)
    os.wait()
"""

HEAD = "import os, socket, sys, time\nkeep = []\n" + LEAVE


def code(text):
    return py(HEAD + text)


def left(text, **fields):
    """A job whose process outlives it with what text opened; processes are not what is judged."""
    expect = {"allow_leftovers": True, **fields.pop("expect", {})}
    return job(code(text + "\nleave()\n"), expect=expect, **fields)


def only(items, **wanted):
    found = [item for item in items if all(item.get(key) == wanted[key] for key in wanted)]
    check(len(found) == 1, f"{len(found)} of {wanted} in {lib.short(items, 900)}")
    return found[0]


def listening_reason(run, *words):
    found = [reason["message"] for reason in run["reasons"] if reason["code"] == "listening"]
    check(len(found) == 1, f"reasons {run['reasons']}")
    for word in words:
        contains(found[0], word, "the reason")


@test("smoke", "vm")
def test_nothing():
    """The negative control: a job that opens nothing has empty lists, and they are lists."""
    run = passes(["true"])
    eq(run["sockets"]["totals"], {"listening": 0, "leftover": 0, "closed": 0}, "sockets.totals")
    eq([run["sockets"]["lost"], run["fds_info"]["total"], run["ipc_info"]["total"]], [0, 0, 0], "lost, totals")


@test("smoke", "vm")
def test_left_behind():
    """A listener left behind by a double fork: named with port, process and program; a failure."""
    run = fails(left("s = socket.socket(); s.bind(('127.0.0.1', 8080)); s.listen()"))
    found = only(run["sockets"]["listening"], local_port=8080)
    eq([found["family"], found["protocol"], found["local_address"], found["state"], found["left"]],
       ["inet", "tcp", "127.0.0.1", "listen", True], "the listener")
    eq(found["pid"], run["processes"]["leftover"][0]["pid"], "pid")
    contains(found["program"], "python3", "program")
    only(run["sockets"]["leftover"], local_port=8080)
    listening_reason(run, "tcp 127.0.0.1:8080", f"pid {found['pid']}")


MOMENT = "s = socket.socket(); s.bind(('127.0.0.1', 8082)); s.listen(); s.close()"


@test("smoke", "vm")
def test_came_and_went():
    """A listener of a moment: who it was, where, and that it closed; no failure unless the job said
    where it would listen."""
    run = passes(code(MOMENT))
    closed = only(run["sockets"]["closed"], local_port=8082)
    eq([closed["protocol"], closed["local_address"], closed["state"]],
       ["tcp", "127.0.0.1", "closed"], "the closed one")
    if any("sockets.listening" in text for text in run["blind_spots"]):
        raise lib.Lacks("the kernel's trace")
    found = only(run["sockets"]["listening"], local_port=8082)
    eq([found["left"], found["local_address"]], [False, "127.0.0.1"], "the listener")
    contains(found["program"], "python3", "program")
    passes(job(code(MOMENT), expect={"allow_listen": [8082]}))
    listening_reason(fails(job(code(MOMENT), expect={"allow_listen": []})), "8082")


@test()
def test_flood_of_listeners():
    """3,000 listeners of a moment do not hide the one that stays."""
    run = fails(left("""
for port in range(10000, 13000):
    s = socket.socket(); s.bind(('127.0.0.1', port)); s.listen(); s.close()
s = socket.socket(); s.bind(('127.0.0.1', 9999)); s.listen()
"""))
    eq(only(run["sockets"]["listening"], local_port=9999)["left"], True, "left")
    check(len(run["sockets"]["listening"]) <= 1000, "the list has no bound")
    listening_reason(run, "9999")


@test()
def test_allow_listen():
    """expect.allow_listen: a port that was agreed passes; another one, or none agreed, does not."""
    text = "s = socket.socket(); s.bind(('127.0.0.1', 8083)); s.listen()"
    passes(left(text, expect={"allow_listen": [80, 8083]}))
    listening_reason(fails(left(text, expect={"allow_listen": [8084]})), "8083")
    listening_reason(fails(left(text, expect={"allow_listen": []})), "8083")


@test("vm")
def test_every_kind():
    """UDP, IPv6, unix by path and by abstract name, netlink, connections: each by its family."""
    run = fails(left("""
def new(*args, bind=None):
    s = socket.socket(*args)
    keep.append(s)
    if bind is not None: s.bind(bind)
    return s
new(socket.AF_INET, socket.SOCK_DGRAM, bind=('127.0.0.1', 5353))
new(socket.AF_INET6, socket.SOCK_STREAM, bind=('::1', 8085)).listen()
server = new(socket.AF_INET, socket.SOCK_STREAM, bind=('127.0.0.1', 8086))
server.listen()
client = new(socket.AF_INET, socket.SOCK_STREAM); client.connect(('127.0.0.1', 8086))
new(socket.AF_UNIX, socket.SOCK_STREAM, bind=b'\\0abstract\\0\\xff').listen()
new(socket.AF_UNIX, socket.SOCK_STREAM, bind='file.sock').listen()
new(socket.AF_NETLINK, socket.SOCK_RAW, 0, bind=(0, 0))
keep.append(socket.socketpair())
"""))
    listening, leftover = run["sockets"]["listening"], run["sockets"]["leftover"]
    eq(len(listening), 5, "how many listen")
    only(listening, family="inet", protocol="udp", local_port=5353, state="unconnected")
    only(listening, family="inet6", protocol="tcp", local_address="::1", local_port=8085)
    only(listening, family="inet", local_port=8086)
    abstract = only(listening, family="unix", abstract=True)
    eq([abstract["name"], abstract["name_base64"]],
       ["abstract\ufffd\ufffd", lib.b64(b"abstract\0\xff")], "the abstract name")
    only(listening, family="unix", abstract=False, name="file.sock")
    connection = only(leftover, family="inet", remote_port=8086)
    eq(connection["state"], "established", "the client's state")
    only(leftover, family="netlink", protocol="0")
    pair = [item for item in leftover if item.get("peer_inode") and not item["name"]]
    eq({item["inode"] for item in pair}, {item["peer_inode"] for item in pair}, "the pair")
    socket_file = only(run["fs"]["added"], path="file.sock")
    eq(socket_file["type"], "socket", "the type in fs")
    for item in leftover:  # the server's end of the connection was never accepted: nobody has it
        check(item["pid"] or item["local_port"] == 8086, f"no process has {item}")


@test()
def test_at_the_timeout():
    """A server that never ends: what it listened at is in the receipt of the timeout."""
    run = fails(job(code("s = socket.socket(); s.bind(('127.0.0.1', 8087)); s.listen(); s.accept()"),
                    timeout_sec=2))
    eq(run["timed_out"], True, "timed_out")
    only(run["sockets"]["listening"], local_port=8087)
    listening_reason(run, "8087")


@test(timeout=60)
def test_ten_thousand():
    """10,000 sockets and as many descriptors: lists are bounded, totals exact, the listener on top."""
    run = fails(left("""
keep = [socket.socketpair() for _ in range(5000)]
s = socket.socket(); s.bind(('127.0.0.1', 8088)); s.listen()
""", limits={"open_files": 16000}))
    sockets = run["sockets"]
    eq(sockets["totals"]["leftover"], 10001, "all of them")
    eq([len(sockets["leftover"]), len(run["fds"])], [1000, 1000], "those listed")
    check(run["fds_info"]["total"] > 10000, f"total {run['fds_info']['total']}")
    only(sockets["leftover"], local_port=8088)
    listening_reason(run, "8088")


def closes(how_many):
    return f"for _ in range({how_many}): socket.socket(type=socket.SOCK_DGRAM).close()\n"


def all_counted(run, number):
    """Each is told of or known to be lost, and lost evidence is never a pass."""
    sockets = run["sockets"]
    eq(len(sockets["closed"]), 1000, "those listed")
    if sockets["lost"]:
        verdict(run, 4, "error")
        one_of("evidence_lost", [reason["code"] for reason in run["reasons"]], "the reason")
    else:
        verdict(run, 0, "pass")
    eq(sockets["totals"]["closed"] + sockets["lost"], number, "closed and lost together")


@test(timeout=60)
def test_flood():
    """Sockets opened and closed in a loop: counted one by one, listed within a bound."""
    all_counted(run_job(code(closes(20000))), 20000)


@test(timeout=90)
def test_flood_unread():
    """The same while qscope is stopped and cannot read what the kernel tells."""
    started = start_job(job(code("time.sleep(2)\n" + closes(30000)), timeout_sec=100))
    host.wait_until(lambda: any(uid in host.JOB_UIDS and name.startswith("python3")
                                for _, name, uid, _ in host.processes()), 20)
    started.kill(signal.SIGSTOP)
    host.wait_until(lambda: not any(uid in host.JOB_UIDS and not state.startswith("Z")
                                    for _, _, uid, state in host.processes()), 60)
    started.kill(signal.SIGCONT)
    all_counted(started.finish(), 30000)


@test("vm")
def test_descriptors():
    """What a leftover holds open: a deleted file, a memfd, a pipe, a directory, devices."""
    run = passes(left("""
f = open('gone', 'w'); os.unlink('gone')
g = open('kept (deleted)', 'w')
d = os.open('.', os.O_RDONLY)
m = os.memfd_create('secret')
r, w = os.pipe()
e = os.eventfd(0)
"""))
    fds = run["fds"]
    gone = [fd for fd in fds if fd["target"].endswith("/gone (deleted)")]
    eq([(fd["kind"], fd["deleted"], fd["writable"]) for fd in gone], [("file", True, True)], "gone")
    kept = [fd for fd in fds if fd["target"].endswith("/kept (deleted)")]
    eq([fd["deleted"] for fd in kept], [False], "a file that is only named so")
    kinds = [fd["kind"] for fd in fds]
    for kind in ("directory", "memfd", "anon", "device"):
        check(kind in kinds, f"no {kind} in {kinds}")
    check(kinds.count("pipe") >= 4, f"pipes in {kinds}")  # stdout and stderr, and both ends
    eq(only(fds, kind="memfd")["target"].startswith("/memfd:secret"), True, "the memfd's name")
    eq(run["fds_info"]["total"], len(fds), "total")


SHARE = """
import ctypes, fcntl
libc = ctypes.CDLL(None, use_errno=True)
def call(name, *args):
    if getattr(libc, name)(*args) < 0:
        raise OSError(ctypes.get_errno(), name)
call("shmget", 0x1234, 8192, 0o1600)
call("semget", 0x77, 3, 0o1600)
call("msgget", 0x55, 0o1600)
call("mq_open", b"/queue", os.O_CREAT | os.O_RDWR, 0o600, None)
libc.sem_open.restype = ctypes.c_void_p
assert libc.sem_open(b"/gate", os.O_CREAT, 0o600, 1)
call("shm_open", b"/area", os.O_CREAT | os.O_RDWR, 0o600)
"""


@test("smoke", "vm")
def test_shared():
    """System V and POSIX objects of a job are listed, though nobody is left who has them."""
    run = passes(code(SHARE))
    found = {item["kind"]: item for item in run["ipc"]}
    eq(sorted(found), sorted(["sysv_shm", "sysv_sem", "sysv_msg", "posix_mq", "posix_sem", "posix_shm"]),
       "kinds")
    eq([found["sysv_shm"]["key"], found["sysv_shm"]["size"]], [0x1234, 8192], "shared memory")
    eq([found["sysv_sem"]["key"], found["sysv_sem"]["size"]], [0x77, 3], "semaphores")
    eq(found["sysv_msg"]["key"], 0x55, "messages")
    eq([found[kind]["name"] for kind in ("posix_mq", "posix_sem", "posix_shm")],
       ["queue", "gate", "area"], "names")
    eq(run["ipc_info"]["total"], 6, "total")


@test()
def test_next_run_sees_none():
    """The next job has none of it: namespaces are gone with the job."""
    passes(code(SHARE))
    run = passes(code("""
print(open('/proc/sysvipc/shm').read().count('\\n'), os.listdir('/dev/shm'))
s = socket.socket(); s.bind(('127.0.0.1', 8080))
a = socket.socket(socket.AF_UNIX); a.bind(b'\\0abstract')
import ctypes
assert ctypes.CDLL(None).mq_open(b"/queue", os.O_RDWR) < 0
"""))
    eq(run.out, "1 []\n", "what it sees")
    eq(run["ipc_info"]["total"], 0, "ipc.total")


@test()
def test_locks():
    """A file lock that a leftover holds, by flock and by fcntl."""
    run = passes(left("""
import fcntl
f = open('flocked', 'w'); fcntl.flock(f, fcntl.LOCK_EX)
open('plain', 'w')
"""))
    lock = only(run["ipc"], kind="lock")
    check(lock["name"].endswith("/flocked"), f"name {lock['name']}")
    eq(lock["pid"], run["processes"]["leftover"][0]["pid"], "pid")


@test()
def test_unasked_families():
    """A socket of a kind that the kernel does not tell of is listed all the same: it has a descriptor."""
    run = passes(left("s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)"))  # not bound
    unknown = only(run["sockets"]["leftover"], family=None)
    eq(unknown["pid"], run["processes"]["leftover"][0]["pid"], "pid")


@test()
def test_host_network():
    """In the host's network only the job's own sockets are listed."""
    with socket.socket() as mine, lib.policy_drop_in(network=["none", "host"]):
        mine.bind(("127.0.0.1", 0))
        mine.listen()
        run = fails(left("s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen(); "
                         "print(s.getsockname()[1], flush=True)", network="host"))
    port = int(run.out)
    eq([item["local_port"] for item in run["sockets"]["listening"]], [port], "listening")
    check(any("sockets.closed" in text for text in run["blind_spots"]), "no blind spot")
