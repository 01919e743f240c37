#!/usr/bin/env python3
"""Kills clients of `holorun serve` at random moments, and checks for leaks in the server.

    serve_soak.py [SECONDS] [CLIENTS] [PROGRAM]      default: 3600 16 ./holorun

Each client is a process that sends requests in sequence, streamed or not, with images, and is killed (SIGKILL)
between 0 and 2 s after its start; another replaces it. Prints the server's descriptors, threads and resident memory
ten times. After the first tenth they may grow only by the cached conversations: exit code 1 if they grow more, if a
request is still running at the end, or if the server does not exit with 0 on SIGTERM.
"""
import http.client
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

from urllib.parse import urlparse

PICTURE = ("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC")


def request(rng):
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + PICTURE}}
    content = [picture] * rng.randint(0, 2) + [{"type": "text", "text": f"Look {rng.randint(0, 40)}"}]
    return {"messages": [{"role": "user", "content": content}], "max_tokens": rng.choice([3, 50, 400]),
            "stream": rng.random() < 0.5, "temperature": rng.choice([0, 1])}


def client(base, token, seed):
    """Runs in a client's process: sends requests until it is killed."""
    rng, url = random.Random(seed), urlparse(base)
    while True:
        try:
            c = http.client.HTTPConnection(url.hostname, url.port, timeout=30)
            c.request("POST", "/v1/chat/completions", json.dumps(request(rng)), {"Authorization": f"Bearer {token}"})
            reply = c.getresponse()
            while reply.read(rng.choice([1, 100, 10000])):
                pass
            c.close()
        except OSError:
            pass


def metric(base, token, name):
    ask = urllib.request.Request(base.replace("/v1", "/metrics"), headers={"Authorization": f"Bearer {token}"})
    for line in urllib.request.urlopen(ask, timeout=30).read().decode().splitlines():
        if line.startswith(f"holorun_{name} "):
            return float(line.split()[1])
    raise KeyError(name)


def state_of(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as f:
        fields = dict(line.split(":", 1) for line in f)
    return (len(os.listdir(f"/proc/{pid}/fd")), int(fields["Threads"]), int(fields["VmRSS"].split()[0]) // 1024)


def spawn(base, token):
    pid = os.fork()
    if pid == 0:
        try:
            client(base, token, os.urandom(8))
        finally:
            os._exit(0)
    return pid, time.monotonic() + random.uniform(0, 2)


def torment(base, token, clients, until):
    """Keeps this many clients running; returns how many were killed."""
    alive, killed = [spawn(base, token) for _ in range(clients)], 0
    while time.monotonic() < until:
        time.sleep(0.02)
        for i, (pid, end) in enumerate(alive):
            if time.monotonic() >= end:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                alive[i] = spawn(base, token)
                killed += 1
    for pid, _ in alive:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    return killed + clients


def settle(base, token):
    for _ in range(500):
        if metric(base, token, "requests_running") == 0:
            return
        time.sleep(0.02)
    raise SystemExit("requests are still running 10 s after their clients are gone")


def tell(part, killed, state, base, token):
    print(f"{part:2}: {killed} clients killed; {state[0]} descriptors, {state[1]} threads, "
          f"{state[2]} MiB, {metric(base, token, 'heap_bytes') / 2**20:.0f} of it allocated, "
          f"{metric(base, token, 'state_bytes') / 2**20:.0f} for states; {metric(base, token, 'cancelled_total'):.0f} requests cancelled, "
          f"{metric(base, token, 'conversations_idle'):.0f} conversations kept", flush=True)


def soak(server, base, token, seconds, clients):
    seen, all_killed = [], 0
    tell(0, 0, state_of(server.pid), base, token)
    for part in range(10):
        killed = torment(base, token, clients, time.monotonic() + seconds / 10)
        all_killed += killed
        settle(base, token)
        time.sleep(0.2)
        seen.append(state_of(server.pid))
        tell(part + 1, killed, seen[-1], base, token)
    print(f"{all_killed} clients killed in {seconds:.0f} s", flush=True)
    if seen[-1][0] > seen[0][0] + 4 or seen[-1][1] > seen[0][1] + 2 or seen[-1][2] > seen[0][2] * 1.5 + 64:
        raise SystemExit(f"the server grew from {seen[0]} to {seen[-1]}")


def main():
    seconds, clients = float((sys.argv[1:] + [3600])[0]), int((sys.argv[2:] + [16])[0])
    program = (sys.argv[3:] + ["./holorun"])[0]
    with tempfile.TemporaryDirectory() as place:
        file = os.path.join(place, "token")
        server = subprocess.Popen([program, "serve", "--listen", "127.0.0.1:0", "--token-file", file],
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            base = server.stdout.readline().strip()
            with open(file, encoding="utf-8") as f:
                soak(server, base, f.read().strip(), seconds, clients)
        finally:
            server.terminate()
        if server.wait(60):
            raise SystemExit(f"the server ended with {server.returncode}")
    print("nothing leaked")


if __name__ == "__main__":
    main()
