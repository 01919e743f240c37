"""Writes texts and their ids by other tokenizers with the normalizer "NFC" and the split pattern of Qwen3.5.

    python make_nfc.py [--out ../golden/tokenizer] [--table]

The vocabulary is Tekken's (make_tokenizer.py), because normalization, splitting and merging do not depend on the
words in it.  The texts contain combining marks, characters that NFC decomposes or composes, Hangul in parts, emoji
with joiners, CJK, line breaks and numbers.

--table prints the table of src/text/tokenizer_nfc.c instead: the characters that tokenizers' NFC, which implements
an older Unicode, treats as ordinary while unicodedata2's combines them.

Made with tokenizers 0.23.3, transformers 5.23.0, mistral-common 1.13.1, and unicodedata2 18.0.0 for the table.
"""
import argparse
import json
import os
from importlib import metadata

from make_tokenizer import HERE, KINDS, WORDS, assigned, blocks, draw_text, published, write_root
from tokenizers import Tokenizer, normalizers

SEED, TEXTS, BLOCK, CHARS = 20261122, 20_000, 1000, 16384
SPLIT = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|"
         r"\s*[\r\n]+|\s+(?!\S)|\s+")
# Names assigned to some of Tekken's special ids.
NAMES = {3: "<|endoftext|>", 4: "<|im_start|>", 5: "<|im_end|>", 6: "<|vision_start|>", 7: "<|vision_end|>",
         8: "<|image_pad|>", 9: "<tool_call>", 10: "</tool_call>", 11: "<tool_response>", 12: "</tool_response>",
         13: "<think>", 14: "</think>"}
MARKS = [(0x300, 0x36f), (0x591, 0x5bd), (0x64b, 0x65f), (0x93c, 0x94d), (0x1ab0, 0x1ac0), (0x1dc0, 0x1dff), (0x20d0, 0x20f0),
         (0x302a, 0x302f), (0x3099, 0x309a), (0xfe20, 0xfe2f), (0x1d165, 0x1d172), (0x1e130, 0x1e136), (0x1e944, 0x1e94a)]
MORE = [
    MARKS, [(0x61, 0x7a), *MARKS], [(0x41, 0x5a), (0x300, 0x30c), (0x323, 0x331)], [(0x1100, 0x1112), (0x1161, 0x1175), (0x11a8, 0x11c2)],
    [(0xac00, 0xac40), (0x11a8, 0x11c2)], [(0x1f00, 0x1fff)], [(0x391, 0x3c9), (0x300, 0x301), (0x313, 0x314), (0x342, 0x345)],
    [(0xf900, 0xfad9)], [(0x2f800, 0x2fa1d)], [(0x304b, 0x30c8), (0x3099, 0x309a)], [(0x915, 0x92f), (0x93c, 0x93c)], [(0x9c7, 0x9cc), (0x9be, 0x9d7)],
    [(0x1d15e, 0x1d164), (0x1d165, 0x1d172)], [(0x2126, 0x212b), (0x340, 0x345), (0x374, 0x37e), (0x387, 0x387)],
    [(0x105d2, 0x105da), (0x307, 0x307)], [(0x11930, 0x11938), (0x16120, 0x16129), (0x113c2, 0x113c9)],
    [(0x1f466, 0x1f469), (0x200d, 0x200d), (0x1f3fb, 0x1f3ff), (0xfe0f, 0xfe0f)], [(0x00, 0x02), (0x300, 0x301)],
]
MORE_WORDS = [*NAMES.values(), "<|im_start", "im_end|>", "<function=click>\n", "<parameter=x>\n", "</parameter>\n", "</function>\n",
              "'\u017f", "'S", "'\u017fe", "e\u0301\u0323", "\u00e9\u0323", "\u0301", "\u1e69", "s\u0323\u0307", "\u212b", "\ufb01",
              "\u0915\u093c", "\u1112\u1161\u11ab", "\u304b\u3099", "2026-11-22", " 1\u0301", "\n\u0301", "\u0344", "\u0958"]


def qwen(text):
    """Returns the file with this family's normalizer, split pattern and names."""
    root = json.loads(text)
    root["normalizer"] = {"type": "NFC"}
    root["model"]["ignore_merges"] = False
    for step in root["pre_tokenizer"]["pretokenizers"]:
        if step["type"] == "Split":
            step["pattern"] = {"Regex": SPLIT}
    for token in root["added_tokens"]:
        token["content"] = NAMES.get(token["id"], token["content"])
    vocab = root["model"]["vocab"]
    for i, name in NAMES.items():
        vocab.pop(next((w for w, n in vocab.items() if n == i), None), None)
        vocab[name] = i
    bare = json.loads(json.dumps(root))
    bare["added_tokens"] = []
    bare["model"]["vocab"] = {w: i for w, i in vocab.items() if i >= 1000}
    return Tokenizer.from_str(json.dumps(root)), Tokenizer.from_str(json.dumps(bare))


def print_table():
    import unicodedata2
    nfc, parts, out = normalizers.NFC().normalize_str, {}, []
    for c in range(0x110000):
        d = unicodedata2.decomposition(chr(c))
        for x in d.split() if d and d[0] != "<" else []:
            parts.setdefault(int(x, 16), []).append(chr(c))
    for c in range(0x308, 0x110000):  # characters that newer versions compose with U+0307 are newer themselves
        if 0xd800 <= c < 0xe000:
            continue
        s = chr(c)
        probes = ["a" + s + "\u0334", "a\u0345" + s, "a\u0323" + s, "a" + s + "\u0323", "e" + s + "\u0301", s]
        for w in parts.get(c, []):
            probes += [w, unicodedata2.normalize("NFD", w)]
        if any(nfc(p) != unicodedata2.normalize("NFC", p) for p in probes):
            if out and out[-1][1] == c - 1:
                out[-1][1] = c
            else:
                out.append([c, c])
    print(", ".join(f"{{0x{a:x}, 0x{b:x}}}" for a, b in out))


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--out", default=os.path.join(HERE, "..", "golden", "tokenizer"))
    args.add_argument("--table", action="store_true")
    args = args.parse_args()
    if args.table:
        return print_table()
    tokenizer, bare = qwen(published()[2])
    kinds, words = [[list(r) for r in k] for k in KINDS + MORE] + [assigned()], WORDS + MORE_WORDS
    chars = [chr(c) for c in range(0x110000) if not 0xd800 <= c < 0xe000]
    texts = [draw_text(i, kinds, words, SEED) for i in range(TEXTS)]
    write_root(os.path.join(args.out, "nfc.json"), {
        "generator": "make_nfc.py", "seed": SEED, "tokenizers": metadata.version("tokenizers"), "split": SPLIT,
        "names": [[i, n] for i, n in NAMES.items()], "texts": TEXTS, "block": BLOCK, "chars": len(chars), "chars_block": CHARS,
        "words": words, "kinds": kinds, "blocks": blocks(texts, BLOCK, tokenizer, bare),
        "chars_blocks": blocks([f"a{c}B{c}{c}1 {c}\n{c} " for c in chars], CHARS, tokenizer, bare)})


if __name__ == "__main__":
    main()
