"""Trains the pointer: from the letters of a label to the element it names, on rows of the finished encoder.

    python -m pocket pointer --eyes FILE --cache OUT.npz --screens 500 DIR...   rows and labels of screens
    python -m pocket pointer --eyes FILE --out FILE --rows FILE... --heldout FILE [--minutes 90]

A language model that reads a picture row by row has not seen a field when it reads the field's label; the
encoder has. Each patch with a letter of a label must point at the patches of the element (heads.Pointer),
and patches of plain text at none. The encoder does not change, so the language model's input stays
bit-identical, and a screen's rows are computed once. In a field every patch is right, since the middle of
an empty field looks the same everywhere; elsewhere the four patches around the place share the target.
src/pocket/pointer.c averages the best patch and its neighbours.

A file of rows has `rows` [n, d] fp16 with the prefix rows of each screen before its patches; `screens`
(first patch, rows, columns); `kinds` and state bits `states` of patches; `labels` (screen, kind, x, y,
box); `asked` (label, patch) with a letter of a label; `plain` (screen, patch) with letters of plain text.
Exits with 1 if fewer than 85 % of the held-out labels hit their element.
"""

import collections
import math
import random
import time

import numpy as np
import torch
import torch.nn.functional as F

from . import heads, questions, targets, tower, weights
from .optimizer import Optimizer, rate
from .sources import store
from .sources.store import KINDS

FIELDS = [KINDS.index(k) for k in ("field", "area", "select", "list")]
LABELS, PLAIN = 24, 30  # labels, and patches of plain text, of a screen in one loss
LARGEST = 490_000  # pixels of a screen
PARTS = 8  # screens of a step
GOAL = 0.85  # fraction of held-out labels that must hit
MUON, ADAM = 3e-3, 1.5e-3  # learning rates of the block's matrices / of other parameters
WARM = 60  # steps until the full learning rate
AVERAGE = 0.995  # decay of the running average per step
SEED = 1


def known_fields(screen):
    """Yields fields by their known names, as the kiosk reports them; a line may have the labels of two."""
    for box, kind, state, name in screen.items:
        places = kind in FIELDS and screen.where(name, box)
        if places:
            yield KINDS[kind], state, box, name, places


def labels_of(screen, cols, rows, known):
    """Yields ((kind, x, y, *box), patches with its letters) of each labelled element; known: use
    known_fields().
    """
    found = screen.named
    if known:
        found = [t for t in found if KINDS.index(t[0]) not in FIELDS] + list(known_fields(screen))
    for kind, _, box, _, places in found:
        _, x, y, *_ = questions.aim(kind, box, places)
        at = set()
        for col, row, _ in (targets.slot_of(int(px), int(py)) for px, py in filter(None, places)):
            if 0 <= row < rows and 0 <= col < cols:
                at.add(row * cols + col)
        if at and 0 <= x < cols * 16 and 0 <= y < rows * 16:
            yield (KINDS.index(kind), x, y, *box), at


def patches_with_letters(letters, cols, rows):
    at = (letters[:, :2] + letters[:, 2:4]) // 8 // 16
    inside = (at >= 0).all(1) & (at[:, 0] < cols) & (at[:, 1] < rows)
    return set((at[inside, 1] * cols + at[inside, 0]).tolist())


@torch.no_grad()
def cache(a):
    """Writes a file of rows for random screens of the directories a.data."""
    eyes = weights.load(a.eyes)
    c, p, dt = eyes["shape"], eyes["parameters"], tower.products("cpu")
    table = tower.positions(c["hidden"])
    everything = [(s, k) for s in store.shards(a.data) for k in range(len(s))]
    x, kinds, states, labels, asked, plain, screens, first = [], [], [], [], [], [], [], 0
    for s, k in random.Random(7).sample(everything, min(a.screens, len(everything))):
        picture, letters, items = targets.enlarged(s.picture(k), s.letters_of(k), s.items_of(k))
        if picture.shape[0] * picture.shape[1] > LARGEST:
            continue
        patches, rows, cols = targets.whole(picture)
        x.append(tower.encode(p, c, patches.to(dt), rows, cols, table, dt)[0].half().numpy())
        kind, state = targets.item_targets(items, rows, cols)
        kinds.append(kind.astype(np.int8))
        states.append(np.packbits(state.astype(bool), axis=1, bitorder="little")[:, 0])
        used, screen = set(), questions.Screen(letters, items, s.about[k]["names"])
        for label, at in labels_of(screen, cols, rows, s.source == "kiosk"):
            asked += [(len(labels), q) for q in at]
            labels.append((len(screens), *label))
            used |= at
        plain += [(len(screens), q) for q in patches_with_letters(letters, cols, rows) - used]
        screens.append((first, rows, cols))
        first += rows * cols
    values = dict(rows=np.concatenate(x), kinds=np.concatenate(kinds), states=np.concatenate(states))
    values |= {n: np.array(v, np.int32).reshape(-1, 2) for n, v in (("asked", asked), ("plain", plain))}
    np.savez(a.cache, labels=np.array(labels, np.float32), screens=np.array(screens, np.int32), **values)
    print(f"{a.cache}: {len(screens)} screens, {len(labels)} labels", flush=True)


class Rows:
    """A file of rows; data[i] is a screen."""

    def __init__(self, path, skip):
        z, self.skip = np.load(path), skip
        self.x, self.kinds, self.states = (torch.from_numpy(z[n]) for n in ("rows", "kinds", "states"))
        self.screens, self.labels = z["screens"], z["labels"]
        self.of_screen, self.asked, self.plain = (collections.defaultdict(list) for _ in range(3))
        for k, label in enumerate(self.labels):
            self.of_screen[int(label[0])].append(k)
        for k, q in z["asked"]:
            self.asked[k].append(int(q))
        for g, q in z["plain"]:
            self.plain[g].append(int(q))

    def __len__(self):
        return len(self.screens)

    def __getitem__(self, i):
        """Returns (rows [skip + n, d], kinds [n], state bits [n, STATES], rows, columns)."""
        first, rows, cols = map(int, self.screens[i])
        n, at = rows * cols, first + self.skip * i
        bits = (self.states[first : first + n][:, None] >> torch.arange(heads.STATES)) & 1
        x, kinds = self.x[at : at + n + self.skip].float(), self.kinds[first : first + n].long()
        return x, kinds, bits.float(), rows, cols


def corners(x, y, rows, cols):
    """Yields the four patches around a place, each with its share of it."""
    col, row = x / 16 - 0.5, y / 16 - 0.5
    for r, far in ((math.floor(row), 1 - row % 1), (math.floor(row) + 1, row % 1)):
        for c, wide in ((math.floor(col), 1 - col % 1), (math.floor(col) + 1, col % 1)):
            yield min(max(r, 0), rows - 1) * cols + min(max(c, 0), cols - 1), far * wide


def inside(box, rows, cols):
    """Returns the patches whose centres are in a box, or the one that contains the centre of the box."""
    x0, y0, x1, y1 = box
    across = [c for c in range(cols) if x0 < 16 * c + 8 < x1]
    at = [r * cols + c for r in range(rows) if y0 < 16 * r + 8 < y1 for c in across]
    row, col = int((y0 + y1) / 32), int((x0 + x1) / 32)
    return at or [min(max(row, 0), rows - 1) * cols + min(max(col, 0), cols - 1)]


def label_loss(logp, label, rows, cols):
    """Returns the loss of one patch's log-probabilities [1 + n] for a label."""
    if int(label[1]) in FIELDS:
        return -logp[1 + torch.tensor(inside(label[4:8], rows, cols))].logsumexp(0)
    return -sum(logp[1 + patch] * share for patch, share in corners(*label[2:4], rows, cols))


def loss(model, data, i, rng, dt):
    """Returns the loss of a screen, and counts."""
    x, kinds, bits, rows, cols = data[i]
    x = model.rows(x, dt)
    kind, state, _ = model.finder(x)
    on = kinds > 0
    total = F.cross_entropy(kind, kinds)
    if on.any():
        total = total + 0.5 * F.binary_cross_entropy_with_logits(state[on], bits[on])
    labels, plain = data.of_screen[i], data.plain[i]
    labels, plain = rng.sample(labels, min(LABELS, len(labels))), rng.sample(plain, min(PLAIN, len(plain)))
    asked = [(q, k) for k in labels for q in data.asked[k]]
    sums = dict(kinds=int(on.sum()), kind=int((kind.argmax(-1) == kinds)[on].sum()), labels=len(labels))
    if asked or plain:
        logp = model.pointer(x, torch.tensor([q for q, _ in asked] + plain), cols).log_softmax(1)
        lost = logp.new_zeros(())
        for q, (_, k) in enumerate(asked):
            lost = lost + label_loss(logp[q], data.labels[k], rows, cols) / len(data.asked[k])
        total = total + lost / max(1, len(labels))
        if plain:
            total = total - 0.5 * logp[len(asked) :, 0].mean()
        sums["lost"] = float(lost.detach())
    return total, sums


def place(logp, rows, cols):
    """Returns (x, y) in pixels: the mean of the most probable patch and its neighbours, from [1 + n]."""
    grid = logp.softmax(0)[1:].view(rows, cols)
    r, c = divmod(int(grid.argmax()), cols)
    top, left = max(0, r - 1), max(0, c - 1)
    part = grid[top : r + 2, left : c + 2]
    part = part / part.sum()
    y = float((part.sum(1) * (torch.arange(top, top + len(part)) * 16 + 8)).sum())
    return float((part.sum(0) * (torch.arange(left, left + part.shape[1]) * 16 + 8)).sum()), y


@torch.no_grad()
def evaluate(model, data, dt):
    """Returns figures of a file: labels that hit their element, plain text without one, patches of the right
    kind.
    """
    out = collections.Counter()
    for i in range(len(data)):
        x, kinds, _, rows, cols = data[i]
        x, on = model.rows(x, dt), kinds > 0
        out.update(kinds=int(on.sum()), kind=int((model.finder(x)[0].argmax(-1) == kinds)[on].sum()))
        asked = [(q, k) for k in data.of_screen[i] for q in data.asked[k]]
        if not asked and not data.plain[i]:
            continue
        logp = model.pointer(x, torch.tensor([q for q, _ in asked] + data.plain[i]), cols).log_softmax(1)
        out.update(plain=len(data.plain[i]), quiet=int((logp[len(asked) :, 0] > math.log(0.5)).sum()))
        of = collections.defaultdict(list)
        for q, (_, k) in enumerate(asked):
            of[k].append(q)
        for k, q in of.items():
            px, py = place(logp[q].mean(0), rows, cols)
            x0, y0, x1, y1 = data.labels[k][4:8]
            out.update(labels=1, hit=int(x0 < px < x1 and y0 < py < y1))
    pairs = (("hit", "labels"), ("quiet", "plain"), ("kind", "kinds"))
    return {x: round(out[x] / max(1, out[n]), 3) for x, n in pairs}


def train(a):
    """Trains for a.minutes of processor time and writes the averages."""
    eyes, dt, rng = weights.load(a.eyes), tower.products("cpu"), random.Random(SEED)
    torch.manual_seed(SEED)
    model, c = heads.PointerHeads(eyes["shape"]), eyes["shape"]
    for n, p in model.named().items():
        if n.startswith("head.finder."):  # the elements head starts as the encoder's
            p.data.copy_(eyes["parameters"][n.replace("head.finder.", "head.find.")])
    optimizer = Optimizer(model.named(), MUON, ADAM, lambda n: n.startswith("head.block."), AVERAGE, dt)
    data, begun, said = [Rows(path, c["skip"]) for path in a.rows], time.process_time(), time.time()
    sums, minutes = collections.Counter(), 0.0
    while minutes < a.minutes:
        for _ in range(PARTS):
            some = rng.choices(data, [len(d) for d in data])[0]
            total, counts = loss(model, some, rng.randrange(len(some)), rng, dt)
            (total / PARTS).backward()
            sums.update(counts)
        minutes = (time.process_time() - begun) / 60
        optimizer.step(rate(optimizer.steps + 1, WARM, minutes / a.minutes))
        if time.time() - said > 30:
            lost, kind = sums["lost"] / max(1, sums["labels"]), sums["kind"] / max(1, sums["kinds"])
            at = f"step {optimizer.steps}, {minutes:.1f} minutes"
            print(f"{at}: label loss {lost:.3f}, kind {kind:.3f}", flush=True)
            sums, said = collections.Counter(), time.time()
    for n, p in model.named().items():
        p.data.copy_(optimizer.average[n])
    figures = evaluate(model, Rows(a.heldout, c["skip"]), dt)
    weights.keep(a.out, optimizer.average, c, optimizer.steps, minutes, {a.heldout: figures})
    print(f"{a.out}: {figures}", flush=True)
    return figures["hit"] < GOAL


def options(p):
    p.add_argument("data", nargs="*", help="with --cache: directories of shards")
    p.add_argument("--eyes", required=True, help="kept file of the encoder")
    p.add_argument("--cache", help="only write this file of rows")
    p.add_argument("--screens", type=int, default=500, help="screens of the file of rows")
    p.add_argument("--rows", nargs="+", default=[], help="files of rows")
    p.add_argument("--heldout", help="file of rows for evaluation")
    p.add_argument("--out", help="kept file to write")
    p.add_argument("--minutes", type=float, default=90, help="processor time")


def run(a):
    return cache(a) if a.cache else train(a)
