"""Writes the published model from kept files of encoder, pointer and language model.

    python -m pocket publish --run DIR --out DIR [--wide DIR]
    python -m pocket publish --tiny --out DIR         the fixture of t_pocket_wide

--out has all that `holorun --model DIR` needs. --wide gets the kept files without the tensors of --out.
--tiny writes weights and config.json of a random model, and golden.json with a picture, its image embeddings
and the logits after a short conversation, computed in fp32 from the stored weights.
"""

import json
import os
import shutil
import sys

import numpy as np
import torch

from . import MODEL, dialect, files, heads, language, tokenizer, tower, weights
from .joint_model import WHERE
from .published_model import Published

KEPT_FILES = {"eyes": "eyes", "pointer": "pointer", "language": "language20"}  # of a run: name in --wide
STEP = "<click>OK<at>" + dialect.place(40, 50)
TINY_LM = dict(
    pattern="M*-", hidden=64, mlp=96, heads=2, kv_heads=1, head_dim=32, mamba_heads=4, mamba_head_dim=16
)
TINY_TOWER, TINY_TABLE = dict(hidden=64, blocks=1, heads=2, mlp=96, skip=4, eps=1e-6), 12


def published_heads(p, d):
    """Returns {published name: tensor} of the per-patch heads; norms of the block are ones."""
    out = {
        theirs: p[n] for n, theirs in weights.published([n for n in p if n.startswith("head.")], 0).items()
    }
    for norm in ("block.norm1", "block.norm2"):
        out |= {f"{weights.HEADS}{norm}.weight": torch.ones(d), f"{weights.HEADS}{norm}.bias": torch.zeros(d)}
    return out


def kept(run):
    """Returns (tensors, vit, lm, projector width, side) of the kept files of a run."""
    eyes, pointer, said = (weights.load(os.path.join(run, f"{n}.safetensors")) for n in KEPT_FILES)
    c, shape, d = eyes["shape"], said["shape"], eyes["shape"]["hidden"]
    out = tower.published(eyes["parameters"], c, tower.positions(d))
    out |= published_heads(eyes["parameters"] | pointer["parameters"], d)
    out |= {n: v for n, v in said["parameters"].items() if n != WHERE}
    return out, c, shape["lm"], shape["projector"], 16 * tower.TABLE


def tiny():
    """Returns the same for a small random model, large enough that every part affects the result."""
    torch.manual_seed(1)
    c, lm, projector = TINY_TOWER, language.SHAPE | TINY_LM | {"state": 16}, 48
    d = c["hidden"]
    p = {n: torch.randn(s) * (s[-1] ** -0.5 if len(s) == 2 else 0.1) for n, s in tower.shapes(c).items()}
    out = tower.published(p, c, tower.positions(d, TINY_TABLE))
    # time constants of Mamba-2
    steps = torch.exp(torch.linspace(np.log(1e-3), np.log(1e-1), lm["mamba_heads"]))
    ends = {"dt_bias": steps + torch.log(-torch.expm1(-steps)), "conv1d.bias": torch.zeros(1)}
    ends |= {"A_log": torch.log(torch.linspace(1, 16, lm["mamba_heads"]))}
    for n, s in language.shapes(lm, d, projector).items():
        end = next((v for name, v in ends.items() if n.endswith(name)), torch.ones(1))
        taps = (torch.rand(s) * 2 - 1) / s[-1] ** 0.5
        out[n] = torch.randn(s) * s[1] ** -0.5 if len(s) == 2 else taps if len(s) == 3 else end.expand(s)
    asked = heads.PointerHeads(c).named() | {f"head.{n}": v for n, v in heads.Reader(d).named_parameters()}
    out |= published_heads({n: torch.randn_like(v) * 0.3 for n, v in asked.items()}, d)
    return out, c, lm, projector, 16 * TINY_TABLE


@torch.no_grad()
def patch_values(model, picture):
    """Returns, of every seventh patch: [number, letter probabilities, offsets and classes by slot, kind
    probabilities]; and its pointer log-probabilities [1 + n].
    """
    x, _, cols = model.encode(picture)
    behind, x = model.pointer.rows(x, model.dt), x[model.c["skip"] :]
    some = torch.arange(0, len(x), 7)
    u, present, shift = model.reader(x[some])
    letter = (u @ model.reader.letter.flatten(0, 1).t()).view(len(some), heads.SLOTS, -1)
    letter = letter[..., 1:].argmax(-1) + 1
    kinds = model.pointer.finder(behind[some])[0].softmax(-1)
    parts = torch.cat([present.sigmoid(), shift.clamp(0, 1), letter, kinds], 1)
    pointed = model.pointer.pointer(behind, some, cols).log_softmax(1)

    def rounded(rows):
        return [[round(v, 5) for v in row] for row in rows.tolist()]

    return [[7 * k, *row] for k, row in enumerate(rounded(parts))], rounded(pointed)


def reference(out):
    """Writes golden.json with reference values of a directory, in fp32 from the weights as stored."""
    small = np.random.default_rng(1).integers(0, 256, (11, 15, 3), dtype=np.uint8)
    picture = np.kron(small, np.ones((8, 8, 1), np.uint8))  # 120x88: enlarged to 180x132, padded to 192x160
    model = Published(out, torch.float32)
    rows, _ = model.look(picture)
    ids = dialect.conversation(dialect.in_use("Press OK", [STEP], ""), len(rows))
    ids = ids[: -len(tokenizer.CLOSE + tokenizer.text("\n"))]  # the reply begins here
    with torch.no_grad():
        logits, embeddings = model.logits(model.read(torch.tensor([ids]), rows))[0], model.embed(rows)
    patches, pointed = patch_values(model, picture)
    values = dict(
        patches=patches, pointed=pointed, columns=15, each_pixel_is=8, rgb=small.reshape(-1).tolist()
    )
    values |= {"said": "Press OK", "step": STEP, "ids": ids}
    values |= {"rows": [[round(v, 6) for v in row] for row in embeddings.tolist()]}
    values |= {"logits": [round(v, 6) for v in logits[-1].tolist()]}
    with open(os.path.join(out, "golden.json"), "w") as f:
        json.dump(values, f)
        f.write("\n")


def options(p):
    p.add_argument("--run", help="directory with the kept files of encoder, pointer and language model")
    p.add_argument(
        "--tiny", action="store_true", help="a model of random weights with golden.json, for tests"
    )
    p.add_argument("--out", required=True)
    p.add_argument("--wide", help="directory of the kept files without published tensors")


def run(a):
    if bool(a.run) == a.tiny:
        sys.exit("publish: needs --run or --tiny")
    tensors, *shape = tiny() if a.tiny else kept(a.run)
    files.write_model(a.out, *shape, tensors)
    if a.tiny:
        reference(a.out)
    for path in MODEL.iterdir() if a.run else ():
        if not os.path.exists(os.path.join(a.out, path.name)):
            shutil.copy(path, a.out)
    for name, wide in KEPT_FILES.items() if a.wide else ():
        weights.split(
            os.path.join(a.run, f"{name}.safetensors"), a.out, os.path.join(a.wide, f"{wide}.safetensors")
        )
    n = sum(v.numel() for v in tensors.values())
    print(f"{a.out}: {n} parameters, {2 * n / 1e6:.1f} MB in bf16")
