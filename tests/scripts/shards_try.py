#!/usr/bin/env python3
"""Merges two shards that differ in one way at a time, which must never be green, and 20,000 results.

    shards_try.py [PROGRAM]        default: ./holorun

Both shards pass. For each of the ways below, the second shard is run again with that change, or its results.json is
edited, and `holorun qa merge` must end with an exit code other than 0 and name the difference. If the change is one of
suite, settings, build or model, `--resume-shard` on the results without it must be refused and name it as well. Then 20,000 results of
one test each are merged, with time and memory. Tests have scripted replies. Prints a table; exit code 1 if a way is
green or not named.
"""

import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FORM = os.path.join(ROOT, "build", "release", "helpers", "form")
MANY = 20000
SUITE = """suite:
  name: two
  display: xvfb:640x480
  wm: ""
  start: exec "FORM" "dialog.html?seed=5000001&kind=buttons&labels=Left%7CRight"
  window: ^DIALOG pressed=
  start_timeout_s: 120
  steps: 6
  home: home
  policy: policy.yaml
  secrets: ["PIN=file:pin"]
  tags: [a]
  env: { A: "1" }
  checks: [{ kind: window, title: "^DIALOG pressed=$", when: always }]
tests:
  - { id: one, task: Press it }
  - { id: two, task: Press it }
  - { id: three, task: Press it }
  - { id: four, task: Press it }
"""


def text(old, new):
    """Returns a way: another text in the suite."""
    assert old in SUITE, old
    return {"suite": SUITE.replace(old, new)}


def more(line):
    """Returns a way: another key of the suite."""
    return {"suite": SUITE.replace("tests:\n", f"  {line}\ntests:\n")}


def edit(change):
    """Returns a way: results.json edited by a function of its contents."""
    return {"edit": change}


def first(**values):
    return edit(lambda r: r["tests"][0].update(values))


def answer_no(r):
    r["tests"][0]["attempts"][0]["checks"][0]["answer"] = "no"


def twice(r):
    r["tests"].append(r["tests"][0])


# For each way: the change, and the words by which the report must name it.
WAYS = {
    "task": (text("id: two, task: Press it", "id: two, task: Press that"), "task"),
    "match of a check": (text('title: "^DIALOG pressed=$"', 'title: "^DIALOG"'), "checks"),
    "kind of a check": (text('window, title: "^DIALOG pressed=$"', 'shell, run: "true"'), "checks"),
    "expect_fail": (text("id: two, task: Press it", "id: two, task: Press it, expect_fail: true, "
                         "checks: [{kind: shell, run: exit 1}]"), "checks; expect, expect_fail"),
    "expect": (text("id: two, task: Press it", "id: two, task: Press it, expect: infeasible"), "expect, expect_fail"),
    "start": (text("Left%7CRight", "Left%7CRight%7CUp"), "start, window"),
    "window": (text("window: ^DIALOG pressed=\n", "window: ^DIALOG\n"), "start, window"),
    "wait_until": (more('wait_until: [{ kind: shell, run: "true" }]'), "wait_until"),
    "setup of a test": (text("id: two, task: Press it", 'id: two, task: Press it, setup: "true"'), "setup, teardown"),
    "teardown of the suite": (more('teardown: "true"'), "setup, teardown, env, flaky_max of the suite"),
    "env": (text('A: "1"', 'A: "2"'), "env, vars"),
    "vars": (more('vars: { unused: "2" }'), "env, vars"),
    "display": (text("640x480", "800x600"), "display, wm"),
    "wm": (text('wm: ""', 'wm: "true"'), "display, wm"),
    "a file in home": ({"files": {"home/file": "other"}}, "home"),
    "steps": (text("steps: 6", "steps: 7"), "steps"),
    "retries": (more("retries: 1"), "retries"),
    "seed": (more("seed: 7"), "seed"),
    "contents of the policy": ({"files": {"policy.yaml": "rules: []\nlimits: { steps: 90 }\n"}}, "policy"),
    "secrets": (text('"PIN=file:pin"', '"PIN=file:pin", "PIN2=file:pin"'), "secrets"),
    "tags": (text("tags: [a]", "tags: [b]"), "tags"),
    "another id": (text("id: two", "id: five"), "tests of the suite (id)"),
    "one test more": ({"suite": SUITE + "  - { id: five, task: Press it }\n"}, "tests of the suite (id)"),
    "--retries": ({"options": ["--retries", "2"]}, "--retries (0 and 2)"),
    "--assist": ({"options": ["--no-assist"]}, "--assist"),
    "--max-steps": ({"options": ["--max-steps", "9"]}, "--max-steps"),
    "--only": ({"options": ["--only", "t*"]}, "--only"),
    "the dialect": (edit(lambda r: r["identity"].update(dialect="other 0")), "dialect"),
    "another build": (edit(lambda r: r["identity"].update(build="9.9.9 (other)")), "build"),
    "another model": (edit(lambda r: r["identity"].update(model="0123456789abcdef 0")), "model"),
    "schema_version": (edit(lambda r: r.update(schema_version=99)), "schema"),
    "a failed check under 'passed'": (edit(answer_no), "t"),
    "an outcome edited to failed": (first(outcome="failed"), "t"),
    "no identity": (edit(lambda r: r.pop("identity")), "older"),
    "cut off": (edit(lambda r: r.update(complete=False)), "cut off"),
    "a test twice": (edit(twice), "twice"),
    "a test removed": (edit(lambda r: r["tests"].clear()), "have no result"),
    "another shard count": (edit(lambda r: r["shard"].update(of=3)), "3"),
    "the same shard twice": ({"merge": ["s1", "s1"]}, "occurs twice"),
    "a shard missing": ({"merge": ["s1"]}, "is missing"),
    "a truncated file": ({"cut": 900}, "results.json:"),
}


EDITED_BEFORE_RESUMING = ("another build", "another model", "schema_version", "no identity")


class Place:
    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        self.write("replies", "pyautogui.click(5, 5)\nDONE('It is pressed.')\n")

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as f:
            f.write(text)

    def shard(self, which, out, way, resume=False):
        """Runs a shard, or resumes its results in out; returns the exit code and stderr."""
        self.write("suite.yaml", way.get("suite", SUITE).replace("FORM", FORM))
        for name, text in {"home/file": "as it is", "policy.yaml": "rules: []\n", "pin": "1234", **way.get("files", {})}.items():
            self.write(name, text)
        if not resume:
            shutil.rmtree(os.path.join(self.folder, out), ignore_errors=True)
        words = [self.program, "qa", "suite.yaml", "--shard", f"{which}/2", "--fake", "replies", "--dialect", "pyautogui"]
        words += ["--out", out, "--quiet", *["--resume-shard"] * resume, *way.get("options", [])]
        done = subprocess.run(words, cwd=self.folder, capture_output=True, text=True)
        if not os.path.exists(os.path.join(self.folder, out, "results.json")):
            sys.exit(f"no results: {done.stderr}")
        return done.returncode, done.stderr

    def copy(self, source, to):
        shutil.rmtree(os.path.join(self.folder, to), ignore_errors=True)
        shutil.copytree(os.path.join(self.folder, source), os.path.join(self.folder, to))

    def merge(self, folders):
        done = subprocess.run([self.program, "qa", "merge", "--out", "m", *folders], cwd=self.folder, capture_output=True, text=True)
        return done.returncode, done.stderr


def try_ways(p):
    bad = 0
    codes = [p.shard(1, "s1", {})[0], p.shard(2, "s2", {})[0], p.merge(["s1", "s2"])[0], p.shard(2, "s2", {}, resume=True)[0]]
    assert codes == [0, 0, 0, 0], codes
    print("| differs in | exit | of --resume-shard | message |\n|---|---|---|---|")
    for name, (way, words) in WAYS.items():
        changed = way.keys() & {"suite", "files", "options"}
        if changed:
            p.shard(2, "x", way)
        else:
            p.copy("s2", "x")
        path = os.path.join(p.folder, "x", "results.json")
        with open(path) as f:
            data = f.read()
        if "edit" in way:
            results = json.loads(data)
            way["edit"](results)
            data = json.dumps(results)
        p.write("x/results.json", data[:way.get("cut", len(data))])
        code, said = p.merge(way.get("merge", ["s1", "x"]))
        line = next((x for x in said.splitlines() if re.match(r"(inconclusive|failed|error) ", x) or "results.json" in x), said.strip()[-200:])
        good, resumed = code != 0 and words in said, ""
        if changed or name in EDITED_BEFORE_RESUMING:
            p.copy("s2" if changed else "x", "y")
            resumed, why = p.shard(2, "y", way if changed else {}, resume=True)
            good = good and resumed != 0 and words in why
        bad += not good
        print(f"| {name} | {code} | {resumed} | {re.sub(r' +', ' ', line)}{'' if good else ' **NOT NAMED**'} |", flush=True)
    return bad


def merge_many(p):
    with open(os.path.join(p.folder, "s2", "results.json")) as f:
        r = json.load(f)
    test = r["tests"][0]
    r.update(shard=None, selected_tests=MANY, suite_tests=MANY)
    for i in range(MANY):
        r["tests"] = [{**test, "id": f"t{i}", "index": i}]
        p.write(f"many/t{i}/results.json", json.dumps(r))
    begun = time.monotonic()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    code, said = p.merge(["many"])
    seconds, used = time.monotonic() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime
    print(f"\n{MANY} results of one test each: exit code {code}, {seconds:.1f} s, {cpu:.1f} s of CPU, at most {used.ru_maxrss >> 10} MiB: "
          f"{said.strip().splitlines()[0]}")
    return code != 0 or cpu > 10 or used.ru_maxrss > 1 << 20


def main():
    program = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "holorun"))
    with tempfile.TemporaryDirectory() as folder:
        p = Place(program, folder)
        bad = try_ways(p)
        print(f"\n{len(WAYS)} ways, {bad} green or not named")
        return 1 if merge_many(p) or bad else 0


if __name__ == "__main__":
    sys.exit(main())
