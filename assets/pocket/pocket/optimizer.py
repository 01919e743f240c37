"""Muon for matrices (queries, keys and values separately), AdamW for the rest, and a running average."""

import collections
import math

import torch

MOMENTUM, DECAY = 0.95, 0.01


def orthogonal(x, dt, steps=5):
    """Returns the nearest orthogonal matrices to a stack [k, m, n], m <= n, by a quintic iteration in type
    dt.
    """
    x = x.to(dt)
    x = x / (x.float().norm(dim=(-2, -1), keepdim=True).to(dt) + 1e-7)
    for _ in range(steps):
        s = torch.bmm(x, x.mT)
        x = torch.baddbmm(x, torch.baddbmm(s, s, s, beta=-4.7750, alpha=2.0315), x, beta=3.4445)
    return x


def rate(step, warm, share):
    """Returns the learning rate as a fraction: linear over `warm` steps, then a cosine over share 0 to 1,
    to 1
    %.
    """
    cosine = 0.5 * (1 + math.cos(math.pi * min(1.0, max(0.0, share))))
    return min(1.0, step / warm) * (0.01 + 0.99 * cosine)


class Optimizer:
    """Optimizer of {name: parameter}; is_matrix(name) selects those for Muon. Gradients stay allocated."""

    def __init__(self, parameters, muon, adam, is_matrix, average, dt):
        self.muon, self.adam, self.keep, self.dt, self.steps = muon, adam, average, dt, 0
        self.groups, self.rest, self.grads = collections.defaultdict(list), [], []
        self.average = {n: p.data.clone() for n, p in parameters.items()}
        trained = {n: p for n, p in parameters.items() if p.requires_grad}
        self.pairs = [(self.average[n], p.data) for n, p in trained.items()]
        for name, p in trained.items():
            p.grad = torch.zeros_like(p)
            self.grads.append(p.grad)
            v, g = p.data, p.grad
            if v.ndim != 2 or not is_matrix(name):
                self.rest.append((v, g))
            elif name.endswith("qkv"):
                for a, b in zip(v.chunk(3), g.chunk(3)):
                    self.groups[tuple(a.shape)].append((a, b))
            else:
                self.groups[tuple(v.shape)].append((v, g))
        matrices = [pair for group in self.groups.values() for pair in group]
        self.momentum, self.first, self.second = (
            [torch.zeros_like(v, memory_format=torch.contiguous_format) for v, _ in pairs]
            for pairs in (matrices, self.rest, self.rest)
        )

    def step(self, rate):
        """Takes one step with the learning rates times `rate`, and clears the gradients."""
        self.steps, at = self.steps + 1, 0
        v, g = map(list, zip(*self.rest))
        norm = torch.stack(torch._foreach_norm(g)).norm()
        torch._foreach_mul_(g, (1.0 / (norm + 1e-6)).clamp(max=1.0))
        for shape, group in self.groups.items():
            m = self.momentum[at : at + len(group)]
            at += len(group)
            self._muon(shape, m, *map(list, zip(*group)), self.muon * rate)
        torch._foreach_lerp_(self.first, g, 0.1)
        torch._foreach_mul_(self.second, 0.95)
        torch._foreach_addcmul_(self.second, g, g, value=0.05)
        size = torch._foreach_sqrt(torch._foreach_div(self.second, 1 - 0.95**self.steps))
        torch._foreach_add_(size, 1e-8)
        torch._foreach_addcdiv_(v, self.first, size, value=-self.adam * rate / (1 - 0.9**self.steps))
        torch._foreach_zero_(self.grads)
        average, now = map(list, zip(*self.pairs))
        torch._foreach_lerp_(average, now, 1 - min(self.keep, 1 - 1 / (self.steps + 1)))

    def _muon(self, shape, m, v, g, lr):
        torch._foreach_lerp_(m, g, 1 - MOMENTUM)
        u = torch.stack(torch._foreach_lerp(g, m, MOMENTUM))
        wide = shape[0] <= shape[1]
        u = orthogonal(u if wide else u.mT, self.dt)
        u = (u if wide else u.mT).float()
        torch._foreach_mul_(v, 1 - lr * DECAY)
        torch._foreach_add_(v, u.unbind(), alpha=-lr * 0.2 * max(shape) ** 0.5)
