"""Writes the distributions that transformers' samplers produce from rows of logits.

    python make_samplers.py      into ../golden/samplers

Each case has a row of logits, the ids of prompt and reply, parameters, and the probability of each id by
RepetitionPenaltyLogitsProcessor, TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper and
MinPLogitsWarper of transformers, in the order of its generate.  The penalties that transformers lacks are
defined as in OpenAI's API: frequency times the number of occurrences in the reply, and presence once, are
subtracted after the repetition penalty, as in vLLM.
"""
import json
import os

import torch
import transformers
from transformers.generation import logits_process as lp

HERE = os.path.dirname(os.path.abspath(__file__))
N, CASES = 60, 120


def distribution(row, prompt, reply, p):
    ids = torch.tensor([prompt + reply])
    scores = row.clone()[None]
    if p["repetition_penalty"] != 1:
        scores = lp.RepetitionPenaltyLogitsProcessor(p["repetition_penalty"])(ids, scores)
    counts = torch.bincount(torch.tensor(reply, dtype=torch.long), minlength=N).float()
    scores = scores - p["frequency_penalty"] * counts - p["presence_penalty"] * (counts > 0)
    scores = lp.TemperatureLogitsWarper(p["temperature"])(ids, scores)
    if p["top_k"]:
        scores = lp.TopKLogitsWarper(p["top_k"])(ids, scores)
    if p["top_p"] < 1:
        scores = lp.TopPLogitsWarper(p["top_p"])(ids, scores)
    if p["min_p"]:
        scores = lp.MinPLogitsWarper(p["min_p"])(ids, scores)
    return torch.softmax(scores.double(), -1)[0]


def main():
    g = torch.Generator().manual_seed(7)
    some = lambda *of: of[int(torch.randint(len(of), (1,), generator=g))]
    cases = []
    for i in range(CASES):
        row = (torch.randn(N, generator=g) * some(1, 2, 4)).float()
        row = (row * 64).round() / 64                                 # exact in text; some are equal
        ids = lambda n: torch.randint(N, (n,), generator=g).tolist()
        prompt, reply = ids(12), ids(some(0, 1, 9)) + ([3, 3, 3] if i % 3 else [])
        p = {"temperature": some(0.5, 0.75, 1.0, 1.5), "top_k": some(0, 0, 1, 5, 20, 59, 60, 500), "top_p": some(1.0, 1.0, 0.5, 0.9375),
             "min_p": some(0.0, 0.0, 0.03, 0.2, 0.7), "repetition_penalty": some(1.0, 1.0, 1.25, 0.75),
             "presence_penalty": some(0.0, 0.0, 1.5, -0.5), "frequency_penalty": some(0.0, 0.0, 0.5, -0.25)}
        cases.append(dict(p, logits=row.tolist(), prompt=prompt, reply=reply,
                          probabilities=[round(v, 6) for v in distribution(row, prompt, reply, p).tolist()]))
    folder = os.path.join(HERE, "..", "golden", "samplers")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "samplers.json"), "w", encoding="utf-8") as f:
        f.write('{"made": "make_samplers.py, transformers %s",\n "cases": [\n' % transformers.__version__)
        f.write(",\n".join(json.dumps(c, separators=(",", ":")) for c in cases) + "\n]}\n")


if __name__ == "__main__":
    main()
