"""A headless Chromium through chromedriver (https://www.w3.org/TR/webdriver2/): no other package needed."""

from __future__ import annotations

import base64
import json
import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-dev-shm-usage"
)
PROGRAMS = ("chromium", "chromedriver")


def missing() -> str:
    """What is missing to run a browser here, empty when nothing is."""
    absent = [name for name in PROGRAMS if shutil.which(name) is None]
    return f"needs {' and '.join(absent)} (Debian: chromium, chromium-driver)" if absent else ""


class Browser:
    """One page of a browser."""

    def __init__(self, port: int, profile: Path, dark: bool) -> None:
        self._root = f"http://127.0.0.1:{port}"
        arguments = [*FLAGS.split(), f"--user-data-dir={profile}"]
        if dark:
            arguments.append("--force-dark-mode")
        options = {"args": arguments, "binary": shutil.which("chromium")}
        wanted = {"browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        made = self._send("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        self._root += f"/session/{made['sessionId']}"

    def _send(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        data = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(self._root + path, data, {"Content-Type": "application/json"}, method=method)
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=60) as answer:
            return json.load(answer)["value"]

    def open(self, file: Path) -> None:
        self._send("POST", "/url", {"url": file.as_uri()})

    def size(self, width: int, height: int) -> None:
        """The size of the page, which a window cannot always have."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self._send(
            "POST", "/goog/cdp/execute", {"cmd": "Emulation.setDeviceMetricsOverride", "params": metrics}
        )

    def scripts(self, on: bool) -> None:
        """Whether pages that are opened from now on may run scripts."""
        asked = {"cmd": "Emulation.setScriptExecutionDisabled", "params": {"value": not on}}
        self._send("POST", "/goog/cdp/execute", asked)

    def run(self, script: str) -> Any:
        """The value that a script returns."""
        return self._send("POST", "/execute/sync", {"script": script, "args": []})

    def wait(self, script: str, seconds: float = 30.0) -> Any:
        """The value of a script once it is true. AssertionError when it does not become so."""
        end = time.monotonic() + seconds
        while not (value := self.run(f"return {script}")):
            assert time.monotonic() < end, script
            time.sleep(0.05)
        return value

    def _find(self, selector: str) -> str:
        found = self._send("POST", "/element", {"using": "css selector", "value": selector})
        return str(next(iter(found.values())))

    def click(self, selector: str) -> None:
        self._send("POST", f"/element/{self._find(selector)}/click", {})

    def type(self, selector: str, text: str) -> None:
        self._send("POST", f"/element/{self._find(selector)}/value", {"text": text})

    def press(self, *keys: str) -> None:
        """Keys for whatever has the focus."""
        actions = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        self._send("POST", "/actions", {"actions": [{"type": "key", "id": "keys", "actions": actions}]})

    def log(self) -> list[dict[str, Any]]:
        """What the console holds since the last time."""
        return list(self._send("POST", "/se/log", {"type": "browser"}))

    def screenshot(self) -> bytes:
        return base64.b64decode(self._send("GET", "/screenshot"))

    def close(self) -> None:
        self._send("DELETE", "")


@contextmanager
def browser(folder: Path, dark: bool = False) -> Iterator[Browser]:
    """A browser with a new profile in `folder`."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = ["chromedriver", f"--port={port}", "--silent"]
    driver = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(600):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        page = Browser(port, folder / "profile", dark)
        try:
            yield page
        finally:
            page.close()
    finally:
        driver.terminate()
        driver.wait(20)
