"""holorun as an agent of OSWorld: the program runs inside OSWorld's machine, on its screen.

    agent = HolorunAgent("build/holorun", ["--base-url", "http://10.0.2.2:8000/v1", "--dialect", "holo31",
    "--key", "env:KEY"], {"KEY": ...})

The first predict() copies the program there, runs `holorun run` with the instruction and waits for its end.
Its status becomes OSWorld's action: DONE for answered and unverified, FAIL for infeasible, none for others,
so that the state of the machine decides. Steps and time are holorun's: pass --max-steps and --max-time.
OSWorld's screenshots are not used.

The program must run on that machine's system: build it there, or on one whose C library is not newer. `files`
are copied next to it, such as libraries that the machine lacks; LD_LIBRARY_PATH names their folder. Needs the
package requests, which OSWorld has.
"""

import base64
import json
import logging
import os
import shlex
import time
from collections.abc import Sequence
from typing import Any

import requests


class HolorunAgent:
    action_space = "pyautogui"

    def __init__(
        self,
        program: str,
        options: Sequence[str] = (),
        env: dict[str, str] | None = None,
        files: Sequence[str] = (),
        server_port: int = 5000,
        seconds: float = 3600,
        display: str = ":0",
        pause: float = 2.0,
    ) -> None:
        self.program, self.options, self.env = program, list(options), {"DISPLAY": display, **(env or {})}
        self.files, self.port, self.seconds, self.pause = list(files), server_port, seconds, pause
        self.folder = "/tmp/holorun-agent"
        self.reset()

    def reset(self, _logger: logging.Logger | None = None, vm_ip: str | None = None) -> None:
        """Prepares for a new task. OSWorld has restored the snapshot, so none of our files are left."""
        self.log = _logger or logging.getLogger("desktopenv.agent")
        self.server = f"http://{vm_ip}:{self.port}" if vm_ip else ""
        self.result: str | None = None

    def predict(self, instruction: str, obs: Any) -> tuple[str, list[str]]:
        """Returns (holorun's answer, [OSWorld's action])."""
        if self.result is not None:
            return "", []
        if not self.server:
            raise RuntimeError("reset() was not told the machine's address: vm_ip")
        for path in [self.program, *self.files]:
            self.upload(path)
        self.start(instruction)
        code = self.wait()
        self.result = self.fetch("out")
        status, answer = self.outcome()
        self.log.info("holorun ended with %s, %s: %s", code, status, answer)
        return answer, {"answered": ["DONE"], "unverified": ["DONE"], "infeasible": ["FAIL"]}.get(
            str(status), []
        )

    def outcome(self) -> tuple[str | None, str]:
        """Returns (status, answer or error)."""
        try:
            told = json.loads(self.result or "")
            return told.get("status"), told.get("answer") or told.get("error") or ""
        except ValueError:
            return None, self.fetch("err")[-2000:]

    # ---- routes of the machine

    def upload(self, path: str) -> None:
        with open(path, "rb") as f:
            r = requests.post(
                self.server + "/setup/upload",
                data={"file_path": f"{self.folder}/{os.path.basename(path)}"},
                files={"file_data": (os.path.basename(path), f)},
                timeout=(10, 600),
            )
        r.raise_for_status()

    def execute(self, script: str) -> str:
        """Runs a short shell script; returns its output."""
        r = requests.post(
            self.server + "/execute", json={"command": ["bash", "-c", script], "shell": False}, timeout=90
        )
        r.raise_for_status()
        return r.json().get("output") or ""

    def fetch(self, name: str) -> str:
        return base64.b64decode(self.execute(f"base64 {self.folder}/{name} 2>/dev/null")).decode(
            errors="replace"
        )

    def start(self, instruction: str) -> None:
        words = [f"./{os.path.basename(self.program)}", "run", "--json", *self.options, "--", instruction]
        env = " ".join(
            f"{k}={shlex.quote(v)}" for k, v in {"LD_LIBRARY_PATH": self.folder, **self.env}.items()
        )
        run = f"{env} {shlex.join(words)} >out 2>err </dev/null; echo $? >code.new; mv code.new code"
        self.execute(
            f"cd {self.folder} && chmod +x {shlex.quote(words[0])} && rm -f code out err && "
            f"(setsid bash -c {shlex.quote(run)} >/dev/null 2>&1 &)"
        )

    def wait(self) -> int | None:
        """Returns the exit code, or None after a timeout, when the program was stopped."""
        until = time.monotonic() + self.seconds
        while time.monotonic() < until:
            code = self.execute(f"cat {self.folder}/code 2>/dev/null").strip()
            if code:
                return int(code)
            time.sleep(self.pause)
        self.execute(f"cd {self.folder} && ./{os.path.basename(self.program)} stop --all 2>/dev/null || true")
        return None
