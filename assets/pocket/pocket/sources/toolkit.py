"""Windows of desktop toolkits, planned here and drawn by the toolkit in a process of its own.

gtk_windows.py, qt_windows.py and tk_windows.py run in the system's Python on a private X server and answer
plans with pictures and labels in the form of labels.js. A plan is rows of widgets with words from a
Lexicon. Font, text scale and colour scheme are fixed per process.
"""

import json
import os
import subprocess
import time

import numpy as np

from . import HERE, fonts, state_dir
from .browser import Display
from .words import CLOSING, DISMISS


class Toolkit:
    """One process: a toolkit ("gtk", "qt" or "tk"), one font, one scale."""

    def __init__(self, name, family, size, scale, dark):
        self.display = Display(1280, 1024)
        env = {"DISPLAY": self.display.name, "FONTCONFIG_FILE": fonts.configure(state_dir() / "fonts")}
        env |= {"GDK_BACKEND": "x11", "NO_AT_BRIDGE": "1", "GTK_THEME": "Adwaita:dark" if dark else "Adwaita"}
        command = ["/usr/bin/python3", str(HERE / f"{name}_windows.py"), f"{family} {size}", str(scale)]
        self.process = subprocess.Popen(
            [*command, str(int(dark))], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ | env
        )

    def draw(self, plan):
        """Returns (picture uint8 [h, w, 3], labels) of a window."""
        self.process.stdin.write(json.dumps(plan).encode() + b"\n")
        self.process.stdin.flush()
        head = json.loads(self.process.stdout.readline())
        w, h = head["size"]
        if "at" in head:  # the toolkit cannot draw offscreen: read the display
            time.sleep(0.05)
            return self.display.grab(*head["at"], w, h), head
        return np.frombuffer(self.process.stdout.read(head["bytes"]), np.uint8).reshape(h, w, 3), head

    def close(self):
        self.process.stdin.close()
        self.process.wait(10)
        self.display.close()


def padded(picture, rng):
    """Pads a window to multiples of 32 pixels with a plain colour; cuts it at 1,024."""
    h, w = min(1024, -(-picture.shape[0] // 32) * 32), min(1024, -(-picture.shape[1] // 32) * 32)
    out = np.empty((h, w, 3), np.uint8)
    out[:] = [rng.randrange(256) for _ in range(3)]
    part = picture[:h, :w]
    out[: part.shape[0], : part.shape[1]] = part
    return out


ROWS = dict(text=8, field=10, check=6, radio=5, buttons=8, combo=5, spin=3)  # kinds of rows: weight
ROWS |= dict(scale=2, switch=2, link=2, area=2)


class Plans:
    """Draws plans of windows."""

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
        kind = r.choices(list(ROWS), list(ROWS.values()))[0]
        if kind == "text":
            return [["label", self.words(2, 12)]]
        if kind == "field":
            label = ["label", self.name() + r.choice(("", ":"))]
            return [label, ["entry", self.words(1, 2) if r.random() < 0.6 else "", r.randint(8, 22)]]
        if kind in ("check", "radio"):
            return [[kind, self.name(), r.random() < 0.4] for _ in range(r.randint(1, 3))]
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
            at = r.randrange(len(rows) + 1)
            rows.insert(at, [["tabs", [[self.name(), self.rows(1, 3)] for _ in range(r.randint(2, 4))]]])
        if r.random() < 0.2:
            rows.insert(r.randrange(len(rows) + 1), [["frame", self.name(), self.rows(1, 3)]])
        if r.random() < 0.2:
            names = [self.name() for _ in range(r.randint(2, 6))]
            rows.insert(r.randrange(len(rows) + 1), [["list", names, r.randrange(len(names))]])
        rows.append([self.button() for _ in range(r.randint(1, 3))])
        return {"width": r.randint(220, 560), "rows": rows}
