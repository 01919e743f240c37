"""The reading head: is there a letter in each slot of a patch, which one, and where exactly.

Design.  From a patch's row: eight logits "a letter is centred here", and
for every slot 95 classes and the place within the slot.  Classes are asked only where there is a letter, so
that the head costs little; blanks count in full in the first question (with less weight the tower sees
letters everywhere).  `decode` turns a whole screen's rows into letters with places.

    python reading.py --run EYES --data DIR --out ../../../tests/golden/locate.json

writes what the slots of DIR's first screen say, and its letters, for a test of the program.
"""

import argparse
import json

import torch
import torch.nn.functional as F
from torch import nn

from crops import SLOTS, UNKNOWN
from kernels import PRODUCTS

CLASSES = 96
NARROW = {ord(c) - 32 for c in "iljtfrI1|!.,:;'`()[]"}  # may stand closer than 5 pixels to the next


class Reader(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.norm = nn.LayerNorm(d)
        self.present = nn.Linear(d, SLOTS)
        self.shift = nn.Linear(d, SLOTS)
        self.letter = nn.Parameter(torch.randn(SLOTS, CLASSES, d) * d**-0.5)
        nn.init.constant_(self.present.bias, -3.0)

    def names(self, rows, slot):
        """Logits [n, 96] of the letters in these slots of these (normed) rows."""
        out = torch.empty(len(rows), CLASSES, dtype=torch.float32)
        w = self.letter.to(PRODUCTS)
        parts, where = [], []
        for s in range(SLOTS):
            at = (slot == s).nonzero()[:, 0]
            where.append(at)
            parts.append(rows[at].to(PRODUCTS) @ w[s].t())
        return torch.cat(parts).float()[torch.cat(where).argsort()]

    def forward(self, x):
        """[..., d] rows -> normed rows, logits [..., 8], shifts [..., 8]."""
        u = self.norm(x)
        return u, self.present(u), self.shift(u)


def loss(reader, x, present, letters):
    """Summed loss of a batch (x [B, n, d] fp32), and counts for the log."""
    u, logits, shift = reader(x)
    known = present != UNKNOWN
    here = F.binary_cross_entropy_with_logits(logits[known], present[known].float(), reduction="sum")
    b, patch, slot, kind, place = letters.T
    names = reader.names(u[b, patch], slot)
    which = F.cross_entropy(names, kind, reduction="sum")
    off = (shift[b, patch, slot] - place / 16.0).abs().sum()
    with torch.no_grad():
        right = names.argmax(-1) == kind
        seen = logits[b, patch, slot] > 0
        ghosts = ((logits > 0) & (present == 0)).sum()
        sums = dict(
            loss=float(here + which),
            here=float(here),
            which=float(which),
            named=float(right.sum()),
            read=float((right & seen).sum()),
            seen=float(seen.sum()),
            ghosts=float(ghosts),
            letters=float(len(kind)),
        )
    return here + which + 0.2 * off, sums


@torch.no_grad()
def decode(reader, x, rows, cols, need=0.35, low=0.1):
    """Letters of one screen from its rows [rows*cols, d]: array [[x, y, class, sureness], ...] in pixels.

    A letter near the border of slots is claimed by several, each with a part of the probability.  From the
    surest slot down, a claim takes its neighbours' that can only mean the same letter; together they must
    reach `need`.
    """
    u, logits, shift = reader(x.float())
    grid = lambda t: t.view(rows, cols, 2, 4).permute(0, 2, 1, 3).reshape(rows * 2, cols * 4)
    p, dx = grid(logits.sigmoid()), grid(shift).clamp(0, 1)
    r, c = (p > low).nonzero().T
    if not len(r):
        return torch.zeros(0, 4)
    kind = reader.names(u[r // 2 * cols + c // 4], r % 2 * 4 + c % 4)[:, 1:].argmax(-1) + 1
    claims = list(
        zip(r.tolist(), c.tolist(), (c * 4 + 4 * dx[r, c]).tolist(), p[r, c].tolist(), kind.tolist())
    )
    at, used, out = {(r, c): k for k, (r, c, *_) in enumerate(claims)}, set(), []
    for k in sorted(range(len(claims)), key=lambda k: -claims[k][3]):
        if k in used:
            continue
        used.add(k)
        r, c, x, mass, kind = claims[k]
        sum_x, sum_y = x * mass, (r * 8 + 4) * mass
        for a, b in ((a, b) for a in (-1, 0, 1) for b in (-1, 0, 1)):
            other = at.get((r + a, c + b))
            if other is None or other in used:
                continue
            r2, _, x2, p2, kind2 = claims[other]
            gap = 3.2 if kind in NARROW or kind2 in NARROW else 4.7
            if (abs(x2 - x) < gap and (kind2 == kind or mass + p2 <= 1.1)) or (a and abs(x2 - x) < 6):
                used.add(other)
                mass, sum_x, sum_y = mass + p2, sum_x + x2 * p2, sum_y + (r2 * 8 + 4) * p2
        if mass >= need:
            out.append((sum_x / mass, sum_y / mass, float(kind), min(1.0, mass)))
    return torch.tensor(out).view(-1, 4)


@torch.no_grad()
def main():
    import crops
    import score
    import store
    import tower

    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--run", required=True)
    p.add_argument("--data", required=True)
    p.add_argument("--out", required=True)
    a = p.parse_args()
    params, c, reader, _, _ = score.load(a.run)
    patches, rows, cols = crops.whole(crops.enlarged(store.shards([a.data])[0].picture(0))[0])
    x = tower.apply(params, c, patches, rows, cols, torch.float32)[0]
    u, present, shift = reader(x.float())
    patch, slot = (present.sigmoid() > 0.09).nonzero().T
    letter = reader.names(u[patch], slot)[:, 1:].argmax(-1) + 1
    claims = [(2 * (n // cols) + s // 4, 4 * (n % cols) + s % 4, round(float(present[n, s].sigmoid()), 6),
               round(float(shift[n, s].clamp(0, 1)), 6), k) for n, s, k in zip(patch.tolist(), slot.tolist(), letter.tolist())]
    letters = [[round(x, 4), round(y, 4), int(k)] for x, y, k, _ in decode(reader, x, rows, cols).tolist()]
    with open(a.out, "w") as f:
        json.dump(dict(rows=rows, cols=cols, claims=claims, letters=letters), f)
        f.write("\n")


if __name__ == "__main__":
    main()
