"""Shards of screens in a tenth of their bytes, to be carried to a machine that only computes.

    python pack.py --out FILE [--screens N] SHARD.npz...

Design.  Screens of one page differ little, so they stand beside each other: sorted by size, page, seed and step, in blocks
of 512 that are packed as one, each with a palette of its own 255 colours (others become the nearest of them: antialiasing
only, 0.1 to 0.3 % of the pixels).  A pixel is a byte, and zstd sees 128 MiB back.  Played states take 2 KB in place of 14,
windows and forms 4 to 8.  What is known about the screens goes beside them, letters by columns.

FILE is a zip of numpy arrays (np.savez): `blocks`, JSON text with (n, height, width) of each block; `pixels<k>`, `palette<k>`
[256, 3]; `letters`, `items`, `about` packed; `place` [n, 2] the number of letters and elements of each screen.
"""

import argparse
import json
import random

import numpy as np
import zstandard

import crops  # puts the world's folder on the path
import store

BLOCK = 512


def palette_of(pictures):
    """The 255 commonest colours [256, 3] of pictures [n, h, w, 3], and each picture in numbers of it."""
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
    """Rows of small numbers as differences, column by column, for the packer."""
    rows = np.asarray(rows, np.int16)
    return np.diff(rows, axis=0, prepend=rows[:1] * 0).T.tobytes()


def rows_of(data, width):
    return np.cumsum(np.frombuffer(data, np.int16).reshape(width, -1), 1, dtype=np.int16).T


def packer(level):
    p = zstandard.ZstdCompressionParameters.from_level(level, window_log=27, enable_ldm=True)
    return zstandard.ZstdCompressor(compression_params=p)


def pack(paths, out, most):
    shards = [store.Shard(p) for p in paths]
    about = [s.about for s in shards]
    all_ = [(s, k) for s, shard in enumerate(shards) for k in range(len(shard))]
    if most < len(all_):
        all_ = random.Random(len(all_)).sample(all_, most)

    def order(at):
        s, k = at
        a = about[s][k]
        return *map(int, shards[s].place[k][2:4]), crops.world_of(shards[s]), str(a.get("page", "")), a.get("seed", 0), a.get("step", 0), s, k

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
    notes = [about[s][k] | {"world": crops.world_of(shards[s])} for s, k in all_]
    arrays |= {
        "letters": np.frombuffer(tight.compress(columns(np.concatenate([l for l, _ in found]))), np.uint8),
        "items": np.frombuffer(tight.compress(columns(np.concatenate([i for _, i in found]))), np.uint8),
        "about": np.frombuffer(tight.compress("\n".join(map(json.dumps, notes)).encode()), np.uint8),
        "place": np.array([(len(l), len(i)) for l, i in found], np.int32),
        "blocks": np.frombuffer(json.dumps(blocks).encode(), np.uint8),
    }
    with open(out, "wb") as f:
        np.savez(f, **arrays)
    sizes = {n: sum(v.nbytes for k, v in arrays.items() if k.startswith(n)) for n in ("pixels", "letters", "items", "about", "palette")}
    print(f"{out}: {len(all_)} screens, " + ", ".join(f"{n} {v / len(all_):.0f}" for n, v in sizes.items()) + " bytes each", flush=True)


class Packed:
    """What a file of `pack` knows about its screens."""

    def __init__(self, path):
        z = np.load(path)
        unpack = zstandard.ZstdDecompressor().decompress
        self.blocks = json.loads(z["blocks"].tobytes())
        ends = np.cumsum(z["place"], 0)
        cut = lambda name, width, column: np.split(rows_of(unpack(z[name].tobytes()), width), ends[:-1, column])
        self.letters, self.items = cut("letters", 7, 0), cut("items", 6, 1)
        self.about = unpack(z["about"].tobytes()).decode().split("\n")


def pictures(path, k, n, h, w):
    """(pixels [n, h, w] in numbers of the palette, palette [256, 3]) of block k of a file."""
    z = np.load(path)
    data = zstandard.ZstdDecompressor().decompress(z[f"pixels{k}"].tobytes(), n * h * w)
    return np.frombuffer(data, np.uint8).reshape(n, h, w), z[f"palette{k}"]


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("shards", nargs="+")
    p.add_argument("--out", required=True)
    p.add_argument("--screens", type=int, default=10**9)
    a = p.parse_args()
    pack(a.shards, a.out, a.screens)


if __name__ == "__main__":
    main()
