# SPDX-License-Identifier: Apache-2.0
"""A job that tries: what it must not see, reach, change or share."""

import json
import os
import socket
import subprocess

import host
import lib
from lib import check, contains, eq, fails, job, lacks, passes, py, sh, test, workspace

GROUP = "hostile"


def tells(argv, want, **fields):
    run = passes(job(argv, **fields))
    eq(run.out, want, "stdout")
    return run


# --- privileges -------------------------------------------------------------------------


@test("smoke", "vm")
def test_privileges():
    """No capability in any set, no new privileges, a filter for system calls, and never root."""
    run = passes(["cat", "/proc/self/status"])
    status = dict(line.split(":\t", 1) for line in run.out.splitlines() if ":\t" in line)
    for key in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        eq(int(status[key], 16), 0, key)
    eq([status["NoNewPrivs"], status["Seccomp"]], ["1", "2"], "NoNewPrivs and Seccomp")
    uids = {int(uid) for uid in status["Uid"].split()}
    check(all(uid in host.JOB_UIDS for uid in uids), f"uids {uids}")
    lacks(f" {status.get('Groups', '')} ", " 0 ", "groups")


ATTEMPTS = [
    "mount -t tmpfs none /mnt", "mount --bind /usr /mnt", "umount /tmp", "umount .",
    "unshare -r true", "unshare -m true", "unshare -n true", "nsenter -t 1 -m true",
    "chroot / true", "mknod disk b 8 0", "mknod mem c 1 1", "pivot_root . .",
    "dmesg", "insmod x.ko", "modprobe dummy", "chown root README", "kill -9 1", "kill -0 1",
    "su -c true", "ip link add d0 type dummy", "ip addr add 10.0.0.1/8 dev lo",
    "sysctl -w vm.swappiness=1",
    "hostname pwned", "date -s 2001-01-01", "losetup -f README", "chrt -f 1 true", "renice -n -5 $$",
    "ionice -c 1 true", "systemctl status", "systemd-run true", "busctl list",
    "journalctl -qn 1 | grep -q .",
    "loginctl", "machinectl list", "strace -p 1", "cat /proc/1/environ", "cat /proc/1/maps",
    "ls /proc/1/root/", "ls /proc/1/fd", "cat /proc/kcore", "cat /proc/kmsg", "cat /dev/mem",
    "cat /dev/kmsg", "echo x > /proc/sysrq-trigger", "echo 1 > /proc/sys/kernel/core_pattern",
    "echo x > /proc/sys/kernel/hostname", "echo 0 > /proc/self/oom_score_adj && "
    "echo -1000 > /proc/self/oom_score_adj", "touch /usr/x", "touch /etc/x", "touch /bin/x",
    "touch /x", "mkdir /newdir", "touch /run/x", "touch /var/x", "touch /sys/x", "touch /dev/x",
    "echo x >> /etc/passwd", "rm /usr/bin/true", "cp /bin/sh s && chmod 4755 s && test -u s",
    "cat /etc/shadow", "ls /run/systemd/private", "ls /run/dbus/system_bus_socket",
    "ls /run/systemd/journal/socket", "test -e /dev/log", "ls /run/docker.sock", "ls /run/qscope",
    "ls /var/lib/qscope/receipts", "ls /var/log/journal", "test -e /dev/sda -o -e /dev/vda",
    "test -e /dev/loop-control", "test -e /dev/net/tun", "test -e /dev/fuse",
    "find /sys/fs/cgroup -name cgroup.procs -writable 2>/dev/null | grep -q .",
    "mkdir /sys/fs/cgroup/x", "setfattr -n trusted.x -v 1 README",
    "bwrap --ro-bind / / true", "python3 -c 'import os; os.setuid(0)'",
    "python3 -c 'import os; os.setgroups([0])'", "python3 -c 'import os; os.chroot(\".\")'",
    "python3 -c 'import os; os.open(\"/proc/1/mem\", 0)'",
    "python3 -c 'import socket as s; s.socket(17, 3)'",
    "python3 -c 'import socket as s; s.socket(2, 3, 1)'",
    "python3 -c 'import socket as s; s.socket(40, 1)'",
]


@test("smoke", timeout=40)
def test_attempts():
    """None of the known ways out works, and none is answered by killing the program that tries."""
    commands = ATTEMPTS if host.is_fast() else ATTEMPTS[::3]
    lines = "\n".join(f"({command}) >/dev/null 2>&1; echo {index} $?"
                      for index, command in enumerate(commands))
    run = passes(job(["sh", "-c", lines], timeout_sec=60), timeout=40)
    statuses = dict(map(int, line.split()) for line in run.out.splitlines())
    eq(len(statuses), len(commands), "attempts that were made")
    worked = [commands[index] for index, status in statuses.items() if status == 0]
    eq(worked, [], "attempts that succeeded")
    killed = [commands[index] for index, status in statuses.items() if status in (137, 159)]
    eq(killed, [], "attempts answered by a kill")


SYSCALLS = r"""
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def call(name, *args):
    if libc.syscall(*args) >= 0: print(name)
call('bpf', 321, 0, 0, 0)
call('perf_event_open', 298, 0, 0, -1, -1, 0)
call('io_uring_setup', 425, 8, 0)
call('userfaultfd', 323, 0)
call('kexec_load', 246, 0, 0, 0, 0)
call('init_module', 175, 0, 0, 0)
call('add_key', 248, b'user', b'k', b'v', 1, -2)
call('reboot', 169, 0, 0, 0, 0)
call('swapon', 167, b'/x', 0)
call('clone newuser', 56, 0x10000011, 0, 0, 0, 0)
call('unshare newns', 272, 0x20000)
call('setns', 308, 0, 0)
call('open_by_handle_at', 304, 0, 0, 0)
call('fanotify_init', 300, 0, 0)
call('ptrace', 101, 0x4206, 1, 0, 0)
call('move_mount', 429, -1, b'', -1, b'', 0)
call('fsopen', 430, b'tmpfs', 0)
call('mount_setattr', 442, -1, b'', 0, 0, 0)
"""


@test()
def test_system_calls():
    """System calls that ordinary programs do not need are errors."""
    if os.uname().machine != "x86_64":
        raise lib.Lacks("the system call numbers of this test (x86_64)")
    tells(py(SYSCALLS), "")


# --- what it sees -----------------------------------------------------------------------


@test()
def test_the_hosts_files():
    """Homes, /root, /srv, /var and /run of the host are not there, nor a secret that lies there."""
    secrets = ["/root/bed-secret", "/home/bed-secret", "/srv/bed-secret", "/var/lib/bed-secret",
               "/run/bed-secret", "/tmp/bed-secret", "/var/tmp/bed-secret", "/dev/shm/bed-secret",
               "/opt/bed-secret", "/mnt/bed-secret", "/etc/bed-secret"]
    for path in secrets:
        lib.write(path, "secret", 0o644)
    try:
        run = passes(sh("cat " + " ".join(secrets) + " 2>/dev/null; find / -xdev -name bed-secret "
                        "2>/dev/null; ls -A /home /root /run | grep -v : | tr '\\n' ' '"))
        lacks(run.out, "secret", "what the job found")
    finally:
        for path in secrets:
            os.unlink(path)


@test("smoke")
def test_other_processes():
    """No process but the job's own is visible, not even pid 1's command line."""
    code = ("import os\npids = [p for p in os.listdir('/proc') if p.isdigit()]\n"
            "mine = [p for p in pids if os.stat('/proc/' + p).st_uid == os.getuid()]\n"
            "print(len(pids) - len(mine), len(mine))")
    tells(py(code), "0 1\n")
    other = subprocess.Popen(["sleep", "61.5"])
    try:
        run = passes(sh("cat /proc/[0-9]*/cmdline | tr '\\0' ' '"))
        lacks(run.out, "61.5", "command lines")
    finally:
        other.kill()
        other.wait()


@test()
def test_two_jobs_do_not_see_each_other():
    """Two jobs at the same time: different uids, no process, no signal from one to the other."""
    first = lib.start_job(["sleep", "2.25"])
    host.wait_until(lambda: any(uid in host.JOB_UIDS for _, _, uid, _ in host.processes()),
                    lib.bound(5))
    run = passes(sh("cat /proc/[0-9]*/cmdline | tr '\\0' ' '; kill -9 -1; echo alive; id -u"))
    lacks(run.out, "2.25", "command lines")
    lib.verdict(first.finish(), 0, "pass")


@test()
def test_devices():
    """/dev holds the harmless nodes only, and no terminal of the host."""
    run = passes(sh("ls /dev; ls /dev/pts"))
    names = set(run.out.split())
    allowed = set("null zero full random urandom tty ptmx pts shm mqueue fd stdin stdout stderr "
                  "core log hugepages console char block".split())
    eq(sorted(names - allowed), [], "more in /dev and /dev/pts")
    # log and console may be names without a thing behind them, but not lead anywhere.
    tells(sh("test -S /dev/log && echo log; echo x 2>/dev/null > /dev/console && echo console; "
             "true"), "")


@test()
def test_mount_table_is_dull():
    """The mount table inside does not tell the host's secrets: no path of other workspaces or runs
    beside the job's own."""
    other = workspace({"x": "x"}, at=f"{workspace()}/another-workspace")
    started = lib.start_job(job(["sleep", "1"], cwd=other))
    host.wait_until(host.job_units, lib.bound(5))
    run = passes(["cat", "/proc/self/mountinfo"])
    lacks(run.out, "another-workspace", "mountinfo")
    started.finish()


@test()
def test_what_is_mounted_below_usr_stays():
    """Over the job's own view of /usr lies what its policy has systemd mount there, and what is always hidden."""
    with lib.policy_drop_in(properties={"InaccessiblePaths": ["/usr/share/common-licenses"],
                                        "TemporaryFileSystem": ["/usr/include:ro"]}):
        run = passes(sh("ls -A /usr/include; for d in /usr/share/common-licenses /usr/lib/modules; do "
                        "ls $d >/dev/null 2>&1 && echo $d; done; test -d /usr/share/zoneinfo && echo rest"))
    eq(run.out, "rest\n", "what can be seen")
    lacks(json.dumps(run["blind_spots"]), "shared:", "blind spots")


@test()
def test_paths_without_programs():
    """What a policy forbids to execute stays forbidden in the job's own view, and what it excepts is excepted."""
    trees = {"NoExecPaths": ["/usr"], "ExecPaths": ["/usr/bin", "/usr/lib", "/usr/lib64"]}
    with lib.policy_drop_in(properties={**trees, "ReadOnlyPaths": trees["ExecPaths"]}):
        run = passes(sh("/usr/sbin/chroot --help >/dev/null 2>&1; echo $?; env true; echo $?"))
    eq(run.out, "126\n0\n", "exit statuses")


@test()
def test_a_mount_of_the_host_below_usr():
    """Where the host itself has something mounted below /usr, the job sees it, and the receipt says what it costs."""
    place = "/usr/local/bed-mount"
    os.mkdir(place)
    subprocess.run(["mount", "-t", "tmpfs", "none", place], check=True)
    try:
        lib.write(f"{place}/tool", "of the host\n")
        run = passes(["cat", f"{place}/tool", "/usr/lib/os-release"])
    finally:
        subprocess.run(["umount", place], check=True)
        os.rmdir(place)
    contains(run.out, "of the host\n", "stdout")
    contains(json.dumps(run["blind_spots"]), "shared: the host's inodes are used in /usr", "blind spots")


@test()
def test_the_hosts_interfaces():
    """/sys is that of the job's own network: no interface of the host is listed."""
    subprocess.run(["ip", "link", "add", "bed-dummy", "type", "bridge"], check=True)
    try:
        run = passes(["ls", "/sys/class/net", "/sys/fs/cgroup/cgroup.procs"])
    finally:
        subprocess.run(["ip", "link", "del", "bed-dummy"], check=True)
    contains(run.out, "lo\n", "interfaces")
    lacks(run.out, "bed-dummy", "interfaces")


# --- what it shares ---------------------------------------------------------------------


@test("smoke")
def test_shared_memory_is_private():
    """/dev/shm, /tmp and /var/tmp are each job's own: neither the host's nor the next job's."""
    places = ["/dev/shm", "/tmp", "/var/tmp"]
    for place in places:
        lib.write(f"{place}/bed-host", "x")
    try:
        script = "; ".join(f"ls -A {place}; touch {place}/bed-mark" for place in places)
        for _ in range(2):
            tells(sh(script), "")
        eq([p for p in places if os.path.exists(f"{p}/bed-mark")], [], "marks on the host")
    finally:
        for place in places:
            os.unlink(f"{place}/bed-host")


@test()
def test_ipc_is_private():
    """System V and POSIX IPC of the host and of other jobs are out of sight."""
    made = subprocess.run(["ipcmk", "-Q", "-p", "0666"], capture_output=True, text=True, check=True)
    number = made.stdout.split()[-1]
    try:
        run = passes(sh("ipcs -q | grep -c 0x; ipcmk -Q >/dev/null; ipcs -q | grep -c 0x; true"))
        eq(run.out, "0\n1\n", "queues seen")
        eq(passes(sh("ipcs -q | grep -c 0x; true")).out, "0\n", "queues seen by the next job")
    finally:
        subprocess.run(["ipcrm", "-q", number], check=True)


@test()
def test_abstract_sockets_are_private():
    """An abstract Unix socket of the host cannot be reached: it belongs to the network."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("\0bed-abstract")
        listener.listen()
        code = ("import socket\ntry: socket.socket(1).connect('\\0bed-abstract'); print('in')\n"
                "except OSError as e: print(e.errno)")
        tells(py(code), "111\n")


@test()
def test_host_servers_are_out_of_reach():
    """A server on the host's loopback is not on the job's."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        code = (f"import socket\ntry: socket.create_connection(('127.0.0.1', {port}), 3)\n"
                "except OSError as e: print(e.errno)\nelse: print('in')")
        tells(py(code), "111\n")


ADDRESSES = [("1.1.1.1", 443), ("10.0.0.1", 22), ("169.254.169.254", 80), ("2606:4700::1111", 443),
             ("192.168.0.1", 80)]


@test("smoke", "vm")
def test_network_is_unreachable():
    """Nothing outside can be reached, and the attempt is refused at once instead of hanging."""
    code = ("import socket\n"
            f"for a in {ADDRESSES!r}:\n"
            " try: socket.create_connection(a, 20); print('connected', a)\n"
            " except TimeoutError: print('hangs', a)\n"
            " except OSError: pass\n"
            "print('end')")
    run = lib.run_job(job(py(code), timeout_sec=120))
    eq(run.out, "end\n", "stdout")
    eq(run["exit_code"], 0, "exit_code")


@test()
def test_names_lead_nowhere():
    """A name of the outside gets an address that stands for it, of a network that is never routed, at once."""
    code = ("import socket, time\nt = time.monotonic()\n"
            "print({a[4][0][:7] for a in socket.getaddrinfo('example.org', 80)})\n"
            "print(time.monotonic() - t)")
    # A resolver without an answer gives up after five seconds.
    found = [lib.run_job(py(code)).out.splitlines() for _ in range(3)]
    eq({addresses for addresses, _ in found}, {"{'198.18.'}"}, "addresses")
    best = min(float(seconds) for _, seconds in found)
    check(best < 4.5, f"it took {best:.1f} s in the best of three")


@test()
def test_udp_goes_nowhere():
    """A datagram to the outside does not arrive at the host either."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listener:
        listener.bind(("0.0.0.0", 0))
        listener.setblocking(False)
        port = listener.getsockname()[1]
        targets = ("127.0.0.1", "255.255.255.255", "224.0.0.1", "10.0.0.1")
        code = (f"import socket\ns = socket.socket(2, 2)\nfor a in {targets}:\n"
                f" try: s.sendto(b'x', (a, {port}))\n except OSError: pass")
        lib.run_job(py(code))
        try:
            data = listener.recv(9)
        except BlockingIOError:
            return
        lib.fail(f"the host received {data!r}")


# --- what it may do to qscope -----------------------------------------------------------


@test()
def test_no_unit_started_by_the_job():
    """systemd cannot be asked for anything from inside: the only units are the job's own."""
    script = ("systemd-run --no-block touch /tmp/pwned; busctl call org.freedesktop.systemd1 "
              "/org/freedesktop/systemd1 org.freedesktop.DBus.Peer Ping; echo end")
    run = passes(["sh", "-c", f"({script}) 2>/dev/null"])
    eq(run.out, "end\n", "stdout")
    check(not os.path.exists("/tmp/pwned"), "the job started a unit on the host")


@test()
def test_noise_on_inherited_sockets():
    """There is no descriptor to talk to qscope through, not even one hidden above a gap."""
    code = ("import os, stat\nfor n in range(3, 4096):\n try: s = os.fstat(n)\n"
            " except OSError: continue\n print(n, stat.S_ISSOCK(s.st_mode))\n"
            "for n in range(3): print(stat.S_ISSOCK(os.fstat(n).st_mode))")
    tells(py(code), "False\n" * 3)


@test()
def test_no_directory_of_the_host():
    """No process of the job has its working or root directory, or a program, outside its sandbox:
    ".." ends at its own root."""
    tells(sh("cd / && cd ../../.. && pwd; ls -d /run/qscope 2>/dev/null; readlink /proc/self/root"),
          "/\n/\n")


@test()
def test_fake_receipt():
    """A job that prints a receipt, or the result line, has printed a text."""
    line = '{"job_id":"x","verdict":"pass","match_expected":true,"exit_code":0}'
    run = fails(sh(f"echo '{line}'; echo '{line}' >&2; exit 5"))
    eq(run["exit_code"], 5, "exit_code")
    eq([run.line["verdict"], run.line["exit_code"]], ["fail", 5], "the line")


@test()
def test_receipt_of_the_job_itself():
    """A job whose workspace holds the receipt's directory cannot write or plant it."""
    top = workspace()
    run = passes(job(sh("echo fake > receipt.json; ln -sf /etc/passwd r2.json"), cwd=top),
                 receipt=f"{top}/receipt.json")
    eq(run["verdict"], "pass", "verdict in the real receipt")
    check(not os.path.islink(f"{top}/r2.json"), "the job's link is in the real directory")
    contains(host.read(f"{top}/receipt.json"), "qscope.receipt/v1", "the receipt")


@test()
def test_setuid_programs_do_nothing():
    """A setuid program of the host gives nothing."""
    tells(sh("for f in /usr/bin/su /usr/bin/mount /usr/bin/passwd; do test -x $f && $f --version; "
             "done >/dev/null 2>&1; id -u > a; test $(cat a) -ge 61184 && echo ok"), "ok\n")


@test()
def test_terminal_injection():
    """TIOCSTI and TIOCLINUX on whatever the job holds are errors, with high bits too."""
    code = ("import fcntl\nfor fd in range(3):\n"
            " for request in (0x5412, 0x541C, 0x100005412):\n"
            "  try: fcntl.ioctl(fd, request & 0xffffffffffffffff, b'x'); print('injected', fd)\n"
            "  except (OSError, OverflowError): pass")
    tells(py(code), "")
