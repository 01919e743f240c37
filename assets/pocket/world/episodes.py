"""Episodes of MiniWoB++ played by the oracles: to prove them, and to write training records.

    episodes.py prove   [--pages A,B] [--first 900000] [--seeds 20] [--hands devtools|x] [--load] [--out FILE]
    episodes.py records --out DIR [--pages A,B] [--first 0] [--seeds 100] [--hands devtools|x]
                        [--stray .1] [--missing .05]
    episodes.py shards  RECORDS... --out DIR
    episodes.py table   DEVTOOLS.jsonl X.jsonl

Design.  An episode is played as a model would play it: wait until the page has settled, look, ask for the
next action, do it, look again.  Seeds below 900,000 are for training and those below 1,000,000 for gates;
from there on they are for evaluation, and this program refuses them.  What is full and what is partial
reward the page says in its title (tests/suites/miniwob/episode.js); partial reward counts as a failure here.

`prove` writes a JSON line an episode: page, seed, hands, reward, full, partial, steps, actions, seconds,
said, and why it stopped: "over", "steps" (more than the register says), "stuck", "missing" or "error".
`table` shows such files side by side; of a page and seed that were played twice the later line counts.

Records.  DIR/records.jsonl has a JSON line for each state, DIR/pictures/PAGE-SEED-STEP.png its picture (8 bit
RGB).  All places and boxes are CSS pixels of the page; times `scale` they are pixels of the picture.  Keys:

    page, seed, step        which state; `step` counts the actions before it
    picture, width, height  its file and size in pixels
    scale                   picture pixels for a CSS pixel
    said                    the page's own sentence; paraphrase.py says it in other words.  Of this episode,
                            or, where the action is "missing", of another seed of the page
    history                 the earlier actions, oldest first, each as `action`
    still                   (in shards) of each of them, whether it changed nothing in the picture
    action                  the oracle's next action: verb, x, y, box [x, y, w, h], label, kind, and as the
                            verb needs text, keys, direction, amount, hold, seconds, to {x, y, box, label,
                            kind}; oracles/core.js says what the verbs are
    stray                   the action before it was one that no oracle would have chosen
    outcome                 of the episode: "full", "partial", "failed"; or "missing"
    labels                  letters and elements in pixels of the picture, as labels.js tells them

The last record of an episode has the verb "done" and shows the page after its end.  With --stray P something
else is done instead of an action with probability P (a click beside it, half of a text, the wheel the other
way), never twice in a row; the oracle labels the state that this led to.  A failed episode is kept only if
there was such a step in it: its labels are right all the same.  With --missing P pages are asked, with that
probability, for what another seed of theirs asks for, and kept where it is not there.  A run that was stopped
goes on behind the last episode that it kept.

`shards` makes shards of store.py of folders of records, most pictures without a part of the plain right side: it costs
tokens and tells nothing.

Pages with a native popup (`popup` in the register) are played with the hands on an X server only, as no
other picture shows it.
"""

import argparse
import json
import os
import pathlib
import random
import statistics
import sys
import time

from browser import HTML, SCALE, SEALED, VIEW, Browser, Display
from hands import DevToolsHands, XHands

PAUSE = pathlib.Path(os.environ.get("WORLD_PAUSE", "/nonexistent"))  # while this file exists, nothing is done
NARROW = 384  # pixels: a page and a little of what is beside it
PATIENCE = 8.0  # seconds until a page must have settled


class World:
    """A browser with hands; `settle` says how long a page needs after an action before it can be asked."""

    def __init__(self, kind, html=HTML, view=VIEW, scale=SCALE):
        self.kind, self.page = kind, None
        if kind == "x":
            self.display = Display(round(view[0] * scale), round(view[1] * scale))
            self.browser = Browser(self.display.name, html, view, scale)
            self.hands = XHands(self.display.name, scale)
        else:
            self.display = None
            self.browser = Browser(None, html, view, scale)
            self.hands = DevToolsHands(self.browser)

    def begin(self, page, seed, load):
        if seed >= SEALED:
            raise SystemExit(f"seed {seed} is sealed: from {SEALED} on they are for evaluation")
        if load or page != self.page:
            said = self.browser.load(page, seed)
            self.about = self.browser.script(
                f"(({{steps, settle}}) => ({{steps, settle}}))(oracles.pages['{page}'])"
            )
            self.page = page
        else:
            said = self.browser.begin(seed)
        self.hands.move(250, 205)  # beside the page: nothing there reacts to the pointer
        return said

    def settled(self):
        time.sleep(self.about.get("settle") or (0.15 if self.kind == "x" else 0.02))

    def advice(self, said, history):
        """The next action once nothing moves any more.  Longer waits are actions of their own."""
        until = time.time() + PATIENCE
        while True:
            a = self.browser.advise(said, history)
            if a["verb"] != "wait" or a["seconds"] > 0.2:
                return a
            if time.time() > until:
                return {"verb": "stuck", "label": "the page does not settle"}
            time.sleep(a["seconds"])

    def close(self):
        self.browser.close()
        if self.display:
            self.display.close()


def pages_of(world_args, wanted):
    files = sorted(p.stem for p in (pathlib.Path(world_args.html) / "miniwob").glob("*.html"))
    return [p for p in files if p in wanted] if wanted else files


def pause():
    while PAUSE.exists():
        time.sleep(5)


def play(world, page, seed, load, look=None, stray=None):
    """One episode.  `look(step, said, history, action, strayed)` sees each state; `stray(action, history)`
    may give another action in place of the oracle's."""
    start, history, why, strayed, taken = time.time(), [], "steps", False, 0
    said = world.begin(page, seed, load)
    limit = world.about["steps"] + 2 * bool(stray) * world.about["steps"] + 6 * bool(stray)
    world.settled()
    while True:
        action = world.advice(said, history)
        if action["verb"] in ("stuck", "missing"):
            why = action["verb"]
            break
        other = stray(action, history) if stray and action["verb"] != "done" and not strayed else None
        if look:
            look(len(history), said, history, action, strayed)
        if action["verb"] == "done":
            why = "over"
            break
        if taken >= limit:
            break
        strayed = bool(other)
        world.hands.do(other or action)
        history.append(other or action)
        taken += 1
        world.settled()
    verdict = world.browser.verdict()
    outcome = verdict.get("outcome") if verdict["over"] else None
    return {
        "page": page,
        "seed": seed,
        "hands": world.kind,
        "reward": verdict["reward"] if verdict["over"] else 0,
        "full": outcome == "full",
        "partial": outcome == "partial",
        "steps": taken,
        "why": why,
        "seconds": round(time.time() - start, 3),
        "said": said,
        "actions": history,
        "label": action.get("label", ""),
    }


def prove(a):
    if a.out:
        pathlib.Path(a.out).parent.mkdir(parents=True, exist_ok=True)
    out = open(a.out, "a" if a.more else "w") if a.out else None
    world, failed = World(a.hands, a.html, scale=a.scale), 0
    known = playable(world)
    try:
        for page in pages_of(a, a.pages):
            if page not in known:
                print(f"{page:30} no oracle, or only on an X server", flush=True)
                continue
            results = []
            for seed in range(a.first, a.first + a.seeds):
                pause()
                try:
                    r = play(world, page, seed, a.load)
                except (RuntimeError, KeyError, TypeError) as e:
                    r = {
                        "page": page,
                        "seed": seed,
                        "hands": a.hands,
                        "reward": 0,
                        "full": False,
                        "partial": False,
                        "steps": 0,
                        "why": "error",
                        "label": str(e).split("\n")[0],
                        "actions": [],
                        "said": "",
                    }
                    world.page = None
                results.append(r)
                if out:
                    out.write(json.dumps(r) + "\n")
                    out.flush()
                if not r["full"] and (a.verbose or not a.out):
                    tell(r)
            n = sum(r["full"] for r in results)
            failed += n < len(results)
            partial, steps = sum(r["partial"] for r in results), [r["steps"] for r in results]
            print(
                f"{page:30} {n:3} of {len(results)}, partial {partial}, "
                f"steps {statistics.median(steps):g} (at most {max(steps)})",
                flush=True,
            )
    finally:
        world.close()
    return 1 if failed else 0


def playable(world):
    """The pages with an oracle; those with a native popup only where there is a screen."""
    world.browser.load("click-test", 0)
    popups = "true" if world.kind == "x" else "!page.popup"
    return world.browser.script(
        f"Object.entries(oracles.pages).filter(([name, page]) => {popups}).map(([name]) => name)"
    )


def tell(r):
    acts = "; ".join(
        f"{x['verb']} {x.get('label', '')!r} {x.get('text', x.get('keys', ''))}" for x in r["actions"][-8:]
    )
    print(
        f"   {r['page']} {r['seed']}: reward {r['reward']}, {r['why']} {r['label']}\n"
        f"      {r['said']}\n      {acts}",
        flush=True,
    )


# ---- records ----------------------------------------------------------------------------------------


class Strays:
    """Something that nobody asked for, now and then: states that a model may wander into."""

    def __init__(self, rng, share, view):
        self.rng, self.share, self.view = rng, share, view

    def __call__(self, action, history):
        if self.rng.random() >= self.share or action["verb"] in ("key", "wait", "drag"):
            return None
        kind = self.rng.random()
        spot = {"label": "", "kind": "point", "box": [0, 0, 0, 0]}
        if action["verb"] == "scroll":
            return {**action, "direction": "up" if action["direction"] == "down" else "down"}
        if kind < 0.5 and action["verb"] in ("write", "append"):
            return {
                **action,
                "text": action["text"][: self.rng.randrange(max(1, len(action["text"])))] or "x",
            }
        if kind < 0.8:
            dx, dy = self.rng.uniform(-30, 30), self.rng.uniform(-25, 25)
            x = min(max(action["x"] + dx, 3), 157)
            return {**spot, "verb": "click", "x": x, "y": min(max(action["y"] + dy, 3), 207)}
        return {**spot, "verb": "hover", "x": self.rng.uniform(3, 157), "y": self.rng.uniform(55, 207)}


class Records:
    """The records of one episode at a time; what failed is dropped."""

    def __init__(self, folder, world):
        self.folder, self.world = pathlib.Path(folder), world
        (self.folder / "pictures").mkdir(parents=True, exist_ok=True)
        self.file = open(self.folder / "records.jsonl", "a")
        self.now = []

    def picture(self):
        if self.world.kind != "x":
            return self.world.browser.picture()
        return screen_picture(self.world.display.name)

    def look(self, page, seed):
        def look(step, said, history, action, strayed):
            short = [{k: v for k, v in h.items()} for h in history]
            self.now.append(
                (
                    {
                        "page": page,
                        "seed": seed,
                        "step": step,
                        "said": said,
                        "history": short,
                        "action": action,
                        "stray": strayed,
                        "labels": self.world.browser.labels(),
                    },
                    self.picture(),
                )
            )

        self.now = []
        return look

    def strayed(self):
        return any(record["stray"] for record, _ in self.now)

    def keep(self, outcome):
        view, scale = self.world.browser.view, self.world.browser.scale
        for record, png in self.now:
            name = (
                f"pictures/{record['page']}-{record['seed']}-{record['step']}"
                f"{'-missing' if record['action']['verb'] == 'missing' else ''}.png"
            )
            (self.folder / name).write_bytes(png)
            self.file.write(
                json.dumps(
                    {
                        **record,
                        "picture": name,
                        "width": round(view[0] * scale),
                        "height": round(view[1] * scale),
                        "scale": scale,
                        "outcome": outcome,
                    }
                )
                + "\n"
            )
        self.file.flush()


def screen_picture(name):
    """A PNG of the whole X screen, native popups included."""
    import io

    from PIL import Image
    from Xlib import X, display as xdisplay

    d = xdisplay.Display(name)
    try:
        root = d.screen().root
        g = root.get_geometry()
        raw = root.get_image(0, 0, g.width, g.height, X.ZPixmap, 0xFFFFFFFF)
        out = io.BytesIO()
        Image.frombytes("RGB", (g.width, g.height), raw.data, "raw", "BGRX").save(
            out, "PNG", compress_level=3
        )
        return out.getvalue()
    finally:
        d.close()


def absent(world, records, page, seed, load, said):
    """A page with the sentence of another seed: if the oracle says so, a record of what is not there."""
    world.begin(page, seed, load)
    world.settled()
    action = world.advice(said, [])
    if action["verb"] == "missing":
        records.look(page, seed)(0, said, [], action, False)
        records.keep("missing")


def recorded(folder):
    """(pages that are done, page, seed) of a run that was stopped: the last page may go on behind that seed."""
    path = pathlib.Path(folder) / "records.jsonl"
    if not path.exists():
        return [], None, -1
    text = path.read_bytes()
    whole = text[: text.rfind(b"\n") + 1]  # a line may have been cut
    if len(whole) < len(text):
        path.write_bytes(whole)
    order = [(r["page"], r["seed"]) for r in map(json.loads, whole.splitlines())]
    pages = list(dict.fromkeys(page for page, _ in order))
    return (pages[:-1], *order[-1]) if order else ([], None, -1)


def record(a):
    done, last, at = recorded(a.out)
    world = World(a.hands, a.html, scale=a.scale)
    records, rng = Records(a.out, world), random.Random(f"records/{a.first}")
    can = playable(world)
    known = [p for p in pages_of(a, a.pages) if p in can]
    tally = {}
    try:
        for page in known:
            if page in done:
                continue
            before = None
            for seed in range(max(a.first, at + 1) if page == last else a.first, a.first + a.seeds):
                pause()
                strays = Strays(rng, a.stray, world.browser.view) if a.stray else None
                try:
                    r = play(world, page, seed, a.load, records.look(page, seed), strays)
                    outcome = "full" if r["full"] else "partial" if r["partial"] else "failed"
                    if outcome != "failed" or records.strayed():
                        records.keep(outcome)
                    if before and rng.random() < a.missing:
                        absent(world, records, page, seed, a.load, before)
                    before = r["said"]
                except (RuntimeError, KeyError, TypeError) as e:
                    outcome, world.page = "error", None
                    print(f"{page} {seed}: {str(e).splitlines()[0]}", file=sys.stderr, flush=True)
                tally[outcome] = tally.get(outcome, 0) + 1
            print(page, tally, flush=True)
    finally:
        world.close()
    return 0


def narrow(picture, rng):
    """384 pixels of 640, mostly, where the rest is plain."""
    plain = picture.shape[1] > NARROW and bool((picture[:, NARROW:] == picture[:1, -1:]).all())
    return picture[:, :NARROW].copy() if plain and rng.random() < 0.6 else picture


def shards(a):
    import itertools

    import numpy as np
    from PIL import Image

    import check
    import store

    for folder in map(pathlib.Path, a.folders):
        before = None  # (page and seed, step, picture, which steps changed nothing)
        lines = filter(lambda l: l.endswith("\n"), open(folder / "records.jsonl"))
        for k, block in enumerate(iter(lambda: list(itertools.islice(lines, 512)), [])):
            name, rng, lost = f"played-{folder.name}-{k:03}", random.Random(f"{folder.name}/{k}"), 0
            if (pathlib.Path(a.out) / f"{name}.npz").exists():
                continue
            writer = store.Writer(a.out, name)
            for r in map(json.loads, block):
                whole = np.asarray(Image.open(folder / r.pop("picture")).convert("RGB"))
                before = before if before and before[0] == (r["page"], r["seed"]) and before[1] == r["step"] - 1 else None
                still = before[3] + [bool((before[2] == whole).all())] if before else []
                before = (r["page"], r["seed"]), r["step"], whole, still
                if len(still) == len(r["history"]):
                    r["still"] = still
                picture = narrow(whole, rng)
                found = r.pop("labels")
                keep = check.inked(picture, found["letters"])
                if len(keep) and (~keep).mean() > check.LOST:
                    lost += 1
                else:
                    writer.add(picture, found, keep, r | {"family": "Liberation Sans", "real": True})
            writer.close()
            print(f"{name}: {len(writer.place)} states, {lost} without ink", flush=True)
    return 0


# ---- table ------------------------------------------------------------------------------------------


def table(a):
    runs = [
        list({(r["page"], r["seed"]): r for r in map(json.loads, open(name))}.values()) for name in a.files
    ]
    pages = sorted({r["page"] for run in runs for r in run})
    print("| page | seeds | DevTools | X events | partial | steps, median | at most |\n" + "|---" * 7 + "|")
    for page in pages:
        rows = [[r for r in run if r["page"] == page] for run in runs]
        cells = [f"{sum(r['full'] for r in row)} of {len(row)}" if row else "-" for row in rows] + ["-"] * (
            2 - len(rows)
        )
        last = next(row for row in reversed(rows) if row)
        steps = [r["steps"] for r in last if r["full"]] or [0]
        print(
            f"| {page} | {last[0]['seed']}-{last[-1]['seed']} | {cells[0]} | {cells[1]} | "
            f"{sum(r['partial'] for r in last)} | {statistics.median(steps):g} | {max(steps)} |"
        )
    for name, run in zip(a.files, runs):
        shares = {p: [r["full"] for r in run if r["page"] == p] for p in {r["page"] for r in run}}
        good = sum(sum(v) >= 0.99 * len(v) for v in shares.values())
        print(
            f"\n{name}: {len(shares)} pages, {good} of them with full reward in at least 99 %; "
            f"{sum(map(sum, shares.values()))} of {sum(map(len, shares.values()))} episodes"
        )
    return 0


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    sub = p.add_subparsers(dest="what", required=True)
    for name, run, first, seeds in (("prove", prove, 900_000, 20), ("records", record, 0, 100)):
        q = sub.add_parser(name)
        q.set_defaults(run=run)
        q.add_argument("--pages", type=lambda v: v.split(","), default=[])
        q.add_argument("--first", type=int, default=first, help="the first seed")
        q.add_argument("--seeds", type=int, default=seeds, help="how many for each page")
        q.add_argument("--hands", choices=("devtools", "x"), default="devtools")
        q.add_argument("--load", action="store_true", help="load the page for every episode")
        q.add_argument("--html", default=HTML, help="the folder that miniwob.sh made")
        q.add_argument("--scale", type=float, default=SCALE)
        q.add_argument("--out", required=name == "records")
        q.add_argument("--verbose", action="store_true")
        q.add_argument("--more", action="store_true", help="add to --out instead of beginning it anew")
        if name == "records":
            q.add_argument("--stray", type=float, default=0.1)
            q.add_argument("--missing", type=float, default=0.05)
    q = sub.add_parser("shards")
    q.set_defaults(run=shards)
    q.add_argument("folders", nargs="+")
    q.add_argument("--out", required=True)
    q = sub.add_parser("table")
    q.set_defaults(run=table)
    q.add_argument("files", nargs="+")
    a = p.parse_args()
    sys.exit(a.run(a))


if __name__ == "__main__":
    main()
