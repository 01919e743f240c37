#!/usr/bin/env python3
"""Times suites of one-step browser tests: one page, one click, one check each.

    tests/scripts/one_step.py [-n 40] [--rounds 2] [--playwright PYTHON] [--way NAME ...] [--out FILE]

The pages are files; each has a heading, a text field and three buttons with the names of the test, and the
right button changes the title, which the check reads. The ways take turns: plain steps, a model's task with
scripted replies, and both with "reuse: run" and with "reuse: program" (one browser for a job, in which each test
opens its page in a tab); with --playwright also Playwright with Debian's Chromium, a fresh context for each
test. Prints seconds a test, CPU seconds a test, and the verdicts that differed.
"""

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
HOLORUN = os.path.join(HERE, "..", "..", "holorun")
NAMES = ["Save", "Send", "Order", "Print", "Share", "Copy", "Archive", "Delete"]
PAGE = """<!doctype html><meta charset=utf-8><title>Page {n}</title>
<style>body {{ font: 18px sans-serif; margin: 30px }}
button {{ font: inherit; position: absolute; top: 200px; width: 160px; height: 48px }}</style><h1>Page {n}</h1><p><input placeholder="Name"></p>{buttons}<p id=o></p>
<script>for (const b of document.querySelectorAll('button')) b.onclick = () => {{
document.title = 'Pressed ' + b.textContent; document.getElementById('o').textContent = b.textContent }}
</script>"""
CHROMIUM = (
    "exec chromium --no-sandbox --no-first-run --disable-gpu --disable-extensions --kiosk "
    "--force-renderer-accessibility --user-data-dir=$HOME/profile {page}"
)
OPEN = "chromium --no-sandbox --user-data-dir=$HOME/profile {page} >/dev/null"
PLAYWRIGHT = """import sys
from playwright.sync_api import sync_playwright
folder, n = sys.argv[1], int(sys.argv[2])
with sync_playwright() as p:
    b = p.chromium.launch(executable_path='/usr/bin/chromium', args=['--no-sandbox', '--disable-gpu'])
    for i in range(n):
        name = open(f'{folder}/name-{i}').read()
        context = b.new_context(viewport={'width': 800, 'height': 600})
        page = context.new_page()
        page.goto(f'file://{folder}/page-{i}.html')
        page.get_by_role('button', name=name, exact=True).click()
        page.wait_for_function(f"document.title == 'Pressed {name}'")
        context.close()
    b.close()
"""


def make_pages(folder, n):
    """Writes the pages, and the name of each page's button."""
    for i in range(n):
        names = [NAMES[(i + k * 3) % len(NAMES)] for k in range(3)]
        buttons = "".join(
            f'<button style="left: {40 + 200 * k}px">{name}</button>' for k, name in enumerate(names)
        )
        with open(f"{folder}/page-{i}.html", "w") as f:
            f.write(PAGE.format(n=i, buttons=buttons))
        with open(f"{folder}/name-{i}", "w") as f:
            f.write(names[i % 3])


def make_suite(folder, n, way):
    """Writes a suite for one way and returns its path and options."""
    reuse = "run" if way.endswith("reuse") else "program" if way.endswith("program") else ""
    plain = way.startswith("steps")
    lines = ["suite:", f"  name: {way}", '  display: "xvfb:800x600"', "  timeout_s: 60"]
    lines += [f"  reuse: {reuse}"] if reuse else []
    lines += ["tests:"]
    replies = f"{folder}/replies"
    os.makedirs(replies, exist_ok=True)
    for i in range(n):
        with open(f"{folder}/name-{i}") as f:
            name = f.read()
        page = f"file://{folder}/page-{i}.html"
        start = CHROMIUM.replace("{page}", "about:blank" if reuse == "program" else page)
        task = f"[{{ press: {name} }}]" if plain else f"Press {name}."
        lines += [
            f"  - id: t{i}",
            f"    start: {json.dumps(start)}",
            *([f"    setup: {json.dumps(OPEN.replace('{page}', page))}"] if reuse == "program" else []),
            *([f"    wait_until: [{{ kind: window, title: 'Page {i}( |$)' }}]"] if reuse == "program" else []),
            f'    window: "Page {i}"',
            f"    task: {task}",
            f'    checks: [{{ kind: window, title: "Pressed {name}" }}]',
        ]
        with open(f"{replies}/t{i}.txt", "w") as f:
            f.write(f"pyautogui.click({120 + i % 3 * 200}, 224)\nDONE('Pressed.')\n")
    path = f"{folder}/{way}.yaml"
    with open(path, "w") as f:
        f.write("\n".join(lines) + "\n")
    return path, [] if plain else ["--fake", replies, "--dialect", "pyautogui"]


def children_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run_suite(folder, way, suite, options, jobs):
    """Runs a suite once; returns wall and CPU seconds, and the outcomes by test."""
    out = f"{folder}/out"
    shutil.rmtree(out, ignore_errors=True)
    start, cpu = time.monotonic(), children_seconds()
    command = [HOLORUN, "qa", suite, "-q", "--out", out, *options, *(["--jobs", jobs] if jobs else [])]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    wall = time.monotonic() - start
    if done.returncode not in (0, 1, 5):
        sys.exit(f"{way}: {done.stderr}")
    with open(f"{out}/results.json") as f:
        tests = json.load(f)["tests"]
    for t in tests:
        if t["outcome"] != "passed":
            print(f"  {way} {t['id']}: {t['outcome']}: {t['why']}", file=sys.stderr)
    return wall, children_seconds() - cpu, {t["id"]: t["outcome"] for t in tests}


def run_playwright(folder, n, python):
    start, cpu = time.monotonic(), children_seconds()
    done = subprocess.run([python, "-c", PLAYWRIGHT, folder, str(n)], check=False)
    passed = "passed" if done.returncode == 0 else "failed"
    return time.monotonic() - start, children_seconds() - cpu, {"all": passed}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-n", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--jobs", help="as holorun qa --jobs; default: its own")
    parser.add_argument("--way", action="append", help="steps or replies, alone or with -reuse or -program")
    parser.add_argument("--playwright", metavar="PYTHON", help="interpreter that has playwright")
    parser.add_argument("--out", help="also write all figures to this file, as JSON")
    o = parser.parse_args()
    ways = o.way or [kind + how for kind in ("steps", "replies") for how in ("", "-reuse", "-program")]
    folder = tempfile.mkdtemp(prefix="one-step-")
    os.environ["XDG_CACHE_HOME"] = f"{folder}/cache"
    make_pages(folder, o.n)
    suites = {way: make_suite(folder, o.n, way) for way in ways}
    rows = {}
    for _ in range(o.rounds):
        for way, (suite, options) in suites.items():
            rows.setdefault(way, []).append(run_suite(folder, way, suite, options, o.jobs))
        if o.playwright:
            rows.setdefault("playwright", []).append(run_playwright(folder, o.n, o.playwright))
        print(f"load {os.getloadavg()[0]:.1f}", file=sys.stderr)
    for way, runs in rows.items():
        walls = [f"{wall / o.n:.2f}" for wall, _, _ in runs]
        cpu = statistics.median(cpu for _, cpu, _ in runs) / o.n
        passed = sum(v == "passed" for _, _, verdicts in runs for v in verdicts.values())
        total = sum(len(verdicts) for _, _, verdicts in runs)
        print(f"{way:14} {' '.join(walls)} s a test, CPU {cpu:.2f} s a test, passed {passed} of {total}")
    if o.out:
        with open(o.out, "w") as f:
            json.dump(rows, f, indent=1)
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
