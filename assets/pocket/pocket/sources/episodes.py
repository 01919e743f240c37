"""Records episodes of MiniWoB++ that oracles play in a real browser, as shards of labelled states.

    python -m pocket episodes --out DIR --pages A,B [--first 0] [--seeds 100] [--missing .05]

An episode is played as a model would play it: wait until the page has settled, take a screenshot, ask the
oracle for the next action, execute it. Every state becomes a screen of a shard, one shard per page
(store.py). Its `about` has these keys; coordinates are CSS pixels of the page, and times `scale` pixels of
the picture:

    page, seed, step   the state; `step` counts the actions before it
    said               task sentence of this episode, or of another seed if the action is "missing"
    history            earlier actions, oldest first, each in the form of `action`
    still              for each of them, whether it changed nothing in the picture
    action             the oracle's next action: verb, x, y, box [x, y, w, h], label, kind, and by verb
                       text, keys, direction, amount, hold, seconds, to {x, y, box, label, kind}
    stray              whether the action before was deliberately wrong
    outcome            of the episode: "full", "partial", "failed", or "missing"
    real               true: a real browser, not a frame of a sheet (frames.py)

The last state of an episode has the verb "done". With probability STRAY another action than the oracle's
is executed, never twice in a row, and the oracle labels the state that follows. A failed episode is kept
only if it contains such an action. With probability `missing` a page is paired with the task of another
seed and kept if the oracle finds that its target is absent. Seeds from SEALED on are refused.
"""

import io
import pathlib
import random
import sys
import time

import numpy as np
from PIL import Image

from . import ink, pause, store
from .browser import SCALE, SEALED, Page
from .input_events import InputEvents

NARROW = 384  # width in pixels of a page and a margin beside it
STRAY = 0.1  # probability of a wrong action
PATIENCE = 8.0  # seconds after which a page that has not settled is given up
EXPECTED = (RuntimeError, KeyError, TypeError)  # errors of a page or of its oracle end one episode


class World:
    """A page with its input events."""

    def __init__(self):
        self.page, self.browser = None, Page()
        self.events = InputEvents(self.browser)
        self.browser.load("click-test", 0)
        self.playable = set(self.browser.script("Object.keys(oracles.pages)"))

    def begin(self, page, seed):
        """Begins an episode and returns its task sentence."""
        if seed >= SEALED:
            raise SystemExit(f"seed {seed} is reserved for evaluation, as all from {SEALED} on")
        if page != self.page:
            said = self.browser.load(page, seed)
            self.about = self.browser.script(
                f"(({{steps, settle}}) => ({{steps, settle}}))(oracles.pages['{page}'])"
            )
            self.page = page
        else:
            said = self.browser.begin(seed)
        self.events.move(250, 205)  # outside the page, where nothing reacts to the pointer
        self.settle()
        return said

    def settle(self):
        time.sleep(self.about.get("settle") or 0.02)

    def advice(self, said, history):
        """Returns the next action once the page has settled; a wait of more than 0.2 s is an action."""
        until = time.time() + PATIENCE
        while True:
            action = self.browser.advise(said, history)
            if action["verb"] != "wait" or action["seconds"] > 0.2:
                return action
            if time.time() > until:
                return {"verb": "stuck", "label": "the page does not settle"}
            time.sleep(action["seconds"])


class Strays:
    """Wrong actions: clicks next to the target, cut texts, scrolling the wrong way."""

    def __init__(self, rng, share):
        self.rng, self.share = rng, share

    def __call__(self, action):
        """Returns a wrong action in place of the right one with probability `share`, else None."""
        if self.rng.random() >= self.share or action["verb"] in ("key", "wait", "drag"):
            return None
        kind = self.rng.random()
        spot = {"label": "", "kind": "point", "box": [0, 0, 0, 0]}
        if action["verb"] == "scroll":
            return {**action, "direction": "up" if action["direction"] == "down" else "down"}
        if kind < 0.5 and action["verb"] in ("write", "append"):
            text = action["text"]
            return {**action, "text": text[: self.rng.randrange(max(1, len(text)))] or "x"}
        if kind < 0.8:
            dx, dy = self.rng.uniform(-30, 30), self.rng.uniform(-25, 25)
            x = min(max(action["x"] + dx, 3), 157)
            return {**spot, "verb": "click", "x": x, "y": min(max(action["y"] + dy, 3), 207)}
        return {**spot, "verb": "hover", "x": self.rng.uniform(3, 157), "y": self.rng.uniform(55, 207)}


class Recorder:
    """Plays episodes and writes their states."""

    def __init__(self, a):
        self.a, self.world = a, World()

    def look(self, page, seed, said, history, action, stray):
        """Appends the current state to the episode's states."""
        picture = np.asarray(Image.open(io.BytesIO(self.world.browser.screenshot())).convert("RGB"))
        still = [bool((before == picture).all()) for _, _, before in self.states[-1:]]
        about = dict(page=page, seed=seed, step=len(history), said=said, history=list(history), action=action)
        about |= dict(still=self.still + still, stray=stray, scale=SCALE, real=True)
        self.still = about["still"]
        self.states.append((about, self.world.browser.script("worldLabels(window)"), picture))

    def play(self, page, seed):
        """Plays one episode; returns (task sentence, outcome)."""
        self.states, self.still, history, stray = [], [], [], False
        said = self.world.begin(page, seed)
        limit, strays = self.world.about["steps"] * 3 + 6, Strays(self.rng, STRAY)
        while True:
            action = self.world.advice(said, history)
            if action["verb"] in ("stuck", "missing"):
                break
            other = strays(action) if action["verb"] != "done" and not stray else None
            self.look(page, seed, said, history, action, stray)
            if action["verb"] == "done" or len(history) >= limit:
                break
            stray = bool(other)
            self.world.events.do(other or action)
            history.append(other or action)
            self.world.settle()
        verdict = self.world.browser.script("oracles.verdict()")
        outcome = verdict.get("outcome") if verdict["over"] else None
        return said, outcome if outcome in ("full", "partial") else "failed"

    def absent(self, page, seed, said):
        """Keeps a state with the task of another seed if the oracle finds its target absent."""
        self.states, self.still = [], []
        self.world.begin(page, seed)
        action = self.world.advice(said, [])
        if action["verb"] == "missing":
            self.look(page, seed, said, [], action, False)
            self.keep("missing")

    def keep(self, outcome):
        """Writes the states of the episode; most pictures are cut to the page where the rest is plain."""
        for about, found, picture in self.states:
            plain = picture.shape[1] > NARROW and bool((picture[:, NARROW:] == picture[:1, -1:]).all())
            if plain and self.rng.random() < 0.6:
                picture = picture[:, :NARROW].copy()
            self.lost += not ink.put(self.writer, picture, found, about | {"outcome": outcome})

    def record(self, page):
        """Writes the shard of one page, unless it exists."""
        name = f"played-{page}-{self.a.first}"
        if (pathlib.Path(self.a.out) / f"{name}.npz").exists():
            return
        self.rng, self.writer, self.lost = random.Random(name), store.Writer(self.a.out, name), 0
        before, outcomes = None, {}
        for seed in range(self.a.first, self.a.first + self.a.seeds):
            pause()
            try:
                said, outcome = self.play(page, seed)
                if outcome != "failed" or any(about["stray"] for about, *_ in self.states):
                    self.keep(outcome)
                if before and self.rng.random() < self.a.missing:
                    self.absent(page, seed, before)
                before = said
            except EXPECTED as e:
                outcome, self.world.page = "error", None
                print(f"{page} {seed}: {str(e).splitlines()[0]}", file=sys.stderr, flush=True)
            outcomes[outcome] = outcomes.get(outcome, 0) + 1
        self.writer.close()
        print(f"{name}: {len(self.writer.place)} states, {self.lost} without ink, {outcomes}", flush=True)


def options(p):
    p.add_argument("--out", required=True, help="directory of the shards")
    p.add_argument("--pages", type=lambda v: v.split(","), required=True)
    p.add_argument("--first", type=int, default=0, help="first seed; held-out sets begin at 900000")
    p.add_argument("--seeds", type=int, default=100, help="episodes of each page")
    p.add_argument("--missing", type=float, default=0.05, help="probability of the task of another seed")


def run(a):
    recorder = Recorder(a)
    try:
        for page in a.pages:
            if page in recorder.world.playable:
                recorder.record(page)
    finally:
        recorder.world.browser.close()
