"""The wide model in the published layout, for the engine: tower of one run, language model of another.

    python publish.py --tower ELEMENTS --language LANGUAGE --out DIR
    python publish.py --tower READ --out DIR --golden            the language model as it begins, with reference values

Design.  The files are export.py's with other numbers: canvas mode (native pixels, sides multiples of 32, at
most 1,024), 384 tokens, norms whose weights are ones.  The position table of 64 x 64 patches is cut, not
resized: `vision_config.args.cpe_crop` says so.  With --golden, DIR/golden.json holds a picture's hash, its
image rows and the logits after a short conversation, computed in fp32 from the rounded weights, for tests
of the engine.
"""

import argparse
import hashlib
import json
import os
import pathlib

import numpy as np
import torch

import dialect  # puts the folder above on the path
import crops
import export
import language
import score
import tokenizer
import tower
from model import MEAN, STD, config_json

TOWER = "vision_model.radio_model.model."


def tensors(a):
    """(all tensors by their published names, the two shapes)."""
    p, c, _, _, _ = score.load(a.tower)
    out = {TOWER + n: v for n, v in tower.state_dict(p, c).items()}
    shape, job = language.SHAPE, language.Job(argparse.Namespace(seed=1, sigma=0.5, shipped=a.shipped))
    layout = tower.Layout(job.shapes(shape))
    if a.language:
        saved = torch.load(os.path.join(a.language, "last.pt"), weights_only=True)
        views = tower.Layout({n: tuple(s) for n, s in saved["names"].items()}).views(saved["average"])
    else:
        views = layout.views(torch.zeros(layout.size))
        job.start(views, shape)
    return out | {n: v.clone() for n, v in views.items()}, c, shape


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


def golden(everything, c, shape, out):
    """Reference values in fp32, from the weights as they are stored."""
    w = {n: v.to(torch.bfloat16).float() for n, v in everything.items()}
    rng = np.random.default_rng(1)
    picture = np.kron(
        rng.integers(0, 256, (12, 16, 3), dtype=np.uint8), np.ones((8, 8, 1), np.uint8)
    )  # 128 x 96
    patches, rows, cols = crops.whole(picture)
    names = {
        v: k
        for k, v in {
            "embedder": "patch_generator.embedder.weight",
            "prefix": "patch_generator.cls_token.token",
        }.items()
    }
    p = {names[n[len(TOWER) :]]: v for n, v in w.items() if n[len(TOWER) :] in names}
    for i in range(c["blocks"]):
        for ours, theirs in (
            ("qkv", "attn.qkv"),
            ("proj", "attn.proj"),
            ("fc1", "mlp.fc1"),
            ("fc2", "mlp.fc2"),
        ):
            p[f"{i}.{ours}"], p[f"{i}.{ours}_bias"] = (
                w[f"{TOWER}blocks.{i}.{theirs}.{k}"] for k in ("weight", "bias")
            )
    x = tower.apply(p, c, patches.float(), rows, cols, torch.float32)[0]
    tokens = x.view(rows // 2, 2, cols // 2, 2, -1).permute(0, 2, 1, 3, 4).reshape(rows * cols // 4, -1)
    model = language.Wide(shape).eval()
    model.load_state_dict({n: v for n, v in w.items() if not n.startswith(TOWER)})
    language.HALF = torch.float32
    ids, _ = dialect.conversation(
        dialect.in_use("Press OK", [], "<click>OK<at>" + dialect.place(40, 50)), len(tokens)
    )
    with torch.no_grad():
        logits = model.language_model.lm_head(model(torch.tensor([ids]), tokens))[0]
    with open(os.path.join(out, "golden.json"), "w") as f:
        json.dump(
            {
                "picture": {
                    "width": 128,
                    "height": 96,
                    "sha256": hashlib.sha256(picture.tobytes()).hexdigest(),
                    "rgb": picture[::8, ::8].reshape(-1).tolist(),
                    "each_pixel_is": 8,
                },
                "tower_rows": {str(k): [round(v, 5) for v in x[k, :8].tolist()] for k in (0, 7, 8, 47)},
                "ids": ids,
                "logits": {
                    str(k): [round(v, 5) for v in logits[k, :16].tolist()]
                    for k in (len(ids) // 2, len(ids) - 1)
                },
                "argmax": logits.argmax(-1).tolist(),
            },
            f,
        )
        f.write("\n")


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--tower", required=True)
    p.add_argument("--language")
    p.add_argument("--shipped", default=str(pathlib.Path(__file__).resolve().parent.parent / "model"))
    p.add_argument("--out", required=True)
    p.add_argument("--golden", action="store_true")
    a = p.parse_args()
    everything, c, shape = tensors(a)
    files = {
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
        golden(everything, c, shape, a.out)
    n = sum(v.numel() for v in everything.values())
    print(
        f"{a.out}: {n} parameters, {2 * n / 1e6:.1f} MB in bf16, of them {tower.TABLE ** 2 * c['hidden']} positions"
    )


if __name__ == "__main__":
    main()
