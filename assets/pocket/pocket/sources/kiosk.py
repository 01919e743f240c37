"""Kiosk pages (assets/demo) as labelled screens with their conversations.

Pages and conversations are those of kiosk_pages.py. The letter of a cell of 20x30 pixels is a letter with
that box, a run of cells without a space is a word, a row is a line. A field is reported with the place of
its label, where the conversation points; as an element it has the box in which it is drawn.
"""

import json
import time

import numpy as np

from . import HERE, kiosk_pages
from .browser import Window

W, H = 640, 480
KIND = {"button": "button", "offer": "item", "tick": "check", "option": "radio", "field": "field"}
MARK = 40  # pixels: two cells
SIDE = 3  # screens across and down in one window
MIX = {"flight": 30, "dialog": 45, "text": 25}  # weights of the kinds of pages


def letters_of(cells):
    """Returns the letters of 16 rows of 32 characters in the form of labels.js."""
    out, word = [], 0
    for r, row in enumerate(cells):
        for c, ch in enumerate(row):
            if ch == " ":
                word += 1
            else:
                out.append((20 * c, 30 * r, 20 * c + 20, 30 * r + 30, ord(ch), r, word))
        word += 1
    return out


def element(e):
    """Returns an element of a page's report in the form of labels.js."""
    x, y, w, h = e["drawn"]
    kind, state = KIND[e["kind"]], 0
    if kind in ("check", "radio"):
        w, state = MARK, 1 if e["value"] is True else 2
    return (x, y, x + w, y + h, kind, state, e["label"])


class Mosaic(Window):
    """across x down kiosk screens in one window; a strip below changes colour with every batch."""

    def __init__(self, across, down):
        self.across, self.down, self.batch = across, down, 0
        url = (HERE / "mosaic.html").as_uri() + f"?across={across}&down={down}"
        super().__init__(url, across * W + 40, down * H + 40)
        self.until("typeof ready === 'function' && ready()")

    def draw(self, screens):
        """Draws up to across*down screens [page, state, plans]; yields (picture, report) of each."""
        self.batch += 1
        colour = tuple((self.batch >> shift & 15) * 16 for shift in (0, 4, 8))
        reports = json.loads(self.script(f"draw({json.dumps(screens)}, 'rgb{colour}')"))
        self._arrived(colour)
        sheet = self.display.grab(0, 0, self.across * W, self.down * H)
        for k, report in enumerate(reports):
            y, x = k // self.across * H, k % self.across * W
            yield np.ascontiguousarray(sheet[y : y + H, x : x + W]), report

    def _arrived(self, colour, patience=60):
        """Waits until the X server shows the batch. Raises RuntimeError after `patience` seconds."""
        end = time.time() + patience
        while time.time() < end:
            if tuple(self.display.grab(0, self.down * H + 2, 1, 1)[0, 0]) == colour:
                time.sleep(0.03)
                return
            time.sleep(0.01)
        raise RuntimeError(f"the X server did not show a batch in {patience} s")


class Pages:
    """Batches of kiosk screens."""

    def __init__(self, rng, lex, heldout=False):
        self.mosaic, self.rng, self.lex = Mosaic(SIDE, SIDE), rng, lex
        self.seeds = kiosk_pages.EVAL_SEEDS if heldout else kiosk_pages.TRAIN_SEEDS

    def draw(self):
        """(picture, found, about) for each screen of a batch."""
        names = self.rng.choices(list(MIX), list(MIX.values()), k=SIDE * SIDE)
        plans = [kiosk_pages.MAKERS[n](self.rng, self.lex, self.seeds) for n in names]
        for (_, turns), (picture, report) in zip(plans, self.mosaic.draw([s for s, _ in plans])):
            kind, said = turns(report)
            elements = [element(e) for e in report["elements"] if e["kind"] in KIND]
            found = {"letters": letters_of(report["cells"]), "elements": elements}
            yield picture, found, {"page": "kiosk-" + kind, "turns": said}

    def close(self):
        self.mosaic.close()
