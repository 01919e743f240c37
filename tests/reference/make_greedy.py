"""Writes greedy continuations of 20 prompts, 256 tokens each, by the model that train_counting.py made.

    python make_greedy.py        reads ../golden/counting/model.safetensors, writes reference.json and .bin there

Computed in f32 with the implementations named in golden.py: the prompt at once, then token by token from the cache.  For
each prompt it stores the ids, and the smallest gap between the two largest logits, the upper limit for differences
caused by another order of summation.
"""
import os

import torch
from safetensors.torch import load_file

import golden
import train_counting as t

SEED, TOKENS = 18, 256


@torch.no_grad()
def follow(lm, prompt):
    ids, out, gaps = torch.tensor([prompt]), [], []
    cache = None
    for _ in range(TOKENS):
        step = lm(ids, past_key_values=cache, use_cache=True)
        cache = step.past_key_values
        top = step.logits[0, -1].topk(2)
        out.append(int(top.indices[0]))
        gaps.append(float(top.values[0] - top.values[1]))
        ids = top.indices[None, :1]
    return out, gaps


def prompts():
    z = (golden.mixed(SEED, "prompts", 0, 60) >> 33).tolist()
    for i in range(20):
        kind, start, step, length = i % 3, z[3 * i] % 900, z[3 * i + 1] % 9 + 1, 24 + z[3 * i + 2] % 48
        yield t.counting(kind, start, step, 600 if i == 19 else length)


def main():
    out = golden.Fixture("counting", "make_greedy.py", SEED, ["torch", "transformers", "mamba-ssm", "einops", "numpy"])
    values = {k: v.float() for k, v in load_file(os.path.join(out.dir, "model.safetensors")).items()}
    lm = golden.language(values, t.LM | {"vocab_size": t.VOCAB, "layer_norm_epsilon": 1e-5})
    golden.use(True)
    texts, closest, small = [], 1e9, 0
    for i, text in enumerate(prompts()):
        prompt = t.encode(text)
        ids, gaps = follow(lm, prompt)
        texts.append({"prompt": text, "continuation": "".join(t.LETTERS[k] if k < len(t.LETTERS) else "?" for k in ids),
                      "smallest_gap": min(gaps)})
        closest, small = min(closest, *gaps), small + sum(g < 0.25 for g in gaps)
        out.keep(f"prompt{i}", torch.tensor(prompt))
        out.keep(f"ids{i}", torch.tensor(ids))
        print(f"{min(gaps):.4f}  {text[-30:]} -> {texts[-1]['continuation'][:100]} ... {texts[-1]['continuation'][-40:]}")
    assert golden.CALLS["step"] > 1000
    print(f"smallest gap {closest:.4f}; {small} of {20 * TOKENS} under 0.25")
    out.write(texts=texts)


if __name__ == "__main__":
    torch.set_num_threads(2)
    main()
