"""The wide dialect: what the model is told and what it answers, as tokens.

Design.  The vocabulary is that of tokenizer.py, ids unchanged, so that the shipped language model can be gone
on from; 32 ids follow it.  A step is a verb, the label of its target copied letter by letter, the target's
place, and what else the verb needs:

    [THOUGHT]<click>LABEL<at>PLACE        also <double> and <hover>; after a click's place "ctrl" or "shift" may follow
    <write>LABEL<at>PLACE TEXT   click, select all, type            <append>: click, go to the end, type
    <key>KEYS                    "ctrl+c", "enter", for what has the focus
    <scroll>LABEL<at>PLACE TEXT  "down 3": direction and notches of the wheel
    <drag>LABEL<at>PLACE<to>LABEL<at>PLACE                          the second label may be empty
    <wait>                       until the screen has settled
    <missing>LABEL               what the task speaks of is not on the screen
    <done>TEXT                   the task is over; the answer, if one was asked for

Before any verb a thought of up to 40 characters may stand ("step 1 of 3").
PLACE is four tokens, x then y, each a patch and an eighth of it: <12><.3> is 16*12 + 2*3 + 1 = 199 pixels of
the picture the model gets (at most 1024 a side).  A patch is what the tower sees, so the coarse half of a
place can be looked up in an image token, whatever the size of the picture.

A question ("Read the line under Name", "Is there a Save button?") is answered in plain text, no verb.
Turns follow tokenizer.conversation: earlier pictures are "-", the newest one is <image>, of as many image
tokens as the picture has pairs of patches across times down.
"""

import re

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import tokenizer  # noqa: E402
from tokenizer import ADDED, BIN0, CLOSE, HEAD, IMAGE, REPLY, USER, text  # noqa: E402

MORE = ["<append>", "<drag>", "<hover>", "<double>", "<missing>", "<to>"]
FINE0 = tokenizer.VOCAB + 8  # ids 358 and 359 are free
VOCAB = 384
WIDE = (
    dict(ADDED)
    | {t: tokenizer.VOCAB + i for i, t in enumerate(MORE)}
    | {f"<.{k}>": FINE0 + k for k in range(8)}
)
WIDE |= {f"<SPECIAL_{i}>": i for i in range(tokenizer.VOCAB, VOCAB) if i not in WIDE.values()}  # free
NAME = {i: t for t, i in WIDE.items()}
MARK = re.compile("|".join(re.escape(t) for t in sorted(WIDE, key=len, reverse=True)))
POINTED = ("click", "double", "hover", "write", "append", "scroll", "drag")


def spelled(s):
    """s with every token of the dialect recognised."""
    ids, at = [], 0
    for m in MARK.finditer(s):
        ids += text(s[at : m.start()]) + [WIDE[m.group()]]
        at = m.end()
    return ids + text(s[at:])


def decode(ids):
    out = bytearray()
    for i in ids:
        out += (
            bytes([i - tokenizer.BYTE0])
            if tokenizer.BYTE0 <= i < tokenizer.BYTE0 + 256
            else NAME.get(i, "<?>").encode()
        )
    return out.decode(errors="replace")


# ---- places -------------------------------------------------------------------------------------


def place(x, y):
    """Pixels of the picture -> four tokens as text."""

    def one(v):
        v = min(1023, max(0, int(v)))
        return f"<{v // 16}><.{v % 16 // 2}>"

    return one(x) + one(y)


PLACE = r"<(\d+)><\.(\d)><(\d+)><\.(\d)>"


def point(tokens):
    """The inverse: (x, y) in pixels, or None."""
    m = re.fullmatch(PLACE, tokens)
    return tuple(16 * int(m[k]) + 2 * int(m[k + 1]) + 1 for k in (1, 3)) if m else None


def plain(label):
    """A label as it may stand in an answer: one line, no marks, at most 40 characters."""
    return " ".join(str(label).replace("<", "(").replace(">", ")").split())[:40].strip()


def spell(action, scale=1.0, dx=0, dy=0):
    """An action of a record (places in CSS pixels) as text of the dialect; places times `scale` minus an
    offset."""
    at = lambda a: f"{plain(a.get('label', ''))}<at>{place(a['x'] * scale - dx, a['y'] * scale - dy)}"
    verb = action["verb"]
    if verb not in POINTED:
        rest = {"key": "keys", "done": "text", "missing": "label"}.get(verb)
        value = str(action.get(rest) or "") if rest else ""
        return f"<{verb}>" + (plain(value) if verb == "missing" else value)
    out = f"<{verb}>" + at(action)
    if verb == "drag":
        return out + "<to>" + at(action["to"])
    if verb == "scroll":
        return out + f"{action['direction']} {round(action.get('amount', 1))}"
    return out + (action.get("text", "") if verb in ("write", "append") else action.get("hold") or "")


STEP = re.compile(rf"[^<]{{0,40}}<(\w+)>([^<]*)(?:<at>({PLACE}))?([^<]*)(?:<to>([^<]*)<at>({PLACE}))?", re.S)


def parse(said):
    """What was answered as an action: verb, label, x, y, text, to; or None."""
    m = STEP.fullmatch(said)
    if not m or (m[1] in POINTED) != bool(m[3]):
        return None
    out = {"verb": m[1], "label": m[2], "text": m[8]}
    if m[3]:
        out["x"], out["y"] = point(m[3])
    if m[10]:
        x, y = point(m[10])
        out["to"] = {"label": m[9], "x": x, "y": y}
    return out


# ---- the template -------------------------------------------------------------------------------


def conversation(turns, image_tokens):
    """[(user text, assistant text, loss)] -> ids and a 0/1 list; every <image> gets `image_tokens` rows."""
    picture = tokenizer.spelled("<img>") + [IMAGE] * image_tokens + tokenizer.spelled("</img>")
    ids, on = list(HEAD), [0] * len(HEAD)
    for u, a, loss in turns:
        said = list(USER)
        for i, part in enumerate(u.split("<image>")):
            said += (picture if i else []) + text(part)
        said += text("\n") + REPLY
        answer = spelled(a) + CLOSE
        ids += said + answer + text("\n")
        on += [0] * len(said) + [int(loss)] * len(answer) + [0]
    return ids, on


def in_use(said, history, answer):
    """The turns of a running task: the sentence, the earlier answers without their pictures, the newest
    picture."""
    turns, before = [], said + "\n"
    for step in history:
        turns.append((before + "-", step, 0))
        before = ""
    return turns + [(before + "<image>", answer, 1)]


if __name__ == "__main__":
    assert FINE0 + 8 <= VOCAB and BIN0 + 64 == tokenizer.VOCAB
    a = {"verb": "drag", "x": 10, "y": 20, "label": "A", "to": {"x": 30, "y": 40, "label": ""}}
    s = spell(a, 2.0)
    assert decode(spelled(s)) == s and parse(s) == {
        "verb": "drag",
        "label": "A",
        "text": "",
        "x": 21,
        "y": 41,
        "to": {"label": "", "x": 61, "y": 81},
    }, parse(s)
    s = spell({"verb": "write", "x": 199, "y": 5, "label": "Name <x>", "text": "Zoë 1"})
    assert (
        s == "<write>Name (x)<at><12><.3><0><.2>Zoë 1"
        and parse(s)["x"] == 199
        and parse(s)["text"] == "Zoë 1"
    )
    assert parse(spell({"verb": "key", "keys": "ctrl+c"})) == {"verb": "key", "label": "ctrl+c", "text": ""}
    assert parse("<click>OK") is None
    print(s, len(spelled(s)))
