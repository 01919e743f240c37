"""The joint run without a card: tower and language model at once by the passes by hand, a worker for each core.

    python joint_by_hand.py --run RUN --packs DIR --eyes FILE --language FILE --core-minutes 300
    python joint_by_hand.py ... --store DIR         DIR/eyes.safetensors and DIR/language.safetensors of its average
    python joint_by_hand.py ... --compare           its gradients beside those of joint.py

Design.  Screens, conversations and what is asked are those of joint.py; the passes are tower.py's and stack.py's; the machinery
is runner.py's, for which both models are one vector, since no parameter of one has a name of the other.  A small batch is a few
screens of one size.  Loss weighs as in the joint run: of the answers for each token, of the eyes for each letter.
"""

import argparse
import collections
import os
import pathlib

import numpy as np
import torch

import elements
import joint
import joint_passes
import language
import runner
import stack
import tower
import weights
from conversations import collate, whole_answers
from joint_screens import AS_THEY_ARE, Album, Screens

ROOM = 2400  # patches of a small batch, at most, if it has more than one screen
NO_ROWS = np.zeros((0, 768), np.int8)  # the tower makes them


class Both(language.Job):
    """Shapes are {"eyes": the tower's, "language": the language model's}."""

    scale = 1.0
    counts = language.Job.counts + ["letters", "read", "kinds", "kind", "aims", "aimed"]

    def __init__(self, a):
        super().__init__(a)
        self.first = {w: weights.load(getattr(a, w)) for w in ("eyes", "language")}
        if not a.store:
            files = sorted(pathlib.Path(a.packs).glob("*.pack"))
            gate = [f for f in files if f.name.startswith("gate")]
            self.screens, self.held = Screens([f for f in files if f not in gate]), Screens(gate, gate=True)
            half = joint_passes.products(torch.device("cpu"))
            self.album, self.judged = (Album(s, "cpu", 2, half) for s in (self.screens, self.held))

    def shape(self):
        return {w: saved["shape"] for w, saved in self.first.items()}

    @staticmethod
    def of(c):
        """The parameters of each: {name: shape}."""
        see = {n: tuple(p.shape) for n, p in joint_passes.See(c["eyes"]).named().items()}
        return {"eyes": see, "language": language.Job.shapes(None, c["language"])}

    def shapes(self, c):
        of = self.of(c)
        return of["eyes"] | of["language"]

    @staticmethod
    def is_matrix(name):
        spoken = name.startswith(("language_model.", "mlp1.", language.WHERE))
        return (language.Job if spoken else elements.Elements).is_matrix(name)

    def start(self, views, c):
        torch.manual_seed(self.a.seed)
        for w, names in self.of(c).items():
            joint.take({n: views[n] for n in names}, self.first[w])

    def worker(self, run, rank, grads):
        c, w = run.c, self.at_work(run, run.c["language"], grads)
        see = joint_passes.See(c["eyes"])
        for n, p in see.named().items():  # of the heads parameters and gradients are the shared ones
            p.data, p.grad = w.flat[n], grads[n]
        self.screens.seed(f"{self.a.seed}/{run.step}/{rank}")

        def part():
            drawn, batch, (h, wide) = self.drawn()
            n = h * wide // 256
            eyes, place = self.eyes(c["eyes"], w, len(drawn), h // 16, wide // 16)
            eyes.patches.copy_(self.album.patches(batch))
            rows = eyes.forward(place)[:, c["eyes"]["skip"] :].detach().requires_grad_()
            loss, seen = see.loss(rows, place[0], batch)
            (self.a.reading * loss).backward()
            ids, _, target, told = collate([(NO_ROWS, s) for _, s in drawn])
            tokens = joint_passes.tokens_of(rows, h // 16, wide // 16)
            share = 1.0 / max(1, int((target != -100).sum()))
            sums = self.learn(w, ids, tokens.detach(), target, told, [s.grid for _, s in drawn], share)
            tokens.backward(w.passes.backward_rows())
            dx = torch.zeros(eyes.B, eyes.n, c["eyes"]["hidden"])
            dx[:, c["eyes"]["skip"] :] = rows.grad
            eyes.backward(dx)
            return dict(sums) | {k: float(v) for k, v in seen.items()} | {"patches": len(drawn) * n}

        return part

    def drawn(self):
        """(numbers and conversations of a small batch, the same as joint.py has it, its size)."""
        self.screens.choose()
        h, w = self.screens.size
        drawn = [self.screens.draw() for _ in range(max(1, min(4, ROOM // (h * w // 256))))]
        return drawn, joint.moved(self.screens.batch(drawn), "cpu"), (h, w)

    @staticmethod
    def eyes(c, w, n, rows, cols):
        """(the tower for n pictures of this size, the places of their patches)."""
        at = (torch.arange(rows)[:, None] * tower.TABLE + torch.arange(cols)).flatten()
        return tower.Tower(c, w.half, w.grads, n, rows * cols), at.expand(n, -1)

    def figures(self, s):
        share = lambda a, b: s[a] / max(1, s[b])
        return super().figures(s) | dict(read=share("read", "letters"), kind=share("kind", "kinds"), aimed=share("aimed", "aims"))

    @torch.no_grad()
    def gate(self, views, c):
        """Shares of whole answers by world, every token before given."""
        w = argparse.Namespace(half={n: v.to(tower.HALF) for n, v in views.items()}, grads=None)
        say, self.tables = stack.Stack(c["language"], views, w.half, None), collections.defaultdict(collections.Counter)
        self.held.seed("gate")
        for size in self.held.sizes:
            self.held.choose(size)
            rows, cols = (v // 16 for v in size)
            for _ in range(max(1, round(self.a.judged * len(self.held.numbers) / len(self.held.about) / 2))):
                part = [self.held.draw() for _ in range(2)]
                batch = joint.moved(self.held.batch(part), "cpu")
                batch["colours"] = torch.tensor([AS_THEY_ARE] * 2)
                eyes, place = self.eyes(c["eyes"], w, 2, rows, cols)
                eyes.patches.copy_(self.judged.patches(batch))
                seen = eyes.forward(place)[:, c["eyes"]["skip"] :]
                f = say.forward(collate([(NO_ROWS, s) for _, s in part])[0], joint_passes.tokens_of(seen, rows, cols))
                guesses = (f @ w.half[stack.HEAD].t()).argmax(-1).tolist()
                for (number, s), guess in zip(part, guesses):
                    self.tables[self.held.about[number]["world"]].update(whole_answers(s, guess[: len(s.ids)]))
        return {f"{world}_whole": t["all right"] / max(1, t["all n"]) for world, t in self.tables.items()}


def store(a, job):
    """The run's average as two runs, and these as files of weights.py."""
    saved = torch.load(weights.last(a.run), map_location="cpu", weights_only=True)
    views = tower.Layout({n: tuple(s) for n, s in saved["names"].items()}).views(saved["average"])
    for what, names in job.of(saved["shape"]).items():
        layout, first, run = tower.Layout(names), job.first[what], os.path.join(a.run, what)
        flat = torch.zeros(layout.size)
        for n, v in layout.views(flat).items():
            v.copy_(views[n])
        os.makedirs(run, exist_ok=True)
        os.makedirs(a.store, exist_ok=True)
        torch.save(dict(shape=first["shape"], average=flat, names={n: list(s) for n, s in layout.shapes.items()},
                        step=first["step"] + saved["step"], core_minutes=first["core_minutes"] + saved["core_minutes"]),
                   os.path.join(run, "last.pt"))
        weights.keep(run, os.path.join(a.store, f"{what}.safetensors"), first.get("figures", {}))


def compare(a, job):
    """The gradients of a few small batches beside those of joint.py's passes under autograd."""
    c = job.shape()
    layout = tower.Layout(job.shapes(c))
    flat, grads = torch.zeros(layout.size), torch.zeros(layout.size)
    job.start(layout.views(flat), c)
    part = job.worker(argparse.Namespace(c=c, layout=layout, flat=flat, half=flat.to(tower.HALF), step=0), 0, layout.views(grads))
    plain = joint_passes.Joint(c["eyes"], c["language"], job.spread)
    named = plain.see.named() | plain.told()
    for n, p in named.items():
        p.data = layout.views(flat)[n]
    for seed in range(3):
        grads.zero_()
        job.screens.seed(seed)
        part()
        job.screens.seed(seed)
        batch = job.drawn()[1]
        loss, seen, _ = plain(job.album.patches(batch), batch)
        plain.zero_grad()
        (loss + a.reading * seen).backward()
        both = [(float((g - named[n].grad).norm() / named[n].grad.norm()), n) for n, g in layout.views(grads).items()
                if named[n].grad is not None and float(named[n].grad.norm()) > 0 and "norm" not in n and n != "mlp1.0.weight"]
        print(f"batch of {len(batch['numbers'])} screens, {batch['size']}: the worst of {len(both)} gradients " + "{:.5f} {}".format(*max(both)))


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    runner.options(p)
    p.add_argument("--packs")
    p.add_argument("--eyes", required=True)
    p.add_argument("--language", required=True)
    p.add_argument("--reading", type=float, default=0.5, help="weight of what the eyes are asked")
    p.add_argument("--hint", type=float, default=0.5)
    p.add_argument("--where", type=float, default=0.05, help="of the loss on image tokens' places")
    p.add_argument("--sigma", type=float, default=0.5)
    p.add_argument("--judged", type=int, default=240, help="screens of the gates that are looked at")
    p.add_argument("--store", help="only write what there is")
    p.add_argument("--compare", action="store_true", help="only compare the passes with those of joint.py")
    a = p.parse_args()
    torch.set_num_threads(1)
    job = Both(a)
    if a.compare:
        compare(a, job)
    else:
        store(a, job) if a.store else runner.Run(a, job).run()


if __name__ == "__main__":
    main()
