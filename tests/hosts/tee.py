#!/usr/bin/env python3
"""Runs a program that communicates on stdin and stdout, and records both directions.

    tee.py TRANSCRIPT PROGRAM [ARGUMENT ...]

A line of the transcript is {"from": "client" | "server", "line": ...}, without images, and with only the names of
tools. tests/serve/t_hosts.c replays the client's lines and compares.
"""
import json
import subprocess
import sys
import threading


def shorten(value):
    if isinstance(value, dict):
        if "tools" in value and isinstance(value["tools"], list):
            return {**value, "tools": [t["name"] for t in value["tools"]]}
        return {k: "..." if k in ("data", "instructions") and len(v) > 200 else shorten(v) for k, v in value.items()}
    return [shorten(v) for v in value] if isinstance(value, list) else value


def main():
    out = open(sys.argv[1], "w", encoding="utf-8")
    lock = threading.Lock()
    child = subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def carry(name, source, target):
        for line in iter(source.readline, b""):
            try:
                kept = shorten(json.loads(line))
            except ValueError:
                kept = line.decode("utf-8", "replace")
            with lock:
                out.write(json.dumps({"from": name, "line": kept}) + "\n")
                out.flush()
            try:
                target.write(line)
                target.flush()
            except BrokenPipeError:
                return
        target.close()

    back = threading.Thread(target=carry, args=("server", child.stdout, sys.stdout.buffer), daemon=True)
    back.start()
    carry("client", sys.stdin.buffer, child.stdin)
    code = child.wait()
    back.join(2)
    sys.exit(code)


if __name__ == "__main__":
    main()
