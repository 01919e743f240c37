"""The published model in torch, for whoever trains it further or compares with it: what publish.py wrote, read back.

    m = Published("../model")
    rows = m.look(picture)                  uint8 [h, w, 3] -> fp32 [image tokens, 768], as the program sees it
    logits = m(ids, rows)                   ids [B, T], rows of their pictures one after the other -> [B, T, vocabulary]
    m.write(out)                            the same files with the weights of now

Design.  The tower is tower.apply's, without gradients; projector and language model are language.Wide, under autograd, in
the type of products that the processor is quick in (kernels.PRODUCTS) with fp32 weights.  Weights are rounded to bf16 when
they are written; whatever is not a weight is copied from the folder that was read.
"""

import json
import os
import shutil

import numpy as np
import torch
from torch import nn

import crops
import export
import language
import tower
import weights
from model import MEAN, STD, shape_of

TOWER = "vision_model.radio_model.model."


class Published(nn.Module):
    def __init__(self, directory):
        super().__init__()
        with open(os.path.join(directory, "config.json")) as f:
            config = json.load(f)
        found = export.load_safetensors(os.path.join(directory, "model.safetensors"))
        shape, self.directory = shape_of(config), directory
        shape["lm"]["vocab"] = config["llm_config"]["vocab_size"]
        self.c = shape["vit"]
        self.eyes = {n: v for n, v in found.items() if n.startswith("vision_model.")}  # as they were read, for write
        names = weights.published(tower.shapes(self.c), self.c["blocks"])
        self.p = {ours: found[theirs] for ours, theirs in names.items()}
        self.table = found[TOWER + "patch_generator.pos_embed"][0]
        self.say = language.Wide(dict(lm=shape["lm"], vit=self.c["hidden"], projector=shape["projector"]))
        self.say.load_state_dict({n: v for n, v in found.items() if n not in self.eyes})

    @torch.no_grad()
    def patches(self, picture, products=tower.PRODUCTS, changed=None):
        """(rows of the tower's patches [n, d], rows and columns of them); with {"skip": 0} those of the prefix before them."""
        (picture,) = crops.enlarged(picture)
        h, w = picture.shape[:2]
        picture = np.pad(picture, ((0, -h % 32), (0, -w % 32), (0, 0)), mode="edge")
        rows, cols = picture.shape[0] // 16, picture.shape[1] // 16
        x = (torch.from_numpy(picture).float() / 255 - torch.tensor(MEAN)) / torch.tensor(STD)
        patches = x.view(rows, 16, cols, 16, 3).permute(0, 2, 4, 1, 3).reshape(1, rows * cols, 768)
        return tower.apply(self.p, self.c | (changed or {}), patches, rows, cols, products, self.table)[0], rows, cols

    def look(self, picture, products=tower.PRODUCTS):
        x, rows, cols = self.patches(picture, products)
        return x.view(rows // 2, 2, cols // 2, 2, -1).permute(0, 2, 1, 3, 4).reshape(rows * cols // 4, -1)

    def forward(self, ids, rows):
        return self.logits(self.say(ids, rows))

    def logits(self, f):
        return f.float() @ self.say.language_model.lm_head.weight.t()

    def write(self, out):
        os.makedirs(out, exist_ok=True)
        for name in os.listdir(self.directory):
            if not name.startswith("model.safetensors"):
                shutil.copy(os.path.join(self.directory, name), out)
        part = os.path.join(out, "model.safetensors.part")
        export.save_safetensors(part, self.eyes | self.say.state_dict())
        os.replace(part, os.path.join(out, "model.safetensors"))
