"""Elements: the tower learns what the things on a screen are, while it goes on reading.

    python elements.py --run RUN --from READ/last.pt --data DIR... --gate DIR... --core-minutes 120

With --tokens 156 --boxes 0 and no --from it is both stages in one, at the price of reading: kind and state of
what is small enough for a small crop (stages.py).

Design.  A second head names for every patch the element that it belongs to (the smallest
whose box holds its centre; `none` elsewhere), the element's state bits, and its box as seen from the patch.
Crops are 22x26 patches, nearly a whole page, since a field is a field because of what stands around it;
boxes that the crop cuts are not asked.  The reading loss stays on.  A third head, linear, says which row and
column of the position table a patch has: without it the letters drown the place (a linear head read the row of .23 of
the image tokens), and then no language model can point.

The gate asks kind and state at the patch under each element's centre, as a click would, >= .97 right; and
where the centre is at every patch of the element, since the one under it cannot miss: more than half of
them say it within 8 px, >= .95.  Elements whose centre lies on a smaller one are asked nowhere.
"""

import argparse
import collections
import os

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

import crops
import read
import reading
import runner
import score
import store
import tower

KINDS, STATES = len(store.KINDS) + 1, crops.STATES


class Finder(nn.Module):
    """Row -> kind, states, box; one hidden layer, since these answers are not as local as letters."""

    def __init__(self, d):
        super().__init__()
        self.norm, self.inner, self.out = (
            nn.LayerNorm(d),
            nn.Linear(d, 256),
            nn.Linear(256, KINDS + STATES + 4),
        )

    def forward(self, x):
        y = self.out(F.gelu(self.inner(self.norm(x))))
        return y.split([KINDS, STATES, 4], -1)


class Where(nn.Module):
    """Row -> row and column of the position table, linear: what is to be read from an image token must be as easy."""

    def __init__(self, d):
        super().__init__()
        self.out = nn.Linear(d, 2 * tower.TABLE)
        marks = tower.sinusoid().view(tower.TABLE, tower.TABLE, 2, -1)  # begins with what the table says of each row, column
        nn.init.zeros_(self.out.weight)
        with torch.no_grad():
            for axis, codes in enumerate((marks[:, 0, 0], marks[0, :, 1])):
                at = d - tower.MARKS + axis * codes.shape[1]
                self.out.weight[axis * tower.TABLE :][: tower.TABLE, at : at + codes.shape[1]] = codes

    def forward(self, x):
        return self.out(F.layer_norm(x, x.shape[-1:])).unflatten(-1, (2, tower.TABLE))


class Aim(nn.Module):
    """Row of a patch -> for a letter in each of its slots, how far off, in patches, what it names is pointed at: that the field of a
    label is at the far end of its row, or under it, and the tick before it."""

    def __init__(self, d):
        super().__init__()
        self.out = nn.Linear(d, 2 * crops.SLOTS)

    def forward(self, rows, slot):
        """rows [k, d] of patches, slot [k] of each one's letter: [k, 2], right and down."""
        y = self.out(rows).view(len(rows), crops.SLOTS, 2)
        return y.gather(1, slot[:, None, None].expand(-1, 1, 2))[:, 0]


def where_loss(where, x, place):
    """Summed loss of rows and columns of patches; counts of those that are right."""
    want = torch.stack([place // tower.TABLE, place % tower.TABLE], -1)
    y = where(x)
    total = F.cross_entropy(y.flatten(0, -2), want.flatten(), reduction="sum")
    return total, dict(placed=float((y.argmax(-1) == want).all(-1).sum()), places=float(place.numel()))


def loss(finder, x, items, boxes=0.5):
    """Summed loss of a batch, boxes weighing so much of it, and counts."""
    kind, state, box, whole = items
    k, s, b = finder(x)
    which = F.cross_entropy(k.flatten(0, -2), kind.flatten(), reduction="sum")
    on = kind > 0
    states = F.binary_cross_entropy_with_logits(s[on], state[on], reduction="sum")
    asked = on & (whole > 0)
    off = F.smooth_l1_loss(b[asked], box[asked], reduction="sum", beta=0.5)
    with torch.no_grad():
        right = (k.argmax(-1) == kind)[on]
        bits = ((s > 0) == (state > 0))[on].all(-1)
        middle = lambda t: torch.stack([t[..., 0] + t[..., 2], t[..., 1] + t[..., 3]], -1) / 2
        near = ((middle(b[asked]) - middle(box[asked])).abs() * 16 <= 8).all(-1)
        sums = dict(
            kinds=float(right.sum()),
            bits=float(bits.sum()),
            items=float(on.sum()),
            near=float(near.sum()),
            boxes=float(asked.sum()),
            false=float(((k.argmax(-1) > 0) & (kind == 0)).sum()),
            find=float(which + states + off),
        )
    return which + states + boxes * off, sums


@torch.no_grad()
def judge(finder, x, rows, cols, items):
    """Counts for one screen: each element at the patch under its centre."""
    out = collections.Counter()
    kind, state, box, _ = crops.item_targets(items, 0, 0, rows, cols)
    k, s, b = (t.numpy() for t in finder(x.float()))
    for x0, y0, x1, y1, what, bits in crops.tidy(items):
        cx, cy = (x0 + x1) / 8, (y0 + y1) / 8
        r, c = int(cy) // 16, int(cx) // 16
        if r >= rows or c >= cols:
            continue
        p = r * cols + c
        centre = np.array([c * 16 + 8, r * 16 + 8])
        own = box[p] * 16 + np.tile(centre, 2)
        if kind[p] != what + 1 or np.abs(own - np.array([x0, y0, x1, y1]) / 4).max() > 1:
            continue  # a smaller one lies there
        right = k[p].argmax() == what + 1
        known = ((s[p] > 0) == (state[p] > 0)).all()
        at = np.arange(rows * cols)
        middles = np.stack([at % cols, at // cols], 1) * 16 + 8
        own = (kind == what + 1) & (
            np.abs(box * 16 + np.tile(middles, 2) - np.array([x0, y0, x1, y1]) / 4).max(1) <= 1
        )
        got = b[own] * 16 + np.tile(middles[own], 2)
        off = np.abs(np.stack([got[:, 0] + got[:, 2], got[:, 1] + got[:, 3]], 1) / 2 - [cx, cy]).max(1)
        near = (off <= 8).mean() > 0.5
        out.update(n=1, right=int(right and known), kind=int(right), near=int(near))
        out.update(
            {
                f"{store.KINDS[what]} n": 1,
                f"{store.KINDS[what]} right": int(right and known),
                f"{store.KINDS[what]} near": int(near),
            }
        )
    return out


@torch.no_grad()
def score_items(p, c, finder, folder, most):
    total = collections.Counter()
    for s in store.shards([folder]):
        for k in range(0, len(s), max(1, len(s) // most)):
            picture, items = crops.enlarged(s.picture(k), s.items_of(k))
            patches, rows, cols = crops.whole(picture)
            total.update(judge(finder, tower.apply(p, c, patches, rows, cols)[0], rows, cols, items))
    return total


class Elements(read.Reading):
    tokens = property(lambda self: self.a.tokens)
    scale = 1000.0
    counts = read.Reading.counts + ["kinds", "bits", "items", "near", "boxes", "false", "find", "placed", "places"]

    def heads(self, c):
        return {"head": reading.Reader(c["hidden"]), "head.find": Finder(c["hidden"]), "head.where": Where(c["hidden"])}

    def loss(self, heads, rows, place, present, letters, items):
        first, sums = reading.loss(heads["head"], rows, present, letters)
        second, more = loss(heads["head.find"], rows, items, self.a.boxes)
        third, placed = where_loss(heads["head.where"], rows, place)
        return first + self.a.weight * second + self.a.where * third, sums | more | placed

    def figures(self, s):
        n, m = max(1, s["items"]), max(1, s["boxes"])
        return super().figures(s) | dict(
            find=s["find"] / n,
            kinds=s["kinds"] / n,
            bits=s["bits"] / n,
            near=s["near"] / m,
            false=s["false"] / n,
            placed=s["placed"] / max(1, s["places"]),
        )

    def gate(self, views, c):
        out = super().gate(views, c)
        heads = self.load_heads(views, c)
        p = {n: v for n, v in views.items() if not n.startswith("head.")}
        for folder in self.a.gate:
            t = score_items(p, c, heads["head.find"], folder, self.a.gate_screens)
            name = os.path.basename(folder.rstrip("/")).replace("gate-", "")
            out |= {f"{name}_{k}": t[k] / max(1, t["n"]) for k in ("kind", "right", "near")}
        return out


def table(a):
    """The gate's table of a run: all elements and each kind."""
    p, c, reader, saved, views = score.load(a.table)
    finder = Elements(a).load_heads(views, c)["head.find"]
    print(f"{a.table}: {saved['core_minutes']:.1f} core minutes, step {saved['step']}")
    for folder in a.gate:
        t = score_items(p, c, finder, folder, a.gate_screens)
        n = max(1, t["n"])
        print(
            f"{os.path.basename(folder):20} n {t['n']}: kind {t['kind'] / n:.3f}, kind and state {t['right'] / n:.3f}, centre within 8 px {t['near'] / n:.3f}"
            f"  {'holds' if t['right'] / n >= .97 and t['near'] / n >= .95 else 'fails'}"
        )
        for k in store.KINDS:
            if t[f"{k} n"]:
                print(
                    f"    {k:8} {t[f'{k} n']:5}  {t[f'{k} right'] / t[f'{k} n']:.3f}  {t[f'{k} near'] / t[f'{k} n']:.3f}"
                )


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    read.options(p)
    p.add_argument("--weight", type=float, default=1.0, help="of the elements' loss beside the letters'")
    p.add_argument("--boxes", type=float, default=0.5, help="of the boxes' part of it; 0: not asked")
    p.add_argument("--where", type=float, default=0.1, help="of the places' loss beside the letters'")
    p.add_argument("--tokens", type=int, default=572, choices=list(crops.SHAPES), help="patches in a crop")
    p.add_argument("--table", help="only the table of this run")
    a = p.parse_args()
    torch.set_num_threads(1)
    table(a) if a.table else runner.Run(a, Elements(a)).run()


if __name__ == "__main__":
    main()
