"""The published model in torch, for training and comparison.

    m = Published(MODEL)
    x, rows, cols = m.see(picture)         uint8 [h, w, 3] -> rows of the patches [n, d]
    logits = m.logits(ids, x, rows, cols)  ids [T] of a conversation about the picture -> [T, VOCAB]

Weights are fp32 values of the stored bf16; products have the type dt.
"""

import os

import torch

from . import MODEL, files, heads, language, targets, tower, weights


class Published:
    """Vision encoder, letters head, pointer heads and language model of a directory."""

    def __init__(self, directory=MODEL, dt=None):
        self.c, self.lm, _ = files.shapes(directory)
        self.dt = dt or tower.products("cpu")
        found, _ = files.read(os.path.join(directory, "model.safetensors"))
        self.p = {n: v.float() for n, v in found.items()}
        names = weights.published(tower.shapes(self.c), self.c["blocks"])
        self.tower = {ours: self.p[theirs] for ours, theirs in names.items()}
        self.table = self.p[files.TOWER + "patch_generator.pos_embed"][0]
        self.reader, self.pointer = heads.Reader(self.c["hidden"]), heads.PointerHeads(self.c)
        own = {f"head.{n}": p for n, p in self.reader.named_parameters()} | self.pointer.named()
        for ours, theirs in weights.published(own, 0).items():
            own[ours].data = self.p[theirs]

    @torch.no_grad()
    def encode(self, picture):
        """Returns (rows [skip + n, d] of prefix and patches, rows, columns) of a picture as stored."""
        (picture,) = targets.enlarged(picture)
        patches, rows, cols = targets.whole(targets.padded(picture))
        return (
            tower.encode(self.tower, self.c, patches.to(self.dt), rows, cols, self.table, self.dt)[0],
            rows,
            cols,
        )

    def see(self, picture):
        """Returns (rows [n, d] of the patches, rows, columns)."""
        x, rows, cols = self.encode(picture)
        return x[self.c["skip"] :], rows, cols

    @torch.no_grad()
    def logits(self, ids, x, rows, cols):
        """Returns the logits [T, VOCAB] after each token, and the embeddings of the image tokens."""
        picture = language.project(self.p, tower.image_tokens(x[None], rows, cols), self.dt)
        f = language.read(self.p, self.lm, torch.tensor([ids]), picture, self.dt)[0][0]
        return f.float() @ self.p[language.HEAD].t(), picture
