"""Training screens with their conversations: generate.py --out DIR --shards N --seed S.

Design.  A page is planned (which state of which page, and the turns that make sense on it), drawn
in the mosaic of screens.py, and written with what the browser reports about it.  A planned page is
a pair of the screen to draw and a function from the browser's report to the record's kind and turns,
so that the places in the answers are always those of the document and never a second guess.

The first turn with a loss is a turn as in use: the task, what was done so far without its pictures,
the newest picture, the next step.  Some of these recover: the last step is told to have changed
nothing, the screen shows the state before it, and the answer repeats it.  The turns after it ask
about the same picture afresh: other tasks, where something is, what is written where.  Rows are read
with single blanks between their words.

A shard is DIR/shard-NNNNN.jsonl and DIR/shard-NNNNN.png.bin; the list is renamed into place last.
"""
import argparse
import io
import json
import os
import pathlib
import random
import time

import numpy as np
from PIL import Image

import tasks
import words
from screens import Mosaic

MIX = "flight=30,dialog=45,text=25"
RECOVERY = 0.08
QUESTIONS = 12
TRAIN_SEEDS = (0, 999_999)
EVAL_SEEDS = (2_000_000, 2_999_999)          # pages of the listed episodes start at 1000000


# ---- turns ----------------------------------------------------------------------------------------

def in_use(task, where, at, recovering):
    """The turns of a task whose first `at` steps are done; `where` gives a step's (label, box) or None
    for the end.  Recovering, the last of these steps has changed nothing and is due again."""
    said = [tasks.spell(s, *where(s)) for s in task.steps]
    if recovering:
        past, answer, result = said[:at], said[at - 1], "no change\n"
    else:
        past, answer, result = said[:at], said[at] if at < len(said) else task.end, ""
    turns, opening = [], task.sentence + "\n"
    for step in past:
        turns.append({"u": opening + "-", "a": step, "loss": False})
        opening = ""
    turns.append({"u": opening + result + "<image>", "a": answer, "loss": True})
    return turns


def ask(question, answer):
    return {"u": question, "a": answer, "loss": True}


def first_step(task, elements):
    step = task.steps[0]
    return ask(task.sentence, tasks.spell(step, step.element, elements[step.element]["box"]))


def read_row(rng, cells):
    """A question about a row, mostly one with something in it."""
    full = [k for k, row in enumerate(cells) if row.strip()]
    k = rng.choice(full) if rng.random() < 0.93 else rng.randrange(16)
    return ask(f"Read row {k + 1}", " ".join(cells[k].split()) or "nothing")


def find_word(rng, cells, taken=()):
    """Where a word is that stands once on the screen and is not the name of an element."""
    found = {}
    for r, row in enumerate(cells):
        for word in set(row.split()):
            found.setdefault(word, []).append((r, row.find(word), row.count(word)))
    once = [(w, p[0]) for w, p in found.items() if len(p) == 1 and p[0][2] == 1 and len(w) > 1 and w not in taken
            and not any(w != o and w in o for o in found)]
    if not once:
        return None
    word, (r, c, _) = rng.choice(once)
    return ask(f"Find {word}", tasks.at((20 * c, 30 * r, 20 * len(word), 30)))


def questions(rng, report, fresh, reads=3):
    """Up to QUESTIONS turns on a page with elements; `fresh` are its own tasks, already answered."""
    elements, cells = report["elements"], report["cells"]
    finds = [ask(f"Find {e['label']}", tasks.at(e["box"])) for e in elements]
    values = [ask(f"What is in {e['label']}?", e["value"] or "nothing") for e in elements if e["kind"] == "field"]
    out = list(fresh) + rng.sample(finds, min(len(finds), 4)) + rng.sample(values, min(len(values), 2))
    out += [read_row(rng, cells) for _ in range(reads)]
    names = {w for e in elements for w in e["label"].split()} | {e["label"] for e in elements}
    word = find_word(rng, cells, names)
    out += [word] if word else []
    rng.shuffle(out)
    seen = set()
    return [t for t in out if not (t["u"] in seen or seen.add(t["u"]))][:QUESTIONS]


# ---- flights --------------------------------------------------------------------------------------

FLIGHT_KIND = {"search": "flight-search", "offers": "flight-offers", "passenger": "flight-passenger", "done": "flight-done"}
FIELD = {"from": "city", "to": "city", "date": "date", "name": "person"}


def flight_task(rng, lex, seed):
    offered = tasks.times(seed)
    time_ = rng.choice(offered)
    return tasks.flight(rng, lex.city(), lex.city(), lex.date(), time_, lex.person()), offered.index(time_)


def flight_state(rng, lex, seed, task, offer, done):
    """The kiosk after `done` steps of the task, with the leftovers of whoever stood there before."""
    state = {"seed": seed, "page": ("search", "offers", "passenger", "done")[(done > 3) + (done > 4) + (done > 6)],
             "offer": offer, "message": "", "focus": "", "carriers": [lex.carrier() for _ in range(5)]}
    leftovers = rng.random() < 0.25
    for k, step in enumerate(task.steps):
        if step.verb == "write":
            state[step.element] = step.text if k < done else \
                getattr(lex, FIELD[step.element])() if leftovers and rng.random() < 0.7 else ""
            if k == done - 1:
                state["focus"] = step.element
    if state["page"] in ("search", "passenger") and not state["focus"] and rng.random() < 0.15:
        state["focus"] = rng.choice(("from", "to", "date")) if state["page"] == "search" else "name"
    if rng.random() < 0.1 and not state["focus"]:
        empty = [f for f in (("from", "to", "date") if state["page"] == "search" else ("name",)) if not state[f]]
        if empty and state["page"] in ("search", "passenger"):
            state["message"] = rng.choice(("Please fill in every field", "Some fields are empty", "All fields are needed")
                                          if state["page"] == "search" else
                                          ("Please give a name", "The name is missing", "A name is needed"))
    return state


def flight_page(rng, lex, seeds):
    seed = rng.randint(*seeds)
    task, offer = flight_task(rng, lex, seed)
    at = rng.choices(range(8), (10, 10, 10, 10, 14, 10, 9, 7))[0]
    recovering = at > 0 and rng.random() < RECOVERY
    state = flight_state(rng, lex, seed, task, offer, at - recovering)
    plans = [["flight", {**state, "page": p}] for p in ("search", "offers", "passenger")]

    def turns(report):
        known = {e["key"] or e["label"]: (e["label"], e["box"]) for plan in report["plans"] for e in plan}
        known |= {e["key"] or e["label"]: (e["label"], e["box"]) for e in report["elements"]}
        out = in_use(task, lambda s: known[s.element], at, recovering)
        fresh, named = [], {e["label"]: e for e in report["elements"]}
        for e in rng.sample(report["elements"], min(4, len(report["elements"]))):
            if e["kind"] == "field":
                fresh.append(first_step(tasks.fill(rng, [(e["label"], lex.typed(12))]), named))
            elif e["kind"] == "offer":
                fresh.append(first_step(rng.choice((tasks.choose, tasks.press))(rng, e["label"]), named))
            else:
                fresh.append(first_step(tasks.press(rng, e["label"]), named))
        if state["page"] == "search":
            for _ in range(2):
                other, _ = flight_task(rng, lex, rng.randint(*seeds))
                fresh.append(ask(other.sentence, tasks.spell(other.steps[0], *known["from"])))
        return FLIGHT_KIND[state["page"]], out + questions(rng, report, fresh)

    return ["flight", state, plans], turns


# ---- dialogs --------------------------------------------------------------------------------------

def blank_dialog(rng, lex, seeds, kind):
    """A dialog in which nothing has been done."""
    n = {"buttons": (3, 6), "ticks": (3, 5), "options": (3, 5), "fields": (1, 3)}[kind]
    count = rng.randint(*n)
    closing = [rng.choice(words.CLOSING) if rng.random() < 0.6 else lex.label(10)]
    if rng.random() < 0.4:
        closing.append(rng.choice(words.DISMISS) if rng.random() < 0.6 else lex.label(8))
    while True:
        labels = lex.labels(count)
        if len({l.lower() for l in labels + closing}) == count + len(closing):
            break
        closing = [lex.label(10) for _ in closing]
    return {"seed": rng.randint(*seeds), "kind": kind, "title": rng.choice((lex.label(18), lex.sentence(1, 3)[:24], "")),
            "text": lex.sentence() if rng.random() < 0.4 else "", "labels": labels,
            "buttons": [] if kind == "buttons" else closing, "on": [], "values": [""] * count, "pressed": "", "focus": -1}


def dialog_task(rng, lex, s, button):
    """A task this dialog can fulfil, keeping away from what is already ticked."""
    free = [l for k, l in enumerate(s["labels"]) if k not in s["on"]]
    if s["kind"] == "buttons":
        return tasks.press(rng, rng.choice(s["labels"]))
    if s["kind"] == "ticks":
        some = rng.sample(free, min(len(free), rng.choices((1, 2, 3), (5, 4, 1))[0]))
        return tasks.tick(rng, some, button)
    if s["kind"] == "options":
        return tasks.choose(rng, rng.choice(free), button)
    some = rng.sample(s["labels"], rng.randint(1, len(s["labels"])))
    if rng.random() < 0.7:
        some.sort(key=s["labels"].index)
    return tasks.fill(rng, [(l, lex.typed()) for l in some], button)


def leftovers(rng, lex, s):
    """What someone before has ticked, chosen, typed or pressed."""
    if s["kind"] == "ticks":
        s["on"] = [k for k in range(len(s["labels"])) if rng.random() < 0.25][:len(s["labels"]) - 2]
    if s["kind"] == "options" and rng.random() < 0.4:
        s["on"] = [rng.randrange(len(s["labels"]))]
    if s["kind"] == "fields":
        s["values"] = [lex.typed() if rng.random() < 0.3 else "" for _ in s["labels"]]
        s["focus"] = rng.randrange(len(s["labels"])) if rng.random() < 0.15 else -1
    if rng.random() < 0.12:
        s["pressed"] = rng.choice(s["buttons"] or s["labels"])


def do(s, step):
    """The effect of a step on the dialog's state."""
    s["focus"] = -1
    if step.verb == "write":
        k = s["labels"].index(step.element)
        s["values"][k], s["focus"] = step.text, k
    elif step.element in s["buttons"] or s["kind"] == "buttons":
        s["pressed"] = step.element
    elif s["kind"] == "ticks":
        s["on"].append(s["labels"].index(step.element))
    else:
        s["on"] = [s["labels"].index(step.element)]


def dialog_page(rng, lex, seeds):
    kind = rng.choices(("buttons", "ticks", "options", "fields"), (30, 22, 18, 30))[0]
    s = blank_dialog(rng, lex, seeds, kind)
    leftovers(rng, lex, s)
    button = s["buttons"][0] if s["buttons"] and rng.random() < 0.7 else ""
    task = dialog_task(rng, lex, s, button)
    if s["pressed"] == task.steps[-1].element:
        s["pressed"] = ""
    at = rng.choice(list(range(len(task.steps))) * 3 + [len(task.steps)])
    recovering = at > 0 and rng.random() < 2 * RECOVERY
    for step in task.steps[:at - recovering]:
        do(s, step)

    def turns(report):
        named = {e["label"]: e for e in report["elements"]}
        out = in_use(task, lambda step: (step.element, named[step.element]["box"]), at, recovering)
        fresh = [first_step(tasks.press(rng, b), named) for b in s["buttons"]]
        if kind == "buttons":
            fresh = [first_step(tasks.press(rng, b), named) for b in rng.sample(s["labels"], min(4, len(s["labels"])))]
        elif kind != "ticks" or len(s["on"]) < len(s["labels"]):
            fresh += [first_step(dialog_task(rng, lex, s, rng.choice(s["buttons"] + [""])), named) for _ in range(4)]
        return "dialog-" + kind, out + questions(rng, report, fresh, 2)

    return ["dialog", s, []], turns


# ---- dense text -----------------------------------------------------------------------------------

def text_rows(rng, lex):
    """Rows of words that fill the screen, some of them in frames or on colour."""
    rows, free = [], 0
    spread = rng.choice((0.0, 0.0, 0.25))
    while free < 16:
        if rng.random() < spread:
            free += 1
            continue
        look = rng.choices(("", "light", "alarm", "accent", "field", "focus", "button", "main", "offer"),
                           (60, 8, 4, 4, 5, 3, 4, 4, 4))[0]
        framed = look in ("button", "main", "offer")
        if framed:
            free += 1
        col = rng.choice((0, 0, rng.randint(0, 12))) + (2 if framed or look in ("field", "focus") else 0)
        room, line = (30 if framed else 31 if look in ("field", "focus") else 32) - col, ""
        if rng.random() < 0.2:
            room = rng.randint(2, room)
        while True:
            token = lex.token()
            gap = "" if not line else " " * rng.choices((1, 2, 3), (8, 1, 1))[0]
            if len(line) + len(gap) + len(token) > room:
                break
            line += gap + token
        if line and free < 16 - framed:
            rows.append({"row": free, "col": col, "text": line, "look": look})
        free += 1 + framed
    return rows


def text_page(rng, lex, seeds):
    rows = text_rows(rng, lex)

    def turns(report):
        asked, out = set(), []
        for k in range(40):
            turn = read_row(rng, report["cells"]) if k % 2 else find_word(rng, report["cells"])
            if turn and turn["u"] not in asked and len(out) < QUESTIONS + 1:
                asked.add(turn["u"])
                out.append(turn)
        out[0] = {**out[0], "u": out[0]["u"] + "\n<image>"}
        return "text", out

    return ["rows", {"rows": rows}, []], turns


# ---- shards ---------------------------------------------------------------------------------------

PAGES = {"flight": flight_page, "dialog": dialog_page, "text": text_page}


def png(picture):
    out = io.BytesIO()
    Image.fromarray(picture).save(out, "PNG", compress_level=4)
    return out.getvalue()


def check(picture, cells):
    """Every character has ink in its cell: the photograph is of the page the report speaks of."""
    ink = np.ptp(picture.reshape(16, 30, 32, 20, 3).max(4).astype(np.int16), axis=(1, 3))
    for r, row in enumerate(cells):
        for c, char in enumerate(row):
            if char != " " and ink[r, c] < 40:
                raise RuntimeError(f"no ink for {char!r} at row {r + 1}, column {c + 1}: {row!r}")


class Shard:
    """Two files that grow together and appear under their names when they are complete."""

    def __init__(self, folder, number):
        self.name = pathlib.Path(folder) / f"shard-{number:05}"
        self.lines, self.size = [], 0
        self.pixels = open(f"{self.name}.png.bin", "wb")

    def add(self, picture, cells, kind, turns):
        data = png(picture)
        self.pixels.write(data)
        self.lines.append(json.dumps({"images": [[self.size, len(data)]], "cells": [cells], "kind": kind, "turns": turns}))
        self.size += len(data)

    def close(self):
        self.pixels.close()
        part = f"{self.name}.jsonl.part"
        pathlib.Path(part).write_text("\n".join(self.lines) + "\n")
        os.rename(part, f"{self.name}.jsonl")


def make_shard(mosaic, rng, lex, shard, pages, mix, seeds):
    while len(shard.lines) < pages:
        n = min(mosaic.across * mosaic.down, pages - len(shard.lines))
        plans = [PAGES[rng.choices(list(mix), list(mix.values()))[0]](rng, lex, seeds) for _ in range(n)]
        for (_, turns), (picture, report) in zip(plans, mosaic.draw([screen for screen, _ in plans])):
            check(picture, report["cells"])
            shard.add(picture, report["cells"], *turns(report))
    shard.close()


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--out", required=True, help="folder of the shards")
    p.add_argument("--shards", type=int, default=1)
    p.add_argument("--first", type=int, default=0, help="number of the first shard")
    p.add_argument("--pages", type=int, default=512, help="pages in a shard")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--mix", default=MIX)
    p.add_argument("--heldout", action="store_true", help="evaluation words and pages only")
    p.add_argument("--tiles", type=int, default=8, help="screens across and down in one window")
    a = p.parse_args()
    mix = {k: float(v) for k, v in (part.split("=") for part in a.mix.split(","))}
    os.makedirs(a.out, exist_ok=True)
    mosaic = Mosaic(a.tiles, a.tiles)
    try:
        for k in range(a.first, a.first + a.shards):
            start = time.time()
            rng = random.Random(f"{a.seed}/{k}/{a.heldout}")
            shard = Shard(a.out, k)
            make_shard(mosaic, rng, words.Lexicon(rng, a.heldout), shard, a.pages, mix, EVAL_SEEDS if a.heldout else TRAIN_SEEDS)
            print(f"{shard.name}: {a.pages} pages, {shard.size / a.pages / 1024:.1f} KiB each, "
                  f"{a.pages / (time.time() - start):.0f} pages/s", flush=True)
    finally:
        mosaic.close()


if __name__ == "__main__":
    main()
