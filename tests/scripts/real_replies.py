#!/usr/bin/env python3
"""Compares the program's reading of real models' replies with a second implementation (replies_read.py).

    real_replies.py store RAW.jsonl...      writes tests/cases/replies/DIALECT.jsonl from the output of make_replies.py
    real_replies.py check                   compares both readings of the stored replies; exit code 1 if they differ
    real_replies.py cuts                    the same for each prefix of each reply, as a token limit leaves it
    real_replies.py table                   prints the table of tests/results/real-weights.md
    real_replies.py seeds                   writes one seed of tests/fuzz for each dialect and verdict

A stored line is {"reply", "verdict", "actions", "seen": [[model, task, temperature, seed, index], ...]}: equal
replies to a dialect's prompts are stored once. verdict and actions come from the second implementation, never from
the program. check needs build/release/helpers/replies.
"""

import collections
import glob
import json
import os
import subprocess
import sys

from replies_bind import ROOT, Dialect
from replies_read import read

CASES = os.path.join(ROOT, "tests", "cases", "replies")
HELPER = os.path.join(ROOT, "build", "release", "helpers", "replies")


def stored():
    """Yields (dialect name, line) of all stored replies."""
    for path in sorted(glob.glob(os.path.join(CASES, "*.jsonl"))):
        with open(path, encoding="utf-8") as f:
            for line in f:
                yield os.path.basename(path)[: -len(".jsonl")], json.loads(line)


def expected(name, reply, dialects={}):
    """Returns (verdict, actions, why) of the second implementation."""
    if name not in dialects:
        dialects[name] = Dialect(name)
    return read(dialects[name], reply)


def store(paths):
    """Writes the stored replies, without duplicates."""
    kept = collections.defaultdict(dict)
    for path in paths:
        with open(path, encoding="utf-8") as f:
            for o in map(json.loads, f):
                seen = kept[o["dialect"]].setdefault(o["reply"], [])
                seen.append([o["model"], o["task"], o["t"], o["seed"], o["i"]])
    os.makedirs(CASES, exist_ok=True)
    for name, replies in kept.items():
        with open(os.path.join(CASES, name + ".jsonl"), "w", encoding="utf-8") as out:
            for reply, seen in sorted(replies.items(), key=lambda r: r[1][0]):
                verdict, actions, _ = expected(name, reply)
                line = {"reply": reply, "verdict": verdict, "actions": actions, "seen": seen}
                out.write(json.dumps(line, ensure_ascii=False) + "\n")


def ours(lines):
    """Returns the program's reading of [(dialect, reply), ...]."""
    text = "".join(json.dumps({"dialect": d, "reply": r}) + "\n" for d, r in lines)
    done = subprocess.run([HELPER, "parse"], input=text.encode(), stdout=subprocess.PIPE, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def agree(verdict, actions, have):
    """Returns whether the program's reading is one that the verdict allows.

    Where it is "may", the program may leave the last actions to the next turn.
    """
    if "fault" in have:
        return verdict != "must"
    n = len(have["actions"])
    return verdict != "none" and n > 0 and have["actions"] == (actions[:n] if verdict == "may" else actions)


def check():
    """Prints every disagreement; returns the exit code."""
    lines, bad = list(stored()), 0
    for (name, line), have in zip(lines, ours([(n, o["reply"]) for n, o in lines])):
        verdict, actions, why = expected(name, line["reply"])
        if (verdict, actions) != (line["verdict"], line["actions"]):
            print(f"{name}: the stored expectation is not this script's: {line['reply']!r}")
            bad += 1
        if not agree(verdict, actions, have):
            print(
                f"--- {name} ({verdict} {why})\n{line['reply']}\nexpected {json.dumps(actions, ensure_ascii=False)}\n"
                f"got      {json.dumps(have, ensure_ascii=False)}"
            )
            bad += 1
    print(f"{len(lines)} distinct replies, {sum(len(o['seen']) for _, o in lines)} in all; {bad} disagreements")
    return bad != 0


def cuts():
    """Prints the disagreements about prefixes of the stored replies; returns the exit code."""
    seen = sorted({(name, o["reply"][:n]) for name, o in stored() for n in range(1, len(o["reply"]))})
    bad = 0
    for (name, text), have in zip(seen, ours(seen)):
        verdict, actions, why = expected(name, text)
        refused = have.get("cut") and verdict == "none"  # the run executes no action of a truncated call
        if not refused and not agree(verdict, actions, have):
            print(f"--- {name} ({verdict} {why})\n{text}\nexpected {actions}\ngot      {have}")
            bad += 1
    print(f"{len(seen)} beginnings; {bad} disagreements")
    return bad != 0


def table():
    """Prints counts by dialect, model and temperature."""
    lines = list(stored())
    rows = collections.defaultdict(collections.Counter)
    for (name, line), have in zip(lines, ours([(n, o["reply"]) for n, o in lines])):
        for model, _, t, _, _ in line["seen"]:
            row = rows[name, model, t]
            row["n"] += 1
            row[line["verdict"]] += 1
            row["read"] += "actions" in have
            row["misread"] += not agree(line["verdict"], line["actions"], have)
    print("| dialect | model | temperature | replies | well formed | stated otherwise | none | performed | misread |")
    print("|---|---|---|---|---|---|---|---|---|")
    for key in sorted(rows):
        r = rows[key]
        print(
            "| %s | %s | %s | %d | %.0f %% | %d | %d | %d | %d |"
            % (*key, r["n"], 100 * r["must"] / r["n"], r["may"], r["none"], r["read"], r["misread"])
        )


def seeds():
    """Writes a fuzz seed for the first reply of each dialect and verdict: a byte for the dialect, then the reply."""
    names = [
        json.loads(x)["name"]
        for x in subprocess.run([HELPER, "prompts"], stdout=subprocess.PIPE, check=True).stdout.splitlines()
    ]
    done = set()
    for name, line in stored():
        if (name, line["verdict"]) not in done:
            done.add((name, line["verdict"]))
            with open(
                os.path.join(ROOT, "tests", "fuzz", "seeds", "parse", f"real-{name}-{line['verdict']}"), "wb"
            ) as f:
                f.write(bytes([names.index(name)]) + line["reply"].encode())


def main():
    """Runs one of the commands."""
    what = sys.argv[1] if len(sys.argv) > 1 else ""
    if what == "store" and len(sys.argv) > 2:
        return store(sys.argv[2:])
    if what in ("check", "cuts", "table", "seeds"):
        return {"check": check, "cuts": cuts, "table": table, "seeds": seeds}[what]()
    sys.exit(__doc__)


if __name__ == "__main__":
    sys.exit(main())
