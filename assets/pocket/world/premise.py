"""Proves the premise of the world: a page photographed headless is the page that stands on a screen.

The same page of MiniWoB++ with the same seed, once as a frame of the sheet and once in a kiosk window of its
own on an X server, at the device scale of the suite; the pictures are compared pixel by pixel.
"""

import pathlib
import sys
import time

import numpy as np

import fonts
import headless
import miniwob
from PIL import Image
from screens import Browser


def compare(page, seed, family, out):
    width, height, scale = 368, 480, 480 / 210
    sheet = headless.Sheet(1, 1)
    sheet.lay(width, height, scale)
    sheet.script(miniwob.LOADER)
    url = (miniwob.prepare() / page).as_uri() + ".html"
    sheet.script(f"load([{url!r}])")
    sheet.until("frames[0].contentWindow.begin && frames[0].contentDocument.readyState === 'complete'")
    sheet.ask(f"begin([[{seed}, {family!r}, 0]])")
    a = next(sheet.tiles())
    sheet.close()
    conf = fonts.configure(headless.state_dir() / "fonts")
    window = Browser(
        url,
        640,
        480,
        over=1,
        flags=[f"--force-device-scale-factor={scale:.5f}"],
        env={"FONTCONFIG_FILE": conf},
    )
    try:
        window.until("document.readyState === 'complete' && typeof begin === 'function'")
        window.script(f"begin({seed}, {family!r}, 0)")
        time.sleep(1.5)
        b = window.grab(0, 0, 640, 480)[:, :width]
    finally:
        window.close()
    both = np.concatenate([a, b], 1)
    Image.fromarray(both).save(pathlib.Path(out) / f"premise-{page}.png")
    diff = np.abs(a.astype(int) - b).max(2)
    print(
        f"{page}: {int((diff > 0).sum())} pixels differ, {int((diff > 32).sum())} by more than 32 steps, worst {diff.max()}"
    )


if __name__ == "__main__":
    for page, family in (
        ("click-dialog-2", ""),
        ("email-inbox", ""),
        ("login-user", "DejaVu Sans"),
        ("click-checkboxes", "Noto Sans"),
    ):
        compare(page, 900_123, family, sys.argv[1])
