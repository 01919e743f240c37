"""Training screens with their labels, as shards: render.py miniwob|forms|kiosk|gtk|qt|tk --out DIR --shards
N.

Design.  One run is one browser and one kind of world.  Each shard is drawn from a random generator seeded
by its number, so that a stopped run goes on with the next missing shard; a browser that fails is started
anew.  A screen more than LOST of whose letters have no ink is thrown away and counted.  Sleeps while the
file PAUSE stands in the state directory; runs at the lowest priority.
"""

import argparse
import json
import os
import pathlib
import random
import sys
import time

import headless
import check
import fonts
import forms
import kiosk
import miniwob
import short_forms
import store
import toolkit
from words import Lexicon

# width, height in device pixels and scale, with how often
MINIWOB = [
    ((368, 480, 480 / 210), 12),
    ((336, 420, 2.0), 4),
    ((352, 448, 2.13), 2),
    ((272, 336, 1.6), 1),
    ((192, 224, 1.0), 1),
]
FORMS = [(480, 448), (640, 480), (384, 512), (512, 320), (320, 256)]
SHORT = 0.6  # of the forms are that alone
PLAIN_MINIWOB = [((368, 480, 480 / 210), 6), ((640, 480, 480 / 210), 1)]  # as the suite shows them
PLAIN_SCALES = [(2.0, 1), (2.2857, 3)]
PLAIN_FONTS = ("Liberation Sans", "DejaVu Sans")
SCALES = [(1.0, 4), (1.15, 2), (1.33, 2), (1.5, 3), (1.75, 2), (2.0, 4), (2.2857, 5)]


def weighted(rng, table):
    return rng.choices([t for t, _ in table], [w for _, w in table])[0]


class Renderer:
    def __init__(self, a):
        self.a, self.sheet, self.bad, self.letters, self.blank = a, None, 0, 0, 0

    def browser(self, across, down):
        if self.sheet is None:
            self.sheet = headless.Sheet(across, down)
        return self.sheet

    def close(self):
        if self.sheet:
            self.sheet.close()
        self.sheet = None

    def put(self, writer, picture, found, about):
        keep = check.inked(picture, found["letters"])
        self.letters += len(keep)
        self.blank += int((~keep).sum())
        if len(keep) and (~keep).mean() > check.LOST:
            self.bad += 1
            return
        writer.add(picture, found, keep, about)

    def miniwob(self, writer, rng):
        sheet = self.browser(4, 4)
        families = self.a.families or fonts.TRAINED
        own = 1 if self.a.plain else 0 if self.a.families else 0.4
        sizes = PLAIN_MINIWOB if self.a.plain else MINIWOB
        pages = miniwob.Pages(sheet, rng, miniwob.GATE if self.a.gate else miniwob.TRAIN, families, own)
        while len(writer.place) < self.a.screens:
            headless.pause()
            if not pages.left:
                sheet.lay(*(sizes[0][0] if self.a.gate else weighted(rng, sizes)))
            for (page, seed, family, found), tile in zip(pages.draw(), sheet.tiles()):
                self.put(
                    writer,
                    tile,
                    found,
                    {
                        "page": page,
                        "seed": seed,
                        "family": family or "Liberation Sans",
                        "said": found["said"],
                    },
                )

    def forms(self, writer, rng):
        sheet, lex = self.browser(4, 4), Lexicon(rng, self.a.gate)
        while len(writer.place) < self.a.screens:
            headless.pause()
            kind = short_forms if not self.a.plain and rng.random() < SHORT else forms
            (w, h), scale = rng.choice(FORMS), weighted(rng, PLAIN_SCALES if self.a.plain else SCALES)
            sheet.lay(w, h, scale)
            families = self.a.families or (PLAIN_FONTS if self.a.plain else fonts.TRAINED)
            plan = [kind.page(rng, lex, w / scale, families) for _ in range(16)]
            found = sheet.ask(f"show({json.dumps([p for p, _ in plan])})")
            for (_, family), f, tile in zip(plan, found, sheet.tiles()):
                self.put(writer, tile, f, {"page": "form", "family": family, "scale": scale})

    def kiosk(self, writer, rng):
        pages = kiosk.Pages(rng, Lexicon(rng, self.a.gate), self.a.gate)
        try:
            while len(writer.place) < self.a.screens:
                headless.pause()
                for picture, found, about in pages.draw():
                    self.put(writer, picture, found, about)
        finally:
            pages.close()

    def gtk(self, writer, rng):
        self.toolkit("gtk", writer, rng)

    def qt(self, writer, rng):
        self.toolkit("qt", writer, rng)

    def tk(self, writer, rng):
        self.toolkit("tk", writer, rng)

    def toolkit(self, name, writer, rng):
        plans = toolkit.Plans(rng, Lexicon(rng, self.a.gate))
        while len(writer.place) < self.a.screens:
            headless.pause()
            family = rng.choice(self.a.families or [f for f in fonts.TRAINED if f != "Hack"])
            dark, scale = rng.random() < 0.3, weighted(rng, [(1.0, 6), (1.25, 2), (1.5, 2), (2.0, 1)])
            windows = toolkit.Toolkit(name, family, rng.choice((9, 10, 11, 12)), scale, dark)
            try:
                for _ in range(min(32, self.a.screens - len(writer.place))):
                    picture, found = windows.draw(plans.window())
                    picture = toolkit.padded(picture, rng)
                    self.put(
                        writer, picture, found, {"page": name, "family": family, "scale": scale, "dark": dark}
                    )
            finally:
                windows.close()

    def shard(self, k):
        name = f"{self.a.world}-{k:05}"
        if (pathlib.Path(self.a.out) / f"{name}.npz").exists():
            return
        start, cpu = time.time(), os.times()
        rng = random.Random(f"{self.a.world}/{k}/{self.a.gate}/{self.a.families}/{self.a.plain}")
        writer = store.Writer(self.a.out, name)
        getattr(self, self.a.world)(writer, rng)
        writer.close()
        print(
            f"{name}: {len(writer.place)} screens, {writer.size / len(writer.place) / 1024:.0f} KiB each, {time.time() - start:.0f} s, "
            f"letters without ink {self.blank}/{self.letters}, screens thrown away {self.bad}",
            flush=True,
        )


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("world", choices=("miniwob", "forms", "kiosk", "gtk", "qt", "tk"))
    p.add_argument("--out", required=True)
    p.add_argument("--shards", type=int, default=1)
    p.add_argument("--first", type=int, default=0)
    p.add_argument("--screens", type=int, default=512)
    p.add_argument("--gate", action="store_true", help="seeds and words of the gates")
    p.add_argument("--families", nargs="*", help="only these fonts")
    p.add_argument("--plain", action="store_true", help="only the sizes and fonts of the suite (WIDE.md)")
    a = p.parse_args()
    os.nice(19)
    r = Renderer(a)
    for k in range(a.first, a.first + a.shards):
        for attempt in range(3):
            try:
                r.shard(k)
                break
            except Exception as e:  # the browser crashed or hangs: another one
                print(f"shard {k}: {e!r}", file=sys.stderr, flush=True)
                r.close()
                time.sleep(3)
        else:
            sys.exit(1)
    r.close()


if __name__ == "__main__":
    main()
