"""Draws conversations about labelled screens: token ids, loss mask, and the source of every copied letter.

A sequence is one screen with a step of a task, or with a question that a user asks of it, and then more
questions about the same picture (questions.py). Sources supervise the attention of some heads, in training
only:

    TASK     at a copied letter: the same letter in the user's text
    PAGE     at a copied letter: the image token that holds the letter
    POINT    at the four tokens of a place: the image token that holds the place
    MENTION  at an image token with part of a word of the task: the last letter of that part in the task
"""

import collections
import random
import re

from . import dialect, multi_step_tasks, questions, tokenizer
from .sources.words import Lexicon
from .tokenizer import COARSE, FINE, ID

COMPOSED = 0.6  # fraction of static screens that begin with a step of a task
ALONE = 0.15  # fraction of all screens that begin with a question, as `holorun ask` puts it
ASKED = 0.4  # fraction of the kiosk's text screens that are used: they have questions only
NO_EFFECT = 0.04  # probability that an earlier step is reported as without effect, where that is unknown
HISTORY = 12  # earlier steps in a conversation, at most
TURNS, AFTER_TASK = 5, 2  # questions about a screen / after a step of a task
LIMIT = 1100  # ids of a sequence, about
TASK, PAGE, POINT, MENTION = range(4)


class Sequence:
    """One conversation, built turn by turn. `grid` is (rows, columns) of image tokens of its picture."""

    def __init__(self, grid):
        self.grid, self.first, self.task = grid, None, None
        self.ids, self.on = list(tokenizer.HEAD), [0] * len(tokenizer.HEAD)
        self.sources = []  # (query, kind, key)
        self.spans = []  # (name, first id, end, sizes of the elements at its places) of each answer

    def _add(self, ids, on=0):
        self.ids += ids
        self.on += [on] * len(ids)

    def token_at(self, x, y):
        """Returns the position of the image token that holds a pixel."""
        r, c = self.grid
        return self.first + min(r - 1, max(0, int(y) // 32)) * c + min(c - 1, max(0, int(x) // 32))

    def user(self, said, screen=None):
        """Adds a user turn; <image> in it is the picture, whose words `screen` knows."""
        self._add(list(tokenizer.USER))
        before, image, after = said.partition("<image>")
        self.said = (before.encode(), len(self.ids))
        self.task = self.task or self.said
        self._add(tokenizer.text(before))
        if image:
            self._add([ID["<img>"]])
            self.first = len(self.ids)
            self._add(
                [tokenizer.IMAGE] * (self.grid[0] * self.grid[1]) + [ID["</img>"]] + tokenizer.text(after)
            )
        self._add(tokenizer.text("\n") + list(tokenizer.REPLY))
        for word, places in screen.spoken() if image and screen else ():
            self._mention(word, places)

    def _mention(self, word, places):
        """Adds the sources of a word of the screen if the task has it."""
        spelt = word.encode()
        for said, start in (self.task, self.said):
            found = spelt in said and re.search(rb"(?<!\w)" + re.escape(spelt) + rb"(?!\w)", said)
            if found:
                shown = {self.token_at(*p): j for j, p in enumerate(places)}
                self.sources += [(token, MENTION, start + found.start() + j) for token, j in shown.items()]
                return

    def earlier(self, answer):
        """Adds an earlier answer, without a loss."""
        self._add(tokenizer.spelled(answer) + list(tokenizer.CLOSE) + tokenizer.text("\n"))

    def answer(self, pieces, name=""):
        """Adds an answer with a loss. `name` is its row in tables; by default its first token."""
        begun, sizes = len(self.ids), [rest[2:] or [12, 12] for kind, *rest in pieces if kind == "place"]
        for kind, *rest in pieces:
            at = len(self.ids)
            if kind == "mark":
                self._add([ID[rest[0]]], 1)
            elif kind == "place":
                self._add(tokenizer.spelled(dialect.place(*rest[:2])), 1)
                self.sources += [(at + j - 1, POINT, self.token_at(*rest[:2])) for j in range(4)]
            else:
                self._add(tokenizer.text(rest[0]), 1)
                if kind == "copy" and rest[0].isascii():
                    self._copied(at, *rest)
        self._add(list(tokenizer.CLOSE), 1)
        first = tokenizer.NAME.get(self.ids[begun], "text")
        self.spans.append((name or first, begun, len(self.ids), sizes))
        self._add(tokenizer.text("\n"))

    def _copied(self, at, text, places):
        """Adds the sources of copied letters at position `at`."""
        for said, start in (self.said, self.task):
            k = said.find(text.encode())
            if k >= 0:
                self.sources += [(at + j - 1, TASK, start + k + j) for j in range(len(text))]
                break
        self.sources += [(at + j - 1, PAGE, self.token_at(*p)) for j, p in enumerate(places) if p]


class Conversations:
    """Draws sequences. A subclass gives the screens: any() and screen(key), see batches.Screens."""

    def __init__(self, heldout):
        self.heldout = heldout

    def seed(self, seed):
        self.random = random.Random(seed)
        self.lex = Lexicon(self.random, self.heldout)

    def step(self, s, screen, history, said, pieces, name, still=None):
        """Adds a step of a task: the task, the earlier steps, the next one. still: which steps changed
        nothing.
        """
        before = said + "\n"
        still = still or [not self.heldout and self.random.random() < NO_EFFECT for _ in history]
        for done, same in list(zip(history, still))[-HISTORY:]:
            s.user(before + "-")
            s.earlier(done)
            before = "no change\n" if same else ""  # as in prompts/pocket-wide.json
        s.user(before + "<image>", screen)
        s.answer(pieces, name)

    def draw(self):
        """Returns (key of a screen, sequence)."""
        while True:
            key, grid, letters, about = self.screen(self.any())
            if about.get("page") == "kiosk-text" and self.random.random() > ASKED:
                continue
            screen, s = questions.Screen(letters, about["items"], about.get("names", [])), Sequence(grid)
            if self.random.random() < ALONE:
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
            self.more(s, screen, "turns" in about)
            if s.first is not None and ("turns" in about or len(s.ids) <= LIMIT + 150):
                return key, s

    def say(self, s, screen, question, pieces, name=""):
        """Adds a question and its answer, with the picture if the sequence has none yet."""
        s.user(question if s.first is not None or "<image>" in question else f"{question}\n<image>", screen)
        s.answer(pieces, name)

    def alone(self, s, screen):
        found = screen.asked(self.random, self.lex)
        if found:
            answer = questions.text_of(found[1])
            self.say(s, screen, *found, f"asked {answer if answer in ('yes', 'no') else 'text'}")

    def kiosk(self, s, screen, turns):
        """Adds the kiosk's own conversation up to its task, and a few of its questions."""
        asked = next((k + 1 for k, t in enumerate(turns) if t["loss"]), 0)
        keep = sorted(self.random.sample(range(asked, len(turns)), min(AFTER_TASK, len(turns) - asked)))
        for t in turns[:asked] + [turns[k] for k in keep]:
            said, pieces = questions.kiosk(t, screen)
            if t["loss"]:
                self.say(s, screen, said, pieces)
            else:
                s.user(said)
                s.earlier(questions.text_of(pieces))

    def composed(self, s, screen):
        """Adds a step of a task about a static screen. When the task is complete its window may be closed, so
        half of these steps show another screen; returns its key then.
        """
        found = multi_step_tasks.task(screen, self.random, self.lex)
        if not found:
            return None
        said, history, pieces = found
        end = pieces == multi_step_tasks.END and self.random.random() < 0.5
        other = self.screen(self.any())[:2] if end else None
        if other:
            s.grid, screen = other[1], None
        self.step(s, screen, history, said, pieces, "task")
        return other[0] if other else None

    def more(self, s, screen, kiosk):
        """Adds questions about the same picture."""
        if kiosk:
            turns = filter(None, [screen.there(self.random, self.lex) for _ in range(2)])
        else:
            turns = screen.turns(self.random, self.lex, TURNS if s.first is None else AFTER_TASK)
        for said, pieces in turns:
            if len(s.ids) > LIMIT:
                break
            self.say(s, screen, said, pieces)


def whole_answers(s, guess):
    """Counts by name the answers of a sequence that greedy decoding would generate without an error.

    guess[i] is the most probable token after id i. A place is right if it lies on its element.
    """
    out = collections.Counter()
    for name, begun, end, sizes in s.spans:
        right, k, at = True, begun, 0
        while k < end and right:
            if s.ids[k] in COARSE and k + 3 < end and s.ids[k + 1] in FINE:
                want, got = (
                    dialect.point(tokenizer.decode(x)) for x in (s.ids[k : k + 4], guess[k - 1 : k + 3])
                )
                w, h = sizes[at]
                right = got is not None and abs(got[0] - want[0]) <= max(6, w / 2)
                right = right and abs(got[1] - want[1]) <= max(6, h / 2)
                k, at = k + 4, at + 1
            else:
                right, k = guess[k - 1] == s.ids[k], k + 1
        for key in (name, "all"):
            out.update({f"{key} n": 1, f"{key} right": int(right)})
    return out
