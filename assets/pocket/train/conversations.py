"""Conversations about screens: what the language model reads, what it is to say, and where it may look for it.

Design.  A sequence is one screen with a task in use, if the screen is of an episode or shows things that have names; or with
a question that a person asks of it; and then more questions about the same picture (questions.py).  Heads are told where
to look, in training only; the kinds of hint are
    TASK   the same letter in the user's text       PAGE   the image token that holds the letter
    POINT  the image token that holds the place, at the four tokens that say it
    MENTION  at an image token that shows part of a word which the task has: the last letter of that part, there
`Rows` draws sequences about cached screens (cache.py), `collate` makes tensors of several, and `whole_answers` counts.
"""

import collections
import glob
import json
import os
import random
import re

import numpy as np
import torch

import composed
import dialect  # puts the folder above on the path
import questions
import tokenizer
from words import Lexicon

COMPOSED = 0.6  # of the screens that stand still: asked for a step of a task first
ALONE = 0.15  # of all screens: the first thing said is a question, as `holorun ask` puts it, and no task
ASKED = 0.4  # of the kiosk's screens of which only questions are asked
OFTEN = {"visited": 2.0, "kiosk": 2.0, "forms": 3.0, "gtk": 2.0, "qt": 2.0, "tk": 2.0}  # how often screens of a world are taken
TASK, PAGE, POINT, MENTION = range(4)
FINE, COARSE = range(dialect.FINE0, dialect.FINE0 + 8), range(tokenizer.BIN0, tokenizer.BIN0 + 64)


class Sequence:
    """Ids, where the loss is, and hints (query, slot, key), built turn by turn."""

    def __init__(self, grid):
        self.grid = grid
        self.ids, self.on, self.told, self.first, self.task = (
            list(tokenizer.HEAD),
            [0] * len(tokenizer.HEAD),
            [],
            None,
            None,
        )
        self.spans = []  # (name, first id, end, sizes of what is pointed at) of each answer

    def _add(self, ids, on):
        self.ids += ids
        self.on += [on] * len(ids)

    def token_at(self, x, y):
        r, c = self.grid
        return self.first + min(r - 1, max(0, int(y) // 32)) * c + min(c - 1, max(0, int(x) // 32))

    def user(self, u, screen=None):
        """A turn; of its picture, if it has one, `screen` knows the words."""
        self._add(list(tokenizer.USER), 0)
        before, image, after = u.partition("<image>")
        self.said = (before.encode(), len(self.ids))
        self.task = self.task or self.said
        self._add(tokenizer.text(before), 0)
        if image:
            self._add([dialect.WIDE["<img>"]], 0)
            self.first = len(self.ids)
            self._add(
                [tokenizer.IMAGE] * (self.grid[0] * self.grid[1])
                + [dialect.WIDE["</img>"]]
                + tokenizer.text(after),
                0,
            )
        self._add(tokenizer.text("\n") + list(tokenizer.REPLY), 0)
        for word, places in screen.spoken() if image and screen else ():
            self._mention(word, places)

    def _mention(self, word, places):
        """A word of the screen, if the task has it: what comes next and what is not there can then be seen."""
        spelt = word.encode()
        for said, start in (self.task, self.said):
            found = spelt in said and re.search(rb"(?<!\w)" + re.escape(spelt) + rb"(?!\w)", said)
            if found:
                shown = {self.token_at(*p): j for j, p in enumerate(places)}
                self.told += [(token, MENTION, start + found.start() + j) for token, j in shown.items()]
                return

    def earlier(self, answer):
        self._add(dialect.spelled(answer) + list(tokenizer.CLOSE) + tokenizer.text("\n"), 0)

    def answer(self, pieces, name=""):
        """`name` is what the answer counts as in tables; by itself its first token."""
        begun, sizes = len(self.ids), [rest[2:] or [12, 12] for kind, *rest in pieces if kind == "place"]
        for kind, *rest in pieces:
            at = len(self.ids)
            if kind == "mark":
                self._add([dialect.WIDE[rest[0]]], 1)
            elif kind == "place":
                self._add(dialect.spelled(dialect.place(*rest[:2])), 1)
                self.told += [(at + j - 1, POINT, self.token_at(*rest[:2])) for j in range(4)]
            else:
                self._add(tokenizer.text(rest[0]), 1)
                if kind == "copy" and rest[0].isascii():
                    for said, start in (self.said, self.task):
                        k = said.find(rest[0].encode())
                        if k >= 0:
                            self.told += [(at + j - 1, TASK, start + k + j) for j in range(len(rest[0]))]
                            break
                    self.told += [(at + j - 1, PAGE, self.token_at(*p)) for j, p in enumerate(rest[1]) if p]
        self._add(list(tokenizer.CLOSE), 1)
        first = dialect.NAME.get(self.ids[begun], "text")
        self.spans.append((name or first, begun, len(self.ids), sizes))
        self._add(tokenizer.text("\n"), 0)


class Rows:
    """Cached screens: `draw` gives (rows, sequence)."""

    def __init__(self, folders, seed, gate=False, turns=10, beside=10, limit=1100):
        self.random, self.gate, self.limit, self.parts = random.Random(seed), gate, limit, []
        self.turns, self.beside = turns, min(turns, beside)  # questions about a screen; the same after a step of a task
        self.lex = Lexicon(self.random, gate)
        for path in sorted(p for f in folders for p in glob.glob(os.path.join(f, "*.npz"))):
            z = np.load(path)
            with open(path[:-4] + ".jsonl", "rb") as f:
                starts, at = [], 0
                for line in f:
                    starts.append(at)
                    at += len(line)
            self.parts.append(
                (
                    path[:-4],
                    np.memmap(path[:-4] + ".rows", np.int8).reshape(-1, 768),
                    z["place"],
                    z["letters"],
                    starts,
                )
            )
        self.weights = [len(p[2]) * OFTEN.get(os.path.basename(p[0]).split("-")[0], 1) for p in self.parts]

    def screen(self, part, k):
        name, rows, place, letters, starts = part
        first, r, c, l0 = place[k]
        l1 = place[k + 1][3] if k + 1 < len(place) else len(letters)
        with open(name + ".jsonl", "rb") as f:
            f.seek(starts[k])
            about = json.loads(f.readline())
        return rows[first : first + r * c], (int(r), int(c)), letters[l0:l1], about

    def step(self, s, screen, history, said, pieces, name, still=None):
        """A step of a task: what was asked, what was done, and what comes next.  `still` says of each earlier step whether
        nothing changed; where it is not known, that is said now and then."""
        before = said + "\n"
        still = still or [not self.gate and self.random.random() < 0.04 for _ in history]
        for h, same in list(zip(history, still))[-12:]:
            s.user(before + "-")
            s.earlier(h)  # what a step without an effect is told: prompts/pocket-wide.json
            before = "no change\n" if same else ""
        s.user(before + "<image>", screen)
        s.answer(pieces, name)

    def any(self):
        part = self.random.choices(self.parts, self.weights)[0]
        return part, self.random.randrange(len(part[2]))

    def some(self, turns):
        """A kiosk's conversation up to what is asked in use, and a few of the questions behind that."""
        asked = next((k + 1 for k, t in enumerate(turns) if t["loss"]), 0)
        keep = sorted(self.random.sample(range(asked, len(turns)), min(self.beside, len(turns) - asked)))
        return turns[:asked] + [turns[k] for k in keep]

    def draw(self):
        while True:
            rows, grid, letters, about = self.screen(*self.any())
            if about.get("page") == "kiosk-text" and self.random.random() > ASKED:
                continue
            screen = questions.Screen(letters, about.get("items", []), about.get("names", []))
            s = Sequence(grid)
            known = "action" not in about or "items" in about  # else the letters are what the eyes read
            if known and self.random.random() < ALONE:
                self.alone(s, screen)
            elif "action" in about:
                history, said, pieces = questions.played(about, screen)
                self.step(s, screen, history, said, pieces, about["page"], about.get("still"))
            elif "turns" in about:
                self.kiosk(s, screen, about["turns"])
            elif self.random.random() < COMPOSED:
                other = self.composed(s, screen)
                if other is not None:
                    return other, s
            self.more(s, screen, "turns" in about, known)
            if s.first is not None and ("turns" in about or not known or len(s.ids) <= self.limit + 150):
                return rows, s

    def say(self, s, screen, question, pieces, name=""):
        """A question and its answer, with the picture if none has been shown."""
        s.user(question if s.first is not None or "<image>" in question else f"{question}\n<image>", screen)
        s.answer(pieces, name)

    def alone(self, s, screen):
        found = screen.asked(self.random, self.lex)
        if found:
            answer = questions.text_of(found[1])
            self.say(s, screen, *found, f"asked {answer if answer in ('yes', 'no') else 'text'}")

    def kiosk(self, s, screen, turns):
        """The kiosk's own conversation."""
        for t in self.some(turns):
            u, pieces = questions.kiosk(t, screen)
            if t["loss"]:
                self.say(s, screen, u, pieces)
            else:
                s.user(u)
                s.earlier(questions.text_of(pieces))

    def composed(self, s, screen):
        """A step of a task about a screen that stands still.  Where the task is over the window may have closed, and another
        screen is seen: gives its rows then."""
        found = composed.task(screen, self.random, self.lex)
        if not found:
            return None
        said, history, pieces = found
        other = self.screen(*self.any())[:2] if pieces == composed.END and self.random.random() < 0.5 else None
        if other:
            s.grid, screen = other[1], None
        self.step(s, screen, history, said, pieces, "task")
        return other[0] if other else None

    def more(self, s, screen, kiosk, known):
        """Questions about the same picture, of which more or less is known."""
        if kiosk:
            turns = filter(None, [screen.there(self.random, self.lex) for _ in range(2)])
        elif not known:
            turns = []
        else:
            turns = screen.turns(self.random, self.lex, self.turns if s.first is None else self.beside)
        for u, pieces in turns:
            if len(s.ids) > self.limit:
                break
            self.say(s, screen, u, pieces)


def collate(drawn):
    T = max(len(s.ids) for _, s in drawn)
    ids, target = torch.zeros(len(drawn), T, dtype=torch.long), torch.full((len(drawn), T), -100)
    for b, (_, s) in enumerate(drawn):
        i, on = torch.tensor(s.ids), torch.tensor(s.on, dtype=torch.bool)
        ids[b, : len(i)] = i
        target[b, : len(i) - 1] = torch.where(on[1:], i[1:], -100)
    told = torch.tensor([(b, *h) for b, (_, s) in enumerate(drawn) for h in s.told]).view(-1, 4)
    rows = torch.from_numpy(np.concatenate([r for r, _ in drawn]))
    return ids, rows, target, told


def whole_answers(s, guess):
    """Counts by name: the answers of a sequence of which greedy decoding would have written every token, a
    place counting as right when it lies on what is pointed at.  `guess[i]` follows id i."""
    out = collections.Counter()
    for name, begun, end, sizes in s.spans:
        right, k, at = True, begun, 0
        while k < end and right:
            if COARSE[0] <= s.ids[k] <= COARSE[-1] and k + 3 < end and s.ids[k + 1] >= FINE[0]:
                want, got = (
                    dialect.point(dialect.decode(x)) for x in (s.ids[k : k + 4], guess[k - 1 : k + 3])
                )
                w, h = sizes[at]
                right = (
                    got is not None
                    and abs(got[0] - want[0]) <= max(6, w / 2)
                    and abs(got[1] - want[1]) <= max(6, h / 2)
                )
                k, at = k + 4, at + 1
            else:
                right, k = guess[k - 1] == s.ids[k], k + 1
        for key in (name, "all"):
            out.update({f"{key} n": 1, f"{key} right": int(right)})
    return out
