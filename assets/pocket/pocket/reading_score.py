"""Measures how well the vision encoder reads screens.

    python -m pocket reading --data DIR... [--eyes FILE] [--screens N]
    python -m pocket reading --data DIR --example ../../tests/golden/locate.json      the fixture of t_locate

letters   fraction of the letters on the screen that are named correctly within half a letter of their place
words     fraction of the words whose letters are all correct
ghosts    letters read where the screen has none, per letter on the screen
distance  edit distance of a line's letters, left to right, per letter on the screen

Text without labels (date fields, for example) is not counted.
"""

import collections
import json
import pathlib

import numpy as np
import torch

from . import KEPT, heads, targets, tower, weights
from .sources import store


def distance(a, b):
    """Returns the edit distance of two sequences."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        last, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (x != y))
    return row[-1]


def line_of(found, lines):
    """Returns the index of the line [[x0, y0, x1, y1], ...] that each found letter lies in, -1 for none."""
    if not len(lines) or not len(found):
        return np.full(len(found), -1)
    x, y = found[:, :1], found[:, 1:2]
    mid, half = (lines[:, 1] + lines[:, 3]) / 2, (lines[:, 3] - lines[:, 1]) / 2
    outside = (np.abs(y - mid) > half + 2) | (x < lines[:, 0] - 5) | (x > lines[:, 2] + 5)
    away = np.abs(y - mid) + 1e4 * outside
    best = away.argmin(1)
    return np.where(away[np.arange(len(found)), best] < 1e4, best, -1)


def compare(found, letters, blind):
    """Counts for one screen: `found` as heads.decode() returns it, stored letters, boxes without labels."""
    box = letters[:, :4] / 4
    cx, cy = (box[:, 0] + box[:, 2]) / 2, (box[:, 1] + box[:, 3]) / 2
    x, y = found[:, :1], found[:, 1:2]
    near = (np.abs(x - cx) <= np.maximum(4, 0.5 * (box[:, 2] - box[:, 0]))) & (found[:, 2:3] == letters[:, 4])
    near &= np.abs(y - cy) <= np.maximum(8, 0.4 * (box[:, 3] - box[:, 1]))
    right = near.any(0)
    words = collections.defaultdict(list)
    for k, w in enumerate(letters[:, 6]):
        words[w].append(k)
    out = collections.Counter(letters=len(letters), right=int(right.sum()), words=len(words))
    out["words_right"] = sum(all(right[k]) for k in words.values())
    inside = ((x >= box[:, 0] - 2) & (x <= box[:, 2] + 2) & (y >= box[:, 1] - 2) & (y <= box[:, 3] + 2)).any(
        1
    )
    for b in blind / 4:
        inside |= ((x >= b[0]) & (x <= b[2]) & (y >= b[1]) & (y <= b[3]))[:, 0]
    out["ghosts"] = int((~inside).sum())
    ids = np.unique(letters[:, 5])
    rows = [box[letters[:, 5] == i] for i in ids]
    lines = np.array([[*b[:, :2].min(0), *b[:, 2:].max(0)] for b in rows]).reshape(-1, 4)
    mine = line_of(found, lines)
    for j, i in enumerate(ids):
        want = letters[letters[:, 5] == i]
        want = want[np.argsort(want[:, 0] + want[:, 2])][:, 4].tolist()
        got = found[mine == j]
        out["distance"] += distance(got[np.argsort(got[:, 0])][:, 2].astype(int).tolist(), want)
    return out


class Encoder:
    """A kept encoder with its letters head."""

    def __init__(self, path, dt=None):
        saved = weights.load(path)
        self.c, self.p, self.dt = saved["shape"], saved["parameters"], dt or tower.products("cpu")
        self.reader, self.table = heads.Reader(self.c["hidden"]), tower.positions(self.c["hidden"])
        for n, p in self.reader.named_parameters():
            p.data = self.p[f"head.{n}"]

    @torch.no_grad()
    def rows(self, picture):
        """Returns (rows of the patches [n, d], rows, columns) of a picture uint8 [h, w, 3]."""
        patches, rows, cols = targets.whole(picture)
        x = tower.encode(self.p, self.c, patches.to(self.dt), rows, cols, self.table, self.dt)
        return x[0, self.c["skip"] :], rows, cols


def score(encoder, folder, most):
    """Returns (number of screens, figures) of a directory of shards."""
    total, n = collections.Counter(), 0
    everything = [(s, k) for s in store.shards([folder]) for k in range(len(s))]
    for s, k in everything[:: max(1, len(everything) // most)]:
        picture, letters, blind = targets.enlarged(s.picture(k), s.letters_of(k), s.blind_of(k))
        x, rows, cols = encoder.rows(picture)
        shown = (letters[:, 3] <= rows * 64 + 8) & (letters[:, 2] <= cols * 64 + 8)
        total.update(compare(heads.decode(encoder.reader, x, rows, cols).numpy(), letters[shown], blind))
        n += 1
    pairs = dict(letters=("right", "letters"), words=("words_right", "words"))
    pairs |= dict(ghosts=("ghosts", "letters"), distance=("distance", "letters"))
    return n, {name: round(total[a] / max(1, total[b]), 3) for name, (a, b) in pairs.items()}


@torch.no_grad()
def example(a):
    """Writes the detections of the slots of the first screen, and its letters."""
    encoder = Encoder(a.eyes, torch.float32)
    x, rows, cols = encoder.rows(targets.enlarged(store.shards(a.data)[0].picture(0))[0])
    u, present, shift = encoder.reader(x)
    patch, slot = (present.sigmoid() > 0.09).nonzero().T
    letter = encoder.reader.names(u[patch], slot)[:, 1:].argmax(-1) + 1
    claims = []
    for n, s, k in zip(patch.tolist(), slot.tolist(), letter.tolist()):
        values = float(present[n, s].sigmoid()), float(shift[n, s].clamp(0, 1))
        claims.append((2 * (n // cols) + s // 4, 4 * (n % cols) + s % 4, *(round(v, 6) for v in values), k))
    letters = [
        [round(x, 4), round(y, 4), int(k)]
        for x, y, k, _ in heads.decode(encoder.reader, x, rows, cols).tolist()
    ]
    with open(a.example, "w") as f:
        json.dump(dict(rows=rows, cols=cols, claims=claims, letters=letters), f)
        f.write("\n")


def options(p):
    p.add_argument("--data", nargs="+", required=True, help="directories of shards")
    p.add_argument("--eyes", default=str(KEPT / "eyes.safetensors"), help="kept file of the encoder")
    p.add_argument("--screens", type=int, default=10**9, help="screens of each directory, at most")
    p.add_argument("--example", help="only write this fixture")


def run(a):
    if a.example:
        return example(a)
    encoder = Encoder(a.eyes)
    for folder in a.data:
        n, figures = score(encoder, folder, a.screens)
        print(
            f"{pathlib.Path(folder).name:20} {n:5} screens  "
            + "  ".join(f"{k} {v}" for k, v in figures.items())
        )
