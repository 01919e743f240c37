#!/usr/bin/env python3
"""Checks whether each edit of tests/mutants/*.txt still changes its file. Compiles and runs nothing, so it takes
seconds.

    mutants_apply.py [TABLE ...]
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]


def edits(table):
    """Yields (title, file, sed script) of every edit; the edits of one mistake are adjacent."""
    title = file = ""
    for line in table.read_text().splitlines():
        kind, _, rest = line.partition(" ")
        if kind == "mistake":
            title = rest
        elif kind == "file":
            file = rest
        elif kind == "sed":
            yield title, file, rest


def main():
    names = sys.argv[1:] or [p.stem for p in sorted((ROOT / "tests/mutants").glob("*.txt"))]
    failed = count = 0
    with tempfile.TemporaryDirectory() as room:
        for name in names:
            last, copy = None, pathlib.Path(room) / "copy"
            for title, file, script in edits(ROOT / f"tests/mutants/{name}.txt"):
                if (title, file) != last:  # edits of one mistake accumulate
                    shutil.copy(ROOT / file, copy)
                last = title, file
                before = copy.read_bytes()
                done = subprocess.run(["sed", "-i", script, copy], capture_output=True, text=True)
                count += 1
                if done.returncode or copy.read_bytes() == before:
                    failed += 1
                    print(f"{name}.txt: {title}: {done.stderr.strip() or 'changes nothing in ' + file}: {script}")
    print(f"{count - failed} edits apply, {failed} do not")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
