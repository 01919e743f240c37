"""Shards of pages -> batches of tokens, patches and characters.

A shard is `shard-NNNNN.jsonl`, one line per page with its conversation, beside
`shard-NNNNN.png.bin`, the 640x480 PNG files back to back.  A line has

    images  [[offset, length], ...]          places of the screenshots in the .png.bin
    cells   per image 16 strings of 32       the character in every cell of the 20x30 grid
    kind    what the page is
    turns   [{u, a, loss}, ...]              `<image>` in u is the place of the next screenshot

Pages are drawn without replacement, round after round; shards that appear while training runs join
at the next round.  Pages of similar length share a batch, so that little is spent on padding.
"""
import glob
import io
import json
import os
import random

import numpy as np
import torch
from PIL import Image

import tokenizer
from hints import hints
from model import GRID, MEAN, PATCH, SIDE, STD

COLUMNS, ROWS = 32, 16                   # character cells of a page
CLASSES = 96                             # 0 none, 1..94 the printable characters, 95 any other
IGNORE = -100


# ---- pixels ---------------------------------------------------------------------------------

def _cubic(x, a=-0.5):
    x = np.abs(x)
    near = (a + 2) * x ** 3 - (a + 3) * x ** 2 + 1
    far = a * (x ** 3 - 5 * x ** 2 + 8 * x - 4)
    return np.where(x < 1, near, np.where(x < 2, far, 0.0))


def resize_matrix(n_in, n_out):
    """Antialiased bicubic as a matrix [n_out, n_in]: half-pixel centres, rows that sum to one."""
    s = n_in / n_out
    f = max(s, 1.0)
    c = (np.arange(n_out) + 0.5)[:, None] * s
    j = np.arange(n_in)[None]
    inside = (j >= np.floor(c - 2 * f + 0.5)) & (j < np.floor(c + 2 * f + 0.5))
    w = np.where(inside, _cubic((j - c + 0.5) / f), 0.0)
    return torch.tensor(w / w.sum(1, keepdims=True), dtype=torch.float32)


_matrix = {}


def patches_of(rgb):
    """uint8 [H, W, 3] -> normalised patches [1024, 768], column = channel·256 + y·16 + x."""
    for n in rgb.shape[:2]:
        if n not in _matrix:
            _matrix[n] = resize_matrix(n, SIDE)
    x = torch.from_numpy(rgb).permute(2, 0, 1).float().mul_(1 / 255)
    x = _matrix[rgb.shape[0]] @ (x @ _matrix[rgb.shape[1]].T)
    x = (x - torch.tensor(MEAN)[:, None, None]) / torch.tensor(STD)[:, None, None]
    x = x.view(3, GRID, PATCH, GRID, PATCH).permute(1, 3, 0, 2, 4)
    return x.reshape(GRID * GRID, 3 * PATCH * PATCH)


def decode_png(blob):
    return np.array(Image.open(io.BytesIO(blob)).convert("RGB"))


# ---- characters -----------------------------------------------------------------------------

def char_class(ch):
    o = ord(ch)
    return 0 if o == 32 else o - 32 if 32 < o < 127 else CLASSES - 1


def cell_targets(cells, offsets):
    """16 strings -> classes [256 image tokens, offsets]; an image token covers two cells of a row,
    an offset counts from the left one.  Beyond the row's ends nothing is asked."""
    grid = np.array([[char_class(c) for c in row.ljust(COLUMNS)[:COLUMNS]] for row in cells])
    at = np.arange(0, COLUMNS, 2)[:, None] + np.array(offsets)[None]        # [16, offsets]
    inside = (at >= 0) & (at < COLUMNS)
    out = np.where(inside, grid[:, np.clip(at, 0, COLUMNS - 1)], IGNORE)
    return out.reshape(ROWS * COLUMNS // 2, len(offsets))


# ---- shards ---------------------------------------------------------------------------------

class Page:
    """One line of a shard, parsed when it is used."""
    def __init__(self, shard, start, length):
        self.shard, self.start, self.length = shard, start, length

    def record(self):
        with open(self.shard, "rb") as f:
            f.seek(self.start)
            return json.loads(f.read(self.length))

    def pixels(self, place):
        with open(self.shard[:-len("jsonl")] + "png.bin", "rb") as f:
            f.seek(place[0])
            return decode_png(f.read(place[1]))


def list_pages(directories, known=None):
    """Every complete line of every shard; `known` {shard: [pages]} is extended in place."""
    known = {} if known is None else known
    for d in directories:
        for shard in sorted(glob.glob(os.path.join(d, "shard-*.jsonl"))):
            if shard not in known and os.path.exists(shard[:-len("jsonl")] + "png.bin"):
                at, pages = 0, []
                with open(shard, "rb") as f:
                    for line in f:
                        if line.endswith(b"\n"):
                            pages.append(Page(shard, at, len(line)))
                        at += len(line)
                known[shard] = pages
    return known


class Batches:
    """Endless batches of `size` pages, at most `limit` tokens a sequence."""
    def __init__(self, directories, size, offsets, seed=0, limit=1600, pool=16):
        self.directories, self.size, self.offsets = directories, size, offsets
        self.limit, self.pool, self.random = limit, pool, random.Random(seed)
        self.known, self.queue, self.ready, self.rounds = {}, [], [], 0

    def _refill(self):
        fresh = set(self.known)
        list_pages(self.directories, self.known)
        new = [p for s, ps in self.known.items() if s not in fresh for p in ps]
        self.queue = new if fresh and new else [p for ps in self.known.values() for p in ps]
        self.random.shuffle(self.queue)
        self.rounds += 1

    def _sequences(self, n):
        out = []
        while len(out) < n:
            if not self.queue:
                self._refill()
            page = self.queue.pop()
            r = page.record()
            ids, on = tokenizer.conversation([(t["u"], t["a"], t["loss"]) for t in r["turns"]])
            if len(ids) <= self.limit and len(r["images"]) == 1:
                out.append((ids, on, page, r))
        return out

    def __iter__(self):
        return self

    def __next__(self):
        if not self.ready:
            s = sorted(self._sequences(self.size * self.pool), key=lambda q: len(q[0]))
            self.ready = [s[i:i + self.size] for i in range(0, len(s), self.size)]
            self.random.shuffle(self.ready)
        return collate(self.ready.pop(), self.offsets)


def collate(group, offsets):
    """-> dict of ids [B,T], target [B,T] (IGNORE where no loss), patches [B,1024,768] bf16,
    chars [B,256,offsets], hints [n, 4] (sequence, query, slot, key), kinds."""
    T = max(len(q[0]) for q in group)
    ids = torch.zeros(len(group), T, dtype=torch.long)
    target = torch.full((len(group), T), IGNORE)
    for b, (seq, on, _, _) in enumerate(group):
        s, o = torch.tensor(seq), torch.tensor(on, dtype=torch.bool)
        ids[b, :len(seq)] = s
        target[b, :len(seq) - 1] = torch.where(o[1:], s[1:], IGNORE)
    told = [(b, *h) for b, (_, _, _, r) in enumerate(group) for h in hints(r["turns"], r["cells"][0])]
    patches = torch.stack([patches_of(p.pixels(r["images"][0])) for _, _, p, r in group])
    chars = np.stack([cell_targets(r["cells"][0], offsets) for _, _, _, r in group])
    return dict(ids=ids, target=target, patches=patches.to(torch.bfloat16),
                chars=torch.from_numpy(chars), hints=torch.tensor(told).view(-1, 4),
                kinds=[r["kind"] for _, _, _, r in group])
