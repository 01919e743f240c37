"""A tokenizer.json in the published layout from the Tekken table that mistral-common carries.

    python tekken.py OUTDIR

The table lists byte strings in order of rank; the file wants merges.  Every way to cut a token into
two tokens becomes a merge, in order of the token's rank: joining the pair with the lowest rank first
is then the same as joining whatever makes the token of lowest rank.  Beside it goes vectors.json:
texts, drawn from many scripts, and their ids by tiktoken.  Exit code 3 when mistral-common or tiktoken
is not installed.
"""
import base64
import importlib.util
import json
import os
import random
import sys

SPECIAL, IDS = 1000, 131072


def table():
    spec = importlib.util.find_spec("mistral_common")
    if not spec or not importlib.util.find_spec("tiktoken"):
        sys.exit(3)
    path = os.path.join(spec.submodule_search_locations[0], "data", "tekken_240718.json")
    if not os.path.exists(path):
        sys.exit(3)
    return json.load(open(path))


def byte_letters():
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters, n = {b: chr(b) for b in plain}, 0
    for b in range(256):
        if b not in letters:
            letters[b], n = chr(256 + n), n + 1
    return letters


def texts(seed=5):
    """Runs of characters of one kind after the other: what the split pattern tells apart."""
    kinds = ["abcdefghij", "ABCDEFGH", "0123456789", " ", " ", "\n", "\r\n", "\t", "'s't'll", ".,;:!?-/",
             "éàüßñ", "ÄÖÉ", "жизнь", "МИР", "東京日本語", "שלום", "हिन्दी", "🙂👩‍💻", "ǅǈ", "ʰʲ", "\u0301",
             "\u00a0\u2003", "₂½Ⅷ", "</>{}[]()\"", "\u0085\u2028"]
    rng = random.Random(seed)
    for _ in range(400):
        yield "".join(rng.choice(rng.choice(kinds)) if rng.random() < .5 else
                      "".join(rng.choices(rng.choice(kinds), k=rng.randint(1, 9)))
                      for _ in range(rng.randint(1, 25)))


def vectors(words, pattern):
    import tiktoken
    e = tiktoken.Encoding("tekken", pat_str=pattern, special_tokens={},
                          mergeable_ranks={w: r for r, w in enumerate(words)})
    return [{"text": t, "ids": [SPECIAL + r for r in e.encode_ordinary(t)]} for t in texts()]


def main(out):
    tekken, letters = table(), byte_letters()
    words = [base64.b64decode(v["token_bytes"]) for v in tekken["vocab"][:IDS - SPECIAL]]
    spell = {w: "".join(letters[b] for b in w) for w in words}
    names = ["<unk>", "<s>", "</s>"] + [f"<SPECIAL_{i}>" for i in range(3, SPECIAL)]
    names += ["<image>", "<img>", "</img>"]
    ids = [*range(SPECIAL), *range(IDS, IDS + 3)]
    merges = [[spell[w[:i]], spell[w[i:]]] for w in words for i in range(1, len(w))
              if w[:i] in spell and w[i:] in spell]
    split = {"type": "Split", "pattern": {"Regex": tekken["config"]["pattern"]},
             "behavior": "Isolated", "invert": False}
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    json.dump({
        "added_tokens": [{"id": i, "content": n, "special": True} for i, n in zip(ids, names)],
        "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, level]},
        "model": {"type": "BPE", "vocab": {spell[w]: SPECIAL + r for r, w in enumerate(words)},
                  "merges": merges},
    }, open(os.path.join(out, "tokenizer.json"), "w"))
    json.dump(vectors(words, tekken["config"]["pattern"]), open(os.path.join(out, "vectors.json"), "w"))


if __name__ == "__main__":
    main(sys.argv[1])
