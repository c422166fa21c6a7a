"""Drives a real Chromium over its debugging pipe: JSON documents that end with a zero byte, no library."""

from __future__ import annotations

import base64
import itertools
import json
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SECONDS = 120.0


class Tab:
    """A page that is open in a browser.

    Attributes:
        complaints: What the browser wrote to its console, such as refused scripts and styles.
    """

    def __init__(self, read: int, write: int) -> None:
        self._read, self._write = read, write
        self._buffer = b""
        self._numbers = itertools.count(1)
        self._session: str | None = None
        self.complaints: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **given: Any) -> dict[str, Any]:
        """Ask the browser for something and wait for its answer."""
        number = next(self._numbers)
        document = {"id": number, "method": method, "params": given}
        if self._session is not None:
            document["sessionId"] = self._session
        os.write(self._write, json.dumps(document).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == number:
                assert "error" not in answer, answer
                return dict(answer.get("result", {}))
            self._note(answer)

    def open(self, url: str) -> None:
        """Load a page and wait until its script has run."""
        self.call("Page.navigate", url=url)
        self.until("document.readyState === 'complete' && !document.querySelector('#theme')?.hidden")

    def value(self, expression: str) -> Any:
        """Return the value of an expression in the page."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def until(self, expression: str) -> None:
        """Wait until an expression is true in the page."""
        end = time.monotonic() + SECONDS
        while not self.value(f"Boolean({expression})"):
            assert time.monotonic() < end, expression
            time.sleep(0.1)

    def press(self, key: str, code: int) -> None:
        """Press a key."""
        for kind in ("rawKeyDown", "char", "keyUp"):
            text = "\r" if key == "Enter" and kind == "char" else ""
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, text=text)

    def scheme(self, name: str) -> None:
        """Prefer `dark` or `light`."""
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    def size(self, width: int, height: int) -> None:
        """Have the window that large."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def picture(self, file: Path) -> None:
        """Write a screenshot."""
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            more = os.read(self._read, 1 << 20)
            assert more, "the browser has ended"
            self._buffer += more
        text, _, self._buffer = self._buffer.partition(b"\0")
        return dict(json.loads(text))

    def _note(self, told: dict[str, Any]) -> None:
        if told.get("method") == "Log.entryAdded":
            self.complaints.append(str(told["params"]["entry"]["text"]))
        elif told.get("method") in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled"):
            self.complaints.append(json.dumps(told["params"])[:400])


@contextmanager
def browser_tab(program: str, folder: Path) -> Iterator[Tab]:
    """Run a browser while the block lasts; yields a tab."""
    to_browser, write = os.pipe()
    read, from_browser = os.pipe()

    def place() -> None:  # the browser reads from 3 and writes to 4
        first, second = os.dup(to_browser), os.dup(from_browser)
        os.dup2(first, 3)
        os.dup2(second, 4)

    words = [program, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-pipe"]
    process = subprocess.Popen(
        [*words, f"--user-data-dir={folder}"], close_fds=False, preexec_fn=place, stderr=subprocess.DEVNULL
    )
    os.close(to_browser)
    os.close(from_browser)
    try:
        yield Tab(read, write)
    finally:
        os.close(write)
        os.close(read)
        process.terminate()
        process.wait(SECONDS)
