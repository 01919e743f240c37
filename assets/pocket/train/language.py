"""Language: the projector and the language model, on cached rows of the tower.

    python language.py --run RUN --kept ../wide/language20.safetensors --rows DIR... --gate DIR... --core-minutes 540

Design.  Sequences are those of conversations.py; image tokens come from cache.py.  The loss is on the answers only;
the coarse half of a place is spread a little over its neighbours.  Where nothing is kept it begins with the small model that
pocket.mk makes first (--shipped), whose copying circuits took hours: its 12 sub-layers and 352 tokens stay, sub-layers follow
that change nothing at first (their way out is zero), the new tokens begin as their nearest relatives.

The passes are stack.py's, by hand; `Wide` is the same for autograd, slower.  Norm weights are ones in both, see
stack.fold.  Heads are told where to look, in training
only, as hints.py does it for the grid: `TOLD`, the layer and head of each kind of hint that conversations.py has.
A linear head, in training only, says row and column of an image token from what the projector makes of it, since
otherwise letters drown them and nothing can be pointed at.
"""

import argparse
import collections
import os
import pathlib

import torch
import torch.nn.functional as F
from torch import nn

import dialect  # puts the folder above on the path
import runner
import stack
import tokenizer
import weights
import export
from conversations import COARSE, FINE, MENTION, PAGE, POINT, TASK, Rows, collate, whole_answers
from kernels import PRODUCTS
from model import LM, Language, Linear, RMSNorm, ReLU2

SHAPE = dict(lm=dict(LM, pattern="M-*-M-*-M-*-M-*-M-*-", vocab=dialect.VOCAB), vit=192, projector=512)
WHERE, MOST = "where.weight", 32  # rows and columns of image tokens, at most so many
TOLD = {TASK: (6, 2), PAGE: (6, 0), POINT: (10, 1), MENTION: (6, 3)}
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

    def worker(self, run, rank, grads):
        a, w = self.a, self.at_work(run, run.c, grads)
        source = Rows(a.rows, f"{a.seed}/{run.step}/{rank}", turns=a.turns, beside=a.beside)

        def part():
            drawn = sorted((source.draw() for _ in range(a.batch)), key=lambda d: len(d[1].ids))
            sums, tokens = collections.Counter(), 0
            for k in range(0, len(drawn), a.together):  # sequences of like length together
                some = drawn[k : k + a.together]
                ids, rows, target, told = collate(some)
                sums.update(self.learn(w, ids, rows, target, told, [s.grid for _, s in some]))
                tokens += ids.numel()
            return dict(sums) | {"patches": tokens}

        return part

    @staticmethod
    def at_work(run, c, grads):
        """What a worker has: parameters, its gradients and the passes; `c` is the shape of the language model."""
        flat, half = run.layout.views(run.flat), run.layout.views(run.half)
        return argparse.Namespace(flat=flat, half=half, grads=grads, passes=stack.Stack(c, flat, half, grads))

    def learn(self, w, ids, rows, target, told, grids, share=1.0):
        """Adds the gradients of these sequences' losses, summed and times `share`, to the worker's; gives the counts."""
        at = target != -100
        f = w.passes.forward(ids, rows)
        leaf, head = f[at].requires_grad_(), w.half[stack.HEAD].clone().requires_grad_()
        loss, sums = language_loss((leaf @ head.t()).float(), target[at], self.spread)
        hints, more = hint_loss(w.passes.seen, told)
        (share * loss).backward()
        if hints.requires_grad:  # not where no target of these sequences has a place
            (share * self.a.hint * hints).backward()
        du = torch.zeros_like(f)
        du[at] = leaf.grad
        w.grads[stack.HEAD].add_(head.grad)
        dpicture, placed = self.where(w, grids, share)
        w.passes.backward(du, dpicture)
        return sums | more | placed

    def where(self, w, grids, share):
        """(gradient of the image tokens' rows, counts) of the loss on their places."""
        x, marks = w.passes.picture.requires_grad_(), w.flat[WHERE].clone().requires_grad_()
        want = torch.cat([torch.cartesian_prod(torch.arange(r), torch.arange(c)) for r, c in grids])
        y = (F.layer_norm(x, x.shape[-1:]) @ marks.t()).unflatten(-1, (2, MOST))
        loss = F.cross_entropy(y.flatten(0, -2), want.flatten(), reduction="sum")
        (share * self.a.where * loss).backward()
        w.grads[WHERE].add_(marks.grad)
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
        forward = stack.Stack(c, views, half, None).forward
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
