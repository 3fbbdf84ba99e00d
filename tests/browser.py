"""Debian's Chromium without a window, driven by its own WebDriver: no package, no download, no network."""

import base64
import json
import re
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

PROGRAMS = ("chromium", "chromedriver")
MISSING = "no chromium and chromedriver here: `apt-get install chromium chromium-driver`"
PHONE, DESKTOP = (390, 844), (1366, 768)
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
CLICK = """
const element = document.evaluate(arguments[0], document, null, 9, null).singleNodeValue
if (!element) return `not among: ${document.body.innerText.slice(0, 2000)}`
element.scrollIntoView({block: 'center', behavior: 'instant'})
const box = element.getClientRects()[0]
if (!box) return 'hidden'
const top = document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2)
if (!element.contains(top)) return `covered by ${top?.outerHTML.slice(0, 200)}`
element.click()
"""
_STARTED = re.compile(r"started successfully on port (\d+)")
TIMEOUT_SECONDS, PATIENCE_SECONDS = 120, 20


class RefusedError(AssertionError):
    """The driver would not do it; its sentence says why."""


def is_installed() -> bool:
    return all(map(shutil.which, PROGRAMS))


@dataclass(frozen=True)
class Browser:
    """A session. Names follow https://www.w3.org/TR/webdriver2/."""

    url: str

    def open(self, path: Path) -> None:
        self._post("url", url=path.resolve().as_uri())

    def resize(self, width: int, height: int) -> None:
        """The size of the page: a window cannot be as narrow as a phone."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self._post("goog/cdp/execute", cmd="Emulation.setDeviceMetricsOverride", params=metrics)

    def run(self, script: str, *arguments: object) -> object:
        return self._post("execute/sync", script=script, args=list(arguments))

    def wait(self, script: str) -> object:
        """What a script returns, once that is something."""
        return _patiently(lambda: self.run(script), script)

    def click(self, xpath: str) -> None:
        """As a reader would: what is not there, hidden or covered cannot be clicked.

        Finding, looking and clicking are one script: between the commands of a driver a page may move, and a
        click at a place then hits the neighbour.
        """

        def attempt() -> bool:
            if refusal := self.run(CLICK, xpath):
                raise RefusedError(refusal)
            return True

        _patiently(attempt, xpath)

    def inside(self, frame: int | None) -> None:
        """Go into a frame of the page; None leads out again."""

        def attempt() -> bool:
            self._post("frame", id=frame)
            return True

        _patiently(attempt, f"frame {frame}")

    def errors(self) -> list[str]:
        """What the console complained about since the last call."""
        return [
            entry["message"] for entry in self._post("se/log", type="browser") if entry["level"] == "SEVERE"
        ]

    def screenshot(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(_request(f"{self.url}/screenshot")))

    def _post(self, command: str, **body: object) -> object:
        return _request(f"{self.url}/{command}", body)


def _patiently(attempt: Callable[[], object], what: str) -> object:
    """What an attempt comes to, once that is something and the driver does not refuse it."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            found, refusal = attempt(), "still nothing"
        except RefusedError as error:
            found, refusal = None, error
        if found:
            return found
        assert time.monotonic() < deadline, f"{what}: {refusal} after {PATIENCE_SECONDS} s"
        time.sleep(0.05)


def _request(url: str, body: dict | None = None, method: str | None = None) -> object:
    """The value of a reply; an error is one sentence of the driver's."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as reply:
            return json.load(reply)["value"]
    except urllib.error.HTTPError as error:
        raise RefusedError(json.load(error)["value"]["message"]) from None


@contextmanager
def started(profile: Path) -> Iterator[Browser]:
    """A browser with a profile of its own."""
    driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, text=True)
    try:
        port = next(found[1] for line in driver.stdout if (found := _STARTED.search(line)))
        options = {"binary": shutil.which("chromium"), "args": [*FLAGS, f"--user-data-dir={profile}"]}
        wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        root = f"http://127.0.0.1:{port}/session"
        session = _request(root, {"capabilities": {"alwaysMatch": wanted}})["sessionId"]
        try:
            yield Browser(f"{root}/{session}")
        finally:
            _request(f"{root}/{session}", method="DELETE")
    finally:
        driver.terminate()
        driver.wait()
