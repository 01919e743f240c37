#!/usr/bin/env python3
"""Writes the letters of tests/golden/locate.json from its detections: the reference for src/pocket/letters.c.

A detection is [row, column, probability, offset, class] of a cell of 4x8 pixels.  A letter near a border of cells is
detected in several, each with part of its probability.  Detections are visited in order of falling probability; each
absorbs unused neighbours that can only be the same letter, and is kept if the summed probability reaches NEED.
"""
import json
import pathlib

GOLDEN = pathlib.Path(__file__).resolve().parents[1] / "golden/locate.json"
NEED, LOW = 0.35, 0.1
NARROW = {ord(c) - 32 for c in "iljtfrI1|!.,:;'`()[]"}  # may be closer than 5 pixels to the next letter


def decode(detections):
    """Returns the letters [[x, y, class], ...] in pixels."""
    found = [(r, c, 4 * c + 4 * shift, p, kind) for r, c, p, shift, kind in detections if p > LOW]
    at, used, out = {f[:2]: k for k, f in enumerate(found)}, set(), []
    for k in sorted(range(len(found)), key=lambda k: -found[k][3]):
        if k in used:
            continue
        used.add(k)
        r, c, x, mass, kind = found[k]
        sum_x, sum_y = x * mass, (r * 8 + 4) * mass
        for a, b in ((a, b) for a in (-1, 0, 1) for b in (-1, 0, 1)):
            other = at.get((r + a, c + b))
            if other is None or other in used:
                continue
            r2, _, x2, p2, kind2 = found[other]
            gap = 3.2 if kind in NARROW or kind2 in NARROW else 4.7
            if (abs(x2 - x) < gap and (kind2 == kind or mass + p2 <= 1.1)) or (a and abs(x2 - x) < 6):
                used.add(other)
                mass, sum_x, sum_y = mass + p2, sum_x + x2 * p2, sum_y + (r2 * 8 + 4) * p2
        if mass >= NEED:
            out.append([round(sum_x / mass, 4), round(sum_y / mass, 4), kind])
    return out


if __name__ == "__main__":
    screen = json.loads(GOLDEN.read_text())
    screen["letters"] = decode(screen["claims"])
    GOLDEN.write_text(json.dumps(screen) + "\n")
