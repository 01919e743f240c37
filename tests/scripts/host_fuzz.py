#!/usr/bin/env python3
"""Sends random requests to `holorun mcp` or `holorun acp` on a private X server, and checks that it survives.

    host_fuzz.py [--seconds 900] [--seed N] [--display :210] [--program build/asan/holorun] [mcp|acp]

Most requests are tool calls with one to three arguments replaced by extreme numbers, other types, long or odd text
and nested JSON; some are broken lines, batches, cancellations and requests of other protocol versions. Prints the
resident memory, threads and descriptors of the process ten times. Exit code 1: the process ended, a request got no
answer within 120 s, a received line is not JSON, the process does not exit with 0 when its stdin is closed, or its
final memory is more than twice (and 100 MiB above) that of the first tenth. A program built with ASAN=1 also ends on
leaks and undefined behaviour.
"""
import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NUMBERS = [0, 1, -1, 2, 7, 64, 255, 640, 799, 800, 4096, 32767, 65536, 2**31 - 1, -2**31, 2**31, 2**32, 2**53, 2**63 - 1,
           -2**63, 0.5, -0.0, 1e-300, 1e300, -1e308, 99999999999999999999.0]
TEXTS = ["", " ", "a", "ctrl", "left", "down", "{{PASSWORD}}", "null", "true", "-1", "[1, 2]", '{"x": 1, "y": 2}', "1e400",
         "\u202egnp.exe", "\x00\x01\x1b[2J", "\U0001f9ff" * 40, "x" * 5000, "%s%n%d", "../../etc/passwd", ":0", "unix:210",
         "/tmp/.X11-unix/X210", "http://127.0.0.1:1", "\ud83d", "run-0000000000000000"]
ACTIONS = ["move", "click", "double_click", "mouse_down", "mouse_up", "drag", "scroll", "type", "key", "key_down", "key_up",
           "wait", "observe", "goto"]
DEEDS = ["press", "double_press", "right_press", "fill", "choose", "tick", "untick", "focus", "scroll_to", "click", "type"]
META = "io.modelcontextprotocol/"


class Fuzzer:
    def __init__(self, o):
        self.o, self.rng = o, random.Random(o.seed)
        self.open, self.known, self.n, self.answers, self.wrong = {}, [], 0, 0, None
        self.dir = tempfile.mkdtemp(prefix="holorun-host-fuzz-")
        self.lock = threading.Lock()

    # ---- random values

    def value(self, depth=0):
        r = self.rng
        kind = r.randrange(9 if depth < 3 else 5)
        if kind < 2:
            return r.choice(NUMBERS)
        if kind == 2:
            return r.choice(TEXTS)
        if kind == 3:
            return r.choice([None, True, False])
        if kind == 4:
            return r.randrange(-1000, 1000)
        if kind < 7:
            return [self.value(depth + 1) for _ in range(r.choice([0, 1, 2, 3, 4, 4, 4, 70]))]
        if kind == 7:
            return {r.choice(["x", "y", "w", "h", "width", "height", "a"]): self.value(depth + 1) for _ in range(r.randrange(4))}
        return json.dumps(self.value(depth + 1))

    def spoil(self, args):
        for _ in range(self.rng.choice([0, 1, 1, 1, 2, 3])):
            names = list(args) + ["region", "max_size", "x", "y", "count", "amount", "seconds", "repeat", "picture_id", "display"]
            args[self.rng.choice(names)] = self.value()
        return args

    def arguments(self, tool):
        r = self.rng
        point = {"x": r.randrange(800), "y": r.randrange(600)}
        if tool == "act":
            args = {"action": r.choice(ACTIONS), **point, "picture": r.random() < 0.2, "text": r.choice(TEXTS[:14]),
                    "keys": r.choice([["ctrl", "a"], ["a"], "shift"]), "key": "shift", "seconds": r.choice([0, 0.01, 0.1])}
            if r.random() < 0.3:
                args.update(action=r.choice(DEEDS), ref=r.choice(["e1", "e7", 12, "e999999999999", "x", "[e3]"]),
                            value=r.choice(TEXTS[:14]))
            if args["action"] == "drag":
                args.update(x2=r.randrange(800), y2=r.randrange(600))
        elif tool == "screenshot":
            args = {"region": [r.randrange(800), r.randrange(600), r.randrange(1, 800), r.randrange(1, 600)],
                    "max_size": r.randrange(16, 900)}
            if r.random() < 0.5:
                args["region"][r.randrange(4)] = r.choice([n for n in NUMBERS if isinstance(n, int)])
        elif tool == "run_task":
            args = {"task": "Press it", "wait_s": r.choice([0, 0.1, 1]), "max_steps": 2}
            args["marks"] = r.random() < 0.2
        elif tool in ("snapshot", "find"):
            args = {"limit": r.choice([1, 20, 100, 1500, 20001]), "all": r.random() < 0.5, "json": r.random() < 0.3,
                    "boxes": r.random() < 0.3, "words": r.choice(TEXTS[:14]), "role": r.choice(["button", "", "x"])}
            if tool == "snapshot":
                del args["words"], args["role"]
        elif tool == "windows":
            args = {}
        else:
            args = {"run_id": r.choice(self.known or ["run-0"]), "allow": r.random() < 0.5, "wait_s": 0}
        return self.spoil(args)

    # ---- requests

    def mcp_request(self):
        r = self.rng
        tool = r.choice(["act"] * 6 + ["screenshot"] * 5 + ["run_task", "run_status", "run_stop", "run_answer", "windows", "snapshot", "find", "none"])
        params = {"name": tool, "arguments": self.arguments(tool)}
        method = "tools/call"
        if r.random() < 0.08:
            method = r.choice(["ping", "tools/list", "prompts/get", "resources/read", "tasks/get", "tasks/update", "tasks/cancel",
                               "logging/setLevel", "initialize", "server/discover", "x"])
            params = self.spoil({"taskId": r.choice(self.known or ["x"]), "level": "info", "protocolVersion": "2025-06-18",
                                 "inputResponses": self.value(), "uri": self.value(), "name": self.value()})
        if r.random() < 0.4:
            able = {"extensions": {META + "tasks": {}}} if r.random() < 0.5 else {}
            if r.random() < 0.5:
                able["elicitation"] = {}
            params["_meta"] = {META + "protocolVersion": "2026-07-28", META + "clientCapabilities": able,
                               "progressToken": r.choice(["t", 7, None, 1.5])}
        if r.random() < 0.05:
            params["requestState"] = r.choice(self.known or ["x"])
            params["inputResponses"] = {"allow-1": {"action": "accept", "content": {"allow": True}}}
        return method, params

    def acp_request(self):
        r = self.rng
        session = r.choice(self.known[-3:] or ["0" * 32])
        method = r.choice(["session/prompt"] * 5 + ["session/new", "session/load", "session/cancel", "initialize", "x"])
        params = self.spoil({"sessionId": session, "protocolVersion": 1, "cwd": "/", "mcpServers": [],
                             "prompt": r.choice(["Press it", [{"type": "text", "text": "Press it"}], self.value()])})
        if method == "session/prompt" and r.random() < 0.8:
            params["sessionId"] = session
        return method, params

    def send(self, line):
        self.p.stdin.write(line.encode("utf-8", "surrogatepass") + b"\n")
        self.p.stdin.flush()

    def step(self):
        r = self.rng
        if r.random() < 0.03:
            self.send(r.choice(["", "{", "[]", "[1]", '{"jsonrpc":"2.0"}', '{"id":{},"method":1}', "\x00", '"' * 3000,
                                "[" * 3000, json.dumps(self.value())]))
            return
        with self.lock:
            waiting = list(self.open)
        if waiting and r.random() < 0.1:
            method, params = ("notifications/cancelled", {"requestId": r.choice(waiting)}) if self.o.mode == "mcp" else (
                "session/cancel", {"sessionId": r.choice(self.known or ["x"])})
            with self.lock:
                self.open.pop(params.get("requestId"), None)
            self.send(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}))
            return
        self.n += 1
        method, params = self.mcp_request() if self.o.mode == "mcp" else self.acp_request()
        with self.lock:
            self.open[self.n] = time.time()
        self.send(json.dumps({"jsonrpc": "2.0", "id": self.n, "method": method, "params": params}))

    # ---- answers

    def learn(self, v):
        if isinstance(v, dict):
            for key, one in v.items():
                if key in ("run_id", "taskId", "sessionId") and isinstance(one, str) and one not in self.known:
                    self.known = self.known[-20:] + [one]
                self.learn(one)

    def hear(self):
        for line in self.p.stdout:
            try:
                message = json.loads(line)
            except ValueError:
                self.wrong = "not JSON: %r" % line[:200]
                return
            for one in message if isinstance(message, list) else [message]:
                if "method" in one and "id" in one:  # a question to the user
                    yes = {"outcome": {"outcome": "selected", "optionId": "allow"}, "action": "accept", "content": {"allow": True}}
                    self.send(json.dumps({"jsonrpc": "2.0", "id": one["id"], "result": self.rng.choice([yes, {}])}))
                    continue
                self.learn(one.get("result"))
                with self.lock:
                    self.open.pop(one.get("id"), None)
                self.answers += 1

    def state(self):
        with open("/proc/%d/status" % self.p.pid, encoding="utf-8") as f:
            fields = dict(line.split(":", 1) for line in f)
        return int(fields["VmRSS"].split()[0]) >> 10, int(fields["Threads"]), len(os.listdir("/proc/%d/fd" % self.p.pid))

    def oldest(self):
        with self.lock:
            return max((time.time() - t for t in self.open.values()), default=0)

    def run(self):
        env = {**os.environ, "DISPLAY": self.o.display, "HOME": self.dir, "XDG_RUNTIME_DIR": self.dir,
               "ASAN_OPTIONS": "quarantine_size_mb=8:malloc_context_size=12", "SECRET": "quokka-4417-willow",
               "LSAN_OPTIONS": "suppressions=%s/tests/lsan.supp:print_suppressions=0" % ROOT}
        script, answer = os.path.join(self.dir, "script"), '{"tool_call": {"tool_name": "answer", "content": "Done."}}'
        click = '{"tool_call": {"tool_name": "click_desktop", "element": "Pay now", "x": 300, "y": 300}}'
        with open(script, "w", encoding="utf-8") as f:
            f.write(click + "\n" + answer + "\n")
        words = [self.o.program, self.o.mode, "--quiet", "--fake", script, "--runs", self.dir + "/runs", "--settle-min", "1",
                 "--settle-quiet", "20", "--no-report", "--secret", "PASSWORD=env:SECRET", "--confirm-timeout", "2"]
        with open(self.dir + "/stderr", "wb") as log:
            self.p = subprocess.Popen(words, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log)
        threading.Thread(target=self.hear, daemon=True).start()
        self.send(json.dumps({"jsonrpc": "2.0", "id": "first", "method": "initialize", "params": {
            "protocolVersion": 1 if self.o.mode == "acp" else "2025-06-18",
            "capabilities": {"elicitation": {}} if self.o.seed % 2 else {}, "clientInfo": {"name": "f", "version": "1"}}}))
        start, told, first, most = time.time(), 0, None, 1
        while time.time() - start < self.o.seconds and self.p.poll() is None and not self.wrong:
            with self.lock:
                busy = len(self.open)
            if self.n % 200 == 0:
                most = self.rng.choice([1, 1, 3, 12])
            if busy < most:
                self.step()
            else:
                time.sleep(0.002)
            if self.oldest() > 120:
                self.wrong = "no answer within 120 s"
            if time.time() - start > (told + 1) * self.o.seconds / 10:
                told += 1
                memory, threads, files = self.state()
                first = first or memory
                print("%4.0f s: %d requests, %d answers, %d MiB, %d threads, %d descriptors" %
                      (time.time() - start, self.n, self.answers, memory, threads, files), flush=True)
        return self.end(first)

    def end(self, first):
        wrong = self.wrong or (self.p.poll() is not None and "it ended with %s" % self.p.returncode)
        if not wrong:
            time.sleep(5)
            memory = self.state()[0]
            wrong = first and memory > 2 * first and memory > first + 100 and "memory grew from %d to %d MiB" % (first, memory)
            self.p.stdin.close()
            try:
                code = self.p.wait(60)
                wrong = wrong or (code and "it ended with %d" % code)
            except subprocess.TimeoutExpired:
                subprocess.run(["gdb", "-p", str(self.p.pid), "-batch", "-ex", "thread apply all bt 25"], check=False,
                               stdout=open(self.dir + "/stacks", "w"), stderr=subprocess.DEVNULL)
                self.p.kill()
                wrong = "it did not end when its stdin was closed"
        if wrong:
            print("FAIL: %s; see %s/stderr" % (wrong, self.dir))
            with open(self.dir + "/stderr", errors="replace") as f:
                print("".join(f.readlines()[-40:]))
        else:
            print("ok: %d requests, %d answers" % (self.n, self.answers))
        return 1 if wrong else 0


def main():
    p = argparse.ArgumentParser()
    p.add_argument("mode", nargs="?", default="mcp", choices=["mcp", "acp"])
    p.add_argument("--seconds", type=float, default=900)
    p.add_argument("--seed", type=int, default=int(time.time()))
    p.add_argument("--display", default=":210")
    p.add_argument("--program", default=ROOT + "/build/asan/holorun")
    o = p.parse_args()
    print("%s, seed %d" % (o.mode, o.seed), flush=True)
    server = subprocess.Popen(["Xvfb", o.display, "-screen", "0", "800x600x24", "-nolisten", "tcp"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        time.sleep(2)
        return Fuzzer(o).run()
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    sys.exit(main())
