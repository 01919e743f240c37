"""Prints the table of src/text/tokenizer_unicode.c: characters whose general category in tokenizers' regular expressions
differs from Unicode 14, which PCRE2 10.42 implements, or from another version; and for each category the number of
characters and their SHA-256.

    python make_unicode.py [--out ../golden/tokenizer] [--other FILE]

FILE has a line for each character, "41 Lu", with the category in another version: the table was made with those of PCRE2
10.48, which implements Unicode 17.

Each general category is matched with Regex against all code points; Python 3.11's unicodedata is Unicode 14.  Made with
tokenizers 0.23.3, whose regular expressions use Unicode 16.
"""
import argparse
import hashlib
import json
import os
import struct
import unicodedata

from tokenizers import Regex, __version__, pre_tokenizers

CATEGORIES = ["Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "No", "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po",
              "Sm", "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Co"]
POINTS = [c for c in range(0x110000) if not 0xd800 <= c < 0xe000]


def members(category):
    split, out = pre_tokenizers.Split(Regex(rf"\p{{{category}}}"), "removed"), set()
    for i in range(0, len(POINTS), 1024):
        part = POINTS[i:i + 1024]
        left = {ord(c) for piece, _ in split.pre_tokenize_str("".join(map(chr, part))) for c in piece}
        out |= set(part) - left
    return out


def main():
    assert unicodedata.unidata_version == "14.0.0"
    args = argparse.ArgumentParser()
    here = os.path.dirname(os.path.abspath(__file__))
    args.add_argument("--out", default=os.path.join(here, "..", "golden", "tokenizer"))
    args.add_argument("--other")
    options = args.parse_args()
    sets = {category: sorted(members(category)) for category in CATEGORIES}
    theirs = {c: category for category, s in sets.items() for c in s}
    with open(os.path.join(options.out, "categories.json"), "w", encoding="utf-8") as f:
        lines = [f' "{k}": {json.dumps([len(s), hashlib.sha256(struct.pack(f"<{len(s)}I", *s)).hexdigest()])}'
                 for k, s in sets.items()]
        f.write("{\n" + ",\n".join([f' "tokenizers": "{__version__}"', *lines]) + "\n}\n")
    other = {}
    if options.other:
        with open(options.other, encoding="ascii") as f:
            other = {int(c, 16): category for c, category in map(str.split, f)}
    ranges = []
    for c in POINTS:
        old, new = unicodedata.category(chr(c)), theirs.get(c, "Cn")
        if old == new == other.get(c, new):
            continue
        if ranges and ranges[-1][1:] == [c - 1, new]:
            ranges[-1][1] = c
        else:
            ranges.append([c, c, new])
    print(", ".join(f"{{0x{a:x}, 0x{b:x}, {category.upper()}}}" for a, b, category in ranges))


if __name__ == "__main__":
    main()
