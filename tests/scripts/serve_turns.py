#!/usr/bin/env python3
"""Conversations with one more picture a turn: tokens read and time to the first one, of servers side by side.

    serve_turns.py [--turns 30] [--clients 1,16] NAME=BASE_URL[,MODEL[,TOKEN_FILE]] ...

Each client has a conversation of its own that only grows, greedy, with eight tokens a reply.  For each server and
number of clients: tokens of a turn that were not cached (the least and the most from the second turn on), and
milliseconds to the first text (median, the slowest twentieth).  The servers are asked in turn, turn by turn.
"""
import argparse
import base64
import http.client
import json
import statistics
import struct
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
    talks = {name: [Talk(name, where, i + 1) for i in range(clients)] for name, where in servers}
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
        wait = sorted(r[1] for r in rows)
        print(f"{name:12} {clients:2} clients, {turns} turns: {min(r[0] for r in rows)} to {max(r[0] for r in rows)} tokens read a turn "
              f"of up to {max(r[2] for r in rows)}; first text after {statistics.median(wait):.0f} ms, slowest twentieth "
              f"{wait[int(len(wait) * 0.95)]:.0f} ms", flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--turns", type=int, default=30)
    p.add_argument("--clients", default="1,16")
    p.add_argument("servers", nargs="+")
    a = p.parse_args()
    for clients in a.clients.split(","):
        measure([s.split("=", 1) for s in a.servers], int(clients), a.turns)


main()
