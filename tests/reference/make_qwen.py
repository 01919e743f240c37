"""Writes tiny random models of the Qwen3.5 family, and the results of Hugging Face transformers.

    python make_qwen.py        into ../golden/qwen/dense and ../golden/qwen/moe

Computed in f32, eager, on a CPU.  Stored: the output of every layer for a prompt at once, logits after each of its
tokens, the final states (with the last rows of the convolutions in order), the choices of routers, positions and
logits of a conversation with two images, and greedy continuations of prompts with and without images.  An
image's rows are generated like weights instead of computed by a tower.  Frequencies are low and few, so that
a wrong axis of a position is detected.  Made with transformers 5.23.0 and torch 2.13.0.
"""
import os
import sys

os.environ.setdefault("OMP_NUM_THREADS", "2")
import torch
from transformers import (Qwen3_5Config, Qwen3_5ForCausalLM, Qwen3_5MoeForCausalLM, Qwen3_5MoeTextConfig,
                          Qwen3_5TextConfig)
from transformers.cache_utils import DynamicCache
from transformers.models.qwen3_5.modeling_qwen3_5 import Qwen3_5Model

import drawn

VOCAB, IMAGE, TOKENS, GREEDY = 160, 159, 200, 256
ROPE = {"rope_theta": 100.0, "partial_rotary_factor": 0.5, "mrope_section": [6, 5, 5], "mrope_interleaved": True,
        "rope_type": "default"}
COMMON = dict(vocab_size=VOCAB, hidden_size=64, num_hidden_layers=4, head_dim=64, linear_conv_kernel_dim=4,
              linear_key_head_dim=16, linear_value_head_dim=16, linear_num_key_heads=2, rms_norm_eps=1e-6,
              hidden_act="silu", max_position_embeddings=4096, rope_parameters=ROPE)
CASES = {
    "dense": dict(seed=31, text=COMMON | dict(intermediate_size=96, num_attention_heads=4, num_key_value_heads=2,
                                              linear_num_value_heads=4, tie_word_embeddings=True)),
    "moe": dict(seed=32, text=COMMON | dict(num_attention_heads=4, num_key_value_heads=1, linear_num_value_heads=6,
                                            num_experts=8, num_experts_per_tok=3, moe_intermediate_size=32,
                                            shared_expert_intermediate_size=48, tie_word_embeddings=False)),
}
# Rows and columns of an image's merged patches.
GRIDS = [(2, 3), (5, 2), (1, 4), (3, 3)]


def spread_of(name):
    """Returns (spread, mean) of a tensor; states close to zero would hide errors."""
    if name.endswith("linear_attn.norm.weight"):
        return 0.3, 1.0
    if name.endswith("norm.weight") or name.endswith("layernorm.weight"):
        return 0.3, 0.0
    if name.endswith("A_log"):
        return 1.0, -1.0
    if name.endswith("dt_bias"):
        return 0.7, 0.3
    if name.endswith("conv1d.weight"):
        return 0.6, 0.0
    return 0.16, 0.0


def build(case, moe):
    config = (Qwen3_5MoeTextConfig if moe else Qwen3_5TextConfig)(**case["text"], attn_implementation="eager")
    if moe:
        config._experts_implementation = "eager"
    with torch.device("meta"):
        lm = (Qwen3_5MoeForCausalLM if moe else Qwen3_5ForCausalLM)(config)
    w = drawn.Weights(case["seed"])
    for name, v in sorted(lm.state_dict().items()):
        if name != "lm_head.weight" or moe:
            w.add(name, tuple(v.shape), *spread_of(name))
    lm = (Qwen3_5MoeForCausalLM if moe else Qwen3_5ForCausalLM)(config)
    lm.load_state_dict(w.values, strict=moe)
    lm.tie_weights()
    return lm.float().eval(), w


def positions(ids, grids):
    """Returns transformers' own positions: (3, n)."""
    model = Qwen3_5Model.__new__(Qwen3_5Model)
    torch.nn.Module.__init__(model)
    model.config = Qwen3_5Config()
    thw = torch.tensor([[1, 2 * r, 2 * c] for r, c in grids]) if grids else None
    ids = torch.tensor([ids])
    at, delta = model.get_rope_index(ids, (ids == IMAGE).int(), image_grid_thw=thw)
    assert int(at.max()) + 1 - ids.shape[1] == int(delta)
    return at[:, 0]


class Talk:
    """Token ids with images among them."""

    def __init__(self, seed, name, pictures, text):
        """text: number of tokens before, between and after the images."""
        draws = (drawn.mixed(seed, name, 0, text * (pictures + 1)) >> 33).tolist()
        self.ids, self.grids, self.name = [], [], name
        for i in range(pictures + 1):
            self.ids += [t % (VOCAB - 1) for t in draws[i * text:(i + 1) * text]]
            if i < pictures:
                self.grids.append(GRIDS[(i + seed + len(name)) % len(GRIDS)])
                self.ids += [IMAGE] * (self.grids[-1][0] * self.grids[-1][1])
        self.seed = seed

    def rows(self):
        n = sum(r * c for r, c in self.grids)
        return drawn.draw(self.seed, self.name + ".rows", (n, COMMON["hidden_size"]), 0, 0.16 / drawn.SPREAD)

    def embeds(self, lm):
        ids = torch.tensor([self.ids])
        x = lm.model.embed_tokens(ids).clone()
        x[ids == IMAGE] = self.rows()
        return x

    def keep(self, out):
        out.keep(self.name + ".ids", torch.tensor(self.ids))
        if self.grids:
            out.keep(self.name + ".grids", torch.tensor(self.grids))


def prefill(lm, talk, cache=None):
    at = positions(talk.ids, talk.grids)
    step = lm.model(inputs_embeds=talk.embeds(lm), position_ids=at[:, None], past_key_values=cache, use_cache=cache is not None)
    return lm.lm_head(step.last_hidden_state)[0], int(at.max()) + 1


@torch.no_grad()
def follow(lm, talk, cache):
    logits, next_at = prefill(lm, talk, cache)
    ids, gap, logits = [], 1e9, logits[-1]
    for k in range(GREEDY):
        top = logits.topk(2)
        gap = min(gap, float(top.values[0] - top.values[1]))
        ids.append(int(top.indices[0]))
        x = lm.model.embed_tokens(torch.tensor([[ids[-1]]]))
        at = torch.full((3, 1, 1), next_at + k)
        logits = lm.lm_head(lm.model(inputs_embeds=x, position_ids=at, past_key_values=cache, use_cache=True)
                            .last_hidden_state)[0, -1]
    return ids, gap


def keep_layers(out, layers, moe, read, talk):
    """Keeps a conversation, the rows after each part of each layer, and the logits, which read() returns."""
    seen, hooks = {}, []
    for i, layer in enumerate(layers):
        hooks.append(layer.register_forward_hook(
            lambda m, a, y, i=i: seen.__setitem__(f"layer{2 * i + 1}", (y[0] if isinstance(y, tuple) else y)[0])))
        hooks.append(layer.post_attention_layernorm.register_forward_pre_hook(
            lambda m, a, i=i: seen.__setitem__(f"layer{2 * i}", a[0][0])))
        if moe:
            hooks.append(layer.mlp.gate.register_forward_hook(
                lambda m, a, y, i=i: seen.__setitem__(f"chosen{2 * i + 1}", y[2].sort(-1).values)))
    logits = read()
    for h in hooks:
        h.remove()
    talk.keep(out)
    for k, v in seen.items():
        (out.stage(k, v.double(), None) if k[0] == "l" else out.keep(k, v))
    out.keep("logits", logits)


def keep_reply(out, t, ids, gap):
    """Keeps a greedy reply to a conversation; returns the gap."""
    t.keep(out)
    out.keep(t.name, torch.tensor(ids))
    print(t.name, f"{gap:.5f}", len(set(ids)), flush=True)
    return gap


def apart(talk_of, follow_it):
    """Returns (conversation, reply, gap) without two candidates so close that rounding could exchange them."""
    for more in range(100):
        t = talk_of(more)
        ids, gap = follow_it(t)
        if len(ids) == GREEDY:
            break
    return t, ids, gap


@torch.no_grad()
def make(name):
    case, moe = CASES[name], name == "moe"
    lm, w = build(case, moe)
    out = drawn.Fixture(f"qwen/{name}", "make_qwen.py", case["seed"], ["torch", "transformers", "numpy"])
    talk, cache = Talk(case["seed"], "prompt", 0, TOKENS), DynamicCache(config=lm.config)
    keep_layers(out, lm.model.layers, moe, lambda: prefill(lm, talk, cache)[0], talk)
    for i, layer in enumerate(lm.model.layers):
        if hasattr(layer, "linear_attn"):
            S = cache.get_recurrent_state(i)
            out.keep(f"state{2 * i}", S.reshape(-1, S.shape[-1]))
            out.keep(f"tail{2 * i}", cache.get_conv_state(i)[0, :, -3:].T)
    pictures = Talk(case["seed"], "pictures", 2, 20)
    logits, next_at = prefill(lm, pictures)
    pictures.keep(out)
    out.keep("pictures.positions", positions(pictures.ids, pictures.grids).T)
    out.keep("pictures.logits", logits[-22:])
    print(name, "logits", float(logits.abs().max()), "next position", next_at, "of", len(pictures.ids))
    gaps = []
    for i in range(20 if not moe else 6):
        t = Talk(case["seed"], f"greedy{i}", i % 5, 12 + i)
        gaps.append(keep_reply(out, t, *follow(lm, t, DynamicCache(config=lm.config))))
    kind = "qwen3_5_moe_text" if moe else "qwen3_5_text"
    config = {"architectures": ["Qwen3_5MoeForCausalLM" if moe else "Qwen3_5ForCausalLM"], "model_type": kind,
              "eos_token_id": 0} | case["text"]
    out.write(config, weights=w.table, image=IMAGE, smallest_gap=min(gaps))


if __name__ == "__main__":
    torch.set_num_threads(1)
    for each in sys.argv[1:] or CASES:
        make(each)
