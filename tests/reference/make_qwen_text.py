"""Writes tiny random text models, Qwen2 with tied and untied embeddings and Qwen3, and the results of transformers.

    python make_qwen_text.py        into ../golden/qwen/text2, text2tied and text3

Like make_qwen_kin.py, with the same spread of weights, without images.  Stored: the output of every layer for a prompt at
once, logits after each of its tokens, and greedy continuations of 20 prompts.  Two query heads share keys and values,
four in text2tied; the heads of text3 together are wider than the model.  Configurations have the published
keys, that of text2tied those of save_pretrained.  Made with transformers 5.24.0 and torch 2.14.1.
"""
import json
import os
import sys

os.environ.setdefault("OMP_NUM_THREADS", "1")
import torch
from make_qwen import GREEDY, TOKENS, VOCAB, Talk, apart, keep_layers, keep_reply
from make_qwen_kin import CLOSE, spread_of
from transformers import Qwen2Config, Qwen2ForCausalLM, Qwen3Config, Qwen3ForCausalLM

import drawn

COMMON = dict(vocab_size=VOCAB, hidden_size=64, num_hidden_layers=4, rms_norm_eps=1e-6, hidden_act="silu", max_position_embeddings=4096,
              bos_token_id=None, eos_token_id=0)
ROPE = {"rope_theta": 100.0, "rope_type": "default"}
QWEN2, QWEN3 = (Qwen2Config, Qwen2ForCausalLM), (Qwen3Config, Qwen3ForCausalLM)
CASES = {
    "text2": dict(seed=91, of=QWEN2, config=COMMON | dict(num_attention_heads=4, num_key_value_heads=2, intermediate_size=96,
                                                          tie_word_embeddings=False)),
    "text2tied": dict(seed=92, of=QWEN2, config=COMMON | dict(num_attention_heads=4, num_key_value_heads=1, intermediate_size=160,
                                                              tie_word_embeddings=True)),
    "text3": dict(seed=93, of=QWEN3, config=COMMON | dict(num_attention_heads=4, num_key_value_heads=2, head_dim=32, intermediate_size=96,
                                                          tie_word_embeddings=True)),
}
FLAT = dict(attention_dropout=0.0, initializer_range=0.02, max_window_layers=4, sliding_window=4096, use_cache=True, use_sliding_window=False,
            rope_theta=100.0, torch_dtype="bfloat16")


def build(case):
    of, kind = case["of"]
    model = kind(of(**case["config"], rope_parameters=dict(ROPE), attn_implementation="eager")).float().eval()
    w, tied = drawn.Weights(case["seed"]), case["config"]["tie_word_embeddings"]
    for name, v in sorted(model.state_dict().items()):
        if name != "lm_head.weight" or not tied:
            w.add(name, tuple(v.shape), *spread_of(name, tuple(v.shape)))
    model.load_state_dict(w.values, strict=not tied)
    model.tie_weights()
    return model, w


def config_of(name, case, model):
    """Returns the keys of a published config.json, or of one written by save_pretrained."""
    head = {"architectures": [type(model).__name__], "model_type": model.config.model_type}
    if name == "text2tied":
        return json.loads(model.config.to_json_string(use_diff=False)) | head
    return head | case["config"] | FLAT | ({"attention_bias": False, "rope_scaling": None, "sliding_window": None} if name == "text3" else {})


@torch.no_grad()
def follow(model, talk):
    """Returns greedy tokens, fewer than GREEDY if two logits come too close, and the smallest gap."""
    step, ids, gap = model(torch.tensor([talk.ids]), use_cache=True), [], 1e9
    while len(ids) < GREEDY:
        top = step.logits[0, -1].topk(2)
        gap = min(gap, float(top.values[0] - top.values[1]))
        if gap < CLOSE:
            break
        ids.append(int(top.indices[0]))
        step = model(torch.tensor([ids[-1:]]), past_key_values=step.past_key_values, use_cache=True)
    return ids, gap


@torch.no_grad()
def make(name):
    case = CASES[name]
    model, w = build(case)
    out = drawn.Fixture(f"qwen/{name}", "make_qwen_text.py", case["seed"], ["torch", "transformers", "numpy"])
    talk = Talk(case["seed"], "prompt", 0, TOKENS)
    keep_layers(out, model.model.layers, False, lambda: model(torch.tensor([talk.ids])).logits[0], talk)
    gaps = []
    for i in range(20):
        gaps.append(keep_reply(out, *apart(lambda more, i=i: Talk(case["seed"], f"greedy{i}", 0, 12 + i + more),
                                           lambda t: follow(model, t))))
    out.write(config_of(name, case, model), weights=w.table, smallest_gap=min(gaps))


if __name__ == "__main__":
    torch.set_num_threads(1)
    for each in sys.argv[1:] or CASES:
        make(each)
