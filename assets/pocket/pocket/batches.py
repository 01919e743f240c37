"""Packed screens (pack.py) for joint training: their sizes, batches of conversations, their pictures on the
GPU.

    screens = Screens(files)                            draws batches of conversations
    loader = DataLoader(Stream(screens, 64, 1), ...) the same from other processes, without end
    album = Album(screens, device, threads, dt)         pictures; album.patches(batch) is the input

A batch has pictures of one size, so attention needs no mask. Pictures stay on the GPU as RGB, enlarged and
padded as in use. The loader's batches hold every index that the loss needs.
"""

import collections
import json
import multiprocessing.pool

import numpy as np
import torch
import torch.nn.functional as F

from . import joint_model, pack, targets
from .conversations import Conversations
from .heads import SLOTS
from .pages import SCRIPTS_DIFFER

AS_USED = (480, 640)  # real browser states on a screen of this size have twice the weight
WEIGHTS = {"visited": 2, "kiosk": 2, "forms": 3, "gtk": 2, "qt": 2, "tk": 2}  # of sources, 1 if not named
NAMELESS = ("kiosk",)  # sources whose elements have no loss: a kiosk field is reported at its label
# Of static screens: the first that fits
SIZES = [(256, 448), (256, 640), (384, 448), (384, 640), (480, 480), (256, 896), (384, 896), (480, 640)]
SIZES += [(640, 480), (480, 896), (640, 640), (640, 896), (768, 1024), (1024, 1024)]
POOLS = 4  # batches that are sorted by length together
LARGEST = 640 * 896  # pixels; larger screens are evaluated but not trained on, because of the GPU's memory
UNCHANGED = [(c, 1.0, 0.0) for c in range(3)]  # source, gain and offset of each colour channel


def size_of(about, h, w):
    """Returns (scale, height, width) at which a picture is trained on."""
    scale, h, w = targets.in_use(h, w)
    if about["source"] in ("played", "visited", "kiosk"):
        return scale, -(-h // 32) * 32, -(-w // 32) * 32
    return scale, *next(s for s in SIZES if h <= s[0] and w <= s[1])


def weight(about, size):
    """Returns how often a screen is drawn, relative to others."""
    if about["source"] == "played" and not about.get("real"):
        return 0 if about["page"] in SCRIPTS_DIFFER else 1
    return WEIGHTS.get(about["source"], 1) * (2 if size == AS_USED and about.get("real") else 1)


class Screens(Conversations):
    """Screens of packed files, grouped by size; a screen's key is its number."""

    def __init__(self, files, heldout=False):
        super().__init__(heldout)
        self.about, self.letters, self.items, self.photo, self.blocks = [], [], [], [], []
        # numbers of the screens of a size; photo[number] is the place there
        self.sizes = collections.defaultdict(list)
        for path in files:
            p, at = pack.Packed(path), 0
            for k, (n, h, w) in enumerate(p.blocks):
                self.blocks.append((path, k, (n, h, w), [self._add(p, j, h, w) for j in range(at, at + n)]))
                at += n
        self.weights = {
            s: [1 if heldout else weight(self.about[n], s) for n in numbers]
            for s, numbers in self.sizes.items()
        }
        self.seed("begin")

    def _add(self, p, j, h, w):
        """Adds screen j of a file; returns (place among those of its size, height, width, scale)."""
        about = json.loads(p.about[j])
        scale, *size = size_of(about, h, w)
        letters, items = (targets.scaled(t[j], scale) for t in (p.letters, p.items))
        same = self.sizes[tuple(size)]
        self.photo.append(len(same))
        same.append(len(self.about))
        self.about.append(about | {"items": items.tolist()})
        self.letters.append(letters)
        self.items.append(items)
        return self.photo[-1], *size, scale

    def any(self):
        return self.random.choices(self.numbers, cum_weights=self.cumulative)[0]

    def screen(self, number):
        """Returns (number, grid of image tokens, letters, about) of a screen."""
        h, w = self.size
        return number, (h // 32, w // 32), self.letters[number], self.about[number]

    def choose(self, size=None):
        """Restricts any() to screens of one size, by default a random one."""
        sizes = [s for s in self.sizes if s[0] * s[1] <= LARGEST]
        self.size = size or self.random.choices(sizes, [sum(self.weights[s]) for s in sizes])[0]
        self.numbers = self.sizes[self.size]
        self.cumulative = np.cumsum(self.weights[self.size]).tolist()

    def batches(self, n):
        """Yields POOLS batches of n conversations of one size and similar length; half as many of large
        screens.
        """
        self.choose()
        if self.size[0] * self.size[1] > AS_USED[0] * AS_USED[1]:
            n = max(1, n // 2)
        drawn = sorted((self.draw() for _ in range(n * POOLS)), key=lambda d: len(d[1].ids))
        parts = [drawn[k : k + n] for k in range(0, n * POOLS, n)]
        self.random.shuffle(parts)
        for part in parts:
            yield self.batch(part)

    def batch(self, part):
        """Returns the tensors of [(number, sequence)]: `ids` [B, T] and indices into the rows of all
        sequences.
        """
        h, w = self.size
        T = -(-max(len(s.ids) for _, s in part) // 64) * 64
        ids, at, want, sources = np.zeros((len(part), T), np.int16), [], [], []
        for b, (_, s) in enumerate(part):
            ids[b, : len(s.ids)] = s.ids
            on = np.flatnonzero(s.on)
            at.append(b * T + on - 1)
            want.append(np.array(s.ids)[on])
            sources += [(b * T + query, kind, key) for query, kind, key in s.sources]
        sources = np.array(sources, np.int64).reshape(-1, 3)
        of_kind = {
            k: torch.from_numpy(sources[sources[:, 1] == k][:, [0, 2]].copy()) for k in joint_model.SUPERVISED
        }
        numbers = [n for n, _ in part]
        tokens = torch.cartesian_prod(torch.arange(h // 32), torch.arange(w // 32))
        out = dict(size=self.size, ids=torch.from_numpy(ids).long(), at=torch.from_numpy(np.concatenate(at)))
        out |= dict(want=torch.from_numpy(np.concatenate(want)).long(), sources=of_kind, numbers=numbers)
        out |= dict(photos=torch.tensor([self.photo[n] for n in numbers]), grid=tokens.repeat(len(part), 1))
        return out | self.shown(numbers, h // 16, w // 16)

    def shown(self, numbers, rows, cols):
        """Returns the targets of the encoder's heads on these pictures, and the colours they are shown in.

        `slots` [8, most, 3] has patch, class and offset of the letters of each slot, class -100 after the
        last.
        """
        present, slots, kinds, states, colours = [], [[] for _ in range(SLOTS)], [], [], []
        for b, n in enumerate(numbers):
            source = self.about[n]["source"]
            there, letters = targets.letter_targets(self.letters[n], rows, cols)
            present.append(there)
            for s in range(SLOTS):
                mine = letters[letters[:, 1] == s]
                slots[s].append(np.stack([mine[:, 0] + b * rows * cols, mine[:, 2], mine[:, 3]], 1))
            kind, state = targets.item_targets(self.items[n], rows, cols)
            kinds.append(np.full(rows * cols, targets.NOT_ASKED) if source in NAMELESS else kind)
            states.append(state)
            colours.append(self.colours(source in ("forms", "gtk", "qt", "tk")))
        slots = [np.concatenate(s) for s in slots]
        table = np.zeros((SLOTS, max(1, *map(len, slots)), 3), np.int64)
        table[..., 1] = -100
        for mine, letters in zip(table, slots):
            mine[: len(letters)] = letters
        patches = torch.cartesian_prod(torch.arange(rows), torch.arange(cols)).expand(len(numbers), -1, -1)
        out = dict(
            present=torch.from_numpy(np.stack(present)), slots=torch.from_numpy(table), patches=patches
        )
        out |= dict(kinds=torch.from_numpy(np.stack(kinds)).long(), states=torch.from_numpy(np.stack(states)))
        return out | dict(colours=torch.tensor(colours))

    def colours(self, change):
        """Returns (source, gain, offset) of three channels with values from 0 to 1; a quarter is changed."""
        out = list(UNCHANGED)
        if change and self.random.random() < 0.25:
            order, sign = self.random.sample(range(3), 3), self.random.choice((1, 1, 1, -1))
            for k, c in enumerate(order):
                a = self.random.uniform(0.6, 1.0)
                out[k] = (c, sign * a, self.random.uniform(0, 1 - a) + (a if sign < 0 else 0))
        return out


class Stream(torch.utils.data.IterableDataset):
    """Batches without end, different in each worker process."""

    def __init__(self, screens, batch, seed):
        self.screens, self.batch, self.seed = screens, batch, seed

    def __iter__(self):
        torch.set_num_threads(1)
        me = torch.utils.data.get_worker_info()
        self.screens.seed(f"{self.seed}/{me.id if me else 0}")
        while True:
            yield from self.screens.batches(self.batch)


class Album:
    """All pictures on a device: rgb {size: uint8 [n, h, w, 3]}."""

    def __init__(self, screens, device, threads, dt):
        self.dt = dt
        self.rgb = {
            s: torch.empty(len(n), *s, 3, dtype=torch.uint8, device=device) for s, n in screens.sizes.items()
        }
        unpacked = multiprocessing.pool.ThreadPool(threads).imap(self._unpacked, screens.blocks)
        for (*_, placed), (pixels, palette) in zip(screens.blocks, unpacked):
            pixels, palette = pixels.to(device), palette.to(device)
            for j in range(0, len(placed), 64):  # enlarging uses fp32, so 64 at a time
                part = enlarge(palette[pixels[j : j + 64].long()], placed[j][3])
                for place, picture in zip(placed[j : j + 64], part):
                    self._put(picture, *place[:3])

    @staticmethod
    def _unpacked(block):
        path, k, shape, _ = block
        pixels, palette = pack.pictures(path, k, *shape)
        return torch.from_numpy(pixels.copy()), torch.from_numpy(palette)

    def _put(self, picture, place, h, w):
        """Stores a picture; its last row and column are repeated up to the size."""
        page, hp, wp = self.rgb[h, w][place], min(h, picture.shape[0]), min(w, picture.shape[1])
        page[:hp, :wp] = picture[:hp, :wp]
        page[hp:, :wp] = page[hp - 1 : hp, :wp].clone()
        page[:, wp:] = page[:, wp - 1 : wp].clone()

    def patches(self, batch):
        """Returns the batch's normalized patches [B, n, 768] in its colours."""
        h, w = batch["size"]
        x = self.rgb[h, w][batch["photos"]].float() / 255
        source, gain, offset = (t[:, None, None] for t in batch["colours"].unbind(-1))
        return targets.patches_of(x.gather(3, source.long().expand(-1, h, w, -1)) * gain + offset).to(self.dt)


def enlarge(pictures, scale):
    """Returns pictures [n, h, w, 3] enlarged as by targets.enlarged; a GPU cannot resize uint8."""
    if scale == 1:
        return pictures
    size = [round(v * scale) for v in pictures.shape[1:3]]
    x = F.interpolate(pictures.permute(0, 3, 1, 2).float(), size, mode="bicubic", antialias=True)
    return x.round().clamp(0, 255).to(torch.uint8).permute(0, 2, 3, 1)
