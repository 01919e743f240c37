"""Slots of ray_fleet.py on the machines of a cluster, which play the episodes of learn.py with one policy."""

import argparse
import collections
import time
from typing import Any

import ray

import ray_slot
from ray_slot import Item, Json

LOST_MOST = 50  # slots that end; more mean that the machines do not work
SICK_MOST = 2  # how often an episode is repeated that its machine could not run
FAILED_IN_A_ROW = 24  # episodes without a reward or an export; more mean that none will have one
START_S = 600  # seconds until one slot is ready: a cluster may add machines
STALL_S = 1800  # seconds of an episode after which its slot is killed; the suite's limit is 600
WAIT_S = 5  # seconds between two looks at these limits


class Desktops:
    """Plays episodes: ask() queues one, next() returns one. Lost slots are replaced.

    The slots get episodes only in next() and poll(), so a caller that does other work calls poll() meanwhile.
    """

    def __init__(self, o: argparse.Namespace, suite: str, address: str, token: str) -> None:
        self.o = o
        self.command = [o.holorun, "qa", suite, "--feed", "--quiet", "--base-url", address]
        self.command += ["--key", "file:" + token, "--temperature", "1", "--jobs", str(o.jobs)]
        self.queue: collections.deque[Item] = collections.deque()
        self.ended: collections.deque[tuple[str, int, Json]] = collections.deque()  # next() returns them
        self.open = 0  # episodes that next() will return
        self.slots: list[Any] = []
        self.nodes: dict[Any, str] = {}  # of each slot that has started
        self.flying: dict[Any, tuple[Any, Item | None, float]] = {}  # of a call; None: the slot is starting
        self.sick: dict[Item, int] = collections.Counter()
        self.lost = self.failed = 0
        self.worked = time.monotonic()  # when a slot was ready
        for _ in range(o.slots):
            self.start()

    def start(self) -> None:
        """Asks Ray for a slot, which starts when a machine has room for it."""
        kind: Any = ray.remote(ray_slot.Slot)
        slot = kind.options(
            num_cpus=self.o.cpus, max_concurrency=2 * self.o.jobs + 1, scheduling_strategy="SPREAD"
        ).remote(self.command, ["verl"], self.o.least_mb)
        self.slots.append(slot)
        self.flying[slot.start.remote()] = (slot, None, time.monotonic())

    def ask(self, test: str, sample: int) -> None:
        self.queue.append((test, sample))
        self.open += 1

    def give_out(self) -> None:
        """Gives each slot as many episodes as it has desktops, and as many that wait there for a free one."""
        busy = collections.Counter(slot for slot, what, _ in self.flying.values() if what)
        ready = [slot for slot in self.slots if slot in self.nodes]
        while self.queue and ready:
            slot = min(ready, key=lambda s: busy[s])
            if busy[slot] >= 2 * self.o.jobs:
                break
            what = self.queue.popleft()
            busy[slot] += 1
            self.flying[slot.run.remote(*what)] = (slot, what, time.monotonic())

    def poll(self, timeout: float = 0) -> None:
        """Gives out episodes, and collects those that end within timeout seconds."""
        self.give_out()
        many = 1 if timeout else max(1, len(self.flying))
        ready, _ = ray.wait(list(self.flying), num_returns=many, timeout=timeout)
        for ref in ready:
            found = self.collect(ref)
            if found:
                self.ended.append(found)
        self.give_out()
        self.stalled()

    def next(self) -> tuple[str, int, Json]:
        """Returns the next episode: test, sample, answer. Its reward is None if it could not run."""
        while not self.ended:
            self.poll(WAIT_S)
        self.open -= 1
        return self.ended.popleft()

    def collect(self, ref: Any) -> tuple[str, int, Json] | None:
        """Takes the result of a call. Returns an episode, or None if it is repeated or a slot has started."""
        slot, what, _ = self.flying.pop(ref)
        try:
            value = ray.get(ref)
        except ray.exceptions.RayError as e:
            if what:
                self.queue.appendleft(what)
            self.replace(slot, str(e))
            return None
        if what:
            return self.take(slot, what, value)
        node, _, fault = value
        if fault and not self.nodes:
            raise SystemExit(f"learn.py: machine {node} cannot run episodes: {fault}")
        if fault:
            self.replace(slot, fault)
        elif slot in self.slots:
            self.nodes[slot] = node
        return None

    def take(self, slot: Any, what: Item, answer: Json) -> tuple[str, int, Json] | None:
        """Returns an episode, or None if it is repeated because its machine could not run it."""
        sick = answer.get("sick")
        why = sick or (answer.get("export_errors") or [None])[0]
        if not why and answer.get("reward") is None:
            why = f"test {what[0]} has no reward: {answer.get('outcome')}"
        self.failed = self.failed + 1 if why else 0
        if self.failed > FAILED_IN_A_ROW:
            raise SystemExit(f"learn.py: {self.failed} episodes in a row failed, the last one: {why}")
        if sick and self.sick[what] < SICK_MOST:
            self.sick[what] += 1
            self.queue.append(what)
            return None
        return *what, {**answer, "reward": None if sick else answer["reward"], "node": self.nodes[slot]}

    def replace(self, slot: Any, why: str) -> None:
        """Kills a slot, whose calls fail, and starts another. Does nothing if that was done before."""
        if slot not in self.slots:
            return
        self.lost += 1
        if self.lost > LOST_MOST:
            raise SystemExit(f"learn.py: {self.lost} slots were lost, the last one: {why}")
        self.slots.remove(slot)
        ray.kill(slot)
        self.start()

    def stalled(self) -> None:
        """Replaces slots that have had an episode for too long; ends if no slot has started for too long."""
        now = time.monotonic()
        if any(slot in self.nodes for slot in self.slots):
            self.worked = now
        if now - self.worked > START_S:
            raise SystemExit(f"learn.py: no slot of {self.o.cpus:g} cores started within {START_S} s")
        for slot, what, begun in list(self.flying.values()):
            if what and now - begun > STALL_S:
                self.replace(slot, f"test {what[0]} did not end within {STALL_S} s")

    def close(self) -> None:
        closing = [slot.close.remote() for slot in self.slots if slot in self.nodes]
        if closing:
            ray.wait(closing, num_returns=len(closing), timeout=70)
