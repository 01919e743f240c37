#!/usr/bin/env python3
"""Tests `holorun mcp` with the Python package `mcp` (2.x supports both protocol eras) on a private X server, and records
the messages of both sides for tests/serve/t_hosts.c.

    mcp_client.py FOLDER_FOR_TRANSCRIPTS [CASE ...]
"""
import asyncio
import json
import os
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

import mcp_types as types
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.extension import advertise

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))


def call(name, **args):
    return json.dumps({"note": None, "thought": "as planned", "tool_call": {"tool_name": name, **args}})


SAVE = [call("click_desktop", element="it", x=300, y=300), call("write_desktop", content="abc"),
        call("answer", content="Done.")]
LONG = [call("write_desktop", content="ab cd ef gh " * 200), call("answer", content="Done.")]
PAY = [call("click_desktop", element="Pay now", x=300, y=300), call("answer", content="Paid.")]
SLOW = [call("wait_desktop", seconds=2), call("wait_desktop", seconds=2), call("answer", content="Waited.")]


class SilentDisplay:
    def __init__(self, number):
        self.number, self.connections = number, []
        self.path = "/tmp/.X11-unix/X%d" % number
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(self.path)
        self.socket.listen(8)
        threading.Thread(target=self.count, daemon=True).start()

    def count(self):
        while True:
            try:
                one = self.socket.accept()[0]
            except OSError:
                return
            pid = struct.unpack("3i", one.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
            try:
                program = os.readlink("/proc/%d/exe" % pid)
            except OSError:
                continue  # the tested server is running; other programs ask each socket for its owner
            if program.startswith(ROOT):
                self.connections.append(program)

    def close(self):
        self.socket.close()
        os.unlink(self.path)


class Stage:
    """A private display with a window that records its events."""

    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="holorun-mcp-")
        Stage.number = getattr(Stage, "number", 300 + os.getpid() % 500) + 1
        self.display = ":%d" % Stage.number
        self.server = subprocess.Popen(["Xvfb", self.display, "-screen", "0", "800x600x24", "-nolisten", "tcp"],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.environ.update(DISPLAY=self.display, HOME=self.dir, XDG_RUNTIME_DIR=self.dir)
        for _ in range(100):
            if os.path.exists("/tmp/.X11-unix/X" + self.display[1:]):
                break
            time.sleep(0.05)
        self.events = os.path.join(self.dir, "events")
        self.client = subprocess.Popen([ROOT + "/build/release/helpers/xclient", self.events, "--geometry", "800x600+0+0"])
        for _ in range(400):
            if os.path.exists(self.events) and self.seen("ready"):
                break
            time.sleep(0.05)

    def seen(self, name):
        with open(self.events) as f:
            return sum('"event":"%s"' % name in line for line in f)

    def events_of(self, path):
        with open(path) as f:
            return [json.loads(line)["event"] for line in f]

    def untouched(self):
        """Checks that the caller's display got no event and no connection."""
        assert self.events_of(self.events) in (["ready"], []), self.events_of(self.events)
        assert not self.silent.connections, self.silent.connections

    def stand_in(self):
        """Listens in place of the caller's display and counts connections."""
        self.silent = SilentDisplay(int(self.display[1:]) + 1000)
        os.environ["DISPLAY"] = ":%d" % self.silent.number

    def close(self):
        if getattr(self, "silent", None):
            self.silent.close()
        self.client.terminate()
        self.client.wait()
        self.server.terminate()
        self.server.wait()


def server(stage, replies, transcript, *more):
    script = os.path.join(stage.dir, "script")
    with open(script, "w") as f:
        f.write("\n".join(replies) + "\n")
    words = [sys.executable, HERE + "/tee.py", transcript, ROOT + "/holorun", "mcp", "--quiet", "--fake", script,
             "--runs", stage.dir + "/runs", "--settle-min", "1", "--settle-quiet", "30", *more]
    return StdioServerParameters(command=words[0], args=words[1:], env=dict(os.environ))


def told(result):
    return result.structured_content


async def booking(stage, client):
    names = [t.name for t in (await client.list_tools()).tools]
    assert "run_task" in names and "act" in names, names
    steps = []

    async def progress(done, total, message):
        steps.append((done, message))

    r = await client.call_tool("run_task", {"task": "Press Save", "wait_s": 20, "picture": True}, progress_callback=progress)
    assert told(r)["status"] == "answered" and told(r)["answer"] == "Done.", r
    assert any(c.type == "image" for c in r.content), r
    assert stage.seen("button_press") == 1, stage.seen("button_press")
    assert steps, "no progress"
    r = await client.call_tool("run_status", {"run_id": told(r)["run_id"]})
    assert told(r)["status"] == "answered"


async def stop(stage, client):
    r = await client.call_tool("run_task", {"task": "Type a lot", "wait_s": 0})
    assert told(r)["status"] == "running", r
    while stage.seen("key_press") < 10:
        await asyncio.sleep(0.01)
    r = await client.call_tool("run_stop", {"run_id": told(r)["run_id"]})
    assert told(r)["status"] == "stopped", r
    n = stage.seen("key_press")
    await asyncio.sleep(0.3)
    assert stage.seen("key_press") == n < 2000


async def cancel(stage, client):
    before = stage.seen("key_press")
    task = asyncio.ensure_future(client.call_tool("run_task", {"task": "Type a lot", "wait_s": 60}))
    while stage.seen("key_press") < before + 10:
        await asyncio.sleep(0.01)
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        pass
    await asyncio.sleep(0.3)
    n = stage.seen("key_press")
    await asyncio.sleep(0.3)
    assert stage.seen("key_press") == n


async def permission(stage, client):
    before = stage.seen("button_press")
    r = await client.call_tool("run_task", {"task": "Pay", "wait_s": 20})
    assert told(r)["status"] == ("answered" if ANSWERS[-1] else "refused") and r.is_error != ANSWERS[-1], r
    assert stage.seen("button_press") == before + (1 if ANSWERS[-1] else 0), (ANSWERS, before)


async def denied_by_tool(stage, client):
    before = stage.seen("button_press")
    r = await client.call_tool("run_task", {"task": "Pay", "wait_s": 20})
    assert told(r)["status"] == "asking" and "Pay now" in told(r)["question"], r
    r = await client.call_tool("run_answer", {"run_id": told(r)["run_id"], "allow": False, "wait_s": 20})
    assert told(r)["status"] == "refused" and r.is_error, r
    assert stage.seen("button_press") == before


async def acts(stage, client):
    r = await client.call_tool("screenshot", {"max_size": 400})
    assert told(r)["scale"] == 2.0, told(r)
    before = stage.seen("button_press")
    r = await client.call_tool("act", {"action": "click", "x": 100, "y": 100, "picture": False})
    assert told(r)["done"] and "201,201" in told(r)["what"], told(r)
    assert stage.seen("button_press") == before + 1
    r = await client.call_tool("act", {"action": "type", "text": "hello"})
    assert told(r)["done"] and r.content[1].type == "image", told(r)
    r = await client.call_tool("act", {"action": "click", "x": 9999, "y": 100})
    assert r.is_error, r
    r = await client.call_tool("act", {"action": "key", "keys": ["nokey"]})
    assert r.is_error, r
    r = await client.call_tool("windows", {})
    assert told(r)["windows"], r


async def lenient(stage, client):
    """Sends arguments as strings, nulls and nested JSON text, and requests for features that the server lacks.
    """
    assert (await client.list_prompts()).prompts == []
    assert (await client.list_resources()).resources == []
    assert (await client.list_resource_templates()).resource_templates == []
    caps = client.server_capabilities
    if client.protocol_version < "2026":  # the client of the newer protocol gets no request to ask
        assert caps.prompts is not None and caps.resources is not None and caps.completions is None, caps
    for wrong, code in ((client.get_prompt("none"), -32602), (client.read_resource("file:///none"), None),
                        (client.list_resources(cursor="2"), -32602)):
        try:
            await wrong
            assert False, "no error"
        except MCPError as e:
            assert e.error.code == (code or (-32602 if client.protocol_version > "2026" else -32002)), e
    r = await client.call_tool("windows", None)
    assert not r.is_error, r
    r = await client.call_tool("screenshot", {"max_size": "4e2", "region": None, "display": None})
    assert told(r)["scale"] == 2.0, told(r)
    r = await client.call_tool("act", {"action": "Click", "x": "100", "y": 100.0, "picture": "false"})
    assert told(r)["done"] and "201,201" in told(r)["what"], told(r)
    r = await client.call_tool("act", {"action": "click", "coordinate": '{"x": "100", "y": 100}', "picture": 0, "why": "to try"})
    assert told(r)["done"] and "201,201" in told(r)["what"] and told(r)["ignored_arguments"] == ["why"], told(r)
    r = await client.call_tool("act", {"action": "key", "keys": '"[\\"shift\\", \\"a\\"]"', "repeat": "2", "picture": "False"})
    assert told(r)["done"], told(r)
    r = await client.call_tool("act", {"action": "click", "x": "12px", "y": 1})
    assert r.is_error and told(r)["error"] == "argument 'x' must be an integer; got string \"12px\"", told(r)
    assert stage.seen("button_press") == 2, stage.seen("button_press")
    r = await client.call_tool("run_task", {"task": "Press Save", "wait_s": "20", "max_steps": "5.0", "display": None, "picture": "true"})
    assert told(r)["status"] == "answered" and told(r)["scale"] == 1.0 and r.content[1].type == "image", r
    r = await client.call_tool("run_status", {"run_id": told(r)["run_id"], "wait_s": "null"})
    assert told(r)["status"] == "answered", r


async def refused(stage, client):
    """A client that cannot ask its user: the question is refused, and the model has no tool to answer it."""
    assert "run_answer" not in [t.name for t in (await client.list_tools()).tools]
    before = stage.seen("button_press")
    r = await client.call_tool("run_task", {"task": "Pay", "wait_s": 20})
    assert told(r)["status"] != "asking" and "Pay now" in told(r)["refused"] and "--confirm" in told(r)["refused"], told(r)
    r = await client.call_tool("run_answer", {"run_id": told(r)["run_id"], "allow": True})
    assert r.is_error and "is disabled" in told(r)["error"], r
    r = await client.call_tool("act", {"action": "click", "element": "Pay now", "x": 300, "y": 300})
    assert r.is_error and "Pay now" in told(r)["refused"], r
    assert stage.seen("button_press") == before


async def desk(stage, client):
    """All tools work on the private desktop: the caller's display gets no event and no connection."""
    r = await client.call_tool("screenshot", {})
    assert told(r)["picture_size"] == [1000, 700] and told(r)["display"] != stage.display, told(r)
    r = await client.call_tool("windows", {})
    assert any(w["title"] == "on the desk" for w in told(r)["windows"]), told(r)
    for spelling in (told(r)["display"], told(r)["display"] + ".0", "unix" + told(r)["display"]):
        assert not (await client.call_tool("windows", {"display": spelling})).is_error, spelling
    for other in (stage.display, stage.display + ".0", "unix" + stage.display, ":0", "/tmp/.X11-unix/X" + stage.display[1:]):
        for tool, args in (("screenshot", {}), ("act", {"action": "click", "x": 5, "y": 5}), ("windows", {}),
                           ("run_task", {"task": "Press Save"})):
            r = await client.call_tool(tool, {**args, "display": other})
            assert r.is_error and "is not the display of this server" in told(r)["error"], (other, told(r))
    r = await client.call_tool("act", {"action": "click", "x": 300, "y": 200, "picture": False})
    assert told(r)["done"], told(r)
    r = await client.call_tool("act", {"action": "type", "text": "hello"})
    assert told(r)["done"] and told(r)["picture_size"] == [1000, 700], told(r)
    r = await client.call_tool("run_task", {"task": "Press Save", "wait_s": 20, "picture": True})
    assert told(r)["status"] == "answered" and told(r)["picture_size"] == [1000, 700], told(r)
    there = stage.events_of(stage.dir + "/desk")
    assert there.count("button_press") == 2 and there.count("key_press") >= 8, there
    stage.untouched()


async def poll(stage, client):
    seconds = float(os.environ.get("POLL_S", "4"))
    start = time.time()
    r = await client.call_tool("run_task", {"task": "Wait", "wait_s": 0})
    polls = 0
    while told(r)["status"] == "running":
        r = await client.call_tool("run_status", {"run_id": told(r)["run_id"], "wait_s": 1})
        polls += 1
    assert told(r)["status"] == "unverified" and polls >= 2, (r, polls)
    print("polled", polls, "times in %.0f s" % (time.time() - start), seconds)


ANSWERS = []


def elicit(allow):
    async def answer(context, params):
        ANSWERS.append(allow)
        assert "Pay now" in params.message, params
        return types.ElicitResult(action="accept", content={"allow": allow})
    return answer


def on_desk(stage):
    stage.stand_in()
    program = "%s/build/release/helpers/xclient %s/desk --title 'on the desk' --geometry 1000x700+0+0" % (ROOT, stage.dir)
    return ["--on", "desk:1000x700", "--start", program]


CASES = {  # name: (replies, test, answers[, more options])
    "booking": (SAVE, booking, None),
    "stop": (LONG, stop, None),
    "cancel": (LONG, cancel, None),
    "allowed": (PAY, permission, True),
    "denied": (PAY, permission, False),
    "asking": (PAY, denied_by_tool, None, ["--confirm", "caller"]),
    "refused": (PAY, refused, None),
    "desk": (SAVE, desk, None, on_desk),
    "acts": (SAVE, acts, None),
    "lenient": (SAVE, lenient, None),
    "poll": (SLOW, poll, None),
}


async def main():
    folder, wanted = sys.argv[1], sys.argv[2:] or CASES
    os.makedirs(folder, exist_ok=True)
    for era, mode in (("session", "legacy"), ("modern", "2026-07-28"), ("auto", "auto")):
        for name in wanted:
            if era == "auto" and name != "booking":
                continue
            replies, what, allow, *more = CASES[name]
            if name == "poll" and "POLL_S" in os.environ:
                replies = [call("wait_desktop", seconds=10 + i / 10) for i in range(int(float(os.environ["POLL_S"]) / 10))] + replies[-1:]
            stage = Stage()
            try:
                more = more[0](stage) if more and callable(more[0]) else more[0] if more else []
                params = server(stage, replies, "%s/%s-%s.jsonl" % (folder, era, name), *more)
                kw = {} if allow is None else {"elicitation_callback": elicit(allow)}
                async with Client(params, mode=mode, **kw) as client:
                    await what(stage, client)
                    print("ok  ", era, name, client.protocol_version, flush=True)
            finally:
                stage.close()


if __name__ == "__main__":
    asyncio.run(main())
