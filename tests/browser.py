# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium, spoken to over pipes (the DevTools protocol): no driver, no socket, no library."""

import base64
import json
import os
import select
import shutil
import signal
import tempfile
import time

PROGRAMS = ("chromium-headless-shell", "chromium", "chromium-shell", "google-chrome")


class BrowserError(Exception):
    pass


def find():
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


class Browser:
    """With one page. Commands wait for their answer; events are kept in .events."""

    def __init__(self, seconds=60):
        self.seconds = seconds
        self.home = tempfile.mkdtemp(prefix="browser-")
        self.events, self.buffer, self.number = [], b"", 0
        to_read, self.to = os.pipe()
        self.back, back_write = os.pipe()
        program = find()
        arguments = [program, "--headless", "--no-sandbox", "--remote-debugging-pipe", "--disable-gpu",
                     "--disable-dev-shm-usage", "--hide-scrollbars", "--no-first-run", f"--user-data-dir={self.home}", "about:blank"]
        with open(f"{self.home}/log", "wb") as log:
            self.pid = os.posix_spawn(
                program, arguments, {"PATH": os.environ["PATH"], "HOME": self.home, "LANG": "C.UTF-8"}, setpgroup=0,
                # Both may have the number that the other shall get: first out of the way.
                file_actions=[(os.POSIX_SPAWN_DUP2, to_read, 103), (os.POSIX_SPAWN_DUP2, back_write, 104),
                              (os.POSIX_SPAWN_DUP2, 103, 3), (os.POSIX_SPAWN_DUP2, 104, 4),
                              (os.POSIX_SPAWN_CLOSE, 103), (os.POSIX_SPAWN_CLOSE, 104),
                              (os.POSIX_SPAWN_DUP2, log.fileno(), 1), (os.POSIX_SPAWN_DUP2, log.fileno(), 2)])
        os.close(to_read)
        os.close(back_write)
        self.session = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.killpg(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.to)
        os.close(self.back)
        shutil.rmtree(self.home, ignore_errors=True)

    def read(self, until):
        """The next message."""
        while b"\0" not in self.buffer:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self.back], [], [], left)[0]:
                raise BrowserError("the browser does not answer")
            data = os.read(self.back, 1 << 20)
            if not data:
                with open(f"{self.home}/log", encoding="utf-8", errors="replace") as log:
                    raise BrowserError(f"the browser has ended: {log.read()[-500:]}")
            self.buffer += data
        message, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(message)

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + self.seconds
        while True:
            answer = self.read(until)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise BrowserError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def named(self, *methods):
        return [event for event in self.events if event.get("method") in methods]

    def open(self, url):
        """Waits until it is loaded; the seconds it took."""
        self.events.clear()
        begin = time.monotonic()
        loader = self.call("Page.navigate", url=url)["loaderId"]
        until = begin + self.seconds
        while not self.is_loaded(loader):
            self.events.append(self.read(until))
        return time.monotonic() - begin

    def is_loaded(self, loader):
        """What is loaded may still be the page before."""
        committed = False
        for event in self.named("Page.frameNavigated", "Page.loadEventFired"):
            if event["method"] == "Page.loadEventFired" and committed:
                return True
            committed |= event["params"].get("frame", {}).get("loaderId") == loader
        return False

    def run(self, script):
        """The value of an expression."""
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise BrowserError(f"{script}: {result['exceptionDetails'].get('exception', {}).get('description')}")
        return result["result"].get("value")

    def press(self, key, text=None):
        code = {"text": text or key} if len(text or key) == 1 else {}
        if key == "Enter":
            code = {"text": "\r", "windowsVirtualKeyCode": 13}
        if key == "Escape":
            code = {"windowsVirtualKeyCode": 27}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **code)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def size(self, width, height, scale=1):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale,
                  mobile=width < 600)

    def theme(self, name):
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    def picture(self, path):
        data = self.call("Page.captureScreenshot", format="png")["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))
