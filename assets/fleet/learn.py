#!/usr/bin/env python3
"""A training loop: episodes on a page, the page's reward, an update, new weights in the running engine.

    assets/fleet/learn.py --out learned                 the same command continues after a stop
    assets/fleet/learn.py --out learned --page last     another page (see PAGES)

The model is the embedded one. The page is a dialog of its theme, with a wording of the task that was not in
its training. Each round requests several episodes of each of some tasks, at temperature 1, from one `holorun
qa --feed` process that holds the model. The page's title reports whether the right button was pressed: reward
1 or 0, the only training signal. An episode's advantage is its reward less the mean of its task's rewards.
`holorun export --format verl` writes the sampled tokens with their log-probabilities, and a clipped policy
gradient (GRPO) updates the language model in torch. The new weights are written in the published layout, and
the process loads them without a restart ({"weights": DIR}).

Before and after training, the same process plays tasks with separate seeds; --out/result.json has their
reward with Wilson's interval (--greedy: also greedily, in a second process), --out/curve.csv the reward of
each round. Needs torch, numpy, pillow and zstandard.
"""

import argparse
import collections
import csv
import json
import math
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any
from urllib.parse import quote, urlencode

import numpy as np
import torch
from PIL import Image

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "assets", "pocket"))
from pocket import files
from pocket.published_model import Published
from pocket.sources import words

Json = dict[str, Any]
Part = dict[str, Any]  # of an episode: prompt, response, mask, old, rows

MODEL = os.path.join(ROOT, "assets", "pocket", "model")

# A page: from labels in their order and a random source, the task and the labels that it requires.
PAGES = {
    "last": lambda labels, rng: ("Press the last button", labels[-1:]),
    "first": lambda labels, rng: ("Press the first button", labels[:1]),
    "but": lambda labels, rng: (lambda one: (f"Press any button but {one}", [x for x in labels if x != one]))(
        rng.choice(labels)
    ),
    "leave": lambda labels, rng: (lambda one: (f"Leave this window by way of {one}", [one]))(
        rng.choice(labels)
    ),
    "wanted": lambda labels, rng: (lambda one: (f"{one} is what I want here", [one]))(rng.choice(labels)),
}


# ---- tasks -------------------------------------------------------------------------------------------------


def task(page: str, seed: int) -> tuple[str, str]:
    """Returns one test of the suite; the seed determines all of it."""
    rng = random.Random(f"{page} {seed}")
    lex: Any = words.Lexicon(rng, evaluation=True)
    labels = lex.labels(rng.randint(3, 5))
    said, good = PAGES[page](labels, rng)
    query = {
        "seed": seed,
        "kind": "buttons",
        "title": lex.label(18) if rng.random() < 0.5 else "",
        "labels": "|".join(labels),
    }
    url = "dialog.html?" + urlencode({k: v for k, v in query.items() if v}, quote_via=quote)
    any_of = "|".join("".join("\\" + c if c in "\\.[]{}()*+?^$|" else c for c in label) for label in good)
    cited = [x.replace("'", "''") for x in (said, url, f"^DIALOG pressed=({any_of})$")]
    return f"t{seed}", "- {{ id: t{0}, task: '{1}', vars: {{ page: '{2}', title: '{3}' }} }}".format(
        seed, *cited
    )


def write_suite(path: str, page: str, seeds: list[int], form: str, steps: int) -> None:
    tests = [task(page, s)[1] for s in seeds]
    with open(path, "w") as f:
        f.write(
            f'suite:\n  name: learn-{page}\n  display: xvfb:640x480\n  start: exec "{form}" "{{page}}"\n'
            f'  window: ^DIALOG pressed=\n  start_timeout_s: 120\n  wm: ""\n  steps: {steps}\n'
            "  timeout_s: 600\n"
            f"  checks:\n    - {{ kind: window, title: '{{title}}', when: always, seconds: 0 }}\ntests:\n"
            + "\n".join(tests)
            + "\n"
        )


# ---- engine ------------------------------------------------------------------------------------------------


class Engine:
    """A `holorun qa --feed` process; its weights are exchanged while it runs."""

    def __init__(
        self, o: argparse.Namespace, suite: str, weights: str, temperature: float, name: str
    ) -> None:
        self.o, self.dir = o, os.path.join(o.out, "work", name)
        shutil.rmtree(self.dir, ignore_errors=True)
        os.makedirs(self.dir)
        self.log = open(os.path.join(self.dir, "log"), "wb")
        self.process = subprocess.Popen(
            [
                o.holorun,
                "qa",
                suite,
                "--feed",
                "--quiet",
                "--model",
                weights,
                "--temperature",
                str(temperature),
                "--jobs",
                str(o.jobs),
                "--out",
                os.path.join(self.dir, "out"),
            ],
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
        )

    def answer(self) -> Json:
        assert self.process.stdout
        line = self.process.stdout.readline()
        if not line:
            with open(os.path.join(self.dir, "log"), "rb") as f:
                raise SystemExit(
                    f"learn.py: holorun ended with {self.process.wait()}: "
                    f"{f.read()[-600:].decode(errors='replace')}"
                )
        answer: Json = json.loads(line)
        if "error" in answer:
            raise SystemExit(f"learn.py: holorun: {answer['error']}")
        return answer

    def ask(self, what: Any) -> None:
        assert self.process.stdin
        self.process.stdin.write(json.dumps(what) + "\n")
        self.process.stdin.flush()

    def load(self, weights: str) -> int:
        """Loads weights into the running process; returns their version."""
        self.ask({"weights": os.path.abspath(weights)})
        return int(self.answer()["version"])

    def play(
        self, todo: Iterable[tuple[str, int]]
    ) -> Iterator[tuple[str, int, float | None, str, str | None]]:
        """Yields (test, sample, reward, folder, run) of each episode as it ends.

        At most two per worker are requested in advance.
        """
        todo, flying = collections.deque(todo), 0
        while todo or flying:
            while todo and flying < 2 * self.o.jobs:
                test, sample = todo.popleft()
                self.ask({"test": test, "sample": sample})
                flying += 1
            a = self.answer()
            flying -= 1
            reward, run = self.reward(a["dir"])
            yield a["test"], a["sample"], reward, a["dir"], run

    @staticmethod
    def reward(folder: str) -> tuple[float | None, str | None]:
        """Returns the page's reward, 1, 0 or None, and the folder of the run."""
        with open(os.path.join(folder, "results.json")) as f:
            last = json.load(f)["tests"][0]["attempts"][-1]
        verdicts = [c.get("answer") for c in last.get("checks", [])]
        reward = {"yes": 1.0, "no": 0.0}.get(verdicts[0] if verdicts else "")
        return reward, os.path.join(folder, last["run"]) if last.get("run") else None

    def close(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait()
        shutil.rmtree(self.dir, ignore_errors=True)


# ---- sampled tokens ----------------------------------------------------------------------------------------


class Trainee(Published):
    """The published model with gradients in its language model, except the norms."""

    def __init__(self, directory: str) -> None:
        super().__init__(directory)
        text = {n: v for n, v in self.p.items() if n.startswith("language_model.") and "norm" not in n}
        self.trained = [v.requires_grad_() for v in text.values()]


class Sampled:
    """Reads parts of episodes for the update: ids, mask, log-probabilities, the screenshot's rows."""

    def __init__(self, o: argparse.Namespace, model: Trainee) -> None:
        self.o, self.model = o, model
        self.rows: dict[int, torch.Tensor] = {}

    def picture(self, path: str) -> torch.Tensor:
        pixels = np.array(Image.open(path).convert("RGB"))
        key = hash(pixels.tobytes())
        if key not in self.rows:
            self.rows[key] = self.model.look(pixels)[0]
        return self.rows[key]

    def read(self, run: str, reward: float) -> list[Part]:
        """Returns the parts of an episode; each is a conversation that was only appended to."""
        to = run + "-verl"
        subprocess.run(
            [self.o.holorun, "export", run, "--format", "verl", "--output", to, "--reward", str(reward)],
            check=True,
            capture_output=True,
        )
        parts = []
        with open(os.path.join(to, "outputs.jsonl")) as f:
            for line in map(json.loads, f):
                images = line["multi_modal_data"]["images"]
                if len(images) != 1 or not any(line["response_mask"]):
                    continue
                parts.append(
                    {
                        "prompt": line["prompt_ids"],
                        "response": line["response_ids"],
                        "mask": line["response_mask"],
                        "old": line["response_logprobs"],
                        "rows": self.picture(os.path.join(to, images[0])),
                    }
                )
        return parts


def logprobs_of(model: Trainee, parts: list[Part]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Returns the log-probability of each response token, [parts, longest response] padded with zeros, and
    mask and old values in that shape.
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
    new = model.logits(f).float().log_softmax(-1).gather(-1, said[..., None])[..., 0]
    return new, mask, old


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

    def update(self, episodes: list[tuple[float, list[Part]]], told: Callable[[int, int], None]) -> Json:
        """Takes one pass over the samples; episodes are (advantage, parts). Returns figures for the curve."""
        o = self.o
        todo = [(advantage, p) for advantage, parts in episodes for p in parts if advantage]
        random.Random(len(todo)).shuffle(todo)
        total, off, clipped, batches = 0.0, 0.0, 0.0, 0.0
        per = max(1, math.ceil(len(todo) / o.updates))
        for first in range(0, len(todo), per):
            some = sorted(
                todo[first : first + per], key=lambda x: len(x[1]["prompt"]) + len(x[1]["response"])
            )
            tokens = sum(sum(p["mask"]) for _, p in some)
            for i in range(0, len(some), o.batch):
                group = some[i : i + o.batch]
                new, mask, old = logprobs_of(self.model, [p for _, p in group])
                advantage = torch.tensor([a for a, _ in group])[:, None]
                ratio = ((new - old) * mask).exp()
                gain = torch.minimum(ratio * advantage, ratio.clamp(1 - o.clip, 1 + o.clip) * advantage)
                torch.autograd.backward(-(gain * mask).sum() / tokens)
                if first == 0:  # the weights are still those that sampled: the values must agree
                    off += float(((new - old).abs() * mask).sum().detach())
                    total += float(mask.sum())
                clipped += float((((ratio - 1).abs() > o.clip) * mask).sum().detach())
                batches += float(mask.sum())
                told(first + i + len(group), len(todo))
            torch.nn.utils.clip_grad_norm_(self.model.trained, 1.0)
            self.adam.step()
            self.adam.zero_grad(set_to_none=True)
        return {"parts": len(todo), "disagreement": off / max(1, total), "clipped": clipped / max(1, batches)}


# ---- loop --------------------------------------------------------------------------------------------------


def wilson(k: float, n: int, z: float = 1.96) -> tuple[float, float, float]:
    """Returns (rate, low, high)."""
    p = k / max(1, n)
    mid, half = (
        (p + z * z / (2 * n)) / (1 + z * z / n),
        z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n),
    )
    return p, mid - half, mid + half


class Clock:
    """Prints progress at most every two seconds, with the remaining time at the pace so far."""

    def __init__(self, parts: int) -> None:
        self.parts, self.done, self.begun, self.told = parts, 0.0, time.monotonic(), 0.0

    def tell(self, what: Any, share: float = 0.0, last: bool = False) -> None:
        now = time.monotonic()
        if not last and now - self.told < 2:
            return
        self.told, done = now, self.done + share
        left = (now - self.begun) / done * (self.parts - done) if done > 0.3 else None
        when = "" if left is None else f", {left / 60:.0f} min left" if left >= 90 else f", {left:.0f} s left"
        print(f"{what}{when}", file=sys.stderr, flush=True)


def evaluate(o: argparse.Namespace, engine: Engine, tests: list[str], clock: Clock, name: str) -> Json:
    """Plays unseen tasks; returns their rewards and the rate with its interval."""
    rewards: dict[str, float] = {}
    lost = 0
    for test, _, reward, folder, _ in engine.play([(t, 0) for t in tests]):
        lost += reward is None
        rewards[test] = reward or 0.0
        shutil.rmtree(folder, ignore_errors=True)
        clock.tell(
            f"{name}: {len(rewards)}/{len(tests)}, reward {sum(rewards.values()) / len(rewards):.2f}",
            len(rewards) / len(tests),
        )
    clock.done += 1
    rate, low, high = wilson(sum(rewards.values()), len(tests))
    return {"reward": rate, "low": low, "high": high, "n": len(tests), "undecided": lost, "rewards": rewards}


def one_round(
    o: argparse.Namespace, engine: Engine, learner: Learner, tests: list[str], clock: Clock, number: int
) -> Json:
    """Plays episodes, computes advantages over the samples of a task, updates; returns a row of the curve."""
    begun = time.monotonic()
    groups: dict[str, dict[int, float]] = collections.defaultdict(dict)
    parts: dict[tuple[str, int], list[Part]] = {}
    sampled = Sampled(o, learner.model)
    n = len(tests) * o.samples
    for k, (test, sample, reward, folder, run) in enumerate(
        engine.play([(t, s) for t in tests for s in range(o.samples)]), 1
    ):
        if reward is not None and run:
            groups[test][sample] = reward
            parts[test, sample] = sampled.read(run, reward)
        shutil.rmtree(folder, ignore_errors=True)
        now = [r for g in groups.values() for r in g.values()]
        clock.tell(
            f"round {number}/{o.rounds}: episode {k}/{n}, reward {sum(now) / max(1, len(now)):.2f}",
            0.6 * k / n,
        )
    played = time.monotonic()
    rewards = [r for g in groups.values() for r in g.values()]
    episodes: list[tuple[float, list[Part]]] = []
    for test, g in groups.items():
        mean = sum(g.values()) / len(g)
        spread = math.sqrt(sum((r - mean) ** 2 for r in g.values()) / len(g))
        episodes += [((r - mean) / (spread + 1e-4) if spread else 0.0, parts[test, s]) for s, r in g.items()]
    told = learner.update(
        episodes, lambda i, of: clock.tell(f"round {number}/{o.rounds}: update {i}/{of}", 0.6 + 0.4 * i / of)
    )
    clock.done += 1
    return {
        "round": number,
        "episodes": len(rewards),
        "reward": round(sum(rewards) / max(1, len(rewards)), 4),
        "groups_that_differ": sum(0 < sum(g.values()) < len(g) for g in groups.values()),
        "parts": told["parts"],
        "disagreement": round(told["disagreement"], 5),
        "clipped": round(told["clipped"], 4),
        "play_s": round(played - begun, 1),
        "update_s": round(time.monotonic() - played, 1),
    }


def save(path: str, value: Any) -> None:
    torch.save(value, path + ".part")
    os.replace(path + ".part", path)


def publish(o: argparse.Namespace, learner: Learner, number: int) -> str:
    """Writes the weights of a round as a model directory and returns it."""
    to = os.path.join(o.out, "models", f"round-{number}")
    shutil.copytree(MODEL, to, dirs_exist_ok=True)
    files.write(os.path.join(to, "model.safetensors"), learner.model.p)
    return to


def append(path: str, row: Json) -> None:
    fresh = not os.path.exists(path)
    with open(path, "a", newline="") as f:
        w = csv.DictWriter(f, row)
        if fresh:
            w.writeheader()
        w.writerow(row)


def judge(
    o: argparse.Namespace,
    engines: dict[str, Callable[[], Engine]],
    suite_tests: list[str],
    weights: str,
    clock: Clock,
    at: str,
    result: Json,
) -> None:
    """Evaluates the engines that result[at] lacks."""
    for name, engine in engines.items():
        if name not in result.setdefault(at, {}):
            engine().load(weights)
            result[at][name] = evaluate(o, engine(), suite_tests, clock, f"{at} ({name})")
            with open(os.path.join(o.out, "result.json"), "w") as f:
                json.dump(result, f, indent=1)
        else:
            clock.done += 1


def tell_result(o: argparse.Namespace, result: Json) -> int:
    for name in result["before"]:
        b, a = (result[k][name] for k in ("before", "after"))
        apart = a["low"] > b["high"]
        print(
            f"{name:>8}: {100 * b['reward']:.1f} % [{100 * b['low']:.1f}, {100 * b['high']:.1f}] -> "
            f"{100 * a['reward']:.1f} % [{100 * a['low']:.1f}, {100 * a['high']:.1f}] of {a['n']} unseen "
            f"tasks; the intervals {'do not meet' if apart else 'meet'}"
        )
    return 0 if all(result["after"][k]["low"] > result["before"][k]["high"] for k in result["before"]) else 1


def arguments() -> argparse.Namespace:
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument(
        "--out", required=True, metavar="DIR", help="results; a loop that was stopped goes on there"
    )
    p.add_argument("--page", choices=PAGES, default="wanted", help="[wanted]")
    p.add_argument("--rounds", type=int, default=5, help="[5]")
    p.add_argument("--tasks", type=int, default=12, help="of a round [12]")
    p.add_argument("--samples", type=int, default=6, help="episodes of each [6]")
    p.add_argument("--evaluate", type=int, default=100, help="unseen tasks [100]")
    p.add_argument("--updates", type=int, default=2, help="optimiser steps of a round [2]")
    p.add_argument("--batch", type=int, default=4)
    p.add_argument("--rate", type=float, default=2e-4)
    p.add_argument("--clip", type=float, default=0.2)
    p.add_argument("--steps", type=int, default=2, help="of an episode [2]")
    p.add_argument("--jobs", type=int, default=4, help="episodes at a time [4]")
    p.add_argument("--threads", type=int, default=2, help="of torch [2]")
    p.add_argument("--greedy", action="store_true", help="evaluate also at temperature 0")
    p.add_argument("--only-evaluate", action="store_true", help="measure the page and stop")
    p.add_argument("--holorun", default=os.path.join(ROOT, "holorun"))
    p.add_argument(
        "--form",
        default=os.path.join(ROOT, "build", "release", "helpers", "form"),
        help="the program that shows dialogs",
    )
    o = p.parse_args()
    o.out = os.path.abspath(o.out)
    return o


def main() -> int:
    o = arguments()
    torch.set_num_threads(o.threads)
    torch.manual_seed(1)
    os.makedirs(os.path.join(o.out, "models"), exist_ok=True)
    training = [[6_000_000 + 1000 * r + k for k in range(o.tasks)] for r in range(o.rounds)]
    unseen = [7_000_000 + k for k in range(o.evaluate)]
    suite, state_path, result_path = (
        os.path.join(o.out, n) for n in ("suite.yaml", "state.pt", "result.json")
    )
    write_suite(suite, o.page, [s for r in training for s in r] + unseen, o.form, o.steps)
    result = json.load(open(result_path)) if os.path.exists(result_path) else {"page": o.page}
    if result["page"] != o.page:
        sys.exit(
            f"learn.py: '{result_path}' is of the page '{result['page']}': "
            f"give --page {result['page']}, or another --out"
        )
    learner, begun, weights = Learner(o, MODEL), 0, MODEL
    if os.path.exists(state_path):
        state = torch.load(state_path, weights_only=True)
        learner.restore(state["learner"])
        begun, weights = state["rounds"], state["weights"]
        print(f"goes on after round {begun}", file=sys.stderr)
    clock = Clock(2 + 2 * o.greedy + o.rounds - begun)
    engines = {}

    def engine(name: str, temperature: float) -> Engine:
        if name not in engines:
            engines[name] = Engine(o, suite, weights, temperature, name)
        return engines[name]

    judged = {"sampled": lambda: engine("sampled", 1)}
    if o.greedy:
        judged["greedy"] = lambda: engine("greedy", 0)
    tests = [f"t{s}" for s in unseen]
    judge(o, judged, tests, MODEL, clock, "before", result)
    if o.only_evaluate:
        print({k: {n: x for n, x in v.items() if n != "rewards"} for k, v in result["before"].items()})
        return 0
    version = judged["sampled"]().load(weights)
    for r in range(begun, o.rounds):
        row = one_round(o, engine("sampled", 1), learner, [f"t{s}" for s in training[r]], clock, r + 1)
        if row["parts"]:  # else all episodes of each task had one reward: nothing was learned
            weights = publish(o, learner, r + 1)
            version = engine("sampled", 1).load(weights)
        row["version"] = version
        append(os.path.join(o.out, "curve.csv"), {**row, "pid": engine("sampled", 1).process.pid})
        save(state_path, {"learner": learner.state(), "rounds": r + 1, "weights": weights})
        clock.tell(json.dumps(row), last=True)
    judge(o, judged, tests, weights, clock, "after", result)
    for e in engines.values():
        e.close()
    return tell_result(o, result)


if __name__ == "__main__":
    sys.exit(main())
