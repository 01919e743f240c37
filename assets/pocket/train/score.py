"""How well a tower reads whole screens: the table of the reading gate.

    python score.py --run RUN --data gate-liberation gate-dejavu gate-noto ...

letters   share of the printed letters that are named right within half a letter of their place
words     share of the words (runs of letters without a blank) of which every letter is right
ghosts    letters seen where the page has none, for each letter that there is
distance  edit distance of a line's letters, read from left to right, for each letter that there is

Text that has no label (date fields and the like) counts nowhere.  The gate: letters >= .93, words >= .80,
ghosts <= .10, distance <= .08 on real pages in three fonts.
"""

import argparse
import collections
import pathlib

import numpy as np
import torch

import crops
import reading
import store
import tower
import weights

GATE = dict(letters=0.93, words=0.80, ghosts=0.10, distance=0.08)


def distance(a, b):
    """Edit distance of two sequences."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        last, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (x != y))
    return row[-1]


def line_of(found, lines):
    """For each found letter the line whose band it lies in (-1: none); lines [[x0, y0, x1, y1], ...]."""
    if not len(lines) or not len(found):
        return np.full(len(found), -1)
    x, y = found[:, :1], found[:, 1:2]
    mid, half = (lines[:, 1] + lines[:, 3]) / 2, (lines[:, 3] - lines[:, 1]) / 2
    away = np.abs(y - mid) + 1e4 * (
        (np.abs(y - mid) > half + 2) | (x < lines[:, 0] - 5) | (x > lines[:, 2] + 5)
    )
    best = away.argmin(1)
    return np.where(away[np.arange(len(found)), best] < 1e4, best, -1)


def judge(found, letters, blind):
    """Counts for one screen; `found` as reading.decode gives it, `letters` as stored."""
    box = letters[:, :4] / 4
    cx, cy = (box[:, 0] + box[:, 2]) / 2, (box[:, 1] + box[:, 3]) / 2
    right = np.zeros(len(letters), bool)
    if len(found) and len(letters):
        dx, dy = np.abs(found[:, :1] - cx), np.abs(found[:, 1:2] - cy)
        near = (dx <= np.maximum(4, 0.5 * (box[:, 2] - box[:, 0]))) & (
            dy <= np.maximum(8, 0.4 * (box[:, 3] - box[:, 1]))
        )
        right = (near & (found[:, 2:3] == letters[:, 4])).any(0)
    out = collections.Counter(letters=len(letters), right=int(right.sum()))
    words = collections.defaultdict(list)
    for k, w in enumerate(letters[:, 6]):
        words[w].append(k)
    whole = [all(right[k]) for k in words.values()]
    out.update(words=len(words), words_right=sum(whole))
    if len(found):
        x, y = found[:, :1], found[:, 1:2]
        inside = (
            ((x >= box[:, 0] - 2) & (x <= box[:, 2] + 2) & (y >= box[:, 1] - 2) & (y <= box[:, 3] + 2)).any(1)
            if len(box)
            else np.zeros(len(found), bool)
        )
        for b in blind / 4:
            inside |= ((x >= b[0]) & (x <= b[2]) & (y >= b[1]) & (y <= b[3]))[:, 0]
        out["ghosts"] = int((~inside).sum())
    ids = np.unique(letters[:, 5])
    lines = np.array(
        [
            [box[m, 0].min(), box[m, 1].min(), box[m, 2].max(), box[m, 3].max()]
            for m in (letters[:, 5] == i for i in ids)
        ]
    ).reshape(-1, 4)
    mine = line_of(found, lines)
    for j, i in enumerate(ids):
        want = letters[letters[:, 5] == i]
        want = want[np.argsort(want[:, 0] + want[:, 2])][:, 4].tolist()
        got = found[mine == j]
        out["distance"] += distance(got[np.argsort(got[:, 0])][:, 2].astype(int).tolist(), want)
    height = np.round((box[:, 3] - box[:, 1]) / 4) * 4
    return out, list(zip(height.astype(int), right))


def figures(c):
    n = max(1, c["letters"])
    return dict(
        letters=c["right"] / n,
        words=c["words_right"] / max(1, c["words"]),
        ghosts=c["ghosts"] / n,
        distance=c["distance"] / n,
    )


@torch.no_grad()
def read_screen(p, c, reader, picture, dt=tower.PRODUCTS):
    patches, rows, cols = crops.whole(picture)
    x = tower.apply(p, c, patches, rows, cols, dt)
    return reading.decode(reader, x[0], rows, cols).numpy(), rows, cols


def score(p, c, reader, folder, most=10**9):
    """Counters of a folder of shards: in all, and letters by the height of their box."""
    total, sizes, n = collections.Counter(), collections.defaultdict(lambda: [0, 0]), 0
    for s in store.shards([folder]):
        step = max(1, len(s) * len(store.shards([folder])) // most)
        for k in range(0, len(s), step):
            picture, letters, blind = crops.enlarged(s.picture(k), s.letters_of(k), s.blind_of(k))
            found, rows, cols = read_screen(p, c, reader, picture)
            seen = (letters[:, 3] <= rows * 64 + 8) & (letters[:, 2] <= cols * 64 + 8)
            counts, heights = judge(found, letters[seen], blind)
            total.update(counts)
            n += 1
            for h, ok in heights:
                sizes[h][0] += 1
                sizes[h][1] += int(ok)
    return total, sizes, n


def load(run, average=True):
    """(parameters, shape, reader) of a run's checkpoint, or of what the tree keeps of it."""
    saved = weights.load(run)
    c = saved["shape"]
    reader = reading.Reader(c["hidden"])
    views = tower.Layout({n: tuple(s) for n, s in saved["names"].items()}).views(
        saved["average" if average else "flat"]
    )
    for n, p in reader.named_parameters():
        p.data = views[f"head.{n}"]
    return {n: v for n, v in views.items() if n in tower.shapes(c)}, c, reader, saved, views


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--run", required=True)
    p.add_argument("--data", nargs="+", required=True, help="folders of shards")
    p.add_argument("--screens", type=int, default=10**9)
    p.add_argument("--threads", type=int, default=1)
    a = p.parse_args()
    torch.set_num_threads(a.threads)
    params, c, reader, saved, _ = load(a.run)
    print(f"{a.run}: {saved['core_minutes']:.1f} core minutes, step {saved['step']}")
    print(f"{'screens':24} {'n':>5} {'letters':>8} {'words':>7} {'ghosts':>7} {'distance':>8}")
    for folder in a.data:
        total, sizes, n = score(params, c, reader, folder, a.screens)
        f = figures(total)
        ok = (
            f["letters"] >= GATE["letters"]
            and f["words"] >= GATE["words"]
            and f["ghosts"] <= GATE["ghosts"]
            and f["distance"] <= GATE["distance"]
        )
        print(
            f"{pathlib.Path(folder).name:24} {n:5} {f['letters']:8.3f} {f['words']:7.3f} {f['ghosts']:7.3f} {f['distance']:8.3f}  {'holds' if ok else 'fails'}"
        )
        print(
            "    by box height: "
            + "  ".join(f"{h} px {r / m:.2f} ({m})" for h, (m, r) in sorted(sizes.items()) if m >= 50)
        )


if __name__ == "__main__":
    main()
