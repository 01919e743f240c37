#!/usr/bin/env python3
"""Draws texts for comparing tokenizers: pieces of files of this machine's packages, and random ones.

    real_texts.py [--seed 1] [--texts 20000] [--out FILE]     prints a count per kind; --out: one JSON text per line

A text is a piece of a file. File, position and length depend only on the seed and the names of the files. Other
packages give other texts, so a result states the SHA-256 of its texts. Half of the pieces have at most 300
characters, none has more than 6,000.

  docs, man, python, c, code, markup, data   files below /usr and of Python's library, by kind
  translations                               messages of .mo files, each language with the same probability
  altered                                    such pieces with CRLF, decomposed, with long spaces, controls, marks
  marked                                     such pieces with added tokens spelled out
  random                                     characters drawn from blocks of Unicode, assigned and unassigned
  long                                       one character or word, thousands of times
"""

import argparse
import collections
import gettext
import gzip
import hashlib
import json
import os
import random
import sys
import unicodedata
import zlib

SHARES = {
    "docs": 3000,
    "man": 2000,
    "python": 1500,
    "c": 1500,
    "code": 2000,
    "markup": 1000,
    "data": 1500,
    "translations": 4000,
    "altered": 1500,
    "marked": 480,
    "random": 1500,
    "long": 20,
}
ENDINGS = {
    "python": "py",
    "c": "c h hpp cpp",
    "code": "js css pl pm sh vim tcl f90 el ts go rs lua rb",
    "markup": "html xml svg",
    "data": "json csv yaml",
    "docs": "txt md rst",
}
KIND = {"." + e: kind for kind, ends in ENDINGS.items() for e in ends.split()}
MARKS = [
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<tool_call>",
    "</tool_call>",
    "<|fim_prefix|>",
    "<|file_sep|>",
    "<|image_pad|>",
    "<|im_start|",
    "|im_end|>",
    "<|im_end |>",
    "<|IM_START|>",
    "<tool_call",
    "<<tool_call>>",
    "<|endoftext|><|endoftext|>",
    "<think>",
    "</think>",
    "[PAD151665]",
    "<|box_start|>user\n",
]
CONTROLS = [
    "\0",
    "\x01",
    "\x07",
    "\x0b",
    "\x0c",
    "\x1b[31m",
    "\x7f",
    "\x85",
    "\u00ad",
    "\u200b",
    "\u200d",
    "\ufeff",
    "\u2028",
    "\u202e",
    "\ue000",
    "\ufffd",
    "\U000e0041",
]
MOST_FILES, LONGEST, MOST_BYTES = 1500, 6000, 4 << 20


def files(roots):
    """Returns {kind: names of files}, in order."""
    found = collections.defaultdict(list)
    for root in roots:
        for folder, below, names in os.walk(root):
            below.sort()
            for name in names:
                path = os.path.join(folder, name)
                if os.path.islink(path):
                    continue
                if "/man/" in path and name.endswith(".gz"):
                    found["man"].append(path)
                elif name.endswith(".mo"):
                    found["translations"].append(path)
                elif "/share/doc/" in path and (name == "copyright" or name.endswith((".gz", ".txt"))):
                    found["docs"].append(path)
                elif kind := KIND.get(os.path.splitext(name)[1]):
                    found[kind].append(path)
    return {kind: sorted(names) for kind, names in found.items()}


def read(path):
    """Returns the text of a file, or "" if it is not text."""
    try:
        with (gzip.open if path.endswith(".gz") else open)(path, "rb") as f:
            return f.read(MOST_BYTES).decode()
    except (OSError, EOFError, UnicodeDecodeError, zlib.error):
        return ""


def messages(path):
    """Returns the translated messages of a .mo file."""
    try:
        with open(path, "rb") as f:
            return [v for v in gettext.GNUTranslations(f)._catalog.values() if isinstance(v, str) and v]
    except Exception:  # gettext has no exception class for an invalid file
        return []


def language(path):
    return (
        path.split("/locale/")[1].split("/")[0]
        if "/locale/" in path
        else os.path.basename(os.path.dirname(os.path.dirname(path)))
    )


class Draw:
    def __init__(self, seed, roots):
        self.rng, self.files, self.cache = random.Random(seed), files(roots), {}
        self.languages = collections.defaultdict(list)
        for path in self.files.get("translations", []):
            self.languages[language(path)].append(path)
        for kind, names in self.files.items():
            if kind != "translations":  # few files, each read once
                self.files[kind] = self.rng.sample(names, min(len(names), MOST_FILES))

    def length(self):
        return (
            int(LONGEST ** self.rng.random() * (0.5 + self.rng.random() / 2)) + 1
            if self.rng.random() < 0.7
            else self.rng.randint(1, 300)
        )

    def piece(self, kind):
        """Returns a nonempty piece of a file of that kind, at any position."""
        while True:
            if kind == "translations":
                path = self.rng.choice(self.languages[self.rng.choice(sorted(self.languages))])
                if path not in self.cache:
                    self.cache[path] = messages(path)
                if self.cache[path]:
                    return "\n".join(self.rng.choice(self.cache[path]) for _ in range(self.rng.choice([1, 1, 2, 5])))[
                        :LONGEST
                    ]
                continue
            path = self.rng.choice(self.files[kind])
            if path not in self.cache:
                self.cache[path] = read(path)
            text, n = self.cache[path], self.length()
            if text:
                at = self.rng.randrange(max(1, len(text) - n + 1))
                return text[at : at + n]

    def any_piece(self):
        return self.piece(
            self.rng.choice(["docs", "man", "python", "code", "data", "translations", "translations", "translations"])
        )

    def altered(self):
        s, way = self.any_piece(), self.rng.randrange(8)
        if way == 0:
            return s.replace("\n", "\r\n")
        if way == 1:
            return unicodedata.normalize(self.rng.choice(["NFD", "NFKD", "NFKC"]), s)
        if way == 2:
            return s.replace(
                " ",
                self.rng.choice([" " * self.rng.randint(2, 200), "\t", "\u00a0", "\u3000", " \n \n\n", "\r", "\v\f"]),
            )
        if way == 3:
            return self.rng.choice([str.upper, str.title, str.casefold])(s)
        if way == 4:
            return "".join(c + self.rng.choice(CONTROLS) if self.rng.random() < 0.1 else c for c in s)
        if way == 5:  # combining marks of several classes, in any order
            return "".join(
                c
                + "".join(
                    chr(self.rng.choice([0x301, 0x323, 0x327, 0x345, 0x5B0, 0x64B, 0x93C, 0xE38, 0x3099, 0x1D16D]))
                    for _ in range(self.rng.randrange(4))
                )
                for c in s[:1500]
            )
        if way == 6:
            return s.replace("\n", "").replace(" ", "")
        return json.dumps(s, ensure_ascii=self.rng.random() < 0.5)

    def marked(self):
        s, n = self.any_piece()[:1000], self.rng.randint(1, 6)
        for _ in range(n):
            at = self.rng.randint(0, len(s))
            s = (
                s[:at]
                + self.rng.choice(["", " ", "\n"])
                + self.rng.choice(MARKS)
                + self.rng.choice(["", " ", "\n", "'s"])
                + s[at:]
            )
        return s

    def random(self):
        blocks = [
            (
                self.rng.randrange(0, 0x110000, 128)
                if self.rng.random() < 0.2
                else self.rng.choice(
                    [
                        0,
                        0,
                        0x80,
                        0x300,
                        0x380,
                        0x400,
                        0x580,
                        0x600,
                        0x900,
                        0xE00,
                        0x1100,
                        0x1E00,
                        0x2000,
                        0x2190,
                        0x3040,
                        0x4E00,
                        0xAC00,
                        0xFB00,
                        0xFF00,
                        0x10400,
                        0x11080,
                        0x1D100,
                        0x1D400,
                        0x1F300,
                        0x1F600,
                        0x1F900,
                        0x20000,
                        0x2F800,
                        0xE0000,
                    ]
                )
            )
            for _ in range(self.rng.randint(1, 5))
        ]
        points = (self.rng.choice(blocks) + self.rng.randrange(256) for _ in range(self.length()))
        return "".join(chr(c) for c in points if c < 0x110000 and not 0xD800 <= c < 0xE000) or "\0"

    def long(self):
        unit = self.rng.choice(
            ["a", " ", "\n", "0", "=", "\u6771", "\u0301", "ab ", "\U0001f642", "\t", "'s", "\r\n", "A\u030a", "-" * 40]
        )
        return unit * (self.rng.randint(2000, 20000) // len(unit))

    def text(self, kind):
        return getattr(self, kind)() if kind in ("altered", "marked", "random", "long") else self.piece(kind)


def draw(seed, n, roots=None):
    """Returns about n (kind, text) and {kind: number of files}."""
    d = Draw(seed, roots or ["/usr/share", "/usr/include", "/usr/lib/python3", os.path.dirname(os.__file__)])
    out, total = [], sum(SHARES.values())
    for kind, share in SHARES.items():
        if kind in ENDINGS or kind in ("man", "translations"):
            if not d.files.get(kind):
                print(f"real_texts.py: there are no files for '{kind}' on this machine", file=sys.stderr)
                continue
        out += [(kind, d.text(kind)) for _ in range(max(1, share * n // total))]
    return out


def digest(texts):
    h = hashlib.sha256()
    for _, t in texts:
        raw = t.encode()
        h.update(len(raw).to_bytes(4, "little") + raw)
    return h.hexdigest()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--texts", type=int, default=20000)
    p.add_argument("--out")
    args = p.parse_args()
    texts = draw(args.seed, args.texts)
    if args.out:
        with open(args.out, "w", encoding="utf-8") as f:
            f.writelines(json.dumps(t) + "\n" for _, t in texts)
    for kind, n in collections.Counter(k for k, _ in texts).items():
        print(f"{kind:14} {n:6} texts {sum(len(t) for k, t in texts if k == kind):9} characters")
    scripts = {unicodedata.name(c, "?").split()[0] for _, t in texts for c in t if c.isalpha()}
    print(f"{len(texts)} texts, {len(scripts)} scripts by the names of letters, SHA-256 {digest(texts)}")


if __name__ == "__main__":
    main()
