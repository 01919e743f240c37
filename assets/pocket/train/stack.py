"""The language model's forward and backward pass by hand, as tower.py has the tower's.

Design.  Products are torch's, in bf16 or, where the processor has no such products, in fp32 (`HALF`); everything between
them is kernels_lm.c, and gradients of matrices in bf16 are kernels_amx.c; autograd made five passes over memory for each of
ours and spent a fifth of a step in products.
The residual stream is fp32.  Norms have no weights: those of the shipped model are multiplied into the
product that follows (`fold`), and they are exported as ones.  Attention (two of seven kinds of work) is
left to model.Attend under a small graph of its own, since the hints need its queries and keys.

Sizes of a Mamba-2 sub-layer are those of the pocket model, fixed in kernels_lm.c.  Run as a program: compared with
model.Language under autograd, and timed.
"""

import math

import torch

import dialect  # noqa: F401  puts the folder above on the path
import tokenizer
from kernels import PRODUCTS, TILES, call
from model import Attend

HALF = PRODUCTS
LAYER = "language_model.backbone.layers.{}.{}"
EMBED, HEAD = "language_model.backbone.embeddings.weight", "language_model.lm_head.weight"


def fold(views, pattern):
    """Multiplies every norm's weights into the products that follow it, and makes them ones."""
    after = {"M": ["in_proj"], "*": ["q_proj", "k_proj", "v_proj"], "-": ["up_proj"]}
    pairs = [("language_model.backbone.norm_f.weight", [HEAD]), ("mlp1.0.weight", ["mlp1.1.weight"])]
    for i, kind in enumerate(pattern):
        pairs.append(
            (LAYER.format(i, "norm.weight"), [LAYER.format(i, f"mixer.{n}.weight") for n in after[kind]])
        )
        if kind == "M":
            pairs.append((LAYER.format(i, "mixer.norm.weight"), [LAYER.format(i, "mixer.out_proj.weight")]))
    for norm, products in pairs:
        for p in products:
            views[p].mul_(views[norm])
        views[norm].fill_(1)


class Stack:
    """`flat`, `half`, `grads`: views of the fp32 and bf16 parameters and of this worker's gradients."""

    def __init__(self, c, flat, half, grads):
        self.c, self.flat, self.half, self.g = c["lm"], flat, half, grads
        self.d, self.pattern = self.c["hidden"], self.c["pattern"]

    def _grad(self, name, dy, u, ld=None, m=None):
        """Gradient of a matrix [m, k]; dy [N, m] may be the first columns of rows of `ld`."""
        m = m or dy.shape[1]
        if TILES:
            call("matrix_grad", dy, ld or dy.shape[1], u, self.g[name], len(u), m, u.shape[1])
        else:
            self.g[name][:m].addmm_(dy[:, :m].t(), u)

    # ---- sub-layers: each takes u (normed rows) and gives what is added to the stream, keeping what it
    # needs in `s`

    def _mamba(self, i, u, s):
        w = lambda n: LAYER.format(i, "mixer." + n)
        B, T, N = self.B, self.T, len(u)
        zx = s["zx"] = u @ self.half[w("in_proj.weight")].t()
        s["taps"] = self.flat[w("conv1d.weight")][:, 0].t().contiguous()
        v, y, q = (torch.empty(N, n, dtype=HALF) for n in (768, 512, 512))
        states, r = torch.empty(B, 8, T // 64, 64, 64, dtype=HALF), torch.empty(N, 2)
        s["a"] = -self.flat[w("A_log")].exp()
        call("lm_filter", zx, s["taps"], self.flat[w("conv1d.bias")], v, B, T)
        call("lm_scan", v, zx, self.flat[w("dt_bias")], s["a"], self.flat[w("D")], y, states, B, T)
        call("lm_gate", y, zx, q, r, N, 1e-5)
        s |= dict(v=v, y=y, q=q, states=states, r=r)
        return q @ self.half[w("out_proj.weight")].t()

    def _mamba_back(self, i, dy, u, s):
        w = lambda n: LAYER.format(i, "mixer." + n)
        B, T, N = self.B, self.T, len(u)
        self._grad(w("out_proj.weight"), dy, s["q"])
        dq = dy @ self.half[w("out_proj.weight")]
        dzx, dv, dyy = (
            torch.empty(N, 1288, dtype=HALF),
            torch.empty(N, 768, dtype=HALF),
            torch.empty(N, 512, dtype=HALF),
        )
        call("lm_gate_back", s["y"], s["zx"], s["q"], s["r"], dq, dyy, dzx, N)
        da, taps = torch.zeros(8), torch.zeros(4, 768)
        call(
            "lm_scan_back",
            s["v"],
            s["zx"],
            self.flat[w("dt_bias")],
            s["a"],
            self.flat[w("D")],
            s["states"],
            dyy,
            dv,
            dzx,
            self.g[w("dt_bias")],
            da,
            self.g[w("D")],
            torch.empty(2, T, 64),
            B,
            T,
        )
        self.g[w("A_log")].add_(da * s["a"])
        call(
            "lm_filter_back",
            s["zx"],
            s["taps"],
            self.flat[w("conv1d.bias")],
            dv,
            dzx,
            taps,
            self.g[w("conv1d.bias")],
            B,
            T,
        )
        self.g[w("conv1d.weight")][:, 0].add_(taps.t())
        self._grad(w("in_proj.weight"), dzx, u, 1288, 1280)
        self.g[w("in_proj.weight")][1280:].add_((dzx[:, 1280:].t() @ u).float())
        return dzx @ self.half[w("in_proj.weight")]

    def _attention(self, i, u, s):
        w = lambda n: LAYER.format(i, f"mixer.{n}.weight")
        c, B, T = self.c, self.B, self.T
        p = c["head_dim"]
        with torch.enable_grad():
            s["leaves"] = [(u @ self.half[w(n)].t()).requires_grad_() for n in ("q_proj", "k_proj", "v_proj")]
            q, k, v = (t.view(B, T, -1, p).transpose(1, 2) for t in s["leaves"])
            k, v = (t.repeat_interleave(c["heads"] // c["kv_heads"], 1) for t in (k, v))
            s["seen"] = (q, k)
            s["out"] = Attend.apply(q * p**-0.5, k, v, True).transpose(1, 2).reshape(B * T, -1)
        return s["out"].detach() @ self.half[w("o_proj")].t()

    def _attention_back(self, i, dy, u, s):
        w = lambda n: LAYER.format(i, f"mixer.{n}.weight")
        self._grad(w("o_proj"), dy, s["out"].detach())
        s["out"].backward(dy @ self.half[w("o_proj")])
        du = None
        for n, leaf in zip(("q_proj", "k_proj", "v_proj"), s["leaves"]):
            g = leaf.grad.contiguous()
            self._grad(w(n), g, u)
            du = g @ self.half[w(n)] if du is None else du.addmm_(g, self.half[w(n)])
        return du

    def _mlp(self, i, u, s):
        s["up"] = u @ self.half[LAYER.format(i, "mixer.up_proj.weight")].t()
        s["g"] = torch.empty_like(s["up"])
        call("lm_square", s["up"], s["g"], s["up"].numel())
        return s["g"] @ self.half[LAYER.format(i, "mixer.down_proj.weight")].t()

    def _mlp_back(self, i, dy, u, s):
        up, down = (LAYER.format(i, f"mixer.{n}.weight") for n in ("up_proj", "down_proj"))
        self._grad(down, dy, s["g"])
        g = dy @ self.half[down]
        call("lm_square_back", g, s["up"], g.numel())
        self._grad(up, g, u)
        return g @ self.half[up]

    # ---- the whole

    @torch.no_grad()
    def forward(self, ids, rows):
        """ids [B, T], rows [n, 768] of the image tokens, of any scale: the final norm's rows [B, T, d]."""
        B, T0 = ids.shape
        self.B, self.T, self.T0 = B, T0 + -T0 % 64, T0
        self.ids = torch.zeros(B, self.T, dtype=torch.long)
        self.ids[:, :T0] = ids
        self.ids = self.ids.view(-1)
        self.image = (self.ids == tokenizer.IMAGE).nonzero()[:, 0]
        r = rows.float()
        self.rms = (r.square().mean(1, keepdim=True) + 1e-5).rsqrt()
        self.p0 = (r * self.rms).to(HALF)
        self.p1 = self.p0 @ self.half["mlp1.1.weight"].t()
        self.p2 = torch.empty_like(self.p1)
        call("lm_square", self.p1, self.p2, self.p1.numel())
        x = self.flat[EMBED][self.ids]
        self.picture = (self.p2 @ self.half["mlp1.3.weight"].t()).float()  # rows of the image tokens [n, d]
        x[self.image] = self.picture
        N, delta, self.saved = len(x), None, []
        for i, kind in enumerate(self.pattern):
            u, r = torch.empty(N, self.d, dtype=HALF), torch.empty(N)
            call("lm_norm", x, delta, u, r, N, self.d, self.c["eps"])
            s = {"u": u, "rn": r}
            delta = {"M": self._mamba, "*": self._attention, "-": self._mlp}[kind](i, u, s)
            self.saved.append(s)
        self.u, self.r = torch.empty(N, self.d, dtype=HALF), torch.empty(N)
        call("lm_norm", x, delta, self.u, self.r, N, self.d, self.c["eps"])
        return self.u.view(B, self.T, self.d)[:, :T0]

    def seen(self, layer):
        """Queries and keys [B, heads, T, p] of an attention sub-layer, for the hints."""
        return self.saved[layer]["seen"]

    @torch.no_grad()
    def backward(self, du, dpicture):
        """`du` [B, T, d]: the gradient of what forward gave, `dpicture` [n, d] one more of the image tokens' rows; all
        others are added to the worker's."""
        N, d = self.B * self.T, self.d
        first = torch.zeros(self.B, self.T, d, dtype=HALF)
        first[:, : self.T0] = du
        dx, dxh = torch.zeros(N, d), torch.empty(N, d, dtype=HALF)
        call("lm_norm_back", dx, first.view(N, d), self.u, self.r, dxh, N, d)
        for i in reversed(range(len(self.pattern))):
            s = self.saved[i]
            back = {"M": self._mamba_back, "*": self._attention_back, "-": self._mlp_back}[self.pattern[i]]
            call("lm_norm_back", dx, back(i, dxh, s["u"], s), s["u"], s["rn"], dxh, N, d)
            self.saved[i] = None
        dp = dxh[self.image] + dpicture.to(HALF)
        dx[self.image] = 0
        self.g[EMBED].index_add_(0, self.ids, dx)
        self.g["mlp1.3.weight"].add_((dp.t() @ self.p2).float())
        self.dp1 = dp @ self.half["mlp1.3.weight"]
        call("lm_square_back", self.dp1, self.p1, self.dp1.numel())
        self.g["mlp1.1.weight"].add_((self.dp1.t() @ self.p0).float())

    @torch.no_grad()
    def backward_rows(self):
        """After backward: the gradient of the image tokens' rows [n, 768], for a tower that is trained too."""
        d, p = (self.dp1 @ self.half["mlp1.1.weight"]).float(), self.p0.float()
        return self.rms * (d - p * (d * p).mean(1, keepdim=True))


def _compare(T=300, B=2):
    import time
    import language
    from tower import Layout

    c = language.SHAPE
    torch.manual_seed(1)
    model = language.Wide(c)
    layout = Layout({n: tuple(p.shape) for n, p in model.named_parameters()})
    flat, grads = torch.zeros(layout.size), torch.zeros(layout.size)
    views = layout.views(flat)
    for n, p in model.named_parameters():
        if p.ndim == 2 and "embeddings" not in n:
            torch.nn.init.normal_(p, std=p.shape[1] ** -0.5)
        views[n].copy_(p.detach())
    fold(views, c["lm"]["pattern"])
    half = layout.views(flat.to(HALF))
    for n, p in model.named_parameters():  # the same weights, rounded alike, products in fp32
        p.data = half[n].float() if p.ndim == 2 and n != EMBED else views[n].clone()
    stack = Stack(c, views, half, layout.views(grads))
    ids = torch.randint(16, 270, (B, T))
    ids[:, 20:60] = tokenizer.IMAGE
    rows = torch.randint(-127, 128, (B * 40, 768)).float().requires_grad_()
    language.HALF = torch.float32
    want, got = model(ids, rows), stack.forward(ids, rows.detach())
    print(f"forward {float((want - got).detach().norm() / want.detach().norm()):.4f}")
    du = torch.randn_like(want)
    want.backward(du)
    stack.backward(du, torch.zeros_like(stack.picture))
    print(f"rows {float((stack.backward_rows() - rows.grad).norm() / rows.grad.norm()):.4f}")
    mine = layout.views(grads)
    worst = sorted(
        (
            (float((mine[n] - p.grad).norm() / (p.grad.norm() + 1e-12)), n)
            for n, p in model.named_parameters()
            if p.grad is not None and "norm" not in n and n != "mlp1.0.weight"
        ),
        reverse=True,
    )
    print(
        "gradients, the worst: "
        + ", ".join(f"{v:.3f} {n.replace('language_model.backbone.layers.', '')}" for v, n in worst[:6])
    )
    ids, rows = torch.randint(16, 270, (4, 768)), torch.randint(-127, 128, (4 * 200, 768), dtype=torch.int8)
    ids[:, 20:220] = tokenizer.IMAGE
    for k in range(4):
        if k == 1:
            a = time.thread_time()
        stack.forward(ids, rows)
        stack.backward(torch.randn(4, 768, 256), torch.zeros_like(stack.picture))
    s = (time.thread_time() - a) / 3
    n = sum(math.prod(v) for name, v in layout.shapes.items() if len(v) == 2 and name not in (EMBED, HEAD))
    print(f"{4 * 768 / s:.0f} tokens/s, {6 * n * 4 * 768 / s / 1e9:.0f} GFLOP/s in matrices")


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    _compare()
