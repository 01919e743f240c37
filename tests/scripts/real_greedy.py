"""Compares greedy replies of a real text model in holorun and in llama.cpp, both with f32 weights, activations, keys and
values.

    python real_greedy.py MODEL.gguf [N] [--helper PROGRAM] [--tokens N] [--threads N] [--folder DIR] [--isa NAME] [--json FILE]

llama.cpp (package xllamacpp) reads a copy of MODEL.gguf whose tensors are dequantized to F32 (package gguf), written
once into the folder, and replies greedily to N prompts. The helper build/release/helpers/forced_logits reads
MODEL.gguf itself with f32 activations, decodes the same replies, and reports the two best ids before each token. A
reply is equal if each of its tokens is also holorun's best one. For other replies a row shows the first difference
and the distance of the two logits in each program: only a near tie can be rounding. Exit code 1: a first difference
has a larger distance.
"""
import argparse
import json
import os
import subprocess
import sys
import time

try:
    import gguf
    import numpy as np
    import llama_cpp
    import xllamacpp  # noqa: F401
except ImportError as lacking:
    sys.exit(print(f"SKIP: {lacking}; pip install numpy gguf xllamacpp") or 0)

TIE = 2e-3  # the order of f32 sums can exchange logits nearer than this
BEST = np.dtype([("id", "<i4", 2), ("logit", "<f4", 2), ("fed", "<f4")])
PROMPTS = [
    "Write a Python function that reverses a string.",
    "Write a C function that returns the length of a linked list.",
    "Explain the difference between a process and a thread.",
    "Write a bash script that counts the lines of all .c files in a folder.",
    "What does the SQL keyword GROUP BY do? Give an example.",
    "Write a regular expression that matches an IPv4 address.",
    "Translate to French: The weather is nice today and we are going to the park.",
    "Translate to German: Where is the nearest railway station?",
    "Summarize in one sentence: Rust is a language that prevents memory errors at compile time by tracking ownership.",
    "List five prime numbers greater than 100.",
    "What is 17 * 23? Explain each step.",
    "Write a haiku about the sea.",
    "Write JSON with the keys name, age and city for three invented people.",
    "Fix the bug: def add(a, b): return a - b",
    "Write a JavaScript function that debounces another function.",
    "Explain recursion to a child.",
    "Write a unit test in pytest for a function is_even(n).",
    "What is the capital of Australia, and why is it not Sydney?",
    "Write an HTML page with a heading, a paragraph and a button.",
    "Convert this to CSV: Alice is 30 and lives in Paris. Bob is 25 and lives in Rome.",
    "Write a Makefile for a C program with two source files.",
    "Explain what git rebase does.",
    "Write a Go program that prints the Fibonacci numbers up to 100.",
    "How do I center a div with CSS?",
    "Write a Java class for a stack of integers.",
    "What is the time complexity of quicksort in the worst case, and when does it occur?",
    "用中文解释什么是哈希表。",
    "Напиши функцию на Python, которая проверяет, является ли строка палиндромом.",
    "日本語で自己紹介を書いてください。",
    "Escribe un poema corto sobre la luna.",
    "Write a Rust function that reads a file and returns its lines.",
    "What is a deadlock? Name the four conditions.",
    "Write a Dockerfile for a Python web server.",
    "Explain the HTTP status codes 301, 404 and 500.",
    "Write a Python decorator that measures the time of a function.",
    "Give three synonyms for happy, then three antonyms.",
    "Write a SQL query for the second highest salary in the table employees.",
    "What is wrong here: for (int i = 0; i <= n; i++) sum += a[i];",
    "Write a short email that declines a meeting.",
    "Explain big-endian and little-endian.",
    "Write a TypeScript interface for a user with optional phone number.",
    "How does a binary search work? Show it in pseudocode.",
    "Write a Python generator of permutations without itertools.",
    "Which planet has the most moons?",
    "Continue the list: apple, banana, cherry,",
    "Write a limerick about a programmer.",
    "Explain what a closure is in JavaScript with an example.",
    "Write a C program that prints its own arguments in reverse order.",
    "What happens when you type a URL into a browser?",
    "Count from 1 to 40 in steps of 3.",
]


def f32_copy(path, folder):
    """Returns the path of the model's copy in F32; writes it if it does not exist."""
    copy = os.path.join(folder, os.path.basename(path).removesuffix(".gguf") + "-f32.gguf")
    if os.path.exists(copy):
        return copy
    r = gguf.GGUFReader(path)
    w = gguf.GGUFWriter(copy + ".part", r.get_field("general.architecture").contents())
    for key, field in r.fields.items():
        if key.startswith("GGUF.") or key in ("general.architecture", "general.file_type"):
            continue
        kind = field.types[0]
        part = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
        w.add_key_value(key, field.contents(), kind, part)
    w.add_file_type(gguf.LlamaFileType.ALL_F32)
    for t in r.tensors:
        w.add_tensor_info(t.name, [int(n) for n in reversed(t.shape)], np.dtype("float32"), int(t.n_elements) * 4)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_ti_data_to_file()
    for t in r.tensors:
        w.write_tensor_data(gguf.dequantize(t.data, t.tensor_type).astype(np.float32))
    w.close()
    os.rename(copy + ".part", copy)
    return copy


def chat(text):
    return f"<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>user\n{text}<|im_end|>\n<|im_start|>assistant\n"


def reply_all(model, prompts, most):
    """Returns greedy replies to all prompts, decoded in parallel, each with its end token."""
    replies = [[] for _ in prompts]
    tops = []
    for i, ids in enumerate(prompts):
        tops += model.decode([(t, k, i, k == len(ids) - 1) for k, t in enumerate(ids)])
    live = list(range(len(prompts)))
    while live:
        for i, row in zip(live, tops):
            best = np.argpartition(row, -2)[-2:]
            gap = float(abs(row[best[0]] - row[best[1]]))
            replies[i].append((int(row.argmax()), gap))
        live = [i for i in live if len(replies[i]) < most and not model.ends(replies[i][-1][0])]
        tops = model.decode([(replies[i][-1][0], len(prompts[i]) + len(replies[i]) - 1, i, True) for i in live]) if live else []
    return replies


def force(helper, path, prompts, replies, *how):
    """Returns the helper's records, one list per reply with one record per token."""
    data = b""
    for ids, reply in zip(prompts, replies):
        line = ids + [t for t, _ in reply]
        data += np.array([len(line), len(ids)] + line, dtype="<i4").tobytes()
    out = np.frombuffer(subprocess.run([helper, path, *how], input=data, stdout=subprocess.PIPE, check=True).stdout, BEST)
    said, at = [[] for _ in replies], 0
    for k in range(max(map(len, replies))):
        for i, reply in enumerate(replies):
            if k < len(reply):
                said[i].append(out[at])
                at += 1
    return said


def main():
    a = argparse.ArgumentParser()
    a.add_argument("model")
    a.add_argument("n", type=int, nargs="?", default=len(PROMPTS))
    a.add_argument("--helper", default="build/release/helpers/forced_logits")
    a.add_argument("--tokens", type=int, default=200)
    a.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    a.add_argument("--folder")
    a.add_argument("--isa")
    a.add_argument("--json")
    o = a.parse_args()
    began = time.monotonic()
    copy = f32_copy(o.model, o.folder or os.path.dirname(os.path.abspath(o.model)))
    texts = PROMPTS[:o.n]
    model = llama_cpp.Model(copy, len(texts), 512, o.threads)
    prompts = [model.ids(chat(t)) for t in texts]
    replies = reply_all(model, prompts, o.tokens)
    model.close()
    middle = time.monotonic()
    how = ["f32", f"threads={o.threads}"] + ([f"isa={o.isa}"] if o.isa else [])
    said = force(o.helper, o.model, prompts, replies, *how)
    total = equal = apart = steps = worst = 0
    rows = []
    for i, (reply, ours) in enumerate(zip(replies, said)):
        different = [k for k, (t, _) in enumerate(reply) if ours[k]["id"][0] != t]
        total += len(reply)
        steps += len(different)
        equal += not different
        if different:
            k = different[0]
            gap = float(ours[k]["logit"][0] - ours[k]["fed"])
            apart += max(gap, reply[k][1]) > TIE
            worst = max(worst, gap, reply[k][1])
            rows.append(dict(prompt=i, token=k, of=len(reply), llama_cpp_gap=reply[k][1], holorun_gap=gap, differ=len(different)))
    name = os.path.basename(o.model)
    print(f"{name}: {equal} of {len(replies)} replies equal ({total} tokens, {steps} not the best one of holorun), "
          f"{apart} first differences beyond {TIE:g}; {middle - began:.0f} s llama.cpp, {time.monotonic() - middle:.0f} s holorun")
    if rows:
        print("| prompt | first difference at token | gap in llama.cpp | gap in holorun |\n|---|---|---|---|")
    for r in rows:
        print(f"| {r['prompt']} | {r['token']} of {r['of']} | {r['llama_cpp_gap']:.2e} | {r['holorun_gap']:.2e} |")
    if o.json:
        with open(o.json, "w", encoding="utf-8") as f:
            json.dump(dict(model=name, prompts=prompts, replies=[[t for t, _ in r] for r in replies], equal=equal, rows=rows), f)
    return 1 if apart else 0


if __name__ == "__main__":
    sys.exit(main())
