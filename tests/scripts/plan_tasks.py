#!/usr/bin/env python3
"""Runs freely worded tasks with `holorun run --planner only` and judges each from outside: the program's output, its
exit code, a saved file, or the clipboard.

    plan_tasks.py [--user] [--model MODEL] [--only ID,...] [--out FILE] [CASES]

CASES (default tests/cases/plan_sentences.jsonl) has a task per line: id, program, kind, task, start, judge. Each task gets
a private desktop. Without --user nobody confirms the steps, so the planner acts only if it is sure; --user confirms every
proposal, and "sure" in the results describes which would have been performed without. Tasks of the kinds impossible, twin and negated are right if nothing was pressed and the exit code is 8.

Results: right, false (exit code 0, but the judge disagrees), wrong (a press without success, and not reported as done),
stopped (exit code 8, nothing pressed).
"""
import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HOLORUN = os.environ.get("HOLORUN", os.path.join(ROOT, "holorun"))
REFUSED = ("impossible", "twin", "negated")
START_S, RUN_S, END_S, MODEL_S = 60, 90, 10, 600  # MODEL_S: loading it on a busy machine


def read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as f:
            return f.read()
    except OSError:
        return None


class Desk:
    """A private desktop with the program of one task."""

    def __init__(self, case, home):
        self.home = home
        for name, text in [case["judge"]["prepare"]] if "prepare" in case["judge"] else []:
            with open(os.path.join(home, name), "w", encoding="utf-8") as f:
                f.write(text + "\n")
        start = case["start"].replace("{scripts}", os.path.join(ROOT, "tests/scripts"))
        script = f'cd "$HOME"; {start} >out.txt 2>err.txt; echo $? >code.txt'
        self.process = subprocess.Popen([HOLORUN, "desk", "--json", "--home", home, "--", "sh", "-c", script],
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        told = json.loads(self.process.stdout.readline() or "{}")
        self.env = dict(os.environ, DISPLAY=told["display"])
        if told.get("xauthority") or told.get("cookie"):
            self.env["XAUTHORITY"] = told.get("xauthority") or told["cookie"]

    def holorun(self, *words, seconds=RUN_S):
        return subprocess.run([HOLORUN, *words], env=self.env, capture_output=True, stdin=subprocess.DEVNULL,
                              text=True, timeout=seconds + 30, start_new_session=True, check=False)

    def wait(self):
        """Waits until the program describes its window, twice the same."""
        before, end = None, time.time() + START_S
        while time.time() < end:
            now = self.holorun("elements", "--json", seconds=10).stdout
            elements = json.loads(now)["elements"] if now.startswith("{") else []
            if len(elements) > 2 and len(elements) == before:
                return True
            before = len(elements)
            time.sleep(0.3)
        return False

    def close(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()


def clipboard(desk):
    desk.holorun("run", "--plain", "only", "--no-report", "--quiet", "press ctrl+c", "--runs", desk.home + "/runs2")
    got = subprocess.run(["xclip", "-o", "-selection", "clipboard"], env=desk.env, stdout=subprocess.PIPE, text=True,
                         stderr=subprocess.DEVNULL, timeout=10, check=False)
    return got.stdout.strip()


def holds(case, desk):
    """Returns whether the program is in the state that the task asks for."""
    judge, end = case["judge"], time.time() + END_S
    if "clipboard" in judge:
        return clipboard(desk) == judge["clipboard"]
    while True:
        code, out = read(desk.home + "/code.txt"), read(desk.home + "/out.txt")
        if "file" in judge:
            found = (read(os.path.join(desk.home, judge["file"][0])) or "").rstrip("\n") == judge["file"][1]
        elif "exists" in judge:
            found = os.path.exists(os.path.join(desk.home, judge["exists"]))
        elif judge.get("ended"):
            found = code is not None and int(code) < 126
        elif "code" in judge:
            found = code is not None and int(code) == judge["code"]
        else:
            found = code is not None
        if found and "stdout" in judge:
            found = matches(out or "", judge["stdout"])
        if found or time.time() > end:
            return found
        time.sleep(0.3)


def matches(text, wanted):
    """Compares outputs; a field "*" may have any value."""
    a, b = text.split("|"), wanted.rstrip("\n").split("|")
    return text == wanted or (len(a) == len(b) and all(y in ("*", x.strip()) for x, y in zip(a, b)))


def untouched(case, desk):
    return not (read(desk.home + "/out.txt") or "") and read(desk.home + "/code.txt") is None


def run(case, options):
    home = tempfile.mkdtemp(prefix="plan-")
    desk = Desk(case, home)
    try:
        if not desk.wait():
            return {"result": "broken", "why": "the program did not describe its window"}
        words = ["run", case["task"], "--planner", "only", "--plain", "no", "--json", "--no-report", "--runs",
                 home + "/runs", "--max-time", str(RUN_S), "--confirm", "cmd:true" if options.user else "yes-to-all"]
        start = time.time()
        model = ["-m", options.model] if options.model else []
        got = desk.holorun(*words, *model, seconds=RUN_S + (MODEL_S if model else 0))
        told = json.loads(got.stdout) if got.stdout.startswith("{") else {}
        pressed = bool(told.get("actions"))
        result = {"code": got.returncode, "seconds": round(time.time() - start, 1), "pressed": pressed,
                  "sure": told.get("plan", {}).get("sure"),
                  "steps": [s["step"] for s in told.get("plan", {}).get("steps", [])],
                  "why": told.get("error") or told.get("answer") or got.stderr.strip()[-300:]}
        if model:
            result["log"] = got.stderr[-3000:]
        if case["kind"] in REFUSED:
            right = got.returncode == 8 and not pressed and untouched(case, desk)
        else:
            right = got.returncode == 0 and holds(case, desk)
        result["result"] = ("right" if right else "false" if got.returncode == 0 else "stopped" if not pressed
                            else "wrong")
        result["out"] = read(home + "/out.txt")
        return result
    finally:
        desk.close()
        shutil.rmtree(home, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("cases", nargs="?", default=os.path.join(ROOT, "tests/cases/plan_sentences.jsonl"))
    parser.add_argument("--user", action="store_true")
    parser.add_argument("--model")
    parser.add_argument("--only", default="")
    parser.add_argument("--out")
    options = parser.parse_args()
    with open(options.cases, encoding="utf-8") as f:
        cases = [json.loads(line) for line in f if line.strip()]
    if options.only:
        cases = [c for c in cases if c["id"] in options.only.split(",")]
    counts = {}
    for case in cases:
        try:
            result = run(case, options)
        except (OSError, ValueError, KeyError, subprocess.SubprocessError) as e:
            result = {"result": "broken", "why": repr(e)[:200]}
        counts[result["result"]] = counts.get(result["result"], 0) + 1
        print(f"{case['id']} {result['result']:8} {case['task']}\n      {result.get('code')} {result.get('seconds')} s "
              f"{'; '.join(result.get('steps', []))} | {result.get('why', '')[:160]} | {result.get('out')!r:.60}",
              flush=True)
        if options.out:
            with open(options.out, "a", encoding="utf-8") as out:
                out.write(json.dumps({"id": case["id"], "kind": case["kind"], **result}) + "\n")
    print(f"{len(cases)} tasks: " + ", ".join(f"{n} {k}" for k, n in sorted(counts.items())))
    return 0 if not counts.get("false") else 1


if __name__ == "__main__":
    sys.exit(main())
