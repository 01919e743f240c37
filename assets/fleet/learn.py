#!/usr/bin/env python3
"""A training loop: episodes on a page, the page's reward, an update, new weights in the running server.

    assets/fleet/learn.py --out learned                 the same command continues after a stop
    assets/fleet/learn.py --out learned --page last     another page (see PAGES)
    assets/fleet/learn.py --out learned --address auto --listen 10.0.0.1:8443 --slots 16 \\
        -- --cert cert.pem --cert-key key.pem           on the machines of a Ray cluster

The model is the embedded one, in a `holorun serve` process of this machine. The page is a dialog of its
theme, with a wording of the task that was not in its training. Slots of ray_fleet.py play several episodes of
each of some tasks through that server, at temperature 1. The page's title reports whether the right button
was pressed: reward 1 or 0, the only training signal. An episode's advantage is its reward less the mean of
its task's rewards. `holorun export --format verl` writes the sampled tokens with their log-probabilities, and
a clipped policy gradient (GRPO) updates the language model in torch. The new weights are written in the
published layout, and the server loads them between two tokens (POST /update_weights).

Rounds are asynchronous: while torch updates, the slots play the next --stale rounds. A factor corrects for
the older weights that sampled them. Tasks whose episodes are more than --stale versions old are
dropped; 0 makes the rounds synchronous. An episode of a slot that is lost is repeated;
its task omits one that could not run three times or has no export.

Before and after training, the slots play tasks with separate seeds; --out/result.json has their reward with
Wilson's interval, --out/curve.csv the reward of each round. Needs ray, torch, numpy, pillow and zstandard; on
other machines ray, and holorun and --out at the same paths.
"""

import argparse
import collections
import csv
import ipaddress
import json
import logging
import math
import os
import random
import shutil
import subprocess
import sys
import time
import urllib.request
from typing import Any
from urllib.parse import quote, urlencode, urljoin

import ray

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # for torch: threads that wait do not use a core
import torch

import ray_slot
from desktops import Desktops
from policy_gradient import MODEL, Json, Learner, Part, Sampled

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "assets", "pocket"))
from pocket import files
from pocket.sources import words

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


class Policy:
    """A `holorun serve` process; its weights are exchanged while it runs."""

    def __init__(self, o: argparse.Namespace, weights: str) -> None:
        self.token = os.path.join(o.out, "token")
        self.versions: dict[str, int] = {}  # of the hash of weights
        self.process = subprocess.Popen(  # that ends with this process
            [
                "setpriv",
                "--pdeathsig",
                "TERM",
                o.holorun,
                "serve",
                "--trainer",
                "--model",
                weights,
                "--listen",
                o.listen,
            ]
            + ["--token-file", self.token, *o.serve],
            text=True,
            stdout=subprocess.PIPE,
        )
        assert self.process.stdout
        self.address = self.process.stdout.readline().strip()
        if not self.address:
            raise SystemExit(f"learn.py: holorun serve ended with {self.process.wait()}")

    def post(self, path: str, body: Json) -> Json:
        with open(self.token) as f:
            head = {"authorization": "Bearer " + f.read().strip(), "content-type": "application/json"}
        request = urllib.request.Request(urljoin(self.address, path), json.dumps(body).encode(), head)
        with urllib.request.urlopen(request) as answer:
            return dict(json.load(answer))

    def load(self, weights: str) -> int:
        """Exchanges the weights between two tokens of the running replies; returns their version."""
        self.post("/pause", {"mode": "keep"})
        try:
            self.post("/update_weights", {"path": os.path.abspath(weights)})
        finally:
            self.post("/resume", {})
        question = {"messages": [{"role": "user", "content": "."}], "max_tokens": 1}
        _, print_, version = self.post("/v1/chat/completions", question)["system_fingerprint"].split("_")
        self.versions[print_] = int(version[1:])
        return self.versions[print_]

    def close(self) -> None:
        self.process.terminate()
        self.process.wait()


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


def evaluate(desktops: Desktops, tests: list[str], clock: Clock, name: str) -> Json:
    """Plays unseen tasks; returns their rewards and the rate with its interval."""
    rewards: dict[str, float] = {}
    lost = 0
    for test in tests:
        desktops.ask(test, 0)
    for _ in tests:
        test, _, answer = desktops.next()
        lost += answer["reward"] is None
        rewards[test] = answer["reward"] or 0.0
        clock.tell(
            f"{name}: {len(rewards)}/{len(tests)}, reward {sum(rewards.values()) / len(rewards):.2f}",
            len(rewards) / len(tests),
        )
    clock.done += 1
    rate, low, high = wilson(sum(rewards.values()), len(tests))
    return {"reward": rate, "low": low, "high": high, "n": len(tests), "undecided": lost, "rewards": rewards}


class Group:
    """The episodes of a task, over which advantages are computed."""

    def __init__(self) -> None:
        self.n = 0
        self.rewards: dict[int, float] = {}
        self.parts: dict[int, list[Part]] = {}

    def add(self, sample: int, reward: float | None, parts: list[Part]) -> None:
        """Counts an episode; those without a reward or sampled tokens have no part in the group."""
        self.n += 1
        if reward is not None and parts:
            self.rewards[sample], self.parts[sample] = reward, parts

    def oldest(self) -> int:
        """Returns the version of the oldest weights that sampled a token."""
        return min((p["version"] for parts in self.parts.values() for p in parts), default=0)

    def episodes(self) -> list[tuple[float, list[Part]]]:
        """Returns the advantage and the parts of each episode."""
        r = list(self.rewards.values())
        mean = sum(r) / max(1, len(r))
        spread = math.sqrt(sum((x - mean) ** 2 for x in r) / max(1, len(r)))
        return [((x - mean) / (spread + 1e-4), self.parts[s]) for s, x in self.rewards.items() if spread]


class Loop:
    """Asynchronous rounds: while torch updates, the desktops play the next --stale rounds."""

    def __init__(self, o: argparse.Namespace, desktops: Desktops, policy: Policy, learner: Learner) -> None:
        self.o, self.desktops, self.policy, self.learner = o, desktops, policy, learner
        self.sampled = Sampled(learner.model, policy.versions)
        self.groups: dict[str, Group] = collections.defaultdict(Group)
        self.asked, self.dropped = 0, 0
        self.played: dict[str, int] = collections.Counter()  # episodes of each machine

    def request(self, tests: list[str]) -> None:
        for test in tests:
            for sample in range(self.o.samples):
                self.desktops.ask(test, sample)
        self.asked += 1

    def batch(self, clock: Clock, number: int) -> list[Group]:
        """Waits for the groups of a round; drops those without episodes or older than --stale versions."""
        ready: list[Group] = []
        while len(ready) < self.o.tasks and self.desktops.open:
            test, sample, answer = self.desktops.next()
            group = self.groups[test]
            bad = answer["reward"] is None or answer.get("export_errors")
            parts = [] if bad else self.sampled.read(answer["archive"])
            group.add(sample, answer["reward"], parts)
            self.played[answer["node"]] += 1
            if group.n < self.o.samples:
                continue
            del self.groups[test]
            if not group.parts or max(self.policy.versions.values()) - group.oldest() > self.o.stale:
                self.dropped += 1
            else:
                ready.append(group)
            clock.tell(f"round {number}/{self.o.rounds}: task {len(ready)}/{self.o.tasks}", 0.6)
        return ready

    def round(self, clock: Clock, number: int) -> Json:
        """Waits for a batch and updates; returns a row of the curve."""
        begun = time.monotonic()
        groups = self.batch(clock, number)
        played = time.monotonic()
        version = max(self.policy.versions.values())
        rewards = [r for g in groups for r in g.rewards.values()]

        def progress(i: int, of: int) -> None:
            self.desktops.poll()  # the slots play on
            clock.tell(f"round {number}/{self.o.rounds}: update {i}/{of}", 0.6 + 0.4 * i / of)

        told = self.learner.update([e for g in groups for e in g.episodes()], version, progress)
        clock.done += 1
        return {
            "round": number,
            "episodes": len(rewards),
            "reward": round(sum(rewards) / max(1, len(rewards)), 4),
            "groups_that_differ": sum(0 < sum(g.rewards.values()) < len(g.rewards) for g in groups),
            "parts": told["parts"],
            "disagreement": told["disagreement"],
            "clipped": told["clipped"],
            "truncated": told["truncated"],
            "stalest": max((version - g.oldest() for g in groups), default=0),
            "dropped": self.dropped,
            "machines": len(self.played),
            "wait_s": round(played - begun, 1),
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
    o: argparse.Namespace, desktops: Desktops, tests: list[str], clock: Clock, at: str, result: Json
) -> None:
    """Evaluates unless result[at] has been evaluated."""
    if at not in result:
        result[at] = evaluate(desktops, tests, clock, at)
        with open(os.path.join(o.out, "result.json"), "w") as f:
            json.dump(result, f, indent=1)
    else:
        clock.done += 1


def tell_result(result: Json) -> int:
    b, a = result["before"], result["after"]
    apart = a["low"] > b["high"]
    print(
        f"{100 * b['reward']:.1f} % [{100 * b['low']:.1f}, {100 * b['high']:.1f}] -> "
        f"{100 * a['reward']:.1f} % [{100 * a['low']:.1f}, {100 * a['high']:.1f}] of {a['n']} unseen "
        f"tasks; the intervals {'do not meet' if apart else 'meet'}"
    )
    return 0 if apart else 1


def local_only(listen: str) -> bool:
    """Returns whether other machines cannot connect to HOST:PORT: a loopback address, or no address."""
    host = listen.rpartition(":")[0].strip("[]")
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host in ("", "*", "localhost")
    return address.is_loopback or address.is_unspecified


def arguments() -> argparse.Namespace:
    p = argparse.ArgumentParser(
        description=__doc__.split("\n")[0], usage="%(prog)s --out DIR [options] [-- options of holorun serve]"
    )
    p.add_argument(
        "--out", required=True, metavar="DIR", help="results; a loop that was stopped goes on there"
    )
    p.add_argument("--page", choices=PAGES, default="wanted", help="[wanted]")
    p.add_argument("--rounds", type=int, default=7, help="[7]")
    p.add_argument("--tasks", type=int, default=12, help="of a round [12]")
    p.add_argument("--samples", type=int, default=6, help="episodes of each [6]")
    p.add_argument("--evaluate", type=int, default=100, help="unseen tasks [100]")
    p.add_argument("--updates", type=int, default=2, help="optimiser steps of a round [2]")
    p.add_argument("--batch", type=int, default=4)
    p.add_argument("--rate", type=float, default=2e-4)
    p.add_argument("--clip", type=float, default=0.2)
    p.add_argument("--truncate", type=float, default=2.0, help="the factor for older weights [2]")
    p.add_argument("--steps", type=int, default=2, help="of an episode [2]")
    p.add_argument("--slots", type=int, default=2, help="processes with desktops [2]")
    p.add_argument("--jobs", type=int, default=2, help="episodes at a time in a slot [2]")
    p.add_argument("--cpus", type=float, default=1, help="cores of a slot, for Ray's scheduler [1]")
    p.add_argument("--stale", type=int, default=1, help="most versions by which episodes may be older [1]")
    p.add_argument(
        "--least-mb", type=int, default=500, help="free disk and memory that a machine needs [500]"
    )
    p.add_argument("--address", help="of the cluster, as ray.init takes it; default: this machine")
    p.add_argument(
        "--listen",
        default="127.0.0.1:0",
        help="of holorun serve [127.0.0.1:0]; with --address one that the machines reach",
    )
    p.add_argument("--threads", type=int, default=2, help="of torch [2]")
    p.add_argument("--only-evaluate", action="store_true", help="measure the page and stop")
    p.add_argument("--holorun", default=os.path.join(ROOT, "holorun"))
    p.add_argument(
        "--form",
        default=os.path.join(ROOT, "build", "release", "helpers", "form"),
        help="the program that shows dialogs",
    )
    at = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    o = p.parse_args(sys.argv[1:at])
    o.serve = sys.argv[at + 1 :]
    if o.address and local_only(o.listen):
        p.error(f"--address: machines cannot connect to '{o.listen}': give --listen an address of this one")
    for program in [o.holorun] if o.address else [o.holorun, o.form]:
        if not shutil.which(program):
            p.error(f"program '{program}' not found: run make holorun build/release/helpers/form")
    o.out = os.path.abspath(o.out)
    return o


def main() -> int:
    o = arguments()
    torch.set_num_threads(o.threads)
    torch.manual_seed(1)
    os.makedirs(os.path.join(o.out, "models"), exist_ok=True)
    training = [[f"t{6_000_000 + 1000 * r + k}" for k in range(o.tasks)] for r in range(o.rounds)]
    unseen = [f"t{7_000_000 + k}" for k in range(o.evaluate)]
    suite, state_path, result_path = (
        os.path.join(o.out, n) for n in ("suite.yaml", "state.pt", "result.json")
    )
    write_suite(suite, o.page, [int(t[1:]) for r in [*training, unseen] for t in r], o.form, o.steps)
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
    ray.init(address=o.address or "local", log_to_driver=False, logging_level=logging.ERROR)
    ray.cloudpickle.register_pickle_by_value(ray_slot)  # machines need no copy of this file
    clock, policy = Clock(2 + o.rounds - begun), Policy(o, MODEL)
    desktops = Desktops(o, suite, policy.address, policy.token)
    judge(o, desktops, unseen, clock, "before", result)
    if o.only_evaluate:
        print({n: x for n, x in result["before"].items() if n != "rewards"})
        return 0
    version, loop = policy.load(weights), Loop(o, desktops, policy, learner)
    for r in range(begun, o.rounds):
        while begun + loop.asked < min(o.rounds, r + 1 + o.stale):
            loop.request(training[begun + loop.asked])
        row = loop.round(clock, r + 1)
        if row["parts"]:  # else all episodes of each task had one reward: nothing was learned
            weights = publish(o, learner, r + 1)
            version = policy.load(weights)
        row["version"] = version
        append(os.path.join(o.out, "curve.csv"), {**row, "pid": policy.process.pid})
        save(state_path, {"learner": learner.state(), "rounds": r + 1, "weights": weights})
        clock.tell(json.dumps(row), last=True)
    judge(o, desktops, unseen, clock, "after", result)
    desktops.close()
    policy.close()
    return tell_result(result)


if __name__ == "__main__":
    sys.exit(main())
