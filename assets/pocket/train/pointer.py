"""What is named by what is written: a block and a pointer on the tower's rows, which stay as they are.

    python pointer.py --eyes FILE --cache OUT.npz --screens 500 DIR...              rows and names of so many screens
    python pointer.py --eyes FILE --run RUN --rows FILE... --gate FILE... --core-minutes 90

Design.  A language model that reads a picture row by row has not seen the field when it reads the field's name; the tower
has.  So each patch with a letter of a name is asked which patch shows the thing that is pointed at (`questions.aim`), by a
pointer network (Vinyals et al. 2015): query times key, and a learnt number for each distance in rows and in columns, times
what the patch makes of itself (Shaw et al. 2018).  Plain text names nothing, which is an answer too.  Kinds and states of
elements are asked again behind the block.  The tower does not change, and so the language model's pictures do not: a screen's
rows are made once, and a screen takes a tenth of a second of a core.

In a field any patch is right, since an empty one looks the same everywhere.  Elsewhere a place lies between the middles of four
patches, which share the target; the program takes the mean of the likeliest patch and those around it (src/pocket/pointer.c).

A file of rows has `R` [n, d] fp16 with the prefix rows of each screen before its patches, `G` (first patch, rows, columns) of each
screen, kinds `K` and state bits `S` of patches, names `N` (screen, kind, x, y, box), patches `Q` (name, patch) with a letter
of a name, and `Z` (screen, patch) with letters of plain text.
"""

import argparse
import collections
import math
import os
import random

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

import crops  # puts the world's folder on the path
import elements
import joint_passes
import questions
import runner
import score
import store
import tower

WIDTH, FAR, REACH = 64, tower.TABLE - 1, 32  # as in src/pocket/patch_map.h; REACH: numbers for each distance
FIELDS = [store.KINDS.index(k) for k in ("field", "area", "select", "list")]
MOST, PLAIN = 24, 30  # names, and patches of plain text, that are asked of a screen
LARGEST = 490000  # pixels of a screen


class Block(nn.Module):
    """A block of the tower, which adds nothing at first."""

    def __init__(self, d, heads, mlp):
        super().__init__()
        self.heads = heads
        for name, rows, cols in (("qkv", 3 * d, d), ("proj", d, d), ("fc1", mlp, d), ("fc2", d, mlp)):
            adds = name in ("proj", "fc2")
            setattr(self, name, nn.Parameter(torch.randn(rows, cols) * (0 if adds else cols**-0.5)))
            setattr(self, name + "_bias", nn.Parameter(torch.zeros(rows)))

    def forward(self, x):
        return joint_passes.block(x, *(getattr(self, n) for n in joint_passes.BLOCK), self.heads)


class Pointer(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.norm, self.query, self.key = nn.LayerNorm(d), nn.Linear(d, WIDTH), nn.Linear(d, WIDTH)
        self.far, self.nothing = nn.Linear(d, REACH), nn.Linear(d, 1)
        self.down, self.right = (nn.Parameter(torch.randn(2 * FAR + 1, REACH) * 0.1) for _ in range(2))

    def forward(self, x, asked, cols):
        """Rows x [n, d] of a screen's patches: logits [asked, 1 + n] of nothing and of each patch."""
        u = self.norm(x)
        own, at = u[asked], torch.arange(len(x))
        far = self.far(own)
        down = (far @ self.down.t()).gather(1, at // cols - asked[:, None] // cols + FAR)
        right = (far @ self.right.t()).gather(1, at % cols - asked[:, None] % cols + FAR)
        return torch.cat([self.nothing(own), self.query(own) @ self.key(u).t() * WIDTH**-0.5 + down + right], 1)


class Heads(nn.Module):
    """What is asked of the tower's rows behind a block of their own; parameters have the names of runs."""

    def __init__(self, c):
        super().__init__()
        self.skip = c["skip"]
        self.block, self.finder = Block(c["hidden"], c["heads"], c["mlp"]), elements.Finder(c["hidden"])
        self.pointer = Pointer(c["hidden"])

    def named(self):
        return {f"head.{n}": p for n, p in self.named_parameters()}

    def rows(self, x):
        """Rows [skip + n, d] of the tower: those of patches [n, d] behind the block."""
        return self.block(x[None])[0, self.skip :]


# ---- rows ---------------------------------------------------------------------------------------------------------------


def told_fields(screen):
    """Like `named`, of fields whose names are known, as in the kiosk, where a line may have those of two."""
    for box, kind, state, name in screen.items:
        places = kind in FIELDS and screen.where(name, box)
        if places:
            yield store.KINDS[kind], state, box, name, places


def names_of(screen, cols, rows, told):
    """[(kind, x, y, box), patches] of each thing of a screen that has a name on it; told: the names of fields are known."""
    things = screen.named()
    if told:
        things = [t for t in things if store.KINDS.index(t[0]) not in FIELDS] + list(told_fields(screen))
    for kind, _, box, _, places in things:
        _, x, y, *_ = questions.aim(kind, box, places)
        at = set()
        for col, row, _ in (crops.slot_of(int(px), int(py)) for px, py in filter(None, places)):
            if 0 <= row < rows and 0 <= col < cols:
                at.add(row * cols + col)
        if at and 0 <= x < cols * 16 and 0 <= y < rows * 16:
            yield (store.KINDS.index(kind), x, y, *box), at


def with_letters(letters, cols, rows):
    at = (letters[:, :2] + letters[:, 2:4]) // 8 // 16
    inside = (at >= 0).all(1) & (at[:, 0] < cols) & (at[:, 1] < rows)
    return set((at[inside, 1] * cols + at[inside, 0]).tolist())


@torch.no_grad()
def cache(a):
    p, c, *_ = score.load(a.eyes)
    everything = [(s, k) for s in store.shards(a.data) for k in range(len(s))]
    R, K, S, N, Q, Z, G = ([] for _ in range(7))
    first = 0
    for s, k in random.Random(7).sample(everything, min(a.screens, len(everything))):
        picture, letters, items = crops.enlarged(s.picture(k), s.letters_of(k), s.items_of(k))
        if picture.shape[0] * picture.shape[1] > LARGEST:
            continue
        patches, rows, cols = crops.whole(picture)
        R.append(tower.apply(p, c | {"skip": 0}, patches, rows, cols)[0].half().numpy())  # with the prefix
        kind, state, *_ = crops.item_targets(items, 0, 0, rows, cols)
        told, used = crops.world_of(s) == "kiosk", set()
        K.append(kind.astype(np.int8))
        S.append(np.packbits(state.astype(bool), axis=1, bitorder="little")[:, 0])
        for thing, at in names_of(questions.Screen(letters, items, s.about[k]["names"]), cols, rows, told):
            Q += [(len(N), q) for q in at]
            N.append((len(G), *thing))
            used |= at
        Z += [(len(G), q) for q in with_letters(letters, cols, rows) - used]
        G.append((first, rows, cols))
        first += rows * cols
    join = np.concatenate
    numbers = lambda rows, n: np.array(rows, np.int32).reshape(-1, n)
    np.savez(a.cache, R=join(R), K=join(K), S=join(S), N=np.array(N, np.float32), Q=numbers(Q, 2), Z=numbers(Z, 2), G=numbers(G, 3))
    print(f"{a.cache}: {len(G)} screens, {len(N)} names", flush=True)


class Rows:
    """A file of rows."""

    def __init__(self, path, skip):
        z, self.skip, self.name = np.load(path), skip, os.path.basename(path)[:-4]
        self.x, self.kinds, self.states = (torch.from_numpy(z[n]) for n in "RKS")
        self.screens, self.things = z["G"], z["N"]
        self.names, self.asked, self.plain = (collections.defaultdict(list) for _ in range(3))
        for k, thing in enumerate(self.things):
            self.names[int(thing[0])].append(k)
        for k, q in z["Q"]:
            self.asked[k].append(int(q))
        for g, q in z["Z"]:
            self.plain[g].append(int(q))

    def __len__(self):
        return len(self.screens)

    def __getitem__(self, i):
        """(rows, kinds, state bits [n, STATES], rows and columns of patches) of a screen."""
        first, rows, cols = map(int, self.screens[i])
        n, at = rows * cols, first + self.skip * i
        bits = (self.states[first : first + n][:, None] >> torch.arange(crops.STATES)) & 1
        return self.x[at : at + n + self.skip].float(), self.kinds[first : first + n].long(), bits.float(), rows, cols


# ---- training -----------------------------------------------------------------------------------------------------------


def corners(x, y, rows, cols):
    """The four patches between whose middles a place lies, and their shares of it."""
    col, row = x / 16 - 0.5, y / 16 - 0.5
    for r, far in ((math.floor(row), 1 - row % 1), (math.floor(row) + 1, row % 1)):
        for c, wide in ((math.floor(col), 1 - col % 1), (math.floor(col) + 1, col % 1)):
            yield min(max(r, 0), rows - 1) * cols + min(max(c, 0), cols - 1), far * wide


def inside(box, rows, cols):
    """The patches whose middles are on a thing, or the one that has its middle."""
    x0, y0, x1, y1 = box
    at = [r * cols + c for r in range(rows) for c in range(cols) if x0 < 16 * c + 8 < x1 and y0 < 16 * r + 8 < y1]
    row, col = int((y0 + y1) / 32), int((x0 + x1) / 32)
    return at or [min(max(row, 0), rows - 1) * cols + min(max(col, 0), cols - 1)]


def away(said, thing, rows, cols):
    """Loss of one patch's logarithms of probabilities [1 + patches] in terms of what its name names."""
    if int(thing[1]) in FIELDS:
        return -said[1 + torch.tensor(inside(thing[4:8], rows, cols))].logsumexp(0)
    return -sum(said[1 + patch] * share for patch, share in corners(*thing[2:4], rows, cols))


def loss(heads, data, i, rng):
    """Loss of a screen, and counts."""
    x, kinds, bits, rows, cols = data[i]
    x = heads.rows(x)
    kind, state, _ = heads.finder(x)
    on = kinds > 0
    total = F.cross_entropy(kind, kinds)
    if on.any():
        total = total + 0.5 * F.binary_cross_entropy_with_logits(state[on], bits[on])
    names, plain = data.names[i], data.plain[i]
    names, plain = rng.sample(names, min(MOST, len(names))), rng.sample(plain, min(PLAIN, len(plain)))
    asked = [(q, k) for k in names for q in data.asked[k]]
    sums = dict(kinds=int(on.sum()), kind=int((kind.argmax(-1) == kinds)[on].sum()), names=len(names), plain=len(plain))
    if asked or plain:
        said = heads.pointer(x, torch.tensor([q for q, _ in asked] + plain), cols).log_softmax(1)
        lost = said.new_zeros(())
        for q, (_, k) in enumerate(asked):
            lost = lost + away(said[q], data.things[k], rows, cols) / len(data.asked[k])
        total = total + lost / max(1, len(names))
        if plain:
            total = total - 0.5 * said[len(asked) :, 0].mean()
            sums["quiet"] = int((said[len(asked) :, 0] > math.log(0.5)).sum())
        sums["lost"] = float(lost.detach())
    return total, sums | {"patches": len(x)}


def place(said, rows, cols):
    """(x, y, probability of nothing) from logarithms of probabilities [1 + patches]."""
    p = said.softmax(0)
    grid = p[1:].view(rows, cols)
    r, c = divmod(int(grid.argmax()), cols)
    top, left = max(0, r - 1), max(0, c - 1)
    part = grid[top : r + 2, left : c + 2]
    part = part / part.sum()
    y = float((part.sum(1) * (torch.arange(top, top + len(part)) * 16 + 8)).sum())
    x = float((part.sum(0) * (torch.arange(left, left + part.shape[1]) * 16 + 8)).sum())
    return x, y, float(p[0])


@torch.no_grad()
def judge(heads, data, most):
    """Counts of a file: names whose thing is hit, by kind; plain text that names nothing; patches whose kind is right."""
    out = collections.Counter()
    for i in range(min(len(data), most)):
        x, kinds, _, rows, cols = data[i]
        x, on = heads.rows(x), kinds > 0
        out["kinds"] += int(on.sum())
        out["kind"] += int((heads.finder(x)[0].argmax(-1) == kinds)[on].sum())
        asked = [(q, k) for k in data.names[i] for q in data.asked[k]]
        if not asked and not data.plain[i]:
            continue
        said = heads.pointer(x, torch.tensor([q for q, _ in asked] + data.plain[i]), cols).log_softmax(1)
        out["plain"] += len(data.plain[i])
        out["quiet"] += int((said[len(asked) :, 0] > math.log(0.5)).sum())
        of = collections.defaultdict(list)
        for q, (_, k) in enumerate(asked):
            of[k].append(q)
        for k, q in of.items():
            px, py, _ = place(said[q].mean(0), rows, cols)
            _, kind, _, _, x0, y0, x1, y1 = data.things[k][:8]
            out[f"{store.KINDS[int(kind)]} n"] += 1
            out[f"{store.KINDS[int(kind)]} hit"] += x0 < px < x1 and y0 < py < y1
    return out


class Pointing:
    """What runner.Run asks of a stage."""

    scale = 1.0
    counts = ["lost", "names", "quiet", "plain", "kinds", "kind"]

    def __init__(self, a):
        self.a = a
        joint_passes.products(torch.device("cpu"))

    def shape(self):
        return score.load(self.a.eyes)[1]

    def grown(self, c):
        return c

    def shapes(self, c):
        return {n: tuple(p.shape) for n, p in Heads(c).named().items()}

    @staticmethod
    def is_matrix(name):
        return name.startswith("head.block.")

    def start(self, views, c):
        torch.manual_seed(self.a.seed)
        heads, eyes = Heads(c), score.load(self.a.eyes)[4]
        for n, p in heads.named().items():  # the finder begins as the tower's
            views[n].copy_(eyes.get(n.replace("head.finder.", "head.find."), p.detach()))

    def load(self, views, c, grads=None):
        heads = Heads(c)
        for n, p in heads.named().items():
            p.data = views[n]
            p.grad = grads[n] if grads else None
        return heads

    def worker(self, run, rank, grads):
        heads = self.load(run.layout.views(run.flat), run.c, grads)
        data = [Rows(path, run.c["skip"]) for path in self.a.rows]
        rng = random.Random(f"{self.a.seed}/{run.step}/{rank}")

        def part():
            some = rng.choices(data, [len(d) for d in data])[0]
            total, sums = loss(heads, some, rng.randrange(len(some)), rng)
            total.backward()
            for n, g in grads.items():
                if self.a.kinds_only and not n.startswith("head.finder."):
                    g.zero_()
            return sums

        return part

    def figures(self, s):
        share = lambda a, b: s[a] / max(1, s[b])
        return dict(lost=share("lost", "names"), quiet=share("quiet", "plain"), kind=share("kind", "kinds"))

    def gate(self, views, c):
        heads, out = self.load(views, c), {}
        for path in self.a.gate:
            data = Rows(path, c["skip"])
            t = judge(heads, data, self.a.gate_screens)
            rows = {k[:-2]: (t[k], t[k[:-2] + " hit"] / t[k]) for k in t if k.endswith(" n")}
            print(f"    {data.name}: " + ", ".join(f"{k} {share:.3f} of {n}" for k, (n, share) in sorted(rows.items())), flush=True)
            n = sum(v for v, _ in rows.values())
            out |= {f"{data.name}_hit": sum(v * share for v, share in rows.values()) / max(1, n),
                    f"{data.name}_quiet": t["quiet"] / max(1, t["plain"]), f"{data.name}_kind": t["kind"] / max(1, t["kinds"])}
        return out


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    runner.options(p)
    p.add_argument("data", nargs="*", help="with --cache: folders of shards")
    p.add_argument("--eyes", required=True, help="the tower's run, or what the tree keeps of it")
    p.add_argument("--cache", help="only write rows into this file")
    p.add_argument("--screens", type=int, default=500)
    p.add_argument("--rows", nargs="+", default=[])
    p.add_argument("--gate", nargs="+", default=[])
    p.add_argument("--gate-screens", type=int, default=60)
    p.add_argument("--kinds-only", action="store_true", help="of a run's heads only the kinds learn; with --muon 0")
    a = p.parse_args()
    torch.set_num_threads(1)
    cache(a) if a.cache else runner.Run(a, Pointing(a)).run()


if __name__ == "__main__":
    main()
