#!/usr/bin/env python3
"""The episodes the embedded model is judged by: JSON lines {kind, url, task, expect}.

    tests/scripts/demo_cases.py            20 flights, then 60 dialogs
    tests/scripts/demo_cases.py --demo     only the task of the demo

Design.  An episode opens `url` (relative to assets/demo) in a kiosk window of 640 x 480, gives the
agent `task`, and afterwards compares the document's title with the regular expression `expect`
(POSIX extended and Python agree on it): the page is the referee.  The first title of a page never
matches.  Seeds start at 1000000 and every name is of the held-out side of the lexicon, so neither
layout nor words were seen in training.  The list is the same at every call.
"""
import argparse
import json
import pathlib
import random
import sys
from urllib.parse import quote, urlencode

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "assets/pocket"))
import pages       # noqa: E402
import tasks       # noqa: E402
import words       # noqa: E402

FIRST_SEED, DEMO_SEED = 1_000_000, 1_000_102
FLIGHTS = 20
DIALOGS = {"buttons": 20, "ticks": 15, "options": 10, "fields": 15}


def exactly(title):
    """A regular expression for this title and no other."""
    return "^" + "".join("\\" + c if c in "\\.[]{}()*+?^$|" else c for c in title) + "$"


def case(kind, url, task, title):
    return {"kind": kind, "url": url, "task": task.sentence, "expect": exactly(title)}


def flight(seed, origin, destination, date, time, name, rng=None):
    title = f"BOOKED {origin}>{destination}|{date}|{time}|{name}"
    return case("flight", f"flight.html?seed={seed}",
                tasks.flight(rng, origin, destination, date, time, name), title)


def some_flight(rng, lex, seed):
    date = f"{rng.randint(1, 28)} {rng.choice(words.MONTHS)}"
    return flight(seed, lex.city(), lex.city(), date, rng.choice(tasks.times(seed)), lex.person(),
                  rng if rng.random() < 0.4 else None)


def verdict(s):
    """The title of dialog.html in a state."""
    on = ",".join(l for k, l in enumerate(s["labels"]) if k in s["on"])
    parts = {"buttons": [], "ticks": [f"ticked={on}"], "options": [f"chosen={on}"],
             "fields": [f"{l}={v}" for l, v in zip(s["labels"], s["values"])]}[s["kind"]]
    return "DIALOG " + ";".join([f"pressed={s['pressed']}"] + parts)


def dialog(rng, lex, seed, kind):
    s = pages.blank_dialog(rng, lex, (seed, seed), kind)
    task = pages.dialog_task(rng, lex, s, s["buttons"][0] if s["buttons"] and rng.random() < 0.7 else "")
    query = {"seed": seed, "kind": kind, "title": s["title"], "text": s["text"],
             "labels": "|".join(s["labels"]), "buttons": "|".join(s["buttons"])}
    for step in task.steps:
        pages.do(s, step)
    return case("dialog-" + kind, "dialog.html?" + urlencode({k: v for k, v in query.items() if v}, quote_via=quote),
                task, verdict(s))


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--demo", action="store_true", help="only the demo's own task")
    if p.parse_args().demo:
        print(json.dumps(flight(DEMO_SEED, "Paris", "Rome", "12 May", "9:40", "Ana Lima")))
        return
    rng = random.Random("episodes")
    lex = words.Lexicon(rng, evaluation=True)
    for k in range(FLIGHTS):
        print(json.dumps(some_flight(rng, lex, FIRST_SEED + k)))
    kinds = [kind for kind, n in DIALOGS.items() for _ in range(n)]
    for k, kind in enumerate(kinds):
        print(json.dumps(dialog(rng, lex, FIRST_SEED + 100_000 + k, kind)))


if __name__ == "__main__":
    main()
