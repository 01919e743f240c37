#!/usr/bin/env python3
"""Checks the sizes of sources: lines of at most 110 columns, functions of at most 60 lines, .c files of src and actions
of at most 500.

    sizes.py [FOLDER ...]      default: src actions cuda

Prints each excess, and with --summary the 95th percentile of function lengths. A function counts from the line after
its opening brace to its closing brace in the first column, the format of clang-format.
"""
import re
import subprocess
import sys

LINE, FUNCTION, FILE = 110, 60, 500
SOURCE = re.compile(r"\.(c|h|cu|cuh)$")
NAME = re.compile(r"(\w+)\s*\(")


def functions(lines):
    """Yields (name, first line from 1, number of lines) of each function."""
    begin = name = None
    for i, line in enumerate(lines, 1):
        if line == "{" and i > 1:
            head = next((h for h in reversed(lines[max(0, i - 8):i - 1]) if h[:1].isalpha() and "(" in h), "")
            match = NAME.search(head)
            begin, name = i, match.group(1) if match else "?"
        elif line == "}" and begin:
            yield name, begin, i - begin - 1
            begin = None


def main():
    folders = [a for a in sys.argv[1:] if not a.startswith("-")] or ["src", "actions", "cuda"]
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", *folders], text=True, check=True,
                            stdout=subprocess.PIPE).stdout.split()
    lengths, bad = [], 0
    for path in filter(SOURCE.search, listed):
        try:
            with open(path, encoding="utf-8") as f:
                lines = f.read().split("\n")
        except FileNotFoundError:
            continue
        over = [f"{path}:{i}: {len(l)} columns" for i, l in enumerate(lines, 1) if len(l) > LINE]
        for name, at, length in functions(lines):
            lengths.append(length)
            if length > FUNCTION:
                over.append(f"{path}:{at}: {name} has {length} lines")
        if path.endswith(".c") and len(lines) - 1 > FILE and not path.startswith(("cuda", "tests")):
            over.append(f"{path}: {len(lines) - 1} lines")
        bad += len(over)
        if over:
            print("\n".join(over))
    if "--summary" in sys.argv and lengths:
        lengths.sort()
        print(f"{len(lengths)} functions: median {lengths[len(lengths) // 2]}, "
              f"p95 {lengths[int(len(lengths) * 0.95)]}, longest {lengths[-1]} lines")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
