"""Measures the effect of rounding in a real model on real text: selects the text, and makes the table of results.

    python real_rounding.py --make-text TEXT [--characters N]     selects the text from this machine's packages
    ./holorun bench --section drift --model MODEL.gguf --text TEXT --json --from 0 --windows 16 >>FILE.jsonl
    python real_rounding.py --table FILE.jsonl ... [--page FILE.md]  results of all windows as tables, put into the page
    python real_rounding.py --check TEXT FILE.jsonl MODEL-f32.gguf [--windows N]     perplexity by llama.cpp

The text alternates between English documentation (README, .md, .rst and .txt below /usr/share/doc) and Python sources
of the standard library without its tests and tables of encodings: the middle 2,400 characters of each file, in the
order of the SHA-256 of the paths. It depends only on the installed packages; TEXT.list names file, offset and hash of
each piece.

Each line of FILE.jsonl holds the sums of one option over one window. Positions of one window are correlated, so the
95 % intervals come from the windows' means (Student's t). A window that occurs twice counts once.

--check needs the packages numpy and xllamacpp: llama.cpp evaluates the same windows from MODEL-f32.gguf, a copy whose
tensors are dequantized to F32 (real_greedy.py writes it), with keys and values in F32 and with its own tokenizer.
"""
import argparse
import gzip
import hashlib
import json
import math
import os
import pathlib
import sys

PIECE = 2400  # characters
DOCS, SOURCES = pathlib.Path("/usr/share/doc"), pathlib.Path("/usr/lib/python3.11")


def read(path):
    """Returns the text of a file, also of a compressed one; None: it is not UTF-8."""
    try:
        data = gzip.open(path).read(1 << 20) if path.suffix == ".gz" else path.read_bytes()[:1 << 20]
        return data.decode()
    except (OSError, EOFError, UnicodeDecodeError):
        return None


def is_documentation(path):
    """Returns whether a file below /usr/share/doc is prose."""
    name = path.name.removesuffix(".gz")
    if "changelog" in name.lower() or "changes" in name.lower() or name in ("copyright", "NEWS.Debian"):
        return False
    return name.startswith("README") or name.endswith((".md", ".rst", ".txt"))


def is_english(text):
    """Returns whether a text is mostly words in Latin letters and has common English words."""
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
    """Returns {(model, tokens in a window): {option: {window: row}}} of all complete lines."""
    rows = {}
    for name in files:
        for line in pathlib.Path(name).read_text().splitlines():
            try:
                row = json.loads(line)
            except ValueError:
                continue
            if row.get("section") == "rounding":
                key = pathlib.Path(row["model"]).name, row["tokens"]
                rows.setdefault(key, {}).setdefault(row["choice"], {})[row["window"]] = row
    return rows


def interval(values):
    """Returns the mean of the windows' values and its 95 % interval (batch means, Student's t); one value has none."""
    n = len(values)
    mean = sum(values) / n
    if n < 2:
        return mean, -math.inf, math.inf
    error = math.sqrt(sum((v - mean) ** 2 for v in values) / (n - 1) / n)
    return mean, mean - student(n - 1) * error, mean + student(n - 1) * error


def student(n):
    """Returns the 97.5 % quantile of Student's t with n degrees of freedom (its expansion in 1 / n; off by < 0.3 %)."""
    z = 1.959963985
    exact = {1: 12.7062, 2: 4.3027, 3: 3.1824}
    return exact.get(n) or (z + (z ** 3 + z) / (4 * n) + (5 * z ** 5 + 16 * z ** 3 + 3 * z) / (96 * n ** 2)
                            + (3 * z ** 7 + 19 * z ** 5 + 17 * z ** 3 - 15 * z) / (384 * n ** 3))


def shown(triple, form):
    """Returns a value with its interval as text."""
    return form % triple[0] + (f" ({form % triple[1]} to {form % triple[2]})" if math.isfinite(triple[2]) else "")


def table(files):
    """Returns a table for each model and size of window."""
    out = []
    for (model, size), options in sorted(load(files).items()):
        out.append(f"\n**{model}**, windows of {size} tokens\n")
        out.append("| option | windows | mean KL, nat | largest KL | same likeliest token, % | perplexity f32 | "
                   "perplexity | rise of perplexity, % |")
        out.append("|---|---|---|---|---|---|---|---|")
        for choice, windows in options.items():
            rows = [row for _, row in sorted(windows.items())]
            kl = interval([r["kl"] / r["rows"] for r in rows])
            same = [min(v, 100) if math.isfinite(v) else v
                    for v in interval([100 * r["same"] / r["rows"] for r in rows])]
            rise = [100 * math.expm1(v) for v in interval([(r["nll"] - r["nll_exact"]) / r["rows"] for r in rows])]
            n = sum(r["rows"] for r in rows)
            out.append(f"| {choice} | {len(rows)} | {shown(kl, '%.2g')} | {max(r['most'] for r in rows):.2g} | "
                       f"{shown(same, '%.1f')} | {math.exp(sum(r['nll_exact'] for r in rows) / n):.2f} | "
                       f"{math.exp(sum(r['nll'] for r in rows) / n):.2f} | {shown(rise, '%+.2f')} |")
    return "\n".join(out) + "\n"


def replace(page, text):
    """Puts the tables into a page, between the comments that mark them."""
    begin, end = "<!-- real_rounding.py --table -->\n", "\n<!-- end of the tables -->"
    before, rest = pathlib.Path(page).read_text().split(begin)
    pathlib.Path(page).write_text(before + begin + text + end + rest.split(end)[1])


def check(text, results, model, most):
    """Prints the log-likelihood of some windows by holorun's reference and by llama.cpp, side by side."""
    import numpy as np

    import llama_cpp
    rows = {}
    for options in load([results]).values():
        for windows in options.values():
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
    """Runs the requested command."""
    p = argparse.ArgumentParser()
    p.add_argument("--make-text", metavar="TEXT")
    p.add_argument("--characters", type=int, default=400_000)
    p.add_argument("--table", nargs="+", metavar="FILE")
    p.add_argument("--page", metavar="FILE.md")
    p.add_argument("--check", nargs=3, metavar=("TEXT", "FILE", "MODEL"))
    p.add_argument("--windows", type=int, default=4)
    a = p.parse_args()
    if a.make_text:
        make_text(a.make_text, a.characters)
    if a.table and a.page:
        replace(a.page, table(a.table))
    elif a.table:
        print(table(a.table), end="")
    if a.check:
        check(*a.check, a.windows)


if __name__ == "__main__":
    main()
