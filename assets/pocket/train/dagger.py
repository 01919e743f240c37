"""States that the model itself gets into, labelled by the oracles: episodes in frames in which the model acts.

    python dagger.py --eyes EYES --language LANGUAGE --out DIR --pages A,B [--states 512] [--shards 4] [--own .8]

Design.  As world/frames.py, but what is done in a state is mostly (`--own`) what the model says, greedily, on the rows
of the tower for the very picture; the record has what would have been right.  So training sees the states that its own
mistakes lead to.  An answer that cannot be read is replaced by the right one; an episode ends when the model says so or
does the same thing a third time.

Decoding has no cache of states: the whole answer is guessed from the right one and checked in one pass.  Where the
model would have written another token that token is taken and the rest of the guess is tried behind it, so a pass is
needed for each token that differs and no more.
"""

import argparse
import os
import pathlib
import sys

import numpy as np
import torch

import cache
import conversations
import dialect
import language
import stack
import tower
import weights
from tokenizer import CLOSE

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "world"))
import frames  # noqa: E402

LONGEST = 90  # tokens of an answer


class Player:
    """The model: a picture, a sentence and the earlier answers to what it says."""

    def __init__(self, eyes, run):
        self.eyes, saved = cache.Eyes(eyes), weights.load(run)
        flat = tower.Layout({n: tuple(s) for n, s in saved["names"].items()}).views(saved["average"])
        self.half = {n: v.to(language.HALF) for n, v in flat.items()}
        self.forward = stack.Stack(saved["shape"], flat, self.half, None).forward

    @torch.no_grad()
    def guesses(self, ids, rows):
        f = self.forward(torch.tensor([ids]), torch.from_numpy(np.ascontiguousarray(rows)))
        return (f[0, : len(ids)] @ self.half[stack.HEAD].t()).argmax(-1).tolist()

    def says(self, picture, said, history, draft):
        rows, grid, _ = self.eyes.look(picture)
        s, before = conversations.Sequence(grid), said + "\n"
        for h in history[-12:]:
            s.user(before + "-")
            s.earlier(h)
            before = ""
        s.user(before + "<image>")
        ids, end = self.answer(s.ids, rows, dialect.spelled(draft) + list(CLOSE))
        return dialect.decode(ids[len(s.ids) : end])

    def answer(self, start, rows, draft):
        """(ids with the answer, where CLOSE begins in them)."""
        sure = list(start)  # what the model is known to write
        while len(sure) < len(start) + LONGEST:
            guess = self.guesses(sure + draft, rows)
            for token in draft:
                if guess[len(sure) - 1] != token:
                    break
                sure, draft = sure + [token], draft[1:]
                if sure[-len(CLOSE) :] == list(CLOSE) and len(sure) >= len(start) + len(CLOSE):
                    return sure, len(sure) - len(CLOSE)
            sure, draft = sure + [guess[len(sure) - 1]], draft[1:]
            if sure[-len(CLOSE) :] == list(CLOSE):
                return sure, len(sure) - len(CLOSE)
        return sure, len(sure)


def action_of(text, scale):
    """What the model said as an action of an oracle, in CSS pixels; None if it cannot be done."""
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
    return out if verb in ("double", "hover", "missing") else {"verb": verb, "seconds": 1} if verb == "wait" else None


class Visited(frames.Frames):
    def choose(self, e, note, picture):
        right = note["action"]
        if self.rng.random() > self.a.own:
            return right
        history = [dialect.spell(h, frames.SCALE) for h in e.history]
        text = self.a.player.says(picture, note["said"], history, dialect.spell(right, frames.SCALE))
        self.a.asked += 1
        self.a.alike += text == dialect.spell(right, frames.SCALE)
        own = action_of(text, frames.SCALE)
        if not own:
            return right
        e.over = own["verb"] in ("done", "missing") or [own] * 2 == e.history[-2:]
        return own


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    frames.options(p)
    p.add_argument("--eyes", required=True)
    p.add_argument("--language", required=True)
    p.add_argument("--own", type=float, default=0.8, help="share of states in which the model acts")
    a = p.parse_args()
    os.nice(19 - os.nice(0))
    torch.set_num_threads(1)
    a.player, a.asked, a.alike = Player(a.eyes, a.language), 0, 0
    frames.shards(a, Visited, "visited")
    print(f"{a.alike} of {a.asked} answers were the oracle's, letter by letter", flush=True)


if __name__ == "__main__":
    main()
