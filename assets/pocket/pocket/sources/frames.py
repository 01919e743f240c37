"""Plays episodes of MiniWoB++ sixteen at a time, as labelled states for training.

    python -m pocket frames --out DIR --pages A,B [--shards 8]

A real browser takes a quarter of a second per state (episodes.py). Here sixteen pages share the frames of
one window, actions are script events (input_events.js), and one screenshot captures all of them: 20 to 47
states per second on two cores. A page on which script events differ from real ones reaches states that a
user would not reach; the oracle's label of such a state is still right. Only episodes that repeat an action
are dropped. Held-out sets come from real browsers. Each screen's `about` has the keys of episodes.py up to
`action`. Pictures are 384x480, the page and a margin, or 640x480, the screen of the suite.
"""

import json
import os
import pathlib
import random
import sys
import time

import websocket

from . import HERE, ink, pause, store
from .browser import NEW_EPISODE_SEEDS, SCALE, Sheet, label_script, oracle_script, page_url
from .episodes import Strays

SIZES = [((384, 480), 5), ((640, 480), 1)]  # pixels, weight
ROUNDS = 14  # actions before other pages are loaded
DONE = 0.4  # fraction of final states that are kept: they look alike
STILL = 3  # an episode ends when an action occurs this often in sequence
# Errors of a browser or toolkit that crashes or hangs
CRASHES = (RuntimeError, OSError, KeyError, ValueError, websocket.WebSocketException)
WAITS, LONGEST = 12, 24  # waits and actions of an episode, at most
STATES = 512  # of a shard
STRAY, MISSING = 0.12, 0.05  # probabilities of a wrong action / of the task of another seed

SCRIPT = """
function load(urls) {
  urls.forEach((u, k) => {
    frames[k].contentWindow.beginEpisode = undefined;    // the old page stays for a moment
    frames[k].src = u;
  });
}
const loaded = () => frames.every(f => f.contentDocument && f.contentDocument.readyState === "complete" &&
                                  f.contentWindow.beginEpisode && f.contentWindow.inputEvents &&
                                  f.contentDocument.title.startsWith("MINIWOB"));
const sleep = ms => new Promise(done => setTimeout(done, ms));

/* Begins an episode {seed} or executes {action} in each frame, then asks for the next action. */
async function round(told) {
  const out = told.map((t, k) => {
    const w = frames[k].contentWindow;
    try {
      if (t.seed !== undefined) w.beginEpisode(t.seed);
      else if (t.action) w.inputEvents(t.action);
      return {};
    } catch (e) { return {error: String(e)}; }
  });
  await sleep(50);
  await settle();
  told.forEach((t, k) => {
    const w = frames[k].contentWindow, o = out[k];
    if (o.error) return;
    try {
      o.asked = w.document.title.replace(/^MINIWOB \\S+ reward=\\S+ done=\\d( outcome=\\w+)? utterance=/, "");
      o.action = w.oracles.advise(t.said || o.asked, t.history || []);
      if (o.action.verb !== "wait" && o.action.verb !== "stuck") Object.assign(o, w.worldLabels(w));
    } catch (e) { o.error = String(e); }
  });
  return JSON.stringify(out);
}
"""


class Episode:
    """State of one page in one frame."""

    def __init__(self, seed, said=""):
        self.seed, self.said, self.history, self.strayed, self.waited = seed, said, [], False, 0
        self.seen, self.still = None, []  # previous picture; for each action, whether it changed nothing
        self.other = bool(said)  # the task is that of another seed


class Frames:
    """Sixteen episodes in the frames of one sheet."""

    def __init__(self, a, rng):
        self.a, self.rng, self.sheet = a, rng, Sheet(4, 4, SCALE)
        self.sheet.call("Page.enable")
        for source in (oracle_script(), label_script(), (HERE / "input_events.js").read_text()):
            self.sheet.call("Page.addScriptToEvaluateOnNewDocument", source=source)
        self.sheet.call("Emulation.setFocusEmulationEnabled", enabled=True)
        self.sheet.script(SCRIPT)
        self.left, self.queue, self.strays, self.dropped = 0, [], Strays(rng, STRAY), 0

    def load(self):
        """Loads other pages into all frames and chooses the size of the pictures."""
        n = self.sheet.across * self.sheet.down
        while len(self.queue) < n:
            more = list(self.a.pages)
            self.rng.shuffle(more)
            self.queue += more
        self.now, self.queue = self.queue[:n], self.queue[n:]
        (w, h), _ = self.rng.choices(SIZES, [s for _, s in SIZES])[0]
        self.sheet.lay(w, h, SCALE)
        self.sheet.script(f"load({[page_url(p, 0) for p in self.now]!r})")
        self.sheet.until("loaded()")
        self.left, self.episodes = ROUNDS, [self.begin(None) for _ in self.now]

    def begin(self, before):
        """Returns a new episode; with probability MISSING its task is that of the one before."""
        said = before.said if before and not before.other and self.rng.random() < MISSING else ""
        return Episode(self.rng.randrange(NEW_EPISODE_SEEDS), said)

    def told(self, e):
        out = {"said": e.said, "history": e.history}
        if e.seed is not None:
            out["seed"] = e.seed
        elif e.due:
            out["action"] = e.due
        return out

    def look(self):
        """Executes one action in every frame; returns [(picture, labels, about)] of the new states."""
        if not self.left:
            self.load()
        self.left -= 1
        got = self.sheet.ask(f"round({json.dumps([self.told(e) for e in self.episodes])})")
        out = []
        for k, (o, tile) in enumerate(zip(got, self.sheet.tiles())):
            e = self.episodes[k]
            e.begun, e.seed, e.due = (e.seed if e.seed is not None else e.begun), None, None
            about = self.due(e, o, self.now[k], tile)
            if about:
                out.append((tile, o, about))
            if e.over:
                self.episodes[k] = self.begin(e)
        return out

    def due(self, e, o, page, picture):
        """Chooses the episode's next action; returns the `about` of this state, or None if it is not kept."""
        e.over = "error" in o or o["action"]["verb"] == "stuck"
        if not e.over and o["action"]["verb"] == "wait":
            e.waited += 1
            e.over = e.waited > WAITS
            return None
        if e.over or (e.other and o["action"]["verb"] != "missing"):
            self.dropped += not e.other
            e.over = True
            return None
        action, e.said = o["action"], e.said or o["asked"]
        if e.seen is not None:
            e.still.append(bool((e.seen == picture).all()))
        e.seen = picture
        alike = [h for h in e.history[-STILL:] if h == action]
        e.over = action["verb"] in ("done", "missing") or len(alike) == STILL or len(e.history) > LONGEST
        if len(alike) == STILL:
            self.dropped += 1
            return None
        about = dict(page=page, seed=e.begun, step=len(e.history), said=e.said, history=list(e.history))
        about |= dict(still=list(e.still), action=action, scale=SCALE)
        e.due = action if e.over else self.choose(e, about, picture)
        e.strayed = e.due is not action
        e.history.append(e.due)
        if action["verb"] == "done" and self.rng.random() > DONE:
            return None
        return about

    def choose(self, e, about, picture):
        """Returns the action to execute: the oracle's, or with probability STRAY a wrong one."""
        right = about["action"]
        return (None if e.strayed else self.strays(right)) or right


def shard(a, k, kind=Frames, source="played"):
    """Writes shard k, unless it exists."""
    seed, name = f"frames/{k}" if source == "played" else f"{source}/{k}", f"{source}-{k:05}"
    if (pathlib.Path(a.out) / f"{name}.npz").exists():
        return
    start, frames = time.time(), kind(a, random.Random(seed))
    writer, bad = store.Writer(a.out, name), 0
    try:
        while len(writer.place) < STATES:
            pause()
            for state in frames.look():
                bad += not ink.put(writer, *state)
    finally:
        frames.sheet.close()
    writer.close()
    taken = f"{time.time() - start:.0f} s, {frames.dropped} episodes dropped, {bad} screens without ink"
    print(f"{name}: {len(writer.place)} states, {taken}", flush=True)


def retried(shards, write):
    """Calls write(k) for each k below `shards`; exits with 1 if one fails three times, as browsers crash."""
    os.nice(19 - os.nice(0))
    for k in range(shards):
        for _ in range(3):
            try:
                write(k)
                break
            except CRASHES as e:
                print(f"shard {k}: {e!r}", file=sys.stderr, flush=True)
                time.sleep(3)
        else:
            sys.exit(1)


def options(p):
    p.add_argument("--out", required=True, help="directory of the shards")
    p.add_argument("--pages", type=lambda v: v.split(","), required=True)
    p.add_argument("--shards", type=int, default=8)


def run(a):
    retried(a.shards, lambda k: shard(a, k))
