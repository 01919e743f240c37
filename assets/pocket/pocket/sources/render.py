"""Draws labelled screens of one source as shards: web forms, kiosk pages, or windows of GTK 3, Qt 5 or Tk.

    python -m pocket render forms|kiosk|gtk|qt|tk --out DIR --shards N [--heldout]

Shard k depends on its random generator only, which is seeded by k, so a stopped run continues with the next
missing shard. A browser that fails is restarted.
"""

import json
import pathlib
import random
import time

from . import fonts, forms, ink, kiosk, pause, short_forms, store, toolkit
from .browser import Sheet
from .frames import retried
from .words import Lexicon

FORMS = [(480, 448), (640, 480), (384, 512), (512, 320), (320, 256)]  # width and height in device pixels
SHORT = 0.6  # fraction of the form screens that show one form only
SCALES = [(1.0, 4), (1.15, 2), (1.33, 2), (1.5, 3), (1.75, 2), (2.0, 4), (2.2857, 5)]  # device scale, weight
TOOLKIT_SCALES = [(1.0, 6), (1.25, 2), (1.5, 2), (2.0, 1)]
WINDOWS = 32  # windows of one toolkit process
WINDOW_FONTS = [f for f in fonts.TRAINED if f != "Hack"]


def weighted(rng, table):
    """Draws from a table of (value, weight)."""
    return rng.choices([t for t, _ in table], [w for _, w in table])[0]


def draw_forms(a, rng, full):
    """Yields (picture, labels, about) of web forms until full()."""
    sheet, lex = Sheet(4, 4), Lexicon(rng, a.heldout)
    try:
        while not full():
            kind = short_forms if rng.random() < SHORT else forms
            (w, h), scale = rng.choice(FORMS), weighted(rng, SCALES)
            sheet.lay(w, h, scale)
            plan = [kind.page(rng, lex, w / scale) for _ in range(16)]
            found = sheet.ask(f"show({json.dumps(plan)})")
            for f, tile in zip(found, sheet.tiles()):
                yield tile, f, {"page": "form"}
    finally:
        sheet.close()


def draw_kiosk(a, rng, full):
    """Yields (picture, labels, about) of kiosk pages until full()."""
    pages = kiosk.Pages(rng, Lexicon(rng, a.heldout), a.heldout)
    try:
        while not full():
            yield from pages.draw()
    finally:
        pages.close()


def draw_windows(a, rng, full):
    """Yields (picture, labels, about) of toolkit windows until full()."""
    plans = toolkit.Plans(rng, Lexicon(rng, a.heldout))
    while not full():
        family = rng.choice(WINDOW_FONTS)
        dark, scale = rng.random() < 0.3, weighted(rng, TOOLKIT_SCALES)
        windows = toolkit.Toolkit(a.source, family, rng.choice((9, 10, 11, 12)), scale, dark)
        try:
            for _ in range(WINDOWS):
                if full():
                    break
                picture, found = windows.draw(plans.window())
                yield toolkit.padded(picture, rng), found, {"page": a.source}
        finally:
            windows.close()


def shard(a, k):
    """Writes shard k, unless it exists."""
    name = f"{a.source}-{k:05}"
    if (pathlib.Path(a.out) / f"{name}.npz").exists():
        return
    start, lost = time.time(), 0
    rng, writer = random.Random(f"{a.source}/{k}/{a.heldout}/None/False"), store.Writer(a.out, name)
    draw = {"forms": draw_forms, "kiosk": draw_kiosk}.get(a.source, draw_windows)
    for screen in draw(a, rng, lambda: len(writer.place) >= a.screens):
        pause()
        lost += not ink.put(writer, *screen)
    writer.close()
    print(f"{name}: {len(writer.place)} screens, {lost} without ink, {time.time() - start:.0f} s", flush=True)


def options(p):
    p.add_argument("source", choices=("forms", "kiosk", "gtk", "qt", "tk"))
    p.add_argument("--out", required=True, help="directory of the shards")
    p.add_argument("--shards", type=int, default=1)
    p.add_argument("--screens", type=int, default=512, help="screens of a shard")
    p.add_argument("--heldout", action="store_true", help="words and seeds that are not in training")


def run(a):
    retried(a.shards, lambda k: shard(a, k))
