"""Episodes of MiniWoB++ played sixteen at a time, as labelled screens for training.

    python frames.py --out DIR [--pages A,B] [--states 512] [--shards 8] [--first 0] [--stray .12] [--missing .05]

Design.  A real browser window with real hands takes a quarter of a second for each state (episodes.py).  Here sixteen
pages stand in the frames of one window, hands are scripts (hands.js), and one photograph takes all of them.  What a
script cannot do leaves the page in a state that a person would not have left it in; the oracle's label of that state is
right all the same, so the only thing that is dropped is an episode that stands still.  Figures are never taken from
here: gates are measured on records of real browsers.

A shard is one of store.py.  The note of each screen is a record as episodes.py writes it: page, seed, step, said,
history, action, scale, stray; and done and missing are among the actions.  Pictures are 384 x 480, the page and a
little of what is beside it, or 640 x 480, the screen of the suite.
"""

import argparse
import json
import os
import pathlib
import random
import sys
import time

import check
import headless
import store
from browser import HTML, label_script, oracle_script
from episodes import Strays

TRAIN = 900_000  # seeds from here on are not for training
SCALE = 640 / 280
SIZES = [((384, 480), 5), ((640, 480), 1)]
ROUNDS = 14  # looks at the same sixteen pages before others come
DONE = 0.4  # how many ends of episodes are kept: they look alike
STILL = 3  # the same action so often in a row: nothing comes of it

SCRIPT = """
function load(urls) {
  urls.forEach((u, k) => {
    frames[k].contentWindow.beginEpisode = undefined;    // the old page is still there for a moment
    frames[k].src = u;
  });
}
const loaded = () => frames.every(f => f.contentDocument && f.contentDocument.readyState === "complete" &&
                                  f.contentWindow.beginEpisode && f.contentWindow.hands &&
                                  f.contentDocument.title.startsWith("MINIWOB"));
const sleep = ms => new Promise(done => setTimeout(done, ms));

/* What each frame is told: {seed}, {action} or nothing; then {said, history}, for which advice is given. */
async function round(told) {
  const out = told.map((t, k) => {
    const w = frames[k].contentWindow;
    try {
      if (t.seed !== undefined) w.beginEpisode(t.seed);
      else if (t.action) w.hands(t.action);
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
    """One page in one frame: the seed, what was asked, what was done."""

    def __init__(self, seed, said=""):
        self.seed, self.said, self.history, self.strayed, self.waited = seed, said, [], False, 0
        self.seen, self.still = None, []  # the picture before; of each step, whether it changed nothing
        self.other = bool(said)  # asked for what another seed asks for


class Frames:
    def __init__(self, a, rng):
        self.a, self.rng, self.sheet = a, rng, headless.Sheet(4, 4, SCALE)
        self.sheet.call("Page.enable")
        for source in (oracle_script(), label_script(), (headless.HERE / "hands.js").read_text()):
            self.sheet.call("Page.addScriptToEvaluateOnNewDocument", source=source)
        self.sheet.call("Emulation.setFocusEmulationEnabled", enabled=True)
        self.sheet.script(SCRIPT)
        self.left, self.queue, self.strays = 0, [], Strays(rng, a.stray, (SIZES[0][0][0] / SCALE, 210))
        self.dropped = 0

    def load(self):
        n = self.sheet.across * self.sheet.down
        while len(self.queue) < n:
            more = list(self.a.pages)
            self.rng.shuffle(more)
            self.queue += more
        self.now, self.queue = self.queue[:n], self.queue[n:]
        (w, h), _ = self.rng.choices(SIZES, [s for _, s in SIZES])[0]
        self.sheet.lay(w, h, SCALE)
        folder = pathlib.Path(self.a.html).resolve() / "miniwob"
        self.sheet.script(f"load({[f'{(folder / p).as_uri()}.html?seed=0' for p in self.now]!r})")
        self.sheet.until("loaded()")
        self.left, self.episodes = ROUNDS, [self.begin(None) for _ in self.now]

    def begin(self, before):
        said = before.said if before and not before.other and self.rng.random() < self.a.missing else ""
        return Episode(self.rng.randrange(TRAIN), said)

    def told(self, e):
        out = {"said": e.said, "history": e.history}
        if e.seed is not None:
            out["seed"] = e.seed
        elif e.due:
            out["action"] = e.due
        return out

    def look(self):
        """One round: [(picture, labels, note)] of the frames in which something is due."""
        if not self.left:
            self.load()
        self.left -= 1
        got = self.sheet.ask(f"round({json.dumps([self.told(e) for e in self.episodes])})")
        out = []
        for k, (o, tile) in enumerate(zip(got, self.sheet.tiles())):
            e = self.episodes[k]
            e.begun, e.seed, e.due = (e.seed if e.seed is not None else e.begun), None, None
            note = self.due(e, o, self.now[k], tile)
            if note:
                out.append((tile, o, note))
            if e.over:
                self.episodes[k] = self.begin(e)
        return out

    def due(self, e, o, page, picture):
        """The note of this state, if there is one; what the frame is told next."""
        e.over = "error" in o or o["action"]["verb"] == "stuck"
        if not e.over and o["action"]["verb"] == "wait":
            e.waited += 1
            e.over = e.waited > 12
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
        e.over = action["verb"] in ("done", "missing") or len(alike) == STILL or len(e.history) > 24
        if len(alike) == STILL:
            self.dropped += 1
            return None
        note = dict(page=page, seed=e.begun, step=len(e.history), said=e.said, history=list(e.history),
                    still=list(e.still), action=action, stray=e.strayed, scale=SCALE, family="Liberation Sans")
        e.due = action if e.over else self.choose(e, note, picture)
        e.strayed = e.due is not action
        e.history.append(e.due)
        if action["verb"] == "done" and self.rng.random() > DONE:
            return None
        return note

    def choose(self, e, note, picture):
        """What is done in this state: what is right, or now and then something that nobody asked for."""
        right = note["action"]
        return (None if e.strayed else self.strays(right, e.history)) or right


def shard(a, k, kind=Frames, name="played"):
    seed, name = f"frames/{k}" if name == "played" else f"{name}/{k}", f"{name}-{k:05}"
    if (pathlib.Path(a.out) / f"{name}.npz").exists():
        return
    start, frames = time.time(), kind(a, random.Random(seed))
    writer, bad = store.Writer(a.out, name), 0
    try:
        while len(writer.place) < a.states:
            headless.pause()
            for picture, found, note in frames.look():
                keep = check.inked(picture, found["letters"])
                if len(keep) and (~keep).mean() > check.LOST:
                    bad += 1
                else:
                    writer.add(picture, found, keep, note)
    finally:
        frames.sheet.close()
    writer.close()
    print(f"{name}: {len(writer.place)} states, {time.time() - start:.0f} s, {frames.dropped} episodes dropped, "
          f"{bad} screens without ink", flush=True)


def shards(a, kind=Frames, name="played"):
    """All shards of `a`, each in a browser of its own; one that fails is tried three times."""
    os.nice(19 - os.nice(0))
    for k in range(a.first, a.first + a.shards):
        for attempt in range(3):
            try:
                shard(a, k, kind, name)
                break
            except (RuntimeError, OSError, KeyError) as e:  # the browser crashed or hangs
                print(f"shard {k}: {e!r}", file=sys.stderr, flush=True)
                time.sleep(3)
        else:
            sys.exit(1)


def options(p):
    p.add_argument("--out", required=True)
    p.add_argument("--pages", type=lambda v: v.split(","), required=True)
    p.add_argument("--states", type=int, default=512, help="of a shard")
    p.add_argument("--shards", type=int, default=8)
    p.add_argument("--first", type=int, default=0)
    p.add_argument("--stray", type=float, default=0.12)
    p.add_argument("--missing", type=float, default=0.05)
    p.add_argument("--html", default=HTML, help="the folder that miniwob.sh made")


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options(p)
    shards(p.parse_args())


if __name__ == "__main__":
    main()
