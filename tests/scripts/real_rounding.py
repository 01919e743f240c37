"""What rounding costs a real model on real text: selects the text, and makes the table of results.

    python real_rounding.py --make-text TEXT [--characters N]     selects the text from this machine's packages
    ./holorun bench --section drift --model MODEL.gguf --text TEXT --json --from 0 --windows 16 >>FILE.jsonl
    python real_rounding.py --table FILE.jsonl ...                results of all windows as a table
    python real_rounding.py --check TEXT FILE.jsonl MODEL-f32.gguf [--windows N]     perplexity by llama.cpp

The text alternates between English documentation (README, .md, .rst and .txt below /usr/share/doc) and Python sources of
the standard library without its tests and tables of encodings: of each file a piece of 2,400 characters from its middle, files in the order of the SHA-256 of
their path.  It depends on the installed packages only; beside TEXT, TEXT.list names file, offset and hash of each
piece.

Each line of FILE.jsonl holds the sums of one option over one window.  Windows are the unit of the bootstrap, since
positions of one window are correlated: 10,000 resamples of windows, percentiles 2.5 and 97.5.  Windows that occur twice
count once.

--check needs the packages numpy and xllamacpp: llama.cpp evaluates the same windows from MODEL-f32.gguf, a copy
whose tensors are dequantized to F32 (real_greedy.py writes it), with keys and values in F32; the ids come from its own
tokenizer.
"""
import argparse
import gzip
import hashlib
import json
import math
import os
import pathlib
import random
import sys

PIECE = 2400  # characters
RESAMPLES = 10_000
DOCS, SOURCES = pathlib.Path("/usr/share/doc"), pathlib.Path("/usr/lib/python3.11")


def read(path):
    """Returns the text of a file, also of a compressed one; None: it is no UTF-8."""
    try:
        data = gzip.open(path).read(1 << 20) if path.suffix == ".gz" else path.read_bytes()[:1 << 20]
        return data.decode()
    except (OSError, EOFError, UnicodeDecodeError):
        return None


def is_documentation(path):
    """Returns whether a file below /usr/share/doc is prose for people."""
    name = path.name.removesuffix(".gz")
    if "changelog" in name.lower() or "changes" in name.lower() or name in ("copyright", "NEWS.Debian"):
        return False
    return name.startswith("README") or name.endswith((".md", ".rst", ".txt"))


def is_english(text):
    """Returns whether most of a text is words in Latin letters, with some words that English needs."""
    letters = sum(c.isascii() and (c.isalpha() or c == " ") for c in text)
    words = text.lower().split()
    return letters > 0.75 * len(text) and sum(w in ("the", "a", "of", "to", "is") for w in words) > len(words) / 25


def pieces(files, fits):
    """Yields (path, offset, text) of the middle of each suitable file, in the order of the hash of its path."""
    seen = set()
    for path in sorted(files, key=lambda p: hashlib.sha256(str(p).encode()).digest()):
        text = read(path)
        if not text or len(text) < 2 * PIECE:
            continue
        start = text.find("\n", (len(text) - PIECE) // 2) + 1
        piece = text[start:start + PIECE]
        if piece not in seen and fits(piece):
            seen.add(piece)
            yield path, start, piece


def make_text(out, characters):
    """Writes the text and the list of its pieces."""
    docs = [p for p in DOCS.rglob("*") if p.is_file() and not p.is_symlink() and is_documentation(p)]
    sources = [p for p in SOURCES.rglob("*.py") if p.is_file() and not {"test", "encodings"} & set(p.parts)]
    prose, code = pieces(docs, is_english), pieces(sources, lambda text: True)
    parts, rows = [], []
    while sum(map(len, parts)) < characters:
        found = [next(prose, None), next(code, None)]
        if None in found:
            sys.exit("the packages of this machine have too little text")
        for path, start, text in found:
            parts.append(text.rstrip() + "\n\n")
            rows.append(f"{path} {start} {hashlib.sha256(text.encode()).hexdigest()}\n")
    text = "".join(parts)
    pathlib.Path(out).write_text(text)
    pathlib.Path(out + ".list").write_text("".join(rows))
    print(f"{len(rows)} pieces, {len(text)} characters, sha256 {hashlib.sha256(text.encode()).hexdigest()}")


def load(files):
    """Returns {(model, option): {window: row}} of all lines; incomplete last lines are left out."""
    rows = {}
    for name in files:
        for line in pathlib.Path(name).read_text().splitlines():
            try:
                row = json.loads(line)
            except ValueError:
                continue
            if row.get("section") == "rounding":
                rows.setdefault((row["model"], row["choice"]), {})[row["window"]] = row
    return rows


def interval(values, of):
    """Returns of(sums) and its bootstrap interval; values: a tuple of sums for each window."""
    rng = random.Random(1)
    n = len(values)
    whole = of([sum(c) for c in zip(*values)])
    found = sorted(of([sum(c) for c in zip(*rng.choices(values, k=n))]) for _ in range(RESAMPLES))
    return whole, found[RESAMPLES // 40], found[RESAMPLES - RESAMPLES // 40 - 1]


def shown(triple, form):
    """Returns a value with its interval as text."""
    return f"{form % triple[0]} ({form % triple[1]} to {form % triple[2]})"


def table(files):
    """Prints a table for each model."""
    rows = load(files)
    for model in sorted({m for m, _ in rows}):
        print(f"\n{pathlib.Path(model).name}\n")
        print("| option | tokens | mean KL, nat | largest KL | same likeliest token, % | perplexity f32 | perplexity | "
              "rise of perplexity, % |")
        print("|---|---|---|---|---|---|---|---|")
        for (of, choice), windows in rows.items():
            if of != model:
                continue
            data = [(r["rows"], r["kl"], r["same"], r["nll"], r["nll_exact"]) for _, r in sorted(windows.items())]
            n = sum(d[0] for d in data)
            kl = interval(data, lambda s: s[1] / s[0])
            same = interval(data, lambda s: 100 * s[2] / s[0])
            rise = interval(data, lambda s: 100 * math.expm1((s[3] - s[4]) / s[0]))
            print(f"| {choice} | {n:,} | {shown(kl, '%.2e')} | {max(r['most'] for r in windows.values()):.2g} | "
                  f"{shown(same, '%.2f')} | {math.exp(sum(d[4] for d in data) / n):.3f} | "
                  f"{math.exp(sum(d[3] for d in data) / n):.3f} | {shown(rise, '%+.2f')} |")


def check(text, results, model, most):
    """Prints the log-likelihood of some windows by holorun's reference and by llama.cpp, side by side."""
    import numpy as np

    import llama_cpp
    rows = {}
    for windows in load([results]).values():
        for window, row in windows.items():
            rows.setdefault(window, row)
    ids = None
    worst = 0
    print("| window | nat per token, holorun | llama.cpp | difference |\n|---|---|---|---|")
    for window in sorted(rows)[:most]:
        size = rows[window]["tokens"]
        other = llama_cpp.Model(model, 1, size, len(os.sched_getaffinity(0)))
        ids = ids or other.ids(pathlib.Path(text).read_text())
        now = ids[window * size:(window + 1) * size]
        logits = other.decode([(token, i, 0, True) for i, token in enumerate(now)])
        other.close()
        theirs = 0.0
        for row, target in zip(logits, now[1:]):
            top = float(row.max())
            theirs += top + math.log(np.exp(row.astype(np.float64) - top).sum()) - float(row[target])
        theirs /= size - 1
        ours = rows[window]["nll_exact"] / rows[window]["rows"]
        worst = max(worst, abs(ours - theirs))
        print(f"| {window} | {ours:.6f} | {theirs:.6f} | {ours - theirs:+.1e} |", flush=True)
    if worst > 1e-3:
        sys.exit(f"{worst:.1e} nat per token apart")


def main():
    """Runs what the arguments ask for."""
    p = argparse.ArgumentParser()
    p.add_argument("--make-text", metavar="TEXT")
    p.add_argument("--characters", type=int, default=400_000)
    p.add_argument("--table", nargs="+", metavar="FILE")
    p.add_argument("--check", nargs=3, metavar=("TEXT", "FILE", "MODEL"))
    p.add_argument("--windows", type=int, default=4)
    a = p.parse_args()
    if a.make_text:
        make_text(a.make_text, a.characters)
    if a.table:
        table(a.table)
    if a.check:
        check(*a.check, a.windows)


if __name__ == "__main__":
    main()
