"""Records states that the model itself reaches, labelled by the oracles (DAgger, Ross et al. 2011).

    python -m pocket visited --out DIR --pages A,B [--shards 8]

As sources/frames.py, but with probability OWN the published model's greedy answer is executed; the state's
label is the oracle's action. An invalid answer is replaced by the right one. An episode ends when the model
reports its end or repeats an action a third time.

Decoding keeps no cache: the right answer is the guess, checked in one pass. The model's first different
token replaces the rest, so one pass is needed per token that differs.
"""

import torch

from . import MODEL, conversations, dialect
from .published_model import Published
from .sources import frames
from .sources.browser import SCALE
from .tokenizer import CLOSE, decode, spelled

LONGEST = 90  # tokens of an answer
OWN = 0.8  # probability that the model acts


class Player:
    """Answers for a picture, a task and the earlier answers."""

    def __init__(self):
        self.model = Published(MODEL)

    def says(self, picture, said, history, draft):
        """Returns the greedy answer; `draft` is a guess of it."""
        seen, grid = self.model.look(picture)
        s, before = conversations.Sequence(grid), said + "\n"
        for h in history[-conversations.HISTORY :]:
            s.user(before + "-")
            s.earlier(h)
            before = ""
        s.user(before + "<image>")
        ids, end = self.answer(s.ids, seen, spelled(draft) + list(CLOSE))
        return decode(ids[len(s.ids) : end])

    def answer(self, start, seen, draft):
        """Returns (ids with the answer, position of CLOSE)."""
        sure, close = list(start), list(CLOSE)
        while len(sure) < len(start) + LONGEST:
            with torch.no_grad():
                f = self.model.read(torch.tensor([sure + draft]), seen)[0]
            guess = self.model.logits(f).argmax(-1).tolist()
            for token in draft:
                if guess[len(sure) - 1] != token:
                    break
                sure, draft = sure + [token], draft[1:]
                if sure[-len(close) :] == close and len(sure) >= len(start) + len(close):
                    return sure, len(sure) - len(close)
            sure, draft = sure + [guess[len(sure) - 1]], draft[1:]
            if sure[-len(close) :] == close:
                return sure, len(sure) - len(close)
        return sure, len(sure)


def action_of(text, scale):
    """Returns an answer as an action of an oracle, in CSS pixels, or None if it cannot be executed."""
    a = dialect.parse(text)
    if not a:
        return None
    verb, rest = a["verb"], a["text"] or ""
    out = {"verb": verb, "label": a["label"], "kind": "point", "box": [0, 0, 0, 0]}
    for end in (a, a.get("to") or {}):
        if "x" in end:
            end["x"], end["y"] = end["x"] / scale, end["y"] / scale
    if verb in dialect.POINTED:
        out |= {"x": a["x"], "y": a["y"]}
    if verb in ("write", "append"):
        return out | {"text": rest}
    if verb == "click":
        return out | ({"hold": rest} if rest in ("ctrl", "shift") else {})
    if verb == "key":
        return {"verb": verb, "keys": a["label"]}
    if verb == "scroll":
        direction, _, amount = rest.partition(" ")
        return out | {"direction": direction, "amount": int(amount)} if amount.isdigit() else None
    if verb == "drag":
        return out | {"to": {**a["to"], "kind": "point", "box": [0, 0, 0, 0]}} if a.get("to") else None
    if verb == "done":
        return {"verb": verb, "text": a["label"]}
    if verb == "wait":
        return {"verb": verb, "seconds": 1}
    return out if verb in ("double", "hover", "missing") else None


class Visited(frames.Frames):
    """Frames in which the model acts."""

    def choose(self, e, about, picture):
        right = about["action"]
        if self.rng.random() > OWN:
            return right
        history, wanted = [dialect.spell(h, SCALE) for h in e.history], dialect.spell(right, SCALE)
        text = self.a.player.says(picture, about["said"], history, wanted)
        self.a.asked += 1
        self.a.alike += text == wanted
        own = action_of(text, SCALE)
        if not own:
            return right
        e.over = own["verb"] in ("done", "missing") or [own] * 2 == e.history[-2:]
        return own


options = frames.options


def run(a):
    a.player, a.asked, a.alike = Player(), 0, 0
    frames.retried(a.shards, lambda k: frames.shard(a, k, Visited, "visited"))
    print(f"{a.alike} of {a.asked} answers are the oracle's", flush=True)
