"""Writes tiny random towers of Qwen3-VL and Qwen2.5-VL, and the results of Hugging Face transformers.

    python make_qwen_kin_tower.py        into ../golden/qwen/tower_vl3 and tower_vl25

Like make_qwen_tower.py.  "merged" has each merged row, followed by the rows for the language model's first layers.  In
Qwen2.5-VL the earlier stages are in the order of the windows; its grids have windows that are whole, and cut at
the right, at the bottom, and both.  Made with transformers 5.23.0 and torch 2.13.0.
"""
import sys

import torch
from make_qwen_kin import COMMON, IDS
from make_qwen_tower import spread_of as tower_spread
from transformers.models.qwen2_5_vl.configuration_qwen2_5_vl import Qwen2_5_VLVisionConfig
from transformers.models.qwen2_5_vl.modeling_qwen2_5_vl import Qwen2_5_VisionTransformerPretrainedModel
from transformers.models.qwen3_vl.configuration_qwen3_vl import Qwen3VLVisionConfig
from transformers.models.qwen3_vl.modeling_qwen3_vl import Qwen3VLVisionModel

import drawn

VISION = dict(out_hidden_size=64, temporal_patch_size=2, spatial_merge_size=2, in_channels=3)
CASES = {
    "tower_vl3": dict(seed=71, type="qwen3_vl", name="Qwen3VLForConditionalGeneration", config=Qwen3VLVisionConfig, model=Qwen3VLVisionModel,
                      front="model.visual.", grids=[(4, 6), (8, 2), (34, 6)], patch=16, vision=VISION | dict(
        patch_size=16, depth=4, hidden_size=144, intermediate_size=200, num_heads=2, num_position_embeddings=2304,
        hidden_act="gelu_pytorch_tanh", deepstack_visual_indexes=[0, 1, 3])),
    "tower_vl25": dict(seed=72, type="qwen2_5_vl", name="Qwen2_5_VLForConditionalGeneration", config=Qwen2_5_VLVisionConfig,
                       model=Qwen2_5_VisionTransformerPretrainedModel, front="visual.", grids=[(2, 4), (8, 16), (10, 28), (22, 6), (18, 10)], patch=14,
                       vision=VISION | dict(patch_size=14, depth=3, hidden_size=160, intermediate_size=106, num_heads=2, window_size=112,
                                            fullatt_block_indexes=[1], hidden_act="silu")),
}


def spread_of(name, shape):
    if "ln_q" in name:
        return 0.3, 1.0
    return (2 / shape[1] ** 0.5, 0.0) if name.endswith("qkv.weight") else tower_spread(name, shape)


@torch.no_grad()
def make(name):
    case = CASES[name]
    tower = case["model"](case["config"](**case["vision"], attn_implementation="eager"))
    w, front = drawn.Weights(case["seed"]), case["front"]
    for k, v in sorted(tower.state_dict().items()):
        w.add(front + k, tuple(v.shape), *spread_of(k, v.shape))
    tower.load_state_dict({k[len(front):]: v for k, v in w.values.items()})
    tower.float().eval()
    out = drawn.Fixture(f"qwen/{name}", "make_qwen_kin_tower.py", case["seed"], ["torch", "transformers", "numpy"])
    for rows, cols in case["grids"]:
        n, seen, grid = rows * cols, {}, f"{rows}x{cols}"
        hooks = [tower.blocks[0].register_forward_pre_hook(lambda m, a: seen.__setitem__("embedded", a[0]))]
        for i, block in enumerate(tower.blocks):
            hooks.append(block.register_forward_hook(lambda m, a, y, i=i: seen.__setitem__(f"block{i}", y)))
        patches = drawn.draw(case["seed"], "patches" + grid, (n, 6 * case["patch"] ** 2), 0, 0.5 / drawn.SPREAD)
        got = tower(patches, grid_thw=torch.tensor([[1, rows, cols]]))
        seen["merged"] = torch.cat([got.pooler_output, *getattr(got, "deepstack_features", [])], 1)
        for h in hooks:
            h.remove()
        for k, v in seen.items():
            if n > 100 and k != "merged":
                out.stage(f"{grid}.{k}", v, range(0, n, n // 8))
            else:
                out.keep(f"{grid}.{k}", v)
            print(name, grid, k, tuple(v.shape), float(v.abs().max()))
    rope = {"rope_theta": 100.0, "mrope_section": [6, 5, 5], "rope_type": "default"}
    text = COMMON | dict(num_attention_heads=2, num_key_value_heads=1, head_dim=32, intermediate_size=96, rope_parameters=rope)
    full = {"architectures": [case["name"]], "model_type": case["type"], **IDS, "text_config": text, "tie_word_embeddings": True,
            "vision_config": case["vision"] | {"model_type": case["type"]}}
    out.write(full, weights=w.table, grids=[list(g) for g in case["grids"]])


if __name__ == "__main__":
    torch.set_num_threads(1)
    for each in sys.argv[1:] or CASES:
        make(each)
