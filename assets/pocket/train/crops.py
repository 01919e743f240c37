"""Crops of stored screens with what is to be read and found in them.

Design.  A crop is 12x13 patches (or the like: 156 in all, so that a sequence with four prefix tokens is 160
long, which the products like) at any pixel offset of a screen.  Each patch has eight slots, four columns of
4 px times two rows of 8 px; the letter whose box is centred in a slot belongs to it.  Targets:

    present [n, 8]   1 a letter, 0 none, 2 not known (blind places, letters cut by the edge of the crop)
    letters          rows (crop, patch, slot, class, 16ths of the slot's width from its left)
    items            see `item_targets`: what element each patch belongs to

Screens are unpacked once and used several times (POOL of them are kept), most crops have a letter in them,
and a quarter has its colours changed, since themes are many more than those that were drawn.
"""

import pathlib
import random
import sys

import numpy as np
import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "world"))
import store  # noqa: E402
from kernels import PRODUCTS, call  # noqa: E402
from model import MEAN, STD  # noqa: E402

SHAPES = {
    156: [(12, 13)] * 4 + [(13, 12)] * 4 + [(6, 26)] * 2,  # for reading
    572: [(22, 26), (26, 22)],
}  # nearly a whole page of MiniWoB, for elements, and so that attention learns what a page is
LARGE = 572  # patches: what is read among few others is read worse among many
SLOTS, ACROSS, UNKNOWN = 8, 4, 2
POOL, USES = 192, 8
MIX = {
    "miniwob": 1,
    "forms": 2,
    "gtk": 4,
    "qt": 4,
    "tk": 4,
    "kiosk": 4,
}  # how often screens of a world are taken, 1 unless named
NAMELESS = ("kiosk",)  # worlds that are read, and asked for nothing else: a field is entered by its name there
NOT_ASKED = -100  # a kind that no loss is taken of
KINDS, STATES = store.KINDS, 7  # the states of labels.js, a bit each


ENLARGE, AS_LARGE_AS, LONGEST = 1.5, 640 * 480, 1024  # image_native_scale() of the program has the same


def in_use(h, w):
    """(scale, height, width) of a screen as it is in use: a small one, a dialog mostly, is seen one and a half times as
    large, since more patches read its small type better."""
    scale = ENLARGE if h * w * ENLARGE**2 <= AS_LARGE_AS and max(h, w) * ENLARGE <= LONGEST else 1.0
    return scale, round(h * scale), round(w * scale)


def scaled(labels, scale):
    """Letters or elements, their boxes in quarter pixels, of a screen that is seen so much larger."""
    out = labels.copy()
    out[:, :4] = np.round(out[:, :4] * scale)
    return out


def enlarged(picture, *labels):
    """A screen and its labels as they are in use."""
    scale, *size = in_use(*picture.shape[:2])
    if scale == 1:
        return picture, *labels
    planes = torch.from_numpy(np.array(picture)).permute(2, 0, 1)[None]
    big = torch.nn.functional.interpolate(planes, size, mode="bicubic", antialias=True)[0].permute(1, 2, 0).numpy()
    big = np.pad(big, ((0, -size[0] % 32), (0, -size[1] % 32), (0, 0)), mode="edge")
    return big, *(scaled(l, scale) for l in labels)


def slot_of(x, y):
    """Patch column, patch row and slot of a point in pixels of the crop (arrays)."""
    return x // 16, y // 16, y % 16 // 8 * ACROSS + x % 16 // 4


def letter_targets(letters, blind, x0, y0, rows, cols):
    """(present [rows*cols, 8] uint8, [[patch, slot, class, shift], ...]) of a crop at (x0, y0)."""
    present = np.zeros((rows * cols, SLOTS), np.uint8)
    box = letters[:, :4] / 4 - np.array([x0, y0, x0, y0])
    cx, cy = (box[:, 0] + box[:, 2]) / 2, (box[:, 1] + box[:, 3]) / 2
    inside = (cx >= 0) & (cy >= 0) & (cx < cols * 16) & (cy < rows * 16)
    box, cx, cy, kind = box[inside], cx[inside], cy[inside], letters[inside, 4]
    w, h = np.maximum(box[:, 2] - box[:, 0], 1), np.maximum(box[:, 3] - box[:, 1], 1)
    out_x = np.maximum(-box[:, 0], box[:, 2] - cols * 16) / w
    out_y = np.maximum(-box[:, 1], box[:, 3] - rows * 16) / h
    whole = (out_x < 0.2) & (out_y < 0.25)
    q, r, s = slot_of(cx.astype(int), cy.astype(int))
    patch = r * cols + q
    for bx0, by0, bx1, by1 in blind / 4 - np.array([x0, y0, x0, y0]):
        ys, xs = np.arange(rows * 2) * 8 + 4, np.arange(cols * 4) * 4 + 2
        hit = ((ys >= by0) & (ys <= by1))[:, None] & ((xs >= bx0) & (xs <= bx1))
        present[hit.reshape(rows, 2, cols, 4).transpose(0, 2, 1, 3).reshape(-1, SLOTS)] = UNKNOWN
    present[patch[~whole], s[~whole]] = UNKNOWN
    patch, s, kind, shift = patch[whole], s[whole], kind[whole], (cx[whole] % 4) * 4
    _, first = np.unique(patch * SLOTS + s, return_index=True)  # one letter a slot
    patch, s, kind, shift = patch[first], s[first], kind[first], shift[first]
    present[patch, s] = 1
    return present, np.stack([patch, s, kind, shift.astype(int)], 1)


def tidy(items):
    """Elements as they are asked: the focus counts where it surely shows, on fields; a tab's inner link is
    the tab."""
    shows = np.isin(items[:, 4], [KINDS.index("field"), KINDS.index("area")])
    out = items.copy()
    out[:, 5] = np.where(shows, items[:, 5], items[:, 5] & ~8)
    keep, slack = np.ones(len(items), bool), 8
    for t in items[items[:, 4] == KINDS.index("tab")]:
        keep &= ~(
            (items[:, 4] == KINDS.index("link"))
            & (items[:, 0] >= t[0] - slack)
            & (items[:, 1] >= t[1] - slack)
            & (items[:, 2] <= t[2] + slack)
            & (items[:, 3] <= t[3] + slack)
        )
    return out[keep]


def item_targets(items, x0, y0, rows, cols):
    """Which element each patch belongs to, the smallest whose box holds its centre: (kind [n], 0 none;
    state bits [n, STATES]; box [n, 4] from the patch's centre, in patches; whole [n], whether the crop
    holds all of the box).
    """
    kind = np.zeros(rows * cols, np.int64)
    state = np.zeros((rows * cols, STATES), np.float32)
    box = np.zeros((rows * cols, 4), np.float32)
    whole = np.zeros(rows * cols, np.float32)
    items = tidy(items)
    if len(items):
        b = items[:, :4] / 4 - np.array([x0, y0, x0, y0])
        area = (b[:, 2] - b[:, 0]) * (b[:, 3] - b[:, 1])
        cy, cx = np.divmod(np.arange(rows * cols), cols)
        cx, cy = cx * 16 + 8.0, cy * 16 + 8.0
        for k in np.argsort(-area):
            near = np.maximum(
                0, 9 - (b[k, 2:] - b[k, :2]) / 2
            )  # small things reach the patch they touch most
            hit = (
                (cx > b[k, 0] - near[0])
                & (cx < b[k, 2] + near[0])
                & (cy > b[k, 1] - near[1])
                & (cy < b[k, 3] + near[1])
            )
            kind[hit] = items[k, 4] + 1
            state[hit] = (items[k, 5] >> np.arange(STATES)) & 1
            box[hit] = (b[k] - np.stack([cx, cy, cx, cy], 1)[hit]) / 16
            whole[hit] = b[k, 0] > -6 and b[k, 1] > -6 and b[k, 2] < cols * 16 + 6 and b[k, 3] < rows * 16 + 6
    return kind, state, box, whole


def world_of(shard):
    return pathlib.Path(shard.path).name.split("-")[0]


class Crops:
    """Endless batches for one worker."""

    def __init__(self, folders, crops, seed, tokens=156, items=False, mix=None):
        self.shards, self.shapes = store.shards(folders), SHAPES[tokens]
        self.folders, self.crops, self.items = folders, crops, items
        self.random, self.pool, self.at = random.Random(seed), [], 0
        self.mix = mix or MIX

    def _screen(self):
        """A screen by chance; worlds in proportion to `mix` (by the shard's name), 1 unless named."""
        if self.at % 2048 == 0:
            self.shards = store.shards(self.folders)  # new ones join
            self.weights = [len(s) * self.mix.get(world_of(s), 1) for s in self.shards]
        self.at += 1
        s = self.random.choices(self.shards, self.weights)[0]
        k = self.random.randrange(len(s))
        screen = s.picture(k), s.letters_of(k), s.blind_of(k), s.items_of(k)
        if self.random.random() < 0.7:
            screen = enlarged(*screen)
        picture, letters, blind, items = screen
        return self._padded(picture), letters, blind, None if world_of(s) in NAMELESS else items

    def _padded(self, picture):
        """A screen in which no crop fits gets a plain margin, right and below."""
        h, w = picture.shape[:2]
        if any(r * 16 <= h and c * 16 <= w for r, c in self.shapes):
            return picture
        r, c = self.random.choice(self.shapes)
        out = np.empty((max(h, r * 16), max(w, c * 16), 3), np.uint8)
        out[:] = [self.random.randrange(256) for _ in range(3)]
        out[:h, :w] = picture
        return out

    def _draw(self):
        if len(self.pool) < POOL:
            self.pool.append([self._screen(), USES])
            return self.pool[-1][0]
        k = self.random.randrange(POOL)
        self.pool[k][1] -= 1
        if self.pool[k][1] < 0:
            self.pool[k] = [self._screen(), USES]
        return self.pool[k][0]

    def _place(self, picture, letters):
        """Shape and origin of a crop, mostly with a letter in it."""
        h, w = picture.shape[:2]
        fits = [(r, c) for r, c in self.shapes if r * 16 <= h and c * 16 <= w]
        rows, cols = self.random.choice(fits)
        a = self._origin(h, w, rows, cols, letters)
        if self.random.random() < 0.5:  # the fuller of two crops
            b = self._origin(h, w, rows, cols, letters)
            a = max(a, b, key=lambda o: self._count(letters, rows, cols, *o))
        return rows, cols, *a

    @staticmethod
    def _count(letters, rows, cols, x, y):
        cx, cy = (letters[:, 0] + letters[:, 2]) / 8, (letters[:, 1] + letters[:, 3]) / 8
        return int(((cx > x) & (cx < x + cols * 16) & (cy > y) & (cy < y + rows * 16)).sum())

    def _origin(self, h, w, rows, cols, letters):
        x, y = self.random.randint(0, w - cols * 16), self.random.randint(0, h - rows * 16)
        if len(letters) and self.random.random() < 0.75:
            l = letters[self.random.randrange(len(letters))]
            cx, cy = (l[0] + l[2]) / 8, (l[1] + l[3]) / 8
            x = min(max(0, int(cx - self.random.random() * cols * 16)), w - cols * 16)
            y = min(max(0, int(cy - self.random.random() * rows * 16)), h - rows * 16)
        return x, y

    def _colours(self):
        """(channel order, gain, shift): normalisation, and sometimes other colours."""
        order, gain, shift = [0, 1, 2], [1 / 255] * 3, [0.0] * 3
        if self.random.random() < 0.25:
            self.random.shuffle(order)
            for c in range(3):
                a = self.random.uniform(0.6, 1.0) * self.random.choice((1, 1, 1, -1) if c == 0 else (sign,))
                sign = 1 if a > 0 else -1
                b = self.random.uniform(0, 1 - abs(a)) + (abs(a) if a < 0 else 0)
                gain[c], shift[c] = a / 255, b
        return order, [g / s for g, s in zip(gain, STD)], [(b - m) / s for b, m, s in zip(shift, MEAN, STD)]

    def next(self, patches):
        """Fills `patches` [crops, 156, 768] bf16; gives (place, present, letters, items or None) as
        tensors."""
        place, present, found, items = [], [], [], []
        for b in range(self.crops):
            picture, letters, blind, elements = self._draw()
            rows, cols, x, y = self._place(picture, letters)
            order, gain, shift = self._colours()
            call(
                "cut_patches",
                picture,
                picture.shape[1],
                x,
                y,
                rows,
                cols,
                torch.tensor(order),
                torch.tensor(gain),
                torch.tensor(shift),
                patches[b],
            )
            p, l = letter_targets(letters, blind, x, y, rows, cols)
            present.append(p)
            found.append(np.concatenate([np.full((len(l), 1), b), l], 1))
            if self.items:
                known = item_targets(np.zeros((0, 6), np.int16) if elements is None else elements, x, y, rows, cols)
                if elements is None:
                    known[0][:] = NOT_ASKED
                items.append(known)
            r0, c0 = self.random.randint(0, 64 - rows), self.random.randint(0, 64 - cols)
            place.append(((np.arange(rows)[:, None] + r0) * 64 + np.arange(cols) + c0).ravel())
        packed = [torch.from_numpy(np.stack(t)) for t in zip(*items)] if self.items else None
        return (
            torch.from_numpy(np.stack(place)),
            torch.from_numpy(np.stack(present)),
            torch.from_numpy(np.concatenate(found)).long(),
            packed,
        )


def whole(picture):
    """A whole screen as patches [1, rows*cols, 768] in the type of the products, its sides cut to multiples of 32."""
    h, w = picture.shape[0] // 32 * 2, picture.shape[1] // 32 * 2
    out = torch.empty(1, h * w, 768, dtype=PRODUCTS)
    call(
        "cut_patches",
        np.ascontiguousarray(picture),
        picture.shape[1],
        0,
        0,
        h,
        w,
        torch.tensor([0, 1, 2]),
        torch.tensor([1 / 255 / s for s in STD]),
        torch.tensor([-m / s for m, s in zip(MEAN, STD)]),
        out,
    )
    return out, h, w
