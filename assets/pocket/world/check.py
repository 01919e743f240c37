"""Every label is checked for ink before it is believed; and labels as a picture, for people.

Design.  A letter that the page says is visible may be clipped, covered or drawn in the colour of what is
under it.  Its box is then one flat colour in the picture.  `inked` keeps the letters in whose box some
channel differs by at least INK steps; a page where more than LOST of the letters go is not used at all,
because something else must be wrong with it.
"""

import numpy as np
from PIL import Image, ImageDraw

INK, LOST = 28, 0.25


def inked(picture, letters):
    """Which rows of `letters` [[left, top, right, bottom, ...]] have ink in the picture."""
    h, w = picture.shape[:2]
    keep = np.zeros(len(letters), bool)
    for i, (x0, y0, x1, y1) in enumerate(np.asarray([l[:4] for l in letters]).reshape(-1, 4)):
        a, b = max(0, int(x0)), min(w, int(np.ceil(x1)) or 1)
        c, d = max(0, int(y0)), min(h, int(np.ceil(y1)))
        if b - a < 1 or d - c < 2:
            continue
        part = picture[c:d, a:b].reshape(-1, 3)
        keep[i] = int((part.max(0).astype(np.int16) - part.min(0)).max()) >= INK
    return keep


def drawn(picture, found):
    """Pictures of one page with its boxes: letters red, without ink blue, elements green, blind grey."""
    im = Image.fromarray(picture).convert("RGB")
    d = ImageDraw.Draw(im)
    keep = inked(picture, found["letters"])
    for x0, y0, x1, y1, *_ in found["blind"]:
        d.rectangle([x0, y0, x1, y1], outline=(128, 128, 128))
    for x0, y0, x1, y1, *_ in found["elements"]:
        d.rectangle([x0, y0, x1 - 1, y1 - 1], outline=(0, 160, 0))
    for (x0, y0, x1, y1, *_), k in zip(found["letters"], keep):
        d.line([x0, y1 - 3, x0, y1, x1, y1], fill=(230, 0, 0) if k else (0, 0, 255))
    return im


def sheet(tiles, founds, across):
    h, w = tiles[0].shape[:2]
    out = Image.new("RGB", (w * across, h * -(-len(tiles) // across)))
    for k, (t, f) in enumerate(zip(tiles, founds)):
        out.paste(drawn(t, f), (k % across * w, k // across * h))
    return out
