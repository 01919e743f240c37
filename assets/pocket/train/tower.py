"""The tower's forward and backward pass by hand, for one worker process of one thread.

Design.  Products are torch's (bf16), everything between them is one call of kernels.c, and all memory is
allocated once for a fixed number of crops of a fixed number of tokens.  The residual stream is fp32.  The
norms have no weights of their own: the product after a norm can say the same (they are exported as ones
and zeros).  Positions are a fixed sinusoid over a table of 64 x 64 patches, a crop starts anywhere in it;
nothing is learned about a place, so every place and size is alike.

    x = [prefix ; patches W + position];  per block  x += proj(attend(norm x));  x += fc2(gelu(fc1(norm x)))

Parameters live in one flat vector (`Layout`), so that workers share them and their gradients are added up
in one call.  Names are those of model.Vit; `state_dict` gives what `model.Vit.load_state_dict` takes.
Run as a program: compared with model.Vit and autograd, and timed.
"""

import math
import sys
import time
import pathlib

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from kernels import PRODUCTS, TILES, call  # noqa: E402

HALF = PRODUCTS
TABLE = 64  # patches a side of the position table: 1024 pixels
MARKS = 64  # channels that hold the position


class Layout:
    """Names and shapes in one flat vector."""

    def __init__(self, shapes):
        self.shapes, self.at, n = shapes, {}, 0
        for name, shape in shapes.items():
            self.at[name] = n
            n += -(-math.prod(shape) // 64) * 64
        self.size = n

    def views(self, flat):
        return {n: flat[a : a + math.prod(self.shapes[n])].view(self.shapes[n]) for n, a in self.at.items()}


def shapes(c):
    d, m = c["hidden"], c["mlp"]
    out = {"embedder": (d, 768), "prefix": (c["skip"], d)}
    for i in range(c["blocks"]):
        out |= {
            f"{i}.qkv": (3 * d, d),
            f"{i}.qkv_bias": (3 * d,),
            f"{i}.proj": (d, d),
            f"{i}.proj_bias": (d,),
            f"{i}.fc1": (m, d),
            f"{i}.fc1_bias": (m,),
            f"{i}.fc2": (d, m),
            f"{i}.fc2_bias": (d,),
        }
    return out


def sinusoid():
    """[64*64, MARKS]: for rows and for columns, cosines and sines of MARKS/4 frequencies up to 0.9 pi."""
    n = MARKS // 4
    w = math.pi / TABLE * torch.exp(torch.linspace(0, math.log(TABLE * 0.9), n))
    at = torch.arange(TABLE * TABLE)
    turns = [t[:, None] * w for t in (at // TABLE, at % TABLE)]
    return torch.cat([f(t) for t in turns for f in (torch.cos, torch.sin)], 1)


def positions(d):
    """[64*64, d]: the sinusoid in the last channels."""
    out = torch.zeros(TABLE * TABLE, d)
    out[:, d - MARKS :] = sinusoid()
    return out


NEIGHBOURS = [
    (0, 1),
    (0, -1),
    (1, 0),
    (-1, 0),
    (1, 1),
    (-1, -1),
    (1, -1),
    (-1, 1),
    (0, 2),
    (0, -2),
    (0, 1),
    (0, -1),
]


def start(p, c, seed):
    """Initial values: heads of the first blocks look at the patches around, one offset a head."""
    g = torch.Generator().manual_seed(seed)
    d, heads = c["hidden"], c["heads"]
    hd, n = d // heads, MARKS // 4
    for name, t in p.items():
        if t.ndim == 2:
            t.copy_(torch.randn(t.shape, generator=g) * t.shape[1] ** -0.5)
            if name.endswith((".proj", ".fc2")):
                t.mul_(0.3)
        else:
            t.zero_()
    p["prefix"].copy_(torch.randn(p["prefix"].shape, generator=g) * 0.02)
    p["embedder"][d - MARKS :].mul_(0.1)
    w = math.pi / TABLE * torch.exp(torch.linspace(0, math.log(TABLE * 0.9), n))
    for block in range(min(3, c["blocks"])):
        for h in range(heads):
            dr, dc = NEIGHBOURS[(block * heads + h) % len(NEIGHBOURS)]
            q, k = p[f"{block}.qkv"][:d], p[f"{block}.qkv"][d : 2 * d]
            pick = range(
                h % 2 if hd < MARKS else 0, n, 2 if hd < MARKS else 1
            )  # every other frequency fits into 32 channels
            rows = slice(h * hd, (h + 1) * hd)
            q[rows] *= 0.1
            k[rows] *= 0.1
            for axis, step in ((0, dr), (1, dc)):
                for j, f in enumerate(pick):
                    co, si = d - MARKS + axis * 2 * n + f, d - MARKS + axis * 2 * n + n + f
                    a, b = h * hd + 4 * j + 2 * axis, h * hd + 4 * j + 2 * axis + 1
                    gain = 2.2
                    k[a, co] += gain
                    k[b, si] += gain
                    q[a, co] += gain * math.cos(w[f] * step)
                    q[a, si] -= gain * math.sin(w[f] * step)
                    q[b, co] += gain * math.sin(w[f] * step)
                    q[b, si] += gain * math.cos(w[f] * step)


class Tower:
    """`half`: views of the bf16 parameters; `grads`: views of this worker's fp32 gradients."""

    def __init__(self, c, half, grads, crops, tokens):
        self.c, self.w, self.g, self.B, self.n = c, half, grads, crops, tokens + c["skip"]
        d, m, H, N, n = c["hidden"], c["mlp"], c["heads"], crops * self.n, self.n
        self.p = d // H
        new = lambda *s: torch.empty(*s, dtype=HALF)
        self.tiles = TILES and self.p == 32 and self.n % 32 == 0  # kernels_amx.c does the attention
        self.patches = new(crops, tokens, 768)
        self.x, self.dx, self.dxh = torch.empty(N, d), torch.empty(N, d), new(N, d)
        self.saved = [
            dict(
                u1=new(N, d),
                r1=torch.empty(N),
                s=new(crops * H, n, n),
                y=new(N, d),
                u2=new(N, d),
                r2=torch.empty(N),
                a=new(N, m),
                g=new(N, m),
            )
            for _ in range(c["blocks"])
        ]
        for s in self.saved:
            s |= {"qkv": new(N, 3 * d)} if self.tiles else {name: new(crops * H, n, self.p) for name in "qkv"}
        self.qkv, self.rows, self.wide = new(N, 3 * d), new(N, d), new(N, m)
        if not self.tiles:
            self.heads, self.scores = [new(crops * H, n, self.p) for _ in range(3)], new(crops * H, n, n)
        self.table = positions(d)

    def forward(self, place):
        """`place` [crops, tokens]: rows of the position table.  Gives x [crops, skip + tokens, d] fp32
        (own memory)."""
        c, B, n, N = self.c, self.B, self.n, self.B * self.n
        d, H, p, skip = c["hidden"], c["heads"], self.p, c["skip"]
        x = self.x.view(B, n, d)
        x[:, :skip] = self.w["prefix"]
        x[:, skip:].copy_(self.table[place]).add_(self.patches @ self.w["embedder"].t())
        delta = None
        for i, s in enumerate(self.saved):
            w = lambda name: self.w[f"{i}.{name}"]
            call("add_norm", self.x, delta, s["u1"], s["r1"], N, d, 1e-6)
            qkv = torch.addmm(w("qkv_bias"), s["u1"], w("qkv").t(), out=s["qkv"] if self.tiles else self.qkv)
            if self.tiles:
                call("attend", qkv, s["s"], s["y"], B, n, H, p**-0.5)
            else:
                self._attend(qkv, s)
            torch.addmm(w("proj_bias"), s["y"], w("proj").t(), out=self.rows)
            call("add_norm", self.x, self.rows, s["u2"], s["r2"], N, d, 1e-6)
            torch.addmm(w("fc1_bias"), s["u2"], w("fc1").t(), out=s["a"])
            call("gelu", s["a"], s["g"], s["a"].numel())
            delta = torch.addmm(w("fc2_bias"), s["g"], w("fc2").t(), out=self.rows)
        self.x.add_(delta)
        return x

    def _attend(self, qkv, s):
        """Attention where there are no tiles, or heads are of another width."""
        B, n, H, p = self.B, self.n, self.c["heads"], self.p
        call("split_heads", qkv, s["q"], s["k"], s["v"], B, n, H, p, p**-0.5)
        torch.bmm(s["q"], s["k"].transpose(1, 2), out=s["s"])
        call("softmax", s["s"], B * H * n, n)
        torch.bmm(s["s"], s["v"], out=self.heads[0])
        call("turn_heads", self.heads[0], s["y"], B, n, H, p, 0)

    def _attend_back(self, s):
        """self.rows holds the gradient of what was attended; gives that of qkv."""
        B, n, H, p = self.B, self.n, self.c["heads"], self.p
        if self.tiles:
            call("attend_back", s["qkv"], s["s"], self.rows, self.qkv, B, n, H, p**-0.5)
            return
        q3, k3, v3 = self.heads
        call("turn_heads", self.rows, q3, B, n, H, p, 1)
        torch.bmm(s["s"].transpose(1, 2), q3, out=v3)
        torch.bmm(q3, s["v"].transpose(1, 2), out=self.scores)
        call("softmax_back", self.scores, s["s"], B * H * n, n)
        torch.bmm(self.scores, s["k"], out=q3)
        torch.bmm(self.scores.transpose(1, 2), s["q"], out=k3)
        call("join_heads", q3, k3, v3, self.qkv, B, n, H, p, p**-0.5)

    def _weight(self, name, dy, u):
        """Gradients of a product's matrix and bias."""
        if TILES and all(v % 32 == 0 for v in (*dy.shape, u.shape[1])):
            call("matrix_grad", dy, dy.shape[1], u, self.g[name], dy.shape[0], dy.shape[1], u.shape[1])
        else:
            self.g[name].add_(dy.t() @ u)
        call("column_sums", dy, self.g[name + "_bias"], dy.shape[0], dy.shape[1])

    def backward(self, dx):
        """`dx` like what forward gave; gradients are added to the worker's."""
        c, B, n, N = self.c, self.B, self.n, self.B * self.n
        d, skip = c["hidden"], c["skip"]
        self.dx.copy_(dx.view(N, d))
        self.dxh.copy_(self.dx)
        for i in reversed(range(c["blocks"])):
            s, w = self.saved[i], lambda name: self.w[f"{i}.{name}"]
            self._weight(f"{i}.fc2", self.dxh, s["g"])
            torch.mm(self.dxh, w("fc2"), out=self.wide)
            call("gelu_back", self.wide, s["a"], self.wide.numel())
            self._weight(f"{i}.fc1", self.wide, s["u2"])
            torch.mm(self.wide, w("fc1"), out=self.rows)
            call("norm_back", self.dx, self.rows, s["u2"], s["r2"], self.dxh, N, d)
            self._weight(f"{i}.proj", self.dxh, s["y"])
            torch.mm(self.dxh, w("proj"), out=self.rows)
            self._attend_back(s)
            self._weight(f"{i}.qkv", self.qkv, s["u1"])
            torch.mm(self.qkv, w("qkv"), out=self.rows)
            call("norm_back", self.dx, self.rows, s["u1"], s["r1"], self.dxh, N, d)
        first = self.dx.view(B, n, d)
        self.g["prefix"].add_(first[:, :skip].sum(0))
        d_rows = self.dxh.view(B, n, d)[:, skip:].reshape(-1, d)
        if TILES and len(d_rows) % 32 == 0:
            call(
                "matrix_grad", d_rows, d, self.patches.view(-1, 768), self.g["embedder"], len(d_rows), d, 768
            )
        else:
            self.g["embedder"].add_(d_rows.t() @ self.patches.view(-1, 768))


def state_dict(p, c):
    """Parameters by the names of model.Vit (with a position table of 64 x 64)."""
    d = c["hidden"]
    out = {
        "patch_generator.embedder.weight": p["embedder"],
        "patch_generator.cls_token.token": p["prefix"],
        "patch_generator.pos_embed": positions(d)[None],
    }
    for i in range(c["blocks"]):
        b = f"blocks.{i}."
        for ours, theirs in (
            ("qkv", "attn.qkv"),
            ("proj", "attn.proj"),
            ("fc1", "mlp.fc1"),
            ("fc2", "mlp.fc2"),
        ):
            out |= {f"{b}{theirs}.weight": p[f"{i}.{ours}"], f"{b}{theirs}.bias": p[f"{i}.{ours}_bias"]}
        for norm in ("norm1", "norm2"):
            out |= {f"{b}{norm}.weight": torch.ones(d), f"{b}{norm}.bias": torch.zeros(d)}
    return {k: v.detach().clone().float() for k, v in out.items()}


def apply(p, c, patches, rows, cols, dt=PRODUCTS, table=None):
    """Rows of the tower for whole pictures [B, rows*cols, 768], without gradients; `p` fp32 or bf16 views;
    `table` is that of the positions, if it was rounded."""
    d, H = c["hidden"], c["heads"]
    w = {k: v.to(dt) for k, v in p.items()}
    at = torch.arange(rows)[:, None] * TABLE + torch.arange(cols)
    table = positions(d) if table is None else table
    x = (patches.to(dt) @ w["embedder"].t()).float() + table[at.flatten()]
    x = torch.cat([w["prefix"].float().expand(len(x), -1, -1), x], 1)
    B, n, _ = x.shape
    norm = lambda t: torch.nn.functional.layer_norm(t, (d,), eps=1e-6).to(dt)
    for i in range(c["blocks"]):
        qkv = torch.addmm(w[f"{i}.qkv_bias"], norm(x).view(-1, d), w[f"{i}.qkv"].t()).view(B, n, 3, H, d // H)
        q, k, v = (t.contiguous() for t in qkv.permute(2, 0, 3, 1, 4))
        if dt == HALF == torch.bfloat16:  # kernels.c has it in bf16, as in training; the library's fused attention made a page of 720 patches take 58 ms, not 47
            seen = torch.matmul(q * (d // H) ** -0.5, k.transpose(2, 3))
            call("softmax", seen, B * H * n, n)
            y = (seen @ v).transpose(1, 2).reshape(-1, d)
        else:
            y = torch.nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(-1, d)
        x = x + torch.addmm(w[f"{i}.proj_bias"], y, w[f"{i}.proj"].t()).view(B, n, d)
        a = torch.nn.functional.gelu(torch.addmm(w[f"{i}.fc1_bias"], norm(x).view(-1, d), w[f"{i}.fc1"].t()))
        x = x + torch.addmm(w[f"{i}.fc2_bias"], a, w[f"{i}.fc2"].t()).view(B, n, d)
    return x[:, c["skip"] :]


SMALL = dict(hidden=128, blocks=3, heads=2, mlp=512, skip=4, eps=1e-6)
MIDDLE = dict(hidden=192, blocks=5, heads=6, mlp=768, skip=4, eps=1e-6)
LARGE = dict(hidden=256, blocks=6, heads=8, mlp=1024, skip=4, eps=1e-6)
TOWERS = {"128x3": SMALL, "192x5": MIDDLE, "256x6": LARGE}


def _compare(c, crops=2, tokens=156):
    """The largest relative differences to model.Vit in fp32 under autograd."""
    from model import VitBlock

    layout = Layout(shapes(c))
    flat = torch.zeros(layout.size)
    p = layout.views(flat)
    start(p, c, 1)
    for name, v in p.items():  # biases too must matter here
        if name.endswith("bias"):
            v.normal_(std=0.1)
    grads = torch.zeros(layout.size)
    t = Tower(c, layout.views(flat.to(HALF)), layout.views(grads), crops, tokens)
    t.patches.normal_()
    place = torch.randint(0, 4096, (crops, tokens))
    x = t.forward(place).clone()
    want = {k: v.requires_grad_() for k, v in state_dict(layout.views(flat.to(HALF).float()), c).items()}
    y = (
        t.patches.float() @ want["patch_generator.embedder.weight"].t()
        + want["patch_generator.pos_embed"][0][place]
    )
    y = torch.cat([want["patch_generator.cls_token.token"].expand(crops, -1, -1), y], 1)
    for i in range(c["blocks"]):
        block = VitBlock(c)
        mine = {k[len(f"blocks.{i}.") :]: v for k, v in want.items() if k.startswith(f"blocks.{i}.")}
        y = torch.func.functional_call(block, mine, (y, torch.float32))
    dx = torch.randn_like(x)
    y.backward(dx)
    t.backward(dx)
    print(f"forward {float((x - y.detach()).norm() / y.detach().norm()):.4f}")
    names = {"embedder": "patch_generator.embedder.weight", "prefix": "patch_generator.cls_token.token"}
    for i in range(c["blocks"]):
        for ours, theirs in (
            ("qkv", "attn.qkv"),
            ("proj", "attn.proj"),
            ("fc1", "mlp.fc1"),
            ("fc2", "mlp.fc2"),
        ):
            names |= {
                f"{i}.{ours}": f"blocks.{i}.{theirs}.weight",
                f"{i}.{ours}_bias": f"blocks.{i}.{theirs}.bias",
            }
    worst = max(
        (float((g - want[names[n]].grad).norm() / want[names[n]].grad.norm()), n)
        for n, g in layout.views(grads).items()
    )
    print(f"gradients: worst {worst[0]:.4f} at {worst[1]}")


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    for name, c in TOWERS.items():
        _compare(c)
        for crops in (8, 16):
            layout = Layout(shapes(c))
            t = Tower(
                c,
                layout.views(torch.zeros(layout.size, dtype=HALF)),
                layout.views(torch.zeros(layout.size)),
                crops,
                156,
            )
            flat = torch.zeros(layout.size)
            start(layout.views(flat), c, 1)
            t.w = layout.views(flat.to(HALF))
            t.patches.normal_()
            place, dx = torch.randint(0, 4096, (crops, 156)), torch.randn(crops, 160, c["hidden"])
            for k in range(8):
                if k == 3:
                    a = time.process_time()
                t.forward(place)
                if k == 7:
                    b = time.process_time()
                t.backward(dx)
            s = (time.process_time() - a) / 5
            flop = crops * 160 * (6 * layout.size + 12 * c["blocks"] * 160 * c["hidden"])
            print(
                f"{name} {layout.size / 1e6:.2f} M, {crops} crops: {s * 1e3:.1f} ms (forward {(s - (time.process_time() - b)) * 1e3:.1f}), "
                f"{crops * 156 / s:.0f} patches/s, {flop / s / 1e9:.0f} GFLOP/s"
            )
