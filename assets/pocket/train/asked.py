"""What the published model answers when it is asked about screens of the gates: `holorun ask`, question by question.

    python asked.py --data gate-forms gate-gtk ... --holorun ../../../holorun [--model DIR] [--screens 64] [--out FILE]

Design.  Questions are those that questions.py makes, about screens and with words that were never trained on: whether
something is there, whether it is ticked, what a line says.  Half of the first kind is about what another screen of the same
world shows.  The program is asked as a person would ask it, one process a question, with the picture as a file; right is
the whole answer, letter by letter.  A table by kind of question goes to stdout; --out has a line for each question with the
probability of the answer, as assets/eval/reliability.py wants it.
"""

import argparse
import collections
import json
import math
import pathlib
import random
import subprocess
import sys
import tempfile

from PIL import Image

import grounding
import questions
import store

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "eval"))
from reliability import wilson  # noqa: E402


def asked_of(screen, others, rng):
    """[(kind of question, question, answer)] about one screen."""
    out, found = [], grounding.named(screen)
    text = "\n".join(screen.string(line)[0] for line in screen.lines).lower()
    absent = [n for n, _, _ in others if not any(w in text for w in n.lower().split())]
    if found and absent:
        name, kind, _ = rng.choice(found)
        form, word = rng.choice(questions.THERE), questions.WORD.get(kind, "field")
        out.append(("there", questions.worded(form, name, word), "yes"))
        out.append(("not there", questions.worded(form, rng.choice(absent), word), "no"))
    ticks = [t for t in screen.named() if t[0] in ("check", "radio")]
    if ticks:
        said, pieces = screen.ticked(rng, rng.choice(ticks))
        out.append((f"ticked, {pieces[0][1]}", said, pieces[0][1]))
    line = screen.read(rng) if screen.lines else None
    if line:
        out.append(("line", line[0], questions.text_of(line[1])))
    return out


def ask(a, picture, question):
    """(answer, its probability)."""
    with tempfile.NamedTemporaryFile(suffix=".png") as f:
        Image.fromarray(picture).save(f, "PNG")
        f.flush()
        done = subprocess.run([a.holorun, "ask", "--model", a.model, "--json", question, f.name], capture_output=True, text=True)
    if done.returncode:
        return done.stderr.strip(), 0.0
    reply = json.loads(done.stdout)
    return reply["answer"].strip(), math.exp(sum(t.get("logprob", 0) for t in reply["tokens"]))


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--data", nargs="+", required=True)
    p.add_argument("--holorun", required=True)
    p.add_argument("--model", default=str(pathlib.Path(__file__).resolve().parents[1] / "model"))
    p.add_argument("--screens", type=int, default=64, help="of each world")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--out")
    a = p.parse_args()
    rng, tables, lines = random.Random(a.seed), collections.defaultdict(collections.Counter), []
    for folder in map(pathlib.Path, a.data):
        world = folder.name.replace("gate-", "")
        seen = [(s, k, questions.Screen(s.letters_of(k), s.items_of(k), s.about[k]["names"]))
                for s in store.shards([str(folder)]) for k in range(len(s))]
        rng.shuffle(seen)
        others = [n for _, _, screen in seen for n in grounding.named(screen)]
        for number, (shard, k, screen) in enumerate(seen[: a.screens]):
            for kind, question, want in asked_of(screen, others, rng):
                got, sure = ask(a, shard.picture(k), question)
                right = got[:40].rstrip() == want  # questions.py cuts a line there
                tables[kind].update(n=1, right=int(right))
                lines.append(dict(world=world, kind=kind, question=question, want=want, got=got, p=sure, correct=right))
            print(f"{world}: {number + 1} of {min(len(seen), a.screens)} screens", end="\r", file=sys.stderr)
        print(file=sys.stderr)
    print("| asked | right | of | | 95 % |\n|---|---|---|---|---|")
    for kind, t in sorted(tables.items()):
        low, high = wilson(t["right"], t["n"])
        print(f"| {kind} | {t['right']} | {t['n']} | {100 * t['right'] / t['n']:.0f} % | {100 * low:.0f} - {100 * high:.0f} |")
    if a.out:
        pathlib.Path(a.out).write_text("".join(json.dumps(line) + "\n" for line in lines))


if __name__ == "__main__":
    main()
