#!/usr/bin/env python3
"""Predicts throughput and step times of a fleet by simulating desktops, cores, replicas and losses.

    sizing.py --desktops 1000 --machines 32 --cores 16 --replicas 24 --policy-s 0.9 --policy-more-s 0.05
    sizing.py --measured h200.json --desktops 100 --replicas 12      a policy measured by `holorun bench`
    sizing.py --fit scale.jsonl      fits to two runs of `ray_try.py --scale` and predicts the others

A desktop runs tests in sequence. A test starts (CPU work), then has steps: a pause in which an action settles
(waiting), CPU work (capture, PNG, checks), and a reply. Desktops on a machine share its cores. A replica of
the policy answers n concurrent requests in policy-s + (n - 1) * policy-more-s each, like a server that
decodes in batches, and a desktop keeps its replica. A machine is lost every --mtbf-h hours on average: its
tests start again elsewhere, and it returns after --back-s. --gpu-h and --machine-h are prices, from which
the cost of a million steps follows.
"""

import argparse
import heapq
import json
import random
from collections.abc import Callable
from functools import partial
from typing import Any

Json = dict[str, Any]


class Shared:
    """A resource shared by n jobs, each at rate(n) of the speed of a single one."""

    def __init__(self, sim: "Simulation", rate: Callable[[int], float]) -> None:
        self.sim, self.rate = sim, rate
        self.jobs: list[tuple[float, int, Callable[[], None]]] = []
        self.done, self.at, self.mark, self.busy = 0.0, 0.0, 0, 0.0

    def advance(self) -> None:
        n, now = len(self.jobs), self.sim.now
        if n:
            self.done += (now - self.at) * self.rate(n)
            self.busy += now - self.at
        self.at = now

    def add(self, work: float, then: Callable[[], None]) -> None:
        self.advance()
        heapq.heappush(self.jobs, (self.done + work, next(self.sim.count), then))
        self.plan()

    def plan(self) -> None:
        self.mark += 1
        if self.jobs:
            wait = max(0.0, (self.jobs[0][0] - self.done) / self.rate(len(self.jobs)))
            self.sim.at(wait, partial(self.finish, self.mark))

    def finish(self, mark: int) -> None:
        if mark != self.mark:  # jobs came or went in the meantime
            return
        self.advance()
        _, _, then = heapq.heappop(self.jobs)
        self.plan()
        then()


class Simulation:
    def __init__(self, o: argparse.Namespace) -> None:
        self.o, self.now, self.random = o, 0.0, random.Random(o.seed)
        self.events: list[tuple[float, int, Callable[[], None]]] = []
        self.count = iter(range(1 << 60))
        self.machines = [Shared(self, lambda n: min(1.0, o.cores / n)) for _ in range(o.machines)]
        self.replicas = [
            Shared(self, lambda n: o.policy_s / (o.policy_s + (n - 1) * o.policy_more_s))
            for _ in range(o.replicas)
        ]
        self.steps: list[float] = []
        self.took: list[float] = []
        self.life, self.tests, self.lost, self.started = [0] * o.machines, 0, 0, 0

    def at(self, wait: float, what: Callable[[], None]) -> None:
        heapq.heappush(self.events, (self.now + wait, next(self.count), what))

    def vary(self, mean: float) -> float:
        return self.random.gammavariate(4, mean / 4) if mean else 0.0

    def of(self, weight: float | None) -> Callable[[float], float]:
        """Returns a function that varies a mean: by the weight of a test if it is known, else randomly."""
        return self.vary if weight is None else lambda mean: mean * weight

    def test(self, desktop: int) -> None:
        o, machine = self.o, desktop % self.o.machines
        if o.tests and self.started >= o.tests:
            return
        vary = self.of(o.weights[self.started % len(o.weights)] if o.weights else None)
        self.started += 1
        life = self.life[machine]
        cores, replica = self.machines[machine], self.replicas[desktop % len(self.replicas)]
        left, first = [o.steps], self.now

        def alive() -> bool:
            if self.life[machine] == life:
                return True
            self.lost += 1
            self.started -= 1  # another desktop starts it again
            self.at(o.back_s, lambda: self.test(desktop))
            return False

        def pause() -> None:
            if alive():
                self.at(vary(o.settle_s), lambda: look(self.now))

        def look(begun: float) -> None:
            cores.add(
                self.vary(o.step_core_s), lambda: replica.add(self.vary(o.policy_s), lambda: stepped(begun))
            )

        def stepped(begun: float) -> None:
            self.steps.append(self.now - begun)
            left[0] -= 1
            if left[0]:
                pause()
            elif alive():
                self.tests += 1
                self.took.append(self.now - first)
                self.test(desktop)

        cores.add(vary(o.start_core_s), lambda: self.at(vary(o.start_s), pause))

    def lose(self, machine: int) -> None:
        self.life[machine] += 1
        self.at(self.random.expovariate(1 / (self.o.mtbf_h * 3600)), lambda: self.lose(machine))

    def run(self) -> Json:
        o = self.o
        for d in range(o.desktops):
            self.at(self.random.random() * o.settle_s, partial(self.test, d))
        if o.mtbf_h:
            for m in range(o.machines):
                self.at(self.random.expovariate(1 / (o.mtbf_h * 3600)), partial(self.lose, m))
        while self.events and self.now < o.seconds and not (o.tests and self.tests >= o.tests):
            self.now, _, what = heapq.heappop(self.events)
            what()
        steps, took, now = sorted(self.steps) or [0.0], sorted(self.took) or [0.0], self.now
        return {
            "seconds": round(now, 1),
            "tests": self.tests,
            "tests_per_h": round(3600 * self.tests / now, 1),
            "steps_per_s": round(len(self.steps) / now, 2),
            "step_median_s": round(steps[len(steps) // 2], 2),
            "step_p95_s": round(steps[int(0.95 * (len(steps) - 1))], 2),
            "test_mean_s": round(sum(took) / len(took), 2),
            "test_p95_s": round(took[int(0.95 * (len(took) - 1))], 2),
            "tests_lost": self.lost,
            "policy_busy_percent": round(100 * sum(r.busy for r in self.replicas) / now / len(self.replicas)),
            "screenshots_MB_per_s": round(len(self.steps) / now * o.screenshot_kb / 1e3, 2),
            "cost_of_1M_steps": round(
                1e6
                * (o.replicas * o.gpu_h + o.machines * o.machine_h)
                / 3600
                / max(1e-9, len(self.steps) / now)
            ),
        }


def read_measured(o: argparse.Namespace, path: str) -> None:
    """Sets the time of a reply from the rows of one and of a hundred sessions (`bench --section fleet`)."""
    with open(path) as f:
        rows = {
            r["name"]: r.get("median_ms", 0) / 1e3
            for r in json.load(f)["rows"]
            if r["weights"].startswith("auto")
        }
    one, all_100 = (rows[f"{n}: 1920x1080 screen, reply of 100"] for n in ("1 session", "100 sessions"))
    o.policy_s, o.policy_more_s = one, (all_100 - one) / 99


def fit(o: argparse.Namespace, path: str) -> None:
    """Fits a test's waiting and CPU seconds to the two runs with the fewest desktops.

    All runs share the cores of one machine, and the share left by its neighbours is part of the fit. The
    variation between tests comes only from the first run: most tests of a suite are short, and its p95 is
    that of the long ones.
    """
    with open(path) as f:
        runs = sorted((json.loads(line) for line in f), key=lambda r: r["slots"] * r["jobs"])
    o.machines, o.replicas, o.steps, o.policy_s, o.policy_more_s, o.mtbf_h, o.seconds = (
        1,
        1,
        1,
        1e-6,
        0.0,
        0,
        1e9,
    )
    o.step_core_s, o.start_s, o.cores = 0.0, 0.0, 2
    o.weights = [w / runs[0]["mean_s"] for w in runs[0].get("walls", [])]

    def simulate(run: Json, wait: float, core: float) -> Json:
        o.desktops, o.tests, o.settle_s, o.start_core_s = run["slots"] * run["jobs"], run["tests"], wait, core
        return Simulation(o).run()

    def error(wait: float, core: float) -> float:
        return float(
            sum(
                (p["seconds"] / r["seconds"] - 1) ** 2 + (p["test_mean_s"] / r["mean_s"] - 1) ** 2
                for r, p in ((r, simulate(r, wait, core)) for r in runs[:2])
            )
        )

    grid = [(w, c) for w in [0.5 * 1.12**i for i in range(45)] for c in [0.02 * 1.15**i for i in range(50)]]
    wait, core = min(grid, key=lambda g: error(*g))
    print(f"fitted to the first two: {wait:.2f} s of waiting and {core:.2f} s of a core for each test\n")
    print(
        "| nodes | tests at a time | tests | tests/h measured | predicted | "
        "| p95 of a test measured | predicted | |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for i, r in enumerate(runs):
        p, pace = simulate(r, wait, core), 3600 * r["tests"] / r["seconds"]
        print(
            f"| {r['nodes']} | {r['slots'] * r['jobs']} | {r['tests']} | {pace:.0f} | "
            f"{p['tests_per_h']:.0f}{' (fitted)' if i < 2 else ''} | "
            f"{100 * (p['tests_per_h'] / pace - 1):+.0f} % | {r['p95_s']:.1f} s | {p['test_p95_s']:.1f} s | "
            f"{100 * (p['test_p95_s'] / r['p95_s'] - 1):+.0f} % |"
        )


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--fit", metavar="FILE")
    p.add_argument("--measured", metavar="FILE", help="results of `holorun bench --section fleet --json`")
    for name, kind, default, text in [
        ("desktops", int, 100, "tests at a time"),
        ("machines", int, 7, "with desktops"),
        ("cores", float, 16, "of each machine"),
        ("replicas", int, 4, "of the policy"),
        ("policy-s", float, 0.9, "a reply alone"),
        ("policy-more-s", float, 0.05, "for each other request in the batch"),
        ("steps", int, 12, "of a test"),
        ("settle-s", float, 1.5, "acting and settling, without work"),
        ("step-core-s", float, 0.15, "work of a core in a step"),
        ("start-core-s", float, 2.0, "work of a core to start desktop and program"),
        ("start-s", float, 1.0, "waiting for it"),
        ("mtbf-h", float, 200, "hours between losses of a machine; 0: none"),
        ("back-s", float, 120, "until its tests begin again"),
        ("screenshot-kb", float, 150, "of a PNG, as it is sent"),
        ("seconds", float, 3600, "simulated"),
        ("tests", int, 0, "that there are; 0: without end"),
        ("gpu-h", float, 0, "price of a replica for an hour"),
        ("machine-h", float, 0, "price of a machine for an hour"),
        ("seed", int, 1, "of the random numbers"),
    ]:
        p.add_argument("--" + name, type=kind, default=default, help=f"{text} [{default}]")
    o = p.parse_args()
    o.weights = []
    if o.measured:
        read_measured(o, o.measured)
    if o.fit:
        fit(o, o.fit)
    else:
        print(json.dumps(Simulation(o).run()))


if __name__ == "__main__":
    main()
