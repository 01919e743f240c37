#!/usr/bin/env python3
"""Runs a suite, or many episodes of its tests, on the machines of a Ray cluster.

    ray_fleet.py suite.yaml --out results --slots 12                    a suite: one merged report, the exit code of `holorun qa`
    ray_fleet.py suite.yaml --out rollouts --samples 8 --export verl    eight episodes of each test, for training
    ray_fleet.py suite.yaml --out results -- --base-url http://policy:8000/v1 --key env:KEY      one model for all slots

An actor is a slot: one `holorun qa --feed` process that holds the model (unless --base-url names one for all) and
runs --jobs tests at a time, each on a private desktop. The driver holds the queue. It gives a slot a test when a lane
is free, and writes results to --out as they end. If a slot dies, with its machine or alone, its unfinished tests are
given to another slot at most --retries times, and fleet.jsonl records each. A test that is lost more often has no
result, which makes the merged report undecided (exit code 5), never green. Only the driver writes results and accepts
one per test, so no test counts twice.

The suite, its programs and holorun must have the driver's paths on each machine (a shared folder). Alternatively
--ship FOLDER sends a folder with all of them through Ray's runtime environment, and paths are relative to it. Results
return through Ray. Needs only the package ray.
"""

import argparse
import collections
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading
import time

import ray

LEAST_ATTEMPTS_S = 30  # seconds; slots that repeatedly end sooner are not replaced


# ---- a slot, on some machine ----------------------------------------------------------------------------------------


class Slot:
    """A `holorun qa --feed` process; run() is called from as many threads as it has lanes."""

    def __init__(self, command, export):
        self.command, self.export = command, export
        self.dir = tempfile.mkdtemp(prefix="holorun-fleet-")
        self.waiting, self.lock, self.dead = {}, threading.Lock(), None
        self.log = open(os.path.join(self.dir, "log"), "wb")
        self.process = subprocess.Popen(command + ["--out", os.path.join(self.dir, "out")], text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=self.log)
        threading.Thread(target=self.read, daemon=True).start()

    def where(self):
        return ray.get_runtime_context().get_node_id()

    def read(self):
        for line in self.process.stdout:
            answer = json.loads(line)
            with self.lock:
                found = self.waiting.pop((answer.get("test"), answer.get("sample", 0)), None)
            if found:
                found["answer"] = answer
                found["event"].set()
        code = self.process.wait()
        with open(os.path.join(self.dir, "log"), "rb") as f:
            self.dead = f"holorun ended with {code}: {f.read()[-400:].decode(errors='replace').strip()}"
        with self.lock:
            for found in self.waiting.values():
                found["event"].set()

    def run(self, test, sample):
        """Runs a test; returns the process's answer with an archive of the test's folder."""
        mine = {"event": threading.Event()}
        with self.lock:
            if self.dead:
                raise RuntimeError(self.dead)
            self.waiting[test, sample] = mine
            self.process.stdin.write(json.dumps({"test": test, "sample": sample}) + "\n")
            self.process.stdin.flush()
        mine["event"].wait()
        answer = mine.get("answer")
        if answer is None:
            raise RuntimeError(self.dead)
        if "dir" in answer:
            answer["reward"], run = self.reward(answer["dir"])
            if self.export and run:
                self.convert(answer, run)
            answer["archive"] = self.pack(answer["dir"])
            shutil.rmtree(answer.pop("dir"), ignore_errors=True)
        return answer

    def reward(self, folder):
        """Returns the reward and the folder of the last run. The reward is 1 or 0 by the checks, or the number that a
        check prints as reward=X.
        """
        with open(os.path.join(folder, "results.json")) as f:
            test = json.load(f)["tests"][0]
        last = test["attempts"][-1] if test["attempts"] else {}
        for check in last.get("checks", []):
            said = re.search(r"\breward=(-?\d+(?:\.\d+)?)", check.get("detail") or "")
            if said:
                return float(said[1]), self.run_dir(folder, last)
        verdict = {"passed": 1.0, "failed": 0.0}.get(test["outcome"])  # an undecided episode has no reward
        return verdict, self.run_dir(folder, last)

    @staticmethod
    def run_dir(folder, attempt):
        return os.path.join(folder, attempt["run"]) if attempt.get("run") else None

    def convert(self, answer, run):
        for form in self.export:
            words = [self.command[0], "export", run, "--format", form, "--output", os.path.join(answer["dir"], "export-" + form)]
            words += ["--reward", str(answer["reward"])] if answer["reward"] is not None else []
            done = subprocess.run(words, capture_output=True, text=True)
            if done.returncode:
                answer.setdefault("export_errors", []).append(done.stderr.strip()[-300:])

    @staticmethod
    def pack(folder):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w") as tar:
            tar.add(folder, arcname=".")
        return out.getvalue()

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self.process.kill()
        shutil.rmtree(self.dir, ignore_errors=True)


# ---- the driver -----------------------------------------------------------------------------------------------------


class Fleet:
    def __init__(self, o, todo, command, seconds):
        self.o, self.command, self.seconds = o, command, seconds
        self.queue = collections.deque(todo)  # (test, sample)
        self.total, self.done, self.lost, self.given_up = len(todo), {}, collections.defaultdict(list), []
        self.slots, self.flying = [], {}  # flying: ref -> (slot, test); test None: the slot is starting
        self.outcomes, self.begun, self.told, self.failed_starts = collections.Counter(), time.monotonic(), 0, 0
        self.log = open(os.path.join(o.out, "fleet.jsonl"), "w", buffering=1)

    def start_slot(self):
        o = self.o
        actor = ray.remote(Slot).options(num_cpus=o.cpus, num_gpus=o.gpus, max_concurrency=o.jobs + 2, max_restarts=0).remote(
            self.command, o.export)
        slot = {"actor": actor, "node": None, "free": 0, "begun": time.monotonic(), "dead": False}
        self.slots.append(slot)
        self.flying[actor.where.remote()] = (slot, None)

    def give_out(self):
        for slot in self.slots:
            while slot["free"] and self.queue:
                what = self.queue.popleft()
                slot["free"] -= 1
                self.flying[slot["actor"].run.remote(*what)] = (slot, (*what, time.monotonic()))

    def write(self, **line):
        self.log.write(json.dumps(line) + "\n")

    def take(self, slot, what, answer):
        """Stores a result."""
        test, sample, begun = what
        if (test, sample) in self.done:
            raise AssertionError(f"{test} {sample} has two results")
        if "archive" not in answer:
            raise SystemExit(f"ray_fleet.py: {test}: {answer.get('error')}")
        folder = os.path.join(self.o.out, "tests", test, *([str(sample)] if self.o.samples else []))
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        with tarfile.open(fileobj=io.BytesIO(answer.pop("archive"))) as tar:
            tar.extractall(folder, filter="data")
        answer["lost_on"] = self.lost[test, sample]
        self.done[test, sample] = answer
        self.outcomes[answer["outcome"]] += 1
        self.write(**answer, node=slot["node"], wall=round(time.monotonic() - begun, 3), folder=os.path.relpath(folder, self.o.out))
        self.tell(f"{answer['outcome']:>12}  {test}{f' #{sample}' if self.o.samples else ''}  {answer['seconds']:.1f} s")
        slot["free"] += 1

    def give_back(self, slot, what, why):
        """Returns the test of a dead slot to the queue."""
        if what:
            test, sample, _ = what
            self.lost[test, sample].append(slot["node"])
            if len(self.lost[test, sample]) > self.o.retries:
                self.given_up.append((test, sample))
                self.write(test=test, sample=sample, outcome=None, lost_on=self.lost[test, sample], error=why)
                self.tell(f"{'lost':>12}  {test}  on {len(self.lost[test, sample])} slots")
            else:
                self.queue.appendleft((test, sample))
                self.tell(f"{'again':>12}  {test}  its slot is gone")
        if slot["dead"]:
            return
        slot["dead"] = True
        self.slots.remove(slot)
        self.write(slot_lost=slot["node"], error=why)
        print(f"a slot is gone: {why}", file=sys.stderr)
        ray.kill(slot["actor"])
        self.failed_starts = self.failed_starts + 1 if time.monotonic() - slot["begun"] < LEAST_ATTEMPTS_S else 0
        if self.failed_starts > 3 * self.o.slots:
            raise SystemExit(f"ray_fleet.py: slots end as soon as they start: {why}")
        self.start_slot()

    def tell(self, line):
        """Prints a line per test, with the remaining time at the pace so far."""
        n, now = len(self.done) + len(self.given_up), time.monotonic()
        ready = [s for s in self.slots if s["node"]]
        left = (now - self.begun) / n * (self.total - n) if n else None
        when = f", {left / 60:.0f} min left" if left and left >= 90 else f", {left:.0f} s left" if left else ""
        print(f"{n}/{self.total}  {line}   [{len(ready)} slots on {len({s['node'] for s in ready})} machines{when}]", file=sys.stderr)
        self.told = now

    def stalled(self):
        """Kills slots that have had a test for longer than --stall."""
        for ref, (slot, what) in list(self.flying.items()):
            if what and self.o.stall and time.monotonic() - what[2] > self.o.stall:
                ray.kill(slot["actor"])  # its calls fail, which returns its tests

    def run(self):
        for _ in range(min(self.o.slots, self.total)):
            self.start_slot()
        while len(self.done) + len(self.given_up) < self.total:
            self.give_out()
            ready, _ = ray.wait(list(self.flying), num_returns=1, timeout=5)
            for ref in ready:
                slot, what = self.flying.pop(ref)
                try:
                    value = ray.get(ref)
                except ray.exceptions.RayError as e:
                    self.give_back(slot, what, " ".join(str(e).split())[:300])
                    continue
                if what:
                    self.take(slot, what, value)
                else:
                    slot["node"], slot["free"] = value, self.o.jobs
            self.stalled()
            if not ready and time.monotonic() - self.told > 30:
                self.tell("waiting")
        closing = [s["actor"].close.remote() for s in self.slots if s["node"]]
        ray.wait(closing, num_returns=len(closing), timeout=70)
        self.write(tests=self.total, done=len(self.done), given_up=len(self.given_up), outcomes=dict(self.outcomes),
                   taken_up_again=sum(1 for lost in self.lost.values() if lost), seconds=round(time.monotonic() - self.begun, 1))


def tests_of(o, qa):
    """Returns the ids of the selected tests, slowest ones of earlier runs first."""
    listed = subprocess.run(qa + ["--list", "--json"] + [w for p in o.only for w in ("--only", p)], capture_output=True, text=True)
    if listed.returncode:
        raise SystemExit(listed.stderr.strip())
    ids = [t["id"] for t in json.loads(listed.stdout)["tests"]]
    seconds = {}
    if o.times:
        with open(o.times) as f:
            seconds = {t["id"]: t["seconds"] for t in json.load(f)["tests"]}
    return sorted(ids, key=lambda i: -seconds.get(i, 1e9)), seconds


def main(argv=None):
    p = argparse.ArgumentParser(prog="ray_fleet.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("suite", metavar="SUITE.yaml")
    p.add_argument("--out", required=True, metavar="DIR", help="folder for results; what is in it is removed")
    p.add_argument("--only", action="append", default=[], metavar="ID|tag:NAME", help="as of holorun qa; may be repeated")
    p.add_argument("--samples", type=int, default=0, metavar="K", help="K episodes of each test, each with random numbers of its own")
    p.add_argument("--export", action="append", default=[], metavar="FORMAT", help="convert each run by holorun export; may be repeated")
    p.add_argument("--slots", type=int, default=1, metavar="N", help="processes in the cluster [1]")
    p.add_argument("--jobs", type=int, default=1, metavar="J", help="tests at a time in a slot, with one model [1]")
    p.add_argument("--cpus", type=float, default=1, metavar="C", help="cores of a slot, for Ray's scheduler [1]")
    p.add_argument("--gpus", type=float, default=0, metavar="G", help="cards of a slot [0]")
    p.add_argument("--retries", type=int, default=2, metavar="N", help="how often a test is given to another slot when its own dies [2]")
    p.add_argument("--stall", type=float, default=1800, metavar="SECONDS", help="a slot with a test for so long is killed; 0: never [1800]")
    p.add_argument("--times", metavar="FILE", help="results.json of an earlier run: the longest tests first")
    p.add_argument("--address", metavar="ADDRESS", help="of the cluster, as ray.init takes it; default: $RAY_ADDRESS, else this machine")
    p.add_argument("--ship", metavar="FOLDER", help="send this folder to all machines; the suite and --holorun are relative to it")
    p.add_argument("--holorun", default="holorun", metavar="PROGRAM", help="on every machine [holorun]")
    argv = sys.argv[1:] if argv is None else argv
    at = argv.index("--") if "--" in argv else len(argv)
    o, more = p.parse_args(argv[:at]), argv[at + 1:]
    o.out = os.path.abspath(o.out)
    if o.ship:
        os.chdir(o.ship)
    qa = [o.holorun, "qa", o.suite]
    ids, seconds = tests_of(o, qa)
    todo = [(i, k) for k in range(o.samples or 1) for i in ids]
    shutil.rmtree(o.out, ignore_errors=True)
    os.makedirs(o.out)
    if not ray.is_initialized():
        ray.init(address=o.address, runtime_env={"working_dir": "."} if o.ship else None, log_to_driver=False, logging_level="error")
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])  # machines need no copy of this file
    fleet = Fleet(o, todo, qa + ["--feed", "--jobs", str(o.jobs)] + more, seconds)
    fleet.run()
    if o.samples:
        return 5 if fleet.given_up else 0
    folders = [os.path.join(o.out, "tests", i) for i in ids if (i, 0) in fleet.done]
    return subprocess.run([o.holorun, "qa", "merge", "--out", os.path.join(o.out, "merged"), *folders]).returncode


if __name__ == "__main__":
    sys.exit(main())
