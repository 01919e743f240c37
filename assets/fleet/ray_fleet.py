#!/usr/bin/env python3
"""Runs a suite, or many episodes of its tests, on the machines of a Ray cluster.

    ray_fleet.py suite.yaml --out results --slots 12     one merged report, the exit code of `holorun qa`
    ray_fleet.py suite.yaml --out rollouts --samples 8 --export verl     eight episodes of each test
    ray_fleet.py suite.yaml --out results -- --base-url http://policy:8000/v1      one model for all slots

An actor is a slot: one `holorun qa --feed` process that holds the model (unless --base-url names one for all)
and runs --jobs tests at a time, each on a private desktop. The driver holds the queue. It gives a slot a test
when a lane is free, and writes results to --out as they end. If a slot dies, with its machine or alone, its
unfinished tests are given to another slot at most --retries times, and fleet.jsonl records each. A test that
is lost more often has no result, which makes the merged report undecided (exit code 5), never green. Only the
driver writes results and accepts one per test, so no test counts twice.

A machine runs tests only if it has enough disk and memory, Xvfb, and a clock that agrees with the driver's. A
test that could not run because of its machine (no display, a full disk) is given to another one. A machine
with three such errors in a row is excluded, and the end of the run names it.

--out is the queue. If the driver or the cluster ends early, the results so far are merged, and the same
command continues. A folder that another command wrote is refused; --fresh starts again. A report of the
results so far (merged/junit.xml, merged/report.html) is written after the first result, and then at least
once a minute, or less often if writing it takes more than 3 seconds.

The suite, its programs and holorun must have the driver's paths on each machine (a shared folder).
Alternatively --ship FOLDER sends a folder with all of them through Ray's runtime environment, and paths are
relative to it. Results return through Ray. Needs only the package ray.

Exit codes: those of `holorun qa`; 3 if the cluster was lost or no machine can run tests, 130 after Ctrl-C.
"""

import argparse
import collections
import contextlib
import ctypes
import json
import logging
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from typing import Any

import ray

import ray_slot
from ray_slot import Item, Json
from ray_store import Store, refuse

Flight = tuple[str, int, float]  # and when it was given out

LEAST_ATTEMPTS_S = 30  # seconds; slots that repeatedly end sooner are not replaced
ERRORS_IN_A_ROW = 3  # before a machine is excluded
FIRST_S = 1  # before the first report of a run that continues; the pause doubles after each
LIVE_S = 60  # longest pause between two reports
MOST_NOTES, NOTE = 32, 900  # of `holorun qa merge`, and the bytes of each
PR_SET_PDEATHSIG = 1  # of <linux/prctl.h>
ENVIRONMENT, UNDECIDED, STOPPED = 3, 5, 130  # exit codes


# ---- the driver --------------------------------------------------------------------------------------------


class Fleet:
    def __init__(self, o: argparse.Namespace, todo: list[Item], command: list[str], store: Store) -> None:
        self.o, self.command, self.store = o, command, store
        self.done = [x for x in todo if store.has(*x, o.samples)]
        there = set(self.done)
        self.queue = collections.deque(x for x in todo if x not in there)  # (test, sample)
        self.total = len(todo)
        self.lost: dict[Item, list[str]] = collections.defaultdict(list)
        self.given_up: list[Item] = []
        self.slots: list[Json] = []
        self.flying: dict[Any, tuple[Json, Flight | None]] = {}  # of a call; None: the slot is starting
        self.errors: dict[str, int] = collections.Counter()  # of each machine, in a row
        self.excluded: dict[str, str] = {}  # machines and the reason
        self.outcomes: dict[str, int] = collections.Counter()
        self.begun, self.told, self.failed_starts = time.monotonic(), 0.0, 0
        self.before = len(self.done)
        self.log = store.log()

    def healthy(self) -> list[str]:
        return [
            n["NodeID"]
            for n in ray.nodes()
            if n["Alive"] and n["NodeID"] not in self.excluded and n["Resources"].get("CPU", 0) >= self.o.cpus
        ]

    def start_slot(self) -> None:
        o, node = self.o, None
        place: Any = "DEFAULT"
        if self.excluded:
            nodes, used = self.healthy(), collections.Counter(s["node"] for s in self.slots)
            if not nodes:
                raise SystemExit(
                    f"ray_fleet.py: no machine can run tests: {'; '.join(self.excluded.values())}"
                )
            node = min(nodes, key=lambda n: used[n])
            place = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(node, soft=False)
        kind: Any = ray.remote(ray_slot.Slot)
        actor = kind.options(
            num_cpus=o.cpus,
            num_gpus=o.gpus,
            max_concurrency=o.jobs + 2,
            max_restarts=0,
            scheduling_strategy=place,
        ).remote(self.command, o.export, o.least_mb)
        slot: Json = {
            "actor": actor,
            "node": node,
            "ready": False,
            "free": 0,
            "begun": time.monotonic(),
            "asked": time.time(),
            "dead": False,
        }
        self.slots.append(slot)
        self.flying[actor.start.remote()] = (slot, None)

    def give_out(self) -> None:
        for slot in self.slots:
            while slot["free"] and self.queue:
                what = self.queue.popleft()
                slot["free"] -= 1
                self.flying[slot["actor"].run.remote(*what)] = (slot, (*what, time.monotonic()))

    def write(self, **line: Any) -> None:
        self.log.write(json.dumps(line) + "\n")

    def take(self, slot: Json, what: Flight, answer: Json) -> None:
        """Stores a result, or gives the test to another machine if this one could not run it."""
        test, sample, begun = what
        slot["free"] += 1
        sick, node = answer.pop("sick"), slot["node"]
        self.errors[node] = self.errors[node] + 1 if sick else 0
        if sick and ("archive" not in answer or len(self.lost[test, sample]) < self.o.retries):
            self.again(test, sample, node, sick, "its machine cannot run it")
        else:
            folder = self.store.place(test, sample, self.o.samples)
            self.store.put(folder, answer.pop("archive"))
            self.done.append((test, sample))
            self.outcomes[answer["outcome"]] += 1
            self.write(
                **answer,
                lost_on=self.lost[test, sample],
                node=node,
                wall=round(time.monotonic() - begun, 3),
                folder=os.path.relpath(folder, self.o.out),
            )
            self.tell(
                f"{answer['outcome']:>12}  {test}{f' #{sample}' if self.o.samples else ''}  "
                f"{answer['seconds']:.1f} s"
            )
        if self.errors[node] >= ERRORS_IN_A_ROW:
            self.exclude(node, sick)

    def again(self, test: str, sample: int, node: str, why: str, note: str) -> None:
        """Queues a test that has no result, at most --retries times."""
        self.lost[test, sample].append(node)
        if len(self.lost[test, sample]) > self.o.retries:
            self.given_up.append((test, sample))
            self.write(test=test, sample=sample, outcome=None, lost_on=self.lost[test, sample], error=why)
            self.tell(f"{'lost':>12}  {test}  on {len(self.lost[test, sample])} slots: {why}")
        else:
            self.queue.append((test, sample))
            self.tell(f"{'again':>12}  {test}  {note}: {why}")

    def exclude(self, node: str, why: str) -> None:
        """Ends the slots of a machine, and starts others elsewhere."""
        if node in self.excluded:
            return
        host = next((n["NodeManagerHostname"] for n in ray.nodes() if n["NodeID"] == node), "")
        self.excluded[node] = f"machine {host} ({node[:8]}) gets no more tests: {why}"
        self.write(excluded=node, error=self.excluded[node])
        print(self.excluded[node], file=sys.stderr)
        for slot in [s for s in self.slots if s["node"] == node]:
            self.replace(slot, why)

    def replace(self, slot: Json, why: str) -> None:
        if slot["dead"]:
            return
        slot["dead"], slot["free"] = True, 0
        self.slots.remove(slot)
        ray.kill(slot["actor"])  # the calls in flight fail, which returns their tests
        if slot["node"] not in self.excluded:
            self.failed_starts = (
                self.failed_starts + 1 if time.monotonic() - slot["begun"] < LEAST_ATTEMPTS_S else 0
            )
        if self.failed_starts > 3 * self.o.slots:
            raise SystemExit(f"ray_fleet.py: slots end as soon as they start: {why}")
        self.start_slot()

    def give_back(self, slot: Json, what: Flight | None, why: str) -> None:
        """Returns the test of a dead slot to the queue."""
        if what:
            self.again(what[0], what[1], slot["node"], why, "its slot is gone")
        if slot["dead"]:
            return
        self.write(slot_lost=slot["node"], error=why)
        print(f"a slot is gone: {why}", file=sys.stderr)
        self.replace(slot, why)

    def tell(self, line: str) -> None:
        """Prints a line per test, with the remaining time at the pace so far."""
        n, now = len(self.done) + len(self.given_up), time.monotonic()
        ready, new = [s for s in self.slots if s["ready"]], n - self.before
        left = (now - self.begun) / new * (self.total - n) if new else None
        when = (
            f", {left / 60:.0f} min left" if left and left >= 90 else f", {left:.0f} s left" if left else ""
        )
        sick = f", {len(self.excluded)} excluded" if self.excluded else ""
        print(
            f"{n}/{self.total}  {line}   [{len(ready)} slots on "
            f"{len({s['node'] for s in ready})} machines{sick}{when}]",
            file=sys.stderr,
        )
        self.told = now

    def stalled(self) -> None:
        """Kills slots that have had a test for longer than --stall."""
        for slot, what in list(self.flying.values()):
            if what and self.o.stall and time.monotonic() - what[2] > self.o.stall:
                ray.kill(slot["actor"])  # its calls fail, which returns its tests

    def collect(self, ref: Any) -> None:
        slot, what = self.flying.pop(ref)
        try:
            value = ray.get(ref)
        except ray.exceptions.RayError as e:
            self.give_back(slot, what, " ".join(str(e).split())[-1000:])
            return
        if slot["dead"]:  # its machine was excluded meanwhile
            if what:
                self.again(*what[:2], slot["node"], self.excluded.get(slot["node"], ""), "its slot is gone")
        elif what:
            self.take(slot, what, value)
        else:
            slot["node"], clock, fault = value
            fault = fault or self.excluded.get(slot["node"]) or ray_slot.clock_fault(clock, slot["asked"])
            if fault:
                self.exclude(slot["node"], fault)
                self.replace(slot, fault)  # if another slot of the machine had excluded it
            else:
                slot["ready"], slot["free"] = True, self.o.jobs

    def run(self) -> int:
        if self.before:
            print(f"{self.before} of {self.total} results are there", file=sys.stderr)
        for _ in range(min(self.o.slots, len(self.queue))):
            self.start_slot()
        while len(self.done) + len(self.given_up) < self.total:
            self.give_out()
            ready, _ = ray.wait(list(self.flying), num_returns=1, timeout=5)
            for ref in ready:
                self.collect(ref)
            self.stalled()
            if not ready and time.monotonic() - self.told > 30:
                self.tell("waiting")
        closing = [s["actor"].close.remote() for s in self.slots if s["ready"]]
        ray.wait(closing, num_returns=len(closing), timeout=70) if closing else None
        self.write(
            tests=self.total,
            done=len(self.done),
            given_up=len(self.given_up),
            outcomes=dict(self.outcomes),
            excluded=self.excluded,
            taken_up_again=sum(1 for lost in self.lost.values() if lost),
            seconds=round(time.monotonic() - self.begun, 1),
        )
        for why in self.excluded.values():
            print(why, file=sys.stderr)
        return UNDECIDED if self.given_up else 0


# ---- the command -------------------------------------------------------------------------------------------


def tests_of(o: argparse.Namespace, qa: list[str]) -> list[str]:
    """Returns the ids of the selected tests, slowest ones of earlier runs first."""
    listed = subprocess.run(qa + ["--list", "--json"], check=False, capture_output=True, text=True)
    if listed.returncode:
        print(listed.stderr.strip(), file=sys.stderr)
        sys.exit(listed.returncode)
    ids = [t["id"] for t in json.loads(listed.stdout)["tests"]]
    seconds = {}
    if o.times:
        with open(o.times) as f:
            seconds = {t["id"]: t["seconds"] for t in json.load(f)["tests"]}
    return sorted(ids, key=lambda i: -seconds.get(i, 1e9))


def drive(
    o: argparse.Namespace, todo: list[Item], command: list[str], store: Store, connected: int | None = None
) -> int:
    """Runs the fleet; returns an exit code. Closes connected at its start. A lost Ray may end the process."""
    if not ray.is_initialized():
        ray.init(
            address=o.address or os.environ.get("RAY_ADDRESS") or "local",  # not a cluster that ended
            runtime_env={"working_dir": "."} if o.ship else None,
            log_to_driver=False,
            logging_level=logging.ERROR,
        )
    if connected is not None:
        os.close(connected)
    ray.cloudpickle.register_pickle_by_value(ray_slot)  # machines need no copy of this file
    try:
        return Fleet(o, todo, command, store).run()
    except SystemExit as e:
        print(e, file=sys.stderr)
        return ENVIRONMENT
    except KeyboardInterrupt:
        return STOPPED


def merge(o: argparse.Namespace, quiet: bool) -> int | None:
    """Merges the results so far; returns the exit code of `holorun qa merge`, or None if there are none."""
    tests = os.path.join(o.out, "tests")
    if not os.path.isdir(tests):
        return None
    notes: dict[str, str] = {}  # of each machine that was excluded, also by an earlier driver
    with open(os.path.join(o.out, "fleet.jsonl")) as f:
        for line in f:
            with contextlib.suppress(ValueError):  # of a driver that was killed
                told = json.loads(line)
                if isinstance(told.get("excluded"), str):
                    notes[told["excluded"]] = told["error"].encode()[:NOTE].decode(errors="ignore")
    words = [o.holorun, "qa", "merge", "--out", os.path.join(o.out, "merged")]
    words += ["--quiet"] * quiet + [w for x in list(notes.values())[-MOST_NOTES:] for w in ("--note", x)]
    words.append(tests)
    return subprocess.run(words, check=False, stderr=subprocess.DEVNULL if quiet else None).returncode


def supervise(o: argparse.Namespace, child: int, connected: int) -> int:
    """Waits for the process that drives Ray, and writes reports meanwhile. Returns its exit code.

    Kills it if its end of connected is still open after --connect seconds: Ray only limits single requests.
    """
    pause, last, stops = float(FIRST_S), time.monotonic(), 0
    limit = last + o.connect

    def stop(*_: Any) -> None:
        nonlocal stops
        stops += 1
        os.kill(child, signal.SIGINT if stops == 1 else signal.SIGKILL)

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    for number in before:
        signal.signal(number, stop)
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            for number, handler in before.items():
                signal.signal(number, handler)
            return STOPPED if stops else os.waitstatus_to_exitcode(status)
        time.sleep(0.2)
        if limit and select.select([connected], [], [], 0)[0]:
            limit = 0.0
        elif limit and time.monotonic() > limit:
            print(f"ray_fleet.py: no connection to Ray within {o.connect:.0f} s", file=sys.stderr)
            os.kill(child, signal.SIGKILL)
            limit = 0.0
        if not o.samples and time.monotonic() - last > pause:
            begun = time.monotonic()
            wanted = pause if merge(o, True) is None else min(LIVE_S, 2 * pause)
            last = time.monotonic()
            pause = max(wanted, 20 * (last - begun))


def parse(argv: list[str] | None) -> tuple[argparse.Namespace, list[str]]:
    p = argparse.ArgumentParser(
        prog="ray_fleet.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("suite", metavar="SUITE.yaml")
    p.add_argument(
        "--out",
        required=True,
        metavar="DIR",
        help="folder for results; the same command continues what is in it",
    )
    p.add_argument(
        "--fresh", action="store_true", help="remove the results of an earlier fleet in --out first"
    )
    p.add_argument(
        "--rerun", action="append", default=[], metavar="ID", help="run this test again; may be repeated"
    )
    p.add_argument(
        "--only", action="append", default=[], metavar="ID|tag:NAME", help="as of holorun qa; may be repeated"
    )
    p.add_argument(
        "--samples",
        type=int,
        default=0,
        metavar="K",
        help="K episodes of each test, each with random numbers of its own",
    )
    p.add_argument(
        "--export",
        action="append",
        default=[],
        metavar="FORMAT",
        help="convert each run by holorun export; may be repeated",
    )
    p.add_argument("--slots", type=int, default=1, metavar="N", help="processes in the cluster [1]")
    p.add_argument(
        "--jobs", type=int, default=1, metavar="J", help="tests at a time in a slot, with one model [1]"
    )
    p.add_argument(
        "--cpus", type=float, default=1, metavar="C", help="cores of a slot, for Ray's scheduler [1]"
    )
    p.add_argument("--gpus", type=float, default=0, metavar="G", help="cards of a slot [0]")
    p.add_argument(
        "--retries",
        type=int,
        default=2,
        metavar="N",
        help="how often a test is given to another slot when its own dies [2]",
    )
    p.add_argument(
        "--stall",
        type=float,
        default=1800,
        metavar="SECONDS",
        help="a slot with a test for so long is killed; 0: never [1800]",
    )
    p.add_argument(
        "--least-mb",
        type=int,
        default=500,
        metavar="MB",
        help="free disk and memory that a machine needs [500]",
    )
    p.add_argument("--times", metavar="FILE", help="results.json of an earlier run: the longest tests first")
    p.add_argument(
        "--address",
        metavar="ADDRESS",
        help="of the cluster, as ray.init takes it; default: $RAY_ADDRESS, else this machine",
    )
    p.add_argument(
        "--connect", type=float, default=120, metavar="SECONDS", help="longest wait for the cluster [120]"
    )
    p.add_argument(
        "--ship",
        metavar="FOLDER",
        help="send this folder to all machines; the suite and --holorun are relative to it",
    )
    p.add_argument("--holorun", default="holorun", metavar="PROGRAM", help="on every machine [holorun]")
    argv = sys.argv[1:] if argv is None else argv
    at = argv.index("--") if "--" in argv else len(argv)
    o, more = p.parse_args(argv[:at]), argv[at + 1 :]
    o.out, o.times = os.path.abspath(o.out), o.times and os.path.abspath(o.times)  # not of --ship
    return o, more


def main(argv: list[str] | None = None) -> int:
    o, more = parse(argv)
    if o.ship:
        os.chdir(o.ship)
    qa = [o.holorun, "qa", o.suite] + [w for x in o.only for w in ("--only", x)]
    ids = tests_of(o, qa)
    todo = [(i, k) for k in range(o.samples or 1) for i in ids]
    asked = {
        "suite": os.path.abspath(o.suite),
        "only": o.only,
        "samples": o.samples,
        "export": o.export,
        "options": more,
    }
    store = Store(o.out, asked, o.fresh)
    for test in o.rerun:
        if test not in ids:
            refuse(f"--rerun: the suite has no selected test '{test}'")
        shutil.rmtree(store.place(test, 0, 0), ignore_errors=True)
    command = qa + ["--feed", "--jobs", str(o.jobs)]
    command += ["--no-assist"] * bool(o.export)  # the reward of an exported episode is that of its tokens
    command += more
    if ray.is_initialized():  # by a caller, whose connection does not survive a fork
        code = drive(o, todo, command, store)
    else:
        ours, theirs = os.pipe()
        child = os.fork()
        if child == 0:
            os.setpgid(0, 0)  # Ctrl-C is for the supervisor
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            os._exit(drive(o, todo, command, store, theirs))
        os.close(theirs)
        code = supervise(o, child, ours)
    lost = code not in (0, UNDECIDED)
    if lost:
        print(f"the fleet ended early (exit code {code}); the same command continues", file=sys.stderr)
    if o.samples:
        return code if code in (0, UNDECIDED, STOPPED) else ENVIRONMENT
    merged = merge(o, False)
    return STOPPED if code == STOPPED else ENVIRONMENT if lost or merged is None else merged or code


if __name__ == "__main__":
    sys.exit(main())
