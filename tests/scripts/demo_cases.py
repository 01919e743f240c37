#!/usr/bin/env python3
"""The episodes the embedded model is judged by, one a line: kind, page, task, pattern of the title.

    tests/scripts/demo_cases.py >tests/cases/demo_many.tsv     20 flights, then 60 dialogs
    tests/scripts/demo_cases.py --first 3000000                others of the same kind, to look for faults in

Design.  An episode opens the page (relative to assets/demo) in a kiosk window of 640 x 480, gives the
agent the task, and afterwards compares the document's title with the pattern (POSIX extended and
Python agree on it): the page is the referee.  The first title of a page never
matches.  Seeds start at 1000000 and every name is of the held-out side of the lexicon, so neither
layout nor words were seen in training.  The list is the same at every call.
"""
import argparse
import pathlib
import random
import sys
from urllib.parse import quote, urlencode

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "assets/pocket"))
import pages       # noqa: E402
import tasks       # noqa: E402
import words       # noqa: E402

FIRST_SEED = 1_000_000
FLIGHTS = 20
DIALOGS = {"buttons": 20, "ticks": 15, "options": 10, "fields": 15}


def exactly(title):
    """A regular expression for this title and no other."""
    return "^" + "".join("\\" + c if c in "\\.[]{}()*+?^$|" else c for c in title) + "$"


def case(kind, url, task, title):
    return "\t".join((kind, url, task.sentence, exactly(title)))


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
    p.add_argument("--first", type=int, default=FIRST_SEED, help="seed of the first page")
    first = p.parse_args().first
    rng = random.Random("episodes" if first == FIRST_SEED else first)
    lex = words.Lexicon(rng, evaluation=True)
    print("# kind\tpage\ttask\tpattern of the final title; made by tests/scripts/demo_cases.py")
    for k in range(FLIGHTS):
        print(some_flight(rng, lex, first + k))
    kinds = [kind for kind, n in DIALOGS.items() for _ in range(n)]
    for k, kind in enumerate(kinds):
        print(dialog(rng, lex, first + 100_000 + k, kind))


if __name__ == "__main__":
    main()
