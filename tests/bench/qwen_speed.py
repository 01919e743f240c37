"""Prints the tables of qwen_speed.sh from its measurements: qwen_speed.py DIR"""
import glob
import json
import os
import statistics
import sys


def lines(path):
    with open(path) as f:
        return [json.loads(line) for line in f if line.startswith("{")]


def steps(folder):
    for path in sorted(glob.glob(f"{folder}/step-*.jsonl")):
        runs, parts = lines(path), {}
        for run in runs:
            for row in run["rows"]:
                if row.get("section") == "step":
                    parts.setdefault(row["name"], []).append(row["median_ms"])
        loads = ", ".join(f"{run['load']:.1f}" for run in runs)
        print(f"\n**{os.path.basename(path)[5:-6]}**, {len(runs)} steps, load before each: {loads}\n\n| part | seconds, median | least |\n|---|---|---|")
        for name, ms in parts.items():
            print(f"| {name} | {statistics.median(ms) / 1e3:.2f} | {min(ms) / 1e3:.2f} |")


def peers(folder):
    units = {"prompt": "tokens/s", "picture": "s", "decode": "tokens/s", "sixteen": "tokens/s", "turn": "s"}
    for path in sorted(glob.glob(f"{folder}/peer-*.jsonl")):
        rounds = lines(path)
        loads = ", ".join(f"{r['load']:.1f}" for r in rounds)
        print(f"\n**{os.path.basename(path)[5:-6]}**, {len(rounds)} rounds A B A B, load before each: {loads}\n\n"
              "| | holorun | llama.cpp | times as fast, median | least | most |\n|---|---|---|---|---|---|")
        for row, unit in units.items():
            ours, theirs = ([r[n][row] for r in rounds] for n in ("holorun", "llama.cpp"))
            ratios = [b / a if unit == "s" else a / b for a, b in zip(ours, theirs)]
            print(f"| {row}, {unit} | {statistics.median(ours):.2f} | {statistics.median(theirs):.2f} | "
                  f"{statistics.median(ratios):.2f} | {min(ratios):.2f} | {max(ratios):.2f} |")


def main(folder):
    print("""# Speed of the Qwen3.5 family on a CPU

Written by `tests/bench/qwen_speed.sh`, November 2026, on a virtual machine with two cores (AMD EPYC, Zen 4, AVX-512 with BF16), no GPU, Debian 12.
Weights are random, in the published shapes. Each measurement has the load before it, including the measurement before. The values in a row were measured
in turn.

## Steps

`qwen_speed.sh step`: one step of the agent without the display (a new screen of 1920x1080, a reply of at most 32 tokens). `full` is a canvas of 1920x1088
(2,040 tokens), `720` one of 720 tokens or fewer, `int8` with `--activations int8`; the 4B has its weights in int4.""")
    steps(folder)
    print("""
## Comparison with llama.cpp

`qwen_speed.sh peer`: one GGUF file in the shape of the 0.8B with its tower, both as chat servers, two threads each (`tests/bench/bench_gguf.py` describes
the rows). In `Q8_0-int8` holorun has `--activations int8`; llama.cpp rounds activations in Q8_0 as well, in groups of 32.
Decoding one token reads all weights, 0.8 GB in Q8_0; two threads that only read memory reach 34 to 36 GB/s here, which is 42 to 45 tokens/s.
`decode` is the difference between a request for 97 tokens and one for a single token after the same prompt; noise changes this row the most.
`sixteen` includes the prompts.""")
    peers(folder)
    print("""
The cost of rounding is measured on trained weights: [real-weights.md](real-weights.md).""")


main(sys.argv[1])
