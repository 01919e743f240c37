#!/usr/bin/env python3
"""Whether each edit of tests/mutants/*.txt still changes its file: nothing is compiled or run, seconds for all.

    mutants_apply.py [TABLE ...]
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]


def edits(table):
    """(title, file, sed script) of every edit; those of one mistake come one after the other."""
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
                if (title, file) != last:  # edits of one mistake add up
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
