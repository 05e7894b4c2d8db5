# SPDX-License-Identifier: Apache-2.0
"""Suites: each language's harness, what cheats and what is flaky, and the same results in any order."""

import json
import os
import shutil

import host
import lib
from lib import check, contains, eq, lacks, qscope, scratch, test, write

GROUP = "eval"

CASES = [
    {"name": "sorts", "input": [3, 1, 2], "output": [1, 2, 3]},
    {"name": "empty", "input": [], "output": []},
    {"name": "unchanged", "input": [2, 1], "unchanged": True},
    {"name": "both", "input": [2, 1], "output": [1, 2], "unchanged": True},
]

GOOD = "def solution(a):\n    print('noise')\n    return sorted(a)\n"
MUTATES = "def solution(a):\n    a.sort()\n    return a\n"


def suite(cases=None, **fields):
    """The path of a suite. Its policy asks for limits that not every bed can keep."""
    policy = "eval" if host.has_controllers() else "default"
    content = {"name": "s", "policy": policy, "defaults": {"timeout_sec": 30, "allow_changes": []},
               "cases": cases or CASES, **fields}
    return write(scratch() + "/suite.json", json.dumps(content))


def candidate(name, text):
    path = f"{scratch()}/{name}"
    write(path, text)
    return path


def evaluate(*args, status=0):
    """The result, and the exit status is as it should be."""
    run = qscope("eval", "--json", *args, timeout=180)
    eq(run.status, status, f"qscope's exit status ({run.stdout[-300:]} {run.stderr})")
    return json.loads(run.stdout)


def outcomes(result, number=0):
    return {item["case"]: item["pass"] for item in result["candidates"][number]["results"]}


def all_of(value):
    return {case["name"]: value for case in CASES}


@test("smoke", timeout=120)
def test_python():
    """The seeds' table, with a candidate that is right and one that sorts in place."""
    result = evaluate(suite(), candidate("good.py", GOOD), "--solution", candidate("bad.py", MUTATES), status=1)
    eq(outcomes(result), all_of(True), "good.py")
    eq(outcomes(result, 1), {"sorts": True, "empty": True, "unchanged": False, "both": False}, "bad.py")
    eq(result["pass_at_k"], {"1": 0.5, "2": 1}, "pass@k")
    eq([c["harness"] for c in result["candidates"]], ["python", "python"], "harness")


@test(timeout=120)
def test_shell_and_c():
    """The harnesses of compiled and of shell candidates."""
    cases = [{"name": "length", "input": [1, 2, 3], "output": 7, "unchanged": True},
             {"name": "empty", "input": "", "output": 2}]
    shell = "solution() { echo noise >&2; printf %s \"$(cat)\" | tr -d '\\n' | wc -c; }\n"
    c = ("#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\nchar *solution(const char *input)\n{\n"
         "  char *text = malloc(32);\n  puts(\"noise\");\n"
         "  snprintf(text, 32, \"%zu\", strcspn(input, \"\\n\"));\n  return text;\n}\n")
    path = suite(cases)
    result = evaluate(path, candidate("a.sh", shell))
    eq(outcomes(result), {"length": True, "empty": True}, "shell")
    if not shutil.which("cc"):
        raise lib.Lacks("a C compiler")
    result = evaluate(path, candidate("a.c", c))
    eq(outcomes(result), {"length": True, "empty": True}, "c")
    result = evaluate(path, candidate("broken.c", "int x = ;"), status=1)
    eq(outcomes(result), {"length": False, "empty": False}, "what does not compile")


@test(timeout=120)
def test_javascript():
    """Declared, exported and in module.exports."""
    if not shutil.which("node"):
        raise lib.Lacks("node")
    ways = ["const solution = (a) => [...a].sort((x, y) => x - y);",
            "export function solution(a) { console.log('noise'); return [...a].sort(); }",
            "module.exports = { solution: (a) => [...a].sort() };",
            "const solution = (a) => a.sort();"]
    result = evaluate(suite(), *[candidate(f"{i}.js", text) for i, text in enumerate(ways)], status=1)
    for number in range(3):
        eq(outcomes(result, number), all_of(True), ways[number])
    eq(outcomes(result, 3)["unchanged"], False, ways[3])


@test(timeout=120)
def test_programs_and_directories():
    """Cases with stdin, files and args; a candidate of several files."""
    cases = [{"name": "args", "args": ["one", "two"], "expect": {"stdout": {"equals": "one two\n"}}},
             {"name": "stdin", "stdin": "in\n", "expect": {"stdout": {"contains": "in"}}},
             {"name": "file", "files": [{"path": "data", "content": "d\n"}],
              "expect": {"stdout": {"contains": "d"}}},
             {"name": "exit", "args": ["fail"], "expected_exit": 3}]
    top = scratch("many")
    write(f"{top}/candidate.py", "import sys, helper\nprint(*sys.argv[1:])\nprint(sys.stdin.read(), end='')\n"
          "helper.show('data')\nsys.exit(3 if 'fail' in sys.argv else 0)\n")
    write(f"{top}/helper.py", "import os\ndef show(name):\n    if os.path.exists(name): print(open(name).read())\n")
    cases[0]["expect"] = {"stdout": {"contains": "one two"}}
    result = evaluate(suite(cases, harness="python"), top)
    eq(outcomes(result), {case["name"]: True for case in cases}, "outcomes")
    os.symlink("/etc/passwd", f"{top}/link")
    run = qscope("eval", suite(cases, harness="python"), top)
    eq(run.status, 2, "a link in a candidate")
    contains(run.stderr, "is a link")


@test(timeout=180)
def test_any_order():
    """The same inputs give the same results, one at a time or several, run again or resumed."""
    two_ways = "import os\ndef solution(a):\n    return sorted(a) if os.getpid() % 2 else sorted(list(a))\n"
    path, one, two = suite(), candidate("one.py", GOOD), candidate("two.py", two_ways)
    receipts = scratch("receipts")
    first = evaluate(path, one, two, "--repeats", "2", "-j", "1", "--receipts", receipts)
    second = evaluate(path, one, two, "--repeats", "2", "-j", "3")
    eq(first["results_sha256"], second["results_sha256"], "results")
    eq(len(os.listdir(receipts)), 16, "receipts")
    receipt = lib.load_receipt(f"{receipts}/{sorted(os.listdir(receipts))[0]}")
    eq(receipt["x_eval"]["suite"], "s", "origin")
    third = evaluate(path, one, two, "--repeats", "2", "--receipts", receipts, "--resume")
    eq(first["results_sha256"], third["results_sha256"], "resumed")
    eq(len(os.listdir(receipts)), 16, "nothing was run again")
    other = evaluate(path, one, candidate("bad.py", MUTATES), status=1)
    check(other["results_sha256"] != first["results_sha256"], "other results have another digest")


@test(timeout=120)
def test_hostile_candidates():
    """One that forges the answer's form, one that ends early, one that hangs, one that replaces the harness."""
    cases = [{"name": "c", "input": 1, "output": 2}]
    path = suite(cases, defaults={"timeout_sec": 3})
    bad = ["import sys\nsys.stdout.write('{\"output\": 2}')\ndef solution(a): return 3\n",
           "import os\nos.write(1, b'{\"output\": 2}')\ndef solution(a): return 3\n",
           "import os\nos._exit(0)\n", "while True: pass\n", "def solution(a): return float('nan')\n",
           "import socket\nsocket.socket(2, 2).sendto(b'x', ('10.0.0.1', 9))\ndef solution(a): return 2\n"]
    result = evaluate(path, *[candidate(f"{i}.py", text) for i, text in enumerate(bad)], "-j", "2", status=1)
    eq([c["pass"] for c in result["candidates"]], [False] * len(bad), "none passes")
    eq(result["candidates"][5]["results"][0]["reason"], "egress", "a right answer, and an attempt to leave")
    top = scratch("replaces")
    write(f"{top}/candidate.py", "")
    write(f"{top}/harness.py", "print('{\"output\": 2}')")
    run = qscope("eval", suite(cases, harness="python"), top)
    eq(run.status, 2, "a candidate with the harness's file")
    contains(run.stderr, "harness.py")


@test(timeout=60)
def test_table():
    """What people see, and the CSV file: escaped, whatever a candidate is called."""
    path = candidate("a\x1b[31m.py", GOOD)
    csv = scratch("out.csv")
    run = qscope("eval", suite(CASES[:1]), path, "--csv", csv)
    eq(run.status, 0, f"qscope's exit status ({run.stderr})")
    contains(run.stdout, "1 of 1 cases pass")
    contains(run.stdout, "pass@1 1.000")
    lacks(run.stdout, "\x1b")
    with open(csv, encoding="utf-8") as f:
        lacks(f.read(), "\x1b")


@test()
def test_refused():
    """What does not go together is told before anything runs."""
    good = candidate("good.py", GOOD)
    for args, text in [((suite([{"name": "x", "input": 1}]), good), "asks nothing"),
                       ((suite(), candidate("a.unknown", "")), "no harness"),
                       ((suite(harness="../x/none.json"), good), "none.json"),
                       ((suite(), "/nonexistent.py", "--harness", "python"), "nonexistent"),
                       ((suite(),), "candidates are missing"),
                       ((suite(), good, f"{os.path.dirname(good)}/./{os.path.basename(good)}"), "given twice"),
                       ((suite(), good, "--harness", "cobol"), "there are: c, javascript, python, shell"),
                       ((suite(), good, "--repeats", "0"), "--repeats 0")]:
        run = qscope("eval", *args)
        eq(run.status, 2, f"status of {args}")
        contains(run.stderr, text)
