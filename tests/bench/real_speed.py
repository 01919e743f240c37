#!/usr/bin/env python3
"""Compares holorun with llama.cpp on a published text model and real text, in turn: A B A B ...

    real_speed.py MODEL.gguf [--program ./holorun] [--rounds N] [--threads N] [--activations int8] [--log FILE]

Needs numpy, gguf and xllamacpp from PyPI; without them it prints SKIP.  Both programs serve the same file and get the
same requests at temperature 0:

    prompt     tokens/s of a prompt of about 1,000 tokens of source code
    decode     tokens/s after the prompt, one session, 96 tokens
    sixteen    tokens/s of 16 sessions together, 32 tokens each, different questions
    copy       tokens/s of a reply that repeats most of its prompt, so that n-gram speculation succeeds

A row has the medians of the rounds, and the median, minimum and maximum ratio of neighbouring measurements; JSON lines follow.
--log stores each round; the rows include earlier calls, so rounds can be run one at a time.  Use a quiet machine.
"""
import argparse
import inspect
import json
import os
import statistics
import sys
import textwrap
import threading
import time

import bench_gguf
from bench_gguf import Ours, Theirs

ROWS = ("prompt", "decode", "sixteen", "copy")
QUESTIONS = ["What is a mutex?", "Why does bread rise?", "Name three rivers of France.", "What does the command sed do?",
             "How are rainbows made?", "What is a hash table?", "Who wrote Faust?", "How do I boil an egg?"]


def source(seed, characters):
    """Returns source code of the standard library, at an offset that depends on the seed."""
    text = inspect.getsource([argparse, json.decoder, statistics, textwrap, threading, inspect][seed % 6])
    at = seed * 1009 % max(1, len(text) - characters)
    return text[at:at + characters]


def user(text):
    return [{"role": "user", "content": text}]


def chat(server, text, tokens):
    start = time.monotonic()
    got = server.chat(user(text), tokens)
    return time.monotonic() - start, got["usage"], got["choices"][0]["message"]["content"]


def measure(server, seed):
    out = {}
    seconds, usage, _ = chat(server, f"Part {seed}:\n{source(seed, 3600)}\nWhat does this code do?", 1)
    out["prompt"] = usage["prompt_tokens"] / seconds
    long = f"Part {seed + 1}:\n{source(seed + 1, 3600)}\nExplain this code in detail."
    before = chat(server, long, 1)[0]  # the second request finds its prompt in the cache
    first = chat(server, long, 1)[0]
    seconds, usage, _ = chat(server, long, 97)
    out["decode"] = (usage["completion_tokens"] - 1) / max(seconds - min(first, before), 1e-9)
    done = []
    threads = [threading.Thread(target=lambda k=k: done.append(chat(server, f"{QUESTIONS[k % 8]} ({seed + k})", 32)[1]))
               for k in range(16)]
    start = time.monotonic()
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    out["sixteen"] = sum(u["completion_tokens"] for u in done) / (time.monotonic() - start)
    copy = f"Repeat this code exactly, and nothing else:\n```python\n{textwrap.dedent(source(seed + 2, 900))}\n```"
    first = min(chat(server, copy, 1)[0] for _ in range(2))
    seconds, usage, _ = chat(server, copy, 200)
    out["copy"] = (usage["completion_tokens"] - 1) / max(seconds - first, 1e-9)
    return out


def main():
    a = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    a.add_argument("model")
    a.add_argument("--program", default="./holorun")
    a.add_argument("--rounds", type=int, default=3)
    a.add_argument("--threads", type=int, default=2)
    a.add_argument("--activations", default="auto", help="of holorun alone")
    a.add_argument("--weights", default="auto", help="of holorun alone")
    a.add_argument("--log", help="file of rounds, one JSON object a line")
    o = a.parse_args()
    rounds = []
    if o.log and os.path.exists(o.log):
        with open(o.log) as f:
            rounds = [json.loads(line) for line in f]
    bench_gguf.SESSIONS = 16
    more = ["--activations", o.activations, "--weights", o.weights]
    for k in range(len(rounds), len(rounds) + o.rounds):
        one = {"load": os.getloadavg()[0]}
        for name, make in (("holorun", lambda: Ours(o.program, o.model, o.threads, more)),
                           ("llama.cpp", lambda: Theirs(o.model, o.threads))):
            server = make()
            chat(server, "Hello", 4)
            one[name] = measure(server, 10 * k)
            server.close()
            print(f"round {k + 1}, {name}:", {r: round(v, 1) for r, v in one[name].items()}, file=sys.stderr, flush=True)
        rounds.append(one)
        if o.log:
            with open(o.log, "a") as f:
                f.write(json.dumps(one) + "\n")
    for row in ROWS:
        ours, theirs = ([x[n][row] for x in rounds] for n in ("holorun", "llama.cpp"))
        ratios = [x / y for x, y in zip(ours, theirs)]
        print(json.dumps({"row": row, "model": os.path.basename(o.model), "threads": o.threads, "activations": o.activations,
                          "weights": o.weights, "rounds": len(rounds), "holorun": round(statistics.median(ours), 1),
                          "llama.cpp": round(statistics.median(theirs), 1), "times": round(statistics.median(ratios), 2),
                          "least": round(min(ratios), 2), "most": round(max(ratios), 2)}))


if __name__ == "__main__":
    main()
