"""Teach the language model on glyph tokens, then give it eyes.

    python lm_first.py lm   --data shards --run run --minutes 60      language model, perfect eyes
    python lm_first.py eyes --data shards --run run --minutes 20 --vision run-a/last.pt
    python lm_first.py merge --run run --vision run-a/last.pt

Design.  Finding a label on a screen means: spell it, attend to the image tokens that hold it, say
where they are.  No step of that pays off without the others, so next-token loss alone discovers it
late.  Two things make it quick.  The screens are glyph tokens (glyphs.py), small at first, so that
an optimisation step costs a tenth.  And the weights of a few heads have a loss of their own, the
guides: attention is told where the letter comes from, and what is left to learn is easy.

The curriculum climbs when points and text are right often enough: windows of a few tokens, larger
ones, then the pages of the shards with all their turns, mixed with some windows.

`eyes` then trains ViT and projector until their rows are those of the glyph tokens, and `merge`
writes one checkpoint that train.py continues from.

In the run directory: lm.pt, eyes.pt (written every three minutes and at SIGTERM), lm.csv.
"""
import argparse
import collections
import csv
import os
import random
import signal
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F

import data
import evaluate
import glyphs
import tokenizer
import train
import words
from data import IGNORE
from model import Pocket, shuffle2

HALF = torch.bfloat16
# image rows, tokens across, questions, longest word, screens in a batch
LEVELS = [(2, 4, 6, 5, 6), (4, 6, 8, 8, 6), (8, 10, 10, 11, 6), (16, 16, 12, 11, 4)]
CLIMB = (0.5, 0.75)                     # of points and of text, to go on to the next level


# ---- losses ---------------------------------------------------------------------------------

class Guides:
    """Keeps queries and keys of the guided layers while the model runs."""

    def __init__(self, model):
        self.kept = {}
        for layer in {l for l, _ in glyphs.POINTERS.values()}:
            mixer = model.language_model.backbone.layers[layer].mixer
            for name in ("q_proj", "k_proj"):
                getattr(mixer, name).register_forward_hook(self._keeper(layer, name))
        self.group = mixer.h // mixer.kv
        self.width = mixer.p

    def _keeper(self, layer, name):
        def keep(_, __, out):
            self.kept[layer, name] = out
        return keep

    def loss(self, guides):
        """Mean cross entropy of the guided weights per slot, and how often the largest weight
        is on a right token."""
        losses, seen = [], {}
        for slot, (layer, heads) in glyphs.POINTERS.items():
            at, want = guides[slot]
            if at.shape[1] == 0:
                continue
            q, k = self.kept[layer, "q_proj"], self.kept[layer, "k_proj"]
            B, T = q.shape[:2]
            own = slice(heads[0] * self.width, (heads[-1] + 1) * self.width)
            q = q[..., own].gather(1, at[..., None].expand(-1, -1, own.stop - own.start))
            q = q.view(B, -1, len(heads), self.width).transpose(1, 2)
            kv = heads[0] // self.group * self.width
            k = k[..., kv:kv + self.width]
            s = (q @ k[:, None].transpose(-1, -2)).float() * self.width ** -0.5
            T0 = want.shape[2]
            late = torch.arange(T) > at[..., None]
            logp = s.masked_fill(late[:, None], -1e9).log_softmax(-1)[..., :T0]
            there = want.sum(-1) > 0
            n = there.sum().clamp_min(1)
            losses.append(-(want[:, None] * logp).sum() / (n * len(heads)))
            best = logp.argmax(-1)
            hit = want[:, None].expand(-1, len(heads), -1, -1).gather(-1, best[..., None])[..., 0] > 0
            seen["guide" + "mst"[slot]] = ((hit & there[:, None]).sum(), n * len(heads))
        return sum(losses), seen


class Places(torch.nn.Module):
    """Training only: what the stream should know of places on its way.  After layer 3 a label's
    letter knows the cell that holds it; after layer 5 the tokens up to <at> and x know the point."""
    LAYERS = (3, 5)

    def __init__(self, model):
        super().__init__()
        d = model.shape["lm"]["hidden"]
        self.heads = torch.nn.ModuleList(torch.nn.Linear(d, 16 + n) for n in (32, 64))
        self.norm = torch.nn.LayerNorm(d)
        self.kept = {}
        for stage, layer in enumerate(self.LAYERS):
            model.language_model.backbone.layers[layer].register_forward_hook(self._keeper(stage))

    def _keeper(self, stage):
        def keep(_, __, out):
            self.kept[stage] = out
        return keep

    def loss(self, spots):
        total, seen = 0, {}
        for stage, s in enumerate(spots):
            if not len(s):
                continue
            b, t, r, c = s.T
            out = self.heads[stage](self.norm(self.kept[stage][b, t]))
            y, x = out[:, :16], out[:, 16:]
            total = total + F.cross_entropy(y, r) + F.cross_entropy(x, c, label_smoothing=0.05)
            near = (x.argmax(-1) - c).abs() <= 1
            seen["xy"[0] + str(stage)] = (near.sum(), len(s))
            seen["xy"[1] + str(stage)] = ((y.argmax(-1) == r).sum(), len(s))
        return total, seen


# ---- batches --------------------------------------------------------------------------------

class Source:
    """Batches of windows at a level, and of pages at the last."""

    def __init__(self, a, seed):
        self.rng = random.Random(seed)
        self.pool = glyphs.word_pool(words.Lexicon(self.rng))
        self.pages, self.queue, self.ready, self.a = a.data, [], [], a

    def windows(self, level):
        rows, across, questions, longest, batch = LEVELS[level]
        return glyphs.collate([glyphs.small_screen(self.rng, self.pool, rows, across, questions, longest)
                               for _ in range(batch)])

    def _page(self):
        if not self.queue:
            self.queue = [p for ps in data.list_pages(self.pages).values() for p in ps]
            self.rng.shuffle(self.queue)
        page = self.queue.pop()
        r = page.record()
        if r["kind"] == "text" and self.rng.random() < self.a.spare:
            return self._page()
        return r, glyphs.lay(self.fewer(r["turns"]), r["cells"][0]), page

    def fewer(self, turns):
        """The turn in use and what came before it, and `--questions` of the others, one a reading."""
        first = next(i for i, t in enumerate(turns) if t["loss"])
        rest = turns[first + 1:]
        self.rng.shuffle(rest)
        reads = [t for t in rest if t["u"].startswith("Read row")][:1]
        rest = reads + [t for t in rest if not t["u"].startswith("Read row")]
        return turns[:first + 1] + rest[:self.a.questions]

    def shard_pages(self):
        if not self.ready:
            some = sorted((self._page() for _ in range(16 * self.a.batch)), key=lambda q: len(q[1].ids))
            self.ready = [some[i:i + self.a.batch] for i in range(0, len(some), self.a.batch)]
            self.rng.shuffle(self.ready)
        return page_batch(self.ready.pop())

    def next(self, level):
        if level < len(LEVELS):
            return self.windows(level if self.rng.random() < 0.8 else self.rng.randint(0, level))
        return self.windows(2) if self.rng.random() < self.a.windows else self.shard_pages()


def page_batch(group):
    look = [glyphs.looks(page.pixels(r["images"][0])) for r, _, page in group]
    return glyphs.collate([s for _, s, _ in group], look)


def held_out(directories, n):
    pages = [p for ps in data.list_pages(directories).values() for p in ps]
    random.Random(1).shuffle(pages)
    out = []
    for p in pages[:n]:
        r = p.record()
        out.append((r, glyphs.lay(r["turns"], r["cells"][0], plan=False), p))
    return sorted(out, key=lambda q: len(q[1].ids))


@torch.no_grad()
def score(model, eyes, pages, batch=8):
    """The table of evaluate.score, with glyph tokens for eyes."""
    table = collections.defaultdict(lambda: [0, 0, 0, 0])
    for i in range(0, len(pages), batch):
        group = pages[i:i + batch]
        b = page_batch(group)
        f = model.language_model(model.embed(b["ids"], eyes(b["chars"], b["place"], b["look"])), HALF)
        for j, (r, _, _) in enumerate(group):
            at = torch.where(b["target"][j] != IGNORE)[0]
            guess, target = model.logits(f[j, at]).float().argmax(-1), b["target"][j, at]
            evaluate.tally(table, r, target, guess)
    return table


# ---- the language model ---------------------------------------------------------------------

class LanguageRun:
    def __init__(self, a, stop):
        self.a, self.stop, self.step, self.minutes, self.level = a, stop, 0, 0.0, a.level
        self.last = os.path.join(a.run, "lm.pt")
        os.makedirs(a.run, exist_ok=True)
        saved = None
        if os.path.exists(self.last):
            saved = torch.load(self.last, map_location="cpu", weights_only=True)
        self.model = Pocket(**saved["shape"]) if saved else Pocket()
        if not saved:
            start_alike(self.model)
        self.glyphs = glyphs.Glyphs(self.model.language_model.backbone.embeddings.weight)
        if saved:
            self.model.load_state_dict(saved["model"])
            self.glyphs.load_state_dict(saved["glyphs"])
            self.step, self.minutes = saved["step"], saved["minutes"]
            self.level = max(a.level, saved["level"])
        if a.freeze:
            self.glyphs.requires_grad_(False)
        self.guides, self.places = Guides(self.model), Places(self.model)
        if saved:
            self.places.load_state_dict(saved["places"])
        self.trained = torch.nn.ModuleList([self.glyphs, self.places])
        lm = self.model.language_model
        if a.optim == "muon":
            self.optim = train.optimisers(lm, self.trained, a)
        else:
            self.optim = (torch.optim.AdamW([*lm.parameters(), *self.trained.parameters()], a.adam,
                                            (0.9, 0.95), weight_decay=0.0, fused=True),)
        self.parameters = [*lm.parameters(), *self.trained.parameters()]
        self.average = {n: p.detach().clone() for n, p in self.named()}
        if saved:
            self.average = saved["average"]
            for o, s in zip(self.optim, saved["optim"]):
                o.load_state_dict(s)
        self.bell = train.soft_bins(a.sigma)
        self.source = Source(a, a.seed + self.step + 1_000_003 * a.rank)
        self.held = held_out(a.heldout, a.held_pages) if a.heldout and a.rank == 0 else []
        self.recent = collections.deque(maxlen=40)

    def named(self):
        yield from self.model.language_model.named_parameters(prefix="language_model")
        yield from self.glyphs.named_parameters(prefix="glyphs")

    def save(self):
        if self.a.rank:
            return
        part = self.last + ".part"
        torch.save(dict(shape=self.model.shape, model=self.model.state_dict(),
                        glyphs=self.glyphs.state_dict(), places=self.places.state_dict(), average=self.average,
                        optim=[o.state_dict() for o in self.optim], step=self.step,
                        minutes=self.minutes, level=self.level), part)
        os.replace(part, self.last)

    def rate(self):
        left = 1 - self.minutes / self.a.minutes
        return max(0.02, min(1.0, left / self.a.decay)) * min(1.0, (self.step + 1) / self.a.warm)

    def share(self):
        """The mean gradient of all workers; the clock of the first is everybody's, so that rates agree
        and the end is one."""
        a = self.a
        if a.rank == 0 and self.minutes >= a.minutes:
            self.stop.append(1)
        if a.workers == 1:
            return
        trained = [p for p in self.parameters if p.requires_grad]
        flat = torch.cat([torch.zeros(p.numel()) if p.grad is None else p.grad.flatten() for p in trained]
                         + [torch.tensor([self.minutes if a.rank == 0 else 0.0, float(bool(self.stop))])])
        dist.all_reduce(flat)
        for p, g in zip(trained, flat[:-2].split([p.numel() for p in trained])):
            p.grad = g.view_as(p) / a.workers
        self.minutes = float(flat[-2])
        if flat[-1] and not self.stop:
            self.stop.append(1)

    def train_step(self):
        a, b = self.a, self.source.next(self.level)
        picture = self.glyphs(b["chars"], b["place"], b["look"])
        f = self.model.language_model(self.model.embed(b["ids"], picture), HALF)
        loss, seen = train.language_loss(self.model, f, b["target"], self.bell)
        if a.use and (b["use"] != IGNORE).any():
            own, more = train.language_loss(self.model, f, b["use"], self.bell)
            loss = loss + a.use * own
            seen["use"] = more["text"]
        if a.guide:
            guide, more = self.guides.loss(b["guides"])
            place, also = self.places.loss(b["spots"])
            loss, seen = loss + a.guide * (guide + place), seen | more | also
        loss.backward()
        self.share()
        norm = torch.nn.utils.clip_grad_norm_(self.parameters, 1.0)
        for o in self.optim:
            for g in o.param_groups:
                g["lr"] = (a.muon if isinstance(o, train.Muon) else a.adam) * self.rate()
            o.step()
            o.zero_grad(set_to_none=True)
        keep = min(a.average, 1 - 1 / (self.step + 2))
        for n, p in self.named():
            self.average[n].lerp_(p.detach(), 1 - keep)
        self.step += 1
        self.climb(seen)
        seen["norm"] = (norm, 1)
        return seen

    def climb(self, seen):
        if self.level >= len(LEVELS):
            return
        self.recent.append([float(v) for k in ("point", "text") for v in seen[k]])
        if len(self.recent) == self.recent.maxlen:
            p, pn, t, tn = map(sum, zip(*self.recent))
            if p / pn > CLIMB[0] and t / tn > CLIMB[1]:
                self.level += 1
                self.recent.clear()
                print(f"  level {self.level} at {self.minutes:.2f} minutes", flush=True)

    def evaluate(self):
        kept = {n: p.detach().clone() for n, p in self.named()}
        for n, p in self.named():
            p.data.copy_(self.average[n])
        table = score(self.model, self.glyphs, self.held)
        for n, p in self.named():
            p.data.copy_(kept[n])
        brief = [f"{'/'.join(k)}={w / n:.3f}:{p / n:.3f}:{t / n:.3f}"
                 for k, (n, w, p, t) in sorted(table.items()) if k[0] == "all" or k[1] == "in use"]
        print("  held-out whole:point:text  " + "  ".join(brief), flush=True)


def start_alike(model):
    """Queries start equal to the keys of their group, so that heads look for what resembles."""
    for layer in model.language_model.backbone.layers:
        if hasattr(layer.mixer, "q_proj"):
            m = layer.mixer
            k = m.k_proj.weight.data.view(m.kv, m.p, -1).repeat_interleave(m.h // m.kv, 0)
            m.q_proj.weight.data.copy_(k.reshape(m.h * m.p, -1))


# ---- the eyes -------------------------------------------------------------------------------

class EyesRun:
    """ViT and projector of a training checkpoint learn to say glyph tokens.  First the projector
    alone, on a pool of rows the ViT has already seen; then both."""
    POOL = 160

    def __init__(self, a):
        self.a, self.step, self.minutes = a, 0, 0.0
        self.last = os.path.join(a.run, "eyes.pt")
        saved = torch.load(self.last if os.path.exists(self.last) else a.vision,
                           map_location="cpu", weights_only=True)
        self.model = Pocket(**saved["shape"])
        own = {k: v for k, v in saved["model"].items() if not k.startswith("language_model")}
        self.model.load_state_dict(own, strict=False)
        self.head = train.ReadingHead(4 * self.model.shape["vit"]["hidden"], train.OFFSETS, data.CLASSES)
        self.head.load_state_dict(saved["head"])
        lm = torch.load(os.path.join(a.run, "lm.pt"), map_location="cpu", weights_only=True)
        self.glyphs = glyphs.Glyphs(self.model.language_model.backbone.embeddings.weight)
        self.glyphs.load_state_dict(lm["glyphs"])
        self.glyphs.requires_grad_(False)
        if "minutes_eyes" in saved:
            self.step, self.minutes = saved["step"], saved["minutes_eyes"]
        else:
            torch.nn.init.normal_(self.model.mlp1[3].weight, std=0.3 * self.model.shape["projector"] ** -0.5)
        vision = [*self.model.vit.parameters(), *self.head.parameters()]
        self.optim = torch.optim.AdamW([dict(params=self.model.mlp1.parameters(), full=a.adam),
                                        dict(params=vision, full=0.3 * a.adam)],
                                       a.adam, (0.9, 0.95), weight_decay=0.0, fused=True)
        self.rng, self.queue, self.pool = random.Random(a.seed + self.step), [], []

    def pages(self, n):
        """-> patches, glyph tokens [n,256,D], characters"""
        if len(self.queue) < n:
            self.queue = [p for ps in data.list_pages(self.a.data).values() for p in ps]
            self.rng.shuffle(self.queue)
        patches, rows, chars = [], [], []
        for page in (self.queue.pop() for _ in range(n)):
            r = page.record()
            rgb = page.pixels(r["images"][0])
            c = torch.from_numpy(glyphs.characters(r["cells"][0]))
            rows.append(self.glyphs(c, torch.arange(len(c)), torch.from_numpy(glyphs.looks(rgb))))
            patches.append(data.patches_of(rgb))
            chars.append(torch.from_numpy(data.cell_targets(r["cells"][0], train.OFFSETS)))
        return torch.stack(patches).to(HALF), torch.stack(rows), torch.stack(chars)

    def distance(self, said, want):
        """Squared error as a share of the tokens' variance."""
        return (said - want).square().mean() / want.var((0, 1)).mean()

    def project(self, rows):
        return self.model.project(rows, HALF)

    def update(self, loss):
        loss.backward()
        left = 1 - self.minutes / self.a.minutes
        for g in self.optim.param_groups:
            g["lr"] = g["full"] * max(0.02, min(1.0, left / self.a.decay)) * min(1.0, (self.step + 1) / 30)
        torch.nn.utils.clip_grad_norm_([p for g in self.optim.param_groups for p in g["params"]], 1.0)
        self.optim.step()
        self.optim.zero_grad(set_to_none=True)
        self.step += 1

    def projector_step(self):
        """Four new pages into the pool, then some steps on all that is there."""
        with torch.no_grad():
            patches, want, _ = self.pages(4)
            self.pool += zip(self.model.see(patches).to(HALF), want)
        self.pool = self.pool[-self.POOL:]
        for _ in range(6):
            some = self.rng.sample(self.pool, min(4, len(self.pool)))
            rows, want = (torch.stack(t) for t in zip(*some))
            loss = self.distance(self.project(rows), want)
            self.update(loss)
        return dict(error=loss)

    def joint_step(self):
        patches, want, chars = self.pages(4)
        rows = self.model.see(patches)
        loss = self.distance(self.project(rows), want)
        read, seen = train.reading_loss(self.head, shuffle2(rows), chars, self.a.context)
        self.update(loss + 0.1 * read)
        return dict(error=loss, char=seen["char"][0] / seen["char"][1])

    def save(self):
        torch.save(dict(shape=self.model.shape, model=self.model.state_dict(), head=self.head.state_dict(),
                        step=self.step, minutes_eyes=self.minutes), self.last + ".part")
        os.replace(self.last + ".part", self.last)


def train_eyes(a, stop):
    run = EyesRun(a)
    clock = saved = time.time()
    recent = collections.defaultdict(list)
    count = 0
    while run.minutes < a.minutes and not stop:
        seen = run.projector_step() if run.minutes < a.frozen else run.joint_step()
        for k, v in seen.items():
            recent[k].append(float(v.detach()))
        now = time.time()
        run.minutes += (now - clock) / 60
        clock, count = now, count + 1
        if count % 20 == 0:
            print(f"min {run.minutes:.2f} step {run.step} "
                  + " ".join(f"{k} {sum(v) / len(v):.4f}" for k, v in recent.items()), flush=True)
            recent.clear()
        if now - saved > 180:
            run.save()
            saved = now
    run.save()


def merge(a):
    """lm.pt (its average) and eyes.pt -> last.pt, which train.py continues from."""
    lm = torch.load(os.path.join(a.run, "lm.pt"), map_location="cpu", weights_only=True)
    eyes = torch.load(os.path.join(a.run, "eyes.pt"), map_location="cpu", weights_only=True)
    state = dict(eyes["model"])
    state |= {n: v for n, v in lm["average"].items() if n.startswith("language_model")}
    model = Pocket(**eyes["shape"])
    model.load_state_dict(state)
    torch.save(dict(shape=model.shape, model=model.state_dict(), head=eyes["head"]),
               os.path.join(a.run, "merged.pt"))
    return model


NAMES = ["lm", "text", "x", "y", "point", "guidem", "guides", "guidet", "x0", "y0", "x1", "y1", "use", "norm"]


def report(run, sums, tokens, seconds):
    mean = {k: float(s) / max(1, float(n)) for k, (s, n) in sums.items()}
    row = [f"{run.minutes:.2f}", run.step, run.level, f"{tokens / seconds:.1f}"]
    row += [f"{mean[k]:.3f}" if k in mean else "" for k in NAMES]
    with open(os.path.join(run.a.run, "lm.csv"), "a") as f:
        csv.writer(f).writerow(row)
    print(" ".join(f"{k} {v}" for k, v in zip(["min", "step", "level", "steps/s"] + NAMES, row)), flush=True)


def train_language(a, stop):
    run = LanguageRun(a, stop)
    clock = saved = since = time.time()
    judged, sums, count = run.minutes, {}, 0
    while not stop:                      # all workers see the end in the same step
        for k, (s, n) in run.train_step().items():
            old = sums.get(k, (0, 0))
            sums[k] = (old[0] + float(s), old[1] + float(n))
        count += 1
        now = time.time()
        run.minutes += (now - clock) / 60
        clock = now
        if run.step % 25 == 0 and a.rank == 0:
            report(run, sums, count, now - since)
            sums, count, since = {}, 0, now
        if now - saved > 180:
            run.save()
            saved = now
        if run.held and run.level >= len(LEVELS) and run.minutes - judged > a.every:
            run.evaluate()
            judged, clock = run.minutes, time.time()
            since = clock
    run.save()
    if run.held and run.minutes >= a.minutes:
        run.evaluate()


def start_workers(a):
    """-> the rank of this process; they meet at a file of the run directory and talk over loopback."""
    rank, meeting = 0, os.path.join(os.path.abspath(a.run), "meeting")
    if a.workers > 1:
        os.makedirs(a.run, exist_ok=True)
        if os.path.exists(meeting):
            os.remove(meeting)
        for r in range(1, a.workers):
            if os.fork() == 0:
                rank = r
                break
        os.environ["GLOO_SOCKET_IFNAME"] = "lo"
        dist.init_process_group("gloo", init_method="file://" + meeting, rank=rank, world_size=a.workers)
    return rank


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("part", choices=("lm", "eyes", "merge"))
    p.add_argument("--data", nargs="+", default=[])
    p.add_argument("--heldout", nargs="*", default=[])
    p.add_argument("--run", required=True)
    p.add_argument("--minutes", type=float, default=60)
    p.add_argument("--vision", help="training checkpoint whose ViT and reading head are taken")
    p.add_argument("--frozen", type=float, default=3, help="minutes of the projector alone")
    p.add_argument("--context", type=float, default=1)
    p.add_argument("--freeze", action="store_true", help="leave the glyph tables as they are")
    p.add_argument("--optim", default="adam", choices=("adam", "muon"))
    p.add_argument("--muon", type=float, default=4e-3)
    p.add_argument("--adam", type=float, default=1.5e-3)
    p.add_argument("--guide", type=float, default=0.5)
    p.add_argument("--level", type=int, default=0)
    p.add_argument("--batch", type=int, default=4, help="pages in a batch of one worker")
    p.add_argument("--workers", type=int, default=1, help="processes that share a step, one core each")
    p.add_argument("--windows", type=float, default=0.1, help="share of windows among pages")
    p.add_argument("--use", type=float, default=0.5, help="extra weight of the turn in use")
    p.add_argument("--questions", type=int, default=5, help="questions about a page beside it")
    p.add_argument("--spare", type=float, default=0.7, help="share of text pages left out")
    p.add_argument("--warm", type=int, default=30)
    p.add_argument("--decay", type=float, default=0.4)
    p.add_argument("--sigma", type=float, default=0.7)
    p.add_argument("--average", type=float, default=0.98)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--held-pages", type=int, default=64)
    p.add_argument("--every", type=float, default=5)
    a = p.parse_args()
    a.rank = start_workers(a)
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    torch.manual_seed(a.seed)
    stop = []
    for s in (signal.SIGTERM, signal.SIGINT):
        signal.signal(s, lambda *_: stop.append(1))
    {"lm": train_language, "eyes": train_eyes, "merge": lambda a, _: merge(a)}[a.part](a, stop)


if __name__ == "__main__":
    main()
