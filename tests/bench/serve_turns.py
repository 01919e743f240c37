#!/usr/bin/env python3
"""Measures conversations with a new image in each turn: prefilled tokens and time to the first token, of several servers.

    serve_turns.py [--turns 30] [--clients 1,16] [--threads 2] [--holorun ./holorun] [NAME=BASE_URL[,MODEL[,TOKEN_FILE]] ...]

Without servers it starts `holorun serve` and llama.cpp's server (package xllamacpp), both with the same tiny random
Qwen3.5 (Q8_0) with its vision tower, which bench_gguf.py writes.  Each client has its own conversation, which only grows,
with greedy replies of eight tokens.  For each server and number of clients it prints the tokens of a turn that were not
cached (from the second turn on; medians of the first and of the last third), and milliseconds to the first text.  The
servers are measured in turn.
"""
import argparse
import base64
import http.client
import json
import os
import re
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from urllib.parse import urlparse


def picture(seed, width=112, height=112):
    rows = b"".join(b"\0" + bytes((x * seed + y, y * 3 + seed, x ^ y)[c] % 256 for x in range(width) for c in range(3))
                    for y in range(height))
    chunk = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    png = (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) +
           chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
    return {"type": "image_url", "image_url": {"url": "data:image/png;base64," + base64.b64encode(png).decode()}}


class Talk:
    def __init__(self, name, where, seed):
        url, self.model, token = (where.split(",") + ["", ""])[:3]
        self.name, self.url, self.seed, self.messages, self.rows = name, urlparse(url), seed, [], []
        self.wrong = None
        self.key = open(token, encoding="utf-8").read().strip() if token else "none"

    def turn(self, n):
        self.messages.append({"role": "user", "content": [picture(self.seed * 31 + n), {"type": "text", "text": f"Screen {n}."}]})
        body = {"messages": self.messages, "max_tokens": 8, "temperature": 0, "stream": True,
                "stream_options": {"include_usage": True}} | ({"model": self.model} if self.model else {})
        c = http.client.HTTPConnection(self.url.hostname, self.url.port, timeout=300)
        text, usage, first, start = "", None, None, time.monotonic()
        c.request("POST", self.url.path + "/chat/completions", json.dumps(body),
                  {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"})
        reply = c.getresponse()
        if reply.status != 200:
            self.wrong = self.wrong or f"turn {n}: {reply.status} {reply.read()[:200]}"
            return
        for line in reply:
            event = json.loads(line[6:]) if line.startswith(b"data: {") else {}
            usage = event.get("usage") or usage
            for choice in event.get("choices", []):
                said = choice["delta"].get("content")
                first = first or (time.monotonic() if said else None)
                text += said or ""
        c.close()
        self.messages.append({"role": "assistant", "content": text})
        cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens", 0)
        self.rows.append((usage["prompt_tokens"] - cached, 1000 * ((first or time.monotonic()) - start),
                          usage["prompt_tokens"]))


def measure(servers, clients, turns):
    talks = {name: [Talk(name, where, 100 * clients + i) for i in range(clients)] for name, where in servers}
    for n in range(turns):
        for name, _ in servers:
            threads = [threading.Thread(target=t.turn, args=(n,)) for t in talks[name]]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
    for name, _ in servers:
        for t in talks[name]:
            if t.wrong:
                raise SystemExit(f"{name}, {t.wrong}")
        rows = [r for t in talks[name] for r in t.rows[1:]]
        third = max(1, (turns - 1) // 3)
        early, late = ([r[0] for t in talks[name] for r in part(t.rows[1:])] for part in
                       (lambda r: r[:third], lambda r: r[-third:]))
        wait = sorted(r[1] for r in rows)
        print(f"| {name} | {clients} | {min(r[0] for r in rows)} to {max(r[0] for r in rows)} | {statistics.median(early):.0f} / "
              f"{statistics.median(late):.0f} | {max(r[2] for r in rows)} | {statistics.median(wait):.0f} | "
              f"{wait[int(len(wait) * 0.95)]:.0f} |", flush=True)


# ---- the two servers --------------------------------------------------------------------------------


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def answers(base):
    url = urlparse(base)
    try:
        c = http.client.HTTPConnection(url.hostname, url.port, timeout=5)
        c.request("GET", url.path + "/models")
        return c.getresponse().status in (200, 401)
    except OSError:
        return False


def start_both(program, place, threads, clients):
    """Starts both servers; returns the processes, and the servers in the form of arguments."""
    import bench_gguf
    bench_gguf.write_text(f"{place}/text.gguf", bench_gguf.TINY, "Q8_0")
    bench_gguf.write_eyes(f"{place}/eyes.gguf", bench_gguf.TINY)
    port, token = free_port(), f"{place}/token"
    ours = subprocess.Popen([program, "serve", "--model", f"{place}/text.gguf,{place}/eyes.gguf", "--threads", str(threads), "--listen",
                             "127.0.0.1:0", "--served-name", "tiny", "--token-file", token], stdout=subprocess.PIPE, text=True)
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../scripts/peers_llama.py")
    theirs = subprocess.Popen([sys.executable, script, place, str(port), str(8192 * clients), str(clients), str(threads)],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    base = re.search(r"http://\S+", ours.stdout.readline())[0]
    there = f"http://127.0.0.1:{port}/v1"
    while not answers(there):
        if theirs.poll() is not None:
            raise SystemExit("llama.cpp's server did not start")
        time.sleep(0.2)
    return [ours, theirs], [f"holorun={base},tiny,{token}", f"llama.cpp={there},tiny"]


HEAD = """| server | clients | tokens prefilled per turn | first / last third | longest context | first text ms | slowest twentieth |
|---|---|---|---|---|---|---|"""


def run(servers, clients, turns):
    print(HEAD, flush=True)
    for n in clients:
        measure([s.split("=", 1) for s in servers], n, turns)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--turns", type=int, default=30)
    p.add_argument("--clients", default="1,16")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--holorun", default="./holorun")
    p.add_argument("servers", nargs="*")
    a = p.parse_args()
    clients = [int(n) for n in a.clients.split(",")]
    if a.servers:
        run(a.servers, clients, a.turns)
        return
    with tempfile.TemporaryDirectory() as place:
        processes = []
        try:
            processes, servers = start_both(a.holorun, place, a.threads, max(clients))
            run(servers, clients, a.turns)
        finally:
            for one in processes:
                one.terminate()
                one.wait()


main()
