# SPDX-License-Identifier: Apache-2.0
"""Hostile job files: status 2, a sentence that names the place, and nothing is started."""

import json
import os
import socket

import lib
from lib import check, collect, contains, eq, mentions, passes, scratch, test, workspace

GROUP = "hostile"


def text_of(**fields):
    return json.dumps({"argv": ["true"], **fields}).encode()


def refused(data, words, name="job"):
    """One job file: bytes; the sentence has the file's name and one of the words."""
    path = lib.write(scratch(lib.fresh_name(name) + ".json"), data)
    refused_path(path, words)


def refused_path(path, words):
    receipt = scratch(lib.fresh_name("never"))
    run = lib.qscope("run", path, receipt, receipt_path=receipt)
    eq(run.status, 2, "exit status")
    check(run.receipt is None, "a receipt was written")
    check(run.line is None and not run.stdout.strip(), f"stdout: {run.stdout!r}")
    contains(run.stderr, os.path.basename(path), "stderr")
    mentions(run.stderr, words, "stderr")
    check(run.stderr.isprintable() or run.stderr.replace("\n", "").isprintable(),
          f"stderr is not plain text: {run.stderr!r}")


def all_refused(cases):
    with lib.nothing_started():
        collect(cases, refused)


LINE = ["line", "column", "byte"]

SYNTAX = [
    (b"", ["empty", *LINE]), (b" \n\t ", ["empty", *LINE]), (b"null", ["object"]),
    (b"[]", ["object"]), (b"1", ["object"]), (b'"argv"', ["object"]), (b"{", LINE), (b"}", LINE),
    (b'{"argv":["true"],}', LINE), (b'{"argv":["true",]}', LINE), (b'{"argv":["true"]} x', LINE),
    (b'{"argv":["true"]}{"argv":["true"]}', LINE), (b'{"argv":["true"]}\0', LINE),
    (b'{"argv":["true"]} // c', LINE), (b'/* c */{"argv":["true"]}', LINE),
    (b"{'argv':['true']}", LINE), (b'{argv:["true"]}', LINE), (b'{"argv":["true"', LINE),
    (b'{"argv":["true]}', LINE), (b'{"argv":["tr\nue"]}', LINE), (b'{"argv":["a\tb"]}', LINE),
    (b'{"argv":["\\x41"]}', LINE), (b'{"argv":["\\u12"]}', LINE), (b'{"argv" ["true"]}', LINE),
    (b'{"argv":["true"],"timeout_sec":01}', LINE), (b'{"argv":["true"],"timeout_sec":+1}', LINE),
    (b'{"argv":["true"],"timeout_sec":1.}', LINE), (b'{"argv":["true"],"timeout_sec":.5}', LINE),
    (b'{"argv":["true"],"timeout_sec":0x1}', LINE), (b'{"argv":["true"],"timeout_sec":NaN}', LINE),
    (b'{"argv":["true"],"timeout_sec":Infinity}', LINE), (b'{"argv":["true"],"meta":tru}', LINE),
    (b'{"argv":["true"],"meta":True}', LINE), (b"true", ["object"]), (b"\x00" * 64, LINE),
    (b"\x7fELF\x02\x01\x01", LINE), (b"#!/bin/sh\ntrue\n", LINE), (b'{"":1,"argv":["true"]}', []),
]


@test()
def test_syntax():
    """What is not exactly one JSON object is refused, with the line."""
    all_refused([(data, words or ["key", "unknown", *LINE]) for data, words in SYNTAX])


ENCODING = [
    (b"\xef\xbb\xbf" + text_of(), ["byte order", "BOM", *LINE]),
    (text_of().decode().encode("utf-16"), ["UTF-8", *LINE]),
    (b'{"argv":["\xff"]}', ["UTF-8"]), (b'{"argv":["\xc3("]}', ["UTF-8"]),
    (b'{"argv":["\xc0\xaf"]}', ["UTF-8"]), (b'{"argv":["\xed\xa0\x80"]}', ["UTF-8"]),
    (b'{"argv":["\xf5\x80\x80\x80"]}', ["UTF-8"]), (b'{"argv":["true"],"x_\xff":1}', ["UTF-8"]),
    (b'{"argv":["a\\u0000b"]}', ["u0000", "NUL"]), (b'{"argv":["true\\u0000"]}', ["u0000", "NUL"]),
    (b'{"argv":["true"],"x_\\u0000":1}', ["u0000", "NUL"]),
    (b'{"argv":["true"],"meta":{"deep":["\\u0000"]}}', ["u0000", "NUL"]),
    (b'{"argv":["true"],"env":{"A":"\\u0000"}}', ["u0000", "NUL"]),
    (b'{"argv":["\\ud800"]}', ["surrogate", *LINE]),
    (b'{"argv":["\\udc00x"]}', ["surrogate", *LINE]),
    (b'{"argv":["\\ud800\\u0041"]}', ["surrogate", *LINE]),
]


@test()
def test_encoding():
    """Invalid UTF-8, byte order marks, lone surrogates and \\u0000 are refused by name."""
    all_refused(ENCODING)


DUPLICATES = [
    (b'{"argv":["true"],"argv":["false"]}', ["argv"]),
    (b'{"argv":["true"],"\\u0061rgv":["false"]}', ["argv"]),
    (b'{"argv":["true"],"limits":{"tasks":9,"tasks":99}}', ["tasks"]),
    (b'{"argv":["true"],"env":{"A":"1","A":"2"}}', ["A"]),
    (b'{"argv":["true"],"meta":{"k":1,"k":2}}', ["k"]),
    (b'{"argv":["true"],"x_a":1,"x_a":1}', ["x_a"]),
    (b'{"argv":["true"],"files":[{"path":"a","content":"","path":"b"}]}', ["path"]),
]


@test("smoke")
def test_duplicate_keys():
    """Two readers of a duplicate key see two jobs: refused, however it is spelled and wherever."""
    all_refused(DUPLICATES)


UNKNOWN = [
    (text_of(comand=1), ["comand"]), (text_of(Timeout_sec=1), ["Timeout_sec"]),
    (text_of(ARGV=["x"]), ["ARGV"]), (text_of(timeout=1), ["timeout"]),
    (text_of(x=1), ["x"]), (text_of(X_a=1), ["X_a"]), (text_of(schema="v1", shell=True), ["s"]),
    (text_of(limits={"memroy": 1}), ["limits.memroy"]),
    (text_of(expect={"stdot": {}}), ["expect.stdot"]),
    (text_of(expect={"stdout": {"equal": ""}}), ["expect.stdout.equal"]),
    (text_of(expect={"files": {"a": {"exist": True}}}), ["exist"]),
    (text_of(files=[{"path": "a", "content": "", "owner": 0}]), ["owner"]),
    (text_of(stdin={"path": "/x"}), ["stdin"]),
]


@test()
def test_unknown_keys():
    """A misspelled key is never ignored: it would be a limit that is not there."""
    all_refused(UNKNOWN)


def wrong(key, *values):
    return [(text_of(**{key: value}), [key]) for value in values]


TYPES = [
    *wrong("argv", None, "true", {}, 1, True, [], [""], ["true", ""], ["true", 1], ["true", None],
           [["true"]], {"0": "true"}),
    *wrong("job_id", 1, "", None, [], "a/b", "../x", ".hidden", "-dash", "a b", "a\nb", "é",
           "x" * 129, "a\x1b", "_x", "a%n"),
    *wrong("cwd", 1, [], None, "relative", "", True),
    *wrong("workspace", "none", 1, None, "Overlay", ""),
    *wrong("files", {}, "a", None, [1], [{}], [{"path": "a"}], [{"content": "x"}],
           [{"path": 1, "content": ""}], [{"path": "a", "content": 1}],
           [{"path": "a", "content": "", "source": "/x"}],
           [{"path": "a", "content_base64": "!!"}], [{"path": "a", "source": 1}],
           [{"path": "a", "content": "", "mode": "0999"}],
           [{"path": "a", "content": "", "mode": "rwx"}]),
    *wrong("stdin", 1, [], None, True, {}, {"file": 1}, {"file": "/x", "more": 1}),
    *wrong("stdin_base64", 1, "!!", "YQ=", "YQ==\n=", None),
    *wrong("timeout_sec", "30", None, 0, -1, True, [], -0.0, 1e300, 1e12),
    *wrong("expected_exit", -1, 256, 1.5, "0", "all", None, [], [256], ["0"], [1, True], {}, True),
    *wrong("env_allowlist", "PATH", None, {}, [1], [""], ["A=B"], [["A"]]),
    *wrong("env", [], "A=1", None, {"A": 1}, {"A": None}, {"": "x"}, {"A=B": "x"}),
    *wrong("allow_changes", "src", None, {}, [1], [""], ["../x"], ["a/../../b"]),
    *wrong("limits", [], "64M", None, 1),
    *wrong("network", "wifi", 1, None, True, [], "None"),
    *wrong("posture", "open", 1, None, "Isolated"),
    *wrong("expect", [], 1, None, {"stdout": "x"}, {"max_duration_ms": "1"},
           {"max_duration_ms": -1}, {"allow_leftovers": 1}, {"allow_listen": [0]},
           {"allow_listen": [65536]}, {"allow_listen": "80"}, {"allow_egress": [1]},
           {"allow_egress": ["host"]}, {"files": []}, {"files": {"a": 1}},
           {"stdout": {"sha256": "xyz"}}, {"stdout": {"matches": "("}},
           {"stdout": {"contains": 1}}, {"stdout": {"matches": "a" * 5000}}),
    *wrong("policy", 1, None, "", "../x", "a/b", "/etc/passwd", ".hidden"),
    *wrong("rationale", 1, None, [], {}),
    *wrong("meta", 1, "x", None, []),
    (b'{"timeout_sec": 5}', ["argv"]), (b"{}", ["argv"]),
]


@test(timeout=60)
def test_types_and_ranges():
    """A value of the wrong type or out of range is refused, and the sentence names its key."""
    all_refused(TYPES)


NUMBERS = [
    (b'{"argv":["true"],"timeout_sec":1e999}', ["timeout_sec", *LINE]),
    (b'{"argv":["true"],"timeout_sec":99999999999999999999}', ["timeout_sec", *LINE]),
    (b'{"argv":["true"],"timeout_sec":-1e999}', ["timeout_sec", *LINE]),
    (b'{"argv":["true"],"expected_exit":4294967296}', ["expected_exit"]),
    (b'{"argv":["true"],"limits":{"disk":18446744073709551615}}', ["limits.disk", *LINE]),
    (b'{"argv":["true"],"limits":{"disk":9007199254740993}}', ["limits.disk", *LINE]),
    (b'{"argv":["true"],"meta":{"n":9007199254740993}}', ["n", *LINE]),
    (b'{"argv":["true"],"meta":{"n":1e400}}', ["n", *LINE]),
    (b'{"argv":["true"],"timeout_sec":' + b"9" * 100_000 + b"}", ["timeout_sec", *LINE]),
]


@test()
def test_huge_numbers():
    """A number that cannot be kept exactly is refused, not rounded."""
    all_refused(NUMBERS)


NESTED = [
    (b"[" * 100_000, ["nest", "deep", "depth", *LINE]),
    (b'{"argv":["true"],"meta":' + b'{"a":' * 50_000 + b"1" + b"}" * 50_001,
     ["nest", "deep", "depth", *LINE]),
    (b'{"argv":["true"],"x_a":' + b"[" * 100 + b"]" * 100 + b"}", ["nest", "deep", "depth", *LINE]),
]


@test()
def test_deep_nesting():
    """Nesting is bounded: no stack is exhausted."""
    all_refused(NESTED)


@test()
def test_too_large():
    """Over 1 MiB is refused, also when it is white space; just under it is a job like others."""
    big = ["1 MiB", "1048576", "large", "too big"]
    all_refused([(text_of(rationale="x" * (2 << 20)), big), (b" " * (2 << 20) + text_of(), big),
                 (text_of() + b"\n" * (1 << 20), big)])
    job = {"argv": ["true"], "rationale": "x" * 1_000_000, "cwd": workspace()}
    run = passes(job)
    eq(len(run["rationale"]), 1_000_000, "length of the rationale")


@test("smoke")
def test_line_and_key():
    """The sentence leads to the place: the file, the line and the key."""
    text = b'{\n  "argv": ["true"],\n  "cwd": "/srv",\n  "timeout_sec": "soon"\n}\n'
    path = lib.write(scratch("named.json"), text)
    run = lib.qscope("run", path)
    eq(run.status, 2, "exit status")
    for word in ("named.json", "4", "timeout_sec"):
        contains(run.stderr, word, "stderr")
    broken = lib.qscope("run", lib.write(scratch("broken.json"), b'{\n\n\n "argv": [\n}\n'))
    contains(broken.stderr, "5", "stderr of a syntax error")


@test()
def test_not_a_file():
    """A FIFO, a directory, a socket, a device or nothing as the job file: no hanging, no reading
    without end."""
    os.mkfifo(scratch("fifo"))
    os.mkdir(scratch("directory"))
    os.symlink(scratch("dangling-target"), scratch("dangling"))
    os.symlink("loop", scratch("loop"))
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(scratch("socket"))
        with lib.nothing_started():
            paths = [scratch(name) for name in ("fifo", "directory", "socket", "dangling", "loop",
                                                "missing", "file/below")]
            words = ["file", "fifo", "directory", "empty", "loop", "link", "device"]
            collect([(path, words) for path in
                     [*paths, "/dev/zero", "/dev/null", "/dev/full"]], refused_path)


@test()
def test_endless_stdin():
    """An endless job on standard input is cut at the limit."""
    with open("/dev/zero", "rb") as zero:
        run = lib.qscope("run", "-", stdin=zero)
    eq(run.status, 2, "exit status")


# --- extreme, and right -----------------------------------------------------------------


@test()
def test_accepted_extremes():
    """What the contract allows is accepted, however odd."""
    deep = json.loads('{"a":' * 40 + "1" + "}" * 40)
    passes({"argv": ["true"], "meta": deep})
    passes({"argv": ["true"], "meta": {"n": 9007199254740991, "m": -9007199254740991}})
    passes({"argv": ["true"], "expected_exit": list(range(256))})
    passes({"argv": ["true"], "job_id": "A" + "x.-_" * 31 + "xyz"})
    passes({"argv": ["true"], "timeout_sec": 0.75 * 40})
    passes({"argv": ["true"], "x_": None, "x_any": {"k": [1, "é"]}})
    passes({"argv": ["true"], "env_allowlist": [], "env": {}, "allow_changes": [], "limits": {}})


@test()
def test_white_space_and_escapes():
    """CRLF line ends, tabs and escaped letters are JSON like any other."""
    top = workspace()
    text = '{\r\n\t"argv" : [ "echo" ,"\\u0061\\ud83d\\ude00\\/" ] , "cwd":"%s"\r\n}\r\n' % top
    eq(passes(text.encode()).out, "a\U0001f600/\n", "stdout")
