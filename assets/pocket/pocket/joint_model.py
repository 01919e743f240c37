"""Vision encoder and language model trained end to end: one loss through both.

The loss has the language model's answer tokens, attention supervision (some heads are trained to attend to
the known source of each copied letter), and on the encoder's rows letters, kinds, states and places of
patches. Everything that the loss indexes is prepared by batches.py, so that no step waits for a transfer to
the GPU.
"""

import time

import torch
import torch.nn.functional as F
from torch import nn

from . import heads, language, targets, tokenizer, tower
from .conversations import MENTION, PAGE, POINT, TASK

# Supervised heads (layer, head) per kind of source, and the largest number of image tokens across or down.
SUPERVISED = {TASK: (6, 2), PAGE: (6, 0), POINT: (10, 1), MENTION: (6, 3)}
WHERE, MOST = "where.weight", 32
SIGMA = 0.5  # coarse places: the target probability of a neighbour is a Gaussian of this width in patches


def soft_targets():
    """Returns [VOCAB, VOCAB]: target probabilities of each wanted token; coarse places include their
    neighbours.
    """
    i, soft = torch.arange(64).float(), torch.eye(tokenizer.VOCAB)
    w = torch.exp(-0.5 * ((i[:, None] - i) / SIGMA) ** 2)
    lo, hi = tokenizer.COARSE[0], tokenizer.COARSE[-1] + 1
    soft[lo:hi, lo:hi] = w / w.sum(1, keepdim=True)
    return soft


class Named(nn.Module):
    """Parameters by the names of kept files; dots are not allowed in torch's own names."""

    def __init__(self, shapes):
        super().__init__()
        self.p = nn.ParameterDict(
            {n.replace(".", "/"): nn.Parameter(torch.zeros(s)) for n, s in shapes.items()}
        )

    def named(self):
        return {n.replace("/", "."): p for n, p in self.p.items()}


class Eyes(Named):
    """The vision encoder with its training heads."""

    def __init__(self, c):
        super().__init__(tower.shapes(c))
        self.c, d = c, c["hidden"]
        self.head, self.find, self.where = heads.Reader(d), heads.Finder(d), heads.Where(d)
        self.register_buffer("table", tower.positions(d))

    def named(self):
        out = super().named()
        for name, head in (("head", self.head), ("head.find", self.find), ("head.where", self.where)):
            out |= {f"{name}.{n}": p for n, p in head.named_parameters()}
        return out

    def loss(self, x, batch, dt):
        """Returns the loss per letter on rows x [B, n, d] of the patches, and counts."""
        B, n, d = x.shape
        u, present, slots = self.head.norm(x).view(B * n, d), batch["present"], batch["slots"]
        want = present.view(B * n, -1)
        here = F.binary_cross_entropy_with_logits(self.head.present(u), (want == 1).float(), reduction="none")
        here = (here * (want != targets.UNKNOWN)).sum()
        rows = u[slots[..., 0]]  # [8 slots, most letters, d]
        names = torch.bmm(rows.to(dt), self.head.letter.to(dt).transpose(1, 2)).float()
        which = F.cross_entropy(names.flatten(0, 1), slots[..., 1].flatten(), reduction="sum")
        known = slots[..., 1] >= 0
        weight, bias = self.head.shift.weight, self.head.shift.bias
        shift = (rows * weight[:, None]).sum(-1) + bias[:, None]
        off = ((shift - slots[..., 2] / 16.0).abs() * known).sum()
        kind, state, _ = self.find(x)
        kinds = F.cross_entropy(kind.flatten(0, 1), batch["kinds"].flatten(), reduction="sum")
        on = (batch["kinds"] > 0)[..., None]
        states = F.binary_cross_entropy_with_logits(state, batch["states"], reduction="none")
        states = (states * on).sum()
        where = F.cross_entropy(self.where(x).flatten(0, 2), batch["patches"].flatten(), reduction="sum")
        letters = known.sum().clamp(min=1)
        total = (here + which + 0.2 * off + 0.3 * (kinds + states) + 0.2 * where) / letters
        right = ((names.argmax(-1) == slots[..., 1]) & known).sum()
        named = (kind.argmax(-1) == batch["kinds"])[..., None] & on
        return total, dict(letters=letters, read=right, kinds=on.sum(), kind=named.sum())


class Joint(nn.Module):
    """Encoder and language model of shapes c and lm; dt is the type of products."""

    def __init__(self, c, lm, projector, dt):
        super().__init__()
        self.c, self.lm, self.dt, self.run = c, lm, dt, language.SUBLAYERS | {"block": tower.block}
        self.eyes = Eyes(c)
        self.language = Named(language.shapes(lm, c["hidden"], projector) | {WHERE: (2 * MOST, lm["hidden"])})
        self.register_buffer("soft", soft_targets())

    def named(self):
        """Returns {"eyes": {name: parameter}, "language": the same}, as kept files have them."""
        return {"eyes": self.eyes.named(), "language": self.language.named()}

    def see(self, patches, rows, cols):
        """Returns rows [B, rows*cols, d] of the patches [B, rows*cols, 768]."""
        x = tower.encode(
            self.eyes.named(), self.c, patches, rows, cols, self.eyes.table, self.dt, self.run["block"]
        )
        return x[:, self.c["skip"] :]

    def read(self, ids, x, rows, cols):
        """Returns (final rows [B, T, d], {layer: (queries, keys)}, image embeddings) of sequences about
        pictures.
        """
        p = self.language.named()
        picture = language.project(p, tower.image_tokens(x, rows, cols), self.dt)
        return *language.read(p, self.lm, ids, picture, self.dt, self.run), picture

    def logits(self, f):
        return F.linear(f, self.language.named()[language.HEAD].to(self.dt))

    def guess(self, patches, batch):
        """Returns the most probable token after each token of the batch, [B, T]."""
        rows, cols = (v // 16 for v in batch["size"])
        return self.logits(self.read(batch["ids"], self.see(patches, rows, cols), rows, cols)[0]).argmax(-1)

    def attention_losses(self, seen, batch):
        """Yields (loss of a supervised head, counts) per kind of source."""
        for kind, (layer, head) in SUPERVISED.items():
            rows, keys = batch["sources"][kind].T
            q, k = (t[:, head] for t in seen[layer])
            late = torch.full((1, q.shape[1], q.shape[1]), -1e4, dtype=q.dtype, device=q.device).triu(1)
            scores = (
                torch.baddbmm(late, q * q.shape[-1] ** -0.5, k.transpose(1, 2)).flatten(0, 1)[rows].float()
            )
            hits, n = (scores.argmax(-1) == keys).sum(), torch.ones_like(keys).sum()
            yield (
                F.cross_entropy(scores, keys, reduction="sum"),
                {f"attended{kind}": hits, f"sources{kind}": n},
            )

    def forward(self, patches, batch):
        """Returns (loss per answer token, the encoder's loss per letter, counts) of a batch of batches.py."""
        rows, cols = (v // 16 for v in batch["size"])
        x = self.see(patches, rows, cols)
        eyes, counts = self.eyes.loss(x, batch, self.dt)
        f, seen, picture = self.read(batch["ids"], x, rows, cols)
        logp, want = self.logits(f.flatten(0, 1)[batch["at"]]).float().log_softmax(-1), batch["want"]
        loss = -(self.soft[want] * logp).sum()
        hit = logp.argmax(-1) == want
        place = (want >= tokenizer.COARSE[0]) & (want <= tokenizer.COARSE[-1])
        counts |= dict(tokens=torch.ones_like(want).sum(), said=hit.sum(), lm=loss.detach())
        counts |= dict(places=place.sum(), placed=(hit & place).sum())
        for attended, more in self.attention_losses(seen, batch):
            loss = loss + 0.5 * attended
            counts |= more
        y = F.linear(F.layer_norm(picture, picture.shape[-1:]), self.language.p["where/weight"])
        y = y.unflatten(-1, (2, MOST)).flatten(0, 1)
        loss = loss + 0.05 * F.cross_entropy(y, batch["grid"].flatten(), reduction="sum")
        return loss / len(want), eyes, counts


def compile_passes(joint, patches, batch, grads, weight):
    """Compiles the sub-layers with torch.compile; keeps the plain ones if that fails or gives other values.

    Compares loss and gradient norm of one batch within 5 %. Returns a dict for the log.
    """

    def tried():
        loss, eyes, _ = joint(patches, batch)
        (loss + weight * eyes).backward()
        norm = torch.stack(torch._foreach_norm(grads)).norm()
        torch._foreach_zero_(grads)
        return float(loss.detach()), float(norm)

    start, plain, passes = time.time(), tried(), joint.run
    joint.run = {n: torch.compile(f, dynamic=True) for n, f in passes.items()}
    try:
        got = tried()
        same = all(abs(x - y) < 0.05 * abs(x) for x, y in zip(plain, got))
    except Exception as e:  # any error of the compiler: the plain passes still work
        got, same = str(e)[-300:], False
    if not same:
        joint.run = passes
    return dict(compiled=same, plain=plain, got=got, seconds=round(time.time() - start, 1))
