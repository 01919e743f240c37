"""Drops labels of letters that the picture does not show.

A letter that the page reports as visible may be clipped, covered, or drawn in the background colour. Its
box is then one flat colour. A screen that loses more than the fraction LOST of its letters is discarded.
"""

import numpy as np

INK, LOST = 28, 0.25  # minimum difference of a channel within a letter's box / fraction of letters


def inked(picture, letters):
    """Returns a bool array: which of `letters` [[left, top, right, bottom, ...]] have ink in the picture."""
    h, w = picture.shape[:2]
    keep = np.zeros(len(letters), bool)
    for i, (x0, y0, x1, y1) in enumerate(np.asarray([row[:4] for row in letters]).reshape(-1, 4)):
        a, b = max(0, int(x0)), min(w, int(np.ceil(x1)) or 1)
        c, d = max(0, int(y0)), min(h, int(np.ceil(y1)))
        if b - a < 1 or d - c < 2:
            continue
        part = picture[c:d, a:b].reshape(-1, 3)
        keep[i] = int((part.max(0).astype(np.int16) - part.min(0)).max()) >= INK
    return keep


def put(writer, picture, found, about):
    """Adds a screen to a shard (store.Writer) without its letters that have no ink.

    Returns False, and adds nothing, if more than LOST of the letters have none.
    """
    keep = inked(picture, found["letters"])
    if len(keep) and (~keep).mean() > LOST:
        return False
    writer.add(picture, found, keep, about)
    return True
