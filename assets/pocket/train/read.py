"""Reading: the tower and its reading head from nothing, on crops of screens.

    python read.py --run RUN --data DIR... --gate DIR... --core-minutes 360      starts, or goes on

The loss is that of reading.py; the gate's figures (score.py, a part of its screens) go to gate.csv.
"""

import argparse
import os
import random

import torch

import crops
import reading
import runner
import score
import tower


class Reading:
    """What runner.Run asks of a stage; elements.py adds to it."""

    tokens = 156  # patches in a crop
    scale = 640.0  # letters in a small batch, about: keeps gradients near one
    counts = ["loss", "here", "which", "named", "read", "seen", "ghosts", "letters"]

    def __init__(self, a):
        self.a = a

    def shape(self):
        return tower.TOWERS[self.a.tower]

    def grown(self, c):
        return c

    @staticmethod
    def is_matrix(name):
        return not name.startswith("head.") and name != "prefix"

    def heads(self, c):
        return {"head": reading.Reader(c["hidden"])}

    def loss(self, heads, rows, place, present, letters, items):
        return reading.loss(heads["head"], rows, present, letters)

    def names(self, heads):
        return {f"{h}.{n}": p for h, head in heads.items() for n, p in head.named_parameters()}

    def shapes(self, c):
        return tower.shapes(c) | {n: tuple(p.shape) for n, p in self.names(self.heads(c)).items()}

    def start(self, views, c):
        torch.manual_seed(self.a.seed)
        tower.start({n: v for n, v in views.items() if not n.startswith("head.")}, c, self.a.seed)
        for n, p in self.names(self.heads(c)).items():
            views[n].copy_(p.detach())

    def load_heads(self, views, c):
        heads = self.heads(c)
        for n, p in self.names(heads).items():
            p.data = views[n]
        return heads

    def worker(self, run, rank, grads):
        c, a, half = run.c, self.a, run.layout.views(run.half)
        heads = self.load_heads(run.layout.views(run.flat), c)
        for n, p in self.names(heads).items():  # the heads' parameters and gradients are the shared ones
            p.grad = grads[n]
        seed, pick = f"{a.seed}/{run.step}/{rank}", random.Random(f"{run.step}/{rank}")
        sizes = [(self.tokens, a.crops), (crops.LARGE, max(1, a.crops * self.tokens // crops.LARGE))]
        kinds = [
            (tower.Tower(c, half, grads, n, tokens), crops.Crops(a.data, n, seed, tokens, len(heads) > 1))
            for tokens, n in sizes[: 2 if a.large else 1]
        ]

        def part():
            eyes, source = kinds[pick.random() < a.large]
            place, present, letters, elements = source.next(eyes.patches)
            x = eyes.forward(place)
            rows = x[:, c["skip"] :].detach().requires_grad_()
            loss, sums = self.loss(heads, rows, place, present, letters, elements)
            loss.backward()
            dx = torch.zeros(eyes.B, eyes.n, c["hidden"])
            dx[:, c["skip"] :] = rows.grad
            eyes.backward(dx)
            return sums | {"patches": place.numel()}

        return part

    def figures(self, s):
        n = max(1, s["letters"])
        return dict(
            loss=s["loss"] / n,
            here=s["here"] / n,
            which=s["which"] / n,
            named=s["named"] / n,
            read=s["read"] / n,
            seen=s["seen"] / n,
            ghosts=s["ghosts"] / n,
        )

    def gate(self, views, c):
        reader, out = self.load_heads(views, c)["head"], {}
        p = {n: v for n, v in views.items() if not n.startswith("head.")}
        for folder in self.a.gate:
            f = score.figures(score.score(p, c, reader, folder, self.a.gate_screens)[0])
            out |= {
                f"{os.path.basename(folder.rstrip('/')).replace('gate-', '')}_{k}": v for k, v in f.items()
            }
        return out


def options(p):
    runner.options(p)
    p.add_argument("--tower", default="192x5", choices=list(tower.TOWERS))
    p.add_argument("--crops", type=int, default=16, help="crops in a small batch")
    p.add_argument("--large", type=float, default=0.0, help="share of small batches that have crops of nearly a page")
    p.add_argument("--data", nargs="*", default=[])
    p.add_argument("--gate", nargs="*", default=[])
    p.add_argument("--gate-screens", type=int, default=16)


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options(p)
    a = p.parse_args()
    torch.set_num_threads(1)
    runner.Run(a, Reading(a)).run()


if __name__ == "__main__":
    main()
