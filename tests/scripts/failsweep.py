#!/usr/bin/env python3
"""Makes N system calls, allocations and Xlib calls fail, one per session, and looks for crashes.

    failsweep.py [N] [SEED] [CASE FUNCTION AT]      default: 300 1; with a case: only that one, with its output

A session is a run, a suite, `holorun serve` with a client, or `holorun mcp` with a client. The failing call is one of
a function that the undisturbed session calls; all functions are equally likely. tests/run/t_injections.c covers more
commands, without clients, and checks keys, files and messages after each. Exit code 1: a crash whose innermost frame
is in the program; a crash inside a library is only listed. Needs `make all build/release/helpers/inject.so
build/release/helpers/xclient`.
"""
import ctypes
import http.client
import json
import mmap
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = os.environ.get("HOLORUN", ROOT + "/holorun")
HELPERS = ROOT + "/build/release/helpers/"
PATIENCE = 120  # seconds; loaded machines are slow


class Name(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char * 32), ("calls", ctypes.c_ulong)]


class Injection(ctypes.Structure):  # tests/inject/inject.h
    _fields_ = [("counts", ctypes.c_ulong * 5), ("kind", ctypes.c_int), ("at", ctypes.c_ulong),
                ("only", ctypes.c_char * 32), ("failed", ctypes.c_char * 32), ("names", Name * 64)]


def call(name, **args):
    return json.dumps({"note": None, "thought": "as planned", "tool_call": {"tool_name": name, **args}}) + "\n"


SCRIPT = (call("key_down_desktop", key="shift") + call("click_desktop", element="it", x=300, y=300) + call("write_desktop", content="ab\u03a9 Cd") +
          call("drag_and_drop", description="it", x1=200, y1=200, x2=600, y2=600) + call("answer", content="Done."))
SUITE = ('suite: { name: x, display: "xvfb:320x240" }\ntests:\n  - id: a\n    task: Type.\n'
         '    checks: [{ kind: shell, run: "true" }, { kind: window, title: "^$", absent: true }]\n')


def mcp_lines(dir):
    ask = lambda id, method, **params: json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
    tool = lambda id, name, **args: ask(id, "tools/call", name=name, arguments=args)
    return [ask(1, "initialize", protocolVersion="2025-06-18", capabilities={},
                clientInfo={"name": "failsweep", "version": "1"}),
            json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}), ask(2, "tools/list"),
            tool(3, "screenshot"), tool(4, "run_task", task="Type."), ask(5, "ping")]


class Bench:
    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="failsweep-")
        read, write = os.pipe()
        self.server = subprocess.Popen(["Xvfb", "-displayfd", str(write), "-screen", "0", "800x600x24", "-nolisten",
                                        "tcp", "-noreset"], pass_fds=[write], stderr=subprocess.DEVNULL)
        os.close(write)
        self.env = dict(os.environ, DISPLAY=":" + os.read(read, 16).decode().strip(), HOME=self.dir,
                        XDG_RUNTIME_DIR=self.dir, TMPDIR=self.dir)
        self.window = subprocess.Popen([HELPERS + "xclient", self.dir + "/events", "--geometry", "800x600+0+0"],
                                       env=self.env)
        for name, text in (("script", SCRIPT), ("suite.yaml", SUITE)):
            with open(self.dir + "/" + name, "w") as f:
                f.write(text)
        with open(self.dir + "/injection", "w+b") as f:
            f.truncate(ctypes.sizeof(Injection))
            self.map = mmap.mmap(f.fileno(), ctypes.sizeof(Injection))
        self.shared = Injection.from_buffer(self.map)

    def close(self):
        del self.shared
        for p in (self.window, self.server):
            p.terminate()
            p.wait()
        shutil.rmtree(self.dir, ignore_errors=True)

    def start(self, words, **how):
        self.errors = open(self.dir + "/errors", "w+")
        env = dict(self.env, LD_PRELOAD=HELPERS + "inject.so", HOLORUN_INJECT=self.dir + "/injection")
        return subprocess.Popen([PROGRAM, *words], env=env, stderr=self.errors, cwd=ROOT, **how)

    def run(self):
        return self.start(["run", "Type", "--fake", self.dir + "/script", "--runs", self.dir + "/out",
                           "--settle-min", "1", "--settle-quiet", "30"], stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL)

    def qa(self):
        return self.start(["qa", self.dir + "/suite.yaml", "--fake", self.dir + "/script", "--out", self.dir + "/out",
                           "--quiet"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)

    def mcp(self):
        p = self.start(["mcp", "--quiet", "--fake", self.dir + "/script", "--runs", self.dir + "/out", "--settle-min",
                        "1", "--settle-quiet", "30"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

        def talk():
            try:
                for line in mcp_lines(self.dir):
                    p.stdin.write(line + "\n")
                    p.stdin.flush()
                    while '"id"' in line and '"id"' not in (p.stdout.readline() or '"id"'):
                        pass
                p.stdin.close()
            except OSError:
                pass
            p.stdout.read()
        threading.Thread(target=talk, daemon=True).start()
        return p

    def serve(self):
        port = 20000 + os.getpid() % 20000
        p = self.start(["serve", "--listen", "127.0.0.1:%d" % port], stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL)

        def ask(path, body=None):
            with open(self.dir + "/holorun/serve.token") as f:
                headers = {"Authorization": "Bearer " + f.read().strip(), "Content-Type": "application/json"}
            data = json.dumps(body).encode() if body else None
            request = urllib.request.Request("http://127.0.0.1:%d%s" % (port, path), data, headers)
            return urllib.request.urlopen(request, timeout=PATIENCE).read()

        def talk():
            for _ in range(100):
                try:
                    ask("/v1/models")
                    break
                except (OSError, http.client.HTTPException):
                    time.sleep(0.05)
            message = {"messages": [{"role": "user", "content": "Press OK"}], "max_tokens": 8}
            for body in (message, dict(message, stream=True)):
                try:
                    ask("/v1/chat/completions", body)
                except (OSError, http.client.HTTPException):
                    pass
            p.terminate()
        threading.Thread(target=talk, daemon=True).start()
        return p

    def session(self, case, function="", at=0):
        """Returns the exit code, or None if the session was killed, and the text of stderr."""
        shutil.rmtree(self.dir + "/out", ignore_errors=True)
        ctypes.memset(ctypes.addressof(self.shared), 0, ctypes.sizeof(Injection))
        self.shared.only, self.shared.at = function.encode(), at
        p = getattr(self, case)()
        try:
            code = p.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            p.kill()
            p.wait()
            code = None
        self.errors.seek(0)
        return code, self.errors.read()


def frames(text):
    lines = text[text.index("CRASH in these frames"):].splitlines()[1:]
    return [l for l in lines if "inject.so" not in l and l.startswith("/") or l.startswith(PROGRAM)]


def whose(stack):
    for line in stack:
        if "libc.so" not in line and "libpthread" not in line:
            return "ours" if line.startswith(PROGRAM) else line.split("(")[0]
    return "libc"


def main():
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    rng, bench, ours = random.Random(seed), Bench(), 0
    if len(sys.argv) > 5:
        code, text = bench.session(sys.argv[3], sys.argv[4], int(sys.argv[5]))
        print("exit code %s, failed: %s\n%s" % (code, bench.shared.failed.decode() or "nothing", text))
        return bench.close()
    cases, counts, table, failures = ["run", "qa", "serve", "mcp"], {}, {}, 0
    for case in cases:
        code, text = bench.session(case)
        counts[case] = {n.name.decode(): n.calls for n in bench.shared.names if n.calls}
        print("%-6s undisturbed: exit code %s, %d functions, %d calls" %
              (case, code, len(counts[case]), sum(counts[case].values())), flush=True)
    for i in range(n):
        case = cases[i % len(cases)]
        function = rng.choice(sorted(counts[case]))
        at = rng.randrange(counts[case][function]) + 1
        code, text = bench.session(case, function, at)
        name = bench.shared.failed.decode()
        end = "not reached" if not name else "ended by us" if code is None else "crash" if "CRASH in" in text or code < 0 else "exit %d" % code
        if end == "crash":
            stack = frames(text) if "CRASH in" in text else []
            owner = whose(stack)
            ours += owner == "ours"
            print("CRASH (%s): %s %s %d, exit code %s\n  %s" %
                  (owner, case, function, at, code, "\n  ".join(stack[:10])), flush=True)
        elif end == "ended by us":
            print("HANGS: %s %s %d: %s" % (case, function, at, text[-300:]), flush=True)
        elif code and not text.strip() and name:
            print("SILENT: %s %s %d, exit code %d" % (case, function, at, code), flush=True)
        failures += bool(name)
        table[case, end] = table.get((case, end), 0) + 1
    for (case, end), k in sorted(table.items()):
        print("%-6s %-12s %d" % (case, end, k))
    print("seed %d: %d failures injected, %d crashes in frames of the program" % (seed, failures, ours))
    bench.close()
    return ours > 0


sys.exit(main())
