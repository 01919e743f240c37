"""The passes of the joint run: tower and language model as functions of their parameters, under autograd.

    python joint_passes.py     compared with tower.apply and language.Wide, rows and gradients, on the CPU in fp32

Design.  What elements.py and language.py ask in turn is one loss that goes back through both: the answers' tokens with the
hints for heads; letters, kinds, states and places of patches.  Weights and the residual stream are fp32, products `HALF`.
Attention is the library's, and the scan of Mamba-2 is written as products of all chunks at once.  Nothing is made on the
host and sent to the card within a pass, since the card would have to be idle for that.  A sub-layer is a function of its
parameters, so that torch.compile makes it once for all of them; `PASSES` has the one that is used.
"""

import time

import torch
import torch.nn.functional as F
from torch import nn

import conversations  # puts the folder above on the path
import crops
import elements
import language
import reading
import tokenizer
import tower
from kernels import PRODUCTS

HALF = torch.bfloat16  # the type of products
AIM = 0.3  # of the loss on what letters name, in terms of that on what they are
L = language.SHAPE["lm"]


def products(device):
    """Sets and gives the type of products: bf16 on a card, on a processor what it is quick in."""
    global HALF
    HALF = PRODUCTS if device.type == "cpu" else torch.bfloat16
    return HALF


# ---- the tower ------------------------------------------------------------------------------------------------------


class See(nn.Module):
    """The tower and what is asked of it in training; parameters have the names of elements.py's runs."""

    def __init__(self, c):
        super().__init__()
        self.c = c
        self.p = nn.ParameterDict({n.replace(".", "/"): nn.Parameter(torch.zeros(s)) for n, s in tower.shapes(c).items()})
        self.head, self.find, self.where = reading.Reader(c["hidden"]), elements.Finder(c["hidden"]), elements.Where(c["hidden"])
        self.aim = elements.Aim(c["hidden"])
        self.register_buffer("table", tower.positions(c["hidden"]))

    def named(self):
        out = {n.replace("/", "."): p for n, p in self.p.items()}
        for name, head in (("head", self.head), ("head.find", self.find), ("head.where", self.where), ("head.aim", self.aim)):
            out |= {f"{name}.{n}": p for n, p in head.named_parameters()}
        return out

    def forward(self, patches, rows, cols):
        c = self.c
        row, col = (torch.arange(n, device=patches.device) for n in (rows, cols))
        at = (row[:, None] * tower.TABLE + col).flatten()
        x = F.linear(patches, self.p["embedder"].to(HALF)).float() + self.table[at]
        x = torch.cat([self.p["prefix"].expand(len(x), -1, -1), x], 1)
        for i in range(c["blocks"]):
            x = PASSES["block"](x, *(self.p[f"{i}/{n}"] for n in BLOCK), c["heads"])
        return x[:, c["skip"] :], at

    def loss(self, x, at, batch):
        """Loss for each letter of the batch, and counts."""
        B, n, d = x.shape
        u, present, slots = self.head.norm(x).view(B * n, d), batch["present"], batch["slots"]
        want = present.view(B * n, -1)
        here = F.binary_cross_entropy_with_logits(self.head.present(u), (want == 1).float(), reduction="none")
        here = (here * (want != crops.UNKNOWN)).sum()
        rows = u[slots[..., 0]]  # [8, most, d]
        names = torch.bmm(rows.to(HALF), self.head.letter.to(HALF).transpose(1, 2)).float()
        which = F.cross_entropy(names.flatten(0, 1), slots[..., 1].flatten(), reduction="sum")
        known = slots[..., 1] >= 0
        weight, bias = self.head.shift.weight, self.head.shift.bias
        shift = (rows * weight[:, None]).sum(-1) + bias[:, None]
        off = ((shift - slots[..., 2] / 16.0).abs() * known).sum()
        kind, state, _ = self.find(x)
        kinds = F.cross_entropy(kind.flatten(0, 1), batch["kinds"].flatten(), reduction="sum", ignore_index=crops.NOT_ASKED)
        on = (batch["kinds"] > 0)[..., None]
        states = (F.binary_cross_entropy_with_logits(state, batch["states"], reduction="none") * on).sum()
        place = torch.stack([at // tower.TABLE, at % tower.TABLE], -1).expand(B, -1, -1)
        where = F.cross_entropy(self.where(x).flatten(0, 2), place.flatten(), reduction="sum")
        aim, aims = self.aim(u.view(B * n, d)[batch["aims"][:, 0]], batch["aims"][:, 1]), batch["offs"]
        away = F.smooth_l1_loss(aim, aims, reduction="sum", beta=0.25)
        letters = known.sum().clamp(min=1)
        total = (here + which + 0.2 * off + 0.3 * (kinds + states) + 0.2 * where) / letters + AIM * away / max(1, len(aims))
        right = ((names.argmax(-1) == slots[..., 1]) & known).sum()
        named = (kind.argmax(-1) == batch["kinds"])[..., None] & on
        aimed = ((aim - aims).abs().amax(-1) < 0.5).sum() if len(aims) else letters * 0
        more = dict(aimed=aimed, aims=torch.full_like(letters, len(aims)))
        return total, dict(letters=letters, read=right, kinds=on.sum(), kind=named.sum()) | more


def block(x, qkv, qkv_bias, proj, proj_bias, fc1, fc1_bias, fc2, fc2_bias, heads):
    """A block of the tower."""
    B, n, d = x.shape
    lin = lambda t, w, b: F.linear(t.to(HALF), w.to(HALF), b.to(HALF))
    q, k, v = lin(F.layer_norm(x, (d,), eps=1e-6), qkv, qkv_bias).view(B, n, 3, heads, d // heads).permute(2, 0, 3, 1, 4)
    y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(B, n, d)
    x = x + lin(y, proj, proj_bias)
    return x + lin(F.gelu(lin(F.layer_norm(x, (d,), eps=1e-6), fc1, fc1_bias)), fc2, fc2_bias)


def tokens_of(x, rows, cols):
    """Rows of patches [B, rows * cols, d] as those of image tokens [n, 4 d], each of two by two patches."""
    d = x.shape[-1]
    return x.view(len(x), rows // 2, 2, cols // 2, 2, d).permute(0, 1, 3, 2, 4, 5).reshape(-1, 4 * d)


# ---- the language model ---------------------------------------------------------------------------------------------


def scan(x, dt, a, B, C, Q):
    """model.scan with the states of all chunks at once: before chunk i is the sum over j < i of own state j, decayed."""
    b, T, H, P = x.shape
    G, N, n, ty = B.shape[2], B.shape[3], T // Q, x.dtype
    c = (dt * a).view(b, n, Q, H).transpose(2, 3).cumsum(-1)  # [b,n,H,Q]
    Bc, Cc = (t.view(b, n, Q, G, N).transpose(2, 3) for t in (B, C))  # [b,n,G,Q,N]
    cb = (Cc @ Bc.transpose(-1, -2)).repeat_interleave(H // G, 2)
    xc = (x * dt.to(ty)[..., None]).view(b, n, Q, H, P).transpose(2, 3)
    upper = torch.ones(Q, Q, dtype=torch.bool, device=x.device).triu(1)
    y = (cb * (c[..., :, None] - c[..., None, :]).masked_fill(upper, -torch.inf).exp().to(ty)) @ xc
    tail = (c[..., -1:] - c).exp().to(ty)
    own = xc.transpose(-1, -2) @ (Bc.repeat_interleave(H // G, 2) * tail[..., None])  # [b,n,H,P,N]
    end = c[..., -1].transpose(1, 2).cumsum(-1)  # [b,H,n]: decay from the beginning to each chunk's end
    gap = F.pad(end, (1, 0))[..., :n, None] - end[..., None, :]  # to the beginning of chunk i from the end of chunk j
    late = torch.ones(n, n, dtype=torch.bool, device=x.device).triu()
    decay = gap.masked_fill(late, -torch.inf).exp()  # [b,H,n,n]
    before = (decay.to(ty) @ own.transpose(1, 2).reshape(b, H, n, P * N)).view(b, H, n, P, N).transpose(1, 2)
    head = c.exp().to(ty)[..., None]
    y = y + head * (Cc.repeat_interleave(H // G, 2) @ before.transpose(-1, -2))
    return y.transpose(2, 3).reshape(b, T, H, P)


def normed(h):
    return (h * torch.rsqrt(h.square().mean(-1, keepdim=True) + L["eps"])).to(HALF)


def mamba(h, in_proj, taps, bias, dt_bias, A_log, D, out_proj):
    """A Mamba-2 sub-layer; the filter is four products."""
    b, T, _ = h.shape
    H, P, N, G = (L[k] for k in ("mamba_heads", "mamba_head_dim", "state", "groups"))
    inner, bc = H * P, G * N
    z, xbc, dt = F.linear(normed(h), in_proj.to(HALF)).split([inner, inner + 2 * bc, H], -1)
    w, padded = taps[:, 0].to(HALF), F.pad(xbc, (0, 0, L["conv"] - 1, 0))
    v = F.silu(sum((padded[:, k : k + T] * w[:, k] for k in range(L["conv"])), bias.to(HALF)))
    x, B, C = v.split([inner, bc, bc], -1)
    x, B, C = x.reshape(b, T, H, P), B.reshape(b, T, G, N), C.reshape(b, T, G, N)
    y = scan(x, F.softplus(dt.float() + dt_bias), -A_log.exp(), B, C, L["chunk"])
    y = y + x * D.to(HALF)[:, None]
    q = (y.reshape(b, T, inner) * F.silu(z)).view(b, T, G, inner // G).float()
    q = (q * torch.rsqrt(q.square().mean(-1, keepdim=True) + L["eps"])).to(HALF)
    return h + F.linear(q.view(b, T, inner), out_proj.to(HALF))


def attention(h, q_proj, k_proj, v_proj, o_proj):
    """(h and what attention adds, queries, keys) [B, heads, T, p]."""
    b, T, _ = h.shape
    u = normed(h)
    q, k, v = (F.linear(u, w.to(HALF)).view(b, T, -1, L["head_dim"]).transpose(1, 2) for w in (q_proj, k_proj, v_proj))
    k, v = (t.repeat_interleave(L["heads"] // L["kv_heads"], 1) for t in (k, v))
    y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return h + F.linear(y.transpose(1, 2).reshape(b, T, -1), o_proj.to(HALF)), q, k


def mlp(h, up, down):
    return h + F.linear(F.relu(F.linear(normed(h), up.to(HALF))).square(), down.to(HALF))


# ---- both -----------------------------------------------------------------------------------------------------------


PASSES = {f.__name__: f for f in (mamba, attention, mlp, block)}
PLAIN = dict(PASSES)
NAMES = {
    "M": ("in_proj.weight", "conv1d.weight", "conv1d.bias", "dt_bias", "A_log", "D", "out_proj.weight"),
    "*": ("q_proj.weight", "k_proj.weight", "v_proj.weight", "o_proj.weight"),
    "-": ("up_proj.weight", "down_proj.weight"),
}
BLOCK = ("qkv", "qkv_bias", "proj", "proj_bias", "fc1", "fc1_bias", "fc2", "fc2_bias")


class Joint(nn.Module):
    """Tower `see`, language model `say`, and what is asked of both; `spread` is language.spread's."""

    def __init__(self, c, shape, spread):
        super().__init__()
        self.see, self.say, self.shape = See(c), language.Wide(shape), shape
        self.where = nn.Parameter(torch.zeros(2 * language.MOST, shape["lm"]["hidden"]))
        mixers = [dict(layer.mixer.named_parameters()) for layer in self.say.language_model.backbone.layers]
        self.own = [[own[n] for n in NAMES[kind]] for own, kind in zip(mixers, shape["lm"]["pattern"])]
        soft = torch.eye(shape["lm"]["vocab"])
        lo, hi = conversations.COARSE[0], conversations.COARSE[-1] + 1
        soft[lo:hi, lo:hi] = spread
        self.register_buffer("soft", soft)

    def told(self):
        return dict(self.say.named_parameters()) | {language.WHERE: self.where}

    def read(self, ids, rows):
        """ids [B, T], the image tokens' rows [n, 768]: the final norm's rows [B, T, d]."""
        m = self.say.language_model
        u = (rows * torch.rsqrt(rows.square().mean(-1, keepdim=True) + 1e-5)).to(HALF)
        p = F.linear(u, self.say.mlp1[1].weight.to(HALF))
        self.picture = F.linear(F.relu(p).square(), self.say.mlp1[3].weight.to(HALF)).float()
        h = m.backbone.embeddings(ids).masked_scatter((ids == tokenizer.IMAGE)[..., None], self.picture)
        self.seen = {}
        for i, kind in enumerate(self.shape["lm"]["pattern"]):
            if kind == "*":
                h, *self.seen[i] = PASSES["attention"](h, *self.own[i])
            else:
                h = PASSES["mamba" if kind == "M" else "mlp"](h, *self.own[i])
        return normed(h)

    def logits(self, f):
        return F.linear(f, self.say.language_model.lm_head.weight.to(HALF))

    def guess(self, patches, batch):
        """The likeliest token behind each one of the batch."""
        rows, cols = (v // 16 for v in batch["size"])
        return self.logits(self.read(batch["ids"], tokens_of(self.see(patches, rows, cols)[0], rows, cols))).argmax(-1)

    def hints(self, batch):
        """Of each kind of hint: the loss of the told head, how many of its hints there are and how many are followed."""
        for slot, (layer, head) in language.TOLD.items():
            rows, keys = batch["hints"][slot].T
            q, k = (t[:, head] for t in self.seen[layer])
            late = torch.full((1, q.shape[1], q.shape[1]), -1e4, dtype=HALF, device=q.device).triu(1)
            seen = torch.baddbmm(late, q * q.shape[-1] ** -0.5, k.transpose(1, 2)).flatten(0, 1)[rows].float()
            counts = {f"hint{slot}": (seen.argmax(-1) == keys).sum(), f"hints{slot}": torch.ones_like(keys).sum()}
            yield F.cross_entropy(seen, keys, reduction="sum"), counts

    def forward(self, patches, batch):
        """(the language model's loss for each token of the answers, the eyes' for each letter, counts)."""
        rows, cols = (v // 16 for v in batch["size"])
        x, at = self.see(patches, rows, cols)
        eyes, counts = self.see.loss(x, at, batch)
        f = self.read(batch["ids"], tokens_of(x, rows, cols))
        logp, want = self.logits(f.flatten(0, 1)[batch["at"]]).float().log_softmax(-1), batch["want"]
        loss = -(self.soft[want] * logp).sum()
        hit = logp.argmax(-1) == want
        place = (want >= conversations.COARSE[0]) & (want <= conversations.COARSE[-1])
        counts |= dict(tokens=torch.ones_like(want).sum(), said=hit.sum(), lm=loss.detach(),
                       places=place.sum(), placed=(hit & place).sum())
        for hint, more in self.hints(batch):
            loss = loss + 0.5 * hint
            counts |= more
        y = F.linear(F.layer_norm(self.picture, self.picture.shape[-1:]), self.where).unflatten(-1, (2, language.MOST))
        grid = torch.cartesian_prod(*(torch.arange(n // 2, device=y.device) for n in (rows, cols))).repeat(len(x), 1)
        loss = loss + 0.05 * F.cross_entropy(y.flatten(0, 1), grid.flatten(), reduction="sum")
        return loss / len(want), eyes, counts


def compiled(joint, patches, batch, grads, weight, tell):
    """The passes by torch.compile, if it can and they give what the plain ones give: loss, the eyes' weighing so much, and
    the gradients' norm of a batch."""

    def tried():
        loss, eyes, _ = joint(patches(batch), batch)
        (loss + weight * eyes).backward()
        norm = torch.stack(torch._foreach_norm(grads)).norm()
        torch._foreach_zero_(grads)
        return float(loss.detach()), float(norm)

    start, plain = time.time(), tried()
    PASSES.update({n: torch.compile(f, dynamic=True) for n, f in PLAIN.items()})
    try:
        got = tried()
        same = all(abs(x - y) < 0.05 * abs(x) for x, y in zip(plain, got))
    except Exception as e:  # whatever a compiler can say: the plain passes are there
        got, same = str(e)[-300:], False
    if not same:
        PASSES.update(PLAIN)
    tell(compiled=same, plain=plain, got=got, seconds=round(time.time() - start, 1))


# ---- compared with the plain ones -----------------------------------------------------------------------------------


def compare(name, plain, ours, parameters):
    """Prints the largest relative difference of a row, and of a parameter's gradient under one random gradient of the rows."""
    rows, back = ((ours - plain).norm(dim=-1) / plain.norm(dim=-1)).max().detach(), torch.randn_like(plain)
    want, got = (torch.autograd.grad(x, list(parameters.values()), back, allow_unused=True) for x in (plain, ours))
    worst = max((float((g - w).norm() / w.norm()), n) for n, w, g in zip(parameters, want, got) if g is not None)
    print(f"{name}: rows {float(rows):.1e}, gradients {worst[0]:.1e} at {worst[1]}", flush=True)


def compare_tower(name, c, rows=8, cols=12):
    see = See(c)
    p = {n: v for n, v in see.named().items() if n in tower.shapes(c)}
    with torch.no_grad():
        tower.start(p, c, 1)
        for v in (v for n, v in p.items() if n.endswith("bias")):  # they too must matter here
            v.normal_(std=0.1)
    patches = torch.randn(2, rows * cols, 768)
    compare(f"tower {name}", tower.apply(p, c, patches, rows, cols, dt=HALF), see(patches, rows, cols)[0], p)


def compare_language(tokens=256):
    joint = Joint(tower.MIDDLE, language.SHAPE, language.spread(0.5))
    with torch.no_grad():
        for n, v in joint.say.named_parameters():
            if v.ndim == 2 and "embeddings" not in n:
                v.normal_(std=v.shape[1] ** -0.5)
            elif n.endswith(("conv1d.bias", "mixer.D")):
                v.normal_()
    ids, image = torch.randint(0, 256, (2, tokens)), torch.randn(2 * 16, 768, requires_grad=True)
    ids[:, 20:36] = tokenizer.IMAGE
    parameters = dict(joint.say.named_parameters()) | {"the image tokens": image}
    compare("language model", joint.say(ids, image), joint.read(ids, image), parameters)


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.manual_seed(1)
    HALF = language.HALF = torch.float32
    for name, c in tower.TOWERS.items():
        compare_tower(name, c)
    compare_language()
