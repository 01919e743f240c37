"""Runs the whole training unattended: each stage starts when the one before has succeeded.

    python -m pocket plan [--until joint] [--list]

Training continues from the parameters in the repository (../model, ../wide). $POCKET_STATE, by default
build/pocket, holds data, logs and results: tens of GB. Every stage skips shards that exist, so a stopped
plan continues where it was; done-STAGE marks a finished stage, stages.log has the history. Sleeps while the
file PAUSE exists in that directory.
"""

import os
import pathlib
import signal
import subprocess
import sys
import time

from .pages import EASY, MORE, SCRIPTS_DIFFER
from .sources import HERE, ROOT, fonts, state_dir

STILL = (("kiosk", 10), ("forms", 10), ("gtk", 4), ("qt", 4), ("tk", 4))  # source, shards of 512 screens
HELDOUT_FIRST = 900_000  # first seed of held-out episodes


def stages(state):
    """Returns {stage: arguments of python -m pocket}; glob patterns are expanded when the stage starts."""
    data, rows, run = state / "data", state / "rows", state / "joint"
    framed = ",".join(p for p in EASY + MORE if p not in SCRIPTS_DIFFER)
    real = ",".join(SCRIPTS_DIFFER)
    out = {f"render-{s}": ["render", s, "--out", data / "still", "--shards", n] for s, n in STILL}
    held = ["--heldout", "--screens", 96]
    out |= {f"render-heldout-{s}": ["render", s, "--out", data / f"heldout-{s}", *held] for s, _ in STILL}
    out["frames"] = ["frames", "--out", data / "played", "--pages", framed, "--shards", 32]
    out["episodes"] = ["episodes", "--out", data / "played", "--pages", real, "--seeds", 64]
    first = ["--first", HELDOUT_FIRST, "--missing", 0, "--seeds", 4]
    pages = ["--pages", ",".join(EASY + MORE)]
    out["episodes-heldout"] = ["episodes", "--out", data / "heldout-played", *pages, *first]
    out["visited"] = ["visited", "--out", data / "visited", "--pages", framed, "--shards", 8]
    for name, folder in dict(still="still", played="played", visited="visited", heldout="heldout-*").items():
        out[f"pack-{name}"] = ["pack", "--out", state / "packs" / f"{name}.pack", data / folder / "*.npz"]
    out["joint"] = ["joint", "--packs", state / "packs", "--out", run]
    pointer = ["pointer", "--eyes", run / "eyes.safetensors"]
    for name, folder, screens in (
        ("still", "still", 7000),
        ("played", "played", 800),
        ("heldout", "heldout-forms", 96),
    ):
        cache = ["--cache", rows / f"{name}.npz", "--screens", screens]
        out[f"rows-{name}"] = [*pointer, *cache, data / folder]
    files = ["--rows", rows / "still.npz", rows / "played.npz", "--heldout", rows / "heldout.npz"]
    out["pointer"] = [*pointer, *files, "--out", run / "pointer.safetensors"]
    return out | {"publish": ["publish", "--run", run, "--out", state / "model"]}


def expanded(argument):
    """Returns the files of a glob pattern, or the argument itself, as text."""
    text = str(argument)
    if "*" not in text:
        return [text]
    head = text[: text.index("*")].rpartition("/")[0]
    return sorted(map(str, pathlib.Path(head).glob(text[len(head) + 1 :])))


def prepare(state):
    """Unpacks missing fonts, writes the fontconfig, and fetches the pages of MiniWoB++."""
    have = all(os.path.exists(path) for family in fonts.FAMILIES for path in fonts.files(family))
    if not os.environ.get("POCKET_FONTS") and not have:
        if not (state / "fontroot").exists():
            subprocess.run([str(HERE / "fonts.sh"), str(state / "fontroot")], check=True)
        os.environ["POCKET_FONTS"] = str(state / "fontroot")
    os.environ["FONTCONFIG_FILE"] = fonts.configure(state / "fonts")
    subprocess.run([str(ROOT / "tests/scripts/miniwob.sh")], check=True)


def note(state, text):
    line = time.strftime("%d %b %H:%M ") + text
    print(line, flush=True)
    with open(state / "stages.log", "a") as f:
        f.write(line + "\n")


def execute(state, name, arguments):
    """Runs one stage with its output in logs/NAME.log; exits if it fails or is stopped."""
    words, asked = [w for a in arguments for w in expanded(a)], []
    with open(state / "logs" / f"{name}.log", "a") as log:
        child = subprocess.Popen([sys.executable, "-m", "pocket", *words], stdout=log, stderr=log)

        def stop(*_):
            asked.append(1)
            child.terminate()

        for s in (signal.SIGTERM, signal.SIGINT):
            signal.signal(s, stop)
        code = child.wait()
    if code or asked:
        note(state, f"{name}: " + ("stopped" if asked else f"failed with status {code}, see logs/{name}.log"))
        sys.exit(1)


def options(p):
    p.add_argument("--until", help="the last stage to run")
    p.add_argument("--list", action="store_true", help="only print the stages")


def run(a):
    state = state_dir().resolve()
    if a.list:
        for name, arguments in stages(state).items():
            print(f"{name:22} python -m pocket {' '.join(map(str, arguments))[:150]}")
        return
    for folder in ("logs", "packs", "rows"):
        (state / folder).mkdir(parents=True, exist_ok=True)
    os.environ["POCKET_STATE"] = str(state)
    prepare(state)
    for name, arguments in stages(state).items():
        done = state / f"done-{name}"
        if not done.exists():
            note(state, f"{name}: starts")
            execute(state, name, arguments)
            done.touch()
        if name == a.until:
            break
    note(state, "all stages are done" if not a.until else f"done until {a.until}")
