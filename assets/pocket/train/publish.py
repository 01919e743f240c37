"""The wide model in the published layout, for the engine: tower of one run, language model of another.

    python publish.py --tower ELEMENTS --pointer POINTER --language LANGUAGE --out DIR
    python publish.py --tower READ --out DIR --golden            the language model as it begins, with reference values
    python publish.py --tiny --out ../../../tests/golden/pocket-wide --golden      what t_pocket_wide reads

Design.  The files are export.py's with other numbers: canvas mode (native pixels, sides multiples of 32, at
most 1,024), 384 tokens, norms whose weights are ones; holorun.json names the dialect, so that the folder is all that
a command needs (`--model DIR`).  A run is a folder or what the tree keeps of it (weights.py).  The position table of 64 x 64 patches is cut, not
resized: `vision_config.args.cpe_crop` says so.  With --golden, DIR/golden.json holds a picture, its image rows and
the logits after a short conversation, computed in fp32 from the rounded weights, for tests of the engine;
--tiny is a model of the same kind with chance weights, small enough for the tree.
"""

import argparse
import json
import os
import pathlib

import numpy as np
import torch

import dialect  # puts the folder above on the path
import crops
import export
import joint_passes
import language
import pointer
import reading
import score
import tokenizer
import tower
import weights
from model import MEAN, STD, config_json
from published import TOWER, Published

STEP = "<click>OK<at>" + dialect.place(40, 50)


TINY_LM = dict(hidden=64, mlp=96, heads=2, kv_heads=1, head_dim=32, mamba_heads=4, mamba_head_dim=16, state=16)
TINY_TOWER = dict(hidden=64, blocks=1, heads=2, mlp=96, skip=4, eps=1e-6)


def tiny():
    """As `tensors`; chance weights large enough for every part to matter."""
    torch.manual_seed(1)
    tower.TABLE, c = 12, TINY_TOWER
    shape = dict(lm=dict(language.SHAPE["lm"], pattern="M*-", **TINY_LM), vit=c["hidden"], projector=48)
    p = {n: torch.randn(s) * (s[-1] ** -0.5 if len(s) == 2 else 0.1) for n, s in tower.shapes(c).items()}
    out = {TOWER + n: v for n, v in tower.state_dict(p, c).items()}
    for n, v in language.Wide(shape).named_parameters():
        out[n] = torch.randn_like(v) * v.shape[1] ** -0.5 if v.ndim == 2 else v.detach().clone()
    asked = pointer.Heads(c).named() | {f"head.{n}": v for n, v in reading.Reader(c["hidden"]).named_parameters()}
    return out | head_tensors({n: torch.randn_like(v) * 0.3 for n, v in asked.items()}, c["hidden"]), c, shape


def head_tensors(views, d):
    """What a run asks of patches, by the names of a published model; norms of a block are ones."""
    there = weights.published([n for n in views if n.startswith("head.")], 0)
    out = {theirs: views[n] for n, theirs in there.items()}
    if weights.HEADS + "block.attn.qkv.weight" in out:
        for norm in ("block.norm1", "block.norm2"):
            out |= {f"{weights.HEADS}{norm}.weight": torch.ones(d), f"{weights.HEADS}{norm}.bias": torch.zeros(d)}
    return out


def tensors(a):
    """(all tensors by their published names, the two shapes)."""
    p, c, _, _, views = score.load(a.tower)
    out = {TOWER + n: v for n, v in tower.state_dict(p, c).items()}
    if a.pointer:
        out |= head_tensors(views | weights.parameters(a.pointer), c["hidden"])
    shape, job = language.SHAPE, language.Job(argparse.Namespace(seed=1, sigma=0.5, shipped=a.shipped))
    if a.language:
        shape, views = weights.load(a.language)["shape"], weights.parameters(a.language)
    else:
        layout = tower.Layout(job.shapes(shape))
        views = layout.views(torch.zeros(layout.size))
        job.start(views, shape)
    return out | {n: v.clone() for n, v in views.items() if n != language.WHERE}, c, shape


def config(c, shape):
    out = config_json(dict(lm=shape["lm"], vit=c, projector=shape["projector"]))
    out["vision_config"]["args"] |= {
        "min_num_patches": 16,
        "max_num_patches": 4096,
        "cpe_crop": True,
        "cpe_max_size": 16 * tower.TABLE,
    }
    out["vision_config"] |= {"max_resolution": 16 * tower.TABLE, "version": "pocket-wide"}
    return out


def patches_said(out, model, picture):
    """Of every seventh patch: number, letters' probabilities, shifts and classes by slot, and kinds' probabilities; and of
    the same patches what is pointed at from them, [1 + patches] logarithms of probabilities."""
    stored = export.load_safetensors(os.path.join(out, "model.safetensors"))
    reader, asked = reading.Reader(model.c["hidden"]), pointer.Heads(model.c)
    of = {f"head.{n}": p for n, p in reader.named_parameters()} | asked.named()
    for ours, theirs in weights.published(of, 0).items():
        of[ours].data = stored[theirs].float()
    x, _, cols = model.patches(picture, torch.float32, {"skip": 0})
    behind, x = asked.rows(x), x[model.c["skip"] :]
    some = torch.arange(0, len(x), 7)
    u, present, shift = reader(x[some])
    letter = (u @ reader.letter.flatten(0, 1).t()).view(len(some), crops.SLOTS, -1)[..., 1:].argmax(-1) + 1
    parts = torch.cat([present.sigmoid(), shift.clamp(0, 1), letter, asked.finder(behind[some])[0].softmax(-1)], 1)
    said = asked.pointer(behind, some, cols).log_softmax(1)
    rounded = lambda row: [round(v, 5) for v in row]
    return [[7 * k, *rounded(row)] for k, row in enumerate(parts.tolist())], [rounded(row) for row in said.tolist()]


def golden(out):
    """Reference values in fp32, from the weights as they are stored."""
    small = np.random.default_rng(1).integers(0, 256, (11, 15, 3), dtype=np.uint8)
    picture = np.kron(small, np.ones((8, 8, 1), np.uint8))  # 120 x 88: enlarged 180 x 132, with an edge 192 x 160
    language.HALF = joint_passes.HALF = torch.float32
    model = Published(out).eval()
    tokens = model.look(picture, torch.float32)
    said = dialect.conversation(dialect.in_use("Press OK", [STEP], ""), len(tokens))[0]
    ids = said[: -len(dialect.CLOSE + dialect.text("\n"))]  # the reply begins here
    with torch.no_grad():
        logits = model(torch.tensor([ids]), tokens)[0, -1]
        of_patches, pointed = patches_said(out, model, picture)
    told = {
        "patches": of_patches,
        "pointed": pointed,
        "columns": 15,
        "each_pixel_is": 8,
        "rgb": small.reshape(-1).tolist(),
        "said": "Press OK",
        "step": STEP,
        "ids": ids,
        "rows": [[round(v, 6) for v in row] for row in model.say.picture.tolist()],
        "logits": [round(v, 6) for v in logits.tolist()],
    }
    with open(os.path.join(out, "golden.json"), "w") as f:
        json.dump(told, f)
        f.write("\n")


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--tower")
    p.add_argument("--tiny", action="store_true", help="chance weights, for tests")
    p.add_argument("--pointer", help="what is asked of its patches; without it nothing is")
    p.add_argument("--language")
    p.add_argument("--shipped", help="without --language: the model that it begins with (language.py)")
    p.add_argument("--out", required=True)
    p.add_argument("--golden", action="store_true")
    a = p.parse_args()
    if bool(a.tower) == a.tiny:
        p.error("either --tower or --tiny")
    everything, c, shape = tiny() if a.tiny else tensors(a)
    files = {
        "holorun.json": {"dialect": "pocket-wide"},
        "config.json": config(c, shape),
        "generation_config.json": {
            "do_sample": False,
            "max_new_tokens": 96,
            "bos_token_id": 1,
            "eos_token_id": [12, 2, 11],
        },
        "preprocessor_config.json": {
            "image_processor_type": "NemotronNanoVLV2ImageProcessor",
            "image_size": 512,
            "max_num_tiles": 1,
            "use_thumbnail": False,
            "norm_mean": list(MEAN),
            "norm_std": list(STD),
            "patch_size": 16,
            "downsample_ratio": 0.5,
        },
        "tokenizer.json": tokenizer.tokenizer_json(dialect.NAME),
        "tokenizer_config.json": tokenizer.tokenizer_config_json(dialect.NAME),
        "special_tokens_map.json": tokenizer.special_tokens_map_json(),
    }
    export.write(a.out, files, everything)
    if a.golden:
        golden(a.out)
    n = sum(v.numel() for v in everything.values())
    print(
        f"{a.out}: {n} parameters, {2 * n / 1e6:.1f} MB in bf16, of them {tower.TABLE ** 2 * c['hidden']} positions"
    )


if __name__ == "__main__":
    main()
