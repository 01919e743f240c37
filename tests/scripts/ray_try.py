#!/usr/bin/env python3
"""Runs a suite on a Ray cluster of three nodes on this machine and kills one node in the middle.

    ray_try.py [SUITE.yaml]            default: tests/suites/crowd.yaml, 100 tests
    ray_try.py --scale                 with one, two and three nodes, without a loss: times for the sizing page

The suite runs once without Ray. Then assets/fleet/ray_fleet.py runs it on three raylets with two slots each; when a
third of the results exist, a raylet is killed with its workers. Sampling is greedy: the merged report must have the
same verdicts, with each test once. Needs the package ray; prints a table and writes it to tests/results/fleet-ray.md.
"""

import argparse
import collections
import datetime
import json
import os
import subprocess
import sys
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "assets", "fleet"))
import ray
import ray_fleet
from ray.cluster_utils import Cluster

AT = os.path.join(ROOT, "build", "ray")
GREEDY = ["--temperature", "0", "--quiet"]


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


def lose_a_node(cluster, nodes, log, after, lost):
    """Kills the last node that has a slot, once `after` results exist."""
    while True:
        there = [x for x in lines(log) if x.get("outcome")]
        if len(there) >= after:
            break
        time.sleep(0.1)
    cluster.remove_node(nodes[-1], allow_graceful=False)
    lost.append(f"a node was killed when {len(there)} tests had ended")


def run(suite, holorun, out, nodes, jobs, lose, only=()):
    """Returns seconds, exit code, lines of the log, and a description of the loss."""
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "object_store_memory": 80 << 20})
    workers = [cluster.add_node(num_cpus=2, object_store_memory=80 << 20) for _ in range(nodes)]
    ray.init(address=cluster.address, log_to_driver=False, logging_level="error")
    log, lost = os.path.join(out, "fleet.jsonl"), []
    if os.path.exists(log):
        os.unlink(log)
    if lose:
        threading.Thread(target=lose_a_node, args=(cluster, workers, log, lose, lost), daemon=True).start()
    begun = time.monotonic()
    try:
        only = [w for x in only for w in ("--only", x)]
        code = ray_fleet.main([suite, "--out", out, "--fresh", "--slots", str(2 * nodes), "--jobs", str(jobs), "--holorun", holorun, *only,
                               "--", *GREEDY])
    finally:
        seconds = time.monotonic() - begun
        ray.shutdown()
        cluster.shutdown()
    return seconds, code, lines(log), lost


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("suite", nargs="?", default=os.path.join(ROOT, "tests", "suites", "crowd.yaml"))
    p.add_argument("--scale", action="store_true", help="one, two and three nodes, none lost")
    p.add_argument("--only", action="append", default=[], help="with --scale, as of holorun qa; may be repeated")
    p.add_argument("--again", action="store_true", help="with the results of one machine that are there from before")
    p.add_argument("--jobs", type=int, default=2)
    o = p.parse_args()
    holorun = os.path.abspath(os.environ.get("HOLORUN", os.path.join(ROOT, "holorun")))
    os.makedirs(AT, exist_ok=True)
    if o.scale:
        for n in (1, 2, 3):
            seconds, code, log, _ = run(o.suite, holorun, os.path.join(AT, f"scale{n}"), n, o.jobs, 0, o.only)
            of = {x["test"]: x["wall"] for x in log if x.get("outcome")}
            inorder = [of[t] for t in in_order(os.path.join(AT, f"scale{n}", "merged")) if t in of]
            walls = sorted(inorder)
            print(json.dumps({"nodes": n, "slots": 2 * n, "jobs": o.jobs, "tests": len(walls), "seconds": round(log[-1]["seconds"], 1),
                              "mean_s": round(sum(walls) / len(walls), 2), "p95_s": walls[int(0.95 * (len(walls) - 1))], "exit": code, "walls": inorder}), flush=True)
        return 0
    if o.again:
        with open(os.path.join(AT, "alone", "results.json")) as f:
            alone = json.load(f)["exit_code"]
    else:
        alone = subprocess.run([holorun, "qa", o.suite, "--jobs", "4", "--out", os.path.join(AT, "alone"), *GREEDY],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode
    with open(os.path.join(AT, "alone", "results.json")) as f:
        alone_s = json.load(f)["seconds"]
    want = verdicts(os.path.join(AT, "alone"))
    out = os.path.join(AT, "fleet")
    seconds, code, log, lost = run(o.suite, holorun, out, 3, o.jobs, sum(want.values()) // 3)
    got, end = verdicts(os.path.join(out, "merged")), log[-1]
    again = [x for x in log if x.get("lost_on")]
    ended = collections.Counter(x["test"] for x in log if x.get("outcome"))
    same, once = got == want and code == alone, all(n == 1 for n in ended.values()) and len(ended) == sum(want.values())
    text = f"""Ray {ray.__version__}, three nodes with two slots each on one machine ({os.cpu_count()} cores), {datetime.date.today()}, \
{os.path.relpath(o.suite, ROOT)}: `tests/scripts/ray_try.py`

| | tests | verdicts | exit | s |
|---|---|---|---|---|
| one machine, 4 at a time | {sum(want.values())} | {counts(want)} | {alone} | {alone_s:.0f} |
| Ray, merged | {sum(got.values())} | {counts(got)} | {code} | {seconds:.0f} |

- {lost[0] if lost else 'no node was lost'}
- {sum(1 for x in log if 'slot_lost' in x)} slots were gone; {len(again)} tests were given to another slot: {', '.join(x['test'] for x in again)}
- given up: {end['given_up']}; results written twice: {sum(n - 1 for n in ended.values())}; tests without one: {sum(want.values()) - len(ended)}
- the same verdicts as one machine: {'yes' if same else 'no'}
"""
    print(text)
    with open(os.path.join(ROOT, "tests", "results", "fleet-ray.md"), "w") as f:
        f.write(text)
    for id, outcome in (want - got) + (got - want):
        print(f"differs: {id}: {outcome}")
    return 0 if same and once and lost and again else 1


if __name__ == "__main__":
    sys.exit(main())
