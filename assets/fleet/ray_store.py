"""The folder of results of ray_fleet.py, which is its queue."""

import contextlib
import fcntl
import io
import json
import os
import shutil
import sys
import tarfile
from typing import Any, NoReturn, TextIO

Json = dict[str, Any]

USAGE = 2  # exit code


def refuse(why: str) -> NoReturn:
    print(f"ray_fleet.py: {why}", file=sys.stderr)
    sys.exit(USAGE)


def episodes(folder: str) -> list[Json]:
    """Returns the last line of each episode in fleet.jsonl, without those that have an error or no result."""
    last: dict[tuple[str, int], Json] = {}
    with open(os.path.join(folder, "fleet.jsonl")) as f:
        for text in f:
            with contextlib.suppress(ValueError):  # of a driver that was killed
                line = json.loads(text)
                if "test" in line:
                    last[line["test"], line["sample"]] = line
    return [x for x in last.values() if x.get("folder") and x["outcome"] != "error"]


class Store:
    """The folder --out: the command (fleet.json), results (tests/ID, tests/ID/SAMPLE), log (fleet.jsonl)."""

    def __init__(self, folder: str, asked: Json, fresh: bool) -> None:
        self.folder = folder
        self.marker = os.path.join(folder, "fleet.json")
        os.makedirs(folder, exist_ok=True)
        if os.listdir(folder) and not os.path.exists(self.marker):
            refuse(f"--out '{folder}' has files of something else; name another folder")
        self.lock = open(os.path.join(folder, "fleet.lock"), "w")
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            refuse(f"another fleet is writing to '{folder}'")
        if fresh:
            for name in ("new", "tests", "merged", "fleet.jsonl", "fleet.json"):
                path = os.path.join(folder, name)
                if os.path.isdir(path):
                    shutil.rmtree(path)
                elif os.path.exists(path):
                    os.unlink(path)
        if os.path.exists(self.marker):
            with open(self.marker) as f:
                before = json.load(f)
            for key in asked:
                if before.get(key) != asked[key]:
                    refuse(
                        f"'{folder}' belongs to another command: "
                        f"its {key} was {before.get(key)}, now {asked[key]}; "
                        "name another folder, or add --fresh to remove its results"
                    )
        with open(self.marker + ".new", "w") as f:
            json.dump(asked, f)
        os.replace(self.marker + ".new", self.marker)

    def log(self) -> TextIO:
        """Opens fleet.jsonl for lines to append, after the end of a line that a killed driver left open."""
        log = open(os.path.join(self.folder, "fleet.jsonl"), "ab+")
        if log.tell():
            log.seek(-1, os.SEEK_END)
            if log.read() != b"\n":
                log.write(b"\n")
        return io.TextIOWrapper(log, line_buffering=True)

    def place(self, test: str, sample: int, samples: int) -> str:
        return os.path.join(self.folder, "tests", test, *([str(sample)] if samples else []))

    def has(self, test: str, sample: int, samples: int) -> bool:
        """Returns whether a test has a result; an error, maybe of the machine, does not count."""
        try:
            with open(os.path.join(self.place(test, sample, samples), "results.json")) as f:
                return bool(json.load(f)["tests"][0]["outcome"] != "error")
        except FileNotFoundError:
            return False

    def put(self, folder: str, archive: bytes) -> None:
        """Unpacks a result; it appears at once, so that a killed driver leaves no part of one."""
        new = os.path.join(self.folder, "new")  # not in tests, which is merged meanwhile
        shutil.rmtree(new, ignore_errors=True)
        os.makedirs(new)
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            tar.extractall(new, filter="data")
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(os.path.dirname(folder), exist_ok=True)
        os.rename(new, folder)
