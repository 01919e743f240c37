"""The published model in torch, for training it further and for comparison.

    m = Published(MODEL)
    rows = m.look(picture)                  uint8 [h, w, 3] -> rows of the image tokens [n, 768]
    logits = m.logits(m.read(ids, rows))    ids [B, T], rows of their pictures in order -> [B, T, VOCAB]
    m.write(out)                            the same files with the current weights

The vision encoder and the projector are constant, the language model runs under autograd. Weights are fp32,
products have the type dt; write() rounds weights to bf16.
"""

import os

import torch
from torch import nn

from . import MODEL, files, heads, language, targets, tower, weights


class Published:
    """Vision encoder, heads and language model of a directory."""

    def __init__(self, directory=MODEL, dt=None):
        self.c, self.lm, self.projector = files.shapes(directory)
        self.dt = dt or tower.products("cpu")
        found, _ = files.read(os.path.join(directory, "model.safetensors"))
        self.p = {n: nn.Parameter(v.float(), n.startswith("language_model.")) for n, v in found.items()}
        for n, v in self.p.items():
            if n.endswith("norm.weight") and n.startswith("language_model.") and not (v == 1).all():
                raise SystemExit(f"{directory}: cannot load: the weights of '{n}' are not ones")
        names = weights.published(tower.shapes(self.c), self.c["blocks"])
        self.tower = {ours: self.p[theirs] for ours, theirs in names.items()}
        self.table = self.p[files.TOWER + "patch_generator.pos_embed"][0]
        self.reader, self.pointer = heads.Reader(self.c["hidden"]), heads.PointerHeads(self.c)
        own = {f"head.{n}": p for n, p in self.reader.named_parameters()} | self.pointer.named()
        for ours, theirs in weights.published(own, 0).items():
            own[ours].data = self.p[theirs].data

    def trained(self):
        """Returns {name: parameter} of the language model except its norms."""
        return {n: p for n, p in self.p.items() if n.startswith("language_model.") and "norm" not in n}

    @torch.no_grad()
    def encode(self, picture):
        """Returns (rows [skip + n, d] of prefix and patches, rows, columns) of a picture as stored."""
        (picture,) = targets.enlarged(picture)
        patches, rows, cols = targets.whole(targets.padded(picture))
        x = tower.encode(self.tower, self.c, patches.to(self.dt), rows, cols, self.table, self.dt)
        return x[0], rows, cols

    def look(self, picture):
        """Returns the rows [n, 4d] of a picture's image tokens."""
        return self.look_grid(picture)[0]

    def look_grid(self, picture):
        """Returns (rows [n, 4d], (rows, columns)) of a picture's image tokens."""
        x, rows, cols = self.encode(picture)
        return tower.image_tokens(x[None, self.c["skip"] :], rows, cols), (rows // 2, cols // 2)

    def embed(self, rows):
        """Returns the embeddings [n, d] of image tokens."""
        return language.project(self.p, rows, self.dt)

    def read(self, ids, rows):
        """Returns the final rows [B, T, d] of sequences."""
        return language.read(self.p, self.lm, ids, self.embed(rows), self.dt)[0]

    def logits(self, f):
        return f.float() @ self.p[language.HEAD].t()

    def write(self, out):
        """Writes a directory in the published layout."""
        side = 16 * round(len(self.table) ** 0.5)
        files.write_model(out, self.c, self.lm, self.projector, side, self.p)
