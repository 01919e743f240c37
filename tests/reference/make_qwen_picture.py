"""Writes results of transformers' image processor of Qwen2-VL and its successors.

    python make_qwen_picture.py [--out ../golden/qwen_picture]

pictures.json is for Qwen3.5 and Qwen3-VL, pictures28.json for Qwen2.5-VL.

"sizes": rows [w, h, min pixels, max pixels, w', h'] of smart_resize with factor 32 or 28.  "pictures": for images
that a test can generate (draw below), the SHA-256 of the resized bytes and of the f32 patches.  The processor is
the torchvision one; it uses PyTorch's resize kernel for bytes.

Made with transformers 5.23.0, torch 2.13.0 and torchvision 0.28.0, all for a CPU.
"""
import argparse
import hashlib
import json
import os
from importlib import metadata

import numpy as np
import torch

for name in ("nms", "qnms"):    # only the Python half of torchvision is used, which needs these names
    torch.library.define("torchvision::" + name, "(Tensor a, Tensor b, float c) -> Tensor")
from torchvision.transforms.v2 import InterpolationMode  # noqa: E402
from torchvision.transforms.v2 import functional as F  # noqa: E402
from transformers.models.qwen2_vl.image_processing_qwen2_vl import Qwen2VLImageProcessor, smart_resize  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
LEAST, MOST = 65536, 16777216
LEAST28, MOST28 = 3136, 12845056
HALF, CLIP = ([0.5] * 3, [0.5] * 3), ([0.48145466, 0.4578275, 0.40821073], [0.26862954, 0.26130258, 0.27577711])
GAMMA, MASK = 0x9e3779b97f4a7c15, (1 << 64) - 1
SCREENS = [(1920, 1080), (1280, 720), (1366, 768), (1920, 1200), (2560, 1440), (3840, 2160), (200, 200), (100, 30), (1440, 900),
           (1024, 768), (800, 600), (1280, 1024), (5120, 1440), (390, 844), (2880, 1800), (7680, 4320), (32, 32), (1, 1), (3, 200)]
# w, h, kind, least, most
PICTURES = [(193, 117, 0, LEAST, MOST), (640, 400, 1, LEAST, 128 * 1024), (1280, 720, 1, LEAST, MOST), (97, 300, 0, LEAST, 40 * 1024),
            (320, 256, 0, LEAST, MOST), (320, 250, 1, LEAST, MOST), (310, 256, 1, LEAST, MOST), (1000, 700, 2, LEAST, 96 * 1024),
            (60, 45, 1, LEAST, MOST), (1920, 1080, 2, LEAST, 720 * 1024), (33, 31, 0, 1024, 1024), (2000, 40, 1, LEAST, MOST)]


def draw(w, h, kind):
    """Returns random bytes, black and white, or steps of a few pixels: splitmix64 of the byte's number."""
    with np.errstate(over="ignore"):
        i = np.arange(w * h * 3, dtype=np.uint64)
        if kind == 2:
            i = (i // np.uint64(3 * w) // np.uint64(5)) * np.uint64(w) + i // np.uint64(3) % np.uint64(w) // np.uint64(7)
        z = (i + np.uint64(1)) * np.uint64(GAMMA)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xbf58476d1ce4e5b9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94d049bb133111eb)
        z = z ^ (z >> np.uint64(31))
    v = (z >> np.uint64(56)).astype(np.uint8)
    return (v if kind != 1 else (v & 1) * 255).reshape(h, w, 3)


def sha(a):
    return hashlib.sha256(np.ascontiguousarray(a).tobytes()).hexdigest()


def sizes(factor, least, whole):
    rng, out = np.random.default_rng(7), []
    drawn = [tuple(int(2 ** x) for x in rng.uniform(3, 12.5, 2)) for _ in range(150)]
    for w, h in SCREENS + drawn:
        if max(w, h) / min(w, h) > 200:
            continue
        for most in (whole, 1280 * 1024, 1024 * 1024, 768 * 1024):
            high, wide = smart_resize(h, w, factor, least, most)
            out.append([w, h, least, most, wide, high])
    return out


def make(path, patch, pictures, normal, all_sizes):
    rows = []
    for w, h, kind, least, most in pictures:
        im = draw(w, h, kind)
        high, wide = smart_resize(h, w, 2 * patch, least, most)
        chw = torch.from_numpy(im).permute(2, 0, 1)
        small = F.resize(chw, [high, wide], interpolation=InterpolationMode.BICUBIC, antialias=True).permute(1, 2, 0).numpy()
        p = Qwen2VLImageProcessor(patch_size=patch, temporal_patch_size=2, merge_size=2, image_mean=normal[0], image_std=normal[1],
                                  size={"shortest_edge": least, "longest_edge": most})
        got = p(images=[chw], return_tensors="pt")
        assert got["image_grid_thw"].tolist() == [[1, high // patch, wide // patch]]
        values = got["pixel_values"].numpy()
        assert values.dtype == np.float32 and values.shape == (high * wide // patch ** 2, 6 * patch ** 2)
        rows.append({"w": w, "h": h, "kind": kind, "least": least, "most": most, "wide": wide, "high": high, "drawn": sha(im),
                     "resized": sha(small), "patches": sha(values)})
    with open(path, "w") as f:
        head = {"generator": "make_qwen_picture.py", **{p: metadata.version(p) for p in ("transformers", "torch", "torchvision")}}
        f.write("{\n" + ",\n".join(f" {json.dumps(k)}: {json.dumps(v)}" for k, v in head.items()) + ",\n \"pictures\": [\n" +
                ",\n".join("  " + json.dumps(r) for r in rows) + "\n ],\n \"sizes\": [\n" +
                ",\n".join("  " + json.dumps(r) for r in all_sizes) + "\n ]\n}\n")


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--out", default=os.path.join(HERE, "..", "golden", "qwen_picture"))
    out = args.parse_args().out
    os.makedirs(out, exist_ok=True)
    torch.set_num_threads(1)
    small = [(w, h, kind, LEAST28 if least == LEAST else 784, {MOST: MOST28, 1024: 784}.get(most, most)) for w, h, kind, least, most in PICTURES]
    make(os.path.join(out, "pictures.json"), 16, PICTURES, HALF, sizes(32, LEAST, MOST))
    make(os.path.join(out, "pictures28.json"), 14, small, CLIP, sizes(28, LEAST28, MOST28))


if __name__ == "__main__":
    main()
