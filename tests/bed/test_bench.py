# SPDX-License-Identifier: Apache-2.0
"""The bench measures: not how fast anything is, but that tools/bench still works."""

import json
import os
import subprocess

import lib
from lib import check, eq, scratch, test

GROUP = "bench"

# Beside these tests, in the tree as in the bed.
BENCH = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "bench", "run")


def measured(*groups):
    if not os.path.exists(BENCH):
        raise lib.Lacks("tests/bench beside these tests")
    out = scratch("bench.json")
    done = subprocess.run([BENCH, "--quick", "--json", out, *groups], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=lib.CALLER, check=False)
    text = done.stdout.decode(errors="replace")
    eq(done.returncode, 0, f"exit status; it says {text[-600:]}")
    return text, json.loads(lib.read_bytes(out))


@test(timeout=60)
def test_quick():
    """Two groups in small: all rivals run, nothing is lost between samples, table and JSON."""
    text, content = measured("cold", "output")
    eq(content["schema"], "qscope.bench/v1", "schema")
    eq(sorted(content["groups"]), ["cold", "output"], "groups")
    check(content["quick"] and content["host"]["cpus"] and content["end"]["load"], "facts are missing")
    rows = content["groups"]["cold"]["tables"][0]["rows"]
    eq(len(rows), 8, f"rivals of {sorted(rows)}")
    for name, row in rows.items():
        check(len(row["values"]) == 2 and min(row["values"]) > 0, f"{name}: {row}")
        lib.contains(text, f"    {name} ", "the table")
    figure = content["groups"]["cold"]["figures"][0]
    eq([figure["key"], figure["at_most"]], ["cold", 1.10], "the target")
    eq(figure["reached"], figure["value"] <= 1.10, "reached")
    lib.contains(text, "what must be reached", "the table")
