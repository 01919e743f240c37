"""Writes reference values of the published model for the tests, from an independent forward pass.

    python -m pocket golden [--model ../model] [--out ../../tests/golden/pocket]

Everything is numpy in double precision, written from the equations and not from the training code: the
recurrence token by token, explicit softmax, explicit filters. Weights are the bf16 values of the file and
nothing is rounded on the way.

Writes page.png (seen at its own size), long.png (one that is reduced: its pixels only), golden.bin
(little-endian arrays, back to back) and golden.json (the prompt, and for every array its name, type, shape,
byte offset and the rows kept).
"""

import json
import math
import os

import numpy as np
from PIL import Image, ImageDraw

from . import HOME, MODEL, dialect, tokenizer
from .tokenizer import IMAGE

ROWS = [0, 1, 17, 100, 164]  # image tokens that are kept
PATCHES = [0, 1, 29, 30, 31, 330, 659]
LAST = 3  # positions at the end of the prompt that are kept


def page(w, h):
    """A picture with flat areas, edges at odd places and a ramp; no font is needed."""
    im = Image.new("RGB", (w, h), (246, 244, 239))
    d = ImageDraw.Draw(im)
    d.rectangle([0, 0, w - 1, 39], fill=(32, 62, 110))
    for i in range(w // 50):
        x, y = 20 + 47 * i, 60 + 23 * (i % 5)
        d.rectangle([x, y, x + 17 + i, y + 25], outline=(20, 20, 20), fill=(255, max(255 - 20 * i, 0), 90))
        d.line([x, y, x + 30, y + 31 + 3 * i], fill=(200, 30, 30), width=1 + i % 3)
    for x in range(w):
        d.line([x, h - 60, x, h - 1], fill=(x * 255 // w, 128, 255 - x * 255 // w))
    d.ellipse([w // 2, h - 90, w // 2 + 80, h - 20], fill=(10, 130, 60))
    return im


def weights(path):
    """Returns {name: float64 array} of a file of BF16 tensors."""
    with open(path, "rb") as f:
        raw = f.read()
    n, out = int.from_bytes(raw[:8], "little"), {}
    for name, t in json.loads(raw[8 : 8 + n]).items():
        if name != "__metadata__":
            a, b = (8 + n + o for o in t["data_offsets"])
            high = np.frombuffer(raw[a:b], "<u2").astype(np.uint32) << 16
            out[name] = high.view(np.float32).astype(np.float64).reshape(t["shape"])
    return out


def under(w, prefix):
    """Returns a function from the rest of a name to the tensor."""
    return lambda rest: w[prefix + rest]


def erf(x):
    return np.vectorize(math.erf)(x)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def silu(x):
    return x / (1 + np.exp(-x))


def rms(x, w, eps):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * w


def layer_norm(x, w, b, eps=1e-6):
    m = x.mean(-1, keepdims=True)
    return (x - m) / np.sqrt(((x - m) ** 2).mean(-1, keepdims=True) + eps) * w + b


def cubic(x, a=-0.5):
    x = abs(x)
    if x < 1:
        return (a + 2) * x**3 - (a + 3) * x**2 + 1
    return a * (x**3 - 5 * x**2 + 8 * x - 4) if x < 2 else 0.0


def filter_matrix(n_in, n_out):
    s = n_in / n_out
    f = max(s, 1.0)
    m = np.zeros((n_out, n_in))
    for o in range(n_out):
        c = (o + 0.5) * s
        lo = max(0, math.floor(c - 2 * f + 0.5))
        hi = min(n_in, math.floor(c + 2 * f + 0.5))
        for j in range(lo, hi):
            m[o, j] = cubic((j - c + 0.5) / f)
        m[o] /= m[o].sum()
    return m


def preprocess(im, cfg):
    """Returns [3, H, W]: the picture without scaling, padded with its last row and column to multiples of two
    patches. A picture that is too large is reduced so that it fits with this padding.
    """
    side, pair = cfg["vision_config"]["args"]["cpe_max_size"], 2 * cfg["patch_size"]
    x = np.asarray(im.convert("RGB"), np.float64) / 255  # [h, w, 3]
    scale = min(side / max(x.shape[:2]), 1)
    assert max(x.shape[:2]) * 1.5 > side or x[..., 0].size * 2.25 > 640 * 480, "a small one is enlarged first"
    new = [pair * math.ceil(round(n * scale) / pair) for n in x.shape[:2]]
    margin = [max(round(m / scale) - n, 0) for n, m in zip(x.shape, new)]
    x = np.pad(x, [(0, margin[0]), (0, margin[1]), (0, 0)], mode="edge")
    wide = np.einsum("oj,yjc->yoc", filter_matrix(x.shape[1], new[1]), x)
    x = np.einsum("oi,ixc->oxc", filter_matrix(x.shape[0], new[0]), wide)
    return ((x - cfg["norm_mean"]) / cfg["norm_std"]).transpose(2, 0, 1)


def vision(px, w, cfg, keep):
    """Returns (rows of the patches, number of rows, number of columns)."""
    v = cfg["vision_config"]
    p, d, heads = cfg["patch_size"], v["hidden_size"], v["num_attention_heads"]
    r, g, side = px.shape[1] // p, px.shape[2] // p, v["args"]["cpe_max_size"] // p
    patch = px.reshape(3, r, p, g, p).transpose(1, 3, 0, 2, 4).reshape(r * g, 3 * p * p)
    name = "vision_model.radio_model.model."
    x = patch @ w[name + "patch_generator.embedder.weight"].T
    x = x + w[name + "patch_generator.pos_embed"][0].reshape(side, side, d)[:r, :g].reshape(r * g, d)
    skip = w[name + "patch_generator.cls_token.token"]
    x = np.concatenate([skip, x])
    keep("vit_in", x, [len(skip) + m for m in PATCHES])
    for b in range(v["num_hidden_layers"]):
        at = under(w, f"{name}blocks.{b}.")
        u = layer_norm(x, at("norm1.weight"), at("norm1.bias"))
        q, k, val = np.split(u @ at("attn.qkv.weight").T + at("attn.qkv.bias"), 3, 1)
        y, h = np.zeros_like(x), d // heads
        for j in range(heads):
            c = slice(j * h, j * h + h)
            y[:, c] = softmax(q[:, c] @ k[:, c].T / math.sqrt(h)) @ val[:, c]
        x = x + y @ at("attn.proj.weight").T + at("attn.proj.bias")
        u = layer_norm(x, at("norm2.weight"), at("norm2.bias"))
        u = u @ at("mlp.fc1.weight").T + at("mlp.fc1.bias")
        u = 0.5 * u * (1 + erf(u / math.sqrt(2)))
        x = x + u @ at("mlp.fc2.weight").T + at("mlp.fc2.bias")
        keep(f"vit_block{b}", x, [len(skip) + m for m in PATCHES])
    return x[len(skip) :], r, g


def projector(x, rows, g, w, keep):
    d = x.shape[1]
    y = np.zeros((rows * g // 4, 4 * d))
    for r in range(rows):
        for c in range(g):
            o = ((r % 2) * 2 + c % 2) * d
            y[(r // 2) * (g // 2) + c // 2, o : o + d] = x[r * g + c]
    y = rms(y, w["mlp1.0.weight"], 1e-5) @ w["mlp1.1.weight"].T
    y = np.maximum(y, 0) ** 2 @ w["mlp1.3.weight"].T
    keep("projected", y, ROWS)
    return y


def mamba(u, at, c):
    H, P, N, G = (c[k] for k in ("mamba_num_heads", "mamba_head_dim", "ssm_state_size", "n_groups"))
    inner, T, taps = H * P, len(u), c["conv_kernel"]
    z, xbc, dt = np.split(u @ at("in_proj.weight").T, [inner, 2 * inner + 2 * G * N], 1)
    padded = np.concatenate([np.zeros((taps - 1, xbc.shape[1])), xbc])
    conv = sum(padded[k : k + T] * at("conv1d.weight")[:, 0, k] for k in range(taps))
    v = silu(conv + at("conv1d.bias"))
    dt = np.logaddexp(0, dt + at("dt_bias"))
    a, S, y = -np.exp(at("A_log")), np.zeros((H, P, N)), np.zeros((T, H, P))
    for t in range(T):
        x = v[t, :inner].reshape(H, P)
        B = v[t, inner : inner + G * N].reshape(G, N).repeat(H // G, 0)
        C = v[t, inner + G * N :].reshape(G, N).repeat(H // G, 0)
        S = np.exp(dt[t] * a)[:, None, None] * S + (dt[t][:, None] * x)[..., None] * B[:, None]
        y[t] = (S * C[:, None]).sum(-1) + at("D")[:, None] * x
    q = (y.reshape(T, inner) * silu(z)).reshape(T, G, inner // G)
    q = rms(q, 1.0, c["layer_norm_epsilon"]).reshape(T, inner) * at("norm.weight")
    return q @ at("out_proj.weight").T, S


def attention(u, at, c):
    h, kv, p = c["num_attention_heads"], c["num_key_value_heads"], c["head_dim"]
    q, k, v = (u @ at(f"{n}_proj.weight").T for n in "qkv")
    y, T = np.zeros((len(u), h * p)), len(u)
    mask = np.triu(np.full((T, T), -np.inf), 1)
    for j in range(h):
        a, b = slice(j * p, j * p + p), slice(j * kv // h * p, j * kv // h * p + p)
        y[:, a] = softmax(q[:, a] @ k[:, b].T / math.sqrt(p) + mask) @ v[:, b]
    return y @ at("o_proj.weight").T


def language(ids, picture, w, cfg, keep):
    c = cfg["llm_config"]
    h = w["language_model.backbone.embeddings.weight"][ids].copy()
    h[np.array(ids) == cfg["img_context_token_id"]] = picture
    kept = [0, 5, ids.index(cfg["img_context_token_id"])] + list(range(len(ids) - LAST, len(ids)))
    for i, kind in enumerate(c["hybrid_override_pattern"]):
        name = f"language_model.backbone.layers.{i}."
        u = rms(h, w[name + "norm.weight"], c["layer_norm_epsilon"])
        at = under(w, name + "mixer.")
        if kind == "M":
            y, state = mamba(u, at, c)
            keep(f"state{i}", state[:, 0], None)  # [H, N] of channel 0, after the prompt
        elif kind == "*":
            y = attention(u, at, c)
        else:
            y = np.maximum(u @ at("up_proj.weight").T, 0) ** 2 @ at("down_proj.weight").T
        h = h + y
        keep(f"layer{i}", h, kept)
    f = rms(h, w["language_model.backbone.norm_f.weight"], c["layer_norm_epsilon"])
    logits = f @ w["language_model.lm_head.weight"].T
    keep("logits", logits, kept)
    return logits


def options(p):
    p.add_argument("--model", default=str(MODEL))
    p.add_argument("--out", default=str(HOME.parents[1] / "tests/golden/pocket"))


def run(a):
    os.makedirs(a.out, exist_ok=True)
    with open(os.path.join(a.model, "config.json")) as f:
        cfg = json.load(f)
    w = weights(os.path.join(a.model, "model.safetensors"))
    arrays, blob = [], bytearray()

    def keep(name, x, rows, kind="<f4"):
        x = x if rows is None else x[rows]
        arrays.append(
            {"name": name, "dtype": kind[1:], "shape": list(x.shape), "offset": len(blob), "rows": rows}
        )
        blob.extend(np.ascontiguousarray(x).astype(kind).tobytes())

    im, long = page(460, 330), page(1312, 200)
    im.save(os.path.join(a.out, "page.png"), optimize=True)
    long.save(os.path.join(a.out, "long.png"), optimize=True)
    px = preprocess(im, cfg)
    keep("page_red", px[0], [0, 33, 100, 333])
    keep("page_blue", px[2], [65, 351])
    reduced = preprocess(long, cfg)
    keep("long_red", reduced[0], [0, 33, 100, 159])
    keep("long_blue", reduced[2], [65, 130])
    x, rows, g = vision(px, w, cfg, keep)
    seen = projector(x, rows, g, w, keep)
    turns = dialect.in_use("Book a flight from Oslo to Rome", ["<write>From<at><12><.3><20><.0>Oslo"], "")
    ids = dialect.conversation(turns, len(seen))
    ids = ids[: -len(tokenizer.CLOSE + tokenizer.text("\n"))]  # up to and with <think></think>
    keep("ids", np.array(ids), None, "<i4")
    logits = language(ids, seen, w, cfg, keep)
    about = {
        "what": "reference values of the exported pocket model",
        "generator": "golden.py",
        "numpy": np.__version__,
        "arithmetic": "float64, weights as stored (bf16)",
        "image": "page.png",
        "prompt": tokenizer.decode([i for n, i in enumerate(ids) if i != IMAGE or ids[n - 1] != i]),
        "tokens": len(ids),
        "argmax": int(logits[-1].argmax()),
        "arrays": arrays,
    }
    with open(os.path.join(a.out, "golden.json"), "w") as f:
        json.dump(about, f, indent=1)
    with open(os.path.join(a.out, "golden.bin"), "wb") as f:
        f.write(blob)
    print(f"{a.out}: {len(arrays)} arrays, {len(blob)} bytes, next token {about['argmax']}")
