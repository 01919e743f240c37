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
# Of the pointer, as in src/pocket/patch_map.h: width, largest distance, numbers per distance
WIDTH, FAR, REACH = 64, tower.TABLE - 1, 32


class Reader(nn.Module):
    """Letters of patches."""

    def __init__(self, d):
        super().__init__()
        self.norm = nn.LayerNorm(d)
        self.present = nn.Linear(d, SLOTS)
        self.shift = nn.Linear(d, SLOTS)
        self.letter = nn.Parameter(torch.randn(SLOTS, CLASSES, d) * d**-0.5)
        nn.init.constant_(self.present.bias, -3.0)

    def forward(self, x):
        """Returns normed rows, logits of a letter [..., 8] and offsets [..., 8] of rows [..., d]."""
        u = self.norm(x)
        return u, self.present(u), self.shift(u)


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
    """Labelled elements: query times key, plus a learned number per distance.

    Vinyals et al. 2015, Shaw et al. 2018.
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
