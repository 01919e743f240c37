"""Reads sampled tokens of episodes and takes clipped policy-gradient steps (GRPO) in torch, for learn.py."""

import argparse
import collections
import io
import json
import math
import os
import random
import sys
import tarfile
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from PIL import Image

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "assets", "pocket"))
from pocket.published_model import Published

Json = dict[str, Any]
Part = dict[str, Any]  # of an episode: prompt, response, mask, old, rows, version
Weighed = tuple[float, Part]  # with the advantage of its episode

MODEL = os.path.join(ROOT, "assets", "pocket", "model")


class Trainee(Published):
    """The published model with gradients in its language model, except the norms."""

    def __init__(self, directory: str) -> None:
        super().__init__(directory)
        text = {n: v for n, v in self.p.items() if n.startswith("language_model.") and "norm" not in n}
        self.trained = [v.requires_grad_() for v in text.values()]


class Sampled:
    """Reads parts of episodes for the update: ids, mask, log-probabilities, the screenshot's rows."""

    def __init__(self, model: Trainee, versions: dict[str, int]) -> None:
        self.model, self.versions = model, versions
        self.rows: dict[int, torch.Tensor] = {}

    def picture(self, data: bytes) -> torch.Tensor:
        key = hash(data)
        if key not in self.rows:
            self.rows[key] = self.model.look(np.array(Image.open(io.BytesIO(data)).convert("RGB")))[0]
        return self.rows[key]

    def read(self, archive: bytes) -> list[Part]:
        """Returns the parts of an episode, none if it has no export.

        Each is a conversation that was only appended to.
        """
        parts = []
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            if "./export-verl/outputs.jsonl" not in tar.getnames():
                return []

            def file(name: str) -> bytes:
                found = tar.extractfile(f"./export-verl/{name}")
                assert found
                return found.read()

            for line in map(json.loads, file("outputs.jsonl").splitlines()):
                images = line["multi_modal_data"]["images"]
                if len(images) != 1 or not any(line["response_mask"]):
                    continue
                parts.append(
                    {
                        "prompt": line["prompt_ids"],
                        "response": line["response_ids"],
                        "mask": line["response_mask"],
                        "old": line["response_logprobs"],
                        "rows": self.picture(file(images[0])),
                        "version": self.versions[line["extra_fields"]["sampler"]["weights"]],
                    }
                )
        return parts


def logits_of(model: Trainee, parts: list[Part]) -> tuple[torch.Tensor, ...]:
    """Returns the logits before each response token, [parts, longest response, vocabulary], and the tokens,
    mask and old log-probabilities, [parts, longest response] padded with zeros.
    """
    whole = [p["prompt"] + p["response"] for p in parts]
    longest, most = max(map(len, whole)), max(len(p["response"]) for p in parts)
    ids = torch.zeros(len(parts), longest, dtype=torch.long)
    at, said, mask, old = (
        torch.zeros(len(parts), most, dtype=t) for t in (torch.long, torch.long, torch.float32, torch.float32)
    )
    for i, p in enumerate(parts):
        n = len(p["response"])
        ids[i, : len(whole[i])] = torch.tensor(whole[i])
        at[i, :n] = torch.arange(len(p["prompt"]) - 1, len(whole[i]) - 1)
        said[i, :n], mask[i, :n], old[i, :n] = (
            torch.tensor(p["response"]),
            torch.tensor(p["mask"]),
            torch.tensor(p["old"]),
        )
    f = model.read(ids, torch.cat([p["rows"] for p in parts]))
    f = f.gather(1, at[..., None].expand(-1, -1, f.shape[-1]))
    return model.logits(f).float(), said, mask, old


def logprobs_of(model: Trainee, parts: list[Part]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Returns the log-probability of each response token, and mask and old values in that shape."""
    logits, said, mask, old = logits_of(model, parts)
    return logits.log_softmax(-1).gather(-1, said[..., None])[..., 0], mask, old


class Learner:
    def __init__(self, o: argparse.Namespace, directory: str) -> None:
        self.o, self.model = o, Trainee(directory)
        self.adam = torch.optim.AdamW(self.model.trained, lr=o.rate, betas=(0.9, 0.95), weight_decay=0)

    def state(self) -> Json:
        return {"model": {n: p.detach() for n, p in self.model.p.items()}, "adam": self.adam.state_dict()}

    def restore(self, state: Json) -> None:
        for n, p in self.model.p.items():
            p.data.copy_(state["model"][n])
        self.adam.load_state_dict(state["adam"])

    def batches(self, todo: list[Weighed]) -> list[list[list[Weighed]]]:
        """Divides the samples into the batches of each optimiser step, similar lengths together."""
        per, steps = max(1, math.ceil(len(todo) / self.o.updates)), []
        for first in range(0, len(todo), per):
            some = sorted(
                todo[first : first + per], key=lambda x: len(x[1]["prompt"]) + len(x[1]["response"])
            )
            steps.append([some[i : i + self.o.batch] for i in range(0, len(some), self.o.batch)])
        return steps

    def before(self, batch: list[Weighed]) -> torch.Tensor:
        """Returns the log-probabilities by the present weights, to which later steps are compared."""
        with torch.no_grad():
            return logprobs_of(self.model, [p for _, p in batch])[0]

    def update(
        self, episodes: list[tuple[float, list[Part]]], version: int, told: Callable[[int, int], None]
    ) -> Json:
        """Takes one pass over the samples, which are pairs of an advantage and the parts of an episode.

        The objective is decoupled (Fu et al. 2025, "AReaL"): the clipped ratio is that to the weights before
        this update, and a factor of at most `truncate` corrects for the weights that sampled, which may be
        older. A single ratio to the latter would be clipped for changes that other updates made, and would be
        unlimited for samples with a negative advantage.

        Returns figures for the curve. version: of the weights before the update.
        """
        o = self.o
        todo = [(advantage, p) for advantage, parts in episodes for p in parts if advantage]
        random.Random(len(todo)).shuffle(todo)
        sums: dict[str, float] = collections.defaultdict(float)
        steps, done = self.batches(todo), 0
        kept: dict[tuple[int, int], torch.Tensor] = {}
        for k, step in enumerate(steps[1:], 1):
            for i, batch in enumerate(step):
                kept[k, i] = self.before(batch)
                told(0, len(todo))
        for k, step in enumerate(steps):
            tokens = sum(sum(p["mask"]) for batch in step for _, p in batch)
            for i, batch in enumerate(step):
                new, mask, old = logprobs_of(self.model, [p for _, p in batch])
                near = kept.pop((k, i), new.detach())
                advantage = torch.tensor([a for a, _ in batch])[:, None]
                ratio, older = ((new - near) * mask).exp(), ((near - old) * mask).exp()
                gain = torch.minimum(ratio * advantage, ratio.clamp(1 - o.clip, 1 + o.clip) * advantage)
                torch.autograd.backward(-(older.clamp(max=o.truncate) * gain * mask).sum() / tokens)
                # the log-probabilities of those that these weights have sampled must agree
                same = mask * torch.tensor([p["version"] == version for _, p in batch])[:, None]
                sums["off"] += float(((near - old).abs() * same).sum())
                sums["same"] += float(same.sum())
                sums["clipped"] += float((((ratio - 1).abs() > o.clip) * mask).sum())
                sums["truncated"] += float(((older > o.truncate) * mask).sum())
                sums["tokens"] += float(mask.sum())
                done += len(batch)
                told(done, len(todo))
            torch.nn.utils.clip_grad_norm_(self.model.trained, 1.0)
            self.adam.step()
            self.adam.zero_grad(set_to_none=True)
        return {
            "parts": len(todo),
            "disagreement": round(sums["off"] / sums["same"], 5) if sums["same"] else None,
            "clipped": round(sums["clipped"] / max(1, sums["tokens"]), 4),
            "truncated": round(sums["truncated"] / max(1, sums["tokens"]), 4),
        }
