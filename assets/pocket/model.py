"""The pocket model in torch: a ViT, a projector and a Mamba-2/attention/MLP stack, trainable.

Design.  It is a small member of the published family, and the module tree is spelled so that
`state_dict()` has the published tensor names: export is a cast and a copy.  What differs from an
inference engine is only what training on a processor core asks for: products in bf16 with fp32
accumulation and fp32 master weights, the recurrence as a chunked scan (matrix products instead of
a loop over time), and an auxiliary head on the patches that is dropped at export.

    image [3,512,512] -> 1024 patches -> ViT blocks -> 2x2 shuffle -> projector -> 256 rows of D
    tokens [T] -> embedding rows, image rows in place of <image> -> one sub-layer per pattern
    character (M Mamba-2, * attention, - MLP), each h += mixer(RMSNorm(h)) -> logits

Initial values carry what is known about the task and would take long to learn: positions start as
a two-dimensional sinusoid, and the first blocks' heads look at fixed offsets on the character grid
(`wire_neighbours`).  Everything stays trainable.
"""
import math

import torch
import torch.nn.functional as F
from torch import nn

from tokenizer import IMAGE, VOCAB, ADDED

SIDE, PATCH = 512, 16
GRID = SIDE // PATCH                     # 32 x 32 patches; a character cell is two of them, stacked
MEAN = (0.48145466, 0.4578275, 0.40821073)
STD = (0.26862954, 0.26130258, 0.27577711)

LM = dict(pattern="M-*-M-*-M-*-", hidden=256, mlp=768, heads=4, kv_heads=2, head_dim=64,
          mamba_heads=8, mamba_head_dim=64, state=64, groups=2, conv=4, chunk=64, eps=1e-5)
VIT = dict(hidden=128, blocks=3, heads=2, mlp=512, skip=4, eps=1e-6)
PROJECTOR = 512


# ---- pieces ---------------------------------------------------------------------------------

class Linear(nn.Linear):
    """y = x·Wᵀ (+ b) in the type of x: fp32 weights are cast, so bf16 x means a bf16 product."""
    def forward(self, x):
        b = None if self.bias is None else self.bias.to(x.dtype)
        return F.linear(x, self.weight.to(x.dtype), b)


def rms(x, eps):
    """rsqrt(mean x² + eps) over the last axis, kept; the sum runs in fp32 without a copy of x."""
    n = torch.linalg.vector_norm(x, dim=-1, keepdim=True, dtype=torch.float32)
    return (n * n / x.shape[-1] + eps).rsqrt()


class RMSNorm(nn.Module):
    """x·rms(x)·w over the last axis, given back in `out`."""
    def __init__(self, n, eps):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(n)), eps

    def forward(self, x, out):
        return x.to(out) * rms(x, self.eps).to(out) * self.weight.to(out)


class ReLU2(nn.Module):
    def forward(self, x):
        y = F.relu(x)
        return y * y                                    # `square` is slow in bf16


class Attend(torch.autograd.Function):
    """softmax(q·kᵀ)·v, causal or not, in strips of queries.

    The weights of a strip are kept for the way back, and a causal strip leaves the keys after it
    out.  On one core this takes less than half the time of the fused kernel.
    """
    STRIP = 320

    @staticmethod
    def forward(ctx, q, k, v, causal):
        n, S = q.shape[2], Attend.STRIP
        late = torch.full((S, S), -1e4, dtype=q.dtype).triu(1)
        out, weights, kt = torch.empty_like(q), [], k.transpose(-1, -2)
        for i in range(0, n, S):
            e = min(n, i + S)
            m = e if causal else n
            s = q[:, :, i:e] @ kt[..., :m]
            if causal:
                s[..., i:e] += late[:e - i, :e - i]
            weights.append(s.softmax(-1))
            out[:, :, i:e] = weights[-1] @ v[:, :, :m]
        ctx.save_for_backward(q, k, v, out, *weights)
        return out

    @staticmethod
    def backward(ctx, do):
        q, k, v, out, *weights = ctx.saved_tensors
        dq, dk, dv = torch.empty_like(q), torch.zeros_like(k), torch.zeros_like(v)
        vt, own = v.transpose(-1, -2), (do * out).sum(-1, keepdim=True)
        for p, i in zip(weights, range(0, q.shape[2], Attend.STRIP)):
            e, m = i + p.shape[2], p.shape[3]
            dv[:, :, :m] += p.transpose(-1, -2) @ do[:, :, i:e]
            dp = do[:, :, i:e] @ vt[..., :m]
            dp -= own[:, :, i:e]
            dp *= p
            dq[:, :, i:e] = dp @ k[:, :, :m]
            dk[:, :, :m] += dp.transpose(-1, -2) @ q[:, :, i:e]
        return dq, dk, dv, None


# ---- vision ---------------------------------------------------------------------------------

class VitAttention(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.qkv, self.proj, self.heads = Linear(d, 3 * d), Linear(d, d), heads

    def forward(self, x):                               # [B, n, d]
        b, n, d = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        y = Attend.apply(q * q.shape[-1] ** -0.5, k, v, False)
        return self.proj(y.transpose(1, 2).reshape(b, n, d))


class VitMlp(nn.Module):
    def __init__(self, d, hidden):
        super().__init__()
        self.fc1, self.fc2 = Linear(d, hidden), Linear(hidden, d)

    def forward(self, x):
        return self.fc2(F.gelu(self.fc1(x)))            # the erf form


class VitBlock(nn.Module):
    def __init__(self, c):
        super().__init__()
        d = c["hidden"]
        self.norm1, self.norm2 = nn.LayerNorm(d, c["eps"]), nn.LayerNorm(d, c["eps"])
        self.attn, self.mlp = VitAttention(d, c["heads"]), VitMlp(d, c["mlp"])

    def forward(self, x, dt):                           # residual stream fp32, products in dt
        x = x + self.attn(self.norm1(x).to(dt))
        return x + self.mlp(self.norm2(x).to(dt))


class PatchGenerator(nn.Module):
    def __init__(self, c):
        super().__init__()
        d = c["hidden"]
        self.embedder = Linear(3 * PATCH * PATCH, d, bias=False)
        self.pos_embed = nn.Parameter(torch.zeros(1, GRID * GRID, d))
        self.cls_token = nn.Module()
        self.cls_token.token = nn.Parameter(0.02 * torch.randn(c["skip"], d))

    def forward(self, patches):                         # [B, 1024, 768] -> [B, skip+1024, d]
        x = self.embedder(patches).float() + self.pos_embed
        return torch.cat([self.cls_token.token.expand(len(x), -1, -1), x], 1)


class Vit(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.patch_generator = PatchGenerator(c)
        self.blocks = nn.ModuleList(VitBlock(c) for _ in range(c["blocks"]))
        self.skip = c["skip"]

    def forward(self, patches):                         # no final norm; prefix rows are dropped
        x = self.patch_generator(patches)
        for block in self.blocks:
            x = block(x, patches.dtype)
        return x[:, self.skip:]


def shuffle2(x):
    """[B, 1024, d] -> [B, 256, 4d]: a token is 2x2 patches, top-left, top-right, bottom-left,
    bottom-right; tokens row-major.  (Two characters of one row.)"""
    b, _, d = x.shape
    x = x.view(b, GRID // 2, 2, GRID // 2, 2, d).permute(0, 1, 3, 2, 4, 5)
    return x.reshape(b, GRID * GRID // 4, 4 * d)


# ---- language -------------------------------------------------------------------------------

class Filter(torch.autograd.Function):
    """y[b,c,t] = bias[c] + sum_k w[c,k]·x[b,c,t-K+1+k]; the library's way back is three times as
    slow as a second convolution and K products."""
    @staticmethod
    def forward(ctx, x, w, bias):
        ctx.save_for_backward(x, w)
        k = w.shape[-1]
        return F.conv1d(x, w, bias, padding=k - 1, groups=len(w))[..., :x.shape[-1]]

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        k, T = w.shape[-1], x.shape[-1]
        g = g.contiguous()
        dx = F.conv1d(F.pad(g, (0, k - 1)), w.flip(-1), groups=len(w))
        dw = [(g[..., k - 1 - i:] * x[..., :T - (k - 1 - i)]).sum((0, 2), dtype=torch.float32)
              for i in range(k)]
        return dx, torch.stack(dw, 1)[:, None].to(w.dtype), g.sum((0, 2))


class Conv(nn.Module):
    """v[t,c] = b[c] + sum_k w[c,0,k]·x[t-K+1+k, c]: depthwise, causal."""
    def __init__(self, channels, taps):
        super().__init__()
        self.weight = nn.Parameter((torch.rand(channels, 1, taps) * 2 - 1) / math.sqrt(taps))
        self.bias = nn.Parameter(torch.zeros(channels))

    def forward(self, x):                               # [B, T, C]
        x = x.transpose(1, 2).contiguous()
        y = Filter.apply(x, self.weight.to(x.dtype), self.bias.to(x.dtype))
        return y.transpose(1, 2).contiguous()


class Masked(torch.autograd.Function):
    """M_ij = G_ij·exp(c_i - c_j) for j <= i, else 0; by hand, as autograd makes four more passes."""
    @staticmethod
    def forward(ctx, g, c):                             # [..., Q, Q] half, [..., Q] fp32
        e = (c[..., :, None] - c[..., None, :]).to(g.dtype).exp_().tril_()
        m = g * e
        ctx.save_for_backward(e, m)
        return m

    @staticmethod
    def backward(ctx, dm):
        e, m = ctx.saved_tensors
        dc = dm * m
        return dm * e, dc.sum(-1, dtype=torch.float32) - dc.sum(-2, dtype=torch.float32)


def scan(x, dt, a, B, C, Q):
    """The recurrence S = exp(dt·a)·S + dt·x⊗B, y = S·C, chunk by chunk.

    x [b,T,H,P], dt [b,T,H] fp32, a [H], B and C [b,T,G,N], T a multiple of Q.  Inside a chunk it is
    a masked product (C·Bᵀ)·decay·x; between chunks only the state at the chunk's end is carried.
    Only differences of prefix sums are exponentiated; those that count are <= 0.
    """
    b, T, H, P = x.shape
    G, N, n, ty = B.shape[2], B.shape[3], T // Q, x.dtype
    c = (dt * a).view(b, n, Q, H).transpose(2, 3).cumsum(-1)                # [b,n,H,Q]
    Bc, Cc = (t.view(b, n, Q, G, N).transpose(2, 3) for t in (B, C))        # [b,n,G,Q,N]
    cb = (Cc @ Bc.transpose(-1, -2)).repeat_interleave(H // G, 2)           # [b,n,H,Q,Q]
    xc = (x * dt.to(ty)[..., None]).view(b, n, Q, H, P).transpose(2, 3)     # [b,n,H,Q,P]
    y = Masked.apply(cb, c) @ xc
    tail = (c[..., -1:] - c).exp().to(ty)                                   # decay to the chunk's end
    Bh = Bc.repeat_interleave(H // G, 2)
    own = (xc.transpose(-1, -2) @ (Bh * tail[..., None])).float()           # [b,n,H,P,N]
    keep = c[..., -1].exp()[..., None, None]
    state, before = torch.zeros_like(own[:, 0]), []
    for i in range(n):
        before.append(state)
        state = keep[:, i] * state + own[:, i]
    before = torch.stack(before, 1).to(ty)
    head = c.exp().to(ty)[..., None]
    y = y + head * (Cc.repeat_interleave(H // G, 2) @ before.transpose(-1, -2))
    return y.transpose(2, 3).reshape(b, T, H, P)


class Mamba(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.H, self.P, self.N, self.G = (c[k] for k in ("mamba_heads", "mamba_head_dim",
                                                         "state", "groups"))
        self.inner, self.bc, self.Q, self.eps = self.H * self.P, self.G * self.N, c["chunk"], c["eps"]
        d = c["hidden"]
        self.in_proj = Linear(d, 2 * self.inner + 2 * self.bc + self.H, bias=False)
        self.conv1d = Conv(self.inner + 2 * self.bc, c["conv"])
        # Time constants from one token to a few hundred, so that some heads remember a page.
        dt = torch.exp(torch.linspace(math.log(1e-3), math.log(1e-1), self.H))
        self.dt_bias = nn.Parameter(dt + torch.log(-torch.expm1(-dt)))
        self.A_log = nn.Parameter(torch.log(torch.linspace(1, 16, self.H)))
        self.D = nn.Parameter(torch.ones(self.H))
        self.norm = nn.Module()
        self.norm.weight = nn.Parameter(torch.ones(self.inner))
        self.out_proj = Linear(self.inner, d, bias=False)

    def forward(self, u):                               # [B, T, D]
        b, T, _ = u.shape
        z, xbc, dt = self.in_proj(u).split([self.inner, self.inner + 2 * self.bc, self.H], -1)
        v = F.silu(self.conv1d(xbc))
        x, B, C = v.split([self.inner, self.bc, self.bc], -1)
        x = x.reshape(b, T, self.H, self.P)
        B, C = (t.reshape(b, T, self.G, self.N) for t in (B, C))
        dt = F.softplus(dt.float() + self.dt_bias)
        y = scan(x, dt, -self.A_log.exp(), B, C, self.Q)
        y = y + x * self.D.to(x.dtype)[:, None]
        q = (y.reshape(b, T, self.inner) * F.silu(z)).view(b, T, self.G, self.inner // self.G)
        q = (q * rms(q, self.eps).to(q.dtype)).view(b, T, self.inner)
        return self.out_proj(q * self.norm.weight.to(q.dtype))


class Attention(nn.Module):
    def __init__(self, c):
        super().__init__()
        d, self.h, self.kv, self.p = c["hidden"], c["heads"], c["kv_heads"], c["head_dim"]
        self.q_proj = Linear(d, self.h * self.p, bias=False)
        self.k_proj = Linear(d, self.kv * self.p, bias=False)
        self.v_proj = Linear(d, self.kv * self.p, bias=False)
        self.o_proj = Linear(self.h * self.p, d, bias=False)

    def forward(self, u):
        b, T, _ = u.shape
        q, k, v = (f(u).view(b, T, -1, self.p).transpose(1, 2)
                   for f in (self.q_proj, self.k_proj, self.v_proj))
        k, v = (t.repeat_interleave(self.h // self.kv, 1) for t in (k, v))
        self.seen = (q, k) if self.training else None   # for the hints
        y = Attend.apply(q * self.p ** -0.5, k, v, True)
        return self.o_proj(y.transpose(1, 2).reshape(b, T, -1))


class Mlp(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.up_proj = Linear(c["hidden"], c["mlp"], bias=False)
        self.down_proj = Linear(c["mlp"], c["hidden"], bias=False)

    def forward(self, u):
        y = F.relu(self.up_proj(u))
        return self.down_proj(y * y)


class Layer(nn.Module):
    def __init__(self, kind, c):
        super().__init__()
        self.norm = RMSNorm(c["hidden"], c["eps"])
        self.mixer = {"M": Mamba, "*": Attention, "-": Mlp}[kind](c)

    def forward(self, h, dt):
        return h + self.mixer(self.norm(h, dt))


class Language(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.backbone = nn.Module()
        vocab = c.get("vocab", VOCAB)
        self.backbone.embeddings = nn.Embedding(vocab, c["hidden"])
        self.backbone.layers = nn.ModuleList(Layer(k, c) for k in c["pattern"])
        self.backbone.norm_f = RMSNorm(c["hidden"], c["eps"])
        self.lm_head = Linear(c["hidden"], vocab, bias=False)
        self.chunk = c["chunk"]

    def forward(self, h, dt):                           # [B, T, D] fp32 -> final norm, [B, T, D] dt
        T = h.shape[1]
        h = F.pad(h, (0, 0, 0, -T % self.chunk))        # causal: what is appended changes nothing
        for layer in self.backbone.layers:
            h = layer(h, dt)
        return self.backbone.norm_f(h[:, :T], dt)


# ---- the whole ------------------------------------------------------------------------------

class Pocket(nn.Module):
    def __init__(self, lm=LM, vit=VIT, projector=PROJECTOR):
        super().__init__()
        self.shape = dict(lm=dict(lm), vit=dict(vit), projector=projector)
        self.language_model = Language(lm)
        self.vision_model = nn.Module()
        self.vision_model.radio_model = nn.Module()
        self.vision_model.radio_model.model = Vit(vit)
        d = 4 * vit["hidden"]
        self.mlp1 = nn.Sequential(RMSNorm(d, 1e-5), Linear(d, projector, bias=False), ReLU2(),
                                  Linear(projector, lm["hidden"], bias=False))
        self._start(lm, vit)

    def _start(self, lm, vit):
        out = 1 / math.sqrt(2 * len(lm["pattern"]))
        for name, p in self.named_parameters():
            if p.ndim == 2 and "embeddings" not in name and "cls_token" not in name:
                nn.init.normal_(p, std=p.shape[1] ** -0.5)
                if name.endswith(("out_proj.weight", "o_proj.weight", "down_proj.weight")):
                    p.data *= out
                if name.endswith(("attn.proj.weight", "fc2.weight")):
                    p.data *= 0.3
            if name.endswith("bias") and "dt_bias" not in name:
                nn.init.zeros_(p)
        nn.init.normal_(self.language_model.backbone.embeddings.weight, std=0.5)
        nn.init.normal_(self.language_model.lm_head.weight, std=0.3 * lm["hidden"] ** -0.5)
        wire_neighbours(self.vit, vit)

    @property
    def vit(self):
        return self.vision_model.radio_model.model

    def see(self, patches):
        """[B,1024,768] normalised patches -> ViT rows [B,1024,d] fp32."""
        return self.vit(patches)

    def project(self, rows, dt):
        y = self.mlp1[0](shuffle2(rows), dt)
        return self.mlp1[3](self.mlp1[2](self.mlp1[1](y))).float()

    def embed(self, ids, picture):
        """Embedding rows, with the rows of `picture` [B,256,D] at the <image> positions."""
        h = self.language_model.backbone.embeddings(ids)
        if picture is None:
            return h
        at = ids == IMAGE
        return h.masked_scatter(at[..., None], picture)

    def forward(self, ids, patches, dt=torch.float32):
        picture = None if patches is None else self.project(self.see(patches.to(dt)), dt)
        return self.language_model(self.embed(ids, picture), dt)

    def logits(self, f):
        return self.language_model.lm_head(f)


class ReadingHead(nn.Module):
    """Training only: from a patch's row, the characters of its cell and of its neighbours."""
    def __init__(self, d, offsets, classes):
        super().__init__()
        self.norm, self.offsets = nn.LayerNorm(d), offsets
        self.out = Linear(d, len(offsets) * classes)

    def forward(self, rows):                            # -> [B, n, offsets, classes]
        y = self.out(self.norm(rows).to(torch.bfloat16))
        return y.view(*y.shape[:-1], len(self.offsets), -1)


# ---- initial values that know the grid ------------------------------------------------------

def sinusoid(d):
    """[1024, d]: the first half of d turns with the row, the second with the column."""
    n = d // 4
    w = math.pi / GRID * torch.exp(torch.linspace(0, math.log(GRID * 0.9), n))
    r = torch.arange(GRID * GRID) // GRID
    c = torch.arange(GRID * GRID) % GRID
    ang = [t[:, None] * w for t in (r, c)]
    return torch.cat([f(a) for a in ang for f in (torch.cos, torch.sin)], 1)


def wire_neighbours(vit, c, width=None):
    """Positions fill the last `width` channels as a sinusoid; in the first blocks every head's
    query is its own position turned by an offset, so that the head starts by looking there."""
    d, heads = c["hidden"], c["heads"]
    width = width or d // 2
    table = sinusoid(width)
    gen = vit.patch_generator
    gen.pos_embed.data[:] = 0.02 * torch.randn(GRID * GRID, d)
    gen.pos_embed.data[0, :, d - width:] = table
    gen.embedder.weight.data[d - width:] *= 0.1
    moves = [[(1, 0), (-1, 0)], [(0, 1), (0, -1)], [(0, 2), (0, -2)]]
    for block, offsets in zip(vit.blocks, moves):
        p = d // heads
        for h in range(heads):
            dr, dc = offsets[h % len(offsets)]
            turn = _turn(width, dr, dc)                 # table[m + offset] = table[m] @ turn
            pick = torch.linalg.qr(torch.randn(width, min(p, width)))[0] if width > p \
                else torch.eye(width)
            q, k = block.attn.qkv.weight.data[:d], block.attn.qkv.weight.data[d:2 * d]
            gain = 9.0 * (width / p) ** 0.5
            rows = slice(h * p, h * p + pick.shape[1])
            q[rows] *= 0.1
            k[rows] *= 0.1
            q[rows, d - width:] += gain ** 0.5 * (turn @ pick).T
            k[rows, d - width:] += gain ** 0.5 * pick.T


def _turn(width, dr, dc):
    """The linear map that moves a sinusoid by (dr, dc)."""
    n = width // 4
    w = math.pi / GRID * torch.exp(torch.linspace(0, math.log(GRID * 0.9), n))
    m = torch.zeros(width, width)
    for half, step in ((0, dr), (1, dc)):
        o = half * 2 * n
        for i in range(n):
            co, si = math.cos(w[i] * step), math.sin(w[i] * step)
            m[o + i, o + i], m[o + n + i, o + i] = co, -si      # cos(a+b) = cos a cos b - sin a sin b
            m[o + i, o + n + i], m[o + n + i, o + n + i] = si, co
    return m


# ---- config.json ----------------------------------------------------------------------------

def config_json(shape):
    lm, vit = shape["lm"], shape["vit"]
    return {
        "architectures": ["NemotronH_Nano_VL_V2"], "model_type": "NemotronH_Nano_VL_V2",
        "torch_dtype": "bfloat16",
        "force_image_size": SIDE, "patch_size": PATCH, "downsample_ratio": 0.5, "ps_version": "v2",
        "image_tag_type": "internvl", "use_thumbnail": True, "template": "pocket",
        "vit_hidden_size": vit["hidden"], "projector_hidden_size": shape["projector"],
        "norm_mean": list(MEAN), "norm_std": list(STD),
        "img_context_token_id": IMAGE, "img_context_token": "<image>",
        "img_start_token": "<img>", "img_end_token": "</img>",
        "bos_token_id": ADDED["<s>"], "eos_token_id": ADDED["<SPECIAL_12>"],
        "llm_config": {
            "architectures": ["NemotronHForCausalLM"], "model_type": "nemotron_h",
            "torch_dtype": "bfloat16",
            "hybrid_override_pattern": lm["pattern"], "num_hidden_layers": len(lm["pattern"]),
            "vocab_size": lm.get("vocab", VOCAB), "hidden_size": lm["hidden"], "intermediate_size": lm["mlp"],
            "num_attention_heads": lm["heads"], "num_key_value_heads": lm["kv_heads"],
            "head_dim": lm["head_dim"], "attention_bias": False, "attention_dropout": 0.0,
            "mlp_bias": False, "mlp_hidden_act": "relu2", "use_bias": False,
            "mamba_num_heads": lm["mamba_heads"], "mamba_head_dim": lm["mamba_head_dim"],
            "ssm_state_size": lm["state"], "n_groups": lm["groups"], "conv_kernel": lm["conv"],
            "use_conv_bias": True, "chunk_size": lm["chunk"], "expand": 2,
            "mamba_hidden_act": "silu", "mamba_proj_bias": False, "mamba_ssm_cache_dtype": "float32",
            "time_step_min": 0.001, "time_step_max": 0.1, "time_step_floor": 0.0001,
            "time_step_limit": [0.0, {"__float__": "Infinity"}],
            "layer_norm_epsilon": lm["eps"], "residual_in_fp32": False,
            "rescale_prenorm_residual": True, "tie_word_embeddings": False,
            "max_position_embeddings": 8192,
            "bos_token_id": 1, "eos_token_id": 12, "pad_token_id": 0,
        },
        "vision_config": {
            "model_type": "radio", "version": "pocket", "torch_dtype": "bfloat16",
            "hidden_size": vit["hidden"], "num_hidden_layers": vit["blocks"],
            "num_attention_heads": vit["heads"], "intermediate_size": vit["mlp"],
            "patch_size": PATCH, "max_resolution": SIDE, "preferred_resolution": [SIDE, SIDE],
            "args": {"model": "vit_pocket_patch16", "cpe_max_size": SIDE,
                     "cls_token_per_teacher": True, "register_multiple": vit["skip"],
                     "teachers": [{"name": "pages"}], "model_norm": False},
        },
    }


def shape_of(config):
    """The inverse of config_json: what `Pocket(**shape)` needs."""
    t, v = config["llm_config"], config["vision_config"]
    lm = dict(pattern=t["hybrid_override_pattern"], hidden=t["hidden_size"],
              mlp=t["intermediate_size"], heads=t["num_attention_heads"],
              kv_heads=t["num_key_value_heads"], head_dim=t["head_dim"],
              mamba_heads=t["mamba_num_heads"], mamba_head_dim=t["mamba_head_dim"],
              state=t["ssm_state_size"], groups=t["n_groups"], conv=t["conv_kernel"],
              chunk=t["chunk_size"], eps=t["layer_norm_epsilon"])
    vit = dict(hidden=v["hidden_size"], blocks=v["num_hidden_layers"],
               heads=v["num_attention_heads"], mlp=v["intermediate_size"],
               skip=v["args"]["register_multiple"], eps=1e-6)
    return dict(lm=lm, vit=vit, projector=config["projector_hidden_size"])
