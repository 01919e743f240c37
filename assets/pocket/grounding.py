"""Held-out screens as a grounding set for `holorun eval`: grounding.py --out DIR --pages N --seed S.

Design.  The same pages as in training are drawn by the same browser, with words that never occur
there; what is asked for is every element whose label stands once on the screen, and a few words of
the text.  The target is the box that the document reports, so the score does not depend on what the
training made of it.  DIR gets one PNG for each page and eval.jsonl, a line for each question.
"""
import argparse
import json
import pathlib
import random

import generate
import words
from screens import Mosaic


def questions(rng, report, count):
    """(what kind, words to find, x1 y1 x2 y2) of one page, each with one possible answer."""
    labels = [e["label"] for e in report["elements"]]
    text = "\n".join(report["cells"])
    out = []
    for e in report["elements"]:
        if labels.count(e["label"]) == 1 and text.count(e["label"]) == 1:
            x, y, w, h = e["box"]
            out.append((e["kind"], e["label"], [x, y, x + w, y + h]))
    out = rng.sample(out, min(len(out), count))
    names = {w for label in labels for w in label.split()} | set(labels)
    word = generate.find_word(rng, report["cells"], names)
    if word:
        found = word["u"][len("Find "):]
        row = next(r for r, line in enumerate(report["cells"]) if found in line.split())
        column = report["cells"][row].find(found)
        out.append(("word", found, [20 * column, 30 * row, 20 * (column + len(found)), 30 * row + 30]))
    return out


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--out", required=True, help="folder of the set")
    p.add_argument("--pages", type=int, default=64)
    p.add_argument("--each", type=int, default=4, help="elements asked for on a page, at most")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--mix", default=generate.MIX)
    a = p.parse_args()
    folder = pathlib.Path(a.out)
    folder.mkdir(parents=True, exist_ok=True)
    rng = random.Random(f"grounding/{a.seed}")
    lex = words.Lexicon(rng, True)
    mix = {k: float(v) for k, v in (part.split("=") for part in a.mix.split(","))}
    plans = [generate.MAKERS[rng.choices(list(mix), list(mix.values()))[0]](rng, lex, generate.EVAL_SEEDS)
             for _ in range(a.pages)]
    mosaic, lines = Mosaic(4, 4), []
    try:
        for first in range(0, a.pages, 16):
            batch = plans[first:first + 16]
            for k, ((_, turns), (picture, report)) in enumerate(zip(batch, mosaic.draw([s for s, _ in batch]))):
                generate.check(picture, report["cells"])
                name, kind = f"{first + k:04}.png", turns(report)[0]
                (folder / name).write_bytes(generate.png(picture))
                for n, (what, label, box) in enumerate(questions(rng, report, a.each)):
                    lines.append({"id": f"{first + k:04}-{n}", "image": name, "instruction": label, "box": box,
                                  "w": 640, "h": 480, "tags": {"page": kind, "element": what}})
    finally:
        mosaic.close()
    (folder / "eval.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    print(f"{len(lines)} questions on {a.pages} pages")


if __name__ == "__main__":
    main()
