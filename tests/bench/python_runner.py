# SPDX-License-Identifier: Apache-2.0
"""A rival: the least that runs a job file and writes a receipt. A child with a timeout, only the agreed variables, and
the first bytes of what it printed. Usage: python_runner.py JOB.json RECEIPT.json"""

import json
import os
import subprocess
import sys
import time

KEPT = 8192


def kept(data):
    return (data or b"").decode("utf-8", "replace")[:KEPT]


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        job = json.load(file)
    limit = job.get("timeout_sec", 30)
    names = job.get("env_allowlist", ["PATH", "HOME", "LANG", "LC_ALL", "TERM"])
    environment = {name: os.environ[name] for name in names if os.environ.get(name)}
    receipt = {"job_id": job.get("job_id"), "argv": job["argv"], "exit_code": None, "timed_out": False}
    begin = time.monotonic()
    try:
        done = subprocess.run(job["argv"], cwd=job["cwd"], env=environment, capture_output=True, timeout=limit,
                              check=False)
        receipt.update(exit_code=done.returncode, stdout=kept(done.stdout), stderr=kept(done.stderr))
    except subprocess.TimeoutExpired as late:
        receipt.update(timed_out=True, stdout=kept(late.stdout), stderr=kept(late.stderr))
    except FileNotFoundError as error:
        receipt.update(exit_code=127, stderr=str(error))
    receipt["duration_ms"] = int(1000 * (time.monotonic() - begin))
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        json.dump(receipt, file, indent=2)
    return 0 if receipt["exit_code"] == job.get("expected_exit", 0) else 1


sys.exit(main())
