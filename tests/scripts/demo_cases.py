#!/usr/bin/env python3
"""Generates the episodes that evaluate the embedded model, one per line: kind, page, task, pattern of the title.

    tests/scripts/demo_cases.py >tests/cases/demo_many.tsv     20 flights, then 60 dialogs
    tests/scripts/demo_cases.py --first 3000000                others of the same kind, for development
    tests/scripts/demo_cases.py --suite flights                the same as a suite for `holorun qa`: flights, dialogs,
                                                               waits (40 slow forms), crowd (100 forms)

An episode opens the page (relative to assets/demo) in a kiosk window of 640 x 480, gives the agent the task, and then
compares the document's title with the pattern, which POSIX extended and Python read alike. The initial title of a
page never matches. Seeds start at 1000000 and all names are from the held-out part of the lexicon, so neither layout
nor words were in training. Each call produces the same list.
"""
import argparse
import pathlib
import random
import sys
from urllib.parse import quote, urlencode

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "assets/pocket"))
from pocket.sources import kiosk_states, tasks, words  # noqa: E402

FIRST_SEED = 1_000_000
FLIGHTS = 20
DIALOGS = {"buttons": 20, "ticks": 15, "options": 10, "fields": 15}

BROWSER = 'exec "{dir}/browser.sh" "file://{dir}/../../assets/demo/{page}"'
FORM = 'exec "{dir}/../../build/release/helpers/form" %s"{page}"'
# Per suite: description, program, title to wait for, other keys, first seed, and number of pages per kind.
SUITES = {
    "flights": ("The flight page in Chromium, judged by its title: the cases of tests/cases/demo_many.tsv.",
                BROWSER, "^Flights", {"steps": 16, "timeout_s": 120}, FIRST_SEED, None),
    "dialogs": ("Dialogs in Chromium, judged by their titles: the cases of tests/cases/demo_many.tsv.",
                BROWSER, "^DIALOG pressed=", {"steps": 16, "timeout_s": 120}, FIRST_SEED, None),
    "waits": ("Slow forms: each is busy for 2 s before it shows itself, and again after a press.",
              FORM % "--delay 2 ", "^DIALOG pressed=", {"wm": '""', "steps": 12, "timeout_s": 240}, 4_000_000,
              {"buttons": 16, "ticks": 8, "options": 8, "fields": 8}),
    "crowd": ("A hundred forms, for a hundred sessions at once.",
              FORM % "", "^DIALOG pressed=", {"wm": '""', "steps": 12, "timeout_s": 3600}, 5_000_000,
              {"buttons": 30, "ticks": 25, "options": 20, "fields": 25}),
}


def exactly(title):
    """Returns a regular expression that matches only this title."""
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
    """Returns the title of dialog.html in a state."""
    on = ",".join(l for k, l in enumerate(s["labels"]) if k in s["on"])
    parts = {"buttons": [], "ticks": [f"ticked={on}"], "options": [f"chosen={on}"],
             "fields": [f"{l}={v}" for l, v in zip(s["labels"], s["values"])]}[s["kind"]]
    return "DIALOG " + ";".join([f"pressed={s['pressed']}"] + parts)


def dialog(rng, lex, seed, kind):
    s = kiosk_states.blank_dialog(rng, lex, (seed, seed), kind)
    task = kiosk_states.dialog_task(rng, lex, s, s["buttons"][0] if s["buttons"] and rng.random() < 0.7 else "")
    query = {"seed": seed, "kind": kind, "title": s["title"], "text": s["text"],
             "labels": "|".join(s["labels"]), "buttons": "|".join(s["buttons"])}
    for step in task.steps:
        kiosk_states.do(s, step)
    return case("dialog-" + kind, "dialog.html?" + urlencode({k: v for k, v in query.items() if v}, quote_via=quote),
                task, verdict(s))


def dialogs(rng, lex, first, numbers):
    kinds = [kind for kind, n in numbers.items() for _ in range(n)]
    return [dialog(rng, lex, first + k, kind) for k, kind in enumerate(kinds)]


def judged(first):
    """Returns the list: flights, then dialogs."""
    rng = random.Random("episodes" if first == FIRST_SEED else first)
    lex = words.Lexicon(rng, evaluation=True)
    flights = [some_flight(rng, lex, first + k) for k in range(FLIGHTS)]
    return flights, dialogs(rng, lex, first + 100_000, DIALOGS)


def quoted(text):
    """Quotes a YAML string. In single quotes only the quote is special; a suite would expand braces as variables.
    """
    assert not set("{}") & set(text), text
    return "'" + text.replace("'", "''") + "'"


def suite(name):
    about, start, window, more, first, numbers = SUITES[name]
    if numbers:
        rng = random.Random(name)
        cases = dialogs(rng, words.Lexicon(rng, evaluation=True), first, numbers)
    else:
        cases = judged(first)[name == "dialogs"]
    lines = [f"# {about}  Made by tests/scripts/demo_cases.py --suite {name}.", "suite:", f"  name: {name}",
             "  display: xvfb:640x480", f"  start: {start}", f"  window: {window}", "  start_timeout_s: 60"]
    lines += [f"  {key}: {value}" for key, value in more.items()]
    lines += ["  checks:", "    - { kind: window, title: '{title}', when: always }", "tests:"]
    for k, line in enumerate(cases):
        kind, page, task, title = line.split("\t")
        title = title[:-1] + "( - Chromium)?$"
        lines += [f"- id: {kind}-{k + 1}", f"  tags: [{kind}]", f"  task: {quoted(task)}",
                  f"  vars: {{ page: {quoted(page)}, title: {quoted(title)} }}"]
    return "\n".join(lines)


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--first", type=int, default=FIRST_SEED, help="seed of the first page")
    p.add_argument("--suite", choices=SUITES, help="a suite instead of the list")
    args = p.parse_args()
    if args.suite:
        print(suite(args.suite))
        return
    print("# kind\tpage\ttask\tpattern of the final title; made by tests/scripts/demo_cases.py")
    print("\n".join(sum(judged(args.first), [])))


if __name__ == "__main__":
    main()
