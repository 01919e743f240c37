"""Screens of the gates as a grounding set for `holorun eval`: what was never trained on, in every world.

    python grounding.py --data gate-forms gate-gtk ... --out DIR [--screens 96] [--each 3]
    holorun eval DIR/eval.jsonl --model MODEL --results R.jsonl && ../../eval/reliability.py R.jsonl

Design.  Asked for is what has a name that stands once on its screen, and, once a screen, a name from another screen
of the same world that this one does not show: that must be called missing.  Boxes are those of the browser or the
toolkit, and of a tick they hold its label, which is clicked as well.  Tags are world, kind of element, and whether it is there.
"""

import argparse
import json
import pathlib
import random

from PIL import Image

import crops  # noqa: F401  puts the world's folder on the path
import questions
import store


def named(screen):
    """[(name, kind, box)] of what can be asked for without a doubt; a tick's box holds its label."""
    text, out = "\n".join(screen.string(line)[0] for line in screen.lines).lower(), []
    for kind, _, box, name, places in screen.named():
        if kind not in questions.WORD or len(name) < 2 or text.count(name.lower()) != 1:
            continue
        if kind in ("check", "radio"):
            xs, ys = zip(*filter(None, places))
            box = [min(box[0], *xs), min(box[1], *ys), max(box[2], *xs), max(box[3], *ys)]
        out.append((name, kind, box))
    return out


def world(folder, rng, out, screens, each):
    """The lines of a world, whose pictures go to `out`."""
    seen = []
    for shard in store.shards([str(folder)]):
        for k in range(len(shard)):
            screen = questions.Screen(shard.letters_of(k), shard.items_of(k), shard.about[k]["names"])
            seen.append((shard, k, screen, named(screen)))
    rng.shuffle(seen)
    others = [n[0] for _, _, _, found in seen for n in found]
    lines, name = [], folder.name.replace("gate-", "")
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
            tags = {"world": name, "element": kind, "there": "yes" if box else "no"}
            line = {"id": f"{name}-{number:03}-{n}", "image": file, "instruction": label, "box": box, "tags": tags}
            lines.append(line | {"w": picture.shape[1], "h": picture.shape[0]})
    return lines


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--data", nargs="+", required=True)
    p.add_argument("--out", required=True)
    p.add_argument("--screens", type=int, default=96, help="of each world")
    p.add_argument("--each", type=int, default=3, help="things asked for on a screen, at most")
    p.add_argument("--seed", type=int, default=1)
    a = p.parse_args()
    out, rng, lines = pathlib.Path(a.out), random.Random(a.seed), []
    out.mkdir(parents=True, exist_ok=True)
    for folder in map(pathlib.Path, a.data):
        lines += world(folder, rng, out, a.screens, a.each)
    (out / "eval.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    print(f"{len(lines)} questions, {sum(line['box'] is None for line in lines)} of them about what is not there")


if __name__ == "__main__":
    main()
