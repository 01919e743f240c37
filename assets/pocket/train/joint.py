"""Eyes and language model at once, on a graphics card: minutes there are days of two processor cores.

    python joint.py --packs DIR --out DIR --eyes ../wide/eyes.safetensors --language ../wide/language20.safetensors \
        --layers 20 --seconds 240

Design.  Nothing is cached: a batch is whole pictures of one size (joint_screens.py), seen by the tower and read by the
language model, and one loss goes back through both (joint_passes.py).  A step has several batches.  The rate is warm for a
few steps and falls along a cosine of seconds.  Screens whose file begins with "gate" are only judged.  Without a card
(--device cpu) it is for trying.

--out gets eyes.safetensors and language.safetensors (weights.py; more than 15 MB in parts) and log.jsonl.
"""

import argparse
import collections
import gc
import itertools
import json
import math
import os
import pathlib
import time

import torch
from torch import nn

import conversations
import elements
import joint_passes
import language
import runner
import tower
import weights
from joint_screens import AS_THEY_ARE, Album, Screens, Stream

PART = 15 << 20  # bytes of a file, at most
MATRIX = {"eyes": elements.Elements.is_matrix, "language": language.Job.is_matrix}
TRAINED = {"eyes": lambda name: True, "language": lambda name: "norm" not in name and name != "mlp1.0.weight"}


def take(named, saved):
    """Parameters of the same name from a kept run; those that are new begin by chance."""
    old = tower.Layout({n: tuple(s) for n, s in saved["names"].items()}).views(saved["average"])
    with torch.no_grad():
        for n, p in named.items():
            if n in old:
                p.copy_(old[n].view(p.shape))
            elif "norm" not in n and p.ndim == 2:
                nn.init.normal_(p, std=p.shape[1] ** -0.5)
                if n.endswith(("out_proj.weight", "o_proj.weight", "down_proj.weight")):
                    p.zero_()  # a sub-layer that is new changes nothing at first


def settled(trained, muon, adam, is_matrix):
    """The optimiser of these parameters, which get gradients that stay where they are."""
    for p in trained.values():
        p.grad = torch.zeros_like(p)
    return runner.Optimiser({n: p.data for n, p in trained.items()}, {n: p.grad for n, p in trained.items()}, muon, adam, is_matrix)


def moved(batch, device):
    put = lambda v: v.to(device, non_blocking=True) if isinstance(v, torch.Tensor) else v
    out = {k: {s: put(t) for s, t in v.items()} if isinstance(v, dict) else put(v) for k, v in batch.items()}
    return out | {"ids": out["ids"].long()}


@torch.no_grad()
def judge(joint, screens, album, device, most):
    """Counts of whole answers by world and page, every token before given."""
    screens.seed("gate")
    tables = collections.defaultdict(collections.Counter)
    for size in screens.sizes:
        screens.choose(size)
        for _ in range(max(1, round(most * len(screens.numbers) / len(screens.about) / 8))):
            part = [screens.draw() for _ in range(8)]
            batch = moved(screens.batch(part), device)
            batch["colours"] = torch.tensor([AS_THEY_ARE] * 8, device=device)
            for (number, s), guess in zip(part, joint.guess(album.patches(batch), batch).tolist()):
                tables[screens.about[number]["world"]].update(conversations.whole_answers(s, guess))
    return tables


def in_parts(path):
    """A file of more than PART as several, as some ways back take no larger ones."""
    data = pathlib.Path(path).read_bytes()
    if len(data) > PART:
        for k in range(0, len(data), PART):
            pathlib.Path(f"{path}.{k // PART}").write_bytes(data[k : k + PART])
        os.remove(path)


class Run:
    """From the packs to the two files.  Tables are by "eyes" and "language"."""

    def __init__(self, a):
        self.a, self.begun, self.done, self.device = a, time.time(), 0, torch.device(a.device)
        os.makedirs(a.out, exist_ok=True)
        self.log = open(os.path.join(a.out, "log.jsonl"), "a")
        torch.multiprocessing.set_sharing_strategy("file_system")
        torch.backends.cuda.matmul.allow_tf32 = True
        self._screens()
        self._models()
        if a.compile:
            first = moved(self.first, self.device)
            joint_passes.compiled(self.joint, self.album.patches, first, self.gradients, a.reading, self.tell)

    def tell(self, **what):
        line = json.dumps({"at": round(time.time() - self.begun, 1)} | what)
        print(line, flush=True)
        self.log.write(line + "\n")
        self.log.flush()

    def _screens(self):
        files = sorted(pathlib.Path(self.a.packs).glob("*.pack"))
        gate = [f for f in files if f.name.startswith("gate")]
        screens, self.gate = Screens([f for f in files if f not in gate]), Screens(gate, gate=True)
        self.tell(screens=len(screens.about), gate=len(self.gate.about), sizes={str(s): len(n) for s, n in screens.sizes.items()},
                  worlds=collections.Counter(x["world"] for x in screens.about))
        gc.freeze()  # a collection in a worker would write to, and so copy, all that it shares with this process
        stream, on_card = Stream(screens, self.a), self.a.device == "cuda"
        loader = iter(torch.utils.data.DataLoader(stream, batch_size=None, num_workers=self.a.workers, pin_memory=on_card,
                                                  prefetch_factor=6 if self.a.workers else None))
        self.first = next(loader)  # workers are forked before the card is touched
        self.source = itertools.chain([self.first], loader)
        half = joint_passes.products(self.device)
        self.album, self.judged = (Album(s, self.device, 8, half) for s in (screens, self.gate))
        self.tell(loaded=True)

    def _models(self):
        a = self.a
        self.saved = {"eyes": weights.load(a.eyes), "language": weights.load(a.language)}
        shape = dict(language.SHAPE, lm=dict(language.SHAPE["lm"], pattern=("M-*-" * 8)[: a.layers]))
        self.joint = joint_passes.Joint(self.saved["eyes"]["shape"], shape, language.spread(0.5)).to(self.device)
        self.named = {"eyes": self.joint.see.named(), "language": self.joint.told()}
        for w, names in self.named.items():
            take(names, self.saved[w])
            for n, p in names.items():
                p.requires_grad_(TRAINED[w](n))
        self.saved["language"]["shape"] = shape
        trained = {w: {n: p for n, p in names.items() if p.requires_grad} for w, names in self.named.items()}
        gain = {"eyes": a.gentle, "language": 1.0}
        self.optimisers = {w: settled(trained[w], a.muon * gain[w], a.adam * gain[w], MATRIX[w]) for w in trained}
        self.gradients = [p.grad for names in trained.values() for p in names.values()]
        self.average = {w: {n: p.data.clone() for n, p in names.items()} for w, names in self.named.items()}
        self.pairs = [(self.average[w][n], p.data) for w in trained for n, p in trained[w].items()]
        self.tell(parameters={w: sum(p.numel() for p in names.values()) for w, names in self.named.items()})

    # ---- steps

    def train(self):
        self.start = stored = time.time()
        self.until = self.begun + self.a.seconds
        self._count_anew()
        while time.time() < self.until:
            for _ in range(self.a.parts):
                self._batch()
            self._step()
            if time.time() - self.since > 10 and not self._report():
                break
            if time.time() - stored > 90:
                self.store()
                stored = time.time()
        self.store()
        self.tell(stored=True, steps=self.done)

    def _count_anew(self):
        self.sums, self.seen, self.waited, self.since = {}, 0, 0.0, time.time()

    def _batch(self):
        """Adds a batch's gradients to those of the step."""
        asked = time.time()
        batch = next(self.source)
        self.waited += time.time() - asked
        batch = moved(batch, self.device)
        loss, eyes, counts = self.joint(self.album.patches(batch), batch)
        ((loss + self.a.reading * eyes) / self.a.parts).backward()
        for k, v in counts.items():
            self.sums[k] = self.sums[k] + v if k in self.sums else v
        self.seen += len(batch["numbers"])
        self.eyes_loss = eyes.detach()

    def _step(self):
        share = (time.time() - self.start) / (self.until - self.start)
        self.done += 1
        self.rate = min(1.0, self.done / 60) * (0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * min(1.0, share))))
        for optimiser in self.optimisers.values():
            rest = [g for _, g in optimiser.rest]
            norm = torch.stack(torch._foreach_norm(rest)).norm()
            torch._foreach_mul_(rest, (1.0 / (norm + 1e-6)).clamp(max=1.0))
            optimiser.step(self.rate, self.done)
        torch._foreach_zero_(self.gradients)
        average, now = zip(*self.pairs)
        torch._foreach_lerp_(average, now, 1 - min(self.a.average, 1 - 1 / (self.done + 1)))

    def _report(self):
        """A line about the steps since the last one; gives whether there is sense in more."""
        s = {k: float(v) for k, v in self.sums.items()}
        share = lambda x, y: round(s[x] / max(1, s[y]), 4)
        speed = round(self.seen / (time.time() - self.since))
        memory = round(torch.cuda.max_memory_allocated() / 2**30, 1) if self.a.device == "cuda" else 0
        self.tell(step=self.done, rate=round(self.rate, 3), sequences_s=speed, waited=round(self.waited, 1),
                  lm=share("lm", "tokens"), said=share("said", "tokens"), placed=share("placed", "places"),
                  read=share("read", "letters"), kind=share("kind", "kinds"), aimed=share("aimed", "aims"),
                  hints=[share(f"hint{k}", f"hints{k}") for k in language.TOLD],
                  eyes=round(float(self.eyes_loss), 3), memory=memory)
        self._count_anew()
        return math.isfinite(s["lm"])

    # ---- what comes of it

    def store(self):
        """The averages so far: as runs in --work, and kept in --out."""
        seconds = round(time.time() - self.start)
        for what, names in self.named.items():
            layout = tower.Layout({n: tuple(p.shape) for n, p in names.items()})
            flat, saved = torch.zeros(layout.size), self.saved[what]
            for n, v in layout.views(flat).items():
                v.copy_(self.average[what][n])
            run, out = os.path.join(self.a.work, what), os.path.join(self.a.out, f"{what}.safetensors")
            os.makedirs(run, exist_ok=True)
            torch.save(dict(shape=saved["shape"], average=flat, names={n: list(s) for n, s in layout.shapes.items()},
                            step=saved["step"] + self.done, core_minutes=saved["core_minutes"]), os.path.join(run, "last.pt"))
            before = saved.get("figures", {}).get("gpu_seconds", 0)
            weights.keep(run, out, {"held": [], "gpu_seconds": before + seconds})
            in_parts(out)

    def judge(self):
        """Shares of whole answers of the averages, world by world."""
        for w, names in self.named.items():
            for n, p in names.items():
                p.data.copy_(self.average[w][n])
        for world, t in judge(self.joint, self.gate, self.judged, self.device, self.a.judged).items():
            names = sorted({k.rsplit(" ", 1)[0] for k in t} - {"all"})
            whole = round(t["all right"] / max(1, t["all n"]), 3)
            self.tell(world=world, whole=whole, n=t["all n"], by={n: f"{t[n + ' right']}/{t[n + ' n']}" for n in names})


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--packs", required=True)
    p.add_argument("--out", required=True)
    p.add_argument("--work", default="/tmp/joint")
    p.add_argument("--eyes", required=True)
    p.add_argument("--language", required=True)
    p.add_argument("--layers", type=int, default=20)
    p.add_argument("--seconds", type=float, default=240, help="until the last step; judging comes on top")
    p.add_argument("--batch", type=int, default=64)
    p.add_argument("--pools", type=int, default=4)
    p.add_argument("--parts", type=int, default=3, help="batches in a step")
    p.add_argument("--workers", type=int, default=14)
    p.add_argument("--muon", type=float, default=2e-3)
    p.add_argument("--adam", type=float, default=1.3e-3)
    p.add_argument("--gentle", type=float, default=0.5, help="the eyes' rate in terms of the language model's")
    p.add_argument("--reading", type=float, default=0.5, help="weight of what the eyes are asked")
    p.add_argument("--average", type=float, default=0.99)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--device", default="cuda")
    p.add_argument("--compile", action="store_true", help="sub-layers by torch.compile: a minute more at the beginning")
    p.add_argument("--judged", type=int, default=1200)
    run = Run(p.parse_args())
    run.train()
    run.judge()
    os._exit(0)  # the workers draw for ever


if __name__ == "__main__":
    main()
