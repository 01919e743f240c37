"""Packed screens for the joint run: their sizes, conversations about them, and their pictures on the card.

    screens = Screens(FILES of pack.py)                 what is known about them; draws batches of conversations
    loader = DataLoader(Stream(screens, options), ...)  the same from processes beside the run, without end
    album = Album(screens, device, threads, type)       their pictures; album.patches(batch) is what the tower sees

Design.  A batch has one size of picture, so that attention needs no mask.  Pictures lie on the card as RGB, enlarged and
padded as in use, and are normalised there.  Conversations are drawn by processes beside it; what these hand over has every
index that the card needs, so that nothing on the card waits for the host.
"""

import collections
import json
import multiprocessing.pool
import random

import numpy as np
import torch
import torch.nn.functional as F

import conversations
import crops
import language
import pack
import questions
import stages
from model import MEAN, STD
from words import Lexicon

AS_USED = (480, 640)  # states of pages on a screen of this size are taken twice as often
SIZES = [(256, 448), (256, 640), (384, 448), (384, 640), (480, 480), (256, 896), (384, 896), (480, 640), (640, 480), (480, 896),
         (640, 640), (640, 896), (768, 1024), (1024, 1024)]  # of still screens, the first in which one fits
LARGEST = 640 * 896  # more is judged, and not trained on: a batch of it would take the card's memory
AS_THEY_ARE = [(c, 1.0, 0.0) for c in range(3)]  # source, gain and shift of each channel


def size_of(about, h, w):
    """(scale, height, width) of a picture as it is shown: small ones enlarged, still ones padded to few sizes."""
    scale, h, w = crops.in_use(h, w)
    if about["world"] in ("played", "visited", "kiosk"):
        return scale, -(-h // 32) * 32, -(-w // 32) * 32
    return scale, *next(s for s in SIZES if h <= s[0] and w <= s[1])


def often(about, size):
    """How often a screen is taken, in terms of others."""
    if about["world"] == "played" and not about.get("real"):
        return 0 if about["page"] in stages.BY_HAND else 1
    return conversations.OFTEN.get(about["world"], 1) * (2 if size == AS_USED and about.get("real") else 1)


class Screens(conversations.Rows):
    """Packed screens as conversations.Rows has cached ones; `draw` gives a number in place of rows."""

    def __init__(self, files, gate=False, turns=5, beside=2, limit=1100):
        self.gate, self.limit, self.turns, self.beside = gate, limit, turns, min(turns, beside)
        self.about, self.letters, self.items, self.photo, self.blocks = [], [], [], [], []
        self.sizes = collections.defaultdict(list)  # numbers of the screens of each size; photo[number] is the place among them
        for path in files:
            p, at = pack.Packed(path), 0
            for k, (n, h, w) in enumerate(p.blocks):
                self.blocks.append((path, k, (n, h, w), [self._add(p, j, h, w) for j in range(at, at + n)]))
                at += n
        self.weight = {s: [1 if gate else often(self.about[n], s) for n in numbers] for s, numbers in self.sizes.items()}
        self.seed("begin")

    def _add(self, p, j, h, w):
        """Takes up a screen of a file; gives (its place among those of its size, height, width, scale)."""
        about = json.loads(p.about[j])
        scale, *size = size_of(about, h, w)
        letters, items = (crops.scaled(t[j], scale) for t in (p.letters, p.items))
        same = self.sizes[tuple(size)]
        self.photo.append(len(same))
        same.append(len(self.about))
        self.about.append(about | {"items": items.tolist()})
        self.letters.append(letters)
        self.items.append(items)
        return self.photo[-1], *size, scale

    # ---- conversations

    def seed(self, seed):
        self.random = random.Random(seed)
        self.lex = Lexicon(self.random, self.gate)

    def any(self):
        return self.random.choices(self.numbers, cum_weights=self.cumulative)[0], 0

    def screen(self, number, _):
        h, w = self.size
        return number, (h // 32, w // 32), self.letters[number], self.about[number]

    def choose(self, size=None):
        """From now on screens of this size are drawn, or of one by chance."""
        sizes = [s for s in self.sizes if s[0] * s[1] <= LARGEST]
        self.size = size or self.random.choices(sizes, [sum(self.weight[s]) for s in sizes])[0]
        self.numbers, w = self.sizes[self.size], self.weight[self.size]
        self.cumulative = np.cumsum(w).tolist()

    # ---- batches

    def batches(self, n, pools):
        """Batches of n conversations about screens of one size, of like length; half as many of large ones."""
        self.choose()
        if self.size[0] * self.size[1] > AS_USED[0] * AS_USED[1]:
            n = max(1, n // 2)
        drawn = sorted((self.draw() for _ in range(n * pools)), key=lambda d: len(d[1].ids))
        parts = [drawn[k : k + n] for k in range(0, n * pools, n)]
        self.random.shuffle(parts)
        for part in parts:
            yield self.batch(part)

    def batch(self, part):
        """What the card needs of these conversations; places are those in the batch's rows one after the other."""
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
                   want=torch.from_numpy(np.concatenate(want)).long(), hints=hints, numbers=numbers,
                   photos=torch.tensor([self.photo[n] for n in numbers]))
        return out | self.shown(numbers, h // 16, w // 16)

    def shown(self, numbers, rows, cols):
        """What the eyes are asked about these pictures, and the colours that they are shown in."""
        present, slots, kinds, states, colours, aims = [], [[] for _ in range(crops.SLOTS)], [], [], [], []
        for b, n in enumerate(numbers):
            p, l = crops.letter_targets(self.letters[n], np.zeros((0, 4), np.int16), 0, 0, rows, cols)
            still = self.about[n]["world"] in ("forms", "gtk", "qt", "tk", "miniwob")
            present.append(p)
            for s in range(crops.SLOTS):
                mine = l[l[:, 1] == s]
                slots[s].append(np.stack([mine[:, 0] + b * rows * cols, mine[:, 2], mine[:, 3]], 1))
            kind, state, _, _ = crops.item_targets(self.items[n], 0, 0, rows, cols)
            kinds.append(np.full(rows * cols, crops.NOT_ASKED) if self.about[n]["world"] in crops.NAMELESS else kind)
            states.append(state)
            aims += [(b * rows * cols + patch, *rest) for patch, *rest in self.aims(n, rows, cols)]
            colours.append(self.colours(still and "action" not in self.about[n]))
        slots = [np.concatenate(s) for s in slots]
        table = np.zeros((crops.SLOTS, max(1, *map(len, slots)), 3), np.int64)
        table[..., 1] = -100  # behind the letters of a slot: no letter is asked
        for mine, letters in zip(table, slots):
            mine[: len(letters)] = letters
        aims = torch.tensor(aims, dtype=torch.float32).view(-1, 4)
        return dict(present=torch.from_numpy(np.stack(present)), slots=torch.from_numpy(table),
                    aims=aims[:, :2].long(), offs=aims[:, 2:].contiguous(),
                    kinds=torch.from_numpy(np.stack(kinds)).long(), states=torch.from_numpy(np.stack(states)),
                    colours=torch.tensor(colours))

    def aims(self, number, rows, cols):
        """(patch, slot, patches to the right, patches down) of letters that name something, to where that is pointed at."""
        if self.about[number]["world"] in crops.NAMELESS:
            return
        screen = questions.Screen(self.letters[number], self.about[number]["items"], self.about[number].get("names", []))
        for kind, _, box, _, places in screen.named():
            _, px, py, *_ = questions.aim(kind, box, places)
            for x, y in filter(None, places):
                c, r, slot = crops.slot_of(int(x), int(y))
                if 0 <= r < rows and 0 <= c < cols:
                    yield r * cols + c, slot, (px - x) / 16, (py - y) / 16

    def colours(self, change):
        """Three channels' (source, gain, shift) of pixels from 0 to 1: mostly as they are."""
        out = list(AS_THEY_ARE)
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


class Album:
    """All pictures on the card, in `rgb`: size -> uint8 [n, h, w, 3]."""

    def __init__(self, screens, device, threads, half):
        self.half, self.mean, self.std = half, *(torch.tensor(t, device=device) for t in (MEAN, STD))
        self.rgb = {s: torch.empty(len(n), *s, 3, dtype=torch.uint8, device=device) for s, n in screens.sizes.items()}
        unpacked = multiprocessing.pool.ThreadPool(threads).imap(self._unpacked, screens.blocks)
        for (*_, placed), (pixels, palette) in zip(screens.blocks, unpacked):
            pixels, palette = pixels.to(device), palette.to(device)
            for j in range(0, len(placed), 64):  # a few at a time, since enlarging is done in fp32
                part = enlarge(palette[pixels[j : j + 64].long()], placed[j][3])
                for place, picture in zip(placed[j : j + 64], part):
                    self._put(picture, *place[:3])

    @staticmethod
    def _unpacked(block):
        path, k, shape, _ = block
        pixels, palette = pack.pictures(path, k, *shape)
        return torch.from_numpy(pixels.copy()), torch.from_numpy(palette)

    def _put(self, picture, place, h, w):
        page, hp, wp = self.rgb[h, w][place], min(h, picture.shape[0]), min(w, picture.shape[1])
        page[:hp, :wp] = picture[:hp, :wp]
        page[hp:, :wp] = page[hp - 1 : hp, :wp].clone()  # the edge goes on, as in use
        page[:, wp:] = page[:, wp - 1 : wp].clone()

    def patches(self, batch):
        """[B, patches, 768] in the type of the products: the batch's pictures in its colours, normalised."""
        h, w = batch["size"]
        x = self.rgb[h, w][batch["photos"]].float() / 255
        source, gain, shift = (t[:, None, None] for t in batch["colours"].unbind(-1))
        x = x.gather(3, source.long().expand(-1, h, w, -1)) * gain + shift
        x = ((x - self.mean) / self.std).to(self.half)
        B = len(x)
        return x.view(B, h // 16, 16, w // 16, 16, 3).permute(0, 1, 3, 5, 2, 4).reshape(B, h * w // 256, 768)


def enlarge(pictures, scale):
    """Pictures [n, h, w, 3] so much larger, as crops.enlarged does it; on the card, where uint8 cannot be enlarged."""
    if scale == 1:
        return pictures
    size = [round(v * scale) for v in pictures.shape[1:3]]
    x = pictures.permute(0, 3, 1, 2).float()
    x = F.interpolate(x, size, mode="bicubic", antialias=True).round().clamp(0, 255)
    return x.to(torch.uint8).permute(0, 2, 3, 1)
