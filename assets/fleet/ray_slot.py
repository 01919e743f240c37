"""A slot of a Ray cluster: an actor that runs tests with one `holorun qa --feed` process."""

import fcntl
import glob
import io
import json
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
import threading
import time
from typing import Any

import ray

Json = dict[str, Any]
Item = tuple[str, int]  # test, sample

FOLDER = "holorun-fleet-"  # of a slot, in the directory for temporary files
CLOCK_S = 60  # greatest difference of two clocks
JUST_MADE_S = 60  # a younger folder may not be locked yet
NOT_THE_MACHINE = {"model", "suite", "stopped"}  # kinds of errors that another machine would not prevent


def clock_fault(clock: float, asked: float) -> str | None:
    """Returns why a clock cannot be right that was read between a time of the driver and now, or None."""
    off = clock - min(max(clock, asked), time.time())
    return f"its clock and the driver's differ by {off:.0f} s" if abs(off) > CLOCK_S else None


class Slot:
    """A `holorun qa --feed` process; run() is called from as many threads as it has lanes."""

    def __init__(self, command: list[str], export: list[str], least_mb: int) -> None:
        self.command, self.export, self.least_mb = command, export, least_mb
        self.waiting: dict[Item, Json] = {}
        self.lock = threading.Lock()
        self.dead: str | None = None

    def start(self) -> tuple[str, float, str | None]:
        """Starts holorun; returns the machine, its clock, and why it cannot run tests, or None."""
        node, fault = ray.get_runtime_context().get_node_id(), self.fault()
        if fault:
            return node, time.time(), fault
        self.sweep()
        self.dir = tempfile.mkdtemp(prefix=FOLDER)
        self.log = open(os.path.join(self.dir, "log"), "wb")
        fcntl.flock(self.log, fcntl.LOCK_EX)  # until holorun, which inherits it, has ended as well
        self.process = subprocess.Popen(  # that ends with this process, also if it hangs
            ["setpriv", "--pdeathsig", "KILL", *self.command, "--out", os.path.join(self.dir, "out")],
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
        )
        threading.Thread(target=self.read, daemon=True).start()
        return node, time.time(), None

    @staticmethod
    def sweep() -> None:
        """Removes the folders of slots that were killed."""
        for folder in glob.glob(os.path.join(tempfile.gettempdir(), FOLDER + "*")):
            try:
                with open(os.path.join(folder, "log"), "rb") as log:
                    if time.time() - os.stat(folder).st_ctime > JUST_MADE_S:
                        fcntl.flock(log, fcntl.LOCK_EX | fcntl.LOCK_NB)
                        shutil.rmtree(folder, ignore_errors=True)
            except OSError:  # in use, or removed by another slot
                continue

    def fault(self) -> str | None:
        """Returns why this machine cannot run tests, or None."""
        free = shutil.disk_usage(tempfile.gettempdir()).free >> 20
        with open("/proc/meminfo") as f:
            memory = int(f.read().partition("MemAvailable:")[2].split()[0]) >> 10
        if free < self.least_mb:
            return f"{tempfile.gettempdir()} has {free} MB free; {self.least_mb} are needed"
        if memory < self.least_mb:
            return f"{memory} MB of memory are free; {self.least_mb} are needed"
        if not shutil.which("Xvfb"):
            return "Xvfb is not installed"
        return None

    def read(self) -> None:
        for line in self.process.stdout or ():
            answer = json.loads(line)
            with self.lock:
                found = self.waiting.pop((answer.get("test"), answer.get("sample", 0)), None)
            if found:
                found["answer"] = answer
                found["event"].set()
        code = self.process.wait()
        with open(os.path.join(self.dir, "log"), "rb") as f:
            self.dead = f"holorun ended with {code}: {f.read()[-2000:].decode(errors='replace').strip()}"
        with self.lock:
            for found in self.waiting.values():
                found["event"].set()

    def run(self, test: str, sample: int) -> Json:
        """Runs a test; returns the process's answer with an archive of the test's folder."""
        mine: Json = {"event": threading.Event()}
        with self.lock:
            if self.dead:
                raise RuntimeError(self.dead)
            self.waiting[test, sample] = mine
            assert self.process.stdin
            self.process.stdin.write(json.dumps({"test": test, "sample": sample}) + "\n")
            self.process.stdin.flush()
        mine["event"].wait()
        answer: Json | None = mine.get("answer")
        if answer is None:
            raise RuntimeError(self.dead)
        if "dir" not in answer:
            return {"sick": answer.get("error", "no results")}  # holorun could not write them
        with open(os.path.join(answer["dir"], "results.json")) as f:
            result = json.load(f)["tests"][0]
        last = result["attempts"][-1] if result["attempts"] else {}
        run = os.path.join(answer["dir"], last["run"]) if last.get("run") else None
        kind = last.get("error_kind")
        answer["sick"] = (
            f"{kind}: {last.get('error')}"
            if result["outcome"] == "error" and kind and kind not in NOT_THE_MACHINE
            else None
        )
        answer["reward"] = self.reward(result, last)
        if self.export and run:
            self.convert(answer, run)
        answer["archive"] = self.pack(answer["dir"])
        shutil.rmtree(answer.pop("dir"), ignore_errors=True)
        return answer

    @staticmethod
    def reward(result: Json, last: Json) -> float | None:
        """Returns the number that a check prints as reward=X, else 1 or 0, or None if undecided."""
        for check in last.get("checks", []):
            said = re.search(r"\breward=(-?\d+(?:\.\d+)?)", check.get("detail") or "")
            if said:
                return float(said[1])
        return {"passed": 1.0, "failed": 0.0}.get(result["outcome"])

    def convert(self, answer: Json, run: str) -> None:
        for form in self.export:
            words = [
                self.command[0],
                "export",
                run,
                "--format",
                form,
                "--output",
                os.path.join(answer["dir"], "export-" + form),
            ]
            words += ["--reward", str(answer["reward"])] if answer["reward"] is not None else []
            done = subprocess.run(words, check=False, capture_output=True, text=True)
            if done.returncode:
                answer.setdefault("export_errors", []).append(done.stderr.strip()[-2000:])

    @staticmethod
    def pack(folder: str) -> bytes:
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w") as tar:
            tar.add(folder, arcname=".")
        return out.getvalue()

    def close(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        try:
            self.process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self.process.kill()
        shutil.rmtree(self.dir, ignore_errors=True)
