"""Writes tiny random towers of the Qwen3.5 family, and the results of Hugging Face transformers.

    python make_qwen_tower.py        into ../golden/qwen/tower16, tower64 and tower72

Computed in f32, eager, on a CPU.  Stored for each grid of patches: the embedded patches with their positions, the output
of every block and the merged rows; for a full screen's grid some rows, and of all rows two sums and the norm.
The number in a name is the width of an attention head.  Patches are random; both frames differ.  Made with transformers
5.23.0 and torch 2.13.0.
"""
import os
import sys

os.environ.setdefault("OMP_NUM_THREADS", "2")
import torch
from transformers.models.qwen3_5.configuration_qwen3_5 import Qwen3_5VisionConfig
from transformers.models.qwen3_5.modeling_qwen3_5 import Qwen3_5VisionModel

import drawn

FULL = 8160
COMMON = dict(depth=2, out_hidden_size=64, patch_size=16, temporal_patch_size=2, spatial_merge_size=2, in_channels=3,
              hidden_act="gelu_pytorch_tanh")
CASES = {
    "tower16": dict(seed=41, grids=[(4, 6), (8, 2), (68, 120)],
                    vision=COMMON | dict(hidden_size=32, intermediate_size=48, num_heads=2, num_position_embeddings=64)),
    "tower64": dict(seed=42, grids=[(6, 10)],
                    vision=COMMON | dict(hidden_size=128, intermediate_size=96, num_heads=2, num_position_embeddings=144)),
    "tower72": dict(seed=43, grids=[(2, 2), (10, 14), (34, 6)],
                    vision=COMMON | dict(hidden_size=144, intermediate_size=200, num_heads=2, num_position_embeddings=2304)),
}
TEXT = dict(vocab_size=160, hidden_size=64, num_hidden_layers=4, head_dim=64, intermediate_size=96, num_attention_heads=4,
            num_key_value_heads=2, linear_conv_kernel_dim=4, linear_key_head_dim=16, linear_value_head_dim=16,
            linear_num_key_heads=2, linear_num_value_heads=4, rms_norm_eps=1e-6, hidden_act="silu", max_position_embeddings=4096,
            rope_parameters={"rope_theta": 100.0, "partial_rotary_factor": 0.5, "mrope_section": [6, 5, 5],
                             "mrope_interleaved": True, "rope_type": "default"})


def spread_of(name, shape):
    """Returns (spread, mean) of a tensor; scores and inner values close to zero would hide errors."""
    if "norm" in name:
        return (0.3, 1.0) if name.endswith("weight") else (0.3, 0.0)
    if name.endswith("bias"):
        return 0.3, 0.0
    if "pos_embed" in name:
        return 1.0, 0.0
    if "patch_embed" in name:
        return 0.05, 0.0
    inputs = shape[1]
    return (4 if "qkv" in name else 2) / inputs ** 0.5, 0.0


@torch.no_grad()
def make(name):
    case = CASES[name]
    config = Qwen3_5VisionConfig(**case["vision"], attn_implementation="eager")
    tower = Qwen3_5VisionModel(config)
    w, front = drawn.Weights(case["seed"]), "model.visual."
    for k, v in sorted(tower.state_dict().items()):
        w.add(front + k, tuple(v.shape), *spread_of(k, v.shape))
    tower.load_state_dict({k[len(front):]: v for k, v in w.values.items()})
    tower.float().eval()
    out = drawn.Fixture(f"qwen/{name}", "make_qwen_tower.py", case["seed"], ["torch", "transformers", "numpy"])
    for rows, cols in case["grids"]:
        n, seen = rows * cols, {}
        hooks = [tower.blocks[0].register_forward_pre_hook(lambda m, a: seen.__setitem__("embedded", a[0]))]
        for i, block in enumerate(tower.blocks):
            hooks.append(block.register_forward_hook(lambda m, a, y, i=i: seen.__setitem__(f"block{i}", y)))
        grid = f"{rows}x{cols}"
        patches = drawn.draw(case["seed"], "patches" + grid, (n, 1536), 0, 0.5 / drawn.SPREAD)
        seen["merged"] = tower(patches, grid_thw=torch.tensor([[1, rows, cols]])).pooler_output
        for h in hooks:
            h.remove()
        for k, v in seen.items():
            if n == FULL:
                out.stage(f"{grid}.{k}", v, range(0, len(v), len(v) // 8))
            else:
                out.keep(f"{grid}.{k}", v)
            print(name, grid, k, float(v.abs().max()))
    full = {"architectures": ["Qwen3_5ForConditionalGeneration"], "model_type": "qwen3_5", "image_token_id": 150,
            "video_token_id": 151, "vision_start_token_id": 148, "vision_end_token_id": 149, "tie_word_embeddings": True,
            "text_config": TEXT | {"model_type": "qwen3_5_text"},
            "vision_config": case["vision"] | {"model_type": "qwen3_5", "deepstack_visual_indexes": []}}
    out.write(full, weights=w.table, grids=[list(g) for g in case["grids"]])


if __name__ == "__main__":
    for each in sys.argv[1:] or CASES:
        make(each)
