"""The reading head: is there a letter in each slot of a patch, which one, and where exactly.

Design.  Training only, dropped at export.  From a patch's row: eight logits "a letter is centred here", and
for every slot 95 classes and the place within the slot.  Classes are asked only where there is a letter, so
that the head costs little; blanks count in full in the first question (with less weight the tower sees
letters everywhere).  `decode` turns a whole screen's rows into letters with places; of two neighbouring slots
that claim one letter the surer one stays.
"""
import torch
import torch.nn.functional as F
from torch import nn

from crops import SLOTS, UNKNOWN

CLASSES = 96
NARROW = {ord(c) - 32 for c in "iljtfrI1|!.,:;'`()[]"}      # may stand closer than 5 pixels to the next


class Reader(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.norm = nn.LayerNorm(d)
        self.present = nn.Linear(d, SLOTS)
        self.shift = nn.Linear(d, SLOTS)
        self.letter = nn.Parameter(torch.randn(SLOTS, CLASSES, d) * d ** -0.5)
        nn.init.constant_(self.present.bias, -3.0)

    def names(self, rows, slot):
        """Logits [n, 96] of the letters in these slots of these (normed) rows."""
        out = torch.empty(len(rows), CLASSES, dtype=torch.float32)
        w = self.letter.to(torch.bfloat16)
        parts, where = [], []
        for s in range(SLOTS):
            at = (slot == s).nonzero()[:, 0]
            where.append(at)
            parts.append(rows[at].to(torch.bfloat16) @ w[s].t())
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
        sums = dict(loss=float(here + which), here=float(here), which=float(which), named=float(right.sum()),
                    read=float((right & seen).sum()), seen=float(seen.sum()), ghosts=float(ghosts), letters=float(len(kind)))
    return here + which + 0.2 * off, sums


@torch.no_grad()
def decode(reader, x, rows, cols, least=0.5):
    """Letters of one screen from its rows [rows*cols, d]: array [[x, y, class, sureness], ...] in pixels."""
    u, logits, shift = reader(x.float())
    p = logits.sigmoid().view(rows, cols, 2, 4).permute(0, 2, 1, 3).reshape(rows * 2, cols * 4)
    dx = shift.view(rows, cols, 2, 4).permute(0, 2, 1, 3).reshape(rows * 2, cols * 4).clamp(0, 1)
    q = F.pad(p, (1, 1, 1, 1))
    # A letter near the border of two slots is claimed by both, each with less than half: the sum decides.
    left, right, above, below = q[1:-1, :-2], q[1:-1, 2:], q[:-2, 1:-1], q[2:, 1:-1]
    best = (p > 0.25) & (p + torch.stack([left, right, above, below]).amax(0) * (p < least) >= least)
    r, c = best.nonzero().T
    if not len(r):
        return torch.zeros(0, 4)
    patch, slot = r // 2 * cols + c // 4, r % 2 * 4 + c % 4
    names = reader.names(u[patch], slot).softmax(-1)
    sure, kind = names[:, 1:].max(-1)
    found = torch.stack([c * 4 + 4 * dx[r, c], r * 8 + 4.0, kind + 1.0, p[r, c]], 1)
    keep, taken = [], {}
    for i in found[:, 3].argsort(descending=True).tolist():
        rr, cc, weak = int(r[i]), int(c[i]), float(found[i, 3]) < 0.9
        near = [(rr + a, cc + b) for a in (-1, 0, 1) for b in (-1, 0, 1) if (a or b) and (rr + a, cc + b) in taken]
        slim = int(found[i, 2]) in NARROW
        clash = [n for n in near if abs(float(found[taken[n], 0] - found[i, 0])) < (3.2 if slim or int(found[taken[n], 2]) in NARROW else 4.7)
                 and (weak or n[0] != rr)]
        if clash:
            continue
        taken[rr, cc] = i
        keep.append(i)
    return found[sorted(keep)]
