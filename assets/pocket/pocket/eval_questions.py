"""Evaluates the published model on visual questions, through `holorun ask`.

    python -m pocket ask --data heldout-forms ... --holorun ../../holorun [--screens 64] [--out FILE]

Questions come from questions.py (presence, checkbox state, transcription) on held-out screens. Half of the
presence questions name an element of another screen of the same source, so their answer is "no". One
process per question; only an exact match counts. Prints a table per question type; --out writes one line
per question with its probability, the input of assets/eval/reliability.py.
"""

import collections
import json
import math
import pathlib
import random
import subprocess
import tempfile

from PIL import Image

from . import MODEL, grounding, questions
from .sources import store


def asked_of(screen, others, rng):
    """Returns [(type, question, answer)] about one screen."""
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
    """Returns (answer, its probability) of one `holorun ask`."""
    with tempfile.NamedTemporaryFile(suffix=".png") as f:
        Image.fromarray(picture).save(f, "PNG")
        f.flush()
        done = subprocess.run(
            [a.holorun, "ask", "--model", a.model, "--json", question, f.name], capture_output=True, text=True
        )
    if done.returncode:
        return done.stderr.strip(), 0.0
    reply = json.loads(done.stdout)
    return reply["answer"].strip(), math.exp(sum(t.get("logprob", 0) for t in reply["tokens"]))


def wilson(right, n, z=1.96):
    """Returns the 95 % confidence interval of a fraction."""
    p, d = right / n, 1 + z * z / n
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return (p + z * z / (2 * n) - half) / d, (p + z * z / (2 * n) + half) / d


def options(p):
    p.add_argument("--data", nargs="+", required=True, help="directories of shards")
    p.add_argument("--holorun", required=True, help="the program")
    p.add_argument("--model", default=str(MODEL))
    p.add_argument("--screens", type=int, default=64, help="screens of each source")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--out", help="file of one JSON line per question")


def run(a):
    rng, tables, lines = random.Random(a.seed), collections.defaultdict(collections.Counter), []
    for folder in map(pathlib.Path, a.data):
        seen = [(s, k) for s in store.shards([str(folder)]) for k in range(len(s))]
        seen = [
            (s, k, questions.Screen(s.letters_of(k), s.items_of(k), s.about[k]["names"])) for s, k in seen
        ]
        rng.shuffle(seen)
        others = [n for _, _, screen in seen for n in grounding.named(screen)]
        for shard, k, screen in seen[: a.screens]:
            for kind, question, want in asked_of(screen, others, rng):
                got, sure = ask(a, shard.picture(k), question)
                right = got[:40].rstrip() == want  # questions.py cuts a line there
                tables[kind].update(n=1, right=int(right))
                about = dict(source=folder.name, kind=kind, question=question, want=want)
                lines.append(about | dict(got=got, p=sure, correct=right))
    print("| question | right | of | | 95 % |\n|---|---|---|---|---|")
    for kind, t in sorted(tables.items()):
        low, high = wilson(t["right"], t["n"])
        share = f"{100 * t['right'] / t['n']:.0f} % | {100 * low:.0f} - {100 * high:.0f}"
        print(f"| {kind} | {t['right']} | {t['n']} | {share} |")
    if a.out:
        pathlib.Path(a.out).write_text("".join(json.dumps(line) + "\n" for line in lines))
