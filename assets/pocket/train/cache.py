"""The tower's rows of whole screens, computed once: what the language model learns on.

    python cache.py --run ELEMENTS --data read --out rows/read [--screens 20000]      stored screens
    python cache.py --run ELEMENTS --records DIR --out rows/miniwob                    records of played episodes

Design.  The tower is the dear part of a step and does not change while the language model learns, so its rows
are kept: after the 2x2 shuffle, each image token is 768 numbers, kept as int8 in units of its largest (the
projector begins with a norm, so that the size of a row means nothing).  140-300 tokens a screen, about 200
KiB.

OUT/NAME.rows is the rows of all screens back to back; OUT/NAME.npz has `place` [n, 4] int64 (first row, rows,
columns of tokens, first letter) and `letters` [L, 7] as in store.py; OUT/NAME.jsonl has a line for each
screen: of stored screens what store.py knows about it with its elements, of records the record itself.  A
record may hold `labels`, what world/labels.js says of the page (its window being the picture): then
questions can be asked about it.  Without them the tower's own reading head says where letters are, which is
good enough for hints only.
"""

import argparse
import itertools
import json
import os
import pathlib
import random

import numpy as np
import torch
import torch.multiprocessing as mp
from PIL import Image

import crops  # puts the world's folder on the path
import check
import headless
import reading
import score
import store
import tower


def pack(x, rows, cols):
    """[1, rows*cols, d] -> int8 [rows/2*cols/2, 4d]: tokens of 2x2 patches, in units of each token's
    largest number."""
    d = x.shape[-1]
    t = x.view(rows // 2, 2, cols // 2, 2, d).permute(0, 2, 1, 3, 4).reshape(-1, 4 * d)
    return (t / t.abs().amax(1, keepdim=True) * 127).round().to(torch.int8).numpy()


class Writer:
    def __init__(self, folder, name):
        os.makedirs(folder, exist_ok=True)
        self.path = os.path.join(folder, name)
        self.rows, self.lines = open(f"{self.path}.rows.part", "wb"), open(f"{self.path}.jsonl", "w")
        self.place, self.letters, self.count, self.n = [], [], 0, 0

    def add(self, rows, grid, letters, about):
        self.rows.write(rows.tobytes())
        self.place.append((self.count, *grid, self.n))
        self.count += len(rows)
        self.n += len(letters)
        self.letters.append(np.asarray(letters, np.int16).reshape(-1, 7))
        self.lines.write(json.dumps(about) + "\n")

    def close(self):
        self.rows.close()
        self.lines.close()
        os.replace(f"{self.path}.rows.part", f"{self.path}.rows")
        np.savez_compressed(
            f"{self.path}.part.npz",
            place=np.array(self.place, np.int64),
            letters=np.concatenate(self.letters or [np.zeros((0, 7), np.int16)]),
        )
        os.replace(f"{self.path}.part.npz", f"{self.path}.npz")


class Eyes:
    def __init__(self, run):
        self.p, self.c, self.reader, _, _ = score.load(run)

    @torch.no_grad()
    def look(self, picture, letters=False):
        """(packed rows, (rows, columns) of tokens, letters as they are stored) of a picture; letters are read
        only where they are asked for, since that takes as long as all the rest."""
        patches, rows, cols = crops.whole(picture)
        x = tower.apply(self.p, self.c, patches, rows, cols)
        found = as_stored(reading.decode(self.reader, x[0], rows, cols).numpy()) if letters else []
        return pack(x[0], rows, cols), (rows // 2, cols // 2), found


def as_stored(found):
    """Decoded letters [[x, y, class, sureness]] as stored letters: lines are what stands at one height,
    words what is close."""
    out, line, word, last = [], 0, 0, None
    for x, y, kind, _ in sorted(found.tolist(), key=lambda f: (round(f[1] / 16), f[0])):
        if last is None or abs(y - last[1]) > 8 or x < last[0]:
            line, word = line + 1, word + 1
        elif x - last[0] > 20:
            word += 1
        last = (x, y)
        out.append((4 * (x - 4), 4 * (y - 8), 4 * (x + 4), 4 * (y + 8), kind, line, word))
    return out


def from_shards(eyes, a):
    done, due = 0, []
    for folder in a.data:
        for shard in store.shards([folder]):
            name = pathlib.Path(shard.path).name
            if done < a.screens and not os.path.exists(os.path.join(a.out, f"{name}.npz")):
                due.append(shard.path)
            done += len(shard)
    if a.workers > 1:
        with mp.get_context("fork").Pool(a.workers) as pool:
            pool.starmap(from_shard, [(eyes, a.out, path) for path in due], chunksize=1)
    else:
        for path in due:
            from_shard(eyes, a.out, path)


def from_shard(eyes, out, path):
    torch.set_num_threads(1)
    shard, name = store.Shard(path + ".npz"), pathlib.Path(path).name
    w, about = Writer(out, name), shard.about
    for k in range(len(shard)):
        headless.pause()
        picture, letters, items = crops.enlarged(shard.picture(k), shard.letters_of(k), shard.items_of(k))
        rows, grid, _ = eyes.look(picture)
        w.add(rows, grid, letters, about[k] | {"items": items.tolist()})
    w.close()
    print(name, len(shard), flush=True)


def cut(picture, rng):
    """Mostly without the plain part right of the page: what it shows of the screen costs tokens and tells nothing.
    Sometimes as it is, since that is how it is used."""
    plain = (picture == picture[:1, -1:]).all((0, 2))
    used = len(plain) - int(plain[::-1].argmin()) if not plain.all() else len(plain)
    wide = -(-used // 32) * 32
    return picture[:, :wide] if wide < len(plain) and rng.random() < 0.8 else picture


def from_records(eyes, a):
    with open(os.path.join(a.records, "records.jsonl")) as f:
        blocks = iter(lambda: list(itertools.islice(f, 1000)), [])
        for number, block in enumerate(blocks):
            name = f"records-{number:05}"
            if not os.path.exists(os.path.join(a.out, f"{name}.npz")):
                from_block(eyes, a, name, map(json.loads, block))


def from_block(eyes, a, name, records):
    w, rng = Writer(a.out, name), random.Random(name)
    for r in records:
        picture = np.asarray(Image.open(os.path.join(a.records, r["picture"])).convert("RGB"))
        labels = r.pop("labels", None)
        seen = np.ascontiguousarray(cut(picture, rng)) if a.cut else picture
        rows, grid, found = eyes.look(seen, letters=not labels)
        if labels:
            r |= {
                "items": [[4 * v for v in e[:4]] + [store.KINDS.index(e[4]), e[5]] for e in labels["elements"]],
                "names": [e[6] for e in labels["elements"]],
            }
            keep = check.inked(picture, labels["letters"])
            found = [
                [4 * v for v in l[:4]] + [store.char_class(l[4]), *l[5:]]
                for l, k in zip(labels["letters"], keep)
                if k
            ]
        w.add(rows, grid, found, r)
    w.close()
    print(name, flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--run", required=True)
    p.add_argument("--out", required=True)
    p.add_argument("--data", nargs="*", default=[])
    p.add_argument("--records")
    p.add_argument("--cut", action="store_true", help="records: mostly without the plain part right of the page")
    p.add_argument("--screens", type=int, default=10**9)
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--workers", type=int, default=1, help="of --data: shards at once")
    a = p.parse_args()
    os.nice(19 - os.nice(0))
    torch.set_num_threads(a.threads)
    eyes = Eyes(a.run)
    if a.records:
        from_records(eyes, a)
    from_shards(eyes, a)


if __name__ == "__main__":
    main()
