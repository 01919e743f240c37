"""Screens as glyph tokens: what perfect eyes would tell the language model, and where to look.

Design.  The theme is a grid of 32x16 character cells, and an image token is exactly two cells of a
row.  So a screen needs no pixels to be spoken of: the row of an image token is

    left[char] + right[char] + row[r] + column[c] + look · (colours of the two cells' edges)

with learned tables.  The tables start so that a glyph resembles the byte a text spells it with,
and positions are sinusoids.  `look` is what is no character: bands, frames, fields, ticks.

`lay` turns a conversation about a screen into tokens and knows, since the screen is text, which
earlier token each copied letter and each point comes from.  These pairs are the guides: a training
loss on the weights of some attention heads (`POINTERS`), which are plain heads afterwards.

    slot MATCH    a letter of a label         -> the image token that holds it
    slot SCREEN   <at>, x, a letter read      -> the label's tokens, the token of the next letter
    slot TEXT     a letter copied             -> the next letter in the task sentence
"""
import math
import re

import numpy as np
import torch
from torch import nn

import data
import tokenizer
from data import CLASSES, COLUMNS, IGNORE, ROWS, char_class

ACROSS = COLUMNS // 2                    # image tokens in a row
LOOK = 30                                # five colours for each of the two cells
PAGE = (243, 245, 247)                   # the theme's page colour: looks count from it
MATCH, SCREEN, TEXT = 0, 1, 2
POINTERS = {MATCH: (2, (0, 1)), SCREEN: (6, (0, 1)), TEXT: (6, (2, 3))}      # layer, heads

_ACT = re.compile(r"^(.*?)<(click|write)>(.*?)<at><(\d+)><(\d+)>(.*)$", re.S)
_FIND = re.compile(r"^<at><(\d+)><(\d+)>$")


# ---- rows of image tokens -------------------------------------------------------------------

def _waves(n, d):
    """[n, d]: sines and cosines of the place, from one turn over all places to one over two."""
    w = math.pi / n * torch.exp(torch.linspace(0, math.log(n * 0.9), d // 2))
    a = torch.arange(n)[:, None] * w
    return torch.cat([a.cos(), a.sin()], 1)


class Glyphs(nn.Module):
    def __init__(self, embeddings, size=0.5):
        super().__init__()
        d = embeddings.shape[1]
        byte = [tokenizer.BYTE0 + (32 + k if k else 32) for k in range(CLASSES)]
        like = embeddings.detach()[byte]
        self.left = nn.Parameter(0.7 * size * (like + 0.3 * torch.randn_like(like)))
        self.right = nn.Parameter(0.7 * size * (like + 0.3 * torch.randn_like(like)))
        self.left.data[0] *= 0.2
        self.right.data[0] *= 0.2
        # Each table is turned into d channels by a random isometry: all share them.
        turn = torch.linalg.qr(torch.randn(d, d))[0]
        self.row = nn.Parameter(size * _waves(ROWS, 32) @ turn[:32] * 1.5)
        self.column = nn.Parameter(size * _waves(ACROSS, 32) @ turn[32:64] * 1.5)
        self.look = nn.Parameter(0.04 * torch.randn(LOOK, d))      # as strong as a glyph

    def forward(self, chars, place, look):
        """chars [n,2], place [n] in raster order of the whole screen, look [n,LOOK] -> [n,d]"""
        h = self.left[chars[:, 0]] + self.right[chars[:, 1]] + look @ self.look
        return h + self.row[place // ACROSS] + self.column[place % ACROSS]


def characters(cells):
    """16 strings -> [256, 2] classes."""
    grid = np.array([[char_class(c) for c in row.ljust(COLUMNS)[:COLUMNS]] for row in cells])
    return grid.reshape(ROWS * ACROSS, 2)


def looks(rgb):
    """uint8 [480,640,3] -> [256, LOOK]: mean colours of every cell's four edges and of the cell,
    as differences from the page."""
    x = (np.asarray(PAGE, np.float32) - rgb.astype(np.float32)) / 128
    x = x.reshape(ROWS, 30, COLUMNS, 20, 3)
    parts = [x[:, :3], x[:, 27:], x[:, :, :, :3], x[:, :, :, 17:], x]
    out = np.stack([p.mean((1, 3)) for p in parts], 2)                       # [16, 32, 5, 3]
    return out.reshape(ROWS * ACROSS, LOOK)


# ---- conversations with guides --------------------------------------------------------------

class Sheet:
    """The tokens of one conversation: ids, where the loss is, and guides (slot, from, [to])."""

    def __init__(self, cells, window=(0, ROWS, 0, ACROSS)):
        self.cells, self.window = cells, window
        self.ids, self.on, self.guides, self.picture = list(tokenizer.HEAD), [], [], None
        self.use = None                  # where the first answer with a loss lies
        self.spots = []                  # (stage, at, place): what is known where, see `Places`
        r0, r1, c0, c1 = window
        self.places = [r * ACROSS + c for r in range(r0, r1) for c in range(c0, c1)]
        self.task = ("", 0)

    def token(self, r, c):
        """Index of the image token of a cell, or None outside the window."""
        r0, r1, c0, c1 = self.window
        if self.picture is None or not (r0 <= r < r1 and c0 <= c // 2 < c1):
            return None
        return self.picture + (r - r0) * (c1 - c0) + c // 2 - c0

    def guide(self, slot, at, to):
        to = sorted({t for t in to if t is not None and t <= at})
        if to:
            self.guides.append((slot, at, to))

    def say(self, u):
        """A user turn; remembers the sentence that letters may be copied from."""
        self.ids += tokenizer.USER
        before, image, after = u.partition("<image>")
        line = before.split("\n")[0]
        if line not in ("", "-", "no change"):
            self.task = (line, len(self.ids))
        self.ids += tokenizer.text(before)
        if image:
            picture = [tokenizer.IMAGE] * len(self.places)
            self.ids += tokenizer.spelled("<img>")
            self.picture = len(self.ids)
            self.ids += picture + tokenizer.spelled("</img>") + tokenizer.text(after)
        self.ids += tokenizer.text("\n") + tokenizer.REPLY

    def answer(self, a, loss):
        start = len(self.ids)
        self.ids += tokenizer.spelled(a) + tokenizer.CLOSE
        on = [int(loss)] * (len(self.ids) - start) if loss or not self.plan else self.blind(a)
        self.on += [0] * (start - len(self.on)) + on
        self.ids += tokenizer.text("\n")
        if loss and not self.use:
            self.use = (start, len(self.ids) - 1)
        if a.isascii() and self.task[0].isascii():
            self.explain(a, start)

    def blind(self, a):
        """Where a loss is fair in a step whose screenshot is gone: the plan's word, the verb, a text to
        write, and a label that the task names; not a place."""
        act = _ACT.match(a)
        if not act:
            return [1] * (len(tokenizer.spelled(a)) + 2)
        thought, _, label, _, _, text = act.groups()
        known = int(label in self.task[0])
        return [1] * (len(thought) + 1) + [known] * (len(label) + 1) + [0, 0] + [1] * (len(text) + 2)

    # what each answer is made of

    def explain(self, a, start):
        act, find = _ACT.match(a), _FIND.match(a)
        task, base = self.task
        if act:
            thought, _, label, x, y, text = act.groups()
            p = start + len(thought) + 1
            at = p + len(label)
            self.copy(label, p)
            if self.picture is not None:
                self.point(label, p, at, (int(x), int(y)))
            if text:
                self.copy(text, at + 3)
            k = task.find(label)
            if k >= 0 and self.picture is not None and base > self.picture:
                self.match(label, base + k, self.nearest(label, (int(x), int(y))))
        elif find:
            self.point(task[5:], base + 5, start, tuple(map(int, find.groups())))
        elif task.startswith("Read row "):
            self.read_row(int(task[9:]) - 1, a, start)
        elif task.startswith("What is in "):
            self.value(task[11:-1], base + 11, a, start)

    def nearest(self, label, point):
        """(row, column) of the label's occurrence that is nearest to a point in bins."""
        found = [(r, m.start()) for r, row in enumerate(self.cells)
                 for m in re.finditer(re.escape(label), row)] if label else []
        far = lambda p: abs(4 * p[0] + 2 - point[1]) + 0.5 * abs(2 * p[1] + len(label) - point[0])
        return min(found, key=far) if found else None

    def match(self, label, p, where):
        for i in range(1, len(label)) if where else ():
            if label[i] != " ":
                to = self.token(where[0], where[1] + i)
                self.guide(MATCH, p + i, [to])
                if to is not None and to < p:
                    self.spots.append((0, p + i, where[0], where[1] + i))

    def point(self, label, p, at, point):
        where = self.nearest(label, point)
        self.match(label, p, where)
        if where:
            to = [self.token(where[0], where[1] + i) for i in range(len(label))]
            self.guide(SCREEN, at, to)
            self.guide(SCREEN, at + 1, to)
        if where and self.picture is not None and p > self.picture:
            letters = [p + i for i in range(1, len(label))]
            self.guide(TEXT, at, letters)
            self.guide(TEXT, at + 1, letters)
        if self.picture is not None:
            first = p + len(label) - 1 if where and p > self.picture else at
            for t in range(first, at + 2):
                self.spots.append((1, t, point[1] // 4, point[0]))

    def copy(self, s, p):
        """s is written from index p on; its letters come from the task sentence."""
        task, base = self.task
        k = task.find(s)
        if k >= 0:
            for i in range(len(s) + 1):
                self.guide(TEXT, p + i - 1, [base + k + i])

    def letters(self, row, columns, start):
        """The letters in these columns of a row are written from start on, then nothing more."""
        for i, c in enumerate(columns):
            self.guide(SCREEN, start + i - 1, [self.token(row, c)])
        if columns[-1] + 1 < COLUMNS:
            self.guide(SCREEN, start + len(columns) - 1, [self.token(row, columns[-1] + 1)])

    def read_row(self, r, a, start):
        row = self.cells[r]
        columns = [c for c, ch in enumerate(row) if ch != " " or (c and row[c - 1] != " ")]
        columns = columns[:len(a)] if row.strip() else []
        if columns and len(columns) == len(a):
            self.letters(r, columns, start)

    def value(self, label, p, a, start):
        where = self.nearest(label, (32, 32))
        self.match(label, p, where)
        if where and a != "nothing":
            v = self.nearest(a, (2 * where[1] + len(a), 4 * where[0] + 3))
            if v:
                self.letters(v[0], range(v[1], v[1] + len(a)), start)


def lay(turns, cells, window=(0, ROWS, 0, ACROSS), plan=True):
    """`plan`: with a loss also on what earlier steps can know without their screenshots."""
    s = Sheet(cells, window)
    s.plan = plan
    for t in turns:
        s.say(t["u"])
        s.answer(t["a"], t["loss"])
    s.on += [0] * (len(s.ids) - len(s.on))
    return s


def collate(sheets, look=None):
    """Sheets, and per sheet [256, LOOK] or None -> ids and target [B,T]; chars, place, look of all
    image tokens; per slot from [B,N], weights [B,N,T] fp32 (rows of zeros are padding)."""
    B, T = len(sheets), max(len(s.ids) for s in sheets)
    ids, target = torch.zeros(B, T, dtype=torch.long), torch.full((B, T), IGNORE)
    use = torch.full((B, T), IGNORE)     # the target of the first answer alone
    for b, s in enumerate(sheets):
        seq, on = torch.tensor(s.ids), torch.tensor(s.on, dtype=torch.bool)
        ids[b, :len(seq)] = seq
        target[b, :len(seq) - 1] = torch.where(on[1:], seq[1:], IGNORE)
        if s.use:
            u = slice(s.use[0] - 1, s.use[1] - 1)
            use[b, u] = seq[s.use[0]:s.use[1]]
    chars = np.concatenate([characters(s.cells)[s.places] for s in sheets])
    place = np.concatenate([s.places for s in sheets])
    look = np.concatenate([np.zeros((len(s.places), LOOK), np.float32) if l is None else l[s.places]
                           for s, l in zip(sheets, look or [None] * B)])
    guides = {}
    for slot in POINTERS:
        own = [[g for g in s.guides if g[0] == slot] for s in sheets]
        N = max(map(len, own))
        at, weight = torch.zeros(B, N, dtype=torch.long), torch.zeros(B, N, T)
        for b, g in enumerate(own):
            for n, (_, t, to) in enumerate(g):
                at[b, n] = t
                weight[b, n, to] = 1 / len(to)
        guides[slot] = (at, weight)
    spots = [torch.tensor([(b, t, r, c) for b, s in enumerate(sheets) for k, t, r, c in s.spots if k == stage])
             for stage in (0, 1)]
    return dict(ids=ids, target=target, use=use, chars=torch.from_numpy(chars), guides=guides, spots=spots,
                place=torch.from_numpy(place), look=torch.from_numpy(look))


# ---- small screens --------------------------------------------------------------------------

def word_pool(lex, n=20000):
    """Words by length: {length: [words]}."""
    pool = {}
    for _ in range(n):
        w = lex.token()
        if " " not in w:
            pool.setdefault(len(w), []).append(w)
    return pool


def small_screen(rng, pool, rows, across, questions, longest):
    """A window of rows x across image tokens somewhere on the screen, filled with words, and
    questions about it -> a sheet."""
    r0, c0 = rng.randint(0, ROWS - rows), rng.randint(0, ACROSS - across)
    lengths = [n for n in pool if n <= longest]
    share = [len(pool[n]) for n in lengths]
    grid, words = [[" "] * COLUMNS for _ in range(ROWS)], []
    for r in range(r0, r0 + rows):
        c, end = 2 * c0 + rng.choice((0, 0, 1, 2, 3)), 2 * (c0 + across)
        while c < end:
            w = rng.choice(pool[rng.choices(lengths, share)[0]])
            if c + len(w) > end:
                break
            grid[r][c:c + len(w)] = w
            words.append((w, r, c))
            c += len(w) + rng.choice((1, 1, 2, 3))
    cells = ["".join(row) for row in grid]
    flat = "\n".join(cells)
    once = [q for q in words if flat.count(q[0]) == 1 and len(q[0]) > 1]
    turns = []
    for _ in range(questions):
        kind = rng.random()
        if once and kind < 0.75:
            w, r, c = rng.choice(once)
            at = f"<at><{2 * c + len(w)}><{4 * r + 2}>"
            if kind < 0.5:
                turns.append((f"Find {w}", at))
            else:
                form = rng.choice(("Press {}", "Click {}", "Tick {}", "Choose {}", "Select {}"))
                turns.append((form.format(w), f"only step<click>{w}{at}"))
        else:
            r = rng.randrange(r0, r0 + rows)
            turns.append((f"Read row {r + 1}", " ".join(cells[r].split()) or "nothing"))
    turns = [dict(u=u, a=a, loss=True) for u, a in turns]
    turns[0]["u"] += "\n<image>"
    return lay(turns, cells, (r0, r0 + rows, c0, c0 + across))
