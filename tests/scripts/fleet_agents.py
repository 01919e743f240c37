#!/usr/bin/env python3
"""Runs one task through each agent class of assets/fleet, against the code of the real packages.

    fleet_agents.py osworld FOLDER     FOLDER: the unpacked package desktop_env; also needs requests and pillow
    fleet_agents.py harbor             needs the package harbor

The task is to press a button of a dialog on a private display; the dialog's title shows the result. The agent's
machine is this one. For OSWorld it is a server with the routes of the OSWorld client; that client (PythonController
of desktop_env) also takes screenshots and runs commands through it, which checks the server. For Harbor it is an
environment derived from its base class; Harbor's validator reads the trajectory.
"""

import asyncio
import http.server
import io
import json
import os
import subprocess
import sys
import tempfile
import threading
from email.parser import BytesParser
from urllib.parse import parse_qs

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "assets", "fleet"))
HOLORUN = os.path.abspath(os.environ.get("HOLORUN", os.path.join(ROOT, "holorun")))
FORM = os.path.join(ROOT, "build", "release", "helpers", "form")
TASK, PAGE = "Click the dkgduyv button", "dialog.html?seed=4000000&kind=buttons&title=Lost&labels=Spind%7Cdkgduyv%7CSquare"
OPTIONS = ["--model", os.path.join(ROOT, "assets", "pocket", "model"), "--temperature", "0", "--max-steps", "8", "--confirm", "yes-to-all"]


class Screen:
    """A display with the dialog."""

    def __enter__(self):
        r, w = os.pipe()
        self.server = subprocess.Popen(["Xvfb", "-displayfd", str(w), "-screen", "0", "640x480x24", "-nolisten", "tcp"], pass_fds=[w],
                                       stderr=subprocess.DEVNULL)
        os.close(w)
        with os.fdopen(r) as f:
            self.display = ":" + f.readline().strip()
        self.form = subprocess.Popen([FORM, PAGE], env={**os.environ, "DISPLAY": self.display})
        self.wait_for("pressed=")
        return self

    def title(self):
        tree = subprocess.run(["xwininfo", "-root", "-tree", "-display", self.display], capture_output=True, text=True).stdout
        return next((line.strip() for line in tree.splitlines() if "pressed=" in line), "")

    def wait_for(self, text):
        for _ in range(300):
            if text in self.title():
                return
            threading.Event().wait(0.1)
        raise SystemExit(f"no window '{text}': {self.title()}")

    def __exit__(self, *_):
        self.form.kill()
        self.server.terminate()
        self.form.wait()
        self.server.wait()


def check(what, good):
    print(f"{'ok' if good else 'NOT OK':>8}  {what}")
    if not good:
        sys.exit(1)


# ---- OSWorld ----------------------------------------------------------------------------------------------------------------


def machine(screen):
    """Serves the routes of OSWorld's machine that agents and its client use; commands run here, on the screen's display.
    """
    from PIL import ImageGrab

    class Routes(http.server.BaseHTTPRequestHandler):
        def say(self, body, kind="application/json"):
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self):
            out = io.BytesIO()
            ImageGrab.grab(xdisplay=screen.display).save(out, "PNG")
            self.say(out.getvalue(), "image/png")

        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.path == "/setup/upload":
                message = BytesParser().parsebytes(b"Content-Type: " + self.headers["Content-Type"].encode() + b"\r\n\r\n" + body)
                parts = {p.get_param("name", header="content-disposition"): p.get_payload(decode=True) for p in message.get_payload()}
                path = parts["file_path"].decode()
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "wb") as f:
                    f.write(parts["file_data"])
                self.say(b"File Uploaded")
            elif self.path == "/execute":
                asked = json.loads(body)
                done = subprocess.run(asked["command"], shell=asked["shell"], capture_output=True, text=True, timeout=120,
                                      env={**os.environ, "DISPLAY": screen.display})
                self.say(json.dumps({"status": "success", "output": done.stdout, "error": done.stderr, "returncode": done.returncode}).encode())
            elif self.path == "/file":
                with open(parse_qs(body.decode())["file_path"][0], "rb") as f:
                    self.say(f.read(), "application/octet-stream")

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Routes)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def osworld(folder):
    sys.path.insert(0, folder)
    from desktop_env.controllers.python import PythonController
    from osworld_agent import HolorunAgent

    with Screen() as screen:
        server = machine(screen)
        port = server.server_address[1]
        client = PythonController("127.0.0.1", port, pkgs_prefix="{command}")
        told = client.execute_python_command("print(6 * 7)")
        check("desktop_env's client runs a command on the machine", told and told["output"].strip() == "42")
        check("and gets a picture of its screen", (client.get_screenshot() or b"").startswith(b"\x89PNG"))
        agent = HolorunAgent(HOLORUN, OPTIONS, server_port=port, display=screen.display, pause=0.3)
        agent.reset(None, vm_ip="127.0.0.1")
        answer, actions = agent.predict(TASK, {"screenshot": client.get_screenshot()})
        check(f"predict(): {answer!r}, {actions}", actions == ["DONE"] and isinstance(answer, str))
        check(f"the machine's screen: {screen.title()}", "pressed=dkgduyv" in screen.title())
        check("a second predict() does nothing", agent.predict(TASK, {"screenshot": b""}) == ("", []))
        check("the client fetches what it wrote", json.loads(client.get_file("/tmp/holorun-agent/out"))["status"] == "answered")
        agent.options += ["--max-steps", "0"]
        agent.reset(None, vm_ip="127.0.0.1")
        answer, actions = agent.predict(TASK, {"screenshot": b""})
        check(f"a run that cannot begin: {answer[:70]!r}, {actions}", actions == [])
        server.shutdown()


# ---- Harbor -----------------------------------------------------------------------------------------------------------------


def harbor():
    from pathlib import Path

    from harbor.environments.base import BaseEnvironment, ExecResult
    from harbor.models.agent.context import AgentContext
    from harbor.utils.trajectory_validator import TrajectoryValidator

    from harbor_agent import HolorunAgent

    class Here(BaseEnvironment):
        def __init__(self, env):
            self.env, self.default_user = env, None

        @staticmethod
        def type():
            return "here"

        def _validate_definition(self):
            pass

        async def start(self, force_build):
            pass

        async def stop(self, delete):
            pass

        async def upload_file(self, source_path, target_path):
            subprocess.run(["cp", source_path, target_path], check=True)

        upload_dir = download_file = download_dir = prepare_logs_for_host = upload_file

        async def exec(self, command, cwd=None, env=None, timeout_sec=None, user=None):
            done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=timeout_sec, cwd=cwd,
                                  env={**os.environ, **self.env, **(env or {})})
            return ExecResult(stdout=done.stdout, stderr=done.stderr, return_code=done.returncode)

    async def whole_task(screen, logs):
        import harbor_agent
        from pathlib import PurePosixPath

        harbor_agent.PROGRAM = os.path.join(logs, "holorun")
        environment, context = Here({"DISPLAY": screen.display}), AgentContext()
        agent = HolorunAgent(Path(logs), program=HOLORUN, options=" ".join(OPTIONS), environment_logs_dir=PurePosixPath(logs))
        await agent.setup(environment)
        check(f"setup(): {agent.name()} {agent.version()}, {agent.to_agent_info()}", agent.version())
        await agent.run(TASK, environment, context)
        return context

    with Screen() as screen, tempfile.TemporaryDirectory() as logs:
        context = asyncio.run(whole_task(screen, logs))
        check(f"run(): {context.metadata}, {context.n_input_tokens} tokens read, {context.n_output_tokens} written",
              context.metadata["exit_code"] == 0 and context.n_output_tokens > 0)
        check(f"the screen: {screen.title()}", "pressed=dkgduyv" in screen.title())
        validator = TrajectoryValidator()
        good = validator.validate(Path(logs) / "trajectory.json")
        check(f"trajectory.json passes Harbor's validator, images and all {validator.errors}", good)


if __name__ == "__main__":
    osworld(sys.argv[2]) if sys.argv[1:2] == ["osworld"] else harbor()
