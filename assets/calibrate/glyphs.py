"""Makes glyphs.png, the letters from which `holorun calibrate` composes screens.

Letters and digits in the typeface of the kiosk theme, one per cell of 20x30 px, in the order of CHARS, black on
white: a coverage mask for any two colours. The browser draws them, like the demo, so that the embedded model can read
them.

Needs the browser and the packages of assets/pocket.
"""
import pathlib
import sys
import time

from PIL import Image

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "pocket"))
from pocket.sources.browser import Window  # noqa: E402

DEMO = HERE.parent / "demo"

CHARS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
PAGE = """<link rel="stylesheet" href="{css}"><style>html,body{{width:1300px;background:white}}
#screen span{{color:black !important}}</style><div id="screen">{glyphs}</div>"""


def main():
    width = 20 * len(CHARS)
    page = HERE / "glyphs.html"
    spans = "".join(f'<span style="left:{20 * k}px;top:0;width:20px">{c}</span>' for k, c in enumerate(CHARS))
    page.write_text(PAGE.format(css=(DEMO / "kiosk.css").as_uri(), glyphs=spans))
    window = Window(page.as_uri(), 1300, 60)
    try:
        window.until("document.readyState === 'complete'")
        time.sleep(2)                            # no event says that the page is drawn
        picture = Image.fromarray(window.display.grab(0, 0, width, 30).copy()).convert("L")
        picture.save(HERE / "glyphs.png", optimize=True)
    finally:
        window.close()
        page.unlink()


if __name__ == "__main__":
    main()
