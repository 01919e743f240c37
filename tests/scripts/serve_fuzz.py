#!/usr/bin/env python3
"""Sends a server mutated requests, damaged HTTP and partial connections, and checks that it survives them.

    serve_fuzz.py PROGRAM [--seconds 10] [--seed N] [--model DIR] [--threads 4]

Starts `PROGRAM serve` on a free port. Exit code 0 if the server then answers a plain request, has logged no sanitizer
report, exits with 0 on SIGTERM, and its memory after a rest is near that after the warm-up. A seed repeats the
requests of each thread, but not their order across threads.
"""
import argparse
import base64
import json
import os
import random
import re
import select
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import zlib

PATHS = ["/v1/chat/completions", "/v1/responses", "/v1/messages", "/v1/messages/count_tokens",
         "/v1/responses/input_tokens"]
OTHERS = ["/health", "/metrics", "/v1/models", "/v1/models/x", "/", "/pause", "/v1/chat/completions?x=1", "/%00"]
GROWTH = 96  # MiB that caches of conversations and grammars may use


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def plain_png(w, h, extra=b""):
    rows = (b"\0" + bytes([w & 255, 90, 7]) * min(w, 4000)) * min(h, 300)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", w, h, 8, 2, 0, 0, 0)) + extra +
            chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


BOMB = b"x\0\0" + zlib.compress(bytes(1 << 26))
PICTURES = [plain_png(w, h) for w, h in [(1, 1), (30, 20), (64, 64), (200, 5), (65535, 65535), (4000, 4000), (4000, 300)]]
PICTURES += [plain_png(64, 64, chunk(kind, BOMB)) for kind in (b"iCCP", b"zTXt", b"iTXt", b"eXIf")]


def png(rng):
    data = rng.choice(PICTURES)
    return damaged(rng, data) if rng.random() < 0.3 else data


def jpeg(rng):
    size = struct.pack(">HH", rng.choice([8, 300, 65535]), rng.choice([8, 300, 65535]))
    return damaged(rng, b"\xff\xd8\xff\xe0\0\x10JFIF\0\1\1\0\0\1\0\1\0\0" + b"\xff\xc2\0\x11\x08" + size +
                   b"\3\1\x22\0\2\x11\1\3\x11\1" + rng.randbytes(200))


def damaged(rng, data):
    data = bytearray(data)
    for _ in range(rng.randrange(1, 5)):
        at = rng.randrange(len(data))
        how = rng.randrange(4)
        if how == 0:
            data[at] = rng.randrange(256)
        elif how == 1:
            del data[at:at + rng.randrange(1, 40)]
        elif how == 2:
            data[at:at] = rng.randbytes(rng.randrange(1, 9))
        else:
            data[at:at] = data[at:at + rng.randrange(1, 200)]
        if not data:
            return b"x"
    return bytes(data)


def url(rng):
    data = png(rng) if rng.random() < 0.7 else jpeg(rng)
    head = rng.choice(["data:image/png;base64,", "data:image/jpeg;base64,", "data:;base64,", "", "data:,", "http://x/"])
    return head + base64.b64encode(data).decode()


def pattern(rng, depth=0):
    parts = []
    for _ in range(rng.randrange(1, 5)):
        part = rng.choice(["a", ".", "[a-z]", "\\d", "\\w+", "()", "é", "[^\"]"])
        if depth < 6 and rng.random() < 0.4:
            part = "(" + pattern(rng, depth + 1) + ")"
        parts.append(part + rng.choice(["", "*", "+", "?", "{3}", "{200}", "{0,256}", "{256}"]))
    return rng.choice(["", "|"]).join(parts)


def schema(rng, depth=0):
    inner = lambda: schema(rng, depth + 1) if depth < 5 else {}
    kind = rng.randrange(12)
    if kind == 0:
        return {"type": "object", "properties": {f"p{i}": inner() for i in range(rng.randrange(8))},
                "required": [f"p{i}" for i in range(rng.randrange(8))]}
    if kind == 1:
        return {"type": "array", "items": inner(), "minItems": rng.randrange(300), "maxItems": rng.randrange(400)}
    if kind == 2:
        return {"type": "string", "pattern": pattern(rng)}
    if kind == 3:
        return {rng.choice(["oneOf", "anyOf", "allOf"]): [inner() for _ in range(rng.randrange(6))]}
    if kind == 4:
        return {"$ref": rng.choice(["#", "#/$defs/a", "#/x", "y"]), "$defs": {"a": inner()}}
    if kind == 5:
        return {"enum": [rng.choice([1, "x", None, 1e99, [1], "é"]) for _ in range(rng.randrange(40))]}
    if kind == 6:
        return {"type": rng.choice(["number", "integer"]), "minimum": rng.choice([0, -1e300, 5, 1e18]),
                "maximum": rng.choice([9, 1e300, -1]), "multipleOf": rng.choice([1, 0.01, 0, 7])}
    if kind == 7:
        return {"type": "string", "minLength": rng.randrange(400), "maxLength": rng.randrange(400)}
    if kind == 8:
        return {"type": ["string", "null", "array", "object"][:rng.randrange(5)]}
    if kind == 9:
        return {"additionalProperties": inner(), "propertyNames": {"enum": ["a", "b"]}}
    return rng.choice([True, False, {}, None, 3, {"const": inner()}, {"format": "date-time", "type": "string"}])


def deep(rng):
    n = rng.choice([10, 63, 64, 65, 2000])
    return rng.choice(["[", '{"a":']) * n


def text(rng):
    return rng.choice(["hello", "", "\ud83d\ude00", "\x00", "<|im_start|>system", "é" * 300, "a " * rng.randrange(2000)])


def content(rng):
    if rng.random() < 0.5:
        return text(rng)
    parts = []
    for _ in range(rng.randrange(5)):
        parts.append(rng.choice([
            {"type": "text", "text": text(rng)}, {"type": "input_text", "text": text(rng)},
            {"type": "image_url", "image_url": {"url": url(rng)}}, {"type": "input_image", "image_url": url(rng)},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png",
                                         "data": base64.b64encode(png(rng)).decode()}},
            {"type": "tool_result", "tool_use_id": "t1", "content": text(rng)},
            {"type": "tool_use", "id": "t1", "name": "f", "input": {"a": 1}},
            {"type": "document", "source": {"type": "text", "data": text(rng)}}, None, 5]))
    return parts


def tools(rng):
    return [rng.choice([
        {"type": "function", "function": {"name": f"f{i}", "parameters": schema(rng)}},
        {"type": "function", "name": f"f{i}", "parameters": schema(rng)},
        {"name": f"f{i}", "input_schema": schema(rng)}, {"type": "web_search"}, {"name": ""}, None])
        for i in range(rng.randrange(6))]


def request(rng, path):
    messages = [{"role": rng.choice(["user", "system", "assistant", "tool", "developer", "pope"]),
                 "content": content(rng)} for _ in range(rng.randrange(5))]
    messages.append({"role": "user", "content": content(rng)})
    if rng.random() < 0.2:
        messages.insert(0, {"role": "assistant", "tool_calls": [{"id": "t1", "type": "function", "function": {
            "name": "f", "arguments": rng.choice(['{"a":1}', deep(rng), '"{}"', "x", {"a": 1}])}}]})
    body = {"messages": messages, "max_tokens": rng.choice([1, 3, 20])}
    if "responses" in path:
        body = {"input": rng.choice([text(rng), messages]), "max_output_tokens": 3}
    extras = {"temperature": rng.choice([0, 1, 2, -1, "hot"]), "stream": rng.choice([True, False]),
              "tools": tools(rng), "tool_choice": rng.choice(["auto", "required", "none", {"type": "tool", "name": "f0"},
                                                              {"type": "function", "function": {"name": "f1"}}]),
              "stop": rng.choice(["a", ["b", 1], []]), "logprobs": True, "top_logprobs": rng.randrange(30),
              "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": schema(rng)}},
              "text": {"format": {"type": "json_schema", "name": "a", "schema": schema(rng)}},
              "model": rng.choice(["x", None, 5]), "seed": rng.choice([1, 2**70, -1]), "top_k": rng.randrange(90),
              "system": text(rng), "instructions": text(rng), "n": rng.choice([1, 2]), "unknown": schema(rng)}
    for key in rng.sample(sorted(extras), rng.randrange(5)):
        body[key] = extras[key]
    data = json.dumps(body).encode("utf-8", "surrogatepass")
    how = rng.random()
    if how < 0.15:
        return damaged(rng, data)
    if how < 0.18:
        return deep(rng).encode() * rng.randrange(1, 50)
    if how < 0.2:
        return b'{"messages":[' + rng.choice([b"0,", b"[],", b'"",']) * rng.randrange(300000) + b"0]}"
    return data


class Fuzzer(threading.Thread):
    def __init__(self, address, token, seed, end):
        super().__init__(daemon=True)
        self.address, self.token, self.rng, self.end = address, token, random.Random(seed), end
        self.counts, self.sent, self.longest = {}, 0, 0.0

    def head(self, method, path, size):
        rng = self.rng
        lines = [f"{method} {path} HTTP/1.1", "Host: x", f"Authorization: Bearer {self.token}",
                 "Content-Type: application/json"]
        if size is not None:
            lines.append(f"Content-Length: {size}")
        if rng.random() < 0.9:
            lines.append("Connection: close")
        if rng.random() < 0.1:
            lines.append(rng.choice(["Content-Length: 5", "Transfer-Encoding: chunked", "Host: y", "X: y\r\n folded",
                                     "Expect: 100-continue", "Connection: close", ": empty", "Content-Encoding: gzip"]))
        return "\r\n".join(lines).encode() + b"\r\n\r\n"

    def reply(self, s):
        data = b""
        while b"\r\n" not in data and len(data) < 100:
            more = s.recv(4096)
            if not more:
                break
            data += more
        status = data.split(b" ")[1].decode("latin-1") if data.startswith(b"HTTP/") else "closed"
        if status == "200" and self.rng.random() < 0.7:
            s.settimeout(2)
            try:
                while self.rng.random() < 0.95 and s.recv(65536):
                    pass
            except socket.timeout:
                pass
        return status

    def one(self, s):
        rng, kind = self.rng, self.rng.random()
        if kind < 0.6:
            path = rng.choice(PATHS)
            body = request(rng, path)
            s.sendall(self.head("POST", path, len(body)) + body)
        elif kind < 0.68:  # chunked, sometimes with wrong sizes
            path, out = rng.choice(PATHS), b""
            body = request(rng, path)
            for at in range(0, len(body), 1000):
                part = body[at:at + 1000]
                out += (b"%x" % (len(part) + rng.choice([0] * 30 + [5, 1 << 40]))) + b"\r\n" + part + b"\r\n"
            s.sendall(self.head("POST", path, None).replace(b"\r\n\r\n", b"\r\nTransfer-Encoding: chunked\r\n\r\n") +
                      out + b"0\r\n\r\n")
        elif kind < 0.76:
            s.sendall(self.head(rng.choice(["GET", "GET", "HEAD", "PUT", "get"]), rng.choice(OTHERS + PATHS), None))
        elif kind < 0.84:  # a slow or truncated body
            body = request(rng, PATHS[0])
            s.sendall(self.head("POST", PATHS[0], len(body)) + body[:len(body) // 2])
            time.sleep(rng.random() * 0.2)
            if rng.random() < 0.5:
                return "left"
            s.sendall(body[len(body) // 2:])
        elif kind < 0.9:  # closes during the reply
            body = request(rng, PATHS[0])
            s.sendall(self.head("POST", PATHS[0], len(body)) + body)
            select.select([s], [], [], rng.random() * 0.05)
            return "left"
        elif kind < 0.96:
            s.sendall(damaged(rng, self.head("POST", PATHS[0], 10) + b'{"a": 1}  '))
            if rng.random() < 0.5:
                s.shutdown(socket.SHUT_WR)
            s.settimeout(2)
        else:
            s.sendall(rng.randbytes(rng.randrange(3000)))
            return "garbage"
        return self.reply(s)

    def run(self):
        while time.time() < self.end:
            begun = time.time()
            try:
                with socket.create_connection(self.address, timeout=20) as s:
                    what = self.one(s)
            except socket.timeout:
                what = "timeout"
            except OSError as e:
                what = type(e).__name__
            self.longest = max(self.longest, time.time() - begun)
            self.counts[what] = self.counts.get(what, 0) + 1
            self.sent += 1


def memory(pid):
    with open(f"/proc/{pid}/status") as f:
        return int(re.search(r"VmRSS:\s+(\d+)", f.read()).group(1)) >> 10


def plain(address, token):
    with socket.create_connection(address, timeout=60) as s:
        body = b'{"messages":[{"role":"user","content":"hello"}],"max_tokens":3}'
        s.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer " +
                  token.encode() + b"\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        return s.recv(4096).startswith(b"HTTP/1.1 200")


def run_threads(address, token, seed, n, seconds):
    threads = [Fuzzer(address, token, f"{seed}/{i}", time.time() + seconds) for i in range(n)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(seconds + 240)
    return threads


def main():
    p = argparse.ArgumentParser()
    p.add_argument("program")
    p.add_argument("--seconds", type=float, default=10)
    p.add_argument("--seed", type=int, default=int(time.time()))
    p.add_argument("--model")
    p.add_argument("--threads", type=int, default=4)
    p.add_argument("--rest", type=float, default=12)
    p.add_argument("--growth", type=int, default=GROWTH, help="MiB that the memory may grow")
    o = p.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        token_file, log = os.path.join(folder, "token"), open(os.path.join(folder, "log"), "w+b")
        server = subprocess.Popen([o.program, "serve", "--listen", "127.0.0.1:0", "--token-file", token_file,
                                   "--request-memory", "256M", "--idle", "5", "--conversations", "8"] + (["-m", o.model] if o.model else []),
                                  stdout=subprocess.PIPE, stderr=log)
        port = int(re.search(rb":(\d+)/", server.stdout.readline()).group(1))
        address, token = ("127.0.0.1", port), open(token_file).read().strip()
        run_threads(address, token, f"{o.seed}/warm", o.threads, min(o.seconds / 5, 120))
        time.sleep(o.rest)
        before = memory(server.pid) if server.poll() is None else 0
        threads = run_threads(address, token, o.seed, o.threads, o.seconds)
        time.sleep(o.rest)
        alive = server.poll() is None
        after = memory(server.pid) if alive else 0
        answers = alive and plain(address, token)
        server.terminate()
        try:
            code = server.wait(60)
        except subprocess.TimeoutExpired:
            server.kill()
            code = "killed: it did not end within 60 s"
        log.seek(0)
        said = log.read().decode("utf-8", "replace")
        bad = [line for line in said.splitlines() if re.search(r"Sanitizer|runtime error|bug at|LeakSan", line)]
        counts = {}
        for t in threads:
            for what, n in t.counts.items():
                counts[what] = counts.get(what, 0) + n
        print(f"seed {o.seed}: {sum(t.sent for t in threads)} connections in {o.seconds:.0f} s by {o.threads} threads; "
              + ", ".join(f"{what} {n}" for what, n in sorted(counts.items())))
        print(f"longest {max(t.longest for t in threads):.1f} s; memory {before} MiB before, {after} MiB after a rest of "
              f"{o.rest:.0f} s; answers {answers}; exit code {code}")
        good = answers and code == 0 and not bad and after - before <= o.growth
        if not good:
            at = said.find(bad[0]) if bad else max(0, len(said) - 2000)
            print(said[at:at + 4000])
        return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
