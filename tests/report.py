#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The page of qscope report in a real browser: what is hostile stays text, the filters and keys work, a thousand
receipts are there at once, both themes can be read, and it fits a phone. With --pictures DIR it leaves some there.

Usage: report.py QSCOPE [--pictures DIR]
"""

import base64
import glob
import hashlib
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

import browser

TESTS = os.path.dirname(os.path.abspath(__file__))
MANY, FEW = 1000, 100

# What a page that did not take care would make elements, requests or code of.
HOSTILE = (
    "</script><script>window.pwned=1</script>",
    "<!--<script>",
    "]]></script><img src=https://example.invalid/x onerror=window.pwned=2>",
    "\"'><svg onload=window.pwned=3><a href='javascript:window.pwned=4'>x</a>",
    "<style>*{display:none}</style><iframe src=//example.invalid></iframe><meta http-equiv=refresh content=0>",
    "\u2028window.pwned=5\u2029\u202egpj.exe\x1b[2J\x00&lt;b&gt;\U000e0041",
    "${window.pwned=6}{{constructor.constructor('window.pwned=7')()}}",
)
# The elements that the page itself makes.
TAGS = set(
    "html head meta title style body header h1 div main nav input select option p a span code pre kbd article noscript"
    " script button b i section h2 h3 dl dt dd details summary figure figcaption svg path ul li table thead tbody tr th td"
    .split()
)


class Failed(Exception):
    pass


def check(condition, sentence):
    if not condition:
        raise Failed(sentence)


def eq(got, want, what):
    check(got == want, f"{what}: got {got!r:.300}, want {want!r:.300}")


# --- receipts ---------------------------------------------------------------------------


def golden(name):
    with open(f"{TESTS}/golden/receipt/{name}.json", encoding="utf-8") as file:
        return json.load(file)


def poisoned(value, number, key=None):
    """The same with something hostile in every string, and in every key that a job can choose."""
    text = HOSTILE[number % len(HOSTILE)].replace("\x00", "")
    if isinstance(value, str):
        return value if key in ("schema", "verdict") else text + value
    if isinstance(value, list):
        return [poisoned(item, number) for item in value]
    if isinstance(value, dict):
        return {name: poisoned(item, number, name) for name, item in value.items()}
    return value


def odd(value, chance, depth=0):
    """The same with other types here and there, below what the reader checks."""
    if depth > 1 and chance.random() < 0.15:
        return chance.choice([None, 7, -1.5, 1e15, "x", "", [], [None], {}, {"a": [1]}, True, "__proto__"])
    if isinstance(value, list):
        return [odd(item, chance, depth + 1) for item in value]
    if isinstance(value, dict):
        return {key: item if key == "reasons" else odd(item, chance, depth + 1) for key, item in value.items()}
    return value


def ordinary(number, chance):
    """A build of some processes, with what it used over time."""
    receipt = golden("pass")
    took = chance.randint(20, 9000)
    receipt.update(job_id=f"job-{number}", duration_ms=took, stdout="compiling\n" * 20)
    tree, at = [{"pid": 100, "ppid": None, "program": "/usr/bin/make", "argv": ["make", "-j2"], "start_ms": 0,
                 "end_ms": took, "exit_code": 0, "signal": None}], 1.0
    for pid in range(101, 101 + chance.randint(0, 12)):
        end = min(took, at + chance.random() * took / 6)
        tree.append({"pid": pid, "ppid": chance.choice(tree)["pid"], "program": "/usr/bin/gcc",
                     "argv": ["gcc", "-c", f"file{pid}.c"], "start_ms": at, "end_ms": max(at, end), "exit_code": 0,
                     "signal": None})
        at += chance.random() * took / 15
    receipt["processes"].update(tree=tree, total=len(tree))
    receipt["usage"].update(memory_peak_bytes=chance.randint(1 << 20, 1 << 28))
    return receipt


def write_receipts(directory, many):
    """Returns how many of them are special; they come first."""
    chance = random.Random(7)
    receipts = [golden(name) for name in ("many-causes", "files", "rejected", "not-found", "host-error")]
    more = {"meta": {"k": ["m"]}, "x_eval": {"suite": "s", "candidate": "c.py", "case": "one", "repeat": 2}}
    receipts += [poisoned({**golden("many-causes"), **more}, number) for number in range(len(HOSTILE))]
    receipts += [poisoned(golden("files"), number) for number in range(len(HOSTILE))]
    receipts += [odd(golden(name), chance) for name in ("many-causes", "files") for _ in range(25)]
    for path in glob.glob(f"{TESTS}/corpus/receipt/good/*.json"):
        with open(path, encoding="utf-8") as file:
            receipts.append(json.load(file))
    special = len(receipts)
    receipts += [ordinary(number, chance) for number in range(many - special - 2)]
    for number, receipt in enumerate(receipts):
        with open(f"{directory}/{number:04}.json", "w", encoding="utf-8") as file:
            json.dump(receipt, file, ensure_ascii=False)
    with open(f"{directory}/a<img src=x onerror=window.pwned=8>.json", "w", encoding="utf-8") as file:
        file.write('{"schema": "<script>window.pwned=9</script>"')
    with open(f"{directory}/z-empty.json", "w", encoding="utf-8"):
        pass
    return special


# --- what runs changed ------------------------------------------------------------------


def digest(data):
    return hashlib.sha256(data).hexdigest()


class State:
    """A state directory with layers, as runs would have left them, and the workspaces that they were of."""

    def __init__(self, directory):
        self.top, self.number = directory, 0
        os.makedirs(f"{directory}/layers")
        os.makedirs(f"{directory}/receipts")

    def run(self, before, after, then=None, kept="yes", tamper=False):
        """A run that made of the workspace before what is after (contents by name; None: there is no such file);
        then is what somebody made of it since. Its receipt is read after those of earlier calls."""
        self.number += 1
        run_id, workspace = f"{self.number:032x}", f"{self.top}/w{self.number}"
        os.makedirs(workspace)
        for name, data in {**before, **(then or {})}.items():
            if data is not None:
                with open(f"{workspace}/{name}", "wb") as file:
                    file.write(data)
        sides = {name: [None if side.get(name) is None else {"type": "file", "mode": "0644", "size": len(side[name]),
                                                              "sha256": digest(side[name])} for side in (before, after)]
                 for name in sorted(after)}
        fs = {"complete": True, "truncated": False, "unexpected": [], "added": [], "removed": [], "changed": []}
        for name, (old, new) in sides.items():
            if old and new:
                fs["changed"].append({"path": name, "what": ["content"], "before": old, "after": new})
            else:
                fs["added" if new else "removed"].append({"path": name, **(new or old)})
        receipt = {**golden("pass"), "run_id": run_id, "job_id": f"diff-{self.number}", "cwd": workspace, "fs": fs,
                   "kept": {"state": kept}}
        text = json.dumps(receipt).encode()
        self.write_layer(run_id, workspace, after, digest(text)) if kept == "yes" else None
        with open(f"{self.top}/receipts/{self.number:04}.json", "wb") as file:
            file.write(text + b" " * tamper)

    def write_layer(self, run_id, workspace, after, receipt_sha256):
        layer = f"{self.top}/layers/{run_id}"
        os.makedirs(layer)
        for data in filter(None, after.values()):
            with open(f"{layer}/{digest(data)}", "wb") as file:
                file.write(data)
        info = {"schema": "qscope.layer/v1", "run_id": run_id, "job_id": "x", "verdict": "pass", "workspace": workspace,
                "workspace_base64": base64.b64encode(workspace.encode()).decode(), "receipt_sha256": receipt_sha256,
                "files": 1, "bytes": 1, "kept_usec": 1}
        with open(f"{layer}/layer.json", "w", encoding="utf-8") as file:
            json.dump(info, file)


def evil_text(number):
    return (HOSTILE[number].replace("\x00", "") + "\n").encode()


def write_state(directory):
    state = State(directory)
    state.run({"a": b"one\ntwo\n", "gone": b"g\n"}, {"a": b"one\nTWO\n", "gone": None, "new": b"n"})
    # Names and contents of somebody who wants to be more than text.
    names = [HOSTILE[number].replace("\x00", "").replace("/", "\u2215") for number in range(len(HOSTILE))]
    state.run({names[n]: evil_text(n) for n in range(0, len(HOSTILE), 2)},
              {names[n]: evil_text(n) + b"\x1b[31m\xe2\x80\xae\xe2\x81\xa6" + evil_text(n - 1) for n in range(len(HOSTILE))})
    state.run({"moved-on": b"before\n", "linked": b"l\n", "done": b"d\n", "gone": b"g\n"},
              {"moved-on": b"SECRET-1\n", "linked": b"SECRET-2\n", "bytes": b"\xff\x00", "done": b"SECRET-6\n", "gone": None},
              then={"moved-on": b"other\n", "done": b"SECRET-6\n"})
    os.unlink(f"{directory}/w3/gone")
    os.unlink(f"{directory}/w3/linked")
    os.symlink(f"{directory}/w1/a", f"{directory}/w3/linked")
    state.run({}, {"long": b"x" * 100_000, "many": b"".join(b"%d\n" % n for n in range(9000)), "large": b"y\n" * 600_000})
    state.run({}, {f"f{n:03}": b"z\n" * 200 for n in range(300)})
    state.run({}, {"a": b"SECRET-3\n"}, tamper=True)
    state.run({}, {"a": b"SECRET-4\n"}, kept="off")
    state.run({}, {"a": b"lost\n"})
    state.run({"a": b"a\n"}, {"a": b"SECRET-7\n"})
    shutil.rmtree(f"{directory}/w9")
    with open(f"{directory}/layers/{8:032x}/{digest(b'lost' + bytes([10]))}", "wb") as file:
        file.write(b"SECRET-5\n")


# --- tests ------------------------------------------------------------------------------


class Page:
    def __init__(self, chromium, path, special):
        self.chromium, self.path, self.special = chromium, path, special

    def js(self, script):
        return self.chromium.run(script)

    def open(self, fragment=""):
        self.chromium.open("about:blank")
        return self.chromium.open(f"file://{self.path}{fragment}")

    def shown(self):
        """Titles of the rows that are not filtered away, in their order."""
        return self.js("[...document.querySelectorAll('a.row:not([hidden]) .job')].map(x => x.textContent)")

    def quiet(self):
        """Nothing was loaded but the page, no dialog came up, nothing was thrown, no policy was broken."""
        chromium = self.chromium
        wanted = [event["params"]["request"]["url"] for event in chromium.named("Network.requestWillBeSent")]
        eq([url for url in wanted if not url.startswith(("file://" + self.path, "about:blank"))], [], "requests")
        eq(chromium.named("Page.javascriptDialogOpening"), [], "dialogs")
        eq([str(event["params"])[:400] for event in chromium.named("Runtime.exceptionThrown", "Log.entryAdded")], [], "faults")
        eq(self.js("typeof window.pwned"), "undefined", "code of a job")


def test_opens_at_once(page):
    """By the CPU time of the page's thread: what else the machine does is not the page's affair. And it is not much
    more than what the browser takes for so many bytes, whatever they are."""
    page.chromium.call("Performance.enable", timeDomain="threadTicks")
    with open(page.path, encoding="utf-8") as file, open(f"{page.path}.plain.html", "w", encoding="utf-8") as plain:
        plain.write(re.sub("(<script>).*?(</script>)", r"\1\2", file.read(), flags=re.S))
    seconds, used = min(load(page, page.path) for _ in range(3))
    ready = float(page.js("document.documentElement.dataset.ready")) / 1000
    rows = page.js("document.querySelectorAll('a.row').length")
    _, plain = min(load(page, f"{page.path}.plain.html") for _ in range(3))
    load(page, page.path)
    print(f"     {MANY} receipts, {os.path.getsize(page.path) >> 10} KiB: loaded after {seconds:.2f} s, the list after"
          f" {ready:.2f} s, {used:.2f} s of CPU in all; {plain:.2f} s without its script")
    eq(rows, MANY, "rows")
    check(used < 2, f"the page took {used:.2f} s of CPU time")
    check(used < 3 * plain, f"the page took {used:.2f} s of CPU time, and {plain:.2f} s without its script")


def load(page, path):
    page.chromium.open("about:blank")
    before = metrics(page)
    seconds = page.chromium.open(f"file://{path}")
    return seconds, metrics(page) - before


def metrics(page):
    return next(m["value"] for m in page.chromium.call("Performance.getMetrics")["metrics"] if m["name"] == "TaskDuration")


def test_filters(page):
    """On the page that is open."""
    eq(len(page.shown()), MANY, "all")
    page.js("document.querySelector('#search').focus()")
    page.chromium.call("Input.insertText", text="job-77")
    found = page.shown()
    check("job-77" in found and len(found) < 20 and all("job-77" in name for name in found), f"found {found}")
    page.chromium.press("Escape")
    eq(len(page.shown()), MANY, "after Escape")
    page.js("document.querySelector('#verdicts button.rejected').click()")
    check("sample-1" in page.shown() and len(page.shown()) < 20, "only what was rejected")
    eq(page.js("document.querySelector('#count').textContent"), f"{len(page.shown())} of 1,000 receipts", "count")
    page.js("document.querySelector('#verdicts button.rejected').click()")
    page.js("{const s = document.querySelector('#reason'); s.value = 'timed_out'; s.dispatchEvent(new Event('change'))}")
    check(0 < len(page.shown()) < 40, f"by reason: {len(page.shown())}")
    page.js("{const s = document.querySelector('#reason'); s.value = ''; s.dispatchEvent(new Event('change'))}")
    page.js("{const s = document.querySelector('#order'); s.value = 'duration'; s.dispatchEvent(new Event('change'))}")
    eq(len(page.shown()), MANY, "in another order")
    eq(page.js("document.querySelectorAll('a.unreadable, .row .badge.unreadable').length"), 2, "unreadable")
    page.quiet()


def test_keys(page):
    page.open()
    page.js("document.activeElement.blur()")
    place = "location.hash + document.querySelectorAll('a.row[aria-current]').length"
    page.chromium.press("j")
    first = page.js(place)
    page.chromium.press("j")
    eq((first, page.js(place)), ("#21", "#31"), "j goes on")
    page.chromium.press("k")
    eq(page.js(place), first, "k goes back")
    page.chromium.press("Enter")
    eq(page.js("document.activeElement.id"), "detail", "Enter")
    page.chromium.press("/")
    eq(page.js("document.activeElement.id"), "search", "/")
    page.quiet()


# Opens a receipt and all in it that can be opened: what is there then.
LOOK = """(() => {
    history.replaceState(null, '', '#NUMBER');
    dispatchEvent(new Event('hashchange'));
    document.querySelectorAll('#detail details').forEach(box => box.open = true);
    const all = [...document.querySelectorAll('*')];
    return [
        [...new Set(all.map(x => x.tagName.toLowerCase()))],
        all.flatMap(x => x.getAttributeNames()).filter(x => x.startsWith('on') || x.startsWith('src')),
        [...document.links].map(x => x.getAttribute('href')).filter(x => !/^#[0-9]*$/.test(x)),
        document.querySelectorAll('.odd').length,
    ];
})()"""


def test_hostile(page):
    """Each of them is looked at whole."""
    page.open()
    for number in range(1, page.special + 3):
        tags, attributes, links, odd_parts = page.js(LOOK.replace("NUMBER", str(number)))
        eq(set(tags) - TAGS, set(), f"elements of receipt {number}")
        eq(attributes, [], f"attributes of receipt {number}")
        eq(links, [], f"links of receipt {number}")
        check(odd_parts == 0 or number > 5 + 2 * len(HOSTILE), f"receipt {number} is not shown whole")
    page.quiet()
    page.js("document.querySelector('#search').value = '</script>'; document.querySelector('#search').dispatchEvent(new Event('input'))")
    check(len(page.shown()) > 0, "hostile names can be searched for")
    text = page.js("document.querySelector('#list').textContent")
    check("</script><script>window.pwned=1</script>" in text, "they are shown as they are")
    check("\u202e" not in text and "\x1b" not in text, "what turns the text around is spelled out")


# The files of a receipt, each with what is below it up to the next.
DIFFS = """(number => {
    history.replaceState(null, '', `#${number}`);
    dispatchEvent(new Event('hashchange'));
    const found = {};
    let name = null;
    for (const element of document.querySelectorAll('.files > *, .files ~ .note')) {
        if (element.matches('.file')) name = element.querySelector('.path').textContent;
        else if (element.parentElement.matches('.files')) found[name] = [...(found[name] || []), element.textContent];
        else found[''] = [...(found[''] || []), element.textContent];
    }
    return found;
})"""


def test_diffs(page):
    """Of what is kept and still as it was recorded, and nothing else; what is cut or left out is named; a hostile name
    or content is text."""
    page.open()
    found = [None] + [page.js(f"{DIFFS}({number})") for number in range(1, page.special + 1)]
    eq(found[1], {"a": ["@@ -1,2 +1,2 @@\n one\n-two\n+TWO\n"], "new": ["@@ -0,0 +1,1 @@\n+n\n\\ No newline at end of file\n"],
                  "gone": ["@@ -1,1 +0,0 @@\n-g\n"]}, "the first")
    eq(len(found[2]), len(HOSTILE), "hostile names")
    text = "".join(sum(found[2].values(), []))
    check("</script><script>window.pwned=1</script>" in text and "\\x1b[31m\\xe2\\x80\\xae\\xe2\\x81\\xa6" in text, "they are shown")
    check(not set(text) & set("\x1b\u202e\u2066\u2028\U000e0041"), "what turns the text around is spelled out")
    other, done = ["No diff: the workspace has something else there now"], ["No diff: the workspace has the change already"]
    eq(found[3], {"moved-on": other, "linked": other, "bytes": ["No diff: not text"], "done": done, "gone": done}, "what is not shown")
    eq(found[4]["large"], ["No diff: larger than 1 MiB"], "the large one")
    eq((len(found[4]["long"][0]) >> 10, found[4]["long"][1]), (16, "Cut here: the diff is longer."), "a long one")
    check(found[4]["many"][0].endswith("\n… 8000 more lines\n"), "one of many lines")
    eq((len(found[5]) - 1, found[5][""]), (100, ["200 diffs more are not in this report."]), "of many")
    check("its SHA-256 is another" in found[6][""][0], "another receipt")
    check("--keep" in found[7][""][0], "what was not kept")
    eq(found[8]["a"], ["No diff: what was kept of it is damaged"], "a damaged layer")
    eq(found[9]["a"], ["No diff: the workspace is gone"], "without its workspace")
    page.js(LOOK.replace("NUMBER", "2"))
    tags, attributes, links, odd_parts = page.js(LOOK.replace("NUMBER", "2"))
    eq((set(tags) - TAGS, attributes, links, odd_parts), (set(), [], [], 0), "what the page is made of")
    page.quiet()
    with open(page.path, encoding="utf-8") as file:
        check("SECRET" not in file.read(), "nothing else is in the page")
    eq(os.stat(page.path).st_mode & 0o077, 0, "rights of others")
    subprocess.run([page.qscope, "report", "--no-diffs", "-o", page.path, os.path.dirname(page.path) + "/receipts"], check=True)
    page.open()
    eq(page.js(f"{DIFFS}(1)"), {}, "with --no-diffs")
    check(os.stat(page.path).st_mode & 0o044, "without contents it is a file as others")


def test_policy(page):
    """Even what got in would not run."""
    page.open()
    page.js("document.body.append(Object.assign(document.createElement('script'), {textContent: 'window.inline = 1'}))")
    page.js("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.inline = 2\">')")
    eq(page.js("typeof window.inline"), "undefined", "a script of another")
    check(page.chromium.named("Log.entryAdded"), "the browser says so")


LUMINANCE = """(name => {
    const box = document.createElement('span');
    box.style.color = `var(${name})`;
    document.body.append(box);
    const parts = getComputedStyle(box).color.match(/[0-9.]+/g).slice(0, 3).map(x => x / 255)
        .map(x => x <= .03928 ? x / 12.92 : ((x + .055) / 1.055) ** 2.4);
    box.remove();
    return .2126 * parts[0] + .7152 * parts[1] + .0722 * parts[2];
})"""


def test_themes(page):
    """Each text can be read on what it lies on (WCAG 2, 4.5:1)."""
    grounds = {}
    for theme in ("light", "dark"):
        page.chromium.theme(theme)
        page.open()
        grounds[theme] = page.js(f"{LUMINANCE}('--ground')")
        for name in ("--text", "--soft", "--accent", "--pass", "--fail", "--rejected", "--error", "--aborted", "--unreadable"):
            for ground in ("--paper", "--raised"):
                pair = sorted((page.js(f"{LUMINANCE}('{name}')"), page.js(f"{LUMINANCE}('{ground}')")))
                ratio = (pair[1] + 0.05) / (pair[0] + 0.05)
                check(ratio >= 4.5, f"{theme}: {name} on {ground} has a contrast of {ratio:.1f}")
    check(grounds["light"] > 0.8 and grounds["dark"] < 0.1, f"the themes are {grounds}")


def test_phone(page):
    page.chromium.size(390, 844, 2)
    for fragment in ("", "#2", "#3", f"#{page.special}"):
        page.open(fragment)
        width = page.js("document.documentElement.scrollWidth")
        check(width <= 390, f"{fragment or 'the list'} is {width} wide")
    eq(page.js("getComputedStyle(document.querySelector('nav')).display"), "none", "the list beside a receipt")
    page.js("document.querySelector('.back').click()")
    page.js("new Promise(done => setTimeout(done, 0))")
    check(page.js("getComputedStyle(document.querySelector('nav')).display") != "none", "back to the list")
    page.chromium.size(1280, 900)


TESTS_IN_ORDER = (test_opens_at_once, test_filters, test_keys, test_hostile, test_diffs, test_policy, test_themes, test_phone)


def take_pictures(page, directory):
    os.makedirs(directory, exist_ok=True)
    for theme in ("light", "dark"):
        page.chromium.theme(theme)
        page.open("#2")
        page.chromium.picture(f"{directory}/{theme}.png")
    page.chromium.size(390, 844, 2)
    page.open("#2")
    page.chromium.picture(f"{directory}/phone.png")


def make_page(qscope, chromium, directory, many):
    os.mkdir(directory)
    special = write_receipts(directory, many)
    subprocess.run([qscope, "report", "-o", f"{directory}.html", directory], check=True)
    return Page(chromium, f"{directory}.html", special)


def make_diffs(qscope, chromium, directory):
    write_state(directory)
    page = Page(chromium, f"{directory}/page.html", 9)
    page.qscope = qscope
    subprocess.run([qscope, "report", "--state-dir", directory, "-o", page.path, f"{directory}/receipts"], check=True)
    return page


def main():
    qscope, failed = sys.argv[1], 0
    if not browser.find():
        print("this machine lacks a Chromium")
        return 77
    with tempfile.TemporaryDirectory() as directory, browser.Browser() as chromium:
        chromium.size(1280, 900)
        large, small = (make_page(qscope, chromium, f"{directory}/{many}", many) for many in (MANY, FEW))
        diffs = make_diffs(qscope, chromium, f"{directory}/state")
        pages = {test_opens_at_once: large, test_filters: large, test_diffs: diffs}
        for test in TESTS_IN_ORDER:
            try:
                test(pages.get(test, small))
                print(f"ok   {test.__name__[5:]}")
            except (Failed, browser.BrowserError) as error:
                failed += 1
                print(f"FAIL {test.__name__[5:]}: {error}")
        if "--pictures" in sys.argv:
            take_pictures(small, sys.argv[sys.argv.index("--pictures") + 1])
    print(f"{len(TESTS_IN_ORDER) - failed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
