# SPDX-License-Identifier: Apache-2.0
"""What tries to leave: refused at once, listed with the process that tried, and nothing of it gets out."""

import fcntl
import os
import socket
import struct
import subprocess

import host
import lib
from lib import check, contains, eq, fails, job, lacks, mentions, passes, py, sh, test, workspace

GROUP = "egress"

RESOLVER = ("198.18.0.53", 53)


def attempts(run, **wanted):
    """The records with these values."""
    return [item for item in run["egress"] if all(item[key] == value for key, value in wanted.items())]


def attempt(run, count=1, program="python3", **wanted):
    """The one record with these values; its process and program are known."""
    found = attempts(run, **wanted)
    check(len(found) == 1, f"{len(found)} records of {wanted} in {run['egress']}")
    eq(found[0]["count"], count, f"count of {wanted}")
    check(found[0]["pid"], f"whose is {found[0]}?")
    contains(found[0]["program"], program, "program")
    return found[0]


def refused(argv_or_job, **kw):
    """A run that fails for nothing but its attempts to leave."""
    run = fails(argv_or_job, **kw)
    eq([reason["code"] for reason in run["reasons"]], ["egress"], "reasons")
    return run


CONNECT = """
import socket, sys, time
begin = time.monotonic()
def attempt(family, kind, address, protocol=0):
    s = socket.socket(family, kind, protocol)
    s.settimeout(20)
    try:
        s.connect(address)
        if kind != socket.SOCK_STREAM:
            s.send(b'\\x08\\0\\0\\0\\0\\0\\0\\1' if protocol == 1 else b'\\x80\\0\\0\\0\\0\\0\\0\\1' if protocol else b'x')
            s.recv(100)
        print('through')
    except socket.timeout: print('timeout')
    except OSError as e: print(e.errno)
"""


@test("smoke", "vm")
def test_tcp():
    """A connection to an address of the Internet, of the cloud's metadata, of IPv6: refused at once."""
    run = refused(py(CONNECT + "attempt(2, 1, ('1.1.1.1', 443)); attempt(2, 1, ('169.254.169.254', 80));"
                     "attempt(10, 1, ('2606:4700::1111', 443)); attempt(2, 1, ('1.1.1.1', 443));"
                     "print(time.monotonic() - begin < 20)"))
    eq(run.out, "111\n" * 4 + "True\n", "errors")
    attempt(run, 2, protocol="tcp", address="1.1.1.1", port=443, name=None)
    attempt(run, protocol="tcp", address="169.254.169.254", port=80)
    attempt(run, protocol="tcp", address="2606:4700::1111", port=443)
    eq(len(run["egress"]), 3, "records")
    eq([run["egress_info"][key] for key in ("total", "truncated", "lost")], [4, False, 0], "totals")
    contains(run["reasons"][0]["message"], "tcp 1.1.1.1:443")


@test("smoke")
def test_udp_and_ping():
    """Datagrams, also large ones, and echo requests by an ordinary user's socket."""
    run = refused(py(CONNECT + "attempt(2, 2, ('8.8.8.8', 53)); attempt(2, 2, ('8.8.8.8', 123));"
                     "attempt(10, 2, ('2001:db8::1', 123)); attempt(2, 2, ('8.8.8.8', 7), 1);"
                     "attempt(10, 2, ('2001:db8::1', 7), 58)\n"
                     "s = socket.socket(2, 2); s.sendto(b'x' * 20000, ('10.0.0.1', 9))\n"
                     "s.setsockopt(1, 6, 1); s.sendto(b'x', ('255.255.255.255', 9)); s.sendto(b'x', ('224.0.0.251', 9))"))
    lacks(run.out, "t", "errors")  # neither through nor a timeout
    attempt(run, protocol="udp", address="8.8.8.8", port=53)
    attempt(run, protocol="udp", address="8.8.8.8", port=123)
    attempt(run, protocol="udp", address="2001:db8::1", port=123)
    attempt(run, protocol="icmp", address="8.8.8.8", port=None)
    attempt(run, protocol="icmp", address="2001:db8::1", port=None)
    for address in ("10.0.0.1", "255.255.255.255", "224.0.0.251"):
        attempt(run, protocol="udp", address=address, port=9)


@test("smoke", "vm")
def test_names():
    """A name is asked for, and the attempt that follows is listed with name and port."""
    run = refused(py(CONNECT + "socket.getaddrinfo('Only.Asked.example', 80)\n"
                     "try: socket.create_connection(('db.example.org', 5432), 20); print('through')\n"
                     "except OSError as e: print(e.errno)"))
    eq(run.out, "111\n", "error")
    attempt(run, 2, protocol="dns", name="only.asked.example", address=RESOLVER[0], port=RESOLVER[1])
    attempt(run, 2, protocol="dns", name="db.example.org")
    attempt(run, protocol="tcp", name="db.example.org", port=5432)
    contains(run["reasons"][0]["message"], "tcp db.example.org:5432 (")


STRANGE = """
import socket
def ask(name):
    s = socket.socket(2, 2); s.settimeout(20); s.connect(('198.18.0.53', 53))
    s.send(b'\\x12\\x34\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0' + name + b'\\0\\0\\1\\0\\1')
    try: print(s.recv(600)[:2].hex())
    except OSError as e: print(e.errno)
ask(b'\\x07a.b\\n\\x1b\\xff"')
ask(b'\\xc0\\x0c')
ask(b'\\x3f' + b'a' * 63)
s = socket.socket(2, 2); s.sendto(b'', ('198.18.0.53', 53))
"""


@test()
def test_strange_names():
    """Names are bytes: what would be an escape sequence or a quote is one in no place."""
    run = refused(py(STRANGE))
    eq(run.out, "1234\n111\n1234\n", "answers")
    attempt(run, protocol="dns", name="a\\046b\\010\\027\\255\\034")
    attempt(run, protocol="dns", name="a" * 63)
    attempt(run, 2, protocol="udp", address=RESOLVER[0])


@test()
def test_whose():
    """Each record names the process and program that tried, also where several do at once."""
    code = "import socket,sys\nfor i in range(20): socket.socket(2, 2).sendto(b'x', ('10.0.0.1', int(sys.argv[1])))"
    run = refused(job(sh("for p in 1 2 3 4; do python3 a $p & echo $! $p; done; wait;"
                         "exec bash -c 'echo >/dev/tcp/10.0.0.2/5'"),
                      cwd=workspace({"a": code}), expected_exit="any"))
    for line in run.out.splitlines():
        pid, port = map(int, line.split())
        known = attempts(run, pid=pid)
        check(known and all(item["port"] == port for item in known), f"records of {line}: {known}")
        check(all("python3" in item["program"] for item in known), f"programs of {line}: {known}")
    attempt(run, program="bash", address="10.0.0.2", port=5)
    eq(run["egress_info"]["total"], 81, "attempts")


SOCKETS = """
import ctypes, socket
for arguments in ((40, 1), (17, 3), (2, 3, 1), (10, 3, 58), (2, 3, 255)):
    try: socket.socket(*arguments); print(arguments)
    except OSError as e: pass
libc = ctypes.CDLL(None, use_errno=True)
print(libc.syscall(425, 8, bytes(200)), ctypes.get_errno())
"""


@test()
def test_other_sockets():
    """vsock, packet and raw sockets, and io_uring, cannot be had; it is listed who asked."""
    run = passes(py(SOCKETS))
    eq(run.out, "-1 1\n", "what could be had, and io_uring_setup")
    eq(run["egress"], [], "egress")
    info = run["egress_info"]
    eq(info["refused_totals"], {"family": 2, "raw": 3, "io_uring": 1}, "refused")
    for what, count in info["refused_totals"].items():
        found = [item for item in info["refused"] if item["what"] == what]
        eq([item["count"] for item in found], [count], what)
        contains(found[0]["program"], "python3", what)


RETRIES = """
import time, urllib.request
for i in range(6):
    try: urllib.request.urlopen('https://files.example.org/simple/x/', timeout=15)
    except OSError as e: print(e.reason.errno)
    time.sleep(0.1)
"""


@test()
def test_programs_fail_fast():
    """git clone and an installer that tries again and again end at once; the receipt has name and port."""
    run = refused(job(["git", "clone", "https://git.example.org/x.git"], expected_exit=128, timeout_sec=60))
    attempt(run, program="git-remote-http", protocol="tcp", name="git.example.org", port=443)
    attempt(run, 2, program="git-remote-http", protocol="dns", name="git.example.org")
    run = refused(job(py(RETRIES), timeout_sec=60))
    eq(run.out, "111\n" * 6, "errors")
    attempt(run, 6, protocol="tcp", name="files.example.org", port=443)


FLOOD = """
import socket
s = socket.socket(2, 2)
for i in range(%d): s.sendto(b'x', ('10.%%d.%%d.%%d' %% (i >> 16, i >> 8 & 255, i & 255), 9))
"""


@test(timeout=60)
def test_flood():
    """A job that sends 100,000 packets to as many hosts is recorded within bounds, and its time still counts."""
    n = 100000 if host.is_fast() else 5000
    run = lib.run_job(job(py(FLOOD % n), timeout_sec=120), timeout=120)
    total, lost = run["egress_info"]["total"], run["egress_info"]["lost"]
    eq(total + lost, n, "attempts, and packets that were lost")
    eq(len(run["egress"]), 1000, "records")
    eq(run["egress_info"]["truncated"], True, "truncated")
    eq(run["verdict"], "error" if lost else "fail", "verdict")
    mentions(run["reasons"][0]["message"], ["at least 1000 attempts to leave: udp 10.0.0.0:9"])


@test()
def test_flood_and_timeout():
    """A job that never stops sending is killed when its time is over."""
    run = lib.run_job(job(py("import socket\ns = socket.socket(2, 2)\nwhile True: s.sendto(b'x', ('10.0.0.1', 9))"),
                          timeout_sec=1))
    lib.timed_out(run, 1)
    # In a flood it may be unknown of some whose they were: those have a record of their own.
    found = attempts(run, protocol="udp", address="10.0.0.1", port=9)
    eq(sum(item["count"] for item in found), run["egress_info"]["total"], "attempts")
    check(any(item["pid"] and "python3" in item["program"] for item in found), f"whose are {found}?")


@test()
def test_allowed():
    """expect.allow_egress: by name with the question for it, by address, by network; nothing else."""
    code = CONNECT + ("attempt(2, 1, ('10.1.2.3', 22)); attempt(10, 1, ('2001:db8::5', 443))\n"
                      "try: socket.create_connection(('db.example.org', 5432), 20)\nexcept OSError: pass")
    allowed = ["10.0.0.0/8:22", "[2001:db8::/32]:443", "DB.example.org:5432"]
    run = passes(job(py(code), expect={"allow_egress": allowed}))
    eq(run["egress_info"]["total"], 5, "attempts are listed all the same")
    for missing in range(len(allowed)):
        rest = allowed[:missing] + allowed[missing + 1:]
        refused(job(py(code), expect={"allow_egress": rest}))


@test()
def test_silence():
    """A job that tries nothing has no attempts, however long it runs: what the kernel says is not the job's."""
    code = ("import socket, time\nfor f, a in ((2, '127.0.0.1'), (10, '::1'), (2, '198.18.0.1')):\n"
            " s = socket.socket(f); s.bind((a, 0)); s.listen(); c = socket.create_connection(s.getsockname()[:2])\n"
            " u = socket.socket(f, 2); u.bind((a, 0)); u.sendto(b'x', (a, 9))\n"
            "print(socket.gethostbyname(socket.gethostname()))\ntime.sleep(3)")
    run = passes(py(code))
    eq(run["egress"], [], "egress")
    eq(run["egress_info"]["total"], 0, "total")


AROUND = """
import socket
def attempt(kind, host, option=None, data=b'x', local='0.0.0.0'):
    s = socket.socket(socket.AF_INET, kind)
    s.settimeout(20)
    s.bind((local, 0))
    if option: s.setsockopt(*option)
    try:
        if not option: s.sendmsg([data], [(0, 8, (1).to_bytes(4, 'little') + bytes(8))], 0, (host, 443)); return
        s.connect((host, 443))
        s.send(data)
        s.recv(1)
    except OSError as e: print(e.errno)
device = (1, 25, b'lo')
attempt(1, '1.1.1.1', device); attempt(2, '1.1.1.2', device); attempt(2, '1.1.1.3', device, bytes(9000))
attempt(1, '1.1.1.4', device, local='127.0.0.1'); attempt(2, '1.1.1.5', (0, 50, (1 << 24).to_bytes(4, 'little')))
attempt(2, '1.1.1.6')
for host in '127.0.0.1', '127.1.2.3', '198.18.0.1': # these are its own
    l = socket.create_server((host, 0)); s = socket.socket(); s.setsockopt(*device); s.connect(l.getsockname())
    u = socket.socket(2, 2); u.setsockopt(*device); u.sendto(b'x', (host, 9))
"""


@test("vm")
def test_around_the_routes():
    """A socket that is bound to loopback sends there what is for elsewhere, whatever the routes say: refused and
    listed as any other."""
    run = refused(py(AROUND))
    eq(run.out, "111\n" * 5, "stdout")
    eq(sorted(item["address"] for item in run["egress"]), [f"1.1.1.{i}" for i in range(1, 7)], "attempts")
    eq({(item["port"], item["count"]) for item in run["egress"]}, {(443, 1)}, "port and count")


TAMPERING = ["ip link set qscope0 down", "ip link del qscope0", "ip link set qscope0 mtu 68", "ip route del default",
             "ip -6 route del default", "ip route add 1.1.1.1 dev lo", "ip addr add 1.1.1.1/32 dev lo",
             "ip addr del 198.18.0.1/32 dev qscope0", "ip tuntap add t0 mode tun", "test -e /dev/net/tun",
             "echo 0 0 > /proc/sys/net/ipv4/ping_group_range", "echo 1 > /proc/sys/net/ipv4/ip_forward",
             "tc qdisc add dev qscope0 root pfifo", "busybox tunctl", "nft list ruleset", "iptables -L"]


@test()
def test_sink_cannot_be_changed():
    """The device, its addresses and routes are not the job's; it cannot attach to it either."""
    lines = "\n".join(f"({command}) >/dev/null 2>&1 && echo '{command}'" for command in TAMPERING)
    run = refused(sh(f"{lines}\nbash -c 'echo >/dev/tcp/1.1.1.1/443' 2>/dev/null\ntrue"))
    eq(run.out, "", "commands that worked")
    attempt(run, program="bash", protocol="tcp", address="1.1.1.1", port=443)


TUNSETIFF = 0x400454CA
TUN_NO_PI = 0x1001


class outside:
    """The only way out of the host, for a block of the test: what would leave it can be read here."""

    def __enter__(self):
        self.fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        fcntl.ioctl(self.fd, TUNSETIFF, struct.pack("16sH22x", b"outside0", TUN_NO_PI))
        self.had_route = "default" in host.command_output("ip", "route", "show", "default")
        for command in ("link set outside0 up", "addr add 192.0.2.1/32 dev outside0",
                        "route replace default dev outside0 metric 0"):
            subprocess.run(["ip", *command.split()], check=True)
        return self

    def packets(self):
        """IPv4 packets since the last call."""
        found = []
        while True:
            try:
                packet = os.read(self.fd, 2048)
            except BlockingIOError:
                return found
            if packet[0] >> 4 == 4:
                found.append(packet)

    def __exit__(self, *_):
        os.close(self.fd)


@test()
def test_nothing_leaves():
    """Looked at from outside the namespace: not one packet of a job gets there."""
    code = CONNECT + ("attempt(2, 1, ('1.1.1.1', 443)); attempt(2, 2, ('8.8.8.8', 53)); attempt(2, 2, ('8.8.8.8', 7), 1)\n"
                      "try: socket.create_connection(('example.org', 443), 20)\nexcept OSError: pass")
    with outside() as wall:
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"control", ("1.1.1.1", 9))
        check(any(b"control" in packet for packet in wall.packets()), "the control was not seen outside")
        run = refused(py(code))
        eq(wall.packets(), [], "packets outside")
    eq(run["egress_info"]["total"], 6, "attempts")


@test()
def test_host_network():
    """With the host's network nothing is refused, nothing is observed, and the receipt says so."""
    with lib.policy_drop_in(network=["none", "host"]), socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        run = passes(job(py(f"import socket; socket.create_connection(('127.0.0.1', {port}), 20); print('in')"),
                         network="host"))
    eq(run.out, "in\n", "stdout")
    eq([run["egress"], run["egress_info"]], [None, None], "egress")
    mentions(" ".join(run["blind_spots"]), ["egress:"])


@test()
def test_killed_qscope():
    """When qscope is killed, its namespace and the device in it are gone with the job."""
    def namespaces():
        links = (host.namespace(pid, "net") for pid, *_ in host.processes())
        return {link for link in links if link}

    before = namespaces()
    started = lib.start_job(["sleep", "30"])
    check(host.wait_until(lambda: namespaces() - before, lib.bound(10)), "no namespace for the job")
    started.kill(9)
    check(host.wait_until(lambda: not namespaces() - before, lib.bound(10)), "the namespace is still there")
