"""Writes held-out screens as a grounding set for `holorun eval`.

    python -m pocket grounding --data heldout-forms heldout-gtk ... --out DIR [--screens 96] [--each 3]
    holorun eval DIR/eval.jsonl --model MODEL --results R.jsonl && assets/eval/reliability.py R.jsonl

The questions of a screen name elements whose name occurs once on it, and one name from another screen of the
same source that it does not show, which must be reported as missing. Boxes are those of the browser or
toolkit.
"""

import json
import pathlib
import random

from PIL import Image

from . import questions
from .sources import store


def named(screen):
    """Returns [(name, kind, box)] of elements with a unique name; the box of a tick includes its label."""
    text, out = "\n".join(screen.string(line)[0] for line in screen.lines).lower(), []
    for kind, _, box, name, places in screen.named():
        if kind not in questions.WORD or len(name) < 2 or text.count(name.lower()) != 1:
            continue
        if kind in ("check", "radio"):
            xs, ys = zip(*filter(None, places))
            box = [min(box[0], *xs), min(box[1], *ys), max(box[2], *xs), max(box[3], *ys)]
        out.append((name, kind, box))
    return out


def questions_of(folder, rng, out, screens, each):
    """Returns the questions of one source; writes their pictures to `out`."""
    seen = []
    for shard in store.shards([str(folder)]):
        for k in range(len(shard)):
            screen = questions.Screen(shard.letters_of(k), shard.items_of(k), shard.about[k]["names"])
            seen.append((shard, k, screen, named(screen)))
    rng.shuffle(seen)
    others = [n[0] for _, _, _, found in seen for n in found]
    lines, name = [], folder.name.replace("heldout-", "")
    for number, (shard, k, screen, found) in enumerate(seen[:screens]):
        if not found:
            continue
        picture, file = shard.picture(k), f"{name}-{number:03}.png"
        Image.fromarray(picture).save(out / file)
        asked = rng.sample(found, min(each, len(found)))
        text = "\n".join(screen.string(line)[0] for line in screen.lines).lower()
        absent = [n for n in others if not any(w in text for w in n.lower().split())]
        if absent:
            asked.append((rng.choice(absent), "none", None))
        for n, (label, kind, box) in enumerate(asked):
            tags = {"source": name, "element": kind, "there": "yes" if box else "no"}
            line = {
                "id": f"{name}-{number:03}-{n}",
                "image": file,
                "instruction": label,
                "box": box,
                "tags": tags,
            }
            lines.append(line | {"w": picture.shape[1], "h": picture.shape[0]})
    return lines


def options(p):
    p.add_argument("--data", nargs="+", required=True, help="directories of shards")
    p.add_argument("--out", required=True)
    p.add_argument("--screens", type=int, default=96, help="screens of each source")
    p.add_argument("--each", type=int, default=3, help="elements of each screen, at most")
    p.add_argument("--seed", type=int, default=1)


def run(a):
    out, rng, lines = pathlib.Path(a.out), random.Random(a.seed), []
    out.mkdir(parents=True, exist_ok=True)
    for folder in map(pathlib.Path, a.data):
        lines += questions_of(folder, rng, out, a.screens, a.each)
    (out / "eval.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    print(
        f"{len(lines)} questions, {sum(line['box'] is None for line in lines)} of them about absent elements"
    )
