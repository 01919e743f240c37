"""Shards of screens in a tenth of their bytes, to be copied to a machine with a GPU.

    python -m pocket pack --out FILE [--screens N] SHARD.npz...

Screens of one page differ little, so they are sorted by size, page, seed and step and compressed in blocks
of 512, each with a palette of its own 255 most frequent colours (other colours, 0.1 to 0.3 % of the pixels,
become the nearest). A pixel is a byte; zstd uses a window of 128 MiB. Played states take 2 KB instead of
14, windows and forms 4 to 8.

FILE is an np.savez archive: `blocks`, JSON text with (n, height, width) of each block; `pixels<k>`,
`palette<k>` [256, 3]; `letters`, `items`, `about` compressed; `place` [n, 2] the number of letters and
elements of each screen.
"""

import json
import random

import numpy as np
import zstandard

from .sources import store

BLOCK = 512


def palette_of(pictures):
    """Returns the 255 most frequent colours [256, 3] of pictures [n, h, w, 3], and the pictures as indices
    into them.
    """
    codes = np.zeros(pictures.shape[:3], np.uint32)
    for c in range(3):
        codes |= pictures[..., c].astype(np.uint32) << 8 * c
    count = np.bincount(codes.reshape(-1), minlength=1 << 24)
    colours = np.flatnonzero(count)
    colours = colours[np.argsort(-count[colours])]
    rgb = np.stack([colours >> 8 * c & 255 for c in range(3)], 1).astype(np.int32)
    kept, number = rgb[:255], np.zeros(1 << 24, np.uint8)
    number[colours[:255]] = np.arange(len(kept))
    for colour, at in zip(colours[255:], rgb[255:]):
        number[colour] = ((kept - at) ** 2).sum(1).argmin()
    out = np.zeros((256, 3), np.uint8)
    out[: len(kept)] = kept
    return out, number[codes]


def columns(rows):
    """Returns rows of small numbers as differences, column by column, as bytes."""
    rows = np.asarray(rows, np.int16)
    return np.diff(rows, axis=0, prepend=rows[:1] * 0).T.tobytes()


def rows_of(data, width):
    """Returns the rows of columns()."""
    return np.cumsum(np.frombuffer(data, np.int16).reshape(width, -1), 1, dtype=np.int16).T


def packer(level):
    p = zstandard.ZstdCompressionParameters.from_level(level, window_log=27, enable_ldm=True)
    return zstandard.ZstdCompressor(compression_params=p)


def pack(paths, out, most):
    """Writes `out` with at most `most` screens of the shards."""
    shards = [store.Shard(p) for p in paths]
    about = [s.about for s in shards]
    all_ = [(s, k) for s, shard in enumerate(shards) for k in range(len(shard))]
    if most < len(all_):
        all_ = random.Random(len(all_)).sample(all_, most)

    def order(at):
        s, k = at
        a = about[s][k]
        return (
            *map(int, shards[s].place[k][2:4]),
            shards[s].source,
            str(a.get("page", "")),
            a.get("seed", 0),
            a.get("step", 0),
            s,
            k,
        )

    all_.sort(key=order)
    blocks, arrays, tight, fast = [], {}, packer(19), packer(13)
    while sum(b[0] for b in blocks) < len(all_):
        at = sum(b[0] for b in blocks)
        size = order(all_[at])[:2]
        part = [a for a in all_[at : at + BLOCK] if order(a)[:2] == size]
        palette, pixels = palette_of(np.stack([shards[s].picture(k) for s, k in part]))
        arrays[f"pixels{len(blocks)}"] = np.frombuffer(fast.compress(pixels.tobytes()), np.uint8)
        arrays[f"palette{len(blocks)}"] = palette
        blocks.append((len(part), *size))
    found = [(shards[s].letters_of(k), shards[s].items_of(k)) for s, k in all_]
    notes = [about[s][k] | {"source": shards[s].source} for s, k in all_]
    arrays |= {
        "letters": np.frombuffer(tight.compress(columns(np.concatenate([f[0] for f in found]))), np.uint8),
        "items": np.frombuffer(tight.compress(columns(np.concatenate([f[1] for f in found]))), np.uint8),
        "about": np.frombuffer(tight.compress("\n".join(map(json.dumps, notes)).encode()), np.uint8),
        "place": np.array([(len(letters), len(items)) for letters, items in found], np.int32),
        "blocks": np.frombuffer(json.dumps(blocks).encode(), np.uint8),
    }
    with open(out, "wb") as f:
        np.savez(f, **arrays)
    sizes = {
        n: sum(v.nbytes for k, v in arrays.items() if k.startswith(n))
        for n in ("pixels", "letters", "items", "about", "palette")
    }
    print(
        f"{out}: {len(all_)} screens, "
        + ", ".join(f"{n} {v / len(all_):.0f}" for n, v in sizes.items())
        + " bytes each",
        flush=True,
    )


class Packed:
    """The labels of a packed file: letters, items and about per screen; blocks."""

    def __init__(self, path):
        z = np.load(path)
        unpack = zstandard.ZstdDecompressor().decompress
        self.blocks = json.loads(z["blocks"].tobytes())
        ends = np.cumsum(z["place"], 0)

        def cut(name, width, column):
            return np.split(rows_of(unpack(z[name].tobytes()), width), ends[:-1, column])

        self.letters, self.items = cut("letters", 7, 0), cut("items", 6, 1)
        self.about = unpack(z["about"].tobytes()).decode().split("\n")


def pictures(path, k, n, h, w):
    """Returns (pixels [n, h, w] as palette indices, palette [256, 3]) of block k of a file."""
    z = np.load(path)
    data = zstandard.ZstdDecompressor().decompress(z[f"pixels{k}"].tobytes(), n * h * w)
    return np.frombuffer(data, np.uint8).reshape(n, h, w), z[f"palette{k}"]


def options(p):
    p.add_argument("shards", nargs="+", help=".npz files of shards")
    p.add_argument("--out", required=True, help="file to write")
    p.add_argument("--screens", type=int, default=10**9, help="screens to take at random, at most")


def run(a):
    pack(a.shards, a.out, a.screens)
