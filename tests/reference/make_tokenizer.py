"""Writes the Tekken table in a compact form, and ids of 100,000 texts by other tokenizers.

    python make_tokenizer.py [--out ../golden/tokenizer]

tekken.bin  each token of the table except the 256 single bytes is the concatenation of two earlier tokens: two
            ranks of 17 bits, packed from the lowest bit on.  This is sufficient to spell all of them.
texts.json  the SHA-256 of the tokenizer.json that transformers' own converter makes from the table
            (with Nemotron's names for special ids), and for each block of texts a hash of
            the texts, of their ids by Hugging Face tokenizers with special tokens recognized, and of
            their ids without, which is compared with tiktoken.  The texts come from a
            generator that a test can reproduce; the file lists its kinds of characters.
            A second list has every code point between letters, spaces and digits: the split patterns of
            both use Unicode 16.

Made with mistral-common 1.13.1, transformers 5.23.0, tokenizers 0.23.3 and tiktoken 0.14.0 under Python
3.11, whose Unicode 14 defines the characters of the texts; all are only needed to recreate the files.
"""
import argparse
import base64
import hashlib
import json
import os
import struct
import sys
import tempfile
import unicodedata
from importlib import metadata

import mistral_common
import tiktoken
from tokenizers import AddedToken, Tokenizer
from transformers.integrations.mistral.tokenizer import MistralConverter

SEED, TEXTS, BLOCK, CHARS = 20261121, 100_000, 1000, 16384
SPECIAL, IDS, BITS = 1000, 131072, 17
ADDED = ["<image>", "<img>", "</img>", "<quad>", "</quad>", "<ref>", "</ref>", "<box>", "</box>", "<video>"]
HERE = os.path.dirname(os.path.abspath(__file__))

# Ranges of characters that the split pattern, or a Unicode implementation, may treat differently.
KINDS = [
    [(0x61, 0x7a)], [(0x41, 0x5a)], [(0x30, 0x39)], [(0x20, 0x20)], [(0x0a, 0x0a)], [(0x0d, 0x0d), (0x0a, 0x0a)],
    [(0x09, 0x0d), (0x20, 0x20), (0x85, 0x85), (0xa0, 0xa0), (0x1680, 0x1680), (0x2000, 0x200a),
     (0x2028, 0x2029), (0x202f, 0x202f), (0x205f, 0x205f), (0x3000, 0x3000), (0x180e, 0x180e)],
    [(0x20, 0x20), (0x0a, 0x0a), (0x09, 0x09)],
    [(0x21, 0x2f), (0x3a, 0x40), (0x5b, 0x60), (0x7b, 0x7e)], [(0x2f, 0x2f), (0x0a, 0x0a), (0x2e, 0x2e)],
    [(0x27, 0x27), (0x73, 0x74), (0x53, 0x54)],
    [(0xc0, 0xff)], [(0x100, 0x24f)], [(0x250, 0x2af)], [(0x2b0, 0x2ff)], [(0x300, 0x36f)],
    [(0x61, 0x7a), (0x300, 0x36f)], [(0x391, 0x3a1), (0x3a3, 0x3c9)], [(0x400, 0x52f)],
    [(0x531, 0x556), (0x561, 0x587)], [(0x5d0, 0x5ea), (0x5b0, 0x5bd)],
    [(0x620, 0x652), (0x660, 0x669), (0x6f0, 0x6f9)], [(0x904, 0x939), (0x93a, 0x94d), (0x966, 0x96f)],
    [(0xe01, 0xe3a), (0xe40, 0xe4e)], [(0x10a0, 0x10c5), (0x10d0, 0x10fa)], [(0x13a0, 0x13f5)],
    [(0xac00, 0xd7a3)], [(0x1100, 0x11ff)], [(0x3041, 0x3096)], [(0x30a1, 0x30fa), (0x30fc, 0x30fc)],
    [(0x4e00, 0x9ffc)], [(0x4e00, 0x5fff)], [(0x20000, 0x2a6dd)],
    [(0x1c5, 0x1c5), (0x1c8, 0x1c8), (0x1cb, 0x1cb), (0x1f2, 0x1f2), (0x1f88, 0x1f8f), (0x61, 0x62), (0x41, 0x42)],
    [(0xb2, 0xb3), (0xb9, 0xb9), (0xbc, 0xbe), (0x2080, 0x2089), (0x2150, 0x2189), (0x2460, 0x249b)],
    [(0x1f300, 0x1f64f)], [(0x1f900, 0x1f9ff), (0x200d, 0x200d), (0xfe0f, 0xfe0f), (0x1f3fb, 0x1f3ff)],
    [(0x1f1e6, 0x1f1ff)], [(0x2010, 0x2027), (0x2030, 0x205e), (0x3001, 0x3003), (0x3008, 0x3011)],
    [(0x2190, 0x22ff), (0x2500, 0x25ff)], [(0x00, 0x08), (0x0e, 0x1f), (0x7f, 0x84), (0x86, 0x9f)],
    [(0xad, 0xad), (0x200b, 0x200f), (0x202a, 0x202e), (0x2060, 0x2064), (0xfeff, 0xfeff), (0xe0020, 0xe007e)],
    [(0xfffd, 0xfffd), (0xfffe, 0xffff), (0xfdd0, 0xfdef), (0x10fffe, 0x10ffff), (0xc3, 0xc3), (0xa9, 0xa9)],
    [(0xe000, 0xe0ff), (0xf0000, 0xf00ff)], [(0x1d400, 0x1d454)], [(0x16a0, 0x16ea), (0x10400, 0x1044f)],
]
WORDS = [
    "<s>", "</s>", "<unk>", "<SPECIAL_10>", "<SPECIAL_11>", "<SPECIAL_12>", "<SPECIAL_999>", "<SPECIAL_1000>",
    "<SPECIAL_1", "SPECIAL_11>", "< SPECIAL_11>", "<special_11>", "<image>", "<img>", "</img>", "<image", "<image 2>",
    "<<image>>", "<video>", "</box>", "<think>", "</think>", "<TOOLCALL>", "[INST]", "<|im_end|>", "<|endoftext|>",
    "/think", "/no_think", " the", " The", "the", "ing", "HTTPServer", "camelCase", "snake_case_9", "it's", "DON'T",
    "I'LL", "we\u2019re", "{\"action\": \"click\"", "[{\"x\":512,\"y\":384}]", "https://example.com/a?b=c#d",
    "C:\\Users\\x", "\\n\\t", "```python\n", "    return ", "\n\n\n", "\r\n\r\n", " \n \n", "\t\t", "0.25", "1e-9", "12,345",
    "\u6771\u4eac\u90fd", "\u00c3\u00a9", "e\u0301", "\u00e9", "\U0001f469\u200d\U0001f4bb", "1\ufe0f\u20e3", "\u0130stanbul", "\u1e9e\u00df",
]


def table():
    path = os.path.join(os.path.dirname(mistral_common.__file__), "data", "tekken_240718.json")
    with open(path, encoding="utf-8") as f:
        tekken = json.load(f)
    return path, tekken, [base64.b64decode(v["token_bytes"]) for v in tekken["vocab"][:IDS - SPECIAL]]


def halves(word, rank, ranks):
    """Returns the last two parts of a word when the neighbours of lowest rank are merged first."""
    parts = [bytes([b]) for b in word]
    while len(parts) > 2:
        joined = [(ranks.get(parts[i] + parts[i + 1], rank), i) for i in range(len(parts) - 1)]
        best, i = min(joined)
        assert best < rank, word
        parts[i:i + 2] = [parts[i] + parts[i + 1]]
    return ranks[parts[0]], ranks[parts[1]]


def pack(words):
    assert words[:256] == [bytes([b]) for b in range(256)]
    ranks = {w: r for r, w in enumerate(words)}
    bits = at = 0
    out = bytearray()
    for rank in range(256, len(words)):
        for part in halves(words[rank], rank, ranks):
            assert part < rank
            bits |= part << at
            at += BITS
            while at >= 8:
                out.append(bits & 255)
                bits, at = bits >> 8, at - 8
    return bytes(out) + bytes([bits] if at else [])


def convert(path):
    """Returns transformers' tokenizer for the table, with Nemotron's names for special ids."""
    names = ["<unk>", "<s>", "</s>"] + [f"<SPECIAL_{i}>" for i in range(3, SPECIAL)]
    c = MistralConverter(path)
    vocab = {w: i for w, i in c._precomputed_vocab.items() if i >= SPECIAL}
    assert len(vocab) == IDS - SPECIAL and not set(names) & set(vocab)
    c._precomputed_vocab = {**dict(zip(names, range(SPECIAL))), **vocab}
    c.additional_special_tokens = [AddedToken(n, special=True) for n in names + ADDED]
    return c.converted()


def published():
    """Returns (the tokenizer, the same without added tokens, its file) from the installed packages."""
    path, _, _ = table()
    with tempfile.TemporaryDirectory() as d:
        file = os.path.join(d, "tokenizer.json")
        convert(path).save(file)
        with open(file, encoding="utf-8") as f:
            text = f.read()
    bare = json.loads(text)
    bare["added_tokens"] = []
    for n in [w for w, i in bare["model"]["vocab"].items() if i < SPECIAL]:
        del bare["model"]["vocab"][n]
    return Tokenizer.from_str(text), Tokenizer.from_str(json.dumps(bare)), text


class Draws:
    """splitmix64"""

    def __init__(self, seed):
        self.state = seed

    def below(self, n):
        self.state = (self.state + 0x9e3779b97f4a7c15) & (1 << 64) - 1
        z = self.state
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9 & (1 << 64) - 1
        z = (z ^ z >> 27) * 0x94d049bb133111eb & (1 << 64) - 1
        return ((z ^ z >> 31) >> 32) * n >> 32


def draw_text(index, kinds, words=WORDS, seed=SEED):
    d, out = Draws(seed << 32 | index), []
    for _ in range(1 + d.below(16)):
        k = d.below(len(kinds) + 4)
        if k >= len(kinds):
            out.append(words[d.below(len(words))])
            continue
        n = 1 + d.below(8)
        if d.below(40) == 0:
            n += 20 + d.below(300)
        same, c = d.below(4) == 0, None
        for _ in range(n):
            if not same or c is None:
                a, b = kinds[k][d.below(len(kinds[k]))]
                c = chr(a + d.below(b - a + 1))
            out.append(c)
    if index % 5000 == 4999:
        a, b = kinds[d.below(len(kinds))][0]
        out.append(chr(a + d.below(b - a + 1)) * 5000)
    return "".join(out)


def assigned():
    """Returns the ranges of characters in Unicode 14, without surrogates."""
    out = []
    for cp in range(0x110000):
        if unicodedata.category(chr(cp)) in ("Cn", "Cs"):
            continue
        if out and out[-1][1] == cp - 1:
            out[-1][1] = cp
        else:
            out.append([cp, cp])
    return out


def hash_ids(lists):
    h = hashlib.sha256()
    for ids in lists:
        h.update(struct.pack(f"<{len(ids) + 1}I", len(ids), *ids))
    return h.hexdigest()


def hash_texts(texts):
    h = hashlib.sha256()
    for t in texts:
        raw = t.encode()
        h.update(struct.pack("<I", len(raw)) + raw)
    return h.hexdigest()


def blocks(texts, size, tokenizer, bare, tik=None):
    """tik: another implementation, which must give the same ids."""
    out = []
    for i in range(0, len(texts), size):
        part = texts[i:i + size]
        inert = [e.ids for e in bare.encode_batch(part, add_special_tokens=False)]
        marked = [e.ids for e in tokenizer.encode_batch(part, add_special_tokens=False)]
        for t, ids in zip(part, inert if tik else []):
            other = [SPECIAL + r for r in tik.encode_ordinary(t)]
            if ids != other:
                sys.exit(f"tokenizers and tiktoken disagree on {t!r}:\n{ids}\n{other}")
        out.append({"texts": hash_texts(part), "special": hash_ids(marked), "plain": hash_ids(inert)})
    return out


def write_root(path, root):
    lines = ",\n".join(f" {json.dumps(k)}: " + (
        "[\n" + ",\n".join("  " + json.dumps(v) for v in value) + "\n ]" if k.endswith("blocks") else json.dumps(value))
        for k, value in root.items())
    with open(path, "w", encoding="utf-8") as f:
        f.write("{\n" + lines + "\n}\n")


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--out", default=os.path.join(HERE, "..", "golden", "tokenizer"))
    out = args.parse_args().out
    os.makedirs(out, exist_ok=True)
    path, tekken, words = table()
    with open(os.path.join(out, "tekken.bin"), "wb") as f:
        f.write(pack(words))
    tokenizer, bare, text = published()
    tik = tiktoken.Encoding("tekken", pat_str=tekken["config"]["pattern"], special_tokens={},
                            mergeable_ranks={w: r for r, w in enumerate(words)})
    known = assigned()
    kinds = [[list(r) for r in k] for k in KINDS] + [known]
    chars = [chr(c) for c in range(0x110000) if not 0xd800 <= c < 0xe000]
    packages = ["mistral-common", "transformers", "tokenizers", "tiktoken"]
    root = {
        "generator": "make_tokenizer.py", "seed": SEED, "unicode": unicodedata.unidata_version,
        **{p: metadata.version(p) for p in packages},
        "table": {"file": os.path.basename(path), "sha256": hashlib.sha256(open(path, "rb").read()).hexdigest()},
        "tokenizer.json": hashlib.sha256(text.encode()).hexdigest(),
        "texts": TEXTS, "block": BLOCK, "chars": len(chars), "chars_block": CHARS,
        "words": WORDS, "kinds": kinds,
        "blocks": blocks([draw_text(i, kinds) for i in range(TEXTS)], BLOCK, tokenizer, bare, tik),
        "chars_blocks": blocks([f"a{c}B{c}{c}1 {c}\n{c} " for c in chars], CHARS, tokenizer, bare, tik),
    }
    write_root(os.path.join(out, "texts.json"), root)


if __name__ == "__main__":
    main()
