"""Per-patch heads on the rows of the vision encoder: letters, elements, places, and labelled elements.

Letters: a patch of 16x16 pixels has eight slots of 4x8 pixels, 4 across and 2 down; the head says for each
slot whether a letter is centred in it, which one, and its horizontal offset. Elements: kind and state bits
of the element that a patch belongs to. Places: row and column of the patch, a linear head in training only,
without which training for letters removes the position (a linear probe then finds the row of only 23 % of the
image tokens).
Pointer: from a patch with a letter of a label to the patches of the labelled element, on rows behind a
transformer block of its own.
"""

import torch
import torch.nn.functional as F
from torch import nn

from . import tower
from .sources.store import KINDS

SLOTS, ACROSS = 8, 4
CLASSES = 96  # of letters; 0 is unused
STATES = 7  # bits of labels.js
NARROW = {ord(c) - 32 for c in "iljtfrI1|!.,:;'`()[]"}  # may be closer than 5 pixels to the next letter
WIDTH, FAR, REACH = (
    64,
    tower.TABLE - 1,
    32,
)  # of the pointer, as in src/pocket/patch_map.h; numbers per distance


class Reader(nn.Module):
    """Letters of patches."""

    def __init__(self, d):
        super().__init__()
        self.norm = nn.LayerNorm(d)
        self.present = nn.Linear(d, SLOTS)
        self.shift = nn.Linear(d, SLOTS)
        self.letter = nn.Parameter(torch.randn(SLOTS, CLASSES, d) * d**-0.5)
        nn.init.constant_(self.present.bias, -3.0)

    def names(self, rows, slot):
        """Returns logits [k, 96] of the letters in the slots [k] of normed rows [k, d]."""
        return (self.letter[slot] @ rows[..., None])[..., 0]

    def forward(self, x):
        """Returns normed rows, logits of a letter [..., 8] and offsets [..., 8] of rows [..., d]."""
        u = self.norm(x)
        return u, self.present(u), self.shift(u)


@torch.no_grad()
def decode(reader, x, rows, cols, need=0.35, low=0.1):
    """Returns the letters of a screen [[x, y, class, probability], ...] in pixels, from its rows [rows*cols,
    d].

    A letter near a slot border is detected in several slots, each with part of its probability. Detections
    are visited in order of falling probability; each absorbs unused neighbours that can only be the same
    letter, and is kept if the summed probability reaches `need`. src/pocket/letters.c does the same.
    """
    u, logits, shift = reader(x.float())

    def grid(t):
        return t.view(rows, cols, 2, 4).permute(0, 2, 1, 3).reshape(rows * 2, cols * 4)

    p, dx = grid(logits.sigmoid()), grid(shift).clamp(0, 1)
    r, c = (p > low).nonzero().T
    if not len(r):
        return torch.zeros(0, 4)
    kind = reader.names(u[r // 2 * cols + c // 4], r % 2 * 4 + c % 4)[:, 1:].argmax(-1) + 1
    found = list(
        zip(r.tolist(), c.tolist(), (c * 4 + 4 * dx[r, c]).tolist(), p[r, c].tolist(), kind.tolist())
    )
    at, used, out = {(r, c): k for k, (r, c, *_) in enumerate(found)}, set(), []
    for k in sorted(range(len(found)), key=lambda k: -found[k][3]):
        if k in used:
            continue
        used.add(k)
        r, c, x, mass, kind = found[k]
        sum_x, sum_y = x * mass, (r * 8 + 4) * mass
        for a, b in ((a, b) for a in (-1, 0, 1) for b in (-1, 0, 1)):
            other = at.get((r + a, c + b))
            if other is None or other in used:
                continue
            r2, _, x2, p2, kind2 = found[other]
            gap = 3.2 if kind in NARROW or kind2 in NARROW else 4.7
            if (abs(x2 - x) < gap and (kind2 == kind or mass + p2 <= 1.1)) or (a and abs(x2 - x) < 6):
                used.add(other)
                mass, sum_x, sum_y = mass + p2, sum_x + x2 * p2, sum_y + (r2 * 8 + 4) * p2
        if mass >= need:
            out.append((sum_x / mass, sum_y / mass, float(kind), min(1.0, mass)))
    return torch.tensor(out).view(-1, 4)


class Finder(nn.Module):
    """Elements of patches: logits of the kind (0 none), of the state bits, and an unused box."""

    def __init__(self, d):
        super().__init__()
        self.norm, self.inner = nn.LayerNorm(d), nn.Linear(d, 256)
        self.out = nn.Linear(256, len(KINDS) + 1 + STATES + 4)

    def forward(self, x):
        return self.out(F.gelu(self.inner(self.norm(x)))).split([len(KINDS) + 1, STATES, 4], -1)


class Where(nn.Module):
    """Row and column of patches: logits [..., 2, TABLE]."""

    def __init__(self, d):
        super().__init__()
        self.out = nn.Linear(d, 2 * tower.TABLE)

    def forward(self, x):
        return self.out(F.layer_norm(x, x.shape[-1:])).unflatten(-1, (2, tower.TABLE))


class Block(nn.Module):
    """A block of the encoder whose initial output is its input."""

    def __init__(self, d, heads, mlp):
        super().__init__()
        self.heads = heads
        for name, rows, cols in (("qkv", 3 * d, d), ("proj", d, d), ("fc1", mlp, d), ("fc2", d, mlp)):
            gain = 0 if name in ("proj", "fc2") else cols**-0.5
            setattr(self, name, nn.Parameter(torch.randn(rows, cols) * gain))
            setattr(self, name + "_bias", nn.Parameter(torch.zeros(rows)))

    def forward(self, x, dt):
        return tower.block(x, *(getattr(self, n) for n in tower.BLOCK), self.heads, dt)


class Pointer(nn.Module):
    """Labelled elements: query times key, plus a learned number per distance (Vinyals et al. 2015, Shaw et
    al.
    2018).
    """

    def __init__(self, d):
        super().__init__()
        self.norm, self.query, self.key = nn.LayerNorm(d), nn.Linear(d, WIDTH), nn.Linear(d, WIDTH)
        self.far, self.nothing = nn.Linear(d, REACH), nn.Linear(d, 1)
        self.down, self.right = (nn.Parameter(torch.randn(2 * FAR + 1, REACH) * 0.1) for _ in range(2))

    def forward(self, x, asked, cols):
        """Returns logits [k, 1 + n] of "no element" and of each patch, for patches asked [k] of rows x [n,
        d].
        """
        u, at = self.norm(x), torch.arange(len(x))
        own = u[asked]
        far = self.far(own)
        down = (far @ self.down.t()).gather(1, at // cols - asked[:, None] // cols + FAR)
        right = (far @ self.right.t()).gather(1, at % cols - asked[:, None] % cols + FAR)
        return torch.cat(
            [self.nothing(own), self.query(own) @ self.key(u).t() * WIDTH**-0.5 + down + right], 1
        )


class PointerHeads(nn.Module):
    """Pointer and elements behind a block of their own, on rows of a finished encoder of shape c."""

    def __init__(self, c):
        super().__init__()
        self.skip = c["skip"]
        self.block, self.finder = Block(c["hidden"], c["heads"], c["mlp"]), Finder(c["hidden"])
        self.pointer = Pointer(c["hidden"])

    def named(self):
        """Returns {name: parameter} as kept files have them."""
        return {f"head.{n}": p for n, p in self.named_parameters()}

    def rows(self, x, dt):
        """Returns the rows of patches [n, d] behind the block, from rows [skip + n, d] of the encoder."""
        return self.block(x[None], dt)[0, self.skip :]
