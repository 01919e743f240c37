"""A browser that shows pages of MiniWoB++, with the oracles in every page.

Design.  Two ways of one thing: without a display, for speed, driven by events of the debugging socket; or
in a kiosk window on an X server of its own, with the flags of tests/suites/browser.sh, where only the state
of the page is read through the socket and hands on the X server do the rest.  An episode is begun by loading
its page or anew in the same document, which costs a tenth.

The pages are those that tests/scripts/miniwob.sh prepares: they draw everything from the seed, and their
clock is not the ten seconds of the original.
"""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time
import urllib.request

import websocket

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
HTML = ROOT / "build/qa/miniwob/html"
VIEW, SCALE = (280, 210), 640 / 280  # a screen of 640 x 480, as in tests/suites/miniwob/head.yaml
SEALED = 1_000_000  # seeds from here on are for evaluation only
FLAGS = [
    "--no-first-run",
    "--no-default-browser-check",
    "--password-store=basic",
    "--disable-gpu",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-component-update",
    "--disable-breakpad",
    "--disable-background-networking",
    "--disable-default-apps",
    "--no-pings",
    "--renderer-process-limit=1",
    "--disable-client-side-phishing-detection",
    "--allow-file-access-from-files",
    "--remote-allow-origins=*",
    "--disable-features=Translate,MediaRouter,OptimizationHints,AutofillServerCommunication,"
    "CalculateNativeWinOcclusion",
    "--remote-debugging-port=0",
]


def oracle_script():
    """All oracles as one script; what they are built on comes first."""
    files = sorted((HERE / "oracles").glob("*.js"), key=lambda p: (p.name != "core.js", p.name))
    return "\n".join(p.read_text() for p in files)


def label_script():
    """labels() of labels.js under a name that no page has."""
    return f"window.worldLabels = (() => {{{(HERE / 'labels.js').read_text()} return labels; }})();"


class Display:
    """An X server of its own with a window manager; the server picks its number."""

    def __init__(self, width, height):
        r, w = os.pipe()
        self.server = subprocess.Popen(
            [
                "Xvfb",
                "-displayfd",
                str(w),
                "-screen",
                "0",
                f"{width}x{height}x24",
                "-nolisten",
                "tcp",
                "-dpi",
                "96",
            ],
            pass_fds=[w],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(w)
        self.name = ":" + os.fdopen(r).readline().strip()
        self.manager = subprocess.Popen(
            ["openbox"],
            env={**os.environ, "DISPLAY": self.name},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def close(self):
        for process in self.manager, self.server:
            process.terminate()
            process.wait()


class Browser:
    """One page of Chromium; `display` is None or the name of an X display that it fills."""

    def __init__(self, display=None, html=HTML, view=VIEW, scale=SCALE):
        self.html, self.view, self.scale = pathlib.Path(html).resolve(), view, scale
        self.profile = tempfile.mkdtemp(prefix="world-")
        flags = list(FLAGS) + (["--no-sandbox", "--test-type"] if os.geteuid() == 0 else [])
        # Forced and not emulated: an emulated scale rounds lines of text to other heights.
        flags += [f"--force-device-scale-factor={scale:.4f}"]
        if display:
            flags += ["--kiosk"]
        else:
            flags += ["--headless", "--disable-smooth-scrolling"]
        # As root, Chromium would give itself a higher priority than its caller has.
        modest = ["setpriv", "--bounding-set", "-sys_nice", "--pdeathsig", "KILL"] if os.geteuid() == 0 else []
        self.process = subprocess.Popen(
            [*modest, "chromium", *flags, f"--user-data-dir={self.profile}", "about:blank"],
            env={**os.environ, **({"DISPLAY": display} if display else {})},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.calls = 0
        self.socket = self._attach()
        self.call("Page.enable")
        self.call("Page.addScriptToEvaluateOnNewDocument", source=oracle_script())
        self.call("Page.addScriptToEvaluateOnNewDocument", source=label_script())
        if not display:
            self.call(
                "Emulation.setDeviceMetricsOverride",
                width=view[0],
                height=view[1],
                deviceScaleFactor=0,
                mobile=False,
            )
            self.call("Emulation.setFocusEmulationEnabled", enabled=True)

    def _attach(self, patience=60):
        port = pathlib.Path(self.profile) / "DevToolsActivePort"
        until = time.time() + patience
        while time.time() < until:
            try:
                number = port.read_text().split()[0]
                pages = json.load(urllib.request.urlopen(f"http://127.0.0.1:{number}/json"))
                page = next(p for p in pages if p["type"] == "page")
                return websocket.create_connection(page["webSocketDebuggerUrl"], timeout=60)
            except (OSError, IndexError, StopIteration):
                time.sleep(0.1)
        raise RuntimeError("the browser does not answer")

    def send(self, method, **params):
        self.calls += 1
        self.socket.send(json.dumps({"id": self.calls, "method": method, "params": params}))
        return self.calls

    def answer(self, number):
        while True:
            got = json.loads(self.socket.recv())
            if got.get("id") == number:
                if "error" in got:
                    raise RuntimeError(got["error"]["message"])
                return got["result"]

    def call(self, method, **params):
        return self.answer(self.send(method, **params))

    def script(self, text):
        got = self.call("Runtime.evaluate", expression=text, returnByValue=True)
        if "exceptionDetails" in got:
            raise RuntimeError(got["exceptionDetails"].get("exception", {}).get("description", str(got)))
        return got["result"].get("value")

    # ---- episodes ---------------------------------------------------------------------------------------

    def load(self, page, seed):
        """The page from its file; the sentence it asks for."""
        self.call("Page.navigate", url=f"{(self.html / 'miniwob' / page).as_uri()}.html?seed={seed}")
        ready = (
            f"location.search === '?seed={seed}' && document.title.startsWith('MINIWOB {page} ') && "
            "document.fonts.status === 'loaded'"
        )
        until = time.time() + 30
        while not self.script(ready):
            if time.time() > until:
                raise RuntimeError(f"the page {page} with seed {seed} does not begin")
            time.sleep(0.01)
        return self.sentence()

    def begin(self, seed):
        """Another episode in the same document."""
        self.script(f"beginEpisode({seed})")
        return self.sentence()

    def sentence(self):
        return self.script("document.title.replace(/^MINIWOB \\S+ reward=\\S+ done=\\d utterance=/, '')")

    def advise(self, said, history):
        return self.script(f"oracles.advise({json.dumps(said)}, {json.dumps(history)})")

    def verdict(self):
        return self.script("oracles.verdict()")

    def labels(self):
        """Letters and elements of what is shown now, as labels.js tells them."""
        return self.script("worldLabels(window)")

    def picture(self):
        """A PNG of the view, by the browser itself: native popups are not in it."""
        import base64

        return base64.b64decode(
            self.call("Page.captureScreenshot", format="png", optimizeForSpeed=True)["data"]
        )

    def close(self):
        try:
            self.call("Browser.close")
        except (RuntimeError, OSError, websocket.WebSocketException):
            pass
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
        self.socket.close()
        shutil.rmtree(self.profile, ignore_errors=True)
