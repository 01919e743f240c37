"""The vocabulary of the pocket model: 256 bytes, and the words of its dialect.

Design.  A model of five million parameters that reads names it has never seen must spell them, so
text is bytes: no merges, one token per byte, and a copied word is copied letter by letter.  What
the template and the dialect say in every turn is one token each, coordinates included, so that a
whole step fits in a few dozen tokens.  The file formats are those of the published family
(byte-level BPE with an empty merge list), so any reader of tokenizer.json gives the same ids.

    0..15     <unk> <s> </s> <SPECIAL_3> .. <SPECIAL_15>
    16..271   byte b at id 16 + b
    272..287  image marks, template headers, verbs
    288..351  <0> .. <63>, the coordinate bins

Text of the user is encoded with `text` (bytes only, no mark is recognised); what the assistant
writes and what the template says is encoded with `spelled`, where `<click>` is one token.
"""
import json
import re

BYTE0 = 16
NAMED = ["<image>", "<img>", "</img>", "System\n", "User\n", "Assistant\n", "<think></think>",
         "<click>", "<write>", "<done>", "<at>", "<key>", "<scroll>", "<wait>",
         "<SPECIAL_286>", "<SPECIAL_287>"]
BIN0 = BYTE0 + 256 + len(NAMED)
BINS = 64
VOCAB = BIN0 + BINS
IMAGE_TOKENS = 256                       # what one <image> mark expands to

_low = ["<unk>", "<s>", "</s>"] + [f"<SPECIAL_{i}>" for i in range(3, 16)]
ADDED = {t: i for i, t in enumerate(_low)}
ADDED |= {t: BYTE0 + 256 + i for i, t in enumerate(NAMED)}
ADDED |= {f"<{k}>": BIN0 + k for k in range(BINS)}
_NAME = {i: t for t, i in ADDED.items()}
_MARK = re.compile("|".join(re.escape(t) for t in sorted(ADDED, key=len, reverse=True)))

BOS, END = ADDED["<s>"], ADDED["<SPECIAL_12>"]
IMAGE, AT = ADDED["<image>"], ADDED["<at>"]
CLICK, WRITE, DONE = ADDED["<click>"], ADDED["<write>"], ADDED["<done>"]


def text(s):
    """Bytes of s, one id each."""
    return [BYTE0 + b for b in s.encode()]


def spelled(s):
    """s with every spelled token recognised, longest first."""
    ids, at = [], 0
    for m in _MARK.finditer(s):
        ids += text(s[at:m.start()]) + [ADDED[m.group()]]
        at = m.end()
    return ids + text(s[at:])


def decode(ids):
    out = bytearray()
    for i in ids:
        out += bytes([i - BYTE0]) if BYTE0 <= i < BYTE0 + 256 else _NAME[i].encode()
    return out.decode(errors="replace")


# ---- the template ---------------------------------------------------------------------------

HEAD = spelled("<s><SPECIAL_10>System\n") + text("\n")
USER, REPLY = spelled("<SPECIAL_11>User\n"), spelled("<SPECIAL_11>Assistant\n<think></think>")
CLOSE = spelled("\n<SPECIAL_12>")        # the assistant's own end of turn; a newline follows it
PICTURE = spelled("<img>") + [IMAGE] * IMAGE_TOKENS + spelled("</img>")


def user_turn(u):
    """A user turn; `<image>` in u is the place of a screenshot, the rest is plain text."""
    ids = list(USER)
    for i, part in enumerate(u.split("<image>")):
        ids += (PICTURE if i else []) + text(part)
    return ids + text("\n") + REPLY


def conversation(turns):
    """[(user text, assistant text, loss)] -> ids, and a 0/1 list of the ids the loss is on."""
    ids, on = list(HEAD), [0] * len(HEAD)
    for u, a, loss in turns:
        said, answer = user_turn(u), spelled(a) + CLOSE
        ids += said + answer + text("\n")
        on += [0] * len(said) + [int(loss)] * len(answer) + [0]
    return ids, on


# ---- the published files --------------------------------------------------------------------

def byte_unicode():
    """The printable character that stands for each byte in a byte-level vocabulary."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    names, n = {b: chr(b) for b in plain}, 0
    for b in range(256):
        if b not in names:
            names[b] = chr(256 + n)
            n += 1
    return names


# With no merges the split changes nothing; it is the family's, so that readers meet the usual form.
SPLIT = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
         r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
         r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")


def _is_special(i):
    return i < BYTE0 or i in (IMAGE, IMAGE + 1, IMAGE + 2)


def _added(i, names):
    return {"id": i, "content": names[i], "single_word": False, "lstrip": False, "rstrip": False,
            "normalized": False, "special": _is_special(i)}


def tokenizer_json(names=_NAME):
    """`names` {id: text} of the added tokens: those of this file, or more of them (train/dialect.py)."""
    vocab = {t: i for i, t in names.items()} | {c: BYTE0 + b for b, c in byte_unicode().items()}
    bytelevel = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True,
                 "use_regex": False}
    split = {"type": "Split", "pattern": {"Regex": SPLIT}, "behavior": "Isolated", "invert": False}
    bos = {"SpecialToken": {"id": "<s>", "type_id": 0}}
    text_a, text_b = ({"Sequence": {"id": k, "type_id": t}} for k, t in (("A", 0), ("B", 1)))
    return {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [_added(i, names) for i in sorted(names)],
        "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, bytelevel]},
        "post_processor": {"type": "TemplateProcessing", "single": [bos, text_a],
                           "pair": [bos, text_a, text_b],
                           "special_tokens": {"<s>": {"id": "<s>", "ids": [BOS],
                                                      "tokens": ["<s>"]}}},
        "decoder": bytelevel,
        "model": {"type": "BPE", "dropout": None, "unk_token": None,
                  "continuing_subword_prefix": None, "end_of_word_suffix": None,
                  "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
                  "vocab": dict(sorted(vocab.items(), key=lambda kv: kv[1])), "merges": []},
    }


def tokenizer_config_json(names=_NAME):
    entry = lambda i: {k: v for k, v in _added(i, names).items() if k != "id"}
    return {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 8192,
            "bos_token": "<s>", "eos_token": "<SPECIAL_12>", "unk_token": "<unk>",
            "clean_up_tokenization_spaces": False,
            "model_input_names": ["input_ids", "attention_mask"],
            "added_tokens_decoder": {str(i): entry(i) for i in sorted(names)}}


def special_tokens_map_json():
    return {"bos_token": "<s>", "eos_token": "<SPECIAL_12>", "unk_token": "<unk>"}


if __name__ == "__main__":
    s = "origin<write>From<at><12><20>Zürich"
    assert decode(spelled(s)) == s and len(spelled(s)) == 6 + 1 + 4 + 3 + 7
    assert VOCAB == 352 and ADDED["<0>"] == 288 and ADDED["</img>"] == 274
    assert decode(text("<click>")) == "<click>" and len(text("<click>")) == 7
    print(json.dumps({"vocabulary": VOCAB, "example": spelled(s)}))
