"""Vocabulary of the model and the marks of its chat template (../model has their files).

Text is bytes, one token each and no merges, so the model copies an unknown name by its letters.
Everything that the template and the action dialect (dialect.py) repeat is one token.

    0..15      <unk> <s> </s> <SPECIAL_3> .. <SPECIAL_15>
    16..271    byte b has id 16 + b
    272..287   image marks, template headers, verbs
    288..351   <0> .. <63>, coarse coordinates
    352..357   more verbs; 358, 359 unused
    360..367   <.0> .. <.7>, fine coordinates; 368..383 unused

A user's text is encoded by `text`, which recognizes no marks; answers and the template are encoded by
`spelled`.
"""

import re

BYTE0 = 16
NAMED = ["<image>", "<img>", "</img>", "System\n", "User\n", "Assistant\n", "<think></think>", "<click>"]
NAMED += ["<write>", "<done>", "<at>", "<key>", "<scroll>", "<wait>", "<SPECIAL_286>", "<SPECIAL_287>"]
MORE = ["<append>", "<drag>", "<hover>", "<double>", "<missing>", "<to>", "<SPECIAL_358>", "<SPECIAL_359>"]
COARSE0 = BYTE0 + 256 + len(NAMED)
MORE0 = COARSE0 + 64
FINE0 = MORE0 + len(MORE)
VOCAB = 384
COARSE, FINE = range(COARSE0, COARSE0 + 64), range(FINE0, FINE0 + 8)

NAME = dict(enumerate(["<unk>", "<s>", "</s>"] + [f"<SPECIAL_{i}>" for i in range(3, 16)]))  # id to token
NAME |= {BYTE0 + 256 + i: t for i, t in enumerate(NAMED)} | {c: f"<{c - COARSE0}>" for c in COARSE}
NAME |= {MORE0 + i: t for i, t in enumerate(MORE)} | {f: f"<.{f - FINE0}>" for f in FINE}
NAME |= {i: f"<SPECIAL_{i}>" for i in range(FINE0 + 8, VOCAB)}
ID = {t: i for i, t in NAME.items()}  # token to id
MARK = re.compile("|".join(re.escape(t) for t in sorted(ID, key=len, reverse=True)))
IMAGE, IMG, END_IMG = ID["<image>"], ID["<img>"], ID["</img>"]


def text(s):
    """Returns the ids of the bytes of s."""
    return [BYTE0 + b for b in s.encode()]


def spelled(s):
    """Returns the ids of s, in which tokens are recognized, longest first."""
    ids, at = [], 0
    for m in MARK.finditer(s):
        ids += text(s[at : m.start()]) + [ID[m.group()]]
        at = m.end()
    return ids + text(s[at:])


def decode(ids):
    """Returns the text of ids."""
    out = bytearray()
    for i in ids:
        out += bytes([i - BYTE0]) if BYTE0 <= i < BYTE0 + 256 else NAME.get(i, "<?>").encode()
    return out.decode(errors="replace")


HEAD = spelled("<s><SPECIAL_10>System\n") + text("\n")
USER, REPLY = spelled("<SPECIAL_11>User\n"), spelled("<SPECIAL_11>Assistant\n<think></think>")
CLOSE = spelled("\n<SPECIAL_12>")  # ends an answer; a newline follows
