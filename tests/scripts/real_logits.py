"""Compares the logits of a real text model in holorun with llama.cpp's, for each backend and storage type of the KV
cache.

    python real_logits.py MODEL.gguf [POSITIONS] [--greedy FILE.json] [--helper PROGRAM] [--threads N] [--only NAME ...]

The text is replies of real_greedy.py (its --json file): each row of logits follows the same tokens on both sides.
References: llama.cpp on the F32 copy of the file (exact), and on the file itself with its own kernels, which round
activations to 8 bits. Rows of the table: holorun in f32 and in its default bf16, with the scalar reference and AVX2,
KV cache auto and fp8. Columns: share of equal best ids, mean and largest difference of logits, mean and largest
Kullback-Leibler divergence from the reference. Needs numpy, gguf and xllamacpp from PyPI.
"""
import argparse
import json
import os
import subprocess
import sys
import time

try:
    import numpy as np
    import llama_cpp
    import xllamacpp  # noqa: F401
    from real_greedy import f32_copy
except ImportError as lacking:
    sys.exit(print(f"SKIP: {lacking}; pip install numpy gguf xllamacpp") or 0)

WAYS = {"f32, AVX2": ["f32", "isa=avx2"], "f32, AVX2, kv fp8": ["f32", "isa=avx2", "kv=fp8"], "bf16, AVX2": ["isa=avx2"],
        "int8 activations, AVX2": ["isa=avx2", "activations=int8"],
        "bf16, AVX2, kv fp8": ["isa=avx2", "kv=fp8"], "f32, scalar": ["f32", "isa=ref"], "bf16, scalar": ["isa=ref"],
        "bf16, scalar, kv fp8": ["isa=ref", "kv=fp8"]}


def of_llama(path, sequences, threads):
    """Returns rows of logits in the order of the helper: by step, then by sequence."""
    model = llama_cpp.Model(path, len(sequences), 512, threads)
    each = [model.decode([(t, k, i, k >= len(prompt) - 1) for k, t in enumerate(prompt + reply[:-1])])
            for i, (prompt, reply) in enumerate(sequences)]
    model.close()
    return np.array([each[i][k] for k in range(max(map(len, each))) for i in range(len(each)) if k < len(each[i])], np.float32)


def of_holorun(helper, path, sequences, how, vocab):
    data = b"".join(np.array([len(p) + len(r), len(p)] + p + r, "<i4").tobytes() for p, r in sequences)
    out = subprocess.run([helper, path, "rows", *how], input=data, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout
    return np.frombuffer(out, "<f4").reshape(-1, vocab)


def compare(name, have, want):
    kl = []
    for h, w in zip(have.astype(np.float64), want.astype(np.float64)):
        p, q = w - w.max(), h - h.max()
        p, q = p - np.log(np.exp(p).sum()), q - np.log(np.exp(q).sum())
        kl.append(float((np.exp(p) * (p - q)).sum()))
    off = np.abs(have - want)
    same = (have.argmax(1) == want.argmax(1)).mean()
    print(f"| {name} | {100 * same:.1f} % | {off.mean():.2e} | {off.max():.2e} | {np.mean(kl):.1e} | {max(kl):.1e} |", flush=True)


def main():
    a = argparse.ArgumentParser()
    a.add_argument("model")
    a.add_argument("positions", type=int, nargs="?", default=300)
    a.add_argument("--greedy", required=True)
    a.add_argument("--helper", default="build/release/helpers/forced_logits")
    a.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    a.add_argument("--folder")
    a.add_argument("--only", nargs="*")
    o = a.parse_args()
    with open(o.greedy, encoding="utf-8") as f:
        said = json.load(f)
    sequences, left = [], o.positions
    for prompt, reply in zip(said["prompts"], said["replies"]):
        if left > 0:
            sequences.append((prompt, reply[:left]))
            left -= len(reply)
    began = time.monotonic()
    exact = of_llama(f32_copy(o.model, o.folder or os.path.dirname(os.path.abspath(o.model))), sequences, o.threads)
    own = of_llama(o.model, sequences, o.threads)
    print(f"{os.path.basename(o.model)}: {len(exact)} positions of {len(sequences)} replies, reference llama.cpp in F32\n")
    print("| | best id equal | mean difference | largest | KL mean | KL largest |\n|---|---|---|---|---|---|")
    compare("llama.cpp on the file itself", own, exact)
    for name, how in WAYS.items():
        if not o.only or name in o.only:
            rows = of_holorun(o.helper, o.model, sequences, [*how, f"threads={o.threads}"], exact.shape[1])
            compare(f"holorun: {name}", rows, exact)
            compare(f"holorun: {name}, beside llama.cpp on the file", rows, own)
    print(f"\n{time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
