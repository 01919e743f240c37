"""A headless Chromium that shows many small pages at once and is photographed over DevTools.

Design.  One host page (host.html) holds frames side by side, all of one size.  A batch sets the device
scale, the size of the frames and what they show, asks every frame for its labels (labels.js), and takes
one screenshot, which is cut into tiles here.  Labels and picture are of one moment: nothing runs in
between that draws.  The browser gets the pinned fonts of fonts.py and refuses to start with others.

`pause` makes a renderer sleep while the file PAUSE stands in the state directory: somebody measures.
"""

import base64
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import numpy as np
from PIL import Image

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import fonts  # noqa: E402
from screens import FLAGS, Browser  # noqa: E402

DROP = ("--kiosk", "--force-device-scale-factor=1", "--window-position=0,0")


def state_dir():
    return pathlib.Path(os.environ.get("POCKET_STATE", HERE.parents[2] / "build" / "pocket"))


def pause():
    while (state_dir() / "PAUSE").exists():
        time.sleep(5)


class Headless(Browser):
    """A browser without a display; `call`, `script` and `until` are those of the kiosk's browser."""

    def __init__(self, url, width=1600, height=1600, scale=None):
        self.profile = tempfile.mkdtemp(prefix="world-")
        conf = fonts.configure(state_dir() / "fonts")
        self.process = subprocess.Popen(
            # As root, Chromium would give itself a higher priority than its caller has; and it outlives a
            # killed one.
            [
                "setpriv",
                "--bounding-set",
                "-sys_nice",
                "--pdeathsig",
                "KILL",
                "chromium",
                "--headless=new",
                *[f for f in FLAGS if f not in DROP],
                f"--force-device-scale-factor={scale or 1:.4f}",
                f"--window-size={width},{height}",
                "--disable-features=site-per-process",
                "--remote-debugging-port=0",
                f"--user-data-dir={self.profile}",
                url,
            ],
            env={**os.environ, "FONTCONFIG_FILE": conf},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.socket, self.calls = self._attach(), 0

    def screenshot(self):
        data = self.call("Page.captureScreenshot", format="png", optimizeForSpeed=True)["data"]
        return np.asarray(Image.open(io.BytesIO(base64.b64decode(data))).convert("RGB"))

    def close(self):
        self.socket.close()
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.profile, ignore_errors=True)


class Sheet(Headless):
    """`across` x `down` frames; `lay` gives all of them one size in pixels and one device scale.  With `scale` the browser
    has that one from the beginning, as in use: an emulated scale rounds lines of text to other heights."""

    def __init__(self, across, down, scale=None):
        super().__init__((HERE / "host.html").as_uri() + f"?across={across}&down={down}", scale=scale)
        self.across, self.down, self.size, self.scale = across, down, None, scale
        self.until("typeof ready === 'function' && ready()")
        fonts.check(self)

    def lay(self, width, height, scale):
        """Frames of width x height device pixels at this scale; fractions of a css pixel are allowed."""
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

    def ask(self, expression):
        """The value of a script expression (perhaps a promise) that yields JSON text."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(
                answer["exceptionDetails"].get("exception", {}).get("description", str(answer))
            )
        return json.loads(answer["result"]["value"])

    def tiles(self):
        """One picture per frame, in order."""
        width, height, _ = self.size
        sheet = self.screenshot()
        for k in range(self.across * self.down):
            y, x = k // self.across * height, k % self.across * width
            yield np.ascontiguousarray(sheet[y : y + height, x : x + width])
