"""How often the pocket model says exactly the right thing, per kind of page and of question.

    python evaluate.py --model model --data /path/to/heldout --json table.json

An answer is right when greedy decoding would write it: every token of it, given the ones before,
is the most likely one.  (If all are, greedy decoding reproduces the answer, so no token has to be
generated one by one.)  A point is right when it lies on the label: at most `--near` bins off, or in
x as far as the label's letters reach.  Controls are at least as wide as their labels and three
bins high.
Besides whole answers the table has the point alone and the text alone.
"""
import argparse
import collections
import json

import torch

import data
import tokenizer
from data import IGNORE
from export import load_model


def question(answer):
    """What kind of answer this is, from its first tokens."""
    ids = tokenizer.spelled(answer)
    for token, name in ((tokenizer.CLICK, "click"), (tokenizer.WRITE, "write"),
                        (tokenizer.DONE, "done"), (tokenizer.AT, "find")):
        if token in ids:
            return name
    return "read"


def reach(u, a):
    """Bins that a point may be off in x and still lie on the label: a letter is two bins wide."""
    ids = tokenizer.spelled(a)
    if tokenizer.AT not in ids:
        return 0
    end = ids.index(tokenizer.AT)
    verb = max((k for k in range(end) if ids[k] >= tokenizer.IMAGE), default=-1)
    label = tokenizer.decode(ids[verb + 1:end]) or u.split("\n")[0].removeprefix("Find ")
    return max(0, len(label) - 1)


def judge(target, guess, near, wide=0):
    """(whole, point, text) of one answer: are its bins near, are its other tokens exact."""
    is_bin = target >= tokenizer.BIN0
    first = torch.cat([torch.ones(1, dtype=torch.bool), ~is_bin[:-1]]) & is_bin     # x, then y
    limit = torch.where(first, max(near, wide), near)
    close = is_bin & (guess >= tokenizer.BIN0) & ((target - guess).abs() <= limit)
    point = bool((close | ~is_bin).all())
    text = bool(((target == guess) | is_bin).all())
    return point and text, point, text


def tally(table, record, target, guess, near=1):
    """Adds a page's answers to the table; target and guess are its loss tokens in order.  The first
    turn with loss, the one in use, also counts as question `in use`."""
    done, first = 0, True
    for t in record["turns"]:
        if not t["loss"]:
            continue
        n = len(tokenizer.spelled(t["a"])) + len(tokenizer.CLOSE)
        ok = judge(target[done:done + n], guess[done:done + n], near, reach(t["u"], t["a"]))
        names = [("all", question(t["a"])), (record["kind"], question(t["a"]))]
        if first and record["kind"] != "text":
            names += [(record["kind"], "in use"), ("all", "in use")]
        for name in names:
            row = table[name]
            row[0] += 1
            for k in range(3):
                row[1 + k] += ok[k]
        done, first = done + n, False


@torch.no_grad()
def score(model, pages, batch=8, near=1, dt=torch.bfloat16):
    """pages: sequences as Batches makes them -> {(kind, question): [n, whole, point, text]}."""
    table = collections.defaultdict(lambda: [0, 0, 0, 0])
    pages = sorted(pages, key=lambda q: len(q[0]))
    for i in range(0, len(pages), batch):
        group = pages[i:i + batch]
        b = data.collate(group, [0])
        f = model(b["ids"], b["patches"], dt)
        for j, (_, _, _, r) in enumerate(group):
            at = torch.where(b["target"][j] != IGNORE)[0]
            guess = model.logits(f[j, at]).float().argmax(-1)
            tally(table, r, b["target"][j, at], guess, near)
    return table


def load_pages(directories, n, seed=1):
    b = data.Batches(directories, 1, [0], seed=seed)
    total = sum(len(p) for p in data.list_pages(directories).values())
    return b._sequences(min(n, total))


def show(table):
    print(f"{'page':18} {'question':8} {'n':>6} {'whole':>7} {'point':>7} {'text':>7}")
    for (kind, what), (n, *hits) in sorted(table.items()):
        print(f"{kind:18} {what:8} {n:6d} " + " ".join(f"{100 * h / n:6.1f}%" for h in hits))


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--model", default="model")
    p.add_argument("--data", nargs="+", required=True)
    p.add_argument("--pages", type=int, default=400)
    p.add_argument("--near", type=int, default=1)
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--json")
    a = p.parse_args()
    torch.set_num_threads(a.threads)
    table = score(load_model(a.model), load_pages(a.data, a.pages), near=a.near)
    show(table)
    if a.json:
        rows = [dict(page=k, question=q, n=n, whole=w, point=pt, text=t)
                for (k, q), (n, w, pt, t) in sorted(table.items())]
        json.dump(rows, open(a.json, "w"), indent=1)


if __name__ == "__main__":
    main()
