"""Train the pocket model on one processor core, for a given number of minutes.

    python train.py --data shards --run run --minutes 120           start, or go on where it stopped
    python train.py --data shards --run run2 --from model --minutes 300     from exported weights

Two parts.  First the eyes alone: the auxiliary head reads every cell and its neighbours from the
image tokens, which needs no language and is quick because every glyph lies alike on the patches.
Then everything jointly: next-token loss on the assistant's words, the reading loss kept on at a
lower weight, coordinate targets spread over the neighbouring bins.

Matrices are trained by Muon (momentum, then the nearest orthogonal matrix), everything else by
AdamW.  The rate is warm for `--warm` steps, flat, and falls to zero over the last `--decay` share
of the minutes; the schedule counts time, since time is what is given.  An average of the weights
over the last few hundred steps is what is evaluated and exported.

In the run directory: last.pt (model, average, optimisers, step, minutes; written every five minutes
and at SIGTERM), log.csv (losses and accuracies), eval.csv (whole answers right on held-out pages).
"""
import argparse
import csv
import math
import os
import signal
import time

import torch
import torch.nn.functional as F

import data
import evaluate
import export
import hints
import tokenizer
from data import IGNORE
from model import Pocket, ReadingHead, shuffle2

HALF = torch.bfloat16
OFFSETS = list(range(-3, 5))             # characters the auxiliary head reads: the token's two cells
OWN = (3, 4)                             # are offsets 0 and 1, at these places; the rest is context


# ---- losses ---------------------------------------------------------------------------------

def soft_bins(sigma):
    """[64, 64]: for every target bin a narrow bell over the bins."""
    i = torch.arange(tokenizer.BINS).float()
    w = torch.exp(-0.5 * ((i[:, None] - i) / sigma) ** 2)
    return w / w.sum(1, keepdim=True)


def language_loss(model, f, target, bell, points=1.0):
    """Mean over the answers' tokens, those of points counting `points` times; and the sums the log
    wants."""
    at = target != IGNORE
    want, logits = target[at], model.logits(f[at]).float()
    logp = logits.log_softmax(-1)
    loss = -logp.gather(1, want[:, None])[:, 0]
    is_bin = want >= tokenizer.BIN0
    w = want[is_bin] - tokenizer.BIN0
    soft = -(bell[w] * logp[is_bin][:, tokenizer.BIN0:]).sum(-1)
    total = loss[~is_bin].sum() + points * soft.sum()
    guess = logits.argmax(-1)
    hit = guess == want
    near = (guess[is_bin] - want[is_bin]).abs() <= 1
    # x and y alternate: a point is two bins in a row
    x, y = near[0::2], near[1::2]
    seen = dict(text=(hit[~is_bin].sum(), (~is_bin).sum()), x=(x.sum(), x.numel()),
                y=(y.sum(), y.numel()), point=((x & y).sum(), x.numel()),
                lm=(total.detach(), want.numel()))
    return total / want.numel(), seen


def reading_loss(head, rows, chars, context):
    """Cross entropy of the characters; a token's own two count 1, its neighbours `context`."""
    logits = head(rows).float()
    weight = torch.full((len(OFFSETS),), context / (len(OFFSETS) - 2))
    weight[list(OWN)] = 0.5
    each = F.cross_entropy(logits.flatten(0, 2), chars.flatten(), ignore_index=IGNORE,
                           reduction="none").view(chars.shape)
    loss = (each.mean((0, 1)) * weight).sum()
    guess, ink = logits.argmax(-1) == chars, chars > 0
    own = [guess[..., list(OWN)], ink[..., list(OWN)]]
    return loss, dict(char=((own[0] & own[1]).sum(), own[1].sum()),
                      near=((guess & ink).sum(), ink.sum()), read=(each.sum(), each.numel()))


def hint_loss(model, told):
    """Cross entropy of the told heads' attention weights, mean over the slots that occur."""
    losses, seen = [], {}
    for slot, (layer, head) in hints.HEADS.items():
        mixer = model.language_model.backbone.layers[layer].mixer
        rows = told[told[:, 2] == slot]
        each, hit = [], 0
        for b in rows[:, 0].unique():
            query, key = rows[rows[:, 0] == b][:, 1], rows[rows[:, 0] == b][:, 3]
            q, k = mixer.seen[0][b, head, query], mixer.seen[1][b, head]
            w = (q @ k.T).float() * mixer.p ** -0.5
            w = w.masked_fill(torch.arange(len(k)) > query[:, None], -1e9)
            each.append(F.cross_entropy(w, key, reduction="none"))
            hit += (w.argmax(-1) == key).sum()
        if each:
            losses.append(torch.cat(each).mean())
            seen[f"hint{slot}"] = (hit, len(rows))
    return sum(losses) / max(1, len(losses)), seen


# ---- Muon -----------------------------------------------------------------------------------

def orthogonal(g, steps=5):
    """The nearest orthogonal matrices to a stack g [k, m, n], by a quintic iteration in bf16."""
    x = g.to(HALF)
    wide = x.shape[-2] <= x.shape[-1]
    x = x if wide else x.mT
    x = x / (x.float().norm(dim=(-2, -1), keepdim=True).to(HALF) + 1e-7)
    for _ in range(steps):
        s = x @ x.mT
        x = 3.4445 * x + (-4.7750 * s + 2.0315 * (s @ s)) @ x
    return x if wide else x.mT


class Muon(torch.optim.Optimizer):
    """Momentum, orthogonalised; the step has the root mean square that AdamW's would have."""
    def __init__(self, params, lr, momentum=0.95, decay=0.01):
        super().__init__(params, dict(lr=lr, momentum=momentum, decay=decay))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            shapes = {}
            for p in group["params"]:
                if p.grad is None:
                    continue
                s = self.state[p]
                m = s.setdefault("m", torch.zeros_like(p))
                m.lerp_(p.grad, 1 - group["momentum"])
                shapes.setdefault(p.shape, []).append((p, p.grad.lerp(m, group["momentum"])))
            for shape, pairs in shapes.items():
                u = orthogonal(torch.stack([g for _, g in pairs])).float()
                size = 0.2 * max(shape) ** 0.5
                for (p, _), x in zip(pairs, u):
                    p.mul_(1 - group["lr"] * group["decay"]).add_(x, alpha=-group["lr"] * size)


def optimisers(model, head, a):
    """Matrices of the blocks to Muon; embeddings, heads, vectors and filters to AdamW."""
    adam = ("embeddings", "lm_head", "pos_embed", "cls_token", "conv1d")
    named = list(model.named_parameters())
    matrix = [p for n, p in named if p.ndim == 2 and not any(s in n for s in adam)]
    other = [p for n, p in named if p.ndim != 2 or any(s in n for s in adam)]
    other += list(head.parameters())
    return (Muon(matrix, a.muon), torch.optim.AdamW(other, a.adam, (0.9, 0.95), weight_decay=0.0))


# ---- the run --------------------------------------------------------------------------------

class Run:
    def __init__(self, a):
        self.a, self.step, self.minutes, self.joint_step = a, 0, 0.0, 0
        self.last = os.path.join(a.run, "last.pt")
        os.makedirs(a.run, exist_ok=True)
        saved = None
        if os.path.exists(self.last):
            saved = torch.load(self.last, map_location="cpu", weights_only=True)
        first = None                     # weights to start from: model and perhaps reading head
        if not saved and a.start and a.start.endswith(".pt"):
            first = torch.load(a.start, map_location="cpu", weights_only=True)
        self.model = Pocket(**(saved or first)["shape"]) if saved or first else \
            export.load_model(a.start) if a.start else Pocket()
        if first:
            self.model.load_state_dict(first["model"])
        self.head = ReadingHead(4 * self.model.shape["vit"]["hidden"], OFFSETS, data.CLASSES)
        if first:
            self.head.load_state_dict(first["head"])
        self.average = {n: p.detach().clone() for n, p in self.model.named_parameters()}
        self.optim = optimisers(self.model, self.head, a)
        if saved:
            self.model.load_state_dict(saved["model"])
            self.head.load_state_dict(saved["head"])
            self.average = saved["average"]
            for o, s in zip(self.optim, saved["optim"]):
                o.load_state_dict(s)
            self.step, self.minutes, self.joint_step = (saved[k] for k in
                                                        ("step", "minutes", "joint_step"))
        self.bell = soft_bins(a.sigma)
        self.batches = data.Batches(a.data, a.batch, OFFSETS, seed=a.seed + self.step)
        self.held = evaluate.load_pages(a.heldout, a.held_pages) if a.heldout else []

    def save(self):
        part = self.last + ".part"
        torch.save(dict(shape=self.model.shape, model=self.model.state_dict(),
                        head=self.head.state_dict(), average=self.average,
                        optim=[o.state_dict() for o in self.optim], step=self.step,
                        minutes=self.minutes, joint_step=self.joint_step), part)
        os.replace(part, self.last)

    def averaged(self):
        """A copy of the model with the averaged weights."""
        m = Pocket(**self.model.shape)
        m.load_state_dict(self.average)
        return m

    def rate(self):
        """Share of the full rate now: warm, flat, down to nothing."""
        left = 1 - self.minutes / self.a.minutes
        fall = min(1.0, max(0.0, left / self.a.decay))
        return max(0.02, fall) * min(1.0, (self.step + 1) / self.a.warm)

    def train_step(self, reading):
        a, b = self.a, next(self.batches)
        rows = self.model.see(b["patches"])
        loss, seen = reading_loss(self.head, shuffle2(rows), b["chars"], a.context)
        if not reading:
            loss = a.read_weight * loss
            picture = self.model.project(rows, HALF)
            f = self.model.language_model(self.model.embed(b["ids"], picture), HALF)
            lm, more = language_loss(self.model, f, b["target"], self.bell, a.points)
            loss, seen = loss + lm, seen | more
            if a.hint:
                told, more = hint_loss(self.model, b["hints"])
                loss, seen = loss + a.hint * told, seen | more
            self.joint_step += 1
        loss.backward()
        rate = self.rate()
        for o in self.optim:
            for g in o.param_groups:
                g.setdefault("full", g["lr"])
                g["lr"] = (a.muon if isinstance(o, Muon) else a.adam) * rate
        norm = torch.nn.utils.clip_grad_norm_(
            [p for p in self.optim[1].param_groups[0]["params"] if p.grad is not None], 1.0)
        for o in self.optim:
            o.step()
            o.zero_grad(set_to_none=True)
        keep = min(a.average, 1 - 1 / (self.step + 2))
        for n, p in self.model.named_parameters():
            self.average[n].lerp_(p.detach(), 1 - keep)
        self.step += 1
        seen["norm"] = (norm, 1)
        return seen

    def evaluate(self):
        table = evaluate.score(self.averaged(), self.held)
        row = [f"{self.minutes:.1f}", self.step]
        for name, (n, whole, point, text) in sorted(table.items()):
            row.append(f"{'/'.join(name)}={whole / n:.3f}:{point / n:.3f}:{text / n:.3f}")
        with open(os.path.join(self.a.run, "eval.csv"), "a") as f:
            csv.writer(f).writerow(row)
        brief = [r for r in row[2:] if r.startswith("all") or "in use" in r]
        print("  held-out whole:point:text  " + "  ".join(brief), flush=True)


NAMES = ["char", "near", "read", "lm", "text", "x", "y", "point", "norm", "hint0", "hint1"]


def report(run, sums, pages, seconds):
    mean = {k: float(s) / max(1, float(n)) for k, (s, n) in sums.items()}
    row = [f"{run.minutes:.2f}", run.step, f"{run.rate():.3f}", f"{pages / seconds:.2f}"]
    row += [f"{mean[k]:.4f}" if k in mean else "" for k in NAMES]
    path = os.path.join(run.a.run, "log.csv")
    fresh = not os.path.exists(path)
    with open(path, "a") as f:
        w = csv.writer(f)
        if fresh:
            w.writerow(["minutes", "step", "rate", "pages_s"] + NAMES)
        w.writerow(row)
    print(" ".join(f"{k} {v}" for k, v in zip(["min", "step", "rate", "p/s"] + NAMES, row)),
          flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--data", nargs="+", required=True)
    p.add_argument("--heldout", nargs="*", default=[])
    p.add_argument("--run", required=True)
    p.add_argument("--from", dest="start", help="exported directory, or checkpoint of other training")
    p.add_argument("--minutes", type=float, required=True, help="of training, earlier ones included")
    p.add_argument("--read", type=float, default=4, help="minutes of reading alone")
    p.add_argument("--batch", type=int, default=4)
    p.add_argument("--read-batch", type=int, default=4)
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--muon", type=float, default=2e-3)
    p.add_argument("--adam", type=float, default=2e-3)
    p.add_argument("--warm", type=int, default=40)
    p.add_argument("--decay", type=float, default=0.5)
    p.add_argument("--sigma", type=float, default=0.7)
    p.add_argument("--context", type=float, default=0.5)
    p.add_argument("--read-weight", type=float, default=0.3)
    p.add_argument("--hint", type=float, default=0.5, help="weight of the told heads' loss")
    p.add_argument("--points", type=float, default=1.0, help="weight of a coordinate's loss")
    p.add_argument("--average", type=float, default=0.99)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--held-pages", type=int, default=48)
    p.add_argument("--every", type=float, default=8, help="minutes between evaluations")
    a = p.parse_args()
    torch.set_num_threads(a.threads)
    torch.set_flush_denormal(True)
    torch.manual_seed(a.seed)
    run = Run(a)
    stop = []
    signal.signal(signal.SIGTERM, lambda *_: stop.append(1))
    signal.signal(signal.SIGINT, lambda *_: stop.append(1))
    clock = saved = time.time()
    sums, pages, since, judged = {}, 0, clock, run.minutes
    while run.minutes < a.minutes and not stop:
        for k, (s, n) in run.train_step(run.minutes < a.read).items():
            old = sums.get(k, (0, 0))
            sums[k] = (old[0] + float(s.detach() if torch.is_tensor(s) else s), old[1] + float(n))
        pages += a.batch
        now = time.time()
        run.minutes += (now - clock) / 60
        clock = now
        if run.step % 25 == 0:
            report(run, sums, pages, now - since)
            sums, pages, since = {}, 0, now
        if now - saved > 300:
            run.save()
            saved = now
        if run.held and run.minutes >= a.read and run.minutes - judged > a.every:
            run.evaluate()
            judged = run.minutes
            clock = since = time.time()
    run.save()
    if run.held:
        run.evaluate()


if __name__ == "__main__":
    main()
