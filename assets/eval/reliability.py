#!/usr/bin/env python3
"""Compares a model's confidence with its accuracy.

    holorun eval SET.jsonl --results R.jsonl && assets/eval/reliability.py R.jsonl [MORE.jsonl...] [--bins 10]

Confidence is `p` of the results, the joint probability of the reply's sampled tokens. A row is an interval of
confidence: number of answers, their mean confidence, and the fraction of correct ones with its 95 % interval
(Wilson). Then follow the expected calibration error (the mean distance of the two, weighted by answers) and, per
threshold, the number of answers above it and the number of correct ones.
"""
import argparse
import json
import math
import sys

THRESHOLDS = (0.5, 0.8, 0.9, 0.95, 0.99)


def wilson(hits, n, z=1.959963984540054):
    p, d = hits / n, 1 + z * z / n
    centre, half = (p + z * z / n / 2) / d, z / d * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return (centre - half if hits else 0.0), (centre + half if hits < n else 1.0)


def answers(paths):
    """Returns [(confidence, right)] of the results files, and the number of results without a confidence."""
    out, without = [], 0
    for path in paths:
        with open(path) as f:
            for number, line in enumerate(f, 1):
                try:
                    r = json.loads(line)
                except ValueError:
                    sys.exit(f"reliability.py: {path}: line {number} is not JSON")
                if "correct" not in r:
                    continue  # the first line, and images that could not be shown
                if r.get("p") is None:
                    without += 1
                else:
                    out.append((r["p"], r["correct"]))
    return out, without


def table(found, bins):
    rows = [[] for _ in range(bins)]
    for p, right in found:
        rows[min(bins - 1, int(p * bins))].append((p, right))
    print("| confidence | answers | mean | right | 95 % |\n|---|---|---|---|---|")
    error = 0.0
    for k, row in enumerate(rows):
        if row:
            n, mean, hits = len(row), sum(p for p, _ in row) / len(row), sum(r for _, r in row)
            low, high = wilson(hits, n)
            error += abs(mean - hits / n) * n / len(found)
            print(f"| {k / bins:.2f}-{(k + 1) / bins:.2f} | {n} | {mean:.3f} | {hits / n:.3f} | {low:.2f} - {high:.2f} |")
    print(f"\nexpected calibration error {error:.3f}\n\n| at least | answers | right |\n|---|---|---|")
    for t in THRESHOLDS:
        kept = [right for p, right in found if p >= t]
        share = f"{sum(kept) / len(kept):.3f}" if kept else "-"
        print(f"| {t} | {len(kept)} of {len(found)} | {share} |")


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("results", nargs="+")
    p.add_argument("--bins", type=int, default=10)
    a = p.parse_args()
    found, without = answers(a.results)
    if without:
        print(f"reliability.py: {without} answers have no confidence", file=sys.stderr)
    if not found:
        sys.exit("reliability.py: no answer with a confidence; results of 'holorun eval' are wanted")
    table(found, max(1, a.bins))


if __name__ == "__main__":
    main()
