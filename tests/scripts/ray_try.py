#!/usr/bin/env python3
"""Runs 200 tests on a Ray cluster of three nodes on this machine, on which everything fails once.

    ray_try.py [--jobs J]              the faults below; needs root, for a small disk
    ray_try.py --hung                  a driver whose head does not answer, for --connect
    ray_try.py --scale                 100 tests with one, two and three nodes, without a loss: for the sizing page

Each test shows a dialog, clicks (replies are scripted) and checks the dialog's title, which one test in ten expects
to be another. The suite runs once without Ray. Then assets/fleet/ray_fleet.py runs it with two slots a node, and is
started again with the same command after each end. In this order: a node has no Xvfb, the driver is killed, a disk
fills, a holorun process hangs, the driver and its processes are killed, the head is killed, a node is killed, a Ray
worker hangs. The merged report must have the same verdicts, with each test once. Needs the package ray; prints a
table and writes it to tests/results/fleet-ray.md.
"""

import argparse
import collections
import contextlib
import datetime
import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "assets", "fleet"))
import ray
import ray_fleet
from ray.cluster_utils import Cluster

AT = os.path.join(ROOT, "build", "ray")
CROWD = os.path.join(ROOT, "tests", "suites", "crowd.yaml")
GREEDY = ["--temperature", "0", "--quiet"]
SUITE = '''suite:
  name: faults
  display: xvfb:640x480
  wm: ""
  elements: no
  start: exec "{form}" "dialog.html?seed=5000001&kind=buttons&labels=Left%7CRight"
  start_timeout_s: 120
  window: ^DIALOG pressed=
  steps: 4
  timeout_s: 600
  checks: [{ kind: window, title: "^DIALOG pressed={wanted}$", when: always, seconds: 0 }]
tests:
'''
REPLIES = "pyautogui.click(5, 5)\nDONE('It is pressed.')\n"
TESTS, FAILS = 200, 10  # one in FAILS expects another title
DISK_MB, STORE = 700, 80 << 20
CONNECT_S = 10
LEFT_S = 30  # until Ray has ended the slots
HEAD = {"num_cpus": 0, "object_store_memory": STORE, "include_dashboard": False}


def verdicts(folder):
    with open(os.path.join(folder, "results.json")) as f:
        return collections.Counter((t["id"], t["outcome"]) for t in json.load(f)["tests"])


def in_order(folder):
    """Returns the suite's tests in file order."""
    with open(os.path.join(folder, "results.json")) as f:
        return [t["id"] for t in sorted(json.load(f)["tests"], key=lambda t: t["line"])]


def counts(v):
    return ", ".join(f"{n} {o}" for o, n in sorted(collections.Counter(o for _, o in v.elements()).items()))


def lines(path):
    try:
        with open(path) as f:
            return [json.loads(x) for x in f if x.endswith("\n")]
    except FileNotFoundError:
        return []


# ---- the cluster -------------------------------------------------------------------------------------------


def without_xvfb():
    """Returns a folder with links to all programs but Xvfb."""
    folder = os.path.join(AT, "bin")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    for place in reversed(os.environ["PATH"].split(":")):
        for name in os.listdir(place) if os.path.isdir(place) else ():
            if name != "Xvfb":
                link = os.path.join(folder, name)
                if os.path.lexists(link):
                    os.unlink(link)
                os.symlink(os.path.join(place, name), link)
    return folder


class Nodes:
    """A head without slots and three nodes, each with its folder for temporary files; that of the second is small."""

    def __init__(self, third_path):
        self.folders = [os.path.join(AT, f"node{i}") for i in (1, 2, 3)]
        for folder in self.folders:
            os.makedirs(folder, exist_ok=True)
        self.cluster = Cluster(initialize_head=True, head_node_args=HEAD)
        self.nodes = [self.cluster.add_node(num_cpus=2, object_store_memory=STORE,
                                            env_vars={"TMPDIR": folder, **({"PATH": third_path} if third_path and i == 2 else {})})
                      for i, folder in enumerate(self.folders)]

    def processes(self, i, command):
        """Returns the processes of a node whose command line contains a word."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/environ", "rb") as f, open(f"/proc/{pid}/cmdline", "rb") as g:
                    environ, line = f.read().split(b"\0"), g.read().replace(b"\0", b" ").decode()
            except OSError:
                continue
            if f"TMPDIR={self.folders[i]}".encode() in environ and command in line:
                found.append(int(pid))
        return found

    def fill(self, i):
        with open(os.path.join(self.folders[i], "large"), "wb", buffering=0) as f:
            try:
                while True:
                    f.write(bytes(1 << 16))
            except OSError as e:
                assert e.errno == errno.ENOSPC

    def kill(self, i):
        self.cluster.remove_node(self.nodes[i], allow_graceful=False)

    def kill_head(self):
        self.cluster.head_node.kill_all_processes(check_alive=False, allow_graceful=False, wait=True)

    def close(self):
        for node in [*self.cluster.worker_nodes, self.cluster.head_node]:
            node.kill_all_processes(check_alive=False, allow_graceful=False, wait=True)


# ---- the driver --------------------------------------------------------------------------------------------


class Driver:
    def __init__(self, suite, holorun, out, jobs):
        self.options = ["--fake", os.path.join(AT, "replies.txt"), "--dialect", "pyautogui", "--quiet"]
        self.words = [sys.executable, os.path.join(ROOT, "assets", "fleet", "ray_fleet.py"), suite, "--out", out, "--slots", "6",
                      "--jobs", str(jobs), "--stall", "45", "--holorun", holorun]
        self.log, self.out, self.process, self.ends = os.path.join(out, "fleet.jsonl"), out, None, []
        self.told = open(os.path.join(AT, "progress"), "w")

    def start(self, address):
        self.process = subprocess.Popen([*self.words, "--address", address, "--", *self.options], stderr=self.told, start_new_session=True)

    def results(self):
        return [x for x in lines(self.log) if x.get("outcome")]

    def wait(self, n, until=lambda: True):
        """Waits for n results and a condition; returns the number of results."""
        while self.process.poll() is None:
            there = len(self.results())
            if there >= n and until():
                return there
            time.sleep(0.2)
        raise SystemExit(f"the driver ended with {self.process.wait()}; see {self.told.name}")

    def children(self):
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children") as f:
            return [int(pid) for pid in f.read().split()]

    def ended(self, why):
        """Records the end of the driver: results, exit code, tests in the report."""
        code = self.process.wait()
        report = os.path.join(self.out, "merged", "junit.xml")
        tests = xml.etree.ElementTree.parse(report).getroot().get("tests") if os.path.exists(report) else "none"
        self.ends.append((why, len(self.results()), code, tests))
        print(f"{datetime.datetime.now():%H:%M:%S} {self.ends[-1]}", flush=True)


def everything_fails(driver, n):
    """Runs the suite with all faults; returns what happened, a line each."""
    happened = []

    def note(text):
        happened.append(text)
        print(f"{datetime.datetime.now():%H:%M:%S} {text}", flush=True)

    nodes = Nodes(without_xvfb())
    driver.start(nodes.cluster.address)
    k = driver.wait(n // 20)
    note(f"{k} results: the driver was killed (SIGKILL of the process that was started)")
    driver.process.kill()
    driver.ended("SIGKILL")
    driver.start(nodes.cluster.address)
    k = driver.wait(k + n // 20)
    nodes.fill(1)
    note(f"{k} results: the disk of the second node was filled")
    k = driver.wait(k + n // 20, lambda: len({x["excluded"] for x in lines(driver.log) if isinstance(x.get("excluded"), str)}) > 1)
    pid = nodes.processes(0, "--feed")[0]
    os.kill(pid, signal.SIGSTOP)
    note(f"{k} results: a holorun process of the first node was stopped (SIGSTOP)")
    k = driver.wait(k + n // 20, lambda: not os.path.exists(f"/proc/{pid}"))
    note(f"{k} results: the driver and its children were killed")
    for victim in [*driver.children(), driver.process.pid]:
        os.kill(victim, signal.SIGKILL)
    driver.ended("SIGKILL")
    driver.start(nodes.cluster.address)
    k = driver.wait(k + n // 20)
    nodes.kill_head()
    note(f"{k} results: the head was killed")
    driver.ended("the cluster is lost")
    nodes.close()
    os.unlink(os.path.join(nodes.folders[1], "large"))
    nodes = Nodes(None)
    driver.start(nodes.cluster.address)
    k = driver.wait(k + n // 20)
    nodes.kill(2)
    note(f"{k} results: in a new cluster, a node was killed")
    k = driver.wait(k + n // 20)
    pid = nodes.processes(0, "ray::Slot")[0]
    os.kill(pid, signal.SIGSTOP)
    note(f"{k} results: a Ray worker was stopped (SIGSTOP)")
    driver.ended("all tests have results")
    ended = time.monotonic()
    while (left := [p for i in range(3) for p in nodes.processes(i, "--feed")]) and time.monotonic() - ended < LEFT_S:
        time.sleep(0.5)
    note(f"processes of holorun {time.monotonic() - ended:.0f} s after the end: {len(left)}")
    nodes.close()
    return happened


def faults(holorun, jobs, again):
    suite, alone, out = (os.path.join(AT, x) for x in ("suite.yaml", "alone", "fleet"))
    with open(suite, "w") as f:
        f.write(SUITE.replace("{form}", os.path.join(ROOT, "build", "release", "helpers", "form")))
        f.writelines(f"  - {{ id: t{i}, task: Press it, vars: {{ wanted: '{'' if i % FAILS else 'Left'}' }} }}\n"
                     for i in range(1, TESTS + 1))
    with open(os.path.join(AT, "replies.txt"), "w") as f:
        f.write(REPLIES)
    driver = Driver(suite, holorun, out, jobs)
    if not again:
        subprocess.run([holorun, "qa", suite, "--jobs", "4", "--out", alone, *driver.options], stderr=subprocess.DEVNULL)
    with open(os.path.join(alone, "results.json")) as f:
        told = json.load(f)
        code, seconds = told["exit_code"], told["seconds"]
    want = verdicts(alone)
    print(f"alone: {counts(want)}, {seconds:.0f} s", flush=True)
    shutil.rmtree(out, ignore_errors=True)
    small = os.path.join(AT, "node2")
    os.makedirs(small, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m", "holorun-test", small], check=True)
    begun = time.monotonic()
    try:
        happened = everything_fails(driver, sum(want.values()))
    finally:
        if driver.process and driver.process.poll() is None:
            driver.process.terminate()
            driver.process.wait()
        subprocess.run(["umount", "-l", small], check=True)
    return write(driver, happened, want, code, seconds, time.monotonic() - begun, jobs)


def write(driver, happened, want, alone, alone_s, seconds, jobs):
    log, merged = lines(driver.log), os.path.join(driver.out, "merged")
    got, code = verdicts(merged), driver.ends[-1][2]
    ended = collections.Counter(x["test"] for x in driver.results())
    same = got == want and code == alone
    once = all(n == 1 for n in ended.values()) and len(ended) == sum(want.values())
    with open(os.path.join(merged, "results.json")) as f:
        notes = [x.replace(ROOT + "/", "") for x in json.load(f).get("notes", [])]
    with open(os.path.join(AT, "progress")) as f:
        progress = f.read()
    with open(os.path.join(merged, "report.html")) as f:
        page = f.read()
    shown = notes and all(x.partition("(")[0] in page for x in notes) and " excluded" in progress
    text = f"""Ray {ray.__version__}, three nodes with two slots of {jobs} tests on one machine ({os.cpu_count()} cores), \
{datetime.date.today()}, 200 tests with scripted replies: `tests/scripts/ray_try.py`

| | tests | verdicts | exit | s |
|---|---|---|---|---|
| one machine, 4 at a time | {sum(want.values())} | {counts(want)} | {alone} | {alone_s:.0f} |
| Ray, merged | {sum(got.values())} | {counts(got)} | {code} | {seconds:.0f} |

""" + "".join(f"- {x}\n" for x in happened) + """
| the driver ended by | results | exit | tests in merged/junit.xml |
|---|---|---|---|
""" + "".join(f"| {why} | {n} | {code} | {tests} |\n" for why, n, code, tests in driver.ends) + f"""
- excluded machines, in the progress, the JSON and the HTML report: {'yes' if shown else 'no'}
""" + "".join(f"  - {x}\n" for x in notes) + f"""- slots that were lost: {sum(1 for x in log if 'slot_lost' in x)}; \
tests given to another slot: {sum(1 for x in log if x.get('lost_on'))}
- given up: {sum(1 for x in log if 'test' in x and x.get('outcome') is None)}; \
results written twice: {sum(n - 1 for n in ended.values())}; tests without a result: {sum(want.values()) - len(ended)}
- the same verdicts as on one machine: {'yes' if same else 'no'}
"""
    print(text)
    with open(os.path.join(ROOT, "tests", "results", "fleet-ray.md"), "w") as f:
        f.write(text)
    for id, outcome in (want - got) + (got - want):
        print(f"differs: {id}: {outcome}")
    return 0 if same and once and shown else 1


def hung(holorun):
    """Stops the head before the driver connects; returns 0 if the driver ends with 3 soon after --connect."""
    cluster = Cluster(initialize_head=True, head_node_args=HEAD)
    (head,) = cluster.head_node.all_processes["gcs_server"]
    head.process.send_signal(signal.SIGSTOP)
    words = [sys.executable, os.path.join(ROOT, "assets", "fleet", "ray_fleet.py"), CROWD, "--out", os.path.join(AT, "hung"), "--fresh",
             "--holorun", holorun, "--address", cluster.address, "--connect", str(CONNECT_S)]
    begun, code = time.monotonic(), None
    with contextlib.suppress(subprocess.TimeoutExpired):
        code = subprocess.run(words, timeout=10 * CONNECT_S).returncode
    print(f"the head does not answer: exit code {code} after {time.monotonic() - begun:.1f} s; the limit is {CONNECT_S} s")
    head.process.send_signal(signal.SIGCONT)
    cluster.shutdown()
    return 0 if code == ray_fleet.ENVIRONMENT else 1


# ---- the sizing page ---------------------------------------------------------------------------------------


def scale(holorun, jobs, only):
    for n in (1, 2, 3):
        out = os.path.join(AT, f"scale{n}")
        cluster = Cluster(initialize_head=True, head_node_args=HEAD)
        for _ in range(n):
            cluster.add_node(num_cpus=2, object_store_memory=STORE)
        ray.init(address=cluster.address, log_to_driver=False, logging_level="error")
        try:
            code = ray_fleet.main([CROWD, "--out", out, "--fresh", "--slots", str(2 * n), "--jobs", str(jobs), "--holorun", holorun,
                                   *[w for x in only for w in ("--only", x)], "--", *GREEDY])
        finally:
            ray.shutdown()
            cluster.shutdown()
        log = lines(os.path.join(out, "fleet.jsonl"))
        of = {x["test"]: x["wall"] for x in log if x.get("outcome")}
        inorder = [of[t] for t in in_order(os.path.join(out, "merged")) if t in of]
        walls = sorted(inorder)
        print(json.dumps({"nodes": n, "slots": 2 * n, "jobs": jobs, "tests": len(walls), "seconds": round(log[-1]["seconds"], 1),
                          "mean_s": round(sum(walls) / len(walls), 2), "p95_s": walls[int(0.95 * (len(walls) - 1))], "exit": code,
                          "walls": inorder}), flush=True)
    return 0


def main():
    os.environ.setdefault("RAY_worker_niceness", "0")  # Ray's 15 starves tests on a machine with other work
    os.environ.setdefault("RAY_raylet_start_wait_time_s", "300")
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--scale", action="store_true", help="one, two and three nodes, none lost")
    p.add_argument("--hung", action="store_true", help="a head that does not answer")
    p.add_argument("--only", action="append", default=[], help="with --scale, as of holorun qa; may be repeated")
    p.add_argument("--again", action="store_true", help="with the results of one machine that are there from before")
    p.add_argument("--jobs", type=int, default=1, help="tests at a time in a slot [1]")
    o = p.parse_args()
    holorun = os.path.abspath(os.environ.get("HOLORUN", os.path.join(ROOT, "holorun")))
    os.makedirs(AT, exist_ok=True)
    if o.hung:
        return hung(holorun)
    return scale(holorun, o.jobs, o.only) if o.scale else faults(holorun, o.jobs, o.again)


if __name__ == "__main__":
    sys.exit(main())
