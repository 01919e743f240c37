"""Writes results of the gated delta rule of Qwen3-Next and Qwen3.5 from transformers: token by token and in chunks of 64.

    python make_delta.py        into ../golden/delta

Cases: ordinary decays from a state; tokens with total decay between others; equal keys whose values are overwritten
completely (a flat part of a screen); three tokens from an empty state.  Queries and keys are stored before
normalization.  Made with transformers 5.23.0 and torch 2.13.0.
"""
import json
import os
from importlib import metadata

import torch
from transformers.models.qwen3_next.modeling_qwen3_next import (torch_chunk_gated_delta_rule,
                                                                torch_recurrent_gated_delta_rule)

SEED, KEY_HEADS, VALUE_HEADS, KEY, VALUE = 7, 2, 4, 16, 12
HERE = os.path.dirname(os.path.abspath(__file__))


def inputs(rng, name, tokens):
    def rand(*shape):
        return torch.randn(shape, generator=rng)

    x = {"q": rand(1, tokens, KEY_HEADS, KEY), "k": rand(1, tokens, KEY_HEADS, KEY),
         "v": rand(1, tokens, VALUE_HEADS, VALUE), "g": -0.3 * torch.rand(1, tokens, VALUE_HEADS, generator=rng),
         "beta": torch.sigmoid(rand(1, tokens, VALUE_HEADS)), "before": rand(1, VALUE_HEADS, KEY, VALUE)}
    if name == "forgets":
        x["g"][:, ::7] = -400 * torch.rand(x["g"][:, ::7].shape, generator=rng)
        x["g"][:, 1::7] *= 0.001
    if name == "equal":
        x["k"] = x["k"][:, :1].repeat(1, tokens, 1, 1)
        x["beta"].fill_(1)
    if name == "empty":
        x["before"].zero_()
    return x


def main():
    rng, blob, arrays = torch.Generator().manual_seed(SEED), bytearray(), []

    def keep(name, x):
        arrays.append({"name": name, "shape": list(x.shape), "offset": len(blob)})
        blob.extend(x.contiguous().float().numpy().tobytes())

    for name, tokens in (("plain", 70), ("forgets", 66), ("equal", 65), ("empty", 3)):
        x = inputs(rng, name, tokens)
        for short, rule in (("step", torch_recurrent_gated_delta_rule), ("scan", torch_chunk_gated_delta_rule)):
            y, after = rule(x["q"], x["k"], x["v"], g=x["g"], beta=x["beta"], initial_state=x["before"],
                            output_final_state=True, use_qk_l2norm_in_kernel=True)
            keep(f"{name}.{short}", y.reshape(tokens, -1))
            keep(f"{name}.{short}.after", after.reshape(-1, VALUE))
        for part, v in x.items():
            keep(f"{name}.{part}", v.reshape(-1, VALUE) if part == "before" else v.reshape(tokens, -1))
    out = os.path.join(HERE, "..", "golden", "delta")
    os.makedirs(out, exist_ok=True)
    with open(os.path.join(out, "reference.bin"), "wb") as f:
        f.write(blob)
    root = {"generator": "make_delta.py", "seed": SEED, **{p: metadata.version(p) for p in ("transformers", "torch")},
            "key_heads": KEY_HEADS, "value_heads": VALUE_HEADS, "key": KEY, "value": VALUE}
    lines = [f"{json.dumps(k)}: {json.dumps(v)}" for k, v in root.items()]
    lines.append('"arrays": [\n ' + ",\n ".join(json.dumps(a) for a in arrays) + "\n]")
    with open(os.path.join(out, "reference.json"), "w", encoding="utf-8") as f:
        f.write("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
