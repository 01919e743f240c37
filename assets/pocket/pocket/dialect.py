"""The action dialect `pocket-wide`: actions as text, and conversations as tokens.

An action is a verb, the label of its target copied exactly, the target's place, and what else the
verb needs. Before it a thought of up to 40 characters may stand ("step 1 of 3").

    <click>LABEL<at>PLACE        <double> and <hover> alike; "ctrl" or "shift" may follow the place of a click
    <write>LABEL<at>PLACE TEXT   click, select all, type
    <append>LABEL<at>PLACE TEXT  click, move the caret to the end, type
    <key>KEYS                    "ctrl+c", "enter"
    <scroll>LABEL<at>PLACE down 3                     direction and notches of the wheel
    <drag>LABEL<at>PLACE<to>LABEL<at>PLACE            the second label may be empty
    <wait>                       until the screen has settled
    <missing>LABEL               the target of the task is not on the screen
    <done>TEXT                   the task is complete; TEXT is the answer, if one was requested

(No space stands between PLACE and TEXT.) PLACE is four tokens, x then y, each a patch and an eighth of it:
<12><.3> is 16*12 + 2*3 + 1 = 199 pixels of the picture that the model receives, at most 1024 per side. A
question is answered in plain text. In a conversation earlier pictures are "-"; the newest is <image>, with
one token per 2x2 patches.
"""

import re

from .tokenizer import CLOSE, END_IMG, HEAD, IMAGE, IMG, REPLY, USER, spelled, text

POINTED = ("click", "double", "hover", "write", "append", "scroll", "drag")
PLACE = r"<(\d+)><\.(\d)><(\d+)><\.(\d)>"
ACTION = re.compile(
    rf"[^<]{{0,40}}<(\w+)>([^<]*)(?:<at>({PLACE}))?([^<]*)(?:<to>([^<]*)<at>({PLACE}))?", re.S
)


def place(x, y):
    """Returns the four tokens of a place in pixels, as text."""
    at = (min(1023, max(0, int(v))) for v in (x, y))
    return "".join(f"<{v // 16}><.{v % 16 // 2}>" for v in at)


def point(tokens):
    """Returns (x, y) in pixels of the four tokens of a place, or None."""
    m = re.fullmatch(PLACE, tokens)
    return tuple(16 * int(m[k]) + 2 * int(m[k + 1]) + 1 for k in (1, 3)) if m else None


def plain(label):
    """Returns a label as an answer may contain it: one line, no marks, at most 40 characters."""
    return " ".join(str(label).replace("<", "(").replace(">", ")").split())[:40].strip()


def spell(action, scale=1.0):
    """Returns an action of an oracle as text of the dialect; coordinates are multiplied by `scale`."""

    def at(a):
        return f"{plain(a.get('label', ''))}<at>{place(a['x'] * scale, a['y'] * scale)}"

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


def parse(said):
    """Returns the action {verb, label, x, y, text, to} of an answer, or None if it is invalid."""
    m = ACTION.fullmatch(said)
    if not m or (m[1] in POINTED) != bool(m[3]):
        return None
    out = {"verb": m[1], "label": m[2], "text": m[8]}
    if m[3]:
        out["x"], out["y"] = point(m[3])
    if m[10]:
        x, y = point(m[10])
        out["to"] = {"label": m[9], "x": x, "y": y}
    return out


def conversation(turns, image_tokens):
    """Returns the ids of [(user text, answer)]; every <image> becomes `image_tokens` tokens."""
    picture, ids = [IMG] + [IMAGE] * image_tokens + [END_IMG], list(HEAD)
    for said, answer in turns:
        ids += USER
        for i, part in enumerate(said.split("<image>")):
            ids += (picture if i else []) + text(part)
        ids += text("\n") + REPLY + spelled(answer) + CLOSE + text("\n")
    return ids


def in_use(said, history, answer):
    """Returns the turns of a running task: task, earlier answers, newest picture and its answer."""
    turns, before = [], said + "\n"
    for step in history:
        turns.append((before + "-", step))
        before = ""
    return turns + [(before + "<image>", answer)]
