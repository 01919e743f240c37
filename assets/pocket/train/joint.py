"""Eyes and language model at once, on a graphics card: minutes there are days of two processor cores.

    python joint.py --packs DIR --out DIR --eyes ../wide/eyes.safetensors --language ../wide/language20.safetensors \
        --layers 20 --seconds 240

Design.  Nothing is cached: a batch is whole pictures of one size, seen by the tower and read by the language model, and one
loss goes back through both.  It is the sum of what the stages ask one after the other: the answers' tokens with the hints
for heads (language.py), letters, kinds and states and places of patches (reading.py, elements.py).  Pictures come packed
(pack.py), lie on the card as RGB, and are normalised there.  Processes draw conversations beside it; what they hand over has
every index that the card needs, so that nothing on the card waits for the host.

A batch has one size of picture, so that attention needs no mask; a step has several batches.  Passes are autograd's, in bf16
with fp32 weights, attention is the library's, the scan of Mamba-2 is written as products of all chunks at once.  The rate is
warm for a few steps and falls along a cosine of seconds.  Screens whose file begins with "gate" are only judged.

DIR gets eyes.safetensors and language.safetensors (weights.py; more than 15 MB in parts) and log.jsonl.
"""

import argparse
import collections
import json
import math
import multiprocessing.pool
import os
import pathlib
import random
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

import crops
import elements
import language
import pack
import questions
import reading
import runner
import stages
import tokenizer
import tower
import weights
from model import MEAN, STD

HALF = torch.bfloat16
AS_USED = (480, 640)  # states of pages on a screen of this size are taken twice as often
SIZES = [(256, 448), (256, 640), (384, 448), (384, 640), (480, 480), (256, 896), (384, 896), (480, 640), (640, 480), (480, 896), (640, 640),
         (640, 896), (768, 1024), (1024, 1024)]  # of still screens, the first in which one fits
LARGEST = 640 * 896  # more is judged, and not trained on: a batch of it would take the card's memory


# ---- screens --------------------------------------------------------------------------------------------------------


def size_of(about, h, w):
    """(scale, height, width) of a picture as it is shown: small ones enlarged, still ones padded to few sizes."""
    scale = 1.0
    if h * w * crops.ENLARGE**2 <= crops.AS_LARGE_AS and max(h, w) * crops.ENLARGE <= crops.LONGEST:
        scale, h, w = crops.ENLARGE, round(h * crops.ENLARGE), round(w * crops.ENLARGE)
    if about["world"] in ("played", "visited", "kiosk"):
        return scale, -(-h // 32) * 32, -(-w // 32) * 32
    return scale, *next(s for s in SIZES if h <= s[0] and w <= s[1])


def often(about, size):
    """How often a screen is taken, in terms of others."""
    if about["world"] == "played" and not about.get("real"):
        return 0 if about["page"] in stages.BY_HAND else 1
    return language.OFTEN.get(about["world"], 1) * (2 if size == AS_USED and about.get("real") else 1)


class Screens(language.Rows):
    """Packed screens as language.Rows has cached ones; `draw` gives a number in place of rows."""

    def __init__(self, files, gate=False, turns=5, beside=2, limit=1100):
        self.gate, self.limit, self.turns, self.beside = gate, limit, turns, min(turns, beside)
        self.about, self.letters, self.items, self.sizes, self.blocks = [], [], [], collections.defaultdict(list), []
        for path in files:
            p, at = pack.Packed(path), 0
            for k, (n, h, w) in enumerate(p.blocks):
                placed = []
                for j in range(at, at + n):
                    about = json.loads(p.about[j])
                    scale, *size = size_of(about, h, w)
                    number, l, i = len(self.about), p.letters[j].copy(), p.items[j].copy()
                    if scale != 1:
                        l[:, :4], i[:, :4] = (np.round(t[:, :4] * scale) for t in (l, i))
                    self.about.append(about | {"items": i.tolist()})
                    self.letters.append(l)
                    self.items.append(i)
                    placed.append((len(self.sizes[tuple(size)]), *size, scale))
                    self.sizes[tuple(size)].append(number)
                self.blocks.append((path, k, placed))
                at += n
        self.weight = {s: [often(self.about[n], s) for n in numbers] for s, numbers in self.sizes.items()}
        self.seed("begin")

    def seed(self, seed):
        self.random = random.Random(seed)
        self.lex = language.Lexicon(self.random, self.gate)

    def any(self):
        return self.random.choices(self.numbers, cum_weights=self.cumulative)[0], 0

    def screen(self, number, _):
        h, w = self.size
        return number, (h // 32, w // 32), self.letters[number], self.about[number]

    def choose(self, size=None):
        sizes = [s for s in self.sizes if s[0] * s[1] <= LARGEST]
        self.size = size or self.random.choices(sizes, [sum(self.weight[s]) for s in sizes])[0]
        self.numbers, w = self.sizes[self.size], self.weight[self.size]
        self.cumulative = np.cumsum(w).tolist()

    def batches(self, n, pools):
        """Batches of n conversations about screens of one size, of like length."""
        self.choose()
        drawn = sorted((self.draw() for _ in range(n * pools)), key=lambda d: len(d[1].ids))
        parts = [drawn[k : k + n] for k in range(0, n * pools, n)]
        self.random.shuffle(parts)
        for part in parts:
            yield self.batch(part)

    def batch(self, part):
        h, w = self.size
        T = -(-max(len(s.ids) for _, s in part) // 64) * 64
        ids, at, want, told = np.zeros((len(part), T), np.int16), [], [], []
        for b, (_, s) in enumerate(part):
            ids[b, : len(s.ids)] = s.ids
            on = np.flatnonzero(s.on)
            at.append(b * T + on - 1)
            want.append(np.array(s.ids)[on])
            told += [(b * T + q, slot, b, k) for q, slot, k in s.told]
        told = np.array(told, np.int64).reshape(-1, 4)
        hints = {slot: torch.from_numpy(told[told[:, 1] == slot][:, [0, 3]].copy()) for slot in language.TOLD}
        numbers = [n for n, _ in part]
        out = dict(size=self.size, ids=torch.from_numpy(ids), at=torch.from_numpy(np.concatenate(at)),
                   want=torch.from_numpy(np.concatenate(want)).long(), hints=hints, numbers=numbers)
        return out | self.shown(numbers, h // 16, w // 16)

    def shown(self, numbers, rows, cols):
        """What the eyes are asked about these pictures, and the colours that they are shown in."""
        present, slots, kinds, states, colours = [], [[] for _ in range(crops.SLOTS)], [], [], []
        for b, n in enumerate(numbers):
            p, l = crops.letter_targets(self.letters[n], np.zeros((0, 4), np.int16), 0, 0, rows, cols)
            still = self.about[n]["world"] in ("forms", "gtk", "qt", "tk", "miniwob")
            present.append(p)
            for s in range(crops.SLOTS):
                mine = l[l[:, 1] == s]
                slots[s].append(np.stack([mine[:, 0] + b * rows * cols, mine[:, 2], mine[:, 3]], 1))
            kind, state, _, _ = crops.item_targets(self.items[n], 0, 0, rows, cols)
            kinds.append(np.full(rows * cols, crops.NOT_ASKED) if self.about[n]["world"] == "kiosk" else kind)
            states.append(state)
            colours.append(self.colours(still and "action" not in self.about[n]))
        slots = [np.concatenate(s) for s in slots]
        most = max(1, max(map(len, slots)))
        table = np.zeros((crops.SLOTS, most, 3), np.int64)
        table[..., 1] = -100
        for s, rows_ in enumerate(slots):
            table[s, : len(rows_)] = rows_
        return dict(present=torch.from_numpy(np.stack(present)), slots=torch.from_numpy(table),
                    kinds=torch.from_numpy(np.stack(kinds)).long(), states=torch.from_numpy(np.stack(states)),
                    colours=torch.tensor(colours))

    def colours(self, change):
        """Three channels' (source, gain, shift) of pixels from 0 to 1: mostly as they are."""
        out = [(c, 1.0, 0.0) for c in range(3)]
        if change and self.random.random() < 0.25:
            order, sign = self.random.sample(range(3), 3), self.random.choice((1, 1, 1, -1))
            for k, c in enumerate(order):
                a = self.random.uniform(0.6, 1.0)
                out[k] = (c, sign * a, self.random.uniform(0, 1 - a) + (a if sign < 0 else 0))
        return out


class Stream(torch.utils.data.IterableDataset):
    """Endless batches, each worker's own."""

    def __init__(self, screens, a):
        self.screens, self.a = screens, a

    def __iter__(self):
        torch.set_num_threads(1)
        me = torch.utils.data.get_worker_info()
        self.screens.seed(f"{self.a.seed}/{me.id if me else 0}")
        while True:
            yield from self.screens.batches(self.a.batch, self.a.pools)


def block_rgb(job):
    path, k, _ = job
    pixels, palette = pack.Packed.pictures(argparse.Namespace(path=path, blocks=BLOCKS[path]), k)
    return torch.from_numpy(pixels.copy()), torch.from_numpy(palette)


BLOCKS = {}


class Album:
    """All pictures on the card: size -> uint8 [n, h, w, 3]; (size, place) of each screen."""

    def __init__(self, screens, device, workers):
        self.at = {}
        for size, numbers in screens.sizes.items():
            self.at |= {n: k for k, n in enumerate(numbers)}
        self.rgb = {s: torch.empty(len(n), *s, 3, dtype=torch.uint8, device=device) for s, n in screens.sizes.items()}
        for path in {p for p, _, _ in screens.blocks}:
            BLOCKS[path] = json.loads(np.load(path)["blocks"].tobytes())
        jobs = multiprocessing.pool.ThreadPool(workers).imap(block_rgb, screens.blocks)
        for (_, _, placed), (pixels, palette) in zip(screens.blocks, jobs):
            pixels, palette = pixels.to(device), palette.to(device)
            for j in range(0, len(placed), 64):
                part = palette[pixels[j : j + 64].long()]
                for (k, h, w, scale), picture in zip(placed[j : j + 64], enlarge(part, placed[j][3])):
                    hp, wp = min(h, picture.shape[0]), min(w, picture.shape[1])
                    page = self.rgb[h, w][k]
                    page[:hp, :wp] = picture[:hp, :wp]
                    page[hp:, :wp] = page[hp - 1 : hp, :wp].clone()  # the edge goes on, as in use
                    page[:, wp:] = page[:, wp - 1 : wp].clone()

    def patches(self, batch):
        h, w = batch["size"]
        x = self.rgb[h, w][torch.tensor([self.at[n] for n in batch["numbers"]], device=self.rgb[h, w].device)]
        x = x.float() / 255
        c = batch["colours"]
        x = x.gather(3, c[:, None, None, :, 0].long().expand(-1, h, w, -1)) * c[:, None, None, :, 1] + c[:, None, None, :, 2]
        mean, std = (torch.tensor(t, device=x.device) for t in (MEAN, STD))
        x = ((x - mean) / std).to(HALF)
        B = len(x)
        return x.view(B, h // 16, 16, w // 16, 16, 3).permute(0, 1, 3, 5, 2, 4).reshape(B, h * w // 256, 768)


def enlarge(pictures, scale):
    if scale == 1:
        return pictures
    size = [round(v * scale) for v in pictures.shape[1:3]]
    x = pictures.permute(0, 3, 1, 2).float()
    x = F.interpolate(x, size, mode="bicubic", antialias=True).round().clamp(0, 255)
    return x.to(torch.uint8).permute(0, 2, 3, 1)


# ---- the passes -----------------------------------------------------------------------------------------------------


class See(nn.Module):
    """The tower and what is asked of it in training; parameters have the names of elements.py's runs."""

    def __init__(self, c):
        super().__init__()
        self.c = c
        self.p = nn.ParameterDict({n.replace(".", "/"): nn.Parameter(torch.zeros(s)) for n, s in tower.shapes(c).items()})
        self.head, self.find, self.where = reading.Reader(c["hidden"]), elements.Finder(c["hidden"]), elements.Where(c["hidden"])
        self.register_buffer("table", tower.positions(c["hidden"]))

    def named(self):
        out = {n.replace("/", "."): p for n, p in self.p.items()}
        for name, head in (("head", self.head), ("head.find", self.find), ("head.where", self.where)):
            out |= {f"{name}.{n}": p for n, p in head.named_parameters()}
        return out

    def forward(self, patches, rows, cols):
        c = self.c
        at = (torch.arange(rows)[:, None] * tower.TABLE + torch.arange(cols)).flatten().to(patches.device)
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
        letters = known.sum().clamp(min=1)
        total = (here + which + 0.2 * off + 0.3 * (kinds + states) + 0.2 * where) / letters
        right = ((names.argmax(-1) == slots[..., 1]) & known).sum()
        return total, dict(letters=letters, read=right, kinds=on.sum(), kind=((kind.argmax(-1) == batch["kinds"])[..., None] & on).sum())


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


L = language.SHAPE["lm"]


def normed(h):
    return (h * torch.rsqrt(h.square().mean(-1, keepdim=True) + L["eps"])).to(HALF)


def mamba(h, in_proj, taps, bias, dt_bias, A_log, D, out_proj):
    """A Mamba-2 sub-layer as a function of its parameters: compiled once for all of them.  The filter is four products."""
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


def block(x, qkv, qkv_bias, proj, proj_bias, fc1, fc1_bias, fc2, fc2_bias, heads):
    """A block of the tower."""
    B, n, d = x.shape
    lin = lambda t, w, b: F.linear(t.to(HALF), w.to(HALF), b.to(HALF))
    q, k, v = lin(F.layer_norm(x, (d,), eps=1e-6), qkv, qkv_bias).view(B, n, 3, heads, d // heads).permute(2, 0, 3, 1, 4)
    y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(B, n, d)
    x = x + lin(y, proj, proj_bias)
    return x + lin(F.gelu(lin(F.layer_norm(x, (d,), eps=1e-6), fc1, fc1_bias)), fc2, fc2_bias)


PASSES = {f.__name__: f for f in (mamba, attention, mlp, block)}
PLAIN = dict(PASSES)
NAMES = {
    "M": ("in_proj.weight", "conv1d.weight", "conv1d.bias", "dt_bias", "A_log", "D", "out_proj.weight"),
    "*": ("q_proj.weight", "k_proj.weight", "v_proj.weight", "o_proj.weight"),
    "-": ("up_proj.weight", "down_proj.weight"),
}
BLOCK = ("qkv", "qkv_bias", "proj", "proj_bias", "fc1", "fc1_bias", "fc2", "fc2_bias")


class Joint(nn.Module):
    def __init__(self, c, shape, spread):
        super().__init__()
        self.see, self.say, self.shape = See(c), language.Wide(shape), shape
        self.where = nn.Parameter(torch.zeros(2 * language.MOST, shape["lm"]["hidden"]))
        soft = torch.eye(shape["lm"]["vocab"])
        lo, hi = language.COARSE[0], language.COARSE[-1] + 1
        soft[lo:hi, lo:hi] = spread
        self.register_buffer("soft", soft)

    def told(self):
        return dict(self.say.named_parameters()) | {language.WHERE: self.where}

    def read(self, ids, rows):
        """ids [B, T], the image tokens' rows [n, 768]: the final norm's rows [B, T, d]."""
        m = self.say.language_model
        p = F.linear((rows * torch.rsqrt(rows.square().mean(-1, keepdim=True) + 1e-5)).to(HALF), self.say.mlp1[1].weight.to(HALF))
        self.picture = F.linear(F.relu(p).square(), self.say.mlp1[3].weight.to(HALF)).float()
        h = m.backbone.embeddings(ids).masked_scatter((ids == tokenizer.IMAGE)[..., None], self.picture)
        self.seen = {}
        for i, kind in enumerate(self.shape["lm"]["pattern"]):
            own = dict(m.backbone.layers[i].mixer.named_parameters())
            own = [own[n] for n in NAMES[kind]]
            if kind == "*":
                h, *self.seen[i] = PASSES["attention"](h, *own)
            else:
                h = PASSES["mamba" if kind == "M" else "mlp"](h, *own)
        return normed(h)

    def forward(self, patches, batch):
        h, w = batch["size"]
        x, at = self.see(patches, h // 16, w // 16)
        eyes, counts = self.see.loss(x, at, batch)
        d = x.shape[-1]
        tokens = x.view(len(x), h // 32, 2, w // 32, 2, d).permute(0, 1, 3, 2, 4, 5).reshape(-1, 4 * d)
        f = self.read(batch["ids"], tokens)
        logits = F.linear(f.flatten(0, 1)[batch["at"]], self.say.language_model.lm_head.weight.to(HALF)).float()
        logp, want = logits.log_softmax(-1), batch["want"]
        loss = -(self.soft[want] * logp).sum()
        hit = logp.argmax(-1) == want
        place = (want >= language.COARSE[0]) & (want <= language.COARSE[-1])
        counts |= dict(tokens=torch.ones_like(want).sum(), said=hit.sum(), places=place.sum(), placed=(hit & place).sum(), lm=loss.detach())
        n = len(want)
        for slot, (layer, head) in language.TOLD.items():
            rows, keys = batch["hints"][slot].T
            q, k = (t[:, head] for t in self.seen[layer])
            T = q.shape[1]
            seen = torch.baddbmm(torch.full((1, T, T), -1e4, dtype=HALF, device=q.device).triu(1), q * q.shape[-1] ** -0.5, k.transpose(1, 2))
            seen = seen.flatten(0, 1)[rows].float()
            loss = loss + 0.5 * F.cross_entropy(seen, keys, reduction="sum")
            counts |= {f"hint{slot}": (seen.argmax(-1) == keys).sum(), f"hints{slot}": torch.ones_like(keys).sum()}
        y = F.linear(F.layer_norm(self.picture, self.picture.shape[-1:]), self.where).unflatten(-1, (2, language.MOST))
        grid = torch.cartesian_prod(torch.arange(h // 32), torch.arange(w // 32)).to(y.device).repeat(len(x), 1)
        loss = loss + 0.05 * F.cross_entropy(y.flatten(0, 1), grid.flatten(), reduction="sum")
        return loss / n, eyes, counts


# ---- the run --------------------------------------------------------------------------------------------------------


def take(named, path, own=None):
    """Parameters of the same name and shape from a kept run; those that are new begin as `own` says."""
    saved = weights.load(path)
    old = tower.Layout({n: tuple(s) for n, s in saved["names"].items()}).views(saved["average"])
    with torch.no_grad():
        for n, p in named.items():
            if n in old:
                p.copy_(old[n].view(p.shape))
            elif "norm" not in n and p.ndim == 2:
                nn.init.normal_(p, std=p.shape[1] ** -0.5)
                if n.endswith(("out_proj.weight", "o_proj.weight", "down_proj.weight")):
                    p.zero_()  # a sub-layer that is new changes nothing at first
    return saved


def moved(batch, device):
    put = lambda v: v.to(device, non_blocking=True) if isinstance(v, torch.Tensor) else v
    out = {k: {s: put(t) for s, t in v.items()} if isinstance(v, dict) else put(v) for k, v in batch.items()}
    return out | {"ids": out["ids"].long()}


@torch.no_grad()
def judge(joint, screens, album, device, most):
    """Shares of whole answers by world and page, every token before given."""
    screens.seed("gate")
    tables = collections.defaultdict(collections.Counter)
    for size in screens.sizes:
        screens.choose(size)
        n = max(8, round(most * len(screens.numbers) / len(screens.about) / 8) * 8)
        for _ in range(0, n, 8):
            part = [screens.draw() for _ in range(8)]
            b = moved(screens.batch(part), device)
            b["colours"] = torch.tensor([[(c, 1.0, 0.0) for c in range(3)]] * 8, device=device)
            patches = album.patches(b)
            x, _ = joint.see(patches, size[0] // 16, size[1] // 16)
            d = x.shape[-1]
            tokens = x.view(8, size[0] // 32, 2, size[1] // 32, 2, d).permute(0, 1, 3, 2, 4, 5).reshape(-1, 4 * d)
            guess = F.linear(joint.read(b["ids"], tokens), joint.say.language_model.lm_head.weight.to(HALF)).argmax(-1).tolist()
            for (number, s), g in zip(part, guess):
                tables[screens.about[number]["world"]].update(language.whole_answers(s, g))
    return tables


def compiled(joint, patches, batch, grads, reading, tell):
    """The passes by torch.compile, if it can and they give what the plain ones give: (loss, gradients) of a batch."""

    def tried():
        loss, eyes, _ = joint(patches(batch), batch)
        (loss + reading * eyes).backward()
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


def settle(named, trained, optimiser_args):
    views = {n: p.data for n, p in named.items() if n in trained}
    grads = {}
    for n, p in named.items():
        if n in trained:
            p.grad = torch.zeros_like(p)
            grads[n] = p.grad
        else:
            p.requires_grad_(False)
    return runner.Optimiser(views, grads, *optimiser_args)


def parts(path):
    """Files of more than 15 MB in parts, as some ways back take no larger ones."""
    data = pathlib.Path(path).read_bytes()
    if len(data) > 15 << 20:
        for k in range(0, len(data), 15 << 20):
            pathlib.Path(f"{path}.{k // (15 << 20)}").write_bytes(data[k : k + (15 << 20)])
        os.remove(path)


def store_runs(a, named, average, saved, seconds):
    for what, names in named.items():
        layout = tower.Layout({n: tuple(p.shape) for n, p in names.items()})
        flat = torch.zeros(layout.size)
        for n, v in layout.views(flat).items():
            v.copy_(average[what][n])
        run = os.path.join(a.work, what)
        os.makedirs(run, exist_ok=True)
        torch.save(dict(shape=saved[what]["shape"], average=flat, names={n: list(s) for n, s in layout.shapes.items()},
                        step=saved[what]["step"] + a.done, core_minutes=saved[what]["core_minutes"]), os.path.join(run, "last.pt"))
        gpu = saved[what].get("figures", {}).get("gpu_seconds", 0) + round(seconds)
        weights.keep(run, os.path.join(a.out, f"{what}.safetensors"), {"held": [], "gpu_seconds": gpu})
        parts(os.path.join(a.out, f"{what}.safetensors"))


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--packs", required=True)
    p.add_argument("--out", required=True)
    p.add_argument("--work", default="/tmp/joint")
    p.add_argument("--eyes", required=True)
    p.add_argument("--language", required=True)
    p.add_argument("--layers", type=int, default=20)
    p.add_argument("--seconds", type=float, default=240, help="until the last step; judging comes on top")
    p.add_argument("--batch", type=int, default=64)
    p.add_argument("--pools", type=int, default=4)
    p.add_argument("--parts", type=int, default=3, help="batches in a step")
    p.add_argument("--workers", type=int, default=14)
    p.add_argument("--muon", type=float, default=2e-3)
    p.add_argument("--adam", type=float, default=1.3e-3)
    p.add_argument("--gentle", type=float, default=0.5, help="the eyes' rate in terms of the language model's")
    p.add_argument("--reading", type=float, default=0.5, help="weight of what the eyes are asked")
    p.add_argument("--average", type=float, default=0.99)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--device", default="cuda")
    p.add_argument("--compile", action="store_true", help="sub-layers by torch.compile: a minute more at the beginning")
    p.add_argument("--judged", type=int, default=1200)
    a = p.parse_args()
    begun, a.done = time.time(), 0
    os.makedirs(a.out, exist_ok=True)
    log = open(os.path.join(a.out, "log.jsonl"), "a")

    def tell(**what):
        line = json.dumps({"at": round(time.time() - begun, 1)} | what)
        print(line, flush=True)
        log.write(line + "\n")
        log.flush()

    torch.multiprocessing.set_sharing_strategy("file_system")
    torch.backends.cuda.matmul.allow_tf32 = True
    files = sorted(str(f) for f in pathlib.Path(a.packs).glob("*.pack"))
    gate = Screens([f for f in files if pathlib.Path(f).name.startswith("gate")], gate=True)
    screens = Screens([f for f in files if not pathlib.Path(f).name.startswith("gate")])
    tell(screens=len(screens.about), gate=len(gate.about), sizes={str(s): len(n) for s, n in screens.sizes.items()},
         worlds=collections.Counter(x["world"] for x in screens.about))
    import gc
    gc.freeze()
    loader = iter(torch.utils.data.DataLoader(Stream(screens, a), batch_size=None, num_workers=a.workers,
                                              prefetch_factor=6 if a.workers else None, pin_memory=a.device == "cuda"))
    first = next(loader)  # before the card is touched
    device = torch.device(a.device)
    album, judged = Album(screens, device, 8), Album(gate, device, 8)
    tell(loaded=True)

    shape = dict(language.SHAPE, lm=dict(language.SHAPE["lm"], pattern=("M-*-" * 8)[: a.layers]))
    i = torch.arange(64).float()
    spread = torch.exp(-0.5 * ((i[:, None] - i) / 0.5) ** 2)
    saved = {"eyes": weights.load(a.eyes), "language": weights.load(a.language)}
    joint = Joint(saved["eyes"]["shape"], shape, spread / spread.sum(1, keepdim=True))
    named = {"eyes": joint.see.named(), "language": joint.told()}
    take(named["eyes"], a.eyes)
    take(named["language"], a.language)
    saved["language"]["shape"] = shape
    joint.to(device)
    named = {"eyes": joint.see.named(), "language": joint.told()}
    trained = {"eyes": set(named["eyes"]), "language": {n for n in named["language"] if "norm" not in n and n != "mlp1.0.weight"}}
    matrix = {"eyes": lambda n: not n.startswith("head") and n != "prefix",
              "language": lambda n: not any(s in n for s in ("embeddings", "lm_head", "conv1d", language.WHERE))}
    optimisers = {w: settle(named[w], trained[w], (a.muon * g, a.adam * g, matrix[w])) for w, g in (("eyes", a.gentle), ("language", 1.0))}
    average = {w: {n: p.data.clone() for n, p in named[w].items()} for w in named}
    every = [(average[w][n], p.data) for w in named for n, p in named[w].items() if n in trained[w]]
    rest = {w: [g for _, g in o.rest] for w, o in optimisers.items()}
    all_grads = [p.grad for w in named for n, p in named[w].items() if n in trained[w]]
    tell(parameters={w: sum(p.numel() for p in named[w].values()) for w in named})

    if a.compile:
        compiled(joint, album.patches, moved(first, device), all_grads, a.reading, tell)

    def batches():
        yield first
        yield from loader

    source, counts, since, start, stored = batches(), collections.Counter(), time.time(), time.time(), time.time()
    sums, seen, steps = {}, 0, 0
    waited = 0.0
    until = begun + a.seconds
    while time.time() < until:
        for _ in range(a.parts):
            t = time.time()
            batch = next(source)
            waited += time.time() - t
            batch = moved(batch, device)
            loss, eyes, more = joint(album.patches(batch), batch)
            ((loss + a.reading * eyes) / a.parts).backward()
            for k, v in more.items():
                sums[k] = sums[k] + v if k in sums else v
            seen += len(batch["numbers"])
        share = (time.time() - start) / (until - start)
        a.done += 1
        rate = min(1.0, a.done / 60) * (0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * min(1.0, share))))
        for w in named:
            norm = torch.stack(torch._foreach_norm(rest[w])).norm()
            torch._foreach_mul_(rest[w], (1.0 / (norm + 1e-6)).clamp(max=1.0))
            optimisers[w].step(rate, a.done)
        torch._foreach_zero_(all_grads)
        torch._foreach_lerp_([x for x, _ in every], [y for _, y in every], 1 - min(a.average, 1 - 1 / (a.done + 1)))
        steps += 1
        if time.time() - since > 10:
            s = {k: float(v) for k, v in sums.items()}
            r = lambda x, y: round(s[x] / max(1, s[y]), 4)
            tell(step=a.done, rate=round(rate, 3), sequences_s=round(seen / (time.time() - since)), waited=round(waited, 1), lm=r("lm", "tokens"),
                 said=r("said", "tokens"), placed=r("placed", "places"), read=r("read", "letters"), kind=r("kind", "kinds"),
                 hints=[r(f"hint{k}", f"hints{k}") for k in range(4)], eyes=round(float(eyes.detach()), 3),
                 memory=round(torch.cuda.max_memory_allocated() / 2**30, 1) if a.device == "cuda" else 0)
            sums, seen, since, waited = {}, 0, time.time(), 0.0
            if not math.isfinite(s["lm"]):
                break
        if time.time() - stored > 90:
            store_runs(a, named, average, saved, time.time() - start)
            stored = time.time()
    store_runs(a, named, average, saved, time.time() - start)
    tell(stored=True, steps=a.done)
    for w in named:
        for n, p in named[w].items():
            p.data.copy_(average[w][n])
    for world, t in judge(joint, gate, judged, device, a.judged).items():
        names = sorted({k.rsplit(" ", 1)[0] for k in t})
        tell(world=world, whole=round(t["all right"] / max(1, t["all n"]), 3), n=t["all n"], by={n: f"{t[n + ' right']}/{t[n + ' n']}" for n in names if n != "all"})
    os._exit(0)  # the workers draw for ever


if __name__ == "__main__":
    main()
