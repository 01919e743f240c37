"""The wide model in the published layout, for the engine: tower of one run, language model of another.

    python publish.py --tower ELEMENTS --language LANGUAGE --out DIR
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
import elements
import export
import language
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
    for head, module in heads(c["hidden"]).items():
        out |= {head + n: torch.randn_like(v) * 0.3 for n, v in module.named_parameters()}
    return out, c, shape


def heads(d):
    """What a published model says of patches, by the beginning of their names (weights.published)."""
    return {weights.HEADS: reading.Reader(d), weights.HEADS + "find.": elements.Finder(d)}


def tensors(a):
    """(all tensors by their published names, the two shapes)."""
    p, c, _, _, views = score.load(a.tower)
    out = {TOWER + n: v for n, v in tower.state_dict(p, c).items()}
    if any(n.startswith("head.find") for n in views):  # what the program reads names with
        there = weights.published([n for n in views if n.startswith("head.")], 0)
        out |= {theirs: views[n] for n, theirs in there.items()}
    shape, job = language.SHAPE, language.Job(argparse.Namespace(seed=1, sigma=0.5, shipped=a.shipped))
    if a.language:
        saved = weights.load(a.language)
        shape = saved["shape"]
        views = tower.Layout({n: tuple(s) for n, s in saved["names"].items()}).views(saved["average"])
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


def patches_said(out, model, tokens):
    """Of every seventh patch: number, letters' probabilities, shifts and classes by slot, and kinds' probabilities."""
    stored, d = export.load_safetensors(os.path.join(out, "model.safetensors")), model.c["hidden"]
    reader, finder = heads(d).values()
    for head, module in zip((weights.HEADS, weights.HEADS + "find."), (reader, finder)):
        module.load_state_dict({n: stored[head + n].float() for n, _ in module.named_parameters()})
    x = tokens.view(5, 6, 2, 2, d).permute(0, 2, 1, 3, 4).reshape(-1, d)[::7]  # of 10 x 12 patches
    u, present, shift = reader(x)
    letter = (u @ reader.letter.flatten(0, 1).t()).view(len(x), crops.SLOTS, -1)[..., 1:].argmax(-1) + 1
    parts = torch.cat([present.sigmoid(), shift.clamp(0, 1), letter, finder(x)[0].softmax(-1)], 1)
    return [[7 * k, *(round(v, 5) for v in row)] for k, row in enumerate(parts.tolist())]


def golden(out):
    """Reference values in fp32, from the weights as they are stored."""
    small = np.random.default_rng(1).integers(0, 256, (11, 15, 3), dtype=np.uint8)
    picture = np.kron(small, np.ones((8, 8, 1), np.uint8))  # 120 x 88: enlarged 180 x 132, with an edge 192 x 160
    language.HALF = torch.float32
    model = Published(out).eval()
    tokens = model.look(picture, torch.float32)
    said = dialect.conversation(dialect.in_use("Press OK", [STEP], ""), len(tokens))[0]
    ids = said[: -len(dialect.CLOSE + dialect.text("\n"))]  # the reply begins here
    with torch.no_grad():
        logits = model(torch.tensor([ids]), tokens)[0, -1]
        of_patches = patches_said(out, model, tokens)
    told = {
        "patches": of_patches,
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
