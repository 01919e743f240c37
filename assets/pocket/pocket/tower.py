"""The vision encoder (tower): a ViT on 16-pixel patches at native resolution, as functions of its parameters.

    x = [prefix ; patches W + position];  a block: x += proj(attention(norm(x))), x += fc2(gelu(fc1(norm(x))))

The residual stream is fp32, products have the type `dt`. Norms have no weights of their own, since the
product after a norm can express them; they are published as ones and zeros. Positions are a fixed sinusoid
over a table of 64x64 patches in the last MARKS channels. Letters below: B pictures, n patches, d width
(192), H heads.
"""

import math

import torch
import torch.nn.functional as F

from .files import TOWER
from .weights import MATRICES

TABLE = 64  # side of the position table in patches: 1024 pixels
MARKS = 64  # channels that hold the position
BLOCK = ("qkv", "qkv_bias", "proj", "proj_bias", "fc1", "fc1_bias", "fc2", "fc2_bias")


def cpu_type():
    """Returns the type of matrix products on this CPU: bf16 if it has instructions for it, else fp32."""
    with open("/proc/cpuinfo") as f:
        flags = set(f.read().split())
    return torch.bfloat16 if flags & {"amx_bf16", "avx512_bf16"} else torch.float32


def products(device):
    """Returns the type of matrix products on a torch device."""
    return cpu_type() if torch.device(device).type == "cpu" else torch.bfloat16


def shapes(c):
    """Returns {name: shape} of the parameters of an encoder of shape c."""
    d, m = c["hidden"], c["mlp"]
    block = dict(zip(BLOCK, ((3 * d, d), (3 * d,), (d, d), (d,), (m, d), (m,), (d, m), (d,))))
    out = {"embedder": (d, 768), "prefix": (c["skip"], d)}
    return out | {f"{i}.{n}": s for i in range(c["blocks"]) for n, s in block.items()}


def positions(d, table=TABLE):
    """Returns the position table [table², d]: cosines and sines of MARKS/4 frequencies of row and column."""
    n, at = MARKS // 4, torch.arange(table * table)
    w = math.pi / table * torch.exp(torch.linspace(0, math.log(table * 0.9), n))
    turns = [t[:, None] * w for t in (at // table, at % table)]
    out = torch.zeros(table * table, d)
    out[:, d - MARKS :] = torch.cat([f(t) for t in turns for f in (torch.cos, torch.sin)], 1)
    return out


def linear(x, w, b, dt):
    """Returns x·Wᵀ + b with all three cast to dt."""
    return F.linear(x.to(dt), w.to(dt), b.to(dt))


def block(x, qkv, qkv_bias, proj, proj_bias, fc1, fc1_bias, fc2, fc2_bias, heads, dt):
    """Returns rows x [B, n, d] after one transformer block."""
    B, n, d = x.shape
    q, k, v = (
        linear(F.layer_norm(x, (d,), eps=1e-6), qkv, qkv_bias, dt)
        .view(B, n, 3, heads, -1)
        .permute(2, 0, 3, 1, 4)
    )
    y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(B, n, d)
    x = x + linear(y, proj, proj_bias, dt)
    return x + linear(F.gelu(linear(F.layer_norm(x, (d,), eps=1e-6), fc1, fc1_bias, dt)), fc2, fc2_bias, dt)


def encode(p, c, patches, rows, cols, table, dt, run=block):
    """Returns the rows [B, skip + rows*cols, d] of pictures.

    p {name: parameter}, patches [B, rows*cols, 768] in dt, table the positions [TABLE², d].
    """
    side = math.isqrt(len(table))
    row, col = (torch.arange(n, device=patches.device) for n in (rows, cols))
    x = F.linear(patches, p["embedder"].to(dt)).float() + table[(row[:, None] * side + col).flatten()]
    x = torch.cat([p["prefix"].float().expand(len(x), -1, -1), x], 1)
    for i in range(c["blocks"]):
        x = run(x, *(p[f"{i}.{n}"] for n in BLOCK), c["heads"], dt)
    return x


def image_tokens(x, rows, cols):
    """Returns rows of patches [B, rows*cols, d] as rows of image tokens [B*rows*cols/4, 4d], 2x2 patches
    each.
    """
    d = x.shape[-1]
    return x.view(len(x), rows // 2, 2, cols // 2, 2, d).permute(0, 1, 3, 2, 4, 5).reshape(-1, 4 * d)


def published(p, c, table):
    """Returns {published name: tensor} of an encoder."""
    d, out = c["hidden"], {}
    out[TOWER + "patch_generator.embedder.weight"], out[TOWER + "patch_generator.cls_token.token"] = (
        p["embedder"],
        p["prefix"],
    )
    out[TOWER + "patch_generator.pos_embed"] = table[None]
    for i in range(c["blocks"]):
        b = f"{TOWER}blocks.{i}."
        for ours, theirs in MATRICES.items():
            out |= {f"{b}{theirs}.weight": p[f"{i}.{ours}"], f"{b}{theirs}.bias": p[f"{i}.{ours}_bias"]}
        for norm in ("norm1", "norm2"):
            out |= {f"{b}{norm}.weight": torch.ones(d), f"{b}{norm}.bias": torch.zeros(d)}
    return out
