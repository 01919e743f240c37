"""Writes tiles of screenshots, resized by torchvision and divided by transformers.

    python make_tiling.py        into ../golden/tiling

Images are noise: byte i of the image named "WxH" is the top byte of the generator in golden.py, three per
pixel.  Each is converted to float32 in [0, 1], resized with torchvision's antialiased bicubic filter (neither
rounded nor clamped) to the grid chosen by transformers' get_optimal_tiled_canvas, cut, followed by the
whole image as one tile, and normalized with timm's constants of CLIP.  For each image 1500 numbers from
all tiles are stored; for 4000 more sizes the grid only.
"""
import golden  # first: it makes torchvision importable

import torch
from timm.data import OPENAI_CLIP_MEAN, OPENAI_CLIP_STD
from torchvision.transforms.v2 import functional as tv
from transformers.models.got_ocr2.image_processing_got_ocr2 import get_optimal_tiled_canvas

SEED, TILE, MOST, KEPT, GRIDS = 14, 512, 12, 1500, 4000
SIZES = [(1920, 1080), (3840, 2160), (2560, 1440), (1366, 768), (1280, 720), (1440, 900), (1024, 768), (800, 600), (640, 480),
         (390, 844), (1080, 1920), (512, 512), (511, 513), (300, 300), (725, 725), (1024, 1024), (481, 202), (1178, 1779),
         (100, 1300), (1300, 100), (33, 17), (7, 5), (1, 1), (2, 900), (1025, 1023), (1536, 1024)]


def grid(w, h):
    return get_optimal_tiled_canvas((h, w), (TILE, TILE), 1, MOST)    # columns, rows


def tiles(w, h):
    n = w * h * 3
    raw = torch.from_numpy((golden.mixed(SEED, f"{w}x{h}", 0, n) >> 56).astype("uint8")).view(h, w, 3)
    x = raw.permute(2, 0, 1).float() / 255
    cols, rows = grid(w, h)
    big = tv.resize(x, [rows * TILE, cols * TILE], tv.InterpolationMode.BICUBIC, antialias=True)
    out = [big[:, r * TILE:(r + 1) * TILE, c * TILE:(c + 1) * TILE] for r in range(rows) for c in range(cols)]
    if len(out) > 1:
        out.append(tv.resize(x, [TILE, TILE], tv.InterpolationMode.BICUBIC, antialias=True))
    return tv.normalize(torch.stack(out), OPENAI_CLIP_MEAN, OPENAI_CLIP_STD)


def below(name, n, limits):
    """Returns tuples of numbers, each below its limit."""
    z = golden.mixed(SEED, name, 0, n * len(limits)) >> 33
    return [(z[k::len(limits)] % limit).tolist() for k, limit in enumerate(limits)]


def main():
    out = golden.Fixture("tiling", "make_tiling.py", SEED, ["torch", "torchvision", "transformers", "timm", "numpy"])
    images = []
    for w, h in SIZES:
        t = tiles(w, h)
        images.append({"w": w, "h": h, "cols": grid(w, h)[0], "rows": grid(w, h)[1], "tiles": len(t)})
        at = (golden.mixed(SEED, f"at {w}x{h}", 0, KEPT) >> 20).astype("int64") % t.numel()
        out.keep(f"{w}x{h}", t.flatten()[torch.from_numpy(at)])
    ws, hs = below("grids", GRIDS, (4000, 4000))
    out.keep("grids", torch.tensor([grid(w + 1, h + 1) for w, h in zip(ws, hs)]))
    out.write({"architectures": ["NemotronH_Nano_VL_V2"], "force_image_size": TILE, "patch_size": 16, "downsample_ratio": 0.5,
               "ps_version": "v2", "use_thumbnail": True, "projector_hidden_size": 16, "img_context_token_id": 1,
               "llm_config": {"model_type": "nemotron_h", "hybrid_override_pattern": "-", "hidden_size": 16,
                              "intermediate_size": 16, "vocab_size": 16, "mlp_hidden_act": "relu2", "eos_token_id": 0},
               "vision_config": {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 1,
                                 "intermediate_size": 16}}, images=images)


if __name__ == "__main__":
    torch.set_num_threads(2)
    main()
