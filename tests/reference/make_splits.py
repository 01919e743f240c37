"""Writes texts and their ids by the tokenizers that GGUF files name in tokenizer.ggml.pre, with a small vocabulary.

    python make_splits.py [--out ../golden/tokenizer/splits.json]

The vocabulary, merges and added tokens are those of ../golden/templates/tokenizer.json.  Normalization and split pattern
are those of transformers' classes: qwen2 is Qwen2Tokenizer, qwen35 is Qwen3_5Tokenizer.  Half of the texts are parts of
the others in random order.  "plain" has the ids without added tokens, "marked" those with them if they differ.

Made with transformers 5.24.0 and tokenizers 0.23.3.
"""

import argparse
import json
import os
import random
from importlib import metadata

from tokenizers import AddedToken
from transformers import Qwen2Tokenizer, Qwen3_5Tokenizer

HERE = os.path.dirname(os.path.abspath(__file__))
CLASSES = {"qwen2": Qwen2Tokenizer, "qwen35": Qwen3_5Tokenizer}
SEED, DRAWN, LONGEST = 20261129, 160, 40
TEXTS = [
    "",
    " ",
    "  ",
    "\n",
    "\r\n",
    "\r",
    "\t",
    "a\r\nb\r\n\r\nc",
    " \n \n\n  x",
    "x   y    z  ",
    "\n\n  \n",
    "\u3000\u3000x",
    "\u00a0x\u00a0",
    "\u2028\u2029",
    "\x0b\x0c\x1c\x1d\x85",
    "12345 6 78",
    "3.14159e-10",
    "\u0661\u0662\u0663",
    "\u00b2\u00bd\u2167",
    "it's IT'S it\u2019s I'LL we've they'd 'tis",
    "don'ts",
    "'S",
    "\u017ft's 's\u017f",
    "k'\u212a",
    "snake_case camelCase HTTPServer2",
    "if (a<b && c!=d) { return x->y[3]; }",
    "#include <stdio.h>\n\tint main(void)\n{\n}\n",
    "def f(x):\n    return x**2\n\n\n",
    '{"a": [1, 2.5, null], "b": "\\u00e9"}',
    "https://example.org/a?b=c&d=%20#e",
    "C:\\Users\\x\\n",
    "-----------==========",
    "...",
    "\u6771\u4eac\u90fd\u306e\u5929\u6c17\u306f\uff1f",
    "\u30ab\u3099\u30cf\u309a",
    "\ud55c\uad6d\uc5b4 \u1112\u1161\u11ab",
    "\u4f60\u597d\uff0c\u4e16\u754c\u30021\u3001\uff12\u3001",
    "\u0645\u0631\u062d\u0628\u0627 \u0628\u0627\u0644\u0639\u0627\u0644\u0645\u064e\u0651",
    "\u05e9\u05c1\u05b8\u05dc\u05d5\u05b9\u05dd",
    "\u0928\u092e\u0938\u094d\u0924\u0947 \u0926\u0941\u0928\u093f\u092f\u093e",
    "\u0915\u093c\u0958",
    "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35\u0e0a\u0e32\u0e27\u0e42\u0e25\u0e01",
    "\u0baa\u0bca\u0bb0\u0bc1\u0bb3\u0bcd",
    "\u0bc6\u0bbe \u0bca",
    "\u10d2\u10d0\u10db\u10d0\u10e0\u10ef\u10dd\u10d1\u10d0",
    "\u13a3\u13a6\u13b5",
    "\u0f40\u0fb1\u0f72",
    "\u0130stanbul \u1e9e \u01c5 \u01c4",
    "e\u0301 \u00e9 e\u0323\u0301 e\u0301\u0323 \u1e69 s\u0307\u0323",
    "A\u030a \u212b \u00c5",
    "\u2126 \u03a9 \ufb01 \ufb1d",
    "\u0344 \u0374 \u1fef",
    "\u0301a",
    "x\u0301\u0301\u0301",
    "1\u0301 !\u0301",
    "\U0001d15e\U0001d1bb",
    "\U0001f469\u200d\U0001f4bb \U0001f1e9\U0001f1ea 1\ufe0f\u20e3 \U0001f44d\U0001f3fd",
    "\U00020000\U0002a6d6\U0002f800",
    "\u200b\u200e\ufeff\u00ad",
    "\0a\0",
    "\ue000\uffff\U0010ffff",
    "\U0001e900\U0001e922\U0001e944",
    "\u1c89\ua7cb\U00010d50",
    "a\U00016d63\U00016d67b",
    "<|im_start|>user\nhi<|im_end|>\n",
    "<tool_call>\n{}\n</tool_call>",
    "<|im_start|",
    "<<|im_end|>>",
    "e<|im_end|>\u0301",
    "a <|im_start|> b",
    "<|im_end|><|im_end|>'s",
    "</s><s>[PAD3]<think></think>",
]


def mix(rng):
    """Returns parts of texts, concatenated."""
    pieces = [rng.choice(TEXTS) for _ in range(rng.randint(2, 6))]
    starts = [rng.randint(0, len(p)) for p in pieces]
    return "".join(p[a : a + rng.randint(1, 12)] for p, a in zip(pieces, starts))[:LONGEST]


def build(cls, root, added):
    """Returns the class with the small vocabulary; without added tokens, a copy without them."""
    model = root["model"]
    t = cls(vocab=dict(model["vocab"]), merges=[tuple(m) for m in model["merges"]])
    if not added:
        plain = json.loads(t.backend_tokenizer.to_str())
        plain["added_tokens"] = []
        return type(t.backend_tokenizer).from_str(json.dumps(plain))
    for a in root["added_tokens"]:
        t.add_tokens([AddedToken(a["content"], special=a["special"], normalized=False)], special_tokens=a["special"])
        assert t.convert_tokens_to_ids(a["content"]) == a["id"], a
    return t.backend_tokenizer


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--out", default=os.path.join(HERE, "..", "golden", "tokenizer", "splits.json"))
    with open(os.path.join(HERE, "..", "golden", "templates", "tokenizer.json"), encoding="utf-8") as f:
        root = json.load(f)
    both, rng = {}, random.Random(SEED)
    texts = TEXTS + [mix(rng) for _ in range(DRAWN)]
    for name, cls in CLASSES.items():
        plain, marked = build(cls, root, False), build(cls, root, True)
        both[name] = []
        for t in texts:
            case = {"plain": plain.encode(t, add_special_tokens=False).ids}
            if (ids := marked.encode(t, add_special_tokens=False).ids) != case["plain"]:
                case["marked"] = ids
            both[name].append(case)
    lines = [
        json.dumps({"text": t, **{name: both[name][i] for name in CLASSES}}, separators=(",", ":"))
        for i, t in enumerate(texts)
    ]
    with open(p.parse_args().out, "w", encoding="utf-8") as f:
        f.write("{\n" + "".join(f' "{n}": "{metadata.version(n)}",\n' for n in ("transformers", "tokenizers")))
        f.write(' "generator": "make_splits.py",\n "texts": [\n  ' + ",\n  ".join(lines) + "\n ]\n}\n")


if __name__ == "__main__":
    main()
