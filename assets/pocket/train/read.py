"""Stage 1, reading: the tower and its reading head from nothing, on crops of screens.

    python read.py --run RUN --data DIR... --gate DIR... --core-minutes 360      starts, or goes on

The loss is that of reading.py; the gate's figures (score.py, a part of its screens) go to gate.csv.
"""
import argparse
import os

import torch

import crops
import reading
import runner
import score
import tower


class Reading:
    scale = 640.0                                     # letters in a small batch, about: keeps gradients near one
    counts = ["loss", "here", "which", "named", "read", "seen", "ghosts", "letters"]

    def __init__(self, a):
        self.a = a

    def shapes(self, c):
        head = reading.Reader(c["hidden"]).state_dict()
        return tower.shapes(c) | {f"head.{n}": tuple(v.shape) for n, v in head.items()}

    def start(self, views, c):
        torch.manual_seed(self.a.seed)
        tower.start({n: v for n, v in views.items() if not n.startswith("head.")}, c, self.a.seed)
        for n, v in reading.Reader(c["hidden"]).state_dict().items():
            views[f"head.{n}"].copy_(v)

    def worker(self, run, rank, grads):
        c, a, half = run.c, self.a, run.layout.views(run.half)
        eyes = tower.Tower(c, half, grads, a.crops, 156)
        reader = reading.Reader(c["hidden"])
        flat = run.layout.views(run.flat)
        for n, p in reader.named_parameters():        # the head's parameters and gradients are the shared ones
            p.data, p.grad = flat[f"head.{n}"], grads[f"head.{n}"]
        source = crops.Crops(a.data, a.crops, f"{a.seed}/{run.step}/{rank}")
        dx = torch.zeros(a.crops, eyes.n, c["hidden"])

        def part():
            place, present, letters, _ = source.next(eyes.patches)
            x = eyes.forward(place)
            rows = x[:, c["skip"]:].detach().requires_grad_()
            loss, sums = reading.loss(reader, rows, present, letters)
            loss.backward()
            dx[:, c["skip"]:] = rows.grad
            eyes.backward(dx)
            return sums | {"patches": a.crops * 156}
        return part

    def figures(self, s):
        n = max(1, s["letters"])
        return dict(loss=s["loss"] / n, here=s["here"] / n, which=s["which"] / n, named=s["named"] / n, read=s["read"] / n,
                    seen=s["seen"] / n, ghosts=s["ghosts"] / n)

    def gate(self, views, c):
        reader = reading.Reader(c["hidden"])
        reader.load_state_dict({n[5:]: v for n, v in views.items() if n.startswith("head.")})
        p, out = {n: v for n, v in views.items() if not n.startswith("head.")}, {}
        for folder in self.a.gate:
            f = score.figures(score.score(p, c, reader, folder, self.a.gate_screens)[0])
            out |= {f"{os.path.basename(folder.rstrip('/')).replace('gate-', '')}_{k}": v for k, v in f.items()}
        return out


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    runner.options(p)
    p.add_argument("--data", nargs="+", required=True)
    p.add_argument("--gate", nargs="*", default=[])
    p.add_argument("--gate-screens", type=int, default=24)
    a = p.parse_args()
    torch.set_num_threads(1)
    runner.Run(a, Reading(a)).run()


if __name__ == "__main__":
    main()
