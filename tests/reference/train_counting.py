"""Trains a small model of the family to count, for meaningful greedy continuations.

    python train_counting.py         writes ../golden/counting/model.safetensors (bf16) and config.json: 5 minutes

Why it is trained: of V random logits the largest two are about 1 / sqrt(2 ln V) deviations apart, distributed
uniformly down to zero.  With the error of a logit in bf16 (1 % of the deviation) every thirtieth token is a tie,
so 256 random tokens say nothing about the arithmetic, and scaling the weights does not change the ratio.  A
trained model has logits that are far apart, with an occasional close pair, like a published checkpoint.  The
text must not become a loop, or the 256 tokens are a repetition of a few: counting does
not, and every digit of the next number depends on states and on attention to earlier numbers.

    37,40,43,46,49,                                 steps of 1 to 9
    ninety eight, ninety nine, one hundred,         in words
    wed 30, thu 1, fri 2,                           days of a week and of a month of 30

The weights are data: made once, stored, and read by make_greedy.py.  On another CPU the same training
gives other weights, which work equally well.
"""
import json
import os
import random
import sys

os.environ.setdefault("OMP_NUM_THREADS", "2")
import torch
from safetensors.torch import save_file

import golden
import make_layers

SEED, STEPS, BATCH, LENGTH, RATE = 17, 900, 8, 160, 4e-3
LETTERS = "\0abcdefghijklmnopqrstuvwxyz0123456789 ,"
VOCAB = 48
LM = dict(hybrid_override_pattern="M-M*-M-", hidden_size=64, intermediate_size=128, num_attention_heads=4,
          num_key_value_heads=2, head_dim=16, mamba_num_heads=8, mamba_head_dim=16, ssm_state_size=16, n_groups=2,
          conv_kernel=4, chunk_size=32)
ONES = ("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
        "seventeen eighteen nineteen").split()
TENS = "- - twenty thirty forty fifty sixty seventy eighty ninety".split()
DAYS = "mon tue wed thu fri sat sun".split()


def words(n):
    if n >= 100:
        return f"{ONES[n // 100]} hundred" + (" " + words(n % 100) if n % 100 else "")
    return ONES[n] if n < 20 else TENS[n // 10] + (" " + ONES[n % 10] if n % 10 else "")


def counting(kind, start, step, length):
    out, n = "", start
    while len(out) < length:
        out += f"{n}," if kind == 0 else f"{words(n % 1000)}, " if kind == 1 else f"{DAYS[n % 7]} {n % 30 + 1}, "
        n += step if kind == 0 else 1
    return out[:length]


def encode(text):
    return [LETTERS.index(c) for c in text]


def conv(x, weight, bias, activation=None, **_):
    """Computes the same as causal_conv1d_fn, in a form with a fast gradient."""
    n, k = x.shape[-1], weight.shape[1]
    x = torch.nn.functional.pad(x, (k - 1, 0))
    return torch.nn.functional.silu(bias[:, None] + sum(weight[:, i, None] * x[..., i:i + n] for i in range(k)))


def save(lm, out):
    final = {"language_model." + k.replace("model.", "backbone.", 1): v.detach().bfloat16().contiguous()
             for k, v in lm.state_dict().items()}
    save_file(final, os.path.join(out, "model.safetensors"), metadata={
        "generator": "train_counting.py", "seed": str(SEED), "steps": str(STEPS),
        **{p: golden.version(p) for p in ("torch", "transformers")}})


def main(out):
    os.makedirs(out, exist_ok=True)
    torch.manual_seed(SEED)
    torch.set_num_threads(2)
    rng = random.Random(SEED)
    w = golden.Weights(SEED)
    make_layers.add_language(w, LM, VOCAB, False)
    lm = golden.language(w.values, LM | {"vocab_size": VOCAB, "layer_norm_epsilon": 1e-5})
    golden.hf.causal_conv1d_fn = conv
    golden.use(False)    # the gradient of mamba-ssm's reference overflows: it masks after the exponential
    for p in lm.parameters():
        p.requires_grad_(True)
    opt = torch.optim.AdamW(lm.parameters(), lr=RATE, weight_decay=0.01, betas=(0.9, 0.98))
    rate = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: min(s / 50, 1) * max(0.02, 1 - s / STEPS))
    for s in range(STEPS):
        batch = torch.tensor([encode(counting(rng.randrange(3), rng.randrange(900), rng.randrange(1, 10), LENGTH + 1))
                              for _ in range(BATCH)])
        logits = lm(batch[:, :-1], use_cache=False).logits
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
        opt.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(lm.parameters(), 1.0)
        opt.step()
        rate.step()
        if s % 50 == 0:
            print(s, f"{loss.item():.4f}", flush=True)
            save(lm, out)
    save(lm, out)
    with open(os.path.join(out, "config.json"), "w") as f:
        json.dump({"architectures": ["NemotronHForCausalLM"], "model_type": "nemotron_h", "vocab_size": VOCAB, **LM,
                   "layer_norm_epsilon": 1e-5, "mlp_hidden_act": "relu2", "mamba_hidden_act": "silu",
                   "time_step_min": 0.001, "max_position_embeddings": 4096, "eos_token_id": 0}, f, indent=1)
        f.write("\n")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else os.path.join(golden.HERE, "..", "golden", "counting"))
