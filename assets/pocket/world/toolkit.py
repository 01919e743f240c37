"""Windows of desktop toolkits as training screens: planned here, drawn by the toolkit in a program of its
own.

Design.  gtk_windows.py, qt_windows.py and tk_windows.py run in the system's Python on a private X server
and answer plans with pictures and labels.  A plan is rows of widgets with words from a Lexicon; font, text
scale and light or dark are fixed for one such program, so a few of them are started in turn.  The kind of
the letters' labels is that of labels.js.
"""

import json
import os
import pathlib
import subprocess
import time

import mss
import numpy as np

import fonts
import headless
from screens import Display
from words import CLOSING, DISMISS

HERE = pathlib.Path(__file__).resolve().parent


class Toolkit:
    """One program: a toolkit ("gtk", "qt" or "tk"), one font, one scale."""

    def __init__(self, name, family, size, scale, dark):
        self.display = Display(1280, 1024)
        self.grabber = mss.MSS(display=self.display.name)
        conf = fonts.configure(headless.state_dir() / "fonts")
        self.process = subprocess.Popen(
            [
                "/usr/bin/python3",
                str(HERE / f"{name}_windows.py"),
                f"{family} {size}",
                str(scale),
                str(int(dark)),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL if not os.environ.get("WORLD_LOUD") else None,
            env={
                **os.environ,
                "DISPLAY": self.display.name,
                "FONTCONFIG_FILE": conf,
                "GDK_BACKEND": "x11",
                "NO_AT_BRIDGE": "1",
                "GTK_THEME": "Adwaita:dark" if dark else "Adwaita",
            },
        )

    def draw(self, plan):
        self.process.stdin.write(json.dumps(plan).encode() + b"\n")
        self.process.stdin.flush()
        head = json.loads(self.process.stdout.readline())
        w, h = head["size"]
        if "at" in head:  # it stands on the display and cannot photograph itself
            time.sleep(0.05)
            shot = self.grabber.grab({"left": head["at"][0], "top": head["at"][1], "width": w, "height": h})
            return np.frombuffer(shot.raw, np.uint8).reshape(h, w, 4)[..., 2::-1], head
        return np.frombuffer(self.process.stdout.read(head["bytes"]), np.uint8).reshape(h, w, 3), head

    def close(self):
        self.process.stdin.close()
        self.process.wait(10)
        self.grabber.close()
        self.display.close()


def padded(picture, rng):
    """To multiples of 32 pixels, on a plain desktop; windows larger than 1,024 are cut."""
    h, w = min(1024, -(-picture.shape[0] // 32) * 32), min(1024, -(-picture.shape[1] // 32) * 32)
    out = np.empty((h, w, 3), np.uint8)
    out[:] = [rng.randrange(256) for _ in range(3)]
    part = picture[:h, :w]
    out[: part.shape[0], : part.shape[1]] = part
    return out


class Plans:
    def __init__(self, rng, lex):
        self.rng, self.lex, self.named = rng, lex, []

    def name(self):
        return self.lex.beside(self.named, lambda: self.lex.label(14))

    def words(self, low, high):
        return " ".join(
            self.lex.word() if self.rng.random() < 0.7 else self.lex.invented()
            for _ in range(self.rng.randint(low, high))
        )

    def button(self):
        r = self.rng
        text = r.choice(CLOSING + DISMISS) if r.random() < 0.3 and not self.lex.evaluation else self.name()
        return ["button", text, r.choices(("", "suggested", "disabled"), (8, 1, 1))[0]]

    def row(self):
        r = self.rng
        kind = r.choices(
            (
                "text",
                "field",
                "checks",
                "radios",
                "buttons",
                "combo",
                "spin",
                "scale",
                "switch",
                "link",
                "area",
            ),
            (8, 10, 6, 5, 8, 5, 3, 2, 2, 2, 2),
        )[0]
        if kind == "text":
            return [["label", self.words(2, 12)]]
        if kind == "field":
            return [
                ["label", self.name() + r.choice(("", ":"))],
                ["entry", self.words(1, 2) if r.random() < 0.6 else "", r.randint(8, 22)],
            ]
        if kind == "checks":
            return [["check", self.name(), r.random() < 0.4] for _ in range(r.randint(1, 3))]
        if kind == "radios":
            return [["radio", self.name(), r.random() < 0.4] for _ in range(r.randint(1, 3))]
        if kind == "buttons":
            return [self.button() for _ in range(r.randint(1, 3))]
        if kind == "combo":
            names = [self.name() for _ in range(r.randint(2, 5))]
            return [["label", self.name()], ["combo", names, r.randrange(len(names))]]
        if kind == "spin":
            return [["label", self.name()], ["spin", r.randint(0, 999)]]
        if kind == "scale":
            return [["label", self.name()], ["scale", r.randint(0, 100)]]
        if kind == "switch":
            return [["label", self.name()], ["switch", r.random() < 0.5]]
        if kind == "link":
            return [["link", self.name()]]
        return [["text", self.words(3, 14)]]

    def rows(self, low, high):
        return [self.row() for _ in range(self.rng.randint(low, high))]

    def window(self):
        r, rows = self.rng, self.rows(2, 7)
        if r.random() < 0.25:
            rows.insert(
                r.randrange(len(rows) + 1),
                [["tabs", [[self.name(), self.rows(1, 3)] for _ in range(r.randint(2, 4))]]],
            )
        if r.random() < 0.2:
            rows.insert(r.randrange(len(rows) + 1), [["frame", self.name(), self.rows(1, 3)]])
        if r.random() < 0.2:
            names = [self.name() for _ in range(r.randint(2, 6))]
            rows.insert(r.randrange(len(rows) + 1), [["list", names, r.randrange(len(names))]])
        rows.append([self.button() for _ in range(r.randint(1, 3))])
        return {"width": r.randint(220, 560), "rows": rows}


if __name__ == "__main__":
    import random
    import sys
    import check
    from PIL import Image
    from words import Lexicon

    rng = random.Random(3)
    plans, out = Plans(rng, Lexicon(rng)), Image.new("RGB", (1300, 1000), (60, 60, 90))
    x = 0
    name = sys.argv[2]
    for family, size, scale, dark in (("Cantarell", 11, 1.0, False), ("DejaVu Sans", 10, 1.3, True)):
        g = Toolkit(name, family, size, scale, dark)
        y = 0
        for _ in range(2):
            picture, found = g.draw(plans.window())
            out.paste(check.drawn(np.ascontiguousarray(picture), found), (x, y))
            print(
                picture.shape,
                len(found["letters"]),
                int((~check.inked(picture, found["letters"])).sum()),
                len(found["elements"]),
            )
            y += picture.shape[0] + 10
        g.close()
        x += 650
    out.save(sys.argv[1])
