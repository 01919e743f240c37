"""Language: the projector and the language model, on cached rows of the tower.

    python language.py --run RUN --kept ../wide/language20.safetensors --rows DIR... --gate DIR... --core-minutes 540

Design.  A sequence is one screen (its image tokens come from cache.py) with a task in use, if the screen is
of an episode, and then questions about the same picture (questions.py).  The loss is on the answers only;
the coarse half of a place is spread a little over its neighbours.  Where nothing is kept it begins with the small model that
pocket.mk makes first (--shipped), whose copying circuits took hours: its 12 sub-layers and 352 tokens stay, sub-layers follow
that change nothing at first (their way out is zero), the new tokens begin as their nearest relatives.

Where the processor has tiles the passes are stack.py's, by hand; elsewhere autograd's over `Wide`, half
as fast.  Norm weights are ones in both, see stack.fold.  Heads are told where to look, in training
only, as hints.py does it for the grid: (layer, head)
    TASK   the same letter in the user's text       PAGE   the image token that holds the letter
    POINT  the image token that holds the place, at the four tokens that say it
    MENTION  at an image token that shows part of a word which the task has: the last letter of that part, there
A linear head, in training only, says row and column of an image token from what the projector makes of it, since
otherwise letters drown them and nothing can be pointed at.
"""

import argparse
import collections
import glob
import json
import os
import pathlib
import random
import re

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

import composed
import dialect  # puts the folder above on the path
import questions
import runner
import stack
import tokenizer
import weights
import export
from kernels import PRODUCTS, TILES
from model import LM, Language, Linear, RMSNorm, ReLU2
from words import Lexicon

SHAPE = dict(lm=dict(LM, pattern="M-*-M-*-M-*-M-*-M-*-", vocab=dialect.VOCAB), vit=192, projector=512)
WHERE, MOST = "where.weight", 32  # rows and columns of image tokens, at most so many
COMPOSED = 0.6  # of the screens that stand still: asked for a step of a task first
OFTEN = {"visited": 2.0, "kiosk": 3.0, "forms": 4.0, "gtk": 2.5, "qt": 2.5, "tk": 2.5}  # how often screens of a world are taken
ASKED = 0.4  # of the kiosk's screens of which only questions are asked
TASK, PAGE, POINT, MENTION = range(4)
TOLD = {TASK: (6, 2), PAGE: (6, 0), POINT: (10, 1), MENTION: (6, 3)}
FINE, COARSE = range(dialect.FINE0, dialect.FINE0 + 8), range(tokenizer.BIN0, tokenizer.BIN0 + 64)
HALF = PRODUCTS


class Wide(nn.Module):
    """Tensor names are those of model.Pocket without its tower."""

    def __init__(self, c):
        super().__init__()
        d, out = 4 * c["vit"], c["lm"]["hidden"]
        self.language_model = Language(c["lm"])
        self.mlp1 = nn.Sequential(
            RMSNorm(d, 1e-5),
            Linear(d, c["projector"], bias=False),
            ReLU2(),
            Linear(c["projector"], out, bias=False),
        )

    def forward(self, ids, rows):
        """ids [B, T]; rows int8 [n, 768], the image tokens of the sequences one after the other."""
        self.picture = self.mlp1[3](self.mlp1[2](self.mlp1[1](self.mlp1[0](rows.to(HALF), HALF)))).float()
        h = self.language_model.backbone.embeddings(ids)
        h = h.masked_scatter((ids == tokenizer.IMAGE)[..., None], self.picture)
        return self.language_model(h, HALF)


RELATIVES = {
    "<append>": "<write>",
    "<drag>": "<click>",
    "<hover>": "<click>",
    "<double>": "<click>",
    "<missing>": "<done>",
    "<to>": "<at>",
}


def begin(model, shipped):
    """Weights from the small model where it has them."""
    old = export.load_model(shipped).language_model.state_dict()
    new = model.language_model.state_dict()
    for n, v in old.items():
        new[n][: len(v)] = v  # the vocabulary is longer, everything else as it was
    for t, relative in RELATIVES.items():
        for n in ("backbone.embeddings.weight", "lm_head.weight"):
            new[n][dialect.WIDE[t]] = old[n][dialect.WIDE[relative]] + 0.02 * torch.randn(old[n].shape[1])
    for i in range(12, len(model.language_model.backbone.layers)):
        for way_out in ("out_proj", "o_proj", "down_proj"):
            n = f"backbone.layers.{i}.mixer.{way_out}.weight"
            if n in new:
                new[n].zero_()
    model.language_model.load_state_dict(new)


# ---- sequences ----------------------------------------------------------------------------------


class Sequence:
    """Ids, where the loss is, and hints (query, slot, key), built turn by turn."""

    def __init__(self, grid):
        self.grid = grid
        self.ids, self.on, self.told, self.first, self.task = (
            list(tokenizer.HEAD),
            [0] * len(tokenizer.HEAD),
            [],
            None,
            None,
        )
        self.spans = []  # (name, first id, end, sizes of what is pointed at) of each answer

    def _add(self, ids, on):
        self.ids += ids
        self.on += [on] * len(ids)

    def token_at(self, x, y):
        r, c = self.grid
        return self.first + min(r - 1, max(0, int(y) // 32)) * c + min(c - 1, max(0, int(x) // 32))

    def user(self, u, screen=None):
        """A turn; of its picture, if it has one, `screen` knows the words."""
        self._add(list(tokenizer.USER), 0)
        before, image, after = u.partition("<image>")
        self.said = (before.encode(), len(self.ids))
        self.task = self.task or self.said
        self._add(tokenizer.text(before), 0)
        if image:
            self._add([dialect.WIDE["<img>"]], 0)
            self.first = len(self.ids)
            self._add(
                [tokenizer.IMAGE] * (self.grid[0] * self.grid[1])
                + [dialect.WIDE["</img>"]]
                + tokenizer.text(after),
                0,
            )
        self._add(tokenizer.text("\n") + list(tokenizer.REPLY), 0)
        for word, places in screen.spoken() if image and screen else ():
            self._mention(word, places)

    def _mention(self, word, places):
        """A word of the screen, if the task has it: what comes next and what is not there can then be seen."""
        for said, start in (self.task, self.said):
            found = re.search(rb"(?<!\w)" + re.escape(word.encode()) + rb"(?!\w)", said)
            if found:
                shown = {self.token_at(*p): j for j, p in enumerate(places)}
                self.told += [(token, MENTION, start + found.start() + j) for token, j in shown.items()]
                return

    def earlier(self, answer):
        self._add(dialect.spelled(answer) + list(tokenizer.CLOSE) + tokenizer.text("\n"), 0)

    def answer(self, pieces, name=""):
        """`name` is what the answer counts as in tables; by itself its first token."""
        begun, sizes = len(self.ids), [rest[2:] or [12, 12] for kind, *rest in pieces if kind == "place"]
        for kind, *rest in pieces:
            at = len(self.ids)
            if kind == "mark":
                self._add([dialect.WIDE[rest[0]]], 1)
            elif kind == "place":
                self._add(dialect.spelled(dialect.place(*rest[:2])), 1)
                self.told += [(at + j - 1, POINT, self.token_at(*rest[:2])) for j in range(4)]
            else:
                self._add(tokenizer.text(rest[0]), 1)
                if kind == "copy" and rest[0].isascii():
                    for said, start in (self.said, self.task):
                        k = said.find(rest[0].encode())
                        if k >= 0:
                            self.told += [(at + j - 1, TASK, start + k + j) for j in range(len(rest[0]))]
                            break
                    self.told += [(at + j - 1, PAGE, self.token_at(*p)) for j, p in enumerate(rest[1]) if p]
        self._add(list(tokenizer.CLOSE), 1)
        first = dialect.NAME.get(self.ids[begun], "text")
        self.spans.append((name or first, begun, len(self.ids), sizes))
        self._add(tokenizer.text("\n"), 0)


class Rows:
    """Cached screens: `draw` gives (rows, sequence)."""

    def __init__(self, folders, seed, gate=False, turns=10, beside=10, limit=1100):
        self.random, self.gate, self.limit, self.parts = random.Random(seed), gate, limit, []
        self.turns, self.beside = turns, min(turns, beside)  # questions about a screen; the same after a step of a task
        self.lex = Lexicon(self.random, gate)
        for path in sorted(p for f in folders for p in glob.glob(os.path.join(f, "*.npz"))):
            z = np.load(path)
            with open(path[:-4] + ".jsonl", "rb") as f:
                starts, at = [], 0
                for line in f:
                    starts.append(at)
                    at += len(line)
            self.parts.append(
                (
                    path[:-4],
                    np.memmap(path[:-4] + ".rows", np.int8).reshape(-1, 768),
                    z["place"],
                    z["letters"],
                    starts,
                )
            )
        self.weights = [len(p[2]) * OFTEN.get(os.path.basename(p[0]).split("-")[0], 1) for p in self.parts]

    def screen(self, part, k):
        name, rows, place, letters, starts = part
        first, r, c, l0 = place[k]
        l1 = place[k + 1][3] if k + 1 < len(place) else len(letters)
        with open(name + ".jsonl", "rb") as f:
            f.seek(starts[k])
            about = json.loads(f.readline())
        return rows[first : first + r * c], (int(r), int(c)), letters[l0:l1], about

    def step(self, s, screen, history, said, pieces, name, still=None):
        """A step of a task: what was asked, what was done, and what comes next.  `still` says of each earlier step whether
        nothing changed; where it is not known, that is said now and then."""
        before = said + "\n"
        still = still or [not self.gate and self.random.random() < 0.04 for _ in history]
        for h, same in list(zip(history, still))[-12:]:
            s.user(before + "-")
            s.earlier(h)  # what a step without an effect is told: prompts/pocket-wide.json
            before = "no change\n" if same else ""
        s.user(before + "<image>", screen)
        s.answer(pieces, name)

    def any(self):
        part = self.random.choices(self.parts, self.weights)[0]
        return part, self.random.randrange(len(part[2]))

    def some(self, turns):
        """A kiosk's conversation up to what is asked in use, and a few of the questions behind that."""
        asked = next((k + 1 for k, t in enumerate(turns) if t["loss"]), 0)
        keep = sorted(self.random.sample(range(asked, len(turns)), min(self.beside, len(turns) - asked)))
        return turns[:asked] + [turns[k] for k in keep]

    def draw(self):
        while True:
            rows, grid, letters, about = self.screen(*self.any())
            if about.get("page") == "kiosk-text" and self.random.random() > ASKED:
                continue
            screen = questions.Screen(letters, about.get("items", []), about.get("names", []))
            s, first = Sequence(grid), True
            if "action" in about:
                history, said, pieces = questions.played(about, screen)
                self.step(s, screen, history, said, pieces, about["page"], about.get("still"))
                first = False
            elif "turns" not in about and self.random.random() < COMPOSED:
                found = composed.task(screen, self.random, self.lex)
                if found:
                    said, history, pieces = found
                    if pieces == composed.END and self.random.random() < 0.5:  # the window has closed
                        rows, s.grid = self.screen(*self.any())[:2]
                        about, screen = {"turns": []}, questions.Screen(letters[:0], [], [])
                    self.step(s, screen, history, said, pieces, "task")
                    first = False
            for t in self.some(about.get("turns", [])):  # the kiosk's own conversation
                u, pieces = questions.kiosk(t, screen)
                if not t["loss"]:
                    s.user(u)
                    s.earlier(questions.text_of(pieces))
                    continue
                s.user(u + ("\n<image>" if first and "<image>" not in u else ""), screen)
                s.answer(pieces)
                first = False
            told = (screen.there(self.random, self.lex) for _ in range(2) if about.get("turns"))
            for u, pieces in filter(None, told):
                s.user(u + ("\n<image>" if first else ""), screen)
                s.answer(pieces)
                first = False
            if "turns" in about or ("action" in about and "items" not in about):
                if not first:
                    return rows, s
                continue  # nothing more is known for sure about this screen
            for u, pieces in screen.turns(self.random, self.lex, self.turns if first else self.beside):
                if len(s.ids) > self.limit:
                    break
                s.user(u + ("\n<image>" if first else ""), screen)
                s.answer(pieces)
                first = False
            if not first and len(s.ids) <= self.limit + 150:
                return rows, s


def collate(drawn):
    T = max(len(s.ids) for _, s in drawn)
    ids, target = torch.zeros(len(drawn), T, dtype=torch.long), torch.full((len(drawn), T), -100)
    for b, (_, s) in enumerate(drawn):
        i, on = torch.tensor(s.ids), torch.tensor(s.on, dtype=torch.bool)
        ids[b, : len(i)] = i
        target[b, : len(i) - 1] = torch.where(on[1:], i[1:], -100)
    told = torch.tensor([(b, *h) for b, (_, s) in enumerate(drawn) for h in s.told]).view(-1, 4)
    rows = torch.from_numpy(np.concatenate([r for r, _ in drawn]))
    return ids, rows, target, told


# ---- losses -------------------------------------------------------------------------------------


def spread(sigma):
    """[64, 64]: what is wanted for each coarse half of a place, itself mostly and a little of its neighbours."""
    i = torch.arange(64).float()
    w = torch.exp(-0.5 * ((i[:, None] - i) / sigma) ** 2)
    return w / w.sum(1, keepdim=True)


def language_loss(logits, want, spread):
    """Summed cross entropy of the answers' tokens [n], coarse places spread over their neighbours; counts."""
    logp = logits.log_softmax(-1)
    each = -logp.gather(1, want[:, None])[:, 0]
    coarse = (want >= COARSE[0]) & (want <= COARSE[-1])
    place = coarse | (want >= FINE[0])
    soft = -(spread[want[coarse] - COARSE[0]] * logp[coarse][:, COARSE[0] : COARSE[-1] + 1]).sum(-1)
    total = each[~coarse].sum() + soft.sum()
    with torch.no_grad():
        guess = logits.argmax(-1)
        hit, x = guess == want, coarse.nonzero()[:, 0].view(-1, 2)
        near = (guess[x] - want[x]).abs() <= 1
        sums = dict(
            lm=float(each.sum()),
            tokens=float(len(want)),
            text=float(hit[~place].sum()),
            texts=float((~place).sum()),
            point=float(hit[x].all(1).sum()),
            near=float(near.all(1).sum()),
            points=float(len(x)),
        )
    return total, sums


def hint_loss(seen, told):
    """Summed cross entropy of the told heads' attention; `seen(layer)` gives queries and keys [B, heads,
    T, p]."""
    total, sums = torch.zeros(()), {}
    for slot, (layer, head) in TOLD.items():
        (q, k), rows, hit = seen(layer), told[told[:, 2] == slot], 0
        for b in rows[:, 0].unique():
            query, key = rows[rows[:, 0] == b][:, 1], rows[rows[:, 0] == b][:, 3]
            w = (q[b, head, query] @ k[b, head].T).float() * q.shape[-1] ** -0.5
            w = w.masked_fill(torch.arange(w.shape[1]) > query[:, None], -1e9)
            total = total + F.cross_entropy(w, key, reduction="sum")
            hit += int((w.argmax(-1) == key).sum())
        sums |= {f"hint{slot}": float(hit), f"hints{slot}": float(len(rows))}
    return total, sums


class Job:
    scale = 1000.0
    counts = [
        "lm",
        "tokens",
        "text",
        "texts",
        "point",
        "near",
        "points",
        "hint0",
        "hint1",
        "hint2",
        "hints0",
        "hints1",
        "hints2",
        "hint3",
        "hints3",
        "placed",
        "places",
    ]

    def __init__(self, a):
        self.a = a
        self.spread = spread(a.sigma)

    def shape(self):
        pattern = SHAPE["lm"]["pattern"][: self.a.layers]
        return dict(SHAPE, lm=dict(SHAPE["lm"], pattern=pattern))

    def grown(self, c):
        """More sub-layers behind those that are there."""
        pattern = self.shape()["lm"]["pattern"]
        assert pattern.startswith(c["lm"]["pattern"]), c["lm"]["pattern"]
        return dict(c, lm=dict(c["lm"], pattern=pattern))

    @staticmethod
    def is_matrix(name):
        return not any(s in name for s in ("embeddings", "lm_head", "conv1d", WHERE))

    def shapes(self, c):
        shapes = {n: tuple(p.shape) for n, p in Wide(c).named_parameters()}
        return shapes | {WHERE: (2 * MOST, c["lm"]["hidden"])}

    def start(self, views, c):
        torch.manual_seed(self.a.seed)
        model = Wide(c)
        for n, p in model.named_parameters():
            if p.ndim == 2 and "embeddings" not in n:
                nn.init.normal_(p, std=p.shape[1] ** -0.5)
        if not (getattr(self.a, "kept", None) and os.path.exists(self.a.kept)):  # else all of it comes from there
            begin(model, self.a.shipped)
        for n, p in model.named_parameters():
            views[n].copy_(p.detach())
        nn.init.normal_(views[WHERE], std=views[WHERE].shape[1] ** -0.5)
        stack.fold(views, c["lm"]["pattern"])

    def model(self, views, c):
        model = Wide(c)
        for n, p in model.named_parameters():
            p.data = views[n]
        return model

    def passes(self, c, flat, half, grads):
        """(forward, backward, seen, picture): of the stack by hand, or of autograd."""
        if TILES:
            by_hand = stack.Stack(c, flat, half, grads)
            return by_hand.forward, by_hand.backward, by_hand.seen, lambda: by_hand.picture
        model, kept = self.model(flat, c), {}
        for n, p in model.named_parameters():
            p.grad = grads[n] if grads else None
            p.requires_grad_("norm" not in n and n != "mlp1.0.weight")

        def forward(ids, rows):
            kept["f"] = model(ids, rows)
            return kept["f"].detach()

        def seen(layer):
            return model.language_model.backbone.layers[layer].mixer.seen

        def backward(du, dpicture):
            torch.autograd.backward([kept["f"], model.picture], [du, dpicture])

        return forward, backward, seen, lambda: model.picture.detach()

    def worker(self, run, rank, grads):
        a, flat = self.a, run.layout.views(run.flat)
        half = run.layout.views(run.half if HALF == run.half.dtype else run.flat)
        forward, backward, seen, picture = self.passes(run.c, flat, half, grads)
        source = Rows(a.rows, f"{a.seed}/{run.step}/{rank}", turns=a.turns, beside=a.beside)

        def part():
            drawn = sorted((source.draw() for _ in range(a.batch)), key=lambda d: len(d[1].ids))
            sums, tokens = collections.Counter(), 0
            for k in range(0, len(drawn), a.together):  # sequences of like length together
                ids, rows, target, told = collate(drawn[k : k + a.together])
                at = target != -100
                f = forward(ids, rows)
                leaf, head = f[at].requires_grad_(), half[stack.HEAD].clone().requires_grad_()
                loss, counts = language_loss((leaf @ head.t()).float(), target[at], self.spread)
                hints, more = hint_loss(seen, told)
                loss.backward()
                if hints.requires_grad:  # not where no target of these sequences has a place
                    (a.hint * hints).backward(retain_graph=not TILES)
                du = torch.zeros_like(f)
                du[at] = leaf.grad
                grads[stack.HEAD].add_(head.grad)
                dpicture, placed = self.where(picture(), [s.grid for _, s in drawn[k : k + a.together]], flat, grads)
                backward(du, dpicture)
                sums.update(counts)
                sums.update(more)
                sums.update(placed)
                tokens += ids.numel()
            return dict(sums) | {"patches": tokens}

        return part

    def where(self, picture, grids, flat, grads):
        """(gradient of the image tokens' rows, counts) of the loss on their places."""
        x, w = picture.requires_grad_(), flat[WHERE].clone().requires_grad_()
        want = torch.cat([torch.cartesian_prod(torch.arange(r), torch.arange(c)) for r, c in grids])
        y = (F.layer_norm(x, x.shape[-1:]) @ w.t()).unflatten(-1, (2, MOST))
        loss = F.cross_entropy(y.flatten(0, -2), want.flatten(), reduction="sum")
        (self.a.where * loss).backward()
        grads[WHERE].add_(w.grad)
        return x.grad, dict(placed=float((y.argmax(-1) == want).all(-1).sum()), places=float(len(want)))

    def figures(self, s):
        share = lambda a, b: s[a] / max(1, s[b])
        return dict(
            lm=share("lm", "tokens"),
            text=share("text", "texts"),
            point=share("point", "points"),
            near=share("near", "points"),
            hint0=share("hint0", "hints0"),
            hint1=share("hint1", "hints1"),
            hint2=share("hint2", "hints2"),
            hint3=share("hint3", "hints3"),
            placed=share("placed", "places"),
        )

    @torch.no_grad()
    def gate(self, views, c):
        """Shares on held-out screens and words, every answer given the right ones before it."""
        half, out = {n: v.to(HALF) for n, v in views.items()}, {}
        forward = self.passes(c, views, half, None)[0]
        for folder in self.a.gate:
            source, sums, table = (
                Rows([folder], "gate", True, self.a.turns),
                collections.Counter(),
                collections.Counter(),
            )
            if not source.parts:
                continue
            for _ in range(self.a.gate_screens // 4):
                drawn = [source.draw() for _ in range(4)]
                ids, rows, target, _ = collate(drawn)
                at, f = target != -100, forward(ids, rows)
                sums.update(language_loss((f[at] @ half[stack.HEAD].t()).float(), target[at], self.spread)[1])
                for b, (_, s) in enumerate(drawn):
                    table.update(
                        whole_answers(s, (f[b, : len(s.ids)] @ half[stack.HEAD].t()).argmax(-1).tolist())
                    )
            name = pathlib.Path(folder).name
            out |= {
                f"{name}_{k}": v
                for k, v in self.figures(collections.defaultdict(float, sums)).items()
                if not k.startswith(("hint", "placed"))
            }
            out[f"{name}_whole"] = table["all right"] / max(1, table["all n"])
            self.tables = getattr(self, "tables", {}) | {name: table}
        return out


def whole_answers(s, guess):
    """Counts by name: the answers of a sequence of which greedy decoding would have written every token, a
    place
    counting as right when it lies on what is pointed at.  `guess[i]` follows id i."""
    out = collections.Counter()
    for name, begun, end, sizes in s.spans:
        right, k, at = True, begun, 0
        while k < end and right:
            if COARSE[0] <= s.ids[k] <= COARSE[-1] and k + 3 < end and s.ids[k + 1] >= FINE[0]:
                want, got = (
                    dialect.point(dialect.decode(x)) for x in (s.ids[k : k + 4], guess[k - 1 : k + 3])
                )
                w, h = sizes[at]
                right = (
                    got is not None
                    and abs(got[0] - want[0]) <= max(6, w / 2)
                    and abs(got[1] - want[1]) <= max(6, h / 2)
                )
                k, at = k + 4, at + 1
            else:
                right, k = guess[k - 1] == s.ids[k], k + 1
        for key in (name, "all"):
            out.update({f"{key} n": 1, f"{key} right": int(right)})
    return out


def table(a):
    """The shares of whole answers of a run, by page or kind of answer."""
    saved = weights.load(a.table)
    job = Job(a)
    job.gate(
        runner.tower.Layout({n: tuple(s) for n, s in saved["names"].items()}).views(saved["average"]),
        saved["shape"],
    )
    print(f"{a.table}: {saved['core_minutes']:.1f} core minutes, step {saved['step']}")
    for folder, t in job.tables.items():
        print(folder)
        for name in sorted({k.rsplit(" ", 1)[0] for k in t}, key=lambda n: -t[f"{n} right"] / t[f"{n} n"]):
            print(f"    {name:32} {t[f'{name} n']:5} {t[f'{name} right'] / t[f'{name} n']:.3f}")
    return job.tables


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    runner.options(p)
    p.add_argument("--shipped", help="the model of one theme, to begin with where nothing is kept")
    p.add_argument("--rows", nargs="*", default=[])
    p.add_argument("--gate", nargs="*", default=[])
    p.add_argument("--gate-screens", type=int, default=48)
    p.add_argument("--layers", type=int, default=20, choices=(12, 16, 20), help="sub-layers")
    p.add_argument("--batch", type=int, default=8, help="sequences in a small batch")
    p.add_argument("--together", type=int, default=4, help="sequences in one pass")
    p.add_argument("--turns", type=int, default=10, help="questions about a screen, at most")
    p.add_argument("--beside", type=int, default=10, help="the same where a step of a task is asked first")
    p.add_argument("--hint", type=float, default=0.5)
    p.add_argument("--where", type=float, default=0.05, help="of the loss on image tokens' places")
    p.add_argument("--sigma", type=float, default=0.5)
    p.add_argument("--table", help="only the table of this run")
    a = p.parse_args()
    torch.set_num_threads(1)
    table(a) if a.table else runner.Run(a, Job(a)).run()


if __name__ == "__main__":
    main()
