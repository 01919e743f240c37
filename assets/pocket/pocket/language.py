"""Projector and language model as functions of their parameters: Mamba-2, attention and MLP sub-layers.

Every sub-layer adds mixer(norm(h)) to the residual stream h, which is fp32; products have the type `dt`.
Norms have no trained weights (they are folded into the products that follow, and published as ones).
Letters: B sequences, T tokens, d width (256), H heads of P channels, N state, G groups. A sub-layer is a
function of its parameters, so that torch.compile builds it once for all layers.
"""

import torch
import torch.nn.functional as F

from . import tokenizer

SHAPE = dict(
    pattern="M-*-M-*-M-*-M-*-M-*-", hidden=256, mlp=768, heads=4, kv_heads=2, head_dim=64, mamba_heads=8
)
SHAPE |= dict(mamba_head_dim=64, state=64, groups=2, conv=4, chunk=64, eps=1e-5, vocab=tokenizer.VOCAB)
EMBED, HEAD = "language_model.backbone.embeddings.weight", "language_model.lm_head.weight"
MIXER = {
    "M": ("in_proj.weight", "conv1d.weight", "conv1d.bias", "dt_bias", "A_log", "D", "out_proj.weight"),
    "*": ("q_proj.weight", "k_proj.weight", "v_proj.weight", "o_proj.weight"),
    "-": ("up_proj.weight", "down_proj.weight"),
}


def layer_name(i, name):
    return f"language_model.backbone.layers.{i}.{name}"


def shapes(c, width, projector):
    """Returns {name: shape} of all parameters; `width` is that of the vision encoder."""
    d, H, inner, bc = (
        c["hidden"],
        c["mamba_heads"],
        c["mamba_heads"] * c["mamba_head_dim"],
        c["groups"] * c["state"],
    )
    kv, full = c["kv_heads"] * c["head_dim"], c["heads"] * c["head_dim"]
    mixer = {
        "M": (
            (2 * inner + 2 * bc + H, d),
            (inner + 2 * bc, 1, c["conv"]),
            (inner + 2 * bc,),
            (H,),
            (H,),
            (H,),
            (d, inner),
        ),
        "*": ((full, d), (kv, d), (kv, d), (d, full)),
        "-": ((c["mlp"], d), (d, c["mlp"])),
    }
    out = {EMBED: (c["vocab"], d)}
    for i, kind in enumerate(c["pattern"]):
        out[layer_name(i, "norm.weight")] = (d,)
        out |= {layer_name(i, f"mixer.{n}"): s for n, s in zip(MIXER[kind], mixer[kind])}
        if kind == "M":
            out[layer_name(i, "mixer.norm.weight")] = (inner,)
    out |= {
        "language_model.backbone.norm_f.weight": (d,),
        HEAD: (c["vocab"], d),
        "mlp1.0.weight": (4 * width,),
    }
    return out | {"mlp1.1.weight": (projector, 4 * width), "mlp1.3.weight": (d, projector)}


def normed(h, dt, eps=1e-5):
    """Returns h divided by its root mean square over the last axis, in dt."""
    return (h * torch.rsqrt(h.square().mean(-1, keepdim=True) + eps)).to(dt)


def scan(x, dt, a, B, C, Q):
    """Returns y of the recurrence S = exp(dt·a)·S + dt·x⊗B, y = S·C, as products over chunks of Q tokens.

    x [b, T, H, P], dt [b, T, H] fp32, a [H], B and C [b, T, G, N]; T is a multiple of Q. Within a chunk y
    is the masked product (C·Bᵀ)·decay·x; the state before chunk i is the decayed sum of the states of
    chunks j < i.
    """
    b, T, H, P = x.shape
    G, N, n, ty = B.shape[2], B.shape[3], T // Q, x.dtype
    c = (dt * a).view(b, n, Q, H).transpose(2, 3).cumsum(-1)  # [b, n, H, Q]
    Bc, Cc = (t.view(b, n, Q, G, N).transpose(2, 3) for t in (B, C))  # [b, n, G, Q, N]
    cb = (Cc @ Bc.transpose(-1, -2)).repeat_interleave(H // G, 2)
    xc = (x * dt.to(ty)[..., None]).view(b, n, Q, H, P).transpose(2, 3)
    upper = torch.ones(Q, Q, dtype=torch.bool, device=x.device).triu(1)
    y = (cb * (c[..., :, None] - c[..., None, :]).masked_fill(upper, -torch.inf).exp().to(ty)) @ xc
    tail = (c[..., -1:] - c).exp().to(ty)
    own = xc.transpose(-1, -2) @ (Bc.repeat_interleave(H // G, 2) * tail[..., None])  # [b, n, H, P, N]
    end = (
        c[..., -1].transpose(1, 2).cumsum(-1)
    )  # [b, H, n]: decay from the first token to the end of each chunk
    gap = (
        F.pad(end, (1, 0))[..., :n, None] - end[..., None, :]
    )  # from the end of chunk j to the start of chunk i
    late = torch.ones(n, n, dtype=torch.bool, device=x.device).triu()
    decay = gap.masked_fill(late, -torch.inf).exp()  # [b, H, n, n]
    before = (decay.to(ty) @ own.transpose(1, 2).reshape(b, H, n, P * N)).view(b, H, n, P, N).transpose(1, 2)
    y = y + c.exp().to(ty)[..., None] * (Cc.repeat_interleave(H // G, 2) @ before.transpose(-1, -2))
    return y.transpose(2, 3).reshape(b, T, H, P)


def mamba(h, c, ty, in_proj, taps, bias, dt_bias, A_log, D, out_proj):
    """Returns h [B, T, d] after a Mamba-2 sub-layer; the depthwise convolution is c["conv"] products."""
    b, T, _ = h.shape
    H, P, N, G = (c[k] for k in ("mamba_heads", "mamba_head_dim", "state", "groups"))
    inner, bc = H * P, G * N
    z, xbc, dt = F.linear(normed(h, ty, c["eps"]), in_proj.to(ty)).split([inner, inner + 2 * bc, H], -1)
    w, padded = taps[:, 0].to(ty), F.pad(xbc, (0, 0, c["conv"] - 1, 0))
    v = F.silu(sum((padded[:, k : k + T] * w[:, k] for k in range(c["conv"])), bias.to(ty)))
    x, B, C = v.split([inner, bc, bc], -1)
    x, B, C = x.reshape(b, T, H, P), B.reshape(b, T, G, N), C.reshape(b, T, G, N)
    y = scan(x, F.softplus(dt.float() + dt_bias), -A_log.exp(), B, C, c["chunk"])
    y = y + x * D.to(ty)[:, None]
    q = (y.reshape(b, T, inner) * F.silu(z)).view(b, T, G, inner // G).float()
    return h + F.linear(normed(q, ty, c["eps"]).view(b, T, inner), out_proj.to(ty))


def attention(h, c, ty, q_proj, k_proj, v_proj, o_proj):
    """Returns (h after an attention sub-layer, queries, keys [B, heads, T, head_dim])."""
    b, T, _ = h.shape
    u = normed(h, ty, c["eps"])
    q, k, v = (
        F.linear(u, w.to(ty)).view(b, T, -1, c["head_dim"]).transpose(1, 2) for w in (q_proj, k_proj, v_proj)
    )
    k, v = (t.repeat_interleave(c["heads"] // c["kv_heads"], 1) for t in (k, v))
    y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return h + F.linear(y.transpose(1, 2).reshape(b, T, -1), o_proj.to(ty)), q, k


def mlp(h, c, ty, up, down):
    """Returns h after an MLP sub-layer with squared ReLU."""
    return h + F.linear(F.relu(F.linear(normed(h, ty, c["eps"]), up.to(ty))).square(), down.to(ty))


SUBLAYERS = {"M": mamba, "*": attention, "-": mlp}


def project(p, rows, ty):
    """Returns the embeddings [n, d] fp32 of image tokens from their rows [n, 4·width]."""
    y = F.linear(normed(rows, ty), p["mlp1.1.weight"].to(ty))
    return F.linear(F.relu(y).square(), p["mlp1.3.weight"].to(ty)).float()


def read(p, c, ids, picture, ty, run=SUBLAYERS):
    """Returns (rows of the final norm [B, T, d], {layer: (queries, keys)}) of sequences.

    p {name: parameter}, ids [B, T], picture [n, d] the embeddings of all image tokens in order.
    """
    T, seen = ids.shape[1], {}
    ids = F.pad(ids, (0, -T % c["chunk"]))  # the model is causal: appended tokens change nothing
    h = F.embedding(ids, p[EMBED]).masked_scatter((ids == tokenizer.IMAGE)[..., None], picture)
    for i, kind in enumerate(c["pattern"]):
        h = run[kind](h, c, ty, *(p[layer_name(i, f"mixer.{n}")] for n in MIXER[kind]))
        if kind == "*":
            h, *seen[i] = h
    return normed(h, ty, c["eps"])[:, :T], seen
