"""Photographs of kiosk pages: a real browser on a private X server, 64 screens at a time.

Design.  The model must see in training what it sees in use, so the training screens are taken from
the same Chromium, drawn by the same page code, and read from the X server like any desktop.  One
window holds a mosaic of frames of 640 x 480 px; a batch is drawn by one call of script, a strip
below the mosaic takes a colour that counts batches, and when that colour has arrived on the X
server, the whole batch has: one window is one frame of the compositor.

Run as a program it proves the premise: the same pages as tiles and in windows of their own on a
640 x 480 display, compared pixel by pixel.
"""
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

HERE = pathlib.Path(__file__).resolve().parent
DEMO = HERE.parent / "demo"
W, H = 640, 480
FLAGS = ["--no-first-run", "--password-store=basic", "--force-device-scale-factor=1", "--disable-gpu",
         "--no-sandbox", "--disable-dev-shm-usage", "--disable-extensions", "--disable-sync",
         "--disable-background-networking", "--disable-component-update", "--no-default-browser-check",
         "--disable-features=Translate,CalculateNativeWinOcclusion", "--allow-file-access-from-files",
         "--remote-allow-origins=*", "--kiosk", "--window-position=0,0"]


class Display:
    """An Xvfb of its own, with a number the server picks."""

    def __init__(self, width, height):
        r, w = os.pipe()
        self.server = subprocess.Popen(
            ["Xvfb", "-displayfd", str(w), "-screen", "0", f"{width}x{height}x24", "-nolisten", "tcp", "-dpi", "96"],
            pass_fds=[w], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(w)
        self.name = ":" + os.fdopen(r).readline().strip()

    def close(self):
        self.server.terminate()
        self.server.wait()


class Browser:
    """One kiosk window on a display of its own, driven through its debugging socket."""

    def __init__(self, url, width, height, over=0, flags=(), env=None):
        self.display = Display(width, height)
        self.profile = tempfile.mkdtemp(prefix="kiosk-")
        self.process = subprocess.Popen(
            ["chromium", *FLAGS, *flags, f"--window-size={width + over},{height + over}", "--remote-debugging-port=0",
             f"--user-data-dir={self.profile}", url],
            env={**os.environ, **(env or {}), "DISPLAY": self.display.name}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.socket = self._attach()
        self.calls = 0
        self.grabber = mss.MSS(display=self.display.name)

    def _attach(self, patience=60):
        port = pathlib.Path(self.profile) / "DevToolsActivePort"
        until = time.time() + patience
        while time.time() < until:
            try:
                number = port.read_text().split()[0]
                pages = json.load(urllib.request.urlopen(f"http://127.0.0.1:{number}/json"))
                page = next(p for p in pages if p["type"] == "page")
                return websocket.create_connection(page["webSocketDebuggerUrl"], timeout=120)
            except (OSError, IndexError, StopIteration):
                time.sleep(0.1)
        raise RuntimeError("the browser does not answer")

    def call(self, method, **params):
        self.calls += 1
        self.socket.send(json.dumps({"id": self.calls, "method": method, "params": params}))
        while True:
            answer = json.loads(self.socket.recv())
            if answer.get("id") == self.calls:
                return answer["result"]

    def script(self, text):
        answer = self.call("Runtime.evaluate", expression=text, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"].get("exception", {}).get("description", str(answer)))
        return answer["result"].get("value")

    def until(self, condition, patience=60):
        end = time.time() + patience
        while not self.script(condition):
            if time.time() > end:
                raise RuntimeError(f"never true: {condition}")
            time.sleep(0.05)

    def grab(self, left, top, width, height):
        shot = self.grabber.grab({"left": left, "top": top, "width": width, "height": height})
        return np.frombuffer(shot.raw, np.uint8).reshape(height, width, 4)[..., 2::-1]

    def close(self):
        self.socket.close()
        self.process.terminate()
        self.process.wait()
        self.grabber.close()
        self.display.close()
        shutil.rmtree(self.profile, ignore_errors=True)


class Mosaic(Browser):
    """`draw` takes up to across*down screens [page, state, plans] and gives (picture, report) for each."""

    def __init__(self, across=8, down=8):
        self.across, self.down, self.batch = across, down, 0
        url = (HERE / "mosaic.html").as_uri() + f"?across={across}&down={down}"
        super().__init__(url, across * W + 40, down * H + 40)
        self.until("typeof ready === 'function' && ready()")

    def draw(self, screens):
        self.batch += 1
        n = self.batch % 4096
        colour = (n & 15) * 16, (n >> 4 & 15) * 16, (n >> 8 & 15) * 16
        reports = json.loads(self.script(f"draw({json.dumps(screens)}, 'rgb{colour}')"))
        self._arrived(colour)
        sheet = self.grab(0, 0, self.across * W, self.down * H)
        for k, report in enumerate(reports):
            y, x = k // self.across * H, k % self.across * W
            yield np.ascontiguousarray(sheet[y:y + H, x:x + W]), report

    def _arrived(self, colour, patience=60):
        end = time.time() + patience
        while time.time() < end:
            if tuple(self.grab(0, self.down * H + 2, 1, 1)[0, 0]) == colour:
                time.sleep(0.03)
                return
            time.sleep(0.01)
        raise RuntimeError("the batch never reached the X server")


PROOF = (("flight", "flight.html?seed=1000102",
          {"seed": 1000102, "page": "search", "from": "", "to": "", "date": "", "name": ""}),
         ("dialog", "dialog.html?seed=5&kind=options&title=Seat&labels=Window|Aisle|Middle&buttons=OK|Cancel",
          {"seed": 5, "kind": "options", "title": "Seat", "labels": ["Window", "Aisle", "Middle"], "on": [],
           "buttons": ["OK", "Cancel"]}))


def same_pixels(mosaic, page, url, state):
    """Number of pixels that differ between a tile and the page in a kiosk window.  The window is asked
    to be one pixel larger than the screen: without a window manager Chromium stops one short."""
    tile, _ = next(iter(mosaic.draw([[page, state, []]])))
    file, query = url.split("?")
    window = Browser(f"{(DEMO / file).as_uri()}?{query}", W, H, over=1)
    try:
        window.until("document.readyState === 'complete'")
        time.sleep(1.0)
        return int((tile != window.grab(0, 0, W, H)).any(-1).sum())
    finally:
        window.close()


if __name__ == "__main__":
    sheet = Mosaic(2, 2)
    for page, url, state in PROOF:
        print(f"{url}: {same_pixels(sheet, page, url, state)} pixels differ")
    sheet.close()
