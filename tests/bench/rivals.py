# SPDX-License-Identifier: Apache-2.0
"""One command, run by qscope and by what else one could take: the command lines.

Of `qscope plan` are the properties of the sandbox, so that systemd-run gets the same.
"""

import json
import os
import subprocess

import measure
from measure import ENVIRONMENT, Broken

HERE = os.path.dirname(os.path.abspath(__file__))
QSCOPE = os.environ.get("QSCOPE", "qscope")
OWNER = 1000  # of workspaces

# What of the plan's service is not the sandbox but how a unit is started, named, held and ended; systemd-run has its
# own way of each, or none.
NOT_SANDBOX = set("""Description LogExtraFields Slice Type ExitType CollectMode RemainAfterExit TimeoutStartSec
    StandardInput StandardOutput StandardError RootDirectory RootImage""".split())

ROOT_LINKS = {"bin": "usr/bin", "sbin": "usr/sbin", "lib": "usr/lib", "lib64": "usr/lib64"}
ROOT_DIRECTORIES = "usr etc proc sys dev run tmp var/tmp home root".split()


class Job:
    """A command in a workspace, as a job file. top: a directory for what belongs to it."""

    def __init__(self, top, argv, cwd, **fields):
        os.makedirs(f"{top}/receipts", exist_ok=True)
        self.top = top
        self.argv = argv
        self.cwd = cwd
        self.path = f"{top}/job.json"
        self.count = 0
        with open(self.path, "w", encoding="utf-8") as file:
            json.dump({"job_id": "bench", "argv": argv, "cwd": cwd, **fields}, file)

    def plan(self):
        text = measure.output_of(QSCOPE, "plan", "--json", self.path)
        if not text:
            raise Broken("qscope plan says nothing: is it installed?")
        return json.loads(text)

    def receipt_path(self):
        self.count += 1
        return f"{self.top}/receipts/{self.count}.json"


def state_options(top):
    """So that a host keeps nothing of it."""
    return ["--state-dir", f"{os.path.dirname(top)}/state"]


# --- qscope -----------------------------------------------------------------------------


def qscope_words(job, receipt):
    return [QSCOPE, "run", "--quiet", *state_options(job.top), job.path, receipt]


def qscope(job, look=None):
    """Runs it; the receipt must be that of a pass, and look(receipt) may want more."""

    def run():
        path = job.receipt_path()
        # The receipt says better than the exit status why it is no pass.
        seconds = measure.seconds_of(qscope_words(job, path), cwd=job.cwd, statuses=(0, 1, 3, 4))
        receipt = read_pass(path)
        if look:
            look(receipt)
        return seconds

    return run


def read_pass(path):
    with open(path, encoding="utf-8") as file:
        receipt = json.load(file)
    if receipt["verdict"] != "pass":
        words = "; ".join(reason["message"] for reason in receipt["reasons"])
        raise Broken(f"verdict {receipt['verdict']} of {receipt['argv']}: {words}: {receipt['stderr'][-300:]}")
    return receipt


# --- systemd-run ------------------------------------------------------------------------


def systemd_run_words(*options):
    return ["systemd-run", "--quiet", "--wait", "--pipe", "--collect", *options]


def plain_systemd_run(argv, cwd):
    return [*systemd_run_words(f"--working-directory={cwd}"), "--", *argv]


def plans_systemd_run(job):
    """The line that `qscope plan` prints for doing it by hand."""
    words = job.plan()["systemd_run"]
    return [words[0], "--quiet", *words[1:]]


def same_sandbox(job):
    """(systemd-run with all that is sandbox in the plan, what of the plan is left out). The root, which qscope makes
    for each job, is a directory that is made once here."""
    plan = job.plan()
    root = make_root(f"{job.top}/root", job.cwd)
    words = systemd_run_words("--service-type=exec", f"--working-directory={job.cwd}",
                              *(f"--setenv={item['name']}" for item in plan["env"]), "-p", f"RootDirectory={root}")
    left_out = []
    for entry in plan["units"]["service"]["properties"]:
        name, value = entry.split("=", 1)
        if name in NOT_SANDBOX:
            left_out.append(name)
            continue
        if name == "BindReadOnlyPaths":
            shown = [path for path in value.split() if not path.endswith(":/run/qscope-stage")]
            # qscope attaches these itself.
            attached = [f"-{mount['source']}" for mount in plan["mounts"] if mount["path"].startswith("/etc/")]
            value = " ".join([*shown, *attached, job.cwd])
        words += ["-p", f"{name}={value}"]
    # systemd expands $NAME in a command line (systemd.service(5)).
    return [*words, "--", *(word.replace("$", "$$") for word in job.argv)], sorted(set(left_out))


def make_root(root, cwd):
    for name in [*ROOT_DIRECTORIES, cwd.lstrip("/")]:
        os.makedirs(f"{root}/{name}", exist_ok=True)
    for name, target in ROOT_LINKS.items():
        if not os.path.lexists(f"{root}/{name}"):
            os.symlink(target, f"{root}/{name}")
    return root


# --- others -----------------------------------------------------------------------------


def bubblewrap(argv, cwd):
    """The namespaces of a job (user, mount, pid, network, ipc, uts, cgroup), the host's /usr, a private /tmp and home,
    no capabilities. It has no filter of system calls here, no limits, no control group of its own."""
    links = [word for name, target in ROOT_LINKS.items() for word in ("--symlink", target, f"/{name}")]
    environment = [word for name in ("PATH", "LANG", "TERM") for word in ("--setenv", name, ENVIRONMENT[name])]
    return ["bwrap", "--unshare-all", "--new-session", "--die-with-parent", "--ro-bind", "/usr", "/usr", *links,
            "--ro-bind", "/etc/ld.so.cache", "/etc/ld.so.cache", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp",
            "--tmpfs", "/var/tmp", "--tmpfs", "/root", "--ro-bind", cwd, cwd, "--chdir", cwd, "--cap-drop", "ALL",
            "--uid", str(OWNER), "--gid", str(OWNER), "--clearenv", *environment, "--setenv", "HOME", "/root",
            "--", *argv]


def python_runner(job):
    return ["python3", f"{HERE}/python_runner.py", job.path, f"{job.top}/python-receipt.json"]


def shell_runner(argv, cwd):
    return ["sh", f"{HERE}/shell_runner.sh", cwd, *argv]


def lacking(words):
    """Whether the program of a rival is not there."""
    return subprocess.run(["sh", "-c", 'command -v "$1"', "sh", words[0]], env=ENVIRONMENT, check=False,
                          stdout=subprocess.DEVNULL).returncode != 0
