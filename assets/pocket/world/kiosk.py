"""Kiosk pages as training screens of the wide world, so that what the small model can do is not lost.

Design.  Pages, conversations and the browser are those of generate.py and screens.py; only the labels take
another form: the letter of a cell of 20 x 30 pixels is a letter with that box, a run of cells without a blank
is a word, a row is a line.  A field is reported with the place of its label, at which the small model points;
as an element it has the box in which it is drawn, and a tick that of its mark; the tower's own stages leave
these elements out (crops.NAMELESS), the pointer learns them.  The turns are kept with the screen, in the small
model's dialect; questions.py says them in the wide one.
"""

import headless  # puts the folder above on the path  # noqa: F401
import generate
from screens import H, W, Mosaic

KIND = {"button": "button", "offer": "item", "tick": "check", "option": "radio", "field": "field"}
MARK = 40  # pixels: two cells
SIDE = 3  # screens across and down in one window


def letters_of(cells):
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
    x, y, w, h = e["drawn"]
    kind, state = KIND[e["kind"]], 0
    if kind in ("check", "radio"):
        w = MARK
        state = 1 if e["value"] is True else 2
    return (x, y, x + w, y + h, kind, state, e["label"])


class Pages:
    def __init__(self, rng, lex, heldout=False):
        self.mosaic, self.rng, self.lex = Mosaic(SIDE, SIDE), rng, lex
        self.seeds, self.mix = generate.EVAL_SEEDS if heldout else generate.TRAIN_SEEDS, dict(
            flight=30, dialog=45, text=25
        )

    def draw(self):
        """(picture, found, about) for each screen of a batch."""
        names = self.rng.choices(list(self.mix), list(self.mix.values()), k=SIDE * SIDE)
        plans = [generate.MAKERS[n](self.rng, self.lex, self.seeds) for n in names]
        for (_, turns), (picture, report) in zip(plans, self.mosaic.draw([s for s, _ in plans])):
            kind, said = turns(report)
            yield picture, {
                "letters": letters_of(report["cells"]),
                "elements": [element(e) for e in report["elements"] if e["kind"] in KIND],
                "blind": [],
            }, {"page": "kiosk-" + kind, "family": "kiosk", "turns": said}

    def close(self):
        self.mosaic.close()


assert (W, H) == (640, 480)
