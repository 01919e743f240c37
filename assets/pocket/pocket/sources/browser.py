"""Chromium under control of its DevTools socket: a window on an X server, a headless sheet, an episode page.

`Window` fills a private X server, whose pixels are read. `Sheet` is headless and shows many frames of one
size (host.html); one screenshot and one call of labels.js capture all of them at the same moment. `Page` is
headless and shows one page of MiniWoB++ at the scale of the test suite, with the oracles loaded.

The device scale is set on the command line where the picture must equal that of a real window: a scale
emulated through DevTools rounds the positions of text lines differently.
"""

import base64
import io
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time
import urllib.request

import mss
import numpy as np
import websocket
from PIL import Image

from . import HERE, ROOT, fonts, state_dir

MINIWOB = ROOT / "build/qa/miniwob/html"  # prepared by tests/scripts/miniwob.sh
VIEW, SCALE = (280, 210), 640 / 280  # CSS pixels and scale of 640x480, as in tests/suites/miniwob/head.yaml
SEALED = 1_000_000  # first seed that is reserved for evaluation
NEW_EPISODE_SEEDS = 900_000  # first seed that is reserved for held-out sets
FLAGS = """--no-first-run --password-store=basic --disable-gpu --disable-dev-shm-usage --disable-extensions
--disable-sync --disable-background-networking --disable-component-update --no-default-browser-check
--allow-file-access-from-files --remote-allow-origins=* --remote-debugging-port=0""".split()
SHEET_FLAGS = ["--no-sandbox", "--disable-features=Translate,CalculateNativeWinOcclusion"]
WINDOW_FLAGS = [*SHEET_FLAGS, "--force-device-scale-factor=1", "--kiosk", "--window-position=0,0"]
PAGE_FLAGS = """--disable-breakpad --disable-default-apps --no-pings --renderer-process-limit=1 --headless
--disable-client-side-phishing-detection --disable-smooth-scrolling --disable-features=Translate,MediaRouter,\
OptimizationHints,AutofillServerCommunication,CalculateNativeWinOcclusion""".split()
# As root, Chromium raises its own priority above that of its caller and outlives a killed one.
MODEST = ["setpriv", "--bounding-set", "-sys_nice", "--pdeathsig", "KILL"]


def oracle_script():
    """Returns all oracles as one script, core.js first."""
    files = sorted((HERE / "oracles").glob("*.js"), key=lambda p: (p.name != "core.js", p.name))
    return "\n".join(p.read_text() for p in files)


def label_script():
    """Returns labels.js wrapped as window.worldLabels, a name that no page uses."""
    return f"window.worldLabels = (() => {{{(HERE / 'labels.js').read_text()} return labels; }})();"


def page_url(page, seed):
    """Returns the address of a page of MiniWoB++."""
    return f"{(MINIWOB / 'miniwob' / page).as_uri()}.html?seed={seed}"


class Display:
    """A private Xvfb; the server chooses its number."""

    def __init__(self, width, height):
        r, w = os.pipe()
        screen = ["-screen", "0", f"{width}x{height}x24", "-nolisten", "tcp", "-dpi", "96"]
        self.server = subprocess.Popen(
            ["Xvfb", "-displayfd", str(w), *screen],
            pass_fds=[w],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(w)
        self.name = ":" + os.fdopen(r).readline().strip()
        self.grabber = mss.MSS(display=self.name)

    def grab(self, left, top, width, height):
        """Returns pixels of the screen, uint8 [height, width, 3]."""
        shot = self.grabber.grab({"left": left, "top": top, "width": width, "height": height})
        return np.frombuffer(shot.raw, np.uint8).reshape(height, width, 4)[..., 2::-1]

    def close(self):
        self.grabber.close()
        self.server.terminate()
        self.server.wait()


class Browser:
    """A Chromium process and the DevTools socket of its first page."""

    def __init__(self, command, env=None, timeout=120):
        self.profile, self.calls = tempfile.mkdtemp(prefix="pocket-"), 0
        self.process = subprocess.Popen(
            [part.replace("PROFILE", self.profile) for part in command],
            env=os.environ | (env or {}),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.socket = self._attach(timeout)

    def _attach(self, timeout, patience=60):
        """Connects to the page. Raises RuntimeError after `patience` seconds."""
        port = pathlib.Path(self.profile) / "DevToolsActivePort"
        until = time.time() + patience
        while time.time() < until:
            try:
                number = port.read_text().split()[0]
                pages = json.load(urllib.request.urlopen(f"http://127.0.0.1:{number}/json"))
                page = next(p for p in pages if p["type"] == "page")
                return websocket.create_connection(page["webSocketDebuggerUrl"], timeout=timeout)
            except (OSError, IndexError, StopIteration):
                time.sleep(0.1)
        raise RuntimeError("Chromium does not answer on its DevTools socket")

    def call(self, method, **params):
        """Calls a DevTools method and returns its result. Raises RuntimeError if it fails."""
        self.calls += 1
        self.socket.send(json.dumps({"id": self.calls, "method": method, "params": params}))
        while True:
            answer = json.loads(self.socket.recv())
            if answer.get("id") == self.calls:
                if "error" in answer:
                    raise RuntimeError(answer["error"]["message"])
                return answer["result"]

    def script(self, text, **options):
        """Returns the value of a script expression."""
        answer = self.call("Runtime.evaluate", expression=text, returnByValue=True, **options)
        if "exceptionDetails" in answer:
            raise RuntimeError(
                answer["exceptionDetails"].get("exception", {}).get("description", str(answer))
            )
        return answer["result"].get("value")

    def ask(self, expression):
        """Returns the parsed value of an expression, or promise, that yields JSON text."""
        return json.loads(self.script(expression, awaitPromise=True))

    def until(self, condition, patience=60):
        """Waits until a script expression is true. Raises RuntimeError after `patience` seconds."""
        end = time.time() + patience
        while not self.script(condition):
            if time.time() > end:
                raise RuntimeError(f"condition did not become true in {patience} s: {condition}")
            time.sleep(0.05)

    def screenshot(self):
        """Returns a PNG of the page, drawn by the browser itself."""
        return base64.b64decode(
            self.call("Page.captureScreenshot", format="png", optimizeForSpeed=True)["data"]
        )

    def close(self):
        self.socket.close()
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
        shutil.rmtree(self.profile, ignore_errors=True)


class Window(Browser):
    """A kiosk window that fills a private X server; `display.grab` reads its pixels."""

    def __init__(self, url, width, height):
        self.display = Display(width, height)
        size = f"--window-size={width},{height}"
        command = ["chromium", *FLAGS, *WINDOW_FLAGS, size, "--user-data-dir=PROFILE", url]
        super().__init__(command, {"DISPLAY": self.display.name})

    def close(self):
        super().close()
        self.display.close()


class Sheet(Browser):
    """`across` x `down` headless frames of one size, drawn with the fonts of fonts.py.

    With `scale` the browser has this device scale from its start; otherwise `lay` emulates one per batch.
    """

    def __init__(self, across, down, scale=None):
        self.across, self.down, self.size, self.scale = across, down, None, scale
        fixed = f"--force-device-scale-factor={scale or 1:.4f}"
        shape = ["--headless=new", fixed, "--window-size=1600,1600", "--disable-features=site-per-process"]
        url = (HERE / "host.html").as_uri() + f"?across={across}&down={down}"
        command = [*MODEST, "chromium", *FLAGS, *SHEET_FLAGS, *shape, "--user-data-dir=PROFILE", url]
        super().__init__(command, {"FONTCONFIG_FILE": fonts.configure(state_dir() / "fonts")})
        self.until("typeof ready === 'function' && ready()")
        fonts.check(self)

    def lay(self, width, height, scale):
        """Gives all frames a size in device pixels and a scale; fractions of a CSS pixel are allowed."""
        if self.size == (width, height, scale):
            return
        self.size = (width, height, scale)
        w, h = width / scale, height / scale
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=int(np.ceil(w * self.across)) + 1,
            height=int(np.ceil(h * self.down)) + 1,
            deviceScaleFactor=0 if self.scale else scale,
            mobile=False,
        )
        self.script(f"lay({w}, {h})")

    def tiles(self):
        """Yields one picture per frame, uint8 [height, width, 3], in row-major order."""
        width, height, _ = self.size
        sheet = np.asarray(Image.open(io.BytesIO(self.screenshot())).convert("RGB"))
        for k in range(self.across * self.down):
            y, x = k // self.across * height, k % self.across * width
            yield np.ascontiguousarray(sheet[y : y + height, x : x + width])


class Page(Browser):
    """One page of MiniWoB++ with the oracles. An episode loads the page, or begins in the loaded document,
    which takes a tenth of the time."""

    def __init__(self):
        root = os.geteuid() == 0
        flags = [*FLAGS, *PAGE_FLAGS, *(["--no-sandbox", "--test-type"] if root else [])]
        flags += [f"--force-device-scale-factor={SCALE:.4f}", "--user-data-dir=PROFILE", "about:blank"]
        super().__init__([*(MODEST if root else []), "chromium", *flags], timeout=60)
        self.call("Page.enable")
        for source in (oracle_script(), label_script()):
            self.call("Page.addScriptToEvaluateOnNewDocument", source=source)
        size = dict(width=VIEW[0], height=VIEW[1], deviceScaleFactor=0, mobile=False)
        self.call("Emulation.setDeviceMetricsOverride", **size)
        self.call("Emulation.setFocusEmulationEnabled", enabled=True)

    def load(self, page, seed):
        """Loads a page and returns its task sentence."""
        self.call("Page.navigate", url=page_url(page, seed))
        title = f"document.title.startsWith('MINIWOB {page} ') && document.fonts.status === 'loaded'"
        self.until(f"location.search === '?seed={seed}' && {title}", 30)
        return self.sentence()

    def begin(self, seed):
        """Begins another episode in the same document and returns its task sentence."""
        self.script(f"beginEpisode({seed})")
        return self.sentence()

    def sentence(self):
        return self.script("document.title.replace(/^MINIWOB \\S+ reward=\\S+ done=\\d utterance=/, '')")

    def advise(self, said, history):
        """Returns the oracle's next action for a task sentence and the earlier actions (oracles/core.js)."""
        return self.script(f"oracles.advise({json.dumps(said)}, {json.dumps(history)})")
