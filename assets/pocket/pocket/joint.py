"""Trains vision encoder and language model end to end, on a GPU.

    python -m pocket joint --packs DIR --out DIR [--seconds 264]

Batches are pictures of one size with a conversation each (batches.py); one loss trains both networks
(joint_model.py). The learning rate rises over 60 steps and falls along a cosine of the seconds. Files of
--packs whose name begins with "heldout" are only evaluated. Writes eyes.safetensors, language.safetensors
(weights.py) and log.jsonl to --out.

On an H200 620 to 890 conversations per second; on two CPU cores with AVX2 about 0.7, so a CPU is for trying
only.
"""

import collections
import gc
import itertools
import json
import os
import pathlib
import time

import torch

from . import KEPT, conversations, language, tower, weights
from .batches import UNCHANGED, Album, Screens, Stream
from .joint_model import WHERE, Joint, compile_passes
from .optimizer import Optimizer, rate

WARM = 60  # steps until the full learning rate
NOT_MUON = ("embeddings", "lm_head", "conv1d", WHERE, "head.", "prefix")  # parts of names
PROJECTOR = 512
BATCH, PARTS = 64, 2  # conversations of a batch / batches of a step
MUON, ADAM, EYES_RATE = 2e-3, 1.3e-3, 0.5  # learning rates / factor of them for the encoder
READING = 0.5  # weight of the encoder's own loss
AVERAGE = 0.99  # decay of the running average per step
EVALUATED = 1200  # held-out conversations


def moved(batch, device):
    """Returns a batch with its tensors on a device."""

    def put(v):
        if isinstance(v, dict):
            return {k: put(t) for k, t in v.items()}
        return v.to(device, non_blocking=True) if isinstance(v, torch.Tensor) else v

    return put(batch)


def load(device, dt):
    """Returns (model, {"eyes": saved file, "language": saved file}) with the saved parameters."""
    saved = {"eyes": weights.load(KEPT / "eyes.safetensors")}
    saved |= {"language": weights.load(KEPT / "language20.safetensors")}
    joint = Joint(saved["eyes"]["shape"], language.SHAPE, PROJECTOR, dt).to(device)
    for part, names in joint.named().items():
        for n, p in names.items():
            p.data.copy_(saved[part]["parameters"][n])
            # folded norms stay ones
            p.requires_grad_(part == "eyes" or ("norm" not in n and n != "mlp1.0.weight"))
    return joint, saved


@torch.no_grad()
def evaluate(joint, screens, album, device):
    """Counts correct answers on held-out screens by source and page, given correct earlier tokens."""
    screens.seed("heldout")
    tables = collections.defaultdict(collections.Counter)
    for size in screens.sizes:
        screens.choose(size)
        for _ in range(max(1, round(EVALUATED * len(screens.numbers) / len(screens.about) / 8))):
            part = [screens.draw() for _ in range(8)]
            batch = moved(screens.batch(part), device)
            batch["colours"] = torch.tensor([UNCHANGED] * 8, device=device)
            for (number, s), guess in zip(part, joint.guess(album.patches(batch), batch).tolist()):
                tables[screens.about[number]["source"]].update(conversations.whole_answers(s, guess))
    return tables


class Run:
    """One training run, from packs to kept files."""

    def __init__(self, a):
        self.a, self.begun, self.device = a, time.time(), torch.device(a.device)
        self.dt = tower.products(a.device)
        os.makedirs(a.out, exist_ok=True)
        self.log = open(os.path.join(a.out, "log.jsonl"), "a")
        torch.multiprocessing.set_sharing_strategy("file_system")
        torch.backends.cuda.matmul.allow_tf32 = True
        self._screens()
        self.joint, self.saved = load(self.device, self.dt)
        self.optimizers = {}
        for part, names in self.joint.named().items():
            gain = EYES_RATE if part == "eyes" else 1.0
            rates = MUON * gain, ADAM * gain
            self.optimizers[part] = Optimizer(
                names, *rates, lambda n: not any(s in n for s in NOT_MUON), AVERAGE, self.dt
            )
        if self.device.type == "cuda":
            first, grads = (
                moved(self.first, self.device),
                [g for o in self.optimizers.values() for g in o.grads],
            )
            self.tell(**compile_passes(self.joint, self.album.patches(first), first, grads, READING))

    def tell(self, **values):
        """Writes a line of the log."""
        line = json.dumps({"at": round(time.time() - self.begun, 1)} | values)
        print(line, flush=True)
        self.log.write(line + "\n")
        self.log.flush()

    def _screens(self):
        files = sorted(pathlib.Path(self.a.packs).glob("*.pack"))
        heldout = [f for f in files if f.name.startswith("heldout")]
        screens = Screens([f for f in files if f not in heldout])
        self.heldout = Screens(heldout, heldout=True)
        self.tell(screens=len(screens.about), heldout=len(self.heldout.about))
        gc.freeze()  # a garbage collection in a worker would copy the memory it shares with this process
        stream, gpu = Stream(screens, BATCH, self.a.seed), self.device.type == "cuda"
        options = dict(num_workers=self.a.workers, prefetch_factor=6 if self.a.workers else None)
        loader = iter(torch.utils.data.DataLoader(stream, batch_size=None, pin_memory=gpu, **options))
        self.first = next(loader)  # workers are forked before the GPU is used
        self.source = itertools.chain([self.first], loader)
        self.album, self.judged = (Album(s, self.device, 8, self.dt) for s in (screens, self.heldout))

    def train(self):
        """Trains for a.seconds; stores the averages every 90 seconds."""
        self.start = stored = self.since = time.time()
        self.sums, self.seen, steps = collections.Counter(), 0, 0
        while time.time() < self.start + self.a.seconds:
            for _ in range(PARTS):
                self._batch()
            steps += 1
            share = (time.time() - self.start) / self.a.seconds
            for optimizer in self.optimizers.values():
                optimizer.step(rate(steps, WARM, share))
            if time.time() - self.since > 10:
                self._report(steps)
            if time.time() - stored > 90:
                self.store(steps)
                stored = time.time()
        self.store(steps)
        self.tell(stored=True, steps=steps)

    def _batch(self):
        """Adds the gradient of one batch."""
        batch = moved(next(self.source), self.device)
        loss, eyes, counts = self.joint(self.album.patches(batch), batch)
        ((loss + READING * eyes) / PARTS).backward()
        for k, v in counts.items():
            self.sums[k] = self.sums[k] + v
        self.seen += len(batch["numbers"])
        self.eyes_loss = eyes.detach()

    def _report(self, steps):
        """Logs the fractions since the last report."""
        s = {k: float(v) for k, v in self.sums.items()}

        def share(x, y):
            return round(s[x] / max(1, s[y]), 4)

        pairs = dict(lm=("lm", "tokens"), said=("said", "tokens"), placed=("placed", "places"))
        pairs |= dict(read=("read", "letters"), kind=("kind", "kinds"))
        values = {k: share(*v) for k, v in pairs.items()} | {"eyes": round(float(self.eyes_loss), 3)}
        speed = round(self.seen / (time.time() - self.since), 1)
        self.tell(
            step=steps,
            conversations_s=speed,
            attended=[share(f"attended{k}", f"sources{k}") for k in range(4)],
            **values,
        )
        self.sums, self.seen, self.since = collections.Counter(), 0, time.time()

    def store(self, steps):
        """Writes the averages so far to --out."""
        for part, optimizer in self.optimizers.items():
            saved = self.saved[part]
            spent = saved["figures"].get("gpu_seconds", 0) + round(time.time() - self.start)
            figures = {"held": [], "gpu_seconds": spent}
            out = os.path.join(self.a.out, f"{part}.safetensors")
            values = {n: v.cpu() for n, v in optimizer.average.items()}
            weights.keep(out, values, saved["shape"], saved["step"] + steps, saved["core_minutes"], figures)

    def evaluate(self):
        """Logs for each source the fraction of completely correct answers, with the averaged parameters."""
        for part, names in self.joint.named().items():
            for n, p in names.items():
                p.data.copy_(self.optimizers[part].average[n])
        for source, t in evaluate(self.joint, self.heldout, self.judged, self.device).items():
            names = sorted({k.rsplit(" ", 1)[0] for k in t} - {"all"})
            by = {n: f"{t[n + ' right']}/{t[n + ' n']}" for n in names}
            self.tell(source=source, whole=round(t["all right"] / max(1, t["all n"]), 3), n=t["all n"], by=by)


def options(p):
    p.add_argument("--packs", required=True, help="directory of *.pack")
    p.add_argument("--out", required=True)
    p.add_argument("--seconds", type=float, default=264, help="training time; evaluation comes on top")
    p.add_argument("--workers", type=int, default=14, help="processes that draw conversations")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")


def run(a):
    if a.device == "cpu":
        print("joint: training on the CPU, about a thousandth of the speed of a GPU", flush=True)
    r = Run(a)
    r.train()
    r.evaluate()
    os._exit(0)  # the loader's processes draw without end
