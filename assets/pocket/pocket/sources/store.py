"""Shards of labelled screens, written by the renderers and read by training.

A shard is two files. NAME.bin holds the pictures back to back, each the raw RGB bytes of a screen
compressed by zstd (20-40 KiB). NAME.npz holds everything else as flat arrays:

    place   [n, 6] int64    offset and length in .bin, height, width, first letter and element of each screen
    letters [L, 7] int16    left, top, right, bottom in quarter pixels, class, line, word
    items   [E, 6] int16    elements: left, top, right, bottom in quarter pixels, kind, state bits
    about   JSON text       per screen: its origin, and the names of its elements

Letter classes are 1 to 94 for printable ASCII and 95 for anything else. The .npz is renamed into place
last, so a visible shard is complete.
"""

import io
import json
import os
import pathlib

import numpy as np
import zstandard

KINDS = "button link check radio field area select list item tab slider header shape picture".split()


def char_class(code):
    """Returns the class of a character code: 1 to 94 for printable ASCII, else 95."""
    return code - 32 if 32 < code < 127 else 95


class Writer:
    """A shard being written; `close` completes it."""

    def __init__(self, folder, name):
        self.path = pathlib.Path(folder) / name
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.bin = open(f"{self.path}.bin", "wb")
        self.pack = zstandard.ZstdCompressor(level=3)
        self.place, self.letters, self.items, self.about, self.size = [], [], [], [], 0

    def add(self, picture, found, keep, about):
        """Adds a screen: its labels in the form of labels.js, a bool per letter, and its origin as a dict."""
        data = self.pack.compress(picture.tobytes())
        self.bin.write(data)
        self.place.append((self.size, len(data), *picture.shape[:2], len(self.letters), len(self.items)))
        self.size += len(data)
        for (x0, y0, x1, y1, code, line, word), k in zip(found["letters"], keep):
            if k:
                self.letters.append((4 * x0, 4 * y0, 4 * x1, 4 * y1, char_class(code), line, word))
        for x0, y0, x1, y1, kind, state, _ in found["elements"]:
            self.items.append((4 * x0, 4 * y0, 4 * x1, 4 * y1, KINDS.index(kind), state))
        self.about.append({**about, "names": [e[6] for e in found["elements"]]})

    def close(self):
        self.bin.close()
        out = io.BytesIO()

        def clip(rows, n):
            return np.clip(np.array(rows, np.float32).reshape(-1, n), -32768, 32767).astype(np.int16)

        np.savez_compressed(
            out,
            place=np.array(self.place, np.int64),
            letters=clip(self.letters, 7),
            items=clip(self.items, 6),
            about=np.frombuffer(json.dumps(self.about).encode(), np.uint8),
        )
        part = f"{self.path}.part"
        pathlib.Path(part).write_bytes(out.getvalue())
        os.rename(part, f"{self.path}.npz")


class Shard:
    """A shard opened for reading; pictures stay on disk."""

    def __init__(self, path):
        self.path = str(path)[:-4]
        self.source = pathlib.Path(path).name.split("-")[0]  # "forms", "kiosk", "played", ...
        z = np.load(path)
        self.place, self.letters, self.items = (z[k] for k in ("place", "letters", "items"))
        self.about = json.loads(z["about"].tobytes())
        self._file, self._unpack = None, zstandard.ZstdDecompressor()

    def __len__(self):
        return len(self.place)

    def picture(self, k):
        """Returns screen k, uint8 [height, width, 3]."""
        if self._file is None:
            self._file = open(f"{self.path}.bin", "rb")
        at, size, h, w = self.place[k][:4]
        self._file.seek(at)
        return np.frombuffer(self._unpack.decompress(self._file.read(size), h * w * 3), np.uint8).reshape(
            h, w, 3
        )

    def _range(self, column, k, total):
        return slice(self.place[k][column], self.place[k + 1][column] if k + 1 < len(self.place) else total)

    def letters_of(self, k):
        return self.letters[self._range(4, k, len(self.letters))]

    def items_of(self, k):
        return self.items[self._range(5, k, len(self.items))]


def shards(folders):
    """Returns the complete shards of some directories, in order of their names."""
    return [Shard(p) for f in folders for p in sorted(pathlib.Path(f).glob("*.npz"))]
