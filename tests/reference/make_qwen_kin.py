"""Writes tiny random language models of Qwen3-VL, dense and with experts, and of Qwen2.5-VL, and transformers' results.

    python make_qwen_kin.py        into ../golden/qwen/vl3, vl3moe and vl25

Like make_qwen.py, with the same conversations.  In Qwen3-VL an image's rows also contain the rows that its tower
adds after the first layers: the row itself, then one for each of those layers.  The checkpoints have towers
that are not used here.  Tensors have the names of save_pretrained.  Made with transformers 5.23.0 and
torch 2.13.0.
"""
import sys

import make_qwen
import torch
from make_qwen import GREEDY, IMAGE, TOKENS, VOCAB, Talk, apart, keep_layers, keep_reply
from transformers import (Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration, Qwen3VLConfig,
                          Qwen3VLForConditionalGeneration, Qwen3VLMoeConfig, Qwen3VLMoeForConditionalGeneration)
from transformers.cache_utils import DynamicCache

import drawn

CLOSE = 1e-4  # logits closer than this may be exchanged by rounding
COMMON = dict(vocab_size=VOCAB, hidden_size=64, num_hidden_layers=4, rms_norm_eps=1e-6, hidden_act="silu", max_position_embeddings=4096)
IDS = dict(image_token_id=IMAGE, video_token_id=158, vision_start_token_id=157, vision_end_token_id=156)
ROPE = {"rope_theta": 100.0, "mrope_section": [6, 5, 5], "mrope_interleaved": True, "rope_type": "default"}
TOWER = dict(hidden_size=32, intermediate_size=48, num_heads=2, out_hidden_size=64, temporal_patch_size=2, spatial_merge_size=2,
             in_channels=3)
TOWER3 = TOWER | dict(depth=4, patch_size=16, num_position_embeddings=64, hidden_act="gelu_pytorch_tanh", deepstack_visual_indexes=[0, 1, 3])
TOWER25 = TOWER | dict(depth=2, patch_size=14, window_size=112, fullatt_block_indexes=[1], hidden_act="silu")
CASES = {
    "vl3": dict(seed=61, type="qwen3_vl", config=Qwen3VLConfig, model=Qwen3VLForConditionalGeneration, vision=TOWER3, tied=True, text=COMMON | dict(
        num_attention_heads=4, num_key_value_heads=2, head_dim=32, intermediate_size=96, rope_parameters=ROPE)),
    "vl3moe": dict(seed=62, type="qwen3_vl_moe", config=Qwen3VLMoeConfig, model=Qwen3VLMoeForConditionalGeneration, vision=TOWER3, tied=False,
                   text=COMMON | dict(num_attention_heads=4, num_key_value_heads=1, head_dim=32, num_experts=8, num_experts_per_tok=3,
                                      moe_intermediate_size=48, intermediate_size=96, decoder_sparse_step=1, mlp_only_layers=[],
                                      rope_parameters=ROPE)),
    "vl25": dict(seed=63, type="qwen2_5_vl", config=Qwen2_5_VLConfig, model=Qwen2_5_VLForConditionalGeneration, vision=TOWER25, tied=False,
                 text=COMMON | dict(num_attention_heads=2, num_key_value_heads=1, intermediate_size=96, use_sliding_window=False,
                                    sliding_window=4096, max_window_layers=4,
                                    rope_parameters={"rope_theta": 100.0, "mrope_section": [4, 7, 5], "rope_type": "default"})),
}


def spread_of(name, shape):
    if name.startswith("model.visual."):
        return (0.1, 1.0) if "norm" in name or "ln_q" in name else (0.1, 0.0)
    if "norm" in name:
        return 0.3, 1.0
    return (0.3, 0.0) if name.endswith("bias") else (0.16, 0.0)


def stored_name(case, name):
    """Returns the name used by save_pretrained; for Qwen2.5-VL, the published one."""
    if case["type"] == "qwen2_5_vl":
        return name.replace("model.language_model.", "model.").replace("model.visual.", "visual.")
    return name


def fill(model, case, spread=spread_of):
    """Generates all weights under their stored names; experts are stored transposed."""
    w, state = drawn.Weights(case["seed"]), {}
    for name, v in sorted(model.state_dict().items()):
        if name == "lm_head.weight" and case["tied"]:
            continue
        across = case["type"] == "qwen3_vl_moe" and v.ndim == 3
        shape = (v.shape[0], v.shape[2], v.shape[1]) if across else tuple(v.shape)
        w.add(stored_name(case, name), shape, *spread(name, tuple(v.shape)))
        drawn_values = w.values[stored_name(case, name)]
        state[name] = drawn_values.transpose(1, 2).contiguous() if across else drawn_values
    model.load_state_dict(state, strict=not case["tied"])
    model.tie_weights()
    return w


def build(case, text=None):
    config = case["config"](text_config=text or case["text"], vision_config=case["vision"], **IDS, tie_word_embeddings=case["tied"],
                            attn_implementation="eager")
    for c in (config, config.text_config):
        c._experts_implementation = "eager"
    model = case["model"](config).float().eval()
    return model, fill(model, case)


class Wide(Talk):
    """An image's rows with the tower's additions for later layers."""

    parts = 1

    def rows(self):
        n = sum(r * c for r, c in self.grids)
        return drawn.draw(self.seed, self.name + ".rows", (n, self.parts * COMMON["hidden_size"]), 0, 0.16 / drawn.SPREAD)

    def embeds(self, lm):
        ids = torch.tensor([self.ids])
        x = lm.embed_tokens(ids).clone()
        x[ids == IMAGE] = self.rows()[:, :COMMON["hidden_size"]]
        return x

    def added(self):
        if self.parts == 1:
            return {}
        mask = torch.tensor([self.ids]) == IMAGE
        return {"visual_pos_masks": mask, "deepstack_visual_embeds": list(self.rows().split(COMMON["hidden_size"], 1))[1:]} if self.grids else {}


def positions(model, talk):
    ids = torch.tensor([talk.ids])
    thw = torch.tensor([[1, 2 * r, 2 * c] for r, c in talk.grids]) if talk.grids else None
    at, delta = model.model.get_rope_index(ids, mm_token_type_ids=(ids == IMAGE).int(), image_grid_thw=thw)
    assert int(at.max()) + 1 - ids.shape[1] == int(delta.reshape(-1)[0])
    return at[:, 0]


def prefill(model, talk, cache=None):
    lm, at = model.model.language_model, positions(model, talk)
    step = lm(inputs_embeds=talk.embeds(lm), position_ids=at[:, None], past_key_values=cache, use_cache=cache is not None, **talk.added())
    return model.lm_head(step.last_hidden_state)[0], int(at.max()) + 1


@torch.no_grad()
def follow(model, talk, cache):
    lm = model.model.language_model
    logits, next_at = prefill(model, talk, cache)
    ids, gap, logits = [], 1e9, logits[-1]
    for k in range(GREEDY):
        top = logits.topk(2)
        gap = min(gap, float(top.values[0] - top.values[1]))
        if gap < CLOSE:
            break
        ids.append(int(top.indices[0]))
        at = torch.full((3, 1, 1), next_at + k)
        step = lm(inputs_embeds=lm.embed_tokens(torch.tensor([[ids[-1]]])), position_ids=at, past_key_values=cache, use_cache=True)
        logits = model.lm_head(step.last_hidden_state)[0, -1]
    return ids, gap


@torch.no_grad()
def make(name):
    case = CASES[name]
    model, w = build(case)
    lm, moe = model.model.language_model, name == "vl3moe"
    Wide.parts = 1 + len(case["vision"].get("deepstack_visual_indexes", []))
    out = drawn.Fixture(f"qwen/{name}", "make_qwen_kin.py", case["seed"], ["torch", "transformers", "numpy"])
    talk = Wide(case["seed"], "prompt", 0, TOKENS)
    keep_layers(out, lm.layers, moe, lambda: prefill(model, talk, DynamicCache(config=lm.config))[0], talk)
    pictures = Wide(case["seed"], "pictures", 2, 20)
    logits, next_at = prefill(model, pictures)
    pictures.keep(out)
    out.keep("pictures.positions", positions(model, pictures).T)
    out.keep("pictures.logits", logits[-22:])
    print(name, "logits", float(logits.abs().max()), "next position", next_at, "of", len(pictures.ids))
    gaps = []
    for i in range(20 if not moe else 6):
        gaps.append(keep_reply(out, *apart(lambda more, i=i: Wide(case["seed"], f"greedy{i}", i % 5, 12 + i + more),
                                           lambda t: follow(model, t, DynamicCache(config=lm.config)))))
    config = {"architectures": [case["model"].__name__], "model_type": case["type"], **IDS, "eos_token_id": 0, "tie_word_embeddings": case["tied"]}
    vision = {"vision_config": case["vision"] | {"model_type": case["type"]}}
    if name == "vl25":  # flat, as published
        text = {k: v for k, v in case["text"].items() if k != "rope_parameters"}
        config |= text | {"rope_theta": 100.0, "rope_scaling": {"type": "mrope", "mrope_section": [4, 7, 5]}} | vision
    else:
        config |= {"text_config": case["text"] | {"model_type": case["type"] + "_text"}} | vision
    out.write(config, weights=w.table, image=IMAGE, smallest_gap=min(gaps))


if __name__ == "__main__":
    make_qwen.IMAGE = IMAGE
    torch.set_num_threads(1)
    for each in sys.argv[1:] or CASES:
        make(each)
