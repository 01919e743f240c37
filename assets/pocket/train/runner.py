"""The machinery of a training run: worker processes, schedule, checkpoints, logs.

Design.  Parameters are one flat vector in shared memory, fp32 with a bf16 copy; every worker is a process of
one thread that computes the gradient of one small batch after another and adds it to a shared vector, under
a lock.  The worker whose batch completes a step (`--parts` of them) takes the step, Muon and AdamW, before
it lets go of the lock.  Nobody waits for anybody: on a machine shared with other work a barrier would let
both cores wait for the one that is busy.  A batch may so have begun on weights one step old.

Time is counted in core minutes, the processor time of all workers together, so that a busy machine changes
nothing but the date: the rate is warm for a few steps, then falls along a cosine over the budget.  Every
three minutes, and at SIGTERM, last.pt is written beside and renamed into place.  A run without one goes on from
what the tree keeps of it (`--kept`, weights.py), its minutes counted, the rate warmed up anew.  While the file PAUSE
stands in the state directory, everybody sleeps.  log.csv and gate.csv hold the curves.
"""

import collections
import csv
import ctypes
import math
import os
import pathlib
import signal
import sys
import time

import torch
import torch.multiprocessing as mp

import tower
import weights
from kernels import PRODUCTS

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "world"))
from headless import state_dir  # noqa: E402

HALF = torch.bfloat16


def orthogonal(x, steps=5):
    """The nearest orthogonal matrices to a stack [k, m, n], m <= n, by a quintic iteration in the quick type."""
    quick = PRODUCTS if x.device.type == "cpu" else HALF
    x = x.to(quick)
    x = x / (x.float().norm(dim=(-2, -1), keepdim=True).to(quick) + 1e-7)
    for _ in range(steps):
        s = torch.bmm(x, x.mT)
        x = torch.baddbmm(x, torch.baddbmm(s, s, s, beta=-4.7750, alpha=2.0315), x, beta=3.4445)
    return x


class Optimiser:
    """Muon for matrices (queries, keys and values apart), AdamW for the rest.  State is shared memory."""

    def __init__(self, views, grads, muon, adam, is_matrix, decay=0.01, momentum=0.95):
        self.muon, self.adam, self.decay, self.momentum = muon, adam, decay, momentum
        self.groups, self.rest = collections.defaultdict(list), []
        for name, v in views.items():
            g = grads[name]
            if v.ndim != 2 or not is_matrix(name):
                self.rest.append((v, g))
            elif name.endswith("qkv"):
                for a, b in zip(v.chunk(3), g.chunk(3)):
                    self.groups[tuple(a.shape)].append((a, b))
            else:
                self.groups[tuple(v.shape)].append((v, g))
        zeros = lambda pairs: [
            torch.zeros_like(v, memory_format=torch.contiguous_format).share_memory_() for v, _ in pairs
        ]
        self.state = {
            "m": zeros([pair for group in self.groups.values() for pair in group]),
            "a": zeros(self.rest),
            "b": zeros(self.rest),
        }

    def step(self, rate, steps):
        at = 0
        for shape, group in self.groups.items():
            m = self.state["m"][at : at + len(group)]
            at += len(group)
            v, g = zip(*group)
            torch._foreach_lerp_(m, g, 1 - self.momentum)
            u = torch.stack(torch._foreach_lerp(g, m, self.momentum))
            u = orthogonal(u if shape[0] <= shape[1] else u.mT)
            u = (u if shape[0] <= shape[1] else u.mT).float()
            lr = self.muon * rate
            torch._foreach_mul_(v, 1 - lr * self.decay)
            torch._foreach_add_(v, u.unbind(), alpha=-lr * 0.2 * max(shape) ** 0.5)
        c1, c2 = 1 - 0.9**steps, 1 - 0.95**steps
        v, g = zip(*self.rest)
        a, b = self.state["a"], self.state["b"]
        torch._foreach_lerp_(a, g, 0.1)
        torch._foreach_mul_(b, 0.95)
        torch._foreach_addcmul_(b, g, g, value=0.05)
        size = torch._foreach_sqrt(torch._foreach_div(b, c2))
        torch._foreach_add_(size, 1e-8)
        torch._foreach_addcdiv_(v, a, size, value=-self.adam * rate / c1)


class Run:
    """`job` makes the parts that differ: job.shape(), job.grown(c) of a run that begins with another's, job.shapes(c),
    job.is_matrix(name), job.start(views, c), job.worker(run, rank, grads), job.gate(views, c)."""

    def __init__(self, a, job):
        self.a, self.job, self.path = a, job, pathlib.Path(a.run)
        self.path.mkdir(parents=True, exist_ok=True)
        self.saved = (
            torch.load(self.path / "last.pt", weights_only=True) if (self.path / "last.pt").exists() else None
        )
        kept = None if self.saved or not a.kept or not os.path.exists(a.kept) else weights.load(a.kept)
        first = kept or (weights.load(a.start) if a.start and not self.saved else None)
        self.c = (self.saved or kept or {"shape": job.grown(first["shape"]) if first else job.shape()})["shape"]
        self.layout = tower.Layout(job.shapes(self.c))
        shared = lambda dtype=torch.float32: torch.zeros(self.layout.size, dtype=dtype).share_memory_()
        self.flat = shared()
        self.half = shared(PRODUCTS) if PRODUCTS != torch.float32 else self.flat  # the parameters in the products' type
        self.grads, self.average = shared(), shared()
        self.count = mp.Array("d", [0.0, 0.0, 0.0], lock=False)  # step, small batches of it, stop
        self.before = 0.0
        if self.saved:
            self.flat.copy_(self.saved["flat"])
            self.count[0], self.before = self.saved["step"], self.saved["core_minutes"]
        else:
            job.start(
                self.layout.views(self.flat), self.c
            )  # from nothing, or from what the stage begins with
            if first:
                self._take(first)
            if kept:
                self.count[0], self.before = kept["step"], kept["core_minutes"]
        self.begun = 0 if self.saved else self.step  # where the optimiser's state begins
        self.average.copy_(self.saved["average"] if self.saved else self.flat)
        self.half.copy_(self.flat)  # which may be the same
        self.optimiser = Optimiser(
            self.layout.views(self.flat), self.layout.views(self.grads), a.muon, a.adam, job.is_matrix
        )
        if self.saved:
            for k, v in self.saved["optim"].items():
                for mine, old in zip(self.optimiser.state[k], v):
                    mine.copy_(old)
        self.lock, self.spent = mp.Lock(), mp.Array("d", [0.0] * a.workers, lock=False)
        self.names = ["patches", "norm", "steps"] + job.counts
        self.sums = torch.zeros(len(self.names), dtype=torch.float64).share_memory_()

    step = property(lambda self: int(self.count[0]))
    core = property(lambda self: self.before + sum(self.spent))

    def _take(self, first):
        """Parameters of the same name and shape from another run's average."""
        old = tower.Layout({n: tuple(s) for n, s in first["names"].items()}).views(first["average"])
        new = self.layout.views(self.flat)
        for n in new:
            if n in old and old[n].shape == new[n].shape:
                new[n].copy_(old[n])

    def save(self):
        part = self.path / "last.pt.part"
        torch.save(
            dict(
                shape=self.c,
                flat=self.flat.clone(),
                average=self.average.clone(),
                names={n: list(s) for n, s in self.layout.shapes.items()},
                optim=self.optimiser.state,
                step=self.step,
                core_minutes=self.core,
            ),
            part,
        )
        os.replace(part, self.path / "last.pt")

    def rate(self):
        warm = min(1.0, (self.step - self.begun + 1) / self.a.warm)
        fall = (self.a.horizon or self.a.core_minutes) - self.a.since
        return warm * (
            0.01
            + 0.99
            * 0.5
            * (1 + math.cos(math.pi * min(1.0, max(0.0, self.core - self.a.since) / fall)))
        )

    # ---- the work

    def update(self):
        """One step; the caller has the lock."""
        self.grads.mul_(1 / (self.a.parts * self.job.scale))
        rest = [g for _, g in self.optimiser.rest]
        norm = float(torch.stack(torch._foreach_norm(rest)).norm())
        torch._foreach_mul_(rest, min(1.0, 1.0 / (norm + 1e-6)))
        self.count[0] += 1
        self.optimiser.step(self.rate(), self.step - self.begun)
        self.grads.zero_()
        self.half.copy_(self.flat)
        self.average.lerp_(self.flat, 1 - min(self.a.average, 1 - 1 / (self.step + 1)))
        return norm

    def hand_in(self, mine, sums):
        """A small batch is done: its gradient and counts are added, and a step is taken when it was the
        last of one."""
        with self.lock:
            self.grads.add_(mine)
            mine.zero_()
            self.count[1] += 1
            if self.count[1] >= self.a.parts:
                self.count[1] = 0
                sums = sums | {"norm": self.update(), "steps": 1}
            self.sums += torch.tensor([float(sums.get(n, 0)) for n in self.names], dtype=torch.float64)

    def work(self, rank):
        """Small batches until it is told to stop; after each it yields."""
        torch.set_num_threads(1)
        torch.set_flush_denormal(True)
        mine = torch.zeros(self.layout.size)
        part = self.job.worker(self, rank, self.layout.views(mine))
        begun = time.process_time()
        while not self.count[2] and self.core < self.a.core_minutes:
            while (state_dir() / "PAUSE").exists() and not self.count[2]:
                time.sleep(2)
            sums = part()
            self.hand_in(mine, sums)
            self.spent[rank] = (time.process_time() - begun) / 60
            yield

    def helper(self, rank):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # workers do not outlive the first
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        for _ in self.work(rank):
            pass

    def run(self):
        os.nice(19 - os.nice(0))
        children = [
            mp.get_context("fork").Process(target=self.helper, args=(r,), daemon=True)
            for r in range(1, self.a.workers)
        ]
        for child in children:
            child.start()
        for s in (signal.SIGTERM, signal.SIGINT):
            signal.signal(s, lambda *_: self.count.__setitem__(2, 1.0))
        since, saved, judged, cores = (
            time.time(),
            time.time(),
            self.core - self.core % self.a.every,
            self.core,
        )
        for _ in self.work(0):
            now = time.time()
            if now - since > self.a.report:
                with self.lock:
                    sums = dict(zip(self.names, self.sums.tolist()))
                    self.sums.zero_()
                self.report(sums, now - since, self.core - cores)
                since, cores = now, self.core
            if now - saved > 180:
                with self.lock:
                    self.save()
                saved = now
            if self.core - judged > self.a.every:
                self.judge()
                judged = self.core
        with self.lock:
            self.save()
        for child in children:
            child.join(30)
        if not self.count[2]:
            self.judge()

    # ---- the curves

    def row(self, name, values):
        path = self.path / name
        fresh = not path.exists()
        with open(path, "a") as f:
            w = csv.writer(f)
            if fresh:
                w.writerow(values)
            w.writerow([f"{v:.4f}" if isinstance(v, float) else v for v in values.values()])
        print(
            name[:-4]
            + " "
            + " ".join(f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}" for k, v in values.items()),
            flush=True,
        )

    def report(self, sums, seconds, minutes):
        self.row(
            "log.csv",
            dict(
                core_minutes=self.core,
                time=time.strftime("%H:%M:%S"),
                step=self.step,
                rate=self.rate(),
                steps_s=sums["steps"] / seconds,
                cores=60 * minutes / seconds,
                patches_core_s=sums["patches"] / max(1e-9, 60 * minutes),
                norm=sums["norm"] / max(1, sums["steps"]),
            )
            | self.job.figures(sums),
        )

    def judge(self):
        with self.lock:
            views = self.layout.views(self.average.clone())
        self.row(
            "gate.csv",
            dict(core_minutes=self.core, time=time.strftime("%H:%M:%S"), step=self.step)
            | self.job.gate(views, self.c),
        )


def options(p):
    p.add_argument("--run")
    p.add_argument("--from", dest="start", help="what an earlier stage made: last.pt or a file of weights.py")
    p.add_argument("--kept", help="a file of weights.py: what this stage made elsewhere, to go on from")
    p.add_argument("--core-minutes", type=float, default=0, help="budget, earlier ones of this run included")
    p.add_argument(
        "--horizon",
        type=float,
        default=0,
        help="core minutes after which the rate is nothing, if not the budget",
    )
    p.add_argument("--since", type=float, default=0, help="core minutes at which the rate begins to fall")
    p.add_argument("--workers", type=int, default=2)
    p.add_argument("--parts", type=int, default=8, help="small batches in a step")
    p.add_argument("--muon", type=float, default=3e-3)
    p.add_argument("--adam", type=float, default=2e-3)
    p.add_argument("--warm", type=int, default=100)
    p.add_argument("--average", type=float, default=0.995)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--report", type=float, default=30, help="seconds between lines of the log")
    p.add_argument("--every", type=float, default=10, help="core minutes between looks at the gate")
